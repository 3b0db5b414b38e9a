// SPDX-License-Identifier: Apache-2.0
// The numeric fields of a GpuType as a table: one list for validation, files and printing.
//
// Enters:  a GpuType.   Leaves: OK, or which field of which type is wrong and why.
#pragma once

#include <cstddef>
#include <cstdint>
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

struct GpuField {
  std::string_view key;  // the member's name: the key in files too
  int64_t GpuType::* member;
  std::string_view unit;  // "" for a count
  int64_t min;            // 1 where a type cannot do without, 0 where 0 means "none"
  int64_t max;            // well above any product, to catch wrong units
};

struct MigField {
  std::string_view key;
  int64_t MigProfile::* member;
  std::string_view unit;
  int64_t min;
  int64_t max;
};

[[nodiscard]] std::span<const GpuField> GpuFields();
[[nodiscard]] std::span<const MigField> MigFields();

// OK when every field is in its range and the fields agree with each other.
[[nodiscard]] absl::Status ValidateGpuType(const GpuType& type);

}  // namespace horus
