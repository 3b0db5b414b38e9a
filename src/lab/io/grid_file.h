// SPDX-License-Identifier: Apache-2.0
// grid.yaml: workloads x policies x seeds to compare, on which cluster, under which truth, with which beliefs.
//
// Enters:  a path and the catalogue that GPU types are looked up in.
// Leaves:  checked settings and the paths of the other files; or "file:line: key: expected ..., found ...".
// Units:   docs/simulate.md has the schema.
// Cost:    linear in the file and in the cluster's nodes; limits below.
#pragma once

#include "base/status.h"
#include "io/yaml.h"
#include "lab/grid.h"
#include "lab/io/traces/trace_file.h"

namespace horus {

inline constexpr size_t kMaxGridEntries = 10'000;         // workloads, policies or seeds
inline constexpr size_t kMaxGridRuns = 1'000'000;         // of all three
inline constexpr size_t kMaxGridPaths = 1'000;            // of one list
inline constexpr int64_t kMaxGridGpus = 100'000;          // of one type
inline constexpr std::string_view kOracle = "truth";      // as a policy's model
inline constexpr std::string_view kIgnorant = "nothing";  // likewise

struct GridSpeeds {
  std::string file;
  std::vector<std::pair<std::string, GpuTypeId>> gpus;  // the file's names that the catalogue knows by others
};

// One of `speeds` and `interference`.
struct GridTruthSource {
  std::vector<GridSpeeds> speeds;
  std::string reference;  // a GPU type of the files; empty = the first
  ManyTenants many = ManyTenants::kAdds;
  bool unmeasured_alone = false;  // as in GridTruth
  std::string interference;
  std::string sensitivity;  // file of what cores and host memory do; empty = nothing
};

struct GridBeliefSource {
  std::string jobs;    // a job table (.csv), or jobs whose names are profiles (.yaml)
  std::string bundle;  // of demands
  std::string interference = "horus";
  std::string interference_bundle;
  std::string sensitivity;  // as of the truth, that policies are told
  std::string predictions;  // slowdowns of profiles by name: they answer where they say something
};

struct GridFileWorkload {
  GridWorkload workload;           // without its trace; `content` without the files
  std::vector<std::string> files;  // none: synthetic
  TraceReadOptions read;
  bool all_profiles = false;  // synthetic: those that something is believed of, equally likely
};

struct GridFilePolicy {
  GridPolicy policy;         // without its model
  std::string interference;  // a model's name, kOracle, kIgnorant, or empty = the beliefs'
};

struct GridFile : GridFrame {
  std::string path;
  GridTruthSource truth;
  GridBeliefSource beliefs;
  std::vector<GridFileWorkload> workloads;  // names unique
  std::vector<GridFilePolicy> policies;     // names unique
  std::string baseline;                     // a policy; empty = the first
};

// Opens the files of GPU types and of the cluster, and no other.
[[nodiscard]] absl::StatusOr<GridFile> ParseGridFile(const std::string& file, std::string text,
                                                     std::shared_ptr<const Catalogue> catalogue,
                                                     const YamlLimits& limits = {});
[[nodiscard]] absl::StatusOr<GridFile> ReadGridFile(const std::string& path, std::shared_ptr<const Catalogue> catalogue,
                                                    const YamlLimits& limits = {});

}  // namespace horus
