// SPDX-License-Identifier: Apache-2.0
// Reads jobs.yaml.
#include "io/jobs_file.h"

#include <array>
#include <utility>

#include "base/file.h"
#include "io/sensitivity_yaml.h"
#include "io/yaml_reader.h"

namespace horus {
namespace {

constexpr std::array<std::string_view, 2> kRootKeys = {"version", "jobs"};

}  // namespace

absl::StatusOr<std::vector<JobRequest>> ParseJobsFile(const std::string& file, std::string text,
                                                      const Catalogue& catalogue, const YamlLimits& limits) {
  HORUS_ASSIGN_OR_RETURN(const auto tree, YamlTree::Parse(file, std::move(text), limits));
  HORUS_ASSIGN_OR_RETURN(const YamlMap root, OpenVersion1(tree, kRootKeys));
  HORUS_ASSIGN_OR_RETURN(const YamlValue list, root.Require("jobs", "a list of jobs"));
  HORUS_ASSIGN_OR_RETURN(const std::vector<YamlValue> items, list.List(kMaxFileJobs));
  std::vector<JobRequest> jobs;
  size_t demands = 0;
  for (const YamlValue& item : items) {
    HORUS_ASSIGN_OR_RETURN(const YamlMap map, item.Map(JobKeys()));
    HORUS_ASSIGN_OR_RETURN(JobRequest job, ReadJobRequest(map, catalogue, jobs.size() + 1));
    HORUS_RETURN_IF_ERROR(CountDemands(job.spec, job.where, demands));
    jobs.push_back(std::move(job));
  }
  HORUS_RETURN_IF_ERROR(CheckJobsDiffer(jobs));
  return jobs;
}

absl::StatusOr<std::vector<JobRequest>> ReadJobsFile(const std::string& path, const Catalogue& catalogue,
                                                     const YamlLimits& limits) {
  HORUS_ASSIGN_OR_RETURN(std::string text, ReadFile(path, limits.max_bytes));
  return LoadJobsFile(path, std::move(text), catalogue, limits);
}

absl::StatusOr<std::vector<JobRequest>> LoadJobsFile(const std::string& path, std::string text,
                                                     const Catalogue& catalogue, const YamlLimits& limits) {
  HORUS_ASSIGN_OR_RETURN(std::vector<JobRequest> jobs, ParseJobsFile(path, std::move(text), catalogue, limits));
  SensitivityLoader loader;
  for (JobRequest& job : jobs) HORUS_RETURN_IF_ERROR(loader.Load(job));
  return jobs;
}

}  // namespace horus
