// SPDX-License-Identifier: Apache-2.0
// The table of enforcers.
#include "io/enforcers.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "predict/demand.h"

namespace horus {
namespace {

bool IsShared(const GpuGrant& grant) {
  return grant.mode == SharingMode::kTimeSlice || grant.mode == SharingMode::kMps;
}

// MiB; 0 = no limit.
int64_t LimitOf(const GpuGrant& grant) {
  return grant.memory.limit_mib < kUnboundedMemMib ? grant.memory.limit_mib : 0;
}

// The same, "MPS v3 Configuration File" (drivers from r615): a namespace, whose name is a folder's, of a server.
std::string Mps3Words(const GpuGrant& grant) {
  if (grant.mode != SharingMode::kMps || (grant.sm_cap_pct == 0 && LimitOf(grant) == 0)) return "";
  std::string name = grant.job;
  std::ranges::replace_if(name, [](unsigned char c) { return std::isalnum(c) == 0 && c != '-'; }, '_');
  if (name != grant.job) absl::StrAppend(&name, "_", absl::Hex(Hash64(grant.job) & 0xffffffff));  // no two are one
  std::string words = absl::StrCat("[servers.horus.namespaces.", name, "]");
  if (grant.sm_cap_pct > 0) absl::StrAppend(&words, "\nactive_thread_percentage = \"", grant.sm_cap_pct, "\"");
  if (LimitOf(grant) > 0) absl::StrAppend(&words, "\npinned_memory_limit = \"", LimitOf(grant), "M\"");
  return words;
}

// NVIDIA's DRA driver, GpuConfig of resource.nvidia.com/v1beta1: of all pods of a claim.
std::string DraWords(const GpuGrant& grant) {
  if (!IsShared(grant)) return "";
  std::string sharing = R"("strategy": "TimeSlicing")";
  if (grant.mode == SharingMode::kMps) {
    std::string config;
    if (grant.sm_cap_pct > 0) absl::StrAppend(&config, R"("defaultActiveThreadPercentage": )", grant.sm_cap_pct);
    if (LimitOf(grant) > 0) {
      absl::StrAppend(&config, config.empty() ? "" : ", ", R"("defaultPinnedDeviceMemoryLimit": ")", LimitOf(grant),
                      R"(Mi")");
    }
    sharing = absl::StrCat(R"("strategy": "MPS", "mpsConfig": {)", config, "}");
  }
  return absl::StrCat(R"({"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig", "sharing": {)", sharing,
                      "}}");
}

// KAI's mode NvFractions (0.18), whose node agents also serve Run:ai 3.0: annotations of a pod. No word for a cap.
std::string KaiWords(const GpuGrant& grant) {
  if (!IsShared(grant) || grant.memory.request_mib <= 0) return "";
  constexpr char kKey[] = "nvidia.com/container.CONTAINER.";
  std::string words = absl::StrCat(kKey, "gpu-memory.request: ", grant.memory.request_mib, "Mi");
  if (LimitOf(grant) > 0) absl::StrAppend(&words, "\n", kKey, "gpu-memory.limit: ", LimitOf(grant), "Mi");
  const char* mode = grant.mode == SharingMode::kMps ? "sm-sharing" : "time-slicing";
  return absl::StrCat(words, "\n", kKey, "gpu-compute.mode: ", mode);
}

// HAMi: limits of a container. Its gpucores hold back launches, by time, and not SMs: no word for a cap.
std::string HamiWords(const GpuGrant& grant) {
  if (!IsShared(grant) || LimitOf(grant) == 0) return "";
  return absl::StrCat("nvidia.com/gpu: ", grant.gpus, "\nnvidia.com/gpumem: ", LimitOf(grant));
}

// Slurm, "Generic Resource (GRES) Scheduling", MPS management: percentages of one GPU, by which Slurm sets the cap.
std::string SlurmWords(const GpuGrant& grant) {
  if (grant.mode != SharingMode::kMps || grant.sm_cap_pct == 0 || grant.gpus > 1) return "";
  return absl::StrCat("--gres=mps:", grant.sm_cap_pct);
}

constexpr Enforcer kEnforcers[] = {
    {"mps", "in the job's environment, before it starts", true, &MpsWords},
    {"mps-3", "in the node's file, which MPS reads when it starts", true, &Mps3Words},
    {"dra", "in the claim, when it is made", true, &DraWords},
    {"kai", "in the pod's annotations, until it is bound", false, &KaiWords},
    {"hami", "in the pod's limits, when it is made", false, &HamiWords},
    {"slurm", "at submission", true, &SlurmWords},
};

}  // namespace

// NVIDIA, Multi-Process Service, "Environment Variables": of a client; limits by the number of the device that it sees.
std::string MpsWords(const GpuGrant& grant) {
  if (grant.mode != SharingMode::kMps) return "";
  std::string words;
  if (grant.sm_cap_pct > 0) absl::StrAppend(&words, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=", grant.sm_cap_pct);
  for (int32_t i = 0; LimitOf(grant) > 0 && i < grant.gpus; ++i) {
    const char* before = i > 0           ? ","
                         : words.empty() ? "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT="
                                         : " CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=";
    absl::StrAppend(&words, before, i, "=", LimitOf(grant), "M");
  }
  return words;
}

std::span<const Enforcer> Enforcers() { return kEnforcers; }

}  // namespace horus
