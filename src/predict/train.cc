// SPDX-License-Identifier: Apache-2.0
// Trains one quantity after the other: folds of whole nets choose the trees, folds of whole families calibrate the
// bound.
#include "predict/train.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <numeric>
#include <set>

#include "base/format.h"
#include "base/status.h"
#include "base/text.h"
#include "base/units.h"
#include "horus/version.h"
#include "trees/calibrate.h"
#include "trees/trainer.h"

namespace horus {
namespace {

constexpr uint32_t kMostFolds = 10;
constexpr uint32_t kFoldsOfMany = 5;  // of many rows each fit is dear, and fewer folds tell as much
constexpr size_t kMany = 5000;
constexpr size_t kLeastGpusToGeneralise = 3;
constexpr size_t kLeastCampaigns = 3;  // of memory, so that a site is a stranger's
// What contexts and libraries take from driver to driver (docs/predict.md, "Your site"): two more campaigns.
constexpr std::array<double, 2> kBasesMib = {512, 2150};

// Position of each row's name among the sorted distinct ones.
std::vector<uint32_t> Enumerate(std::span<const TrainingRow* const> rows, auto name_of,
                                std::vector<std::string>& names) {
  std::set<std::string> distinct;
  for (const TrainingRow* row : rows) distinct.insert(std::invoke(name_of, row));
  names.assign(distinct.begin(), distinct.end());
  std::vector<uint32_t> ids;
  ids.reserve(rows.size());
  for (const TrainingRow* row : rows) {
    const auto at = std::lower_bound(names.begin(), names.end(), std::invoke(name_of, row));
    ids.push_back(static_cast<uint32_t>(at - names.begin()));
  }
  return ids;
}

// What a forest may read of a quantity that grows with the batch: sizes, which it must not fall with, and what the
// batch does not change. Shares and intensities move either way with the batch, so they are hidden.
enum class Use : uint8_t { kFree, kRising, kHidden };
Use UseOf(const FeatureColumn& column, const QuantityInfo& quantity) {
  if (!quantity.grows_with_batch) return Use::kFree;
  // As they stand at the peak, which moves; launches, which are fewer the more there is to do; and codes and sizes by
  // which a forest would know who measured, on which board: what they change is in the kernels and the bytes.
  for (const std::string_view name : {"mem_activations", "mem_transient", "mem_allocator_slack", "framework",
                                      "optimizer", "time_launch_us", "gpu_mem_mib"}) {
    if (column.name == name) return Use::kHidden;
  }
  for (const std::string_view unit : {"FLOP/byte", "0-1", "per cent"}) {
    if (column.unit == unit) return Use::kHidden;
  }
  for (const std::string_view unit : {"FLOP", "bytes", "us", "count", "samples"}) {
    if (column.unit == unit && !column.name.starts_with("gpu_")) return Use::kRising;
  }
  return Use::kFree;
}

class Trainer {
 public:
  using Wanted = std::function<bool(size_t)>;

  Trainer(Quantity quantity, std::span<const TrainingRow* const> rows, const TrainOptions& options,
          const TrainProgress& progress, const TargetModel* centre)
      : quantity_(quantity),
        info_(InfoOf(quantity)),
        rows_(rows),
        options_(options),
        progress_(progress),
        centre_(centre) {
    families_ = Enumerate(rows, &TrainingRow::family, family_names_);
    nets_ = Enumerate(rows, &TrainingRow::model, net_names_);
    gpus_ = Enumerate(rows, &TrainingRow::gpu, gpu_names_);
    if (quantity == Quantity::kMemory) NameSites();
    // Boards of one chip are left out together; a GPU that is not described is its own.
    chip_of_gpu_.resize(gpu_names_.size());
    std::map<std::string, uint32_t> chips;
    for (size_t i = 0; i < rows.size(); ++i) {
      chip_of_gpu_[gpus_[i]] = ChipOf(rows[i]->features);
      const std::string& chip = chip_of_gpu_[gpus_[i]].empty() ? rows[i]->gpu : chip_of_gpu_[gpus_[i]];
      chips_.push_back(chips.emplace(chip, static_cast<uint32_t>(chips.size())).first->second);
    }
    chip_count_ = chips.size();
    std::vector<double> of_family(family_names_.size(), 0);
    for (const uint32_t family : families_) ++of_family[family];
    // A family weighs the root of its rows: between every row alike, where large families would decide, and every
    // family alike, where one odd run of a small one would. The mean weight is 1.
    double sum = 0;
    for (const double count : of_family) sum += std::sqrt(count);
    const double each = static_cast<double>(rows.size()) / sum;
    for (size_t i = 0; i < rows.size(); ++i) {
      weights_.push_back(static_cast<float>(each / std::sqrt(of_family[families_[i]])));
      margins_.push_back(MarginOf(info_.link, rows[i]->measured[static_cast<size_t>(quantity)]));
    }
    for (const auto columns : {JobFeatureColumns(), DeviceFeatureColumns()}) {
      for (const FeatureColumn& column : columns) uses_.push_back(UseOf(column, info_));
    }
  }

  // Campaigns measured memory at sites of their own, whatever their GPU types are called.
  void NameSites() {
    campaigns_ = Enumerate(rows_, &TrainingRow::campaign, campaign_names_);
    if (campaign_names_.size() < kLeastCampaigns) return campaign_names_.clear();
    gpus_ = Enumerate(rows_, [](const TrainingRow* row) { return row->campaign + '/' + row->gpu; }, gpu_names_);
  }
  [[nodiscard]] bool strangers() const { return !campaign_names_.empty(); }

  absl::StatusOr<TargetModel> Train() {
    const auto folds_of = [this](size_t groups) {
      return static_cast<uint32_t>(std::min<size_t>(groups, rows_.size() > kMany ? kFoldsOfMany : kMostFolds));
    };
    const uint32_t folds = folds_of(family_names_.size()), net_folds = folds_of(net_names_.size());
    const std::vector<uint32_t> fold_of = AssignFolds(families_, folds);
    const uint32_t gpu_folds = strangers() ? 0 : chip_count_ >= kLeastGpusToGeneralise ? folds_of(chip_count_) : 0;
    // Counted in fits: one a fold of nets to choose the rounds, one a fold of families and one a GPU type to calibrate.
    total_ = net_folds + folds + gpu_folds + 1;
    int32_t rounds = 0;
    if (strangers()) {  // trees that know a campaign's jobs are no help at a site to come
      const auto campaigns = static_cast<uint32_t>(campaign_names_.size());
      HORUS_ASSIGN_OR_RETURN(rounds, ChooseRounds(campaigns_, campaigns));
    } else if (net_folds >= 2)
      HORUS_SET_OR_RETURN(rounds, ChooseRounds(AssignFolds(nets_, net_folds), net_folds));
    HORUS_ASSIGN_OR_RETURN(TargetModel model, FitOn([](size_t) { return true; }, rounds));
    model.rows = static_cast<double>(rows_.size());
    model.groups = static_cast<double>(family_names_.size());
    model.range = RangeOf();
    if (folds >= 2) {
      HORUS_ASSIGN_OR_RETURN(std::vector<double> scores, HeldOutScores(fold_of, folds, rounds));
      if (quantity_ == Quantity::kStepTime) model.difficulty = DifficultyOf(scores);
      Divide(model, scores);
      const Calibration calibration = Calibrate(scores, families_, family_names_.size(), options_.promise);
      model.upper_margin = calibration.margin;
      model.promised = calibration.promised;
      model.observed = calibration.observed;
    }
    if (strangers()) HORUS_RETURN_IF_ERROR(BoundSites(rounds, model));
    if (gpu_folds > 0) {
      HORUS_ASSIGN_OR_RETURN(std::vector<double> scores,
                             HeldOutScores(AssignFolds(chips_, gpu_folds), gpu_folds, rounds));
      Divide(model, scores);
      // A handful of types promises nine of ten by the largest error of all alone: room is left for the oddest of them.
      const auto types = static_cast<double>(chip_count_);
      const Calibration calibration =
          Calibrate(scores, chips_, chip_count_, std::min(options_.promise, (types - 1) / (types + 1)));
      model.unseen_gpu_margin = calibration.margin;
      model.unseen_gpu_promised = calibration.promised;
    }
    return model;
  }

  // The prior's factors from the wanted rows.
  [[nodiscard]] TargetModel FitFactors(const Wanted& wanted) const {
    std::vector<PriorRow> rows;
    std::vector<bool> seen(gpu_names_.size(), false);
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (!wanted(i)) continue;
      rows.push_back({TermsOf(rows_[i]->features), margins_[i], double{weights_[i]}, gpus_[i]});
      seen[gpus_[i]] = true;
    }
    FittedPrior centre;
    if (centre_ != nullptr) {
      centre.factors = centre_->factors;
      for (const std::string& name : gpu_names_) centre.gpus.push_back(centre_->GpuFactor(name));
    }
    FittedPrior fitted = FitPrior(quantity_, rows, gpu_names_.size(), centre);
    TargetModel model{.quantity = quantity_, .factors = std::move(fitted.factors)};
    std::map<std::string, std::pair<double, double>> of_chip;  // sum and types
    for (size_t g = 0; g < gpu_names_.size(); ++g) {
      if (!seen[g]) continue;
      model.gpus.emplace_back(gpu_names_[g], fitted.gpus[g]);
      if (chip_of_gpu_[g].empty() || quantity_ == Quantity::kMemory) continue;  // bases are of sites, not of chips
      of_chip[chip_of_gpu_[g]].first += fitted.gpus[g];
      of_chip[chip_of_gpu_[g]].second += 1;
    }
    for (const auto& [chip, sum] : of_chip) model.gpus.emplace_back(chip, sum.first / sum.second);
    std::sort(model.gpus.begin(), model.gpus.end());
    return model;
  }

 private:
  // What a site takes is no longer known by name: the mean of all campaigns and of the ends of kBases.
  void ForgetSites(const Wanted& wanted, TargetModel& model) const {
    std::vector<std::map<uint32_t, double>> bases(campaign_names_.size());  // by site
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (!wanted(i)) continue;
      PriorTerms base = TermsOf(rows_[i]->features);
      base.held_mib = base.scratch_mib = 0;
      bases[campaigns_[i]][gpus_[i]] = PriorOf(quantity_, base, model.factors, model.GpuFactor(gpu_names_[gpus_[i]]));
    }
    double sum = 0, count = 0;
    for (const auto& of_campaign : bases) {
      for (const auto& [site, base] : of_campaign) sum += base / static_cast<double>(of_campaign.size());
      count += of_campaign.empty() ? 0 : 1;
    }
    for (const double base_mib : kBasesMib) sum += base_mib;
    model.base_mib = sum / (count + static_cast<double>(kBasesMib.size()));
    model.gpus.clear();
  }

  // What a site may take beyond the bound of one that is known, in units of what differs from site to site: each
  // campaign left out says how much keeps the promised share of its rows, the largest of kBasesMib is one more
  // campaign, and all weigh alike.
  absl::Status BoundSites(int32_t rounds, TargetModel& model) {
    const size_t count = campaign_names_.size();
    ForgetSites([](size_t) { return true; }, model);
    std::vector<double> beyond = {(kBasesMib.back() - model.base_mib) / SiteSpreadMib(0)};
    for (uint32_t campaign = 0; campaign < count && count > kLeastCampaigns; ++campaign) {
      const auto others = [&](size_t i) { return campaigns_[i] != campaign; };
      HORUS_ASSIGN_OR_RETURN(TargetModel without, FitOn(others, rounds));
      ForgetSites(others, without);
      std::vector<double> of_rows;
      for (size_t i = 0; i < rows_.size(); ++i) {
        if (others(i)) continue;
        const std::vector<float>& row = rows_[i]->features;
        const double predicted =
            double{without.forest.PredictMargin(row, static_cast<float>(without.FittedMargin(row, "")))};
        const double value = std::exp(predicted), error = std::exp(margins_[i]) - value;
        const double job = value * std::expm1(model.ErrorOf(row, true, std::max(0.0, model.upper_margin)));
        of_rows.push_back(error > job ? std::sqrt(error * error - job * job) / SiteSpreadMib(value) : 0);
      }
      const auto kept = static_cast<size_t>(std::ceil(options_.promise * static_cast<double>(of_rows.size())));
      std::nth_element(of_rows.begin(), of_rows.begin() + static_cast<ptrdiff_t>(kept - 1), of_rows.end());
      beyond.push_back(of_rows[kept - 1]);
    }
    std::vector<uint32_t> groups(beyond.size());
    std::iota(groups.begin(), groups.end(), 0);
    const Calibration calibration = Calibrate(beyond, groups, groups.size(), options_.promise);
    model.site_margin = calibration.margin;
    model.unseen_gpu_promised = std::min(model.promised, calibration.promised);
    return absl::OkStatus();
  }

  // Copies of the wanted rows, as the trainer of forests takes them.
  struct Columns {
    std::vector<float> rows, targets, margins, weights;
    [[nodiscard]] TrainingData View() const {
      return {.row_count = targets.size(),
              .feature_count = FeatureCount(),
              .rows = rows,
              .targets = targets,
              .base_margins = margins,
              .weights = weights};
    }
  };
  [[nodiscard]] Columns ColumnsOf(const TargetModel& model, const Wanted& wanted) const {
    Columns columns;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (!wanted(i)) continue;
      for (size_t f = 0; f < uses_.size(); ++f) {
        columns.rows.push_back(uses_[f] == Use::kHidden ? std::numeric_limits<float>::quiet_NaN()
                                                        : rows_[i]->features[f]);
      }
      columns.targets.push_back(static_cast<float>(margins_[i]));
      columns.margins.push_back(static_cast<float>(model.FittedMargin(rows_[i]->features, gpu_names_[gpus_[i]])));
      columns.weights.push_back(weights_[i]);
    }
    return columns;
  }
  [[nodiscard]] TrainingParams Params(size_t rows, int32_t rounds) const {
    TrainingParams params = DefaultTrainingParams(rows);
    params.rounds = rounds;
    params.seed = options_.seed;
    params.library_path = options_.library_path;
    for (const Use use : uses_) params.monotone.push_back(use == Use::kRising ? 1 : 0);
    return params;
  }

  absl::StatusOr<TargetModel> FitOn(const Wanted& wanted, int32_t rounds) {
    TargetModel model = FitFactors(wanted);
    if (rounds > 0) {
      const Columns columns = ColumnsOf(model, wanted);
      HORUS_ASSIGN_OR_RETURN(model.forest, Fit(columns.View(), Params(columns.targets.size(), rounds), Ticker(rounds)));
    }
    ++done_;
    HORUS_RETURN_IF_ERROR(Tell());
    return model;
  }

  // The number of trees at which nets left out are predicted best; 0 where trees do not help. Nets and not families:
  // most jobs are variants of what was trained on, and the bound answers for families.
  absl::StatusOr<int32_t> ChooseRounds(const std::vector<uint32_t>& fold_of, uint32_t folds) {
    std::vector<double> error(static_cast<size_t>(options_.rounds) + 1, 0.0);
    for (uint32_t fold = 0; fold < folds; ++fold) {
      const auto others = [&](size_t i) { return fold_of[i] != fold; };
      const TargetModel prior = FitFactors(others);
      const Columns held_out = ColumnsOf(prior, [&](size_t i) { return !others(i); });
      double weight = 0;
      for (size_t i = 0; i < held_out.targets.size(); ++i) {
        const double miss = double{held_out.targets[i]} - double{held_out.margins[i]};
        error[0] += double{held_out.weights[i]} * miss * miss;
        weight += double{held_out.weights[i]};
      }
      HORUS_RETURN_IF_ERROR(Tell());
      if (options_.rounds == 0) continue;
      TrainingParams params = Params(rows_.size(), options_.rounds);
      params.method = rows_.size() > kExactMaxRows ? TreeMethod::kHist : TreeMethod::kExact;  // as the last fit
      HORUS_ASSIGN_OR_RETURN(
          const std::vector<double> errors,
          HeldOutErrors(ColumnsOf(prior, others).View(), held_out.View(), params, Ticker(options_.rounds)));
      for (size_t r = 0; r < errors.size(); ++r) error[r + 1] += weight * std::pow(errors[r], 2);
      ++done_;
    }
    return static_cast<int32_t>(std::min_element(error.begin(), error.end()) - error.begin());
  }

  // Error of each row, above the prediction of a model that has not seen its fold, as ScoreOf counts it.
  absl::StatusOr<std::vector<double>> HeldOutScores(const std::vector<uint32_t>& fold_of, uint32_t folds,
                                                    int32_t rounds) {
    std::vector<double> scores(rows_.size());
    for (uint32_t fold = 0; fold < folds; ++fold) {
      HORUS_ASSIGN_OR_RETURN(const TargetModel model, FitOn([&](size_t i) { return fold_of[i] != fold; }, rounds));
      for (size_t i = 0; i < rows_.size(); ++i) {
        if (fold_of[i] != fold) continue;
        const std::vector<float>& row = rows_[i]->features;
        const std::string& gpu = gpu_names_[gpus_[i]];
        const double fitted = model.FittedMargin(row, gpu);
        const double predicted = double{model.forest.PredictMargin(row, static_cast<float>(fitted))};
        scores[i] = model.ScoreOf(row, model.FindGpu(row, gpu) != nullptr, margins_[i] - predicted);
      }
    }
    return scores;
  }

  // How large errors are of jobs that spend their time in one part, from rows that mix the parts: least squares, held
  // near the mean error as if kPriorRows rows of each part had it. The mean of all rows becomes 1.
  [[nodiscard]] std::vector<double> DifficultyOf(const std::vector<double>& errors) const {
    constexpr double kPriorRows = 5, kLeast = 0.5;
    constexpr auto kSize = static_cast<Eigen::Index>(kTimeParts);
    double sum = 0, weight = 0;
    for (size_t i = 0; i < errors.size(); ++i) {
      sum += double{weights_[i]} * std::abs(errors[i]);
      weight += double{weights_[i]};
    }
    const double mean = sum / weight;
    if (!(mean > 0)) return {};
    Eigen::MatrixXd matrix = kPriorRows * Eigen::MatrixXd::Identity(kSize, kSize);
    Eigen::VectorXd right = Eigen::VectorXd::Constant(kSize, kPriorRows);
    for (size_t i = 0; i < errors.size(); ++i) {
      const PriorTerms terms = TermsOf(rows_[i]->features);
      Eigen::VectorXd shares = Eigen::Map<const Eigen::VectorXd>(terms.part_us.data(), kSize);
      if (!(shares.sum() > 0)) continue;
      shares /= shares.sum();
      matrix += double{weights_[i]} * shares * shares.transpose();
      right += double{weights_[i]} * std::abs(errors[i]) / mean * shares;
    }
    const Eigen::VectorXd solved = matrix.ldlt().solve(right).cwiseMax(kLeast);
    return {solved.data(), solved.data() + solved.size()};
  }
  void Divide(const TargetModel& model, std::vector<double>& scores) const {
    for (size_t i = 0; i < scores.size(); ++i) scores[i] /= model.DifficultyOf(rows_[i]->features);
  }

  // Where step time's constants are this quantity's too, step time says what lies outside.
  [[nodiscard]] TrainedRange RangeOf() const {
    TrainedRange range;
    if (SharesStepConstants(quantity_) && centre_ != nullptr && !centre_->gpus.empty()) return range;
    for (const RangeColumn& column : RangeColumns()) {
      const size_t at = *FindFeature(column.name);
      double low = HUGE_VAL, high = -HUGE_VAL;
      for (const TrainingRow* row : rows_) {
        if (std::isnan(row->features[at])) continue;
        low = std::min(low, double{row->features[at]});
        high = std::max(high, double{row->features[at]});
      }
      range.low.push_back(low);
      range.high.push_back(high);
    }
    return range;
  }

  [[nodiscard]] absl::Status Tell() const {
    if (!progress_ || progress_(std::min(1.0, done_ / total_))) return absl::OkStatus();
    return Cancelled("training: cancelled");
  }

  // Passes the progress of one fit on; `rounds` are all that the fit grows.
  [[nodiscard]] TrainingCallback Ticker(int32_t rounds) const {
    if (!progress_) return nullptr;
    return [this, rounds](int32_t grown) {
      return progress_(std::min(1.0, (done_ + static_cast<double>(grown) / rounds) / total_));
    };
  }

  Quantity quantity_;
  const QuantityInfo& info_;
  std::span<const TrainingRow* const> rows_;
  const TrainOptions& options_;
  const TrainProgress& progress_;
  const TargetModel* centre_;  // null: the typical values
  std::vector<std::string> family_names_, net_names_, gpu_names_;
  std::vector<std::string> campaign_names_;  // empty where sites are known by their GPU types
  std::vector<uint32_t> families_, nets_, gpus_, chips_, campaigns_;
  std::vector<std::string> chip_of_gpu_;  // by GPU; empty where it is not described
  size_t chip_count_ = 0;
  std::vector<float> weights_;
  std::vector<double> margins_;  // measured
  std::vector<Use> uses_;        // by feature
  double done_ = 0, total_ = 1;  // fits
};

absl::Status CheckOptions(const TrainOptions& options) {
  if (!(options.promise >= 0.5 && options.promise <= 0.99))
    return InvalidArgument("promise: expected 0.5 to 0.99, found %g", options.promise);
  if (options.rounds < 0 || options.rounds > 2000)
    return InvalidArgument("rounds: expected 0 to 2000, found %d", options.rounds);
  return absl::OkStatus();
}

// Adds the base's models of quantities that the bundle has none of.
void KeepOthers(const Predictor& base, Bundle& bundle, std::vector<Quantity>& kept) {
  for (size_t q = 0; q < kQuantityCount; ++q) {
    const TargetModel* model = base.FindModel(static_cast<Quantity>(q));
    if (model == nullptr || bundle.FindTarget(kQuantities[q].name) != nullptr) continue;
    bundle.targets.push_back(ToBundle(*model));
    kept.push_back(static_cast<Quantity>(q));
  }
}

std::string SummaryOf(const TrainReport& report, const TrainOptions& options) {
  std::string text;
  for (const TrainedQuantity& q : report.quantities) {
    AppendFormatted(&text, "%s: %d rows, %d families, %d GPU types, %d trees, coverage promised %.2f observed %.2f\n",
                    InfoOf(q.quantity).name, q.rows, q.families, q.gpus, q.trees, q.promised, q.observed);
  }
  for (const Quantity q : report.kept) AppendFormatted(&text, "%s: kept\n", InfoOf(q).name);
  AppendFormatted(&text, "promise %g, at most %d rounds, seed %d", options.promise, options.rounds, options.seed);
  return text;
}

// ---- Measured runs, checked before anything is learned from them.

constexpr size_t kMostNameBytes = 60;  // with its prefix, a series of a bundle

absl::Status CheckName(const TrainingRow& row, const char* what, const std::string& name) {
  bool printable = !name.empty() && name.size() <= kMostNameBytes;
  for (const char c : name) printable = printable && c >= ' ' && c <= '~';
  if (printable) return absl::OkStatus();
  return InvalidArgument("%s: %s: expected 1 to %d printable ASCII characters, found %s", row.where, what,
                         kMostNameBytes, Quoted(name));
}

absl::Status CheckRow(const TrainingRow& row) {
  HORUS_RETURN_IF_ERROR(CheckName(row, "gpu", row.gpu));
  HORUS_RETURN_IF_ERROR(CheckName(row, "family", row.family));
  HORUS_RETURN_IF_ERROR(CheckName(row, "model", row.model));
  if (row.gpu.find(' ') != std::string::npos)
    return InvalidArgument("%s: gpu: expected a name without spaces, found %s", row.where, Quoted(row.gpu));
  if (row.features.size() != FeatureCount())
    return InvalidArgument("%s: expected %d features, found %d", row.where, FeatureCount(), row.features.size());
  for (size_t i = 0; i < row.features.size(); ++i) {
    if (std::isinf(row.features[i])) {
      return InvalidArgument("%s: feature %d: expected a finite number or NaN, found %g", row.where, i,
                             row.features[i]);
    }
  }
  for (size_t q = 0; q < kQuantityCount; ++q) {
    const QuantityInfo& info = kQuantities[q];
    const double value = row.measured[q];
    const bool zero_allowed = info.link == Link::kExpm1;
    if (std::isnan(value) || (value <= info.most && (value > 0 || (zero_allowed && value == 0)))) continue;
    return InvalidArgument("%s: %s: expected %s 0 to %g %s, found %g", row.where, info.name,
                           zero_allowed ? "from" : "above", info.most, info.unit, value);
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<const TrainingRow*> RowsWith(const TrainingSet& set, Quantity quantity) {
  std::vector<const TrainingRow*> rows;
  for (const TrainingRow& row : set.rows) {
    if (!std::isnan(row.measured[static_cast<size_t>(quantity)])) rows.push_back(&row);
  }
  return rows;
}

absl::StatusOr<TargetModel> TrainTarget(Quantity quantity, std::span<const TrainingRow* const> rows,
                                        const TrainOptions& options, const TrainProgress& progress,
                                        const TargetModel* centre) {
  HORUS_RETURN_IF_ERROR(CheckOptions(options));
  std::set<std::string_view> gpus;
  for (const TrainingRow* row : rows) gpus.insert(row->gpu);
  if (gpus.size() > kMostTrainingGpus) {
    return InvalidArgument("%s: expected at most %d GPU types, found %d", InfoOf(quantity).name, kMostTrainingGpus,
                           gpus.size());
  }
  if (rows.size() < kLeastTrainingRows) {
    return InvalidArgument("%s: expected at least %d rows that measure it, found %d", InfoOf(quantity).name,
                           kLeastTrainingRows, rows.size());
  }
  return Trainer(quantity, rows, options, progress, centre).Train();
}

TargetModel FitConstants(Quantity quantity, std::span<const TrainingRow* const> rows, const TargetModel* centre) {
  const TrainOptions options;
  return Trainer(quantity, rows, options, nullptr, centre).FitFactors([](size_t) { return true; });
}

absl::StatusOr<Bundle> TrainPredictor(const TrainingSet& set, const TrainOptions& options,
                                      const TrainProgress& progress, TrainReport* report) {
  HORUS_RETURN_IF_ERROR(CheckOptions(options));
  HORUS_RETURN_IF_ERROR(CheckTrainingSet(set));
  TrainReport found;
  Bundle bundle;
  const std::shared_ptr<const Predictor> base = options.base != nullptr ? options.base : Predictor::Default();
  const TargetModel speeds =
      FitConstants(Quantity::kStepTime, RowsWith(set, Quantity::kStepTime), base->FindModel(Quantity::kStepTime));
  for (size_t q = 0; q < kQuantityCount; ++q) {
    const auto quantity = static_cast<Quantity>(q);
    const std::vector<const TrainingRow*> rows = RowsWith(set, quantity);
    if (rows.size() < kLeastTrainingRows) {
      if (!rows.empty()) found.left_out.push_back(quantity);
      continue;
    }
    const TrainProgress part = [&progress, q](double done) {
      return !progress || progress((static_cast<double>(q) + done) / static_cast<double>(kQuantityCount));
    };
    const TargetModel* centre = SharesStepConstants(quantity) ? &speeds : base->FindModel(quantity);
    HORUS_ASSIGN_OR_RETURN(const TargetModel model, TrainTarget(quantity, rows, options, part, centre));
    std::set<std::string_view> gpus;
    for (const TrainingRow* row : rows) gpus.insert(row->gpu);
    found.quantities.push_back({.quantity = quantity,
                                .rows = rows.size(),
                                .families = static_cast<size_t>(model.groups),
                                .gpus = gpus.size(),
                                .trees = model.forest.num_trees(),
                                .promised = model.promised,
                                .observed = model.observed});
    bundle.targets.push_back(ToBundle(model));
  }
  if (bundle.targets.empty()) {
    return InvalidArgument("training: expected a quantity that at least %d rows measure, found none in %d rows",
                           kLeastTrainingRows, set.rows.size());
  }
  KeepOthers(*base, bundle, found.kept);
  bundle.schema_hash = FeatureSchemaHash();
  bundle.data_fingerprint = FingerprintOf(set);
  bundle.library_version = Formatted("%d.%d.%d", HORUS_VERSION_MAJOR, HORUS_VERSION_MINOR, HORUS_VERSION_PATCH);
  bundle.training_summary = SummaryOf(found, options);
  if (report != nullptr) *report = std::move(found);
  return bundle;
}

absl::Status CheckTrainingSet(const TrainingSet& set) {
  for (const TrainingRow& row : set.rows) HORUS_RETURN_IF_ERROR(CheckRow(row));
  return absl::OkStatus();
}

void Describe(const JobProfile& job, const GpuType* gpu, TrainingRow& row) {
  RowOnGpu on = DescribeOn(job, gpu != nullptr ? *gpu : GpuType());
  row.analytic_upper = on.roofline_upper;
  row.understood = on.understood;
  row.features = std::move(on.row);
  if (gpu != nullptr) return;
  static const size_t peak = *FindFeature("mem_peak");
  for (size_t i = JobFeatureColumns().size(); i < row.features.size(); ++i) {
    if (i != peak) row.features[i] = std::numeric_limits<float>::quiet_NaN();
  }
}

double RooflineOf(Quantity quantity, const std::vector<float>& features) {
  static const std::array<std::optional<size_t>, kQuantityCount> columns = {
      FindFeature("roofline_gpu_util_pct"), FindFeature("roofline_mem_bw_util_pct"), FindFeature("mem_peak"),
      FindFeature("roofline_step_time_us"), FindFeature("roofline_gpu_util_pct"),    std::nullopt};
  const std::optional<size_t> at = columns[static_cast<size_t>(quantity)];
  const double value = at && *at < features.size() ? double{features[*at]} : 0.0;
  return quantity == Quantity::kMemory ? value / kBytesPerMib : value;
}

uint64_t FingerprintOf(const TrainingSet& set) {
  constexpr uint64_t kNoNumber = ~uint64_t{0};  // the bits of no finite value
  uint64_t hash = CombineHash(FeatureSchemaHash(), set.rows.size());
  for (const TrainingRow& row : set.rows) {
    for (const std::string* text : {&row.gpu, &row.family, &row.model}) hash = CombineHash(hash, Hash64(*text));
    if (!row.campaign.empty()) hash = CombineHash(hash, Hash64(row.campaign));
    for (const float value : row.features)
      hash = CombineHash(hash, std::isnan(value) ? kNoNumber : std::bit_cast<uint32_t>(value));
    for (const double value : row.measured)
      hash = CombineHash(hash, std::isnan(value) ? kNoNumber : std::bit_cast<uint64_t>(value));
  }
  return hash;
}

}  // namespace horus
