// SPDX-License-Identifier: Apache-2.0
// Predicts what a place does to everybody; who is slowed, what made the cost, how far a refused job is from fitting.
#include "place/appraise.h"

#include "interference/laws.h"
#include "place/search/admit.h"
#include "place/work.h"

namespace horus {

// ---- Predicts what a place does to everybody on its devices.

namespace {

// By a resident of one GPU, in units of a busy job's work.
double LostWork(const TenantClass& resident, const Slowdown& before, const Slowdown& after) {
  return static_cast<double>(resident.worth / resident.weight) *
         (1 / static_cast<double>(before.estimate) - 1 / static_cast<double>(after.estimate));
}

}  // namespace

void GangsWaiting::Add(JobId job, int32_t gpus, double lost) {
  auto at = std::ranges::find_if(gangs_, [&](const Gang& gang) { return gang.job == job; });
  if (at == gangs_.end()) at = gangs_.insert(at, {job, gpus, 0, 0});
  ++at->here;
  at->lost = std::max(at->lost, lost);
}

double GangsWaiting::lost() const {
  double lost = 0;
  for (const Gang& gang : gangs_) lost += gang.gpus * gang.lost;
  return lost;
}

int32_t GangsWaiting::gpus() const {
  int32_t gpus = 0;
  for (const Gang& gang : gangs_) gpus += gang.gpus - gang.here;
  return gpus;
}

absl::Status Appraiser::OfDevice(const Cluster& cluster, const JobSpec& job, const NodeRow& node, int32_t device,
                                 double& slowest, GangsWaiting& waiting, Appraisal& appraisal) const {
  const ClusterRows& rows = cluster.rows();
  const uint32_t at = node.first_device + static_cast<uint32_t>(device);
  const DeviceRow state = rows.DeviceAt(at);
  const TenantClass newcomer = TenantAsked(job, DemandOn(job, state.type));
  std::vector<const Demand*> demands;
  std::vector<Promise> promises;
  for (const uint32_t id : state.tenants) {
    demands.push_back(&rows.states.tenant(id).demand);
    promises.push_back(rows.states.tenant(id).promise);
  }
  const size_t residents = demands.size();
  std::vector<Slowdown> before(residents);
  std::vector<Slowdown> after(residents + 1);
  if (residents > 0) HORUS_RETURN_IF_ERROR(model_->Predict(ContextOf(state), demands, before));
  demands.push_back(&newcomer.demand);
  promises.push_back(newcomer.promise);
  HORUS_RETURN_IF_ERROR(model_->Predict(ContextOf(state), demands, after));
  if (appraisal.reason == Reason::kNone)
    appraisal.reason = newcomer.late.p99_us > 0 ? Reason::kSlowdownOwn : FitSlowdowns(promises, before, after, limits_);
  for (size_t i = 0; i <= residents; ++i) {
    const double now = SlowdownFor(promises[i], after[i], limits_);
    const bool worse = i == residents || now > SlowdownFor(promises[i], before[i], limits_);
    appraisal.beyond_bound += worse && IsBeyond(now, BoundOf(promises[i], limits_)) ? 1 : 0;
  }
  const Slowdown own = after.back();
  appraisal.own = {std::max(appraisal.own.estimate, own.estimate), std::max(appraisal.own.upper, own.upper)};
  const double slowed = WorkSlowdown(newcomer.demand, own.estimate);
  slowest = std::min(
      slowest, static_cast<double>(newcomer.work_alone) * SpeedAlone(job, state) / (slowed + appraisal.communication));
  for (const uint32_t row : rows.residents[at]) {
    const uint32_t id = rows.ClassOn(rows.jobs[row].request, state.type);
    const auto i = static_cast<size_t>(std::ranges::find(state.tenants, id) - state.tenants.begin());
    const TenantClass& resident = rows.states.tenant(id);
    const double lost = LostWork(resident, before[i], after[i]);
    if (resident.gpus > 1) {
      waiting.Add(rows.jobs[row].id, resident.gpus, lost);
    } else {
      appraisal.lost += lost;
    }
  }
  appraisal.tenants += static_cast<uint32_t>(residents + 1);
  appraisal.used_devices += residents > 0 ? 1 : 0;
  return absl::OkStatus();
}

absl::StatusOr<Appraisal> Appraiser::Of(const Cluster& cluster, const JobSpec& job, std::span<const Slot> slots) const {
  const ClusterRows& rows = cluster.rows();
  Appraisal appraisal;
  HORUS_ASSIGN_OR_RETURN(appraisal.reason, cluster.BrokenRule(job, slots, limits_));
  if (IsCpuOnly(job)) return appraisal;
  if (slots.size() > 1) {
    std::vector<GangSlot> gang;
    for (const Slot& slot : slots) gang.push_back({rows.nodes[*rows.node_of.Find(slot.node)].spec.get(), slot.device});
    const Demand& demand = DemandOn(job, gang.front().node->devices[static_cast<size_t>(gang.front().device)].type);
    appraisal.communication = CommunicationShare(
        demand, GangAllReduceUs(static_cast<double>(demand.gradient_mib), gang, rack_oversubscription_));
  }
  double slowest = std::numeric_limits<double>::infinity();
  GangsWaiting waiting;
  for (const Slot& slot : slots) {
    const NodeRow& node = rows.nodes[*rows.node_of.Find(slot.node)];
    HORUS_RETURN_IF_ERROR(OfDevice(cluster, job, node, slot.device, slowest, waiting, appraisal));
  }
  appraisal.lost += waiting.lost();
  appraisal.work = static_cast<double>(slots.size()) * slowest - appraisal.lost;  // the others wait
  return appraisal;
}

absl::StatusOr<DeviceSlowdowns> Appraiser::Now(const Cluster& cluster, NodeId id, int32_t device) const {
  const ClusterRows& rows = cluster.rows();
  const uint32_t* row = rows.node_of.Find(id);
  if (row == nullptr || device < 0 || static_cast<size_t>(device) >= rows.nodes[*row].spec->devices.size())
    return NotFound("node %d: device %d: not in this cluster", id, device);
  const uint32_t at = rows.nodes[*row].first_device + static_cast<uint32_t>(device);
  DeviceSlowdowns now;
  std::vector<const Demand*> demands;
  for (const uint32_t job_row : rows.residents[at]) {
    const JobRow& job = rows.jobs[job_row];
    now.jobs.push_back(job.id);
    demands.push_back(&rows.states.tenant(rows.ClassOn(job.request, rows.TypeOf(at))).demand);
  }
  now.slowdowns.resize(demands.size());
  if (!demands.empty()) HORUS_RETURN_IF_ERROR(model_->Predict(ContextOf(rows.SettledAt(at)), demands, now.slowdowns));
  return now;
}

namespace {

// What a gang costs beside its GPUs one by one.
void AddGangTerms(const Placement& placement, PricedPlace& priced) {
  if (placement.sent > 0) priced.terms.push_back({"communication", placement.sent});
  if (placement.straggler > 0) priced.terms.push_back({"straggler", placement.straggler});
}

}  // namespace

TenantEffects NeighboursOf(const Decision& decision) {
  TenantEffects neighbours;
  for (const TenantEffect& effect : decision.effects) {
    if (effect.is_new) continue;
    const auto known =
        std::ranges::find_if(neighbours, [&](const TenantEffect& other) { return other.job == effect.job; });
    if (known == neighbours.end()) {
      neighbours.push_back(effect);
    } else if (effect.after.estimate > known->after.estimate) {
      *known = effect;
    }
  }
  return neighbours;
}

absl::Status Explainer::AddEffects(const Ledger& ledger, const JobView& view, const PlacedSlot& slot,
                                   Decision& decision) {
  const uint32_t device = ledger.device_of(slot);
  const DeviceRow& row = ledger.state(device);
  HORUS_ASSIGN_OR_RETURN(const Evaluation evaluation, scorer_.Evaluate(ledger.states(), ledger.state_id(device)));
  const DeviceCandidate& candidate = evaluation.candidate;
  if (candidate.after.empty()) return absl::OkStatus();  // cannot be: the search found it to fit
  const NodeId node = ledger.spec(slot.node_row).id;
  const Slowdown own = candidate.after.back();
  if (own.estimate > decision.own.estimate) decision.own.estimate = own.estimate;
  if (own.upper > decision.own.upper) decision.own.upper = own.upper;
  decision.relative_speed = std::min(decision.relative_speed, candidate.relative_speed);
  calibrated_.assign(candidate.after.size(), 1);  // alone it is certain
  if (candidate.residents() > 0) {
    demands_.clear();
    for (const TenantClass* tenant : candidate.tenants) demands_.push_back(&tenant->demand);
    scorer_.model().CalibratedUpTo(ContextOf(row), demands_, calibrated_);
  }
  decision.effects.reserve(decision.effects.size() + candidate.after.size());
  decision.effects.push_back({view.job->id, node, slot.device, true, Slowdown(), own, calibrated_.back()});
  const auto first = static_cast<ptrdiff_t>(decision.effects.size());
  decision.trial |= IsTrial(candidate.after);
  for (const LedgerResident& resident : ledger.residents(device)) {
    const auto at = std::ranges::find(row.tenants, resident.tenant);
    if (at == row.tenants.end()) continue;  // cannot be: the resident is there
    const auto i = static_cast<size_t>(at - row.tenants.begin());
    const TenantClass& tenant = *candidate.tenants[i];
    const double lost = static_cast<double>(tenant.weight / candidate.tenants.back()->weight) *
                        LostWork(tenant, candidate.before[i], candidate.after[i]);
    if (tenant.gpus > 1) {
      waiting_.Add(resident.job, tenant.gpus, lost);
    } else {
      others_lost_ += lost;
    }
    decision.effects.push_back(
        {resident.job, node, slot.device, false, candidate.before[i], candidate.after[i], calibrated_[i]});
  }
  std::sort(decision.effects.begin() + first, decision.effects.end(),
            [](const TenantEffect& a, const TenantEffect& b) { return a.job < b.job; });
  return absl::OkStatus();
}

absl::Status Explainer::Price(const Ledger& ledger, const JobView& view, const Placement& placement,
                              PricedPlace& priced) {
  priced.node = ledger.spec(placement.slots.front().node_row).id;
  priced.device = placement.slots.front().device;
  priced.cost = placement.cost;
  if (scorer_.policy().PricesNode(*view.job)) return PriceNode(ledger, view, placement, priced);
  if (priced.device == kNoDevice) {
    if (scorer_.policy().uses_place()) priced.terms.push_back({"place", priced.cost});
    return absl::OkStatus();
  }
  return PriceDevices(ledger, view, placement, priced);
}

absl::Status Explainer::PriceDevices(const Ledger& ledger, const JobView& view, const Placement& placement,
                                     PricedPlace& priced) {
  for (const PlacedSlot& slot : placement.slots) {
    HORUS_ASSIGN_OR_RETURN(const Evaluation evaluation,
                           scorer_.Evaluate(ledger.states(), ledger.state_id(ledger.device_of(slot))));
    terms_.clear();
    if (!evaluation.candidate.after.empty())
      scorer_.policy().Explain(evaluation.candidate, PlaceOf(ledger, slot.node_row, view.job->id, slot.device), terms_);
    for (const CostTerm& term : terms_) {
      const auto at = std::ranges::find_if(priced.terms, [&](const CostTerm& one) { return one.name == term.name; });
      if (at == priced.terms.end()) {
        priced.terms.push_back(term);
      } else {
        at->value += term.value;
      }
    }
  }
  AddGangTerms(placement, priced);
  return absl::OkStatus();
}

// Of a gang the sum alone: its tasks are priced one by one.
absl::Status Explainer::PriceNode(const Ledger& ledger, const JobView& view, const Placement& placement,
                                  PricedPlace& priced) {
  if (view.job->tasks > 1) {
    priced.terms.push_back({"node", priced.cost - placement.sent - placement.straggler});
    AddGangTerms(placement, priced);
    return absl::OkStatus();
  }
  HORUS_RETURN_IF_ERROR(pricer_.Price(ledger, view, placement.slots.front().node_row).status());
  const Policy& policy = scorer_.policy();
  policy.ExplainNode(pricer_.candidate(), pricer_.score(), priced.terms);
  if (policy.draws()) priced.terms.push_back({"draw", policy.Draw(view.job->id, priced.node)});
  return absl::OkStatus();
}

absl::Status Explainer::Placed(const Ledger& ledger, const JobView& view, const SearchResult& result,
                               Decision& decision) {
  decision.verdict = Verdict::kPlace;
  decision.reason = Reason::kNone;
  decision.spans_nodes = result.spans_nodes;
  decision.cpu_milli = view.job->cpu_milli;
  decision.sm_cap_pct = view.job->sm_cap_pct;
  decision.mem_mib = view.job->mem_mib;
  if (IsCpuOnly(*view.job)) decision.own = Slowdown();
  decision.node_name = ledger.spec(result.best.slots.front().node_row).name;
  decision.slots.reserve(result.best.slots.size());
  waiting_.Clear();
  others_lost_ = 0;
  for (const PlacedSlot& slot : result.best.slots) {
    decision.slots.push_back({ledger.spec(slot.node_row).id, slot.device, slot.task});
    if (slot.device == kNoDevice) continue;
    HORUS_RETURN_IF_ERROR(AddEffects(ledger, view, slot, decision));
    const uint32_t device = ledger.node(slot.node_row).first_device + static_cast<uint32_t>(slot.device);
    const TenantClass& tenant = view.On(ledger.state(device).type)->tenant;
    decision.sm_cap_slowdown = std::max(decision.sm_cap_slowdown, static_cast<float>(CapStretch(tenant.demand)));
    const GpuMemory& memory = tenant.memory;
    decision.gpu_memory.request_mib = std::max(decision.gpu_memory.request_mib, memory.request_mib);
    // What runs alone because nobody knows what it takes is told no limit either.
    const bool known = !RunsAloneForMemory(*view.job, tenant.demand);
    decision.gpu_memory.limit_mib =
        std::max(decision.gpu_memory.limit_mib, known ? memory.limit_mib : kUnboundedMemMib);
  }
  decision.in_plan = decision.own;
  if (decision.slots.size() > 1) {
    std::ranges::stable_sort(decision.effects, {},
                             [](const TenantEffect& effect) { return std::tie(effect.node, effect.device); });
  }
  HORUS_RETURN_IF_ERROR(Price(ledger, view, result.best, decision.winner));
  decision.has_runner_up = !result.second.slots.empty();
  return decision.has_runner_up ? Price(ledger, view, result.second, decision.runner_up) : absl::OkStatus();
}

bool Explainer::GangPays(const JobView& view, const SearchResult& result, const Decision& decision) const {
  if (waiting_.gpus() == 0) return true;
  const bool keeps_work =
      std::ranges::all_of(view.job->demands, [&](const TypeDemand& one) { return ServesAll(*view.job, one.demand); });
  const double slowed = keeps_work ? 1 : static_cast<double>(decision.own.estimate);
  const double alone = WorkAlone(*view.job) * decision.relative_speed / slowed;
  const double own = GpuCount(*view.job) * alone - result.best.sent;
  return own - others_lost_ - waiting_.lost() > kLeastGainPerGpu * (GpuCount(*view.job) + waiting_.gpus());
}

absl::Status Explainer::Refused(const Ledger& ledger, const JobView& view, std::span<const uint32_t> nodes,
                                const SearchResult& result, Decision& decision) {
  decision.reason = result.fitting > 0 ? Reason::kGang : MostRefused(result.refused);
  if (decision.reason == Reason::kGang) {
    const uint32_t most = result.most_fitting;
    if (nodes.empty()) return absl::OkStatus();
    const uint32_t row = most > 0 ? result.most_node_row : nodes.front();
    decision.node_name = ledger.spec(row).name;
    decision.miss = {Reason::kGang,
                     ledger.spec(row).id,
                     -1,
                     static_cast<double>(SlotCount(*view.job)),
                     static_cast<double>(most),
                     IsCpuOnly(*view.job) ? "tasks" : "GPUs",
                     0};
    return absl::OkStatus();
  }
  NearestPlace nearest = result.nearest;
  // Where the search did not look: on all devices it would pay for it with every job, and few are refused.
  for (const uint32_t row : nearest.reason == Reason::kNone ? nodes : std::span<const uint32_t>()) {
    const NearestPlace whole = NodeRefusal(scorer_.policy(), ledger, row, *view.job);
    nearest.Offer(whole);
    const LedgerNode& node = ledger.node(row);
    for (int32_t i = 0; whole.reason == Reason::kNone && i < static_cast<int32_t>(node.spec->devices.size()); ++i) {
      const uint32_t device = node.first_device + static_cast<uint32_t>(i);
      HORUS_ASSIGN_OR_RETURN(const DeviceVerdict verdict, JudgeDevice(scorer_, ledger, view, device, /*memo=*/true));
      nearest.Offer({verdict.cost, row, i, verdict.reason});
    }
  }
  if (nearest.reason == Reason::kNone) return absl::OkStatus();  // every node is left out
  Evaluation evaluation;
  GpuTypeId type;
  const LedgerNode& node = ledger.node(nearest.node_row);
  if (nearest.device < 0) {
    const Reason reason = FitHost(*view.job, node.free, 1, &evaluation.shortfall);
    if (reason != nearest.reason)
      evaluation.shortfall = Shortfall();  // its state or labels refused, which have no amount
  } else {
    const uint32_t device = node.first_device + static_cast<uint32_t>(nearest.device);
    type = ledger.state(device).type;
    HORUS_ASSIGN_OR_RETURN(evaluation, scorer_.Evaluate(ledger.states(), ledger.state_id(device)));
  }
  const Shortfall& shortfall = evaluation.shortfall;
  decision.node_name = node.spec->name;
  decision.miss = {nearest.reason,      node.spec->id,  nearest.device,     shortfall.needed,
                   shortfall.available, shortfall.unit, shortfall.estimate, type};
  return absl::OkStatus();
}

}  // namespace horus
