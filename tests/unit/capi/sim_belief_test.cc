// SPDX-License-Identifier: Apache-2.0
// What simulations through the C ABI are told and learn is what the sim room is told and learns, to the last bit.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "lab/simulator.h"
#include "lab/truth/learner.h"
#include "lab/truth/truth.h"
#include "sim_given.h"

namespace horus {
namespace {

using COptions = horus_sim_options;

Owned<horus_placer, horus_placer_free> PlacerOf(const char* policy, int32_t max_tenants = 0) {
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  options.policy = policy;
  options.max_tenants = max_tenants;
  options.slowdown_bound = 20;
  horus_placer* placer = nullptr;
  EXPECT_EQ(horus_placer_create(&options, &placer, nullptr), HORUS_OK);
  return Owned<horus_placer, horus_placer_free>(placer);
}

Owned<horus_sim_result, horus_sim_result_free> ThroughC(const GivenSim& given, const horus_truth& truth,
                                                        horus_placer& placer, const COptions& options) {
  horus_sim_result* result = nullptr;
  horus_error error = HORUS_ERROR_INIT;
  EXPECT_EQ(horus_sim_run(given.trace.get(), &given.beliefs, &truth, given.cluster.get(), &placer, &options, nullptr,
                          nullptr, nullptr, &result, &error),
            HORUS_OK)
      << error.message;
  return Owned<horus_sim_result, horus_sim_result_free>(result);
}

absl::StatusOr<SimResult> InTheRoom(const GivenSim& given, const Truth& truth, Placer& placer,
                                    const SimOptions& options) {
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
  const GivenSim given;
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

// Speeds of which some pairs cannot run together, and the others slow each other as the draw says.
struct Measured {
  std::vector<double> alone, speeds_a, speeds_b;
  std::vector<uint32_t> gpus, a, b;
  Owned<horus_truth, horus_truth_free> truth;

  Measured() {
    const auto types = static_cast<uint32_t>(std::size(kTypes)), profiles = static_cast<uint32_t>(std::size(kNames));
    for (uint32_t gpu = 0; gpu < types; ++gpu) {
      for (uint32_t i = 0; i < profiles; ++i) {
        alone.push_back(1 + gpu);
        for (uint32_t j = i; j < profiles; ++j) {
          const uint64_t draw = 5000 + alone.size() * profiles + j;
          const bool runs = Draw(draw) > 0.5;
          gpus.push_back(gpu);
          a.push_back(i);
          b.push_back(j);
          speeds_a.push_back(runs ? 0.4 + 0.5 * Draw(draw + 100) : 0);
          speeds_b.push_back(runs ? i == j ? speeds_a.back() : 0.4 + 0.5 * Draw(draw + 200) : 0);
        }
      }
    }
    horus_speeds c = HORUS_SPEEDS_INIT;
    c.gpu_count = types;
    c.gpu_types = kTypes;
    c.profile_count = profiles;
    c.profiles = kNames;
    c.alone = alone.data();
    c.pair_count = gpus.size();
    c.pair_gpus = gpus.data();
    c.pairs_a = a.data();
    c.pairs_b = b.data();
    c.speeds_a = speeds_a.data();
    c.speeds_b = speeds_b.data();
    horus_truth* made = nullptr;
    horus_error error = HORUS_ERROR_INIT;
    EXPECT_EQ(horus_truth_from_speeds(nullptr, &c, HORUS_TENANTS_ADD, &made, &error), HORUS_OK) << error.message;
    truth.reset(made);
  }
};

TEST(CapiSim, LearnsAsTheRoomDoes) {
  const GivenSim given;
  const Measured measured;
  const horus_truth& c_truth = *measured.truth;
  const Trace& trace = *given.trace->value;
  const auto truth =
      TableTruth::Create(c_truth.speeds.table, c_truth.types, RowsOfProfiles(trace, c_truth.speeds.table), 0);
  ASSERT_TRUE(truth.ok()) << truth.status();
  for (const Learns learns : {Learns::kFailures, Learns::kPairs, Learns::kCorrects}) {
    SCOPED_TRACE(static_cast<int>(learns));
    COptions c = HORUS_SIM_OPTIONS_INIT;
    c.learns = static_cast<int32_t>(learns);
    const auto result = ThroughC(given, c_truth, *PlacerOf("first-fit", 2), c);
    const auto beneath = PlacerOf("first-fit", 2);
    PairLearner learner(beneath->value->shared_model(), Catalogue::Default(), learns);
    const auto placer = Placer::Create(learner.model(), beneath->value->shared_policy(), beneath->value->options());
    ASSERT_TRUE(placer.ok());
    SimOptions options{.observe_us = learns == Learns::kFailures ? 0 : kLearnFromUs};
    options.learner = &learner;
    const auto expected = InTheRoom(given, **truth, **placer, options);
    ASSERT_TRUE(expected.ok()) << expected.status();
    ExpectSameJobs(*expected, result->value);
    EXPECT_EQ(result->learned->epoch(), learner.known()->epoch());
    const auto failures = [](const SimResult& of) {
      int32_t sum = 0;
      for (const SimJob& job : of.jobs) sum += job.failures;
      return sum;
    };
    c.learns = HORUS_SIM_LEARNS_NOTHING;
    const auto told_nothing = ThroughC(given, c_truth, *PlacerOf("first-fit", 2), c);
    EXPECT_LT(failures(result->value), failures(told_nothing->value)) << "what failed is not tried again";
    EXPECT_GT(failures(result->value), 0) << "there is something to learn";
  }
}

}  // namespace
}  // namespace horus
