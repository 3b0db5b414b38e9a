// SPDX-License-Identifier: Apache-2.0
// Decision: the answer for one job and its explanation. A refusal is an answer, not an error.
//
// Enters:  nothing; made by the placer.
// Leaves:  plain values: verdict, stable reason codes, slots, slowdown of each tenant, cost terms.
// Units:   slowdown = shared / alone (1 = undisturbed); costs in the policy's unit, lower is better.
// Cost:    about 800 bytes, in which the lists of a usual job on one GPU have room.
#pragma once

#include <array>

#include "place/search/policy.h"
#include "place/state/cluster.h"

namespace horus {

// The values cross the C boundary: never renumber, append only.
enum class Verdict : int32_t {
  kPlace = 0,
  kDefer = 1,   // does not fit now; would fit the same cluster empty and up (see predicted_never)
  kReject = 2,  // never fits this cluster, by figures that are stated, measured or beyond doubt
};

[[nodiscard]] std::string_view VerdictName(Verdict verdict);  // "place", "defer", "reject"

// The effect of a decision on one tenant of one of its devices, the job itself included.
struct TenantEffect {
  JobId job = 0;
  NodeId node = 0;
  int32_t device = 0;
  bool is_new = false;  // the job that this decision places; `before` is then 1
  Slowdown before;
  Slowdown after;
  float calibrated = 0;  // InterferenceModel::CalibratedUpTo of `after`
  friend bool operator==(const TenantEffect&, const TenantEffect&) = default;
};
using TenantEffects = absl::InlinedVector<TenantEffect, 3>;  // 3 = the usual tenant limit

// A place and its cost, summed over the job's devices.
struct PricedPlace {
  NodeId node = 0;     // of the first slot
  int32_t device = 0;  // of the first slot; kNoDevice without GPUs
  double cost = 0;
  CostTerms terms;
  friend bool operator==(const PricedPlace&, const PricedPlace&) = default;
};

// The device or node that came nearest to taking a refused job. For amounts `available` is less than `needed`; for
// slowdowns `needed` is the bound and `available` the prediction.
struct NearestMiss {
  Reason reason = Reason::kNone;  // kNone = there is no node at all
  NodeId node = 0;
  int32_t device = -1;  // -1 = the node as a whole
  double needed = 0;
  double available = 0;
  std::string_view unit;  // static text: "MiB", "milli", "tenants", "x", ...
  double estimate = 0;    // the expected amount, where the miss states an upper bound; else 0
  GpuTypeId type;         // of the device; invalid for a node
  friend bool operator==(const NearestMiss&, const NearestMiss&) = default;
};

// Why a job's devices, which could have either mode, have theirs.
enum class ModeReason : uint8_t {
  kGiven = 0,    // they could not, or others are there
  kCap = 1,      // caps need MPS
  kAlone = 2,    // nobody comes beside the job
  kWaiting = 3,  // beside those who wait more work is done so (Decision::mode_gains)
  kCopy = 4,     // nobody waits: the same beside a copy of itself
};

struct Decision {
  JobId job = 0;
  Verdict verdict = Verdict::kReject;
  Reason reason = Reason::kNone;  // kNone when placed, else the constraint that refused most devices
  Slots slots;                    // ascending (task, node, device); empty unless placed
  TenantEffects effects;          // ascending (node, device), the newcomer first, then job id
  Slowdown own{0, 0};             // the job's own slowdown: the worst over its devices; 0 unless placed,
                                  // 1 without GPUs
  Slowdown in_plan{0, 0};         // `own` once the whole plan is applied: later jobs may come beside it (TellInPlan)
  PricedPlace winner;             // valid when placed
  PricedPlace runner_up;          // the next best place; valid when has_runner_up
  bool has_runner_up = false;
  bool spans_nodes = false;                    // a gang that no single node can hold
  bool cpu_only = false;                       // a job without GPUs
  bool predicted_never = false;                // deferred, although even the empty cluster would refuse
                                               // it: by a prediction alone
  int32_t alternative = -1;                    // position of the way to run that was chosen or refused;
                                               // -1 = the job states no alternatives
  double relative_speed = 1;                   // when placed: alone there / on its fastest listed type
  int64_t cpu_milli = 0;                       // when placed: what each task holds, its request or what
  int64_t mem_mib = 0;                         // a synergy policy grants
  GpuMemory gpu_memory;                        // when placed: per GPU, the most over its devices
  float sm_cap_slowdown = 1;                   // by its cap alone, which `own` does not count
  int32_t sm_cap_pct = 0;                      // when placed: of the job there (JobSpec); 0 = no cap
  SharingMode mode = SharingMode::kExclusive;  // when placed: of its devices
  ModeReason mode_why = ModeReason::kGiven;
  bool mps_chosen = false;                                  // of the job there (JobSpec)
  std::array<float, 2> mode_gains = {};                     // of kWaiting and kCopy: work that one more there adds, on
                                                            // average, by time slicing and under MPS
  bool probe = false;                                       // placed alone because its demand there is unknown; the
                                                            // action's job is then exclusive
  bool trial = false;                                       // shares where that pays by expectation but not by the
                                                            // upper bounds; observations decide
  std::string node_name;                                    // of the first slot, or of the nearest miss; may be empty
  std::array<uint32_t, kReasonCount> refused_devices = {};  // devices that each constraint refused, by Reason; nodes
                                                            // for a job without GPUs
  NearestMiss miss;                                         // valid for refusals
  JobId passed_by = 0;                                      // of kPassedOver: who took the place that suited it best;
                                                            // 0: nobody who can be named
  friend bool operator==(const Decision&, const Decision&) = default;
};

// Raises Decision::in_plan of those whom other jobs of the plan slow, by the effects of all. Of plans that only place.
void TellInPlan(std::span<Decision> decisions);

// The job as the decision lets it run, under a cap or in a mode; null where it is that already.
[[nodiscard]] std::shared_ptr<JobSpec> AsDecided(const JobSpec& job, const Decision& decision);

// In a few words; "" of kGiven.
[[nodiscard]] std::string DescribeMode(const Decision& decision);

// Whether at least two tenants of a device do less work, by their upper bounds, than one of them alone. All tenants
// count alike.
[[nodiscard]] bool IsTrial(std::span<const Slowdown> tenants);

// One sentence for users: where the job goes, or which constraint refused it and by how much. Types have their names
// where a catalogue is given.
[[nodiscard]] std::string DescribeDecision(const Decision& decision, const Catalogue* catalogue = nullptr);

// ---- Alternatives: the ways to run one job, and the value of a place for each.
// Cost: one copy of the job per way; O(tenants on the devices).

// Value of a decision that places the way: useful work that the cluster gains, less `gpu_price` for each GPU taken. The
// formula is in README.md.
[[nodiscard]] double WorthOf(const JobSpec& job, size_t index, const Decision& decision, double gpu_price);

// ---- Plan: a list of actions on a cluster, made without changing it, applied all or nothing.
// Cost: about 900 bytes a job, and a copy of the JobSpec.

// CPU and host memory of each task of a job.
struct HostHolding {
  int64_t cpu_milli = 0;
  int64_t mem_mib = 0;
  friend bool operator==(const HostHolding&, const HostHolding&) = default;
};

// A change of a resident. Values are useful work (engine.h) per unit of time.
struct Move {
  ActionKind kind = ActionKind::kMigrate;  // or kPreempt, kResize
  JobId job = 0;
  Slots from;             // ascending (task, node, device)
  Slots to;               // of a preemption empty; of a resize equal to `from`
  double gain = 0;        // work that the cluster gains by this move, after those before it. Of a victim: minus its
                          // work. Of a resize: change of the job's speed by its sensitivity, 1 = at its fair share
  double cost = 0;        // of a migration: its downtime's work, spread over the horizon
  HostHolding host_from;  // of a resize, as host_to
  HostHolding host_to;
  friend bool operator==(const Move&, const Move&) = default;
};

// A place where a job would fit once its victims are gone.
struct PreemptionCandidate {
  NodeId node = 0;             // of the first slot
  Slots slots;                 // where the job would go; ascending (task, node, device)
  std::vector<JobId> victims;  // ascending
  std::vector<double> losses;  // useful work of each victim, weighted by priority
  double loss = 0;             // their sum
  bool exact = false;          // no cheaper set of victims makes room on this node
  friend bool operator==(const PreemptionCandidate&, const PreemptionCandidate&) = default;
};

struct Plan : Changes {
  std::vector<Decision> decisions;              // one per job, in planning order: (priority descending, submit_us, id)
  uint64_t model_epoch = 0;                     // of the interference model that predicted the effects
  bool has_work = false;                        // whether the next two were computed
  double work_before = 0;                       // useful work of the cluster without the plan (engine.h)
  double work_after = 0;                        // and with it
  std::vector<Move> moves;                      // one per action on a resident, in the order of the actions
  std::vector<PreemptionCandidate> candidates;  // of a preemption plan: ascending loss; the plan uses the first
};

}  // namespace horus
