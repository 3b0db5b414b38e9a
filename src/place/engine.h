// SPDX-License-Identifier: Apache-2.0
// Engine: what a placer plans with — ledger, scorer, search — for the modes of this room.
//
// Enters:  a placer; the cluster it is to follow, or a part of it; jobs.
// Leaves:  the placer's own ledger to book on and take back, places and decisions found on it.
// Cost:    none of its own; whatever is booked is taken back by the placer's next Follow.
// Thread class: one thread at a time, with the placer.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/id_map.h"
#include "place/decision.h"
#include "place/placer.h"
#include "place/search/scorer.h"
#include "place/search/search.h"
#include "place/state/ledger.h"

namespace horus {

// ---- Useful work: what a placement is worth whatever the policy; the modes compare and report it.
// Cost: a device's slowdowns once per distinct state and epoch; then O(tenants), and for each gang among them O(its
// GPUs).

// Of a job that nothing slows, on its fastest type.
[[nodiscard]] inline double MostWork(const JobSpec& job) { return WorkWeight(job) * WorkAlone(job) * GpuCount(job); }

// Speed alone there / on the fastest type that the job lists; 1 where step times are unknown.
[[nodiscard]] double SpeedAlone(const JobSpec& job, const DeviceRow& device);

class WorkMeter {
 public:
  static constexpr size_t kMostKept = size_t{4} << 20;  // slowdowns: 16 MiB; chosen

  // Residents are jobs of `cluster`, or were named by Know. All must outlive it. `most_kept`: slowdowns in its memo.
  WorkMeter(const Cluster& cluster, Scorer& scorer, size_t most_kept = kMostKept)
      : cluster_(cluster), scorer_(scorer), most_kept_(most_kept) {}

  // A job that the ledger may hold though the cluster does not.
  void Know(const JobSpec& job);
  // Where the ledger may hold a job, one of the cluster or told by Know, beside its place in the cluster: to be called
  // before a gang is booked, whose GPUs must be found from one of them. Replaces the place told before.
  void KnowAt(const JobSpec& job, std::span<const PlacedSlot> slots);
  // Of a resident without what is its own: id, name, submit_us and deadline_us. Null = unknown.
  [[nodiscard]] const JobSpec* SpecOf(JobId job) const;
  // Of those places the devices, ascending, that hold the job now.
  [[nodiscard]] std::vector<uint32_t> DevicesOf(const Ledger& ledger, JobId job) const;

  // Of one job; 0 when it is nowhere.
  [[nodiscard]] absl::Status OfJob(const Ledger& ledger, JobId job, double& work);
  // What all jobs gain together by `job` of one GPU, which is not on the device yet, as the scorer evaluated it: the
  // model is asked only for other devices of gangs that have one here.
  [[nodiscard]] absl::Status GainOf(const Ledger& ledger, uint32_t device, const JobSpec& job,
                                    const DeviceCandidate& candidate, double& gain);
  // Of the jobs on the devices of those slots, each once and wherever else it is.
  [[nodiscard]] absl::Status OfSlots(const Ledger& ledger, std::span<const PlacedSlot> slots, double& work);
  [[nodiscard]] absl::Status OfAll(const Ledger& ledger, double& work);

 private:
  // The slowdown of each tenant of the state, in the order of DeviceRow::tenants; estimates. Valid until the next call.
  [[nodiscard]] absl::Status Slowdowns(const Ledger& ledger, uint32_t device, std::span<const float>& slowdowns);
  [[nodiscard]] double Share(const Ledger& ledger, uint32_t device, const LedgerResident& resident,
                             std::span<const float> slowdowns) const;

  // The speed of a job at its slowest device but `except`, infinity where there is no other, and how many it has in
  // all.
  struct GangWork {
    double slowest = std::numeric_limits<double>::infinity();
    size_t devices = 0;
  };
  [[nodiscard]] absl::Status WorkOf(const Ledger& ledger, JobId job, std::optional<uint32_t> except, GangWork& work);

  const Cluster& cluster_;
  Scorer& scorer_;
  size_t most_kept_;
  IdMap<const JobSpec*> known_;
  IdMap<PlacedSlots> known_at_;  // of gangs
  IdMap<uint32_t> memo_;         // by state digest: position in slowdowns_
  std::vector<float> slowdowns_;
  std::vector<const Demand*> demands_;  // scratch
  std::vector<Slowdown> predicted_;
  std::vector<float> estimates_;
  std::vector<uint32_t> devices_;
  std::vector<JobId> gangs_;
};

class WorkPricer;  // modes/prices.h

// A job's way to run, the decision on it, and where it goes.
struct ChosenWay {
  Decision decision;
  PlacedSlots slots;
  std::shared_ptr<JobSpec> job;  // null unless placed
  double worth = 0;
};

class Engine {
 public:
  explicit Engine(Placer& placer);  // which must outlive it

  // The ledger as the cluster is. UNIMPLEMENTED: a RoundPolicy. NOT_FOUND: a node of the subset, which is the only one
  // considered from then on.
  [[nodiscard]] absl::Status Start(const Cluster& cluster, std::optional<std::span<const NodeId>> subset = {});
  // The same whatever the policy.
  [[nodiscard]] absl::Status Follow(const Cluster& cluster, std::optional<std::span<const NodeId>> subset = {});

  // Checks the jobs as MakePlan does, those of `gone` not counting as resident, and gives their planning order.
  [[nodiscard]] absl::StatusOr<JobOrder> Order(const Cluster& cluster, std::span<const JobSpec> jobs,
                                               const IdMap<bool>* gone = nullptr) const;
  // The same of jobs with ways to run or probes too, which most modes refuse.
  [[nodiscard]] absl::StatusOr<JobOrder> OrderAny(const Cluster& cluster, std::span<const JobSpec> jobs,
                                                  const IdMap<bool>* gone = nullptr) const;
  // Decides them in that order on the ledger as it is, and books them; fills `plan` as MakePlan does.
  [[nodiscard]] absl::Status PlanJobs(std::span<const JobSpec> jobs, std::span<const uint32_t> order,
                                      const ProgressFn& progress, Plan& plan);

  // One job on the ledger as it is, booking nothing: the way of most worth among those that can be placed.
  [[nodiscard]] absl::Status Choose(const JobSpec& job, ChosenWay& choice);
  // Whether Decide never settles the job (ways to run, probes); whether Choose may place one that Decide does not.
  [[nodiscard]] bool IsOpen(const JobSpec& job) const;
  [[nodiscard]] bool HasOtherWays(const JobSpec& job) const;
  // Of the job as it is; found() has the place.
  [[nodiscard]] absl::StatusOr<Decision> Decide(const JobView& view);
  [[nodiscard]] const SearchResult& found() const;
  // The same without a word about refusals; `nodes`: rows, ascending id, null = all that are considered.
  [[nodiscard]] absl::Status Find(const JobView& view, const std::vector<uint32_t>* nodes, SearchResult& found);
  // Some of those who are decided after the next one; forgotten by Start and Follow. A mode is chosen for them where a
  // device can have either.
  void SetWaiting(std::span<const JobSpec* const> jobs);
  // For long work without them: CANCELLED where the placer's GoOnFn says so.
  [[nodiscard]] absl::Status GoOn() const;
  // The policy's price of the placement's slots; of jobs that are not priced by node.
  [[nodiscard]] absl::Status Price(const JobView& view, Placement& placement);
  // The decision that puts the job where `found` says; the ledger does not hold it.
  [[nodiscard]] absl::StatusOr<Decision> Explain(const JobView& view, const SearchResult& found);

  // Appends those nodes to what the plan saw, once each.
  void AddSeen(std::span<const uint32_t> node_rows, Plan& plan) const;

  // Whether the job would be a probe there (PlacerOptions::probe_outside).
  [[nodiscard]] bool Probes(const JobSpec& job, const PlacedSlot& slot) const;

  [[nodiscard]] Ledger& ledger();
  [[nodiscard]] const Ledger& emptied();  // the cluster of the ledger empty and up
  [[nodiscard]] Scorer& scorer();
  [[nodiscard]] const PlacerOptions& options() const;
  [[nodiscard]] WorkPricer& pricer();
  [[nodiscard]] const Policy& policy() const;
  [[nodiscard]] std::span<const uint32_t> nodes() const;  // rows that are considered

 private:
  Placer::Impl& my_;
};

// ---- A policy that decides all jobs of a plan in one round. The modes refuse it.

// Where a job of a round runs until now.
struct Lease {
  std::shared_ptr<const JobSpec> spec;  // null = nowhere
  PlacedSlots slots;
};

struct RoundRequest {
  std::span<const JobSpec> jobs;
  std::span<const uint32_t> order;    // in which they count
  std::span<const Lease> leases;      // of each by position in the order, not in the ledger; empty = nobody runs
  const IdMap<bool>* gone = nullptr;  // ids of the leases
  const ProgressFn& progress;
  const ReadFn& read;
};

class RoundPolicy : public Policy {
 public:
  // A decision for each job, in that order. The engine follows the cluster.
  [[nodiscard]] virtual absl::StatusOr<Plan> PlanRound(Engine& engine, const Cluster& cluster,
                                                       const RoundRequest& request) const = 0;
};

// ---- What the modes share: slots in rows and slots in ids, and a resident that is decided anew.
// Cost: O(slots); a search a resident.

[[nodiscard]] Slots SlotsOf(const Ledger& ledger, std::span<const PlacedSlot> placed);

// Moves residents to where the policy wants them as things stand in the ledger, which the plan follows.
class ResidentMover {
 public:
  // All must outlive it. The engine has started on the cluster.
  ResidentMover(Engine& engine, WorkMeter& meter, const Cluster& cluster)
      : engine_(engine), meter_(meter), cluster_(cluster) {}

  // The decision about the job as though it were not there. Where it has another place and `accepts` takes what all
  // gain by that, the job is moved, in the ledger and in the plan, whose work_after follows; else all is as it was.
  struct Outcome {
    Decision decision;
    bool moved = false;
  };
  [[nodiscard]] absl::StatusOr<Outcome> Move(JobId id, double cost, const std::function<bool(double gain)>& accepts,
                                             Plan& plan);
  // Notes in the plan what it saw of the nodes that jobs left and came to.
  void AddSeen(Plan& plan) const { engine_.AddSeen(touched_, plan); }

 private:
  Engine& engine_;
  WorkMeter& meter_;
  const Cluster& cluster_;
  std::vector<uint32_t> touched_;  // rows of nodes
};

}  // namespace horus
