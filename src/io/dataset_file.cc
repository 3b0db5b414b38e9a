// SPDX-License-Identifier: Apache-2.0
// Reads rows of measured runs, naming row, column and unit of what is wrong.
#include "io/dataset_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/text.h"
#include "io/csv.h"
#include "io/file.h"

namespace horus {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 28;
constexpr size_t kMaxNameBytes = 60;  // as CheckTrainingSet
constexpr int64_t kMaxCount = std::numeric_limits<int32_t>::max();

// Columns besides the measured ones and the features; `campaign` and `note` are for people.
constexpr std::array<std::string_view, 15> kColumns = {
    "graph",    "net",       "family",       "batch",     "dims",
    "mode",     "precision", "optimizer",    "framework", "checkpoint_segments",
    "replicas", "gpu",       "sharing_mode", "campaign",  "note"};
constexpr std::array<std::string_view, 2> kRequired = {"family", "gpu"};

using ColumnIndex = std::map<std::string_view, size_t>;  // header name -> field

class Row {
 public:
  Row(const CsvTable& table, const ColumnIndex& columns, size_t index, const std::string& file)
      : columns_(columns), fields_(table.rows[index]), where_(file + ": row " + std::to_string(index + 1)) {}

  [[nodiscard]] const std::string& where() const { return where_; }

  // Blank where the column is absent.
  [[nodiscard]] std::string_view Find(std::string_view column) const {
    const auto at = columns_.find(column);
    return at == columns_.end() ? std::string_view() : Trimmed(fields_[at->second]);
  }

  [[nodiscard]] absl::Status Wrong(std::string_view column, std::string_view expected, std::string_view found) const {
    return InvalidArgument("%s: %s: expected %s, found %s", where_, std::string(column), std::string(expected),
                           Quoted(found));
  }

  absl::StatusOr<double> Number(std::string_view column, std::string_view expected) const {
    const std::string_view text = Find(column);
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
      return Wrong(column, expected, text);
    }
    return value;
  }

  absl::Status ReadCount(std::string_view column, int64_t least, int64_t& out) const {
    const std::string_view text = Find(column);
    if (text.empty()) return absl::OkStatus();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < least || value > kMaxCount) {
      return Wrong(column, "a whole number from " + std::to_string(least) + " to " + std::to_string(kMaxCount), text);
    }
    out = value;
    return absl::OkStatus();
  }

  template <typename Enum>
  absl::Status ReadName(std::string_view column, absl::StatusOr<Enum> (*parse)(std::string_view), Enum& out) const {
    const std::string_view text = Find(column);
    if (text.empty()) return absl::OkStatus();
    const absl::StatusOr<Enum> value = parse(text);
    if (!value.ok()) return MakeError(value.status().code(), "%s: %s", where_, std::string(value.status().message()));
    out = *value;
    return absl::OkStatus();
  }

 private:
  static std::string_view Trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
  }

  const ColumnIndex& columns_;
  const std::vector<std::string>& fields_;
  std::string where_;
};

// "seq=128; tgt_seq=32"
absl::Status ReadDims(const Row& row, DimBindings& dims) {
  std::string_view rest = row.Find("dims");
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(';'), rest.size());
    std::string_view one = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    while (!one.empty() && one.front() == ' ') one.remove_prefix(1);
    while (!one.empty() && one.back() == ' ') one.remove_suffix(1);
    if (one.empty()) continue;
    const size_t equals = one.find('=');
    int64_t size = 0;
    const bool named = equals != std::string_view::npos && equals > 0;
    const std::string_view number = named ? one.substr(equals + 1) : std::string_view();
    const auto [stop, error] = std::from_chars(number.data(), number.data() + number.size(), size);
    if (!named || error != std::errc() || stop != number.data() + number.size() || size < 1 || size > kMaxCount) {
      return row.Wrong("dims", "NAME=SIZE;NAME=SIZE with sizes from 1", one);
    }
    dims.dims.emplace_back(std::string(one.substr(0, equals)), size);
  }
  return absl::OkStatus();
}

absl::Status ReadGpu(const Row& row, const Catalogue& catalogue, DatasetRow& out) {
  const std::string_view name = row.Find("gpu");
  if (name.starts_with(kOpaqueGpu) && name.size() > kOpaqueGpu.size()) {
    out.gpu_name = std::string(name);
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

absl::Status ReadMeasured(const Row& row, std::span<const MeasuredColumn> columns, DatasetRow& out) {
  bool any = false;
  for (const MeasuredColumn& column : columns) {
    out.measured.push_back(std::numeric_limits<double>::quiet_NaN());
    if (row.Find(column.name).empty()) continue;
    const std::string expected =
        std::string(column.zero_allowed ? "a number from 0 to " : "a number above 0 and up to ") +
        absl::StrFormat("%g", column.most) + " " + std::string(column.unit);
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

absl::Status ReadFeatures(const Row& row, std::span<const std::string_view> names, DatasetRow& out) {
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

absl::StatusOr<DatasetRow> ReadRow(const Row& row, const std::string& file, const Catalogue& catalogue,
                                   std::span<const MeasuredColumn> measured, std::span<const std::string_view> features,
                                   bool has_features) {
  DatasetRow out;
  out.where = row.where();
  if (row.Find("graph").size() > kMaxPathBytes)
    return row.Wrong("graph", "a path of at most 4096 bytes", row.Find("graph"));
  for (const std::string_view column : {"net", "family", "gpu"}) {
    const std::string_view name = row.Find(column);
    const bool printable = std::all_of(name.begin(), name.end(), [](char c) { return c >= ' ' && c <= '~'; });
    if (name.size() <= kMaxNameBytes && printable) continue;
    return row.Wrong(column, "at most 60 printable ASCII characters", name);
  }
  const std::string_view graph = row.Find("graph");
  if (graph.empty() && !has_features) {
    return row.Wrong("graph", "the path of an ONNX file, since there are no feature columns", graph);
  }
  if (!graph.empty()) out.model.path = PathBeside(file, std::string(graph));
  out.net = row.Find("net");
  if (out.net.empty()) {
    const size_t slash = graph.rfind('/');
    out.net = graph.substr(slash == std::string_view::npos ? 0 : slash + 1);
    if (out.net.ends_with(".onnx")) out.net.resize(out.net.size() - 5);
  }
  if (out.net.empty()) return row.Wrong("net", "a name, since there is no graph to take it from", "");
  out.family = row.Find("family");
  if (out.family.empty()) return row.Wrong("family", "the name of the model family", "");
  RunSpec& run = out.model.run;
  HORUS_RETURN_IF_ERROR(row.ReadCount("batch", 1, run.dims.batch));
  HORUS_RETURN_IF_ERROR(ReadDims(row, run.dims));
  HORUS_RETURN_IF_ERROR(row.ReadName("mode", ParseRunMode, run.mode));
  HORUS_RETURN_IF_ERROR(row.ReadName("precision", ParsePrecision, run.precision));
  HORUS_RETURN_IF_ERROR(row.ReadName("optimizer", ParseOptimizer, run.optimizer));
  HORUS_RETURN_IF_ERROR(row.ReadName("framework", ParseFramework, run.framework));
  HORUS_RETURN_IF_ERROR(row.ReadCount("checkpoint_segments", 0, run.checkpoint_segments));
  HORUS_RETURN_IF_ERROR(row.ReadCount("replicas", 1, run.data_parallel));
  HORUS_RETURN_IF_ERROR(ReadGpu(row, catalogue, out));
  HORUS_RETURN_IF_ERROR(ReadMeasured(row, measured, out));
  if (graph.empty()) HORUS_RETURN_IF_ERROR(ReadFeatures(row, features, out));
  return out;
}

absl::Status CheckHeader(const CsvTable& table, const std::string& file, std::span<const MeasuredColumn> measured,
                         std::span<const std::string_view> features) {
  const auto has = [&table](std::string_view name) {
    return std::find(table.header.begin(), table.header.end(), name) != table.header.end();
  };
  for (const std::string_view name : kRequired) {
    if (!has(name)) return InvalidArgument("%s: header: expected a column %s, found none", file, std::string(name));
  }
  for (const std::string& name : table.header) {
    bool known = std::find(kColumns.begin(), kColumns.end(), name) != kColumns.end();
    known = known || std::any_of(measured.begin(), measured.end(), [&](const auto& m) { return m.name == name; });
    if (!known && name.starts_with(kFeaturePrefix)) {
      const std::string_view feature = std::string_view(name).substr(kFeaturePrefix.size());
      known = std::find(features.begin(), features.end(), feature) != features.end();
    }
    if (known) continue;
    std::string all;
    for (const std::string_view column : kColumns) all.append(column).append(", ");
    for (const MeasuredColumn& column : measured) all.append(column.name).append(", ");
    return InvalidArgument("%s: header: expected one of %sfeature.NAME, found %s", file, all, Quoted(name));
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
  ColumnIndex columns;
  for (size_t i = 0; i < table.header.size(); ++i) columns.emplace(table.header[i], i);
  std::vector<DatasetRow> rows;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    HORUS_ASSIGN_OR_RETURN(DatasetRow row,
                           ReadRow(Row(table, columns, i, file), file, catalogue, measured, features, has_features));
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
