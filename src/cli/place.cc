// SPDX-License-Identifier: Apache-2.0
// horus place: where the jobs of a file should run on the cluster of another.
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "CLI/CLI.hpp"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/inputs.h"
#include "cli/place_text.h"
#include "cli/placing.h"
#include "cli/progress.h"
#include "io/cluster_file.h"
#include "io/jobs_file.h"
#include "io/placement.h"
#include "io/placement_json.h"
#include "metrics/metrics.h"
#include "place/placer.h"

namespace horus::cli {
namespace {

constexpr char kFooter[] = R"(
Examples:
  horus place --cluster cluster.yaml --jobs jobs.yaml
  horus place --cluster cluster.yaml --jobs jobs.yaml --policy first-fit --explain
  horus place --cluster cluster.yaml --jobs jobs.yaml --slowdown-bound 1.2 --out placement.json --strict

Jobs are decided by priority, then submission time, then id, each seeing those before it. A job that finds no
place is an answer, not an error: the table says which constraint refused it and how far off it was; --strict
makes it exit code 3. A synergy policy decides all jobs in one round and may resize residents, which are listed too.
docs/files.md describes both files.)";

struct Options {
  std::string cluster;
  std::string jobs;
  PlacingOptions placing;
  std::string out;
  std::string prometheus;
  bool explain = false;
  bool strict = false;
  bool json = false;
};

// What the one call of the placer did, and what is held.
std::string MetricsOf(const Placer& placer, const Cluster& cluster, const Plan& plan, std::chrono::nanoseconds took) {
  Metrics metrics;
  metrics.Called(Call::kPlan, kStatusOk, static_cast<uint64_t>(took.count()));
  metrics.Decided(plan);
  const Placer::Judgements judged = placer.judgements();
  metrics.Looked(Cache::kJudgements, judged.known, judged.anew);
  std::vector<MetricRow> rows = metrics.Rows();
  const auto add_held = [&](const char* labels, uint64_t bytes) {
    rows.push_back({&kBytesHeld, kBytesHeld.name, labels, static_cast<double>(bytes)});
  };
  add_held("handle=\"cluster\"", cluster.bytes_held());
  add_held("handle=\"placer\"", placer.bytes_held());
  return MetricsText(rows);
}

absl::StatusOr<PlacementReport> MakePlacementOf(const Options& options) {
  // Options before files, files before graphs: the cheapest error comes first.
  const PlacingOptions& placing = options.placing;
  HORUS_RETURN_IF_ERROR(CheckPlacing(placing));
  HORUS_ASSIGN_OR_RETURN(const auto predictor, LoadPredictor(placing.bundle));
  HORUS_ASSIGN_OR_RETURN(auto catalogue, LoadCatalogue(placing.gpus_files));
  HORUS_ASSIGN_OR_RETURN(const ClusterFile file, ReadClusterFile(options.cluster, std::move(catalogue)));
  HORUS_ASSIGN_OR_RETURN(const std::vector<JobRequest> requests, ReadJobsFile(options.jobs, *file.catalogue));
  HORUS_ASSIGN_OR_RETURN(Cluster cluster, MakeCluster(file));
  HORUS_ASSIGN_OR_RETURN(const auto model, LoadInterference(placing.interference, file.catalogue, predictor));
  HORUS_ASSIGN_OR_RETURN(const std::unique_ptr<Placer> placer, MakePlacer(placing, model));

  Progress progress;
  DemandShelf shelf(file.catalogue, predictor);
  const std::vector<GpuTypeId> present = TypesPresent(file);
  HORUS_RETURN_IF_ERROR(AdoptResidents(file, present, shelf, cluster));
  HORUS_ASSIGN_OR_RETURN(std::vector<JobSpec> jobs,
                         CompleteJobs(requests, cluster, present, shelf, [&](size_t done, size_t total) {
                           progress.Update("analysing jobs:", done, total);
                         }));
  const auto begin = std::chrono::steady_clock::now();
  HORUS_ASSIGN_OR_RETURN(Plan plan, placer->MakePlan(cluster, jobs, std::nullopt, [&](uint64_t done, uint64_t total) {
    progress.Update("placing jobs:", done, total);
    return true;
  }));
  if (!options.prometheus.empty()) {
    const auto took = std::chrono::steady_clock::now() - begin;
    HORUS_RETURN_IF_ERROR(WriteFileOrDevice(options.prometheus, MetricsOf(*placer, cluster, plan, took)));
  }
  return MakePlacementReport(cluster, std::move(jobs), std::move(plan), *model,
                             {.policy = placing.policy,
                              .interference = NameOf(placing.interference),
                              .slowdown_bound = placer->slowdown_bound(),
                              .seed = placing.seed});
}

int RunPlace(const Options& options) {
  const absl::StatusOr<PlacementReport> placement = MakePlacementOf(options);
  if (!placement.ok()) return Fail(placement.status());
  if (!options.out.empty()) {
    if (absl::Status status = WriteFileOrDevice(options.out, PlacementJson(*placement)); !status.ok()) {
      return Fail(status);
    }
  }
  std::string text;
  if (options.json) {
    text = PlacementJson(*placement);
  } else {
    text = DecisionsText(*placement) + SharedText(*placement) + ResizesText(*placement) +
           (options.explain ? ExplainText(*placement) : "") + TotalsText(*placement);
    if (!options.out.empty()) text += "  written to            " + options.out + "\n";
  }
  std::fputs(text.c_str(), stdout);
  const bool all = placement->Count(Verdict::kPlace) == placement->plan.decisions.size();
  return options.strict && !all ? kExitRefused : kExitDecided;
}

}  // namespace

Command AddPlace(CLI::App& parser) {
  auto options = std::make_shared<Options>();
  CLI::App* app = parser.add_subcommand("place", "On which GPUs jobs should run, beside whom, and how slowed");
  app->add_option("--cluster", options->cluster, "YAML file with nodes, GPUs and running jobs")
      ->required()
      ->type_name("FILE");
  app->add_option("--jobs", options->jobs, "YAML file with the jobs to place")->required()->type_name("FILE");
  AddPlacingOptions(*app, options->placing);
  app->add_option("--out", options->out, "Also write the placement as JSON")->type_name("FILE");
  app->add_option("--prometheus", options->prometheus, "Also write what was done as Prometheus text (docs/metrics.md)")
      ->type_name("FILE");
  app->add_flag("--explain", options->explain, "Print costs, effects and refusals of every decision");
  app->add_flag("--strict", options->strict, "Exit with 3 when a job finds no place");
  app->add_flag("--json", options->json, "Print JSON");
  app->footer(kFooter);
  return {app, [options] { return RunPlace(*options); }};
}

}  // namespace horus::cli
