// SPDX-License-Identifier: Apache-2.0
// SimRun: the state of one simulation while it runs. Of this folder only: simulator.h is the door.
//
// Enters:  the arguments of Simulate, checked.
// Leaves:  its result.
// Units:   microseconds of the trace's clock; jobs by their position in the trace.
// Thread class: one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "lab/run/alarms.h"
#include "lab/run/beliefs.h"
#include "lab/run/cluster_map.h"
#include "lab/run/execution.h"
#include "lab/run/outages.h"
#include "lab/run/use_meter.h"
#include "lab/run/waiting.h"
#include "lab/simulator.h"
#include "place/placer.h"

namespace horus {

class SimRun {
 public:
  SimRun(const Trace& trace, std::span<const ProfileDemands> beliefs, const Truth& truth, Cluster& cluster,
         Queue& queue, Placer& placer, const SimOptions& options, const SimObserver& observer);
  [[nodiscard]] absl::StatusOr<SimResult> Go();

 private:
  // So often a job may fail beside others who were learned of; then it runs alone. A chosen limit: a placer that does
  // not heed what was learned would try for ever.
  static constexpr int32_t kMostFailures = 16;
  enum class Phase : uint8_t { kAbsent, kWaiting, kLaunching, kRunning, kGone };
  struct Life {
    Work left = 0;                             // when it ran last
    absl::InlinedVector<uint32_t, 2> devices;  // that it holds
    Phase phase = Phase::kAbsent;
    HostShare host;  // granted or stated, of each GPU; 0 = its part of the fair share
    double host_speed = 1;
    bool alone = false;  // it failed beside others
    bool began = false;  // it did some work before
  };

  // run.cc: the loop over events.
  [[nodiscard]] absl::Status CheckJob(size_t job) const;
  [[nodiscard]] Work MostOfWork() const;
  [[nodiscard]] int64_t NextEvent() const;
  absl::Status CountRound(int64_t at_us);  // RESOURCE_EXHAUSTED beyond most_rounds
  void PassTime(int64_t to_us);
  [[nodiscard]] absl::Status FinishDue();
  [[nodiscard]] absl::Status TakeArrivals();
  [[nodiscard]] absl::Status DecideWhenDue();
  [[nodiscard]] absl::Status Tell(SimEventKind kind, uint32_t job, std::span<const Slot> slots = {}) const;

  // What the placer and the queue are told.
  void ResolveTypes();
  [[nodiscard]] JobSpec SpecOf(uint32_t job) const;
  [[nodiscard]] QueuedJob QueuedOf(uint32_t job) const;
  [[nodiscard]] absl::Status Enqueue(uint32_t job);

  // Jobs come to places and leave them.
  [[nodiscard]] absl::Status Decide();
  [[nodiscard]] absl::StatusOr<Plan> AskPlacer(const JobSpec& spec);
  [[nodiscard]] absl::Status Admit(const Action& action);
  [[nodiscard]] absl::Status Settle(uint32_t job, Plan& plan, bool& left_queue);
  [[nodiscard]] absl::Status Try(uint32_t job, std::vector<uint32_t>& behind, bool& left_queue);
  void Hold(uint32_t job, std::span<const Slot> slots);
  void Vacate(uint32_t job);
  [[nodiscard]] absl::Status Charge(uint32_t job, int32_t sign);
  void Occupy(uint32_t job, int32_t sign);
  [[nodiscard]] Slots SlotsOf(uint32_t job) const;
  void CompareWithTruth(std::span<const TenantEffect> effects);
  [[nodiscard]] absl::Status LetGo(uint32_t job);
  [[nodiscard]] absl::Status Launch(uint32_t job);
  [[nodiscard]] absl::Status LaunchDue();
  [[nodiscard]] absl::Status Start(uint32_t job);
  enum class Memory : uint8_t { kFits, kShort, kShortAlone };
  [[nodiscard]] Memory MemoryFor(uint32_t job, GpuTypeId& type) const;
  [[nodiscard]] absl::Status Reject(uint32_t job);
  [[nodiscard]] absl::Status EndStart(uint32_t job, SimEventKind why);
  [[nodiscard]] absl::Status StopWork(uint32_t job, RunEnd& end);

  // Cores and host memory.
  [[nodiscard]] absl::Status SetHost(const JobSpec& spec);
  [[nodiscard]] absl::Status UpdateHostSpeed(uint32_t job);
  [[nodiscard]] absl::Status ShareHosts(std::span<const uint32_t> devices);
  [[nodiscard]] absl::Status Resize(const Plan& plan);
  [[nodiscard]] absl::Status Regrant();

  // Jobs that the placer cannot tell apart.
  using Kind = std::tuple<uint32_t, uint32_t, int32_t, int32_t, uint16_t, JobKind, int32_t, int64_t, int64_t, bool,
                          float, bool, size_t>;
  [[nodiscard]] Kind KindOf(uint32_t job) const;
  [[nodiscard]] absl::Status DecideBatch();

  // SimOptions::one_by_one.
  enum class Way : uint8_t { kOneByOne, kChooses, kMayWait };
  [[nodiscard]] static SimWeights WeightsOf(const SimOptions& options, const Queue& queue);
  [[nodiscard]] static Way WayOf(const SimOptions& options, const Queue& queue, const Placer& placer,
                                 SimWeights weights);

  // Jobs that wait although they could share.
  [[nodiscard]] double LeftUs(uint32_t job) const;
  [[nodiscard]] std::vector<double> IdleTimes(const JobSpec& spec) const;  // by device
  [[nodiscard]] int64_t GpusOfThose(std::span<const uint64_t> jobs) const;
  [[nodiscard]] bool HadBetterWait(const JobSpec& spec, const Decision& decision, std::span<const uint64_t> window,
                                   size_t rank) const;

  // When the first gang that waits can start.
  struct Promise {
    uint32_t gang = 0;
    std::vector<double> idle;  // IdleTimes
    double start_us = 0;       // from now
  };
  [[nodiscard]] double StartOf(const TraceJob& gang, std::span<const double> idle) const;
  [[nodiscard]] Promise PromiseTo(uint32_t gang) const;
  [[nodiscard]] bool Delays(const JobSpec& spec, const Decision& decision, const Promise& promise) const;

  // Running jobs go elsewhere.
  [[nodiscard]] absl::Status PutBack(uint32_t job, SimEventKind why);
  [[nodiscard]] absl::Status RebalanceDue();
  [[nodiscard]] absl::Status MoveTo(uint32_t job, const Action& action);

  // Policies that decide rounds.
  [[nodiscard]] absl::StatusOr<std::vector<uint32_t>> Contenders();
  [[nodiscard]] absl::Status DecideRound();
  [[nodiscard]] absl::Status CarryOut(const Plan& plan);

  // Nodes fail and come back.
  [[nodiscard]] absl::Status NodesDue();
  [[nodiscard]] absl::Status Interrupt(uint32_t job);

  // What follows of what is seen of jobs while they run.
  [[nodiscard]] absl::Status ObserveDue();
  [[nodiscard]] absl::StatusOr<bool> LearnFailure(uint32_t job);
  [[nodiscard]] absl::Status ProfilingDue();

  // Those whose rank fell behind make room.
  [[nodiscard]] absl::Status DecideByRank();
  [[nodiscard]] absl::StatusOr<std::vector<uint32_t>> Ranking();
  [[nodiscard]] absl::Status Preempt(uint32_t job);
  [[nodiscard]] absl::StatusOr<bool> FitsWithout(const JobSpec& spec, std::span<const uint32_t> victims);
  [[nodiscard]] absl::StatusOr<std::vector<uint32_t>> VictimsFor(const JobSpec& spec, std::span<const uint32_t> behind);

  const Trace& trace_;
  std::span<const ProfileDemands> beliefs_;
  const Truth& truth_;
  Cluster& cluster_;
  Queue& queue_;
  Placer* placer_;  // the caller's, or `revised_`
  std::unique_ptr<Placer> revised_;
  const SimOptions& options_;
  const SimObserver& observer_;
  SimWeights weights_;
  Way way_;
  bool promises_;  // to gangs
  size_t look_ahead_;
  bool charges_owners_;  // the queue counts what owners hold
  const ClusterMap map_;
  Execution execution_;
  UseMeter meter_;
  Profiling profiling_;
  DeviceObserver device_observer_;
  NodeEvents node_events_;
  Alarms launches_;                                       // of jobs that hold places and will begin to work
  std::vector<std::vector<GpuTypeId>> types_;             // by type list; those that the cluster's catalogue knows
  std::vector<Life> lives_;                               // by job
  std::map<uint32_t, QueueResources> owners_;             // what they hold
  std::map<uint32_t, std::vector<GpuTypeId>> too_small_;  // types on which a job's memory does not fit
  std::map<uint32_t, std::vector<uint32_t>> host_nodes_;  // of jobs without GPUs, by task
  std::map<uint32_t, TenantEffects> predicted_;           // of jobs that are to start
  RefusedJobs<Kind> refused_;                             // since a job left
  uint64_t changes_ = 0;                                  // jobs that came to places or left, nodes too
  uint64_t round_changes_ = 0;                            // of the last round
  std::pair<uint64_t, uint64_t> settled_{UINT64_MAX, 0};  // changes and epoch at which nothing was to be moved
  SimResult result_;
  Work most_work_ = 0;  // 0 = does not count
  int64_t now_us_ = 0;
  int64_t rounds_ = 0;  // so far
  size_t arrived_ = 0;
  int64_t decide_at_us_ = kNoEvent;
};

}  // namespace horus
