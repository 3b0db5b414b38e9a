// SPDX-License-Identifier: Apache-2.0
// Field by field between horus_gpu and GpuType.
#include "capi/gpu_convert.h"

#include <utility>

#include "capi/args.h"
#include "capi/structs.h"
#include "device/gpu_fields.h"

namespace horus::capi {
namespace {

struct FieldPair {
  int64_t horus_gpu::* c;
  int64_t GpuType::* cpp;
};
constexpr FieldPair kFields[] = {
    {&horus_gpu::compute_capability, &GpuType::compute_capability},
    {&horus_gpu::sm_count, &GpuType::sm_count},
    {&horus_gpu::boost_clock_mhz, &GpuType::boost_clock_mhz},
    {&horus_gpu::fp64_gflops, &GpuType::fp64_gflops},
    {&horus_gpu::fp32_gflops, &GpuType::fp32_gflops},
    {&horus_gpu::tf32_gflops, &GpuType::tf32_gflops},
    {&horus_gpu::fp16_gflops, &GpuType::fp16_gflops},
    {&horus_gpu::bf16_gflops, &GpuType::bf16_gflops},
    {&horus_gpu::fp8_gflops, &GpuType::fp8_gflops},
    {&horus_gpu::int8_gops, &GpuType::int8_gops},
    {&horus_gpu::mem_mib, &GpuType::mem_mib},
    {&horus_gpu::mem_bandwidth_mb_s, &GpuType::mem_bandwidth_mb_s},
    {&horus_gpu::l2_kib, &GpuType::l2_kib},
    {&horus_gpu::pcie_mb_s, &GpuType::pcie_mb_s},
    {&horus_gpu::nvlink_mb_s, &GpuType::nvlink_mb_s},
    {&horus_gpu::tdp_w, &GpuType::tdp_w},
    {&horus_gpu::context_mib, &GpuType::context_mib},
    {&horus_gpu::max_mps_clients, &GpuType::max_mps_clients},
};

absl::StatusOr<MigProfile> MigFromC(const horus_mig_profile* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_mig_profile profile, ReadStruct(given));
  MigProfile result;
  HORUS_ASSIGN_OR_RETURN(result.name, ReadText(profile.name, "name"));
  result.compute_slices = profile.compute_slices;
  result.memory_slices = profile.memory_slices;
  result.mem_mib = profile.mem_mib;
  result.max_instances = profile.max_instances;
  return result;
}

absl::Status ReadLists(const horus_gpu& gpu, GpuType& type) {
  HORUS_RETURN_IF_ERROR(RequireColumn(gpu.mig_profiles, "mig_profiles", gpu.mig_count));
  HORUS_RETURN_IF_ERROR(RequireColumn(gpu.aliases, "aliases", gpu.alias_count));
  if (gpu.mig_count > kMaxMigProfiles || gpu.alias_count > kMaxGpuAliases) {
    return InvalidArgument("mig_count, alias_count: expected at most %d and %d, found %d and %d", kMaxMigProfiles,
                           kMaxGpuAliases, gpu.mig_count, gpu.alias_count);
  }
  for (size_t i = 0; i < gpu.mig_count; ++i) {
    absl::StatusOr<MigProfile> profile = MigFromC(gpu.mig_profiles[i]);
    if (!profile.ok()) return At(Element("mig_profiles", i), profile.status());
    type.mig.push_back(*std::move(profile));
  }
  for (size_t i = 0; i < gpu.alias_count; ++i) {
    HORUS_ASSIGN_OR_RETURN(std::string alias, ReadText(gpu.aliases[i], "aliases[]"));
    type.aliases.push_back(std::move(alias));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GpuType> GpuFromC(const horus_gpu* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_gpu gpu, ReadStruct(given));
  GpuType type;
  HORUS_ASSIGN_OR_RETURN(type.name, ReadText(gpu.name, "name"));
  HORUS_ASSIGN_OR_RETURN(type.display_name, ReadOptionalText(gpu.display_name, "display_name"));
  HORUS_ASSIGN_OR_RETURN(type.architecture, ReadOptionalText(gpu.architecture, "architecture"));
  HORUS_ASSIGN_OR_RETURN(type.spec_source, ReadOptionalText(gpu.source, "source"));
  for (const FieldPair& field : kFields) type.*field.cpp = gpu.*field.c;
  HORUS_RETURN_IF_ERROR(ReadLists(gpu, type));
  return type;
}

horus_gpu GpuToC(const GpuType& type) {
  horus_gpu gpu = HORUS_GPU_INIT;
  gpu.name = type.name.c_str();
  gpu.display_name = type.display_name.c_str();
  gpu.architecture = type.architecture.c_str();
  gpu.source = type.spec_source.c_str();
  for (const FieldPair& field : kFields) gpu.*field.c = type.*field.cpp;
  gpu.mig_count = type.mig.size();
  return gpu;
}

horus_mig_profile MigToC(const MigProfile& profile) {
  horus_mig_profile mig = HORUS_MIG_PROFILE_INIT;
  mig.name = profile.name.c_str();
  mig.compute_slices = profile.compute_slices;
  mig.memory_slices = profile.memory_slices;
  mig.mem_mib = profile.mem_mib;
  mig.max_instances = profile.max_instances;
  return mig;
}

}  // namespace horus::capi
