// SPDX-License-Identifier: Apache-2.0
// What is known of jobs on a device before anything is learned: their points, the scale of slowdowns, slices, MPS,
// caps, time slicing, sums and quantiles.
#pragma once

#include <cmath>

#include "absl/status/statusor.h"
#include "interference/model.h"

namespace horus {

// ---- What every model refuses.

[[nodiscard]] inline bool IsModelled(SharingMode mode) {
  return std::ranges::find(kSharingModes, mode) != kSharingModes.end();
}
// An unknown mode, or a share outside (0, 1]; `who` asks, in messages.
[[nodiscard]] absl::Status CheckDevice(const char* who, const DeviceContext& device);
// The same, `room` for another number of answers than one a tenant, and a null tenant.
[[nodiscard]] absl::Status CheckQuestion(const char* who, const DeviceContext& device,
                                         std::span<const Demand* const> tenants, size_t room);

// ---- Tenant and JobPoint: what the learned models read of a job on a device.
// Cost: two logarithms; on a slice, and where utilisation was stated, three and a power.

// Part of the schema of interference bundles: a change of order or meaning needs another PointSchemaHash().
enum class PointColumn : uint8_t {
  kLogStepUs,      // one step alone
  kLogKernelUs,    // time that the device is busy for one kernel, on average
  kLogOperatorUs,  // an operator, weighted by its time
  kLogUtil,        // share of the step in which the device is busy, at least kLeastUtil
};
inline constexpr size_t kPointColumns = 4;
inline constexpr double kLeastUtil = 0.01;                   // keeps the logarithm finite; NVML reports whole per cents
inline constexpr double kLogLeastUtil = -4.605170185988091;  // ln kLeastUtil

using JobPoint = std::array<float, kPointColumns>;

struct Tenant {
  uint64_t profile_id = 0;  // 0 = none
  JobPoint point = {};
};

// On a MIG instance the job is busier and its step longer, as below.
[[nodiscard]] Tenant TenantOf(const Demand& demand, const DeviceContext& device);

// A demand on a whole GPU of which TenantOf makes this point again, but for rounding; unknown columns stay unknown.
[[nodiscard]] Demand DemandOf(uint64_t profile_id, const JobPoint& point);

// What makes jobs different: times five times as long, or half as busy again. Not taken from data, so that a job unlike
// all that were measured is as far away as it is.
inline constexpr double kTimeScale = 1.6;  // ln 5
inline constexpr double kUtilScale = 0.4;  // ln 1.5
[[nodiscard]] constexpr double ScaleOf(size_t column) {
  return column == static_cast<size_t>(PointColumn::kLogUtil) ? kUtilScale : kTimeScale;
}

// In those units; what is unknown of either is no difference.
[[nodiscard]] double SquaredDistance(const JobPoint& a, const JobPoint& b);

[[nodiscard]] std::string_view NameOf(PointColumn column);
[[nodiscard]] uint64_t PointSchemaHash();

// ---- z: the scale on which slowdowns are learned.
// Cost: a logarithm.

// The excess above 1 is nearly a product of what the victim suffers and what the other inflicts, hence the logarithm.
// It is counted from a little below 1: measured slowdowns just below 1 are noise, and must not count as infinitely
// good.
inline constexpr double kSlowdownShift = 0.9;
inline constexpr double kLeastExcess = 0.02;  // slowdown - shift counts as at least so much

[[nodiscard]] inline double ExcessOf(double slowdown) {
  return std::log(std::max(slowdown - kSlowdownShift, kLeastExcess));
}

// At least 1, at most kMaxSlowdown, which is also the answer for no number.
[[nodiscard]] inline double SlowdownOf(double z) {
  if (std::isnan(z)) return static_cast<double>(kMaxSlowdown);
  return std::clamp(kSlowdownShift + std::exp(z), 1.0, static_cast<double>(kMaxSlowdown));
}

// ---- One law for slices, MPS and caps: how much longer a step takes whose device works slower.
// Cost: a few powers.

// A job that keeps a whole GPU busy u % of the time asks for u/100 of it; a slice with the share s of its compute gives
// at most s. Cautious: a kernel that fills only part of the GPU keeps a slice busy for less.
[[nodiscard]] inline double SliceUtilPct(double util_pct, double share) { return std::min(100.0, util_pct / share); }

// Host and device overlap, and the slower decides: a smooth maximum of both, of exponent 3. `work`, 0-1, is the share
// of a step that the device needs for it with all SMs. With the device `growth` times as slow for it, the step takes so
// many times as long; a job that fills its device, `growth` times.
[[nodiscard]] inline double Stretched(double work, double growth) {
  return std::cbrt(1 + work * work * work * (growth * growth * growth - 1));
}

// The share of a step that the device needs, 0-1. Of inference from a graph: the device time by specifications, as if
// kernels filled all SMs, over the step; a step that was measured tells what a graph cannot, how slow the host is.
// Fitted to eager inference on an A100 (ParvaGPU, SC 2024), seven nets, by `scripts/bench mps`.
inline constexpr double kDeviceTime = 1.5;  // of what specifications say
inline constexpr double kMostWork = 0.85;   // starts and ends of kernels leave SMs idle
// Of everything else: the busy share and the share of the memory bandwidth, by what slices of an A100 cost training
// (MISO, SoCC 2022), eight nets: `scripts/bench mig`. Less than NVML's busy share: kernels that leave SMs idle count
// there in full. Where the bandwidth is unknown, the busy share. Of training from a graph, which has gradients, the
// mean of both: of nets that no bundle has seen, better than either.
inline constexpr double kBusyScaling = 0.4;
inline constexpr double kBandwidthScaling = 1.45;
[[nodiscard]] double WorkShare(const Demand& demand);

// What a MIG instance with that share of the compute gives: of its compute and its memory, the geometric mean. Memory
// goes by powers of two: 3 and 4 of 7 slices both have half of it.
[[nodiscard]] double SliceShare(double compute_share);

// Of its speed on the whole GPU. To a job of which a busy share alone is known the slice is a capacity.
[[nodiscard]] double SliceSpeed(const Demand& demand, double compute_share);

// How many times as long its step takes alone under its own cap (Demand::sm_cap); 1 without one.
[[nodiscard]] double CapStretch(const Demand& demand);

// What tenants of a device cost each other under MPS, where kernels run side by side as long as SMs are free: each
// one's device time grows by what the others do meanwhile. caps[i], above 0 and at most 1, is the share of the SMs that
// tenant i may use; none = no caps. A cap makes its own device time longer, as a slice would, and is the most that it
// takes from others. No order of the tenants shows, and one tenant more never lowers anybody's slowdown.
inline constexpr double kMpsLaunch = 0.15;  // beside that, of what others take: their launches delay a host; as above
void MpsSlowdowns(std::span<const double> works, std::span<const double> caps, std::span<double> out);

// Nobody has published different jobs under MPS, or caps. Of twelve pairs of services and trainers a law that is alike
// for both errs by 36 to 47 %: services took 1.3 to 4.1 times as long, where it says about 1.6. So bounds are as wide
// as that, in z, and promise nothing.
inline constexpr double kMpsUnmeasuredMargin = 1.5;

// ---- What theory says of time slicing: the law that all learned models refine.
// Cost: a few additions.

// Of its waiting that a victim's host does not hide: half-way between none and all.
inline constexpr double kVictimShare = 0.5;

// z of a slowdown of 2: what two jobs that are busy all the time cost each other where the device conserves work.
inline constexpr double kConservingLevel = 0.09531017980432486;  // ln 1.1

// Whether more is known of a job than its step time and how busy it is.
[[nodiscard]] inline bool DescribesKernels(const JobPoint& point) {
  return !std::isnan(point[static_cast<size_t>(PointColumn::kLogKernelUs)]) ||
         !std::isnan(point[static_cast<size_t>(PointColumn::kLogOperatorUs)]);
}

inline constexpr JobPoint kBusy = {};  // all the time: adds nothing as victim or other

// How long a victim waits grows with the share of the time in which the other is busy, and with half the logarithm of
// its own, because waiting partly hides behind the host's work. `unknown` stands for an unknown logarithm of a busy
// share: 0 is busy all the time.
[[nodiscard]] inline double TheoryOf(const JobPoint& victim, const JobPoint& other, double unknown = 0) {
  const auto log_util = [unknown](const JobPoint& point) {
    const auto value = static_cast<double>(point[static_cast<size_t>(PointColumn::kLogUtil)]);
    return std::clamp(std::isnan(value) ? unknown : value, kLogLeastUtil, 0.0);
  };
  return kVictimShare * log_util(victim) + log_util(other);
}

// ---- The additive rule: what several others cost a tenant, from what each of them costs it alone.
// Cost: about 2 ns a pair, no allocation.

// A slowdown below 1 counts as 1, a bound below its slowdown as that slowdown, a NaN as kMaxSlowdown.
[[nodiscard]] PairExcess CountExcess(float slowdown, float upper);

// Adds one more tenant's part; the sum stays below what kMaxSlowdown says.
void AddExcess(PairExcess& sum, const PairExcess& part);

// 1 + the sum.
[[nodiscard]] Slowdown SlowdownOf(const PairExcess& sum);

// pairs[i * n + j] is what tenant j costs tenant i, for n = out.size(); the diagonal is not read. Sums are of whole
// millionths, so no order of the tenants can show; and as nothing negative is added, one tenant more never lowers
// anybody's slowdown or bound.
void SumPairs(std::span<const PairExcess> pairs, std::span<Slowdown> out);

// ---- Quantiles: the slowdown that is not exceeded with a given probability.
// Cost: a logarithm and an exponential.

// Probabilities that may be asked for; the bounds of a model lie above the first.
inline constexpr double kLeastProbability = 0.5, kMostProbability = 0.999;

// DeviationsAt(kUpperProbability): from an estimate to its upper bound.
inline constexpr double kDeviationsToUpper = 1.2815515655446004;

// z is taken for normal: its median is the estimate's, its spread follows from `upper`. So margins in z are
// to each other as DeviationsAt. At upper_probability it is `upper` itself, at 0.5 the estimate.
[[nodiscard]] double SlowdownAt(const Slowdown& answer, double upper_probability, double probability);

// ---- Latency: how long requests to an inference job take where it runs slowed down, and the slowdown that it can
// bear.
// Cost: about 1 us; the inverse 60 times that.

struct RequestLoad {
  double requests_per_s = 0;  // independent users: arrivals are Poisson
  double service_us = 0;      // of one request, alone on the device
  double slowdown = 1;        // up to kMaxSlowdown
  double service_cv = 0;      // standard deviation / mean of the service time; 0 = always the same
};
inline constexpr double kMostServiceUs = 1e15;  // thirty years: beyond it nobody waits
inline constexpr double kMostServiceCv = 1;     // beyond it the formula was not compared with simulation

struct Latency {
  double utilisation = 0;  // of the server: 1 and above = the queue grows without end
  double mean_us = 0;      // infinite then
  double p99_us = 0;       // infinite then
  friend bool operator==(const Latency&, const Latency&) = default;
};

// One request at a time, first come first served: M/D/1 for service_cv 0, M/M/1 for 1, between them gamma service
// times. The mean is exact (Pollaczek and Khinchine), p99 asymptotic: formula in README.md.
// INVALID_ARGUMENT names field, expected and found.
[[nodiscard]] absl::StatusOr<Latency> PredictLatency(const RequestLoad& load);

// The largest slowdown up to kMaxSlowdown at which p99 is at most `p99_bound_us`; `load.slowdown` is not read. 0 = not
// even alone. INVALID_ARGUMENT as above, and for a bound that is not positive and finite.
[[nodiscard]] absl::StatusOr<double> LargestSlowdown(const RequestLoad& load, double p99_bound_us);

}  // namespace horus
