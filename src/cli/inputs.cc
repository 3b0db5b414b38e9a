// SPDX-License-Identifier: Apache-2.0
// Reads what several commands share; analyses the graphs of datasets, pairs and jobs.
#include "cli/inputs.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <set>

#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "base/vectors.h"
#include "cli/print.h"
#include "features/feature_row.h"
#include "graph/from_config.h"
#include "interference/laws.h"
#include "interference/table_model.h"
#include "io/gpu_file.h"
#include "io/kube/kube_ask.h"
#include "lab/io/dataset_file.h"
#include "place/policies/policies.h"
#include "place/search/policy.h"
#include "predict/quantity.h"

namespace horus::cli {
namespace {

std::vector<MeasuredColumn> MeasuredColumns() {
  return VectorOf<MeasuredColumn>(kQuantities, [](const QuantityInfo& info) {
    return MeasuredColumn{info.name, info.unit, info.most, info.link == Link::kExpm1};
  });
}

std::vector<std::string_view> FeatureNames() {
  std::vector<std::string_view> names;
  for (const auto columns : {JobFeatureColumns(), DeviceFeatureColumns()}) {
    for (const FeatureColumn& column : columns) names.push_back(column.name);
  }
  return names;
}

class Builder {
 public:
  explicit Builder(const Catalogue& catalogue) : catalogue_(catalogue) {}

  absl::StatusOr<TrainingRow> Build(const DatasetRow& from) {
    TrainingRow row;
    row.gpu = from.gpu_name;
    row.family = from.family;
    row.model = from.net;
    row.campaign = from.campaign;
    row.where = from.where;
    std::copy(from.measured.begin(), from.measured.end(), row.measured.begin());
    if (from.model.path.empty()) {
      row.features = from.features;
      return row;
    }
    HORUS_ASSIGN_OR_RETURN(const JobProfile* job, Profile(from));
    Describe(*job, from.gpu.has_value() ? &catalogue_.at(*from.gpu) : nullptr, row);
    return row;
  }

 private:
  // Of the last graph and run: the rows of a dataset that share both usually follow each other.
  absl::StatusOr<const JobProfile*> Profile(const DatasetRow& from) {
    if (job_ != nullptr && from.model == last_) return job_.get();
    ConfigOptions config = from.model.config;
    config.training = from.model.run.mode == RunMode::kTraining;
    const int64_t kind = IsConfigPath(from.model.path) ? 2 * config.lora_rank + (config.training ? 1 : 0) : 0;
    std::shared_ptr<const Graph>& graph = graphs_[{from.model.path, kind}];
    if (graph == nullptr) HORUS_SET_OR_RETURN(graph, At(from.where + ": graph", ReadModel(from.model.path, config)));
    HORUS_ASSIGN_OR_RETURN(JobProfile job, At(from.where, Analyse(graph, from.model.run)));
    job_ = std::make_unique<const JobProfile>(std::move(job));
    last_ = from.model;
    return job_.get();
  }

  const Catalogue& catalogue_;
  std::map<std::pair<std::string, int64_t>, std::shared_ptr<const Graph>> graphs_;
  std::unique_ptr<const JobProfile> job_;
  ModelRun last_;
};

// ---- Analyses the jobs of measured pairs and places them on the devices that the pairs name.

struct Device {
  GpuTypeId gpu;
  SharingMode mode = SharingMode::kTimeSlice;
};

// Devices in the order in which pairs name them; runs without jobs yet.
std::vector<Device> AddDevices(std::span<const NamedPair> pairs, const Catalogue& catalogue, PairSet& set) {
  std::vector<Device> devices;
  for (const NamedPair& pair : pairs) {
    const PairDevice device{catalogue.at(pair.gpu).name, pair.mode};
    const auto at = std::ranges::find(set.devices, device);
    PairRun run{.device = static_cast<uint32_t>(at - set.devices.begin())};
    if (at == set.devices.end()) {
      set.devices.push_back(device);
      devices.push_back({pair.gpu, pair.mode});
    }
    run.campaign = pair.campaign;
    run.slowdown_a = pair.slowdown_a;
    run.slowdown_b = pair.slowdown_b;
    run.where = pair.where;
    set.runs.push_back(std::move(run));
  }
  return devices;
}

using NamedOn = std::set<std::pair<std::string_view, GpuTypeId>>;  // jobs, and on which GPU types pairs name them

// Without a graph nothing is known of a job on GPU types on which no pair names it.
absl::StatusOr<PairJob> MakeJob(const TableJob& from, std::span<const Device> devices, const Catalogue& catalogue,
                                const NamedOn& named, DemandShelf& shelf) {
  std::vector<Demand> predicted;
  if (!from.model.path.empty()) HORUS_SET_OR_RETURN(predicted, At(from.where + ": graph", shelf.Demands(from.model)));
  PairJob job{.name = from.name, .family = from.family, .points = {}};
  for (const Device& device : devices) {
    Demand demand = predicted.empty() ? Demand() : predicted[device.gpu.value()];
    const auto measured =
        std::ranges::find_if(from.measured, [&](const TableDemand& one) { return one.gpu == device.gpu; });
    if (measured != from.measured.end()) measured->Replace(demand);
    if (predicted.empty() && (measured == from.measured.end() || !measured->gpu_util_pct)) {
      if (named.contains({from.name, device.gpu})) {
        return InvalidArgument(
            "%s: graph: expected an ONNX file, or the measured gpu_util_pct of the job on %s, found neither",
            from.where, std::string(catalogue.at(device.gpu).name));
      }
      job.points.emplace_back().fill(std::numeric_limits<float>::quiet_NaN());
      continue;
    }
    const Tenant tenant = TenantOf(demand, {.type = device.gpu, .mode = device.mode});
    job.profile_id = tenant.profile_id;  // the same on every device
    job.points.push_back(tenant.point);
  }
  return job;
}

// ---- Reads bundle and pairs, and puts a table of what was measured before the model.

absl::StatusOr<std::shared_ptr<const InterferenceModel>> LoadModel(const InterferenceChoice& choice,
                                                                   const Catalogue& catalogue) {
  if (choice.bundle.empty()) return MakeInterferenceModel(choice.name);
  HORUS_ASSIGN_OR_RETURN(const std::string text, ReadFile(choice.bundle, kMaxBundleBytes));
  const std::span bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  return At(choice.bundle, InterferenceModelFromBundle(bytes, choice.name, catalogue));
}

// Of --slowdown-bound; 0 = the policy's default.
absl::StatusOr<double> ParseBound(const std::string& text) {
  if (text.empty()) return 0;
  if (text == "none") return std::numeric_limits<double>::infinity();
  double bound = 0;
  if (CLI::detail::lexical_cast(text, bound) && bound >= 1) return bound;
  return InvalidArgument("--slowdown-bound: expected a number of at least 1, or none, found %s", Quoted(text));
}

}  // namespace

void AddGpusFileOption(CLI::App& app, std::vector<std::string>& files) {
  AddRepeated(app, "--gpus-file", files, "YAML file with GPU types of your own; may be repeated", "FILE");
}

absl::StatusOr<std::shared_ptr<const Catalogue>> LoadCatalogue(std::span<const std::string> files) {
  std::shared_ptr<const Catalogue> catalogue = Catalogue::Default();
  for (const std::string& file : files) HORUS_SET_OR_RETURN(catalogue, ReadGpuFile(file, *catalogue));
  return catalogue;
}

absl::StatusOr<std::shared_ptr<const Predictor>> LoadPredictor(const std::string& bundle) {
  if (bundle.empty() || bundle == kBuiltinBundle) return Predictor::Default();
  if (bundle == kNoBundle) return Predictor::Prior();
  HORUS_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(bundle, kMaxBundleBytes));
  return At(bundle, Predictor::FromBundle({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}));
}

absl::StatusOr<TrainingSet> LoadTrainingSet(std::span<const std::string> files, std::span<const std::string> without,
                                            const Catalogue& catalogue) {
  std::vector<bool> found(without.size(), false);
  TrainingSet set;
  Progress progress;
  Builder builder(catalogue);
  const std::vector<MeasuredColumn> measured = MeasuredColumns();
  const std::vector<std::string_view> features = FeatureNames();
  for (const std::string& file : files) {
    HORUS_ASSIGN_OR_RETURN(const std::vector<DatasetRow> rows, ReadDataset(file, catalogue, measured, features));
    for (size_t i = 0; i < rows.size(); ++i) {
      progress.Update("analysing rows", i, rows.size());
      bool left_out = false;
      for (size_t w = 0; w < without.size(); ++w) {
        if (rows[i].net != without[w] && rows[i].family != without[w]) continue;
        left_out = found[w] = true;
      }
      if (left_out) continue;
      HORUS_SET_OR_RETURN(set.rows.emplace_back(), builder.Build(rows[i]));
    }
  }
  for (size_t w = 0; w < without.size(); ++w) {
    if (!found[w])
      return InvalidArgument("--without: expected a net or family of the data, found %s", Quoted(without[w]));
  }
  HORUS_RETURN_IF_ERROR(CheckTrainingSet(set));
  return set;
}

void AddPairOptions(CLI::App& app, PairInputs& inputs) {
  AddRepeated(app, "--pairs", inputs.pairs, "Measured pairs (CSV, or Gavel's JSON) in place of --data; may be repeated",
              "FILE");
  AddOption(app, "--jobs", inputs.jobs, "Graphs and runs of the jobs that --pairs names (CSV)", "FILE");
  AddOption(app, "--demands", inputs.demands,
            "What was measured of these jobs alone (CSV), in place of what their graphs predict", "FILE");
}

absl::Status CheckDataOrPairs(const CLI::App& app, std::span<const char* const> only_data,
                              std::span<const char* const> only_pairs) {
  const bool data = app.count("--data") > 0;
  const bool pairs = app.count("--pairs") > 0;
  if (data == pairs) {
    return InvalidArgument(
        "expected one of --data (runs of jobs alone, for demands) and --pairs (runs of two jobs side by side, for "
        "interference), found %s",
        data ? "both" : "neither");
  }
  for (const char* const option : pairs ? only_data : only_pairs) {
    if (app.count(option) == 0) continue;
    return InvalidArgument("%s: expected %s beside it, found %s", option, pairs ? "--data" : "--pairs",
                           pairs ? "--pairs" : "--data");
  }
  if (data || app.count("--jobs") > 0) return absl::OkStatus();
  return InvalidArgument("--pairs: expected --jobs with the graphs of the jobs that it names, found none");
}

PairTrainOptions PairOptionsOf(const CLI::App& app, double promise, uint32_t seed) {
  PairTrainOptions options;
  if (app.count("--promise") > 0) options.promise = promise;
  options.fit.seed = seed;
  return options;
}

absl::StatusOr<LoadedPairs> LoadPairSet(const PairInputs& inputs, std::shared_ptr<const Catalogue> catalogue,
                                        std::shared_ptr<const Predictor> predictor) {
  HORUS_ASSIGN_OR_RETURN(std::vector<TableJob> jobs, ReadJobTable(inputs.jobs));
  if (!inputs.demands.empty()) HORUS_RETURN_IF_ERROR(ReadTableDemands(inputs.demands, *catalogue, jobs));
  PairsReader reader(*catalogue, VectorOf<std::string>(jobs, &TableJob::name));
  for (const std::string& file : inputs.pairs) HORUS_RETURN_IF_ERROR(reader.Read(file));

  LoadedPairs loaded{.catalogue = catalogue, .set = {}, .skipped = reader.skipped()};
  const std::vector<Device> devices = AddDevices(reader.pairs(), *catalogue, loaded.set);
  std::set<std::string_view> named;
  NamedOn named_on;
  for (const NamedPair& pair : reader.pairs()) {
    named.insert({pair.job_a, pair.job_b});
    named_on.insert({{pair.job_a, pair.gpu}, {pair.job_b, pair.gpu}});
  }
  DemandShelf shelf(catalogue, std::move(predictor));
  std::map<std::string_view, uint32_t> positions;
  Progress progress;
  for (const TableJob& job : jobs) {
    if (!named.contains(job.name)) continue;
    progress.Update("analysing jobs:", loaded.set.jobs.size(), named.size());
    HORUS_ASSIGN_OR_RETURN(PairJob made, MakeJob(job, devices, *catalogue, named_on, shelf));
    positions.emplace(job.name, static_cast<uint32_t>(loaded.set.jobs.size()));
    loaded.set.jobs.push_back(std::move(made));
  }
  for (size_t i = 0; i < reader.pairs().size(); ++i) {
    loaded.set.runs[i].job_a = positions.at(reader.pairs()[i].job_a);
    loaded.set.runs[i].job_b = positions.at(reader.pairs()[i].job_b);
  }
  HORUS_RETURN_IF_ERROR(CheckPairSet(loaded.set));
  return loaded;
}

absl::StatusOr<LoadedPairs> LoadPairSet(const PairInputs& inputs) {
  HORUS_ASSIGN_OR_RETURN(std::shared_ptr<const Catalogue> catalogue, LoadCatalogue(inputs.gpus_files));
  HORUS_ASSIGN_OR_RETURN(std::shared_ptr<const Predictor> predictor, LoadPredictor(inputs.bundle));
  return LoadPairSet(inputs, std::move(catalogue), std::move(predictor));
}

std::string SkippedText(const PairsSkipped& skipped) {
  std::string text;
  const auto add = [&text](size_t count, const char* why) {
    if (count > 0) absl::StrAppendFormat(&text, "left out: %d entries %s\n", count, why);
  };
  add(skipped.apart, "of jobs that did not run together");
  add(skipped.no_alone, "of jobs without a speed alone");
  add(skipped.several, "of jobs on several GPUs");
  return text;
}

void AddInterferenceOptions(CLI::App& app, InterferenceChoice& choice) {
  AddOption(app, "--interference", choice.name, Listed(InterferenceModelNames()), "NAME")->capture_default_str();
  AddOption(app, "--interference-bundle", choice.bundle,
            "Trained by horus train --pairs: its models in place of the built-in ones", "FILE");
  auto* pairs =
      AddRepeated(app, "--pairs", choice.pairs,
                  "Measured pairs (CSV, or Gavel's JSON): they answer where they measured; may be repeated", "FILE");
  AddOption(app, "--pair-jobs", choice.pair_jobs, "Graphs and runs of the jobs that --pairs names (CSV)", "FILE")
      ->needs(pairs);
}

absl::Status CheckChoice(const InterferenceChoice& choice) {
  if (!choice.pairs.empty() && choice.pair_jobs.empty())
    return InvalidArgument("--pairs: expected --pair-jobs with the graphs of the jobs that it names, found none");
  return choice.bundle.empty() ? MakeInterferenceModel(choice.name).status() : absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const InterferenceModel>> LoadInterference(const InterferenceChoice& choice,
                                                                          std::shared_ptr<const Catalogue> catalogue,
                                                                          std::shared_ptr<const Predictor> predictor) {
  HORUS_ASSIGN_OR_RETURN(auto model, LoadModel(choice, *catalogue));
  if (choice.pairs.empty()) return model;
  HORUS_ASSIGN_OR_RETURN(
      const LoadedPairs pairs,
      LoadPairSet({.pairs = choice.pairs, .gpus_files = {}, .jobs = choice.pair_jobs, .demands = {}, .bundle = {}},
                  catalogue, std::move(predictor)));
  std::fputs(SkippedText(pairs.skipped).c_str(), stderr);
  HORUS_ASSIGN_OR_RETURN(const std::vector<TableEntry> entries, TableEntriesOf(pairs.set, *catalogue));
  if (entries.empty()) return InvalidArgument("--pairs: expected measured pairs, found none");
  return TableModel::Create(entries, std::move(model));
}

void AddPlacerOptions(CLI::App& app, uint8_t told, PlacerOptions& options) {
  const auto add = [&]<typename T>(const PlacerOption<T>& option) {
    const OptionFacts& facts = option.facts;
    if ((facts.told & told) == 0) return absl::OkStatus();
    const std::string flag = "--" + absl::StrReplaceAll(std::string(option.name), {{"_", "-"}});
    T& value = options.*option.field;
    if constexpr (std::is_same_v<T, bool>) {
      app.add_flag(flag, value, facts.text);
    } else if constexpr (std::is_enum_v<T>) {
      const std::vector<std::string> words(facts.words.begin(), facts.words.end());
      const auto set = [&value, words](const std::string& word) {
        value = static_cast<T>(std::ranges::find(words, word) - words.begin());
      };
      app.add_option_function<std::string>(flag, set, facts.text)
          ->check(CLI::IsMember(words))
          ->default_str(words[static_cast<size_t>(value)])
          ->type_name(facts.value);
    } else {
      CLI::Option* added = AddOption(app, flag, value, facts.text, facts.value)->capture_default_str();
      if (std::isfinite(facts.most)) {
        added->check(CLI::Range(static_cast<T>(facts.least), static_cast<T>(facts.most)));
      } else if (facts.least == 0) {
        added->check(CLI::NonNegativeNumber);
      }
    }
    return absl::OkStatus();
  };
  static_cast<void>(VisitPlacerOptions(add));
}

void AddPlacingOptions(CLI::App& app, const std::string& jobs, PlacingOptions& options) {
  AddOption(app, "--cluster", options.cluster, "YAML file with nodes, GPUs and running jobs", "FILE")->required();
  AddOption(app, "--jobs", options.jobs, "YAML file with " + jobs, "FILE")->required();
  AddOption(app, "--policy", options.policy, Listed(PolicyNames()), "NAME")->capture_default_str();
  AddInterferenceOptions(app, options.interference);
  AddOption(app, "--slowdown-bound", options.slowdown_bound,
            "Most that sharing may slow a job that states no bound itself, or none (default: the policy's)", "FACTOR");
  AddPlacerOptions(app, kToldPlacing, options.placer);
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
