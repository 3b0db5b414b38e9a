// SPDX-License-Identifier: Apache-2.0
// The bounded search: the best of a few devices, drawn by seed and job.
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "base/hash.h"
#include "base/status.h"
#include "place/admit.h"
#include "place/search/search.h"

namespace horus {
namespace {

constexpr double kAsGood = 0.005;  // less than that above the least cost is as good; chosen: half a per cent of a job

}  // namespace

// What the device costs at least: nobody slows anybody there. Without knowledge of the policy, anything.
double Search::LeastCostOf(const DeviceRow& device, const JobView& view) const {
  const LeastCost* least = scorer_.policy().least_cost();
  const JobView::OnType* on = view.On(device.type);
  if (least == nullptr || on == nullptr) return -std::numeric_limits<double>::infinity();
  return least->own_work * on->SpeedOn(device.compute_share) + (device.tenants.empty() ? least->idle : 0) +
         std::min(0.0, least->memory_left);
}

void Search::DrawDevices(const Ledger& ledger, const JobView& view) {
  drawn_.clear();
  uint64_t draw = CombineHash(sample_seed_, view.job->id);
  for (uint32_t i = 0; i < kDrawsACandidate * max_candidates_; ++i) {
    draw = Mix64(draw);
    const uint32_t node_row = ledger.order()[(draw >> 32) % ledger.order().size()];
    const LedgerNode& node = ledger.node(node_row);
    if (node.devices == 0 || AdmitNode(scorer_.policy(), ledger, node_row, *view.job) != Reason::kNone) continue;
    const auto index = static_cast<int32_t>((draw & 0xFFFFFFFFu) % static_cast<uint64_t>(node.devices));
    const DeviceRow& device = ledger.state(node.first_device + static_cast<uint32_t>(index));
    if (view.On(device.type) == nullptr) continue;
    drawn_.push_back({LeastCostOf(device, view), device.util_pct, node.id, index, node_row});
  }
  std::sort(drawn_.begin(), drawn_.end());
  drawn_.erase(std::unique(drawn_.begin(), drawn_.end()), drawn_.end());
}

absl::Status Search::TakeSampled(const Ledger& ledger, const JobView& view, SearchResult& result) {
  DrawDevices(ledger, view);
  const Policy& policy = scorer_.policy();
  NodeId best_node = 0;
  uint32_t judged = 0;
  for (const Drawn& one : drawn_) {
    const bool found = !result.best.slots.empty();
    if (found && (judged == max_candidates_ || result.best.cost - one.least <= kAsGood * std::abs(one.least))) break;
    const uint32_t device = ledger.node(one.node_row).first_device + static_cast<uint32_t>(one.device);
    DeviceVerdict verdict;
    ++judged;
    HORUS_RETURN_IF_ERROR(JudgeDevice(scorer_, ledger, view, device, /*memo=*/false, verdict));
    if (verdict.reason != Reason::kNone) continue;
    double cost = verdict.cost;
    if (policy.uses_place()) cost += policy.ScorePlace(PlaceOf(ledger, one.node_row, view.job->id, one.device));
    if (!std::isfinite(cost)) return NotFinite(policy, one.node, cost);
    const bool better = !found || std::tuple(cost, one.node, one.device) <
                                      std::tuple(result.best.cost, best_node, result.best.slots[0].device);
    if (better) {
      std::swap(result.best, result.second);
      best_node = one.node;
    }
    if (better || result.second.slots.empty() || cost < result.second.cost) {
      Placement& placement = better ? result.best : result.second;
      placement.cost = cost;
      placement.slots.assign(1, {one.node_row, one.device, 0, 0});
    }
  }
  return absl::OkStatus();
}

}  // namespace horus
