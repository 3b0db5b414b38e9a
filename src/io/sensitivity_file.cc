// SPDX-License-Identifier: Apache-2.0
// Reads cells and makes matrices of them.
#include "io/sensitivity_file.h"

#include <cmath>
#include <set>

#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "io/csv.h"

namespace horus {
namespace {

constexpr size_t kMaxSensitivityBytes = size_t{1} << 28;
constexpr size_t kMostCells = kMaxCsvFields;  // of all matrices: a row and a column of cells may span 65,536
constexpr std::string_view kColumns[] = {"profile", "cpu_cores", "memory_gib", "speed", "host_us"};
constexpr size_t kRequiredColumns = 4;
constexpr double kMaxAxis = 1e6;  // cores or GiB, as of other tables
constexpr double kMibPerGib = 1024;

absl::StatusOr<int64_t> ReadAxis(const CsvRow& row, std::string_view column, double per_unit) {
  const std::string expected = Formatted("more than 0, at most %.6g", kMaxAxis);
  HORUS_ASSIGN_OR_RETURN(const double value, row.Number(column, expected));
  const auto units = value > 0 && value <= kMaxAxis ? std::llround(value * per_unit) : 0;
  if (units == 0) return row.Wrong(column, expected, row.Find(column));
  return units;
}

// Measured cells: (thousandths of a core, MiB) -> speed, NaN = not measured.
using SensitivityCells = std::map<std::pair<int64_t, int64_t>, float>;

struct ProfileCells {
  SensitivityCells cells;
  double host_us = 0;
};

absl::Status ReadCell(const CsvRow& row, std::map<std::string, ProfileCells, std::less<>>& profiles) {
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
  double host_us = 0;
  if (!row.Find("host_us").empty()) {
    const std::string expected = Formatted("blank, or 0 to %.6g us", kMaxHostUs);
    HORUS_ASSIGN_OR_RETURN(host_us, row.Number("host_us", expected));
    if (!(host_us >= 0 && host_us <= kMaxHostUs)) return row.Wrong("host_us", expected, row.Find("host_us"));
  }
  const auto [at, is_new] = profiles.try_emplace(std::string(profile));
  if (is_new) at->second.host_us = host_us;
  if (host_us != at->second.host_us) {
    return row.Wrong("host_us", Formatted("%.17g, as in the rows of %s before", at->second.host_us, Quoted(profile)),
                     row.Find("host_us"));
  }
  if (at->second.cells.emplace(std::pair(cpu_milli, mem_mib), static_cast<float>(speed)).second)
    return absl::OkStatus();
  return row.Wrong("cpu_cores", "a cell that no row before states", "one of " + Quoted(profile) + " again");
}

absl::StatusOr<Sensitivity> MatrixOf(const SensitivityCells& cells, double host_us) {
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
  return Sensitivity::Create({cpu.begin(), cpu.end()}, {mem.begin(), mem.end()}, speeds, host_us);
}

// ---- Reads cells, or where they are.

constexpr std::string_view kCellKeys[] = {"cpu_cores", "memory_gib", "speed"};
constexpr std::string_view kFileKeys[] = {"file", "profile"};
constexpr std::string_view kCellsKeys[] = {"host_us", "cells"};
constexpr std::string_view kMatrixKeys[] = {"file", "profile", "host_us", "cells"};
constexpr size_t kMaxCells = kMaxSensitivityPoints * kMaxSensitivityPoints;

absl::StatusOr<int64_t> ReadAxis(const YamlMap& cell, std::string_view key, const Scale& scale) {
  HORUS_ASSIGN_OR_RETURN(const YamlValue value, cell.Require(key, "per GPU of the job"));
  HORUS_ASSIGN_OR_RETURN(const int64_t units, value.Scaled(scale));
  if (units == 0) return value.Expected("more than 0");
  return units;
}

absl::Status ReadCells(const YamlValue& list, double host_us, JobRequest& job) {
  HORUS_ASSIGN_OR_RETURN(const std::vector<YamlValue> items, list.List(kMaxCells));
  if (items.empty()) return list.Expected("at least one cell {cpu_cores, memory_gib, speed}");
  SensitivityCells cells;
  for (const YamlValue& item : items) {
    HORUS_ASSIGN_OR_RETURN(const YamlMap cell, item.Map(kCellKeys));
    HORUS_ASSIGN_OR_RETURN(const int64_t cpu_milli, ReadAxis(cell, "cpu_cores", kCoresToMilli));
    HORUS_ASSIGN_OR_RETURN(const int64_t mem_mib, ReadAxis(cell, "memory_gib", kGibToMib));
    HORUS_ASSIGN_OR_RETURN(const YamlValue speed, cell.Require("speed", "relative to that at the fair share"));
    HORUS_ASSIGN_OR_RETURN(const double value, speed.Number(0, static_cast<double>(kMaxSensitivitySpeed)));
    if (!cells.emplace(std::pair(cpu_milli, mem_mib), static_cast<float>(value)).second)
      return item.Error("expected cores and memory that no cell before states, found them again");
  }
  HORUS_ASSIGN_OR_RETURN(Sensitivity matrix, list.Wrap(MatrixOf(cells, host_us)));
  job.spec.sensitivity = SharedSensitivity(std::move(matrix));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SensitivitiesByName> ParseSensitivities(const std::string& file, std::string_view text) {
  HORUS_ASSIGN_OR_RETURN(const CsvTable table, ParseCsv(text, file));
  HORUS_RETURN_IF_ERROR(CheckColumns(table, file, std::span(kColumns).first(kRequiredColumns), kColumns));
  const CsvColumns columns = ColumnsOf(table);
  std::map<std::string, ProfileCells, std::less<>> profiles;
  for (size_t i = 0; i < table.rows.size(); ++i)
    HORUS_RETURN_IF_ERROR(ReadCell(CsvRow(table, columns, i, file), profiles));
  SensitivitiesByName matrices;
  size_t in_all = 0;
  for (const auto& [profile, cells] : profiles) {
    absl::StatusOr<Sensitivity> matrix = MatrixOf(cells.cells, cells.host_us);
    if (!matrix.ok()) return InvalidArgument("%s: profile %s: %s", file, Quoted(profile), matrix.status().message());
    in_all += matrix->speeds().size();
    if (in_all > kMostCells) {
      return ResourceExhausted("%s: expected at most %d cells in the matrices of all profiles, found more", file,
                               kMostCells);
    }
    matrices.emplace(profile, SharedSensitivity(*std::move(matrix)));
  }
  return matrices;
}

absl::StatusOr<SensitivitiesByName> ReadSensitivities(const std::string& path) {
  HORUS_ASSIGN_OR_RETURN(const std::string text, ReadNamedFile(path, kMaxSensitivityBytes));
  return ParseSensitivities(path, text);
}

absl::Status ReadSensitivity(const YamlValue& value, JobRequest& job) {
  if (IsCpuOnly(job.spec)) return value.Error("expected none with 'gpus: 0'");
  if (value.is_list()) return ReadCells(value, 0, job);
  if (!value.is_map()) return value.Expected("a list of cells, {host_us, cells}, or {file, profile}");
  HORUS_ASSIGN_OR_RETURN(const YamlMap map, value.Map(kMatrixKeys));
  const YamlValue* cells = map.Find("cells");
  for (const std::string_view key : cells != nullptr ? kFileKeys : kCellsKeys) {
    if (map.Has(key)) return value.Error("expected {host_us, cells} or {file, profile}, found keys of both");
  }
  if (cells != nullptr) {
    double host_us = 0;
    HORUS_RETURN_IF_ERROR(map.ReadNumber("host_us", 0, kMaxHostUs, host_us));
    return ReadCells(*cells, host_us, job);
  }
  HORUS_ASSIGN_OR_RETURN(const YamlValue file, map.Require("file", "a CSV file of sensitivities"));
  HORUS_ASSIGN_OR_RETURN(const std::string written, file.Text(kMaxPathBytes));
  SensitivityFile from{.path = PathBeside(value.file(), written), .profile = job.spec.name, .where = value.Where()};
  HORUS_RETURN_IF_ERROR(map.ReadText("profile", kMaxNameBytes, from.profile));
  if (from.profile.empty()) return value.Error("expected 'profile', or a job with a name, found neither");
  job.sensitivity_file = std::move(from);
  return absl::OkStatus();
}

absl::Status SensitivityLoader::Load(JobRequest& job) {
  if (!job.sensitivity_file) return absl::OkStatus();
  const auto& [path, profile, where] = *job.sensitivity_file;
  const auto [written, is_new] = paths_.try_emplace(path);
  if (is_new) written->second = OnePathOf(path);
  auto file = files_.find(written->second);
  if (file == files_.end()) {
    HORUS_ASSIGN_OR_RETURN(SensitivitiesByName read, At(where, ReadSensitivities(path)));
    file = files_.emplace(written->second, std::move(read)).first;
  }
  const auto matrix = file->second.find(profile);
  if (matrix == file->second.end())
    return InvalidArgument("%s: expected a profile of %s, found %s", where, path, Quoted(profile));
  job.spec.sensitivity = matrix->second;
  return absl::OkStatus();
}

}  // namespace horus
