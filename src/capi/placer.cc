// SPDX-License-Identifier: Apache-2.0
// horus/place.h, the placer: options, plans, verdicts.
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "capi/args.h"
#include "capi/callback_policy.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/job_convert.h"
#include "capi/planning.h"
#include "capi/policy_options.h"
#include "capi/structs.h"
#include "horus/place.h"
#include "interference/registry.h"

namespace horus::capi {
namespace {

constexpr char kDefaultPolicy[] = "horus";
constexpr char kCallbackPolicy[] = "callback";

// Marks the placer for one call and locks the cluster until it was read; BUSY when a callback of such a call is
// running.
class PlacerUse {
 public:
  [[nodiscard]] static absl::StatusOr<PlacerUse> Enter(horus_placer& placer, const horus_cluster& cluster) {
    if (!SameTypes(placer.catalogue, cluster.value.shared_catalogue())) {
      return InvalidArgument("cluster: expected the GPU types that the placer's callbacks were made for");
    }
    if (placer.busy.exchange(true)) {
      return CError(HORUS_BUSY, "placer: in use by the call whose callback runs, or by another thread");
    }
    PlacerUse use(placer);
    HORUS_ASSIGN_OR_RETURN(ClusterGate::PlanLock lock, cluster.gate.Plan());
    use.lock_.emplace(std::move(lock));
    return use;
  }
  PlacerUse(PlacerUse&& other) noexcept
      : placer_(std::exchange(other.placer_, nullptr)), lock_(std::move(other.lock_)) {}
  PlacerUse& operator=(PlacerUse&&) = delete;
  void DoneReading() { lock_->DoneReading(); }
  ~PlacerUse() {
    lock_.reset();
    if (placer_ != nullptr) placer_->busy.store(false);
  }

 private:
  explicit PlacerUse(horus_placer& placer) : placer_(&placer) {}
  horus_placer* placer_;
  std::optional<ClusterGate::PlanLock> lock_;
};

absl::StatusOr<PlacerOptions> OptionsFromC(const horus_placer_options& given) {
  PlacerOptions options;
  HORUS_RETURN_IF_ERROR(CheckFlag("probe_outside", given.probe_outside));
  options.probe_outside = given.probe_outside == 1;
  options.slowdown_bound = given.slowdown_bound;
  if (given.max_tenants != 0) options.max_tenants = given.max_tenants;
  if (given.mem_headroom_mib == -1)
    options.mem_headroom_mib = 0;
  else if (given.mem_headroom_mib != 0)
    options.mem_headroom_mib = given.mem_headroom_mib;
  if (given.mem_overcommit != 0) options.mem_overcommit = given.mem_overcommit;
  if (given.gpu_price == -1) {
    options.gpu_price = 0;
  } else if (given.gpu_price != 0) {
    options.gpu_price = given.gpu_price;
  }
  if (given.sharing_quota == -1) {
    options.sharing_quota = 0;
  } else if (given.sharing_quota != 0) {
    options.sharing_quota = given.sharing_quota;
  }
  options.max_candidates = given.max_candidates;
  HORUS_RETURN_IF_ERROR(CheckFlag("terse", given.terse));
  options.terse = given.terse == 1;
  options.seed = given.seed;
  if (given.max_jobs != 0) options.max_jobs = given.max_jobs;
  if (given.rack_oversubscription != 0) options.rack_oversubscription = given.rack_oversubscription;
  if (given.cache_bytes != 0) options.cache_bytes = given.cache_bytes;
  return options;
}

// Sets the placer's catalogue too where the workload names types.
absl::StatusOr<std::unique_ptr<Policy>> PolicyByName(const horus_placer_options& options, horus_placer& placer) {
  if (options.policy_user != nullptr || options.policy_callback_name != nullptr ||
      options.policy_catalogue != nullptr) {
    return InvalidArgument("policy_callback: expected a function for the other policy_* fields, found NULL");
  }
  HORUS_ASSIGN_OR_RETURN(const std::string name, ReadOptionalText(options.policy, "policy"));
  HORUS_ASSIGN_OR_RETURN(PolicySettings settings, PolicySettingsFromC(options));
  if (!SameTypes(placer.catalogue, settings.catalogue)) {
    return InvalidArgument("workload: expected the GPU types that the callback model was made for");
  }
  if (placer.catalogue == nullptr) placer.catalogue = std::move(settings.catalogue);
  return MakePolicy(name.empty() ? kDefaultPolicy : name, settings.options);
}

// Sets the placer's catalogue too: type ids mean something to the callback.
absl::StatusOr<std::unique_ptr<Policy>> PolicyByCallback(const horus_placer_options& options, horus_placer& placer) {
  if (options.policy != nullptr) return InvalidArgument("policy: expected NULL beside policy_callback, found a name");
  HORUS_ASSIGN_OR_RETURN(std::string name, ReadOptionalText(options.policy_callback_name, "policy_callback_name"));
  if (name.size() > kMaxNameBytes) {
    return InvalidArgument("policy_callback_name: expected at most %d bytes, found %d", kMaxNameBytes, name.size());
  }
  if (options.policy_catalogue != nullptr && !SameTypes(placer.catalogue, options.policy_catalogue->value)) {
    return InvalidArgument("policy_catalogue: expected the GPU types that the callback model was made for");
  }
  if (placer.catalogue == nullptr) placer.catalogue = CatalogueOf(options.policy_catalogue);
  if (name.empty()) name = kCallbackPolicy;
  return std::make_unique<CallbackPolicy>(placer.catalogue, options.policy_callback, options.policy_user,
                                          std::move(name));
}

absl::StatusOr<std::unique_ptr<horus_placer>> MakePlacer(const horus_placer_options* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_placer_options options, ReadOptionalStruct(given));
  auto placer = std::make_unique<horus_placer>();
  std::shared_ptr<const InterferenceModel> model;
  if (options.interference == nullptr) {
    HORUS_ASSIGN_OR_RETURN(model, MakeInterferenceModel(kDefaultInterferenceModel));
  } else {
    model = options.interference->value;
    placer->catalogue = options.interference->catalogue;
  }
  HORUS_ASSIGN_OR_RETURN(auto policy, options.policy_callback != nullptr ? PolicyByCallback(options, *placer)
                                                                         : PolicyByName(options, *placer));
  HORUS_ASSIGN_OR_RETURN(const PlacerOptions limits, OptionsFromC(options));
  HORUS_ASSIGN_OR_RETURN(placer->value, Placer::Create(std::move(model), std::move(policy), limits));
  return placer;
}

// What the placer did since it was last asked.
void TellJudgements(horus_placer& placer) {
  if (placer.watch.get() == nullptr) return;
  const Placer::Judgements now = placer.value->judgements();
  placer.watch.get()->metrics().Looked(Cache::kJudgements, now.known - placer.judged.known,
                                       now.anew - placer.judged.anew);
  placer.judged = now;
  placer.bytes_held = placer.value->bytes_held();
}

}  // namespace

absl::StatusOr<std::optional<std::span<const NodeId>>> SubsetFromC(size_t count, const uint64_t* node_ids) {
  HORUS_RETURN_IF_ERROR(RequireColumn(node_ids, "node_ids", count));
  if (node_ids == nullptr) return std::optional<std::span<const NodeId>>();
  return std::optional(std::span<const NodeId>(node_ids, count));
}

bool CallerProgress::Tell(double done) {
  done_ = done;
  asked_ = std::chrono::steady_clock::now();
  return function_(user_, done) == 0;
}

bool CallerProgress::Ask() {
  return std::chrono::steady_clock::now() - asked_ < std::chrono::milliseconds(1) || Tell(done_);
}

ProgressFn CallerProgress::Shares() {
  if (function_ == nullptr) return nullptr;
  return [this](uint64_t done, uint64_t total) {
    return Tell(total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total));
  };
}

absl::StatusOr<std::unique_ptr<horus_plan>> PlanWith(horus_placer& placer, const horus_cluster& cluster,
                                                     CallerProgress& progress, const Planning& planning) {
  auto plan = std::make_unique<horus_plan>();
  plan->catalogue = cluster.value.shared_catalogue();
  const PlacerWork work = [&](Placer& with, const Cluster& on, const ReadFn& read) -> absl::Status {
    HORUS_ASSIGN_OR_RETURN(plan->value, planning(with, on, read));
    return absl::OkStatus();
  };
  HORUS_RETURN_IF_ERROR(UsePlacer(placer, cluster, progress, work));
  // A copy: its log may take it off the placer.
  if (const std::shared_ptr<Watch> watch = placer.watch.get(); watch != nullptr) TellDecisions(*watch, plan->value);
  return plan;
}

absl::Status UsePlacer(horus_placer& placer, const horus_cluster& cluster, CallerProgress& progress,
                       const PlacerWork& work) {
  HORUS_ASSIGN_OR_RETURN(PlacerUse use, PlacerUse::Enter(placer, cluster));
  if (progress) placer.value->Watch([&progress] { return progress.Ask(); });
  const absl::Cleanup unwatched = [&placer] {
    placer.value->Watch(nullptr);
    TellJudgements(placer);
  };
  return work(*placer.value, cluster.value, [&use] { use.DoneReading(); });
}

}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_placer_create(const horus_placer_options* options, horus_placer** out, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{out, "out"}}));
    HORUS_ASSIGN_OR_RETURN(std::unique_ptr<horus_placer> placer, MakePlacer(options));
    *out = placer.release();
    return absl::OkStatus();
  });
}

void horus_placer_free(horus_placer* placer) { delete placer; }

uint64_t horus_placer_bytes_held(const horus_placer* placer) {
  return placer == nullptr ? 0 : placer->value->bytes_held();
}

const char* horus_policy_name(size_t index) {
  const std::span<const std::string_view> names = horus::PolicyNames();
  return index < names.size() ? names[index].data() : nullptr;
}

horus_status horus_placer_plan(horus_placer* placer, const horus_cluster* cluster, size_t job_count,
                               const horus_job* const* jobs, size_t node_count, const uint64_t* node_ids,
                               horus_progress progress, void* user, horus_plan** out, horus_error* error) {
  return GuardWatched(placer, horus::Call::kPlan, error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{placer, "placer"}, {cluster, "cluster"}, {out, "out"}}));
    HORUS_ASSIGN_OR_RETURN(const auto subset, SubsetFromC(node_count, node_ids));
    CallerProgress told(progress, user);
    HORUS_ASSIGN_OR_RETURN(auto plan, PlanWith(*placer, *cluster, told,
                                               [&](horus::Placer& with, const horus::Cluster& on,
                                                   const horus::ReadFn& read) -> absl::StatusOr<horus::Plan> {
                                                 HORUS_ASSIGN_OR_RETURN(const auto specs,
                                                                        JobsFromC(on.catalogue(), job_count, jobs,
                                                                                  with.options().max_jobs));
                                                 return with.MakePlan(on, specs, subset, told.Shares(), read);
                                               }));
    *out = plan.release();
    return absl::OkStatus();
  });
}

horus_status horus_placer_verdicts(horus_placer* placer, const horus_cluster* cluster, const horus_job* job,
                                   size_t node_count, const uint64_t* node_ids, int32_t* verdicts, double* costs,
                                   int32_t* reasons, horus_error* error) {
  return GuardWatched(placer, horus::Call::kVerdicts, error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{placer, "placer"}, {cluster, "cluster"}}));
    HORUS_RETURN_IF_ERROR(RequireColumn(node_ids, "node_ids", node_count));
    CallerProgress untold(nullptr, nullptr);
    return UsePlacer(*placer, *cluster, untold,
                     [&](horus::Placer& with, const horus::Cluster& on, const horus::ReadFn& read) -> absl::Status {
                       HORUS_ASSIGN_OR_RETURN(const horus::JobSpec spec, JobFromC(on.catalogue(), job));
                       HORUS_ASSIGN_OR_RETURN(const horus::NodeVerdicts answer,
                                              with.Verdicts(on, spec, std::span(node_ids, node_count), read));
                       for (size_t i = 0; i < node_count; ++i) {
                         Put(verdicts, i, answer.verdict[i]);
                         Put(costs, i, answer.cost[i]);
                         Put(reasons, i, answer.reason[i]);
                       }
                       return absl::OkStatus();
                     });
  });
}
