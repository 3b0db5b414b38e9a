// SPDX-License-Identifier: Apache-2.0
// The first of the two seams: an interference model says how much each tenant of one device slows down.
//
// Enters:  GPU type, sharing mode and the demands of all tenants of one device (on that type).
// Leaves:  one slowdown per tenant, in the tenants' order.
// Units:   slowdown = step time shared / step time alone, both under the tenant's own cap (Demand::sm_cap); 1 =
//          undisturbed; kMaxSlowdown >= upper >= estimate >= 1.
//          `upper` is not exceeded with the model's upper_probability; laws.h has other probabilities.
// Cost:    at most 20 us a call without cache.   Thread class: immutable, share freely.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "device/gpu_type.h"
#include "device/sharing_mode.h"
#include "predict/demand.h"

namespace horus {

struct DeviceContext {
  GpuTypeId type;
  SharingMode mode = SharingMode::kTimeSlice;
  float compute_share = 1;  // of the GPU's compute: below 1 for a MIG instance
  friend bool operator==(const DeviceContext&, const DeviceContext&) = default;
};

// The most that a model may answer: beyond it, it is wrong, not slow. A chosen limit, far above any measurement.
inline constexpr float kMaxSlowdown = 1e9f;

// With which probability a slowdown is at most its upper bound, unless the model says otherwise.
inline constexpr double kUpperProbability = 0.9;

struct Slowdown {
  float estimate = 1;
  float upper = 1;
  friend bool operator==(const Slowdown&, const Slowdown&) = default;
};

// What one tenant costs another, counted in whole millionths of its slowdown above 1, so that sums are exact whatever
// their order. See laws.h.
struct PairExcess {
  int64_t estimate = 0;
  int64_t upper = 0;  // >= estimate
  friend bool operator==(const PairExcess&, const PairExcess&) = default;
};

// What one tenant adds to what slows all of a device alike, in hundred-millionths of a slowdown.
struct Load {
  int64_t estimate = 0;
  int64_t upper = 0;
  friend bool operator==(const Load&, const Load&) = default;
};
inline constexpr double kLoadUnitsPerSlowdown = 1e8;

class InterferenceModel {
 public:
  virtual ~InterferenceModel() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;

  // Changes whenever an answer may have changed; part of every cache key.
  [[nodiscard]] virtual uint64_t epoch() const = 0;

  [[nodiscard]] virtual size_t bytes_held() const { return sizeof(*this); }

  // Fills `out`, of the size of `tenants`. A pure function of its arguments; the answer for a tenant
  // does not depend on the order of the others. Non-OK (nothing written) for an unknown device.
  [[nodiscard]] virtual absl::Status Predict(const DeviceContext& device, std::span<const Demand* const> tenants,
                                             std::span<Slowdown> out) const = 0;

  // Whether Demand::sm_cap counts in its answers.
  [[nodiscard]] virtual bool knows_caps() const { return false; }

  // Of its upper bounds; above 0.5, below 1.
  [[nodiscard]] virtual double upper_probability() const { return kUpperProbability; }

  // Whether laws.h may answer for other probabilities.
  [[nodiscard]] virtual bool has_quantiles() const { return true; }

  // By tenant: up to which probability its slowdown beside the others was calibrated on jobs that were left out; what
  // is asked above it is extrapolated. 0 where nothing was. Fills `up_to`, of the size of `tenants`. Pure.
  virtual void CalibratedUpTo(const DeviceContext& /*device*/, std::span<const Demand* const> /*tenants*/,
                              std::span<float> up_to) const {
    std::fill(up_to.begin(), up_to.end(), 0.0f);
  }

  // Of all its answers on such a device in common: the standard deviation of z (laws.h) by which they may be wrong
  // together, because no device of that type and mode was measured. 0 where one was.
  [[nodiscard]] virtual double LevelError(const DeviceContext& /*device*/) const { return 0; }

  // Whether several tenants are answered by the additive rule (laws.h): every slowdown is 1 plus what each of the
  // others costs alone. Callers may then keep what PredictPairs says and add up themselves.
  [[nodiscard]] virtual bool adds_pairs() const { return false; }

  // Only where adds_pairs(): out[i * n + j] becomes what tenant j costs tenant i, for n = tenants.size() and i != j.
  // Pure; errors as Predict.
  [[nodiscard]] virtual absl::Status PredictPairs(const DeviceContext& device, std::span<const Demand* const> tenants,
                                                  std::span<PairExcess> out) const;

  // Only where adds_pairs(): mine[i] becomes what others[i] costs the newcomer, theirs[i] what the newcomer costs
  // others[i], each pair by itself. By default PredictPairs is asked pair by pair; a model may answer many faster, and
  // must answer the same. Pure; errors as Predict.
  [[nodiscard]] virtual absl::Status PredictBeside(const DeviceContext& device, const Demand& newcomer,
                                                   std::span<const Demand* const> others, std::span<PairExcess> mine,
                                                   std::span<PairExcess> theirs) const;

  // Lower bounds, for who looks for a cheap place among many: tenants have levels of what they inflict and suffer, and
  // whatever PredictBeside says of a newcomer and another is no less than what LeastBeside says of the other's levels.
  struct PairLevels {
    uint8_t inflicts = 0, suffers = 0;  // below kPairLevels; 0 = nothing is known
  };
  static constexpr size_t kPairLevels = 64;
  struct LeastPairs {
    std::array<int64_t, kPairLevels> mine = {}, theirs = {};  // estimates of PairExcess, by level
  };
  // Only where adds_pairs(). Pure.
  [[nodiscard]] virtual PairLevels LevelsOf(const DeviceContext& /*device*/, const Demand& /*tenant*/) const {
    return {};
  }
  [[nodiscard]] virtual LeastPairs LeastBeside(const DeviceContext& /*device*/, const Demand& /*newcomer*/) const {
    return {};
  }

  // Whether all tenants of a device are slowed alike, by their loads: the estimate is max(1, sum of the estimates), the
  // upper bound max(1, sum of the estimates, sum of the uppers).
  [[nodiscard]] virtual bool adds_loads() const { return false; }

  // Only where adds_loads(): the tenant's part. Pure; errors as Predict.
  [[nodiscard]] virtual absl::Status PredictLoad(const DeviceContext& device, const Demand& tenant, Load& load) const;

  // Position i * n + j: 1 where the slowdown of tenant i beside tenant j was measured, 0 where it is predicted; 1 on
  // the diagonal, for n = tenants.size(), none of them null.
  [[nodiscard]] virtual std::vector<uint8_t> Measured(const DeviceContext& /*device*/,
                                                      std::span<const Demand* const> tenants) const {
    std::vector<uint8_t> measured(tenants.size() * tenants.size());
    for (size_t i = 0; i < tenants.size(); ++i) measured[i * tenants.size() + i] = 1;
    return measured;
  }
};

}  // namespace horus
