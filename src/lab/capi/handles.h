// SPDX-License-Identifier: Apache-2.0
// What is behind the handles that the laboratory adds: lists of jobs, traces, truths, results of simulations.
//
// Enters:  values of the rooms.   Leaves: the structs that horus/lab/*.h only name.
// Cost:    one allocation a handle; of a list the jobs, and about 250 bytes a demand.
#pragma once

#include <set>

#include "capi/convert.h"
#include "capi/handles.h"
#include "horus/lab/files.h"
#include "horus/lab/sim.h"
#include "lab/simulator.h"

namespace horus::capi {

struct Speeds {
  SpeedTable table;
  uint32_t reference = 0;
};
// Without names these are empty texts. INVALID_ARGUMENT "speeds: alone[3]: expected ..., found ...";
// RESOURCE_EXHAUSTED.
[[nodiscard]] absl::StatusOr<Speeds> SpeedsFromC(const horus_speeds* given, bool with_names);

[[nodiscard]] uint64_t BytesOf(const Trace& trace);

// Of its devices, ascending.
[[nodiscard]] inline std::vector<GpuTypeId> TypesOf(const Cluster& cluster) {
  std::set<GpuTypeId> types;
  for (const NodeId node : cluster.NodeIds()) {
    const NodeInfo info = *cluster.Node(node);
    for (const DeviceSpec& device : info.spec.devices) types.insert(device.type);
  }
  return {types.begin(), types.end()};
}

}  // namespace horus::capi

struct horus_job_list {
  horus_job_list(std::shared_ptr<const horus::Catalogue> types, std::vector<horus::JobSpec> given)
      : catalogue(std::move(types)), specs(std::move(given)) {
    for (const horus::JobSpec& spec : specs) {
      const size_t size = horus::capi::JobBytes(*catalogue, spec);
      bytes += size + sizeof spec;
      memory.push_back(std::make_unique<char[]>(size));
      jobs.push_back(horus::capi::PutJob(*catalogue, spec, memory.back().get()));
    }
  }
  const std::shared_ptr<const horus::Catalogue> catalogue;
  const std::vector<horus::JobSpec> specs;
  std::vector<std::unique_ptr<char[]>> memory;
  std::vector<const horus_job*> jobs;  // in it
  uint64_t bytes = sizeof(horus_job_list);
};

struct horus_trace {
  std::shared_ptr<const horus::Trace> value;
};

// Bound to a trace's profiles when a simulation begins.
struct horus_truth {
  std::shared_ptr<const horus::Catalogue> catalogue;  // whose type ids it speaks
  // One of the two.
  std::shared_ptr<const horus::InterferenceModel> model;  // null = speeds
  horus::DemandsByName demands;
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
