// SPDX-License-Identifier: Apache-2.0
// Gangs inside one node, and what gangs lose to the links between their GPUs.
#include <algorithm>
#include <limits>
#include <utility>

#include "base/status.h"
#include "place/communication.h"
#include "place/search/search.h"

namespace horus {

double RelativeSpeedOn(const JobView& view, GpuTypeId type) {
  for (const JobView::OnType& on : view.types) {
    if (!on.type.valid() || on.type == type) return on.relative_speed;
  }
  return 1;
}

bool Search::Linked(const JobView& view) const {
  const JobSpec& job = *view.job;
  return waits_ && scorer_.policy().prices_links() &&
         std::any_of(job.demands.begin(), job.demands.end(), [](const auto& one) { return Communicates(one.demand); });
}

// Exact: whatever the cheapest GPUs are, their fastest common links are those of some part of the node. Taken as GPUs
// of that part they are priced right, and every other choice of any part is priced too high or right.
void Search::TakeTogether(const Ledger& ledger, const JobView& view, const NodeOffer& offer, double cutoff,
                          Placement& placement) const {
  const auto wanted = static_cast<size_t>(GpuCount(*view.job));
  const std::vector<DeviceSpec>& devices = ledger.spec(offer.node_row).devices;
  GangPace pace{.speed = offer.speed};
  placement = {.cost = cutoff};
  std::vector<PricedGpu> chosen;
  const auto try_on = [&](std::span<const PricedGpu> gpus) {
    const GangOffer one{gpus, wanted};
    const GangPrice price = CheapestGang({&one, 1}, pace, chosen);
    if (!(price.cost < placement.cost)) return;
    placement = {.cost = price.cost, .sent = price.sent, .straggler = price.straggler};
    for (const PricedGpu& gpu : chosen) placement.slots.push_back({offer.node_row, gpu.device, 0, 0});
  };
  if (!linked_) try_on(Offered(offer));
  std::vector<PricedGpu> parts;
  for (const Reach reach : kReaches) {
    if (!linked_) break;
    const DeviceSpec& first = devices[static_cast<size_t>(Offered(offer).front().device)];
    const Demand& demand = *FindDemand(*view.job, first.type);
    pace.communication =
        CommunicationShare(demand, RingUs(static_cast<double>(demand.gradient_mib), wanted, LinkMbPerS(first, reach)));
    parts.clear();
    for (PricedGpu gpu : Offered(offer)) {
      const int32_t part = PartOf(devices[static_cast<size_t>(gpu.device)], reach);
      if (part < 0) continue;
      gpu.group = static_cast<uint32_t>(part);
      parts.push_back(gpu);
    }
    std::stable_sort(parts.begin(), parts.end(),
                     [](const PricedGpu& a, const PricedGpu& b) { return a.group < b.group; });
    for (size_t begin = 0, end = 0; begin < parts.size(); begin = end) {
      while (end < parts.size() && parts[end].group == parts[begin].group) ++end;
      if (end - begin >= wanted) try_on(std::span(parts).subspan(begin, end - begin));
    }
  }
  std::sort(placement.slots.begin(), placement.slots.end(),
            [](const PlacedSlot& a, const PlacedSlot& b) { return a.device < b.device; });
  for (size_t i = 0; i < placement.slots.size(); ++i) {
    placement.slots[i].task = static_cast<int32_t>(i) / view.job->gpus_per_task;
  }
}

GangPace Search::PaceOf(const Ledger& ledger, const JobView& view, const Span& span) const {
  GangPace pace{.speed = offers_[span.picks.front().first].speed};
  if (!linked_) return pace;
  std::vector<GangSlot> slots;
  auto gpu = span.gpus.begin();
  for (const auto& [pick, tasks] : span.picks) {
    const NodeSpec& node = ledger.spec(offers_[pick].node_row);
    for (int32_t i = 0; i < tasks * view.job->gpus_per_task; ++i) slots.push_back({&node, (gpu++)->device});
  }
  const Demand& demand =
      *FindDemand(*view.job, slots.front().node->devices[static_cast<size_t>(slots.front().device)].type);
  pace.communication = CommunicationShare(
      demand, GangAllReduceUs(static_cast<double>(demand.gradient_mib), slots, rack_oversubscription_));
  return pace;
}

bool Search::ChooseInPart(const Ledger& ledger, const NodeOffer& offer, size_t gpus, double pace, Reach reach,
                          std::vector<PricedGpu>& part) const {
  const NodeSpec& node = ledger.spec(offer.node_row);
  std::vector<PricedGpu> sorted;
  for (PricedGpu gpu : Offered(offer)) {
    const int32_t in = PartOf(node.devices[static_cast<size_t>(gpu.device)], reach);
    if (in < 0) continue;
    gpu.group = static_cast<uint32_t>(in);
    sorted.push_back(gpu);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const PricedGpu& a, const PricedGpu& b) { return a.group < b.group; });
  double least = std::numeric_limits<double>::infinity();
  for (size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
    double sum = 0;
    size_t taken = 0;
    for (; end < sorted.size() && sorted[end].group == sorted[begin].group; ++end) {
      if (taken == gpus || !Keeps(offer, sorted[end], pace)) continue;
      sum += sorted[end].cost;
      ++taken;
    }
    if (taken < gpus || sum >= least) continue;
    least = sum;
    part.assign(sorted.begin() + static_cast<ptrdiff_t>(begin), sorted.begin() + static_cast<ptrdiff_t>(end));
  }
  return least < std::numeric_limits<double>::infinity();
}

// Each node's GPUs come from one part where that pays for the gang.
void Search::Settle(const Ledger& ledger, const JobView& view, Span& span) const {
  if (IsCpuOnly(*view.job)) return;
  const auto gpus_of = [&](int32_t tasks) { return static_cast<size_t>(tasks * view.job->gpus_per_task); };
  Span best;
  for (const Reach reach : {Reach::kNode, Reach::kSocket, Reach::kSwitch, Reach::kIsland}) {
    if (reach != Reach::kNode && !linked_) break;
    Span one{.picks = span.picks, .racks = span.racks, .pace = span.pace};
    std::vector<std::vector<PricedGpu>> parts(one.picks.size());
    std::vector<GangOffer> offers;
    for (size_t i = 0; i < one.picks.size(); ++i) {
      const NodeOffer& offer = offers_[one.picks[i].first];
      const size_t wanted = gpus_of(one.picks[i].second);
      const bool together = reach != Reach::kNode && ChooseInPart(ledger, offer, wanted, one.pace, reach, parts[i]);
      offers.push_back({together ? std::span<const PricedGpu>(parts[i]) : Offered(offer), wanted});
      const auto first = offers.back().gpus.begin();
      one.gpus.insert(one.gpus.end(), first, first + static_cast<ptrdiff_t>(wanted));
    }
    // Their links are nearly those of the cheapest in the same parts.
    const GangPace about = PaceOf(ledger, view, one);
    (void)CheapestGang(offers, about, one.gpus);
    one.price = PriceGang(one.gpus, PaceOf(ledger, view, one));
    if (best.picks.empty() || one.price.cost < best.price.cost) best = std::move(one);
  }
  span = std::move(best);
}

absl::Status Search::PriceSlots(const Ledger& ledger, const JobView& view, Placement& placement) {
  const Policy& policy = scorer_.policy();
  const JobSpec& job = *view.job;
  std::vector<PricedGpu> gpus;
  std::vector<GangSlot> gang;
  for (const PlacedSlot& slot : placement.slots) {
    DeviceVerdict verdict;
    if (slot.device != kNoDevice) {
      const uint32_t state = ledger.state_id(ledger.device_of(slot));
      HORUS_RETURN_IF_ERROR(scorer_.Weigh(ledger.states(), state, verdict));
    }
    if (policy.uses_place()) verdict.cost += policy.ScorePlace(PlaceOf(ledger, slot.node_row, job.id, slot.device));
    gpus.push_back({verdict.cost, slot.device, 0, verdict.own_work});
    gang.push_back({&ledger.spec(slot.node_row), slot.device});
  }
  GangPace pace;
  waits_ = GpuCount(job) > 1 && policy.maximises_work();
  linked_ = Linked(view);
  if (waits_) {
    const GpuTypeId type = gang.front().node->devices[static_cast<size_t>(gang.front().device)].type;
    pace.speed = RelativeSpeedOn(view, type);
    if (const Demand* demand = FindDemand(job, type); linked_ && demand != nullptr) {
      pace.communication = CommunicationShare(
          *demand, GangAllReduceUs(static_cast<double>(demand->gradient_mib), gang, rack_oversubscription_));
    }
  }
  const GangPrice price = PriceGang(gpus, pace);
  placement.cost = price.cost;
  placement.sent = price.sent;
  placement.straggler = price.straggler;
  return absl::OkStatus();
}

}  // namespace horus
