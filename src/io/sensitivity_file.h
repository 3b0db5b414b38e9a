// SPDX-License-Identifier: Apache-2.0
// What cores and host memory do to the speed of a job: as jobs.yaml states it, and of profiles, by name, as a table.
//
// Enters:  a CSV with the columns profile, cpu_cores, memory_gib, speed and perhaps host_us; a row a cell.
// Leaves:  a matrix for each profile; or "sensitivity.csv: row 12: speed: expected ..., found ...".
// Units:   cores and GiB per GPU of the job; speed relative to that at the fair share, blank = not measured.
#pragma once

#include <map>

#include "io/jobs_file.h"
#include "place/job/sensitivity.h"

namespace horus {

[[nodiscard]] absl::StatusOr<SensitivitiesByName> ParseSensitivities(const std::string& file, std::string_view text);
[[nodiscard]] absl::StatusOr<SensitivitiesByName> ReadSensitivities(const std::string& path);

// ---- What cores and host memory do to the speed of a job, as jobs.yaml states it.
// Cost: linear; each file is read once.

// Sets the job's matrix or `sensitivity_file`; the job's name and GPUs are known.
[[nodiscard]] absl::Status ReadSensitivity(const YamlValue& value, JobRequest& job);

// Reads the files that jobs name.
class SensitivityLoader {
 public:
  // Sets the matrix of a job that names a file. Errors: of the file, with the job; a profile that it lacks.
  [[nodiscard]] absl::Status Load(JobRequest& job);

 private:
  std::map<std::string, std::string, std::less<>> paths_;  // as written -> OnePathOf
  std::map<std::string, SensitivitiesByName, std::less<>> files_;
};

}  // namespace horus
