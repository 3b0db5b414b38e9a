// SPDX-License-Identifier: Apache-2.0
// Reads nodes, slices and claims. Pods are read in kube_pod.cc.
#include "io/kube/kube_objects.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
#include "base/units.h"

namespace horus {
namespace {

constexpr char kHamiRegister[] = "hami.io/node-nvidia-register";
constexpr char kVolcanoRegister[] = "volcano.sh/node-vgpu-register";
// Volcano's plugin is HAMi's under other names.
constexpr std::array<std::pair<std::string_view, const char*>, 3> kVolcanoParts = {
    {{"volcano.sh/vgpu-memory", "nvidia.com/gpumem"},
     {"volcano.sh/vgpu-memory-percentage", "nvidia.com/gpumem-percentage"},
     {"volcano.sh/vgpu-cores", "nvidia.com/gpucores"}}};
constexpr char kGpuClass[] = "gpu.nvidia.com";
constexpr char kMemory[] = "memory";

// "gpu.nvidia.com/productName" is productName of a driver of that name.
std::string_view BareName(std::string_view name) {
  const size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? name : name.substr(slash + 1);
}

absl::Status ReadTaints(const KubeView& spec, KubeNode& node) {
  HORUS_ASSIGN_OR_RETURN(const auto taints, spec["taints"].List());
  for (const KubeView& taint : taints) {
    KubeTaint read;
    HORUS_ASSIGN_OR_RETURN(read.key, taint["key"].Text());
    HORUS_ASSIGN_OR_RETURN(read.value, taint["value"].Text());
    HORUS_ASSIGN_OR_RETURN(read.effect, taint["effect"].Text());
    node.taints.push_back(std::move(read));
  }
  return absl::OkStatus();
}

// Without the condition (a node that was just made, or a simulated one) it counts as ready.
absl::Status ReadReady(const KubeView& status, KubeNode& node) {
  HORUS_ASSIGN_OR_RETURN(const auto conditions, status["conditions"].List());
  for (const KubeView& condition : conditions) {
    HORUS_ASSIGN_OR_RETURN(const std::string type, condition["type"].Text());
    if (type != "Ready") continue;
    HORUS_ASSIGN_OR_RETURN(const std::string state, condition["status"].Text());
    node.ready = state == "True";
  }
  return absl::OkStatus();
}

// Fields of a device lie under `basic` up to v1beta1.
absl::StatusOr<KubeDevice> ReadDevice(const KubeView& item) {
  KubeDevice device;
  HORUS_ASSIGN_OR_RETURN(device.name, ReadKubeName(item["name"]));
  const KubeView body = item["basic"].present() ? item["basic"] : item;
  HORUS_ASSIGN_OR_RETURN(const auto attributes, body["attributes"].Pairs());
  for (const auto& [name, value] : attributes) {
    const std::string_view bare = BareName(name);
    std::string* const to = bare == "productName"  ? &device.product
                            : bare == "uuid"       ? &device.uuid
                            : bare == "type"       ? &device.type
                            : bare == "profile"    ? &device.profile
                            : bare == "parentUUID" ? &device.parent_uuid
                                                   : nullptr;
    if (to == nullptr) continue;
    HORUS_ASSIGN_OR_RETURN(*to, value["string"].Text());
  }
  HORUS_ASSIGN_OR_RETURN(const auto capacity, body["capacity"].Pairs());
  for (const auto& [name, value] : capacity) {
    if (BareName(name) != kMemory) continue;
    HORUS_ASSIGN_OR_RETURN(device.mem_bytes, value["value"].Quantity(1));
  }
  HORUS_ASSIGN_OR_RETURN(device.shared, body["allowMultipleAllocations"].Bool());
  device.possible = device.type == "mig" && body["consumesCounters"].present();
  return device;
}

// A request says its details itself up to v1beta1, in `exactly` from then on; `firstAvailable` lists several.
absl::Status ReadClaimRequest(const KubeView& request, KubeClaim& claim) {
  if (request["firstAvailable"].present()) {
    claim.unknown = "alternatives (firstAvailable)";
    return absl::OkStatus();
  }
  const KubeView body = request["exactly"].present() ? request["exactly"] : request;
  HORUS_ASSIGN_OR_RETURN(const bool admin, body["adminAccess"].Bool());
  if (admin) return absl::OkStatus();  // it watches devices that others hold
  HORUS_ASSIGN_OR_RETURN(const std::string device_class, body["deviceClassName"].Text());
  HORUS_ASSIGN_OR_RETURN(const std::string mode, body["allocationMode"].Text());
  HORUS_ASSIGN_OR_RETURN(const int64_t count, body["count"].Integer(1));
  if (device_class.starts_with("compute-domain-")) return absl::OkStatus();  // a channel over NVLink, no GPU
  if (device_class != kGpuClass) {
    claim.unknown = "devices of class " + Quoted(device_class);
    return absl::OkStatus();
  }
  if (mode == "All") {
    claim.unknown = "all devices of a node";
    return absl::OkStatus();
  }
  constexpr int64_t kMostDevices = 1024;
  if (count < 1 || count > kMostDevices) return body["count"].Expected("1 to 1024 devices");
  claim.gpus += count;
  HORUS_ASSIGN_OR_RETURN(const auto selectors, body["selectors"].List());
  claim.selects |= !selectors.empty();
  HORUS_ASSIGN_OR_RETURN(const auto wanted, body["capacity"]["requests"].Pairs());
  for (const auto& [name, value] : wanted) {
    if (BareName(name) != kMemory) continue;
    HORUS_ASSIGN_OR_RETURN(const int64_t bytes, value.Quantity(1));
    claim.mem_bytes = std::max(claim.mem_bytes, bytes);
  }
  return absl::OkStatus();
}

absl::StatusOr<KubeAllocated> ReadAllocated(const KubeView& result) {
  KubeAllocated allocated;
  HORUS_ASSIGN_OR_RETURN(allocated.driver, result["driver"].Text());
  HORUS_ASSIGN_OR_RETURN(allocated.pool, result["pool"].Text());
  HORUS_ASSIGN_OR_RETURN(allocated.device, result["device"].Text());
  HORUS_ASSIGN_OR_RETURN(const auto consumed, result["consumedCapacity"].Pairs());
  for (const auto& [name, value] : consumed) {
    if (BareName(name) != kMemory) continue;
    HORUS_ASSIGN_OR_RETURN(allocated.mem_bytes, value.Quantity(1));
  }
  return allocated;
}

}  // namespace

absl::StatusOr<std::string> ReadKubeName(const KubeView& view) {
  HORUS_ASSIGN_OR_RETURN(std::string name, view.Text());
  constexpr size_t kLongest = 253;
  const bool plain = std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
  if (name.empty() || name.size() > kLongest || !plain) {
    return view.Expected("a name of letters, digits, '-' and '.'");
  }
  return name;
}

absl::StatusOr<KubeTexts> ReadKubeTexts(const KubeView& view) {
  HORUS_ASSIGN_OR_RETURN(const auto pairs, view.TextPairs());
  return KubeTexts(pairs.begin(), pairs.end());
}

absl::StatusOr<KubeRequests> ReadKubeResources(const KubeView& resources) {
  KubeRequests read;
  HORUS_ASSIGN_OR_RETURN(const auto pairs, resources.Pairs());
  for (const auto& [name, value] : pairs) {
    if (name == "cpu") {
      HORUS_ASSIGN_OR_RETURN(read.cpu_milli, value.Quantity(kMilliPerCore));
    } else if (name == kMemory) {
      HORUS_ASSIGN_OR_RETURN(read.mem_bytes, value.Quantity(1));
    } else {
      const auto part =
          std::ranges::find_if(kVolcanoParts, [&key = name](const auto& one) { return one.first == key; });
      const std::string known = part == kVolcanoParts.end() ? name : part->second;
      if (!known.starts_with("nvidia.com/") && known != kVolcanoGpu) continue;
      HORUS_ASSIGN_OR_RETURN(const int64_t count, value.Quantity(1));
      if (count > 0) read.resources[known] = count;
    }
  }
  return read;
}

absl::StatusOr<KubeNode> ReadKubeNode(const KubeView& object) {
  KubeNode node;
  const KubeView meta = object["metadata"], spec = object["spec"], status = object["status"];
  HORUS_ASSIGN_OR_RETURN(node.name, ReadKubeName(meta["name"]));
  HORUS_ASSIGN_OR_RETURN(node.labels, ReadKubeTexts(meta["labels"]));
  HORUS_ASSIGN_OR_RETURN(node.hami_register, meta["annotations"][kHamiRegister].Text());
  if (node.hami_register.empty()) {
    HORUS_ASSIGN_OR_RETURN(node.hami_register, meta["annotations"][kVolcanoRegister].Text());
    node.volcano = !node.hami_register.empty();
  }
  HORUS_RETURN_IF_ERROR(ReadTaints(spec, node));
  HORUS_ASSIGN_OR_RETURN(node.cordoned, spec["unschedulable"].Bool());
  HORUS_RETURN_IF_ERROR(ReadReady(status, node));
  // Allocatable is the capacity where nothing is said.
  const KubeView free = status["allocatable"].present() ? status["allocatable"] : status["capacity"];
  HORUS_ASSIGN_OR_RETURN(KubeRequests allocatable, ReadKubeResources(free));
  node.cpu_milli = allocatable.cpu_milli;
  node.mem_bytes = allocatable.mem_bytes;
  node.resources = std::move(allocatable.resources);
  HORUS_ASSIGN_OR_RETURN(KubeRequests capacity, ReadKubeResources(status["capacity"]));
  node.capacity = std::move(capacity.resources);
  return node;
}

absl::StatusOr<KubeSlice> ReadKubeSlice(const KubeView& object) {
  KubeSlice slice;
  const KubeView spec = object["spec"], pool = spec["pool"];
  HORUS_ASSIGN_OR_RETURN(slice.name, ReadKubeName(object["metadata"]["name"]));
  HORUS_ASSIGN_OR_RETURN(slice.driver, spec["driver"].Text());
  HORUS_ASSIGN_OR_RETURN(slice.node, spec["nodeName"].Text());
  HORUS_ASSIGN_OR_RETURN(slice.pool, pool["name"].Text());
  HORUS_ASSIGN_OR_RETURN(slice.generation, pool["generation"].Integer(0));
  HORUS_ASSIGN_OR_RETURN(slice.slices, pool["resourceSliceCount"].Integer(1));
  if (slice.driver != kKubeGpuDriver) return slice;
  HORUS_ASSIGN_OR_RETURN(const auto devices, spec["devices"].List());
  for (const KubeView& item : devices) {
    HORUS_ASSIGN_OR_RETURN(KubeDevice device, ReadDevice(item));
    slice.devices.push_back(std::move(device));
  }
  return slice;
}

absl::StatusOr<KubeClaim> ReadKubeClaim(const KubeView& object) {
  KubeClaim claim;
  const KubeView meta = object["metadata"], status = object["status"];
  HORUS_ASSIGN_OR_RETURN(claim.name, ReadKubeName(meta["name"]));
  HORUS_ASSIGN_OR_RETURN(claim.name_space, ReadKubeName(meta["namespace"]));
  HORUS_ASSIGN_OR_RETURN(const auto requests, object["spec"]["devices"]["requests"].List());
  for (const KubeView& request : requests) HORUS_RETURN_IF_ERROR(ReadClaimRequest(request, claim));
  HORUS_ASSIGN_OR_RETURN(const auto results, status["allocation"]["devices"]["results"].List());
  for (const KubeView& result : results) {
    HORUS_ASSIGN_OR_RETURN(const bool admin, result["adminAccess"].Bool());
    HORUS_ASSIGN_OR_RETURN(KubeAllocated allocated, ReadAllocated(result));
    if (!admin) claim.allocated.push_back(std::move(allocated));
  }
  return claim;
}

}  // namespace horus
