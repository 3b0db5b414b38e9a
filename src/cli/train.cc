// SPDX-License-Identifier: Apache-2.0
// horus train: a bundle from measured runs. horus calibrate: one moved to a site by a few of its own runs.

#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/text.h"
#include "base/vectors.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/print.h"

namespace horus::cli {
namespace {

constexpr char kTrainFooter[] = R"(
Examples:
  horus train --data rows.csv --out model.hbundle
  horus inspect net.onnx --batch 64 --gpu a100-40gb --bundle model.hbundle --explain
  horus train --data memory.csv --bundle model.hbundle --out both.hbundle
                                                      the step time of model.hbundle, and memory of these rows
  horus evaluate --data rows.csv --leave family       how well that works for families it has not seen
  horus train --pairs pairs.csv --jobs jobs.csv --out pairs.hbundle
                                                      interference models, from runs of two jobs side by side

docs/measure.md describes the rows; docs/predict.md and docs/interference.md what is learned from them.)";

// Options that pairs have no use for, and the other way round.
constexpr const char* kOnlyData[] = {"--without", "--rounds"};
constexpr const char* kOnlyPairs[] = {"--jobs", "--demands"};

struct TrainArguments {
  std::vector<std::string> data, without;
  PairInputs pairs;  // its gpus_files for --data too
  std::string out;
  TrainOptions train;
  bool json = false;
};

Json ReportJson(const TrainArguments& options, const Bundle& bundle, const TrainReport& report, size_t rows) {
  Json quantities = Json::array();
  for (const TrainedQuantity& q : report.quantities) {
    quantities.push_back({{"quantity", std::string(InfoOf(q.quantity).name)},
                          {"rows", q.rows},
                          {"families", q.families},
                          {"gpu_types", q.gpus},
                          {"trees", q.trees},
                          {"coverage_promised", q.promised},
                          {"coverage_observed", q.observed}});
  }
  const auto name = [](Quantity quantity) { return std::string(InfoOf(quantity).name); };
  return {{"schema", "horus-train"},
          {"version", 1},
          {"out", options.out},
          {"rows", rows},
          {"quantities", quantities},
          {"left_out", JsonList(report.left_out, name)},
          {"kept", JsonList(report.kept, name)},
          {"data_fingerprint", absl::StrFormat("%016x", bundle.data_fingerprint)}};
}

std::string ReportText(const TrainArguments& options, const Bundle& bundle, const TrainReport& report, size_t rows) {
  Table table("QUANTITY|>ROWS|>FAMILIES|>GPU TYPES|>TREES|>COVERAGE PROMISED|>OBSERVED");
  const auto percent = [](double share) {
    return share > 0 ? absl::StrFormat("%.0f %%", 100 * share) : std::string("-");
  };
  for (const TrainedQuantity& q : report.quantities) {
    table.AddRow({std::string(InfoOf(q.quantity).name), std::to_string(q.rows), std::to_string(q.families),
                  std::to_string(q.gpus), std::to_string(q.trees), percent(q.promised), percent(q.observed)});
  }
  std::string text = table.Render();
  for (const Quantity q : report.left_out) {
    absl::StrAppendFormat(&text, "%s: measured in fewer than %d rows, not learned\n", std::string(InfoOf(q).name),
                          kLeastTrainingRows);
  }
  if (!report.kept.empty()) {
    const auto names = VectorOf<std::string_view>(report.kept, [](Quantity q) { return InfoOf(q).name; });
    absl::StrAppendFormat(&text, "kept from %s: %s\n", options.pairs.bundle.empty() ? "builtin" : options.pairs.bundle,
                          Listed(names));
  }
  absl::StrAppendFormat(&text, "%s: %d rows, data fingerprint %016x\n", Printable(options.out, options.out.size()),
                        rows, bundle.data_fingerprint);
  return text;
}

absl::StatusOr<std::string> TrainToText(TrainArguments& options) {
  HORUS_ASSIGN_OR_RETURN(const auto catalogue, LoadCatalogue(options.pairs.gpus_files));
  HORUS_ASSIGN_OR_RETURN(const TrainingSet set, LoadTrainingSet(options.data, options.without, *catalogue));
  HORUS_ASSIGN_OR_RETURN(options.train.base, LoadPredictor(options.pairs.bundle));
  TrainReport report;
  Progress progress;
  HORUS_ASSIGN_OR_RETURN(const Bundle bundle,
                         TrainPredictor(set, options.train, progress.OfShare("training"), &report));
  HORUS_ASSIGN_OR_RETURN(const std::string bytes, WriteBundle(bundle));
  HORUS_RETURN_IF_ERROR(WriteFileOrDevice(options.out, bytes));
  return options.json ? JsonText(ReportJson(options, bundle, report, set.rows.size()))
                      : ReportText(options, bundle, report, set.rows.size());
}

// ---- horus train --pairs: a bundle of interference models from measured pairs.

struct Trained {
  LoadedPairs pairs;
  Bundle bundle;
  std::vector<TrainedKind> kinds;
};

Json ReportJson(const TrainArguments& options, const Trained& trained) {
  const PairSet& set = trained.pairs.set;
  Json devices = Json::array(), kinds = Json::array();
  for (const PairDevice& device : set.devices)
    devices.push_back({{"gpu", device.gpu}, {"sharing_mode", std::string(SharingModeName(device.mode))}});
  for (const TrainedKind& kind : trained.kinds) {
    kinds.push_back({{"kind", kind.kind},
                     {"pair_mape_pct", kind.pair_mape},
                     {"family_mape_pct", kind.family_mape},
                     {"pair_coverage_promised", kind.pair_promised},
                     {"pair_coverage_observed", kind.pair_observed},
                     {"family_coverage_promised", kind.family_promised},
                     {"family_coverage_observed", kind.family_observed}});
  }
  const PairsSkipped& skipped = trained.pairs.skipped;
  return {{"schema", "horus-train-pairs"},
          {"version", 1},
          {"out", options.out},
          {"devices", devices},
          {"jobs", set.jobs.size()},
          {"pairs", set.runs.size()},
          {"rows", RowsOf(set).size()},
          {"left_out", {{"apart", skipped.apart}, {"no_alone", skipped.no_alone}, {"several", skipped.several}}},
          {"kinds", kinds},
          {"data_fingerprint", absl::StrFormat("%016x", trained.bundle.data_fingerprint)}};
}

std::string ReportText(const TrainArguments& options, const Trained& trained) {
  Table table("MODEL|>~MAPE, PAIR UNSEEN|>~FAMILY UNSEEN|>~PROMISED|>~OBSERVED|>~FAMILY: PROMISED|>~OBSERVED");
  const auto percent = [](double value) { return absl::StrFormat("%.1f %%", value); };
  const auto share = [](double value) {
    return value > 0 ? absl::StrFormat("%.0f %%", 100 * value) : std::string("-");
  };
  for (const TrainedKind& kind : trained.kinds) {
    table.AddRow({kind.kind, percent(kind.pair_mape), percent(kind.family_mape), share(kind.pair_promised),
                  share(kind.pair_observed), share(kind.family_promised), share(kind.family_observed)});
  }
  const PairSet& set = trained.pairs.set;
  return table.Render() + SkippedText(trained.pairs.skipped) +
         absl::StrFormat("%s: %d pairs of %d jobs on %d devices, data fingerprint %016x\n",
                         Printable(options.out, options.out.size()), set.runs.size(), set.jobs.size(),
                         set.devices.size(), trained.bundle.data_fingerprint);
}

absl::StatusOr<std::string> TrainPairsToText(const TrainArguments& options, const PairTrainOptions& train) {
  Trained trained;
  HORUS_ASSIGN_OR_RETURN(trained.pairs, LoadPairSet(options.pairs));
  Progress progress;
  HORUS_ASSIGN_OR_RETURN(trained.bundle,
                         TrainInterference(trained.pairs.set, train, progress.OfShare("training"), &trained.kinds));
  HORUS_ASSIGN_OR_RETURN(const std::string bytes, WriteBundle(trained.bundle));
  HORUS_RETURN_IF_ERROR(WriteFileOrDevice(options.out, bytes));
  return options.json ? JsonText(ReportJson(options, trained)) : ReportText(options, trained);
}

// ---- horus calibrate.

constexpr char kCalibrateFooter[] = R"(
One run tells what context and libraries take of your GPUs' memory, four how fast the GPUs are and how busy jobs keep
them; from ten on the bounds rest on your own errors too. Columns that a row needs: graph, family, gpu, and mem_mib,
step_time_us or gpu_util_pct.

Examples:
  horus calibrate --data runs.csv --out site.hbundle
  horus inspect net.onnx --batch 64 --gpu a100-40gb --bundle site.hbundle

docs/measure.md describes the rows. With rows of many nets, `horus train` learns more.)";

struct CalibrateOptions {
  std::vector<std::string> data, gpus_files;
  std::string bundle, out;
  SiteOptions site;
  bool json = false;
};

std::string ReportText(const CalibrateOptions& options, const SiteReport& report) {
  Table table("QUANTITY|>RUNS|>ERROR BEFORE|>AFTER|>BOUND BEFORE|>AFTER");
  const auto percent = [](double share) { return absl::StrFormat("%.0f %%", 100 * share); };
  const auto over = [](double share) { return absl::StrFormat("%+.0f %%", 100 * share); };
  for (const SiteEffect& e : report.effects) {
    table.AddRow({std::string(InfoOf(e.quantity).name), std::to_string(e.rows), percent(e.error_before),
                  percent(e.error_after), over(e.slack_before), over(e.slack_after)});
  }
  std::string text = report.effects.empty() ? "" : table.Render();
  if (report.base_mib >= 0) {
    absl::StrAppendFormat(&text, "Context and libraries take %.0f MiB here, before a job takes anything.\n",
                          report.base_mib);
  }
  absl::StrAppendFormat(&text, "%sWritten: %s\n",
                        report.effects.empty() ? "" : "Errors and bounds are of these very runs. ",
                        Printable(options.out, options.out.size()));
  return text;
}

Json ReportJson(const CalibrateOptions& options, const SiteReport& report) {
  Json effects = Json::array();
  for (const SiteEffect& e : report.effects) {
    effects.push_back({{"quantity", std::string(InfoOf(e.quantity).name)},
                       {"runs", e.rows},
                       {"error_before", e.error_before},
                       {"error_after", e.error_after},
                       {"slack_before", e.slack_before},
                       {"slack_after", e.slack_after}});
  }
  return {{"schema", "horus-calibrate"},
          {"version", 1},
          {"out", options.out},
          {"quantities", effects},
          {"base_mib", report.base_mib >= 0 ? Json(report.base_mib) : Json(nullptr)}};
}

absl::StatusOr<std::string> Calibrate(const CalibrateOptions& options) {
  HORUS_ASSIGN_OR_RETURN(const auto catalogue, LoadCatalogue(options.gpus_files));
  TrainingSet set;
  if (!options.data.empty()) HORUS_SET_OR_RETURN(set, LoadTrainingSet(options.data, {}, *catalogue));
  HORUS_ASSIGN_OR_RETURN(const auto base, LoadPredictor(options.bundle));
  SiteReport report;
  HORUS_ASSIGN_OR_RETURN(const Bundle bundle, CalibrateToSite(*base, set, options.site, &report));
  HORUS_ASSIGN_OR_RETURN(const std::string bytes, WriteBundle(bundle));
  HORUS_RETURN_IF_ERROR(WriteFileOrDevice(options.out, bytes));
  return options.json ? JsonText(ReportJson(options, report)) : ReportText(options, report);
}

}  // namespace

void AddTrainOptions(CLI::App& app, std::vector<std::string>& data, std::vector<std::string>& gpus_files,
                     std::vector<std::string>& without, TrainOptions& train) {
  AddRepeated(app, "--data", data, "Dataset of measured runs (CSV); may be repeated", "FILE");
  AddRepeated(app, "--without", without, "Leave out the rows of this net or family; may be repeated", "NAME");
  AddRanged(app, "--promise", train.promise, "Coverage of the bounds on families that were not seen (of pairs: 0.9)",
            "SHARE", 0.5, 0.99)
      ->capture_default_str();
  AddRanged(app, "--rounds", train.rounds, "Trees a quantity at most", "N", 0, 2000)->capture_default_str();
  AddOption(app, "--seed", train.seed, "Seed of all random draws", "N")->capture_default_str();
  AddGpusFileOption(app, gpus_files);
}

Command AddTrain(CLI::App& parser) {
  auto options = std::make_shared<TrainArguments>();
  CLI::App* app = parser.add_subcommand("train", "Train a model bundle on measured runs");
  AddTrainOptions(*app, options->data, options->pairs.gpus_files, options->without, options->train);
  AddPairOptions(*app, options->pairs);
  AddOption(*app, "--bundle", options->pairs.bundle,
            "Models to start from: what the rows do not measure is kept of them. With --pairs: models that predict "
            "the jobs' demands. A file, builtin (the default), or none",
            "BUNDLE");
  AddOption(*app, "--out", options->out, "Bundle to write", "FILE")->required();
  app->add_flag("--json", options->json, "Print JSON");
  app->footer(kTrainFooter);
  return {app, [app, options] {
            if (const absl::Status given = CheckDataOrPairs(*app, kOnlyData, kOnlyPairs); !given.ok())
              return Fail(given);
            if (options->pairs.pairs.empty()) return Print(TrainToText(*options));
            return Print(TrainPairsToText(*options, PairOptionsOf(*app, options->train.promise, options->train.seed)));
          }};
}

Command AddCalibrate(CLI::App& parser) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* app = parser.add_subcommand("calibrate", "Move trained models to your site by a few of its own runs");
  AddRepeated(*app, "--data", options->data, "Dataset of your measured runs (CSV); may be repeated", "FILE");
  AddRanged(*app, "--base-memory", options->site.base_mib,
            "What context and libraries take of a GPU's memory before a job takes anything, where you know it", "MIB",
            0.0, 1048576.0);
  AddOption(*app, "--out", options->out, "Bundle to write", "FILE")->required();
  AddOption(*app, "--bundle", options->bundle, "Models to start from: a file, or builtin (the default)", "BUNDLE");
  AddRanged(*app, "--promise", options->site.promise, "Coverage of the bounds", "SHARE", 0.5, 0.99)
      ->capture_default_str();
  AddGpusFileOption(*app, options->gpus_files);
  app->add_flag("--json", options->json, "Print JSON");
  app->footer(kCalibrateFooter);
  return {app, [options] { return Print(Calibrate(*options)); }};
}

}  // namespace horus::cli
