// SPDX-License-Identifier: Apache-2.0
// Medians of a site's residuals become its constants.
#include "predict/site.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "base/format.h"
#include "base/status.h"
#include "features/feature_row.h"

namespace horus {
namespace {

// A site's factor is a normal variable around the trained one; runs of one site scatter around theirs. Assumptions: two
// campaigns of the same runs differ by about 0.3 (docs/predict.md, "The noise"), nets of one site by half of that.
constexpr double kSiteSpread = 0.3, kRunSpread = 0.15;
constexpr size_t kRowsForBound = 10;  // so that a bound at 0.9 lies below the largest error

double MedianOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 != 0) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

Analytic AnalyticOf(const TargetModel& model, const TrainingRow& row) {
  const double value = RooflineOf(model.quantity, row.features);
  const double upper = row.analytic_upper[static_cast<size_t>(model.quantity)];
  return {.value = value,
          .upper = upper > 0 ? upper : value * InfoOf(model.quantity).default_factor,
          .understood = row.understood};
}

double Measured(const TargetModel& model, const TrainingRow& row) {
  return row.measured[static_cast<size_t>(model.quantity)];
}

void Judge(const TargetModel& model, const std::vector<const TrainingRow*>& rows, double& error, double& slack) {
  std::vector<double> slacks;
  error = 0;
  for (const TrainingRow* row : rows) {
    const Refined refined = model.Refine(row->features, row->gpu, AnalyticOf(model, *row));
    error += std::abs(refined.value / Measured(model, *row) - 1) / static_cast<double>(rows.size());
    slacks.push_back(refined.upper / Measured(model, *row) - 1);
  }
  slack = MedianOf(slacks);
}

// What is left of the measured memory when the job itself has what it is predicted to hold.
void AdjustBase(const std::vector<const TrainingRow*>& rows, TargetModel& model) {
  std::vector<double> bases;
  model.base_mib = 0;
  for (const TrainingRow* row : rows) {
    const Refined refined = model.Refine(row->features, row->gpu, AnalyticOf(model, *row));
    bases.push_back(std::max(0.0, Measured(model, *row) - refined.value));
  }
  model.base_mib = MedianOf(bases);
}

void AdjustSpeed(const std::vector<const TrainingRow*>& rows, TargetModel& model) {
  std::map<std::string, std::vector<const TrainingRow*>> by_gpu;
  for (const TrainingRow* row : rows) by_gpu[row->gpu].push_back(row);
  for (const auto& [name, of_gpu] : by_gpu) {
    const double* seen = model.FindGpu(of_gpu.front()->features, name);
    const double before = seen != nullptr ? *seen : model.GpuFactor(name);
    const auto at = std::lower_bound(model.gpus.begin(), model.gpus.end(), name,
                                     [](const auto& gpu, const std::string& n) { return gpu.first < n; });
    auto& own =
        at != model.gpus.end() && at->first == name ? at->second : model.gpus.insert(at, {name, before})->second;
    std::vector<double> ratios;
    for (const TrainingRow* row : of_gpu) {
      const Refined refined = model.Refine(row->features, name, AnalyticOf(model, *row));
      ratios.push_back(std::log(Measured(model, *row) / std::max(refined.value, 1e-6)));
    }
    const auto n = static_cast<double>(ratios.size());
    own += MedianOf(ratios) * n / (n + std::pow(kRunSpread / kSiteSpread, 2));
  }
}

// Jobs like those that the site's bound rests on are no strangers to it.
void WidenRange(const std::vector<const TrainingRow*>& rows, TargetModel& model) {
  if (rows.size() < kRowsForBound) return;
  for (size_t i = 0; i < model.range.low.size(); ++i) {
    const size_t at = *FindFeature(RangeColumns()[i].name);
    for (const TrainingRow* row : rows) {
      if (std::isnan(row->features[at])) continue;
      model.range.low[i] = std::min(model.range.low[i], double{row->features[at]});
      model.range.high[i] = std::max(model.range.high[i], double{row->features[at]});
    }
  }
}

void AdjustBound(const std::vector<const TrainingRow*>& rows, double promise, TargetModel& model) {
  if (rows.size() < kRowsForBound) return;
  std::vector<double> scores;
  for (const TrainingRow* row : rows) {
    const Refined refined = model.Refine(row->features, row->gpu, AnalyticOf(model, *row));
    const double error = MarginOf(InfoOf(model.quantity).link, Measured(model, *row)) -
                         MarginOf(InfoOf(model.quantity).link, refined.value);
    scores.push_back(model.ScoreOf(row->features, true, error));
  }
  std::sort(scores.begin(), scores.end());
  const double rank = std::ceil((static_cast<double>(scores.size()) + 1) * promise);
  model.upper_margin = std::max(0.0, scores[std::min(scores.size(), static_cast<size_t>(rank)) - 1]);
  model.promised = promise;
}

}  // namespace

absl::StatusOr<Bundle> CalibrateToSite(const Predictor& base, const TrainingSet& set, const SiteOptions& options,
                                       SiteReport* report) {
  if (!set.rows.empty()) HORUS_RETURN_IF_ERROR(CheckTrainingSet(set));
  if (base.bundle().empty()) return InvalidArgument("calibrate: expected a trained bundle to start from, found none");
  const std::string_view bytes = base.bundle();
  HORUS_ASSIGN_OR_RETURN(Bundle bundle, ReadBundle({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, {},
                                                   FeatureSchemaHash()));
  bool any = false;
  for (const Quantity quantity : {Quantity::kMemory, Quantity::kStepTime}) {
    std::vector<const TrainingRow*> rows;
    for (const TrainingRow& row : set.rows) {
      if (!std::isnan(row.measured[static_cast<size_t>(quantity)])) rows.push_back(&row);
    }
    const bool stated = quantity == Quantity::kMemory && options.base_mib >= 0;
    if (rows.empty() && !stated) continue;
    const TargetModel* found = base.FindModel(quantity);
    if (found == nullptr) {
      return InvalidArgument("calibrate: expected a bundle with a model of %s, found none",
                             std::string(InfoOf(quantity).name));
    }
    any = true;
    TargetModel model = *found;
    SiteEffect effect{.quantity = quantity, .rows = rows.size()};
    if (!rows.empty()) Judge(model, rows, effect.error_before, effect.slack_before);
    WidenRange(rows, model);
    if (stated) {
      model.base_mib = options.base_mib;
    } else if (quantity == Quantity::kMemory) {
      AdjustBase(rows, model);
    } else {
      AdjustSpeed(rows, model);
    }
    AdjustBound(rows, options.promise, model);
    if (!rows.empty()) Judge(model, rows, effect.error_after, effect.slack_after);
    if (report != nullptr) {
      if (!rows.empty()) report->effects.push_back(effect);
      if (quantity == Quantity::kMemory) report->base_mib = model.base_mib;
    }
    for (BundleTarget& target : bundle.targets) {
      if (target.name == InfoOf(quantity).name) target = ToBundle(model);
    }
  }
  if (!any) {
    return InvalidArgument(
        "calibrate: expected rows that measure mem_mib or step_time_us, or a stated base, found neither");
  }
  return bundle;
}

}  // namespace horus
