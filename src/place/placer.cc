// SPDX-License-Identifier: Apache-2.0
// The placer's front: options are checked here, plans are made by the engine.
#include "place/placer.h"

#include <cmath>
#include <utility>

#include "base/status.h"
#include "place/engine.h"

namespace horus {

Placer::Placer(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}
Placer::~Placer() = default;

absl::StatusOr<std::unique_ptr<Placer>> Placer::Create(std::shared_ptr<const InterferenceModel> model,
                                                       std::shared_ptr<const Policy> policy,
                                                       const PlacerOptions& options) {
  if (model == nullptr) return InvalidArgument("placer: expected an interference model, found none");
  if (policy == nullptr) return InvalidArgument("placer: expected a policy, found none");
  if (!(options.slowdown_bound == 0 || options.slowdown_bound >= 1)) {
    return InvalidArgument("placer: slowdown_bound: expected 0 (the policy's) or at least 1, found %g",
                           options.slowdown_bound);
  }
  if (options.max_tenants < 1 || options.max_tenants > kMaxTenantsPerDevice) {
    return InvalidArgument("placer: max_tenants: expected 1 to %d, found %d", kMaxTenantsPerDevice,
                           options.max_tenants);
  }
  if (!(options.sharing_quota >= 0 && options.sharing_quota <= 1)) {
    return InvalidArgument("placer: sharing_quota: expected 0 to 1 (a share of the devices), found %g",
                           options.sharing_quota);
  }
  if (options.mem_headroom_mib < 0 || options.mem_headroom_mib > kMaxHostQuantity) {
    return InvalidArgument("placer: mem_headroom_mib: expected 0 to %d MiB, found %d", kMaxHostQuantity,
                           options.mem_headroom_mib);
  }
  if (!(options.rack_oversubscription >= 1 && std::isfinite(options.rack_oversubscription))) {
    return InvalidArgument("placer: rack_oversubscription: expected at least 1, found %g",
                           options.rack_oversubscription);
  }
  if (!(options.mem_overcommit >= 1 && options.mem_overcommit <= kMaxMemOvercommit)) {
    return InvalidArgument("placer: mem_overcommit: expected 1 (none) to %g times the memory, found %g",
                           kMaxMemOvercommit, options.mem_overcommit);
  }
  if (!(options.gpu_price >= 0 && options.gpu_price <= 1))
    return InvalidArgument("placer: gpu_price: expected 0 to 1, found %g", options.gpu_price);
  const FitLimits limits{
      .slowdown_bound = options.slowdown_bound > 0 ? options.slowdown_bound : policy->default_slowdown_bound(),
      .upper_probability = model->has_quantiles() ? model->upper_probability() : 0,
      .max_tenants = options.max_tenants,
      .share = options.sharing_quota > 0,
      .mem_headroom_mib = options.mem_headroom_mib,
      .mem_overcommit = options.mem_overcommit};
  return std::unique_ptr<Placer>(
      new Placer(std::make_unique<Engine>(std::move(model), std::move(policy), limits, options)));
}

absl::StatusOr<Plan> Placer::MakePlan(const Cluster& cluster, std::span<const JobSpec> jobs,
                                      std::optional<std::span<const NodeId>> subset, const ProgressFn& progress,
                                      const ReadFn& read) {
  return engine_->MakePlan(cluster, jobs, subset, progress, read);
}

absl::StatusOr<NodeVerdicts> Placer::Verdicts(const Cluster& cluster, const JobSpec& job, std::span<const NodeId> nodes,
                                              const ReadFn& read) {
  return engine_->Verdicts(cluster, job, nodes, read);
}

void Placer::SetGoOn(GoOnFn go_on) { engine_->SetGoOn(std::move(go_on)); }

const InterferenceModel& Placer::model() const { return engine_->scorer().model(); }
const Policy& Placer::policy() const { return engine_->scorer().policy(); }
std::shared_ptr<const InterferenceModel> Placer::shared_model() const { return engine_->model(); }
std::shared_ptr<const Policy> Placer::shared_policy() const { return engine_->scorer().shared_policy(); }
const PlacerOptions& Placer::options() const { return engine_->options(); }
double Placer::slowdown_bound() const { return engine_->scorer().limits().slowdown_bound; }

Placer::Judgements Placer::judgements() const {
  const Scorer& scorer = engine_->scorer();
  return {scorer.judged() - scorer.weighed(), scorer.weighed()};
}

uint64_t Placer::bytes_held() const { return sizeof(*this) + engine_->bytes_held(); }

Appraiser Placer::appraiser() const {
  return {engine_->scorer().shared_model(), engine_->scorer().limits(), engine_->options().rack_oversubscription};
}

absl::StatusOr<Appraisal> Placer::Appraise(const Cluster& cluster, const JobSpec& job,
                                           std::span<const Slot> slots) const {
  if (cluster.HasJob(job.id)) return AlreadyExists("job %s: runs in this cluster already", IdAndName(job.id, job.name));
  HORUS_RETURN_IF_ERROR(CheckConfidence(job, engine_->scorer().model()));
  return appraiser().Of(cluster, job, slots);
}

}  // namespace horus
