// SPDX-License-Identifier: Apache-2.0
// A model with a law that tests can state, and jobs and observations for it.
#ifndef HORUS_TESTS_UNIT_INTERFERENCE_FAKE_MODEL_H_
#define HORUS_TESTS_UNIT_INTERFERENCE_FAKE_MODEL_H_

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "device/catalogue.h"
#include "draw.h"
#include "interference/laws.h"
#include "interference/model.h"
#include "interference/observed_slowdowns.h"
#include "interference/pair_bounds.h"

namespace horus {

// A job that is a function of its number, from 1.
inline Demand JobOf(uint64_t number) {
  const auto in = [number](uint64_t column, double low, double high) {
    return static_cast<float>(low + (high - low) * Draw(16 * number + column));
  };
  const float util = in(0, 30, 100);
  const auto step_us = static_cast<int64_t>(std::exp(in(1, 9, 13)));
  Demand demand{.profile_id = number,
                .gpu_util_pct = {util, util},
                .mem_mib = {1000, 2000},
                .step_time_us = {step_us, 2 * step_us},
                .operator_us = in(2, 20, 2000)};
  demand.traits[static_cast<size_t>(Trait::kLogKernels)] = in(3, 2, 4);
  return demand;
}

// What a victim loses beside one other grows with how busy both are. Bounds lie `margin` of z above, further where one
// of two has a larger margin of its own.
class FakeModel final : public InterferenceModel {
 public:
  explicit FakeModel(double margin, uint64_t epoch = 1, std::map<uint64_t, double> margins = {}, double level = 0)
      : margin_(margin), epoch_(epoch), margins_(std::move(margins)), level_(level) {}

  [[nodiscard]] static double PairOf(const Demand& victim, const Demand& other) {
    return 1 + static_cast<double>(victim.gpu_util_pct.estimate) / 200 +
           static_cast<double>(other.gpu_util_pct.estimate) / 100;
  }
  [[nodiscard]] std::string_view name() const override { return "fake"; }
  [[nodiscard]] double LevelError(const DeviceContext& /*device*/) const override { return level_; }
  void CalibratedUpTo(const DeviceContext& /*device*/, std::span<const Demand* const> /*tenants*/,
                      std::span<float> up_to) const override {
    std::fill(up_to.begin(), up_to.end(), 0.75f);
  }
  [[nodiscard]] uint64_t epoch() const override { return epoch_; }
  [[nodiscard]] absl::Status Predict(const DeviceContext& /*device*/, std::span<const Demand* const> tenants,
                                     std::span<Slowdown> out) const override {
    const size_t n = tenants.size();
    if (out.size() != n) return InvalidArgument("fake: sizes differ");
    std::vector<PairExcess> pairs(n * n);
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) {
        if (i == j) continue;
        const double found = PairOf(*tenants[i], *tenants[j]);
        const double upper = UpperOf(found, std::max(MarginOf(*tenants[i]), MarginOf(*tenants[j])));
        pairs[i * n + j] = CountExcess(static_cast<float>(found), static_cast<float>(upper));
      }
    }
    SumPairs(pairs, out);
    return absl::OkStatus();
  }

 private:
  [[nodiscard]] double MarginOf(const Demand& job) const {
    const auto at = margins_.find(job.profile_id);
    return at == margins_.end() ? margin_ : at->second;
  }
  double margin_;
  uint64_t epoch_;
  std::map<uint64_t, double> margins_;  // by profile
  double level_;
};

inline const std::string& GpuName(size_t type = 0) { return Catalogue::Default()->types()[type].name; }

// The first job lost so much beside the others.
inline absl::Status Observe(ObservedSlowdowns& observed, const std::vector<Demand>& jobs, double slowdown,
                            std::string_view gpu = GpuName(), SharingMode mode = SharingMode::kTimeSlice) {
  std::vector<const Demand*> others;
  for (size_t i = 1; i < jobs.size(); ++i) others.push_back(&jobs[i]);
  return observed.Add({.gpu = gpu, .mode = mode, .victim = jobs.data(), .others = others, .slowdown = slowdown});
}

inline std::vector<Slowdown> Ask(const InterferenceModel& model, const std::vector<Demand>& jobs,
                                 const DeviceContext& device = {.type = GpuTypeId(0)}) {
  std::vector<const Demand*> tenants;
  for (const Demand& job : jobs) tenants.push_back(&job);
  std::vector<Slowdown> out(jobs.size(), Slowdown{-1, -1});
  const absl::Status status = model.Predict(device, tenants, out);
  return status.ok() ? out : std::vector<Slowdown>();
}

inline std::span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace horus

#endif  // HORUS_TESTS_UNIT_INTERFERENCE_FAKE_MODEL_H_
