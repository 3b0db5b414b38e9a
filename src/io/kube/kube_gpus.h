// SPDX-License-Identifier: Apache-2.0
// The GPUs of one node of Kubernetes, from the best of the sources that tell of them.
//
// Enters:  a node and its resource slices.
// Leaves:  its devices in the order of cluster.yaml and which source told them, or why they cannot be told.
// Units:   MiB; thousandths of a GPU.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "device/catalogue.h"
#include "device/sharing_mode.h"
#include "io/kube/kube_objects.h"

namespace horus {

struct KubeGpu {
  GpuTypeId type;
  SharingMode mode = SharingMode::kTimeSlice;
  int16_t mig_profile = -1;    // index in GpuType::mig
  int32_t card = 0;            // MIG instances of one card have the same
  int64_t replicas = 1;        // as which the device plugin offers it
  bool counts_memory = false;  // HAMi: memory and cores are requested, replicas only count
  std::string resource;        // extended resource that it is offered as; empty: by claims
  std::string uuid;            // empty: not told
  std::string pool, name;      // of its resource slice
  int64_t mem_mib = 0;         // as the slice tells; 0: it does not
};

struct KubeNodeGpus {
  std::vector<KubeGpu> gpus;
  std::string source;   // "ResourceSlice", a label or an annotation; empty: nothing tells of GPUs
  std::string problem;  // not empty: it has GPUs, and why they cannot be told; `gpus` is then empty
  std::string note;     // what was passed over on the way to `source`
};

[[nodiscard]] KubeNodeGpus FindKubeGpus(const Catalogue& catalogue, const KubeNode& node,
                                        std::span<const KubeSlice> slices);

// "nvidia.com/gpu", what MIG's strategies offer, and NVIDIA's plugin for virtual machines. Network cards and others
// have the same prefix; a GPU under any other name is one where a node's labels tell it.
[[nodiscard]] bool IsGpuResource(std::string_view resource);

// The profile of an extended resource such as "nvidia.com/mig-1g.10gb.shared"; "" for others.
[[nodiscard]] std::string MigProfileOfResource(std::string_view resource);

}  // namespace horus
