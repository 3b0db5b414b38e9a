// SPDX-License-Identifier: Apache-2.0
// horus/lab/train.h, the predictor; and what it holds (memory.h).
#include "horus/lab/train.h"

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capi/args.h"
#include "capi/graph_handles.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/run_convert.h"
#include "capi/structs.h"
#include "horus/lab/memory.h"
#include "lab/capi/train_options.h"
#include "predict/train.h"

namespace horus::capi {
namespace {

constexpr std::string_view kOpaque = "opaque:";

absl::Status CheckColumns(const horus_training_data& c) {
  HORUS_RETURN_IF_ERROR(RequireColumn(c.graphs, "graphs", c.count));
  HORUS_RETURN_IF_ERROR(RequireColumn(c.gpu_types, "gpu_types", c.count));
  return RequireColumn(c.families, "families", c.count);
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
    if (c_.nets != nullptr) {
      HORUS_ASSIGN_OR_RETURN(row.model, ReadText(c_.nets[i], "nets"));
    }
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
      return MakeError(absl::StatusCode::kCancelled, "training: cancelled at row %d of %d", i, c.count);
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
  if (c.rounds != 0) options.rounds = c.rounds == -1 ? 0 : c.rounds;
  if (c.base != nullptr) options.base = c.base->value;
  HORUS_RETURN_IF_ERROR(ReadTrainOptions(c, options.promise, options.seed, options.library_path));
  return options;
}

}  // namespace
}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_predictor_fit(const horus_catalogue* catalogue, const horus_training_data* data,
                                 const horus_training_options* options, horus_progress progress, void* user,
                                 horus_predictor** out, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{out, "out"}}));
    HORUS_ASSIGN_OR_RETURN(const horus_training_data c, ReadStruct(data));
    HORUS_RETURN_IF_ERROR(CheckColumns(c));
    HORUS_ASSIGN_OR_RETURN(const horus::TrainOptions train, OptionsFromC(options));
    const std::shared_ptr<const horus::Catalogue> known = CatalogueOf(catalogue);
    HORUS_ASSIGN_OR_RETURN(const horus::TrainingSet set, RowsFromC(c, *known, progress, user));
    horus::TrainProgress tell;
    if (progress != nullptr) {
      tell = [progress, user](double done) { return progress(user, kRowsShare + (1 - kRowsShare) * done) == 0; };
    }
    HORUS_ASSIGN_OR_RETURN(const horus::Bundle bundle, horus::TrainPredictor(set, train, tell));
    HORUS_ASSIGN_OR_RETURN(auto predictor, horus::Predictor::FromBundle(bundle));
    *out = new horus_predictor(std::move(predictor));
    return absl::OkStatus();
  });
}

horus_status horus_predictor_get_quality(const horus_predictor* predictor, const char* quantity,
                                         horus_prediction_quality* quality, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{predictor, "predictor"}}));
    HORUS_RETURN_IF_ERROR(CheckOutput(quality));
    HORUS_ASSIGN_OR_RETURN(const std::string name, ReadText(quantity, "quantity"));
    const std::optional<horus::Quantity> found = horus::FindQuantity(name);
    if (!found.has_value()) return horus::InvalidArgument("quantity: expected gpu_util_pct, ..., found %s", name);
    const horus::TargetModel* model = predictor->value->FindModel(*found);
    if (model == nullptr) return absl::NotFoundError("quantity: " + name + " is predicted by the roofline alone");
    horus_prediction_quality c = HORUS_PREDICTION_QUALITY_INIT;
    c.promised = model->promised;
    c.observed = model->observed;
    c.rows = std::llround(model->rows);
    c.families = std::llround(model->groups);
    c.gpu_types = static_cast<int64_t>(model->gpus.size());
    c.trees = static_cast<int64_t>(model->forest.num_trees());
    WriteStruct(c, quality);
    return absl::OkStatus();
  });
}

uint64_t horus_predictor_bytes_held(const horus_predictor* predictor) {
  return predictor == nullptr ? 0 : predictor->bytes_held();
}
