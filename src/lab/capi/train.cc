// SPDX-License-Identifier: Apache-2.0
// horus/lab/features.h and train.h: what one step costs, the feature row and its schema; interference models and
// predictors trained on a caller's columns, and what a predictor holds (memory.h).
#include "horus/lab/train.h"

#include <array>
#include <cmath>

#include "capi/convert.h"
#include "capi/graph_handles.h"
#include "capi/handles.h"
#include "features/feature_row.h"
#include "horus/lab/features.h"
#include "horus/lab/memory.h"
#include "interference/learned_model.h"
#include "lab/models/train_pairs.h"
#include "predict/train.h"

namespace horus::capi {
namespace {

// ---- horus/lab/features.h

// Whole number nearest to an amount; the largest one for amounts beyond 64 bits.
int64_t Whole(double amount) {
  constexpr double kLimit = 9.2e18;  // below 2^63
  return amount >= kLimit ? std::numeric_limits<int64_t>::max() : std::llround(amount);
}

horus_step_cost CostToC(const JobProfile& profile) {
  const CostTotals& totals = profile.cost.totals;
  const StepMemory& memory = profile.memory;
  horus_step_cost c = HORUS_STEP_COST_INIT;
  c.parameters = Whole(profile.cost.parameters);
  c.forward_flops = totals.forward.flops;
  c.forward_flops_other = totals.forward.flops_other;
  c.training_flops = totals.forward.flops + totals.backward.flops;
  c.horus_flops = totals.horus_flops;
  c.step_bytes = profile.cost.StepBytes();
  c.kernels = Whole(profile.cost.StepKernels());
  c.operators = static_cast<int64_t>(profile.shaped->ops.size());
  c.operators_unknown = profile.cost.coverage.ops - profile.cost.coverage.ops_known;
  c.weights_bytes = memory.weights;
  c.gradients_bytes = memory.gradients;
  c.optimizer_bytes = memory.optimizer + memory.master_weights;
  c.activations_bytes = memory.activations;
  c.workspace_bytes = memory.buckets + memory.inputs + memory.transient + memory.workspace + memory.loaded_kernels +
                      memory.allocator_slack;
  c.horus_memory_bytes = memory.horus;
  return c;
}

absl::StatusOr<JobProfile> ProfileOf(const horus_graph* graph, const horus_run_spec* given) {
  HORUS_RETURN_IF_ERROR(Require({{graph, "graph"}}));
  HORUS_ASSIGN_OR_RETURN(const RunSpec run, RunFromC(given));
  return Analyse(graph->value, run);
}

// Column `index` of the schema; null past the end.
const FeatureColumn* ColumnAt(size_t index) {
  const std::span<const FeatureColumn> columns = JobFeatureColumns();
  return index < columns.size() ? &columns[index] : nullptr;
}

// ---- What the options of every training say alike, from their C structs.

template <typename COptions>
[[nodiscard]] absl::Status ReadTrainOptions(const COptions& c, double& promise, uint32_t& seed,
                                            std::string& library_path) {
  HORUS_ASSIGN_OR_RETURN(library_path, ReadOptionalText(c.library_path, "library_path"));
  if (c.promise != 0) promise = c.promise;
  seed = c.seed;
  return absl::OkStatus();
}

// ---- horus/lab/train.h: interference models trained on a caller's columns.

absl::Status CheckColumns(const horus_pair_data& c) {
  HORUS_RETURN_IF_ERROR(RequireColumn(c.gpu_types, "gpu_types", c.device_count));
  HORUS_RETURN_IF_ERROR(RequireColumn(c.families, "families", c.job_count));
  if (c.device_count > kMostPairDevices || c.job_count > kMostPairJobs || c.count > kMostPairRuns) {
    return ResourceExhausted("horus_pair_data: expected at most %d devices, %d jobs and %d runs, found %d, %d and %d",
                             kMostPairDevices, kMostPairJobs, kMostPairRuns, c.device_count, c.job_count, c.count);
  }
  // Bounded: CheckColumns: at most kMostPairDevices times kMostPairJobs.
  HORUS_RETURN_IF_ERROR(RequireColumn(c.demands, "demands", c.device_count * c.job_count));
  return RequireColumns(c.count, {{c.devices, "devices"},
                                  {c.jobs_a, "jobs_a"},
                                  {c.jobs_b, "jobs_b"},
                                  {c.slowdown_a, "slowdown_a"},
                                  {c.slowdown_b, "slowdown_b"}});
}

absl::Status AddDevices(const horus_pair_data& c, const Catalogue& types, PairSet& set) {
  for (size_t d = 0; d < c.device_count; ++d) {
    HORUS_ASSIGN_OR_RETURN(const std::string name, ReadText(c.gpu_types[d], "gpu_types"));
    HORUS_ASSIGN_OR_RETURN(const GpuTypeId type, types.Find(name));
    PairDevice device{.gpu = types.at(type).name};
    HORUS_ASSIGN_OR_RETURN(device.mode, SharingOrTimeSlice(c.sharing_modes, d));
    set.devices.push_back(std::move(device));
  }
  return absl::OkStatus();
}

absl::StatusOr<PairJob> JobFromC(const horus_pair_data& c, size_t index, const Catalogue& types, const PairSet& set) {
  PairJob job{.name = Element("job", index)};
  HORUS_ASSIGN_OR_RETURN(job.family, ReadText(c.families[index], "families"));
  for (size_t d = 0; d < c.device_count; ++d) {
    // Bounded: CheckColumns: at most kMostPairDevices times kMostPairJobs.
    HORUS_ASSIGN_OR_RETURN(const Demand demand, DemandFromC(c.demands[index * c.device_count + d]));
    if (d > 0 && demand.profile_id != job.profile_id) {
      // Bounded: CheckColumns: at most kMostPairDevices times kMostPairJobs.
      return InvalidArgument("demands[%d]: profile_id: expected that of the job's other demands, %d, found %d",
                             index * c.device_count + d, job.profile_id, demand.profile_id);
    }
    job.profile_id = demand.profile_id;
    HORUS_ASSIGN_OR_RETURN(const GpuTypeId type, types.Find(set.devices[d].gpu));
    job.points.push_back(TenantOf(demand, {.type = type, .mode = set.devices[d].mode}).point);
  }
  return job;
}

absl::StatusOr<PairSet> SetFromC(const horus_pair_data* given, const Catalogue& types) {
  HORUS_ASSIGN_OR_RETURN(const horus_pair_data c, ReadStruct(given));
  HORUS_RETURN_IF_ERROR(CheckColumns(c));
  PairSet set;
  HORUS_RETURN_IF_ERROR(AddDevices(c, types, set));
  for (size_t i = 0; i < c.job_count; ++i) {
    absl::StatusOr<PairJob> job = JobFromC(c, i, types, set);
    if (!job.ok()) return At(Element("job", i), job.status());
    set.jobs.push_back(*std::move(job));
  }
  for (size_t i = 0; i < c.count; ++i) {
    PairRun run{.device = c.devices[i],
                .job_a = c.jobs_a[i],
                .job_b = c.jobs_b[i],
                .slowdown_a = c.slowdown_a[i],
                .slowdown_b = c.slowdown_b[i],
                .where = Element("row", i)};
    if (c.campaigns != nullptr) HORUS_SET_OR_RETURN(run.campaign, ReadOptionalText(c.campaigns[i], "campaigns"));
    set.runs.push_back(std::move(run));
  }
  return set;
}

absl::StatusOr<PairTrainOptions> OptionsFromC(const horus_pair_options* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_pair_options c, ReadOptionalStruct(given));
  PairTrainOptions options;
  HORUS_RETURN_IF_ERROR(ReadTrainOptions(c, options.promise, options.fit.seed, options.fit.library_path));
  HORUS_ASSIGN_OR_RETURN(std::string model, ReadOptionalText(c.model, "model"));
  options.kinds = {model.empty() ? std::string(kDefaultInterferenceModel) : std::move(model)};
  return options;
}

constexpr std::string_view kOpaque = "opaque:";

absl::Status CheckColumns(const horus_training_data& c) {
  return RequireColumns(c.count, {{c.graphs, "graphs"}, {c.gpu_types, "gpu_types"}, {c.families, "families"}});
}

// In the order of Quantity; null = not measured.
std::array<const double*, kQuantityCount> MeasuredColumns(const horus_training_data& c) {
  std::array<const double*, kQuantityCount> columns = {};
  columns[static_cast<size_t>(Quantity::kGpuUtil)] = c.gpu_util_pct;
  columns[static_cast<size_t>(Quantity::kGpuUtilMax)] = c.gpu_util_max_pct;
  columns[static_cast<size_t>(Quantity::kMemBwUtil)] = c.mem_bw_util_pct;
  columns[static_cast<size_t>(Quantity::kMemory)] = c.mem_mib;
  columns[static_cast<size_t>(Quantity::kStepTime)] = c.step_time_us;
  columns[static_cast<size_t>(Quantity::kPower)] = c.power_w;
  return columns;
}

// Rows one after another; a graph and run that follow themselves are analysed once.
class RowReader {
 public:
  RowReader(const horus_training_data& c, const Catalogue& catalogue) : c_(c), catalogue_(catalogue) {}

  absl::StatusOr<TrainingRow> Read(size_t i) {
    TrainingRow row;
    row.where = Element("row", i);
    HORUS_ASSIGN_OR_RETURN(row.family, ReadText(c_.families[i], "families"));
    row.model = row.family;
    if (c_.nets != nullptr) HORUS_SET_OR_RETURN(row.model, ReadText(c_.nets[i], "nets"));
    HORUS_ASSIGN_OR_RETURN(row.gpu, ReadText(c_.gpu_types[i], "gpu_types"));
    const GpuType* gpu = nullptr;
    if (!row.gpu.starts_with(kOpaque) || row.gpu.size() == kOpaque.size()) {
      HORUS_ASSIGN_OR_RETURN(const GpuTypeId type, catalogue_.Find(row.gpu));
      gpu = &catalogue_.at(type);
      row.gpu = gpu->name;
    }
    HORUS_RETURN_IF_ERROR(Analyse(i));
    Describe(job_, gpu, row);
    const auto measured = MeasuredColumns(c_);
    for (size_t q = 0; q < kQuantityCount; ++q) {
      if (measured[q] != nullptr) row.measured[q] = measured[q][i];
    }
    return row;
  }

 private:
  absl::Status Analyse(size_t i) {
    HORUS_RETURN_IF_ERROR(Require({{c_.graphs[i], "graphs"}}));
    HORUS_ASSIGN_OR_RETURN(RunSpec run, RunFromC(c_.runs == nullptr ? nullptr : c_.runs[i]));
    if (graph_ == c_.graphs[i] && run == run_) return absl::OkStatus();
    HORUS_ASSIGN_OR_RETURN(job_, horus::Analyse(c_.graphs[i]->value, run));
    graph_ = c_.graphs[i];
    run_ = std::move(run);
    return absl::OkStatus();
  }

  const horus_training_data& c_;
  const Catalogue& catalogue_;
  const horus_graph* graph_ = nullptr;  // of job_
  RunSpec run_;
  JobProfile job_;
};

constexpr double kRowsShare = 0.2;  // of the work, for the progress

absl::StatusOr<TrainingSet> RowsFromC(const horus_training_data& c, const Catalogue& catalogue, horus_progress progress,
                                      void* user) {
  TrainingSet set;
  RowReader reader(c, catalogue);
  for (size_t i = 0; i < c.count; ++i) {
    if (progress != nullptr &&
        progress(user, kRowsShare * static_cast<double>(i) / static_cast<double>(c.count)) != 0) {
      return Cancelled("training: cancelled at row %d of %d", i, c.count);
    }
    absl::StatusOr<TrainingRow> row = reader.Read(i);
    if (!row.ok()) return At(Element("row", i), row.status());
    set.rows.push_back(*std::move(row));
  }
  return set;
}

absl::StatusOr<TrainOptions> OptionsFromC(const horus_training_options* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_training_options c, ReadOptionalStruct(given));
  TrainOptions options;
  SetAmount(options.rounds, c.rounds);
  if (c.base != nullptr) options.base = c.base->value;
  HORUS_RETURN_IF_ERROR(ReadTrainOptions(c, options.promise, options.seed, options.library_path));
  return options;
}

}  // namespace
}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_graph_cost(const horus_graph* graph, const horus_run_spec* run, horus_step_cost* cost,
                              horus_error* error) {
  return Guard(error, [&] {
    HORUS_RETURN_IF_ERROR(CheckOutput(cost));
    HORUS_ASSIGN_OR_RETURN(const JobProfile profile, ProfileOf(graph, run));
    WriteStruct(CostToC(profile), cost);
    return absl::OkStatus();
  });
}

horus_status horus_graph_features(const horus_graph* graph, const horus_run_spec* run, size_t capacity, float* values,
                                  size_t* count, horus_error* error) {
  return Guard(error, {{count, "count"}}, [&] {
    HORUS_RETURN_IF_ERROR(RequireColumn(values, "values", capacity));
    HORUS_ASSIGN_OR_RETURN(const JobProfile profile, ProfileOf(graph, run));
    HORUS_ASSIGN_OR_RETURN(const size_t rows, RowsToWrite(profile.features.size(), capacity, count));
    std::copy_n(profile.features.begin(), rows, values);
    *count = profile.features.size();
    return absl::OkStatus();
  });
}

size_t horus_feature_count(void) { return JobFeatureColumns().size(); }

// The texts are literals, so data() is ended by NUL.
const char* horus_feature_name(size_t index) {
  const FeatureColumn* column = ColumnAt(index);
  return column == nullptr ? nullptr : column->name.data();
}

const char* horus_feature_unit(size_t index) {
  const FeatureColumn* column = ColumnAt(index);
  return column == nullptr ? nullptr : column->unit.data();
}

const char* horus_feature_definition(size_t index) {
  const FeatureColumn* column = ColumnAt(index);
  return column == nullptr ? nullptr : column->definition.data();
}

uint64_t horus_feature_schema_hash(void) { return FeatureSchemaHash(); }

// ---- horus/lab/train.h

horus_status horus_interference_fit(const horus_catalogue* catalogue, const horus_pair_data* data,
                                    const horus_pair_options* options, horus_progress progress, void* user,
                                    horus_interference** out, horus_error* error) {
  return Guard(error, {{out, "out"}}, [&] {
    auto types = CatalogueOf(catalogue);
    HORUS_ASSIGN_OR_RETURN(const PairTrainOptions train, OptionsFromC(options));
    HORUS_ASSIGN_OR_RETURN(const PairSet set, SetFromC(data, *types));
    PairProgress tell;
    if (progress != nullptr) tell = [progress, user](double done) { return progress(user, done) == 0; };
    HORUS_ASSIGN_OR_RETURN(const Bundle bundle, TrainInterference(set, train, tell));
    HORUS_ASSIGN_OR_RETURN(auto model, LearnedModel::Create(bundle, train.kinds[0], *types));
    HORUS_ASSIGN_OR_RETURN(std::string bytes, WriteBundle(bundle));
    return Give(new horus_interference{std::move(model), std::move(types), std::move(bytes)}, out);
  });
}

horus_status horus_predictor_fit(const horus_catalogue* catalogue, const horus_training_data* data,
                                 const horus_training_options* options, horus_progress progress, void* user,
                                 horus_predictor** out, horus_error* error) {
  return Guard(error, {{out, "out"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(const horus_training_data c, ReadStruct(data));
    HORUS_RETURN_IF_ERROR(CheckColumns(c));
    HORUS_ASSIGN_OR_RETURN(const TrainOptions train, OptionsFromC(options));
    const std::shared_ptr<const Catalogue> known = CatalogueOf(catalogue);
    HORUS_ASSIGN_OR_RETURN(const TrainingSet set, RowsFromC(c, *known, progress, user));
    TrainProgress tell;
    if (progress != nullptr)
      tell = [progress, user](double done) { return progress(user, kRowsShare + (1 - kRowsShare) * done) == 0; };
    HORUS_ASSIGN_OR_RETURN(const Bundle bundle, TrainPredictor(set, train, tell));
    HORUS_ASSIGN_OR_RETURN(auto predictor, Predictor::FromBundle(bundle));
    return Give(new horus_predictor(std::move(predictor)), out);
  });
}

horus_status horus_predictor_get_quality(const horus_predictor* predictor, const char* quantity,
                                         horus_prediction_quality* quality, horus_error* error) {
  return Guard(error, {{predictor, "predictor"}}, [&] {
    HORUS_RETURN_IF_ERROR(CheckOutput(quality));
    HORUS_ASSIGN_OR_RETURN(const std::string name, ReadText(quantity, "quantity"));
    const std::optional<Quantity> found = FindQuantity(name);
    if (!found.has_value()) return InvalidArgument("quantity: expected gpu_util_pct, ..., found %s", name);
    const TargetModel* model = predictor->value->FindModel(*found);
    if (model == nullptr) return absl::NotFoundError("quantity: " + name + " is predicted by the roofline alone");
    horus_prediction_quality c = HORUS_PREDICTION_QUALITY_INIT;
    c.promised = model->promised;
    c.observed = model->observed;
    c.rows = std::llround(model->rows);
    c.families = std::llround(model->groups);
    c.gpu_types =
        std::ranges::count_if(model->gpus, [](const auto& gpu) { return !gpu.first.starts_with(kChipPrefix); });
    c.trees = static_cast<int64_t>(model->forest.num_trees());
    WriteStruct(c, quality);
    return absl::OkStatus();
  });
}

uint64_t horus_predictor_bytes_held(const horus_predictor* predictor) {
  return predictor == nullptr ? 0 : predictor->bytes_held();
}
