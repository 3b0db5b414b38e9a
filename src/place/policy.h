// SPDX-License-Identifier: Apache-2.0
// The second of the two seams: a placement policy prices the places that passed every hard constraint.
//
// Enters:  one feasible device (residents, demands, predicted slowdowns, memory) or the node around it; or a whole
//          node with all that a task asks of it.
// Leaves:  a cost, lower is better, or "rather not"; named terms that sum to the cost.
// Units:   costs in the policy's own unit; see docs/place.md for the built-in ones.
// Cost:    well under a microsecond a call; called once per distinct device state, not once per device; nodes anew
//          only after they changed.
// Thread class: const methods, share freely; a policy that keeps state must say so.
#ifndef HORUS_PLACE_POLICY_H_
#define HORUS_PLACE_POLICY_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "interference/model.h"
#include "place/decision.h"
#include "place/job.h"
#include "place/state/device_states.h"
#include "place/state/node.h"

namespace horus {

struct SynergySettings;  // synergy/round.h
class Workload;          // workload.h

// A device that can take the job, as if it did. The columns hold the residents, ordered by content, and with
// `after` the newcomer last: `demands`, `tenants` and `after` are one longer than `before`.
struct DeviceCandidate {
  // Of the job, with its demand all that a price may depend on: jobs alike in these share their verdicts.
  JobKind kind = JobKind::kTraining;
  int32_t priority = 0;
  int32_t gpu_milli = 0;  // its hard request; 0 = none
  DeviceContext device;
  int64_t mem_mib = 0;             // of the device
  int64_t mem_used_upper_mib = 0;  // by the residents' requests
  int64_t mem_used_mib = 0;        // by the residents' estimates
  int32_t milli_used = 0;
  std::span<const Demand* const> demands;
  std::span<const TenantClass* const> tenants;  // as `demands`: kind, priority, bound and requests of each
  std::span<const Slowdown> before;
  std::span<const Slowdown> after;
  double relative_speed = 1;  // the job's speed alone on this device / on the fastest type that it lists; 0-1

  [[nodiscard]] size_t residents() const { return before.size(); }
  [[nodiscard]] const Demand& newcomer() const { return *demands.back(); }
  // Device memory that is left once the job's request is met; negative where limits are all that holds.
  [[nodiscard]] int64_t MemoryLeftMib() const {
    return mem_mib - mem_used_upper_mib - tenants.back()->memory.request_mib;
  }
};

// What a device costs at least, as a sum over what is known of it before it is priced. All by estimates but memory.
struct LeastCost {
  double own_work = 0;     // x the job's speed there (relative_speed / its own slowdown)
  double lost_work = 0;    // x the normalised throughput that its neighbours lose, each x its worth / the job's weight
  double memory_left = 0;  // x the share of the device's memory that is left by the bounds of all, the job's included
  double idle = 0;         // where nobody else is there
};

// Where the device is: the part of a cost that equal devices do not share.
struct PlaceCandidate {
  JobId job = 0;
  NodeId node = 0;
  int32_t device = 0;
  int32_t node_devices = 0;
  int32_t node_idle_devices = 0;
  int64_t cpu_free_milli = 0;  // before placement
  int64_t mem_free_mib = 0;
};

// A node, for policies that keep a job off it whatever its devices are like. Of the job, what decides where it fits
// may be read: kind, priority, tasks, GPUs, requests, selector, demands.
struct NodeAdmission {
  const JobSpec* job = nullptr;
  const NodeSpec* node = nullptr;
  bool holds_distributed = false;  // a job of several tasks has one of them here
};

struct DeviceScore {
  double cost = 0;        // finite
  bool declined = false;  // feasible, but the policy would rather not: Reason::kPolicy
  double own_work = 0;    // of policies that maximise work: what the cost counts for the job's own speed there
};

// A device of a node that may take one task of the job.
struct NodeDevice {
  GpuTypeId type;
  uint32_t group = 0;      // GPU type and sharing mode: the devices of a task are of one group
  int32_t free_milli = 0;  // of hard requests; 0 unless the device is up
  bool fits = false;       // passed every hard constraint, and its group has enough such devices for the task
  uint64_t kinds = 0;      // of its residents, as KindBit (device_states.h)
  double cost = 0;         // of ScoreDevice; only for policies whose node_uses_devices()
};

// A node that can take one task of the job, before it does.
struct NodeCandidate {
  const JobSpec* job = nullptr;
  int32_t gpu_milli = 0;  // per GPU of the task: 1 for a sharer without a request, 0 without GPUs
  uint64_t kind = 0;      // of the job; 0 without GPUs
  NodeId node = 0;
  const NodeSpec* spec = nullptr;  // where its devices are in the topology, in the order of `devices`
  int64_t cpu_milli = 0;           // of the node
  int64_t mem_mib = 0;
  int64_t cpu_free_milli = 0;
  int64_t mem_free_mib = 0;
  std::span<const NodeDevice> devices;
};

struct NodeScore {
  double cost = 0;               // finite; of the whole task
  std::vector<int32_t> devices;  // as many as a task has GPUs, ascending, of one group, all fitting
};

// What sharing did to the tenants of one device while they ran.
struct ObservedSharing {
  DeviceContext device;
  std::span<const Demand* const> demands;  // of the tenants, in any order
  std::span<const double> throughput;      // of each: speed shared / speed alone
};

class Policy;
// What Policy::Revise answers with for an observation that cannot be.
[[nodiscard]] absl::Status CheckObserved(const ObservedSharing& observed);
struct Revision {
  bool undo = false;                     // the tenants should go on apart; whom to move is the caller's choice
  std::unique_ptr<const Policy> policy;  // what the policy has learned to be, for the placers to come; null = the same
};

class Policy {
 public:
  virtual ~Policy() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;

  // Prices a device. A pure function of the candidate; a non-OK status ends the plan with that status.
  [[nodiscard]] virtual absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const = 0;

  // No device costs less, but for rounding: lets a search pass over devices unpriced, the more the nearer it is to
  // the cost. Null = nothing is known.
  [[nodiscard]] virtual const LeastCost* least_cost() const { return nullptr; }

  // Whether the cost of a device is minus the useful work (engine.h) that it gains, but for what orders equal gains:
  // such a policy's batches are compared by work, others' by how many jobs are placed and what they cost. Its scores
  // say how much of the cost is minus the job's `own_work`, speed alone / slowdown: the GPUs of a gang all work as the
  // slowest does, so the search counts that one's for each (gang.h). A gang of other policies costs the sum of its
  // devices.
  [[nodiscard]] virtual bool maximises_work() const { return false; }
  // Of such a policy: whether a gang's own work is less by what its GPUs send over the links between them.
  [[nodiscard]] virtual bool prices_links() const { return false; }

  // What the surroundings add; called for each node (or each device, see below) only when uses_place().
  [[nodiscard]] virtual bool uses_place() const { return false; }
  [[nodiscard]] virtual double ScorePlace(const PlaceCandidate& /*place*/) const { return 0; }
  // Whether ScorePlace differs between the devices of a node.
  [[nodiscard]] virtual bool place_by_device() const { return false; }

  // Whether tasks of the job are priced by ScoreNode instead of device by device. A function of what
  // JobView::request covers, like the cost itself.
  [[nodiscard]] virtual bool PricesNode(const JobSpec& /*job*/) const { return false; }
  // Prices a node for one task and chooses its devices. The cost is a pure function of the candidate without node id
  // and job id: it is kept until the node changes. What lots decide goes into Draw.
  [[nodiscard]] virtual absl::Status ScoreNode(const NodeCandidate& candidate, NodeScore& score) const;
  // Whether ScoreNode reads NodeDevice::cost.
  [[nodiscard]] virtual bool node_uses_devices() const { return false; }
  // What is added to the node's cost for this job alone, never negative; asked for every feasible node when draws().
  [[nodiscard]] virtual bool draws() const { return false; }
  [[nodiscard]] virtual double Draw(JobId /*job*/, NodeId /*node*/) const { return 0; }
  // The parts of NodeScore::cost, for explanations.
  virtual void ExplainNode(const NodeCandidate& candidate, const NodeScore& score, std::vector<CostTerm>& terms) const;

  // Whether AdmitsNode ever says no, and whether the job may use the node at all; a refusal is Reason::kPolicy. A job
  // that leaves must never make it say no.
  [[nodiscard]] virtual bool admits_nodes() const { return false; }
  [[nodiscard]] virtual bool AdmitsNode(const NodeAdmission& /*node*/) const { return true; }

  // Not null: MakePlan decides the jobs of a plan together, in one round by that rule, and only those that the rule
  // cannot take one by one; modes refuse such a policy.
  [[nodiscard]] virtual const SynergySettings* round() const { return nullptr; }

  // Bound on slowdowns for jobs that state none; infinity = none. A bound that a job states is always kept.
  [[nodiscard]] virtual double default_slowdown_bound() const { return std::numeric_limits<double>::infinity(); }

  // The parts of the price of a place, for explanations; they sum to ScoreDevice + ScorePlace.
  virtual void Explain(const DeviceCandidate& candidate, const PlaceCandidate& place,
                       std::vector<CostTerm>& terms) const;

  // What the policy makes of an observation. It stays as it is (its verdicts are memoised): what it learned is a new
  // policy. INVALID_ARGUMENT for columns of different length or throughputs that are none.
  [[nodiscard]] virtual absl::StatusOr<Revision> Revise(const ObservedSharing& observed) const;
};

inline constexpr const char* kProfilingLabel = "horus-profiling";

// Settings of single policies; docs/policies.md says which are published and which are our choice.
struct PolicyOptions {
  uint64_t seed = 0;                              // of policies that draw
  double pack_threshold = 1.5;                    // gavel-threshold: least summed normalised throughput of a pack
  double foreground_bound = 1.1;                  // foreground: slowdown of a foreground job that states none
  std::string profiling_label = kProfilingLabel;  // reactive: nodes with this label, whatever its value, only profile
  bool links = true;                              // horus, clwp-nlwp: weigh the links between a gang's GPUs
  double synergy_tolerance = kBestCellTolerance;  // synergy-*: how far below the best speed still counts as the best
  bool synergy_grow = false;                      // synergy-tune: hand out what is left, residents included
  std::string lp_library;                         // synergy-opt: file of libhorus_lp.so; empty = looked for
  std::shared_ptr<const Workload> workload;       // what fragments are measured against; null = Workload::WholeGpus()
};

// The built-in names, in a fixed order; "horus" first.
[[nodiscard]] std::vector<std::string_view> PolicyNames();
[[nodiscard]] std::string_view PolicyName(size_t index);  // empty past the end; ended by NUL

// The policy of that name; NOT_FOUND lists the names, INVALID_ARGUMENT tells the setting out of range.
[[nodiscard]] absl::StatusOr<std::unique_ptr<Policy>> MakePolicy(std::string_view name,
                                                                 const PolicyOptions& options = {});

}  // namespace horus

#endif  // HORUS_PLACE_POLICY_H_
