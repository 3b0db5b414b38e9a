// SPDX-License-Identifier: Apache-2.0
// Plans: jobs in order, each searched in the ledger that holds the ones before it.
#include "place/placer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "base/status.h"
#include "place/admit.h"
#include "place/alternatives.h"
#include "place/engine.h"
#include "place/explain.h"
#include "place/ledger.h"
#include "place/scorer.h"
#include "place/search.h"

namespace horus {
namespace {

constexpr size_t kMostKept = 4096;     // answers for requests that never fit; each has about 500 bytes
constexpr size_t kProgressStep = 256;  // jobs between two calls: well under 100 ms

// Positions of the jobs in planning order; refuses jobs that are wrong, resident or given twice.
// Those of `gone` do not count as resident.
absl::StatusOr<std::vector<uint32_t>> PlanningOrder(const Cluster& cluster, std::span<const JobSpec> jobs,
                                                    const IdMap<bool>* gone = nullptr) {
  std::vector<uint32_t> order(jobs.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return jobs[a].id < jobs[b].id; });
  for (size_t i = 0; i < order.size(); ++i) {
    const JobSpec& job = jobs[order[i]];
    HORUS_RETURN_IF_ERROR(ValidateJob(job));
    HORUS_RETURN_IF_ERROR(CheckTypes(job, cluster.catalogue().size()));
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

}  // namespace

struct Placer::Impl {
  Impl(std::shared_ptr<const InterferenceModel> model, std::unique_ptr<const Policy> policy, const FitLimits& limits,
       const PlacerOptions& wanted)
      : options(wanted),
        scorer(std::move(model), std::move(policy), limits, wanted.memo_bytes / 2, wanted.exhaustive),
        search(scorer, wanted.memo_bytes / 4),
        emptied_search(scorer, wanted.memo_bytes / 4),
        explainer(scorer) {
    search.set_rack_oversubscription(wanted.rack_oversubscription);
    emptied_search.set_rack_oversubscription(wanted.rack_oversubscription);
  }

  absl::Status SelectNodes(const Cluster& cluster, std::optional<std::span<const NodeId>> subset);
  // What the subset leaves out: devices, or nodes for a job without GPUs.
  [[nodiscard]] uint32_t Excluded(const JobView& view) const {
    return IsCpuOnly(*view.job) ? excluded_nodes : excluded_devices;
  }
  [[nodiscard]] bool IsUnknownAt(const JobSpec& job, const PlacedSlot& slot) const {
    if (slot.device == kNoDevice) return false;
    const Demand* demand = FindDemand(job, ledger.state(ledger.device_of(slot)).type);
    return demand != nullptr && IsUnknown(*demand);
  }
  // A job's way to run, the decision on it, and where it goes.
  struct Choice {
    Decision decision;
    std::vector<PlacedSlot> slots;
    std::shared_ptr<JobSpec> job;  // null unless placed
    double worth = 0;
  };
  absl::Status DecideWay(const JobSpec& way, Choice& choice);
  // Refuses what only MakePlan decides: ways to run, and probes.
  absl::Status CheckSettled(const JobSpec& job) const;
  // The way of most worth among those that can be placed; ties go to the first.
  absl::Status Choose(const JobSpec& job, Choice& choice);
  absl::StatusOr<Decision> Decide(const JobView& view);
  // Decides the jobs in that order on the ledger as it is; books all but the last, or all.
  absl::Status PlanJobs(std::span<const JobSpec> jobs, std::span<const uint32_t> order, bool book_last,
                        const ProgressFn& progress, Plan& plan);
  // Appends those nodes, once each, as the ledger follows them.
  void AddSeen(std::span<const uint32_t> node_rows, Plan& plan) const;
  absl::StatusOr<Decision> DecideEmptied(const JobView& view);
  // The cost of the job's place on one node, or the reason why it has none.
  // Of one way to run a job, for nodes that no way before took.
  absl::Status VerdictsOf(const JobSpec& way, std::span<const uint32_t> rows, bool first, NodeVerdicts& verdicts);
  absl::Status OnNode(Search& with, const Ledger& on, const JobView& view, uint32_t node_row, double& cost,
                      Reason& reason);

  [[nodiscard]] const std::vector<uint32_t>* selected() const { return subset ? &nodes : nullptr; }
  [[nodiscard]] std::span<const uint32_t> considered(const Ledger& of) const { return subset ? nodes : of.order(); }

  PlacerOptions options;
  Scorer scorer;
  Search search;
  Search emptied_search;
  Explainer explainer;
  Ledger ledger;
  Ledger emptied;
  bool subset = false;            // only `nodes` are considered
  std::vector<uint32_t> nodes;    // rows of the subset, ascending id
  uint32_t excluded_devices = 0;  // of nodes outside the subset
  uint32_t excluded_nodes = 0;
  SearchResult result;
  IdMap<Decision> emptied_decisions;  // by JobView::request, for all nodes of the emptied ledger as it is
  uint64_t emptied_at = 0;            // Ledger::changes() of the emptied ledger then
  IdMap<Decision> refused;            // the same, while the ledger stays as it is
  uint64_t refused_at = 0;            // Ledger::changes() then
};

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

// Of the cluster empty and up: kPlace, or a rejection that tells what refuses the job for good.
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
  }
  emptied_decisions.Insert(view.request, decision);
  return decision;
}

absl::StatusOr<Decision> Placer::Impl::Decide(const JobView& view) {
  if (std::exchange(refused_at, ledger.changes()) != ledger.changes()) refused.clear();
  Decision decision;
  const uint64_t request = RequestOn(ledger, view);
  if (const Decision* known = refused.Find(request)) {
    decision = *known;
    decision.job = view.job->id;
    return decision;
  }
  decision.job = view.job->id;
  decision.cpu_only = IsCpuOnly(*view.job);
  scorer.SetJob(view);
  HORUS_RETURN_IF_ERROR(search.Run(ledger, view, selected(), result));
  if (!result.best.slots.empty()) {
    HORUS_RETURN_IF_ERROR(explainer.Placed(ledger, view, result, decision));
    decision.probe = options.probe_outside && IsUnknownAt(*view.job, result.best.slots.front());
    return decision;
  }
  result.refused[static_cast<size_t>(Reason::kNotInSubset)] = Excluded(view);
  decision.refused_devices = result.refused;
  HORUS_RETURN_IF_ERROR(explainer.Refused(ledger, view, considered(ledger), result, decision));
  decision.verdict = Verdict::kDefer;
  HORUS_ASSIGN_OR_RETURN(Decision emptied_decision, DecideEmptied(view));
  if (emptied_decision.verdict == Verdict::kReject) {
    decision = std::move(emptied_decision);
    decision.job = view.job->id;
  }
  refused.Insert(request, decision);
  return decision;
}

Placer::Placer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Placer::~Placer() = default;

absl::StatusOr<std::unique_ptr<Placer>> Placer::Create(std::shared_ptr<const InterferenceModel> model,
                                                       std::unique_ptr<const Policy> policy,
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
      .max_tenants = options.max_tenants,
      .mem_headroom_mib = options.mem_headroom_mib,
      .mem_overcommit = options.mem_overcommit};
  return std::unique_ptr<Placer>(
      new Placer(std::make_unique<Impl>(std::move(model), std::move(policy), limits, options)));
}

void Placer::Impl::AddSeen(std::span<const uint32_t> node_rows, Plan& plan) const {
  for (const uint32_t row : node_rows) plan.seen.push_back({ledger.spec(row).id, ledger.node(row).version});
  std::sort(plan.seen.begin(), plan.seen.end(), [](const SeenNode& a, const SeenNode& b) { return a.node < b.node; });
  plan.seen.erase(std::unique(plan.seen.begin(), plan.seen.end()), plan.seen.end());
}

absl::Status Placer::Impl::DecideWay(const JobSpec& way, Choice& choice) {
  const JobView view = ViewJob(way, options.probe_outside);
  HORUS_ASSIGN_OR_RETURN(choice.decision, Decide(view));
  if (choice.decision.verdict != Verdict::kPlace) return absl::OkStatus();
  choice.slots = result.best.slots;
  choice.job = std::make_shared<JobSpec>(way);
  choice.job->exclusive |= choice.decision.probe;
  return absl::OkStatus();
}

absl::Status Placer::Impl::CheckSettled(const JobSpec& job) const {
  if (!job.alternatives.empty()) {
    return InvalidArgument("job %s: alternatives: expected none outside a plain plan, found %d",
                           IdAndName(job.id, job.name), job.alternatives.size());
  }
  const auto unknown = [](const TypeDemand& entry) { return IsUnknown(entry.demand); };
  if (options.probe_outside && std::any_of(job.demands.begin(), job.demands.end(), unknown)) {
    return InvalidArgument("job %s: demands: expected to be known outside a plain plan, found one to be probed",
                           IdAndName(job.id, job.name));
  }
  return absl::OkStatus();
}

absl::Status Placer::Impl::Choose(const JobSpec& job, Choice& choice) {
  if (job.alternatives.empty()) return DecideWay(job, choice);
  for (size_t i = 0; i < job.alternatives.size(); ++i) {
    Choice next;
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
  HORUS_ASSIGN_OR_RETURN(const std::vector<uint32_t> order, PlanningOrder(cluster, jobs));
  HORUS_RETURN_IF_ERROR(my.SelectNodes(cluster, subset));
  my.ledger.Follow(cluster);
  if (read != nullptr) read();
  Plan plan;
  HORUS_RETURN_IF_ERROR(my.PlanJobs(jobs, order, /*book_last=*/false, progress, plan));
  return plan;
}

absl::Status Placer::Impl::OnNode(Search& with, const Ledger& on, const JobView& view, uint32_t node_row, double& cost,
                                  Reason& reason) {
  if (with.CanRunOne(view)) return with.RunOne(on, view, node_row, cost, reason);
  const std::vector<uint32_t> one = {node_row};
  HORUS_RETURN_IF_ERROR(with.Run(on, view, &one, result));
  if (!result.best.slots.empty()) {
    cost = result.best.cost;
    return absl::OkStatus();
  }
  Decision decision;
  HORUS_RETURN_IF_ERROR(explainer.Refused(on, view, one, result, decision));
  reason = decision.reason;
  return absl::OkStatus();
}

absl::Status Placer::Impl::VerdictsOf(const JobSpec& way, std::span<const uint32_t> rows, bool first,
                                      NodeVerdicts& verdicts) {
  constexpr double kNoCost = std::numeric_limits<double>::quiet_NaN();
  JobView view = ViewJob(way, options.probe_outside);  // of the whole gang: its devices must suit one
  JobSpec task = way;
  task.tasks = 1;
  view.job = &task;
  if (first) {
    verdicts.verdict.assign(rows.size(), Verdict::kReject);
    verdicts.cost.assign(rows.size(), kNoCost);
    verdicts.reason.assign(rows.size(), Reason::kNone);
  }
  std::vector<Reason> reasons(rows.size(), Reason::kNone);
  bool any_refused = false;
  scorer.SetJob(view);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!first && verdicts.verdict[i] == Verdict::kPlace) continue;
    HORUS_RETURN_IF_ERROR(OnNode(search, ledger, view, rows[i], verdicts.cost[i], reasons[i]));
    any_refused |= reasons[i] != Reason::kNone;
    if (reasons[i] == Reason::kNone) {
      verdicts.verdict[i] = Verdict::kPlace;
      verdicts.reason[i] = Reason::kNone;
    }
  }
  if (!any_refused) return absl::OkStatus();
  emptied.FollowEmptied(ledger);
  scorer.SetJob(view);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (reasons[i] == Reason::kNone || (!first && verdicts.verdict[i] == Verdict::kDefer)) continue;
    double cost = kNoCost;
    Reason reason = Reason::kNone;
    HORUS_RETURN_IF_ERROR(OnNode(emptied_search, emptied, view, rows[i], cost, reason));
    if (!first && reason != Reason::kNone) continue;  // rejected as before
    verdicts.verdict[i] = reason == Reason::kNone ? Verdict::kDefer : Verdict::kReject;
    verdicts.reason[i] = reason == Reason::kNone ? reasons[i] : reason;
  }
  return absl::OkStatus();
}

absl::StatusOr<NodeVerdicts> Placer::Verdicts(const Cluster& cluster, const JobSpec& job, std::span<const NodeId> nodes,
                                              const ReadFn& read) {
  Impl& my = *impl_;
  HORUS_RETURN_IF_ERROR(ValidateJob(job));
  HORUS_RETURN_IF_ERROR(CheckTypes(job, cluster.catalogue().size()));
  std::vector<uint32_t> rows;
  for (const NodeId id : nodes) {
    const uint32_t* row = cluster.rows().node_of.Find(id);
    if (row == nullptr) {
      return MakeError(absl::StatusCode::kNotFound, "node %d: not in this cluster", id);
    }
    rows.push_back(*row);
  }
  my.ledger.Follow(cluster);
  if (read != nullptr) read();
  std::vector<JobSpec> ways;
  for (size_t i = 0; i < job.alternatives.size(); ++i) ways.push_back(WayOf(job, i));
  if (ways.empty()) ways.push_back(job);
  NodeVerdicts verdicts;
  for (size_t i = 0; i < ways.size(); ++i) HORUS_RETURN_IF_ERROR(my.VerdictsOf(ways[i], rows, i == 0, verdicts));
  return verdicts;
}

const InterferenceModel& Placer::model() const { return impl_->scorer.model(); }
const Policy& Placer::policy() const { return impl_->scorer.policy(); }
const PlacerOptions& Placer::options() const { return impl_->options; }
double Placer::slowdown_bound() const { return impl_->scorer.limits().slowdown_bound; }

uint64_t Placer::bytes_held() const {
  return sizeof(*this) + sizeof(Impl) + impl_->scorer.bytes_held() + impl_->ledger.bytes_held() +
         impl_->emptied.bytes_held() + impl_->search.bytes_held() + impl_->emptied_search.bytes_held() +
         impl_->nodes.capacity() * sizeof(uint32_t);
}

Engine::Engine(Placer& placer) : my_(*placer.impl_) {}

absl::Status Engine::Start(const Cluster& cluster, std::optional<std::span<const NodeId>> subset) {
  HORUS_RETURN_IF_ERROR(my_.SelectNodes(cluster, subset));
  my_.ledger.Follow(cluster);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint32_t>> Engine::Order(const Cluster& cluster, std::span<const JobSpec> jobs,
                                                    const IdMap<bool>* gone) const {
  if (jobs.size() > my_.options.max_jobs) {
    return MakeError(absl::StatusCode::kResourceExhausted, "plan: expected at most %d jobs, found %d",
                     my_.options.max_jobs, jobs.size());
  }
  for (const JobSpec& job : jobs) HORUS_RETURN_IF_ERROR(my_.CheckSettled(job));
  return PlanningOrder(cluster, jobs, gone);
}

absl::Status Engine::PlanJobs(const Cluster& /*cluster*/, std::span<const JobSpec> jobs,
                              std::span<const uint32_t> order, const ProgressFn& progress, Plan& plan) {
  return my_.PlanJobs(jobs, order, /*book_last=*/true, progress, plan);
}

absl::StatusOr<Decision> Engine::Decide(const Cluster& /*cluster*/, const JobView& view) { return my_.Decide(view); }

absl::Status Engine::Find(const JobView& view, const std::vector<uint32_t>* nodes, SearchResult& found) {
  my_.scorer.SetJob(view);
  return my_.search.Run(my_.ledger, view, nodes != nullptr ? nodes : my_.selected(), found);
}

absl::Status Engine::Price(const JobView& view, std::span<const PlacedSlot> slots, double& cost) {
  const Policy& policy = my_.scorer.policy();
  my_.scorer.SetJob(view);
  cost = 0;
  for (const PlacedSlot& slot : slots) {
    DeviceVerdict verdict;
    if (slot.device != kNoDevice) {
      const uint32_t state = my_.ledger.state_id(my_.ledger.device_of(slot));
      HORUS_RETURN_IF_ERROR(my_.scorer.Weigh(my_.ledger.states(), state, verdict));
    }
    cost += verdict.cost;
    if (policy.uses_place()) cost += policy.ScorePlace(PlaceOf(my_.ledger, slot.node_row, view.job->id, slot.device));
  }
  return absl::OkStatus();
}

absl::StatusOr<Decision> Engine::Explain(const JobView& view, const SearchResult& found) {
  Decision decision;
  decision.job = view.job->id;
  decision.cpu_only = IsCpuOnly(*view.job);
  my_.scorer.SetJob(view);
  HORUS_RETURN_IF_ERROR(my_.explainer.Placed(my_.ledger, view, found, decision));
  return decision;
}

void Engine::AddSeen(std::span<const uint32_t> node_rows, Plan& plan) const { my_.AddSeen(node_rows, plan); }
const SearchResult& Engine::found() const { return my_.result; }
const Policy& Engine::policy() const { return my_.scorer.policy(); }
Ledger& Engine::ledger() { return my_.ledger; }
Scorer& Engine::scorer() { return my_.scorer; }
std::span<const uint32_t> Engine::nodes() const { return my_.considered(my_.ledger); }

}  // namespace horus
