// SPDX-License-Identifier: Apache-2.0
// The rules of a PairSet, its rows and its fingerprint; what the learned models share.
#include "interference/pair_model.h"

#include <bit>
#include <map>
#include <set>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "base/text.h"

namespace horus {
namespace {

absl::Status CheckSize(const char* what, size_t found, size_t most) {
  if (found <= most) return absl::OkStatus();
  return ResourceExhausted("%s: expected at most %d, found %d", what, most, found);
}

absl::Status CheckJob(const PairJob& job, size_t index, size_t devices) {
  if (job.name.empty() || job.family.empty()) {
    return InvalidArgument("jobs[%d]: expected a name and a family, found %s and %s", index, Quoted(job.name),
                           Quoted(job.family));
  }
  if (job.points.size() != devices) {
    return InvalidArgument("jobs[%d] (%s): expected %d points, one a device, found %d", index, Quoted(job.name),
                           devices, job.points.size());
  }
  for (const JobPoint& point : job.points) {
    for (size_t column = 0; column < kPointColumns; ++column) {
      if (!std::isinf(point[column])) continue;
      return InvalidArgument("jobs[%d] (%s): %s: expected a finite number or NaN, found %g", index, Quoted(job.name),
                             std::string(NameOf(static_cast<PointColumn>(column))), point[column]);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSlowdown(const PairRun& run, const char* field, double value) {
  if (std::isnan(value) || (value >= kLeastMeasuredSlowdown && value <= kMostMeasuredSlowdown)) return absl::OkStatus();
  return InvalidArgument("%s: %s: expected a ratio from %g to %g, found %g", run.where, field, kLeastMeasuredSlowdown,
                         kMostMeasuredSlowdown, value);
}

}  // namespace

absl::Status CheckPairSet(const PairSet& set) {
  HORUS_RETURN_IF_ERROR(CheckSize("devices", set.devices.size(), kMostPairDevices));
  HORUS_RETURN_IF_ERROR(CheckSize("jobs", set.jobs.size(), kMostPairJobs));
  HORUS_RETURN_IF_ERROR(CheckSize("runs", set.runs.size(), kMostPairRuns));
  std::set<std::string_view> names;
  std::map<uint64_t, const PairJob*> by_profile;
  for (size_t i = 0; i < set.jobs.size(); ++i) {
    HORUS_RETURN_IF_ERROR(CheckJob(set.jobs[i], i, set.devices.size()));
    if (!names.insert(set.jobs[i].name).second)
      return InvalidArgument("jobs[%d]: expected a name of its own, found %s twice", i, Quoted(set.jobs[i].name));
    if (set.jobs[i].profile_id == 0) continue;
    const auto [at, fresh] = by_profile.emplace(set.jobs[i].profile_id, &set.jobs[i]);
    if (!fresh && at->second->family != set.jobs[i].family) {
      return InvalidArgument("jobs[%d]: expected the family %s of %s, which is the same job (graph and run), found %s",
                             i, Quoted(at->second->family), Quoted(at->second->name), Quoted(set.jobs[i].family));
    }
  }
  for (const PairRun& run : set.runs) {
    if (run.device >= set.devices.size() || run.job_a >= set.jobs.size() || run.job_b >= set.jobs.size()) {
      return InvalidArgument("%s: expected positions below %d devices and %d jobs, found device %d, jobs %d and %d",
                             run.where, set.devices.size(), set.jobs.size(), run.device, run.job_a, run.job_b);
    }
    HORUS_RETURN_IF_ERROR(CheckSlowdown(run, "slowdown_a", run.slowdown_a));
    HORUS_RETURN_IF_ERROR(CheckSlowdown(run, "slowdown_b", run.slowdown_b));
  }
  return absl::OkStatus();
}

std::vector<PairRow> RowsOf(const PairSet& set) {
  std::vector<PairRow> rows;
  std::map<std::pair<uint32_t, std::string_view>, uint32_t> campaigns;
  for (uint32_t i = 0; i < set.runs.size(); ++i) {
    const PairRun& run = set.runs[i];
    const auto next = static_cast<uint32_t>(campaigns.size());
    const uint32_t campaign =
        campaigns.emplace(std::pair{run.device, std::string_view(run.campaign)}, next).first->second;
    const auto add = [&](uint32_t victim, uint32_t other, double slowdown) {
      if (std::isnan(slowdown)) return;
      rows.push_back({.device = run.device,
                      .victim = victim,
                      .other = other,
                      .campaign = campaign,
                      .run = i,
                      .slowdown = slowdown});
    };
    if (run.job_a == run.job_b) {
      const double mean = (run.slowdown_a + run.slowdown_b) / 2;
      add(run.job_a, run.job_b,
          !std::isnan(mean)            ? mean
          : std::isnan(run.slowdown_a) ? run.slowdown_b
                                       : run.slowdown_a);
    } else {
      add(run.job_a, run.job_b, run.slowdown_a);
      add(run.job_b, run.job_a, run.slowdown_b);
    }
  }
  return rows;
}

uint64_t FingerprintOf(const PairSet& set) {
  uint64_t hash = CombineHash(CombineHash(set.devices.size(), set.jobs.size()), set.runs.size());
  for (const PairDevice& device : set.devices)
    hash = CombineHash(CombineHash(hash, Hash64(device.gpu)), static_cast<uint64_t>(device.mode));
  for (const PairJob& job : set.jobs) {
    hash = CombineHash(CombineHash(CombineHash(hash, Hash64(job.name)), Hash64(job.family)), job.profile_id);
    for (const JobPoint& point : job.points) {
      for (const float value : point) hash = CombineHash(hash, std::bit_cast<uint32_t>(value));
    }
  }
  for (const PairRun& run : set.runs) {
    hash = CombineHash(CombineHash(CombineHash(hash, run.device), run.job_a), run.job_b);
    hash = CombineHash(CombineHash(hash, Hash64(run.campaign)), std::bit_cast<uint64_t>(run.slowdown_a));
    hash = CombineHash(hash, std::bit_cast<uint64_t>(run.slowdown_b));
  }
  return hash;
}

// ---- Positions of devices and jobs; scales, residuals and checked series of the learned models.

uint32_t PairHeader::DeviceOf(const PairDevice& device) const {
  const auto at = std::find(devices.begin(), devices.end(), device);
  return at == devices.end() ? kUnseen : static_cast<uint32_t>(at - devices.begin());
}

PairHeader HeaderOf(const PairSet& set) {
  PairHeader header{.devices = set.devices, .profiles = {}};
  for (const PairJob& job : set.jobs) header.profiles.push_back(job.profile_id);
  return header;
}

constexpr std::string_view kMean = "point_mean", kSpread = "point_spread";
constexpr double kMostMean = 100;  // e^100 us is beyond the age of the universe
// A column that varies less is a constant: dividing by its spread would only magnify rounding.
constexpr double kLeastSpreadOfColumn = 1e-3;

Columns PointScale::Standardise(const JobPoint& point) const {
  Columns columns = {};
  for (size_t c = 0; c < kPointColumns; ++c) {
    if (std::isnan(point[c])) continue;
    columns[c] = std::clamp((double{point[c]} - mean[c]) / spread[c], -kFarthest, kFarthest);
  }
  return columns;
}

double PointScale::Theory(const JobPoint& victim, const JobPoint& other) const {
  return TheoryOf(victim, other, mean[static_cast<size_t>(PointColumn::kLogUtil)]);
}

Presence PresenceOf(const PairSet& set, std::span<const PairRow> rows) {
  Presence presence{.devices = std::vector<bool>(set.devices.size()), .jobs = std::vector<bool>(set.jobs.size())};
  for (const PairRow& row : rows) {
    presence.devices[row.device] = true;
    presence.jobs[row.victim] = presence.jobs[row.other] = true;
  }
  return presence;
}

PointScale ScaleOf(const PairSet& set, std::span<const PairRow> rows) {
  // Each job on each device once, however many rows it has.
  // Bounded: at most kMostPairJobs times kMostPairDevices.
  std::vector<bool> present(set.jobs.size() * set.devices.size());
  for (const PairRow& row : rows) {
    // Bounded: at most kMostPairJobs times kMostPairDevices.
    present[row.victim * set.devices.size() + row.device] = true;
    // Bounded: at most kMostPairJobs times kMostPairDevices.
    present[row.other * set.devices.size() + row.device] = true;
  }
  PointScale scale;
  for (size_t c = 0; c < kPointColumns; ++c) {
    double count = 0, sum = 0, squares = 0;
    const auto for_each_point = [&](const auto& use) {
      for (size_t i = 0; i < present.size(); ++i) {
        const float value = present[i] ? set.jobs[i / set.devices.size()].points[i % set.devices.size()][c] : NAN;
        if (!std::isnan(value)) use(double{value});
      }
    };
    for_each_point([&](double value) { ++count, sum += value; });
    if (count > 0) scale.mean[c] = sum / count;
    for_each_point([&](double value) { squares += (value - scale.mean[c]) * (value - scale.mean[c]); });
    const double spread = count > 0 ? std::sqrt(squares / count) : 0;
    scale.spread[c] = spread > kLeastSpreadOfColumn ? spread : 1;
    // Logarithms of times and shares are far inside these; what is not is no time, and `read` would refuse it.
    scale.mean[c] = std::clamp(scale.mean[c], -kMostMean, kMostMean);
    scale.spread[c] = std::min(scale.spread[c], kMostMean);
  }
  return scale;
}

std::vector<double> ResidualsOf(const PairSet& set, std::span<const PairRow> rows, const PointScale& scale) {
  std::vector<double> residuals;
  residuals.reserve(rows.size());
  for (const PairRow& row : rows) {
    residuals.push_back(ExcessOf(row.slowdown) -
                        scale.Theory(set.jobs[row.victim].points[row.device], set.jobs[row.other].points[row.device]));
  }
  return residuals;
}

MeanResidual MeanResidualOf(const PairSet& set, std::span<const PairRow> rows, const PointScale& scale) {
  const std::vector<double> residuals = ResidualsOf(set, rows, scale);
  MeanResidual mean{.devices = std::vector<double>(set.devices.size())};
  std::vector<double> count(set.devices.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    mean.devices[rows[i].device] += residuals[i];
    ++count[rows[i].device];
  }
  double seen = 0;
  for (size_t d = 0; d < count.size(); ++d) {
    if (count[d] == 0) continue;
    mean.devices[d] /= count[d];
    mean.all += mean.devices[d];
    ++seen;
  }
  if (seen > 0) mean.all /= seen;
  for (size_t d = 0; d < count.size(); ++d) {
    if (count[d] == 0) mean.devices[d] = mean.all;
  }
  return mean;
}

void AddScale(const PointScale& scale, BundleTarget& target) {
  target.calibration.push_back({std::string(kMean), {scale.mean.begin(), scale.mean.end()}});
  target.calibration.push_back({std::string(kSpread), {scale.spread.begin(), scale.spread.end()}});
}

absl::StatusOr<PointScale> ReadScale(const BundleTarget& target) {
  HORUS_ASSIGN_OR_RETURN(const auto mean, ReadSeries(target, kMean, kPointColumns, kMostMean));
  HORUS_ASSIGN_OR_RETURN(const auto spread, ReadSeries(target, kSpread, kPointColumns, kMostMean));
  PointScale scale;
  std::copy(mean.begin(), mean.end(), scale.mean.begin());
  std::copy(spread.begin(), spread.end(), scale.spread.begin());
  for (const double value : spread) {
    if (value >= kLeastSpreadOfColumn) continue;
    return DataLoss("bundle: target %s: series %s: expected numbers from %g, found %g", Quoted(target.name), kSpread,
                    kLeastSpreadOfColumn, value);
  }
  return scale;
}

absl::StatusOr<std::span<const double>> ReadSeries(const BundleTarget& target, std::string_view name, size_t count,
                                                   double most) {
  const NamedSeries* series = FindSeries(target.calibration, name);
  if (series == nullptr || series->values.size() != count) {
    return DataLoss("bundle: target %s: series %s: expected %d numbers, found %d", Quoted(target.name), name, count,
                    series == nullptr ? 0 : series->values.size());
  }
  for (size_t i = 0; i < count; ++i) {
    if (std::abs(series->values[i]) <= most) continue;  // NaN is not
    return DataLoss("bundle: target %s: series %s: expected numbers of magnitude up to %g, found %g at %d",
                    Quoted(target.name), name, most, series->values[i], i);
  }
  return std::span<const double>(series->values);
}

absl::Status CheckPairTarget(const BundleTarget& target, std::string_view name, uint32_t features, Link link) {
  if (target.name != name) return DataLoss("bundle: expected a target %s, found %s", name, Quoted(target.name));
  if (target.link != link) {
    return DataLoss("bundle: target %s: expected link %d, found %d", name, static_cast<int>(link),
                    static_cast<int>(target.link));
  }
  if (target.forest.num_features != features || (features == 0 && target.forest != ForestData{})) {
    return DataLoss("bundle: target %s: expected trees on %d features, found %d features and %d nodes", name, features,
                    target.forest.num_features, target.forest.nodes.size());
  }
  return absl::OkStatus();
}

}  // namespace horus
