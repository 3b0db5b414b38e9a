// SPDX-License-Identifier: Apache-2.0
// What place and shadow share: how the placer is set on the command line, the jobs that run already.
//
// Enters:  options and a cluster file.   Leaves: a placer, or errors that name option or place.
// Units:   slowdown = shared / alone.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/inputs.h"
#include "cli/training.h"
#include "io/cluster_file.h"
#include "io/demand_shelf.h"
#include "io/jobs_file.h"
#include "place/placer.h"
#include "place/state/cluster.h"

namespace horus {
struct PlacementReport;
}

namespace horus::cli {

struct PlacingOptions {
  std::string cluster, jobs;  // files
  std::string policy = "horus";
  InterferenceChoice interference;
  std::string slowdown_bound;  // as it was typed; that of `placer` is not read
  PlacerOptions placer;
  std::vector<std::string> gpus_files;
  std::string bundle;
  bool one_by_one = false;  // of `horus place`: in the order of priority and submission
};
// `jobs`: what the jobs are to the command.
void AddPlacingOptions(CLI::App& app, const std::string& jobs, PlacingOptions& options);
// Those of them that say who fits on a device beside whom: max_tenants, mem_headroom_mib, mem_overcommit.
void AddLimitOptions(CLI::App& app, PlacerOptions& options);

// Whether the figures of a job say no more than what it asked for: a share of a GPU, or a busy one.
[[nodiscard]] bool IsRequestAlone(const JobSpec& job);

[[nodiscard]] absl::StatusOr<std::unique_ptr<Placer>> MakePlacer(const PlacingOptions& options,
                                                                 std::shared_ptr<const InterferenceModel> model);

struct PlacingInputs {
  ClusterFile file;
  std::vector<JobRequest> requests;
  Cluster cluster;  // with the jobs that run
  std::shared_ptr<const InterferenceModel> model;
  std::unique_ptr<Placer> placer;
  std::unique_ptr<DemandShelf> shelf;
  std::vector<GpuTypeId> present;
};
[[nodiscard]] absl::StatusOr<PlacingInputs> LoadPlacing(const PlacingOptions& options);
// What `horus place` finds; `prometheus`: file for what the placer did, empty = none.
[[nodiscard]] absl::StatusOr<PlacementReport> PlaceFiles(const PlacingOptions& options,
                                                         const std::string& prometheus = "");

// "table, horus": measured pairs first.
[[nodiscard]] std::string NameOf(const InterferenceChoice& choice);

}  // namespace horus::cli
