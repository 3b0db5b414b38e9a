// SPDX-License-Identifier: Apache-2.0
// Reads pods: what they ask for, counted as the scheduler counts it, and where they may go.
#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <span>
#include <string_view>

#include "io/kube/kube_objects.h"
#include "io/kube/kube_profile.h"
#include "io/kube/quantity.h"

namespace horus {
namespace {

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
  pod.affinity.push_back(std::move(read));
  return absl::OkStatus();
}

absl::Status ReadWhere(const KubeView& spec, KubePod& pod) {
  HORUS_ASSIGN_OR_RETURN(pod.node_selector, ReadKubeTexts(spec["nodeSelector"]));
  const KubeView required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
  pod.has_affinity = required.present();
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
    pod.tolerations.push_back(std::move(read));
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

}  // namespace horus
