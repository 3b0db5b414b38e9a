// SPDX-License-Identifier: Apache-2.0
// Keeps what the import needs of each object.
#include "io/kube/kube_state.h"

#include <algorithm>

#include "io/kube/kube_engine.h"
#include "io/kube/kube_profile.h"
#include "io/kube/quantity.h"

namespace horus {

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
