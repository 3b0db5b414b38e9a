// SPDX-License-Identifier: Apache-2.0
// What simulations through the C ABI are told and learn is what the sim room is told and learns, to the last bit.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "sim/simulator.h"
#include "sim_given.h"

namespace horus {
namespace {

using COptions = horus_sim_options;

Owned<horus_placer, horus_placer_free> PlacerOf(const char* policy) {
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  options.policy = policy;
  horus_placer* placer = nullptr;
  EXPECT_EQ(horus_placer_create(&options, &placer, nullptr), HORUS_OK);
  return Owned<horus_placer, horus_placer_free>(placer);
}

Owned<horus_sim_result, horus_sim_result_free> ThroughC(const Given& given, const horus_truth& truth,
                                                        horus_placer& placer, const COptions& options) {
  horus_sim_result* result = nullptr;
  horus_error error = HORUS_ERROR_INIT;
  EXPECT_EQ(horus_sim_run(given.trace.get(), &given.beliefs, &truth, given.cluster.get(), &placer, &options, nullptr,
                          nullptr, nullptr, &result, &error),
            HORUS_OK)
      << error.message;
  return Owned<horus_sim_result, horus_sim_result_free>(result);
}

absl::StatusOr<SimResult> InTheRoom(const Given& given, const Truth& truth, Placer& placer, const SimOptions& options) {
  Cluster cluster = given.cluster->value;
  HORUS_ASSIGN_OR_RETURN(const auto queue, MakeQueue("fifo", {}));
  return Simulate(*given.trace->value, given.Beliefs(), truth, cluster, *queue, placer, options);
}

// Of "a" and "c", a row each; fair are 21,333 thousandths of a core.
struct Matrices {
  static constexpr int64_t kCores[] = {10'000, 21'333, 40'000}, kMem[] = {1};
  static constexpr float kHungry[] = {0.5F, 1, 1.6F}, kModest[] = {0.9F, 1, 1};
  static constexpr const char* kProfiles[] = {"a", "c"};
  std::vector<horus_sensitivity> rows;
  std::vector<const horus_sensitivity*> pointers;
  horus_profile_sensitivities columns = HORUS_PROFILE_SENSITIVITIES_INIT;

  Matrices() {
    for (const float* speeds : {kHungry, kModest}) {
      horus_sensitivity row = HORUS_SENSITIVITY_INIT;
      row.cpu_count = std::size(kCores);
      row.cpu_milli = kCores;
      row.mem_count = std::size(kMem);
      row.mem_mib = kMem;
      row.speeds = speeds;
      rows.push_back(row);
    }
    for (const horus_sensitivity& row : rows) pointers.push_back(&row);
    columns.count = rows.size();
    columns.profiles = kProfiles;
    columns.sensitivities = pointers.data();
  }
  // By profile of the trace.
  [[nodiscard]] static std::vector<SharedSensitivity> InTheRoom(const Trace& trace) {
    std::vector<SharedSensitivity> all(trace.profiles.size());
    for (size_t i = 0; i < all.size(); ++i) {
      if (trace.profiles[i] == "b") continue;
      all[i] = SharedSensitivity(
          *Sensitivity::Create({std::begin(kCores), std::end(kCores)}, {std::begin(kMem), std::end(kMem)},
                               trace.profiles[i] == "a" ? std::span<const float>(kHungry) : kModest));
    }
    return all;
  }
};

TEST(CapiSim, FollowsCoresAsTheRoomDoes) {
  const Given given;
  const Matrices matrices;
  horus_truth* made = nullptr;
  ASSERT_EQ(horus_truth_with_sensitivities(given.truth.get(), &matrices.columns, &made, nullptr), HORUS_OK);
  const Owned<horus_truth, horus_truth_free> sensitive(made);
  auto beneath = ModelTruth::Create(given.truth->model, given.Beliefs());
  ASSERT_TRUE(beneath.ok());
  const std::vector<SharedSensitivity> all = Matrices::InTheRoom(*given.trace->value);
  const SensitiveTruth truth(*std::move(beneath), all);
  std::vector<double> told_or_not;
  for (const bool told : {false, true}) {
    COptions c = HORUS_SIM_OPTIONS_INIT;
    c.round_us = 60'000'000;
    SimOptions options{.round_us = 60'000'000};
    if (told) {
      c.sensitivities = &matrices.columns;
      options.sensitivities = &all;
    }
    const auto result = ThroughC(given, *sensitive, *PlacerOf("synergy-tune"), c);
    const auto expected = InTheRoom(given, truth, *PlacerOf("synergy-tune")->value, options);
    ASSERT_TRUE(expected.ok()) << expected.status();
    ExpectSameJobs(*expected, result->value);
    told_or_not.push_back(static_cast<double>(result->value.end_us));
  }
  EXPECT_NE(told_or_not[0], told_or_not[1]) << "the policy hears of them";
}

}  // namespace
}  // namespace horus
