// SPDX-License-Identifier: Apache-2.0
// Gangs that send gradients: which GPUs of a node, and what a gang over several nodes loses to its links.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "place/communication.h"
#include "place/search.h"

namespace horus {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

}  // namespace

double RelativeSpeedOn(const JobView& view, GpuTypeId type) {
  for (const JobView::OnType& on : view.types) {
    if (!on.type.valid() || on.type == type) return on.relative_speed;
  }
  return 1;
}

JobView WithCommunication(const JobView& view, double communication) {
  JobView linked = view;
  for (JobView::OnType& on : linked.types) on.communication = communication;
  linked.digest = CombineHash(view.digest, std::bit_cast<uint64_t>(communication));
  return linked;
}

bool Search::Linked(const JobView& view) const {
  const JobSpec& job = *view.job;
  return scorer_.policy().prices_links() && GpuCount(job) > 1 &&
         std::any_of(job.demands.begin(), job.demands.end(), [](const auto& one) { return Communicates(one.demand); });
}

// The price of one device where the gang sends over links of that kind, its place included.
absl::Status Search::PriceLinked(const Ledger& ledger, const JobView& linked, double communication, double place,
                                 uint32_t node_row, Reach reach, Fitting& fit) {
  const Policy& policy = scorer_.policy();
  const uint32_t device = ledger.node(node_row).first_device + static_cast<uint32_t>(fit.device);
  if (policy.PricesNode(*linked.job)) {
    fit.cost += policy.LinkCost(RelativeSpeedOn(linked, ledger.state(device).type), communication);
    return absl::OkStatus();
  }
  const uint32_t state = ledger.state_id(device);
  const uint64_t key = uint64_t{state} * kReaches.size() + static_cast<uint64_t>(reach);
  const double* known = link_costs_.Find(key);
  if (known == nullptr) {
    DeviceVerdict verdict;
    HORUS_RETURN_IF_ERROR(scorer_.Weigh(ledger.states(), state, verdict));
    known = &link_costs_.Insert(key, verdict.reason == Reason::kNone ? verdict.cost : kNone);
  }
  if (policy.uses_place() && policy.place_by_device()) {
    place = policy.ScorePlace(PlaceOf(ledger, node_row, linked.job->id, fit.device));
  }
  fit.cost = *known + place;
  return absl::OkStatus();
}

// Exact: whatever the cheapest GPUs are, their fastest common links are those of some part of the node. Taken as GPUs
// of that part they are priced right, and every other choice of any part is priced too high or right.
absl::Status Search::TakeLinked(const Ledger& ledger, const JobView& view, uint32_t node_row,
                                std::span<const Fitting> fitting, double cutoff, Placement& placement) {
  const auto wanted = static_cast<size_t>(GpuCount(*view.job));
  const NodeSpec& node = ledger.spec(node_row);
  const auto spec = [&](const Fitting& fit) -> const DeviceSpec& {
    return node.devices[static_cast<size_t>(fit.device)];
  };
  const DeviceSpec& first = spec(fitting.front());
  const Demand& demand = *FindDemand(*view.job, first.type);
  const Policy& policy = scorer_.policy();
  const double place = policy.uses_place() ? policy.ScorePlace(PlaceOf(ledger, node_row, view.job->id, 0)) : 0;
  placement = {.cost = cutoff};
  std::vector<Fitting> priced;
  for (const Reach reach : kReaches) {
    const double communication =
        CommunicationShare(demand, RingUs(static_cast<double>(demand.gradient_mib), wanted, LinkMbPerS(first, reach)));
    const JobView linked = WithCommunication(view, communication);
    scorer_.SetJob(linked);
    priced.clear();
    for (Fitting fit : fitting) {
      if (PartOf(spec(fit), reach) < 0) continue;
      HORUS_RETURN_IF_ERROR(PriceLinked(ledger, linked, communication, place, node_row, reach, fit));
      fit.group = static_cast<uint32_t>(PartOf(spec(fit), reach));
      priced.push_back(fit);
    }
    std::sort(priced.begin(), priced.end(), [](const Fitting& a, const Fitting& b) {
      return std::tie(a.group, a.cost, a.device) < std::tie(b.group, b.cost, b.device);
    });
    for (size_t begin = 0, end = 0; begin < priced.size(); begin = end) {
      while (end < priced.size() && priced[end].group == priced[begin].group) ++end;
      if (end - begin < wanted) continue;
      double cost = 0;
      for (size_t i = begin; i < begin + wanted; ++i) cost += priced[i].cost;
      if (!(cost < placement.cost)) continue;
      placement = {.cost = cost, .communication = communication};
      for (size_t i = begin; i < begin + wanted; ++i) placement.slots.push_back({node_row, priced[i].device, 0, 0});
    }
  }
  scorer_.SetJob(view);
  std::sort(placement.slots.begin(), placement.slots.end(),
            [](const PlacedSlot& a, const PlacedSlot& b) { return a.device < b.device; });
  for (size_t i = 0; i < placement.slots.size(); ++i) {
    placement.slots[i].task = static_cast<int32_t>(i) / view.job->gpus_per_task;
  }
  return absl::OkStatus();
}

double Search::SpanCommunication(const Ledger& ledger, const JobView& view, const Span& span) const {
  std::vector<GangPart> parts;
  GpuTypeId type;
  std::vector<int32_t> devices;
  for (size_t pick = 0; pick < span.picks.size(); ++pick) {
    const NodeOffer& offer = offers_[span.picks[pick].first];
    const NodeSpec& node = ledger.spec(offer.node_row);
    devices.clear();
    if (span.devices.empty()) {
      const auto slots = static_cast<size_t>(span.picks[pick].second * view.job->gpus_per_task);
      for (size_t i = 0; i < slots; ++i) devices.push_back(Offered(offer, i).device);
    } else {
      devices = span.devices[pick];
    }
    type = node.devices[static_cast<size_t>(devices.front())].type;
    parts.push_back({devices.size(), LinkAmong(node, devices), static_cast<double>(node.network_mb_s), node.rack});
  }
  const Demand& demand = *FindDemand(*view.job, type);
  return CommunicationShare(demand,
                            AllReduceUs(static_cast<double>(demand.gradient_mib), parts, rack_oversubscription_));
}

double Search::SpanLinkCost(const Ledger& ledger, const JobView& view, const Span& span) const {
  const NodeOffer& offer = offers_[span.picks.front().first];
  const GpuTypeId type = ledger.spec(offer.node_row).devices[static_cast<size_t>(Offered(offer, 0).device)].type;
  return GpuCount(*view.job) *
         scorer_.policy().LinkCost(RelativeSpeedOn(view, type), SpanCommunication(ledger, view, span));
}

// The cheapest of what the node offers inside one part of that kind; false where no part has enough.
bool Search::ChooseInPart(const Ledger& ledger, const NodeOffer& offer, size_t gpus, size_t offered, Reach reach,
                          std::vector<int32_t>& devices, double& cost) const {
  const NodeSpec& node = ledger.spec(offer.node_row);
  std::vector<Fitting> sorted;
  for (size_t i = 0; i < offered; ++i) {
    Fitting fit = Offered(offer, i);
    const int32_t part = PartOf(node.devices[static_cast<size_t>(fit.device)], reach);
    if (part < 0) continue;
    fit.group = static_cast<uint32_t>(part);
    sorted.push_back(fit);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const Fitting& a, const Fitting& b) { return a.group < b.group; });
  cost = kNone;
  for (size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
    while (end < sorted.size() && sorted[end].group == sorted[begin].group) ++end;
    if (end - begin < gpus) continue;
    double sum = 0;
    for (size_t i = begin; i < begin + gpus; ++i) sum += sorted[i].cost;
    if (sum >= cost) continue;
    cost = sum;
    devices.clear();
    for (size_t i = begin; i < begin + gpus; ++i) devices.push_back(sorted[i].device);
  }
  return cost < kNone;
}

// Takes each node's GPUs from one part where that pays for the gang, by what links cost GPUs that nobody slows, and
// prices what it chose.
absl::Status Search::LinkSpan(const Ledger& ledger, const JobView& view, Span& span, Placement& placement) {
  const auto per_task = static_cast<size_t>(view.job->gpus_per_task);
  Span best;
  for (const Reach reach : {Reach::kNode, Reach::kSocket, Reach::kSwitch, Reach::kIsland}) {
    Span one{.picks = span.picks, .racks = span.racks};
    one.devices.resize(one.picks.size());
    for (size_t i = 0; i < one.picks.size(); ++i) {
      const NodeOffer& offer = offers_[one.picks[i].first];
      const size_t gpus = static_cast<size_t>(one.picks[i].second) * per_task;
      const size_t offered = static_cast<size_t>(offer.tasks) * per_task + offer.spare;
      double cost = 0;
      if (!ChooseInPart(ledger, offer, gpus, offered, reach, one.devices[i], cost))
        (void)ChooseInPart(ledger, offer, gpus, offered, Reach::kNode, one.devices[i], cost);
      one.cost += cost;
    }
    one.cost += SpanLinkCost(ledger, view, one);
    if (best.picks.empty() || one.cost < best.cost) best = std::move(one);
  }
  span = std::move(best);
  placement.communication = SpanCommunication(ledger, view, span);
  if (scorer_.policy().PricesNode(*view.job)) return absl::OkStatus();
  const Policy& policy = scorer_.policy();
  const JobView linked = WithCommunication(view, placement.communication);
  scorer_.SetJob(linked);
  link_costs_.clear();
  span.cost = 0;
  for (size_t i = 0; i < span.picks.size(); ++i) {
    const uint32_t row = offers_[span.picks[i].first].node_row;
    const double place = policy.uses_place() ? policy.ScorePlace(PlaceOf(ledger, row, view.job->id, 0)) : 0;
    for (const int32_t device : span.devices[i]) {
      Fitting fit{.cost = 0, .device = device, .group = 0};
      HORUS_RETURN_IF_ERROR(PriceLinked(ledger, linked, placement.communication, place, row, Reach::kNode, fit));
      span.cost += fit.cost;
    }
  }
  scorer_.SetJob(view);
  return absl::OkStatus();
}

}  // namespace horus
