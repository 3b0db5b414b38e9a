// SPDX-License-Identifier: Apache-2.0
// Names and ranges of the fields of a GpuType, the check of one type against them, and what fills its gaps.
#include "device/gpu_fields.h"

#include "base/text.h"
#include "base/units.h"
#include "device/fold_name.h"

namespace horus {
namespace {

// Limits stand a factor of 10 or more above the largest product of 2025, so that bytes given for MiB or
// FLOP/s given for GFLOP/s are noticed.
constexpr int64_t kMaxGflops = 1'000'000'000;     // 1 EFLOP/s
constexpr int64_t kMaxMemMib = 16 * 1024 * 1024;  // 16 TiB
constexpr int64_t kMaxMbPerS = 1'000'000'000;     // 1 PB/s
constexpr int64_t kMaxSlices = 16;

constexpr GpuField kGpuFields[] = {
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
};

constexpr MigField kMigFields[] = {
    {"compute_slices", &MigProfile::compute_slices, "", 1, kMaxSlices},
    {"memory_slices", &MigProfile::memory_slices, "", 1, kMaxSlices},
    {"mem_mib", &MigProfile::mem_mib, "MiB", 1, kMaxMemMib},
    {"max_instances", &MigProfile::max_instances, "", 1, kMaxSlices},
};

constexpr GpuText kGpuTexts[] = {{"name", &GpuType::name},
                                 {"display_name", &GpuType::display_name},
                                 {"architecture", &GpuType::architecture},
                                 {"spec_source", &GpuType::spec_source},
                                 {"chip_source", &GpuType::chip_source},
                                 {"context_source", &GpuType::context_source},
                                 {"mig_source", &GpuType::mig_source}};

// Fitted to bare contexts reported for RTX PRO 6000 Blackwell (555 MiB), RTX 4060 Ti (107) and RTX 3090 (256).
constexpr int64_t kContextBaseMib = 16;
constexpr int64_t kContextBytesPerThread = 1946;  // 1.9 KiB

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

// How messages begin.
std::string Of(const GpuType& type) { return "GPU type " + Quoted(type.name); }

template <typename T>
absl::Status ValidateNumbers(const std::string& where, const T& of, std::span<const NumberField<T>> fields) {
  for (const NumberField<T>& field : fields) {
    const int64_t value = of.*field.member;
    if (value >= field.min && value <= field.max) continue;
    return InvalidArgument("%s: %s: expected %d to %d %s, found %d", where, field.key, field.min, field.max, field.unit,
                           value);
  }
  return absl::OkStatus();
}

absl::Status ValidateTexts(const GpuType& type) {
  for (const auto& [key, member] : kGpuTexts) {
    const size_t size = (type.*member).size();
    if (size <= kMaxGpuTextBytes) continue;
    return InvalidArgument("%s: %s: expected at most %d bytes, found %d", Of(type), key, kMaxGpuTextBytes, size);
  }
  if (type.aliases.size() > kMaxGpuAliases)
    return InvalidArgument("%s: aliases: expected at most %d, found %d", Of(type), kMaxGpuAliases, type.aliases.size());
  for (const std::string& alias : type.aliases) {
    if (alias.size() > kMaxGpuNameBytes || FoldDeviceName(alias).empty()) {
      return InvalidArgument("%s: alias: expected a name of at most %d bytes, found %s of %d bytes", Of(type),
                             kMaxGpuNameBytes, Quoted(alias), alias.size());
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateMig(const GpuType& type, const MigProfile& profile) {
  const std::string where = Of(type) + ": MIG profile " + Quoted(profile.name);
  if (profile.name.empty() || profile.name.size() > kMaxGpuNameBytes)
    return InvalidArgument("%s: name: expected 1 to %d bytes, found %d", where, kMaxGpuNameBytes, profile.name.size());
  HORUS_RETURN_IF_ERROR(ValidateNumbers<MigProfile>(where, profile, kMigFields));
  // Bounded: both factors are in the ranges of their fields.
  if (profile.mem_mib * profile.max_instances > type.mem_mib) {
    return InvalidArgument("%s: mem_mib: expected %d instances to fit into the GPU's %d MiB, found %d MiB each", where,
                           profile.max_instances, type.mem_mib, profile.mem_mib);
  }
  return absl::OkStatus();
}

absl::Status ValidateMigs(const GpuType& type) {
  if (type.mig.size() > kMaxMigProfiles) {
    return InvalidArgument("%s: mig: expected at most %d profiles, found %d", Of(type), kMaxMigProfiles,
                           type.mig.size());
  }
  for (size_t i = 0; i < type.mig.size(); ++i) {
    HORUS_RETURN_IF_ERROR(ValidateMig(type, type.mig[i]));
    for (size_t j = 0; j < i; ++j) {
      if (type.mig[i].name != type.mig[j].name) continue;
      return InvalidArgument("%s: MIG profile %s: expected once, found twice", Of(type), Quoted(type.mig[i].name));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::span<const GpuField> GpuFields() { return kGpuFields; }
std::span<const MigField> MigFields() { return kMigFields; }
std::span<const GpuText> GpuTexts() { return kGpuTexts; }

absl::Status ValidateGpuType(const GpuType& type) {
  HORUS_RETURN_IF_ERROR(ValidateName(type.name));
  HORUS_RETURN_IF_ERROR(ValidateTexts(type));
  HORUS_RETURN_IF_ERROR(ValidateNumbers<GpuType>(Of(type), type, kGpuFields));
  if (type.context_mib >= type.mem_mib) {
    return InvalidArgument("%s: context_mib: expected less than mem_mib (%d MiB), found %d MiB", Of(type), type.mem_mib,
                           type.context_mib);
  }
  return ValidateMigs(type);
}

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
    type.context_source = "estimate: 16 MiB + 1.9 KiB per resident thread (src/device/README.md)";
  }
  if (type.max_mps_clients == 0) type.max_mps_clients = MpsClients(type.compute_capability);
}

}  // namespace horus
