// SPDX-License-Identifier: Apache-2.0
// Who is slowed by a placement, what made its cost, and how far a refused job is from fitting.
#include "place/explain.h"

#include <algorithm>
#include <tuple>

#include "place/admit.h"
#include "place/fit.h"

namespace horus {
namespace {

uint32_t DeviceOf(const Ledger& ledger, const PlacedSlot& slot) {
  return ledger.rows().nodes[slot.node_row].first_device + static_cast<uint32_t>(slot.device);
}

PlaceCandidate PlaceOf(const Ledger& ledger, const JobView& view, const PlacedSlot& slot) {
  const NodeSpec& node = ledger.rows().nodes[slot.node_row].spec;
  return {.job = view.job->id,
          .node = node.id,
          .device = slot.device,
          .node_devices = static_cast<int32_t>(node.devices.size()),
          .node_idle_devices = ledger.idle_devices(slot.node_row),
          .cpu_free_milli = ledger.host(slot.node_row).cpu_milli,
          .mem_free_mib = ledger.host(slot.node_row).mem_mib};
}

// The refused node or device that came nearest. Reasons are numbered in the order in which constraints are asked:
// the later one fails, the nearer it was; among equals the smaller distance (fit.h), then the lower place.
struct NearestPlace {
  Reason reason = Reason::kNone;  // kNone = nothing was refused
  double distance = 0;
  uint32_t node_row = 0;
  int32_t device = -1;  // -1 = the node as a whole

  void Offer(Reason refused, double how_far, uint32_t row, int32_t index) {
    if (refused < reason || (refused == reason && how_far >= distance)) return;
    *this = {refused, how_far, row, index};
  }
};

Reason MainReason(const SearchResult& result) {
  if (result.fitting > 0) return Reason::kGang;
  size_t most = 0;
  for (size_t i = 1; i < kReasonCount; ++i) {
    if (i != static_cast<size_t>(Reason::kNotInSubset) && result.refused[i] > result.refused[most]) most = i;
  }
  if (most > 0) return static_cast<Reason>(most);
  return result.refused[static_cast<size_t>(Reason::kNotInSubset)] > 0 ? Reason::kNotInSubset : Reason::kGang;
}

}  // namespace

void Explainer::Reset() { noted_.clear(); }

void Explainer::Note(const Ledger& ledger, const JobView& view, std::span<const PlacedSlot> slots) {
  for (const PlacedSlot& slot : slots) {
    if (slot.device == kNoDevice) continue;
    const uint32_t device = DeviceOf(ledger, slot);
    const Demand* demand = FindDemand(*view.job, ledger.state(device).type);
    if (demand == nullptr) continue;
    std::vector<Neighbour>* there = noted_.Find(device);
    if (there == nullptr) there = &noted_.Insert(device, {});
    there->push_back({view.job->id, MakeTenantClass(*view.job, *demand).digest});
  }
}

std::vector<Explainer::Neighbour> Explainer::NeighboursOf(const Ledger& ledger, uint32_t device) const {
  std::vector<Neighbour> neighbours;
  for (const ResidentRow& resident : ledger.rows().residents[device]) {
    const JobRow& job = ledger.rows().jobs[resident.job_row];
    // Slots ascend by task, so those of the resident's task are found without a walk over the whole gang.
    auto slot = std::lower_bound(job.slots.begin(), job.slots.end(), resident.task,
                                 [](const PlacedSlot& one, int32_t task) { return one.task < task; });
    while (slot != job.slots.end() && DeviceOf(ledger, *slot) != device) ++slot;
    if (slot == job.slots.end()) continue;  // cannot be: the resident is there
    neighbours.push_back({job.spec->id, ledger.states().tenant(slot->tenant).digest});
  }
  if (const std::vector<Neighbour>* noted = noted_.Find(device)) {
    neighbours.insert(neighbours.end(), noted->begin(), noted->end());
  }
  std::sort(neighbours.begin(), neighbours.end(), [](const Neighbour& a, const Neighbour& b) { return a.job < b.job; });
  return neighbours;
}

absl::Status Explainer::AddEffects(const Ledger& ledger, const JobView& view, const PlacedSlot& slot,
                                   Decision& decision) {
  const uint32_t device = DeviceOf(ledger, slot);
  const DeviceRow& row = ledger.state(device);
  Evaluation evaluation;
  HORUS_RETURN_IF_ERROR(scorer_.Evaluate(ledger.states(), row, evaluation));
  const DeviceCandidate& candidate = evaluation.candidate;
  if (candidate.after.empty()) return absl::OkStatus();  // cannot be: the search found it to fit
  const NodeId node = ledger.rows().nodes[slot.node_row].spec.id;
  const Slowdown own = candidate.after.back();
  if (own.estimate > decision.own.estimate) decision.own.estimate = own.estimate;
  if (own.upper > decision.own.upper) decision.own.upper = own.upper;
  decision.effects.push_back({view.job->id, node, slot.device, true, Slowdown(), own});
  for (const Neighbour& neighbour : NeighboursOf(ledger, device)) {
    for (size_t i = 0; i < row.tenants.size(); ++i) {
      if (ledger.states().tenant(row.tenants[i]).digest != neighbour.tenant) continue;
      decision.effects.push_back({neighbour.job, node, slot.device, false, candidate.before[i], candidate.after[i]});
      break;
    }
  }
  return absl::OkStatus();
}

absl::Status Explainer::Price(const Ledger& ledger, const JobView& view, const Placement& placement,
                              PricedPlace& priced) {
  priced.node = ledger.rows().nodes[placement.slots.front().node_row].spec.id;
  priced.device = placement.slots.front().device;
  priced.cost = placement.cost;
  if (scorer_.policy().PricesNode(*view.job)) return PriceNode(ledger, view, placement, priced);
  if (priced.device == kNoDevice) {
    if (scorer_.policy().uses_place()) priced.terms.push_back({"place", priced.cost});
    return absl::OkStatus();
  }
  std::vector<CostTerm> terms;
  for (const PlacedSlot& slot : placement.slots) {
    Evaluation evaluation;
    HORUS_RETURN_IF_ERROR(scorer_.Evaluate(ledger.states(), ledger.state(DeviceOf(ledger, slot)), evaluation));
    terms.clear();
    if (!evaluation.candidate.after.empty())
      scorer_.policy().Explain(evaluation.candidate, PlaceOf(ledger, view, slot), terms);
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
  return absl::OkStatus();
}

// Of a gang the sum alone: its tasks are priced one by one.
absl::Status Explainer::PriceNode(const Ledger& ledger, const JobView& view, const Placement& placement,
                                  PricedPlace& priced) {
  if (view.job->tasks > 1) {
    priced.terms.push_back({"node", priced.cost});
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
  if (IsCpuOnly(*view.job)) decision.own = Slowdown();
  for (const PlacedSlot& slot : result.best.slots) {
    decision.slots.push_back({ledger.rows().nodes[slot.node_row].spec.id, slot.device, slot.task});
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
    decision.miss = {Reason::kGang,
                     ledger.rows().nodes[row].spec.id,
                     -1,
                     static_cast<double>(SlotCount(*view.job)),
                     static_cast<double>(most),
                     IsCpuOnly(*view.job) ? "tasks" : "GPUs"};
    return absl::OkStatus();
  }
  // A walk of its own: the search would pay for it on every device of every job, and few jobs are refused.
  NearestPlace nearest;
  for (const uint32_t row : nodes) {
    const NodeRow& node = ledger.rows().nodes[row];
    Shortfall shortfall;
    Reason reason = FitNode(*view.job, node.spec, ledger.node_state(row));
    if (reason == Reason::kNone) reason = FitHost(*view.job, ledger.host(row), 1, &shortfall);
    if (reason == Reason::kNone) reason = AdmitNode(scorer_.policy(), ledger, row, *view.job);
    if (reason != Reason::kNone) {
      nearest.Offer(reason, Distance(reason, shortfall), row, -1);
      continue;
    }
    for (int32_t i = 0; i < static_cast<int32_t>(node.spec.devices.size()); ++i) {
      DeviceVerdict verdict;
      const uint32_t state = ledger.state_id(node.first_device + static_cast<uint32_t>(i));
      HORUS_RETURN_IF_ERROR(scorer_.Judge(ledger.states(), state, verdict));
      nearest.Offer(verdict.reason, verdict.cost, row, i);
    }
  }
  if (nearest.reason == Reason::kNone) return absl::OkStatus();  // every node is left out
  Evaluation evaluation;
  const NodeRow& node = ledger.rows().nodes[nearest.node_row];
  if (nearest.device < 0) {
    const Reason reason = FitHost(*view.job, ledger.host(nearest.node_row), 1, &evaluation.shortfall);
    if (reason != nearest.reason)
      evaluation.shortfall = Shortfall();  // its state or labels refused, which have no amount
  } else {
    const uint32_t device = node.first_device + static_cast<uint32_t>(nearest.device);
    HORUS_RETURN_IF_ERROR(scorer_.Evaluate(ledger.states(), ledger.state(device), evaluation));
  }
  const Shortfall& shortfall = evaluation.shortfall;
  decision.miss = {nearest.reason, node.spec.id, nearest.device, shortfall.needed, shortfall.available, shortfall.unit};
  return absl::OkStatus();
}

}  // namespace horus
