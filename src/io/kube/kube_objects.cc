// SPDX-License-Identifier: Apache-2.0
// Reads objects and keeps what the import needs of each. Pods ask as the scheduler counts it, and go where it decides.
#include "io/kube/kube_objects.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>

#include "base/text.h"
#include "base/units.h"
#include "io/kube/kube_engine.h"
#include "io/kube/kube_known.h"

namespace horus {
namespace {

// ---- Nodes, slices and claims.

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

namespace {

// ---- Pods.

constexpr std::array<std::string_view, 2> kGroupLabels = {"scheduling.x-k8s.io/pod-group",
                                                          "pod-group.scheduling.sigs.k8s.io"};  // before v0.24
constexpr std::array<std::string_view, 2> kVgpuDevices = {"hami.io/vgpu-devices-allocated", "volcano.sh/vgpu-ids-new"};
constexpr std::string_view kKaiGroup = "runai-gpu-group";  // several GPUs: "runai-gpu-group/..."
constexpr char kHamiScheduler[] = "hami-scheduler";
constexpr size_t kMostContainers = 1000;
constexpr size_t kMostRules = 1000;  // each is held against each node

// HAMi states these of each GPU of a container, so that those of several containers are not added.
constexpr std::array<std::string_view, 3> kPerGpu = {"nvidia.com/gpumem", "nvidia.com/gpumem-percentage",
                                                     "nvidia.com/gpucores"};

bool IsPerGpu(std::string_view name) { return std::ranges::find(kPerGpu, name) != kPerGpu.end(); }

// Both are at most kMostQuantity, so that their sum fits.
int64_t Sum(int64_t a, int64_t b) { return std::min(kMostQuantity, a + b); }

void Add(const KubeRequests& more, KubeRequests& sum) {
  sum.cpu_milli = Sum(sum.cpu_milli, more.cpu_milli);
  sum.mem_bytes = Sum(sum.mem_bytes, more.mem_bytes);
  for (const auto& [name, count] : more.resources) {
    int64_t& known = sum.resources[name];
    known = IsPerGpu(name) ? std::max(known, count) : Sum(known, count);
  }
}

void RaiseTo(const KubeRequests& other, KubeRequests& most) {
  most.cpu_milli = std::max(most.cpu_milli, other.cpu_milli);
  most.mem_bytes = std::max(most.mem_bytes, other.mem_bytes);
  for (const auto& [name, count] : other.resources) most.resources[name] = std::max(most.resources[name], count);
}

// A limit without a request is the request, too.
absl::StatusOr<KubeRequests> ReadContainer(const KubeView& container) {
  const KubeView resources = container["resources"];
  HORUS_ASSIGN_OR_RETURN(KubeRequests requests, ReadKubeResources(resources["requests"]));
  HORUS_ASSIGN_OR_RETURN(const KubeRequests limits, ReadKubeResources(resources["limits"]));
  if (!resources["requests"]["cpu"].present()) requests.cpu_milli = limits.cpu_milli;
  if (!resources["requests"]["memory"].present()) requests.mem_bytes = limits.mem_bytes;
  for (const auto& [name, count] : limits.resources) requests.resources.emplace(name, count);
  return requests;
}

// The larger of what runs together (containers and sidecars) and of each init container beside the sidecars that were
// started before it; then the overhead of the runtime.
absl::StatusOr<KubeRequests> ReadRequests(const KubeView& spec) {
  KubeRequests together, sidecars, most;
  HORUS_ASSIGN_OR_RETURN(const auto inits, spec["initContainers"].List());
  HORUS_ASSIGN_OR_RETURN(const auto containers, spec["containers"].List());
  if (inits.size() > kMostContainers || containers.size() > kMostContainers) {
    return spec["containers"].Expected("at most 1000 containers");
  }
  for (const KubeView& init : inits) {
    HORUS_ASSIGN_OR_RETURN(KubeRequests requests, ReadContainer(init));
    HORUS_ASSIGN_OR_RETURN(const std::string policy, init["restartPolicy"].Text());
    if (policy == "Always") {
      Add(requests, sidecars);
      RaiseTo(sidecars, most);
    } else {
      Add(sidecars, requests);
      RaiseTo(requests, most);
    }
  }
  together = sidecars;
  for (const KubeView& container : containers) {
    HORUS_ASSIGN_OR_RETURN(const KubeRequests requests, ReadContainer(container));
    Add(requests, together);
  }
  RaiseTo(together, most);
  // What the pod states as a whole holds instead of what its containers state.
  HORUS_ASSIGN_OR_RETURN(const KubeRequests whole, ReadContainer(spec));
  if (whole.cpu_milli > 0) most.cpu_milli = whole.cpu_milli;
  if (whole.mem_bytes > 0) most.mem_bytes = whole.mem_bytes;
  HORUS_ASSIGN_OR_RETURN(const KubeRequests overhead, ReadKubeResources(spec["overhead"]));
  Add(overhead, most);
  return most;
}

absl::Status ReadTerm(const KubeView& term, KubePod& pod) {
  KubeTerm read;
  for (const bool field : {false, true}) {
    HORUS_ASSIGN_OR_RETURN(const auto requirements, term[field ? "matchFields" : "matchExpressions"].List());
    for (const KubeView& requirement : requirements) {
      KubeRequirement one{.key = {}, .op = {}, .values = {}, .field = field};
      HORUS_ASSIGN_OR_RETURN(one.key, requirement["key"].Text());
      HORUS_ASSIGN_OR_RETURN(one.op, requirement["operator"].Text());
      HORUS_ASSIGN_OR_RETURN(const auto values, requirement["values"].List());
      for (const KubeView& value : values) {
        HORUS_ASSIGN_OR_RETURN(std::string text, value.Text());
        one.values.push_back(std::move(text));
      }
      read.push_back(std::move(one));
    }
  }
  pod.rules.affinity.push_back(std::move(read));
  return absl::OkStatus();
}

absl::Status ReadWhere(const KubeView& spec, KubePod& pod) {
  HORUS_ASSIGN_OR_RETURN(pod.node_selector, ReadKubeTexts(spec["nodeSelector"]));
  const KubeView required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
  pod.rules.has_affinity = required.present();
  HORUS_ASSIGN_OR_RETURN(const auto terms, required["nodeSelectorTerms"].List());
  for (const KubeView& term : terms) HORUS_RETURN_IF_ERROR(ReadTerm(term, pod));
  HORUS_ASSIGN_OR_RETURN(const auto tolerations, spec["tolerations"].List());
  if (terms.size() > kMostRules || tolerations.size() > kMostRules) {
    return spec["tolerations"].Expected("at most 1000 tolerations, and as many terms of an affinity");
  }
  for (const KubeView& toleration : tolerations) {
    KubeToleration read;
    HORUS_ASSIGN_OR_RETURN(read.key, toleration["key"].Text());
    HORUS_ASSIGN_OR_RETURN(read.op, toleration["operator"].Text());
    HORUS_ASSIGN_OR_RETURN(read.value, toleration["value"].Text());
    HORUS_ASSIGN_OR_RETURN(read.effect, toleration["effect"].Text());
    pod.rules.tolerations.push_back(std::move(read));
  }
  return absl::OkStatus();
}

// By the names that the pod's status tells of claims that were made from a template.
absl::Status ReadClaims(const KubeView& spec, const KubeView& status, KubePod& pod) {
  HORUS_ASSIGN_OR_RETURN(const auto claims, spec["resourceClaims"].List());
  HORUS_ASSIGN_OR_RETURN(const auto made, status["resourceClaimStatuses"].List());
  for (const KubeView& claim : claims) {
    HORUS_ASSIGN_OR_RETURN(const std::string name, claim["name"].Text());
    HORUS_ASSIGN_OR_RETURN(std::string target, claim["resourceClaimName"].Text());
    bool unused = false;
    for (const KubeView& one : made) {
      HORUS_ASSIGN_OR_RETURN(const std::string of, one["name"].Text());
      if (of != name) continue;
      HORUS_ASSIGN_OR_RETURN(target, one["resourceClaimName"].Text());
      unused = target.empty();  // the template made none for this pod
    }
    if (unused) continue;
    (target.empty() ? pod.pending_claims : pod.claims).push_back(target.empty() ? name : std::move(target));
  }
  HORUS_ASSIGN_OR_RETURN(std::string extended, status["extendedResourceClaimStatus"]["resourceClaimName"].Text());
  if (!extended.empty()) {
    pod.requests.resources.clear();  // the claim is how they are granted
    pod.by_class = true;
    pod.claims.push_back(std::move(extended));
  }
  return absl::OkStatus();
}

absl::Status ReadPart(const KubeView& meta, KubePart& part) {
  const KubeView annotations = meta["annotations"];
  HORUS_ASSIGN_OR_RETURN(part.fraction, annotations["gpu-fraction"].Text());
  HORUS_ASSIGN_OR_RETURN(part.mem_mib, annotations["gpu-memory"].Text());
  HORUS_ASSIGN_OR_RETURN(part.gpus, annotations["gpu-fraction-num-devices"].Text());
  HORUS_ASSIGN_OR_RETURN(const auto all, annotations.Pairs());
  for (const auto& [key, value] : all) {
    if (!key.ends_with(".gpu-memory.request")) continue;  // "nvidia.com/container.NAME.gpu-memory.request"
    HORUS_ASSIGN_OR_RETURN(std::string memory, value.Text());
    part.container_memory.push_back(std::move(memory));
  }
  HORUS_ASSIGN_OR_RETURN(const auto labels, meta["labels"].Pairs());
  for (const auto& [key, value] : labels) {
    if (key != kKaiGroup && !key.starts_with(std::string(kKaiGroup) + "/")) continue;
    HORUS_ASSIGN_OR_RETURN(std::string group, value.Text());
    part.groups.push_back(std::move(group));
  }
  part.holds = !part.groups.empty() && !part.asks();
  return absl::OkStatus();
}

absl::Status ReadTimes(const KubeView& meta, const KubeView& status, KubePod& pod) {
  HORUS_ASSIGN_OR_RETURN(const auto created, meta["creationTimestamp"].Time());
  pod.created_s = created.value_or(0);
  pod.scheduled_s = pod.created_s;
  HORUS_ASSIGN_OR_RETURN(const auto conditions, status["conditions"].List());
  for (const KubeView& condition : conditions) {
    HORUS_ASSIGN_OR_RETURN(const std::string type, condition["type"].Text());
    if (type != "PodScheduled") continue;
    HORUS_ASSIGN_OR_RETURN(const auto changed, condition["lastTransitionTime"].Time());
    pod.scheduled_s = std::max(pod.created_s, changed.value_or(pod.created_s));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<KubePod> ReadKubePod(const KubeView& object) {
  KubePod pod;
  const KubeView meta = object["metadata"], spec = object["spec"], status = object["status"];
  HORUS_ASSIGN_OR_RETURN(pod.name, ReadKubeName(meta["name"]));
  HORUS_ASSIGN_OR_RETURN(pod.name_space, ReadKubeName(meta["namespace"]));
  HORUS_ASSIGN_OR_RETURN(pod.node, spec["nodeName"].Text());
  HORUS_ASSIGN_OR_RETURN(const std::string phase, status["phase"].Text());
  // One that is deleted before it was bound goes nowhere; a bound one holds its GPUs until it is gone.
  pod.done = phase == "Succeeded" || phase == "Failed" || (pod.node.empty() && meta["deletionTimestamp"].present());
  if (pod.done) return pod;
  HORUS_ASSIGN_OR_RETURN(const auto gates, spec["schedulingGates"].List());
  pod.gated = !gates.empty();
  HORUS_RETURN_IF_ERROR(ReadTimes(meta, status, pod));
  HORUS_ASSIGN_OR_RETURN(const int64_t priority, spec["priority"].Integer(0));
  if (priority < std::numeric_limits<int32_t>::min() || priority > std::numeric_limits<int32_t>::max()) {
    return spec["priority"].Expected("an integer of 32 bits");
  }
  pod.priority = static_cast<int32_t>(priority);
  for (const std::string_view label : kGroupLabels) {
    if (!pod.group.empty() || !meta["labels"][label].present()) continue;
    HORUS_ASSIGN_OR_RETURN(pod.group, meta["labels"][label].Text());
    constexpr size_t kLongest = 253;
    if (pod.group.size() > kLongest) return meta["labels"][label].Expected("at most 253 bytes");
  }
  HORUS_ASSIGN_OR_RETURN(const auto owners, meta["ownerReferences"].List());
  for (const KubeView& owner : owners) {
    HORUS_ASSIGN_OR_RETURN(const bool controls, owner["controller"].Bool());
    HORUS_ASSIGN_OR_RETURN(const std::string kind, owner["kind"].Text());
    // All pods of these are alike; of a PyTorchJob or a RayCluster they are not.
    if (!controls || (kind != "ReplicaSet" && kind != "StatefulSet" && kind != "Job")) continue;
    HORUS_ASSIGN_OR_RETURN(pod.owner, owner["uid"].Text());
  }
  for (const std::string_view annotation : kVgpuDevices) {
    if (!pod.hami_devices.empty()) continue;
    HORUS_ASSIGN_OR_RETURN(pod.hami_devices, meta["annotations"][annotation].Text());
  }
  HORUS_RETURN_IF_ERROR(ReadPart(meta, pod.part));
  HORUS_ASSIGN_OR_RETURN(const std::string scheduler, spec["schedulerName"].Text());
  pod.of_hami = scheduler == kHamiScheduler || !pod.hami_devices.empty();
  HORUS_ASSIGN_OR_RETURN(pod.terms, ReadKubeTermsOfPod(meta["annotations"]));
  HORUS_ASSIGN_OR_RETURN(pod.labels, ReadKubeTexts(meta["labels"]));
  HORUS_ASSIGN_OR_RETURN(const auto containers, spec["containers"].List());
  for (const KubeView& container : containers) {
    HORUS_ASSIGN_OR_RETURN(std::string image, container["image"].Text());
    pod.images.push_back(std::move(image));
  }
  HORUS_RETURN_IF_ERROR(ReadWhere(spec, pod));
  HORUS_ASSIGN_OR_RETURN(pod.requests, ReadRequests(spec));
  HORUS_RETURN_IF_ERROR(ReadClaims(spec, status, pod));
  return pod;
}

bool HasGpus(const KubeClaim& claim) {
  return claim.gpus > 0 ||
         std::ranges::any_of(claim.allocated, [](const KubeAllocated& one) { return one.driver == kKubeGpuDriver; });
}

KubePod JoinKubePods(const std::vector<const KubePod*>& pods, const std::string& name) {
  KubePod all = *pods.front();
  all.name = name;
  all.terms = {};  // a profile is of one pod
  std::set<std::string> claims(all.claims.begin(), all.claims.end());
  for (const KubePod* const pod : std::span(pods).subspan(1)) {
    if (all.node.empty() && !pod->node.empty()) {
      all.node = pod->node;
      all.scheduled_s = pod->scheduled_s;
    }
    if (all.group != pod->group) all.group.clear();
    all.gated &= pod->gated;
    all.created_s = std::min(all.created_s, pod->created_s);
    all.priority = std::max(all.priority, pod->priority);
    all.node_selector.insert(pod->node_selector.begin(), pod->node_selector.end());
    // Each is at most kMostQuantity, so that the sums fit.
    all.requests.cpu_milli = std::min(kMostQuantity, all.requests.cpu_milli + pod->requests.cpu_milli);
    all.requests.mem_bytes = std::min(kMostQuantity, all.requests.mem_bytes + pod->requests.mem_bytes);
    all.requests.resources.insert(pod->requests.resources.begin(), pod->requests.resources.end());
    claims.insert(pod->claims.begin(), pod->claims.end());
    all.pending_claims.insert(all.pending_claims.end(), pod->pending_claims.begin(), pod->pending_claims.end());
  }
  all.claims.assign(claims.begin(), claims.end());
  return all;
}

namespace {

// ---- Taints and node affinity.

constexpr std::array<std::string_view, 3> kStateTaints = {
    "node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"};

bool Tolerates(const KubeToleration& toleration, const KubeTaint& taint) {
  if (!toleration.effect.empty() && toleration.effect != taint.effect) return false;
  if (!toleration.key.empty() && toleration.key != taint.key) return false;
  if (toleration.op == "Exists") return true;
  return !toleration.key.empty() && (toleration.op.empty() || toleration.op == "Equal") &&
         toleration.value == taint.value;
}

bool Holds(const KubeRequirement& requirement, const KubeNode& node) {
  const std::string* value = nullptr;
  if (requirement.field) {
    if (requirement.key == "metadata.name") value = &node.name;
  } else if (const auto at = node.labels.find(requirement.key); at != node.labels.end()) {
    value = &at->second;
  }
  const auto& values = requirement.values;
  const bool listed = value != nullptr && std::ranges::find(values, *value) != values.end();
  if (requirement.op == "In") return listed;
  if (requirement.op == "NotIn") return !listed;
  if (requirement.op == "Exists") return value != nullptr;
  if (requirement.op == "DoesNotExist") return value == nullptr;
  if (value == nullptr || values.size() != 1) return false;
  const std::optional<int64_t> found = ParseNumber<int64_t>(*value), limit = ParseNumber<int64_t>(values[0]);
  if (!found || !limit) return false;
  return requirement.op == "Gt" ? *found > *limit : requirement.op == "Lt" && *found < *limit;
}

}  // namespace

bool Admits(const KubeRules& rules, const KubeNode& node) {
  for (const KubeTaint& taint : node.taints) {
    if (taint.effect != "NoSchedule" && taint.effect != "NoExecute") continue;
    if (std::ranges::find(kStateTaints, taint.key) != kStateTaints.end()) continue;
    const bool tolerated =
        std::ranges::any_of(rules.tolerations, [&](const KubeToleration& one) { return Tolerates(one, taint); });
    if (!tolerated) return false;
  }
  if (!rules.has_affinity) return true;
  return std::ranges::any_of(rules.affinity, [&](const KubeTerm& term) {
    // A term without requirements holds nowhere.
    return !term.empty() && std::ranges::all_of(term, [&](const auto& one) { return Holds(one, node); });
  });
}

// ---- All of them.

bool UsesGpus(const KubePod& pod) {
  return !pod.part.holds &&
         (pod.part.asks() || !pod.requests.resources.empty() || !pod.claims.empty() || !pod.pending_claims.empty());
}

absl::Status KubeState::CheckNew(const KubeView& object, std::string key) {
  if (seen_.size() >= kMostKubeObjects) {
    return ResourceExhausted("%s: expected at most %d objects, found more", object.where(), kMostKubeObjects);
  }
  if (seen_.insert(std::move(key)).second) return absl::OkStatus();
  return InvalidArgument("%s: expected each object once, found it again", object.where());
}

absl::Status KubeState::Add(std::string_view kind, const KubeView& object) {
  if (kind == "Node") {
    HORUS_ASSIGN_OR_RETURN(KubeNode node, ReadKubeNode(object));
    HORUS_RETURN_IF_ERROR(CheckNew(object, "Node " + node.name));
    nodes.push_back(std::move(node));
  } else if (kind == "Pod") {
    return AddPod(object);
  } else if (kind == "ResourceSlice") {
    return AddSlice(object);
  } else if (kind == "ResourceClaim") {
    HORUS_ASSIGN_OR_RETURN(KubeClaim claim, ReadKubeClaim(object));
    HORUS_RETURN_IF_ERROR(CheckNew(object, "ResourceClaim " + claim.name_space + "/" + claim.name));
    std::pair<std::string, std::string> key(claim.name_space, claim.name);
    claims.emplace(std::move(key), std::move(claim));
  } else if (kind == "JobProfile") {
    HORUS_ASSIGN_OR_RETURN(KubeProfile profile, ReadKubeProfile(object));
    HORUS_RETURN_IF_ERROR(CheckNew(object, "JobProfile " + profile.name_space + "/" + profile.name));
    std::pair<std::string, std::string> key(profile.name_space, profile.name);
    profiles.emplace(std::move(key), std::move(profile));
  }
  return absl::OkStatus();
}

absl::Status KubeState::AddPod(const KubeView& object) {
  HORUS_ASSIGN_OR_RETURN(KubePod pod, ReadKubePod(object));
  HORUS_RETURN_IF_ERROR(CheckNew(object, "Pod " + pod.name_space + "/" + pod.name));
  if (pod.done) {
    ++pods_done;
  } else if (UsesGpus(pod)) {
    HORUS_ASSIGN_OR_RETURN(std::optional<KubeEngine> engine, ReadKubeEngine(object["spec"]));
    if (engine) pod.engine = std::make_shared<const KubeEngine>(*std::move(engine));
    pods.push_back(std::move(pod));
  } else {
    ++pods_without_gpus;
    if (pod.node.empty()) return absl::OkStatus();
    KubeHostUse& use = host_use[pod.node];
    // Each is at most kMostQuantity, so that the sums fit.
    use.cpu_milli = std::min(kMostQuantity, use.cpu_milli + pod.requests.cpu_milli);
    use.mem_bytes = std::min(kMostQuantity, use.mem_bytes + pod.requests.mem_bytes);
  }
  return absl::OkStatus();
}

absl::Status KubeState::AddSlice(const KubeView& object) {
  HORUS_ASSIGN_OR_RETURN(KubeSlice slice, ReadKubeSlice(object));
  HORUS_RETURN_IF_ERROR(CheckNew(object, "ResourceSlice " + slice.name));
  if (slice.driver != kKubeGpuDriver) {
    ++other_drivers[slice.driver];
  } else if (slice.node.empty()) {
    ++slices_without_node;
  } else {
    const std::string node = slice.node;
    slices[node].push_back(std::move(slice));
  }
  return absl::OkStatus();
}

}  // namespace horus
