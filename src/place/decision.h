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
#include <cstdint>
#include <limits>
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

}  // namespace horus

#endif  // HORUS_PLACE_DECISION_H_
