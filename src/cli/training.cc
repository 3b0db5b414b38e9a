// SPDX-License-Identifier: Apache-2.0
// Analyses the graphs of a dataset and places every row on its GPU type.
#include "cli/training.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "cli/progress.h"
#include "features/feature_row.h"
#include "graph/reader.h"
#include "lab/io/dataset_file.h"
#include "predict/predictor.h"
#include "predict/quantity.h"

namespace horus::cli {
namespace {

std::vector<MeasuredColumn> MeasuredColumns() {
  std::vector<MeasuredColumn> columns;
  for (const QuantityInfo& info : kQuantities) {
    columns.push_back({info.name, info.unit, info.most, info.link == Link::kExpm1});
  }
  return columns;
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
    std::shared_ptr<const Graph>& graph = graphs_[from.model.path];
    if (graph == nullptr) {
      absl::StatusOr<std::shared_ptr<const Graph>> read = ReadOnnxFile(from.model.path);
      if (!read.ok())
        return MakeError(read.status().code(), "%s: graph: %s", from.where, std::string(read.status().message()));
      graph = *std::move(read);
    }
    absl::StatusOr<JobProfile> job = Analyse(graph, from.model.run);
    if (!job.ok()) return MakeError(job.status().code(), "%s: %s", from.where, std::string(job.status().message()));
    job_ = std::make_unique<const JobProfile>(*std::move(job));
    last_ = from.model;
    return job_.get();
  }

  const Catalogue& catalogue_;
  std::map<std::string, std::shared_ptr<const Graph>> graphs_;
  std::unique_ptr<const JobProfile> job_;
  ModelRun last_;
};

}  // namespace

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
      HORUS_ASSIGN_OR_RETURN(TrainingRow row, builder.Build(rows[i]));
      set.rows.push_back(std::move(row));
    }
  }
  for (size_t w = 0; w < without.size(); ++w) {
    if (!found[w])
      return InvalidArgument("--without: expected a net or family of the data, found %s", Quoted(without[w]));
  }
  HORUS_RETURN_IF_ERROR(CheckTrainingSet(set));
  return set;
}

}  // namespace horus::cli
