// SPDX-License-Identifier: Apache-2.0
// Fit: the hard constraints, one Reason each. Fit counts upper bounds; objectives count estimates.
//
// Enters:  a job, a node's free host resources or a device's state, limits, predicted slowdowns.
// Leaves:  kNone, or the first constraint that fails, in the order of docs/place.md, and how far off it was.
// Units:   see job.h; slowdown = shared / alone.
// Cost:    O(labels) a node, O(tenants) a device.
#pragma once

#include "interference/model.h"
#include "place/job/reason.h"
#include "place/state/cluster_rows.h"

namespace horus {

struct FitLimits {
  double slowdown_bound = 0;                     // for tenants that state none; infinity = none
  double upper_probability = kUpperProbability;  // of the model's upper bounds; 0 = it has no other
  int32_t max_tenants = 3;                       // for devices that state none
  bool share = true;                             // false = one tenant a device, whatever they state
  int64_t mem_headroom_mib = 500;                // device memory that stays free beside the tenants' requests
  double mem_overcommit = 1;  // the tenants' limits and the headroom may sum to this many times the memory
};

// Predictions this close to a bound count as on it: float rounding must not refuse a job.
inline constexpr double kSlowdownTolerance = 1e-6;
[[nodiscard]] inline bool IsBeyond(double slowdown, double bound) {
  return slowdown > bound * (1 + kSlowdownTolerance);
}

// What a constraint needed and what there was; filled only when it fails.
struct Shortfall {
  double needed = 0;
  double available = 0;
  std::string_view unit;
  double estimate = 0;  // as NearestMiss::estimate
};

// How far a constraint was from holding, as a share of what was needed; 1 where there is no amount.
[[nodiscard]] double Distance(Reason reason, const Shortfall& shortfall);

// State and labels of the node: what does not depend on how many tasks come.
[[nodiscard]] Reason FitNode(const JobSpec& job, const NodeSpec& node, AdminState state);

// Host resources for `tasks` tasks of the job.
[[nodiscard]] Reason FitHost(const JobSpec& job, const HostFree& free, int64_t tasks, Shortfall* shortfall = nullptr);

// How many tasks the host resources carry, at most `limit`, and one where the job spreads its tasks.
[[nodiscard]] int64_t HostTasks(const JobSpec& job, const HostFree& free, int64_t limit);

// State of the device.
[[nodiscard]] Reason FitDeviceState(AdminState state);

// Everything about the device but its state and slowdowns. `newcomer` is the job's class on this type; null = type not
// allowed.
[[nodiscard]] Reason FitTenant(const TenantClass* newcomer, const DeviceRow& device, const FitLimits& limits,
                               Shortfall* shortfall = nullptr);

// Whether any job whatever could be put on the device: what is full, held or not up need not be asked per job.
[[nodiscard]] bool MayTakeMore(const DeviceRow& device, const FitLimits& limits);

// FitDeviceState, then FitTenant; then refuses jobs that miss their latency even alone, with amounts in kLateUnit.
inline constexpr std::string_view kLateUnit = "us p99 even alone";
// Whether an amount stands for a wait without end: more requests come than a job can serve.
[[nodiscard]] bool IsUnbounded(double amount, std::string_view unit);
[[nodiscard]] Reason FitDevice(const TenantClass* newcomer, const DeviceRow& device, const FitLimits& limits,
                               Shortfall* shortfall = nullptr);

// The slowdown that is held against the promise: the one not exceeded with its confidence.
[[nodiscard]] double SlowdownFor(const Promise& promise, const Slowdown& answer, const FitLimits& limits);
// What that one may be at most; infinity = anything.
[[nodiscard]] inline double BoundOf(const Promise& promise, const FitLimits& limits) {
  return promise.bound > 0 ? static_cast<double>(promise.bound) : limits.slowdown_bound;
}

// Slowdown bounds. Columns as in DeviceCandidate; `promises` are the tenants' own, newcomer last.
// A resident that is beyond its bound already refuses only what makes it worse.
[[nodiscard]] Reason FitSlowdowns(std::span<const Promise> promises, std::span<const Slowdown> before,
                                  std::span<const Slowdown> after, const FitLimits& limits,
                                  Shortfall* shortfall = nullptr);

}  // namespace horus
