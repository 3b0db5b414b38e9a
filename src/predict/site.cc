// SPDX-License-Identifier: Apache-2.0
// A site's residuals become its constants.
#include <algorithm>

#include "base/format.h"
#include "base/statistics.h"
#include "base/status.h"
#include "predict/train.h"

namespace horus {
namespace {

// A site's factor is a normal variable around the trained one; runs of one site scatter around theirs. Assumptions: two
// campaigns of the same runs differ by about 0.3 (docs/predict.md, "The noise"), nets of one site by half of that.
constexpr double kSiteSpread = 0.3, kRunSpread = 0.15;
constexpr double kRowsForSite = 4;    // that tell the base
constexpr size_t kRowsForBound = 10;  // so that a bound at 0.9 lies below the largest error

Analytic AnalyticOf(const TargetModel& model, const TrainingRow& row) {
  const double value = RooflineOf(model.quantity, row.features);
  const double upper = row.analytic_upper[static_cast<size_t>(model.quantity)];
  return {.value = value,
          .upper = upper > 0 ? upper : value * InfoOf(model.quantity).default_factor,
          .understood = row.understood};
}

bool IsShare(Quantity quantity) { return InfoOf(quantity).link == Link::kExpm1; }

double Measured(const TargetModel& model, const TrainingRow& row) {
  return row.measured[static_cast<size_t>(model.quantity)];
}

void Judge(const TargetModel& model, const std::vector<const TrainingRow*>& rows, double& error, double& slack) {
  std::vector<double> slacks;
  error = 0;
  for (const TrainingRow* row : rows) {
    const Refined refined = model.Refine(row->features, row->gpu, AnalyticOf(model, *row));
    const double measured = std::max(Measured(model, *row), IsShare(model.quantity) ? 1.0 : 0.0);  // idle is no divisor
    error += std::abs(refined.value / measured - 1) / static_cast<double>(rows.size());
    slacks.push_back(refined.upper / measured - 1);
  }
  slack = Median(slacks);
}

// What p u + q v should be of one run, and how far runs scatter around it.
struct LineRow {
  double u, v, wanted, noise;
};
// What is held to be so before any run is seen.
struct Belief {
  double mean, spread;
};

// p and q of least loss: quadratic in small errors, linear in large ones, so that no single run decides.
std::array<double, 2> FitLine(const std::vector<LineRow>& rows, const std::array<Belief, 2>& beliefs) {
  constexpr int kSteps = 50;
  double p = beliefs[0].mean, q = beliefs[1].mean;
  for (int step = 0; step < kSteps; ++step) {
    double uu = std::pow(beliefs[0].spread, -2), vv = std::pow(beliefs[1].spread, -2), uv = 0;
    double uw = uu * beliefs[0].mean, vw = vv * beliefs[1].mean;
    for (const LineRow& r : rows) {
      const double weight = 1 / (r.noise * r.noise * std::hypot(1.0, (p * r.u + q * r.v - r.wanted) / r.noise));
      uu += weight * r.u * r.u;
      vv += weight * r.v * r.v;
      uv += weight * r.u * r.v;
      uw += weight * r.u * r.wanted;
      vw += weight * r.v * r.wanted;
    }
    const double determinant = uu * vv - uv * uv;  // above 0: beliefs have a spread
    p = (vv * uw - uv * vw) / determinant;
    q = (uu * vw - uv * uw) / determinant;
  }
  return {p, q};
}

// How far a site's runs lie from its constants says how wide its bound is, beside what the runs of others say: those
// count as kRunsOfOthers. An assumption: 1 to 8 keep the bounds of campaigns left out, and fewer make them narrower.
void AdjustScatter(const std::vector<const TrainingRow*>& rows, TargetModel& model) {
  constexpr double kRunsOfOthers = 2, kDeviations = 1.28;  // of a normal variable, below which nine of ten lie
  constexpr double kMostMargin = 1000;                     // that a bundle holds
  if (model.upper_margin < 0) return;
  double squares = kRunsOfOthers * std::pow(model.upper_margin, 2);
  for (const TrainingRow* row : rows) {
    const double value = model.Refine(row->features, row->gpu, AnalyticOf(model, *row)).value;
    const double error = std::log(Measured(model, *row) / std::max(value, 1.0));
    squares += std::pow(kDeviations * model.ScoreOf(row->features, true, error), 2);
  }
  // The base that was fitted to them takes one run away.
  const double runs = kRunsOfOthers + static_cast<double>(rows.size()) - 1;
  model.upper_margin = std::min(std::sqrt(squares / runs), kMostMargin);
}

// Measured memory is `scale` times what the jobs hold and the site's base, by errors relative to what was measured:
// large jobs' scratch is no base. Runs of one size tell the base alone, for a scale is close to 1 wherever it was
// measured.
void AdjustBase(const std::vector<const TrainingRow*>& rows, TargetModel& model) {
  constexpr double kScaleSpread = 0.05;
  constexpr double kProbeMib = 1000;  // to see what a base adds, by which the trees multiply it
  const auto with = [&model](double base_mib, const TrainingRow& row) {
    model.base_mib = base_mib;
    return model.Refine(row.features, row.gpu, AnalyticOf(model, row)).value;
  };
  std::vector<LineRow> lines;
  double before = 0;
  const double known = model.base_mib;
  for (const TrainingRow* row : rows) {
    const double held = with(0, *row), each = (with(kProbeMib, *row) - held) / kProbeMib;
    lines.push_back({held, each, Measured(model, *row), kRunSpread * Measured(model, *row)});
    before += (with(known, *row) - held) / each / static_cast<double>(rows.size());
  }
  const auto [scale, base_mib] = FitLine(lines, {Belief{1, kScaleSpread}, Belief{before, kBaseSpreadMib}});
  model.base_mib = std::max(0.0, base_mib);
  model.site_margin *= std::max(0.0, 1 - static_cast<double>(rows.size()) / kRowsForSite);
  for (const size_t own : {0, 1}) model.factors[own] += std::log(std::max(scale, 0.5));  // held and scratch
  AdjustScatter(rows, model);
}

// Loaders, hosts and samplers of a site raise low utilisation and lower high one: a level and a slope in log space.
// Assumption for the slope: models of the P100's table and of the A100's (docs/measure.md) met the other's at 0.43
// and 1.
void AdjustLine(const std::vector<const TrainingRow*>& rows, TargetModel& model) {
  const Belief slope_belief = {model.quantity == Quantity::kGpuUtil ? 1 : 0.6, 0.2};  // a mean has one of its own
  constexpr double kLevelSpread = 1, kNoise = 0.3;
  std::vector<LineRow> lines;
  double mean = 0;
  model.site_level = 0;
  model.site_slope = 1;
  for (const TrainingRow* row : rows) {
    const double said = MarginOf(Link::kExpm1, model.Refine(row->features, row->gpu, AnalyticOf(model, *row)).value);
    lines.push_back({said, 1, MarginOf(Link::kExpm1, Measured(model, *row)), kNoise});
    mean += said / static_cast<double>(rows.size());
  }
  for (LineRow& line : lines) line.u -= mean;
  const auto [slope, level] = FitLine(lines, {slope_belief, Belief{mean, kLevelSpread}});
  model.site_slope = std::clamp(slope, 0.0, 2.0);
  model.site_level = level - model.site_slope * mean;
}

void AdjustSpeed(const std::vector<const TrainingRow*>& rows, TargetModel& model) {
  std::map<std::string, std::vector<const TrainingRow*>> by_gpu;
  for (const TrainingRow* row : rows) by_gpu[row->gpu].push_back(row);
  for (const auto& [name, of_gpu] : by_gpu) {
    const double before = model.GpuFactor(of_gpu.front()->features, name);
    const auto at = std::ranges::lower_bound(model.gpus, name, {}, [](const auto& gpu) -> auto& { return gpu.first; });
    auto& own =
        at != model.gpus.end() && at->first == name ? at->second : model.gpus.insert(at, {name, before})->second;
    std::vector<double> ratios;
    for (const TrainingRow* row : of_gpu) {
      const Refined refined = model.Refine(row->features, name, AnalyticOf(model, *row));
      ratios.push_back(std::log(Measured(model, *row) / std::max(refined.value, 1e-6)));
    }
    const auto n = static_cast<double>(ratios.size());
    own += Median(ratios) * n / (n + std::pow(kRunSpread / kSiteSpread, 2));
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
  for (const Quantity quantity :
       {Quantity::kMemory, Quantity::kStepTime, Quantity::kGpuUtil, Quantity::kGpuUtilMax, Quantity::kMemBwUtil}) {
    const std::vector<const TrainingRow*> rows = RowsWith(set, quantity);
    const bool stated = quantity == Quantity::kMemory && options.base_mib >= 0;
    if (rows.empty() && !stated) continue;
    const TargetModel* found = base.FindModel(quantity);
    if (found == nullptr && IsShare(quantity)) continue;
    if (found == nullptr)
      return InvalidArgument("calibrate: expected a bundle with a model of %s, found none", InfoOf(quantity).name);
    any = true;
    TargetModel model = *found;
    SiteEffect effect{.quantity = quantity, .rows = rows.size()};
    if (!rows.empty()) Judge(model, rows, effect.error_before, effect.slack_before);
    WidenRange(rows, model);
    if (stated) {
      model.base_mib = options.base_mib;
      model.site_margin = 0;
    } else if (quantity == Quantity::kMemory) {
      AdjustBase(rows, model);
    } else if (IsShare(quantity)) {
      AdjustLine(rows, model);
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
        "calibrate: expected rows that measure mem_mib, step_time_us or utilisation, or a stated base, found neither");
  }
  return bundle;
}

}  // namespace horus
