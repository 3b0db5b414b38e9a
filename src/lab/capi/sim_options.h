// SPDX-License-Identifier: Apache-2.0
// How a simulation is run, from the C ABI.
//
// Enters:  horus_sim_options (null = defaults), the cluster's catalogue.
// Leaves:  SimOptions and the options of the queue; ranges of times are checked by Simulate.
// Units:   as in horus/sim.h.
// Cost:    linear in outages and demands.   Thread class: pure functions.
#ifndef HORUS_LAB_CAPI_SIM_OPTIONS_H_
#define HORUS_LAB_CAPI_SIM_OPTIONS_H_

#include <memory>
#include <optional>
#include <string>

#include "horus/lab/sim.h"
#include "lab/capi/sim_convert.h"
#include "lab/simulator.h"
#include "lab/truth/pair_learner.h"
#include "place/state/cluster.h"
#include "queue/queue.h"

namespace horus::capi {

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

// The queue of the setup; where that states no capacity, it is the cluster's.
[[nodiscard]] absl::StatusOr<std::unique_ptr<Queue>> QueueFor(const SimSetup& setup, const Cluster& cluster);

}  // namespace horus::capi

#endif  // HORUS_LAB_CAPI_SIM_OPTIONS_H_
