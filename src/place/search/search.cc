// SPDX-License-Identifier: Apache-2.0
// The scan over nodes and devices, and the choice inside one node.
#include "place/search/search.h"

#include <cmath>
#include <optional>

#include "base/hash.h"
#include "place/search/admit.h"

namespace horus {
namespace {

// Nodes come in ascending id, so "strictly cheaper" leaves ties with the lowest.
bool Beats(double cost, const Placement& placement) { return placement.slots.empty() || cost < placement.cost; }

// As one of the two best, which it is.
void Keep(Placement placement, SearchResult& result) {
  if (Beats(placement.cost, result.best)) std::swap(placement, result.best);
  if (!placement.slots.empty()) result.second = std::move(placement);
}

}  // namespace

absl::Status NotFinite(const Policy& policy, NodeId node, double cost) {
  return MakeError(absl::StatusCode::kInternal, "policy %s: expected a finite cost for node %d, found %g",
                   std::string(policy.name()), node, cost);
}

Reason MostRefused(const std::array<uint32_t, kReasonCount>& refused) {
  size_t most = 0;
  for (size_t i = 1; i < kReasonCount; ++i) {
    if (i != static_cast<size_t>(Reason::kNotInSubset) && refused[i] > refused[most]) most = i;
  }
  if (most > 0) return static_cast<Reason>(most);
  return refused[static_cast<size_t>(Reason::kNotInSubset)] > 0 ? Reason::kNotInSubset : Reason::kGang;
}

absl::Status Search::GatherNode(uint32_t node_row, bool memo, SearchResult& result) {
  const LedgerNode& node = ledger_->node(node_row);
  const Policy& policy = scorer_.policy();
  if (policy.PricesNode(*view_->job)) return GatherPriced(node_row, result);
  PlaceCandidate place = PlaceOf(*ledger_, node_row, view_->job->id, 0);
  const bool by_device = policy.uses_place() && policy.place_by_device();
  double place_cost = policy.uses_place() && !by_device ? policy.ScorePlace(place) : 0;
  const bool single = SlotCount(*view_->job) == 1;
  fitting_.clear();
  if (IsCpuOnly(*view_->job)) {
    place.device = kNoDevice;
    const double cost = policy.uses_place() ? policy.ScorePlace(place) : 0;
    if (!std::isfinite(cost)) return NotFinite(policy, place.node, cost);
    fitting_.push_back({cost, kNoDevice, 0});
    ++result.fitting;
    return absl::OkStatus();
  }
  uint32_t judged = kNoState;  // devices of a node are often alike
  DeviceVerdict of_state;
  for (int32_t i = 0; i < place.node_devices; ++i) {
    const uint32_t device = node.first_device + static_cast<uint32_t>(i);
    if (const uint32_t state = ledger_->state_id(device); state != judged) {
      HORUS_RETURN_IF_ERROR(memo ? scorer_.Judge(ledger_->states(), state, of_state)
                                 : scorer_.Weigh(ledger_->states(), state, of_state));
      judged = state;
    }
    DeviceVerdict verdict = of_state;
    BarDevice(*ledger_, device, *view_, verdict);
    if (verdict.reason != Reason::kNone) {
      ++result.refused[static_cast<size_t>(verdict.reason)];
      continue;
    }
    if (by_device) {
      place.device = i;
      place_cost = policy.ScorePlace(place);
    }
    const double cost = verdict.cost + place_cost;
    if (!std::isfinite(cost)) return NotFinite(policy, place.node, cost);
    fitting_.push_back({cost, i, single ? 0 : GroupOf(ledger_->state(device)), verdict.own_work});
  }
  result.fitting += static_cast<uint32_t>(fitting_.size());
  return absl::OkStatus();
}

void Search::TakeSingle(uint32_t node_row, SearchResult& result) {
  for (const PricedGpu& fit : fitting_) {
    if (Beats(fit.cost, result.second)) Keep({.cost = fit.cost, .slots = {SlotAt(node_row, fit.device)}}, result);
  }
}

// Keeps what the node can give, per group, and books the whole gang on it where that is cheapest so far.
void Search::TakeGang(uint32_t node_row, int64_t host_tasks, SearchResult& result) {
  const int32_t per_task = SlotsPerTask(*view_->job);
  const bool cpu_only = IsCpuOnly(*view_->job);
  std::ranges::sort(fitting_, [](const PricedGpu& a, const PricedGpu& b) {
    return std::tie(a.group, a.cost, a.device) < std::tie(b.group, b.cost, b.device);
  });
  for (size_t begin = 0, end = 0; begin < fitting_.size(); begin = end) {
    while (end < fitting_.size() && fitting_[end].group == fitting_[begin].group) ++end;
    if (const auto gpus = static_cast<uint32_t>(end - begin); view_->job->tasks == 1 && gpus > result.most_fitting) {
      result.most_fitting = gpus;
      result.most_node_row = node_row;
    }
    const auto most = cpu_only ? host_tasks : std::min(host_tasks, static_cast<int64_t>(end - begin) / per_task);
    const auto tasks = static_cast<int32_t>(most);
    if (tasks == 0) continue;
    NodeOffer offer{.node_row = node_row,
                    .group = fitting_[begin].group,
                    .tasks = tasks,
                    .first = static_cast<uint32_t>(offered_.size())};
    // Those beyond the tasks matter where the gang waits for its slowest.
    const size_t kept = waits_ ? end - begin : cpu_only ? 1 : static_cast<size_t>(tasks * per_task);
    if (!cpu_only) offer.count = static_cast<uint32_t>(kept);
    const std::span<const PricedGpu> here = std::span(fitting_).subspan(begin, end - begin);
    offered_.insert(offered_.end(), here.begin(), here.begin() + static_cast<ptrdiff_t>(kept));
    if (waits_) {
      const auto device = static_cast<size_t>(here.front().device);
      offer.speed = view_->WorkOn(ledger_->spec(node_row).devices[device].type);
    }
    offer.cost = OfferCost(offer, tasks);
    offers_.push_back(offer);
    if (tasks < view_->job->tasks || !Beats(offer.cost, result.second)) continue;
    Placement placement{.cost = offer.cost};
    if (cpu_only) {
      for (int32_t task = 0; task < tasks; ++task) placement.slots.push_back(SlotAt(node_row, kNoDevice, task));
    } else {
      const double cutoff = result.second.slots.empty() ? std::numeric_limits<double>::infinity() : result.second.cost;
      TakeTogether(offers_.back(), cutoff, placement);
      if (placement.slots.empty()) continue;
    }
    Keep(std::move(placement), result);
  }
}

absl::Status Search::Scan(std::span<const uint32_t> nodes, bool all, SearchResult& result) {
  offers_.clear();
  offered_.clear();
  const JobSpec& job = *view_->job;
  if (job.tasks == 1 && scorer_.policy().PricesNode(job)) return RunNodes(nodes, all, result);
  const bool single = SlotCount(job) == 1;
  for (const uint32_t node_row : nodes) {
    const LedgerNode& node = ledger_->node(node_row);
    const auto devices = IsCpuOnly(job) ? 1u : static_cast<uint32_t>(node.spec->devices.size());
    const Reason reason = AdmitNode(scorer_.policy(), *ledger_, node_row, job);
    if (reason != Reason::kNone) {
      result.refused[static_cast<size_t>(reason)] += devices;
      continue;
    }
    HORUS_RETURN_IF_ERROR(GatherNode(node_row, /*memo=*/true, result));
    if (single) {
      TakeSingle(node_row, result);
    } else {
      TakeGang(node_row, HostTasks(job, node.free, job.tasks), result);
    }
  }
  if (!single && result.best.slots.empty() && job.tasks > 1) {
    CountOffers(result);
    const auto at = [&](double pace, Span& best) {
      SpreadGang(pace, best);
      return absl::OkStatus();
    };
    HORUS_RETURN_IF_ERROR(SpreadAtPaces(at, result));
  }
  if (!result.best.slots.empty()) {
    result.refused = {};
  } else {
    result.refused[static_cast<size_t>(Reason::kGang)] += result.fitting;
  }
  return absl::OkStatus();
}

absl::StatusOr<double> Search::CheapestOn(uint32_t node_row) {
  const LedgerNode& node = ledger_->node(node_row);
  by_floor_.clear();
  for (int32_t i = 0; i < node.devices; ++i) {
    const uint32_t device = node.first_device + static_cast<uint32_t>(i);
    const double floor = floors_[ledger_->state_id(device)];
    if (floor < std::numeric_limits<double>::infinity()) by_floor_.push_back({floor, device});
  }
  std::ranges::sort(by_floor_);
  double cost = std::numeric_limits<double>::infinity();
  for (const auto& [floor, device] : by_floor_) {
    if (floor >= cost) break;
    HORUS_ASSIGN_OR_RETURN(const DeviceVerdict verdict, JudgeDevice(scorer_, *ledger_, *view_, device, /*memo=*/true));
    if (verdict.reason == Reason::kNone) cost = std::min(cost, verdict.cost);
  }
  if (scorer_.policy().uses_place())
    cost += scorer_.policy().ScorePlace(PlaceOf(*ledger_, node_row, view_->job->id, 0));
  return cost;
}

absl::StatusOr<NodeAnswer> Search::RunOne(uint32_t node_row) {
  NodeAnswer answer{.known = true};
  answer.reason = AdmitNode(scorer_.policy(), *ledger_, node_row, *view_->job);
  if (answer.reason != Reason::kNone) return answer;
  if (!floors_.empty()) {
    HORUS_ASSIGN_OR_RETURN(const double cost, CheapestOn(node_row));
    if (std::isfinite(cost)) {
      answer.cost = cost;
      return answer;
    }
  }
  one_.refused = {};
  HORUS_RETURN_IF_ERROR(GatherNode(node_row, /*memo=*/true, one_));
  if (fitting_.empty()) {
    answer.reason = MostRefused(one_.refused);
    return answer;
  }
  answer.cost = fitting_.front().cost;
  for (const PricedGpu& fit : fitting_) answer.cost = std::min(answer.cost, fit.cost);
  return answer;
}

absl::Status Search::RunEach(const Ledger& ledger, const JobView& view, std::span<const uint32_t> nodes,
                             std::vector<NodeAnswer>& answers) {
  SetCall(ledger, view);
  answers.resize(nodes.size());
  const bool keep = CanRank();  // else the job's id or lots are in the price
  const std::span<NodeAnswer> kept =
      keep ? answers_.Of(ledger, RequestOn(ledger, view), scorer_.model().epoch()) : std::span<NodeAnswer>();
  floors_.clear();
  if (keep && scorer_.bounds_states()) {
    size_t unknown = 0;
    for (const uint32_t row : nodes) unknown += kept[row].known ? 0 : 1;
    // To bound all states takes about as long as to weigh a quarter of them, and a job that comes first meets its
    // neighbours there many at a time.
    const size_t worth = unknown == nodes.size() ? 32 : 4;
    if (worth * unknown > ledger.order().size()) {
      HORUS_RETURN_IF_ERROR(index_.CatchUp(ledger));
      HORUS_RETURN_IF_ERROR(rankings_.Bound(ledger, floors_));
    }
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    NodeAnswer& answer = keep ? kept[nodes[i]] : answers[i];
    if (!keep || !answer.known) HORUS_SET_OR_RETURN(answer, RunOne(nodes[i]));
    answers[i] = answer;
  }
  return absl::OkStatus();
}

bool Search::CanRank() const {
  const Policy& policy = scorer_.policy();
  return GpuCount(*view_->job) == 1 && !scorer_.exhaustive() && !policy.PricesNode(*view_->job) &&
         !(policy.uses_place() && policy.place_by_device());
}

absl::Status Search::TakeRanked(SearchResult& result) {
  HORUS_RETURN_IF_ERROR(index_.CatchUp(*ledger_));
  Ranking* ranking = nullptr;
  HORUS_RETURN_IF_ERROR(rankings_.Find(*ledger_, ranking));
  struct Found {
    double cost = std::numeric_limits<double>::infinity();
    NodeId node = 0;
    int32_t device = 0;
    uint32_t node_row = 0;
    bool operator<(const Found& other) const {
      return std::tie(cost, node, device) < std::tie(other.cost, other.node, other.device);
    }
  };
  Found best;
  Found second;
  std::optional<Found> non_finite;  // both its prices are finite, their sum is not
  const auto take_state = [&](const RankedState& entry) {
    int taken = 0;  // the third device of a state is never among the best two
    index_.ForEach(entry.state, [&](const DeviceIndex::Member& member) {
      Found found{entry.cost + member.place, member.node, member.device, member.node_row};
      if (found.cost > second.cost) return false;
      const uint32_t device = ledger_->node(member.node_row).first_device + static_cast<uint32_t>(member.device);
      if (AdmitNode(scorer_.policy(), *ledger_, member.node_row, *view_->job) != Reason::kNone ||
          BarsFrom(*ledger_, device, *view_) != Reason::kNone) {
        return true;
      }
      if (!std::isfinite(found.cost)) non_finite = found;
      if (found < best) std::swap(found, best);
      if (found < second) second = found;
      return ++taken < 2;
    });
  };
  for (;;) {
    best = second = Found();
    popped_.clear();
    ranking->generation = 0;  // while some are out of the list, whatever happens
    for (bool found = true; found;) {
      RankedState state;
      // Nothing dearer can still hold something better than the second best.
      HORUS_RETURN_IF_ERROR(rankings_.Pop(*ledger_, second.cost, index_.place_floor(), *ranking, state, found));
      // A state that lost its devices and got others is listed again; equal ones come one after the other.
      if (!found || (!popped_.empty() && popped_.back().state == state.state)) continue;
      popped_.push_back(state);
      take_state(state);
      if (non_finite.has_value()) return NotFinite(scorer_.policy(), non_finite->node, non_finite->cost);
    }
    rankings_.Push(*ranking, popped_);
    ranking->generation = index_.generation();
    if (ranking->cutoff + index_.place_floor() > second.cost || std::isinf(ranking->cutoff)) break;
    HORUS_RETURN_IF_ERROR(rankings_.Extend(*ledger_, *ranking));
  }
  const auto place = [](const Found& found, Placement& placement) {
    if (std::isinf(found.cost)) return;
    placement.cost = found.cost;
    placement.slots = {SlotAt(found.node_row, found.device)};
  };
  place(best, result.best);
  place(second, result.second);
  return absl::OkStatus();
}

absl::Status Search::Run(const Ledger& ledger, const JobView& view, const std::vector<uint32_t>* nodes,
                         SearchResult& result, bool why) {
  result = SearchResult();
  SetCall(ledger, view);
  if (nodes == nullptr && CanRank()) {
    if (max_candidates_ > 0 && ledger.device_count() > max_candidates_) {
      HORUS_RETURN_IF_ERROR(TakeSampled(result));
      if (!result.best.slots.empty()) return absl::OkStatus();
      result = SearchResult();  // what fits somewhere is not refused
    }
    HORUS_RETURN_IF_ERROR(TakeRanked(result));
    if (!result.best.slots.empty() || !why) return absl::OkStatus();
    return refusals_.Count(ledger, view, result.refused, result.nearest);
  }
  if (nodes == nullptr && CanIndexGang()) {
    HORUS_RETURN_IF_ERROR(TakeIndexedGang(result));
    result.refused = {};
    if (!result.best.slots.empty() || !why) return absl::OkStatus();
    result = SearchResult();
  }
  return Scan(nodes == nullptr ? ledger.order() : *nodes, nodes == nullptr, result);
}

// The bounded search: the best of a few devices, drawn by seed and job.
constexpr double kAsGood = 0.005;  // less than that above the least cost is as good; chosen: half a per cent of a job

// What the device costs at least: nobody slows anybody there. Without knowledge of the policy, anything.
double Search::LeastCostOf(const DeviceRow& device) const {
  const LeastCost* least = scorer_.policy().least_cost();
  const JobView::OnType* on = view_->On(device.type);
  if (least == nullptr || on == nullptr) return -std::numeric_limits<double>::infinity();
  return least->own_work * on->SpeedOn(device.compute_share) + (device.tenants.empty() ? least->idle : 0) +
         std::min(0.0, least->memory_left);
}

void Search::DrawDevices() {
  drawn_.clear();
  uint64_t draw = CombineHash(sample_seed_, view_->job->id);
  for (uint32_t i = 0; i < kDrawsACandidate * max_candidates_; ++i) {
    draw = Mix64(draw);
    const uint32_t node_row = ledger_->order()[(draw >> 32) % ledger_->order().size()];
    const LedgerNode& node = ledger_->node(node_row);
    if (node.devices == 0 || AdmitNode(scorer_.policy(), *ledger_, node_row, *view_->job) != Reason::kNone) continue;
    const auto index = static_cast<int32_t>((draw & 0xFFFFFFFFu) % static_cast<uint64_t>(node.devices));
    const DeviceRow& device = ledger_->state(node.first_device + static_cast<uint32_t>(index));
    if (view_->On(device.type) == nullptr) continue;
    drawn_.push_back({LeastCostOf(device), device.util_pct, node.id, index, node_row});
  }
  SortUnique(drawn_);
}

absl::Status Search::TakeSampled(SearchResult& result) {
  DrawDevices();
  const Policy& policy = scorer_.policy();
  NodeId best_node = 0;
  uint32_t judged = 0;
  for (const Drawn& one : drawn_) {
    const bool found = !result.best.slots.empty();
    if (found && (judged == max_candidates_ || result.best.cost - one.least <= kAsGood * std::abs(one.least))) break;
    const uint32_t device = ledger_->node(one.node_row).first_device + static_cast<uint32_t>(one.device);
    ++judged;
    HORUS_ASSIGN_OR_RETURN(const DeviceVerdict verdict, JudgeDevice(scorer_, *ledger_, *view_, device, /*memo=*/false));
    if (verdict.reason != Reason::kNone) continue;
    double cost = verdict.cost;
    if (policy.uses_place()) cost += policy.ScorePlace(PlaceOf(*ledger_, one.node_row, view_->job->id, one.device));
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
      placement.slots = {SlotAt(one.node_row, one.device)};
    }
  }
  return absl::OkStatus();
}

}  // namespace horus
