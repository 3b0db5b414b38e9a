// SPDX-License-Identifier: Apache-2.0
// horus/demand.h, the catalogue of GPU types.

#include "capi/handles.h"
#include "device/gpu_fields.h"
#include "device/gpu_type.h"
#include "horus/demand.h"

namespace horus::capi {
namespace {

// ---- GPU types between the C ABI and the device room.
// Cost: linear in texts and profiles.

#define HORUS_COPY_SPECIFICATIONS(from, to)                                                                          \
  HORUS_COPY_FIELDS(from, to, compute_capability, sm_count, boost_clock_mhz, fp64_gflops, fp32_gflops, tf32_gflops,  \
                    fp16_gflops, bf16_gflops, fp8_gflops, int8_gops, mem_mib, mem_bandwidth_mb_s, l2_kib, pcie_mb_s, \
                    nvlink_mb_s, tdp_w, context_mib, max_mps_clients)

absl::StatusOr<MigProfile> MigFromC(const horus_mig_profile* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_mig_profile profile, ReadStruct(given));
  MigProfile result;
  HORUS_ASSIGN_OR_RETURN(result.name, ReadText(profile.name, "name"));
  HORUS_COPY_FIELDS(profile, result, compute_slices, memory_slices, mem_mib, max_instances)
  return result;
}

absl::Status ReadLists(const horus_gpu& gpu, GpuType& type) {
  HORUS_RETURN_IF_ERROR(RequireColumn(gpu.mig_profiles, "mig_profiles", gpu.mig_count));
  HORUS_RETURN_IF_ERROR(RequireColumn(gpu.aliases, "aliases", gpu.alias_count));
  if (gpu.mig_count > kMaxMigProfiles || gpu.alias_count > kMaxGpuAliases) {
    return InvalidArgument("mig_count, alias_count: expected at most %d and %d, found %d and %d", kMaxMigProfiles,
                           kMaxGpuAliases, gpu.mig_count, gpu.alias_count);
  }
  HORUS_ASSIGN_OR_RETURN(type.mig, ReadEach("mig_profiles", gpu.mig_count, gpu.mig_profiles, MigFromC));
  for (size_t i = 0; i < gpu.alias_count; ++i)
    HORUS_SET_OR_RETURN(type.aliases.emplace_back(), ReadText(gpu.aliases[i], "aliases[]"));
  return absl::OkStatus();
}

absl::StatusOr<GpuType> GpuFromC(const horus_gpu* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_gpu gpu, ReadStruct(given));
  GpuType type;
  HORUS_ASSIGN_OR_RETURN(type.name, ReadText(gpu.name, "name"));
  HORUS_ASSIGN_OR_RETURN(type.display_name, ReadOptionalText(gpu.display_name, "display_name"));
  HORUS_ASSIGN_OR_RETURN(type.architecture, ReadOptionalText(gpu.architecture, "architecture"));
  HORUS_ASSIGN_OR_RETURN(type.spec_source, ReadOptionalText(gpu.source, "source"));
  HORUS_COPY_SPECIFICATIONS(gpu, type)
  HORUS_RETURN_IF_ERROR(ReadLists(gpu, type));
  return type;
}

// Text of the result is borrowed from the argument.
horus_gpu GpuToC(const GpuType& type, const horus_mig_profile* const* mig) {
  horus_gpu gpu = HORUS_GPU_INIT;
  gpu.name = type.name.c_str();
  gpu.display_name = type.display_name.c_str();
  gpu.architecture = type.architecture.c_str();
  gpu.source = type.spec_source.c_str();
  HORUS_COPY_SPECIFICATIONS(type, gpu)
  gpu.mig_count = type.mig.size();
  gpu.mig_profiles = mig;
  return gpu;
}

horus_mig_profile MigToC(const MigProfile& profile) {
  horus_mig_profile mig = HORUS_MIG_PROFILE_INIT;
  mig.name = profile.name.c_str();
  HORUS_COPY_FIELDS(profile, mig, compute_slices, memory_slices, mem_mib, max_instances)
  return mig;
}

absl::StatusOr<std::vector<GpuType>> TypesFromC(size_t count, const horus_gpu* const* gpus) {
  HORUS_RETURN_IF_ERROR(RequireColumn(gpus, "gpus", count));
  if (count > Catalogue::kMaxTypes)
    return ResourceExhausted("count: expected at most %d GPU types, found %d", Catalogue::kMaxTypes, count);
  return ReadEach("gpus", count, gpus, GpuFromC);
}

}  // namespace
}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_catalogue::horus_catalogue(std::shared_ptr<const Catalogue> types) : value(std::move(types)) {
  for (const GpuType& type : value->types()) {
    mig_begin.push_back(mig.size());
    for (const MigProfile& profile : type.mig) mig.push_back(MigToC(profile));
  }
  for (const horus_mig_profile& profile : mig) mig_pointers.push_back(&profile);
}

horus_status horus_catalogue_default(horus_catalogue** out, horus_error* error) {
  return Guard(error, {{out, "out"}}, [&] { return Give(new horus_catalogue(Catalogue::Default()), out); });
}

horus_status horus_catalogue_extend(const horus_catalogue* base, size_t count, const horus_gpu* const* gpus,
                                    horus_catalogue** out, horus_error* error) {
  return Guard(error, {{out, "out"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(std::vector<GpuType> types, TypesFromC(count, gpus));
    HORUS_ASSIGN_OR_RETURN(Catalogue value, Catalogue::Extend(*CatalogueOf(base), std::move(types)));
    return Give(new horus_catalogue(std::make_shared<const Catalogue>(std::move(value))), out);
  });
}

void horus_catalogue_free(horus_catalogue* catalogue) { delete catalogue; }

size_t horus_catalogue_count(const horus_catalogue* catalogue) {
  return catalogue == nullptr ? 0 : catalogue->value->size();
}

horus_status horus_catalogue_get(const horus_catalogue* catalogue, size_t index, horus_gpu* gpu, horus_error* error) {
  return Guard(error, {{catalogue, "catalogue"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(const GpuType* type, RowAt(catalogue->value->types(), "GPU types", index));
    return Answer(GpuToC(*type, catalogue->mig_pointers.data() + catalogue->mig_begin[index]), gpu);
  });
}

horus_status horus_catalogue_find(const horus_catalogue* catalogue, const char* name, size_t* index,
                                  horus_error* error) {
  return Guard(error, {{catalogue, "catalogue"}, {name, "name"}, {index, "index"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(const GpuTypeId id, catalogue->value->Find(name));
    *index = id.value();
    return absl::OkStatus();
  });
}
