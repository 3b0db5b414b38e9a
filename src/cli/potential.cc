// SPDX-License-Identifier: Apache-2.0
// horus potential: what sharing could give a cluster, before any policy.
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/potential_inputs.h"
#include "cli/potential_report.h"

namespace horus::cli {
namespace {

constexpr char kFooter[] = R"(
Examples:
  horus potential --speeds throughputs.json --mix jobs.trace --clip 99
  horus potential --speeds throughputs.json --mix mix.csv --gpus v100=64 --gpus p100=64 --bound 1.5
  horus potential --cluster cluster.yaml --jobs jobs.yaml --interference horus

The best rate of work that any packing of single jobs and pairs can reach, by linear programming, beside the best
rate without sharing; per GPU type, and for all together; for each bound on slowdowns. No policy passes it.
docs/potential.md says how the figures are meant, docs/files.md has the files.)";

constexpr double kPct = 100;
const std::vector<double> kQuantilesPct = {10, 25, 50, 75, 90};  // of the JSON, where nobody asks for others

struct Options {
  PotentialSources sources;
  std::vector<std::string> bounds;
  double least_gain_pct = kPct * kLeastGainThatPays;
  double clip_percentile = kPct;
  std::optional<std::vector<double>> quantiles_pct;
  std::string format = "table";
};

absl::StatusOr<std::vector<double>> ParseBounds(const std::vector<std::string>& texts) {
  if (texts.empty()) return PotentialOptions{}.slowdown_bounds;
  std::vector<double> bounds;
  for (const std::string& text : texts) {
    double bound = std::numeric_limits<double>::infinity();
    if (text != "none" && !(CLI::detail::lexical_cast(text, bound) && bound >= 1)) {
      return InvalidArgument("--bound: expected a number of at least 1, or none, found %s", Quoted(text));
    }
    bounds.push_back(bound);
  }
  return bounds;
}

absl::StatusOr<PotentialReport> MakePotentialReport(const Options& options) {
  PotentialOptions asked;
  asked.least_gain = options.least_gain_pct / kPct;
  HORUS_ASSIGN_OR_RETURN(asked.slowdown_bounds, ParseBounds(options.bounds));
  HORUS_ASSIGN_OR_RETURN(PotentialInputs inputs, LoadPotential(options.sources));
  if (options.clip_percentile < kPct && !inputs.has_trace) {
    return InvalidArgument("--clip: expected a trace, whose jobs have durations, found none");
  }
  if (options.quantiles_pct && options.format != "json") {
    return InvalidArgument("--quantiles: expected --format json, found --format %s", options.format);
  }
  asked.other_units = inputs.other_units;
  if (options.format == "json") asked.quantiles_pct = options.quantiles_pct.value_or(kQuantilesPct);
  HORUS_ASSIGN_OR_RETURN(
      std::vector<PotentialCase> cases,
      PotentialOfCluster(inputs.table, inputs.jobs, inputs.gpus, inputs.reference, options.clip_percentile, asked));
  return PotentialReport{.table = std::move(inputs.table),
                         .source = std::move(inputs.source),
                         .jobs = inputs.jobs.size(),
                         .reference = inputs.reference,
                         .clip_percentile = options.clip_percentile,
                         .least_gain = asked.least_gain,
                         .quantiles_pct = asked.quantiles_pct,
                         .notes = std::move(inputs.notes),
                         .cases = std::move(cases)};
}

int RunPotential(const Options& options) {
  const absl::StatusOr<PotentialReport> report = MakePotentialReport(options);
  if (!report.ok()) return Fail(report.status());
  const std::string text = options.format == "json"  ? PotentialJson(*report)
                           : options.format == "csv" ? PotentialCsv(*report)
                                                     : PotentialText(*report);
  std::fputs(text.c_str(), stdout);
  return kExitDecided;
}

void AddFiles(CLI::App& app, PotentialSources& sources) {
  app.add_option("--speeds", sources.speeds, "Measured speeds alone and in pairs (Gavel's JSON); may be repeated")
      ->allow_extra_args(false)
      ->type_name("FILE");
  app.add_option("--mix", sources.mix, "The work that comes: traces of Gavel, or a CSV of profile and share")
      ->type_name("FILE...");
  app.add_option("--gpus", sources.gpus, "With --speeds: how many GPUs of a type (default: one of each)")
      ->allow_extra_args(false)
      ->type_name("TYPE[=N]");
  app.add_option("--cluster", sources.cluster, "YAML file with nodes and GPUs, for predicted pairs")->type_name("FILE");
  app.add_option("--jobs", sources.jobs, "YAML file with the jobs; each brings the same work unless --mix says")
      ->type_name("FILE");
  AddInterferenceOptions(app, sources.interference);
  app.add_option("--gpus-file", sources.gpus_files, "YAML file with GPU types of your own; may be repeated")
      ->allow_extra_args(false)
      ->type_name("FILE");
  app.add_option("--bundle", sources.bundle, "Trained models that refine the predictions")->type_name("FILE");
}

}  // namespace

Command AddPotential(CLI::App& parser) {
  auto options = std::make_shared<Options>();
  CLI::App* app = parser.add_subcommand("potential", "What sharing could give a cluster, before any policy");
  AddFiles(*app, options->sources);
  app->add_option("--reference", options->sources.reference,
                  "GPU type whose time counts the work of a mixed cluster, and shares (default: the first)")
      ->type_name("TYPE");
  app->add_option("--bound", options->bounds,
                  "Most that sharing may slow a job, or none; may be repeated (default: 1.25, 1.5, 2, 2.5, none)")
      ->allow_extra_args(false)
      ->type_name("FACTOR");
  app->add_option("--quantiles", options->quantiles_pct,
                  "JSON: also at bounds that so many % of the pairs keep (default: 10,25,50,75,90)")
      ->delimiter(',')
      ->check(CLI::Range(0.0, kPct))
      ->type_name("PCT,...");
  app->add_option("--least-gain", options->least_gain_pct, "Gain of the best plan from which on sharing pays, in %")
      ->check(CLI::Range(0.0, 1000.0))
      ->capture_default_str()
      ->type_name("PCT");
  app->add_option("--clip", options->clip_percentile, "Jobs of a trace longer than this percentile count so long")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str()
      ->type_name("PERCENTILE");
  app->add_option("--format", options->format, "How to print")
      ->check(CLI::IsMember({"table", "json", "csv"}))
      ->capture_default_str()
      ->type_name("table|json|csv");
  app->footer(kFooter);
  return {app, [options] { return RunPotential(*options); }};
}

}  // namespace horus::cli
