// SPDX-License-Identifier: Apache-2.0
// Demand: all that the rooms below know of a job on one GPU type.
//
// Enters:  nothing; made by the predictor, measured elsewhere, or stated by the caller.
// Leaves:  a plain value. Estimates serve objectives, upper bounds serve fit and limits.
// Units:   per cent 0-100, MiB, microseconds; per GPU of the job.
// Cost:    136 bytes, trivially copyable.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "base/hash.h"

namespace horus {

// A prediction and its upper bound at the coverage its maker states; upper >= estimate.
struct Bounded {
  float estimate = 0;
  float upper = 0;
  friend bool operator==(const Bounded&, const Bounded&) = default;
};
struct BoundedInt {
  int64_t estimate = 0;
  int64_t upper = 0;
  friend bool operator==(const BoundedInt&, const BoundedInt&) = default;
};

// Larger than any device or step; keeps sums over thousands of tenants far from 64-bit overflow. No board takes 100 kW.
inline constexpr double kMostMemMib = 4294967296.0;      // 2^32, 4 PiB
inline constexpr double kMostStepUs = 35184372088832.0;  // 2^45, about a year
inline constexpr double kMostPowerW = 100'000.0;

// 0 to `most`, integers rounded up; a bound that is NaN is `most`.
[[nodiscard]] Bounded BoundedOf(double estimate, double upper, double most);
[[nodiscard]] BoundedInt BoundedIntOf(double estimate, double upper, double most);

// Columns that learned interference models read; all float32, order and meaning fixed, append only.
enum class Trait : uint8_t {
  kLogStepFlops,         // log10 of the FLOPs of one step
  kLogStepBytes,         // log10 of the bytes that one step reads and writes
  kLogKernels,           // log10 of the kernels that one step launches
  kComputeBoundShare,    // share of the roofline time in compute-bound operators, 0-1
  kBandwidthBoundShare,  // share of the roofline time in bandwidth-bound operators, 0-1
  kLogDeviceUs,  // log10 of the microseconds that the device needs for a step by specifications; 1 and below: unknown
  kLogDeviceShare,   // log10 of the share of a step in which the device works, below 0; else unknown
  kMeanParallelism,  // mean over kernels of min(1, thread blocks / SMs), weighted by time, 0-1
};
inline constexpr size_t kTraitCount = 8;

enum DemandFlag : uint32_t {
  kDemandGiven = 1u << 0,         // stated by the caller, not predicted here
  kDemandMeasured = 1u << 1,      // rests on observations of this very profile
  kDemandOutside = 1u << 2,       // the job lies outside what the predictor was trained on
  kDemandUncalibrated = 1u << 3,  // the bounds are default factors of the prior, at no stated coverage
  kDemandPredicted = 1u << 4,     // memory or step time come from a predictor: nobody stated or measured them
  kDemandTooLarge = 1u << 5,      // beyond doubt: tensors that any framework keeps at once exceed the GPU type's memory
};

// An upper bound of memory that is none: the graph is understood too little for one. No device is that large.
inline constexpr int64_t kUnboundedMemMib = int64_t{1} << 32;

inline constexpr float kMaxDemandSlowdown = 100;  // of Demand::slowdown_bound

struct Demand {
  uint64_t profile_id = 0;   // fingerprint of graph and run specification; 0 = none (never shared in caches)
  Bounded gpu_util_pct;      // NVML GPU-busy percentage, mean over the steps alone on the GPU
  Bounded mem_bw_util_pct;   // share of the device's memory bandwidth, mean over the steps
  BoundedInt mem_mib;        // peak device memory, context included
  BoundedInt step_time_us;   // one step alone on the GPU; 0 = unknown
  Bounded power_w;           // board power, mean over the steps; 0 = unknown
  int64_t gradient_mib = 0;  // all-reduced per step by a data-parallel gang
  double host_us = 0;  // time in which the host makes a step's input, with the cores and memory that the job holds: a
                       // step is the slower of this and the GPU's; 0 = never the slower
  uint32_t flags = 0;  // DemandFlag bits
  float distance = 0;  // from what the predictor was trained on: ln of "times beyond the trained range"; 0 = inside
  float operator_us =
      0;  // mean time of an operator, weighted by that time: how long others may have to wait; 0 = unknown
  std::array<float, kTraitCount> traits = {};  // indexed by Trait; all zero = unknown
  float duty = 1;  // share of the time in which the job has steps to do: below 1 for a service that waits for requests
                   // (WithDuty in place/job/job.h); 0-1
  float slowdown_bound = 0;  // what the promises of a service (service.h) leave on this GPU type: 0 = nothing is
                             // promised; below 1 = they are not kept even alone, by that factor
  float sm_cap = 1;  // share of the SMs that the job may use under MPS (AsRun in place/job/job.h); above 0, 1 = all
  friend bool operator==(const Demand&, const Demand&) = default;
};

// Slowdown bound of a service whose engine does not run on the GPU type, whatever the load:
// below any that a prediction gives.
inline constexpr float kNeverServed = 0.001F;
// Whether memory and step time are no more than predicted: no ground to turn a job away for good.
[[nodiscard]] inline bool IsOnlyPredicted(const Demand& demand) { return (demand.flags & kDemandPredicted) != 0; }

// Which job it is to whoever learns from what runs: under a cap it is another. 0 = none.
[[nodiscard]] inline uint64_t ProfileAsRun(const Demand& demand) {
  if (demand.sm_cap >= 1 || demand.profile_id == 0) return demand.profile_id;
  return CombineHash(demand.profile_id, std::bit_cast<uint32_t>(demand.sm_cap));
}

// One step alone, of the GPU and of the host that feeds it; 0 = unknown.
[[nodiscard]] inline double StepUs(const Demand& demand) {
  const auto gpu_us = static_cast<double>(demand.step_time_us.estimate);
  return gpu_us > 0 && demand.host_us > gpu_us ? demand.host_us : gpu_us;
}

// Share of a step in which the device works, 0-1: what time slicing divides. NVML's figure beside it is a mean that the
// host and the loader of a site even out. Where utilisation was stated or measured, that.
[[nodiscard]] inline double DeviceShare(const Demand& demand) {
  const double log_share = demand.traits[static_cast<size_t>(Trait::kLogDeviceShare)];
  return log_share < 0 ? std::pow(10.0, log_share) : static_cast<double>(demand.gpu_util_pct.estimate) / 100;
}
// Beside a utilisation that was stated or measured.
inline void ForgetDeviceShare(Demand& demand) { demand.traits[static_cast<size_t>(Trait::kLogDeviceShare)] = 0; }

// Share of all time in which it keeps the GPU busy, 0-100 %.
[[nodiscard]] inline Bounded BusyPct(const Demand& demand) {
  return {demand.gpu_util_pct.estimate * demand.duty, demand.gpu_util_pct.upper * demand.duty};
}

// A service of independent users, within its promises: who is slowed serves as many at a time as come, and all its work
// is done.
[[nodiscard]] inline bool KeepsWork(const Demand& demand) { return demand.slowdown_bound >= 1 && demand.duty < 1; }
// What its work alone is divided by, at a slowdown.
[[nodiscard]] inline double WorkSlowdown(const Demand& demand, float slowdown) {
  return KeepsWork(demand) ? 1 : static_cast<double>(slowdown);
}

[[nodiscard]] inline bool HasMemoryBound(const Demand& demand) { return demand.mem_mib.upper < kUnboundedMemMib; }

// Refuses NaN, negative or out-of-range quantities and upper < estimate, naming field, expected and found.
[[nodiscard]] absl::Status ValidateDemand(const Demand& demand);

}  // namespace horus
