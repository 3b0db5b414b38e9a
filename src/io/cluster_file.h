// SPDX-License-Identifier: Apache-2.0
// cluster.yaml: nodes with their GPUs, own GPU types, and jobs that already run.
//
// Enters:  a path and the catalogue that GPU types are looked up in.
// Leaves:  checked descriptions, and from them a Cluster; or "file:line: key: expected ..., found ...".
// Units:   docs/files.md has the schema.
// Cost:    linear in the file and in the nodes that it replicates; limits below.
#pragma once

#include "io/jobs_file.h"
#include "place/decision.h"
#include "place/state/cluster.h"
#include "place/state/node.h"

namespace horus {

// `count:` lets a short file describe many nodes, so the sums are limited too.
struct ClusterFileLimits {
  YamlLimits yaml;
  size_t max_nodes = 1'000'000;
  size_t max_devices = 4'000'000;
  size_t max_label_bytes = size_t{256} << 20;
};

struct FileNode {
  NodeSpec spec;
  AdminState state = AdminState::kUp;
};

// A job that runs already, and where.
struct FileResident {
  JobRequest job;
  Slots slots;
};

struct ClusterFile {
  std::shared_ptr<const Catalogue> catalogue;  // with the types of gpu_types_files
  std::vector<FileNode> nodes;
  std::vector<FileResident> residents;
};

// gpu_types_files are opened, as seen from the folder of `file`.
[[nodiscard]] absl::StatusOr<ClusterFile> ParseClusterFile(const std::string& file, std::string text,
                                                           std::shared_ptr<const Catalogue> catalogue,
                                                           const ClusterFileLimits& limits = {});
[[nodiscard]] absl::StatusOr<ClusterFile> ReadClusterFile(const std::string& path,
                                                          std::shared_ptr<const Catalogue> catalogue);
// Of text, as if it were the content of the file at `path`.
[[nodiscard]] absl::StatusOr<ClusterFile> LoadClusterFile(const std::string& path, std::string text,
                                                          std::shared_ptr<const Catalogue> catalogue);

// The nodes in their states, without the residents, whose demands may have to be predicted first.
[[nodiscard]] absl::StatusOr<Cluster> MakeCluster(const ClusterFile& file);

// The types of the nodes' devices, ascending.
[[nodiscard]] std::vector<GpuTypeId> TypesPresent(const ClusterFile& file);

}  // namespace horus
