// SPDX-License-Identifier: Apache-2.0
// Gangs: what one costs, and the heuristic "fewest nodes, one rack first" for those that fit no single node.
#include "place/search/gang.h"

#include "place/search/admit.h"
#include "place/search/search.h"

namespace horus {
namespace {

// ---- The price of a gang, and the exact choice of its GPUs by the speed of the slowest.

double LeastWork(std::span<const PricedGpu> gpus) {
  double least = std::numeric_limits<double>::infinity();
  for (const PricedGpu& gpu : gpus) least = std::min(least, gpu.own_work);
  return least;
}

// What a GPU costs a gang whose speed is given.
double Rest(const PricedGpu& gpu) { return gpu.cost + gpu.own_work; }

// Whether the GPUs that cost least by themselves, which it takes, cost the gang least too: they do where none waits for
// another and none that is slower would send for less.
bool TakeCheapest(std::span<const GangOffer> offers, const GangPace& pace, std::vector<PricedGpu>& chosen) {
  bool alike = true;
  const double own_work = offers.front().gpus.front().own_work;
  for (const GangOffer& offer : offers) {
    chosen.insert(chosen.end(), offer.gpus.begin(), offer.gpus.begin() + static_cast<ptrdiff_t>(offer.wanted));
    const std::span<const PricedGpu> asked = pace.communication > 0 ? offer.gpus : offer.gpus.first(offer.wanted);
    for (const PricedGpu& gpu : asked) alike = alike && gpu.own_work == own_work;
  }
  return alike;
}

// Of one offer, the cheapest so far among GPUs that come fastest first.
struct Kept {
  std::vector<double> rests;  // a heap, dearest first
  double sum = 0;
};

// The least own work that a GPU of the cheapest gang has.
double BestPace(std::span<const GangOffer> offers, const GangPace& pace) {
  std::vector<std::tuple<double, size_t, double>> order;  // own work negated, offer, rest
  size_t wanted = 0;
  for (size_t i = 0; i < offers.size(); ++i) {
    wanted += offers[i].wanted;
    for (const PricedGpu& gpu : offers[i].gpus) order.emplace_back(-gpu.own_work, i, Rest(gpu));
  }
  std::ranges::sort(order);
  std::vector<Kept> kept(offers.size());
  size_t full = 0;
  double best = std::numeric_limits<double>::infinity();
  double best_work = 0;
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    const double own_work = -std::get<0>(order[begin]);
    for (; end < order.size() && std::get<0>(order[end]) == std::get<0>(order[begin]); ++end) {
      const auto [key, offer, rest] = order[end];
      Kept& of = kept[offer];
      of.rests.push_back(rest);
      of.sum += rest;
      std::push_heap(of.rests.begin(), of.rests.end());
      full += of.rests.size() == offers[offer].wanted ? 1 : 0;
      if (of.rests.size() <= offers[offer].wanted) continue;
      std::pop_heap(of.rests.begin(), of.rests.end());
      of.sum -= of.rests.back();
      of.rests.pop_back();
    }
    if (full < offers.size()) continue;
    double cost = -static_cast<double>(wanted) * WorkWhileSending(own_work, pace);
    for (const Kept& of : kept) cost += of.sum;
    if (cost >= best) continue;
    best = cost;
    best_work = own_work;
  }
  return best_work;
}

}  // namespace

GangPrice PriceGang(std::span<const PricedGpu> gpus, const GangPace& pace) {
  GangPrice price;
  const double least = WorkWhileSending(LeastWork(gpus), pace);
  for (const PricedGpu& gpu : gpus) {
    const double own_work = WorkWhileSending(gpu.own_work, pace);
    price.cost += gpu.cost;
    price.sent += gpu.own_work - own_work;
    price.straggler += own_work - least;
  }
  price.cost += price.sent + price.straggler;
  return price;
}

GangPrice CheapestGang(std::span<const GangOffer> offers, const GangPace& pace, std::vector<PricedGpu>& chosen) {
  chosen.clear();
  if (TakeCheapest(offers, pace, chosen)) return PriceGang(chosen, pace);
  chosen.clear();
  const double least = BestPace(offers, pace);
  std::vector<PricedGpu> able;
  for (const GangOffer& offer : offers) {
    able.clear();
    for (const PricedGpu& gpu : offer.gpus) {
      if (gpu.own_work >= least) able.push_back(gpu);
    }
    std::ranges::sort(able, [](const PricedGpu& a, const PricedGpu& b) {
      return std::tuple(Rest(a), a.cost, a.device) < std::tuple(Rest(b), b.cost, b.device);
    });
    chosen.insert(chosen.end(), able.begin(), able.begin() + static_cast<ptrdiff_t>(offer.wanted));
  }
  return PriceGang(chosen, pace);
}

// ---- Gangs that fit no single node: the heuristic "fewest nodes, one rack first".

// How often a gang is spread anew without those that would slow it most; a choice, see docs/place.md.
constexpr int kPaces = 3;
constexpr double kSpeedRounding = 1e-9;  // of speeds

bool Search::Keeps(const NodeOffer& offer, const PricedGpu& gpu, double pace) {
  return pace == kAnyPace || gpu.own_work * pace >= offer.speed * (1 - kSpeedRounding);
}

double Search::OfferCost(const NodeOffer& offer, int32_t tasks) const {
  if (offer.count == 0) return static_cast<double>(tasks) * offered_[offer.first].cost;
  double cost = 0;
  for (const PricedGpu& gpu : Offered(offer).first(static_cast<size_t>(tasks * view_->job->gpus_per_task)))
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

Search::Share Search::ShareOf(uint32_t offer, double pace) const {
  const NodeOffer& of = offers_[offer];
  if (pace == kAnyPace) return {offer, of.tasks, of.cost};
  const std::span<const PricedGpu> gpus = Offered(of);
  const auto kept = std::ranges::count_if(gpus, [&](const PricedGpu& gpu) { return Keeps(of, gpu, pace); });
  Share share{offer, std::min(of.tasks, static_cast<int32_t>(kept / view_->job->gpus_per_task)), 0};
  auto left = static_cast<int64_t>(share.tasks) * view_->job->gpus_per_task;
  for (const PricedGpu& gpu : gpus) {
    if (left == 0 || !Keeps(of, gpu, pace)) continue;
    share.cost += gpu.cost;
    --left;
  }
  return share;
}

void Search::CountOffers(SearchResult& result) const {
  struct Group {
    uint32_t group = 0;
    int64_t tasks = 0;
    const NodeOffer* largest = nullptr;  // among equals the first by rack, then node
  };
  std::vector<Group> groups;
  const auto rack = [&](const NodeOffer& offer) { return ledger_->spec(offer.node_row).rack; };
  for (const NodeOffer& offer : offers_) {  // by ascending node
    auto at = std::ranges::find_if(groups, [&](const Group& one) { return one.group == offer.group; });
    if (at == groups.end()) at = groups.insert(groups.end(), {offer.group, 0, &offer});
    at->tasks += offer.tasks;
    if (std::tuple(-offer.tasks, rack(offer)) < std::tuple(-at->largest->tasks, rack(*at->largest)))
      at->largest = &offer;
  }
  std::ranges::sort(groups, [](const Group& a, const Group& b) { return a.group < b.group; });
  for (const Group& one : groups) {
    const auto gpus = static_cast<uint32_t>(std::min(one.tasks * SlotsPerTask(*view_->job), int64_t{UINT32_MAX}));
    if (gpus <= result.most_fitting) continue;
    result.most_fitting = gpus;
    result.most_node_row = one.largest->node_row;
  }
}

void Search::SpreadGang(double pace, Span& best) const {
  const auto rack = [&](const Share& share) { return ledger_->spec(offers_[share.offer].node_row).rack; };
  const auto group = [&](const Share& share) { return offers_[share.offer].group; };
  std::vector<Share> shares;
  for (uint32_t i = 0; i < offers_.size(); ++i) {
    if (const Share share = ShareOf(i, pace); share.tasks > 0) shares.push_back(share);
  }
  const auto key = [&](const Share& share) {
    return std::tuple(group(share), rack(share), ledger_->spec(offers_[share.offer].node_row).id);
  };
  std::ranges::sort(shares, [&](const Share& a, const Share& b) { return key(a) < key(b); });
  const auto at = [&](size_t i) { return shares.begin() + static_cast<ptrdiff_t>(i); };
  for (size_t begin = 0, end = 0; begin < shares.size(); begin = end) {
    int64_t in_group = 0;
    while (end < shares.size() && group(shares[end]) == group(shares[begin])) in_group += shares[end++].tasks;
    if (in_group < view_->job->tasks) continue;
    bool one_rack = false;
    for (size_t first = begin, last = begin; first < end; first = last) {
      int64_t in_rack = 0;
      while (last < end && rack(shares[last]) == rack(shares[first])) in_rack += shares[last++].tasks;
      if (in_rack < view_->job->tasks) continue;
      one_rack = true;
      TrySpan(pace, {at(first), at(last)}, best);
    }
    if (!one_rack) TrySpan(pace, {at(begin), at(end)}, best);
  }
}

// The first span shows how slow a gang on fewest nodes would be. Where that costs more than further nodes do, the same
// is done without the GPUs that slow it: of gangs that send over priced links by the cost alone, which counts what
// further nodes lose; of others only where nodes and racks are as few.
absl::Status Search::SpreadAtPaces(const AtPace& at, SearchResult& result) {
  Span best;
  HORUS_RETURN_IF_ERROR(at(kAnyPace, best));
  if (best.picks.empty()) return absl::OkStatus();
  Settle(best);
  if (waits_) {
    double slowest = 1;
    for (const PricedGpu& gpu : best.gpus)
      slowest = std::max(slowest, offers_[best.picks.front().first].speed / gpu.own_work);
    const auto rank = [&](const Span& one) {
      return linked_ ? std::tuple(one.price.cost, one.picks.size(), one.racks, 0.0)
                     : std::tuple(0.0, one.picks.size(), one.racks, one.price.cost);
    };
    for (int step = kPaces - 1; step >= 0 && slowest > 1 + kSpeedRounding; --step) {
      Span next;
      HORUS_RETURN_IF_ERROR(at(1 + (slowest - 1) * step / kPaces, next));
      if (next.picks.empty()) break;
      Settle(next);
      if (rank(next) < rank(best)) best = std::move(next);
    }
  }
  TakeSpan(best, result);
  return absl::OkStatus();
}

void Search::TakeSpan(const Span& best, SearchResult& result) const {
  const auto per_task = static_cast<size_t>(SlotsPerTask(*view_->job));
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
    Pick pick{.node = ledger_->spec(row).id, .node_row = row, .tasks = tasks, .devices = {}};
    for (size_t i = 0; i < static_cast<size_t>(tasks) * per_task; ++i)
      pick.devices.push_back(best.gpus.empty() ? kNoDevice : best.gpus[next++].device);
    std::ranges::sort(pick.devices);
    picks.push_back(std::move(pick));
  }
  std::ranges::sort(picks, [](const Pick& a, const Pick& b) { return a.node < b.node; });
  result.best = {.cost = best.price.cost, .sent = best.price.sent, .straggler = best.price.straggler};
  int32_t task = 0;
  for (const Pick& pick : picks) {
    for (size_t i = 0; i < pick.devices.size(); ++i)
      result.best.slots.push_back(SlotAt(pick.node_row, pick.devices[i], task + static_cast<int32_t>(i / per_task)));
    task += pick.tasks;
  }
  result.spans_nodes = true;
}

void Search::TrySpan(double pace, std::vector<Share> shares, Span& best) const {
  const auto node = [&](const Share& share) -> const NodeSpec& { return ledger_->spec(offers_[share.offer].node_row); };
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
  std::ranges::sort(shares, [&](const Share& a, const Share& b) { return key(a) < key(b); });
  Span span{.picks = {}, .pace = pace, .price = {}, .gpus = {}};
  int32_t left = view_->job->tasks;
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
    AddCheapest(offer, static_cast<size_t>(tasks * view_->job->gpus_per_task), pace, span.gpus);
    if (!waits_) span.price.cost += OfferCost(offer, tasks);
    used_racks.push_back(node(shares[pick]).rack);
    left -= tasks;
  }
  if (left > 0) return;  // cannot be: that many tasks were counted
  if (waits_) span.price = PriceGang(span.gpus, PaceOf(span));
  SortUnique(used_racks);
  span.racks = used_racks.size();
  const auto rank = [](const Span& one) { return std::tuple(one.picks.size(), one.racks, one.price.cost); };
  if (best.picks.empty() || rank(span) < rank(best)) best = std::move(span);
}

// Gangs on all nodes, by the index: looks only at nodes that may hold the whole gang, else at racks that may matter.

namespace {

using Entry = GangIndex::Entry;

}  // namespace

absl::Status Search::CountTasks(double pace) {
  if (pace == counted_pace_) return absl::OkStatus();
  counted_pace_ = pace;
  const JobSpec& job = *view_->job;
  const uint8_t within = DevicePaces::Within(pace);
  paces_on_ = {};
  if (paces_.Pays(scorer_, *view_)) HORUS_SET_OR_RETURN(paces_on_, paces_.Of(*ledger_, scorer_, *view_, Timed()));
  const std::span<const uint8_t> paces = paces_on_;
  const auto mixed = [&](const Entry& entry) {
    int32_t count = 0;
    for (uint32_t device = entry.first_device; device < entry.first_device + entry.devices; ++device)
      count += paces[device] <= within && GroupOf(ledger_->state(device)) == entry.group ? 1 : 0;
    return count;
  };
  const std::span<const Entry> entries = gangs_.entries();
  tasks_on_.resize(entries.size());
  const std::span<int32_t> tasks_on = tasks_on_;
  for (size_t at = 0; at < entries.size(); ++at) {
    const Entry& entry = entries[at];
    tasks_on[at] = paces.empty() ? entry.open
                   : entry.whole ? DevicePaces::Count(paces.subspan(entry.first_device, entry.devices), within)
                                 : mixed(entry);
  }
  if (job.spread_tasks || job.gpus_per_task > 1) {
    std::vector<int32_t> tasks_of;  // by devices: divisions take long
    for (int32_t& here : tasks_on) {
      for (auto next = static_cast<int32_t>(tasks_of.size()); next <= here; ++next)
        tasks_of.push_back(job.spread_tasks ? std::min(next / job.gpus_per_task, 1) : next / job.gpus_per_task);
      here = tasks_of[static_cast<size_t>(here)];
    }
  }
  racks_on_.clear();
  for (const GangIndex::Rack& rack : gangs_.racks()) {
    int64_t most = 0;
    for (const int32_t here : tasks_on.subspan(rack.begin, rack.end - rack.begin)) most += here;
    racks_on_.push_back({&rack, most});
  }
  return absl::OkStatus();
}

// By what is known of the devices' paces.
absl::Status Search::CountEntry(const Entry& entry, double pace, bool& exact, int32_t& tasks) {
  const JobSpec& job = *view_->job;
  const uint8_t surely = DevicePaces::SurelyWithin(pace);
  const uint8_t most = DevicePaces::Within(pace);
  int32_t sure = 0, devices = 0;
  for (uint32_t device = entry.first_device; device < entry.first_device + entry.devices; ++device) {
    if (!entry.whole && GroupOf(ledger_->state(device)) != entry.group) continue;
    uint8_t& known = paces_on_[device];
    if (known == DevicePaces::kUnknown)
      HORUS_RETURN_IF_ERROR(DevicePaces::Judge(*ledger_, scorer_, *view_, Timed(), device, known));
    if (known > most || BarsFrom(*ledger_, device, *view_) != Reason::kNone) continue;
    ++devices;
    sure += known <= surely ? 1 : 0;
  }
  int64_t host = 0;
  if (devices > 0 && AdmitNode(scorer_.policy(), *ledger_, entry.node_row, job) == Reason::kNone)
    host = HostTasks(job, ledger_->node(entry.node_row).free, job.tasks);
  tasks = static_cast<int32_t>(std::min(host, int64_t{devices / job.gpus_per_task}));
  exact =
      tasks == 0 || (!scorer_.policy().PricesNode(job) && std::min(host, int64_t{sure / job.gpus_per_task}) == tasks);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Search::CountRack(const GangIndex::Rack& rack, double pace, SearchResult& result) {
  int64_t tasks = 0;
  for (uint32_t at = rack.begin; at < rack.end; ++at) {
    if (tasks_on_[at] == 0) continue;
    const Entry& entry = gangs_.entries()[at];
    bool exact = false;
    if (!paces_on_.empty()) HORUS_RETURN_IF_ERROR(CountEntry(entry, pace, exact, tasks_on_[at]));
    if (!exact) {
      HORUS_ASSIGN_OR_RETURN(const OfferRange offers, OffersOf(entry.node_row, result));
      tasks_on_[at] = 0;
      for (uint32_t i = offers.first; i < offers.last; ++i) {
        if (offers_[i].group == entry.group) tasks_on_[at] += ShareOf(i, pace).tasks;
      }
    }
    tasks += tasks_on_[at];
  }
  return tasks;
}

size_t Search::LeastNodes(std::span<const int32_t> tasks_on, int64_t tasks) {
  holding_.clear();  // number of nodes, by tasks that they hold
  for (const int32_t here : tasks_on) {
    if (static_cast<size_t>(here) >= holding_.size()) holding_.resize(static_cast<size_t>(here) + 1);
    ++holding_[static_cast<size_t>(here)];
  }
  size_t nodes = 0;
  for (size_t here = holding_.size(); here-- > 1 && tasks > 0;) {
    const auto each = static_cast<int64_t>(here);
    const int64_t taken = std::min((tasks + each - 1) / each, int64_t{holding_[here]});
    nodes += static_cast<size_t>(taken);
    tasks -= taken * each;
  }
  return nodes;
}

bool Search::CanIndexGang() const {
  const JobSpec& job = *view_->job;
  return GpuCount(job) > 1 && !scorer_.exhaustive() && !(job.tasks == 1 && scorer_.policy().PricesNode(job));
}

absl::Status Search::OfferNode(uint32_t node_row, SearchResult& result) {
  const JobSpec& job = *view_->job;
  const LedgerNode& node = ledger_->node(node_row);
  if (AdmitNode(scorer_.policy(), *ledger_, node_row, job) != Reason::kNone) return absl::OkStatus();
  HORUS_RETURN_IF_ERROR(GatherNode(node_row, !scorer_.weighs_cheaply(), result));
  TakeGang(node_row, HostTasks(job, node.free, job.tasks), result);
  return absl::OkStatus();
}

absl::StatusOr<Search::OfferRange> Search::OffersOf(uint32_t node_row, SearchResult& result) {
  if (const OfferRange* known = node_offers_.Find(node_row)) return *known;
  OfferRange offers;
  offers.first = static_cast<uint32_t>(offers_.size());
  HORUS_RETURN_IF_ERROR(OfferNode(node_row, result));
  offers.last = static_cast<uint32_t>(offers_.size());
  return node_offers_.Insert(node_row, offers);
}

// Appends what the nodes of one rack and group offer at that pace.
absl::Status Search::OfferRack(const GangIndex::Rack& rack, double pace, std::vector<Share>& shares,
                               SearchResult& result) {
  for (uint32_t at = rack.begin; at < rack.end; ++at) {
    if (tasks_on_[at] == 0) continue;
    const Entry& entry = gangs_.entries()[at];
    HORUS_ASSIGN_OR_RETURN(const OfferRange offers, OffersOf(entry.node_row, result));
    for (uint32_t i = offers.first; i < offers.last; ++i) {
      if (offers_[i].group != entry.group) continue;
      if (const Share share = ShareOf(i, pace); share.tasks > 0) shares.push_back(share);
    }
  }
  return absl::OkStatus();
}

// All racks of a group together, those with most tasks first, as far as the gang needs them.
absl::Status Search::SpreadOverRacks(std::span<const IndexedRack> racks, double pace, std::vector<RackSpan>& fewest,
                                     SearchResult& result) {
  constexpr uint32_t kNone = UINT32_MAX;
  const int64_t tasks = view_->job->tasks;  // no rack holds them all
  // Lists of racks, ascending, by the tasks that they hold: at most, and exactly once they are counted. A heap takes
  // longer.
  std::vector<uint32_t> holding(static_cast<size_t>(tasks) + 1, kNone);
  std::vector<uint32_t> latest(holding.size(), kNone);  // put into each; the next mostly comes soon after it
  std::vector<uint32_t> next(racks.size(), kNone);
  std::vector<bool> counted(racks.size());
  const auto put = [&](uint32_t rack, int64_t held) {
    const auto list = static_cast<size_t>(std::min(held, tasks));
    uint32_t* at = latest[list] < rack ? &next[latest[list]] : &holding[list];
    while (*at < rack) at = &next[*at];
    next[rack] = std::exchange(*at, rack);
    latest[list] = rack;
  };
  for (auto i = static_cast<uint32_t>(racks.size()); i-- > 0;) put(i, racks[i].most);
  RackSpan span;
  int64_t left = tasks;
  for (int64_t held = tasks; held > 0 && left > 0;) {
    uint32_t& first = holding[static_cast<size_t>(held)];
    if (first == kNone) {
      --held;
      continue;
    }
    const uint32_t at = first;
    const GangIndex::Rack& rack = *racks[at].rack;
    first = next[at];
    latest[static_cast<size_t>(held)] = kNone;
    if (!counted[at]) {
      counted[at] = true;
      HORUS_ASSIGN_OR_RETURN(const int64_t exactly, CountRack(rack, pace, result));
      put(at, exactly);
      continue;
    }
    span.nodes += LeastNodes(TasksOn(rack.begin, rack.end), left);
    span.racks.push_back(&rack);
    if (!fewest.empty() && fewest.front().IsFewerThan(span)) return absl::OkStatus();
    left -= held;
  }
  if (left <= 0) KeepFewest(std::move(span), fewest);
  return absl::OkStatus();
}

void Search::KeepFewest(RackSpan span, std::vector<RackSpan>& fewest) {
  if (!fewest.empty() && fewest.front().IsFewerThan(span)) return;
  if (!fewest.empty() && span.IsFewerThan(fewest.front())) fewest.clear();
  fewest.push_back(std::move(span));
}

absl::Status Search::SpreadGroup(std::span<IndexedRack> racks, double pace, std::vector<RackSpan>& fewest,
                                 SearchResult& result) {
  const int64_t tasks = view_->job->tasks;
  int64_t most = 0;
  for (const IndexedRack& one : racks) most += one.most;
  if (most < tasks) return absl::OkStatus();
  const auto needs_more = [&](uint32_t begin, uint32_t end) {
    return !fewest.empty() && LeastNodes(TasksOn(begin, end), tasks) > fewest.front().nodes;
  };
  if (needs_more(racks.front().rack->begin, racks.back().rack->end)) return absl::OkStatus();
  bool one_rack = false;
  std::vector<const GangIndex::Rack*> passed;  // too many nodes, if they hold it at all
  for (IndexedRack& one : racks) {
    if (one.most < tasks) continue;
    if (needs_more(one.rack->begin, one.rack->end)) {
      passed.push_back(one.rack);
      continue;
    }
    HORUS_ASSIGN_OR_RETURN(one.most, CountRack(*one.rack, pace, result));
    if (one.most < tasks) continue;
    one_rack = true;
    KeepFewest({LeastNodes(TasksOn(one.rack->begin, one.rack->end), tasks), {one.rack}}, fewest);
  }
  for (size_t i = 0; i < passed.size() && !one_rack; ++i) {
    HORUS_ASSIGN_OR_RETURN(const int64_t held, CountRack(*passed[i], pace, result));
    one_rack = held >= tasks;
  }
  return one_rack ? absl::OkStatus() : SpreadOverRacks(racks, pace, fewest, result);
}

absl::Status Search::SpreadIndexed(double pace, Span& best, SearchResult& result) {
  HORUS_RETURN_IF_ERROR(CountTasks(pace));
  const std::span<IndexedRack> racks = racks_on_;
  std::vector<RackSpan> fewest;
  for (size_t begin = 0, end = 0; begin < racks.size(); begin = end) {
    while (end < racks.size() && racks[end].rack->group == racks[begin].rack->group) ++end;
    HORUS_RETURN_IF_ERROR(SpreadGroup(racks.subspan(begin, end - begin), pace, fewest, result));
  }
  std::vector<Share> shares;
  for (RackSpan& span : fewest) {
    std::ranges::sort(span.racks, [](const auto* a, const auto* b) { return a->rack < b->rack; });
    shares.clear();
    for (const GangIndex::Rack* rack : span.racks) HORUS_RETURN_IF_ERROR(OfferRack(*rack, pace, shares, result));
    TrySpan(pace, shares, best);
  }
  return absl::OkStatus();
}

absl::Status Search::TakeIndexedGang(SearchResult& result) {
  offers_.clear();
  offered_.clear();
  node_offers_.clear();
  gangs_.CatchUp(*ledger_);
  counted_pace_ = 0;
  HORUS_RETURN_IF_ERROR(CountTasks(kAnyPace));
  const std::span<const Entry> entries = gangs_.entries();
  std::vector<std::pair<NodeId, uint32_t>> whole;  // nodes that may hold the whole gang
  for (const IndexedRack& one : racks_on_) {
    if (one.most < view_->job->tasks) continue;
    for (uint32_t at = one.rack->begin; at < one.rack->end; ++at) {
      if (tasks_on_[at] < view_->job->tasks) continue;
      bool exact = false;
      if (!paces_on_.empty()) HORUS_RETURN_IF_ERROR(CountEntry(entries[at], kAnyPace, exact, tasks_on_[at]));
      if (tasks_on_[at] >= view_->job->tasks) whole.emplace_back(entries[at].node, entries[at].node_row);
    }
  }
  SortUnique(whole);
  for (const auto& [id, row] : whole) HORUS_RETURN_IF_ERROR(OffersOf(row, result).status());
  if (!result.best.slots.empty() || view_->job->tasks == 1) return absl::OkStatus();
  const auto at = [&](double pace, Span& best) { return SpreadIndexed(pace, best, result); };
  HORUS_RETURN_IF_ERROR(SpreadAtPaces(at, result));
  paces_.LookedAt(*view_, node_offers_.size(), entries.size());
  return absl::OkStatus();
}

// Gangs inside one node, and what gangs lose to the links between their GPUs.

void Search::SetCall(const Ledger& ledger, const JobView& view) {
  ledger_ = &ledger;
  view_ = &view;
  const Policy& policy = scorer_.policy();
  waits_ = GpuCount(*view.job) > 1 && policy.maximises_work();
  linked_ = waits_ && policy.prices_links() &&
            std::ranges::any_of(view.job->demands, [](const auto& one) { return Communicates(one.demand); });
}

// What the node offers, by the part of it with such links in which each GPU is, as their groups.
std::vector<PricedGpu> Search::PartsOf(const NodeSpec& node, const NodeOffer& offer, Reach reach) const {
  std::vector<PricedGpu> parts;
  for (PricedGpu gpu : Offered(offer)) {
    const int32_t part = PartOf(node.devices[static_cast<size_t>(gpu.device)], reach);
    if (part < 0) continue;
    gpu.group = static_cast<uint32_t>(part);
    parts.push_back(gpu);
  }
  std::ranges::stable_sort(parts, [](const PricedGpu& a, const PricedGpu& b) { return a.group < b.group; });
  return parts;
}

// Exact: whatever the cheapest GPUs are, their fastest common links are those of some part of the node. Taken as GPUs
// of that part they are priced right, and every other choice of any part is priced too high or right.
void Search::TakeTogether(const NodeOffer& offer, double cutoff, Placement& placement) const {
  const auto wanted = static_cast<size_t>(GpuCount(*view_->job));
  const NodeSpec& node = ledger_->spec(offer.node_row);
  GangPace pace{.speed = offer.speed};
  placement.cost = cutoff;
  std::vector<PricedGpu> chosen;
  const auto try_on = [&](std::span<const PricedGpu> gpus) {
    const GangOffer one{gpus, wanted};
    const GangPrice price = CheapestGang({&one, 1}, pace, chosen);
    if (!(price.cost < placement.cost)) return;
    placement.cost = price.cost;
    placement.sent = price.sent;
    placement.straggler = price.straggler;
    placement.slots.clear();
    for (const PricedGpu& gpu : chosen) placement.slots.push_back(SlotAt(offer.node_row, gpu.device));
  };
  if (!linked_) try_on(Offered(offer));
  for (const Reach reach : kReaches) {
    if (!linked_) break;
    const DeviceSpec& first = node.devices[static_cast<size_t>(Offered(offer).front().device)];
    const Demand& demand = *FindDemand(*view_->job, first.type);
    pace.communication =
        CommunicationShare(demand, RingUs(static_cast<double>(demand.gradient_mib), wanted, LinkMbPerS(first, reach)));
    const std::vector<PricedGpu> parts = PartsOf(node, offer, reach);
    for (size_t begin = 0, end = 0; begin < parts.size(); begin = end) {
      while (end < parts.size() && parts[end].group == parts[begin].group) ++end;
      if (end - begin >= wanted) try_on(std::span(parts).subspan(begin, end - begin));
    }
  }
  std::ranges::sort(placement.slots, [](const PlacedSlot& a, const PlacedSlot& b) { return a.device < b.device; });
  for (size_t i = 0; i < placement.slots.size(); ++i)
    placement.slots[i].task = static_cast<uint16_t>(static_cast<int32_t>(i) / view_->job->gpus_per_task);
}

double Search::Communication(std::span<const GangSlot> slots) const {
  const GangSlot& first = slots.front();
  const Demand* demand = FindDemand(*view_->job, first.node->devices[static_cast<size_t>(first.device)].type);
  if (!linked_ || demand == nullptr) return 0;
  return CommunicationShare(*demand,
                            GangAllReduceUs(static_cast<double>(demand->gradient_mib), slots, rack_oversubscription_));
}

GangPace Search::PaceOf(const Span& span) const {
  GangPace pace{.speed = offers_[span.picks.front().first].speed};
  if (!linked_) return pace;
  std::vector<GangSlot> slots;
  auto gpu = span.gpus.begin();
  for (const auto& [pick, tasks] : span.picks) {
    const NodeSpec& node = ledger_->spec(offers_[pick].node_row);
    for (int32_t i = 0; i < tasks * view_->job->gpus_per_task; ++i) slots.push_back({&node, (gpu++)->device});
  }
  pace.communication = Communication(slots);
  return pace;
}

bool Search::ChooseInPart(const NodeOffer& offer, size_t gpus, double pace, Reach reach,
                          std::vector<PricedGpu>& part) const {
  const std::vector<PricedGpu> sorted = PartsOf(ledger_->spec(offer.node_row), offer, reach);
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
void Search::Settle(Span& span) const {
  if (IsCpuOnly(*view_->job)) return;
  const auto gpus_of = [&](int32_t tasks) { return static_cast<size_t>(tasks * view_->job->gpus_per_task); };
  Span best;
  for (const Reach reach : {Reach::kNode, Reach::kSocket, Reach::kSwitch, Reach::kIsland}) {
    if (reach != Reach::kNode && !linked_) break;
    Span one{.picks = span.picks, .racks = span.racks, .pace = span.pace};
    std::vector<std::vector<PricedGpu>> parts(one.picks.size());
    std::vector<GangOffer> offers;
    bool differs = reach == Reach::kNode;
    for (size_t i = 0; i < one.picks.size(); ++i) {
      const NodeOffer& offer = offers_[one.picks[i].first];
      const size_t wanted = gpus_of(one.picks[i].second);
      const bool together = reach != Reach::kNode && ChooseInPart(offer, wanted, one.pace, reach, parts[i]);
      differs = differs || together;
      offers.push_back({together ? std::span<const PricedGpu>(parts[i]) : Offered(offer), wanted});
      const auto first = offers.back().gpus.begin();
      one.gpus.insert(one.gpus.end(), first, first + static_cast<ptrdiff_t>(wanted));
    }
    if (!differs) continue;
    // Their links are nearly those of the cheapest in the same parts.
    const GangPace about = PaceOf(one);
    (void)CheapestGang(offers, about, one.gpus);
    one.price = PriceGang(one.gpus, PaceOf(one));
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
  SetCall(ledger, view);
  if (waits_) {
    pace.speed = view.WorkOn(gang.front().node->devices[static_cast<size_t>(gang.front().device)].type);
    pace.communication = Communication(gang);
  }
  const GangPrice price = PriceGang(gpus, pace);
  placement.cost = price.cost;
  placement.sent = price.sent;
  placement.straggler = price.straggler;
  return absl::OkStatus();
}

}  // namespace horus
