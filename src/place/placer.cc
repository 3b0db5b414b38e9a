// SPDX-License-Identifier: Apache-2.0
// Plans: jobs in order, each searched in the ledger that holds the ones before it; verdicts by node.
#include "place/placer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "interference/laws.h"
#include "place/host/plan_grants.h"
#include "place/placer_impl.h"
#include "place/policies/builtin.h"
#include "place/search/admit.h"
#include "place/search/prices.h"

namespace horus {
namespace {

constexpr size_t kProgressStep = 256;  // jobs between two calls: well under 100 ms

}  // namespace

absl::Status CheckConfidence(const JobSpec& job, const InterferenceModel& model) {
  const float asked = job.slowdown_confidence;
  const double known = model.upper_probability();
  if (asked == 0 || model.has_quantiles() || asked == static_cast<float>(known)) return absl::OkStatus();
  return Unimplemented("job %s: slowdown_confidence: model %s bounds slowdowns with probability %g alone, found %g",
                       IdAndName(job.id, job.name), std::string(model.name()), known, asked);
}

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
    if (cluster.HasJob(job.id) && (gone == nullptr || !gone->contains(job.id))) {
      return AlreadyExists("job %s: is in this cluster already", IdAndName(job.id, job.name));
    }
    if (i > 0 && jobs[order[i - 1]].id == job.id) {
      return AlreadyExists("job %s: the id is given twice", IdAndName(job.id, job.name));
    }
  }
  std::ranges::sort(order, [&](uint32_t a, uint32_t b) {
    return std::tie(jobs[b].priority, jobs[a].submit_us, jobs[a].id) <
           std::tie(jobs[a].priority, jobs[b].submit_us, jobs[b].id);
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
  auto impl = std::make_unique<Impl>(std::move(model), std::move(policy), limits, options);
  impl->grants = std::make_shared<Impl::Grants>(*impl);
  return std::unique_ptr<Placer>(new Placer(std::move(impl)));
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
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  size_t devices = 0;
  for (const NodeId id : ids) {
    const uint32_t* row = rows.node_of.Find(id);
    if (row == nullptr) {
      return NotFound("node %d of the subset: not in this cluster", id);
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
  std::ranges::sort(plan.seen, [](const SeenNode& a, const SeenNode& b) { return a.node < b.node; });
  plan.seen.erase(std::unique(plan.seen.begin(), plan.seen.end()), plan.seen.end());
}

absl::Status Placer::Impl::PlanJobs(std::span<const JobSpec> jobs, std::span<const uint32_t> order, bool book_last,
                                    const ProgressFn& progress, Grants* host, Plan& plan) {
  plan.model_epoch = scorer.model().epoch();
  plan.decisions.reserve(jobs.size());
  RowList touched;
  for (size_t i = 0; i < order.size(); ++i) {
    if (progress != nullptr && i % kProgressStep == 0 && !progress(i, order.size())) {
      return Cancelled("plan: cancelled after %d of %d jobs", i, order.size());
    }
    ChosenWay choice;
    const JobSpec& job = jobs[order[i]];
    waiting.clear();
    for (const uint32_t next : order.subspan(i + 1).first(std::min(order.size() - i - 1, kMostWaiting)))
      waiting.push_back(&jobs[next]);
    if (host != nullptr && host->Chooses(job)) {
      HORUS_RETURN_IF_ERROR(host->Choose(job, choice));
    } else {
      HORUS_RETURN_IF_ERROR(Choose(job, choice));
      if (host != nullptr && choice.job == nullptr && job.alternatives.empty()) {
        HORUS_RETURN_IF_ERROR(host->Reclaim(job, choice));
      }
    }
    if (choice.job != nullptr) {
      if (book_last || i + 1 < order.size()) ledger.Place(*choice.job, choice.slots);
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

absl::StatusOr<Plan> Placer::MakePlan(const Cluster& cluster, std::span<const JobSpec> jobs,
                                      std::optional<std::span<const NodeId>> subset, const ProgressFn& progress,
                                      const ReadFn& read) {
  Impl& my = *impl_;
  Engine engine(*this);
  HORUS_ASSIGN_OR_RETURN(const JobOrder order, engine.OrderAny(cluster, jobs));
  HORUS_RETURN_IF_ERROR(engine.Follow(cluster, subset));
  if (my.rounds != nullptr) {
    return my.rounds->PlanRound(engine, cluster,
                                {.jobs = jobs, .order = order, .leases = {}, .progress = progress, .read = read});
  }
  my.grants->Follow(cluster);
  if (read != nullptr) read();
  Plan plan;
  Impl::Grants* const grants = my.grants->Active(jobs) ? my.grants.get() : nullptr;
  HORUS_RETURN_IF_ERROR(my.PlanJobs(jobs, order, /*book_last=*/grants != nullptr, progress, grants, plan));
  return plan;
}

void Placer::SetGoOn(GoOnFn go_on) { impl_->go_on = std::move(go_on); }

const InterferenceModel& Placer::model() const { return impl_->scorer.model(); }
const Policy& Placer::policy() const { return impl_->scorer.policy(); }
std::shared_ptr<const InterferenceModel> Placer::shared_model() const { return impl_->model; }
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
         (impl_->pricer != nullptr ? impl_->pricer->bytes_held() : 0) +
         (impl_->nodes.capacity() + impl_->named.rows.capacity()) * sizeof(uint32_t) +
         impl_->named.ids.capacity() * sizeof(NodeId) +
         (impl_->way_view.types.capacity() + impl_->capped_view.types.capacity()) * sizeof(JobView::OnType);
}

// One job: the way to run it, its place or what refuses it, now and on the empty cluster.
namespace {

constexpr size_t kMostKept = 4096;  // answers for requests that never fit; each has about 800 bytes

}  // namespace

JobSpec CertainOf(const JobSpec& job) {
  JobSpec certain = job;
  for (TypeDemand& entry : certain.demands) {
    Demand& demand = entry.demand;
    if (!IsOnlyPredicted(demand)) continue;
    demand.step_time_us = {1, 1};  // no latency is too long
    if (demand.slowdown_bound > kNeverServed && demand.slowdown_bound < 1) demand.slowdown_bound = 0;
    if ((demand.flags & kDemandTooLarge) == 0) demand.mem_mib = {};
  }
  return certain;
}

// Of the cluster empty and up: kPlace, or what refuses the job there: for good, unless a prediction alone says so.
absl::StatusOr<Decision> Placer::Impl::DecideEmptied(const JobView& view) {
  emptied.FollowEmptied(ledger);
  if (std::exchange(emptied_at, emptied.changes()) != emptied.changes() || emptied_decisions.size() >= kMostKept) {
    emptied_decisions.clear();
  }
  if (const Decision* known = emptied_decisions.Find(view.request)) return *known;
  SearchResult found;
  HORUS_RETURN_IF_ERROR(emptied_search.Run(emptied, view, selected(), found));
  Decision decision{.verdict = Verdict::kPlace};
  if (found.best.slots.empty()) {
    decision.verdict = Verdict::kReject;
    found.refused[static_cast<size_t>(Reason::kNotInSubset)] = Excluded(view);
    decision.cpu_only = IsCpuOnly(*view.job);
    decision.refused_devices = found.refused;
    HORUS_RETURN_IF_ERROR(explainer.Refused(emptied, view, considered(emptied), found, decision));
    const auto fits = [&](const JobSpec& job) -> absl::StatusOr<bool> {
      const JobView other = ViewJob(job, options.probe_outside);
      scorer.SetJob(other);
      HORUS_RETURN_IF_ERROR(emptied_search.Run(emptied, other, selected(), found, /*why=*/false));
      scorer.SetJob(view);
      return !found.best.slots.empty();
    };
    JobSpec alone = *view.job;
    bool waits = false;  // for an idle GPU
    if (AloneByExpectation(alone)) {
      HORUS_ASSIGN_OR_RETURN(waits, fits(alone));
    }
    if (waits) {
      decision = {.verdict = Verdict::kPlace};
    } else if (RestsOnPredictions(*view.job)) {
      HORUS_ASSIGN_OR_RETURN(decision.predicted_never, fits(CertainOf(*view.job)));
      if (decision.predicted_never) decision.verdict = Verdict::kDefer;
    }
  }
  emptied_decisions.Insert(view.request, decision);
  return decision;
}

bool Placer::Impl::MayBeCapped(const JobSpec& job) const {
  return scorer.model().knows_caps() && job.sm_cap_pct == 0 && !job.exclusive && !IsCpuOnly(job);
}

double Placer::Impl::MostCapped(const JobSpec& job) const {
  return job.slowdown_bound > 0 ? static_cast<double>(job.slowdown_bound)
                                : std::min(GuardOf(job.kind), scorer.limits().slowdown_bound);
}

bool Placer::Impl::Cap(JobSpec& job, int32_t cap_pct, double most) {
  job.sm_cap_pct = cap_pct;
  std::erase_if(job.demands, [&](const TypeDemand& entry) { return CapStretch(AsRun(job, entry.demand)) > most; });
  return !job.demands.empty();
}

// Neighbours that cannot bear the whole job may bear a part of it. The largest part comes first; whoever would keep
// less of its speed than any tenant must, cap and neighbours together, waits instead.
absl::Status Placer::Impl::PlaceCapped(const JobView& view, Decision& decision) {
  const JobSpec& job = *view.job;
  const auto refused_by = [&](Reason reason) { return result.refused[static_cast<size_t>(reason)] > 0; };
  const bool by_sharing = options.terse || refused_by(Reason::kSlowdownNeighbour) || refused_by(Reason::kSlowdownOwn) ||
                          refused_by(Reason::kPolicy);
  if (!by_sharing || !MayBeCapped(job)) return absl::OkStatus();
  SearchResult whole = std::exchange(result, SearchResult());
  JobSpec capped = job;
  const double most = MostCapped(job);
  const Decision asked = decision;
  for (const int32_t cap_pct : kSmCapsPct) {
    if (!Cap(capped, cap_pct, most)) break;
    capped_view = ViewJob(capped, options.probe_outside, std::move(capped_view));
    scorer.SetJob(capped_view);
    HORUS_RETURN_IF_ERROR(search.Run(ledger, capped_view, selected(), result, /*why=*/false));
    if (result.best.slots.empty()) continue;
    HORUS_RETURN_IF_ERROR(explainer.Placed(ledger, capped_view, result, decision));
    const bool pays =
        GpuCount(job) == 1 || !scorer.policy().maximises_work() || explainer.GangPays(capped_view, result, decision);
    if (pays && decision.sm_cap_slowdown * decision.own.estimate <= static_cast<float>(most))
      return ChooseMode(capped_view, result.best.slots, decision);
    decision = asked;
  }
  result = std::move(whole);
  scorer.SetJob(view);
  return absl::OkStatus();
}

absl::Status Placer::Impl::GainOf(const JobSpec& next, uint32_t device, double& gain) {
  gain = 0;
  const JobView view = ViewJob(next, options.probe_outside);
  if (IsCpuOnly(next) || BarsFrom(ledger, device, view) != Reason::kNone) return absl::OkStatus();
  Evaluation evaluation;
  scorer.SetJob(view);
  HORUS_RETURN_IF_ERROR(scorer.Evaluate(ledger.states(), ledger.state_id(device), evaluation));
  if (evaluation.verdict.reason != Reason::kNone) return absl::OkStatus();
  const DeviceCandidate& candidate = evaluation.candidate;
  for (size_t i = 0; i < candidate.after.size(); ++i) {
    const TenantClass& tenant = *candidate.tenants[i];
    const auto share = [&](const Slowdown& slowed) { return 1 / WorkSlowdown(tenant.demand, slowed.estimate); };
    gain += static_cast<double>(tenant.worth) *
            (share(candidate.after[i]) - (i < candidate.residents() ? share(candidate.before[i]) : 0));
  }
  gain = std::max(gain, 0.0);
  return absl::OkStatus();
}

// Either mode is tried with those who wait, or else a copy of the job, beside it.
absl::Status Placer::Impl::GainsBeside(const JobView& view, std::span<const PlacedSlot> slots, uint32_t device,
                                       Decision& decision) {
  std::vector<const JobSpec*> others = waiting;
  std::erase_if(others, [](const JobSpec* job) { return !job->alternatives.empty(); });  // who knows how they will run?
  decision.mode_why = others.empty() ? ModeReason::kCopy : ModeReason::kWaiting;
  if (others.empty()) others.push_back(view.job);
  const size_t mark = ledger.Mark();
  absl::Status status;
  for (const bool mps : {false, true}) {
    JobSpec first = *view.job;
    first.mps_chosen = mps;
    ledger.Place(first, slots);
    double total = 0;
    for (const JobSpec* other : others) {
      double gain = 0;
      if (status.ok()) status = GainOf(*other, device, gain);
      if (mps && options.sm_caps && gain == 0 && MayBeCapped(*other)) {
        JobSpec capped = *other;
        for (const int32_t cap_pct : kSmCapsPct) {
          if (gain > 0 || !Cap(capped, cap_pct, MostCapped(*other))) break;
          if (status.ok()) status = GainOf(capped, device, gain);
        }
      }
      total += gain;
    }
    ledger.UndoTo(mark);
    decision.mode_gains[mps ? 1 : 0] = static_cast<float>(total / static_cast<double>(others.size()));
  }
  scorer.SetJob(view);
  return status;
}

absl::Status Placer::Impl::ChooseMode(const JobView& view, std::span<const PlacedSlot> slots, Decision& decision) {
  std::optional<uint32_t> empty;
  bool settled = false, can_either = false;
  for (const PlacedSlot& slot : slots) {
    if (slot.device == kNoDevice) return absl::OkStatus();
    const SharingMode mode = ledger.state(ledger.device_of(slot)).mode;
    if (mode == SharingMode::kTimeSliceOrMps) {
      empty = ledger.device_of(slot);
    } else {
      decision.mode = mode;
      settled = true;
    }
    can_either |=
        mode != SharingMode::kTimeSlice &&
        ledger.spec(slot.node_row).devices[static_cast<size_t>(slot.device)].mode == SharingMode::kTimeSliceOrMps;
  }
  if (empty && !settled) {
    decision.mode = SharingMode::kTimeSlice;  // of equals: a fault of one job does not end the others
    if (view.job->sm_cap_pct > 0) {
      decision.mode_why = ModeReason::kCap;
      decision.mode = SharingMode::kMps;
    } else if (decision.probe || rounds != nullptr || view.On(ledger.state(*empty).type)->tenant.exclusive) {
      decision.mode_why = ModeReason::kAlone;
    } else {
      HORUS_RETURN_IF_ERROR(GainsBeside(view, slots, *empty, decision));
      if (decision.mode_gains[1] > decision.mode_gains[0]) decision.mode = SharingMode::kMps;
    }
  }
  decision.mps_chosen = can_either && decision.mode == SharingMode::kMps;
  return absl::OkStatus();
}

absl::StatusOr<Decision> Placer::Impl::Decide(const JobView& view, bool sm_caps) {
  HORUS_RETURN_IF_ERROR(GoOn());
  if (std::exchange(refused_at, ledger.changes()) != ledger.changes()) refused.clear();
  Decision decision;
  const uint64_t request = CombineHash(RequestOn(ledger, view), uint64_t{sm_caps});
  if (const Decision* known = refused.Find(request)) {
    decision = *known;
    decision.job = view.job->id;
    return decision;
  }
  decision.job = view.job->id;
  decision.cpu_only = IsCpuOnly(*view.job);
  scorer.SetJob(view);
  HORUS_RETURN_IF_ERROR(search.Run(ledger, view, selected(), result, !options.terse));
  if (!result.best.slots.empty()) {
    HORUS_RETURN_IF_ERROR(explainer.Placed(ledger, view, result, decision));
    decision.probe = IsProbe(*view.job, result.best.slots.front());
    if (GpuCount(*view.job) == 1 || !scorer.policy().maximises_work() || explainer.GangPays(view, result, decision)) {
      HORUS_RETURN_IF_ERROR(ChooseMode(view, result.best.slots, decision));
      return decision;
    }
    const auto declined = static_cast<uint32_t>(result.best.slots.size());
    result = SearchResult();
    result.refused[static_cast<size_t>(Reason::kPolicy)] = declined;
    decision = {.job = view.job->id};
  }
  if (sm_caps) HORUS_RETURN_IF_ERROR(PlaceCapped(view, decision));
  if (decision.verdict == Verdict::kPlace) return decision;
  if (!options.terse) {
    result.refused[static_cast<size_t>(Reason::kNotInSubset)] = Excluded(view);
    decision.refused_devices = result.refused;
    HORUS_RETURN_IF_ERROR(explainer.Refused(ledger, view, considered(ledger), result, decision));
  }
  decision.verdict = Verdict::kDefer;
  HORUS_ASSIGN_OR_RETURN(Decision emptied_decision, DecideEmptied(view));
  if (emptied_decision.verdict != Verdict::kPlace) {
    decision = std::move(emptied_decision);
    decision.job = view.job->id;
  }
  refused.Insert(request, decision);
  return decision;
}

absl::Status Placer::Impl::DecideWay(const JobSpec& way, ChosenWay& choice) {
  way_view = ViewJob(way, options.probe_outside, std::move(way_view));
  HORUS_ASSIGN_OR_RETURN(choice.decision, Decide(way_view, options.sm_caps));
  if (choice.decision.verdict != Verdict::kPlace) return DecideByExpectation(way, choice);
  choice.slots = std::move(result.best.slots);
  choice.job = AsDecided(way, choice.decision);
  if (choice.job == nullptr) choice.job = std::make_shared<JobSpec>(way);
  if (choice.decision.probe) choice.job->exclusive_chosen = !std::exchange(choice.job->exclusive, true);
  return absl::OkStatus();
}

// A bound that nobody measured leaves no GPU idle: alone on one, a job that takes more than expected harms itself
// alone.
absl::Status Placer::Impl::DecideByExpectation(const JobSpec& way, ChosenWay& choice) {
  constexpr auto kMemory = static_cast<size_t>(Reason::kGpuMemory);
  if (!RestsOnPredictions(way) || (!options.terse && choice.decision.refused_devices[kMemory] == 0))
    return absl::OkStatus();
  JobSpec alone = way;
  if (!AloneByExpectation(alone)) return absl::OkStatus();
  way_view = ViewJob(alone, options.probe_outside, std::move(way_view));
  const uint64_t request = RequestOn(ledger, way_view);
  if (refused.Find(request) != nullptr) return absl::OkStatus();
  scorer.SetJob(way_view);
  HORUS_RETURN_IF_ERROR(search.Run(ledger, way_view, selected(), result, /*why=*/false));
  if (result.best.slots.empty()) {
    refused.Insert(request, choice.decision);
    return absl::OkStatus();
  }
  choice.decision = {.job = way.id};
  HORUS_RETURN_IF_ERROR(explainer.Placed(ledger, way_view, result, choice.decision));
  choice.decision.probe = true;
  HORUS_RETURN_IF_ERROR(ChooseMode(way_view, result.best.slots, choice.decision));
  choice.slots = std::move(result.best.slots);
  // Its bound stays unknown: who asks what the job stated plans it alone again, and not with what is expected as bound.
  choice.job = std::make_shared<JobSpec>(std::move(alone));
  choice.job->exclusive_chosen = !std::exchange(choice.job->exclusive, true);
  return absl::OkStatus();
}

absl::Status Placer::Impl::CheckSettled(const JobSpec& job) const {
  if (!job.alternatives.empty()) {
    return InvalidArgument("job %s: alternatives: expected none outside a plain plan, found %d",
                           IdAndName(job.id, job.name), job.alternatives.size());
  }
  if (IsOpen(job)) {
    return InvalidArgument("job %s: demands: expected to be known outside a plain plan, found one to be probed",
                           IdAndName(job.id, job.name));
  }
  return absl::OkStatus();
}

absl::Status Placer::Impl::Choose(const JobSpec& job, ChosenWay& choice) {
  if (job.alternatives.empty()) return DecideWay(job, choice);
  for (size_t i = 0; i < job.alternatives.size(); ++i) {
    ChosenWay next;
    HORUS_RETURN_IF_ERROR(DecideWay(WayOf(job, i), next));
    next.decision.alternative = static_cast<int32_t>(i);
    if (next.job != nullptr) next.worth = WorthOf(job, i, next.decision, options.gpu_price);
    // Of refusals the first that is none for good.
    const bool better = next.job != nullptr ? choice.job == nullptr || next.worth > choice.worth
                                            : choice.job == nullptr && next.decision.verdict < choice.decision.verdict;
    if (i == 0 || better) choice = std::move(next);
  }
  return absl::OkStatus();
}

// One job against nodes one by one.

absl::Status Placer::Impl::OnNode(Search& with, const Ledger& on, const JobView& view, uint32_t node_row,
                                  NodeAnswer& answer) {
  const std::vector<uint32_t> one = {node_row};
  HORUS_RETURN_IF_ERROR(with.Run(on, view, &one, result));
  answer = {.cost = result.best.cost, .known = true};
  Decision decision;
  if (!result.best.slots.empty()) {
    // Whether several GPUs pay is known of a whole job alone, not of a task of one.
    const bool whole = GpuCount(*view.job) > 1 && !view.types.front().tenant.distributed;
    if (!whole || !scorer.policy().maximises_work()) return absl::OkStatus();
    HORUS_RETURN_IF_ERROR(explainer.Placed(on, view, result, decision));
    if (!explainer.GangPays(view, result, decision)) answer.reason = Reason::kPolicy;
    return absl::OkStatus();
  }
  HORUS_RETURN_IF_ERROR(explainer.Refused(on, view, one, result, decision));
  answer.reason = decision.reason;
  return absl::OkStatus();
}

absl::Status Placer::Impl::OnEach(Search& with, const Ledger& on, const JobView& view, std::span<const uint32_t> rows,
                                  std::vector<NodeAnswer>& answers) {
  scorer.SetJob(view);
  if (with.CanRunEach(view)) return with.RunEach(on, view, rows, answers);
  answers.resize(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) HORUS_RETURN_IF_ERROR(OnNode(with, on, view, rows[i], answers[i]));
  return absl::OkStatus();
}

absl::Status Placer::Impl::ByExpectation(Search& with, const Ledger& on, const JobSpec& way,
                                         std::span<const uint32_t> rows, std::vector<NodeAnswer>& answers) {
  JobSpec job = way;
  if (!AloneByExpectation(job)) return absl::OkStatus();
  std::vector<size_t> at;
  std::vector<uint32_t> asked;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (answers[i].reason == Reason::kNone) continue;
    at.push_back(i);
    asked.push_back(rows[i]);
  }
  if (asked.empty()) return absl::OkStatus();
  JobView view = ViewJob(job, options.probe_outside);
  JobSpec task = job;
  task.tasks = 1;
  view.job = &task;
  std::vector<NodeAnswer> alone;
  HORUS_RETURN_IF_ERROR(OnEach(with, on, view, asked, alone));
  for (size_t i = 0; i < at.size(); ++i) {
    if (alone[i].reason == Reason::kNone) answers[at[i]] = alone[i];
  }
  return absl::OkStatus();
}

absl::Status Placer::Impl::VerdictsOf(const JobSpec& way, std::span<const uint32_t> rows, NodeVerdicts& verdicts) {
  JobView view = ViewJob(way, options.probe_outside);  // of the whole gang: its devices must suit one
  JobSpec task = way;
  task.tasks = 1;
  view.job = &task;
  std::vector<size_t> at;       // positions in `rows` that are asked; empty = all
  std::vector<uint32_t> asked;  // their rows
  const bool all = std::ranges::find(verdicts.verdict, Verdict::kPlace) == verdicts.verdict.end();
  for (size_t i = 0; i < rows.size() && !all; ++i) {
    if (verdicts.verdict[i] == Verdict::kPlace) continue;
    at.push_back(i);
    asked.push_back(rows[i]);
  }
  std::vector<NodeAnswer> now;
  HORUS_RETURN_IF_ERROR(OnEach(search, ledger, view, all ? rows : asked, now));
  HORUS_RETURN_IF_ERROR(ByExpectation(search, ledger, way, all ? rows : asked, now));
  std::vector<size_t> left_at;  // in `now`
  std::vector<uint32_t> left;
  for (size_t i = 0; i < now.size(); ++i) {
    const size_t row = all ? i : at[i];
    if (now[i].reason == Reason::kNone) {
      verdicts.verdict[row] = Verdict::kPlace;
      verdicts.reason[row] = Reason::kNone;
      verdicts.cost[row] = now[i].cost;
    } else if (verdicts.verdict[row] == Verdict::kReject) {
      left_at.push_back(i);
      left.push_back(rows[row]);
    }
  }
  if (left.empty()) return absl::OkStatus();
  emptied.FollowEmptied(ledger);
  std::vector<NodeAnswer> empty, certain;
  HORUS_RETURN_IF_ERROR(OnEach(emptied_search, emptied, view, left, empty));
  HORUS_RETURN_IF_ERROR(ByExpectation(emptied_search, emptied, way, left, empty));
  if (RestsOnPredictions(task)) {
    const JobSpec job = CertainOf(task);
    JobView certain_view = ViewJob(CertainOf(way), options.probe_outside);
    certain_view.job = &job;
    HORUS_RETURN_IF_ERROR(OnEach(emptied_search, emptied, certain_view, left, certain));
  }
  for (size_t i = 0; i < left.size(); ++i) {
    const size_t row = all ? left_at[i] : at[left_at[i]];
    const bool never = (certain.empty() ? empty : certain)[i].reason != Reason::kNone;
    if (never && verdicts.reason[row] != Reason::kNone) continue;  // rejected by a way before
    verdicts.verdict[row] = never ? Verdict::kReject : Verdict::kDefer;
    verdicts.reason[row] = empty[i].reason != Reason::kNone ? empty[i].reason : now[left_at[i]].reason;
  }
  return absl::OkStatus();
}

Appraiser Placer::appraiser() const {
  return {impl_->scorer.shared_model(), impl_->scorer.limits(), impl_->options.rack_oversubscription};
}

absl::StatusOr<Appraisal> Placer::Appraise(const Cluster& cluster, const JobSpec& job,
                                           std::span<const Slot> slots) const {
  if (cluster.HasJob(job.id)) {
    return AlreadyExists("job %s: runs in this cluster already", IdAndName(job.id, job.name));
  }
  HORUS_RETURN_IF_ERROR(CheckConfidence(job, impl_->scorer.model()));
  return appraiser().Of(cluster, job, slots);
}

absl::Status Placer::Impl::NameNodes(const Cluster& cluster, std::span<const NodeId> asked) {
  const ClusterRows& rows = cluster.rows();
  if (named.structure == rows.structure && std::ranges::equal(named.ids, asked)) return absl::OkStatus();
  Named now{.structure = rows.structure, .ids = {asked.begin(), asked.end()}};
  now.rows.reserve(asked.size());
  for (const NodeId id : asked) {
    const uint32_t* row = rows.node_of.Find(id);
    if (row == nullptr) return NotFound("node %d: not in this cluster", id);
    now.rows.push_back(*row);
  }
  named = std::move(now);
  return absl::OkStatus();
}

absl::StatusOr<NodeVerdicts> Placer::Verdicts(const Cluster& cluster, const JobSpec& job, std::span<const NodeId> nodes,
                                              const ReadFn& read) {
  Impl& my = *impl_;
  HORUS_RETURN_IF_ERROR(ValidateJob(job));
  HORUS_RETURN_IF_ERROR(CheckTypes(job, cluster.catalogue().size()));
  HORUS_RETURN_IF_ERROR(CheckConfidence(job, my.scorer.model()));
  HORUS_RETURN_IF_ERROR(my.NameNodes(cluster, nodes));
  const std::span<const uint32_t> rows = my.named.rows;
  my.ledger.Follow(cluster);
  if (read != nullptr) read();
  std::vector<JobSpec> ways;
  for (size_t i = 0; i < job.alternatives.size(); ++i) ways.push_back(WayOf(job, i));
  if (ways.empty()) ways.push_back(job);
  NodeVerdicts verdicts;
  verdicts.verdict.assign(rows.size(), Verdict::kReject);
  verdicts.cost.assign(rows.size(), std::numeric_limits<double>::quiet_NaN());
  verdicts.reason.assign(rows.size(), Reason::kNone);
  for (const JobSpec& way : ways) HORUS_RETURN_IF_ERROR(my.VerdictsOf(way, rows, verdicts));
  return verdicts;
}

}  // namespace horus
