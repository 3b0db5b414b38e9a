// SPDX-License-Identifier: Apache-2.0
// Fuzz target: reads any bytes as cluster.yaml; what is accepted becomes a cluster whose columns agree, and residents
// with a demand become part of it or are refused with a reason. Paths in it are of a folder that is not there.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "io/cluster_file.h"
#include "place/state/cluster.h"
#include "support/invariants.h"

namespace {

// `count:` may make a million nodes of one line, which the fuzzer's limits on time and memory would not bear.
const horus::ClusterFileLimits kLimits = {
    .yaml = {.max_bytes = size_t{1} << 16, .max_values = 10'000}, .max_nodes = 2'000, .max_devices = 20'000};

void Check(bool rule) {
  if (!rule) std::abort();
}

size_t DevicesOf(const horus::ClusterFile& file) {
  size_t devices = 0;
  for (const horus::FileNode& node : file.nodes) devices += node.spec.devices.size();
  return devices;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto file = horus::ParseClusterFile("/nowhere/cluster.yaml", text, horus::Catalogue::Default(), kLimits);
  if (!file.ok()) {
    Check(!file.status().message().empty());
    return 0;
  }
  Check(file->nodes.size() <= kLimits.max_nodes && DevicesOf(*file) <= kLimits.max_devices);
  auto cluster = horus::MakeCluster(*file);
  if (!cluster.ok()) {
    Check(!cluster.status().message().empty());
    return 0;
  }
  Check(cluster->node_count() == file->nodes.size());
  for (const horus::FileResident& resident : file->residents) {
    const auto adopted = cluster->Adopt(resident.job.spec, resident.slots);
    Check(adopted.ok() || !adopted.status().message().empty());
  }
  Check(CheckInvariants(*cluster).ok());
  return 0;
}
