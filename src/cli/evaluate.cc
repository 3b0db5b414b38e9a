// SPDX-License-Identifier: Apache-2.0
// horus evaluate: how well runs and pairs are predicted that training left out, or as a file what is predicted of them.
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>

#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/statistics.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/print.h"
#include "interference/pair_bounds.h"
#include "interference/pair_bundle.h"
#include "lab/evaluate/evaluate_pairs.h"
#include "lab/evaluate/evaluate_predictor.h"

namespace horus::cli {
namespace {

// ---- Pairs.

struct PairEvaluation {
  PairInputs inputs;
  PairTrainOptions train;
  std::string leave = "family";     // "pair", "job", "family", "gpu"
  std::vector<std::string> models;  // empty = all
  bool json = false, rows = false;
  bool as_is = false;       // the built-in models, or those of `bundle`, without training
  std::string bundle;       // of interference models
  OnlinePlan plan;          // of --observe
  std::string predictions;  // file
};

constexpr double kPercent = 100;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::array<std::string_view, 4> kLeaves = {"pair", "job", "family", "gpu"};  // indexed by PairLeave

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

Json JudgedJson(const Judged& judged, const PairSet& set, const PairEvaluation& options) {
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
  Table table("~VICTIM|~BESIDE|~CAMPAIGN|~LEFT OUT|>MEASURED|>PREDICTED|>BOUND");
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

std::string ReportText(const std::vector<Judged>& all, const LoadedPairs& pairs, const PairEvaluation& options) {
  Table table("MODEL|GPU|SHARING|>ROWS|>MAPE|>MEDIAN|>R2|>RANK|>PROMISED|>COVERED|>SLACK");
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
  const auto at = std::ranges::find(kLeaves, name);
  if (at != kLeaves.end()) return static_cast<PairLeave>(at - kLeaves.begin());
  return InvalidArgument("--leave: expected one of %s with --pairs, found %s", Listed(kLeaves), Quoted(name));
}

absl::StatusOr<std::vector<std::string>> ModelsOf(const PairEvaluation& options) {
  const std::vector<std::string_view> known = options.as_is ? InterferenceModelNames() : EvaluatedPairModels();
  if (options.models.empty()) return std::vector<std::string>(known.begin(), known.end());
  for (const std::string& model : options.models) {
    if (std::ranges::find(known, model) != known.end()) continue;
    return InvalidArgument("--model: expected one of %s%s, found %s", Listed(known),
                           options.as_is ? " with --as-is" : "", Quoted(model));
  }
  return options.models;
}

absl::StatusOr<std::vector<PairPrediction>> Predictions(const PairEvaluation& options, PairLeave leave,
                                                        const std::string& model, const LoadedPairs& pairs) {
  if (options.as_is) {
    const auto learned = LearnedModelNames();  // a bundle holds no others
    const bool trained = std::ranges::find(learned, model) != learned.end();
    const InterferenceChoice choice{
        .name = model, .bundle = trained ? options.bundle : "", .pairs = {}, .pair_jobs = {}};
    HORUS_ASSIGN_OR_RETURN(const auto ready, LoadInterference(choice, pairs.catalogue, nullptr));
    return EvaluateAsIs(pairs.set, *pairs.catalogue, *ready, leave, options.train.fit.seed);
  }
  Progress progress;
  return EvaluatePairs(pairs.set, model, leave, options.train, progress.OfShare("evaluating " + model));
}

// By model, then device; devices without a row of the model left out.
absl::StatusOr<std::vector<Judged>> Judge(const PairEvaluation& options, PairLeave leave,
                                          const std::vector<std::string>& models, const LoadedPairs& pairs) {
  std::vector<Judged> all;
  for (const std::string& model : models) {
    HORUS_ASSIGN_OR_RETURN(const std::vector<PairPrediction> predictions, Predictions(options, leave, model, pairs));
    for (uint32_t device = 0; device < pairs.set.devices.size(); ++device) {
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

// ---- horus evaluate --pairs --observe: how fast a model learns what jobs of an unknown family lose and cost.

constexpr size_t kShownBound = 1;  // of kAskedBounds, in text

struct JudgedOnline {
  std::string model;
  OnlineErrors errors;
};

Json ScoresJson(const OnlineScores& scores) {
  if (scores.questions == 0) return nullptr;
  const auto json = [](const OnlineScore& score) -> Json {
    Json admission = Json::array();
    for (size_t b = 0; b < kAskedBounds.size(); ++b) {
      const OnlineAdmission& of = score.admission[b];
      admission.push_back({{"bound", kAskedBounds[b]},
                           {"truly_pct", of.truly_pct},
                           {"admitted_pct", NumberOrNull(of.admitted_pct)},
                           {"kept_pct", NumberOrNull(of.kept_pct)}});
    }
    return {{"mape_pct", score.mape_pct},
            {"covered_pct", score.covered_pct},
            {"slack_pct", score.slack_pct},
            {"admission", admission}};
  };
  return {{"questions", scores.questions},
          {"pairs", scores.pairs},
          {"before", json(scores.before)},
          {"after", json(scores.after)}};
}

std::string ReportJson(const std::vector<JudgedOnline>& all, const PairSet& set, const OnlinePlan& plan) {
  Json list = Json::array();
  for (const JudgedOnline& judged : all) {
    const PairDevice& device = set.devices[judged.errors.device];
    list.push_back({{"model", judged.model},
                    {"gpu", device.gpu},
                    {"sharing_mode", std::string(SharingModeName(device.mode))},
                    {"observed", judged.errors.observed},
                    {"all", ScoresJson(judged.errors.all)},
                    {"residents", ScoresJson(judged.errors.residents)}});
  }
  const Json document = {{"schema", "horus-evaluate-online"},
                         {"version", 1},
                         {"noise_pct", kPercent * plan.noise},
                         {"draws", plan.draws},
                         {"gpu_left_out", plan.leave_gpu},
                         {"settled", plan.settled},
                         {"evaluations", list}};
  return JsonText(document);
}

std::string ReportText(const std::vector<JudgedOnline>& all, const PairSet& set, const OnlinePlan& plan) {
  const std::string who = "MODEL|GPU|SHARING|BESIDE|>SEEN|";
  Table errors(who + ">MAPE %|>COVERED %|>SLACK %");
  Table admitted(who + ">TRULY %|>ADMITTED %|>KEPT %");
  const auto both = [](double before, double after) { return absl::StrFormat("%.3g -> %.3g", before, after); };
  const auto share = [](double pct) { return std::isnan(pct) ? "-" : absl::StrFormat("%.3g", pct); };
  for (const JudgedOnline& judged : all) {
    const PairDevice& device = set.devices[judged.errors.device];
    for (const auto& [beside, scores] :
         {std::pair{"anybody", &judged.errors.all}, {"residents", &judged.errors.residents}}) {
      if (scores->questions == 0) continue;
      const OnlineScore &before = scores->before, &after = scores->after;
      std::vector<std::string> row = {judged.model, device.gpu, std::string(SharingModeName(device.mode)), beside,
                                      std::to_string(judged.errors.observed)};
      std::vector<std::string> of_bound = row;
      for (const std::string& text :
           {both(before.mape_pct, after.mape_pct), both(before.covered_pct, after.covered_pct),
            both(before.slack_pct, after.slack_pct)}) {
        row.push_back(text);
      }
      const OnlineAdmission& of = after.admission[kShownBound];
      for (const double pct : {of.truly_pct, of.admitted_pct, of.kept_pct}) of_bound.push_back(share(pct));
      errors.AddRow(row);
      admitted.AddRow(of_bound);
    }
  }
  const std::string settled =
      plan.settled == 0 ? "" : absl::StrFormat(" (%d of other jobs there before)", plan.settled);
  return absl::StrFormat(
             "Slowdowns of jobs whose family%s training has not seen,\n"
             "before -> after some of their co-locations%s were seen\n"
             "with %.3g %% noise (%d draws)\n",
             plan.leave_gpu ? " and GPU type" : "", settled, kPercent * plan.noise, plan.draws) +
         errors.Render("  ") +
         absl::StrFormat("Then, of pairs: truly within %.3g; of those admitted by bounds; of tenants admitted: kept\n",
                         kAskedBounds[kShownBound]) +
         admitted.Render("  ");
}

// Models judged by what training has not seen of the pairs, or as they are.
absl::StatusOr<std::string> EvaluatePairsToText(const PairEvaluation& options) {
  HORUS_ASSIGN_OR_RETURN(const PairLeave leave, ParsePairLeave(options.leave));
  HORUS_ASSIGN_OR_RETURN(const std::vector<std::string> models, ModelsOf(options));
  HORUS_ASSIGN_OR_RETURN(const LoadedPairs pairs, LoadPairSet(options.inputs));
  HORUS_ASSIGN_OR_RETURN(const std::vector<Judged> all, Judge(options, leave, models, pairs));
  if (!options.json) return ReportText(all, pairs, options);
  const PairsSkipped& skipped = pairs.skipped;
  const Json document = {
      {"schema", "horus-evaluate-pairs"},
      {"version", 1},
      {"jobs", pairs.set.jobs.size()},
      {"pairs", pairs.set.runs.size()},
      {"as_is", options.as_is},
      {"left_out", {{"apart", skipped.apart}, {"no_alone", skipped.no_alone}, {"several", skipped.several}}},
      {"evaluations", JsonList(all, [&](const Judged& one) { return JudgedJson(one, pairs.set, options); })}};
  return JsonText(document);
}

absl::StatusOr<std::string> EvaluateOnlineToText(const PairEvaluation& options) {
  HORUS_ASSIGN_OR_RETURN(const std::vector<const PairModelKind*> kinds, PairModelKindsNamed(options.models));
  HORUS_ASSIGN_OR_RETURN(const LoadedPairs pairs, LoadPairSet(options.inputs));
  std::vector<JudgedOnline> all;
  for (const PairModelKind* kind : kinds) {
    Progress progress;
    HORUS_ASSIGN_OR_RETURN(const std::vector<OnlineErrors> errors,
                           EvaluateOnline(pairs.set, kind->name, *pairs.catalogue, options.plan, options.train,
                                          progress.OfShare("evaluating " + std::string(kind->name))));
    for (const OnlineErrors& each : errors) all.push_back({std::string(kind->name), each});
  }
  return options.json ? ReportJson(all, pairs.set, options.plan)
                      : ReportText(all, pairs.set, options.plan) + SkippedText(pairs.skipped);
}

// ---- horus evaluate --predictions: what a model that has seen neither job's family says of every two jobs, as a file.

absl::StatusOr<std::string> PredictPairsToText(const PairEvaluation& options) {
  if (options.models.size() != 1)
    return InvalidArgument("--predictions: expected one --model, found %d", options.models.size());
  const std::string& model = options.models.front();
  HORUS_ASSIGN_OR_RETURN(const LoadedPairs pairs, LoadPairSet(options.inputs));
  Progress progress;
  HORUS_ASSIGN_OR_RETURN(const std::vector<UnseenPrediction> predictions,
                         PredictUnseen(pairs.set, model, options.plan.leave_gpu, options.train,
                                       progress.OfShare("predicting by " + model)));
  std::vector<PredictedPair> rows;
  for (const UnseenPrediction& one : predictions) {
    const PairDevice& device = pairs.set.devices[one.device];
    rows.push_back({device.gpu, device.mode, pairs.set.jobs[one.victim].name, pairs.set.jobs[one.other].name,
                    one.predicted, one.upper});
  }
  const std::string& file = options.predictions;
  HORUS_RETURN_IF_ERROR(WriteFileOrDevice(file, PredictedText(rows)));
  return absl::StrFormat("%s: %d slowdowns of %d jobs on %d devices, each predicted without the families of both%s\n",
                         Printable(file, file.size()), rows.size(), pairs.set.jobs.size(), pairs.set.devices.size(),
                         options.plan.leave_gpu ? " and without its GPU type" : "");
}

// ---- Runs of jobs alone.

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
  if (!options.pairs.inputs.bundle.empty()) HORUS_SET_OR_RETURN(predictor, LoadPredictor(options.pairs.inputs.bundle));
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
