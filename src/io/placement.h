// SPDX-License-Identifier: Apache-2.0
// PlacementReport: a plan with the cluster before and after it, ready to be printed or written.
//
// Enters:  a cluster, the plan made for it, and the interference model that predicted its effects.
// Leaves:  the state after the plan, the slowdown of every tenant there, and names for all ids.
// Units:   slowdown = shared / alone.
// Cost:    one copy of the cluster and one model call a device in use.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/seeded_hash.h"
#include "base/status.h"
#include "interference/model.h"
#include "nlohmann/json_fwd.hpp"
#include "place/decision.h"
#include "place/state/cluster.h"
#include "predict/service.h"

namespace horus {

// A job on a device, once all is placed.
struct TenantOutcome {
  JobId job = 0;
  NodeId node = 0;
  int32_t device = 0;
  Slowdown slowdown;
  int64_t mem_mib = 0;  // expected, as the next
  double util_pct = 0;
  double work_alone = 1;    // on that GPU: WorkAlone x SpeedAlone (place/work.h), without its cap
  double cap_slowdown = 1;  // by its cap on SMs alone
  bool keeps_work = false;  // a service that does all of it, however slowed (predict/demand.h)
  double bound = 0;         // its own, else the default; infinity = none
  double confidence = 0;    // with which the bound is to hold
  double held = 1;          // what is held against it: the slowdown not exceeded with that probability
  uint32_t others = 0;      // tenants beside it. Of two and more nobody has published a measurement: pairs add up
  bool measured = false;    // what it loses beside each of them was measured, not predicted
  [[nodiscard]] bool above_bound() const;  // as the placer counts
  [[nodiscard]] double WorkAt(float slowed) const {
    return keeps_work ? work_alone : work_alone / (cap_slowdown * static_cast<double>(slowed));
  }
};

struct GpuOutcome {
  NodeId node = 0;
  int32_t device = 0;
  AdminState state = AdminState::kUp;
  int64_t mem_mib = 0;
  int64_t mem_reserved_mib = 0;  // what fit counts: upper bounds, or requests
};

// How people call nodes, jobs and devices.
class PlacementNames {
 public:
  PlacementNames() = default;
  PlacementNames(const Cluster& cluster, std::span<const JobSpec> jobs);
  [[nodiscard]] std::string Node(NodeId node) const;  // its name, else "#17"
  [[nodiscard]] std::string Job(JobId job) const;
  [[nodiscard]] std::string GpuType(NodeId node, int32_t device) const;  // "a100-40gb", "a100-40gb/3g.20gb"

 private:
  SeededMap<NodeId, std::string> nodes_;  // never iterated
  SeededMap<JobId, std::string> jobs_;
  SeededMap<NodeId, std::vector<DeviceSpec>> devices_;
  std::shared_ptr<const Catalogue> catalogue_;
};

struct PlacementSettings {
  std::string policy;
  std::string interference;
  double slowdown_bound = 0;  // the default for tenants that state none; infinity = none
  uint64_t seed = 0;
};

struct PlacementReport {
  PlacementSettings settings;
  Plan plan;
  std::vector<JobSpec> jobs;  // ascending id
  ClusterTotals before;
  ClusterTotals after;
  std::vector<TenantOutcome> tenants;  // ascending (node, device, job)
  std::vector<GpuOutcome> all_gpus;    // all, ascending (node, device)
  PlacementNames names;
  std::shared_ptr<const Catalogue> catalogue;
  std::map<JobId, std::string> engine_arguments;   // of placed services, where known: docs/language-models.md
  std::map<JobId, Service::Slowed> service_times;  // of those, where they are placed, once the whole plan is applied

  [[nodiscard]] const JobSpec* FindJob(JobId job) const;
  // The job's demand on the type of its first device; nullptr unless placed.
  [[nodiscard]] const Demand* DemandOf(const Decision& decision) const {
    const auto found = first_demand.find(decision.job);
    return found == first_demand.end() ? nullptr : &found->second;
  }
  // Whether that demand, or of a refused job any, is predicted of a job unlike what the predictor was made for.
  [[nodiscard]] bool IsOutside(const Decision& decision) const;
  [[nodiscard]] uint64_t Count(Verdict verdict) const;
  [[nodiscard]] uint64_t TenantsAboveBound() const;  // distinct jobs
  [[nodiscard]] uint64_t TenantJobs() const;         // distinct jobs
  // Of the tenants that share a device, a gang one on each: whose pairs were measured, and who is beside two and more.
  struct Basis {
    uint64_t sharing = 0, measured = 0, beside_several = 0;
    // Of the jobs that share, with all their GPUs: a gang is as fast as its slowest.
    uint64_t jobs = 0, gpus = 0;  // distinct
    uint64_t alone_gpus = 0;      // that they would need without sharing
    double alone_work = 0;        // that they would do on those; 1 = a busy job alone on its fastest type
    double work = 0;              // expected
  };
  [[nodiscard]] Basis SlowdownBasis() const;
  // GPUs' work that a placed job adds, and what those beside it lose on all their GPUs: a gang waits for its slowest.
  struct Work {
    double added = 0, lost = 0;
  };
  [[nodiscard]] Work WorkOf(const Decision& decision) const;

  SeededMap<JobId, Demand> first_demand;  // of placed jobs, for DemandOf
  // Of tenants on all their GPUs, for WorkOf: the work that they do however slowed, and that which slowdowns divide.
  SeededMap<JobId, std::pair<double, double>> works;
};

// Applies the plan to a copy of `cluster`. Errors: those of Apply and of the model.
[[nodiscard]] absl::StatusOr<PlacementReport> MakePlacementReport(const Cluster& cluster, std::vector<JobSpec> jobs,
                                                                  Plan plan, const InterferenceModel& model,
                                                                  PlacementSettings settings);

// ---- A placement as JSON, for programs.
// Every GPU, and every tenant on each: the keys `gpus` and `tenants`.
void AddStateJson(const PlacementReport& placement, nlohmann::ordered_json& document);

// Cost: linear, about 1 KiB a job.

inline constexpr int kPlacementJsonVersion = 1;

// Bytes that are no UTF-8 become U+FFFD; numbers that JSON lacks (infinity) become null. Ends with a newline.
[[nodiscard]] std::string PlacementJson(const PlacementReport& placement);

// The shortest decimal that reads back as `value`, as a double: 1.1f is 1.1, not 1.10000002384.
[[nodiscard]] double ShortDouble(float value);

}  // namespace horus
