// SPDX-License-Identifier: Apache-2.0
// Positions of devices and jobs.
#include "interference/pair_model.h"

#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "base/text.h"

namespace horus {

uint32_t PairHeader::DeviceOf(const PairDevice& device) const {
  const auto at = std::find(devices.begin(), devices.end(), device);
  return at == devices.end() ? kUnseen : static_cast<uint32_t>(at - devices.begin());
}

PairHeader HeaderOf(const PairSet& set) {
  PairHeader header{.devices = set.devices, .profiles = {}};
  for (const PairJob& job : set.jobs) header.profiles.push_back(job.profile_id);
  return header;
}

namespace {

// ---- Scales, residuals and checked series of the learned models.

constexpr std::string_view kMean = "point_mean", kSpread = "point_spread";
constexpr double kMostMean = 100;  // e^100 us is beyond the age of the universe
// A column that varies less is a constant: dividing by its spread would only magnify rounding.
constexpr double kLeastSpreadOfColumn = 1e-3;

}  // namespace

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
    return MakeError(absl::StatusCode::kDataLoss, "bundle: target %s: series %s: expected numbers from %g, found %g",
                     Quoted(target.name), std::string(kSpread), kLeastSpreadOfColumn, value);
  }
  return scale;
}

absl::StatusOr<std::span<const double>> ReadSeries(const BundleTarget& target, std::string_view name, size_t count,
                                                   double most) {
  const NamedSeries* series = FindSeries(target.calibration, name);
  if (series == nullptr || series->values.size() != count) {
    return MakeError(absl::StatusCode::kDataLoss, "bundle: target %s: series %s: expected %d numbers, found %d",
                     Quoted(target.name), std::string(name), count, series == nullptr ? 0 : series->values.size());
  }
  for (size_t i = 0; i < count; ++i) {
    if (std::abs(series->values[i]) <= most) continue;  // NaN is not
    return MakeError(absl::StatusCode::kDataLoss,
                     "bundle: target %s: series %s: expected numbers of magnitude up to %g, found %g at %d",
                     Quoted(target.name), std::string(name), most, series->values[i], i);
  }
  return std::span<const double>(series->values);
}

absl::Status CheckPairTarget(const BundleTarget& target, std::string_view name, uint32_t features) {
  if (target.name != name) {
    return MakeError(absl::StatusCode::kDataLoss, "bundle: expected a target %s, found %s", std::string(name),
                     Quoted(target.name));
  }
  if (target.link != Link::kExp) {
    return MakeError(absl::StatusCode::kDataLoss, "bundle: target %s: expected link %d, found %d", std::string(name),
                     static_cast<int>(Link::kExp), static_cast<int>(target.link));
  }
  if (target.forest.num_features != features || (features == 0 && !target.forest.nodes.empty())) {
    return MakeError(absl::StatusCode::kDataLoss,
                     "bundle: target %s: expected trees on %d features, found %d features and %d nodes",
                     std::string(name), features, target.forest.num_features, target.forest.nodes.size());
  }
  return absl::OkStatus();
}

}  // namespace horus
