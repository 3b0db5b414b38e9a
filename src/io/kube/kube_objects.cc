// SPDX-License-Identifier: Apache-2.0
// Reads objects and keeps what the import needs of each. Pods ask as the scheduler counts it, and go where it decides.
#include "io/kube/kube_objects.h"

#include <algorithm>
#include <limits>

#include "base/text.h"
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

absl::StatusOr<KubeTexts> ReadKubeTexts(const KubeView& view) {
  HORUS_ASSIGN_OR_RETURN(const auto pairs, view.Pairs());
  KubeTexts texts;
  for (const auto& [key, value] : pairs) HORUS_SET_OR_RETURN(texts[key], value.Text());
  return texts;
}

// A resource list: cpu, memory and what device plugins for the vendor's GPUs count, parts of GPUs by HAMi's names.
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

absl::StatusOr<KubeTaint> ReadTaint(const KubeView& taint) {
  KubeTaint read;
  HORUS_RETURN_IF_ERROR(taint.ReadTexts({{"key", read.key}, {"value", read.value}, {"effect", read.effect}}));
  return read;
}

// The condition of that type; nothing where there is none.
absl::StatusOr<KubeView> ConditionOf(const KubeView& status, std::string_view type) {
  HORUS_ASSIGN_OR_RETURN(const auto conditions, status["conditions"].List());
  KubeView found(nullptr, status.where());
  for (const KubeView& condition : conditions) {
    HORUS_ASSIGN_OR_RETURN(const std::string of, condition["type"].Text());
    if (of == type) found = condition;
  }
  return found;
}

// The memory among capacities; 0: none. `below`: the key of each that has its quantity; empty: it is one itself.
absl::StatusOr<int64_t> MemoryAmong(const KubeView& capacities, std::string_view below = "") {
  HORUS_ASSIGN_OR_RETURN(const auto pairs, capacities.Pairs());
  int64_t most = 0;
  for (const auto& [name, value] : pairs) {
    if (BareName(name) != kMemory) continue;
    HORUS_ASSIGN_OR_RETURN(const int64_t bytes, (below.empty() ? value : value[below]).Quantity(1));
    most = std::max(most, bytes);
  }
  return most;
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
  HORUS_ASSIGN_OR_RETURN(device.mem_bytes, MemoryAmong(body["capacity"], "value"));
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
  HORUS_ASSIGN_OR_RETURN(const int64_t wanted, MemoryAmong(body["capacity"]["requests"]));
  claim.mem_bytes = std::max(claim.mem_bytes, wanted);
  return absl::OkStatus();
}

absl::StatusOr<KubeAllocated> ReadAllocated(const KubeView& result) {
  KubeAllocated allocated;
  HORUS_RETURN_IF_ERROR(
      result.ReadTexts({{"driver", allocated.driver}, {"pool", allocated.pool}, {"device", allocated.device}}));
  HORUS_ASSIGN_OR_RETURN(allocated.mem_bytes, MemoryAmong(result["consumedCapacity"]));
  return allocated;
}

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

void AddHost(const KubeRequests& more, KubeRequests& sum) {
  sum.cpu_milli = Sum(sum.cpu_milli, more.cpu_milli);
  sum.mem_bytes = Sum(sum.mem_bytes, more.mem_bytes);
}

void Add(const KubeRequests& more, KubeRequests& sum) {
  AddHost(more, sum);
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
  if (inits.size() > kMostContainers || containers.size() > kMostContainers)
    return spec["containers"].Expected("at most 1000 containers");
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

absl::StatusOr<std::string> TextOf(const KubeView& view) { return view.Text(); }

absl::StatusOr<KubeTerm> ReadTerm(const KubeView& term) {
  KubeTerm read;
  for (const bool field : {false, true}) {
    HORUS_ASSIGN_OR_RETURN(const auto requirements, term[field ? "matchFields" : "matchExpressions"].List());
    for (const KubeView& requirement : requirements) {
      KubeRequirement one{.key = {}, .op = {}, .values = {}, .field = field};
      HORUS_RETURN_IF_ERROR(requirement.ReadTexts({{"key", one.key}, {"operator", one.op}}));
      HORUS_ASSIGN_OR_RETURN(one.values, requirement["values"].ListOf(TextOf));
      read.push_back(std::move(one));
    }
  }
  return read;
}

absl::StatusOr<KubeToleration> ReadToleration(const KubeView& toleration) {
  KubeToleration read;
  HORUS_RETURN_IF_ERROR(
      toleration.ReadTexts({{"key", read.key}, {"operator", read.op}, {"value", read.value}, {"effect", read.effect}}));
  return read;
}

absl::Status ReadWhere(const KubeView& spec, KubePod& pod) {
  HORUS_ASSIGN_OR_RETURN(pod.node_selector, ReadKubeTexts(spec["nodeSelector"]));
  const KubeView required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
  pod.rules.has_affinity = required.present();
  HORUS_ASSIGN_OR_RETURN(pod.rules.affinity, required["nodeSelectorTerms"].ListOf(ReadTerm));
  HORUS_ASSIGN_OR_RETURN(pod.rules.tolerations, spec["tolerations"].ListOf(ReadToleration));
  if (pod.rules.affinity.size() <= kMostRules && pod.rules.tolerations.size() <= kMostRules) return absl::OkStatus();
  return spec["tolerations"].Expected("at most 1000 tolerations, and as many terms of an affinity");
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
  HORUS_RETURN_IF_ERROR(annotations.ReadTexts(
      {{"gpu-fraction", part.fraction}, {"gpu-memory", part.mem_mib}, {"gpu-fraction-num-devices", part.gpus}}));
  HORUS_ASSIGN_OR_RETURN(const auto all, annotations.Pairs());
  for (const auto& [key, value] : all) {
    if (!key.ends_with(".gpu-memory.request")) continue;  // "nvidia.com/container.NAME.gpu-memory.request"
    HORUS_ASSIGN_OR_RETURN(part.container_memory.emplace_back(), value.Text());
  }
  HORUS_ASSIGN_OR_RETURN(const auto labels, meta["labels"].Pairs());
  for (const auto& [key, value] : labels) {
    if (key != kKaiGroup && !key.starts_with(std::string(kKaiGroup) + "/")) continue;
    HORUS_ASSIGN_OR_RETURN(part.groups.emplace_back(), value.Text());
  }
  part.holds = !part.groups.empty() && !part.asks();
  return absl::OkStatus();
}

absl::Status ReadTimes(const KubeView& meta, const KubeView& status, KubePod& pod) {
  HORUS_ASSIGN_OR_RETURN(const auto created, meta["creationTimestamp"].Time());
  pod.created_s = created.value_or(0);
  HORUS_ASSIGN_OR_RETURN(const KubeView scheduled, ConditionOf(status, "PodScheduled"));
  HORUS_ASSIGN_OR_RETURN(const auto changed, scheduled["lastTransitionTime"].Time());
  pod.scheduled_s = std::max(pod.created_s, changed.value_or(pod.created_s));
  return absl::OkStatus();
}

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

// ---- Whole objects.

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
  HORUS_ASSIGN_OR_RETURN(node.taints, spec["taints"].ListOf(ReadTaint));
  HORUS_ASSIGN_OR_RETURN(node.cordoned, spec["unschedulable"].Bool());
  HORUS_ASSIGN_OR_RETURN(const KubeView ready, ConditionOf(status, "Ready"));
  HORUS_ASSIGN_OR_RETURN(const std::string state, ready["status"].Text());
  node.ready = !ready.present() || state == "True";  // without it (just made, or simulated) it counts as ready
  // Allocatable is the capacity where nothing is said.
  const KubeView free = status["allocatable"].present() ? status["allocatable"] : status["capacity"];
  HORUS_ASSIGN_OR_RETURN(node.allocatable, ReadKubeResources(free));
  HORUS_ASSIGN_OR_RETURN(KubeRequests capacity, ReadKubeResources(status["capacity"]));
  node.capacity = std::move(capacity.resources);
  return node;
}

absl::StatusOr<KubeSlice> ReadKubeSlice(const KubeView& object) {
  KubeSlice slice;
  const KubeView spec = object["spec"], pool = spec["pool"];
  HORUS_ASSIGN_OR_RETURN(slice.name, ReadKubeName(object["metadata"]["name"]));
  HORUS_RETURN_IF_ERROR(spec.ReadTexts({{"driver", slice.driver}, {"nodeName", slice.node}}));
  HORUS_ASSIGN_OR_RETURN(slice.pool, pool["name"].Text());
  HORUS_ASSIGN_OR_RETURN(slice.generation, pool["generation"].Integer(0));
  HORUS_ASSIGN_OR_RETURN(slice.slices, pool["resourceSliceCount"].Integer(1));
  if (slice.driver != kKubeGpuDriver) return slice;
  HORUS_ASSIGN_OR_RETURN(slice.devices, spec["devices"].ListOf(ReadDevice));
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
  if (priority < std::numeric_limits<int32_t>::min() || priority > std::numeric_limits<int32_t>::max())
    return spec["priority"].Expected("an integer of 32 bits");
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
  for (const KubeView& container : containers)
    HORUS_SET_OR_RETURN(pod.images.emplace_back(), container["image"].Text());
  HORUS_RETURN_IF_ERROR(ReadWhere(spec, pod));
  HORUS_ASSIGN_OR_RETURN(pod.requests, ReadRequests(spec));
  HORUS_RETURN_IF_ERROR(ReadClaims(spec, status, pod));
  return pod;
}

// Whether the pod asks for GPUs, in whatever way.
bool UsesGpus(const KubePod& pod) {
  return !pod.part.holds &&
         (pod.part.asks() || !pod.requests.resources.empty() || !pod.claims.empty() || !pod.pending_claims.empty());
}

}  // namespace

absl::StatusOr<std::string> ReadKubeName(const KubeView& view) {
  HORUS_ASSIGN_OR_RETURN(std::string name, view.Text());
  constexpr size_t kLongest = 253;
  const bool plain = std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
  if (name.empty() || name.size() > kLongest || !plain) return view.Expected("a name of letters, digits, '-' and '.'");
  return name;
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
    AddHost(pod->requests, all.requests);
    all.requests.resources.insert(pod->requests.resources.begin(), pod->requests.resources.end());
    claims.insert(pod->claims.begin(), pod->claims.end());
    all.pending_claims.insert(all.pending_claims.end(), pod->pending_claims.begin(), pod->pending_claims.end());
  }
  all.claims.assign(claims.begin(), claims.end());
  return all;
}

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

absl::Status KubeState::CheckNew(const KubeView& object, std::string key) {
  if (seen_.size() >= kMostKubeObjects)
    return ResourceExhausted("%s: expected at most %d objects, found more", object.where(), kMostKubeObjects);
  if (seen_.insert(std::move(key)).second) return absl::OkStatus();
  return InvalidArgument("%s: expected each object once, found it again", object.where());
}

absl::Status KubeState::Add(std::string_view kind, const KubeView& object) {
  const auto add_named = [&](auto read, auto& by_name) -> absl::Status {
    HORUS_ASSIGN_OR_RETURN(auto one, read(object));
    HORUS_RETURN_IF_ERROR(CheckNew(object, std::string(kind) + " " + one.name_space + "/" + one.name));
    std::pair key(one.name_space, one.name);
    by_name.emplace(std::move(key), std::move(one));
    return absl::OkStatus();
  };
  if (kind == "Pod") return AddPod(object);
  if (kind == "ResourceSlice") return AddSlice(object);
  if (kind == "ResourceClaim") return add_named(ReadKubeClaim, claims);
  if (kind == "JobProfile") return add_named(ReadKubeProfile, profiles);
  if (kind != "Node") return absl::OkStatus();
  HORUS_ASSIGN_OR_RETURN(KubeNode node, ReadKubeNode(object));
  HORUS_RETURN_IF_ERROR(CheckNew(object, "Node " + node.name));
  nodes.push_back(std::move(node));
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
    if (!pod.node.empty()) AddHost(pod.requests, host_use[pod.node]);
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
