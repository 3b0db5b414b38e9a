// SPDX-License-Identifier: Apache-2.0
// horus/sim.h: simulations. Truths: truth.cc; what is told of results: sim_result.cc.
#include "horus/sim.h"

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "capi/args.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/planning.h"
#include "capi/sim_convert.h"
#include "capi/sim_handles.h"
#include "capi/sim_options.h"
#include "capi/structs.h"

namespace horus::capi {
namespace {

consteval bool Same(int32_t code, SimEventKind kind) { return code == static_cast<int32_t>(kind); }
static_assert(Same(HORUS_SIM_ARRIVE, SimEventKind::kArrive) && Same(HORUS_SIM_START, SimEventKind::kStart) &&
              Same(HORUS_SIM_FAIL, SimEventKind::kFail) && Same(HORUS_SIM_FINISH, SimEventKind::kFinish) &&
              Same(HORUS_SIM_REJECT, SimEventKind::kReject) && Same(HORUS_SIM_PREEMPT, SimEventKind::kPreempt) &&
              Same(HORUS_SIM_OUT_OF_MEMORY, SimEventKind::kOutOfMemory) &&
              Same(HORUS_SIM_MIGRATE, SimEventKind::kMigrate) && Same(HORUS_SIM_INTERRUPT, SimEventKind::kInterrupt) &&
              Same(HORUS_SIM_PROFILED, SimEventKind::kProfiled) && Same(HORUS_SIM_NODE_DOWN, SimEventKind::kNodeDown) &&
              Same(HORUS_SIM_NODE_UP, SimEventKind::kNodeUp));

constexpr uint64_t kProgressSteps = 1000;  // progress is told at most so often; chosen

// Hands events over, and counts how many jobs came and went.
class Teller {
 public:
  Teller(const Trace& trace, horus_sim_observer observer, void* user, CallerProgress& progress)
      : trace_(trace), observer_(observer), user_(user), progress_(progress) {}

  [[nodiscard]] bool Tell(const SimEvent& event) {
    if (observer_ != nullptr && !TellObserver(event)) return false;
    const bool counts = event.kind == SimEventKind::kArrive || event.kind == SimEventKind::kFinish ||
                        event.kind == SimEventKind::kReject;
    if (!progress_ || !counts) return true;
    const uint64_t all = 2 * trace_.jobs.size();
    const uint64_t before = counted_++ * kProgressSteps / all;
    // Bounded: two events a job, of at most kMaxTraceJobs.
    if (counted_ * kProgressSteps / all == before) return true;
    return progress_.Tell(static_cast<double>(counted_) / static_cast<double>(all));
  }

 private:
  [[nodiscard]] bool TellObserver(const SimEvent& event) {
    nodes_.clear();
    devices_.clear();
    tasks_.clear();
    for (const Slot& slot : event.slots) {
      nodes_.push_back(slot.node);
      devices_.push_back(static_cast<uint32_t>(slot.device));  // kNoDevice becomes UINT32_MAX
      tasks_.push_back(static_cast<uint32_t>(slot.task));
    }
    const horus_sim_event c = {.struct_size = sizeof(horus_sim_event),
                               .kind = static_cast<int32_t>(event.kind),
                               .time_us = event.time_us,
                               .job_id = event.job == kNotStated ? 0 : trace_.jobs[event.job].id,
                               .slot_count = nodes_.size(),
                               .node_ids = nodes_.data(),
                               .devices = devices_.data(),
                               .tasks = tasks_.data()};
    return observer_(user_, &c) == 0;
  }

  const Trace& trace_;
  horus_sim_observer observer_;
  void* user_;
  CallerProgress& progress_;
  uint64_t counted_ = 0;
  std::vector<uint64_t> nodes_;
  std::vector<uint32_t> devices_, tasks_;
};
static_assert(kNoDevice == -1);

std::vector<GpuTypeId> TypesOf(const Cluster& cluster) {
  std::set<GpuTypeId> types;
  for (const NodeId node : cluster.NodeIds()) {
    const NodeInfo info = *cluster.Node(node);
    for (const DeviceSpec& device : info.spec.devices) types.insert(device.type);
  }
  return {types.begin(), types.end()};
}

// The caller's placer, or one that asks what is being learned.
class Planner {
 public:
  [[nodiscard]] absl::Status Choose(Placer& given, std::shared_ptr<const Catalogue> catalogue, Learns learns) {
    placer_ = &given;
    if (learns == Learns::kNothing) return absl::OkStatus();
    learner_.emplace(given.shared_model(), std::move(catalogue), learns);
    HORUS_ASSIGN_OR_RETURN(own_, Placer::Create(learner_->model(), given.shared_policy(), given.options()));
    placer_ = own_.get();
    return absl::OkStatus();
  }
  [[nodiscard]] Placer& placer() { return *placer_; }
  [[nodiscard]] PairLearner* learner() { return learner_ ? &*learner_ : nullptr; }

 private:
  Placer* placer_ = nullptr;
  std::optional<PairLearner> learner_;
  std::unique_ptr<Placer> own_;
};

struct Request {
  const horus_trace& trace;
  const horus_profile_demands* beliefs;
  const horus_truth& truth;
  const horus_sim_options* options;
  horus_sim_observer observer;
  horus_progress progress;
  void* user;  // of both
};

absl::StatusOr<std::unique_ptr<horus_sim_result>> Play(const Request& request, const horus_cluster& cluster,
                                                       horus_placer& placer) {
  const std::shared_ptr<const Catalogue>& catalogue = cluster.value.shared_catalogue();
  if (!SameTypes(request.truth.catalogue, catalogue)) {
    return InvalidArgument("truth: expected one for the GPU types of this cluster, found one for others");
  }
  HORUS_ASSIGN_OR_RETURN(SimSetup setup, SimSetupFromC(catalogue, request.options));
  HORUS_ASSIGN_OR_RETURN(const DemandsByProfile believed, ProfileDemandsFromC(*catalogue, "beliefs", request.beliefs));
  auto result = std::make_unique<horus_sim_result>();
  HORUS_ASSIGN_OR_RETURN(result->trace, TimedBy(request.truth, request.trace.value));
  const Trace& trace = *result->trace;
  HORUS_ASSIGN_OR_RETURN(const std::unique_ptr<Truth> truth, TruthFor(request.truth, trace));
  CallerProgress progress(request.progress, request.user);
  const PlacerWork work = [&](Placer& with, const Cluster& on, const ReadFn& read) -> absl::Status {
    Cluster box = on;
    read();
    const std::vector<GpuTypeId> types = TypesOf(box);
    const std::vector<ProfileDemands> beliefs = DemandsFor(trace, believed, types);
    std::vector<ProfileDemands> measured;
    if (setup.measured) {
      measured = DemandsFor(trace, *setup.measured, types);
      setup.options.measured = &measured;
    }
    const std::vector<SharedSensitivity> sensitivities = SensitivitiesOf(setup.sensitivities, trace);
    if (!setup.sensitivities.empty()) setup.options.sensitivities = &sensitivities;
    HORUS_ASSIGN_OR_RETURN(const std::unique_ptr<Queue> queue, QueueFor(setup, box));
    Planner planner;
    HORUS_RETURN_IF_ERROR(planner.Choose(with, catalogue, setup.learns));
    setup.options.learner = planner.learner();
    if (progress) planner.placer().Watch([&progress] { return progress.Ask(); });
    Teller teller(trace, request.observer, request.user, progress);
    SimObserver observer;
    if (request.observer != nullptr || progress) {
      observer = [&teller](const SimEvent& event) { return teller.Tell(event); };
    }
    HORUS_ASSIGN_OR_RETURN(result->value,
                           Simulate(trace, beliefs, *truth, box, *queue, planner.placer(), setup.options, observer));
    if (planner.learner() != nullptr) result->learned = planner.learner()->known();
    result->catalogue = catalogue;
    return absl::OkStatus();
  };
  HORUS_RETURN_IF_ERROR(UsePlacer(placer, cluster, progress, work));
  return result;
}

}  // namespace
}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_sim_run(const horus_trace* trace, const horus_profile_demands* beliefs, const horus_truth* truth,
                           const horus_cluster* cluster, horus_placer* placer, const horus_sim_options* options,
                           horus_sim_observer observer, horus_progress progress, void* user, horus_sim_result** out,
                           horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(
        Require({{trace, "trace"}, {truth, "truth"}, {cluster, "cluster"}, {placer, "placer"}, {out, "out"}}));
    HORUS_ASSIGN_OR_RETURN(auto result,
                           Play({*trace, beliefs, *truth, options, observer, progress, user}, *cluster, *placer));
    *out = result.release();
    return absl::OkStatus();
  });
}

void horus_sim_result_free(horus_sim_result* result) { delete result; }
