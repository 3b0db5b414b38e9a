// SPDX-License-Identifier: Apache-2.0
// Who is slowed by a placement, what made its cost, and how far a refused job is from fitting.
#include "place/explain.h"

#include <algorithm>
#include <tuple>

#include "place/admit.h"
#include "place/fit.h"

namespace horus {
namespace {

Reason MainReason(const SearchResult& result) {
  if (result.fitting > 0) return Reason::kGang;
  return MostRefused(result.refused);
}

// What a gang costs beside its GPUs one by one.
void AddGangTerms(const Placement& placement, PricedPlace& priced) {
  if (placement.sent > 0) priced.terms.push_back({"communication", placement.sent});
  if (placement.straggler > 0) priced.terms.push_back({"straggler", placement.straggler});
}

}  // namespace

std::vector<TenantEffect> NeighboursOf(const Decision& decision) {
  std::vector<TenantEffect> neighbours;
  for (const TenantEffect& effect : decision.effects) {
    if (effect.is_new) continue;
    const auto known = std::find_if(neighbours.begin(), neighbours.end(),
                                    [&](const TenantEffect& other) { return other.job == effect.job; });
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
  Evaluation evaluation;
  HORUS_RETURN_IF_ERROR(scorer_.Evaluate(ledger.states(), ledger.state_id(device), evaluation));
  const DeviceCandidate& candidate = evaluation.candidate;
  if (candidate.after.empty()) return absl::OkStatus();  // cannot be: the search found it to fit
  const NodeId node = ledger.spec(slot.node_row).id;
  const Slowdown own = candidate.after.back();
  if (own.estimate > decision.own.estimate) decision.own.estimate = own.estimate;
  if (own.upper > decision.own.upper) decision.own.upper = own.upper;
  decision.relative_speed = std::min(decision.relative_speed, candidate.relative_speed);
  std::vector<float> calibrated = {1};  // alone it is certain
  if (candidate.residents() > 0) {
    std::vector<const Demand*> demands;
    for (const TenantClass* tenant : candidate.tenants) demands.push_back(&tenant->demand);
    calibrated = scorer_.model().CalibratedUpTo(ContextOf(row), demands);
  }
  decision.effects.push_back({view.job->id, node, slot.device, true, Slowdown(), own, calibrated.back()});
  const auto first = static_cast<ptrdiff_t>(decision.effects.size());
  decision.trial |= IsTrial(candidate.after);
  for (const LedgerResident& resident : ledger.residents(device)) {
    const auto at = std::find(row.tenants.begin(), row.tenants.end(), resident.tenant);
    if (at == row.tenants.end()) continue;  // cannot be: the resident is there
    const auto i = static_cast<size_t>(at - row.tenants.begin());
    decision.effects.push_back(
        {resident.job, node, slot.device, false, candidate.before[i], candidate.after[i], calibrated[i]});
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
  std::vector<CostTerm> terms;
  for (const PlacedSlot& slot : placement.slots) {
    Evaluation evaluation;
    HORUS_RETURN_IF_ERROR(scorer_.Evaluate(ledger.states(), ledger.state_id(ledger.device_of(slot)), evaluation));
    terms.clear();
    if (!evaluation.candidate.after.empty())
      scorer_.policy().Explain(evaluation.candidate, PlaceOf(ledger, slot.node_row, view.job->id, slot.device), terms);
    for (const CostTerm& term : terms) {
      const auto at = std::find_if(priced.terms.begin(), priced.terms.end(),
                                   [&](const CostTerm& one) { return one.name == term.name; });
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
  NodeOutcome outcome;
  HORUS_RETURN_IF_ERROR(pricer_.Price(ledger, view, placement.slots.front().node_row, outcome));
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
  decision.mem_mib = view.job->mem_mib;
  if (IsCpuOnly(*view.job)) decision.own = Slowdown();
  decision.node_name = ledger.spec(result.best.slots.front().node_row).name;
  for (const PlacedSlot& slot : result.best.slots) {
    decision.slots.push_back({ledger.spec(slot.node_row).id, slot.device, slot.task});
    if (slot.device != kNoDevice) HORUS_RETURN_IF_ERROR(AddEffects(ledger, view, slot, decision));
  }
  std::stable_sort(decision.effects.begin(), decision.effects.end(), [](const TenantEffect& a, const TenantEffect& b) {
    return std::tie(a.node, a.device) < std::tie(b.node, b.device);
  });
  HORUS_RETURN_IF_ERROR(Price(ledger, view, result.best, decision.winner));
  decision.has_runner_up = !result.second.slots.empty();
  return decision.has_runner_up ? Price(ledger, view, result.second, decision.runner_up) : absl::OkStatus();
}

absl::Status Explainer::Refused(const Ledger& ledger, const JobView& view, std::span<const uint32_t> nodes,
                                const SearchResult& result, Decision& decision) {
  decision.reason = MainReason(result);
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
      DeviceVerdict verdict;
      const uint32_t device = node.first_device + static_cast<uint32_t>(i);
      HORUS_RETURN_IF_ERROR(JudgeDevice(scorer_, ledger, view, device, /*memo=*/true, verdict));
      nearest.Offer({verdict.cost, row, i, verdict.reason});
    }
  }
  if (nearest.reason == Reason::kNone) return absl::OkStatus();  // every node is left out
  Evaluation evaluation;
  const LedgerNode& node = ledger.node(nearest.node_row);
  if (nearest.device < 0) {
    const Reason reason = FitHost(*view.job, node.free, 1, &evaluation.shortfall);
    if (reason != nearest.reason)
      evaluation.shortfall = Shortfall();  // its state or labels refused, which have no amount
  } else {
    const uint32_t device = node.first_device + static_cast<uint32_t>(nearest.device);
    HORUS_RETURN_IF_ERROR(scorer_.Evaluate(ledger.states(), ledger.state_id(device), evaluation));
  }
  const Shortfall& shortfall = evaluation.shortfall;
  decision.node_name = node.spec->name;
  decision.miss = {nearest.reason,      node.spec->id,  nearest.device,    shortfall.needed,
                   shortfall.available, shortfall.unit, shortfall.estimate};
  return absl::OkStatus();
}

}  // namespace horus
