// SPDX-License-Identifier: Apache-2.0
// Judging a device for a job, with a memo over (job class, device state).
#include "place/scorer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/hash.h"
#include "base/status.h"
#include "interference/combine.h"
#include "interference/slice.h"

namespace horus {
namespace {

const JobView::OnType* OnType(const JobView& view, GpuTypeId type) {
  if (view.types.size() == 1 && !view.types[0].type.valid()) return &view.types[0];
  const auto at = std::lower_bound(view.types.begin(), view.types.end(), type,
                                   [](const JobView::OnType& entry, GpuTypeId wanted) { return entry.type < wanted; });
  return at != view.types.end() && at->type == type ? &*at : nullptr;
}

// Alone there, against the fastest whole device that the job lists.
double RelativeSpeed(const JobView::OnType& on, float compute_share) {
  if (compute_share == 1) return on.relative_speed;
  return on.relative_speed * SliceSpeed(static_cast<double>(on.tenant.demand.gpu_util_pct.estimate),
                                        static_cast<double>(on.tenant.demand.mem_bw_util_pct.estimate),
                                        static_cast<double>(compute_share));
}

DeviceContext ContextOf(const DeviceRow& device) { return {device.type, device.mode, device.compute_share}; }

// The most excess that can be added to `before` without breaking a bound.
uint32_t RoomFor(float bound, const PairExcess& before, const FitLimits& limits) {
  const std::array<Slowdown, 1> now = {SlowdownOf(before)};
  const auto fits = [&](int64_t more) {
    PairExcess after = before;
    AddExcess(after, {0, more});
    // The resident stands first, a newcomer that nothing slows last.
    return FitSlowdowns(std::array<float, 2>{bound, kMaxSlowdownBound}, now,
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

}  // namespace

JobView ViewJob(const JobSpec& job) {
  JobView view{.job = &job};
  int64_t fastest = 0;
  for (const TypeDemand& entry : job.demands) {
    const int64_t step = entry.demand.step_time_us.estimate;
    if (step > 0 && (fastest == 0 || step < fastest)) fastest = step;
  }
  view.types.reserve(job.demands.size());
  for (const TypeDemand& entry : job.demands) {
    const int64_t step = entry.demand.step_time_us.estimate;
    const double speed = step > 0 ? static_cast<double>(fastest) / static_cast<double>(step) : 1.0;
    view.types.push_back({entry.type, MakeTenantClass(job, entry.demand), speed});
    view.digest = CombineHash(CombineHash(view.digest, entry.type.value()), view.types.back().tenant.digest);
  }
  // What DeviceCandidate shows a policy of the rest of the job.
  view.digest = CombineHash(view.digest, static_cast<uint64_t>(job.kind) << 32 | static_cast<uint32_t>(job.priority));
  view.request = view.digest;
  for (const int64_t part :
       {job.cpu_milli, job.mem_mib, job.storage_mb_s, int64_t{job.tasks}, int64_t{job.gpus_per_task}}) {
    view.request = CombineHash(view.request, static_cast<uint64_t>(part));
  }
  for (const auto& [key, value] : job.node_selector) {
    view.request = CombineHash(CombineHash(view.request, Hash64(key)), Hash64(value));
  }
  return view;
}

Scorer::Scorer(std::shared_ptr<const InterferenceModel> model, std::unique_ptr<const Policy> policy,
               const FitLimits& limits, uint64_t memo_bytes, bool exhaustive)
    : model_(std::move(model)),
      policy_(std::move(policy)),
      limits_(limits),
      memo_limit_(memo_bytes / sizeof(Entry)),
      exhaustive_(exhaustive),
      adds_pairs_(model_->adds_pairs() && !exhaustive) {}

void Scorer::CheckEpoch() {
  if (memo_epoch_ == model_->epoch() && memo_entries_ <= memo_limit_ &&
      pairs_.bytes_held() <= memo_limit_ * sizeof(Entry))
    return;
  memo_.clear();
  memo_entries_ = 0;
  pairs_.Clear();
  ++numbering_;
  crowds_.clear();
  memo_epoch_ = model_->epoch();
}

void Scorer::SetJob(const JobView& view) {
  CheckEpoch();
  view_ = &view;
  memo_row_ = nullptr;
  on_context_.assign(pairs_.contexts(), {});
}

std::vector<Scorer::Entry>* Scorer::MemoRow(const StateTable& states) {
  const uint64_t needed = states.state_limit();
  if (memo_row_ != nullptr && memo_row_->size() >= needed) return memo_row_;
  if (exhaustive_ || needed > memo_limit_) return nullptr;
  if (memo_entries_ + needed > memo_limit_) {
    memo_.clear();
    memo_entries_ = 0;
  }
  std::unique_ptr<std::vector<Entry>>* known = memo_.Find(view_->digest);
  memo_row_ = (known != nullptr ? *known : memo_.Insert(view_->digest, std::make_unique<std::vector<Entry>>())).get();
  if (memo_row_->size() < needed) {
    const size_t before = memo_row_->capacity();
    memo_row_->resize(needed);
    memo_entries_ += memo_row_->capacity() - before;
  }
  return memo_row_;
}

absl::Status Scorer::Judge(const StateTable& states, uint32_t state, DeviceVerdict& verdict) {
  std::vector<Entry>* const row = MemoRow(states);
  Entry* const entry = row != nullptr ? &(*row)[state] : nullptr;
  const uint64_t digest = states.digest(state) & ~Entry::kReasonMask;
  if (entry != nullptr && (entry->tag & ~Entry::kReasonMask) == digest &&
      (entry->tag & Entry::kReasonMask) != Entry::kUnset) {
    verdict = {entry->cost, static_cast<Reason>(entry->tag & Entry::kReasonMask)};
    return absl::OkStatus();
  }
  HORUS_RETURN_IF_ERROR(Weigh(states, state, verdict));
  if (entry != nullptr) *entry = {digest | static_cast<uint64_t>(verdict.reason), verdict.cost};
  return absl::OkStatus();
}

absl::Status Scorer::Fit(const StateTable& states, uint32_t state, Reason& reason) {
  const DeviceRow& device = states.state(state);
  const JobView::OnType* on = OnType(*view_, device.type);
  reason = FitDevice(on == nullptr ? nullptr : &on->tenant, device, limits_);
  if (reason != Reason::kNone) return absl::OkStatus();
  if (!device.bounded && on->tenant.slowdown_bound == 0 && std::isinf(limits_.slowdown_bound)) return absl::OkStatus();
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

absl::Status Scorer::Meet(const StateTable& states, const DeviceRow& device, Crowd& crowd) {
  crowd.digest = 0;  // until all is known
  crowd.context = static_cast<uint16_t>(pairs_.ContextOf(ContextOf(device)));
  crowd.residents = static_cast<uint16_t>(device.tenants.size());
  crowd.before = {};
  for (size_t i = 0; i < device.tenants.size(); ++i) {
    const TenantClass& one = states.tenant(device.tenants[i]);
    crowd.guests[i] = pairs_.GuestOf(crowd.context, one);
    crowd.bounds[i] = one.slowdown_bound;
    for (size_t j = i + 1; j < device.tenants.size(); ++j) {
      TenantPair pair;
      HORUS_RETURN_IF_ERROR(pairs_.Find(*model_, crowd.context, one, states.tenant(device.tenants[j]), pair));
      AddExcess(crowd.before[i], pair.mine);
      AddExcess(crowd.before[j], pair.theirs);
    }
  }
  for (size_t i = 0; i < crowd.residents; ++i) crowd.room[i] = RoomFor(crowd.bounds[i], crowd.before[i], limits_);
  crowd.digest = device.digest;
  return absl::OkStatus();
}

Scorer::OnContext& Scorer::OnContextOf(uint32_t context) {
  if (on_context_.size() <= context) on_context_.resize(pairs_.contexts());
  OnContext& here = on_context_[context];
  if (here.asked) return here;
  const DeviceContext& device = pairs_.device(context);
  here.asked = true;
  here.on = OnType(*view_, device.type);
  if (here.on == nullptr) return here;
  here.row = &pairs_.RowOf(context, here.on->tenant);
  here.relative_speed = RelativeSpeed(*here.on, device.compute_share);
  here.most_upper = RoomFor(here.on->tenant.slowdown_bound, {}, limits_);
  if (here.most_upper == PairTable::Brief::kUnknown) here.most_upper = UINT64_MAX;
  return here;
}

absl::Status Scorer::AddPairs(const StateTable& states, const TenantIds& tenants, const Crowd& crowd, OnContext& here) {
  const TenantClass& newcomer = here.on->tenant;
  const size_t residents = crowd.residents;
  demands_.resize(residents + 1);
  tenants_.resize(residents + 1);
  bounds_.resize(residents + 1);
  before_.resize(residents);
  after_.resize(residents + 1);
  PairExcess own;
  for (size_t i = 0; i < residents; ++i) {
    const TenantClass& resident = states.tenant(tenants[i]);
    TenantPair pair;
    HORUS_RETURN_IF_ERROR(pairs_.Find(*model_, crowd.context, *here.row, crowd.guests[i], newcomer, resident, pair));
    demands_[i] = &resident.demand;
    tenants_[i] = &resident;
    bounds_[i] = crowd.bounds[i];
    AddExcess(own, pair.mine);
    before_[i] = SlowdownOf(crowd.before[i]);
    AddExcess(pair.theirs, crowd.before[i]);
    after_[i] = SlowdownOf(pair.theirs);
  }
  demands_[residents] = &newcomer.demand;
  tenants_[residents] = &newcomer;
  bounds_[residents] = newcomer.slowdown_bound;
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

absl::Status Scorer::Describe(const StateTable& states, uint32_t state, Brief& brief) {
  brief = {.digest = states.digest(state), .state = state};
  const Crowd* crowd = nullptr;
  HORUS_RETURN_IF_ERROR(CrowdOf(states, state, crowd));
  if (crowd == nullptr || crowd->residents > brief.guests.size()) return absl::OkStatus();
  for (size_t i = 0; i < crowd->residents; ++i) {
    if (crowd->before[i].estimate > PairTable::Brief::kMost) return absl::OkStatus();
    brief.guests[i] = crowd->guests[i];
    brief.before[i] = static_cast<uint32_t>(crowd->before[i].estimate);
    brief.room[i] = crowd->room[i];
  }
  brief.context = crowd->context;
  brief.residents = crowd->residents;
  return absl::OkStatus();
}

void Scorer::Sift(std::span<const Brief> briefs, double cutoff, std::vector<uint32_t>& left) {
  constexpr double kUnit = 1e-6;    // of excess
  constexpr double kMargin = 1e-5;  // far more than what floats round, far less than what costs differ by
  for (uint32_t i = 0; i < briefs.size(); ++i) {
    const Brief& brief = briefs[i];
    if (brief.residents == Brief::kNotSifted) {
      left.push_back(i);
      continue;
    }
    const OnContext& here = OnContextOf(brief.context);
    if (here.on == nullptr) continue;
    const std::span<const PairTable::Brief> known = here.row->briefs;
    uint64_t own = 0;
    uint64_t upper = 0;
    bool unknown = false;
    bool fits = true;
    for (size_t r = 0; r < brief.residents; ++r) {
      if (brief.guests[r] >= known.size() || known[brief.guests[r]].mine == PairTable::Brief::kUnknown) {
        unknown = true;  // it has to be weighed to be known
        break;
      }
      const PairTable::Brief& pair = known[brief.guests[r]];
      own += pair.mine;
      upper += pair.mine_upper;
      fits &= pair.theirs_upper <= brief.room[r];
    }
    if (unknown) {
      left.push_back(i);
      continue;
    }
    if (!fits || upper > here.most_upper) continue;
    double lost = 0;
    for (size_t r = 0; r < brief.residents; ++r) {
      const double before = 1 + kUnit * brief.before[r];
      const double theirs = kUnit * known[brief.guests[r]].theirs;
      lost += theirs / (before * (before + theirs));
    }
    const double least = policy_->LeastCost(here.relative_speed, 1 + kUnit * static_cast<double>(own), lost);
    if (least - kMargin < cutoff) left.push_back(i);
  }
}

absl::Status Scorer::Foretell(const StateTable& states, uint32_t state, const JobView::OnType& on) {
  const DeviceRow& device = states.state(state);
  const Crowd* crowd = nullptr;
  HORUS_RETURN_IF_ERROR(CrowdOf(states, state, crowd));
  if (crowd != nullptr) return AddPairs(states, device.tenants, *crowd, OnContextOf(crowd->context));
  demands_.clear();
  tenants_.clear();
  bounds_.clear();
  for (const uint32_t id : device.tenants) {
    const TenantClass& tenant = states.tenant(id);
    demands_.push_back(&tenant.demand);
    tenants_.push_back(&tenant);
    bounds_.push_back(tenant.slowdown_bound);
  }
  demands_.push_back(&on.tenant.demand);
  tenants_.push_back(&on.tenant);
  bounds_.push_back(on.tenant.slowdown_bound);
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
          .relative_speed = RelativeSpeed(on, device.compute_share)};
}

absl::Status Scorer::Price(const DeviceCandidate& candidate, DeviceVerdict& verdict) const {
  DeviceScore score;
  HORUS_RETURN_IF_ERROR(policy_->ScoreDevice(candidate, score));
  if (!std::isfinite(score.cost)) {
    return MakeError(absl::StatusCode::kInternal, "policy %s: expected a finite cost, found %g",
                     std::string(policy_->name()), score.cost);
  }
  verdict = {score.cost, Reason::kNone};
  if (score.declined) verdict = {Distance(Reason::kPolicy, {}), Reason::kPolicy};
  return absl::OkStatus();
}

absl::Status Scorer::Weigh(const StateTable& states, uint32_t state, DeviceVerdict& verdict) {
  Shortfall shortfall;
  const DeviceRow& device = states.state(state);
  const JobView::OnType* on = OnType(*view_, device.type);
  verdict.reason = FitDevice(on == nullptr ? nullptr : &on->tenant, device, limits_, &shortfall);
  if (verdict.reason == Reason::kNone) {
    HORUS_RETURN_IF_ERROR(Foretell(states, state, *on));
    verdict.reason = FitSlowdowns(bounds_, before_, after_, limits_, &shortfall);
    if (verdict.reason == Reason::kNone) return Price(CandidateOf(device, *on), verdict);
  }
  verdict.cost = Distance(verdict.reason, shortfall);
  return absl::OkStatus();
}

absl::Status Scorer::Evaluate(const StateTable& states, uint32_t state, Evaluation& evaluation) {
  evaluation = Evaluation();
  DeviceVerdict& verdict = evaluation.verdict;
  const DeviceRow& device = states.state(state);
  const JobView::OnType* on = OnType(*view_, device.type);
  verdict.reason = FitDevice(on == nullptr ? nullptr : &on->tenant, device, limits_, &evaluation.shortfall);
  if (verdict.reason == Reason::kNone) {
    HORUS_RETURN_IF_ERROR(Foretell(states, state, *on));
    evaluation.candidate = CandidateOf(device, *on);
    verdict.reason = FitSlowdowns(bounds_, before_, after_, limits_, &evaluation.shortfall);
    if (verdict.reason == Reason::kNone) return Price(evaluation.candidate, verdict);
  }
  verdict.cost = Distance(verdict.reason, evaluation.shortfall);
  return absl::OkStatus();
}

uint64_t Scorer::bytes_held() const {
  return memo_entries_ * sizeof(Entry) + memo_.bytes_held() + pairs_.bytes_held() + crowds_.capacity() * sizeof(Crowd);
}

}  // namespace horus
