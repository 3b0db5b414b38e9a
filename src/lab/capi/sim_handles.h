// SPDX-License-Identifier: Apache-2.0
// What is behind the handles of simulations: traces, truths, results.
//
// Enters:  values of the rooms.           Leaves: the structs that horus/trace.h and horus/sim.h only name.
// Units:   none.
// Cost:    one allocation a handle.       Thread class: immutable, share freely.
#ifndef HORUS_LAB_CAPI_SIM_HANDLES_H_
#define HORUS_LAB_CAPI_SIM_HANDLES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "horus/lab/sim.h"
#include "interference/model.h"
#include "lab/capi/sim_convert.h"
#include "lab/simulator.h"
#include "lab/trace/trace.h"
#include "lab/truth/table_truth.h"

struct horus_trace {
  std::shared_ptr<const horus::Trace> value;
};

// Bound to a trace's profiles when a simulation begins.
struct horus_truth {
  std::shared_ptr<const horus::Catalogue> catalogue;  // whose type ids it speaks
  // One of the two.
  std::shared_ptr<const horus::InterferenceModel> model;  // null = speeds
  horus::capi::DemandsByProfile demands;
  horus::capi::Speeds speeds;
  std::vector<horus::GpuTypeId> types;  // by GPU of the table
  horus::ManyTenants many = horus::ManyTenants::kAdds;
  horus::SensitivitiesByName sensitivities;
};

struct horus_sim_result {
  std::shared_ptr<const horus::Trace> trace;  // as it was played: in run times
  horus::SimResult value;
  std::shared_ptr<const horus::InterferenceModel> learned;  // null = nothing was to be learned
  std::shared_ptr<const horus::Catalogue> catalogue;        // whose type ids that speaks
};

namespace horus::capi {

[[nodiscard]] uint64_t BytesOf(const Trace& trace);

// The trace as the truth counts time: with run times instead of steps. INVALID_ARGUMENT: as StepsToDurations.
[[nodiscard]] absl::StatusOr<std::shared_ptr<const Trace>> TimedBy(const horus_truth& truth,
                                                                   const std::shared_ptr<const Trace>& trace);
// INVALID_ARGUMENT: a profile of jobs with GPUs that it does not know.
[[nodiscard]] absl::StatusOr<std::unique_ptr<Truth>> TruthFor(const horus_truth& truth, const Trace& trace);

}  // namespace horus::capi

#endif  // HORUS_LAB_CAPI_SIM_HANDLES_H_
