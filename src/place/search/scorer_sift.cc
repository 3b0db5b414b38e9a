// SPDX-License-Identifier: Apache-2.0
// What is kept so that few states are weighed: pairs of tenants that met, loads, and the least that a state can cost.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/status.h"
#include "interference/combine.h"
#include "place/search/scorer.h"

namespace horus {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// States between the one at hand and the one whose pairs are fetched.
constexpr size_t kAhead = 8;
// Of bounds on loads, as a share: well above kSlowdownTolerance; what lies between is weighed.
constexpr double kLoadMargin = 1e-5;

// What breaks this breaks the promise whatever becomes of the estimate: a higher confidence than that of the upper
// bounds counts as theirs.
Promise LeastOf(Promise promise, const FitLimits& limits) {
  if (static_cast<double>(promise.confidence) >= limits.upper_probability) promise.confidence = 0;
  return promise;
}

// The most excess that can be added to the upper bound of `before` without breaking a promise, in steps of
// PairTable::Brief; kUnknown and more = no matter how much.
uint32_t RoomFor(const Promise& promise, const PairExcess& before, const FitLimits& limits) {
  const std::array<Slowdown, 1> now = {SlowdownOf(before)};
  // Broken already: whether it grows worse, the estimate says too.
  if (promise.confidence > 0 && IsBeyond(SlowdownFor(promise, now[0], limits), BoundOf(promise, limits)))
    return PairTable::Brief::kUnknown;
  const auto fits = [&](int64_t more) {
    PairExcess after = before;
    AddExcess(after, {0, more * PairTable::Brief::kStep});
    // The resident stands first, a newcomer that nothing slows last.
    return FitSlowdowns(std::array<Promise, 2>{LeastOf(promise, limits), Promise{kMaxSlowdownBound}}, now,
                        std::array<Slowdown, 2>{SlowdownOf(after), Slowdown()}, limits) == Reason::kNone;
  };
  int64_t low = 0;
  int64_t high = PairTable::Brief::kMost;
  if (fits(high)) return PairTable::Brief::kUnknown;
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (fits(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return static_cast<uint32_t>(low);
}

// The sum of loads that certainly breaks the promise; infinity where the estimate counts too.
double LoadBoundOf(const Promise& promise, const FitLimits& limits) {
  return LeastOf(promise, limits).confidence > 0 ? kInfinity : BoundOf(promise, limits);
}

}  // namespace

absl::Status Scorer::Meet(const StateTable& states, const DeviceRow& device, Crowd& crowd) {
  crowd.digest = 0;  // until all is known
  crowd.context = static_cast<uint16_t>(pairs_.ContextOf(ContextOf(device)));
  crowd.residents = static_cast<uint16_t>(device.tenants.size());
  crowd.before = {};
  for (size_t i = 0; i < device.tenants.size(); ++i) {
    const TenantClass& one = states.tenant(device.tenants[i]);
    crowd.guests[i] = pairs_.GuestOf(crowd.context, one);
    crowd.promises[i] = one.promise;
    crowd.weights[i] = one.worth;
    for (size_t j = i + 1; j < device.tenants.size(); ++j) {
      TenantPair pair;
      HORUS_RETURN_IF_ERROR(pairs_.Find(*model_, crowd.context, one, states.tenant(device.tenants[j]), pair));
      AddExcess(crowd.before[i], pair.mine);
      AddExcess(crowd.before[j], pair.theirs);
    }
  }
  for (size_t i = 0; i < crowd.residents; ++i) crowd.room[i] = RoomFor(crowd.promises[i], crowd.before[i], limits_);
  crowd.digest = device.digest;
  return absl::OkStatus();
}

Scorer::OnContext& Scorer::Enter(uint32_t context) {
  if (on_context_.size() <= context) on_context_.resize(pairs_.contexts());
  OnContext& here = on_context_[context];
  const DeviceContext& device = pairs_.device(context);
  here.asked = true;
  here.on = view_->On(device.type);
  if (here.on == nullptr) return here;
  here.mem_mib = here.on->tenant.memory.request_mib + limits_.mem_headroom_mib;
  here.exclusive = here.on->tenant.exclusive;
  here.relative_speed = here.on->SpeedOn(device.compute_share);
  if (adds_loads_) {
    here.most_load = LoadBoundOf(here.on->tenant.promise, limits_) * (1 + kLoadMargin) * kLoadUnitsPerSlowdown;
    here.known = model_->PredictLoad(device, here.on->tenant.demand, here.load).ok();
    return here;
  }
  here.row = &pairs_.RowOf(context, here.on->tenant);
  here.most_upper = RoomFor(here.on->tenant.promise, {}, limits_);
  if (here.most_upper == PairTable::Brief::kUnknown) here.most_upper = UINT64_MAX;
  return here;
}

absl::Status Scorer::AddPairs(const StateTable& states, const TenantIds& tenants, const Crowd& crowd, OnContext& here) {
  const TenantClass& newcomer = here.on->tenant;
  const size_t residents = crowd.residents;
  demands_.resize(residents + 1);
  tenants_.resize(residents + 1);
  promises_.resize(residents + 1);
  before_.resize(residents);
  after_.resize(residents + 1);
  PairExcess own;
  for (size_t i = 0; i < residents; ++i) {
    const TenantClass& resident = states.tenant(tenants[i]);
    TenantPair pair;
    HORUS_RETURN_IF_ERROR(pairs_.Find(*model_, crowd.context, *here.row, crowd.guests[i], newcomer, resident, pair));
    demands_[i] = &resident.demand;
    tenants_[i] = &resident;
    promises_[i] = crowd.promises[i];
    AddExcess(own, pair.mine);
    before_[i] = SlowdownOf(crowd.before[i]);
    AddExcess(pair.theirs, crowd.before[i]);
    after_[i] = SlowdownOf(pair.theirs);
  }
  demands_[residents] = &newcomer.demand;
  tenants_[residents] = &newcomer;
  promises_[residents] = newcomer.promise;
  after_[residents] = SlowdownOf(own);
  return absl::OkStatus();
}

absl::Status Scorer::CrowdOf(const StateTable& states, uint32_t state, const Crowd*& crowd) {
  const DeviceRow& device = states.state(state);
  crowd = nullptr;
  if (!adds_pairs_ || device.tenants.size() > Crowd::kMost) return absl::OkStatus();
  if (crowds_.size() <= state) crowds_.resize(states.state_limit());
  Crowd& known = crowds_[state];
  if (known.digest != device.digest) HORUS_RETURN_IF_ERROR(Meet(states, device, known));
  crowd = &known;
  return absl::OkStatus();
}

void Scorer::DescribeLoads(const StateTable& states, const DeviceRow& device, Brief& brief) {
  const DeviceContext context = ContextOf(device);
  brief.loads = {};
  double room = kInfinity;
  for (const uint32_t id : device.tenants) {
    const TenantClass& tenant = states.tenant(id);
    Load load;
    if (!model_->PredictLoad(context, tenant.demand, load).ok()) return;  // weighing says why
    brief.loads.weight += static_cast<double>(tenant.worth);
    brief.loads.estimate += load.estimate;
    brief.loads.upper += load.upper;
    room = std::min(room, LoadBoundOf(tenant.promise, limits_));
  }
  brief.loads.upper = std::max(brief.loads.estimate, brief.loads.upper);
  // A neighbour that is beyond its bound already refuses only what makes it worse.
  double units = std::max(room * kLoadUnitsPerSlowdown, static_cast<double>(brief.loads.upper));
  constexpr auto kMost = static_cast<double>(int64_t{1} << 62);
  if (device.tenants.empty()) units = kInfinity;
  brief.loads.room = units * (1 + kLoadMargin) < kMost ? static_cast<int64_t>(units * (1 + kLoadMargin)) : INT64_MAX;
  brief.context = static_cast<uint16_t>(pairs_.ContextOf(context));
  brief.residents = static_cast<uint16_t>(device.tenants.size());
}

absl::Status Scorer::Describe(const StateTable& states, uint32_t state, Brief& brief) {
  const DeviceRow& device = states.state(state);
  brief = {.digest = device.digest, .state = state};
  const int64_t free = device.mem_mib - device.mem_used_upper_mib;
  if (free < 0 || free >= INT32_MAX || device.tenants.size() >= Brief::kNotSifted) return absl::OkStatus();
  brief.mem_free_mib = static_cast<int32_t>(free);
  brief.per_mem_mib = 1 / static_cast<float>(std::max(device.mem_mib, int64_t{1}));
  if (adds_loads_) {
    DescribeLoads(states, device, brief);
    return absl::OkStatus();
  }
  const Crowd* crowd = nullptr;
  HORUS_RETURN_IF_ERROR(CrowdOf(states, state, crowd));
  if (crowd == nullptr || crowd->residents > brief.pairs.guests.size()) return absl::OkStatus();
  for (size_t i = 0; i < crowd->residents; ++i) {
    brief.pairs.guests[i] = crowd->guests[i];
    brief.pairs.before[i] = SlowdownOf(crowd->before[i]).estimate;
    brief.pairs.weight[i] = crowd->weights[i];
    brief.pairs.room[i] = crowd->room[i];
  }
  for (size_t i = crowd->residents; i < brief.pairs.guests.size(); ++i) brief.pairs.before[i] = 1;
  brief.context = crowd->context;
  brief.residents = crowd->residents;
  return absl::OkStatus();
}

// The rows of many classes do not stay in the processor's cache.
void Scorer::Prefetch(const Brief& brief) const {
  if (brief.residents == Brief::kNotSifted || brief.context >= on_context_.size()) return;
  const PairTable::Row* row = on_context_[brief.context].row;
  if (row == nullptr) return;
  for (const uint32_t guest : brief.pairs.guests) {
    if (guest < row->briefs.size()) __builtin_prefetch(&row->briefs[guest]);
  }
}

void Scorer::SiftPairs(const LeastCost& least, std::span<const Brief> briefs, double cutoff,
                       std::vector<Sifted>& left) {
  constexpr double kUnit = 1e-6 * PairTable::Brief::kStep;  // of excess
  for (uint32_t i = 0; i < briefs.size(); ++i) {
    const Brief& brief = briefs[i];
    if (brief.digest == 0) continue;
    if (i + kAhead < briefs.size()) Prefetch(briefs[i + kAhead]);
    if (brief.residents == Brief::kNotSifted) {
      left.push_back({i, -kInfinity});
      continue;
    }
    const OnContext& here = OnContextOf(brief.context);
    if (here.on == nullptr) continue;
    const std::span<const PairTable::Brief> known = here.row->briefs;
    const Brief::Pairs& pairs = brief.pairs;
    if (std::max({pairs.guests[0], pairs.guests[1], pairs.guests[2]}) >= known.size()) {
      left.push_back({i, -kInfinity});
      continue;
    }
    // No branch depends on who the residents are: the processor could not foresee it.
    uint64_t own = 0;
    uint64_t upper = 0;
    double lost = 0;
    bool met = true;
    bool fits = true;
    for (size_t r = 0; r < pairs.guests.size(); ++r) {
      const PairTable::Brief& pair = known[pairs.guests[r]];
      met &= pair.mine != PairTable::Brief::kUnknown;
      own += pair.mine;
      upper += pair.mine_upper;
      fits &= pair.theirs_upper <= pairs.room[r];
      const auto before = static_cast<double>(pairs.before[r]);
      const double theirs = kUnit * pair.theirs;
      lost += static_cast<double>(pairs.weight[r]) * theirs / (before * (before + theirs));
    }
    fits &= upper <= here.most_upper;
    const double speed = here.relative_speed / (1 + kUnit * static_cast<double>(own));
    const double floor = Floor(least, here, brief, speed, lost);
    if (!met) {
      left.push_back({i, -kInfinity});
    } else if (fits & (here.mem_mib <= brief.mem_free_mib) & !(here.exclusive & (brief.residents > 0)) &
               (floor < cutoff)) {
      left.push_back({i, floor});
    }
  }
}

void Scorer::SiftLoads(const LeastCost& least, std::span<const Brief> briefs, double cutoff,
                       std::vector<Sifted>& left) {
  constexpr double kUnit = 1 / kLoadUnitsPerSlowdown;
  for (uint32_t i = 0; i < briefs.size(); ++i) {
    const Brief& brief = briefs[i];
    if (brief.digest == 0) continue;
    if (brief.residents == Brief::kNotSifted) {
      left.push_back({i, -kInfinity});
      continue;
    }
    const OnContext& here = OnContextOf(brief.context);
    if (here.on == nullptr) continue;
    if (!here.known) {
      left.push_back({i, -kInfinity});
      continue;
    }
    const int64_t load = brief.loads.estimate + here.load.estimate;
    const int64_t upper = std::max(load, brief.loads.upper + here.load.upper);
    const bool fits = (static_cast<double>(upper) <= here.most_load) & (upper <= brief.loads.room) &
                      (here.mem_mib <= brief.mem_free_mib) & !(here.exclusive & (brief.residents > 0));
    const double before = std::max(1.0, kUnit * static_cast<double>(brief.loads.estimate));
    const double after = std::max(1.0, kUnit * static_cast<double>(load));
    const double lost = brief.loads.weight * (after - before) / (after * before);
    const double floor = Floor(least, here, brief, here.relative_speed / after, lost);
    if (fits & (floor < cutoff)) left.push_back({i, floor});
  }
}

void Scorer::Sift(std::span<const Brief> briefs, double cutoff, std::vector<Sifted>& left) {
  const LeastCost* least = policy_->least_cost();
  if (least != nullptr && adds_pairs_) return SiftPairs(*least, briefs, cutoff, left);
  if (least != nullptr && adds_loads_) return SiftLoads(*least, briefs, cutoff, left);
  for (uint32_t i = 0; i < briefs.size(); ++i) {
    if (briefs[i].digest != 0) left.push_back({i, -kInfinity});
  }
}

}  // namespace horus
