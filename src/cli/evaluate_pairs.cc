// SPDX-License-Identifier: Apache-2.0
// horus evaluate --pairs: how well interference models predict pairs, jobs, families or GPU types left out of
// training, or, as they are, all of them.
#include "lab/evaluate/evaluate_pairs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/statistics.h"
#include "base/text.h"
#include "cli/exit_code.h"
#include "cli/inputs.h"
#include "cli/interference_choice.h"
#include "cli/pair_commands.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "interference/pair_readers.h"
#include "interference/registry.h"
#include "io/json_text.h"
#include "nlohmann/json.hpp"

namespace horus::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kPercent = 100;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::array<std::string_view, 4> kLeaves = {"pair", "job", "family", "gpu"};  // indexed by PairLeave

struct Inputs {
  std::shared_ptr<const Catalogue> catalogue;
  LoadedPairs pairs;
};

absl::StatusOr<Inputs> Load(const EvaluatePairsOptions& options) {
  Inputs inputs;
  HORUS_ASSIGN_OR_RETURN(inputs.catalogue, LoadCatalogue(options.inputs.gpus_files));
  HORUS_ASSIGN_OR_RETURN(std::shared_ptr<const Predictor> predictor, LoadPredictor(options.inputs.bundle));
  HORUS_ASSIGN_OR_RETURN(inputs.pairs, LoadPairSet(options.inputs, inputs.catalogue, std::move(predictor)));
  return inputs;
}

// One model on one device.
struct Judged {
  std::string model;
  uint32_t device = 0;
  std::vector<PairPrediction> rows;
  size_t groups = 0;
  double mape_pct = kNone, median_pct = kNone, r2 = kNone, spearman = kNone;
  double promised_pct = kNone, covered_pct = kNone, slack_pct = kNone;  // of the rows with a bound
};

void Summarise(Judged& judged) {
  std::vector<double> measured, predicted, errors;
  std::set<std::string_view> groups;
  double promised = 0, covered = 0, slack = 0, sum = 0;
  size_t bounded = 0;
  for (const PairPrediction& row : judged.rows) {
    measured.push_back(row.row.slowdown);
    predicted.push_back(row.predicted);
    errors.push_back(std::abs(row.predicted - row.row.slowdown) / row.row.slowdown);
    groups.insert(row.left_out);
    sum += row.row.slowdown;
    if (std::isnan(row.upper)) continue;
    ++bounded;
    promised += row.promised;
    covered += row.row.slowdown <= row.upper ? 1 : 0;
    slack += row.upper / row.row.slowdown - 1;
  }
  judged.groups = groups.size();
  if (judged.rows.empty()) return;
  const auto count = static_cast<double>(judged.rows.size());
  double total = 0, squares = 0, spread = 0;
  for (size_t i = 0; i < measured.size(); ++i) {
    total += errors[i];
    squares += (predicted[i] - measured[i]) * (predicted[i] - measured[i]);
    spread += (measured[i] - sum / count) * (measured[i] - sum / count);
  }
  judged.mape_pct = kPercent * total / count;
  judged.median_pct = kPercent * Median(std::move(errors));
  if (spread > 0) judged.r2 = 1 - squares / spread;
  judged.spearman = RankCorrelation(measured, predicted);
  if (bounded == 0) return;
  judged.promised_pct = kPercent * promised / static_cast<double>(bounded);
  judged.covered_pct = kPercent * covered / static_cast<double>(bounded);
  judged.slack_pct = kPercent * slack / static_cast<double>(bounded);
}

Json NumberOrNull(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json JudgedJson(const Judged& judged, const PairSet& set, const EvaluatePairsOptions& options) {
  const PairDevice& device = set.devices[judged.device];
  Json json = {{"model", judged.model},
               {"leave", options.leave},
               {"gpu", device.gpu},
               {"sharing_mode", std::string(SharingModeName(device.mode))},
               {"groups", judged.groups},
               {"rows_measured", judged.rows.size()},
               {"mape_pct", NumberOrNull(judged.mape_pct)},
               {"median_pct", NumberOrNull(judged.median_pct)},
               {"r2", NumberOrNull(judged.r2)},
               {"spearman", NumberOrNull(judged.spearman)},
               {"coverage_asked_pct", options.as_is ? Json(nullptr) : Json(kPercent * options.train.promise)},
               {"coverage_promised_pct", NumberOrNull(judged.promised_pct)},
               {"coverage_observed_pct", NumberOrNull(judged.covered_pct)},
               {"slack_pct", NumberOrNull(judged.slack_pct)}};
  if (!options.rows) return json;
  Json rows = Json::array();
  for (const PairPrediction& row : judged.rows) {
    rows.push_back({{"where", set.runs[row.row.run].where},
                    {"gpu", device.gpu},
                    {"sharing_mode", std::string(SharingModeName(device.mode))},
                    {"campaign", set.runs[row.row.run].campaign},
                    {"victim", set.jobs[row.row.victim].name},
                    {"victim_family", set.jobs[row.row.victim].family},
                    {"other", set.jobs[row.row.other].name},
                    {"other_family", set.jobs[row.row.other].family},
                    {"left_out", row.left_out},
                    {"measured", row.row.slowdown},
                    {"predicted", NumberOrNull(row.predicted)},
                    {"upper", NumberOrNull(row.upper)}});
  }
  json["rows"] = rows;
  return json;
}

std::string Plain(double value, const char* unit = "") {
  return std::isnan(value) ? "-" : absl::StrFormat("%.3g%s", value, unit);
}

// R2 and rank: two digits, so that the table fits the page.
std::string Short(double value) {
  if (std::isnan(value)) return "-";
  return std::abs(value) < 1 ? absl::StrFormat("%.2f", value) : absl::StrFormat("%.2g", value);
}

std::string RowsText(const Judged& judged, const PairSet& set) {
  Table table({{"VICTIM", Align::kLeft, true},
               {"BESIDE", Align::kLeft, true},
               {"CAMPAIGN", Align::kLeft, true},
               {"LEFT OUT", Align::kLeft, true},
               Right("MEASURED"),
               Right("PREDICTED"),
               Right("BOUND")});
  for (const PairPrediction& row : judged.rows) {
    table.AddRow({Printable(set.jobs[row.row.victim].name), Printable(set.jobs[row.row.other].name),
                  Printable(set.runs[row.row.run].campaign), Printable(row.left_out),
                  absl::StrFormat("%.3f", row.row.slowdown), absl::StrFormat("%.3f", row.predicted),
                  std::isnan(row.upper) ? "-" : absl::StrFormat("%.3f", row.upper)});
  }
  const PairDevice& device = set.devices[judged.device];
  return absl::StrFormat("\n%s on %s, %s\n", judged.model, device.gpu, std::string(SharingModeName(device.mode))) +
         table.Render("  ");
}

std::string ReportText(const std::vector<Judged>& all, const LoadedPairs& pairs, const EvaluatePairsOptions& options) {
  Table table({{"MODEL"},
               {"GPU"},
               {"SHARING"},
               Right("ROWS"),
               Right("MAPE"),
               Right("MEDIAN"),
               Right("R2"),
               Right("RANK"),
               Right("PROMISED"),
               Right("COVERED"),
               Right("SLACK")});
  std::string rows;
  for (const Judged& judged : all) {
    const PairDevice& device = pairs.set.devices[judged.device];
    table.AddRow({judged.model, device.gpu, std::string(SharingModeName(device.mode)),
                  std::to_string(judged.rows.size()), Plain(judged.mape_pct, " %"), Plain(judged.median_pct, " %"),
                  Short(judged.r2), Short(judged.spearman), Plain(judged.promised_pct, " %"),
                  Plain(judged.covered_pct, " %"), Plain(judged.slack_pct, " %")});
    if (options.rows) rows += RowsText(judged, pairs.set);
  }
  const std::string how = options.as_is ? "predicted by models as they are, counted once for each " + options.leave
                                        : "each predicted without its " + options.leave;
  return absl::StrFormat("Slowdowns of %d pairs of %d jobs, %s\n", pairs.set.runs.size(), pairs.set.jobs.size(), how) +
         table.Render() + SkippedText(pairs.skipped) + rows;
}

absl::StatusOr<PairLeave> ParsePairLeave(std::string_view name) {
  const auto at = std::find(kLeaves.begin(), kLeaves.end(), name);
  if (at != kLeaves.end()) return static_cast<PairLeave>(at - kLeaves.begin());
  return InvalidArgument("--leave: expected one of %s with --pairs, found %s", Listed(kLeaves), Quoted(name));
}

absl::StatusOr<std::vector<std::string>> ModelsOf(const EvaluatePairsOptions& options) {
  const std::vector<std::string_view> known = options.as_is ? InterferenceModelNames() : EvaluatedPairModels();
  if (options.models.empty()) return std::vector<std::string>(known.begin(), known.end());
  for (const std::string& model : options.models) {
    if (std::find(known.begin(), known.end(), model) != known.end()) continue;
    return InvalidArgument("--model: expected one of %s%s, found %s", Listed(known),
                           options.as_is ? " with --as-is" : "", Quoted(model));
  }
  return options.models;
}

absl::StatusOr<std::vector<PairPrediction>> Predictions(const EvaluatePairsOptions& options, PairLeave leave,
                                                        const std::string& model, const Inputs& inputs) {
  if (options.as_is) {
    const auto learned = LearnedModelNames();  // a bundle holds no others
    const bool trained = std::find(learned.begin(), learned.end(), model) != learned.end();
    const InterferenceChoice choice{
        .name = model, .bundle = trained ? options.bundle : "", .pairs = {}, .pair_jobs = {}};
    HORUS_ASSIGN_OR_RETURN(const auto ready, LoadInterference(choice, inputs.catalogue, nullptr));
    return EvaluateAsIs(inputs.pairs.set, *inputs.catalogue, *ready, leave, options.train.fit.seed);
  }
  Progress progress;
  constexpr uint64_t kWhole = 1000;
  return EvaluatePairs(inputs.pairs.set, model, leave, options.train, [&](double done) {
    progress.Update("evaluating " + model, static_cast<uint64_t>(done * kWhole), kWhole);
    return true;
  });
}

// By model, then device; devices without a row of the model left out.
absl::StatusOr<std::vector<Judged>> Judge(const EvaluatePairsOptions& options, PairLeave leave,
                                          const std::vector<std::string>& models, const Inputs& inputs) {
  std::vector<Judged> all;
  for (const std::string& model : models) {
    HORUS_ASSIGN_OR_RETURN(const std::vector<PairPrediction> predictions, Predictions(options, leave, model, inputs));
    for (uint32_t device = 0; device < inputs.pairs.set.devices.size(); ++device) {
      Judged judged{.model = model, .device = device};
      std::copy_if(predictions.begin(), predictions.end(), std::back_inserter(judged.rows),
                   [device](const PairPrediction& row) { return row.row.device == device; });
      if (judged.rows.empty()) continue;
      Summarise(judged);
      all.push_back(std::move(judged));
    }
  }
  return all;
}

absl::StatusOr<std::string> EvaluateToText(const EvaluatePairsOptions& options) {
  HORUS_ASSIGN_OR_RETURN(const PairLeave leave, ParsePairLeave(options.leave));
  HORUS_ASSIGN_OR_RETURN(const std::vector<std::string> models, ModelsOf(options));
  HORUS_ASSIGN_OR_RETURN(const Inputs inputs, Load(options));
  const LoadedPairs& pairs = inputs.pairs;
  HORUS_ASSIGN_OR_RETURN(const std::vector<Judged> all, Judge(options, leave, models, inputs));
  if (!options.json) return ReportText(all, pairs, options);
  Json list = Json::array();
  for (const Judged& judged : all) list.push_back(JudgedJson(judged, pairs.set, options));
  const PairsSkipped& skipped = pairs.skipped;
  const Json document = {
      {"schema", "horus-evaluate-pairs"},
      {"version", 1},
      {"jobs", pairs.set.jobs.size()},
      {"pairs", pairs.set.runs.size()},
      {"as_is", options.as_is},
      {"left_out", {{"apart", skipped.apart}, {"no_alone", skipped.no_alone}, {"several", skipped.several}}},
      {"evaluations", list}};
  return JsonText(document);
}

}  // namespace

int RunEvaluatePairs(const EvaluatePairsOptions& options) {
  const absl::StatusOr<std::string> text = EvaluateToText(options);
  if (!text.ok()) return Fail(text.status());
  std::fputs(text->c_str(), stdout);
  return kExitDecided;
}

}  // namespace horus::cli
