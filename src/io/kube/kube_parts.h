// SPDX-License-Identifier: Apache-2.0
// Nodes that offer GPUs of several kinds, each as a node of its own: a job of jobs.yaml keeps to nodes by their labels,
// and cannot be kept to some GPUs of a node.
#pragma once

#include "io/kube/kube_import.h"

namespace horus {

// A pod that runs: where, on which of the node's GPUs, and what it has of the node.
struct KubeHolder {
  size_t* node = nullptr;
  std::vector<int32_t>* gpus = nullptr;
  int64_t cpu_milli = 0, mem_mib = 0;
};

// Parts the nodes whose GPUs are whole, replicas or instances of several profiles, unless a pod there has several
// kinds; says how many. Each part has what its pods have of cores and memory, and of the rest as much as it has cards.
// Holders follow; `origin` has an element a node.
size_t PartNodes(const Catalogue& catalogue, const std::vector<KubeHolder>& holders, ImportedCluster& cluster,
                 std::vector<const KubeNode*>& origin);

}  // namespace horus
