// SPDX-License-Identifier: Apache-2.0
// What cores and host memory do to the speed of a job, as jobs.yaml states it.
//
// Enters:  the value of a job's key `sensitivity`: a list of cells, or a file and the profile to read in it.
// Leaves:  a matrix, or which file has it; "file:line: jobs[3].sensitivity[1].speed: expected ..., found ...".
// Units:   cores and GiB per GPU of the job; speed relative to that at the fair share.
// Cost:    linear; each file is read once.       Thread class: pure functions.
#ifndef HORUS_IO_SENSITIVITY_YAML_H_
#define HORUS_IO_SENSITIVITY_YAML_H_

#include <map>
#include <string>

#include "base/status.h"
#include "io/job_request.h"
#include "place/sensitivity.h"

namespace horus {

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

#endif  // HORUS_IO_SENSITIVITY_YAML_H_
