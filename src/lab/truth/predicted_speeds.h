// SPDX-License-Identifier: Apache-2.0
// A table of speeds predicted by an interference model, for jobs whose pairs nobody measured.
//
// Enters:  profiles with their demands by device kind; device kinds; the model.
// Leaves:  the table: pairs that fit the memory and may share, at the speeds that the model estimates.
// Units:   speeds in steps a second where step times are known, else relative; memory in MiB.
// Cost:    one call of the model per pair and device kind.   Thread class: pure function.
#ifndef HORUS_LAB_TRUTH_PREDICTED_SPEEDS_H_
#define HORUS_LAB_TRUTH_PREDICTED_SPEEDS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "interference/model.h"
#include "lab/truth/speed_table.h"
#include "predict/demand.h"

namespace horus {

struct PredictedProfile {
  std::string name;
  std::vector<const Demand*> demands;  // by device kind; nullptr = not allowed there
  bool exclusive = false;              // never shares
  int32_t gpu_milli = 0;               // hard request; two of more than 1000 together do not share
  double slowdown_bound = 0;           // its own, kept always; 0 = none
};

struct DeviceKind {
  std::string name;
  DeviceContext context;
  int64_t mem_mib = 0;
  bool shares = true;
};

// As PlacerOptions::mem_headroom_mib.
inline constexpr int64_t kPredictedHeadroomMib = 500;

// Speeds are the model's estimates; bounds count its upper slowdowns, as the placer does. Memory that two jobs' upper
// bounds exceed keeps them apart, and a job off a device that is too small. Without a step time on every kind that a
// profile may use its speed counts 1 on each. Errors: those of the model.
[[nodiscard]] absl::StatusOr<SpeedTable> PredictSpeeds(std::span<const PredictedProfile> profiles,
                                                       std::span<const DeviceKind> devices,
                                                       const InterferenceModel& model,
                                                       int64_t headroom_mib = kPredictedHeadroomMib);

}  // namespace horus

#endif  // HORUS_LAB_TRUTH_PREDICTED_SPEEDS_H_
