// SPDX-License-Identifier: Apache-2.0
// What Kubernetes calls GPUs: product labels, cloud labels, instance types; and the types of the catalogue.
//
// Enters:  values of labels and attributes.   Leaves: GPU types; errors that suggest near names.
// Units:   MiB.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "device/catalogue.h"
#include "io/kube/kube_objects.h"

namespace horus {

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

// What the node's cloud calls its kind of machine; "" where nothing says so.
[[nodiscard]] std::string KubeInstanceType(const KubeTexts& labels);

// What joins the node closest to others, such as an NVLink domain or a rack; "" where no known label says so.
[[nodiscard]] std::string KubeRack(const KubeTexts& labels);

// The value of a label; "" without it.
[[nodiscard]] std::string KubeLabel(const KubeTexts& labels, const std::string& key);
// The same as an integer above 0; 0 for anything else.
[[nodiscard]] int64_t KubeLabelCount(const KubeTexts& labels, const std::string& key);

}  // namespace horus
