// SPDX-License-Identifier: Apache-2.0
// Reads rows of measured runs, naming row, column and unit of what is wrong.
#include "lab/io/dataset_file.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/file.h"
#include "base/format.h"
#include "io/csv_row.h"
#include "lab/io/run_columns.h"

namespace horus {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 28;

// Columns besides the run's, the measured ones and the features; `campaign` and `note` are for people.
constexpr std::array<std::string_view, 5> kColumns = {"net", "gpu", "sharing_mode", "campaign", "note"};
constexpr std::array<std::string_view, 2> kRequired = {"family", "gpu"};

absl::Status ReadGpu(const CsvRow& row, const Catalogue& catalogue, DatasetRow& out) {
  HORUS_ASSIGN_OR_RETURN(const std::string name, row.Label("gpu"));
  if (name.starts_with(kOpaqueGpu) && name.size() > kOpaqueGpu.size()) {
    out.gpu_name = name;
  } else {
    const absl::StatusOr<GpuTypeId> id = catalogue.Find(name);
    if (!id.ok()) {
      return InvalidArgument("%s: gpu: %s (a GPU whose type is not known is written opaque:NAME)", row.where(),
                             std::string(id.status().message()));
    }
    out.gpu = *id;
    out.gpu_name = catalogue.at(*id).name;
  }
  const std::string_view mode = row.Find("sharing_mode");
  if (mode.empty() || mode == "exclusive") return absl::OkStatus();
  return row.Wrong("sharing_mode", "exclusive or blank (a demand is what a job takes of a GPU of its own)", mode);
}

absl::Status ReadMeasured(const CsvRow& row, std::span<const MeasuredColumn> columns, DatasetRow& out) {
  bool any = false;
  for (const MeasuredColumn& column : columns) {
    out.measured.push_back(std::numeric_limits<double>::quiet_NaN());
    if (row.Find(column.name).empty()) continue;
    const std::string expected =
        std::string(column.zero_allowed ? "a number from 0 to " : "a number above 0 and up to ") +
        Formatted("%g", column.most) + " " + std::string(column.unit);
    HORUS_ASSIGN_OR_RETURN(const double value, row.Number(column.name, expected));
    if (value > column.most || value < 0 || (value == 0 && !column.zero_allowed)) {
      return row.Wrong(column.name, expected, row.Find(column.name));
    }
    out.measured.back() = value;
    any = true;
  }
  if (any) return absl::OkStatus();
  std::string names;
  for (const MeasuredColumn& column : columns) names.append(names.empty() ? "" : ", ").append(column.name);
  return InvalidArgument("%s: expected a value in at least one of %s, found none", row.where(), names);
}

absl::Status ReadFeatures(const CsvRow& row, std::span<const std::string_view> names, DatasetRow& out) {
  for (const std::string_view name : names) {
    const std::string column = std::string(kFeaturePrefix) + std::string(name);
    if (row.Find(column).empty()) {
      out.features.push_back(std::numeric_limits<float>::quiet_NaN());
      continue;
    }
    HORUS_ASSIGN_OR_RETURN(const double value, row.Number(column, "a number or blank"));
    out.features.push_back(static_cast<float>(value));
  }
  return absl::OkStatus();
}

absl::StatusOr<DatasetRow> ReadRow(const CsvRow& row, const std::string& file, const Catalogue& catalogue,
                                   std::span<const MeasuredColumn> measured, std::span<const std::string_view> features,
                                   bool has_features) {
  DatasetRow out;
  out.where = row.where();
  HORUS_ASSIGN_OR_RETURN(out.model, ReadModelRun(row, file));
  const std::string_view graph = row.Find("graph");
  if (graph.empty() && !has_features) {
    return row.Wrong("graph", "the path of an ONNX file, since there are no feature columns", graph);
  }
  HORUS_ASSIGN_OR_RETURN(out.net, row.Label("net"));
  if (out.net.empty()) {
    const size_t slash = graph.rfind('/');
    out.net = graph.substr(slash == std::string_view::npos ? 0 : slash + 1);
    if (out.net.ends_with(".onnx")) out.net.resize(out.net.size() - 5);
  }
  if (out.net.empty()) return row.Wrong("net", "a name, since there is no graph to take it from", "");
  HORUS_ASSIGN_OR_RETURN(out.family, ReadFamily(row));
  HORUS_RETURN_IF_ERROR(ReadGpu(row, catalogue, out));
  HORUS_RETURN_IF_ERROR(ReadMeasured(row, measured, out));
  if (graph.empty()) HORUS_RETURN_IF_ERROR(ReadFeatures(row, features, out));
  return out;
}

absl::Status CheckHeader(const CsvTable& table, const std::string& file, std::span<const MeasuredColumn> measured,
                         std::span<const std::string_view> features) {
  HORUS_RETURN_IF_ERROR(CheckRequiredColumns(table, file, kRequired));
  std::vector<std::string_view> known(kRunColumns.begin(), kRunColumns.end());
  known.insert(known.end(), kColumns.begin(), kColumns.end());
  for (const MeasuredColumn& column : measured) known.push_back(column.name);
  const auto has = [](std::span<const std::string_view> names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const std::string_view name : table.header) {
    if (has(known, name)) continue;
    if (name.starts_with(kFeaturePrefix) && has(features, name.substr(kFeaturePrefix.size()))) continue;
    known.push_back("feature.NAME");
    return UnknownColumn(file, name, known);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<DatasetRow>> ParseDataset(const std::string& file, std::string_view text,
                                                     const Catalogue& catalogue,
                                                     std::span<const MeasuredColumn> measured,
                                                     std::span<const std::string_view> features) {
  HORUS_ASSIGN_OR_RETURN(const CsvTable table, ParseCsv(text, file));
  HORUS_RETURN_IF_ERROR(CheckHeader(table, file, measured, features));
  const bool has_features = std::any_of(table.header.begin(), table.header.end(),
                                        [](const std::string& name) { return name.starts_with(kFeaturePrefix); });
  const CsvColumns columns = ColumnsOf(table);
  std::vector<DatasetRow> rows;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    HORUS_ASSIGN_OR_RETURN(DatasetRow row,
                           ReadRow(CsvRow(table, columns, i, file), file, catalogue, measured, features, has_features));
    rows.push_back(std::move(row));
  }
  return rows;
}

absl::StatusOr<std::vector<DatasetRow>> ReadDataset(const std::string& path, const Catalogue& catalogue,
                                                    std::span<const MeasuredColumn> measured,
                                                    std::span<const std::string_view> features) {
  HORUS_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxFileBytes));
  return ParseDataset(path, text, catalogue, measured, features);
}

}  // namespace horus
