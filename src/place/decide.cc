// SPDX-License-Identifier: Apache-2.0
// One job: the way to run it, its place or what refuses it, now and on the empty cluster; caps and modes; nodes one by
// one.

#include "base/hash.h"
#include "interference/laws.h"
#include "place/engine.h"
#include "place/policies/policies.h"
#include "place/search/admit.h"

namespace horus {
namespace {

constexpr size_t kMostKept = 4096;  // answers for requests that never fit; each has about 800 bytes

// Caps it; demands that the cap alone stretches beyond `most` are gone. False: none is left.
bool Cap(JobSpec& job, int32_t cap_pct, double most) {
  job.sm_cap_pct = cap_pct;
  std::erase_if(job.demands, [&](const TypeDemand& entry) { return CapStretch(AsRun(job, entry.demand)) > most; });
  return !job.demands.empty();
}

}  // namespace

bool Engine::IsOpen(const JobSpec& job) const {
  const auto unknown = [](const TypeDemand& entry) { return IsUnknown(entry.demand); };
  return !job.alternatives.empty() || (options_.probe_outside && std::ranges::any_of(job.demands, unknown));
}

bool Engine::HasOtherWays(const JobSpec& job) const {
  return options_.sm_caps || RestsOnPredictions(job) || IsOpen(job);
}

bool Engine::IsProbe(const JobSpec& job, const PlacedSlot& slot) const {
  if (!options_.probe_outside || slot.device == kNoDevice) return false;
  const Demand* demand = FindDemand(job, ledger_.state(ledger_.device_of(slot)).type);
  return demand != nullptr && IsUnknown(*demand);
}

absl::Status Engine::Find(const JobView& view, const std::vector<uint32_t>* nodes, SearchResult& found) {
  HORUS_RETURN_IF_ERROR(GoOn());
  scorer_.SetJob(view);
  return search_.Run(ledger_, view, nodes != nullptr ? nodes : selected(), found,
                     /*why=*/false);
}

absl::Status Engine::Price(const JobView& view, Placement& placement) {
  scorer_.SetJob(view);
  return search_.PriceSlots(ledger_, view, placement);
}

absl::StatusOr<Decision> Engine::Explain(const JobView& view, const SearchResult& found) {
  Decision decision;
  decision.job = view.job->id;
  decision.cpu_only = IsCpuOnly(*view.job);
  scorer_.SetJob(view);
  HORUS_RETURN_IF_ERROR(explainer_.Placed(ledger_, view, found, decision));
  HORUS_RETURN_IF_ERROR(ChooseMode(view, found.best.slots, decision));
  return decision;
}

// Of the cluster empty and up: kPlace, or what refuses the job there: for good, unless a prediction alone says so.
absl::StatusOr<Decision> Engine::DecideEmptied(const JobView& view) {
  emptied_.FollowEmptied(ledger_);
  if (std::exchange(emptied_at_, emptied_.changes()) != emptied_.changes() || emptied_decisions_.size() >= kMostKept)
    emptied_decisions_.clear();
  if (const Decision* known = emptied_decisions_.Find(view.request)) return *known;
  SearchResult found;
  HORUS_RETURN_IF_ERROR(emptied_search_.Run(emptied_, view, selected(), found));
  Decision decision{.verdict = Verdict::kPlace};
  if (found.best.slots.empty()) {
    decision.verdict = Verdict::kReject;
    found.refused[static_cast<size_t>(Reason::kNotInSubset)] = Excluded(view);
    decision.cpu_only = IsCpuOnly(*view.job);
    decision.refused_devices = found.refused;
    HORUS_RETURN_IF_ERROR(explainer_.Refused(emptied_, view, considered(emptied_), found, decision));
    const auto fits = [&](const JobSpec& job) -> absl::StatusOr<bool> {
      const JobView other = ViewJob(job, options_.probe_outside);
      scorer_.SetJob(other);
      HORUS_RETURN_IF_ERROR(emptied_search_.Run(emptied_, other, selected(), found, /*why=*/false));
      scorer_.SetJob(view);
      return !found.best.slots.empty();
    };
    JobSpec alone = *view.job;
    bool waits = false;  // for an idle GPU
    if (AloneByExpectation(alone)) HORUS_SET_OR_RETURN(waits, fits(alone));
    if (waits) {
      decision = {.verdict = Verdict::kPlace};
    } else if (RestsOnPredictions(*view.job)) {
      HORUS_ASSIGN_OR_RETURN(decision.predicted_never, fits(CertainOf(*view.job)));
      if (decision.predicted_never) decision.verdict = Verdict::kDefer;
    }
  }
  emptied_decisions_.Insert(view.request, decision);
  return decision;
}

bool Engine::MayBeCapped(const JobSpec& job) const {
  return scorer_.model().knows_caps() && job.sm_cap_pct == 0 && !job.exclusive && !IsCpuOnly(job);
}

double Engine::MostCapped(const JobSpec& job) const {
  return job.slowdown_bound > 0 ? static_cast<double>(job.slowdown_bound)
                                : std::min(GuardOf(job.kind), scorer_.limits().slowdown_bound);
}

// Neighbours that cannot bear the whole job may bear a part of it. The largest part comes first; whoever would keep
// less of its speed than any tenant must, cap and neighbours together, waits instead.
absl::Status Engine::PlaceCapped(const JobView& view, Decision& decision) {
  const JobSpec& job = *view.job;
  const auto refused_by = [&](Reason reason) { return result_.refused[static_cast<size_t>(reason)] > 0; };
  const bool by_sharing = options_.terse || refused_by(Reason::kSlowdownNeighbour) ||
                          refused_by(Reason::kSlowdownOwn) || refused_by(Reason::kPolicy);
  if (!by_sharing || !MayBeCapped(job)) return absl::OkStatus();
  SearchResult whole = std::exchange(result_, SearchResult());
  JobSpec capped = job;
  const double most = MostCapped(job);
  const Decision asked = decision;
  for (const int32_t cap_pct : kSmCapsPct) {
    if (!Cap(capped, cap_pct, most)) break;
    capped_view_ = ViewJob(capped, options_.probe_outside, std::move(capped_view_));
    scorer_.SetJob(capped_view_);
    HORUS_RETURN_IF_ERROR(search_.Run(ledger_, capped_view_, selected(), result_, /*why=*/false));
    if (result_.best.slots.empty()) continue;
    HORUS_RETURN_IF_ERROR(explainer_.Placed(ledger_, capped_view_, result_, decision));
    const bool pays = GpuCount(job) == 1 || !scorer_.policy().maximises_work() ||
                      explainer_.GangPays(capped_view_, result_, decision);
    if (pays && decision.sm_cap_slowdown * decision.own.estimate <= static_cast<float>(most))
      return ChooseMode(capped_view_, result_.best.slots, decision);
    decision = asked;
  }
  result_ = std::move(whole);
  scorer_.SetJob(view);
  return absl::OkStatus();
}

absl::StatusOr<double> Engine::GainOf(const JobSpec& next, uint32_t device) {
  const JobView view = ViewJob(next, options_.probe_outside);
  if (IsCpuOnly(next) || BarsFrom(ledger_, device, view) != Reason::kNone) return 0.0;
  scorer_.SetJob(view);
  HORUS_ASSIGN_OR_RETURN(const Evaluation evaluation, scorer_.Evaluate(ledger_.states(), ledger_.state_id(device)));
  if (evaluation.verdict.reason != Reason::kNone) return 0.0;
  const DeviceCandidate& candidate = evaluation.candidate;
  double gain = 0;
  for (size_t i = 0; i < candidate.after.size(); ++i) {
    const TenantClass& tenant = *candidate.tenants[i];
    const auto share = [&](const Slowdown& slowed) { return 1 / WorkSlowdown(tenant.demand, slowed.estimate); };
    gain += static_cast<double>(tenant.worth) *
            (share(candidate.after[i]) - (i < candidate.residents() ? share(candidate.before[i]) : 0));
  }
  return std::max(gain, 0.0);
}

// Either mode is tried with those who wait, or else a copy of the job, beside it.
absl::Status Engine::GainsBeside(const JobView& view, std::span<const PlacedSlot> slots, uint32_t device,
                                 Decision& decision) {
  std::vector<const JobSpec*> others = waiting_;
  std::erase_if(others, [](const JobSpec* job) { return !job->alternatives.empty(); });  // who knows how they will run?
  decision.mode_why = others.empty() ? ModeReason::kCopy : ModeReason::kWaiting;
  if (others.empty()) others.push_back(view.job);
  const size_t mark = ledger_.Mark();
  for (const bool mps : {false, true}) {
    JobSpec first = *view.job;
    first.mps_chosen = mps;
    ledger_.Place(first, slots);
    double total = 0;
    for (const JobSpec* other : others) {
      HORUS_ASSIGN_OR_RETURN(double gain, GainOf(*other, device));
      if (mps && options_.sm_caps && gain == 0 && MayBeCapped(*other)) {
        JobSpec capped = *other;
        for (const int32_t cap_pct : kSmCapsPct) {
          if (gain > 0 || !Cap(capped, cap_pct, MostCapped(*other))) break;
          HORUS_ASSIGN_OR_RETURN(gain, GainOf(capped, device));
        }
      }
      total += gain;
    }
    ledger_.UndoTo(mark);
    decision.mode_gains[mps ? 1 : 0] = static_cast<float>(total / static_cast<double>(others.size()));
  }
  scorer_.SetJob(view);
  return absl::OkStatus();
}

absl::Status Engine::ChooseMode(const JobView& view, std::span<const PlacedSlot> slots, Decision& decision) {
  std::optional<uint32_t> empty;
  bool settled = false, can_either = false;
  for (const PlacedSlot& slot : slots) {
    if (slot.device == kNoDevice) return absl::OkStatus();
    const SharingMode mode = ledger_.state(ledger_.device_of(slot)).mode;
    if (mode == SharingMode::kTimeSliceOrMps) {
      empty = ledger_.device_of(slot);
    } else {
      decision.mode = mode;
      settled = true;
    }
    can_either |=
        mode != SharingMode::kTimeSlice &&
        ledger_.spec(slot.node_row).devices[static_cast<size_t>(slot.device)].mode == SharingMode::kTimeSliceOrMps;
  }
  if (empty && !settled) {
    decision.mode = SharingMode::kTimeSlice;  // of equals: a fault of one job does not end the others
    if (view.job->sm_cap_pct > 0) {
      decision.mode_why = ModeReason::kCap;
      decision.mode = SharingMode::kMps;
    } else if (decision.probe || rounds_ != nullptr || view.On(ledger_.state(*empty).type)->tenant.exclusive) {
      decision.mode_why = ModeReason::kAlone;
    } else {
      HORUS_RETURN_IF_ERROR(GainsBeside(view, slots, *empty, decision));
      if (decision.mode_gains[1] > decision.mode_gains[0]) decision.mode = SharingMode::kMps;
    }
  }
  decision.mps_chosen = can_either && decision.mode == SharingMode::kMps;
  return absl::OkStatus();
}

absl::StatusOr<Decision> Engine::Decide(const JobView& view, bool sm_caps) {
  HORUS_RETURN_IF_ERROR(GoOn());
  if (std::exchange(refused_at_, ledger_.changes()) != ledger_.changes()) refused_.clear();
  Decision decision;
  const uint64_t request = CombineHash(RequestOn(ledger_, view), uint64_t{sm_caps});
  if (const Decision* known = refused_.Find(request)) {
    decision = *known;
    decision.job = view.job->id;
    return decision;
  }
  decision.job = view.job->id;
  decision.cpu_only = IsCpuOnly(*view.job);
  scorer_.SetJob(view);
  HORUS_RETURN_IF_ERROR(search_.Run(ledger_, view, selected(), result_, !options_.terse));
  if (!result_.best.slots.empty()) {
    HORUS_RETURN_IF_ERROR(explainer_.Placed(ledger_, view, result_, decision));
    decision.probe = IsProbe(*view.job, result_.best.slots.front());
    if (GpuCount(*view.job) == 1 || !scorer_.policy().maximises_work() ||
        explainer_.GangPays(view, result_, decision)) {
      HORUS_RETURN_IF_ERROR(ChooseMode(view, result_.best.slots, decision));
      return decision;
    }
    const auto declined = static_cast<uint32_t>(result_.best.slots.size());
    result_ = SearchResult();
    result_.refused[static_cast<size_t>(Reason::kPolicy)] = declined;
    decision = {.job = view.job->id};
  }
  if (sm_caps) HORUS_RETURN_IF_ERROR(PlaceCapped(view, decision));
  if (decision.verdict == Verdict::kPlace) return decision;
  if (!options_.terse) {
    result_.refused[static_cast<size_t>(Reason::kNotInSubset)] = Excluded(view);
    decision.refused_devices = result_.refused;
    HORUS_RETURN_IF_ERROR(explainer_.Refused(ledger_, view, considered(ledger_), result_, decision));
  }
  decision.verdict = Verdict::kDefer;
  HORUS_ASSIGN_OR_RETURN(Decision emptied_decision, DecideEmptied(view));
  if (emptied_decision.verdict != Verdict::kPlace) {
    decision = std::move(emptied_decision);
    decision.job = view.job->id;
  }
  refused_.Insert(request, decision);
  return decision;
}

absl::StatusOr<ChosenWay> Engine::DecideWay(const JobSpec& way) {
  ChosenWay choice;
  way_view_ = ViewJob(way, options_.probe_outside, std::move(way_view_));
  HORUS_ASSIGN_OR_RETURN(choice.decision, Decide(way_view_, options_.sm_caps));
  if (choice.decision.verdict != Verdict::kPlace) {
    HORUS_RETURN_IF_ERROR(DecideByExpectation(way, choice));
    return choice;
  }
  choice.job = AsDecided(way, choice.decision);
  if (choice.job == nullptr) choice.job = std::make_shared<JobSpec>(way);
  TakeFound(choice);
  return choice;
}

void Engine::TakeFound(ChosenWay& choice) {
  choice.slots = std::move(result_.best.slots);
  if (choice.decision.probe) choice.job->exclusive_chosen = !std::exchange(choice.job->exclusive, true);
}

// A bound that nobody measured leaves no GPU idle: alone on one, a job that takes more than expected harms itself
// alone.
absl::Status Engine::DecideByExpectation(const JobSpec& way, ChosenWay& choice) {
  constexpr auto kMemory = static_cast<size_t>(Reason::kGpuMemory);
  if (!RestsOnPredictions(way) || (!options_.terse && choice.decision.refused_devices[kMemory] == 0))
    return absl::OkStatus();
  JobSpec alone = way;
  if (!AloneByExpectation(alone)) return absl::OkStatus();
  way_view_ = ViewJob(alone, options_.probe_outside, std::move(way_view_));
  const uint64_t request = RequestOn(ledger_, way_view_);
  if (refused_.Find(request) != nullptr) return absl::OkStatus();
  scorer_.SetJob(way_view_);
  HORUS_RETURN_IF_ERROR(search_.Run(ledger_, way_view_, selected(), result_, /*why=*/false));
  if (result_.best.slots.empty()) {
    refused_.Insert(request, choice.decision);
    return absl::OkStatus();
  }
  choice.decision = {.job = way.id};
  HORUS_RETURN_IF_ERROR(explainer_.Placed(ledger_, way_view_, result_, choice.decision));
  choice.decision.probe = true;
  HORUS_RETURN_IF_ERROR(ChooseMode(way_view_, result_.best.slots, choice.decision));
  // Its bound stays unknown: who asks what the job stated plans it alone again, and not with what is expected as bound.
  choice.job = std::make_shared<JobSpec>(std::move(alone));
  TakeFound(choice);
  return absl::OkStatus();
}

absl::Status Engine::CheckSettled(const JobSpec& job) const {
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

absl::StatusOr<ChosenWay> Engine::Choose(const JobSpec& job) {
  if (job.alternatives.empty()) return DecideWay(job);
  ChosenWay choice;
  for (size_t i = 0; i < job.alternatives.size(); ++i) {
    HORUS_ASSIGN_OR_RETURN(ChosenWay next, DecideWay(WayOf(job, i)));
    next.decision.alternative = static_cast<int32_t>(i);
    if (next.job != nullptr) next.worth = WorthOf(job, i, next.decision, options_.gpu_price);
    // Of refusals the first that is none for good.
    const bool better = next.job != nullptr ? choice.job == nullptr || next.worth > choice.worth
                                            : choice.job == nullptr && next.decision.verdict < choice.decision.verdict;
    if (i == 0 || better) choice = std::move(next);
  }
  return choice;
}

// ---- One job against nodes one by one.

absl::Status Engine::OnNode(Search& with, const Ledger& on, const JobView& view, uint32_t node_row,
                            NodeAnswer& answer) {
  const std::vector<uint32_t> one = {node_row};
  HORUS_RETURN_IF_ERROR(with.Run(on, view, &one, result_));
  answer = {.cost = result_.best.cost, .known = true};
  Decision decision;
  if (!result_.best.slots.empty()) {
    // Whether several GPUs pay is known of a whole job alone, not of a task of one.
    const bool whole = GpuCount(*view.job) > 1 && !view.types.front().tenant.distributed;
    if (!whole || !scorer_.policy().maximises_work()) return absl::OkStatus();
    HORUS_RETURN_IF_ERROR(explainer_.Placed(on, view, result_, decision));
    if (!explainer_.GangPays(view, result_, decision)) answer.reason = Reason::kPolicy;
    return absl::OkStatus();
  }
  HORUS_RETURN_IF_ERROR(explainer_.Refused(on, view, one, result_, decision));
  answer.reason = decision.reason;
  return absl::OkStatus();
}

absl::Status Engine::OnEach(Search& with, const Ledger& on, const JobView& view, std::span<const uint32_t> rows,
                            std::vector<NodeAnswer>& answers) {
  scorer_.SetJob(view);
  if (with.CanRunEach(view)) return with.RunEach(on, view, rows, answers);
  answers.resize(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) HORUS_RETURN_IF_ERROR(OnNode(with, on, view, rows[i], answers[i]));
  return absl::OkStatus();
}

absl::Status Engine::ByExpectation(Search& with, const Ledger& on, const JobSpec& way, std::span<const uint32_t> rows,
                                   std::vector<NodeAnswer>& answers) {
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
  JobView view = ViewJob(job, options_.probe_outside);
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

absl::Status Engine::VerdictsOf(const JobSpec& way, std::span<const uint32_t> rows, NodeVerdicts& verdicts) {
  JobView view = ViewJob(way, options_.probe_outside);  // of the whole gang: its devices must suit one
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
  HORUS_RETURN_IF_ERROR(OnEach(search_, ledger_, view, all ? rows : asked, now));
  HORUS_RETURN_IF_ERROR(ByExpectation(search_, ledger_, way, all ? rows : asked, now));
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
  emptied_.FollowEmptied(ledger_);
  std::vector<NodeAnswer> empty, certain;
  HORUS_RETURN_IF_ERROR(OnEach(emptied_search_, emptied_, view, left, empty));
  HORUS_RETURN_IF_ERROR(ByExpectation(emptied_search_, emptied_, way, left, empty));
  if (RestsOnPredictions(task)) {
    const JobSpec job = CertainOf(task);
    JobView certain_view = ViewJob(CertainOf(way), options_.probe_outside);
    certain_view.job = &job;
    HORUS_RETURN_IF_ERROR(OnEach(emptied_search_, emptied_, certain_view, left, certain));
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

absl::Status Engine::NameNodes(const Cluster& cluster, std::span<const NodeId> asked) {
  const ClusterRows& rows = cluster.rows();
  if (named_.structure == rows.structure && std::ranges::equal(named_.ids, asked)) return absl::OkStatus();
  Named now{.structure = rows.structure, .ids = {asked.begin(), asked.end()}};
  now.rows.reserve(asked.size());
  for (const NodeId id : asked) {
    const uint32_t* row = rows.node_of.Find(id);
    if (row == nullptr) return NotFound("node %d: not in this cluster", id);
    now.rows.push_back(*row);
  }
  named_ = std::move(now);
  return absl::OkStatus();
}

absl::StatusOr<NodeVerdicts> Engine::Verdicts(const Cluster& cluster, const JobSpec& job, std::span<const NodeId> nodes,
                                              const ReadFn& read) {
  HORUS_RETURN_IF_ERROR(ValidateJob(job));
  HORUS_RETURN_IF_ERROR(CheckTypes(job, cluster.catalogue().size()));
  HORUS_RETURN_IF_ERROR(CheckConfidence(job, scorer_.model()));
  HORUS_RETURN_IF_ERROR(NameNodes(cluster, nodes));
  const std::span<const uint32_t> rows = named_.rows;
  ledger_.Follow(cluster);
  if (read != nullptr) read();
  std::vector<JobSpec> ways;
  for (size_t i = 0; i < job.alternatives.size(); ++i) ways.push_back(WayOf(job, i));
  if (ways.empty()) ways.push_back(job);
  NodeVerdicts verdicts;
  verdicts.verdict.assign(rows.size(), Verdict::kReject);
  verdicts.cost.assign(rows.size(), std::numeric_limits<double>::quiet_NaN());
  verdicts.reason.assign(rows.size(), Reason::kNone);
  for (const JobSpec& way : ways) HORUS_RETURN_IF_ERROR(VerdictsOf(way, rows, verdicts));
  return verdicts;
}

}  // namespace horus
