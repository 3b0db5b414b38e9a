// SPDX-License-Identifier: Apache-2.0
// A cluster and its jobs out of the objects of a Kubernetes cluster.
//
// Enters:  nodes, pods, slices and claims; the catalogue that GPU types are looked up in.
// Leaves:  nodes with devices, jobs that run and wait, and what was left out and why.
// Units:   thousandths of a core and of a GPU, MiB, seconds.
// Cost:    nodes x kinds of placement rules, and the pods.
#pragma once

#include "io/kube/kube_known.h"
#include "place/state/node.h"

namespace horus {

struct ImportedNode {
  std::string name;
  AdminState state = AdminState::kUp;
  bool cordoned = false;  // by somebody, and drained for no other reason
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
enum class KnownBy : uint8_t { kJobProfile, kMeasured, kPattern, kEngine, kNobody };

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
  std::string kind;                      // empty: training, or as the pattern says
  std::vector<TypeDemand> demands;       // empty: the pattern's
  const KubePattern* pattern = nullptr;  // of ImportOptions: its terms
  std::optional<ModelRun> run;           // beside a pattern that is a load
};

// A language model in an engine, as the command line of its pods says.
struct ImportedEngine {
  std::string name, model;
  int64_t gpus = 1;
  int64_t context = 0;            // tokens; 0: the model's
  double memory_share = 0;        // 0: not told
  KnownBy by = KnownBy::kNobody;  // what its pods count by; kEngine: as `architecture`, always at work
  std::string architecture;       // a known model (horus models)
  std::string why_not;            // of kNobody
  friend auto operator<=>(const ImportedEngine&, const ImportedEngine&) = default;
};

struct ImportLeftOut {
  bool is_node = false;
  std::string name, reason;
};

struct ImportedCluster {
  std::vector<ImportedNode> nodes;                  // that have GPUs
  std::vector<ImportedJob> jobs;                    // by submission
  std::map<std::string, ImportedProfile> profiles;  // by KubeShape::profile
  std::map<ImportedEngine, size_t> engines;         // pods of each
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
  std::vector<KubePattern> patterns;
  KubeMeasured measured;
  // Demands by GpuTypeId of a step of an engine; none: their times stay unknown.
  std::function<absl::StatusOr<std::vector<Demand>>(const ModelRun&)> predict;
};

// Of what it leaves `options` own the patterns.
[[nodiscard]] ImportedCluster ImportCluster(const KubeState& state, const Catalogue& catalogue,
                                            const ImportOptions& options);

// ---- Nodes that offer GPUs of several kinds, each as a node of its own: a job of jobs.yaml keeps to nodes by their
// labels, and cannot be kept to some GPUs of a node.

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

// ---- It as the files that other commands read (docs/files.md); each was read again by the reader that it is for.

struct ImportFiles {
  // By name. cluster.yaml: nodes alone; jobs.yaml: what runs and what waits; decisions.csv: where what runs was put, in
  // order; now.yaml: nodes, and what runs as residents; waiting.yaml: what waits.
  std::vector<std::pair<std::string, std::string>> texts;
  size_t too_long = 0;  // gangs whose line the log cannot hold
};

// `gpus_files`: paths of files with GPU types, as seen from where the files will lie. `catalogue` knows their types.
[[nodiscard]] absl::StatusOr<ImportFiles> WriteImport(const ImportedCluster& imported,
                                                      const std::shared_ptr<const Catalogue>& catalogue,
                                                      const std::vector<std::string>& gpus_files);

}  // namespace horus
