// SPDX-License-Identifier: Apache-2.0
// Decision: the answer for one job and its explanation. A refusal is an answer, not an error.
//
// Enters:  nothing; made by the placer.
// Leaves:  plain values: verdict, stable reason codes, slots, who is slowed by how much, cost terms.
// Units:   slowdown = shared / alone (1 = undisturbed); costs in the policy's unit, lower is better.
// Cost:    about 400 bytes plus what it lists.    Thread class: value, share freely.
#ifndef HORUS_PLACE_DECISION_H_
#define HORUS_PLACE_DECISION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "interference/model.h"
#include "place/job.h"

namespace horus {

// The values cross the C boundary: never renumber, append only.
enum class Verdict : int32_t {
  kPlace = 0,
  kDefer = 1,   // does not fit now; would fit this cluster empty and up, or only a prediction says that it would not
  kReject = 2,  // never fits this cluster, by what is stated, measured or beyond doubt
};

// Why a node or a device cannot take a job. The values cross the C boundary: never renumber, append only.
enum class Reason : int32_t {
  kNone = 0,
  kNodeDown = 1,
  kNodeDrained = 2,
  kDeviceDown = 3,
  kDeviceDrained = 4,
  kNotInSubset = 5,
  kGpuType = 6,
  kLabel = 7,
  kCpu = 8,
  kHostMemory = 9,
  kStorageBandwidth = 10,
  kGpuMemory = 11,
  kGpuMilli = 12,
  kTenantLimit = 13,
  kExclusive = 14,
  kSharingMode = 15,
  kSlowdownOwn = 16,
  kSlowdownNeighbour = 17,
  kGang = 18,
  kPolicy = 19,
  kOwner = 20,
  kAntiAffinity = 21,
  kMemoryUnknown = 22,
  kSharingQuota = 23,
};
inline constexpr size_t kReasonCount = 24;

// The place of a constraint in the order in which they are asked: the later one fails, the nearer the job was.
[[nodiscard]] int AskedAt(Reason reason);

// "gpu_memory" and one sentence for people; "unknown" for a value that is no reason.
[[nodiscard]] std::string_view ReasonName(Reason reason);
[[nodiscard]] std::string_view ReasonText(Reason reason);
[[nodiscard]] std::string_view VerdictName(Verdict verdict);  // "place", "defer", "reject"

// The device of a task without GPUs; UINT32_MAX in C.
inline constexpr int32_t kNoDevice = -1;

// One device of one task, or the node of a task without GPUs.
struct Slot {
  NodeId node = 0;
  int32_t device = 0;  // index within the node, or kNoDevice
  int32_t task = 0;    // of the gang, from 0
  friend auto operator<=>(const Slot&, const Slot&) = default;
};

// What the decision does to one tenant of one device that it uses, the job itself included.
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

// One part of a policy's cost; the parts sum to the cost. Names are static text.
struct CostTerm {
  std::string_view name;
  double value = 0;
  friend bool operator==(const CostTerm&, const CostTerm&) = default;
};

// A place with its price; for a job of several devices that of all of them together.
struct PricedPlace {
  NodeId node = 0;     // of the first slot
  int32_t device = 0;  // of the first slot; kNoDevice without GPUs
  double cost = 0;
  std::vector<CostTerm> terms;
  friend bool operator==(const PricedPlace&, const PricedPlace&) = default;
};

// The device or node that came nearest to taking a refused job. `available` falls short of `needed` for
// amounts; for slowdowns `needed` is the bound and `available` what was predicted.
struct NearestMiss {
  Reason reason = Reason::kNone;  // kNone = there is no node at all
  NodeId node = 0;
  int32_t device = -1;  // -1 = the node as a whole
  double needed = 0;
  double available = 0;
  std::string_view unit;  // static text: "MiB", "milli", "tenants", "x", ...
  double estimate = 0;    // where the amount held against the limit is an upper bound of a prediction: what is expected
                          // of it; else 0
  friend bool operator==(const NearestMiss&, const NearestMiss&) = default;
};

struct Decision {
  JobId job = 0;
  Verdict verdict = Verdict::kReject;
  Reason reason = Reason::kNone;      // kNone when placed, else the constraint that refused most devices
  std::vector<Slot> slots;            // ascending (task, node, device); empty unless placed
  std::vector<TenantEffect> effects;  // ascending (node, device), the newcomer first, then job id
  Slowdown own{0, 0};                 // the job's own slowdown: the worst over its devices; 0 unless placed,
                                      // 1 without GPUs
  PricedPlace winner;                 // valid when placed
  PricedPlace runner_up;              // the next best place; valid when has_runner_up
  bool has_runner_up = false;
  bool spans_nodes = false;                                 // found by the heuristic for gangs that fit no single node
  bool cpu_only = false;                                    // a job without GPUs
  bool predicted_never = false;                             // deferred though the cluster would refuse it empty and up
                                                            // too: what refuses it there is a prediction
  int32_t alternative = -1;                                 // the way to run that was chosen, or that a refusal speaks
                                                            // of; -1 = the job states no alternatives
  double relative_speed = 1;                                // when placed: alone there / on the fastest type that the
                                                            // job lists
  int64_t cpu_milli = 0;                                    // when placed: what each of its tasks holds, its request
  int64_t mem_mib = 0;                                      // or what the policy grants (synergy-*)
  bool probe = false;                                       // alone, because nobody knows yet what it does there;
                                                            // the action's job is exclusive then
  bool trial = false;                                       // beside others, where it pays by expectation, but not by
                                                            // the upper bounds: what is observed there decides
  std::string node_name;                                    // of the first slot, or of the nearest miss; may be empty
  std::array<uint32_t, kReasonCount> refused_devices = {};  // devices that failed each constraint, by Reason; nodes
                                                            // where the job is without GPUs
  NearestMiss miss;                                         // valid for refusals
  friend bool operator==(const Decision&, const Decision&) = default;
};

// Whether those on a device, two at least, do less work than one of them alone would by their upper bounds, each
// counted like the others.
[[nodiscard]] bool IsTrial(std::span<const Slowdown> tenants);

// One sentence for people: where it goes, or what refused it and how far off it was.
[[nodiscard]] std::string DescribeDecision(const Decision& decision);

// ---- Alternatives: the ways to run one job, and which of their places is worth most.
// Cost: a copy of the job a way; O(tenants on the devices).

// The job as its alternative `index` runs it, without alternatives.
[[nodiscard]] JobSpec WayOf(const JobSpec& job, size_t index);

// Of a decision that places the way: useful work that the cluster gains, less `gpu_price` for each GPU that it takes.
// docs/place.md has the formula and its reason.
[[nodiscard]] double WorthOf(const JobSpec& job, size_t index, const Decision& decision, double gpu_price);

// ---- Plan: a list of actions on a cluster, made without changing it, applied all or nothing.
// Cost: about 500 bytes a job.

enum class ActionKind : uint8_t {
  kPlace = 0,
  kResize = 1,   // a resident stays where it is with the CPU and host memory of `job`, else unchanged; no slots
  kMigrate = 2,  // a resident goes to `slots`; it stays the same job
  kPreempt = 3,  // a resident leaves; no slots
};

struct Action {
  ActionKind kind = ActionKind::kPlace;
  std::shared_ptr<const JobSpec> job;  // never null
  std::vector<Slot> slots;             // ascending (task, node, device)
};

// What the plan knew of a node that it touches.
struct SeenNode {
  NodeId node = 0;
  uint64_t version = 0;
  friend bool operator==(const SeenNode&, const SeenNode&) = default;
};

// CPU and host memory of each task of a job.
struct HostHolding {
  int64_t cpu_milli = 0;
  int64_t mem_mib = 0;
  friend bool operator==(const HostHolding&, const HostHolding&) = default;
};

// What a plan takes from a resident, for whom, and what for. Values are useful work (engine.h) per unit of time.
struct Move {
  ActionKind kind = ActionKind::kMigrate;  // or kPreempt, kResize
  JobId job = 0;
  std::vector<Slot> from;  // ascending (task, node, device)
  std::vector<Slot> to;    // empty for a preemption; of a resize as `from`
  double gain = 0;         // of the cluster by this move, after those before it; negative for what a victim loses; of a
                           // resize by how much the job's speed changes, by its sensitivity (1 = at its fair share)
  double cost = 0;         // of a migration: work lost while it is down, spread over the horizon
  HostHolding host_from;   // of a resize, and the next
  HostHolding host_to;
  friend bool operator==(const Move&, const Move&) = default;
};

// One place where a job would fit once its victims are gone.
struct PreemptionCandidate {
  NodeId node = 0;             // of the first slot
  std::vector<Slot> slots;     // where the job would go; ascending (task, node, device)
  std::vector<JobId> victims;  // ascending
  std::vector<double> losses;  // of each: useful work, weighted by priority
  double loss = 0;             // their sum
  bool exact = false;          // no cheaper set of victims makes room on this node
  friend bool operator==(const PreemptionCandidate&, const PreemptionCandidate&) = default;
};

struct Plan {
  std::vector<Action> actions;                  // in planning order
  std::vector<Decision> decisions;              // one per job, in planning order: (priority descending, submit_us, id)
  std::vector<SeenNode> seen;                   // the nodes that the actions use, ascending id
  uint64_t model_epoch = 0;                     // of the interference model that predicted the effects
  bool hypothetical = false;                    // answers a what-if: Apply refuses it
  bool has_work = false;                        // the next two were computed
  double work_before = 0;                       // useful work of the cluster (engine.h)
  double work_after = 0;                        // and with the plan carried out
  std::vector<Move> moves;                      // one per action on a resident, in the order of the actions
  std::vector<PreemptionCandidate> candidates;  // of a preemption plan: ascending loss, the first is carried out
};

}  // namespace horus

#endif  // HORUS_PLACE_DECISION_H_
