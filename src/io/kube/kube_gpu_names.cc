// SPDX-License-Identifier: Apache-2.0
// Tables of the names that clouds use.
#include "io/kube/kube_gpu_names.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_split.h"
#include "base/text.h"
#include "device/fold_name.h"

namespace horus {
namespace {

constexpr std::string_view kSharedSuffix = "-shared";
constexpr std::string_view kMigInfix = "-mig-";
// Most that a driver's figure is below (ECC, what the firmware keeps) or above the data sheet's: T4 6 %, M60 7 %.
constexpr double kMemoryTolerance = 0.1;

constexpr std::array<const char*, 3> kNameLabels = {
    "cloud.google.com/gke-accelerator",     // nvidia-h100-mega-80gb
    "karpenter.k8s.aws/instance-gpu-name",  // a10g
    "k8s.amazonaws.com/accelerator",        // nvidia-tesla-v100
};
constexpr char kKarpenterMemory[] = "karpenter.k8s.aws/instance-gpu-memory";
constexpr char kInstanceLabel[] = "node.kubernetes.io/instance-type";

// As bindings/kubernetes/internal/objects has them: what joins nodes closest comes first.
constexpr std::array<const char*, 9> kRackLabels = {"nvidia.com/gpu.clique",
                                                    "topology.kubernetes.io/rack",
                                                    "cloud.provider.com/topology-rack",
                                                    "network.topology.nvidia.com/accelerator",
                                                    "network.topology.nvidia.com/leaf",
                                                    "topology.k8s.aws/network-node-layer-3",
                                                    "cloud.google.com/gce-topology-subblock",
                                                    "rack",
                                                    "topology.kubernetes.io/zone"};
constexpr std::string_view kNoFabric = "00000000-0000-0000-0000-000000000000";  // clique where NVLink ends at the node

// Instance types with whole GPUs, by how they begin and, behind "*", end (pages of accelerated instance types of Amazon
// EC2, Azure, Google Cloud, IBM, Oracle, Alibaba, CoreWeave and DigitalOcean, 2026); folded. Types with parts of a GPU
// (EC2's g6f, Google's smaller g4, Azure's smaller NV A10) are not here.
struct Instances {
  const char* gpu;
  const char* types;
};
constexpr Instances kInstances[] = {
    {"a10", "bm.gpu.a10. vm.gpu.a10. ecs.gn7i- standard-nv36ad*s-a10-v5 standard-nv72ad*s-a10-v5"},
    {"a100-40gb", "p4d. a2-highgpu- a2-megagpu- bm.gpu4. bm.gpu.b4. ecs.gn7- standard-nd*asr-v4"},
    {"a100-80gb", "p4de. a2-ultragpu- bm.gpu.a100-v2. ecs.gn7e- standard-nd*-a100-v4"},
    {"a100-pcie-80gb", "standard-nc*-a100-v4"},
    {"a10g", "g5."},
    {"b200", "p6-b200. a4-highgpu- bm.gpu.b200. b200-8x"},
    {"b300", "p6-b300. bm.gpu.b300."},
    {"gb200", "p6e-gb200. a4x-highgpu- bm.gpu.gb200. gb200-4x standard-nd*-gb200-v6"},
    {"gb300", "p6e-gb300. a4x-maxgpu- bm.gpu.gb300. gb300-4x standard-nd*-gb300-v6"},
    {"h100-nvl", "standard-nc*-h100-v5"},
    {"h100-sxm",
     "p5. a3-highgpu- a3-megagpu- a3-edgegpu- bm.gpu.h100. gpu-h100x gd-8xh100 gx3d*h100 standard-nd*-h100-v5"},
    {"h200", "p5e. p5en. a3-ultragpu- bm.gpu.h200. gpu-h200x gd-8xh200 gx3d*h200 standard-nd*-h200-v5"},
    {"k80", "p2."},
    {"l4", "g6. gr6. g2-standard- gx3*l4"},
    {"l40s", "g6e. bm.gpu.l40s gpu-l40sx gd-8xl40s gx3*l40s"},
    {"m60", "g3."},
    {"p100-pcie-16gb", "ecs.gn5- standard-nc*s-v2"},
    {"p4", "ecs.gn5i-"},
    {"rtx-6000-ada", "gpu-6000adax"},
    {"rtx-pro-6000-server", "g7e. g4-standard-48 g4-standard-96 g4-standard-192 g4-standard-384"},
    {"t4", "g4dn. g5g. ecs.gn6i- standard-nc*-t4-v3"},
    {"v100-pcie-16gb", "standard-nc*s-v3"},
    {"v100-sxm2-16gb", "p3. bm.gpu3. vm.gpu3. ecs.gn6v-"},
    {"v100-sxm2-32gb", "p3dn. ecs.gn6e- standard-nd*rs-v2"},
};

// Where a cloud's name is another board's elsewhere: GKE's G4 machines have the server edition.
struct Renamed {
  std::string_view value, gpu;
};
constexpr std::array<Renamed, 1> kRenamed = {{{"nvidia-rtx-pro-6000", "rtx-pro-6000-server"}}};

std::string Folded(std::string_view text) {
  std::string folded(text);
  for (char& c : folded) c = FoldChar(c);
  return folded;
}

// "" for an instance type that is not known to have whole GPUs.
std::string GpuOfInstance(std::string_view type) {
  const std::string folded = Folded(type);
  for (const Instances& known : kInstances) {
    for (const absl::string_view one : absl::StrSplit(known.types, ' ')) {
      const std::pair<std::string, std::string> ends = absl::StrSplit(one, absl::MaxSplits('*', 1));
      if (folded.starts_with(ends.first) && folded.ends_with(ends.second)) return known.gpu;
    }
  }
  return "";
}

bool HasMemory(const GpuType& type, int64_t mem_mib) {
  const double stated = static_cast<double>(mem_mib), nominal = static_cast<double>(type.mem_mib);
  return std::abs(stated - nominal) <= kMemoryTolerance * nominal;
}

}  // namespace

KubeProduct SplitKubeProduct(std::string_view label) {
  KubeProduct product;
  std::string folded = Folded(label);
  if (folded.ends_with(kSharedSuffix)) {
    product.shared = true;
    folded.resize(folded.size() - kSharedSuffix.size());
  }
  const size_t infix = folded.find(kMigInfix);
  product.card = std::string(label.substr(0, std::min(infix, folded.size())));
  if (infix != std::string::npos) product.profile = folded.substr(infix + kMigInfix.size());
  return product;
}

absl::StatusOr<GpuTypeId> FindKubeGpu(const Catalogue& catalogue, std::string_view name, int64_t mem_mib) {
  HORUS_ASSIGN_OR_RETURN(const GpuTypeId type, catalogue.Find(name));
  if (mem_mib <= 0 || HasMemory(catalogue.at(type), mem_mib)) return type;
  constexpr int64_t kMibPerGib = 1024;
  const std::string sized =
      Formatted("%s-%dgb", std::string(name), mem_mib / kMibPerGib + (mem_mib % kMibPerGib >= kMibPerGib / 2 ? 1 : 0));
  const std::optional<GpuTypeId> other = catalogue.FindKnown(sized);
  if (other && HasMemory(catalogue.at(*other), mem_mib)) return *other;
  return InvalidArgument("expected about %d MiB of memory, as %s has (for %s), found %d MiB",
                         catalogue.at(type).mem_mib, catalogue.at(type).name, Quoted(name), mem_mib);
}

std::string KubeLabel(const KubeTexts& labels, const std::string& key) {
  const auto at = labels.find(key);
  return at == labels.end() ? "" : at->second;
}

int64_t KubeLabelCount(const KubeTexts& labels, const std::string& key) {
  return std::max<int64_t>(0, ParseNumber<int64_t>(KubeLabel(labels, key)).value_or(0));
}

std::string KubeRack(const KubeTexts& labels) {
  for (const char* const label : kRackLabels) {
    std::string rack = KubeLabel(labels, label);
    if (!rack.empty() && !rack.starts_with(kNoFabric)) return rack;
  }
  return "";
}

std::string KubeInstanceType(const KubeTexts& labels) {
  const std::string type = KubeLabel(labels, kInstanceLabel);
  return type.empty() ? KubeLabel(labels, "beta.kubernetes.io/instance-type") : type;
}

KubeCloudGpu FindKubeCloudGpu(const KubeTexts& labels) {
  for (const char* const label : kNameLabels) {
    const std::string value = KubeLabel(labels, label);
    if (value.empty()) continue;
    std::string name = value;
    for (const Renamed& other : kRenamed) {
      if (other.value == value) name = other.gpu;
    }
    return {label, value, std::move(name), KubeLabelCount(labels, kKarpenterMemory)};
  }
  const std::string type = KubeInstanceType(labels);
  std::string gpu = GpuOfInstance(type);
  if (gpu.empty()) return {};
  return {kInstanceLabel, type, std::move(gpu), 0};
}

}  // namespace horus
