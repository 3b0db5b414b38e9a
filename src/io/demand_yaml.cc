// SPDX-License-Identifier: Apache-2.0
// Reads `demand:` of a job.
#include "io/demand_yaml.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "io/yaml_units.h"

namespace horus {
namespace {

constexpr std::array<std::string_view, 7> kDemandKeys = {
    "gpu_util_pct", "mem_bw_util_pct", "gpu_memory_gib", "step_time_ms", "gradient_mib", "operator_us", "kernels"};
constexpr std::string_view kAnyType = "any";
constexpr double kMaxPct = 100;
constexpr double kMaxOperatorUs = 1e9;
constexpr double kMaxKernels = 1e9;                    // a step of as many takes an hour
constexpr int64_t kMaxGradientMib = int64_t{1} << 32;  // as predict/demand.cc

// Calls `read` for the estimate and the upper bound of `number` or `[estimate, upper]`.
template <typename Read, typename Quantity>
absl::Status ReadBounded(const YamlMap& map, std::string_view key, Read read, Quantity& out) {
  const YamlValue* value = map.Find(key);
  if (value == nullptr) return absl::OkStatus();
  if (!value->is_list()) {
    HORUS_RETURN_IF_ERROR(read(*value, out.estimate));
    out.upper = out.estimate;
    return absl::OkStatus();
  }
  HORUS_ASSIGN_OR_RETURN(const std::vector<YamlValue> both, value->List(2));
  if (both.size() != 2) return value->Expected("a number, or [estimate, upper bound]");
  HORUS_RETURN_IF_ERROR(read(both[0], out.estimate));
  HORUS_RETURN_IF_ERROR(read(both[1], out.upper));
  if (out.upper < out.estimate) return both[1].Expected("an upper bound not below the estimate");
  return absl::OkStatus();
}

absl::Status ReadPercent(const YamlValue& value, float& out) {
  HORUS_ASSIGN_OR_RETURN(const double percent, value.Number(0, kMaxPct));
  out = static_cast<float>(percent);
  return absl::OkStatus();
}

absl::StatusOr<Demand> ReadDemand(const YamlValue& value) {
  HORUS_ASSIGN_OR_RETURN(const YamlMap map, value.Map(kDemandKeys));
  HORUS_RETURN_IF_ERROR(map.Require("gpu_util_pct", "0 to 100").status());
  HORUS_RETURN_IF_ERROR(map.Require("gpu_memory_gib", "device memory, CUDA context included").status());
  const auto scaled = [](const Scale& scale) {
    return [&scale](const YamlValue& number, int64_t& out) -> absl::Status {
      HORUS_ASSIGN_OR_RETURN(out, number.Scaled(scale));
      return absl::OkStatus();
    };
  };
  Demand demand;
  demand.flags = kDemandGiven;
  HORUS_RETURN_IF_ERROR(ReadBounded(map, "gpu_util_pct", ReadPercent, demand.gpu_util_pct));
  HORUS_RETURN_IF_ERROR(ReadBounded(map, "mem_bw_util_pct", ReadPercent, demand.mem_bw_util_pct));
  HORUS_RETURN_IF_ERROR(ReadBounded(map, "gpu_memory_gib", scaled(kGibToMib), demand.mem_mib));
  HORUS_RETURN_IF_ERROR(ReadBounded(map, "step_time_ms", scaled(kMillisecondsToUs), demand.step_time_us));
  HORUS_RETURN_IF_ERROR(map.ReadInteger("gradient_mib", 0, kMaxGradientMib, demand.gradient_mib));
  double operator_us = 0, kernels = 0;
  HORUS_RETURN_IF_ERROR(map.ReadNumber("operator_us", 0, kMaxOperatorUs, operator_us));
  demand.operator_us = static_cast<float>(operator_us);
  HORUS_RETURN_IF_ERROR(map.ReadNumber("kernels", 1, kMaxKernels, kernels));
  if (kernels > 0) demand.traits[static_cast<size_t>(Trait::kLogKernels)] = static_cast<float>(std::log10(kernels));
  HORUS_RETURN_IF_ERROR(value.Wrap(ValidateDemand(demand)));
  return demand;
}

absl::StatusOr<std::vector<TypeDemand>> ForAnyType(const YamlValue& value, std::span<const GpuTypeId> allowed) {
  HORUS_ASSIGN_OR_RETURN(const Demand demand, ReadDemand(value));
  std::vector<TypeDemand> demands;
  for (const GpuTypeId type : allowed) demands.push_back({type, demand});
  if (demands.empty()) demands.push_back({GpuTypeId::Invalid(), demand});
  return demands;
}

absl::StatusOr<GpuTypeId> FindType(const YamlValue& where, std::string_view name, const Catalogue& catalogue) {
  absl::StatusOr<GpuTypeId> type = catalogue.Find(name);
  if (type.ok()) return type;
  return where.Error(std::string(type.status().message()));  // says what was found and suggests near names
}

}  // namespace

absl::StatusOr<GpuTypeId> ReadGpuTypeName(const YamlValue& value, const Catalogue& catalogue) {
  HORUS_ASSIGN_OR_RETURN(const std::string name, value.Text(kMaxNameBytes));
  return FindType(value, name, catalogue);
}

absl::StatusOr<std::vector<TypeDemand>> ReadDemands(const YamlValue& value, const Catalogue& catalogue,
                                                    std::span<const GpuTypeId> allowed) {
  HORUS_ASSIGN_OR_RETURN(const auto pairs, value.Pairs(kMaxDemandsPerJob));
  if (pairs.empty()) return value.Expected("figures for at least one GPU type, or for 'any'");
  std::vector<TypeDemand> demands;
  for (const auto& [name, figures] : pairs) {
    if (name == kAnyType) {
      if (pairs.size() > 1) return figures.Error("expected 'any' alone, found other GPU types beside it");
      return ForAnyType(figures, allowed);
    }
    HORUS_ASSIGN_OR_RETURN(const GpuTypeId type, FindType(figures, name, catalogue));
    if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), type) == allowed.end()) {
      return figures.Error("expected a GPU type that gpu_types allows, found " + Quoted(name));
    }
    for (const TypeDemand& other : demands) {
      if (other.type == type) return figures.Error("expected each GPU type once, found another name of the same type");
    }
    HORUS_ASSIGN_OR_RETURN(const Demand demand, ReadDemand(figures));
    demands.push_back({type, demand});
  }
  return demands;
}

}  // namespace horus
