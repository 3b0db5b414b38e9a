// SPDX-License-Identifier: Apache-2.0
// Shared steps of commands that place jobs.
#include "cli/placing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "io/kube/kube_ask.h"
#include "place/policies/policies.h"
#include "place/search/policy.h"

namespace horus::cli {
namespace {

// Of --slowdown-bound; 0 = the policy's default.
absl::StatusOr<double> ParseBound(const std::string& text) {
  if (text.empty()) return 0;
  if (text == "none") return std::numeric_limits<double>::infinity();
  double bound = 0;
  if (CLI::detail::lexical_cast(text, bound) && bound >= 1) return bound;
  return InvalidArgument("--slowdown-bound: expected a number of at least 1, or none, found %s", Quoted(text));
}

}  // namespace

void AddLimitOptions(CLI::App& app, PlacerOptions& options) {
  AddOption(app, "--max-tenants", options.max_tenants, "Jobs on a GPU that states no limit itself", "N")
      ->check(CLI::Range(int32_t{1}, kMaxTenantsPerDevice))
      ->capture_default_str();
  AddOption(app, "--mem-headroom-mib", options.mem_headroom_mib,
            "Memory to keep free on each GPU; 0 where requests hold exactly, as with claims of Kubernetes", "MIB")
      ->check(CLI::Range(int64_t{0}, kMaxHostQuantity))
      ->capture_default_str();
  AddOption(app, "--mem-overcommit", options.mem_overcommit,
            "How many times a GPU's memory the limits of its jobs may sum to; requests never exceed it", "FACTOR")
      ->check(CLI::Range(1.0, kMaxMemOvercommit))
      ->capture_default_str();
}

void AddPlacingOptions(CLI::App& app, const std::string& jobs, PlacingOptions& options) {
  AddOption(app, "--cluster", options.cluster, "YAML file with nodes, GPUs and running jobs", "FILE")->required();
  AddOption(app, "--jobs", options.jobs, "YAML file with " + jobs, "FILE")->required();
  AddOption(app, "--policy", options.policy, Listed(PolicyNames()), "NAME")->capture_default_str();
  AddInterferenceOptions(app, options.interference);
  AddOption(app, "--slowdown-bound", options.slowdown_bound,
            "Most that sharing may slow a job that states no bound itself, or none (default: the policy's)", "FACTOR");
  AddLimitOptions(app, options.placer);
  AddOption(app, "--sharing-quota", options.placer.sharing_quota,
            "Share of the cluster's GPUs that may have several jobs; 0 turns sharing off", "SHARE")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_flag("--probe-outside", options.placer.probe_outside,
               "Place jobs that the predictor does not know alone, until they were observed");
  app.add_flag("--sm-caps", options.placer.sm_caps,
               "Under MPS, cap the SMs of a job that its neighbours' bounds refuse otherwise; it must be started so");
  AddOption(app, "--gpu-price", options.placer.gpu_price,
            "Of jobs with alternatives: what each GPU must bring, as a share of what one brings at best", "SHARE")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  static const std::map<std::string, HostGrants> grants = {
      {"resize", HostGrants::kResize}, {"placement", HostGrants::kPlacement}, {"stated", HostGrants::kStated}};
  app.add_option_function<std::string>(
         "--host-grants", [&options](const std::string& word) { options.placer.host_grants = grants.at(word); },
         "Cores and host memory of jobs with a sensitivity: what they do most work with, running jobs too (resize), "
         "new "
         "jobs alone (placement), or what they state")
      ->check(CLI::IsMember({"resize", "placement", "stated"}))
      ->default_str("resize")
      ->type_name("WORD");
  AddOption(app, "--max-candidates", options.placer.max_candidates,
            "Price at most so many GPUs for a job of one, for speed where all jobs differ (0: all)", "N")
      ->capture_default_str();
  AddOption(app, "--seed", options.placer.seed, "Of policies and searches that draw", "N")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  AddGpusFileOption(app, options.gpus_files);
  AddOption(app, "--bundle", options.bundle,
            "Trained models that refine the predictions: a file, builtin (the default), or none", "BUNDLE");
}

bool IsRequestAlone(const JobSpec& job) {
  constexpr double kMilliPerPct = kMilliPerGpu / 100.0, kRounding = 0.1;
  return std::ranges::all_of(job.demands, [&](const TypeDemand& one) {
    const Demand& demand = one.demand;
    const auto util_pct = static_cast<double>(demand.gpu_util_pct.estimate);
    const auto most_pct = static_cast<double>(demand.gpu_util_pct.upper);
    const bool of_import = std::abs(most_pct * kUnknownBusyShare - util_pct) < kRounding;
    return demand.profile_id == 0 && demand.mem_bw_util_pct.upper == 0 && demand.step_time_us.upper == 0 &&
           demand.operator_us == 0 && demand.host_us == 0 &&
           (of_import || (util_pct == most_pct && (job.gpu_milli == kMilliPerGpu || util_pct == 100 ||
                                                   std::abs(util_pct * kMilliPerPct - job.gpu_milli) < 1)));
  });
}

absl::StatusOr<std::unique_ptr<Placer>> MakePlacer(const PlacingOptions& options,
                                                   std::shared_ptr<const InterferenceModel> model) {
  PlacerOptions placer = options.placer;
  HORUS_ASSIGN_OR_RETURN(placer.slowdown_bound, ParseBound(options.slowdown_bound));
  HORUS_ASSIGN_OR_RETURN(std::unique_ptr<Policy> policy, MakePolicy(options.policy, {.seed = placer.seed}));
  return Placer::Create(std::move(model), std::move(policy), placer);
}

absl::StatusOr<PlacingInputs> LoadPlacing(const PlacingOptions& options) {
  // Options before files, files before graphs: the cheapest error comes first.
  HORUS_RETURN_IF_ERROR(CheckChoice(options.interference));
  HORUS_RETURN_IF_ERROR(MakePolicy(options.policy).status());
  HORUS_RETURN_IF_ERROR(ParseBound(options.slowdown_bound).status());
  HORUS_ASSIGN_OR_RETURN(const auto predictor, LoadPredictor(options.bundle));
  HORUS_ASSIGN_OR_RETURN(auto catalogue, LoadCatalogue(options.gpus_files));
  HORUS_ASSIGN_OR_RETURN(ClusterFile file, ReadClusterFile(options.cluster, std::move(catalogue)));
  HORUS_ASSIGN_OR_RETURN(std::vector<JobRequest> requests, ReadJobsFile(options.jobs, *file.catalogue));
  HORUS_ASSIGN_OR_RETURN(Cluster cluster, MakeCluster(file));
  HORUS_ASSIGN_OR_RETURN(auto model, LoadInterference(options.interference, file.catalogue, predictor));
  HORUS_ASSIGN_OR_RETURN(std::unique_ptr<Placer> placer, MakePlacer(options, model));
  auto shelf = std::make_unique<DemandShelf>(file.catalogue, predictor);
  std::vector<GpuTypeId> present = TypesPresent(file);
  HORUS_RETURN_IF_ERROR(AdoptResidents(file, present, *shelf, cluster));
  return PlacingInputs{std::move(file),   std::move(requests), std::move(cluster), std::move(model),
                       std::move(placer), std::move(shelf),    std::move(present)};
}

std::string NameOf(const InterferenceChoice& choice) {
  return choice.pairs.empty() ? choice.name : "table, " + choice.name;
}

}  // namespace horus::cli
