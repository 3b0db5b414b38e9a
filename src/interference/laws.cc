// SPDX-License-Identifier: Apache-2.0
// What is known of jobs on a device before anything is learned: their points, the scale of slowdowns, slices, MPS,
// caps, time slicing, sums and quantiles.
#include "interference/laws.h"

#include <bit>
#include <cassert>
#include <limits>
#include <numbers>
#include <string>

#include "base/hash.h"
#include "base/statistics.h"
#include "base/status.h"
#include "base/units.h"

namespace horus {

absl::Status CheckDevice(const char* who, const DeviceContext& device) {
  if (!IsModelled(device.mode))
    return InvalidArgument("%s: unknown sharing mode %d", who, static_cast<int>(device.mode));
  if (device.compute_share > 0 && device.compute_share <= 1) return absl::OkStatus();
  return InvalidArgument("%s: expected a compute share in (0, 1], found %g", who, device.compute_share);
}

absl::Status CheckQuestion(const char* who, const DeviceContext& device, std::span<const Demand* const> tenants,
                           size_t room) {
  if (room != tenants.size())
    return InvalidArgument("%s: expected room for %d slowdowns, found %d", who, tenants.size(), room);
  HORUS_RETURN_IF_ERROR(CheckDevice(who, device));
  if (std::ranges::find(tenants, nullptr) == tenants.end()) return absl::OkStatus();
  return InvalidArgument("%s: a tenant is null", who);
}

// ---- The four columns of a JobPoint.

constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();

std::string_view NameOf(PointColumn column) {
  constexpr std::array<std::string_view, kPointColumns> kNames = {"log_step_us", "log_kernel_us", "log_operator_us",
                                                                  "log_util"};
  return kNames[static_cast<size_t>(column)];
}

uint64_t PointSchemaHash() {
  std::string text = "interference columns, version 1";
  for (size_t i = 0; i < kPointColumns; ++i) {
    text += '\n';
    text += NameOf(static_cast<PointColumn>(i));
  }
  return Hash64(text);
}

double SquaredDistance(const JobPoint& a, const JobPoint& b) {
  double sum = 0;
  for (size_t c = 0; c < kPointColumns; ++c) {
    const double difference = static_cast<double>(a[c] - b[c]) / ScaleOf(c);
    if (!std::isnan(difference)) sum += difference * difference;
  }
  return sum;
}

Tenant TenantOf(const Demand& demand, const DeviceContext& device) {
  const auto trait = [&](Trait one) { return static_cast<double>(demand.traits[static_cast<size_t>(one)]); };
  const auto share = static_cast<double>(device.compute_share);
  double log_util = trait(Trait::kLogDeviceShare) * std::numbers::ln10;
  auto step_us = static_cast<double>(demand.step_time_us.estimate);
  if (share < 1 || !(log_util < 0)) {
    log_util = std::log(SliceUtilPct(100 * DeviceShare(demand), share) / 100);
    if (share < 1) step_us /= SliceSpeed(demand, share);
  }
  log_util = std::max(log_util, kLogLeastUtil);
  const double log_step = std::log(step_us), log_kernels = trait(Trait::kLogKernels);

  Tenant tenant{.profile_id = ProfileAsRun(demand)};
  const auto set = [&tenant](PointColumn column, bool known, double value) {
    tenant.point[static_cast<size_t>(column)] = known ? static_cast<float>(value) : kUnknown;
  };
  set(PointColumn::kLogStepUs, step_us > 0, log_step);
  set(PointColumn::kLogKernelUs, step_us > 0 && log_kernels > 0,
      log_util + log_step - log_kernels * std::numbers::ln10);
  set(PointColumn::kLogOperatorUs, demand.operator_us > 0, std::log(static_cast<double>(demand.operator_us) / share));
  set(PointColumn::kLogUtil, true, log_util);
  return tenant;
}

Demand DemandOf(uint64_t profile_id, const JobPoint& point) {
  const auto value = [&point](PointColumn column) {
    const float log = point[static_cast<size_t>(column)];
    return std::isnan(log) ? 0 : std::exp(static_cast<double>(log));
  };
  const double step_us = value(PointColumn::kLogStepUs), util = value(PointColumn::kLogUtil);
  const double kernel_us = value(PointColumn::kLogKernelUs);
  Demand demand{.profile_id = profile_id};
  const auto util_pct = static_cast<float>(std::min(100 * util, 100.0));
  const auto rounded_us = static_cast<int64_t>(std::llround(step_us));
  demand.gpu_util_pct = {util_pct, util_pct};
  demand.step_time_us = {rounded_us, rounded_us};
  demand.operator_us = static_cast<float>(value(PointColumn::kLogOperatorUs));
  if (kernel_us > 0)
    demand.traits[static_cast<size_t>(Trait::kLogKernels)] = static_cast<float>(std::log10(util * step_us / kernel_us));
  return demand;
}

// ---- Slices, MPS and caps.

double SliceSpeed(const Demand& demand, double compute_share) {
  const auto util_pct = static_cast<double>(demand.gpu_util_pct.estimate);
  const bool predicted = demand.traits[static_cast<size_t>(Trait::kLogDeviceUs)] > 1;
  if (!predicted && !(demand.mem_bw_util_pct.estimate > 0))
    return util_pct > 100 * compute_share ? 100 * compute_share / util_pct : 1;
  return 1 / Stretched(WorkShare(demand), 1 / SliceShare(compute_share));
}

double WorkShare(const Demand& demand) {
  const auto trait = [&](Trait one) { return static_cast<double>(demand.traits[static_cast<size_t>(one)]); };
  const double busy = static_cast<double>(demand.gpu_util_pct.estimate) / 100;
  const double bandwidth = static_cast<double>(demand.mem_bw_util_pct.estimate) / 100;
  const double by_traffic = std::min(1.0, bandwidth > 0 ? kBusyScaling * busy + kBandwidthScaling * bandwidth : busy);
  const double log_device_us = trait(Trait::kLogDeviceUs);
  const auto step_us = static_cast<double>(demand.step_time_us.estimate);
  // A measured utilisation is the better witness.
  if (!(log_device_us > 1 && step_us > 0 && trait(Trait::kLogDeviceShare) < 0)) return by_traffic;
  const double device_us = std::max(0.0, std::pow(10.0, log_device_us) * trait(Trait::kMeanParallelism));
  const double by_time = std::min(kMostWork, kDeviceTime * device_us / step_us);
  return demand.gradient_mib == 0 ? by_time : (by_time + by_traffic) / 2;
}

double CapStretch(const Demand& demand) {
  if (demand.sm_cap >= 1) return 1;
  const double stretch = Stretched(WorkShare(demand), 1 / static_cast<double>(demand.sm_cap));
  const double step_us = StepUs(demand), gpu_us = static_cast<double>(demand.step_time_us.estimate);
  return step_us > gpu_us ? std::max(gpu_us * stretch, step_us) / step_us : stretch;  // a slow host hides it
}

double SliceShare(double compute_share) {
  constexpr double kComputeSlices = 7, kMemorySlices = 8;
  const auto slices = static_cast<unsigned>(std::max(1L, std::lround(kComputeSlices * compute_share)));
  return std::sqrt(compute_share * std::min(1.0, std::bit_ceil(slices) / kMemorySlices));
}

void MpsSlowdowns(std::span<const double> works, std::span<const double> caps, std::span<double> out) {
  assert(out.size() == works.size() && (caps.empty() || caps.size() == works.size()));
  constexpr double kUnits = 1LL << 40;  // whole numbers, so that no order of the tenants shows
  const auto cap = [&caps](size_t i) { return caps.empty() ? 1.0 : caps[i]; };
  const auto taken = [&](size_t i) { return std::llround(kUnits * works[i] / Stretched(works[i], 1 / cap(i))); };
  int64_t sum = 0;
  for (size_t i = 0; i < works.size(); ++i) sum += taken(i);
  for (size_t i = 0; i < works.size(); ++i) {
    const double work = works[i];
    const double others = static_cast<double>(sum - taken(i)) / kUnits;
    const double device = std::max(work / cap(i), work + others);
    out[i] = std::cbrt(1 + device * device * device - work * work * work) + kMpsLaunch * (1 - work) * others;
  }
}

namespace {

// ---- Adds excesses as whole numbers.

constexpr double kUnitsPerSlowdown = 1e6;  // far finer than any measurement, and exact in sums
constexpr auto kMostUnits = static_cast<int64_t>((static_cast<double>(kMaxSlowdown) - 1) * kUnitsPerSlowdown);

int64_t Millionths(float slowdown) {
  if (slowdown <= 1) return 0;
  if (!(slowdown < kMaxSlowdown)) return kMostUnits;  // NaN too
  return std::llround((static_cast<double>(slowdown) - 1) * kUnitsPerSlowdown);
}

float Counted(int64_t excess) { return static_cast<float>(1 + static_cast<double>(excess) / kUnitsPerSlowdown); }

}  // namespace

PairExcess CountExcess(float slowdown, float upper) {
  const int64_t estimate = Millionths(slowdown);
  return {estimate, std::max(estimate, Millionths(upper))};
}

void AddExcess(PairExcess& sum, const PairExcess& part) {
  sum.estimate = std::min(sum.estimate + part.estimate, kMostUnits);
  sum.upper = std::min(sum.upper + part.upper, kMostUnits);
}

Slowdown SlowdownOf(const PairExcess& sum) { return {Counted(sum.estimate), Counted(sum.upper)}; }

void SumPairs(std::span<const PairExcess> pairs, std::span<Slowdown> out) {
  const size_t count = out.size();
  assert(pairs.size() == count * count);
  for (size_t i = 0; i < count; ++i) {
    PairExcess sum;
    for (size_t j = 0; j < count; ++j) {
      if (i != j) AddExcess(sum, pairs[i * count + j]);
    }
    out[i] = SlowdownOf(sum);
  }
}

absl::Status InterferenceModel::PredictPairs(const DeviceContext& /*device*/,
                                             std::span<const Demand* const> /*tenants*/,
                                             std::span<PairExcess> /*out*/) const {
  return MakeError(absl::StatusCode::kUnimplemented, "interference model %s: does not add pairs", std::string(name()));
}

absl::Status InterferenceModel::PredictBeside(const DeviceContext& device, const Demand& newcomer,
                                              std::span<const Demand* const> others, std::span<PairExcess> mine,
                                              std::span<PairExcess> theirs) const {
  for (size_t i = 0; i < others.size(); ++i) {
    const std::array<const Demand*, 2> tenants = {&newcomer, others[i]};
    std::array<PairExcess, 4> out;
    HORUS_RETURN_IF_ERROR(PredictPairs(device, tenants, out));
    mine[i] = out[1];
    theirs[i] = out[2];
  }
  return absl::OkStatus();
}

absl::Status InterferenceModel::PredictLoad(const DeviceContext& /*device*/, const Demand& /*tenant*/,
                                            Load& /*load*/) const {
  return MakeError(absl::StatusCode::kUnimplemented, "interference model %s: does not add loads", std::string(name()));
}

// ---- The shifted lognormal family.

double SlowdownAt(const Slowdown& answer, double upper_probability, double probability) {
  const auto estimate = static_cast<double>(answer.estimate), upper = static_cast<double>(answer.upper);
  if (probability == upper_probability || upper <= estimate) return upper;
  const double least = estimate - kSlowdownShift;
  const double ratio = DeviationsAt(probability) / DeviationsAt(upper_probability);
  return std::min(kSlowdownShift + least * std::pow((upper - kSlowdownShift) / least, ratio),
                  static_cast<double>(kMaxSlowdown));
}

namespace {

// ---- One server, Poisson arrivals: the mean by Pollaczek and Khinchine, the tail by Cramer and Lundberg.

constexpr double kTail = 0.01;               // of the requests take longer than p99
constexpr double kNormalP99 = 2.3263478740;  // 99th percentile of the standard normal
constexpr int kHalvings = 60;                // leave nothing of a double's 53 bits

absl::Status Check(const RequestLoad& load) {
  const auto finite = [](double value, double least) { return std::isfinite(value) && value >= least; };
  if (!finite(load.requests_per_s, 0))
    return InvalidArgument("latency: requests_per_s: expected 0 or more, found %g", load.requests_per_s);
  if (!(load.service_us > 0 && load.service_us <= kMostServiceUs)) {
    return InvalidArgument("latency: service_us: expected above 0 and at most %g us, found %g", kMostServiceUs,
                           load.service_us);
  }
  if (!(load.slowdown >= 1 && load.slowdown <= static_cast<double>(kMaxSlowdown)))
    return InvalidArgument("latency: slowdown: expected 1 to %g, found %g", kMaxSlowdown, load.slowdown);
  if (!(load.service_cv >= 0 && load.service_cv <= kMostServiceCv))
    return InvalidArgument("latency: service_cv: expected 0 to %g, found %g", kMostServiceCv, load.service_cv);
  return absl::OkStatus();
}

// E[exp(x S)] - 1 of a service time S with mean 1: constant, or gamma with that coefficient of variation squared.
double MomentLess1(double x, double cv2) {
  if (cv2 == 0) return std::expm1(x);
  const double rest = 1 - x * cv2;
  return rest > 0 ? std::expm1(-std::log1p(-x * cv2) / cv2) : std::numeric_limits<double>::infinity();
}

// The tail of the wait falls like exp(-x t): the positive root of rho (E[exp(x S)] - 1) = x. The first two moments
// alone put it below 2 (1 - rho) / (rho E[S^2]), the rate of heavy traffic.
double DecayRate(double rho, double cv2) {
  double low = 0, high = 2 * (1 - rho) / (rho * (1 + cv2));
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (rho * MomentLess1(middle, cv2) < middle ? low : high) = middle;
  }
  return low;
}

// 99th percentile of a gamma with mean 1 (Wilson and Hilferty 1931: its cube root is nearly normal).
double ServiceP99(double cv2) { return std::pow(1 - cv2 / 9 + kNormalP99 * std::sqrt(cv2) / 3, 3); }

// Below this load the tail says little of the 99th percentile: hardly any request waits. Chosen.
constexpr double kLeastLoad = 0.02;

// In service times.
double P99(double rho, double cv2) {
  const double alone = ServiceP99(cv2);
  if (cv2 == 0) {  // exact (Erlang 1909) while the wait is shorter than a service: P(wait <= t) = (1 - rho) exp(rho t)
    if (rho <= kTail) return 1;
    const double wait = std::log((1 - kTail) / (1 - rho)) / rho;
    if (wait < 1) return 1 + wait;
  }
  if (rho < kLeastLoad) return alone + (P99(kLeastLoad, cv2) - alone) * rho / kLeastLoad;
  const double rate = DecayRate(rho, cv2);
  const double moment = 1 + rate / rho;
  const double slope = moment / (1 - rate * cv2);
  const double factor = (1 - rho) / (rho * slope - 1) * moment;
  return std::max(alone, std::log(factor / kTail) / rate);
}

Latency Of(const RequestLoad& load, double slowdown) {
  const double service_us = load.service_us * slowdown;
  const double rho = load.requests_per_s * service_us / kUsPerS;
  if (!(rho < 1)) return {rho, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  const double cv2 = load.service_cv * load.service_cv;
  return {rho, service_us * (1 + rho * (1 + cv2) / (2 * (1 - rho))), service_us * P99(rho, cv2)};
}

}  // namespace

absl::StatusOr<Latency> PredictLatency(const RequestLoad& load) {
  HORUS_RETURN_IF_ERROR(Check(load));
  return Of(load, load.slowdown);
}

absl::StatusOr<double> LargestSlowdown(const RequestLoad& load, double p99_bound_us) {
  RequestLoad alone = load;
  alone.slowdown = 1;
  HORUS_RETURN_IF_ERROR(Check(alone));
  if (!(std::isfinite(p99_bound_us) && p99_bound_us > 0))
    return InvalidArgument("latency: p99_bound_us: expected above 0 us, found %g", p99_bound_us);
  const auto within = [&](double slowdown) { return Of(load, slowdown).p99_us <= p99_bound_us; };
  if (!within(1)) return 0.0;
  // A latency is at least its service time.
  double low = 1, high = std::min(static_cast<double>(kMaxSlowdown), p99_bound_us / load.service_us);
  if (within(high)) return high;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (within(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace horus
