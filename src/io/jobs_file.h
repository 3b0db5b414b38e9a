// SPDX-License-Identifier: Apache-2.0
// jobs.yaml: the jobs that wait for a place, each as a person's file states it, before its demands are predicted.
//
// Enters:  a path and the catalogue that GPU types are looked up in.
// Leaves:  job requests in file order; or "file:line: key: expected ..., found ...".
// Units:   docs/files.md has the schema.
// Cost:    linear in the file; at most kMaxFileJobs jobs.   Thread class: pure functions.
#pragma once

#include "device/catalogue.h"
#include "features/run_spec.h"
#include "graph/from_config.h"
#include "io/yaml.h"
#include "place/job/job.h"
#include "predict/service.h"

namespace horus {

// ---- Demands that a file states itself: measured elsewhere, or plain requests.
// Cost: linear.

// `allowed`: the job's gpu_types. A demand for "any" is then given to each of them; without them it stays "any".
[[nodiscard]] absl::StatusOr<std::vector<TypeDemand>> ReadDemands(const YamlValue& value, const Catalogue& catalogue,
                                                                  std::span<const GpuTypeId> allowed);

// A name of the catalogue; the error suggests near ones.
[[nodiscard]] absl::StatusOr<GpuTypeId> ReadGpuTypeName(const YamlValue& value, const Catalogue& catalogue);

// ---- JobRequest: one job as a person's file states it, before its demands are predicted.
// Cost: about 500 bytes a job.

inline constexpr size_t kMaxFileJobs = 1'000'000;
inline constexpr int64_t kMostCopies = 64;            // as many as `horus inspect --solve gpus` tries
inline constexpr size_t kMaxFileDemands = 4'000'000;  // of all jobs, one for each way and GPU type: 0.8 GB
inline constexpr size_t kMaxPathBytes = 4096;

struct ModelRun {
  std::string path;  // of the ONNX file, as seen from the working folder
  RunSpec run;
  bool states_precision = false;       // else what the model computes in
  ConfigOptions config;                // of a config.json
  std::optional<ServiceLoad> service;  // then `run` leaves batch, seq and past open
  int64_t copies = 1;                  // that share the load; `service` has the part of one
  friend bool operator==(const ModelRun&, const ModelRun&) = default;
};

// What one of a job's ways to run changes of its model's run.
struct WayOfModel {
  int64_t batch = 0;  // samples per GPU and step; 0 = as the model has it
  int64_t data_parallel = 1;
};

// Where a job's matrix of speeds by cores and host memory is.
struct SensitivityFile {
  std::string path;  // as seen from the working folder
  std::string profile;
  std::string where;  // "file:line: jobs[3].sensitivity"
  friend bool operator==(const SensitivityFile&, const SensitivityFile&) = default;
};

struct JobRequest {
  JobSpec spec;  // demands are filled exactly when `model` is absent
  std::optional<ModelRun> model;
  std::vector<WayOfModel> ways;      // of spec.alternatives, one each, where `model` is present: their demands, and
                                     // rates of 0, are yet to be predicted; else empty
  std::vector<GpuTypeId> gpu_types;  // allowed ones, ascending; empty = every type of the cluster
  std::optional<SensitivityFile> sensitivity_file;  // that spec.sensitivity is yet to be read from
  std::string where;                                // "file:line: jobs[3]" for later errors
};

// The keys of a job; residents know `on` besides.
[[nodiscard]] std::span<const std::string_view> JobKeys();

// Of a place that describes what runs, or one pod: it is one copy.
[[nodiscard]] absl::Status RefuseCopies(const YamlMap& map, const JobRequest& job);

// `default_id` is taken when the mapping has no `id`; nullopt makes `id` necessary.
[[nodiscard]] absl::StatusOr<JobRequest> ReadJobRequest(const YamlMap& map, const Catalogue& catalogue,
                                                        std::optional<uint64_t> default_id);

// Adds the demands of a job to those of the jobs before it; RESOURCE_EXHAUSTED above kMaxFileDemands. One line may ask
// for one on each type in each of 64 ways.
[[nodiscard]] absl::Status CountDemands(const JobSpec& job, std::string_view where, size_t& so_far);

// Refuses the second job with an id or a name that another one has.
[[nodiscard]] absl::Status CheckJobsDiffer(std::span<const JobRequest> jobs);

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
