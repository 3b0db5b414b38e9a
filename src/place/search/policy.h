// SPDX-License-Identifier: Apache-2.0
// Policy: prices the places that passed every hard constraint. One of the two extension points.
//
// Enters:  one feasible device (residents, demands, predicted slowdowns, memory) or its node; or a whole node and a
//          task's requests.
// Leaves:  a cost, lower is better, or a refusal; named terms that sum to the cost.
// Units:   costs in the policy's own unit; docs/place.md gives those of the built-in policies.
// Cost:    well under a microsecond a call; one call per distinct device state, and per node that changed.
// Thread class: const methods, share freely; a policy that keeps state must say so.
#pragma once

#include <limits>

#include "interference/model.h"
#include "place/state/device_states.h"

namespace horus {

// A device that can take the job, as if the job ran there. `before` has a row for each resident, in an order given by
// their content; `demands`, `tenants` and `after` have the newcomer as one more row at the end.
struct DeviceCandidate {
  // The price may depend on no other fields of the job than these three and its demand: jobs equal in them share
  // verdicts.
  JobKind kind = JobKind::kTraining;
  int32_t priority = 0;
  int32_t gpu_milli = 0;  // its hard request; 0 = none
  DeviceContext device;
  int64_t mem_mib = 0;             // of the device
  int64_t mem_used_upper_mib = 0;  // by the residents' requests
  int64_t mem_used_mib = 0;        // by the residents' estimates
  int32_t milli_used = 0;
  std::span<const Demand* const> demands;
  std::span<const TenantClass* const> tenants;  // kind, priority, bound and requests of each
  std::span<const Slowdown> before;
  std::span<const Slowdown> after;
  double relative_speed = 1;  // of the job alone here, over that on its fastest listed type; 0-1

  [[nodiscard]] size_t residents() const { return before.size(); }
  [[nodiscard]] const Demand& newcomer() const { return *demands.back(); }
  // Device memory left beside all requests, the job's included; negative if only limits hold.
  [[nodiscard]] int64_t MemoryLeftMib() const {
    return mem_mib - mem_used_upper_mib - tenants.back()->memory.request_mib;
  }
};

// One part of a policy's cost; the parts sum to the cost. Names are static text.
struct CostTerm {
  std::string_view name;
  double value = 0;
  friend bool operator==(const CostTerm&, const CostTerm&) = default;
};
using CostTerms = absl::InlinedVector<CostTerm, 6>;  // 6 = those of the policy `horus` for one GPU

// Where a policy maximises work and a newcomer makes GPUs of a gang wait elsewhere, it must gain so much for each of
// these and of its own: what a gang loses is sure, and its barriers make it more than the model says. Chosen.
inline constexpr double kLeastGainPerGpu = 0.05;

// Coefficients of a lower bound on a device's cost: a sum that is known before the device is priced. Memory counts by
// upper bounds, the rest by estimates.
struct LeastCost {
  double own_work = 0;     // x work_alone x relative_speed / the job's own slowdown
  double lost_work = 0;    // x the normalised throughput that co-tenants lose, each x its worth / the job's weight
  double memory_left = 0;  // x the free share of the device's memory, with the job there
  double idle = 0;         // added if nobody else is there
};

// Where a device is. Devices of equal state differ only in this part of their cost.
struct PlaceCandidate {
  JobId job = 0;
  NodeId node = 0;
  int32_t device = 0;
  int32_t node_devices = 0;
  int32_t node_idle_devices = 0;
  int64_t cpu_free_milli = 0;  // before placement
  int64_t mem_free_mib = 0;
};

// A node, for policies that refuse a job a node whatever its devices are. They may read only the fields of the job that
// decide where it fits: kind, priority, tasks, GPUs, requests, selector, demands.
struct NodeAdmission {
  const JobSpec* job = nullptr;
  const NodeSpec* node = nullptr;
  bool holds_distributed = false;  // a job of several tasks has a task here
};

struct DeviceScore {
  double cost = 0;        // finite
  bool declined = false;  // feasible, but the job should not go there: Reason::kPolicy
  double own_work = 0;    // if maximises_work(): the part of -cost that is the job's own work there
};

// A device of a node that may take one task of the job.
struct NodeDevice {
  GpuTypeId type;
  uint32_t group = 0;      // GPU type and sharing mode; a task's devices are of one group
  int32_t free_milli = 0;  // not taken by hard requests; 0 unless the device is up
  bool fits = false;       // passes every hard constraint, and its group has enough such devices for the task
  uint64_t kinds = 0;      // of its residents, as KindBit (device_states.h)
  double cost = 0;         // of ScoreDevice; only if node_uses_devices()
};

// A node that can take one task of the job, before it does.
struct NodeCandidate {
  const JobSpec* job = nullptr;
  int32_t gpu_milli = 0;  // per GPU of the task: 1 for a sharer without a request, 0 without GPUs
  uint64_t kind = 0;      // of the job; 0 without GPUs
  NodeId node = 0;
  const NodeSpec* spec = nullptr;  // topology of its devices, in the order of `devices`
  int64_t cpu_milli = 0;           // of the node
  int64_t mem_mib = 0;
  int64_t cpu_free_milli = 0;
  int64_t mem_free_mib = 0;
  std::span<const NodeDevice> devices;
};

struct NodeScore {
  double cost = 0;               // finite; of the whole task
  std::vector<int32_t> devices;  // one per GPU of a task, ascending, of one group, all fitting
};

// Observed throughput of the tenants of one device.
struct ObservedSharing {
  DeviceContext device;
  std::span<const Demand* const> demands;  // of the tenants, in any order
  std::span<const double> throughput;      // of each: speed shared / speed alone
};

class Policy;
// OK, or Policy::Revise's error for an invalid observation.
[[nodiscard]] absl::Status CheckObserved(const ObservedSharing& observed);
struct Revision {
  bool undo = false;                     // the tenants should not share on; the caller chooses which to move
  std::unique_ptr<const Policy> policy;  // with what was learned, for later placers; null = nothing was learned
};

class Policy {
 public:
  virtual ~Policy() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;

  // Prices a device. A pure function of the candidate; a non-OK status ends the plan with that status.
  [[nodiscard]] virtual absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const = 0;

  // A lower bound on ScoreDevice, but for rounding. It lets the search skip devices without pricing them; the tighter
  // it is, the more. Null = none.
  [[nodiscard]] virtual const LeastCost* least_cost() const { return nullptr; }

  // Whether the cost of a device is minus the useful work (engine.h) gained there, except for terms that order equal
  // gains. Batches are then compared by work, else by the number of jobs placed and their cost. Scores must then set
  // own_work (speed alone / slowdown): since a gang runs at the speed of its slowest GPU, the search counts the lowest
  // own_work for each GPU (gang.h). With other policies a gang costs the sum of its devices.
  [[nodiscard]] virtual bool maximises_work() const { return false; }
  // If maximises_work(): whether plans give jobs with a sensitivity cores and host memory (host/plan_grants.h).
  [[nodiscard]] virtual bool grants_host() const { return false; }
  // If maximises_work(): whether communication between a gang's GPUs lowers its own work.
  [[nodiscard]] virtual bool prices_links() const { return false; }

  // The cost of the device's place, added to ScoreDevice. Called for each node (or device, see place_by_device), only
  // if uses_place().
  [[nodiscard]] virtual bool uses_place() const { return false; }
  [[nodiscard]] virtual double ScorePlace(const PlaceCandidate& /*place*/) const { return 0; }
  // Whether ScorePlace differs between the devices of a node.
  [[nodiscard]] virtual bool place_by_device() const { return false; }

  // Whether ScoreNode prices tasks of the job, instead of ScoreDevice. May depend only on what JobView::request
  // covers, like the cost itself.
  [[nodiscard]] virtual bool PricesNode(const JobSpec& /*job*/) const { return false; }
  // Prices a node for one task and chooses its devices. The cost must be a pure function of the candidate without the
  // ids of node and job, because it is kept until the node changes. Random costs belong in Draw.
  [[nodiscard]] virtual absl::Status ScoreNode(const NodeCandidate& candidate, NodeScore& score) const;
  // Whether ScoreNode reads NodeDevice::cost.
  [[nodiscard]] virtual bool node_uses_devices() const { return false; }
  // Added to the node's cost for this job only; never negative. Called for every feasible node, only if draws().
  [[nodiscard]] virtual bool draws() const { return false; }
  [[nodiscard]] virtual double Draw(JobId /*job*/, NodeId /*node*/) const { return 0; }
  // The parts of NodeScore::cost, for explanations.
  virtual void ExplainNode(const NodeCandidate& candidate, const NodeScore& score, CostTerms& terms) const;

  // admits_nodes: whether AdmitsNode can be false. AdmitsNode: whether the job may use the node; false =
  // Reason::kPolicy. A job that leaves must not turn it from true to false.
  [[nodiscard]] virtual bool admits_nodes() const { return false; }
  [[nodiscard]] virtual bool AdmitsNode(const NodeAdmission& /*node*/) const { return true; }

  // Slowdown bound for jobs that state none; infinity = none.
  [[nodiscard]] virtual double default_slowdown_bound() const { return std::numeric_limits<double>::infinity(); }

  // The parts of ScoreDevice + ScorePlace, for explanations.
  virtual void Explain(const DeviceCandidate& candidate, const PlaceCandidate& place, CostTerms& terms) const;

  // Learns from an observation. Verdicts are memoised, so the policy itself stays as it is and Revision holds the new
  // one. INVALID_ARGUMENT: columns of different length, or invalid throughputs.
  [[nodiscard]] virtual absl::StatusOr<Revision> Revise(const ObservedSharing& observed) const;
};

}  // namespace horus
