// SPDX-License-Identifier: Apache-2.0
// The rules for context size and MPS clients.
#include "device/complete.h"

#include "base/units.h"

namespace horus {
namespace {

// Fitted to bare contexts reported for RTX PRO 6000 Blackwell (555 MiB), RTX 4060 Ti (107) and RTX 3090 (256).
constexpr int64_t kContextBaseMib = 16;
constexpr int64_t kContextBytesPerThread = 1946;  // 1.9 KiB

constexpr char kContextRule[] = "estimate: 16 MiB + 1.9 KiB per resident thread (src/device/README.md)";

}  // namespace

int64_t MaxThreadsPerSm(int64_t compute_capability) {
  if (compute_capability == 75) return 1024;                            // Turing
  if (compute_capability > 80 && compute_capability < 90) return 1536;  // Ampere and Ada outside the GA100
  if (compute_capability >= 110) return 1536;                           // Blackwell outside the GB100
  return 2048;                                                          // Kepler to Volta, GA100, Hopper, GB100
}

int64_t EstimateContextMib(int64_t compute_capability, int64_t sm_count) {
  // Bounded: at most kMaxSmCount multiprocessors of 2,048 threads.
  const int64_t threads = sm_count * MaxThreadsPerSm(compute_capability);
  // Bounded: at most kMaxSmCount multiprocessors of 2,048 threads.
  return kContextBaseMib + threads * kContextBytesPerThread / kBytesPerMib;
}

int64_t MpsClients(int64_t compute_capability) {
  if (compute_capability < 35) return 0;
  return compute_capability < 70 ? 16 : 48;
}

void CompleteByRule(GpuType& type) {
  if (type.context_mib == 0) {
    type.context_mib = EstimateContextMib(type.compute_capability, type.sm_count);
    type.context_source = kContextRule;
  }
  if (type.max_mps_clients == 0) type.max_mps_clients = MpsClients(type.compute_capability);
}

}  // namespace horus
