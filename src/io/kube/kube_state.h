// SPDX-License-Identifier: Apache-2.0
// All objects of one import, gathered from one file or several.
//
// Enters:  objects as they are read.     Leaves: nodes, pods that use GPUs, slices and claims; and what others take.
// Units:   thousandths of a core, bytes.
// Cost:    about 1 KiB a node and a pod with GPUs; pods without are only summed.   Thread class: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "io/kube/kube_objects.h"

namespace horus {

inline constexpr size_t kMostKubeObjects = 4'000'000;  // of all kinds that are read; chosen

struct KubeHostUse {
  int64_t cpu_milli = 0;
  int64_t mem_bytes = 0;
};

// Whether the pod asks for GPUs, in whatever way.
[[nodiscard]] bool UsesGpus(const KubePod& pod);

class KubeState {
 public:
  // Other kinds than those five are passed over.
  [[nodiscard]] absl::Status Add(std::string_view kind, const KubeView& object);

  std::vector<KubeNode> nodes;
  std::vector<KubePod> pods;                                            // that use GPUs and are not done
  std::map<std::string, std::vector<KubeSlice>> slices;                 // of NVIDIA's driver, by node
  std::map<std::pair<std::string, std::string>, KubeClaim> claims;      // by namespace and name
  std::map<std::pair<std::string, std::string>, KubeProfile> profiles;  // likewise
  std::map<std::string, KubeHostUse> host_use;                          // of bound pods without GPUs, by node
  std::map<std::string, size_t> other_drivers;                          // slices of other drivers
  size_t pods_done = 0;
  size_t pods_without_gpus = 0;
  size_t slices_without_node = 0;  // of a network, not of one node

 private:
  [[nodiscard]] absl::Status AddPod(const KubeView& object);
  [[nodiscard]] absl::Status AddSlice(const KubeView& object);
  [[nodiscard]] absl::Status CheckNew(const KubeView& object, std::string key);

  std::set<std::string> seen_;  // "Pod default/a"
};

}  // namespace horus
