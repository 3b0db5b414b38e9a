// SPDX-License-Identifier: Apache-2.0
// Plans: jobs in order, each searched in the ledger that holds the ones before it.
#include "place/placer.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/status.h"
#include "place/placer_impl.h"

namespace horus {
namespace {

constexpr size_t kProgressStep = 256;  // jobs between two calls: well under 100 ms

}  // namespace

absl::Status CheckConfidence(const JobSpec& job, const InterferenceModel& model) {
  const float asked = job.slowdown_confidence;
  const double known = model.upper_probability();
  if (asked == 0 || model.has_quantiles() || asked == static_cast<float>(known)) return absl::OkStatus();
  return MakeError(absl::StatusCode::kUnimplemented,
                   "job %s: slowdown_confidence: model %s bounds slowdowns with probability %g alone, found %g",
                   IdAndName(job.id, job.name), std::string(model.name()), known, asked);
}

absl::StatusOr<std::vector<uint32_t>> PlanningOrder(const Cluster& cluster, std::span<const JobSpec> jobs,
                                                    const InterferenceModel& model, const IdMap<bool>* gone) {
  std::vector<uint32_t> order(jobs.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return jobs[a].id < jobs[b].id; });
  for (size_t i = 0; i < order.size(); ++i) {
    const JobSpec& job = jobs[order[i]];
    HORUS_RETURN_IF_ERROR(ValidateJob(job));
    HORUS_RETURN_IF_ERROR(CheckTypes(job, cluster.catalogue().size()));
    HORUS_RETURN_IF_ERROR(CheckConfidence(job, model));
    if (cluster.HasJob(job.id) && (gone == nullptr || !gone->contains(job.id))) {
      return MakeError(absl::StatusCode::kAlreadyExists, "job %s: is in this cluster already",
                       IdAndName(job.id, job.name));
    }
    if (i > 0 && jobs[order[i - 1]].id == job.id) {
      return MakeError(absl::StatusCode::kAlreadyExists, "job %s: the id is given twice", IdAndName(job.id, job.name));
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::tie(jobs[b].priority, jobs[a].submit_us) < std::tie(jobs[a].priority, jobs[b].submit_us);
  });
  return order;
}

Placer::Placer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
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
  if (!(options.gpu_price >= 0 && options.gpu_price <= 1)) {
    return InvalidArgument("placer: gpu_price: expected 0 to 1, found %g", options.gpu_price);
  }
  const FitLimits limits{
      .slowdown_bound = options.slowdown_bound > 0 ? options.slowdown_bound : policy->default_slowdown_bound(),
      .upper_probability = model->has_quantiles() ? model->upper_probability() : 0,
      .max_tenants = options.max_tenants,
      .share = options.sharing_quota > 0,
      .mem_headroom_mib = options.mem_headroom_mib,
      .mem_overcommit = options.mem_overcommit};
  return std::unique_ptr<Placer>(
      new Placer(std::make_unique<Impl>(std::move(model), std::move(policy), limits, options)));
}

absl::Status Placer::Impl::SelectNodes(const Cluster& cluster, std::optional<std::span<const NodeId>> wanted) {
  const ClusterRows& rows = cluster.rows();
  subset = wanted.has_value();
  nodes.clear();
  excluded_devices = excluded_nodes = 0;
  refused.clear();
  if (!subset) return absl::OkStatus();
  emptied_decisions.clear();
  std::vector<NodeId> ids(wanted->begin(), wanted->end());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  size_t devices = 0;
  for (const NodeId id : ids) {
    const uint32_t* row = rows.node_of.Find(id);
    if (row == nullptr) {
      return MakeError(absl::StatusCode::kNotFound, "node %d of the subset: not in this cluster", id);
    }
    nodes.push_back(*row);
    devices += rows.nodes[*row].spec->devices.size();
  }
  excluded_devices = static_cast<uint32_t>(cluster.device_count() - devices);
  excluded_nodes = static_cast<uint32_t>(cluster.node_count() - nodes.size());
  return absl::OkStatus();
}

void Placer::Impl::AddSeen(std::span<const uint32_t> node_rows, Plan& plan) const {
  for (const uint32_t row : node_rows) plan.seen.push_back({ledger.spec(row).id, ledger.node(row).version});
  std::sort(plan.seen.begin(), plan.seen.end(), [](const SeenNode& a, const SeenNode& b) { return a.node < b.node; });
  plan.seen.erase(std::unique(plan.seen.begin(), plan.seen.end()), plan.seen.end());
}

absl::Status Placer::Impl::PlanJobs(std::span<const JobSpec> jobs, std::span<const uint32_t> order, bool book_last,
                                    const ProgressFn& progress, Plan& plan) {
  plan.model_epoch = scorer.model().epoch();
  plan.decisions.reserve(jobs.size());
  std::vector<uint32_t> touched;
  for (size_t i = 0; i < order.size(); ++i) {
    if (progress != nullptr && i % kProgressStep == 0 && !progress(i, order.size())) {
      return MakeError(absl::StatusCode::kCancelled, "plan: cancelled after %d of %d jobs", i, order.size());
    }
    Choice choice;
    HORUS_RETURN_IF_ERROR(Choose(jobs[order[i]], choice));
    if (choice.job != nullptr) {
      if (book_last || i + 1 < order.size()) ledger.Place(*choice.job, choice.slots);
      for (const PlacedSlot& slot : choice.slots) touched.push_back(slot.node_row);
      plan.actions.push_back({ActionKind::kPlace, std::move(choice.job), choice.decision.slots});
    }
    plan.decisions.push_back(std::move(choice.decision));
  }
  AddSeen(touched, plan);
  return absl::OkStatus();
}

absl::StatusOr<Plan> Placer::MakePlan(const Cluster& cluster, std::span<const JobSpec> jobs,
                                      std::optional<std::span<const NodeId>> subset, const ProgressFn& progress,
                                      const ReadFn& read) {
  Impl& my = *impl_;
  if (jobs.size() > my.options.max_jobs) {
    return MakeError(absl::StatusCode::kResourceExhausted, "plan: expected at most %d jobs, found %d",
                     my.options.max_jobs, jobs.size());
  }
  HORUS_ASSIGN_OR_RETURN(const std::vector<uint32_t> order, PlanningOrder(cluster, jobs, my.scorer.model()));
  HORUS_RETURN_IF_ERROR(my.SelectNodes(cluster, subset));
  my.ledger.Follow(cluster);
  if (my.scorer.policy().round() != nullptr) return my.PlanRound(cluster, jobs, order, progress, read);
  if (read != nullptr) read();
  Plan plan;
  HORUS_RETURN_IF_ERROR(my.PlanJobs(jobs, order, /*book_last=*/false, progress, plan));
  return plan;
}

void Placer::Watch(WatchFn watch) { impl_->watch = std::move(watch); }

const InterferenceModel& Placer::model() const { return impl_->scorer.model(); }
const Policy& Placer::policy() const { return impl_->scorer.policy(); }
std::shared_ptr<const InterferenceModel> Placer::shared_model() const { return impl_->scorer.shared_model(); }
std::shared_ptr<const Policy> Placer::shared_policy() const { return impl_->scorer.shared_policy(); }
const PlacerOptions& Placer::options() const { return impl_->options; }
double Placer::slowdown_bound() const { return impl_->scorer.limits().slowdown_bound; }

Placer::Judgements Placer::judgements() const {
  const Scorer& scorer = impl_->scorer;
  return {scorer.judged() - scorer.weighed(), scorer.weighed()};
}

uint64_t Placer::bytes_held() const {
  return sizeof(*this) + sizeof(Impl) + impl_->scorer.bytes_held() + impl_->ledger.bytes_held() +
         impl_->emptied.bytes_held() + impl_->search.bytes_held() + impl_->emptied_search.bytes_held() +
         impl_->nodes.capacity() * sizeof(uint32_t);
}

}  // namespace horus
