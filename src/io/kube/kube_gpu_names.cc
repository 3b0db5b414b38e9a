// SPDX-License-Identifier: Apache-2.0
// Tables of the names that clouds use.
#include "io/kube/kube_gpu_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

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
constexpr std::array<const char*, 2> kInstanceLabels = {"node.kubernetes.io/instance-type",
                                                        "beta.kubernetes.io/instance-type"};

// Families of EC2 with whole GPUs (Amazon EC2 instance types, accelerated computing, 2026).
struct Family {
  std::string_view family, gpu;
};
constexpr std::array<Family, 14> kAmazon = {{{"p2", "k80"},
                                             {"p3", "v100-sxm2-16gb"},
                                             {"p3dn", "v100-sxm2-32gb"},
                                             {"p4d", "a100-40gb"},
                                             {"p4de", "a100-80gb"},
                                             {"p5", "h100-sxm"},
                                             {"p5e", "h200"},
                                             {"p5en", "h200"},
                                             {"g3", "m60"},
                                             {"g4dn", "t4"},
                                             {"g5", "a10g"},
                                             {"g6", "l4"},
                                             {"gr6", "l4"},
                                             {"g6e", "l40s"}}};

// Sizes of Azure with whole GPUs, by how they begin and end (Azure virtual machine sizes, GPU accelerated, 2026).
struct Size {
  std::string_view begin, end, gpu;
};
constexpr std::array<Size, 10> kAzure = {{{"standard-nc", "-t4-v3", "t4"},
                                          {"standard-nc", "-a100-v4", "a100-pcie-80gb"},
                                          {"standard-nc", "-h100-v5", "h100-nvl"},
                                          {"standard-nc", "s-v3", "v100-pcie-16gb"},
                                          {"standard-nc", "s-v2", "p100-pcie-16gb"},
                                          {"standard-nd", "rs-v2", "v100-sxm2-32gb"},
                                          {"standard-nd", "asr-v4", "a100-40gb"},
                                          {"standard-nd", "-a100-v4", "a100-80gb"},
                                          {"standard-nd", "-h100-v5", "h100-sxm"},
                                          {"standard-nd", "-h200-v5", "h200"}}};

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
  const std::string family = folded.substr(0, folded.find('.'));
  for (const Family& known : kAmazon) {
    if (known.family == family && family.size() < folded.size()) return std::string(known.gpu);
  }
  for (const Size& size : kAzure) {
    if (folded.starts_with(size.begin) && folded.ends_with(size.end)) return std::string(size.gpu);
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
  const std::string text = KubeLabel(labels, key);
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  return error == std::errc() && end == text.data() + text.size() && count > 0 ? count : 0;
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
  for (const char* const label : kInstanceLabels) {
    const std::string value = KubeLabel(labels, label);
    std::string gpu = GpuOfInstance(value);
    if (!gpu.empty()) return {label, value, std::move(gpu), 0};
  }
  return {};
}

}  // namespace horus
