// SPDX-License-Identifier: Apache-2.0
// Placer: jobs and a cluster in, a plan with one explained decision per job out. Changes nothing.
//
// Enters:  a const cluster, jobs in any order, optionally the nodes to consider.
// Leaves:  a Plan; or per-node verdict, cost and reason for one job.
// Units:   see job.h, decision.h; costs in the policy's unit.
// Cost:    what changed in the cluster since the last call; then a job of one GPU looks at the states that changed
//          since its class came last and at few places, a gang at nodes and racks that may hold it. See docs/place.md.
// Thread class: one thread at a time (holds scratch and the memo).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "interference/model.h"
#include "place/decision.h"
#include "place/search/policy.h"
#include "place/state/cluster.h"

namespace horus {

// How policies that share GPUs and maximise work treat jobs with a sensitivity (Policy::grants_host).
enum class HostGrants : uint8_t {
  kResize = 0,     // give each what it does most work with, at least what it states; resize residents where that gains
  kPlacement = 1,  // the same for newcomers, of what is free; nobody is resized
  kStated = 2,     // what each states
};

// The caps that PlacerOptions::sm_caps chooses from; a handful, so that devices stay alike. Chosen.
inline constexpr std::array<int32_t, 5> kSmCapsPct = {70, 50, 30, 20, 10};

// Of those who wait, how many are tried beside a job whose device can have either mode. Chosen.
inline constexpr size_t kMostWaiting = 16;

struct PlacerOptions {
  double slowdown_bound = 0;         // for jobs without their own; 0 = the policy's default; infinity = none
  int32_t max_tenants = 3;           // per device that states none (Horus, TPDS 2022: at most 3)
  double sharing_quota = 1;          // share of the cluster's devices that may have several tenants; 0 = none shares
  int64_t mem_headroom_mib = 500;    // device memory that stays free (Horus, TPDS 2022: more than 500 MiB)
  double rack_oversubscription = 1;  // how much less links between racks carry than nodes send; 1 = none
  double mem_overcommit = 1;     // tenants' memory limits may sum to this many times a device; 1 = none is lent twice
  uint64_t max_jobs = 1u << 20;  // of one plan
  double gpu_price = 0.5;        // of jobs with alternatives: work that each GPU must bring, as a share of what one
                                 // brings in the most efficient way; 0 = GPUs are free (docs/place.md)
  HostGrants host_grants = HostGrants::kResize;
  bool sm_caps = false;         // a job that its neighbours' bounds refuse may go beside them under a cap
                                // (JobSpec::sm_cap_pct), if whoever starts it sets that: MPS
  bool probe_outside = false;   // a demand outside what the predictor knows, and not measured, runs alone first
  uint32_t max_candidates = 0;  // jobs of one GPU, among all nodes: price so many devices, drawn by seed and job, and
                                // all only where none of them fits; 0 = all, always. For jobs that are all different
  uint64_t seed = 0;            // of those draws
  bool terse = false;           // jobs that wait are not told why (Reason::kNone): saves a look at each device that
                                // changed, which is most of the time of a refusal. Rejections tell always
  uint64_t cache_bytes = 256u << 20;  // of what was scored before, all together; what would exceed its share is emptied
  bool exhaustive = false;            // score every device anew, without memo: the reference for tests and benchmarks
};

inline constexpr double kMaxMemOvercommit = 1000;  // more than a device has tenants that matter; chosen

// Called now and then with jobs done and jobs in all; false cancels.
using ProgressFn = std::function<bool(uint64_t done, uint64_t total)>;

// Asked before each job and each search for a place; false cancels.
using GoOnFn = std::function<bool()>;

// Called once, when all that is needed of the cluster was copied: whoever locked it may let others write to it.
using ReadFn = std::function<void()>;

// Positions of jobs in the order in which they are decided.
using JobOrder = absl::InlinedVector<uint32_t, 4>;

// Columns, one row per node asked for.
struct NodeVerdicts {
  std::vector<Verdict> verdict;
  std::vector<double> cost;    // lower is better; NaN unless kPlace
  std::vector<Reason> reason;  // kNone when kPlace, else what refused most of the node's devices
};

class Appraiser;
struct Appraisal;
class Engine;

class Placer {
 public:
  // INVALID_ARGUMENT for options out of range or a null model or policy.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Placer>> Create(std::shared_ptr<const InterferenceModel> model,
                                                                      std::shared_ptr<const Policy> policy,
                                                                      const PlacerOptions& options = {});
  ~Placer();
  Placer(const Placer&) = delete;
  Placer& operator=(const Placer&) = delete;

  // Decides every job, in the order (priority descending, submit_us, id), each seeing those before it; a
  // RoundPolicy (engine.h) all in one round.
  // `subset`: the only nodes to consider, in any order, duplicates allowed.
  // INVALID_ARGUMENT (job and field named), ALREADY_EXISTS (an id is resident or given twice), NOT_FOUND
  // (node of the subset), RESOURCE_EXHAUSTED (more than max_jobs), CANCELLED, and what model or policy return.
  [[nodiscard]] absl::StatusOr<Plan> MakePlan(const Cluster& cluster, std::span<const JobSpec> jobs,
                                              std::optional<std::span<const NodeId>> subset = std::nullopt,
                                              const ProgressFn& progress = nullptr, const ReadFn& read = nullptr);

  // One job against nodes one by one, as a scheduler's filter and score steps ask; a gang is answered for
  // one of its tasks, a job with alternatives for the first that the node takes. Errors as MakePlan; the job's id may
  // be resident.
  [[nodiscard]] absl::StatusOr<NodeVerdicts> Verdicts(const Cluster& cluster, const JobSpec& job,
                                                      std::span<const NodeId> nodes, const ReadFn& read = nullptr);

  // What a place would do, whoever chose it, by this placer's model and limits (appraise.h). ALREADY_EXISTS: the job is
  // resident; errors as Cluster::BrokenRule.
  [[nodiscard]] absl::StatusOr<Appraisal> Appraise(const Cluster& cluster, const JobSpec& job,
                                                   std::span<const Slot> slots) const;
  [[nodiscard]] Appraiser appraiser() const;

  // Asked during every call on this placer: false cancels it from now on, those of modes and simulations too; null =
  // nobody.
  void SetGoOn(GoOnFn go_on);

  [[nodiscard]] const InterferenceModel& model() const;
  [[nodiscard]] const Policy& policy() const;
  // For another placer, which may outlive this one.
  [[nodiscard]] std::shared_ptr<const InterferenceModel> shared_model() const;
  [[nodiscard]] std::shared_ptr<const Policy> shared_policy() const;
  [[nodiscard]] const PlacerOptions& options() const;
  // The bound that jobs without their own get; infinity = none.
  [[nodiscard]] double slowdown_bound() const;
  [[nodiscard]] uint64_t bytes_held() const;

  // Judgements of a device for a job, in all calls so far: remembered, and worked out.
  struct Judgements {
    uint64_t known = 0;
    uint64_t anew = 0;
  };
  [[nodiscard]] Judgements judgements() const;

  [[nodiscard]] Engine& engine() { return *engine_; }  // engine.h: for the modes

 private:
  explicit Placer(std::unique_ptr<Engine> engine);
  std::unique_ptr<Engine> engine_;
};

}  // namespace horus
