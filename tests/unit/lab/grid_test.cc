// SPDX-License-Identifier: Apache-2.0
// A run is a pure function of the grid; what its content covers; intervals against tables.
#include "lab/grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "interference/registry.h"
#include "interference/table_model.h"
#include "lab/truth/learner.h"

namespace horus {
namespace {

using testing::HasSubstr;

GpuTypeId V100() { return *Catalogue::Default()->Find("v100-sxm2-16gb"); }

// Two profiles on one type; a beside b keeps 0.8, b beside a 0.9, equal ones cannot run together.
Grid Small(const std::string& policy = "first-fit") {
  Grid grid;
  grid.catalogue = Catalogue::Default();
  NodeSpec node{.id = 1, .cpu_milli = 64'000, .mem_mib = 1 << 20};
  node.devices = std::vector<DeviceSpec>(2, DeviceSpec{.type = V100(), .max_tenants = 2});
  grid.nodes.push_back(node);
  grid.truth.speeds = SpeedTable{.profiles = {"a", "b"},
                                 .gpus = {"v100"},
                                 .alone = {2, 4},
                                 .pairs = {{.a = 0, .b = 1, .speed_a = 0.8, .speed_b = 0.9}}};
  grid.truth.types = {V100()};
  DemandsByName beliefs;
  for (const char* name : {"a", "b", "unknown"}) {
    beliefs[name] = {{GpuTypeId(), {.gpu_util_pct = {30, 40}, .mem_mib = {1000, 1500}, .flags = kDemandGiven}}};
  }
  grid.beliefs = CompleteBeliefs(grid, beliefs);
  GridWorkload workload{.name = "w"};
  workload.synthetic = *SyntheticPreset("philly");
  workload.synthetic.jobs = 40;
  workload.synthetic.profiles = {{.name = "a"}, {.name = "b"}};
  workload.edits = {.single_gpu = true, .sample = 10, .backlog = true};
  grid.workloads.push_back(workload);
  grid.policies.push_back({.name = "p", .policy = policy, .model = *MakeInterferenceModel("utilisation")});
  grid.policies[0].placer_options.slowdown_bound = std::numeric_limits<double>::infinity();
  grid.seeds = {1, 2};
  return grid;
}

TEST(Grid, BeliefsAreOfTypesThatRunInTruthAlone) {
  const Grid grid = Small();
  ASSERT_EQ(grid.beliefs.size(), 2);  // of "unknown" the truth has no speed
  ASSERT_EQ(grid.beliefs.at("a").size(), 1);
  EXPECT_EQ(grid.beliefs.at("a")[0].type, V100());
  EXPECT_NE(grid.beliefs.at("a")[0].demand.profile_id, 0);
  EXPECT_NE(grid.beliefs.at("a")[0].demand.profile_id, grid.beliefs.at("b")[0].demand.profile_id);
}

// With one core a job of `a` takes three times as long; its fair share is 32.
TEST(Grid, CoresCountWhereTheTruthIsToldOfThem) {
  Grid grid = Small("exclusive");
  grid.workloads[0].synthetic.profiles = {{.name = "a", .cpu_milli = 1'000}};
  const auto makespan = [&] { return static_cast<double>(RunOne(grid, {0, 0, 1})->metrics.makespan_us); };
  const double before = makespan();
  const SharedSensitivity matrix(*Sensitivity::Create({1'000, 32'000}, {1}, std::vector<float>{1.0f / 3, 1}));
  grid.sensitivities["a"] = matrix;
  EXPECT_EQ(makespan(), before) << "belief alone";
  grid.truth.sensitivities["a"] = matrix;
  EXPECT_NEAR(makespan() / before, 3, 1e-6);
  grid.policies[0].policy = "synergy-fair";
  EXPECT_NEAR(makespan(), before, 1) << "granted its fair share";
}

TEST(Grid, ARunDependsOnItsArgumentsAlone) {
  const Grid grid = Small();
  const auto first = RunOne(grid, {0, 0, 1});
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(RunOne(grid, {0, 0, 2}).ok());
  const auto again = RunOne(grid, {0, 0, 1});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(first->trace, again->trace);
  EXPECT_EQ(first->metrics, again->metrics);
  EXPECT_EQ(first->metrics.finished, 10);
}

TEST(Grid, SeedsDrawOtherJobs) {
  const Grid grid = Small();
  EXPECT_NE(TraceDigest(RunOne(grid, {0, 0, 1})->trace), TraceDigest(RunOne(grid, {0, 0, 2})->trace));
}

TEST(Grid, TheOracleKnowsWhatCannotRunTogether) {
  Grid grid = Small("horus");
  grid.policies[0].model = *OracleOf(grid);
  grid.policies[0].placer_options.slowdown_bound = 2;
  const auto outcome = RunOne(grid, {0, 0, 1});
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->metrics.failures, 0);
  EXPECT_GT(outcome->metrics.slowdown.mean, 1);
  EXPECT_LE(outcome->metrics.slowdown.p99, 1.25);
  grid.policies[0].policy = "first-fit";
  grid.policies[0].model = *MakeInterferenceModel("utilisation");
  EXPECT_GT(RunOne(grid, {0, 0, 1})->metrics.failures, 0);
}

// Beside b a job of a is slowed by 1.25.
TEST(Grid, WhoStatesTheBoundKeepsItAndTheOthersShare) {
  Grid grid = Small("horus");
  grid.policies[0].model = *OracleOf(grid);
  grid.policies[0].placer_options.slowdown_bound = 1.2;
  EXPECT_EQ(RunOne(grid, {0, 0, 1})->metrics.slowdown.mean, 1);
  grid.policies[0].bounded_milli = 500;
  const auto half = RunOne(grid, {0, 0, 1});
  ASSERT_TRUE(half.ok()) << half.status();
  EXPECT_GT(half->metrics.slowdown.p99, 1.2);
  EXPECT_EQ(half->metrics.above_bound, 0);
}

TEST(Grid, AnOracleOfTooManyPairsIsRefusedBeforeTheyAreMade) {
  Grid grid = Small("oracle");
  const ProfileDemands demands = grid.beliefs.at("a");
  const auto too_many = static_cast<size_t>(std::sqrt(kMostTableEntries / 2)) + 1;  // entries of two sharing modes
  while (grid.beliefs.size() < too_many) grid.beliefs["p" + std::to_string(grid.beliefs.size())] = demands;
  // The truth knows none of them: it would refuse the first pair that it were asked of.
  const auto oracle = OracleOf(grid);
  EXPECT_EQ(oracle.status().code(), absl::StatusCode::kResourceExhausted) << oracle.status();
  EXPECT_THAT(oracle.status().message(), HasSubstr("expected at most 400000 entries"));
}

// Two more profiles: "lone", of whom no pair was measured, and "a" on two GPUs.
Grid WithUnmeasured(bool alone) {
  Grid grid = Small("first-fit");
  grid.truth.unmeasured_alone = alone;
  grid.truth.speeds = SpeedTable{
      .profiles = {"a", "a on 2 GPUs", "b", "lone"},
      .gpus = {"v100"},
      .alone = {2, 3, 4, 5},
      .pairs = {{.a = 0, .b = 2, .speed_a = 0.8, .speed_b = 0.9}, {.a = 0, .b = 0, .speed_a = 0.5, .speed_b = 0.5}},
      .gangs = {{.profile = 1, .of = 0, .gpus = 2}}};
  DemandsByName beliefs;
  for (const char* name : {"a", "b", "lone"}) {
    beliefs[name] = {{GpuTypeId(), {.gpu_util_pct = {30, 40}, .mem_mib = {1000, 1500}, .flags = kDemandGiven}}};
  }
  grid.beliefs = CompleteBeliefs(grid, beliefs);
  return grid;
}

TEST(Grid, WhatNobodyMeasuredBesideOthersFillsItsGpus) {
  const Grid grid = WithUnmeasured(true);
  ASSERT_EQ(grid.beliefs.size(), 4);
  EXPECT_EQ(grid.beliefs.at("b")[0].demand.mem_mib.upper, 1500);
  for (const char* name : {"lone", "a on 2 GPUs"}) {
    const Demand& demand = grid.beliefs.at(name)[0].demand;
    EXPECT_EQ(demand.mem_mib.estimate, 1000) << name;
    EXPECT_EQ(demand.mem_mib.upper, grid.catalogue->at(V100()).mem_mib - PlacerOptions().mem_headroom_mib) << name;
  }
  EXPECT_NE(grid.beliefs.at("a on 2 GPUs")[0].demand.profile_id, grid.beliefs.at("a")[0].demand.profile_id);
  EXPECT_EQ(WithUnmeasured(false).beliefs.at("lone")[0].demand.mem_mib.upper, 1500);
}

TEST(Grid, MemoryIsThatOfTheLeastDeviceOfTheType) {
  Grid grid = WithUnmeasured(true);
  const int64_t usual_mib = grid.catalogue->at(V100()).mem_mib;
  grid.nodes[0].devices[1].mem_mib = 2 * usual_mib;
  EXPECT_EQ(CompleteBeliefs(grid, grid.beliefs).at("lone")[0].demand.mem_mib.upper,
            usual_mib - PlacerOptions().mem_headroom_mib);
  grid.nodes[0].devices[1].mem_mib = usual_mib / 2;
  EXPECT_EQ(CompleteBeliefs(grid, grid.beliefs).at("lone")[0].demand.mem_mib.upper,
            usual_mib / 2 - PlacerOptions().mem_headroom_mib);
  EXPECT_EQ(CompleteBeliefs(grid, grid.beliefs).at("b")[0].demand.mem_mib.upper, 1500) << "it has neighbours";
}

TEST(Grid, GangsRunAloneAtTheirOwnSpeed) {
  Grid grid = WithUnmeasured(true);
  Trace trace;
  trace.profiles = {"a", "b"};
  trace.jobs = {{.id = 1, .steps = 300, .profile = 0, .tasks = 2}, {.id = 2, .steps = 400, .profile = 1}};
  EXPECT_EQ(CountWithoutSpeed(grid, trace), 0);
  const auto prepared = PrepareTrace(grid, trace, {.known_only = true});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  grid.workloads[0] = {.name = "gangs", .trace = std::make_shared<const Trace>(*prepared)};
  const auto outcome = RunOne(grid, {0, 0, 1});
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  ASSERT_EQ(outcome->result.jobs.size(), 2);
  EXPECT_EQ(outcome->result.jobs[0].end_us, 100'000'000);  // 300 steps at 3 a second, on both GPUs
  EXPECT_EQ(outcome->result.jobs[1].start_us, 100'000'000);
  EXPECT_EQ(outcome->result.jobs[1].end_us, 200'000'000);
  EXPECT_EQ(outcome->metrics.failures, 0);

  trace.jobs[0].tasks = 4;  // of four nobody measured a speed
  EXPECT_EQ(CountWithoutSpeed(grid, trace), 1);
  EXPECT_EQ(PrepareTrace(grid, trace, {.known_only = true})->jobs.size(), 1);
  EXPECT_FALSE(PrepareTrace(grid, trace, {}).ok());
}

TEST(Grid, KeysDifferByContentAndSeedAndNotByName) {
  Grid grid = Small();
  const std::string content = ContentOf(grid, {0, 0, 1});
  EXPECT_NE(KeyOf(content), KeyOf(ContentOf(grid, {0, 0, 2})));
  grid.policies[0].name = "other";
  EXPECT_EQ(content, ContentOf(grid, {0, 0, 1}));
  grid.policies[0].content = "other";
  EXPECT_NE(content, ContentOf(grid, {0, 0, 1}));
  EXPECT_EQ(KeyOf(content).size(), 16);
}

TEST(Grid, WhoKnowsNothingLearnsWhatItSees) {
  Grid grid = Small("horus");
  grid.policies[0].model = std::make_shared<const IgnorantModel>();
  const auto ignorant = RunOne(grid, {0, 0, 1});
  ASSERT_TRUE(ignorant.ok()) << ignorant.status();
  EXPECT_GT(ignorant->metrics.failures, 1);  // equal profiles cannot run together, and it tries them again
  EXPECT_GT(ignorant->metrics.belief_error, 0);
  grid.policies[0].learns = Learns::kPairs;
  const auto learns = RunOne(grid, {0, 0, 1});
  ASSERT_TRUE(learns.ok()) << learns.status();
  EXPECT_LT(learns->metrics.failures, ignorant->metrics.failures);
  EXPECT_LT(learns->metrics.belief_error, ignorant->metrics.belief_error);
}

TEST(Grid, RunsGoByWorkloadThenPolicyThenSeed) {
  Grid grid = Small();
  grid.policies.push_back(grid.policies[0]);
  const std::vector<GridRun> runs = RunsOf(grid);
  ASSERT_EQ(runs.size(), 4);
  EXPECT_EQ(runs[1], (GridRun{0, 0, 2}));
  EXPECT_EQ(runs[2], (GridRun{0, 1, 1}));
}

TEST(Grid, ErrorsNameTheRun) {
  Grid grid = Small();
  grid.workloads[0].edits.sample = 1000;
  EXPECT_THAT(std::string(RunOne(grid, {0, 0, 2}).status().message()),
              HasSubstr("workload 'w', policy 'p', seed 2: sample: expected"));
}

TEST(Grid, JobsBeforeTheWarmUpDoNotCountAndTheHorizonEnds) {
  Grid grid = Small();
  grid.workloads[0].edits.backlog = false;
  const auto all = RunOne(grid, {0, 0, 1});
  grid.workloads[0].warm_up.span_milli = 500;
  grid.workloads[0].horizon.span_milli = 1000;
  const auto half = RunOne(grid, {0, 0, 1});
  ASSERT_TRUE(all.ok() && half.ok());
  EXPECT_EQ(all->metrics.jobs, 10);
  EXPECT_LT(half->metrics.jobs, 10);
  EXPECT_LT(half->result.end_us, all->result.end_us);
}

// Tables of Student's t: 9 degrees 2.26216, 20 degrees 2.08596, 30 degrees 2.04227, 1000 degrees 1.96234.
TEST(GridMetrics, StudentsQuantilesAreThoseOfTheTables) {
  EXPECT_NEAR(StudentT975(9), 2.26216, 1e-5);
  EXPECT_NEAR(StudentT975(20), 2.08596, 2e-5);
  EXPECT_NEAR(StudentT975(30), 2.04227, 1e-5);
  EXPECT_NEAR(StudentT975(1000), 1.96234, 1e-5);
  EXPECT_TRUE(std::isnan(StudentT975(0)));
}

// Differences 1, 2, 3: mean 2, standard deviation 1, t(2) = 4.30265.
TEST(GridMetrics, IntervalsAreOfThePairedDifferences) {
  const PairedMean paired = ComparePaired(std::vector<double>{11, 22, 33}, std::vector<double>{10, 20, 30});
  EXPECT_DOUBLE_EQ(paired.mean, 22);
  EXPECT_DOUBLE_EQ(paired.difference, 2);
  EXPECT_NEAR(paired.half_width, 4.30265 / std::sqrt(3.0), 1e-9);
  EXPECT_TRUE(std::isnan(ComparePaired(std::vector<double>{1}, std::vector<double>{2}).half_width));
}

TEST(GridMetrics, NothingIsARatioToABaselineOfZero) {
  const PairedMean tenth = ComparePaired(std::vector<double>{9, 9}, std::vector<double>{10, 10});
  EXPECT_DOUBLE_EQ(tenth.OfBaseline(tenth.difference).value(), -0.1);
  const PairedMean below = ComparePaired(std::vector<double>{-9}, std::vector<double>{-10});
  EXPECT_DOUBLE_EQ(below.OfBaseline(below.difference).value(), 0.1);  // more stays more
  const double rounding = 1e-17, none = std::nan("");
  for (const double base : {0.0, rounding, -rounding, none}) {
    const PairedMean paired = ComparePaired(std::vector<double>{0.5, 0.25}, std::vector<double>{base, base});
    EXPECT_EQ(paired.OfBaseline(paired.difference), std::nullopt) << base;
  }
}

TEST(GridMetrics, NamesAreUniqueAndFound) {
  for (size_t i = 0; i < GridMetrics().size(); ++i) EXPECT_EQ(FindGridMetric(GridMetrics()[i].name), i);
  EXPECT_FALSE(FindGridMetric("jct").has_value());
}

}  // namespace
}  // namespace horus
