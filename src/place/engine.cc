// SPDX-License-Identifier: Apache-2.0
// Plans: the ledger follows the cluster; jobs in order, each decided on the ledger that holds the ones before it.
#include "place/engine.h"

#include "interference/host_model.h"
#include "place/host/plan_grants.h"
#include "place/search/prices.h"

namespace horus {
namespace {

constexpr size_t kProgressStep = 256;  // jobs between two calls: well under 100 ms

// Positions of the jobs in planning order; refuses jobs that are wrong, resident, given twice, or ask for what `model`
// does not know. Those of `gone` do not count as resident.
absl::StatusOr<JobOrder> PlanningOrder(const Cluster& cluster, std::span<const JobSpec> jobs,
                                       const InterferenceModel& model, const IdMap<bool>* gone) {
  JobOrder order(jobs.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, [&](uint32_t a, uint32_t b) { return jobs[a].id < jobs[b].id; });
  for (size_t i = 0; i < order.size(); ++i) {
    const JobSpec& job = jobs[order[i]];
    HORUS_RETURN_IF_ERROR(ValidateJob(job));
    HORUS_RETURN_IF_ERROR(CheckTypes(job, cluster.catalogue().size()));
    HORUS_RETURN_IF_ERROR(CheckConfidence(job, model));
    if (cluster.HasJob(job.id) && (gone == nullptr || !gone->contains(job.id)))
      return AlreadyExists("job %s: is in this cluster already", IdAndName(job.id, job.name));
    if (i > 0 && jobs[order[i - 1]].id == job.id)
      return AlreadyExists("job %s: the id is given twice", IdAndName(job.id, job.name));
  }
  std::ranges::sort(order, [&](uint32_t a, uint32_t b) {
    return std::tie(jobs[b].priority, jobs[a].submit_us, jobs[a].id) <
           std::tie(jobs[a].priority, jobs[b].submit_us, jobs[b].id);
  });
  return order;
}

FitLimits LimitsOf(const PlacerOptions& options, const InterferenceModel& model, const Policy& policy) {
  return {.slowdown_bound = options.slowdown_bound > 0 ? options.slowdown_bound : policy.default_slowdown_bound(),
          .upper_probability = model.has_quantiles() ? model.upper_probability() : 0,
          .max_tenants = options.max_tenants,
          .share = options.sharing_quota > 0,
          .mem_headroom_mib = options.mem_headroom_mib,
          .mem_overcommit = options.mem_overcommit};
}

}  // namespace

absl::Status CheckConfidence(const JobSpec& job, const InterferenceModel& model) {
  const float asked = job.slowdown_confidence;
  const double known = model.upper_probability();
  if (asked == 0 || model.has_quantiles() || asked == static_cast<float>(known)) return absl::OkStatus();
  return Unimplemented("job %s: slowdown_confidence: model %s bounds slowdowns with probability %g alone, found %g",
                       IdAndName(job.id, job.name), std::string(model.name()), known, asked);
}

Engine::Engine(std::shared_ptr<const InterferenceModel> model, std::shared_ptr<const Policy> policy,
               const PlacerOptions& options)
    : options_(options),
      model_(model),
      scorer_(WithHostTime(model), policy, LimitsOf(options, *model, *policy), options.cache_bytes / 2,
              options.exhaustive),
      search_(scorer_, options.cache_bytes / 4),
      emptied_search_(scorer_, options.cache_bytes / 8),
      explainer_(scorer_),
      rounds_(dynamic_cast<const RoundPolicy*>(&scorer_.policy())),
      grants_(std::make_unique<PlanGrants>(*this)) {
  search_.set_rack_oversubscription(options.rack_oversubscription);
  search_.set_max_candidates(options.max_candidates, options.seed);
  emptied_search_.set_rack_oversubscription(options.rack_oversubscription);
  ledger_.SetSharingQuota(options.sharing_quota);
}

Engine::~Engine() = default;

absl::Status Engine::GoOn() const {
  if (go_on_ == nullptr || go_on_()) return absl::OkStatus();
  return Cancelled("plan: cancelled");
}

const Ledger& Engine::emptied() {
  emptied_.FollowEmptied(ledger_);
  return emptied_;
}

WorkPricer& Engine::pricer() {
  if (pricer_ == nullptr) pricer_ = std::make_unique<WorkPricer>();
  return *pricer_;
}

uint64_t Engine::bytes_held() const {
  return sizeof(*this) + (pricer_ != nullptr ? pricer_->bytes_held() : 0) +
         BytesIn(scorer_, ledger_, emptied_, search_, emptied_search_, nodes_, named_.rows, named_.ids, way_view_.types,
                 capped_view_.types);
}

absl::Status Engine::Start(const Cluster& cluster, std::optional<std::span<const NodeId>> subset) {
  if (rounds_ != nullptr) {
    return Unimplemented("policy %s: expected one that decides job by job, for it makes plans of whole rounds alone",
                         std::string(scorer_.policy().name()));
  }
  return Follow(cluster, subset);
}

absl::Status Engine::Follow(const Cluster& cluster, std::optional<std::span<const NodeId>> subset) {
  waiting_.clear();
  HORUS_RETURN_IF_ERROR(SelectNodes(cluster, subset));
  ledger_.Follow(cluster);
  return absl::OkStatus();
}

absl::StatusOr<JobOrder> Engine::Order(const Cluster& cluster, std::span<const JobSpec> jobs,
                                       const IdMap<bool>* gone) const {
  for (const JobSpec& job : jobs) HORUS_RETURN_IF_ERROR(CheckSettled(job));
  return OrderAny(cluster, jobs, gone);
}

absl::StatusOr<JobOrder> Engine::OrderAny(const Cluster& cluster, std::span<const JobSpec> jobs,
                                          const IdMap<bool>* gone) const {
  if (jobs.size() > options_.max_jobs)
    return ResourceExhausted("plan: expected at most %d jobs, found %d", options_.max_jobs, jobs.size());
  return PlanningOrder(cluster, jobs, scorer_.model(), gone);
}

void Engine::SetWaiting(std::span<const JobSpec* const> jobs) {
  waiting_.assign(jobs.begin(), jobs.begin() + static_cast<ptrdiff_t>(std::min(jobs.size(), kMostWaiting)));
}

absl::Status Engine::SelectNodes(const Cluster& cluster, std::optional<std::span<const NodeId>> wanted) {
  const ClusterRows& rows = cluster.rows();
  subset_ = wanted.has_value();
  nodes_.clear();
  excluded_devices_ = excluded_nodes_ = 0;
  refused_.clear();
  if (!subset_) return absl::OkStatus();
  emptied_decisions_.clear();
  std::vector<NodeId> ids(wanted->begin(), wanted->end());
  SortUnique(ids);
  size_t devices = 0;
  for (const NodeId id : ids) {
    const uint32_t* row = rows.node_of.Find(id);
    if (row == nullptr) return NotFound("node %d of the subset: not in this cluster", id);
    nodes_.push_back(*row);
    devices += rows.nodes[*row].spec->devices.size();
  }
  excluded_devices_ = static_cast<uint32_t>(cluster.device_count() - devices);
  excluded_nodes_ = static_cast<uint32_t>(cluster.node_count() - nodes_.size());
  return absl::OkStatus();
}

void Engine::AddSeen(std::span<const uint32_t> node_rows, Plan& plan) const {
  for (const uint32_t row : node_rows) plan.seen.push_back({ledger_.spec(row).id, ledger_.node(row).version});
  std::ranges::sort(plan.seen, [](const SeenNode& a, const SeenNode& b) { return a.node < b.node; });
  plan.seen.erase(std::unique(plan.seen.begin(), plan.seen.end()), plan.seen.end());
}

absl::Status Engine::PlanJobs(std::span<const JobSpec> jobs, std::span<const uint32_t> order, bool book_last,
                              const ProgressFn& progress, PlanGrants* host, Plan& plan) {
  plan.model_epoch = scorer_.model().epoch();
  plan.decisions.reserve(jobs.size());
  RowList touched;
  for (size_t i = 0; i < order.size(); ++i) {
    if (progress != nullptr && i % kProgressStep == 0 && !progress(i, order.size()))
      return Cancelled("plan: cancelled after %d of %d jobs", i, order.size());
    ChosenWay choice;
    const JobSpec& job = jobs[order[i]];
    waiting_.clear();
    for (const uint32_t next : order.subspan(i + 1).first(std::min(order.size() - i - 1, kMostWaiting)))
      waiting_.push_back(&jobs[next]);
    if (host != nullptr && host->Chooses(job)) {
      HORUS_RETURN_IF_ERROR(host->Choose(job, choice));
    } else {
      HORUS_ASSIGN_OR_RETURN(choice, Choose(job));
      if (host != nullptr && choice.job == nullptr && job.alternatives.empty())
        HORUS_RETURN_IF_ERROR(host->Reclaim(job, choice));
    }
    if (choice.job != nullptr) {
      if (book_last || i + 1 < order.size()) ledger_.Place(*choice.job, choice.slots);
      for (const PlacedSlot& slot : choice.slots) touched.push_back(slot.node_row);
      plan.actions.push_back({ActionKind::kPlace, std::move(choice.job), choice.decision.slots});
    }
    const bool placed = choice.decision.verdict == Verdict::kPlace;
    plan.decisions.push_back(std::move(choice.decision));
    if (placed && host != nullptr) host->Placed(plan, choice.slots);
  }
  if (host != nullptr) HORUS_RETURN_IF_ERROR(host->Finish(plan, touched));
  AddSeen(touched, plan);
  TellInPlan(plan.decisions);
  return absl::OkStatus();
}

absl::StatusOr<Plan> Engine::MakePlan(const Cluster& cluster, std::span<const JobSpec> jobs,
                                      std::optional<std::span<const NodeId>> subset, const ProgressFn& progress,
                                      const ReadFn& read) {
  HORUS_ASSIGN_OR_RETURN(const JobOrder order, OrderAny(cluster, jobs));
  HORUS_RETURN_IF_ERROR(Follow(cluster, subset));
  if (rounds_ != nullptr) {
    return rounds_->PlanRound(*this, cluster,
                              {.jobs = jobs, .order = order, .leases = {}, .progress = progress, .read = read});
  }
  grants_->Follow(cluster);
  if (read != nullptr) read();
  Plan plan;
  PlanGrants* const grants = grants_->Active(jobs) ? grants_.get() : nullptr;
  HORUS_RETURN_IF_ERROR(PlanJobs(jobs, order, /*book_last=*/grants != nullptr, progress, grants, plan));
  return plan;
}

Slots SlotsOf(const Ledger& ledger, std::span<const PlacedSlot> placed) {
  Slots slots;
  slots.reserve(placed.size());
  for (const PlacedSlot& slot : placed) slots.push_back({ledger.spec(slot.node_row).id, slot.device, slot.task});
  std::ranges::sort(slots, {}, ByTask);
  return slots;
}

}  // namespace horus
