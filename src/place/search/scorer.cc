// SPDX-License-Identifier: Apache-2.0
// Judging a device for a job, with a memo over (job class, device state); sifting out states that need no judging.
#include "place/search/scorer.h"

#include <algorithm>
#include <cmath>

#include "base/seeded_hash.h"
#include "base/vectors.h"
#include "interference/laws.h"

namespace horus {

const JobView::OnType* JobView::On(GpuTypeId type) const {
  if (types.size() == 1 && !types[0].type.valid()) return &types[0];
  return FindSorted(types, type, &OnType::type);
}

double JobView::WorkOn(GpuTypeId type) const {
  const OnType* on = On(type);
  return on == nullptr ? 1 : static_cast<double>(on->tenant.work_alone) * on->relative_speed;
}

double JobView::OnType::SpeedOn(float compute_share) const {
  if (compute_share == 1 || KeepsWork(tenant.demand)) return relative_speed;
  return relative_speed * SliceSpeed(tenant.demand, static_cast<double>(compute_share));
}

DeviceContext ContextOf(const DeviceRow& device) { return {device.type, ModeAlone(device.mode), device.compute_share}; }

JobView ViewJob(const JobSpec& job, bool probe_unknown, JobView used) {
  JobView view{.job = &job, .types = std::move(used.types)};
  SecretHasher hasher;
  view.types.clear();
  view.types.reserve(job.demands.size());
  for (const TypeDemand& entry : job.demands) {
    const bool probe = probe_unknown && IsUnknown(entry.demand);
    view.types.push_back({entry.type, MakeTenantClass(job, entry.demand, probe), RelativeSpeed(job, entry.demand)});
    hasher.Add(entry.type.value());
    hasher.Add(view.types.back().tenant.digest);
  }
  // What DeviceCandidate shows a policy of the rest of the job.
  hasher.Add(static_cast<uint64_t>(job.kind) << 32 | static_cast<uint32_t>(job.priority));
  view.digest = hasher.Hash();
  for (const int64_t part :
       {job.cpu_milli, job.mem_mib, job.storage_mb_s, int64_t{job.tasks}, int64_t{job.gpus_per_task}}) {
    hasher.Add(static_cast<uint64_t>(part));
  }
  for (const auto& [key, value] : job.node_selector) {
    hasher.Add(key);
    hasher.Add(value);
  }
  hasher.Add(uint64_t{job.spread_tasks});
  ForEachGroup(job, [&](const GroupCount& one) {
    hasher.Add(one.group);
    hasher.Add(static_cast<uint64_t>(one.members));
  });
  view.owner = OwnerMark(job);
  if (MindsOwners(view.owner)) hasher.Add(view.owner);
  view.request = hasher.Hash();
  return view;
}

Scorer::Scorer(std::shared_ptr<const InterferenceModel> model, std::shared_ptr<const Policy> policy,
               const FitLimits& limits, uint64_t cache_bytes, bool exhaustive)
    : model_(std::move(model)),
      policy_(std::move(policy)),
      limits_(limits),
      memo_limit_(cache_bytes / 2 / sizeof(Entry)),
      exhaustive_(exhaustive),
      adds_pairs_(model_->adds_pairs() && !exhaustive),
      adds_loads_(model_->adds_loads() && !exhaustive) {}

void Scorer::CheckEpoch() {
  const uint64_t most_pairs = memo_limit_ * sizeof(Entry);  // bytes
  if (memo_epoch_ == model_->epoch() && memo_entries_ <= memo_limit_) {
    if (pairs_.bytes_held() <= most_pairs) return;
    if (pairs_.bytes_of_rows() >= most_pairs / 2) {
      // Of jobs that are all different: what is known of those that are there stays.
      pairs_.ForgetRows();
      on_context_.clear();
      ++rows_numbering_;
      if (pairs_.bytes_held() <= most_pairs / 2) return;
    }
  }
  memo_.clear();
  memo_row_ = nullptr;
  memo_entries_ = 0;
  pairs_.Clear();
  on_context_.clear();
  ++numbering_;
  ++rows_numbering_;
  pair_states_.clear();
  memo_epoch_ = model_->epoch();
}

void Scorer::SetJob(const JobView& view) {
  CheckEpoch();
  view_ = &view;
  memo_row_ = nullptr;
  waits_ = GpuCount(*view.job) > 1 && policy_->maximises_work();
  on_context_.assign(pairs_.contexts(), {});
}

Scorer::MemoRow* Scorer::RowOf(const StateTable& states) {
  const uint64_t needed = states.state_limit();
  if (memo_row_ != nullptr && memo_row_->entries.size() >= needed) return memo_row_;
  if (exhaustive_ || needed > memo_limit_) return nullptr;
  if (memo_entries_ + needed > memo_limit_) {
    memo_.clear();
    memo_entries_ = 0;
  }
  std::unique_ptr<MemoRow>* known = memo_.Find(view_->digest);
  memo_row_ = (known != nullptr ? *known : memo_.Insert(view_->digest, std::make_unique<MemoRow>())).get();
  std::vector<Entry>& entries = memo_row_->entries;
  if (entries.size() < needed) {
    const size_t before = entries.capacity();
    entries.resize(needed);
    memo_entries_ += entries.capacity() - before;
  }
  return memo_row_;
}

absl::Status Scorer::Learn(const StateTable& states, uint32_t state, MemoRow* row, DeviceVerdict& verdict) {
  ++weighed_;
  HORUS_RETURN_IF_ERROR(Weigh(states, state, verdict));
  if (row == nullptr) return absl::OkStatus();
  const uint64_t digest = states.digest(state) & ~Entry::kReasonMask;
  row->entries[state] = {digest | static_cast<uint64_t>(verdict.reason), verdict.cost};
  if (state < row->own_work.size()) row->own_work[state] = verdict.own_work;
  return absl::OkStatus();
}

absl::Status Scorer::Judge(const StateTable& states, uint32_t state, DeviceVerdict& verdict) {
  ++judged_;
  MemoRow* const row = RowOf(states);
  if (waits_ && row != nullptr && row->own_work.size() < row->entries.size()) {
    const size_t before = row->own_work.capacity();
    row->own_work.resize(row->entries.size(), std::numeric_limits<double>::quiet_NaN());
    memo_entries_ += (row->own_work.capacity() - before) * sizeof(double) / sizeof(Entry);
  }
  if (row == nullptr || !row->entries[state].Holds(states.digest(state))) return Learn(states, state, row, verdict);
  const Entry& entry = row->entries[state];
  verdict = {entry.cost, entry.reason()};
  if (!waits_) return absl::OkStatus();
  if (std::isnan(row->own_work[state])) return Learn(states, state, row, verdict);
  verdict.own_work = row->own_work[state];
  return absl::OkStatus();
}

absl::Status Scorer::Fit(const StateTable& states, uint32_t state, Reason& reason) {
  const DeviceRow& device = states.state(state);
  const JobView::OnType* on = view_->On(device.type);
  reason = FitDevice(on == nullptr ? nullptr : &on->tenant, device, limits_);
  if (reason != Reason::kNone) return absl::OkStatus();
  if (!device.bounded && on->tenant.promise.bound == 0 && std::isinf(limits_.slowdown_bound)) return absl::OkStatus();
  DeviceVerdict verdict;
  HORUS_RETURN_IF_ERROR(Judge(states, state, verdict));
  reason = verdict.reason;
  return absl::OkStatus();
}

absl::Status Scorer::Predict(const DeviceContext& device, size_t count, std::vector<Slowdown>& out) {
  out.assign(count, Slowdown());
  if (count == 0) return absl::OkStatus();
  HORUS_RETURN_IF_ERROR(model_->Predict(device, std::span(demands_).first(count), out));
  for (const Slowdown& slowdown : out) {
    if (slowdown.estimate > 0 && slowdown.upper >= slowdown.estimate && slowdown.upper <= kMaxSlowdown) continue;
    return MakeError(absl::StatusCode::kInternal,
                     "interference model %s: expected 0 < estimate <= upper <= %g, found estimate %g, upper %g",
                     std::string(model_->name()), kMaxSlowdown, slowdown.estimate, slowdown.upper);
  }
  return absl::OkStatus();
}

absl::Status Scorer::PredictCandidate(const StateTable& states, uint32_t state, const JobView::OnType& on) {
  const DeviceRow& device = states.state(state);
  const PairState* pair_state = nullptr;
  HORUS_RETURN_IF_ERROR(PairStateOf(states, state, pair_state));
  if (pair_state != nullptr) return AddPairs(states, device.tenants, *pair_state, OnContextOf(pair_state->context));
  demands_.clear();
  tenants_.clear();
  promises_.clear();
  for (const uint32_t id : device.tenants) {
    const TenantClass& tenant = states.tenant(id);
    demands_.push_back(&tenant.demand);
    tenants_.push_back(&tenant);
    promises_.push_back(tenant.promise);
  }
  demands_.push_back(&on.tenant.demand);
  tenants_.push_back(&on.tenant);
  promises_.push_back(on.tenant.promise);
  const DeviceContext context = ContextOf(device);
  HORUS_RETURN_IF_ERROR(Predict(context, demands_.size() - 1, before_));
  return Predict(context, demands_.size(), after_);
}

DeviceCandidate Scorer::CandidateOf(const DeviceRow& device, const JobView::OnType& on) const {
  return {.kind = view_->job->kind,
          .priority = view_->job->priority,
          .gpu_milli = view_->job->gpu_milli,
          .device = ContextOf(device),
          .mem_mib = device.mem_mib,
          .mem_used_upper_mib = device.mem_used_upper_mib,
          .mem_used_mib = device.mem_used_mib,
          .milli_used = device.milli_used,
          .demands = demands_,
          .tenants = tenants_,
          .before = before_,
          .after = after_,
          .relative_speed = on.SpeedOn(device.compute_share)};
}

absl::Status Scorer::Price(const DeviceCandidate& candidate, DeviceVerdict& verdict) const {
  DeviceScore score;
  HORUS_RETURN_IF_ERROR(policy_->ScoreDevice(candidate, score));
  if (!std::isfinite(score.cost) || !std::isfinite(score.own_work)) {
    const bool cost = !std::isfinite(score.cost);
    return MakeError(absl::StatusCode::kInternal, "policy %s: expected a finite %s, found %g",
                     std::string(policy_->name()), cost ? "cost" : "own work", cost ? score.cost : score.own_work);
  }
  verdict = {score.cost, Reason::kNone, score.own_work};
  if (score.declined) verdict = {Distance(Reason::kPolicy, {}), Reason::kPolicy};
  return absl::OkStatus();
}

absl::Status Scorer::Weigh(const StateTable& states, uint32_t state, DeviceVerdict& verdict, Shortfall& shortfall,
                           DeviceCandidate* candidate) {
  const DeviceRow& device = states.state(state);
  const JobView::OnType* on = view_->On(device.type);
  verdict.own_work = 0;
  verdict.reason = FitDevice(on == nullptr ? nullptr : &on->tenant, device, limits_, &shortfall);
  if (verdict.reason == Reason::kNone) {
    HORUS_RETURN_IF_ERROR(PredictCandidate(states, state, *on));
    verdict.reason = FitSlowdowns(promises_, before_, after_, limits_, &shortfall);
    if (candidate != nullptr) *candidate = CandidateOf(device, *on);
    if (verdict.reason == Reason::kNone) return Price(CandidateOf(device, *on), verdict);
  }
  verdict.cost = Distance(verdict.reason, shortfall);
  return absl::OkStatus();
}

absl::Status Scorer::Weigh(const StateTable& states, uint32_t state, DeviceVerdict& verdict) {
  Shortfall shortfall;
  return Weigh(states, state, verdict, shortfall, nullptr);
}

absl::StatusOr<Evaluation> Scorer::Evaluate(const StateTable& states, uint32_t state) {
  Evaluation evaluation;
  HORUS_RETURN_IF_ERROR(Weigh(states, state, evaluation.verdict, evaluation.shortfall, &evaluation.candidate));
  return evaluation;
}

uint64_t Scorer::bytes_held() const { return memo_entries_ * sizeof(Entry) + BytesIn(memo_, pairs_, pair_states_); }

// What is kept so that few states are weighed: pairs of tenants that met, loads, and the least that a state can cost.
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// States between the one at hand and the one whose pairs are fetched.
constexpr size_t kAhead = 8;
// Of bounds on loads, as a share: well above kSlowdownTolerance; what lies between is weighed.
constexpr double kLoadMargin = 1e-5;

// Brings the object into the processor's cache while others are looked at.
template <typename Object>
void Fetch(const Object& object) {
  constexpr size_t kLine = 64;  // bytes; of most processors
  for (size_t at = 0; at < sizeof(object); at += kLine) __builtin_prefetch(reinterpret_cast<const char*>(&object) + at);
}

// What breaks this breaks the promise whatever becomes of the estimate: a higher confidence than that of the upper
// bounds counts as theirs.
Promise LeastOf(Promise promise, const FitLimits& limits) {
  if (static_cast<double>(promise.confidence) >= limits.upper_probability) promise.confidence = 0;
  return promise;
}

// The last of 0 to end - 1 for which `holds`, which holds up to there and not beyond; 0 if it never holds. Looks around
// `guess`, further and further.
template <typename Holds>
int64_t LastThat(const Holds& holds, int64_t end, int64_t guess) {
  int64_t low = 0;  // holds, or is the answer
  for (int64_t step = 1; guess > low && guess < end; step *= 2) {
    if (holds(guess)) {
      low = guess;
      guess = std::min(guess + step, end);
    } else {
      end = guess;
      guess = std::max(guess - step, low);
    }
  }
  while (low + 1 < end) {
    const int64_t middle = low + (end - low) / 2;
    (holds(middle) ? low : end) = middle;
  }
  return low;
}

// The most excess that can be added to the upper bound of `before` without breaking a promise, in steps of
// PairTable::StateSummary; kUnknown and more = no matter how much.
uint32_t RoomFor(const Promise& promise, const PairExcess& before, const FitLimits& limits) {
  const std::array<Slowdown, 1> now = {SlowdownOf(before)};
  // Broken already: whether it grows worse, the estimate says too.
  if (promise.confidence > 0 && IsBeyond(SlowdownFor(promise, now[0], limits), BoundOf(promise, limits)))
    return PairTable::StateSummary::kUnknown;
  const auto fits = [&](int64_t more) {
    PairExcess after = before;
    AddExcess(after, {0, more * PairTable::StateSummary::kStep});
    // The resident stands first, a newcomer that nothing slows last.
    return FitSlowdowns(std::array<Promise, 2>{LeastOf(promise, limits), Promise{kMaxSlowdownBound}}, now,
                        std::array<Slowdown, 2>{SlowdownOf(after), Slowdown()}, limits) == Reason::kNone;
  };
  constexpr int64_t kMost = PairTable::StateSummary::kMost;
  if (fits(kMost)) return PairTable::StateSummary::kUnknown;
  // A resident that is beyond its bound already may not become slower.
  const double most = std::max(BoundOf(promise, limits), static_cast<double>(now[0].upper)) - 1;
  const double steps = (1e6 * most - static_cast<double>(before.upper)) / PairTable::StateSummary::kStep;
  return static_cast<uint32_t>(LastThat(fits, kMost, static_cast<int64_t>(std::clamp(steps, 1.0, 1.0 * kMost))));
}

// The sum of loads that certainly breaks the promise; infinity where the estimate counts too.
double LoadBoundOf(const Promise& promise, const FitLimits& limits) {
  return LeastOf(promise, limits).confidence > 0 ? kInfinity : BoundOf(promise, limits);
}

}  // namespace

absl::Status Scorer::Meet(const StateTable& states, const DeviceRow& device, PairState& pair_state) {
  pair_state.digest = 0;  // until all is known
  pair_state.context = static_cast<uint16_t>(pairs_.ContextOf(ContextOf(device)));
  pair_state.residents = static_cast<uint16_t>(device.tenants.size());
  pair_state.before = {};
  for (size_t i = 0; i < device.tenants.size(); ++i) {
    const TenantClass& one = states.tenant(device.tenants[i]);
    pair_state.guests[i] = pairs_.GuestOf(*model_, pair_state.context, one);
    pair_state.promises[i] = one.promise;
    pair_state.weights[i] = one.worth;
    for (size_t j = i + 1; j < device.tenants.size(); ++j) {
      TenantPair pair;
      HORUS_RETURN_IF_ERROR(pairs_.Find(*model_, pair_state.context, one, states.tenant(device.tenants[j]), pair));
      AddExcess(pair_state.before[i], pair.mine);
      AddExcess(pair_state.before[j], pair.theirs);
    }
  }
  for (size_t i = 0; i < pair_state.residents; ++i)
    pair_state.room[i] = RoomFor(pair_state.promises[i], pair_state.before[i], limits_);
  pair_state.digest = device.digest;
  return absl::OkStatus();
}

Scorer::OnContext& Scorer::Enter(uint32_t context) {
  if (on_context_.size() <= context) on_context_.resize(pairs_.contexts());
  OnContext& here = on_context_[context];
  const DeviceContext& device = pairs_.device(context);
  here.on = view_->On(device.type);
  here.asked = here.on == nullptr;  // else once nothing can fail any more
  if (here.asked) return here;
  here.mem_mib = here.on->tenant.memory.request_mib + limits_.mem_headroom_mib;
  here.exclusive = here.on->tenant.exclusive;
  here.work_alone = static_cast<double>(here.on->tenant.work_alone) * here.on->SpeedOn(device.compute_share);
  if (adds_loads_) {
    here.most_load = LoadBoundOf(here.on->tenant.promise, limits_) * (1 + kLoadMargin) * kLoadUnitsPerSlowdown;
    here.known = model_->PredictLoad(device, here.on->tenant.demand, here.load).ok();
    here.asked = true;
    return here;
  }
  here.row = &pairs_.RowOf(context, here.on->tenant);
  here.most_upper = RoomFor(here.on->tenant.promise, {}, limits_);
  if (here.most_upper == PairTable::StateSummary::kUnknown) here.most_upper = UINT64_MAX;
  here.asked = true;
  return here;
}

absl::Status Scorer::AddPairs(const StateTable& states, const TenantIds& tenants, const PairState& pair_state,
                              OnContext& here) {
  const TenantClass& newcomer = here.on->tenant;
  const size_t residents = pair_state.residents;
  demands_.resize(residents + 1);
  tenants_.resize(residents + 1);
  promises_.resize(residents + 1);
  before_.resize(residents);
  after_.resize(residents + 1);
  PairExcess own;
  for (size_t i = 0; i < residents; ++i) {
    const TenantClass& resident = states.tenant(tenants[i]);
    TenantPair pair;
    HORUS_RETURN_IF_ERROR(
        pairs_.Find(*model_, pair_state.context, *here.row, pair_state.guests[i], newcomer, resident, pair));
    demands_[i] = &resident.demand;
    tenants_[i] = &resident;
    promises_[i] = pair_state.promises[i];
    AddExcess(own, pair.mine);
    before_[i] = SlowdownOf(pair_state.before[i]);
    AddExcess(pair.theirs, pair_state.before[i]);
    after_[i] = SlowdownOf(pair.theirs);
  }
  demands_[residents] = &newcomer.demand;
  tenants_[residents] = &newcomer;
  promises_[residents] = newcomer.promise;
  after_[residents] = SlowdownOf(own);
  return absl::OkStatus();
}

absl::Status Scorer::PairStateOf(const StateTable& states, uint32_t state, const PairState*& pair_state) {
  const DeviceRow& device = states.state(state);
  pair_state = nullptr;
  if (!adds_pairs_ || device.tenants.size() > PairState::kMost) return absl::OkStatus();
  if (pair_states_.size() <= state) pair_states_.resize(states.state_limit());
  PairState& known = pair_states_[state];
  if (known.digest != device.digest) HORUS_RETURN_IF_ERROR(Meet(states, device, known));
  pair_state = &known;
  return absl::OkStatus();
}

absl::Status Scorer::Residents(const StateTable& states, uint32_t state, std::vector<Slowdown>& slowdowns) {
  CheckEpoch();
  const DeviceRow& device = states.state(state);
  const PairState* pair_state = nullptr;
  HORUS_RETURN_IF_ERROR(PairStateOf(states, state, pair_state));
  if (pair_state == nullptr) {
    demands_.clear();
    for (const uint32_t id : device.tenants) demands_.push_back(&states.tenant(id).demand);
    return Predict(ContextOf(device), demands_.size(), slowdowns);
  }
  slowdowns.resize(device.tenants.size());
  for (size_t i = 0; i < slowdowns.size(); ++i) slowdowns[i] = SlowdownOf(pair_state->before[i]);
  return absl::OkStatus();
}

void Scorer::DescribeLoads(const StateTable& states, const DeviceRow& device, StateSummary& summary) {
  const DeviceContext context = ContextOf(device);
  summary.loads = {};
  double room = kInfinity;
  for (const uint32_t id : device.tenants) {
    const TenantClass& tenant = states.tenant(id);
    Load load;
    if (!model_->PredictLoad(context, tenant.demand, load).ok()) return;  // weighing says why
    summary.loads.weight += static_cast<double>(tenant.worth);
    summary.loads.estimate += load.estimate;
    summary.loads.upper += load.upper;
    room = std::min(room, LoadBoundOf(tenant.promise, limits_));
  }
  summary.loads.upper = std::max(summary.loads.estimate, summary.loads.upper);
  summary.has_loads = true;
  summary.crowding = static_cast<float>(static_cast<double>(summary.loads.estimate) / kLoadUnitsPerSlowdown);
  // A neighbour that is beyond its bound already refuses only what makes it worse.
  double units = std::max(room * kLoadUnitsPerSlowdown, static_cast<double>(summary.loads.upper));
  constexpr auto kMost = static_cast<double>(int64_t{1} << 62);
  if (device.tenants.empty()) units = kInfinity;
  summary.loads.room = units * (1 + kLoadMargin) < kMost ? static_cast<int64_t>(units * (1 + kLoadMargin)) : INT64_MAX;
  summary.context = static_cast<uint16_t>(pairs_.ContextOf(context));
  summary.residents = static_cast<uint16_t>(device.tenants.size());
}

absl::Status Scorer::Describe(const StateTable& states, uint32_t state, StateSummary& summary) {
  const DeviceRow& device = states.state(state);
  summary = {.digest = device.digest, .state = state};
  const int64_t free = device.mem_mib - device.mem_used_upper_mib;
  if (free < 0 || free >= INT32_MAX || device.tenants.size() >= StateSummary::kNotSifted) return absl::OkStatus();
  summary.mem_free_mib = static_cast<int32_t>(free);
  summary.per_mem_mib = 1 / static_cast<float>(std::max(device.mem_mib, int64_t{1}));
  if (adds_loads_) {
    DescribeLoads(states, device, summary);
    return absl::OkStatus();
  }
  const PairState* pair_state = nullptr;
  HORUS_RETURN_IF_ERROR(PairStateOf(states, state, pair_state));
  if (pair_state == nullptr || pair_state->residents > summary.pairs.guests.size()) return absl::OkStatus();
  for (size_t i = 0; i < pair_state->residents; ++i) {
    summary.pairs.guests[i] = pair_state->guests[i];
    summary.pairs.before[i] = SlowdownOf(pair_state->before[i]).estimate;
    summary.pairs.weight[i] = pair_state->weights[i];
    summary.pairs.room[i] = pair_state->room[i];
  }
  for (size_t i = pair_state->residents; i < summary.pairs.guests.size(); ++i) summary.pairs.before[i] = 1;
  summary.context = pair_state->context;
  summary.residents = pair_state->residents;
  summary.crowding = static_cast<float>(pair_state->residents);
  return absl::OkStatus();
}

// The rows of many classes do not stay in the processor's cache.
void Scorer::Prefetch(const StateSummary& summary) const {
  if (summary.residents == StateSummary::kNotSifted || summary.context >= on_context_.size()) return;
  const PairTable::Row* row = on_context_[summary.context].row;
  if (row == nullptr) return;
  for (const uint32_t guest : summary.pairs.guests) {
    if (guest < row->summaries.size()) __builtin_prefetch(&row->summaries[guest]);
  }
}

// No branch depends on who the residents are: the processor could not foresee it.
Scorer::Glance Scorer::GlanceAt(const LeastCost& least, const OnContext& here, const StateSummary& summary) {
  constexpr double kUnit = 1e-6 * PairTable::StateSummary::kStep;  // of excess
  const PairTable::StateSummary* const known = here.row->summaries.data();
  const StateSummary::Pairs& pairs = summary.pairs;
  Glance glance;
  uint64_t own = 0, upper = 0;
  double lost = 0;
  for (size_t r = 0; r < pairs.guests.size(); ++r) {
    const PairTable::StateSummary& pair = known[pairs.guests[r]];
    const uint16_t met = pair.met();
    const auto mask = static_cast<uint16_t>(-met);
    glance.met &= met;
    own += pair.mine;
    upper += pair.mine_upper & mask;
    glance.fits &= (pair.theirs_upper & mask) <= pairs.room[r];
    const auto before = static_cast<double>(pairs.before[r]);
    const double theirs = kUnit * pair.theirs;
    lost += static_cast<double>(pairs.weight[r]) * theirs / (before * (before + theirs));
  }
  glance.fits &=
      (upper <= here.most_upper) & (here.mem_mib <= summary.mem_free_mib) & !(here.exclusive & (summary.residents > 0));
  const double speed = here.work_alone / (1 + kUnit * static_cast<double>(own));
  const bool bounds = glance.met | ((least.own_work <= 0) & (least.lost_work >= 0));
  glance.floor = bounds ? Floor(least, here, summary, speed, lost) : -kInfinity;
  return glance;
}

void Scorer::SiftPairs(const LeastCost& least, std::span<const StateSummary> summaries, double cutoff,
                       std::vector<Sifted>& left) {
  const OnContext* here = nullptr;
  uint32_t context = 0;  // of `here`
  for (uint32_t i = 0; i < summaries.size(); ++i) {
    const StateSummary& summary = summaries[i];
    if (summary.digest == 0) continue;
    if (i + kAhead < summaries.size()) Prefetch(summaries[i + kAhead]);
    if (summary.residents == StateSummary::kNotSifted) {
      left.push_back({i, -kInfinity});
      continue;
    }
    if (here == nullptr || summary.context != context) {
      context = summary.context;
      here = &OnContextOf(context);
      if (here->on != nullptr) pairs_.Widen(*model_, context, *here->row, here->on->tenant);
    }
    if (here->on == nullptr) continue;
    const Glance glance = GlanceAt(least, *here, summary);
    if (glance.fits & (glance.floor < cutoff)) left.push_back({i, glance.floor, glance.met});
  }
}

absl::Status Scorer::MeetAll(uint32_t context, std::vector<PairTable::Guest>& guests) {
  if (guests.empty()) return absl::OkStatus();
  std::ranges::sort(guests, [](const auto& a, const auto& b) { return a.guest < b.guest; });
  const auto same = [](const PairTable::Guest& a, const PairTable::Guest& b) { return a.guest == b.guest; };
  guests.erase(std::unique(guests.begin(), guests.end(), same), guests.end());
  const OnContext& here = OnContextOf(context);
  return pairs_.Meet(*model_, context, *here.row, here.on->tenant, guests);
}

absl::Status Scorer::MeetNext(const StateTable& states, std::vector<const StateSummary*>& unmet) {
  std::erase_if(unmet, [&](const StateSummary* summary) {
    const JobView::OnType& on = *OnContextOf(summary->context).on;
    return FitDevice(&on.tenant, states.state(summary->state), limits_) != Reason::kNone;
  });
  std::ranges::sort(unmet, [](const StateSummary* a, const StateSummary* b) { return a->context < b->context; });
  unmet_.clear();
  for (size_t i = 0; i < unmet.size(); ++i) {
    const StateSummary& summary = *unmet[i];
    const PairTable::Row& row = *OnContextOf(summary.context).row;
    size_t first = 0;
    while (first < summary.residents && row.Knows(summary.pairs.guests[first])) ++first;
    if (first < summary.residents) {  // else it met them elsewhere by now
      const TenantClass& tenant = states.tenant(states.state(summary.state).tenants[first]);
      Fetch(tenant.demand);
      unmet_.push_back({summary.pairs.guests[first], &tenant});
    }
    if (i + 1 < unmet.size() && unmet[i + 1]->context == summary.context) continue;
    HORUS_RETURN_IF_ERROR(MeetAll(summary.context, unmet_));
    unmet_.clear();
  }
  return absl::OkStatus();
}

void Scorer::SiftLoads(const LeastCost& least, std::span<const StateSummary> summaries, double cutoff,
                       std::vector<Sifted>& left) {
  constexpr double kUnit = 1 / kLoadUnitsPerSlowdown;
  for (uint32_t i = 0; i < summaries.size(); ++i) {
    const StateSummary& summary = summaries[i];
    if (summary.digest == 0) continue;
    if (summary.residents == StateSummary::kNotSifted) {
      left.push_back({i, -kInfinity});
      continue;
    }
    const OnContext& here = OnContextOf(summary.context);
    if (here.on == nullptr) continue;
    if (!here.known) {
      left.push_back({i, -kInfinity});
      continue;
    }
    const int64_t load = summary.loads.estimate + here.load.estimate;
    const int64_t upper = std::max(load, summary.loads.upper + here.load.upper);
    const bool fits = (static_cast<double>(upper) <= here.most_load) & (upper <= summary.loads.room) &
                      (here.mem_mib <= summary.mem_free_mib) & !(here.exclusive & (summary.residents > 0));
    const double before = std::max(1.0, kUnit * static_cast<double>(summary.loads.estimate));
    const double after = std::max(1.0, kUnit * static_cast<double>(load));
    const double lost = summary.loads.weight * (after - before) / (after * before);
    const double speed = KeepsWork(here.on->tenant.demand) ? here.work_alone : here.work_alone / after;
    const double floor = Floor(least, here, summary, speed, lost);
    if (fits & (floor < cutoff)) left.push_back({i, floor});
  }
}

void Scorer::Region::Cover(const StateSummary& state) {
  Region one{.context = state.context,
             .sifted = state.residents != StateSummary::kNotSifted,
             .idle = state.residents == 0,
             .taken = state.residents != 0,
             .most_free_mib = state.mem_free_mib,
             .least_free = static_cast<float>(state.mem_free_mib) * state.per_mem_mib,
             .most_per_mib = state.per_mem_mib};
  if (state.has_loads) {
    one.least_load = one.most_load = state.loads.estimate;
    one.least_upper = state.loads.upper;
    one.most_room = state.loads.room;
    one.least_weight = state.loads.weight;
  }
  Cover(one);
}

void Scorer::Region::Cover(const Region& other) {
  if (other.idle || other.taken) context = other.context;
  sifted &= other.sifted;
  idle |= other.idle;
  taken |= other.taken;
  most_free_mib = std::max(most_free_mib, other.most_free_mib);
  least_free = std::min(least_free, other.least_free);
  most_per_mib = std::max(most_per_mib, other.most_per_mib);
  least_load = std::min(least_load, other.least_load);
  most_load = std::max(most_load, other.most_load);
  least_upper = std::min(least_upper, other.least_upper);
  most_room = std::max(most_room, other.most_room);
  least_weight = std::min(least_weight, other.least_weight);
}

double Scorer::LeastCostIn(const Region& region) {
  if (!region.idle && !region.taken) return kInfinity;
  const LeastCost* least = policy_->least_cost();
  if (least == nullptr || !region.sifted || !(adds_pairs_ || adds_loads_)) return -kInfinity;
  if (least->own_work > 0 || least->lost_work < 0 || least->memory_left < 0) return -kInfinity;
  const OnContext& here = OnContextOf(region.context);
  if (here.on == nullptr) return kInfinity;
  if (!here.known) return -kInfinity;
  if (here.mem_mib > region.most_free_mib || (here.exclusive && !region.idle)) return kInfinity;
  double speed = here.work_alone, lost = 0;
  if (adds_loads_) {
    const int64_t load = region.least_load + here.load.estimate;
    const int64_t upper = std::max(load, region.least_upper + here.load.upper);
    if (static_cast<double>(upper) > here.most_load || upper > region.most_room) return kInfinity;
    constexpr double kUnit = 1 / kLoadUnitsPerSlowdown;
    // What a resident loses grows with the load up to 1, and falls from there on: it is least at an end.
    const auto lost_at = [&](int64_t before) {
      return 1 / std::max(1.0, kUnit * static_cast<double>(before)) -
             1 / std::max(1.0, kUnit * static_cast<double>(before + here.load.estimate));
    };
    if (!KeepsWork(here.on->tenant.demand)) speed /= std::max(1.0, kUnit * static_cast<double>(load));
    lost = region.least_weight * std::min(lost_at(region.least_load), lost_at(region.most_load));
  }
  const double left = static_cast<double>(region.least_free) - static_cast<double>(here.on->tenant.memory.request_mib) *
                                                                   static_cast<double>(region.most_per_mib);
  return least->own_work * speed + least->lost_work * lost / static_cast<double>(here.on->tenant.weight) +
         least->memory_left * left + (region.taken ? std::min(0.0, least->idle) : least->idle) - 2 * kCostMargin;
}

void Scorer::Sift(std::span<const StateSummary> summaries, double cutoff, std::vector<Sifted>& left) {
  const LeastCost* least = policy_->least_cost();
  if (least != nullptr && adds_pairs_) {
    SiftPairs(*least, summaries, cutoff, left);
  } else if (least != nullptr && adds_loads_) {
    SiftLoads(*least, summaries, cutoff, left);
  } else {
    for (uint32_t i = 0; i < summaries.size(); ++i) {
      if (summaries[i].digest != 0) left.push_back({i, -kInfinity});
    }
  }
}

}  // namespace horus
