// SPDX-License-Identifier: Apache-2.0
// What can be said of a GPU whose data sheet is silent: context size and MPS clients, by rule.
//
// Enters:  a GpuType with compute_capability and sm_count.   Leaves: the same, gaps filled.
// Units:   MiB; threads.
#pragma once

#include <cstdint>

#include "device/gpu_type.h"

namespace horus {

// Resident threads of one SM (CUDA C++ Programming Guide, technical specifications per compute capability).
[[nodiscard]] int64_t MaxThreadsPerSm(int64_t compute_capability);

// Device memory of a bare CUDA context. NVIDIA publishes no figure; most of it is local memory that the
// driver reserves for every thread that can be resident, hence 16 MiB + 1.9 KiB per such thread.
// Within 5 % of the three figures it was fitted to; src/device/README.md has the table.
[[nodiscard]] int64_t EstimateContextMib(int64_t compute_capability, int64_t sm_count);

// Client contexts per device (CUDA MPS guide): 16 from compute capability 3.5, 48 from 7.0.
[[nodiscard]] int64_t MpsClients(int64_t compute_capability);

// Fills context_mib with context_source, and max_mps_clients, where they are 0.
void CompleteByRule(GpuType& type);

}  // namespace horus
