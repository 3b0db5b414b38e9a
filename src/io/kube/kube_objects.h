// SPDX-License-Identifier: Apache-2.0
// What is kept of nodes, pods, resource slices, resource claims and JobProfiles.
//
// Enters:  objects of the API server as JSON.
// Leaves:  plain values; errors that name object, field, expected and found.
// Units:   thousandths of a core, bytes, seconds since 1970.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "io/kube/kube_items.h"
#include "predict/demand.h"

namespace horus {

inline constexpr char kGpuResource[] = "nvidia.com/gpu";  // of NVIDIA's device plugin and HAMi's

using KubeTexts = std::map<std::string, std::string>;
using KubeCounts = std::map<std::string, int64_t>;  // extended resources by name

struct KubeEngine;  // kube_engine.h

// What a pod takes of a node, as the scheduler counts it, or may take.
struct KubeRequests {
  int64_t cpu_milli = 0;
  int64_t mem_bytes = 0;
  KubeCounts resources;
};

struct KubeTaint {
  std::string key, value, effect;
};

struct KubeToleration {
  std::string key, op, value, effect;
  friend auto operator<=>(const KubeToleration&, const KubeToleration&) = default;
};

// One requirement of a node affinity; `field` where it is of metadata.name.
struct KubeRequirement {
  std::string key, op;
  std::vector<std::string> values;
  bool field = false;
  friend auto operator<=>(const KubeRequirement&, const KubeRequirement&) = default;
};
using KubeTerm = std::vector<KubeRequirement>;  // all of them hold

// What pods of one kind state alike; the plain nodeSelector is apart, since cluster.yaml can say that itself.
struct KubeRules {
  bool has_affinity = false;
  std::vector<KubeTerm> affinity;  // one of them holds
  std::vector<KubeToleration> tolerations;
  friend auto operator<=>(const KubeRules&, const KubeRules&) = default;
};

struct KubeNode {
  std::string name;
  KubeTexts labels;
  std::string hami_register;  // annotation of HAMi or, in another order, of Volcano; empty: none
  bool volcano = false;
  std::vector<KubeTaint> taints;
  bool cordoned = false;
  bool ready = true;
  KubeRequests allocatable;
  KubeCounts capacity;  // of resources, with devices that are not healthy
};

// Annotations of libhorus.org as they stand there; empty: none.
struct KubeTermsOfPod {
  std::string profile, share, slowdown_bound, slowdown_confidence;
};

// A JobProfile of libhorus.org.
struct KubeProfile {
  std::string name_space, name;
  std::string kind;                                     // empty: training
  std::vector<std::pair<std::string, Demand>> demands;  // by GPU type
};

// A part of GPUs by annotations of KAI and Run:ai, as they stand there; empty: none.
struct KubePart {
  std::string fraction, mem_mib, gpus;
  std::vector<std::string> container_memory;  // quantities
  std::vector<std::string> groups;            // each is a GPU that KAI holds by a pod of its own
  bool holds = false;                         // it is such a pod, and no tenant

  [[nodiscard]] bool asks() const { return !fraction.empty() || !mem_mib.empty() || !container_memory.empty(); }
};

struct KubePod {
  std::string name_space, name;
  std::string node;  // empty: it waits
  bool done = false;
  bool gated = false;
  int64_t created_s = 0;
  int64_t scheduled_s = 0;
  int32_t priority = 0;
  std::string group;  // of coscheduling; empty: none
  std::string owner;  // uid of what made it (a ReplicaSet, a Job); empty: nothing
  KubeTexts node_selector;
  KubeRules rules;
  KubeRequests requests;
  std::vector<std::string> claims;          // names in its namespace
  std::vector<std::string> pending_claims;  // that are not made yet
  std::string hami_devices;                 // annotation of HAMi or Volcano; empty: none
  bool of_hami = false;                     // HAMi's scheduler places it, or did
  bool by_class = false;                    // it asks for a resource that a device class stands for
  KubePart part;
  KubeTermsOfPod terms;
  KubeTexts labels;
  std::vector<std::string> images;           // of its containers
  std::shared_ptr<const KubeEngine> engine;  // of one that uses GPUs; null: none that is known
};

struct KubeDevice {
  std::string name, product, uuid, type, profile, parent_uuid;
  int64_t mem_bytes = 0;
  bool shared = false;    // allowMultipleAllocations
  bool possible = false;  // a partition that the driver could make, not one that is there
};

struct KubeSlice {
  std::string name, driver, pool, node;
  int64_t generation = 0;
  int64_t slices = 0;  // of the pool
  std::vector<KubeDevice> devices;
};

struct KubeAllocated {
  std::string driver, pool, device;
  int64_t mem_bytes = 0;  // consumed of a shared device; 0: all
};

struct KubeClaim {
  std::string name_space, name;
  std::vector<KubeAllocated> allocated;
  int64_t gpus = 0;       // asked for of the class of whole GPUs
  int64_t mem_bytes = 0;  // asked for of each; 0: all
  bool selects = false;   // by an expression
  std::string unknown;    // what else it asks for; empty: nothing
};

inline constexpr char kKubeGpuDriver[] = "gpu.nvidia.com";
inline constexpr char kVolcanoGpu[] = "volcano.sh/vgpu-number";

// Of an object, as the API server checks names; not empty.
[[nodiscard]] absl::StatusOr<std::string> ReadKubeName(const KubeView& view);
[[nodiscard]] bool HasGpus(const KubeClaim& claim);
// What the pods of one allocation ask for: its GPUs once, cores and memory of each. At least one pod.
[[nodiscard]] KubePod JoinKubePods(const std::vector<const KubePod*>& pods, const std::string& name);

// Whether a pod may go there by taints and node affinity, as the scheduler of Kubernetes decides it.
// Taints that only say what the node's state says (cordoned, not ready) are left to it.
[[nodiscard]] bool Admits(const KubeRules& rules, const KubeNode& node);

// ---- All objects of one import, gathered from one file or several.
// Cost: about 1 KiB a node and a pod with GPUs; pods without are only summed.   Thread class: one thread at a time.

inline constexpr size_t kMostKubeObjects = 4'000'000;  // of all kinds that are read; chosen

class KubeState {
 public:
  // Other kinds than those five are passed over.
  [[nodiscard]] absl::Status Add(std::string_view kind, const KubeView& object);

  std::vector<KubeNode> nodes;
  std::vector<KubePod> pods;                                            // that use GPUs and are not done
  std::map<std::string, std::vector<KubeSlice>> slices;                 // of NVIDIA's driver, by node
  std::map<std::pair<std::string, std::string>, KubeClaim> claims;      // by namespace and name
  std::map<std::pair<std::string, std::string>, KubeProfile> profiles;  // likewise
  std::map<std::string, KubeRequests> host_use;                         // of bound pods without GPUs, by node
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
