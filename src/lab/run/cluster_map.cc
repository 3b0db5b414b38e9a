// SPDX-License-Identifier: Apache-2.0
// Numbers the nodes and devices of a cluster.
#include "lab/run/cluster_map.h"

#include <algorithm>

namespace horus {

ClusterMap::ClusterMap(const Cluster& cluster) : nodes_(cluster.NodeIds()) {
  for (uint32_t node = 0; node < nodes_.size(); ++node) {
    node_of_id_.Insert(nodes_[node], node);
    const NodeInfo info = *cluster.Node(nodes_[node]);
    first_device_.push_back(static_cast<uint32_t>(devices_.size()));
    devices_.insert(devices_.end(), info.spec.devices.begin(), info.spec.devices.end());
    node_of_.resize(devices_.size(), node);
    const auto gpus = static_cast<int32_t>(std::max<size_t>(1, info.spec.devices.size()));
    fair_shares_.push_back(FairShare(info.spec.cpu_milli, info.spec.mem_mib, gpus));
  }
  first_device_.push_back(static_cast<uint32_t>(devices_.size()));
}

std::vector<DeviceContext> ClusterMap::Contexts() const {
  std::vector<DeviceContext> contexts;
  for (uint32_t device = 0; device < devices_.size(); ++device) contexts.push_back(context(device));
  return contexts;
}

}  // namespace horus
