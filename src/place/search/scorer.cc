// SPDX-License-Identifier: Apache-2.0
// Judging a device for a job, with a memo over (job class, device state).
#include "place/search/scorer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/seeded_hash.h"
#include "base/status.h"
#include "interference/combine.h"
#include "interference/slice.h"
#include "place/state/groups.h"

namespace horus {

const JobView::OnType* JobView::On(GpuTypeId type) const {
  if (types.size() == 1 && !types[0].type.valid()) return &types[0];
  const auto at = std::lower_bound(types.begin(), types.end(), type,
                                   [](const OnType& entry, GpuTypeId wanted) { return entry.type < wanted; });
  return at != types.end() && at->type == type ? &*at : nullptr;
}

double JobView::OnType::SpeedOn(float compute_share) const {
  if (compute_share == 1) return relative_speed;
  return relative_speed * SliceSpeed(static_cast<double>(tenant.demand.gpu_util_pct.estimate),
                                     static_cast<double>(tenant.demand.mem_bw_util_pct.estimate),
                                     static_cast<double>(compute_share));
}

DeviceContext ContextOf(const DeviceRow& device) { return {device.type, device.mode, device.compute_share}; }

JobView ViewJob(const JobSpec& job, bool probe_unknown) {
  JobView view{.job = &job};
  SecretHasher hasher;
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

absl::Status Scorer::Foretell(const StateTable& states, uint32_t state, const JobView::OnType& on) {
  const DeviceRow& device = states.state(state);
  const Crowd* crowd = nullptr;
  HORUS_RETURN_IF_ERROR(CrowdOf(states, state, crowd));
  if (crowd != nullptr) return AddPairs(states, device.tenants, *crowd, OnContextOf(crowd->context));
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
  if (!std::isfinite(score.cost)) {
    return MakeError(absl::StatusCode::kInternal, "policy %s: expected a finite cost, found %g",
                     std::string(policy_->name()), score.cost);
  }
  if (!std::isfinite(score.own_work)) {
    return MakeError(absl::StatusCode::kInternal, "policy %s: expected a finite own work, found %g",
                     std::string(policy_->name()), score.own_work);
  }
  verdict = {score.cost, Reason::kNone, score.own_work};
  if (score.declined) verdict = {Distance(Reason::kPolicy, {}), Reason::kPolicy};
  return absl::OkStatus();
}

absl::Status Scorer::Weigh(const StateTable& states, uint32_t state, DeviceVerdict& verdict) {
  Shortfall shortfall;
  const DeviceRow& device = states.state(state);
  const JobView::OnType* on = view_->On(device.type);
  verdict.own_work = 0;
  verdict.reason = FitDevice(on == nullptr ? nullptr : &on->tenant, device, limits_, &shortfall);
  if (verdict.reason == Reason::kNone) {
    HORUS_RETURN_IF_ERROR(Foretell(states, state, *on));
    verdict.reason = FitSlowdowns(promises_, before_, after_, limits_, &shortfall);
    if (verdict.reason == Reason::kNone) return Price(CandidateOf(device, *on), verdict);
  }
  verdict.cost = Distance(verdict.reason, shortfall);
  return absl::OkStatus();
}

absl::Status Scorer::Evaluate(const StateTable& states, uint32_t state, Evaluation& evaluation) {
  evaluation = Evaluation();
  DeviceVerdict& verdict = evaluation.verdict;
  const DeviceRow& device = states.state(state);
  const JobView::OnType* on = view_->On(device.type);
  verdict.reason = FitDevice(on == nullptr ? nullptr : &on->tenant, device, limits_, &evaluation.shortfall);
  if (verdict.reason == Reason::kNone) {
    HORUS_RETURN_IF_ERROR(Foretell(states, state, *on));
    evaluation.candidate = CandidateOf(device, *on);
    verdict.reason = FitSlowdowns(promises_, before_, after_, limits_, &evaluation.shortfall);
    if (verdict.reason == Reason::kNone) return Price(evaluation.candidate, verdict);
  }
  verdict.cost = Distance(verdict.reason, evaluation.shortfall);
  return absl::OkStatus();
}

uint64_t Scorer::bytes_held() const {
  return memo_entries_ * sizeof(Entry) + memo_.bytes_held() + pairs_.bytes_held() + crowds_.capacity() * sizeof(Crowd);
}

}  // namespace horus
