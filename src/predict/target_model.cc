// SPDX-License-Identifier: Apache-2.0
// Refines the roofline's answer, and writes and reads what does so as a target of a bundle.
#include "predict/target_model.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "base/format.h"
#include "base/status.h"
#include "base/text.h"
#include "base/units.h"
#include "base/vectors.h"

namespace horus {
namespace {

// Not the GPU: what types that were not trained on are worth a margin of their own says.
constexpr std::array<RangeColumn, 6> kRangeColumns = {{
    {"step_flops"},
    {"step_bytes"},
    {"step_kernels"},
    {"step_intensity"},
    {"training", false},
    {"precision", false},
}};

// Series of a target.
constexpr std::string_view kFactors = "prior_factors";
constexpr std::string_view kUpper = "upper_margin";
constexpr std::string_view kUnseenGpu = "unseen_gpu_margin";
constexpr std::string_view kCoverage = "coverage";  // promised, observed, rows, groups, promised on an unseen GPU type
constexpr std::string_view kBase = "site_base_mib";
constexpr std::string_view kSite = "unseen_site";
constexpr std::string_view kLine = "site_line";  // level and slope
constexpr std::string_view kDifficulty = "difficulty";
constexpr std::string_view kLow = "range_low", kHigh = "range_high";
constexpr std::string_view kGpuPrefix = "gpu:";
// Errors of memory grow with what a convolution may take as scratch, besides a share of the peak (features/memory.cc).
constexpr double kPeakShare = 0.03;
// On a GPU type that was not trained on, what a context with all kernels loaded may take besides.
constexpr double kUnseenContextBytes = 512.0 * kBytesPerMib;
constexpr double kMostMargin = 1000;  // e^1000 is beyond every cap; memory counts in per cent of its peak
constexpr double kMostFactor = 20;    // e^20 times an assumption is none
constexpr double kMostWidening = 1;   // at a distance of 1 and more a bound is the square of its factor
constexpr double kCodeDistance = 1;   // a mode or precision that was not trained on
constexpr double kFullFade = 1;       // the distance (a factor of e) at which the prior leads alone

absl::Status Damaged(const BundleTarget& target, std::string_view series, std::string_view expected) {
  return DataLoss("bundle: target %s: series %s: expected %s", Quoted(target.name), series, expected);
}

// Sets `value` to the only one of a series, from 0 to `most`; leaves it where there is no such series.
absl::Status ReadOne(const BundleTarget& target, std::string_view name, double most, std::string_view most_name,
                     double& value) {
  const NamedSeries* series = FindSeries(target.calibration, name);
  if (series == nullptr) return absl::OkStatus();
  if (series->values.size() != 1 || series->values[0] < 0 || series->values[0] > most)
    return Damaged(target, name, Formatted("one number from 0 to %s", most_name));
  value = series->values[0];
  return absl::OkStatus();
}

struct Distance {
  double value = 0;
  std::string_view column;
  bool below = false;
};

Distance DistanceOf(const TrainedRange& range, std::span<const float> row) {
  static const std::array<size_t, kRangeColumns.size()> places = [] {
    std::array<size_t, kRangeColumns.size()> found = {};
    for (size_t i = 0; i < found.size(); ++i) found[i] = *FindFeature(kRangeColumns[i].name);
    return found;
  }();
  Distance farthest;
  for (size_t i = 0; i < range.low.size(); ++i) {
    const double value = places[i] < row.size() ? double{row[places[i]]} : 0.0;
    const double low = range.low[i], high = range.high[i];
    // Nothing was seen in training, nothing is known of the job's GPU, or inside.
    if (!(low <= high) || std::isnan(value) || (value >= low && value <= high)) continue;
    double distance = 0;
    if (!kRangeColumns[i].ratio) {
      distance = kCodeDistance;
    } else if (value <= 0 || high <= 0) {
      distance = kFullFade;  // nothing to divide by: present here and absent there
    } else {
      distance = value > high ? std::log(value / high) : std::log(low / value);
    }
    distance = std::min(distance, kMostDistance);
    if (distance > farthest.value) farthest = {distance, kRangeColumns[i].name, value < low};
  }
  return farthest;
}

// What a feature of a training row, a float, can be.
bool IsFeature(double value) {
  return std::abs(value) <= double{std::numeric_limits<float>::max()} && double{static_cast<float>(value)} == value;
}

absl::Status CheckRange(const BundleTarget& target, const TrainedRange& range) {
  if (range.low.size() != range.high.size() || range.low.size() > kRangeColumns.size())
    return Damaged(target, kLow, "as many numbers as range_high and at most " + std::to_string(kRangeColumns.size()));
  for (size_t i = 0; i < range.low.size(); ++i) {
    const double low = range.low[i], high = range.high[i];
    if (low == HUGE_VAL && high == -HUGE_VAL) continue;  // no training row had the column
    if (low <= high && IsFeature(low) && IsFeature(high)) continue;
    return Damaged(target, kLow,
                   Formatted("of %s two values of a feature with that of range_high the larger, found %g and %g",
                             kRangeColumns[i].name, low, high));
  }
  return absl::OkStatus();
}

}  // namespace

std::span<const RangeColumn> RangeColumns() { return kRangeColumns; }

std::string ChipOf(std::span<const float> row) {
  static const size_t capability = *FindFeature("gpu_compute_capability"), sms = *FindFeature("gpu_sm_count");
  if (row.size() <= std::max(capability, sms) || !(row[capability] > 0) || !(row[sms] > 0)) return "";
  return Formatted("%s%.0f/%.0f", kChipPrefix, double{row[capability]}, double{row[sms]});
}

const double* TargetModel::FindGpu(std::string_view name) const {
  const auto* gpu = FindSorted(gpus, name, [](const auto& one) { return std::string_view(one.first); });
  return gpu == nullptr ? nullptr : &gpu->second;
}

double TargetModel::GpuFactor(std::string_view name) const {
  if (const double* own = FindGpu(name); own != nullptr) return *own;
  double sum = 0, types = 1;  // the typical factor, 0, counts as one more type
  for (const auto& gpu : gpus) {
    if (gpu.first.starts_with(kChipPrefix)) continue;
    sum += gpu.second;
    types += 1;
  }
  return sum / types;
}

// Under its own name, or as another board of the same chip that was trained on; nullptr when neither was.
const double* TargetModel::FindGpu(std::span<const float> row, std::string_view name) const {
  const double* own = FindGpu(name);
  if (own != nullptr) return own;
  const std::string chip = ChipOf(row);
  return chip.empty() ? nullptr : FindGpu(chip);
}

double TargetModel::GpuFactor(std::span<const float> row, std::string_view name) const {
  const double* seen = FindGpu(row, name);
  return seen != nullptr ? *seen : GpuFactor(name);
}

double TargetModel::FittedMargin(std::span<const float> row, std::string_view gpu) const {
  return MarginOf(InfoOf(quantity).link, PriorOf(quantity, TermsOf(row, base_mib), factors, GpuFactor(row, gpu)));
}

// What is uncertain of the memory that a row is predicted to take, as a share of it.
double UncertainShare(std::span<const float> row, bool base_known) {
  static const size_t scratch_at = *FindFeature("mem_largest_scratch"), peak_at = *FindFeature("mem_peak");
  if (row.size() <= std::max(scratch_at, peak_at) || !(row[peak_at] > 0)) return 1;
  return kPeakShare + (double{row[scratch_at]} + (base_known ? 0 : kUnseenContextBytes)) / double{row[peak_at]};
}

double TargetModel::DifficultyOf(std::span<const float> row, size_t* hardest) const {
  if (difficulty.size() != kTimeParts) return 1;
  const PriorTerms terms = TermsOf(row);
  double sum = 0, weighted = 0, most = 0;
  for (size_t i = 0; i < kTimeParts; ++i) {
    sum += terms.part_us[i];
    const double here = terms.part_us[i] * difficulty[i];
    weighted += here;
    if (here > most && hardest != nullptr) *hardest = i;
    most = std::max(most, here);
  }
  return sum > 0 ? weighted / sum : 1;
}

double TargetModel::ScoreOf(std::span<const float> row, bool gpu_seen, double error) const {
  if (quantity != Quantity::kMemory) return error / DifficultyOf(row);
  return std::expm1(error) / UncertainShare(row, gpu_seen || base_mib >= 0);
}

double TargetModel::ErrorOf(std::span<const float> row, bool gpu_seen, double score) const {
  if (quantity != Quantity::kMemory) return score * DifficultyOf(row);
  return std::log1p(score * UncertainShare(row, gpu_seen || base_mib >= 0));
}

Refined TargetModel::Refine(std::span<const float> row, std::string_view gpu, const Analytic& analytic) const {
  const auto [roofline, roofline_upper, understood] = analytic;
  const QuantityInfo& info = InfoOf(quantity);
  const Distance distance = DistanceOf(range, row);
  const double prior = MarginOf(info.link, roofline);
  // Without an answer of the roofline's (power) there is only the factor.
  const double default_margin =
      roofline > 0 ? std::max(0.0, MarginOf(info.link, roofline_upper) - prior) : std::log(info.default_factor);
  const double fitted = FittedMargin(row, gpu);
  const double trained = double{forest.PredictMargin(row, static_cast<float>(fitted))};

  Refined refined{.roofline = roofline, .fitted = ApplyLink(info.link, fitted)};
  refined.distance = distance.value;
  refined.farthest = distance.column;
  refined.below = distance.below;
  const bool gpu_seen =
      base_mib >= 0 || FindGpu(row, gpu) != nullptr;  // of memory, all that a GPU type tells is a base
  const double bound = gpu_seen ? upper_margin : unseen_gpu_margin;
  size_t hardest = 0;
  const double difficult = DifficultyOf(row, &hardest);
  if (difficult > kHardJob) refined.hardest = TimePartName(hardest);
  refined.outside = difficult > kHardJob || distance.value > kOutsideDistance;
  refined.calibrated = bound >= 0 && distance.value <= kOutsideDistance;
  refined.promised = bound < 0 ? 0 : gpu_seen && site_margin == 0 ? promised : unseen_gpu_promised;
  const double seen = std::isfinite(trained) ? std::clamp(1 - distance.value / kFullFade, 0.0, 1.0) : 0;
  // Trees cannot extrapolate, the fitted roofline can. But what they take off the smallest job seen they take off a
  // smaller one: it never takes more.
  const bool less = info.grows_with_batch && distance.below && std::isfinite(trained) && trained < fitted;
  const double share = refined.forest_share = less ? 1 : seen;
  const double margin = site_level + site_slope * (share > 0 ? fitted + share * (trained - fitted) : fitted);
  double inside = bound >= 0 ? ErrorOf(row, gpu_seen, bound) : default_margin;
  if (!gpu_seen && bound >= 0) inside = std::max(inside, ErrorOf(row, true, upper_margin));
  // The analytic bound of memory is made for any job; those of times and shares are factors that nobody has checked
  // there.
  const double widening = quantity == Quantity::kMemory ? 0 : std::min(distance.value, kMostWidening);
  const double width = (seen * inside + (1 - seen) * std::max(inside, default_margin)) * (1 + widening);
  refined.value = std::clamp(ApplyLink(info.link, margin), 0.0, info.most);
  double upper = ApplyLink(info.link, margin + width);
  if (site_margin > 0) {
    refined.site_mib = site_margin * SiteSpreadMib(refined.value);
    upper = refined.value + std::hypot(upper - refined.value, refined.site_mib);
  }
  refined.upper = std::clamp(upper, refined.value, info.most);
  if (!understood || (quantity == Quantity::kMemory && distance.value > kOutsideDistance))
    refined.upper = std::clamp(roofline_upper, refined.upper, info.most);
  return refined;
}

size_t TargetModel::bytes_held() const {
  return sizeof(TargetModel) + forest.bytes_held() + (factors.capacity() + 2 * range.low.capacity()) * sizeof(double) +
         gpus.capacity() * sizeof(gpus[0]);
}

BundleTarget ToBundle(const TargetModel& model) {
  const QuantityInfo& info = InfoOf(model.quantity);
  BundleTarget target{.name = std::string(info.name), .link = info.link};
  const auto add = [&target](std::string_view name, std::vector<double> values) {
    target.calibration.push_back({std::string(name), std::move(values)});
  };
  add(kFactors, model.factors);
  for (const auto& [name, factor] : model.gpus) add(std::string(kGpuPrefix) + name, {factor});
  if (model.base_mib >= 0) add(kBase, {model.base_mib});
  if (model.site_margin > 0) add(kSite, {model.site_margin});
  if (model.site_level != 0 || model.site_slope != 1) add(kLine, {model.site_level, model.site_slope});
  if (!model.difficulty.empty()) add(kDifficulty, model.difficulty);
  if (model.upper_margin >= 0) add(kUpper, {model.upper_margin});
  if (model.unseen_gpu_margin >= 0) add(kUnseenGpu, {model.unseen_gpu_margin});
  add(kCoverage, {model.promised, model.observed, model.rows, model.groups, model.unseen_gpu_promised});
  add(kLow, model.range.low);
  add(kHigh, model.range.high);
  target.forest = model.forest.data();
  if (target.forest.num_features == 0) target.forest.num_features = static_cast<uint32_t>(FeatureCount());
  return target;
}

absl::StatusOr<TargetModel> FromBundle(const BundleTarget& target, size_t feature_count) {
  const std::optional<Quantity> quantity = FindQuantity(target.name);
  if (!quantity.has_value())
    return DataLoss("bundle: target %s: expected a quantity of this library", Quoted(target.name));
  const QuantityInfo& info = InfoOf(*quantity);
  if (target.link != info.link) {
    return DataLoss("bundle: target %s: expected link %d, found %d", Quoted(target.name), static_cast<int>(info.link),
                    static_cast<int>(target.link));
  }
  if (target.forest.num_features != feature_count) {
    return DataLoss("bundle: target %s: expected %d features, found %d", Quoted(target.name), feature_count,
                    target.forest.num_features);
  }
  TargetModel model{.quantity = *quantity};
  const auto bounded = [](const std::vector<double>& values) {
    return std::ranges::all_of(values, [](double v) { return std::abs(v) <= kMostFactor; });
  };
  const NamedSeries* factors = FindSeries(target.calibration, kFactors);
  const std::span<const PriorFactor> all = FactorsOf(*quantity);
  const size_t expected = all.size();
  // Mean utilisation had no slope in 0.1, which is a slope of 1.
  const bool straight = *quantity == Quantity::kGpuUtil && factors != nullptr && factors->values.size() + 1 == expected;
  if (factors == nullptr || factors->values.size() + straight != expected || !bounded(factors->values))
    return Damaged(target, kFactors, std::to_string(expected) + " factors from -20 to 20");
  model.factors = factors->values;
  if (straight) model.factors.push_back(-std::log(all.back().typical));
  for (const NamedSeries& series : target.calibration) {
    if (!series.name.starts_with(kGpuPrefix)) continue;
    if (series.values.size() != 1 || !bounded(series.values))
      return Damaged(target, series.name, "one factor from -20 to 20");
    model.gpus.emplace_back(series.name.substr(kGpuPrefix.size()), series.values[0]);
  }
  std::sort(model.gpus.begin(), model.gpus.end());
  HORUS_RETURN_IF_ERROR(ReadOne(target, kBase, kMostMemMib, "2^32", model.base_mib));
  HORUS_RETURN_IF_ERROR(ReadOne(target, kSite, kMostMargin, "1000", model.site_margin));
  if (const NamedSeries* line = FindSeries(target.calibration, kLine); line != nullptr) {
    const bool valid = line->values.size() == 2 && bounded(line->values) && line->values[1] >= 0;
    if (!valid) return Damaged(target, kLine, "a level from -20 to 20 and a slope from 0 to 20");
    model.site_level = line->values[0];
    model.site_slope = line->values[1];
  }
  if (const NamedSeries* difficulty = FindSeries(target.calibration, kDifficulty); difficulty != nullptr) {
    const auto positive = [](double v) { return v > 0 && v <= kMostMargin; };
    if (difficulty->values.size() != kTimeParts || !std::ranges::all_of(difficulty->values, positive))
      return Damaged(target, kDifficulty, std::to_string(kTimeParts) + " numbers above 0, at most 1000");
    model.difficulty = difficulty->values;
  }
  HORUS_RETURN_IF_ERROR(ReadOne(target, kUpper, kMostMargin, "1000", model.upper_margin));
  HORUS_RETURN_IF_ERROR(ReadOne(target, kUnseenGpu, kMostMargin, "1000", model.unseen_gpu_margin));
  if (const NamedSeries* coverage = FindSeries(target.calibration, kCoverage); coverage != nullptr) {
    constexpr double kMostRows = 9007199254740992.0;  // 2^53
    const std::pair<double*, double> fields[] = {{&model.promised, 1},
                                                 {&model.observed, 1},
                                                 {&model.rows, kMostRows},
                                                 {&model.groups, kMostRows},
                                                 {&model.unseen_gpu_promised, 1}};
    bool valid = coverage->values.size() == std::size(fields);
    for (size_t i = 0; valid && i < std::size(fields); ++i) {
      *fields[i].first = coverage->values[i];
      valid = coverage->values[i] >= 0 && coverage->values[i] <= fields[i].second;
    }
    if (!valid) return Damaged(target, kCoverage, "two shares, two counts and a share");
  }
  const NamedSeries* low = FindSeries(target.calibration, kLow);
  const NamedSeries* high = FindSeries(target.calibration, kHigh);
  if (low != nullptr && high != nullptr) {
    model.range = {low->values, high->values};
    HORUS_RETURN_IF_ERROR(CheckRange(target, model.range));
  }
  HORUS_ASSIGN_OR_RETURN(model.forest, Forest::Create(target.forest));
  return model;
}

}  // namespace horus
