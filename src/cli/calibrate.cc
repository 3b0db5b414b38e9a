// SPDX-License-Identifier: Apache-2.0
// horus calibrate: a bundle moved to a site by a few of its own runs.
#include <memory>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/training.h"
#include "io/json_text.h"
#include "predict/site.h"

namespace horus::cli {
namespace {

constexpr char kFooter[] = R"(
One run tells what context and libraries take of your GPUs' memory, four how fast the GPUs are and how busy jobs keep
them; from ten on the bounds rest on your own errors too. Columns that a row needs: graph, family, gpu, and mem_mib,
step_time_us or gpu_util_pct.

Examples:
  horus calibrate --data runs.csv --out site.hbundle
  horus inspect net.onnx --batch 64 --gpu a100-40gb --bundle site.hbundle

docs/measure.md describes the rows. With rows of many nets, `horus train` learns more.)";

struct Options {
  std::vector<std::string> data, gpus_files;
  std::string bundle, out;
  SiteOptions site;
  bool json = false;
};

std::string ReportText(const Options& options, const SiteReport& report) {
  Table table(
      {Left("QUANTITY"), Right("RUNS"), Right("ERROR BEFORE"), Right("AFTER"), Right("BOUND BEFORE"), Right("AFTER")});
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

Json ReportJson(const Options& options, const SiteReport& report) {
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

absl::StatusOr<std::string> Calibrate(const Options& options) {
  HORUS_ASSIGN_OR_RETURN(const auto catalogue, LoadCatalogue(options.gpus_files));
  TrainingSet set;
  if (!options.data.empty()) {
    HORUS_ASSIGN_OR_RETURN(set, LoadTrainingSet(options.data, {}, *catalogue));
  }
  HORUS_ASSIGN_OR_RETURN(const auto base, LoadPredictor(options.bundle));
  SiteReport report;
  HORUS_ASSIGN_OR_RETURN(const Bundle bundle, CalibrateToSite(*base, set, options.site, &report));
  HORUS_ASSIGN_OR_RETURN(const std::string bytes, WriteBundle(bundle));
  HORUS_RETURN_IF_ERROR(WriteFileOrDevice(options.out, bytes));
  return options.json ? JsonText(ReportJson(options, report)) : ReportText(options, report);
}

}  // namespace

Command AddCalibrate(CLI::App& parser) {
  auto options = std::make_shared<Options>();
  CLI::App* app = parser.add_subcommand("calibrate", "Move trained models to your site by a few of its own runs");
  AddRepeated(*app, "--data", options->data, "Dataset of your measured runs (CSV); may be repeated", "FILE");
  AddOption(*app, "--base-memory", options->site.base_mib,
            "What context and libraries take of a GPU's memory before a job takes anything, where you know it", "MIB")
      ->check(CLI::Range(0.0, 1048576.0));
  AddOption(*app, "--out", options->out, "Bundle to write", "FILE")->required();
  AddOption(*app, "--bundle", options->bundle, "Models to start from: a file, or builtin (the default)", "BUNDLE");
  AddOption(*app, "--promise", options->site.promise, "Coverage of the bounds", "SHARE")
      ->check(CLI::Range(0.5, 0.99))
      ->capture_default_str();
  AddGpusFileOption(*app, options->gpus_files);
  app->add_flag("--json", options->json, "Print JSON");
  app->footer(kFooter);
  return {app, [options] { return Print(Calibrate(*options)); }};
}

}  // namespace horus::cli
