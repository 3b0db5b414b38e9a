// SPDX-License-Identifier: Apache-2.0
// The speeds, GPUs and jobs that `horus potential` asks about: measured, or predicted for a cluster and its jobs.
//
// Enters:  options.   Leaves: a table, GPUs by type, a mix; or errors that name option or file.
// Cost:    that of reading; predicted: an analysis of each graph, a prediction of each pair.
#pragma once

#include <optional>

#include "cli/inputs.h"
#include "lab/truth/speed_table.h"

namespace horus::cli {

struct PotentialSources {
  std::vector<std::string> speeds, mix;
  std::vector<std::string> gpus;  // TYPE=N, or TYPE for one
  std::string cluster, jobs;
  std::string sensitivities;  // file; empty = cores and memory do not count
  std::optional<double> cores_per_gpu, memory_gib_per_gpu;
  InterferenceChoice interference;
  std::vector<std::string> gpus_files;
  std::string bundle;
  std::string reference;
  PlacerOptions limits;  // max_tenants, mem_headroom_mib and mem_overcommit are read
};

struct PotentialInputs {
  SpeedTable table;
  std::vector<double> gpus;  // by type
  std::optional<HostResources> hosts;
  std::vector<MixJob> jobs;
  uint32_t reference = 0;
  std::vector<uint32_t> other_units;  // profiles, see PotentialOptions
  std::string source;
  std::vector<std::string> notes;
  bool has_trace = false;
  std::optional<double> gpus_free;  // with each job on a GPU of its own; none where work comes by a mix
  std::vector<bool> unknown;        // profiles of which requests alone are known; empty: of none
  // Of jobs that run (residents): what those that share a GPU do beyond one of them, by type in its own GPUs' work and
  // of all types in that of `reference`; empty where nothing runs.
  std::vector<double> shared_today;
  double all_shared_today = 0;
};

[[nodiscard]] absl::StatusOr<PotentialInputs> LoadPotential(const PotentialSources& sources);

}  // namespace horus::cli
