// SPDX-License-Identifier: Apache-2.0
// A cluster and its jobs out of the objects of a Kubernetes cluster.
//
// Enters:  nodes, pods, slices and claims; the catalogue that GPU types are looked up in.
// Leaves:  nodes with devices, jobs that run and wait, and what was left out and why.
// Units:   thousandths of a core and of a GPU, MiB, seconds.
// Cost:    nodes x kinds of placement rules, and the pods.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "device/catalogue.h"
#include "io/kube/kube_ask.h"
#include "io/kube/kube_gpus.h"
#include "io/kube/kube_rules.h"
#include "io/kube/kube_state.h"
#include "place/job/job.h"
#include "place/state/node.h"

namespace horus {

struct ImportedNode {
  std::string name;
  AdminState state = AdminState::kUp;
  int64_t cpu_milli = 0;  // that jobs with GPUs may use
  int64_t mem_mib = 0;
  std::string rack;
  KubeTexts labels;
  std::vector<KubeGpu> gpus;
  std::string source;
};

struct ImportedPlace {
  size_t node = 0;  // position in ImportedCluster::nodes
  int32_t gpu = 0;
};

// Who says what a job runs.
enum class KnownBy : uint8_t { kJobProfile, kMeasured, kRule, kNobody };

struct ImportedJob {
  uint64_t id = 0;
  std::string name, tenant;
  int64_t tasks = 1;
  int64_t submit_s = 0;  // since the first of all
  int64_t placed_s = 0;  // where it runs
  int32_t priority = 0;
  int64_t cpu_milli = 0;  // a task
  int64_t mem_mib = 0;
  KubeShape shape;
  KubeTexts node_selector;
  std::vector<ImportedPlace> on;  // task by task; empty: it waits
  KnownBy known_by = KnownBy::kNobody;
};

struct ImportedProfile {
  KnownBy by = KnownBy::kJobProfile;
  std::string kind;                 // empty: training, or as the rule says
  std::vector<TypeDemand> demands;  // empty: the rule's
  const KubeRule* rule = nullptr;   // of ImportOptions: its terms
};

struct ImportLeftOut {
  bool is_node = false;
  std::string name, reason;
};

struct ImportedCluster {
  std::vector<ImportedNode> nodes;                  // that have GPUs
  std::vector<ImportedJob> jobs;                    // by submission
  std::map<std::string, ImportedProfile> profiles;  // by KubeShape::profile
  std::vector<ImportLeftOut> left_out;              // what has GPUs, or asks for them, and could not be told
  std::vector<std::string> notes;
  size_t nodes_without_gpus = 0;
  size_t pods = 0;  // that use GPUs and are among the jobs
  size_t pods_done = 0;
  size_t pods_without_gpus = 0;
  size_t told = 0;     // pods whose devices something tells
  size_t assumed = 0;  // pods whose devices are the least used of their nodes
};

struct ImportOptions {
  std::vector<std::string> rack_labels;  // that tell a node's rack, the first that it has; before those known here
  std::vector<KubeRule> rules;
  KubeMeasured measured;
};

// Of what it leaves `options` own the rules.
[[nodiscard]] ImportedCluster ImportCluster(const KubeState& state, const Catalogue& catalogue,
                                            const ImportOptions& options);

}  // namespace horus
