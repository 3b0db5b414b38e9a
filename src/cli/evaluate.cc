// SPDX-License-Identifier: Apache-2.0
// horus evaluate: how well measured runs are predicted when their family, net or GPU type is left out of training.
#include <cmath>
#include <set>

#include "absl/strings/str_format.h"
#include "cli/commands.h"
#include "cli/evaluate_pairs.h"
#include "cli/print.h"
#include "lab/evaluate/evaluate_predictor.h"

namespace horus::cli {
namespace {

constexpr char kEvaluateFooter[] = R"(
Examples:
  horus evaluate --data rows.csv                       leave one family out at a time
  horus evaluate --data rows.csv --leave gpu           one GPU type
  horus evaluate --data rows.csv --bundle model.hbundle    the bundle as it is
  horus evaluate --pairs pairs.csv --jobs jobs.csv --leave pair    interference models, without a tenth of the pairs
  horus evaluate --pairs pairs.csv --jobs jobs.csv --as-is         the built-in models, without training
  horus evaluate --pairs pairs.csv --jobs jobs.csv --observe 3     and after three co-locations of a job were seen
  horus evaluate --pairs pairs.csv --jobs jobs.csv --predictions FILE --model horus    write what it says of any two jobs

Columns: MAPE and MEDIAN of |predicted - measured| / measured; RMSLE of log1p; RANK is Spearman's correlation;
COVERED is the share of rows within their bound, SLACK how far the bound lies above the truth on average.
The baselines learn from the same rows: a constant, a line, trees on the six Horus features; the roofline learns nothing.)";

// Options that pairs have no use for, and the other way round.
constexpr const char* kOnlyData[] = {"--without", "--rounds"};
constexpr const char* kOnlyPairs[] = {"--jobs",    "--demands",     "--model",
                                      "--observe", "--leave-gpu",   "--settled",
                                      "--as-is",   "--predictions", "--interference-bundle"};

struct EvaluateArguments {
  std::vector<std::string> data, without;
  PairEvaluation pairs;  // its bundle of demands, GPU types, `leave`, `json` and `rows` for --data too
  TrainOptions train;
  std::vector<uint32_t> observe;
};

Json EvaluationJson(const ErrorReport& evaluation, bool with_rows) {
  Json methods = Json::array(), rows = Json::array();
  for (const ErrorSummary& m : evaluation.methods) {
    methods.push_back({{"method", m.method},
                       {"mape_pct", NumberOrNull(m.mape_pct)},
                       {"median_pct", NumberOrNull(m.median_pct)},
                       {"rmsle", NumberOrNull(m.rmsle)},
                       {"spearman", NumberOrNull(m.spearman)}});
  }
  for (const EvaluatedRow& r : evaluation.rows) {
    Json baselines = Json::object();
    for (size_t b = 0; b < r.baselines.size(); ++b)
      baselines[evaluation.methods[b + 1].method] = NumberOrNull(r.baselines[b]);
    rows.push_back({{"where", r.row->where},
                    {"family", r.row->family},
                    {"net", r.row->model},
                    {"gpu", r.row->gpu},
                    {"measured", r.measured},
                    {"predicted", NumberOrNull(r.predicted)},
                    {"upper", NumberOrNull(r.upper)},
                    {"distance", NumberOrNull(r.distance)},
                    {"outside", r.outside},
                    {"baselines", baselines}});
  }
  Json json = {{"quantity", std::string(InfoOf(evaluation.quantity).name)},
               {"leave", evaluation.groups == 0 ? "nothing" : std::string(Name(evaluation.leave))},
               {"groups", evaluation.groups},
               {"rows_measured", evaluation.rows.size()},
               {"coverage_promised_pct", evaluation.promised_pct},
               {"coverage_observed_pct", evaluation.covered_pct},
               {"slack_pct", NumberOrNull(evaluation.slack_pct)},
               {"methods", methods}};
  if (with_rows) json["rows"] = rows;
  return json;
}

std::string EvaluationText(const ErrorReport& evaluation, bool with_rows) {
  std::string text =
      absl::StrFormat("%s: %d rows", std::string(InfoOf(evaluation.quantity).name), evaluation.rows.size());
  if (evaluation.groups > 0) {
    absl::StrAppendFormat(&text, ", each predicted without its %s (%d)", std::string(Name(evaluation.leave)),
                          evaluation.groups);
  }
  text += "\n";
  Table table("METHOD|>MAPE|>MEDIAN|>RMSLE|>RANK");
  const auto percent = [](double value) { return std::isnan(value) ? "-" : absl::StrFormat("%.1f %%", value); };
  const auto plain = [](double value) { return std::isnan(value) ? "-" : absl::StrFormat("%.3f", value); };
  for (const ErrorSummary& m : evaluation.methods)
    table.AddRow({m.method, percent(m.mape_pct), percent(m.median_pct), plain(m.rmsle), plain(m.spearman)});
  text += table.Render("  ");
  absl::StrAppendFormat(&text, "  bound: %s, covers %.1f %%, above the truth by %.0f %% on average\n",
                        evaluation.promised_pct > 0 ? absl::StrFormat("promised %.0f %%", evaluation.promised_pct)
                                                    : std::string("promises nothing (for some rows)"),
                        evaluation.covered_pct, evaluation.slack_pct);
  if (!with_rows) return text;
  Table rows("ROW|NET|GPU|>MEASURED|>PREDICTED|>BOUND|>DISTANCE");
  for (const EvaluatedRow& r : evaluation.rows) {
    rows.AddRow({Printable(r.row->where), Printable(r.row->model), Printable(r.row->gpu),
                 absl::StrFormat("%.4g", r.measured), absl::StrFormat("%.4g", r.predicted),
                 absl::StrFormat("%.4g", r.upper), absl::StrFormat("%.2f", r.distance)});
  }
  return text + rows.Render("  ");
}

// What could be evaluated, and what could not and why.
struct Outcome {
  std::vector<ErrorReport> reports;
  std::vector<std::pair<Quantity, std::string>> skipped;
};

absl::StatusOr<Outcome> EvaluateAll(const EvaluateArguments& options, const TrainingSet& set) {
  HORUS_ASSIGN_OR_RETURN(const RowLeave leave, ParseRowLeave(options.pairs.leave));
  std::shared_ptr<const Predictor> predictor;
  if (!options.pairs.inputs.bundle.empty()) {
    HORUS_ASSIGN_OR_RETURN(predictor, LoadPredictor(options.pairs.inputs.bundle));
  }
  Outcome outcome;
  for (size_t q = 0; q < kQuantityCount; ++q) {
    const auto quantity = static_cast<Quantity>(q);
    const std::vector<const TrainingRow*> rows = RowsWith(set, quantity);
    if (rows.empty()) continue;
    if (predictor != nullptr) {
      const TargetModel* model = predictor->FindModel(quantity);
      if (model != nullptr) outcome.reports.push_back(EvaluateModel(*model, rows));
      continue;
    }
    Progress progress;
    absl::StatusOr<ErrorReport> report = Evaluate(quantity, rows, leave, options.train,
                                                  progress.OfShare("evaluating " + std::string(InfoOf(quantity).name)),
                                                  RowsWith(set, Quantity::kStepTime));
    if (report.ok()) {
      outcome.reports.push_back(*std::move(report));
    } else if (report.status().code() == absl::StatusCode::kInvalidArgument) {  // too few rows or groups
      outcome.skipped.emplace_back(quantity, std::string(report.status().message()));
    } else {
      return report.status();
    }
  }
  if (!outcome.reports.empty()) return outcome;
  if (!outcome.skipped.empty()) return InvalidArgument("evaluation: %s", outcome.skipped.front().second);
  return InvalidArgument("evaluation: expected a quantity that rows measure and the bundle holds, found none");
}

absl::StatusOr<std::string> EvaluateToText(const EvaluateArguments& options) {
  HORUS_ASSIGN_OR_RETURN(const auto catalogue, LoadCatalogue(options.pairs.inputs.gpus_files));
  HORUS_ASSIGN_OR_RETURN(const TrainingSet set, LoadTrainingSet(options.data, options.without, *catalogue));
  HORUS_ASSIGN_OR_RETURN(const Outcome outcome, EvaluateAll(options, set));
  Json list = Json::array(), skipped = Json::array();
  std::string text;
  for (const ErrorReport& evaluation : outcome.reports) {
    list.push_back(EvaluationJson(evaluation, options.pairs.rows));
    text += EvaluationText(evaluation, options.pairs.rows);
  }
  for (const auto& [quantity, why] : outcome.skipped) {
    skipped.push_back({{"quantity", std::string(InfoOf(quantity).name)}, {"reason", why}});
    text += "left out: " + Printable(why, why.size()) + "\n";
  }
  if (!options.pairs.json) return text;
  return JsonText({{"schema", "horus-evaluate"}, {"version", 1}, {"evaluations", list}, {"skipped", skipped}});
}

}  // namespace

Command AddEvaluate(CLI::App& parser) {
  auto options = std::make_shared<EvaluateArguments>();
  CLI::App* app = parser.add_subcommand("evaluate", "Measure how well measured runs are predicted");
  AddTrainOptions(*app, options->data, options->pairs.inputs.gpus_files, options->without, options->train);
  AddOption(*app, "--leave", options->pairs.leave,
            "What training does not see at a time: family, model, gpu, campaign or rows; of pairs: pair, job, "
            "family or gpu",
            "WHAT")
      ->capture_default_str();
  AddPairOptions(*app, options->pairs.inputs);
  AddRepeated(*app, "--model", options->pairs.models, "With --pairs: only this interference model; may be repeated",
              "NAME");
  AddOption(*app, "--bundle", options->pairs.inputs.bundle,
            "Judge this bundle as it is, without training (builtin: the built-in one); with --pairs: predict the "
            "jobs' demands with it",
            "BUNDLE");
  app->add_flag("--rows", options->pairs.rows, "Also print every row");
  app->add_flag("--json", options->pairs.json, "Print JSON");
  auto* observe = AddRepeated(*app, "--observe", options->observe,
                              "With --pairs: predict jobs of a family left out after so many of their co-locations "
                              "were observed; may be repeated",
                              "N")
                      ->check(CLI::Range(uint32_t{0}, kMostObserved))
                      ->excludes("--leave")
                      ->excludes("--rows");
  app->add_flag("--leave-gpu", options->pairs.plan.leave_gpu,
                "With --observe or --predictions: training has not seen the jobs' GPU type either");
  AddRanged(*app, "--settled", options->pairs.plan.settled,
            "With --leave-gpu: so many co-locations of other jobs were observed on the GPU type before", "N",
            uint32_t{0}, kMostObserved)
      ->needs(observe);
  AddOption(*app, "--predictions", options->pairs.predictions,
            "With --pairs: write what a model that saw neither job's family says of every two jobs (CSV); "
            "one --model",
            "FILE")
      ->excludes("--leave")
      ->excludes("--rows")
      ->excludes(observe);
  auto* as_is = app->add_flag("--as-is", options->pairs.as_is,
                              "With --pairs: judge the built-in interference models as they are, without training")
                    ->excludes(observe)
                    ->excludes("--predictions")
                    ->excludes("--promise");
  AddOption(*app, "--interference-bundle", options->pairs.bundle,
            "With --as-is: the models of this bundle, of horus train --pairs, in place of the built-in ones", "FILE")
      ->needs(as_is);
  app->footer(kEvaluateFooter);
  return {app, [app, options] {
            if (const absl::Status given = CheckDataOrPairs(*app, kOnlyData, kOnlyPairs); !given.ok())
              return Fail(given);
            if (options->pairs.inputs.pairs.empty()) return Print(EvaluateToText(*options));
            PairEvaluation& pairs = options->pairs;
            pairs.train = PairOptionsOf(*app, options->train.promise, options->train.seed);
            if (!pairs.predictions.empty()) return Print(PredictPairsToText(pairs));
            if (options->observe.empty() && pairs.plan.leave_gpu)
              return Fail(InvalidArgument("--leave-gpu: expected --observe or --predictions beside it, found neither"));
            if (options->observe.empty()) return Print(EvaluatePairsToText(pairs));
            pairs.plan.observed = std::set<uint32_t>(options->observe.begin(), options->observe.end());
            return Print(EvaluateOnlineToText(pairs));
          }};
}

}  // namespace horus::cli
