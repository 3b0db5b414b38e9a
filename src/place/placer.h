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

#include <optional>

#include "place/decision.h"

namespace horus {

// How policies that share GPUs and maximise work treat jobs with a sensitivity (Policy::grants_host).
enum class HostGrants : uint8_t {
  kResize = 0,     // give each what it does most work with, at least what it states; resize residents where that gains
  kPlacement = 1,  // the same for newcomers, of what is free; nobody is resized
  kStated = 2,     // what each states
};
inline constexpr std::array<std::string_view, 3> kHostGrantWords = {"resize", "placement", "stated"};

// The caps that PlacerOptions::sm_caps chooses from; a handful, so that devices stay alike. Chosen.
inline constexpr std::array<int32_t, 5> kSmCapsPct = {70, 50, 30, 20, 10};

// Of those who wait, how many are tried beside a job whose device can have either mode. Chosen.
inline constexpr size_t kMostWaiting = 16;

inline constexpr double kMaxMemOvercommit = 1000;  // more than a device has tenants that matter; chosen

// What each option is for, its default and its limits: placer_options.h.
struct PlacerOptions {
#define HORUS_OPTION(type, name, initial, ...) type name = initial;
#include "place/placer_options.h"
  bool exhaustive = false;  // score every device anew, without memo: the reference for tests and benchmarks
};

// Who tells an option, beside the C ABI and the bindings, which tell all of them: commands that ask who fits beside
// whom, commands that place jobs, grid.yaml.
inline constexpr uint8_t kToldFitting = 1, kToldPlacing = 2, kToldGrid = 4;
inline constexpr uint8_t kToldAll = kToldFitting | kToldPlacing | kToldGrid;

// What is known of an option beside its name, type and default.
struct OptionFacts {
  double least = -std::numeric_limits<double>::infinity();  // of a number
  double most = std::numeric_limits<double>::infinity();
  std::string_view zero_is;                 // what 0 means; empty: it is no exception from the limits
  std::string_view least_is = "", most_is;  // said behind the limits in messages
  std::span<const std::string_view> words;  // of an enum, by value
  uint8_t told = 0;                         // kTold...
  const char* value = "";                   // what --help calls it
  const char* text = "";                    // of --help
};

template <typename T>
struct PlacerOption {
  std::string_view name;  // the field of the C ABI and the key of grid.yaml; with hyphens, the flag of the command
  T PlacerOptions::* field;
  OptionFacts facts;
};

inline constexpr std::tuple kPlacerOptions = {
#define HORUS_OPTION(type, name, initial, ...) PlacerOption<type>{#name, &PlacerOptions::name, {__VA_ARGS__}},
#include "place/placer_options.h"
};

// Calls `visit` with each PlacerOption as long as it returns OK.
absl::Status VisitPlacerOptions(const auto& visit) {
  absl::Status status;
  const auto go_on = [&](const auto&... options) { static_cast<void>(((status = visit(options)).ok() && ...)); };
  std::apply(go_on, kPlacerOptions);
  return status;
}

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
