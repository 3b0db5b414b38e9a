// SPDX-License-Identifier: Apache-2.0
// Gangs that fit no single node: the heuristic "fewest nodes, one rack first".
#include <algorithm>
#include <tuple>
#include <utility>

#include "base/status.h"
#include "place/search/search.h"

namespace horus {
namespace {

// How often a gang is spread anew without those that would slow it most; a choice, see docs/place.md.
constexpr int kPaces = 3;
constexpr double kRounding = 1e-9;  // of speeds

}  // namespace

bool Search::Keeps(const NodeOffer& offer, const PricedGpu& gpu, double pace) {
  return pace == kAnyPace || gpu.own_work * pace >= offer.speed * (1 - kRounding);
}

double Search::OfferCost(const NodeOffer& offer, const JobView& view, int32_t tasks) const {
  if (offer.count == 0) return static_cast<double>(tasks) * offered_[offer.first].cost;
  double cost = 0;
  for (const PricedGpu& gpu : Offered(offer).first(static_cast<size_t>(tasks * view.job->gpus_per_task)))
    cost += gpu.cost;
  return cost;
}

void Search::AddCheapest(const NodeOffer& offer, size_t count, double pace, std::vector<PricedGpu>& gpus) const {
  const size_t upto = gpus.size() + count;
  for (const PricedGpu& gpu : Offered(offer)) {
    if (gpus.size() == upto) return;
    if (Keeps(offer, gpu, pace)) gpus.push_back(gpu);
  }
}

Search::Share Search::ShareOf(const JobView& view, uint32_t offer, double pace) const {
  const NodeOffer& of = offers_[offer];
  if (pace == kAnyPace) return {offer, of.tasks, of.cost};
  const std::span<const PricedGpu> gpus = Offered(of);
  const auto kept = std::count_if(gpus.begin(), gpus.end(), [&](const PricedGpu& gpu) { return Keeps(of, gpu, pace); });
  Share share{offer, std::min(of.tasks, static_cast<int32_t>(kept / view.job->gpus_per_task)), 0};
  auto left = static_cast<int64_t>(share.tasks) * view.job->gpus_per_task;
  for (const PricedGpu& gpu : gpus) {
    if (left == 0 || !Keeps(of, gpu, pace)) continue;
    share.cost += gpu.cost;
    --left;
  }
  return share;
}

void Search::CountOffers(const Ledger& ledger, const JobView& view, SearchResult& result) const {
  struct Group {
    uint32_t group = 0;
    int64_t tasks = 0;
    const NodeOffer* largest = nullptr;  // among equals the first by rack, then node
  };
  std::vector<Group> groups;
  const auto rack = [&](const NodeOffer& offer) { return ledger.spec(offer.node_row).rack; };
  for (const NodeOffer& offer : offers_) {  // by ascending node
    auto at = std::find_if(groups.begin(), groups.end(), [&](const Group& one) { return one.group == offer.group; });
    if (at == groups.end()) at = groups.insert(groups.end(), {offer.group, 0, &offer});
    at->tasks += offer.tasks;
    if (std::tuple(-offer.tasks, rack(offer)) < std::tuple(-at->largest->tasks, rack(*at->largest)))
      at->largest = &offer;
  }
  std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.group < b.group; });
  for (const Group& one : groups) {
    const auto gpus = static_cast<uint32_t>(std::min(one.tasks * SlotsPerTask(*view.job), int64_t{UINT32_MAX}));
    if (gpus <= result.most_fitting) continue;
    result.most_fitting = gpus;
    result.most_node_row = one.largest->node_row;
  }
}

void Search::SpreadGang(const Ledger& ledger, const JobView& view, double pace, Span& best) const {
  const auto rack = [&](const Share& share) { return ledger.spec(offers_[share.offer].node_row).rack; };
  const auto group = [&](const Share& share) { return offers_[share.offer].group; };
  std::vector<Share> shares;
  for (uint32_t i = 0; i < offers_.size(); ++i) {
    if (const Share share = ShareOf(view, i, pace); share.tasks > 0) shares.push_back(share);
  }
  const auto key = [&](const Share& share) {
    return std::tuple(group(share), rack(share), ledger.spec(offers_[share.offer].node_row).id);
  };
  std::sort(shares.begin(), shares.end(), [&](const Share& a, const Share& b) { return key(a) < key(b); });
  const auto at = [&](size_t i) { return shares.begin() + static_cast<ptrdiff_t>(i); };
  for (size_t begin = 0, end = 0; begin < shares.size(); begin = end) {
    int64_t in_group = 0;
    while (end < shares.size() && group(shares[end]) == group(shares[begin])) in_group += shares[end++].tasks;
    if (in_group < view.job->tasks) continue;
    bool one_rack = false;
    for (size_t first = begin, last = begin; first < end; first = last) {
      int64_t in_rack = 0;
      while (last < end && rack(shares[last]) == rack(shares[first])) in_rack += shares[last++].tasks;
      if (in_rack < view.job->tasks) continue;
      one_rack = true;
      TrySpan(ledger, view, pace, {at(first), at(last)}, best);
    }
    if (!one_rack) TrySpan(ledger, view, pace, {at(begin), at(end)}, best);
  }
}

// The first span shows how slow a gang on fewest nodes would be. Where that costs more than further nodes do, the same
// is done without the GPUs that slow it: of gangs that send over priced links by the cost alone, which counts what
// further nodes lose; of others only where nodes and racks are as few.
absl::Status Search::SpreadAtPaces(const Ledger& ledger, const JobView& view, const AtPace& at, SearchResult& result) {
  Span best;
  HORUS_RETURN_IF_ERROR(at(kAnyPace, best));
  if (best.picks.empty()) return absl::OkStatus();
  Settle(ledger, view, best);
  if (waits_) {
    double slowest = 1;
    for (const PricedGpu& gpu : best.gpus)
      slowest = std::max(slowest, offers_[best.picks.front().first].speed / gpu.own_work);
    const auto rank = [&](const Span& one) {
      return linked_ ? std::tuple(one.price.cost, one.picks.size(), one.racks, 0.0)
                     : std::tuple(0.0, one.picks.size(), one.racks, one.price.cost);
    };
    for (int step = kPaces - 1; step >= 0 && slowest > 1 + kRounding; --step) {
      Span next;
      HORUS_RETURN_IF_ERROR(at(1 + (slowest - 1) * step / kPaces, next));
      if (next.picks.empty()) break;
      Settle(ledger, view, next);
      if (rank(next) < rank(best)) best = std::move(next);
    }
  }
  TakeSpan(ledger, view, best, result);
  return absl::OkStatus();
}

void Search::TakeSpan(const Ledger& ledger, const JobView& view, const Span& best, SearchResult& result) const {
  const auto per_task = static_cast<size_t>(SlotsPerTask(*view.job));
  struct Pick {
    NodeId node = 0;
    uint32_t node_row = 0;
    int32_t tasks = 0;
    std::vector<int32_t> devices;
  };
  std::vector<Pick> picks;
  size_t next = 0;
  for (const auto& [offer, tasks] : best.picks) {
    const uint32_t row = offers_[offer].node_row;
    Pick pick{.node = ledger.spec(row).id, .node_row = row, .tasks = tasks, .devices = {}};
    for (size_t i = 0; i < static_cast<size_t>(tasks) * per_task; ++i)
      pick.devices.push_back(best.gpus.empty() ? kNoDevice : best.gpus[next++].device);
    std::sort(pick.devices.begin(), pick.devices.end());
    picks.push_back(std::move(pick));
  }
  std::sort(picks.begin(), picks.end(), [](const Pick& a, const Pick& b) { return a.node < b.node; });
  result.best = {.cost = best.price.cost, .sent = best.price.sent, .straggler = best.price.straggler};
  int32_t task = 0;
  for (const Pick& pick : picks) {
    for (size_t i = 0; i < pick.devices.size(); ++i) {
      result.best.slots.push_back({pick.node_row, pick.devices[i], task + static_cast<int32_t>(i / per_task), 0});
    }
    task += pick.tasks;
  }
  result.spans_nodes = true;
}

void Search::TrySpan(const Ledger& ledger, const JobView& view, double pace, std::vector<Share> shares,
                     Span& best) const {
  const auto node = [&](const Share& share) -> const NodeSpec& { return ledger.spec(offers_[share.offer].node_row); };
  // Racks that hold most of the gang first, so that few racks are touched; then large and cheap nodes.
  std::vector<std::pair<uint64_t, int64_t>> racks;  // shares come rack by rack
  for (const Share& share : shares) {
    if (racks.empty() || racks.back().first != node(share).rack) racks.emplace_back(node(share).rack, 0);
    racks.back().second += share.tasks;
  }
  const auto rack_tasks = [&racks](uint64_t rack) {
    return std::lower_bound(racks.begin(), racks.end(), std::pair(rack, int64_t{0}))->second;
  };
  const auto key = [&](const Share& share) {
    const NodeSpec& spec = node(share);
    return std::tuple(-rack_tasks(spec.rack), spec.rack, -share.tasks, share.cost, spec.id);
  };
  std::sort(shares.begin(), shares.end(), [&](const Share& a, const Share& b) { return key(a) < key(b); });
  Span span{.picks = {}, .pace = pace, .price = {}, .gpus = {}};
  int32_t left = view.job->tasks;
  std::vector<uint64_t> used_racks;
  for (size_t i = 0; i < shares.size() && left > 0; ++i) {
    size_t pick = i;
    if (shares[i].tasks >= left) {  // the last node: the tightest of this rack that holds the rest
      for (size_t j = i + 1; j < shares.size() && node(shares[j]).rack == node(shares[i]).rack; ++j) {
        if (shares[j].tasks < left) break;
        if (shares[j].tasks < shares[pick].tasks) pick = j;
      }
    }
    const NodeOffer& offer = offers_[shares[pick].offer];
    const int32_t tasks = std::min(left, shares[pick].tasks);
    span.picks.emplace_back(shares[pick].offer, tasks);
    AddCheapest(offer, static_cast<size_t>(tasks * view.job->gpus_per_task), pace, span.gpus);
    if (!waits_) span.price.cost += OfferCost(offer, view, tasks);
    used_racks.push_back(node(shares[pick]).rack);
    left -= tasks;
  }
  if (waits_) span.price = PriceGang(span.gpus, PaceOf(ledger, view, span));
  std::sort(used_racks.begin(), used_racks.end());
  span.racks = static_cast<size_t>(std::unique(used_racks.begin(), used_racks.end()) - used_racks.begin());
  const auto rank = [](const Span& one) { return std::tuple(one.picks.size(), one.racks, one.price.cost); };
  if (best.picks.empty() || rank(span) < rank(best)) best = std::move(span);
}

}  // namespace horus
