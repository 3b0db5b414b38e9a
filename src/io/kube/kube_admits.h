// SPDX-License-Identifier: Apache-2.0
// Which nodes a pod may go to by taints and node affinity, as the scheduler of Kubernetes decides it.
//
// Enters:  a pod's rules and a node.   Leaves: yes or no.
// Cost:    taints x tolerations, and terms.
#pragma once

#include <vector>

#include "io/kube/kube_objects.h"

namespace horus {

// What pods of one kind state alike; the plain nodeSelector is apart, since cluster.yaml can say that itself.
struct KubeRules {
  bool has_affinity = false;
  std::vector<KubeTerm> affinity;
  std::vector<KubeToleration> tolerations;
  friend auto operator<=>(const KubeRules&, const KubeRules&) = default;
};

[[nodiscard]] KubeRules RulesOf(const KubePod& pod);

// Taints that only say what the node's state says (cordoned, not ready) are left to it.
[[nodiscard]] bool Admits(const KubeRules& rules, const KubeNode& node);

}  // namespace horus
