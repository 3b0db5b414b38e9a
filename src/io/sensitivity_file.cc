// SPDX-License-Identifier: Apache-2.0
// Reads cells and makes matrices of them.
#include "io/sensitivity_file.h"

#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "base/units.h"
#include "io/csv.h"
#include "io/csv_row.h"

namespace horus {
namespace {

constexpr size_t kMaxSensitivityBytes = size_t{1} << 28;
constexpr size_t kMostCells = kMaxCsvFields;  // of all matrices: a row and a column of cells may span 65,536
constexpr std::array<std::string_view, 4> kColumns = {"profile", "cpu_cores", "memory_gib", "speed"};
constexpr double kMaxAxis = 1e6;  // cores or GiB, as in yaml_units.h
constexpr double kMibPerGib = 1024;

absl::StatusOr<int64_t> ReadAxis(const CsvRow& row, std::string_view column, double per_unit) {
  const std::string expected = Formatted("more than 0, at most %.6g", kMaxAxis);
  HORUS_ASSIGN_OR_RETURN(const double value, row.Number(column, expected));
  const auto units = value > 0 && value <= kMaxAxis ? std::llround(value * per_unit) : 0;
  if (units == 0) return row.Wrong(column, expected, row.Find(column));
  return units;
}

absl::Status ReadCell(const CsvRow& row, std::map<std::string, SensitivityCells, std::less<>>& profiles) {
  const std::string_view profile = row.Find("profile");
  if (profile.empty()) return row.Wrong("profile", "a name", "");
  HORUS_ASSIGN_OR_RETURN(const int64_t cpu_milli, ReadAxis(row, "cpu_cores", kMilliPerCore));
  HORUS_ASSIGN_OR_RETURN(const int64_t mem_mib, ReadAxis(row, "memory_gib", kMibPerGib));
  double speed = std::nan("");
  if (!row.Find("speed").empty()) {
    const std::string expected = Formatted("blank, or 0 to %.6g", kMaxSensitivitySpeed);
    HORUS_ASSIGN_OR_RETURN(speed, row.Number("speed", expected));
    if (!(speed >= 0 && speed <= kMaxSensitivitySpeed)) return row.Wrong("speed", expected, row.Find("speed"));
  }
  SensitivityCells& cells = profiles.try_emplace(std::string(profile)).first->second;
  if (cells.emplace(std::pair(cpu_milli, mem_mib), static_cast<float>(speed)).second) return absl::OkStatus();
  return row.Wrong("cpu_cores", "a cell that no row before states", "one of " + Quoted(profile) + " again");
}

}  // namespace

absl::StatusOr<Sensitivity> MatrixOf(const SensitivityCells& cells) {
  std::set<int64_t> cpu, mem;
  for (const auto& [cell, speed] : cells) {
    cpu.insert(cell.first);
    mem.insert(cell.second);
  }
  if (cpu.size() > kMaxSensitivityPoints || mem.size() > kMaxSensitivityPoints) {
    return InvalidArgument("expected at most %d numbers of cores and as many of memory, found %d and %d",
                           kMaxSensitivityPoints, cpu.size(), mem.size());
  }
  std::vector<float> speeds;
  for (const int64_t cores : cpu) {
    for (const int64_t mib : mem) {
      const auto at = cells.find({cores, mib});
      speeds.push_back(at == cells.end() ? std::nanf("") : at->second);
    }
  }
  return Sensitivity::Create({cpu.begin(), cpu.end()}, {mem.begin(), mem.end()}, speeds);
}

absl::StatusOr<SensitivitiesByName> ParseSensitivities(const std::string& file, std::string_view text) {
  HORUS_ASSIGN_OR_RETURN(const CsvTable table, ParseCsv(text, file));
  HORUS_RETURN_IF_ERROR(CheckColumns(table, file, kColumns, kColumns));
  const CsvColumns columns = ColumnsOf(table);
  std::map<std::string, SensitivityCells, std::less<>> profiles;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    HORUS_RETURN_IF_ERROR(ReadCell(CsvRow(table, columns, i, file), profiles));
  }
  SensitivitiesByName matrices;
  size_t in_all = 0;
  for (const auto& [profile, cells] : profiles) {
    absl::StatusOr<Sensitivity> matrix = MatrixOf(cells);
    if (!matrix.ok()) {
      return InvalidArgument("%s: profile %s: %s", file, Quoted(profile), std::string(matrix.status().message()));
    }
    in_all += matrix->speeds().size();
    if (in_all > kMostCells) {
      return MakeError(absl::StatusCode::kResourceExhausted,
                       "%s: expected at most %d cells in the matrices of all profiles, found more", file, kMostCells);
    }
    matrices.emplace(profile, SharedSensitivity(*std::move(matrix)));
  }
  return matrices;
}

absl::StatusOr<SensitivitiesByName> ReadSensitivities(const std::string& path) {
  HORUS_ASSIGN_OR_RETURN(const std::string text, ReadNamedFile(path, kMaxSensitivityBytes));
  return ParseSensitivities(path, text);
}

}  // namespace horus
