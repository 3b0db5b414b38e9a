// SPDX-License-Identifier: Apache-2.0
// horus/interference.h: models by name, models by callback, and what they say of one device.
#include "horus/interference.h"

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "capi/args.h"
#include "capi/callback_model.h"
#include "capi/demand_convert.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/sharing.h"
#include "capi/structs.h"
#include "interference/registry.h"
#include "place/node.h"

namespace horus::capi {
namespace {

constexpr char kDefaultModel[] = "utilisation";

absl::StatusOr<DeviceContext> DeviceFromC(const Catalogue& types, const horus_device* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_device c, ReadStruct(given));
  if (c.gpu_type == nullptr) return InvalidArgument("device.gpu_type: expected a name, found NULL");
  if (!(c.compute_share >= 0 && c.compute_share <= 1)) {
    return InvalidArgument("device.compute_share: expected 0 to 1, found %g", c.compute_share);
  }
  DeviceContext device;
  HORUS_ASSIGN_OR_RETURN(device.type, types.Find(c.gpu_type));
  HORUS_ASSIGN_OR_RETURN(device.mode, SharingFromC(c.sharing_mode == 0 ? HORUS_SHARING_TIME_SLICE : c.sharing_mode));
  if (c.compute_share > 0) device.compute_share = static_cast<float>(c.compute_share);
  return device;
}

absl::StatusOr<std::vector<Slowdown>> SlowdownsOf(const horus_interference& model, const horus_catalogue* catalogue,
                                                  const horus_device* given, size_t count,
                                                  const horus_demand* const* demands) {
  const std::shared_ptr<const Catalogue> types = CatalogueOf(catalogue);
  if (!SameTypes(model.catalogue, types)) {
    return InvalidArgument("catalogue: expected the GPU types that the callback model was made for, found others");
  }
  if (count > static_cast<size_t>(kMaxTenantsPerDevice)) {
    return InvalidArgument("count: expected at most %d tenants, found %d", kMaxTenantsPerDevice, count);
  }
  HORUS_ASSIGN_OR_RETURN(const DeviceContext device, DeviceFromC(*types, given));
  HORUS_ASSIGN_OR_RETURN(const std::vector<Demand> values, DemandsFromC(count, demands));
  std::vector<const Demand*> tenants;
  for (const Demand& demand : values) tenants.push_back(&demand);
  std::vector<Slowdown> slowdowns(count);
  HORUS_RETURN_IF_ERROR(model.value->Predict(device, tenants, slowdowns));
  return slowdowns;
}

}  // namespace
}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_interference_create(const char* name, horus_interference** out, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{out, "out"}}));
    HORUS_ASSIGN_OR_RETURN(auto model, horus::MakeInterferenceModel(name == nullptr ? kDefaultModel : name));
    *out = new horus_interference{std::move(model), nullptr};
    return absl::OkStatus();
  });
}

horus_status horus_interference_from_callback(const horus_catalogue* catalogue, horus_interference_callback callback,
                                              void* user, uint64_t epoch, horus_interference** out,
                                              horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{out, "out"}}));
    if (callback == nullptr) return horus::InvalidArgument("callback: expected a function, found NULL");
    auto types = CatalogueOf(catalogue);
    auto model = std::make_shared<const CallbackModel>(types, callback, user, epoch);
    *out = new horus_interference{std::move(model), std::move(types)};
    return absl::OkStatus();
  });
}

void horus_interference_free(horus_interference* model) { delete model; }

horus_status horus_interference_slowdown(const horus_interference* model, const horus_catalogue* catalogue,
                                         const horus_device* device, size_t count, const horus_demand* const* demands,
                                         float* slowdown, float* slowdown_upper, horus_error* error) {
  return Guard(error, [&]() -> absl::Status {
    HORUS_RETURN_IF_ERROR(Require({{model, "model"}, {device, "device"}}));
    HORUS_RETURN_IF_ERROR(RequireColumn(slowdown, "slowdown", count));
    HORUS_ASSIGN_OR_RETURN(const auto all, SlowdownsOf(*model, catalogue, device, count, demands));
    for (size_t i = 0; i < count; ++i) Put(slowdown, i, all[i].estimate);
    for (size_t i = 0; i < count; ++i) Put(slowdown_upper, i, all[i].upper);
    return absl::OkStatus();
  });
}
