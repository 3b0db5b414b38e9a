// SPDX-License-Identifier: Apache-2.0
// Field by field between horus_demand and Demand.
#include "capi/demand_convert.h"

#include <algorithm>
#include <utility>

#include "capi/args.h"
#include "capi/structs.h"

namespace horus::capi {
namespace {

static_assert(HORUS_TRAIT_COUNT == kTraitCount);
static_assert(HORUS_DEMAND_GIVEN == kDemandGiven && HORUS_DEMAND_MEASURED == kDemandMeasured &&
              HORUS_DEMAND_OUTSIDE == kDemandOutside && HORUS_DEMAND_UNCALIBRATED == kDemandUncalibrated &&
              HORUS_DEMAND_PREDICTED == kDemandPredicted && HORUS_DEMAND_TOO_LARGE == kDemandTooLarge &&
              HORUS_MEM_MIB_UNBOUNDED == kUnboundedMemMib);
constexpr uint32_t kKnownFlags = HORUS_DEMAND_GIVEN | HORUS_DEMAND_MEASURED | HORUS_DEMAND_OUTSIDE |
                                 HORUS_DEMAND_UNCALIBRATED | HORUS_DEMAND_PREDICTED | HORUS_DEMAND_TOO_LARGE;

// An upper bound that was left 0 is the estimate.
template <typename Pair, typename Number>
Pair MakePair(Number estimate, Number upper) {
  return {estimate, upper == 0 && estimate > 0 ? estimate : upper};
}

}  // namespace

absl::StatusOr<Demand> DemandFromC(const horus_demand* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_demand c, ReadStruct(given));
  if ((c.flags & ~kKnownFlags) != 0) {
    return InvalidArgument("demand.flags: expected a sum of HORUS_DEMAND_*, found %#x", c.flags);
  }
  Demand demand;
  demand.profile_id = c.profile_id;
  demand.gpu_util_pct = MakePair<Bounded>(c.gpu_util_pct, c.gpu_util_pct_upper);
  demand.mem_bw_util_pct = MakePair<Bounded>(c.mem_bw_util_pct, c.mem_bw_util_pct_upper);
  demand.mem_mib = MakePair<BoundedInt>(c.mem_mib, c.mem_mib_upper);
  demand.step_time_us = MakePair<BoundedInt>(c.step_time_us, c.step_time_us_upper);
  demand.power_w = MakePair<Bounded>(c.power_w, c.power_w_upper);
  demand.distance = c.distance;
  demand.operator_us = c.operator_us;
  demand.gradient_mib = c.gradient_mib;
  demand.flags = c.flags;
  std::copy(std::begin(c.traits), std::end(c.traits), demand.traits.begin());
  HORUS_RETURN_IF_ERROR(ValidateDemand(demand));
  return demand;
}

horus_demand DemandToC(const Demand& demand) {
  horus_demand c = HORUS_DEMAND_INIT;
  c.flags = demand.flags;
  c.profile_id = demand.profile_id;
  c.gpu_util_pct = demand.gpu_util_pct.estimate;
  c.gpu_util_pct_upper = demand.gpu_util_pct.upper;
  c.mem_bw_util_pct = demand.mem_bw_util_pct.estimate;
  c.mem_bw_util_pct_upper = demand.mem_bw_util_pct.upper;
  c.mem_mib = demand.mem_mib.estimate;
  c.mem_mib_upper = demand.mem_mib.upper;
  c.step_time_us = demand.step_time_us.estimate;
  c.step_time_us_upper = demand.step_time_us.upper;
  c.power_w = demand.power_w.estimate;
  c.power_w_upper = demand.power_w.upper;
  c.distance = demand.distance;
  c.operator_us = demand.operator_us;
  c.gradient_mib = demand.gradient_mib;
  std::copy(demand.traits.begin(), demand.traits.end(), c.traits);
  return c;
}

absl::StatusOr<std::vector<Demand>> DemandsFromC(size_t count, const horus_demand* const* demands) {
  HORUS_RETURN_IF_ERROR(RequireColumn(demands, "demands", count));
  std::vector<Demand> result;
  result.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    absl::StatusOr<Demand> demand = DemandFromC(demands[i]);
    if (!demand.ok()) return At(Element("demands", i), demand.status());
    result.push_back(*demand);
  }
  return result;
}

absl::StatusOr<std::vector<TypeDemand>> TypeDemandsFromC(const Catalogue& catalogue, size_t count,
                                                         const char* const* gpu_types,
                                                         const horus_demand* const* demands) {
  if (count == 0 || count > kMaxDemandsPerJob) {
    return InvalidArgument("demand_count: expected 1 to %d, found %d", kMaxDemandsPerJob, count);
  }
  HORUS_ASSIGN_OR_RETURN(const std::vector<Demand> values, DemandsFromC(count, demands));
  std::vector<TypeDemand> result(count);
  for (size_t i = 0; i < count; ++i) {
    result[i].demand = values[i];
    if (gpu_types == nullptr || gpu_types[i] == nullptr) continue;
    const absl::StatusOr<GpuTypeId> type = catalogue.Find(gpu_types[i]);
    if (!type.ok()) return At(Element("gpu_types", i), type.status());
    result[i].type = *type;
  }
  return result;
}

}  // namespace horus::capi
