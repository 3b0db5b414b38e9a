// SPDX-License-Identifier: Apache-2.0
// The fields of a GpuType as tables: one list for validation, files and printing; and the rules for context size and
// MPS clients where a data sheet is silent.
//
// Enters:  a GpuType.   Leaves: OK, or which field of which type is wrong and why; the same with its gaps filled.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/status.h"
#include "device/gpu_type.h"

namespace horus {

inline constexpr size_t kMaxGpuTextBytes = 512;  // any text of a type
inline constexpr size_t kMaxGpuNameBytes = 64;   // names and aliases
inline constexpr size_t kMaxGpuAliases = 32;
inline constexpr size_t kMaxMigProfiles = 32;
inline constexpr int64_t kMaxSmCount = 4096;

template <typename T>
struct NumberField {
  std::string_view key;  // the member's name: the key in files too
  int64_t T::* member;
  std::string_view unit;  // "" for a count
  int64_t min;            // 1 where a type cannot do without, 0 where 0 means "none"
  int64_t max;            // well above any product, to catch wrong units
};
using GpuField = NumberField<GpuType>;
using MigField = NumberField<MigProfile>;

struct GpuText {
  std::string_view key;  // as of NumberField
  std::string GpuType::* member;
};

[[nodiscard]] std::span<const GpuField> GpuFields();
[[nodiscard]] std::span<const MigField> MigFields();
[[nodiscard]] std::span<const GpuText> GpuTexts();

// OK when every field is in its range and the fields agree with each other.
[[nodiscard]] absl::Status ValidateGpuType(const GpuType& type);

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
