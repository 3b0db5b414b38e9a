// SPDX-License-Identifier: Apache-2.0
// Demands by profile and measured speeds from the C ABI.
//
// Enters:  columns.   Leaves: values of the sim room, checked.
// Cost:    linear; a search by name a row.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/catalogue.h"
#include "horus/lab/sim.h"
#include "interference/model.h"
#include "lab/simulator.h"
#include "lab/trace/trace.h"
#include "lab/truth/learner.h"
#include "lab/truth/speed_table.h"
#include "lab/truth/truth.h"
#include "place/state/cluster.h"
#include "queue/queue.h"

namespace horus::capi {

using DemandsByProfile = std::map<std::string, ProfileDemands, std::less<>>;

// "demands: row[3]: ..." where `name` is "demands". A profile's types ascend and are unique; any type stands alone.
[[nodiscard]] absl::StatusOr<DemandsByProfile> ProfileDemandsFromC(const Catalogue& catalogue, const char* name,
                                                                   const horus_profile_demands* given);

// By profile of the trace; empty where nothing is said of it. Any type becomes each of `types` where there are some.
[[nodiscard]] std::vector<ProfileDemands> DemandsFor(const Trace& trace, const DemandsByProfile& demands,
                                                     std::span<const GpuTypeId> types);

// "sensitivities: row[3]: ...".
[[nodiscard]] absl::StatusOr<SensitivitiesByName> SensitivitiesFromC(const horus_profile_sensitivities* given);

// By profile of the trace, whether jobs with GPUs run it.
[[nodiscard]] std::vector<bool> ProfilesOnGpus(const Trace& trace);

struct Speeds {
  SpeedTable table;
  uint32_t reference = 0;
};

// Without names these are empty texts. INVALID_ARGUMENT "speeds: alone[3]: expected ..., found ...";
// RESOURCE_EXHAUSTED.
[[nodiscard]] absl::StatusOr<Speeds> SpeedsFromC(const horus_speeds* given, bool with_names);

}  // namespace horus::capi

// ---- What is behind the handles of simulations: traces, truths, results.
// Cost: one allocation a handle.

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

// ---- How a simulation is run, from the C ABI.
// Cost: linear in outages and demands.

struct SimSetup {
  SimOptions options;  // without `measured` and `sensitivities`
  std::string discipline;
  QueueOptions queue;
  std::optional<DemandsByProfile> measured;
  SensitivitiesByName sensitivities;
  Learns learns = Learns::kNothing;
};

[[nodiscard]] absl::StatusOr<SimSetup> SimSetupFromC(const std::shared_ptr<const Catalogue>& catalogue,
                                                     const horus_sim_options* given);

// Of its devices, ascending.
[[nodiscard]] std::vector<GpuTypeId> TypesOf(const Cluster& cluster);

// The queue of the setup; where that states no capacity, it is the cluster's.
[[nodiscard]] absl::StatusOr<std::unique_ptr<Queue>> QueueFor(const SimSetup& setup, const Cluster& cluster);

}  // namespace horus::capi
