// SPDX-License-Identifier: Apache-2.0
// Reads speeds off demands and a model.
#include "lab/truth/truth.h"

#include <algorithm>
#include <cmath>

#include "base/seeded_hash.h"
#include "base/status.h"
#include "interference/laws.h"

namespace horus {

absl::StatusOr<std::unique_ptr<Truth>> ModelTruth::Create(std::shared_ptr<const InterferenceModel> model,
                                                          std::vector<ProfileDemands> profiles) {
  for (size_t i = 0; i < profiles.size(); ++i) {
    if (profiles[i].empty()) return InvalidArgument("truth: profile %d: expected a demand, found none", i);
    const auto timed = [](const TypeDemand& one) { return one.demand.step_time_us.estimate > 0; };
    const auto count = std::ranges::count_if(profiles[i], timed);
    if (count > 0 && static_cast<size_t>(count) < profiles[i].size()) {
      return InvalidArgument("truth: profile %d: expected step times on all of %d types or none, found %d", i,
                             profiles[i].size(), count);
    }
  }
  return std::unique_ptr<Truth>(new ModelTruth(std::move(model), std::move(profiles)));
}

const Demand* FindDemand(const ProfileDemands& demands, GpuTypeId type) {
  const auto at =
      std::ranges::find_if(demands, [&](const TypeDemand& one) { return one.type == type || !one.type.valid(); });
  return at == demands.end() ? nullptr : &at->demand;
}

double ModelTruth::SpeedAlone(uint32_t profile, const DeviceContext& device) const {
  const Demand* demand = FindDemand(profiles_[profile], device.type);
  if (demand == nullptr) return 0;
  const double part = device.compute_share < 1 ? SliceSpeed(*demand, device.compute_share) : 1;
  int64_t fastest = demand->step_time_us.estimate;
  if (fastest == 0) return part;
  for (const TypeDemand& one : profiles_[profile]) fastest = std::min(fastest, one.demand.step_time_us.estimate);
  return part * static_cast<double>(fastest) / static_cast<double>(demand->step_time_us.estimate);
}

absl::Status ModelTruth::Shares(const DeviceContext& device, std::span<const uint32_t> profiles,
                                std::span<double> shares) const {
  std::vector<const Demand*> demands;
  for (const uint32_t profile : profiles) {
    demands.push_back(FindDemand(profiles_[profile], device.type));
    if (demands.back() == nullptr) return InvalidArgument("truth: profile %d: expected a demand on its GPU", profile);
  }
  std::vector<Slowdown> slowdowns(demands.size());
  HORUS_RETURN_IF_ERROR(model_->Predict(device, demands, slowdowns));
  for (size_t i = 0; i < shares.size(); ++i) shares[i] = 1 / static_cast<double>(slowdowns[i].estimate);
  return absl::OkStatus();
}

absl::Status Truth::SharesOfHosts(const DeviceContext& device, std::span<const uint32_t> profiles,
                                  std::span<const double> hosts, std::span<double> shares) const {
  const size_t n = profiles.size();
  std::vector<double> busy(n);  // part of the time
  for (size_t i = 0; i < n; ++i) busy[i] = std::min(1.0, hosts[i] / BestHostSpeed(profiles[i]));
  HORUS_RETURN_IF_ERROR(Shares(device, profiles, shares));
  const bool none = std::ranges::any_of(shares, [](double share) { return !(share > 0); });
  if (none || std::ranges::all_of(busy, [](double part) { return part >= 1; })) return absl::OkStatus();
  std::vector<double> slowdowns(n, 1);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i + 1; j < n; ++j) {
      std::array<double, 2> pair = {};
      HORUS_RETURN_IF_ERROR(Shares(device, std::array{profiles[i], profiles[j]}, pair));
      slowdowns[i] += busy[j] * (1 / pair[0] - 1);
      slowdowns[j] += busy[i] * (1 / pair[1] - 1);
    }
  }
  for (size_t i = 0; i < n; ++i) shares[i] = std::min(1.0, 1 / (busy[i] * slowdowns[i]));
  return absl::OkStatus();
}

double SensitiveTruth::HostSpeed(uint32_t profile, const HostShare& per_gpu) const {
  const Sensitivity* const matrix = profile < sensitivities_.size() ? sensitivities_[profile].get() : nullptr;
  if (matrix == nullptr) return 1;
  if (const double speed = matrix->Speed(per_gpu); speed > 0) return speed;
  double least = std::numeric_limits<double>::infinity();
  for (const float speed : matrix->speeds()) {
    if (speed > 0) least = std::min(least, static_cast<double>(speed));
  }
  return least;
}

namespace {

// ---- Lays the table out by GPU and rows, the pairs as each row's partners.

constexpr double kMostTimesReference = 1e6;  // chosen: no two GPUs are further apart, and rates stay whole numbers

absl::Status CheckArguments(const SpeedTable& table, std::span<const GpuTypeId> types, std::span<const uint32_t> rows,
                            uint32_t reference) {
  if (types.size() != table.gpus.size() || reference >= table.gpus.size()) {
    return InvalidArgument("truth: expected a type for each of %d GPUs and one of them as reference, found %d and %d",
                           table.gpus.size(), types.size(), reference);
  }
  for (size_t gpu = 0; gpu < types.size(); ++gpu) {
    const bool twice = std::find(types.begin(), types.begin() + static_cast<ptrdiff_t>(gpu), types[gpu]) !=
                       types.begin() + static_cast<ptrdiff_t>(gpu);
    if (types[gpu].valid() && !twice) continue;
    return InvalidArgument("truth: GPU '%s': expected a type of its own, found %s", table.gpus[gpu],
                           twice ? "that of another" : "none");
  }
  for (size_t profile = 0; profile < rows.size(); ++profile) {
    if (rows[profile] == kNotStated || rows[profile] < table.profiles.size()) continue;
    return InvalidArgument("truth: profile %d: expected one of %d rows, found %d", profile, table.profiles.size(),
                           rows[profile]);
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<uint32_t> RowsOfProfiles(const Trace& trace, const SpeedTable& table) {
  SeededMap<std::string_view, uint32_t> by_name;
  for (uint32_t row = 0; row < table.profiles.size(); ++row) by_name.emplace(table.profiles[row], row);
  std::vector<uint32_t> rows;
  for (const std::string& profile : trace.profiles) {
    const auto at = by_name.find(profile);
    rows.push_back(at == by_name.end() ? kNotStated : at->second);
  }
  return rows;
}

Trace NameGangs(Trace trace) {
  std::map<std::pair<uint32_t, int64_t>, uint32_t> gangs;
  for (TraceJob& job : trace.jobs) {
    if (GpusOf(job) < 2 || job.profile == kNotStated) continue;
    const auto [at, is_new] = gangs.try_emplace({job.profile, GpusOf(job)}, trace.profiles.size());
    if (is_new) trace.profiles.push_back(GangName(trace.profiles[job.profile], GpusOf(job)));
    job.profile = at->second;
  }
  CanonicaliseTrace(trace);
  return trace;
}

absl::StatusOr<Trace> StepsToDurations(Trace trace, const SpeedTable& table, uint32_t reference) {
  const std::vector<uint32_t> rows = RowsOfProfiles(trace, table);
  for (size_t i = 0; i < trace.jobs.size(); ++i) {
    TraceJob& job = trace.jobs[i];
    if (job.steps == 0) continue;
    const uint32_t row = job.profile == kNotStated ? kNotStated : rows[job.profile];
    const double speed = row == kNotStated ? 0 : table.Alone(UnitType(table, row, reference), row);
    if (!(speed > 0)) {
      return InvalidArgument("trace: job[%d]: profile: expected one with a speed alone, found '%s'", i,
                             std::string(ProfileOf(trace, job)));
    }
    const double time_us = std::ceil(static_cast<double>(job.steps) / speed * kUsPerS);
    if (time_us > static_cast<double>(kMaxTraceTimeUs)) {
      return InvalidArgument("trace: job[%d]: steps: expected at most %d us of work, found %g", i, kMaxTraceTimeUs,
                             time_us);
    }
    job.duration_us = std::max<int64_t>(1, static_cast<int64_t>(time_us));
    job.steps = 0;
  }
  return trace;
}

absl::StatusOr<std::unique_ptr<Truth>> TableTruth::Create(const SpeedTable& table, std::span<const GpuTypeId> types,
                                                          std::vector<uint32_t> rows, uint32_t reference,
                                                          ManyTenants many) {
  HORUS_RETURN_IF_ERROR(CheckArguments(table, types, rows, reference));
  const size_t count = table.profiles.size();
  std::unique_ptr<TableTruth> truth(new TableTruth(std::move(rows), count, many));
  for (uint32_t gpu = 0; gpu < types.size(); ++gpu) {
    const size_t type = types[gpu].value();
    if (truth->gpu_of_.size() <= type) truth->gpu_of_.resize(type + 1, kNoGpu);
    truth->gpu_of_[type] = static_cast<int32_t>(gpu);
    for (uint32_t row = 0; row < count; ++row) {
      const double unit = table.Alone(UnitType(table, row, reference), row);
      const double speed = unit > 0 ? table.Alone(gpu, row) / unit : 0;
      if (speed > kMostTimesReference) {
        return InvalidArgument("speeds: %s on %s: expected at most %g times the reference, found %g",
                               table.profiles[row], table.gpus[gpu], kMostTimesReference, speed);
      }
      truth->alone_.push_back(speed);
    }
  }
  truth->LayOut(table);
  return truth;
}

// No matrix: a file of pairs of a few names, and many more names that are alone, would become types x names^2 of it, in
// each run anew.
void TableTruth::LayOut(const SpeedTable& table) {
  std::vector<bool> used(table_rows_);
  for (const uint32_t row : rows_) {
    if (row != kNotStated) used[row] = true;
  }
  struct Side {
    size_t gpu_row = 0;
    Partner partner;
  };
  std::vector<Side> sides;
  for (const PairSpeed& pair : table.pairs) {
    if (!pair.Runs() || !used[pair.a] || !used[pair.b]) continue;
    const size_t gpu = pair.gpu * table_rows_;
    sides.push_back({gpu + pair.a, {pair.b, std::min(1.0, pair.speed_a)}});
    sides.push_back({gpu + pair.b, {pair.a, std::min(1.0, pair.speed_b)}});
  }
  const auto key = [](const Side& side) { return std::pair(side.gpu_row, side.partner.row); };
  std::ranges::stable_sort(sides, [&](const Side& a, const Side& b) { return key(a) < key(b); });
  first_.reserve(alone_.size() + 1);
  partners_.reserve(sides.size());
  for (size_t gpu_row = 0, at = 0; gpu_row <= alone_.size(); ++gpu_row) {
    first_.push_back(partners_.size());
    for (; at < sides.size() && sides[at].gpu_row == gpu_row; ++at) {
      const bool again = at + 1 < sides.size() && key(sides[at]) == key(sides[at + 1]);
      if (!again) partners_.push_back(sides[at].partner);  // of equal ones the last counts
    }
  }
}

absl::Status TableTruth::Shares(const DeviceContext& device, std::span<const uint32_t> profiles,
                                std::span<double> shares) const {
  const int32_t gpu = GpuOf(device);
  for (const uint32_t profile : profiles) {
    if (SpeedAlone(profile, device) > 0) continue;
    return InvalidArgument("truth: profile %d: expected a measured speed on GPU type %d, found none", profile,
                           device.type.value());
  }
  for (size_t i = 0; i < profiles.size(); ++i) {
    const size_t gpu_row = static_cast<size_t>(gpu) * table_rows_ + rows_[profiles[i]];
    double slowdown = 1;
    for (size_t j = 0; j < profiles.size(); ++j) {
      if (i == j) continue;
      const double share = ShareBeside(gpu_row, rows_[profiles[j]]);
      if (!(share > 0)) {
        std::ranges::fill(shares, 0);
        return absl::OkStatus();
      }
      slowdown = many_ == ManyTenants::kAdds ? slowdown + 1 / share - 1 : slowdown / share;
    }
    shares[i] = 1 / slowdown;
  }
  return absl::OkStatus();
}

}  // namespace horus
