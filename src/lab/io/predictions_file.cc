// SPDX-License-Identifier: Apache-2.0
// Writes and reads predicted slowdowns, and makes a model of them.
#include "lab/io/predictions_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/file.h"
#include "base/format.h"
#include "interference/table_model.h"
#include "io/csv.h"
#include "io/csv_row.h"

namespace horus {
namespace {

constexpr size_t kMaxPredictedBytes = size_t{1} << 28;
constexpr std::array<std::string_view, 6> kColumns = {"gpu", "sharing_mode", "victim", "other", "slowdown", "bound"};

absl::StatusOr<double> SlowdownIn(const CsvRow& row, std::string_view column, double least) {
  const std::string expected = Formatted("a slowdown from %.6g to %.6g", least, kMostMeasuredSlowdown);
  HORUS_ASSIGN_OR_RETURN(const double value, row.Number(column, expected));
  if (value >= least && value <= kMostMeasuredSlowdown) return value;
  return row.Wrong(column, expected, row.Find(column));
}

absl::StatusOr<PredictedPair> ReadRow(const CsvRow& row) {
  PredictedPair pair{.gpu = std::string(row.Find("gpu")),
                     .victim = std::string(row.Find("victim")),
                     .other = std::string(row.Find("other")),
                     .bound = std::numeric_limits<double>::quiet_NaN()};
  for (const std::string_view column : {"gpu", "victim", "other", "sharing_mode"}) {
    if (row.Find(column).empty()) return row.Wrong(column, "a name", "");
  }
  HORUS_RETURN_IF_ERROR(row.ReadName("sharing_mode", ParseSharingMode, pair.mode));
  HORUS_ASSIGN_OR_RETURN(pair.slowdown, SlowdownIn(row, "slowdown", 1));
  if (!row.Find("bound").empty()) {
    HORUS_ASSIGN_OR_RETURN(pair.bound, SlowdownIn(row, "bound", pair.slowdown));
  }
  return pair;
}

}  // namespace

std::string PredictedText(std::span<const PredictedPair> rows) {
  std::string text = "gpu,sharing_mode,victim,other,slowdown,bound\n";
  for (const PredictedPair& row : rows) {
    const std::string bound = std::isnan(row.bound) ? "" : Formatted("%.9g", row.bound);
    AppendFormatted(&text, "%s,%s,%s,%s,%.9g,%s\n", row.gpu, std::string(SharingModeName(row.mode)),
                    CsvField(row.victim), CsvField(row.other), row.slowdown, bound);
  }
  return text;
}

absl::StatusOr<std::vector<PredictedPair>> ParsePredicted(const std::string& file, std::string_view text) {
  HORUS_ASSIGN_OR_RETURN(const CsvTable table, ParseCsv(text, file));
  HORUS_RETURN_IF_ERROR(CheckColumns(table, file, std::span(kColumns).first<5>(), kColumns));
  const CsvColumns columns = ColumnsOf(table);
  std::vector<PredictedPair> rows;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    HORUS_ASSIGN_OR_RETURN(PredictedPair row, ReadRow(CsvRow(table, columns, i, file)));
    rows.push_back(std::move(row));
  }
  return rows;
}

absl::StatusOr<std::vector<PredictedPair>> ReadPredicted(const std::string& path) {
  HORUS_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxPredictedBytes));
  return ParsePredicted(path, text);
}

absl::StatusOr<std::shared_ptr<const InterferenceModel>> ModelOfPredicted(
    std::span<const PredictedPair> rows, const std::map<std::string, uint64_t>& jobs, const Catalogue& catalogue,
    std::shared_ptr<const InterferenceModel> fallback) {
  std::vector<TableEntry> entries;
  for (const PredictedPair& row : rows) {
    const auto victim = jobs.find(row.victim), other = jobs.find(row.other);
    if (victim == jobs.end() || other == jobs.end()) continue;
    HORUS_ASSIGN_OR_RETURN(const GpuTypeId type, catalogue.Find(row.gpu));
    entries.push_back({.type = type,
                       .mode = row.mode,
                       .victim = victim->second,
                       .other = other->second,
                       .slowdown = row.slowdown,
                       .most = std::isnan(row.bound) ? 0 : row.bound});
  }
  HORUS_ASSIGN_OR_RETURN(std::shared_ptr<const InterferenceModel> model,
                         TableModel::Create(entries, std::move(fallback), 0));
  return model;
}

}  // namespace horus
