// SPDX-License-Identifier: Apache-2.0
// horus/demand.h, the catalogue of GPU types.
#include <memory>
#include <utility>
#include <vector>

#include "capi/args.h"
#include "capi/gpu_convert.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/structs.h"
#include "horus/demand.h"

namespace horus::capi {
namespace {

absl::StatusOr<const GpuType*> TypeAt(const horus_catalogue* catalogue, size_t index) {
  HORUS_RETURN_IF_ERROR(Require({{catalogue, "catalogue"}}));
  if (index < catalogue->value->size()) return &catalogue->value->types()[index];
  return MakeError(absl::StatusCode::kNotFound, "index: expected less than %d GPU types, found %d",
                   catalogue->value->size(), index);
}

absl::StatusOr<std::vector<GpuType>> TypesFromC(size_t count, const horus_gpu* const* gpus) {
  HORUS_RETURN_IF_ERROR(RequireColumn(gpus, "gpus", count));
  if (count > Catalogue::kMaxTypes) {
    return MakeError(absl::StatusCode::kResourceExhausted, "count: expected at most %d GPU types, found %d",
                     Catalogue::kMaxTypes, count);
  }
  std::vector<GpuType> types;
  for (size_t i = 0; i < count; ++i) {
    absl::StatusOr<GpuType> type = GpuFromC(gpus[i]);
    if (!type.ok()) return At(Element("gpus", i), type.status());
    types.push_back(*std::move(type));
  }
  return types;
}

}  // namespace
}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_catalogue_default(horus_catalogue** out, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{out, "out"}}));
    *out = new horus_catalogue{horus::Catalogue::Default()};
    return absl::OkStatus();
  });
}

horus_status horus_catalogue_extend(const horus_catalogue* base, size_t count, const horus_gpu* const* gpus,
                                    horus_catalogue** out, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{out, "out"}}));
    HORUS_ASSIGN_OR_RETURN(std::vector<horus::GpuType> types, TypesFromC(count, gpus));
    HORUS_ASSIGN_OR_RETURN(horus::Catalogue value, horus::Catalogue::Extend(*CatalogueOf(base), std::move(types)));
    *out = new horus_catalogue{std::make_shared<const horus::Catalogue>(std::move(value))};
    return absl::OkStatus();
  });
}

void horus_catalogue_free(horus_catalogue* catalogue) { delete catalogue; }

size_t horus_catalogue_count(const horus_catalogue* catalogue) {
  return catalogue == nullptr ? 0 : catalogue->value->size();
}

horus_status horus_catalogue_get(const horus_catalogue* catalogue, size_t index, horus_gpu* gpu, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_ASSIGN_OR_RETURN(const horus::GpuType* type, TypeAt(catalogue, index));
    HORUS_RETURN_IF_ERROR(CheckOutput(gpu));
    WriteStruct(GpuToC(*type), gpu);
    return absl::OkStatus();
  });
}

horus_status horus_catalogue_get_mig(const horus_catalogue* catalogue, size_t index, size_t profile,
                                     horus_mig_profile* mig, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_ASSIGN_OR_RETURN(const horus::GpuType* type, TypeAt(catalogue, index));
    HORUS_RETURN_IF_ERROR(CheckOutput(mig));
    if (profile >= type->mig.size()) {
      return horus::MakeError(absl::StatusCode::kNotFound,
                              "profile: expected less than %d MIG profiles of %s, found %d", type->mig.size(),
                              type->name, profile);
    }
    WriteStruct(MigToC(type->mig[profile]), mig);
    return absl::OkStatus();
  });
}

horus_status horus_catalogue_find(const horus_catalogue* catalogue, const char* name, size_t* index,
                                  horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{catalogue, "catalogue"}, {name, "name"}, {index, "index"}}));
    HORUS_ASSIGN_OR_RETURN(const horus::GpuTypeId id, catalogue->value->Find(name));
    *index = id.value();
    return absl::OkStatus();
  });
}
