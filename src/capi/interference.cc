// SPDX-License-Identifier: Apache-2.0
// horus/interference.h: models by name, models by callback, and what they say of one device.

#include <cmath>

#include "capi/callbacks.h"
#include "capi/convert.h"
#include "capi/handles.h"
#include "interference/host_model.h"
#include "interference/laws.h"
#include "interference/table_model.h"

namespace horus::capi {
namespace {

absl::StatusOr<DeviceContext> DeviceFromC(const Catalogue& types, const horus_device* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_device c, ReadStruct(given));
  if (c.gpu_type == nullptr) return InvalidArgument("device.gpu_type: expected a name, found NULL");
  if (!(c.compute_share >= 0 && c.compute_share <= 1))
    return InvalidArgument("device.compute_share: expected 0 to 1, found %g", c.compute_share);
  DeviceContext device;
  HORUS_ASSIGN_OR_RETURN(device.type, types.Find(c.gpu_type));
  HORUS_ASSIGN_OR_RETURN(device.mode, SharingOrTimeSlice(c.sharing_mode));
  if (c.compute_share > 0) device.compute_share = static_cast<float>(c.compute_share);
  return device;
}

std::string_view NameOrDefault(const char* name) { return name == nullptr ? kDefaultInterferenceModel : name; }

absl::Status CheckColumns(const horus_pair_table& c) {
  return RequireColumns(c.count, {{c.gpu_types, "gpu_types"},
                                  {c.profiles_a, "profiles_a"},
                                  {c.profiles_b, "profiles_b"},
                                  {c.slowdown_a, "slowdown_a"},
                                  {c.slowdown_b, "slowdown_b"}});
}

absl::Status AddEntries(const horus_pair_table& c, size_t row, const Catalogue& types,
                        std::vector<TableEntry>& entries) {
  HORUS_ASSIGN_OR_RETURN(const std::string name, ReadText(c.gpu_types[row], "gpu_types"));
  TableEntry entry;
  HORUS_ASSIGN_OR_RETURN(entry.type, types.Find(name));
  HORUS_ASSIGN_OR_RETURN(entry.mode, SharingOrTimeSlice(c.sharing_modes, row));
  const auto add = [&](uint64_t victim, uint64_t other, double slowdown) {
    entry.victim = victim;
    entry.other = other;
    entry.slowdown = slowdown;
    if (!std::isnan(slowdown)) entries.push_back(entry);
  };
  add(c.profiles_a[row], c.profiles_b[row], c.slowdown_a[row]);
  add(c.profiles_b[row], c.profiles_a[row], c.slowdown_b[row]);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const InterferenceModel>> TableFromC(const horus_pair_table* given,
                                                                    const Catalogue& types,
                                                                    std::shared_ptr<const InterferenceModel> fallback) {
  HORUS_ASSIGN_OR_RETURN(const horus_pair_table c, ReadStruct(given));
  HORUS_RETURN_IF_ERROR(CheckColumns(c));
  std::vector<TableEntry> entries;
  for (size_t row = 0; row < c.count; ++row) {
    if (const absl::Status added = AddEntries(c, row, types, entries); !added.ok())
      return At(Element("row", row), added);
  }
  return TableModel::Create(entries, std::move(fallback), c.noise == 0 ? kDefaultTableNoise : c.noise);
}

// A device and its tenants, as they were given.
struct Asked {
  DeviceContext device;
  std::vector<Demand> values;
  std::vector<const Demand*> tenants;  // into values
};

absl::StatusOr<Asked> AskedFromC(const horus_interference& model, const horus_catalogue* catalogue,
                                 const horus_device* given, size_t count, const horus_demand* const* demands) {
  const std::shared_ptr<const Catalogue> types = CatalogueOf(catalogue);
  if (!SameTypes(model.catalogue, types))
    return InvalidArgument("catalogue: expected the GPU types that the callback model was made for, found others");
  if (count > static_cast<size_t>(kMaxTenantsPerDevice))
    return InvalidArgument("count: expected at most %d tenants, found %d", kMaxTenantsPerDevice, count);
  Asked asked;
  HORUS_ASSIGN_OR_RETURN(asked.device, DeviceFromC(*types, given));
  HORUS_ASSIGN_OR_RETURN(asked.values, DemandsFromC(count, demands));
  for (const Demand& demand : asked.values) asked.tenants.push_back(&demand);
  return asked;
}

absl::Status CheckProbability(const char* field, double given) {
  if (given >= kLeastProbability && given <= kMostProbability) return absl::OkStatus();  // NaN fails too
  return InvalidArgument("%s: expected %g to %g, found %g", field, kLeastProbability, kMostProbability, given);
}

// Whether the model knows bounds of that probability; 0 = its own.
absl::Status CheckQuantile(const InterferenceModel& model, double probability) {
  if (probability == 0) return absl::OkStatus();
  HORUS_RETURN_IF_ERROR(CheckProbability("probability", probability));
  if (model.has_quantiles() || probability == model.upper_probability()) return absl::OkStatus();
  return Unimplemented("probability: model %s bounds slowdowns with probability %g alone, found %g",
                       std::string(model.name()), model.upper_probability(), probability);
}

absl::Status WriteSlowdowns(const std::shared_ptr<const InterferenceModel>& model, const Asked& asked,
                            double probability, const horus_slowdowns& columns) {
  const size_t count = asked.tenants.size();
  const double known = model->upper_probability();
  if (probability == 0) probability = known;
  if (columns.slowdown != nullptr || columns.slowdown_upper != nullptr) {
    std::vector<Slowdown> all(count);
    HORUS_RETURN_IF_ERROR(WithHostTime(model)->Predict(asked.device, asked.tenants, all));
    for (size_t i = 0; i < count; ++i) {
      Put(columns.slowdown, i, all[i].estimate);
      Put(columns.slowdown_upper, i, SlowdownAt(all[i], known, probability));
    }
  }
  if (columns.calibrated != nullptr) {
    std::vector<float> upto(count);
    model->CalibratedUpTo(asked.device, asked.tenants, upto);
    for (size_t i = 0; i < count; ++i) columns.calibrated[i] = probability <= static_cast<double>(upto[i]) ? 1 : 0;
  }
  if (columns.measured != nullptr) std::ranges::copy(model->Measured(asked.device, asked.tenants), columns.measured);
  return absl::OkStatus();
}

}  // namespace
}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C functions below are its face

horus_status horus_interference_create(const char* name, horus_interference** out, horus_error* error) {
  return Guard(error, {{out, "out"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(auto model, MakeInterferenceModel(NameOrDefault(name)));
    return Give(new horus_interference{std::move(model), nullptr, {}}, out);
  });
}

horus_status horus_interference_from_bytes(const horus_catalogue* catalogue, const void* bytes, size_t size,
                                           const char* name, horus_interference** out, horus_error* error) {
  return Guard(error, {{bytes, "bytes"}, {out, "out"}}, [&] {
    auto types = CatalogueOf(catalogue);
    const std::span<const uint8_t> bundle(static_cast<const uint8_t*>(bytes), size);
    HORUS_ASSIGN_OR_RETURN(auto model, InterferenceModelFromBundle(bundle, NameOrDefault(name), *types));
    return Give(new horus_interference{std::move(model), std::move(types), std::string(bundle.begin(), bundle.end())},
                out);
  });
}

horus_status horus_interference_from_table(const horus_catalogue* catalogue, const horus_pair_table* table,
                                           const horus_interference* fallback, horus_interference** out,
                                           horus_error* error) {
  return Guard(error, {{out, "out"}}, [&] {
    auto types = CatalogueOf(catalogue);
    if (fallback != nullptr && !SameTypes(fallback->catalogue, types))
      return InvalidArgument("fallback: expected a model for the GPU types of the catalogue, found others");
    HORUS_ASSIGN_OR_RETURN(auto beneath, ModelOf(fallback));
    HORUS_ASSIGN_OR_RETURN(auto model, TableFromC(table, *types, std::move(beneath)));
    return Give(new horus_interference{std::move(model), std::move(types), {}}, out);
  });
}

horus_status horus_interference_get_info(const horus_interference* model, horus_interference_info* info,
                                         horus_error* error) {
  return Guard(error, {{model, "model"}}, [&] {
    return Answer<horus_interference_info>({.struct_size = sizeof(horus_interference_info),
                                            .epoch = model->value->epoch(),
                                            .name = model->value->name().data()},
                                           info);
  });
}

horus_status horus_interference_from_callback(const horus_catalogue* catalogue, horus_interference_callback callback,
                                              void* user, uint64_t epoch, double upper_probability,
                                              horus_interference** out, horus_error* error) {
  return Guard(error, {{out, "out"}}, [&] {
    if (callback == nullptr) return InvalidArgument("callback: expected a function, found NULL");
    if (upper_probability == 0) upper_probability = kUpperProbability;
    HORUS_RETURN_IF_ERROR(CheckProbability("upper_probability", upper_probability));
    auto types = CatalogueOf(catalogue);
    auto model = std::make_shared<const CallbackModel>(types, callback, user, epoch, upper_probability);
    return Give(new horus_interference{std::move(model), std::move(types), {}}, out);
  });
}

void horus_interference_free(horus_interference* model) { delete model; }

horus_status horus_interference_slowdown(const horus_interference* model, const horus_catalogue* catalogue,
                                         const horus_device* device, size_t count, const horus_demand* const* demands,
                                         double probability, const horus_slowdowns* slowdowns, horus_error* error) {
  return Guard(error, {{model, "model"}, {device, "device"}}, [&] {
    HORUS_ASSIGN_OR_RETURN(const horus_slowdowns columns, ReadStruct(slowdowns));
    HORUS_RETURN_IF_ERROR(CheckQuantile(*model->value, probability));
    HORUS_ASSIGN_OR_RETURN(const Asked asked, AskedFromC(*model, catalogue, device, count, demands));
    return WriteSlowdowns(model->value, asked, probability, columns);
  });
}
