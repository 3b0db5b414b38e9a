// SPDX-License-Identifier: Apache-2.0
// jobs.yaml: the jobs that wait for a place.
//
// Enters:  a path and the catalogue that GPU types are looked up in.
// Leaves:  job requests in file order; or "file:line: key: expected ..., found ...".
// Units:   docs/files.md has the schema.
// Cost:    linear in the file; at most kMaxFileJobs jobs.   Thread class: pure functions.
#ifndef HORUS_IO_JOBS_FILE_H_
#define HORUS_IO_JOBS_FILE_H_

#include <string>
#include <vector>

#include "base/status.h"
#include "device/catalogue.h"
#include "io/job_request.h"
#include "io/yaml_tree.h"

namespace horus {

[[nodiscard]] absl::StatusOr<std::vector<JobRequest>> ParseJobsFile(const std::string& file, std::string text,
                                                                    const Catalogue& catalogue,
                                                                    const YamlLimits& limits = {});
[[nodiscard]] absl::StatusOr<std::vector<JobRequest>> ReadJobsFile(const std::string& path, const Catalogue& catalogue,
                                                                   const YamlLimits& limits = {});
// Of text, as if it were the content of the file at `path`.
[[nodiscard]] absl::StatusOr<std::vector<JobRequest>> LoadJobsFile(const std::string& path, std::string text,
                                                                   const Catalogue& catalogue,
                                                                   const YamlLimits& limits = {});

}  // namespace horus

#endif  // HORUS_IO_JOBS_FILE_H_
