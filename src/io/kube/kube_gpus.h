// SPDX-License-Identifier: Apache-2.0
// The GPUs of one node of Kubernetes, from the best of the sources that tell of them.
//
// Enters:  a node and its resource slices.
// Leaves:  its devices in the order of cluster.yaml and which source told them, or why they cannot be told.
// Units:   MiB; thousandths of a GPU.
#pragma once

#include <span>

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

// ---- What Kubernetes calls GPUs: product labels, cloud labels, instance types; and the types of the catalogue.

// "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb-SHARED": the card, the profile (empty: whole cards), whether several share it.
struct KubeProduct {
  std::string card;
  std::string profile;
  bool shared = false;
};
[[nodiscard]] KubeProduct SplitKubeProduct(std::string_view label);

// The type of that name with so much memory (0: not known): "a100" with 81,920 MiB is the one with 80 GB. Drivers
// report a few per cent less than data sheets.
[[nodiscard]] absl::StatusOr<GpuTypeId> FindKubeGpu(const Catalogue& catalogue, std::string_view name, int64_t mem_mib);

// What a cloud says of a node's GPUs.
struct KubeCloudGpu {
  std::string label;  // which told it; empty: none
  std::string value;
  std::string name;  // for FindKubeGpu
  int64_t mem_mib = 0;
};
[[nodiscard]] KubeCloudGpu FindKubeCloudGpu(const KubeTexts& labels);

// What joins the node closest to others, such as an NVLink domain or a rack; "" where no known label says so.
[[nodiscard]] std::string KubeRack(const KubeTexts& labels);

// The value of a label; "" without it.
[[nodiscard]] std::string KubeLabel(const KubeTexts& labels, const std::string& key);

}  // namespace horus
