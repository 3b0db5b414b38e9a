// SPDX-License-Identifier: Apache-2.0
// Reads cells, or where they are.
#include "io/sensitivity_yaml.h"

#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/text.h"
#include "io/sensitivity_file.h"
#include "io/yaml_units.h"

namespace horus {
namespace {

constexpr std::array<std::string_view, 3> kCellKeys = {"cpu_cores", "memory_gib", "speed"};
constexpr std::array<std::string_view, 2> kFileKeys = {"file", "profile"};
constexpr size_t kMaxCells = kMaxSensitivityPoints * kMaxSensitivityPoints;

absl::StatusOr<int64_t> ReadAxis(const YamlMap& cell, std::string_view key, const Scale& scale) {
  HORUS_ASSIGN_OR_RETURN(const YamlValue value, cell.Require(key, "per GPU of the job"));
  HORUS_ASSIGN_OR_RETURN(const int64_t units, value.Scaled(scale));
  if (units == 0) return value.Expected("more than 0");
  return units;
}

absl::Status ReadCells(const YamlValue& list, JobRequest& job) {
  HORUS_ASSIGN_OR_RETURN(const std::vector<YamlValue> items, list.List(kMaxCells));
  if (items.empty()) return list.Expected("at least one cell {cpu_cores, memory_gib, speed}");
  SensitivityCells cells;
  for (const YamlValue& item : items) {
    HORUS_ASSIGN_OR_RETURN(const YamlMap cell, item.Map(kCellKeys));
    HORUS_ASSIGN_OR_RETURN(const int64_t cpu_milli, ReadAxis(cell, "cpu_cores", kCoresToMilli));
    HORUS_ASSIGN_OR_RETURN(const int64_t mem_mib, ReadAxis(cell, "memory_gib", kGibToMib));
    HORUS_ASSIGN_OR_RETURN(const YamlValue speed, cell.Require("speed", "relative to that at the fair share"));
    HORUS_ASSIGN_OR_RETURN(const double value, speed.Number(0, static_cast<double>(kMaxSensitivitySpeed)));
    if (!cells.emplace(std::pair(cpu_milli, mem_mib), static_cast<float>(value)).second) {
      return item.Error("expected cores and memory that no cell before states, found them again");
    }
  }
  absl::StatusOr<Sensitivity> matrix = MatrixOf(cells);
  if (!matrix.ok()) return list.Wrap(matrix.status());
  job.spec.sensitivity = SharedSensitivity(*std::move(matrix));
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadSensitivity(const YamlValue& value, JobRequest& job) {
  if (IsCpuOnly(job.spec)) return value.Error("expected none with 'gpus: 0'");
  if (value.is_list()) return ReadCells(value, job);
  if (!value.is_map()) return value.Expected("a list of cells, or {file, profile}");
  HORUS_ASSIGN_OR_RETURN(const YamlMap map, value.Map(kFileKeys));
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
    absl::StatusOr<SensitivitiesByName> read = ReadSensitivities(path);
    if (!read.ok()) return MakeError(read.status().code(), "%s: %s", where, std::string(read.status().message()));
    file = files_.emplace(written->second, *std::move(read)).first;
  }
  const auto matrix = file->second.find(profile);
  if (matrix == file->second.end()) {
    return InvalidArgument("%s: expected a profile of %s, found %s", where, path, Quoted(profile));
  }
  job.spec.sensitivity = matrix->second;
  return absl::OkStatus();
}

}  // namespace horus
