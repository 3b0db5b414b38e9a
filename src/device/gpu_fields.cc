// SPDX-License-Identifier: Apache-2.0
// Ranges of the fields of a GpuType, and the check of one type against them.
#include "device/gpu_fields.h"

#include <array>
#include <string>

#include "base/text.h"
#include "device/fold_name.h"

namespace horus {
namespace {

// Limits stand a factor of 10 or more above the largest product of 2025, so that bytes given for MiB or
// FLOP/s given for GFLOP/s are noticed.
constexpr int64_t kMaxGflops = 1'000'000'000;     // 1 EFLOP/s
constexpr int64_t kMaxMemMib = 16 * 1024 * 1024;  // 16 TiB
constexpr int64_t kMaxMbPerS = 1'000'000'000;     // 1 PB/s
constexpr int64_t kMaxSlices = 16;

constexpr std::array<GpuField, 18> kGpuFields = {{
    {"compute_capability", &GpuType::compute_capability, "", 10, 999},
    {"sm_count", &GpuType::sm_count, "", 1, kMaxSmCount},
    {"boost_clock_mhz", &GpuType::boost_clock_mhz, "MHz", 100, 10'000},
    {"fp64_gflops", &GpuType::fp64_gflops, "GFLOP/s", 0, kMaxGflops},
    {"fp32_gflops", &GpuType::fp32_gflops, "GFLOP/s", 1, kMaxGflops},
    {"tf32_gflops", &GpuType::tf32_gflops, "GFLOP/s", 0, kMaxGflops},
    {"fp16_gflops", &GpuType::fp16_gflops, "GFLOP/s", 1, kMaxGflops},
    {"bf16_gflops", &GpuType::bf16_gflops, "GFLOP/s", 0, kMaxGflops},
    {"fp8_gflops", &GpuType::fp8_gflops, "GFLOP/s", 0, kMaxGflops},
    {"int8_gops", &GpuType::int8_gops, "GOP/s", 0, kMaxGflops},
    {"mem_mib", &GpuType::mem_mib, "MiB", 1, kMaxMemMib},
    {"mem_bandwidth_mb_s", &GpuType::mem_bandwidth_mb_s, "MB/s", 1, kMaxMbPerS},
    {"l2_kib", &GpuType::l2_kib, "KiB", 1, 64 * 1024 * 1024},
    {"pcie_mb_s", &GpuType::pcie_mb_s, "MB/s", 1, kMaxMbPerS},
    {"nvlink_mb_s", &GpuType::nvlink_mb_s, "MB/s", 0, kMaxMbPerS},
    {"tdp_w", &GpuType::tdp_w, "W", 1, 100'000},
    {"context_mib", &GpuType::context_mib, "MiB", 1, 64 * 1024},
    {"max_mps_clients", &GpuType::max_mps_clients, "", 0, 65'536},
}};

constexpr std::array<MigField, 4> kMigFields = {{
    {"compute_slices", &MigProfile::compute_slices, "", 1, kMaxSlices},
    {"memory_slices", &MigProfile::memory_slices, "", 1, kMaxSlices},
    {"mem_mib", &MigProfile::mem_mib, "MiB", 1, kMaxMemMib},
    {"max_instances", &MigProfile::max_instances, "", 1, kMaxSlices},
}};

bool IsNameChar(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.'; }

absl::Status ValidateName(const std::string& name) {
  bool good = !name.empty() && name.size() <= kMaxGpuNameBytes && name.front() != '-' && name.front() != '.' &&
              !FoldDeviceName(name).empty();
  for (const char c : name) good = good && IsNameChar(c);
  if (good) return absl::OkStatus();
  return InvalidArgument(
      "GPU type: name: expected 1 to %d of a-z, 0-9, '-' and '.', starting with a letter or digit and more "
      "than a brand, found %s",
      kMaxGpuNameBytes, Quoted(name));
}

absl::Status ValidateText(const GpuType& type, std::string_view key, std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return absl::OkStatus();
  return InvalidArgument("GPU type %s: %s: expected at most %d bytes, found %d", Quoted(type.name), std::string(key),
                         max_bytes, text.size());
}

absl::Status ValidateTexts(const GpuType& type) {
  HORUS_RETURN_IF_ERROR(ValidateText(type, "display_name", type.display_name, kMaxGpuTextBytes));
  HORUS_RETURN_IF_ERROR(ValidateText(type, "architecture", type.architecture, kMaxGpuTextBytes));
  HORUS_RETURN_IF_ERROR(ValidateText(type, "spec_source", type.spec_source, kMaxGpuTextBytes));
  HORUS_RETURN_IF_ERROR(ValidateText(type, "chip_source", type.chip_source, kMaxGpuTextBytes));
  HORUS_RETURN_IF_ERROR(ValidateText(type, "context_source", type.context_source, kMaxGpuTextBytes));
  HORUS_RETURN_IF_ERROR(ValidateText(type, "mig_source", type.mig_source, kMaxGpuTextBytes));
  if (type.aliases.size() > kMaxGpuAliases) {
    return InvalidArgument("GPU type %s: aliases: expected at most %d, found %d", Quoted(type.name), kMaxGpuAliases,
                           type.aliases.size());
  }
  for (const std::string& alias : type.aliases) {
    if (alias.size() > kMaxGpuNameBytes || FoldDeviceName(alias).empty()) {
      return InvalidArgument("GPU type %s: alias: expected a name of at most %d bytes, found %s of %d bytes",
                             Quoted(type.name), kMaxGpuNameBytes, Quoted(alias), alias.size());
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateMig(const GpuType& type, const MigProfile& profile) {
  const std::string where = "GPU type " + Quoted(type.name) + ": MIG profile " + Quoted(profile.name);
  if (profile.name.empty() || profile.name.size() > kMaxGpuNameBytes) {
    return InvalidArgument("%s: name: expected 1 to %d bytes, found %d", where, kMaxGpuNameBytes, profile.name.size());
  }
  for (const MigField& field : kMigFields) {
    const int64_t value = profile.*field.member;
    if (value >= field.min && value <= field.max) continue;
    return InvalidArgument("%s: %s: expected %d to %d %s, found %d", where, std::string(field.key), field.min,
                           field.max, std::string(field.unit), value);
  }
  // Both factors are in range, so the product cannot overflow.
  // Bounded: both factors are in the ranges of their fields.
  if (profile.mem_mib * profile.max_instances > type.mem_mib) {
    return InvalidArgument("%s: mem_mib: expected %d instances to fit into the GPU's %d MiB, found %d MiB each", where,
                           profile.max_instances, type.mem_mib, profile.mem_mib);
  }
  return absl::OkStatus();
}

absl::Status ValidateMigs(const GpuType& type) {
  if (type.mig.size() > kMaxMigProfiles) {
    return InvalidArgument("GPU type %s: mig: expected at most %d profiles, found %d", Quoted(type.name),
                           kMaxMigProfiles, type.mig.size());
  }
  for (size_t i = 0; i < type.mig.size(); ++i) {
    HORUS_RETURN_IF_ERROR(ValidateMig(type, type.mig[i]));
    for (size_t j = 0; j < i; ++j) {
      if (type.mig[i].name != type.mig[j].name) continue;
      return InvalidArgument("GPU type %s: MIG profile %s: expected once, found twice", Quoted(type.name),
                             Quoted(type.mig[i].name));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::span<const GpuField> GpuFields() { return kGpuFields; }
std::span<const MigField> MigFields() { return kMigFields; }

absl::Status ValidateGpuType(const GpuType& type) {
  HORUS_RETURN_IF_ERROR(ValidateName(type.name));
  HORUS_RETURN_IF_ERROR(ValidateTexts(type));
  for (const GpuField& field : kGpuFields) {
    const int64_t value = type.*field.member;
    if (value >= field.min && value <= field.max) continue;
    return InvalidArgument("GPU type %s: %s: expected %d to %d %s, found %d", Quoted(type.name), std::string(field.key),
                           field.min, field.max, std::string(field.unit), value);
  }
  if (type.context_mib >= type.mem_mib) {
    return InvalidArgument("GPU type %s: context_mib: expected less than mem_mib (%d MiB), found %d MiB",
                           Quoted(type.name), type.mem_mib, type.context_mib);
  }
  return ValidateMigs(type);
}

}  // namespace horus
