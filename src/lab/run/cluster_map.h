// SPDX-License-Identifier: Apache-2.0
// ClusterMap: the nodes and devices of a cluster by number, in the order of Cluster::NodeIds and of their specs.
//
// Enters:  a cluster.   Leaves: numbers, and what lies at them.
// Cost:    O(nodes + devices) once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/id_map.h"
#include "interference/model.h"
#include "place/job/sensitivity.h"
#include "place/state/cluster.h"

namespace horus {

class ClusterMap {
 public:
  explicit ClusterMap(const Cluster& cluster);

  [[nodiscard]] size_t nodes() const { return nodes_.size(); }
  [[nodiscard]] size_t devices() const { return devices_.size(); }
  [[nodiscard]] NodeId id(uint32_t node) const { return nodes_[node]; }
  [[nodiscard]] const uint32_t* Find(NodeId id) const { return node_of_id_.Find(id); }  // null = not of the cluster
  [[nodiscard]] uint32_t at(NodeId id) const { return node_of_id_.at(id); }
  [[nodiscard]] uint32_t first_device(uint32_t node) const { return first_device_[node]; }
  [[nodiscard]] size_t devices_on(uint32_t node) const { return first_device_[node + 1] - first_device_[node]; }
  [[nodiscard]] uint32_t node_of(uint32_t device) const { return node_of_[device]; }
  [[nodiscard]] const DeviceSpec& device(uint32_t device) const { return devices_[device]; }
  [[nodiscard]] DeviceContext context(uint32_t device) const {
    const DeviceSpec& spec = devices_[device];
    return {spec.type, spec.mode, spec.compute_share};
  }
  [[nodiscard]] std::vector<DeviceContext> Contexts() const;
  [[nodiscard]] const HostShare& fair_share(uint32_t node) const { return fair_shares_[node]; }  // of each GPU

 private:
  std::vector<NodeId> nodes_;
  IdMap<uint32_t> node_of_id_;
  std::vector<DeviceSpec> devices_;
  std::vector<uint32_t> first_device_;  // by node, and the end
  std::vector<uint32_t> node_of_;       // by device
  std::vector<HostShare> fair_shares_;  // by node
};

}  // namespace horus
