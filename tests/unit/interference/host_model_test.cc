// SPDX-License-Identifier: Apache-2.0
// Rules of host time: a tenant that waits for its input leaves the GPU to others, and loses less to them.
#include "interference/host_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "fake_model.h"
#include "interference/registry.h"

namespace horus {
namespace {

// Adds pairs as FakeModel does.
class Adding final : public InterferenceModel {
 public:
  [[nodiscard]] std::string_view name() const override { return "adding"; }
  [[nodiscard]] uint64_t epoch() const override { return 7; }
  [[nodiscard]] bool adds_pairs() const override { return true; }
  [[nodiscard]] absl::Status Predict(const DeviceContext& device, std::span<const Demand* const> tenants,
                                     std::span<Slowdown> out) const override {
    return fake_.Predict(device, tenants, out);
  }
  [[nodiscard]] absl::Status PredictPairs(const DeviceContext& /*device*/, std::span<const Demand* const> tenants,
                                          std::span<PairExcess> out) const override {
    const size_t n = tenants.size();
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) {
        const auto slowdown = static_cast<float>(FakeModel::PairOf(*tenants[i], *tenants[j]));
        if (i != j) out[i * n + j] = CountExcess(slowdown, slowdown);
      }
    }
    return absl::OkStatus();
  }

 private:
  FakeModel fake_{0};
};

Demand Waiting(uint64_t number, double times_gpu) {
  Demand job = JobOf(number);
  job.host_us = times_gpu * static_cast<double>(job.step_time_us.estimate);
  return job;
}

const std::shared_ptr<const InterferenceModel> kModel = WithHostTime(std::make_shared<Adding>());

TEST(HostModel, SaysWhatTheModelSaysOfJobsWhoseHostsAreNeverTheSlower) {
  const std::vector<Demand> plain = {JobOf(1), JobOf(2), JobOf(3)};
  const std::vector<Demand> fast = {Waiting(1, 0.5), Waiting(2, 1), JobOf(3)};
  EXPECT_EQ(Ask(*kModel, plain), Ask(Adding(), plain));
  EXPECT_EQ(Ask(*kModel, fast), Ask(Adding(), plain));
  EXPECT_EQ(kModel->epoch(), Adding().epoch());
}

TEST(HostModel, AStepIsTheSlowerOfInputAndShareOfTheGpu) {
  const double excess = FakeModel::PairOf(JobOf(1), JobOf(2)) - 1;
  const std::vector<Slowdown> one = Ask(*kModel, {JobOf(1), Waiting(2, 4)});
  EXPECT_NEAR(one[0].estimate, 1 + excess / 4, 1e-5) << "the other keeps the GPU busy a quarter of the time";
  const std::vector<Slowdown> self = Ask(*kModel, {Waiting(1, 1.25), JobOf(2)});
  EXPECT_NEAR(self[0].estimate, std::max(1.0, (1 + excess) / 1.25), 1e-5) << "part of it hides behind its input";
  EXPECT_EQ(Ask(*kModel, {Waiting(1, 100), JobOf(2)})[0].estimate, 1);
}

TEST(HostModel, MoreHostTimeNeverSlowsAnybodyMore) {
  for (uint64_t number = 1; number < 30; ++number) {
    float victim = 1e9f, other = 1e9f;
    for (const double times : {0.0, 1.0, 1.3, 2.0, 5.0, 50.0}) {
      const std::vector<Slowdown> now = Ask(*kModel, {Waiting(number, times), JobOf(number + 1)});
      EXPECT_LE(now[0].estimate, victim);
      EXPECT_LE(now[1].estimate, other);
      victim = now[0].estimate;
      other = now[1].estimate;
    }
  }
}

TEST(HostModel, LoadsAreThoseOfTheTimeInWhichTheGpuIsBusy) {
  const std::shared_ptr<const InterferenceModel> model = WithHostTime(std::make_shared<UtilisationModel>());
  Demand busy = JobOf(1), waiting = JobOf(2);
  busy.gpu_util_pct = waiting.gpu_util_pct = {80, 80};
  waiting.host_us = 4 * static_cast<double>(waiting.step_time_us.estimate);  // 20 % of the time
  EXPECT_NEAR(Ask(*model, {busy, waiting})[0].estimate, 1, 1e-5);
  waiting.host_us /= 2;
  EXPECT_NEAR(Ask(*model, {busy, waiting})[0].estimate, 1.2, 1e-5);
}

}  // namespace
}  // namespace horus
