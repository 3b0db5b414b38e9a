// SPDX-License-Identifier: Apache-2.0
// Sorts the GPUs of a node by what pods ask for, and deals out its cores and memory.
#include <algorithm>

#include "io/kube/kube_import.h"

namespace horus {
namespace {

// What pods ask for by a resource of its own; empty: whole GPUs.
std::string KindOf(const Catalogue& catalogue, const KubeGpu& gpu) {
  if (gpu.mode == SharingMode::kMig)
    return "mig-" + catalogue.at(gpu.type).mig[static_cast<size_t>(gpu.mig_profile)].name;
  return gpu.replicas > 1 ? "replicas" : "";
}

struct Part {
  std::vector<KubeGpu> gpus;
  std::set<int32_t> cards;
  int64_t cpu_milli = 0, mem_mib = 0;  // that its pods have
  size_t node = 0;
};

}  // namespace

size_t PartNodes(const Catalogue& catalogue, const std::vector<KubeHolder>& holders, ImportedCluster& cluster,
                 std::vector<const KubeNode*>& origin) {
  size_t parted = 0;
  std::vector<std::vector<KubeHolder>> of_node(cluster.nodes.size());
  for (const KubeHolder& holder : holders) of_node[*holder.node].push_back(holder);
  for (size_t at = 0; at < of_node.size(); ++at) {
    const ImportedNode whole = cluster.nodes[at];
    std::map<std::string, Part> parts;
    std::vector<std::pair<Part*, int32_t>> moved;  // by GPU of the node
    for (const KubeGpu& gpu : whole.gpus) {
      Part& part = parts[KindOf(catalogue, gpu)];
      moved.emplace_back(&part, static_cast<int32_t>(part.gpus.size()));
      part.gpus.push_back(gpu);
      part.cards.insert(gpu.card);
    }
    const auto part_of = [&](int32_t gpu) { return moved[static_cast<size_t>(gpu)].first; };
    const bool spans = std::ranges::any_of(of_node[at], [&](const KubeHolder& holder) {
      return std::ranges::any_of(*holder.gpus,
                                 [&](int32_t gpu) { return part_of(gpu) != part_of(holder.gpus->front()); });
    });
    if (parts.size() < 2 || spans) continue;
    ++parted;
    int64_t free_milli = whole.cpu_milli, free_mib = whole.mem_mib;
    for (const KubeHolder& holder : of_node[at]) {
      Part& part = *part_of(holder.gpus->front());
      part.cpu_milli += holder.cpu_milli, part.mem_mib += holder.mem_mib;  // Bounded: pods in memory
      free_milli -= holder.cpu_milli, free_mib -= holder.mem_mib;
    }
    double cards = 0;
    for (const auto& [kind, part] : parts) cards += static_cast<double>(part.cards.size());
    for (auto& [kind, part] : parts) {
      const double share = static_cast<double>(part.cards.size()) / cards;
      const auto of_free = [share](int64_t free) {
        return static_cast<int64_t>(share * static_cast<double>(std::max<int64_t>(0, free)));
      };
      ImportedNode node = whole;
      if (!kind.empty()) node.name += "/" + kind;
      node.gpus = std::move(part.gpus);
      node.cpu_milli = part.cpu_milli + of_free(free_milli);
      node.mem_mib = part.mem_mib + of_free(free_mib);
      const bool first = &part == &parts.begin()->second;
      part.node = first ? at : cluster.nodes.size();
      if (!first) {
        cluster.nodes.emplace_back();
        origin.push_back(origin[at]);
      }
      cluster.nodes[part.node] = std::move(node);
    }
    for (const KubeHolder& holder : of_node[at]) {
      *holder.node = part_of(holder.gpus->front())->node;
      for (int32_t& gpu : *holder.gpus) gpu = moved[static_cast<size_t>(gpu)].second;
    }
  }
  return parted;
}

}  // namespace horus
