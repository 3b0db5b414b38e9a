// SPDX-License-Identifier: Apache-2.0
// Gangs that fit no single node: the heuristic "fewest nodes, one rack first".
#include <algorithm>
#include <tuple>
#include <utility>

#include "place/search.h"

namespace horus {

absl::Status Search::SpreadGang(const Ledger& ledger, const JobView& view, SearchResult& result) {
  const auto rack = [&](uint32_t offer) { return ledger.spec(offers_[offer].node_row).rack; };
  const auto node_id = [&](uint32_t offer) { return ledger.spec(offers_[offer].node_row).id; };
  std::vector<uint32_t> order(offers_.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::tuple(offers_[a].group, rack(a), node_id(a)) < std::tuple(offers_[b].group, rack(b), node_id(b));
  });
  Span best;
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    int64_t in_group = 0;
    uint32_t largest = order[begin];
    while (end < order.size() && offers_[order[end]].group == offers_[order[begin]].group) {
      if (offers_[order[end]].tasks > offers_[largest].tasks) largest = order[end];
      in_group += offers_[order[end++]].tasks;
    }
    const auto gpus = static_cast<uint32_t>(std::min(in_group * SlotsPerTask(*view.job), int64_t{UINT32_MAX}));
    if (gpus > result.most_fitting) {
      result.most_fitting = gpus;
      result.most_node_row = offers_[largest].node_row;
    }
    if (in_group < view.job->tasks) continue;
    bool one_rack = false;
    for (size_t first = begin, last = begin; first < end; first = last) {
      int64_t in_rack = 0;
      while (last < end && rack(order[last]) == rack(order[first])) in_rack += offers_[order[last++]].tasks;
      if (in_rack < view.job->tasks) continue;
      one_rack = true;
      TrySpan(ledger, view,
              {order.begin() + static_cast<ptrdiff_t>(first), order.begin() + static_cast<ptrdiff_t>(last)}, best);
    }
    if (!one_rack)
      TrySpan(ledger, view,
              {order.begin() + static_cast<ptrdiff_t>(begin), order.begin() + static_cast<ptrdiff_t>(end)}, best);
  }
  return TakeSpan(ledger, view, best, result);
}

absl::Status Search::TakeSpan(const Ledger& ledger, const JobView& view, Span& best, SearchResult& result) {
  if (best.picks.empty()) return absl::OkStatus();
  if (linked_) HORUS_RETURN_IF_ERROR(LinkSpan(ledger, view, best, result.best));
  const auto node_id = [&](size_t pick) { return ledger.spec(offers_[best.picks[pick].first].node_row).id; };
  std::vector<size_t> order(best.picks.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return node_id(a) < node_id(b); });
  result.best.cost = best.cost;
  int32_t task = 0;
  for (const size_t at : order) {
    const auto [pick, tasks] = best.picks[at];
    std::vector<int32_t> devices;
    const int32_t per_task = SlotsPerTask(*view.job);
    if (linked_) devices = best.devices[at];
    for (int32_t i = 0; i < tasks * per_task && !linked_; ++i) {
      devices.push_back(Offered(offers_[pick], static_cast<size_t>(i)).device);
    }
    std::sort(devices.begin(), devices.end());
    for (size_t i = 0; i < devices.size(); ++i) {
      result.best.slots.push_back({offers_[pick].node_row, devices[i], task + static_cast<int32_t>(i) / per_task, 0});
    }
    task += tasks;
  }
  result.spans_nodes = true;
  return absl::OkStatus();
}

void Search::TrySpan(const Ledger& ledger, const JobView& view, std::vector<uint32_t> offers, Span& best) const {
  const auto node = [&](uint32_t offer) -> const NodeSpec& { return ledger.spec(offers_[offer].node_row); };
  // Racks that hold most of the gang first, so that few racks are touched; then large and cheap nodes.
  std::vector<std::pair<uint64_t, int64_t>> racks;  // offers come rack by rack
  for (const uint32_t offer : offers) {
    if (racks.empty() || racks.back().first != node(offer).rack) racks.emplace_back(node(offer).rack, 0);
    racks.back().second += offers_[offer].tasks;
  }
  const auto rack_tasks = [&racks](uint64_t rack) {
    return std::lower_bound(racks.begin(), racks.end(), std::pair(rack, int64_t{0}))->second;
  };
  const auto key = [&](uint32_t offer) {
    const NodeOffer& one = offers_[offer];
    return std::tuple(-rack_tasks(node(offer).rack), node(offer).rack, -one.tasks, one.cost, node(offer).id);
  };
  std::sort(offers.begin(), offers.end(), [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
  Span span;
  int32_t left = view.job->tasks;
  std::vector<uint64_t> used_racks;
  for (size_t i = 0; i < offers.size() && left > 0; ++i) {
    size_t pick = i;
    if (offers_[offers[i]].tasks >= left) {  // the last node: the tightest of this rack that holds the rest
      for (size_t j = i + 1; j < offers.size() && node(offers[j]).rack == node(offers[i]).rack; ++j) {
        const NodeOffer& one = offers_[offers[j]];
        if (one.tasks < left) break;
        if (one.tasks < offers_[offers[pick]].tasks) pick = j;
      }
    }
    const uint32_t offer = offers[pick];
    const int32_t tasks = std::min(left, offers_[offer].tasks);
    span.picks.emplace_back(offer, tasks);
    span.cost += OfferCost(offers_[offer], view, tasks);
    used_racks.push_back(node(offer).rack);
    left -= tasks;
  }
  if (linked_) span.cost += SpanLinkCost(ledger, view, span);
  std::sort(used_racks.begin(), used_racks.end());
  span.racks = static_cast<size_t>(std::unique(used_racks.begin(), used_racks.end()) - used_racks.begin());
  const auto rank = [](const Span& one) { return std::tuple(one.picks.size(), one.racks, one.cost); };
  if (best.picks.empty() || rank(span) < rank(best)) best = std::move(span);
}

}  // namespace horus
