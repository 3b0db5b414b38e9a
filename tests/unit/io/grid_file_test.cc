// SPDX-License-Identifier: Apache-2.0
// grid.yaml: what is read, what it becomes, and what is refused with which words.
#include "lab/io/grid_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lab/policies/rivals.h"

namespace horus {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kHead[] = R"(version: 1
cluster: {gpus: {v100-sxm2-16gb: 10}, gpus_per_node: 4}
truth: {speeds: [{file: speeds.json, gpus: {v100: v100-sxm2-16gb}}], many_tenants: multiplies}
beliefs: {jobs: jobs.csv}
)";
constexpr char kWorkloads[] = "workloads: [{name: w, files: t.csv, sample: 5, backlog: true}]\n";
constexpr char kPolicies[] = "policies: [{policy: exclusive}, {policy: horus, name: h, slowdown_bound: none}]\n";

absl::StatusOr<GridFile> Parse(const std::string& text) {
  return ParseGridFile("in/grid.yaml", text, Catalogue::Default());
}
std::string Refusal(const std::string& text) { return std::string(Parse(text).status().message()); }
std::string Whole() { return std::string(kHead) + kWorkloads + kPolicies; }

TEST(GridFile, ReadsAWholeGrid) {
  const auto grid = Parse(Whole() + "seeds: {first: 7, count: 2}\nbaseline: h\n");
  ASSERT_TRUE(grid.ok()) << grid.status();
  ASSERT_EQ(grid->nodes.size(), 3);
  EXPECT_EQ(grid->nodes[0].devices.size(), 4);
  EXPECT_EQ(grid->nodes[2].devices.size(), 2);
  EXPECT_EQ(grid->nodes[0].devices[0].max_tenants, 2);
  EXPECT_EQ(grid->truth.speeds[0].file, "in/speeds.json");
  EXPECT_EQ(grid->truth.many, ManyTenants::kMultiplies);
  EXPECT_EQ(grid->beliefs.jobs, "in/jobs.csv");
  EXPECT_THAT(grid->workloads[0].files, ElementsAre("in/t.csv"));
  EXPECT_EQ(grid->workloads[0].workload.edits.sample, 5);
  EXPECT_TRUE(grid->workloads[0].workload.edits.backlog);
  EXPECT_EQ(grid->policies[0].policy.name, "exclusive");
  EXPECT_EQ(grid->policies[1].policy.name, "h");
  EXPECT_EQ(grid->policies[1].policy.placer_options.slowdown_bound, std::numeric_limits<double>::infinity());
  EXPECT_THAT(grid->seeds, ElementsAre(7, 8));
}

TEST(GridFile, AListOfLoadsMakesAWorkloadOfEach) {
  const auto grid = Parse(std::string(kHead) + "workloads: [{name: w, files: t.csv, load: [0.8, 1.5]}]\n" + kPolicies);
  ASSERT_TRUE(grid.ok()) << grid.status();
  ASSERT_EQ(grid->workloads.size(), 2);
  EXPECT_EQ(grid->workloads[0].workload.name, "w at load 0.8");
  EXPECT_EQ(grid->workloads[1].workload.edits.load_milli, 1500);
  EXPECT_NE(grid->workloads[0].workload.content, grid->workloads[1].workload.content);
}

TEST(GridFile, DefaultsHoldForEveryPolicyAndEntriesPassThem) {
  const auto grid = Parse(std::string(kHead) + kWorkloads +
                          "defaults: {queue: srtf, look_ahead: 9, round_s: 300}\n"
                          "policies: [{policy: exclusive}, {policy: horus, look_ahead: 1}]\n");
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_EQ(grid->policies[0].policy.queue, "srtf");
  EXPECT_EQ(grid->policies[0].policy.sim_options.look_ahead, 9);
  EXPECT_EQ(grid->policies[1].policy.sim_options.look_ahead, 1);
  EXPECT_EQ(grid->policies[1].policy.sim_options.round_us, 300'000'000);
}

TEST(GridFile, WhereNobodyStatesALookAheadAllPoliciesHaveOne) {
  const auto grid = Parse(std::string(kHead) + kWorkloads +
                          "policies: [{policy: exclusive}, {policy: horus}, {policy: first-fit, look_ahead: 0}]\n");
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_EQ(grid->policies[0].policy.sim_options.look_ahead, 50);
  EXPECT_EQ(grid->policies[1].policy.sim_options.look_ahead, 50);
  EXPECT_EQ(grid->policies[2].policy.sim_options.look_ahead, 0) << "as the queue says";
}

TEST(GridFile, TheOracleBelievesTheTruth) {
  const auto grid = Parse(std::string(kHead) + kWorkloads + "policies: [{policy: oracle}, {policy: horus}]\n");
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_EQ(grid->policies[0].interference, kOracle);
  EXPECT_EQ(grid->policies[1].interference, "");
}

TEST(GridFile, ContentIsWhatTheEntrySaysButForItsName) {
  const auto with = [](const std::string& entry) {
    return Parse(std::string(kHead) + kWorkloads + "policies: [" + entry + "]\n")->policies[0].policy.content;
  };
  EXPECT_EQ(with("{policy: horus, name: a, queue: las}"), with("{queue: las, name: b, policy: horus}"));
  EXPECT_NE(with("{policy: horus, queue: las}"), with("{policy: horus, queue: fifo}"));
}

TEST(GridFile, TruthAndBeliefsNameTheirSensitivities) {
  const auto grid = Parse(
      "version: 1\ncluster: {gpus: {v100-sxm2-16gb: 10}}\n"
      "truth: {interference: utilisation, sensitivity: so.csv}\nbeliefs: {jobs: jobs.csv, sensitivity: told.csv}\n" +
      std::string(kWorkloads) + "policies: [{policy: synergy-tune, synergy_grow: true, synergy_tolerance: 0.1}]\n");
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_EQ(grid->truth.sensitivity, "in/so.csv");
  EXPECT_EQ(grid->beliefs.sensitivity, "in/told.csv");
  EXPECT_TRUE(grid->policies[0].policy.policy_options.lab->synergy_grow);
  EXPECT_EQ(grid->policies[0].policy.policy_options.lab->synergy_tolerance, 0.1);
}

TEST(GridFile, RefusesWhatIsWrongAndSaysWhere) {
  const std::string head = kHead;
  EXPECT_THAT(Refusal(head + kPolicies), HasSubstr("expected key 'workloads'"));
  EXPECT_THAT(Refusal(Whole() + "colour: red\n"), HasSubstr("in/grid.yaml:7: expected one of the keys"));
  EXPECT_THAT(Refusal(head + kWorkloads + "policies: [{policy: horsu}]\n"),
              HasSubstr("in/grid.yaml:6: policies[0].policy: "));
  EXPECT_THAT(Refusal(head + kWorkloads + "policies: [{policy: horus, queue: lifo}]\n"),
              HasSubstr("policies[0].queue: "));
  EXPECT_THAT(Refusal(head + kWorkloads + "policies: [{policy: horus}, {policy: horus}]\n"),
              HasSubstr("policies: expected names that differ, found 'horus' twice"));
  EXPECT_THAT(Refusal(head + kWorkloads + "policies: []\n"), HasSubstr("policies: expected at least one entry"));
  EXPECT_THAT(Refusal(Whole() + "baseline: x\n"), HasSubstr("baseline: expected one of "));
  EXPECT_THAT(Refusal(Whole() + "seeds: [3, 3]\n"), HasSubstr("found '3' twice"));
  EXPECT_THAT(Refusal(Whole() + "seeds: {first: 18446744073709551615, count: 2}\n"), HasSubstr("seeds up to 2^64 - 1"));
  EXPECT_THAT(Refusal(Whole() + "slowdown_bound: 0.5\n"), HasSubstr("slowdown_bound: expected a number from 1"));
  EXPECT_THAT(Refusal(std::string(kHead) + kWorkloads + "policies: [{policy: horus, bounded_pct: 50}]\n"),
              HasSubstr("bounded_pct: expected a slowdown_bound beside it"));
}

TEST(GridFile, RefusesWorkloadsThatSayTwoThings) {
  const auto with = [](const std::string& entry) {
    return Refusal(std::string(kHead) + "workloads: [" + entry + "]\n" + kPolicies);
  };
  EXPECT_THAT(with("{name: w}"), HasSubstr("expected one of files and synthetic, found none"));
  EXPECT_THAT(with("{name: w, files: a, synthetic: {preset: philly}}"), HasSubstr("found both"));
  EXPECT_THAT(with("{name: w, files: a, backlog: true, load: 1}"), HasSubstr("one of backlog and load"));
  EXPECT_THAT(with("{name: w, files: a, backlog: true, horizon_pct: 50}"), HasSubstr("expected hours beside backlog"));
  EXPECT_THAT(with("{name: w, files: a, warm_up_h: 1, warm_up_pct: 1}"), HasSubstr("warm_up_h and warm_up_pct"));
  EXPECT_THAT(with("{name: w, files: a, clip_percentile: 0}"), HasSubstr("clip_percentile: expected"));
  EXPECT_THAT(with("{name: w, synthetic: {preset: none}}"), HasSubstr("synthetic.preset: "));
}

TEST(GridFile, FailuresNeedHorizons) {
  const std::string failures = "failures: {mean_up_h: 100, mean_down_h: 0.5}\n";
  EXPECT_THAT(Refusal(Whole() + failures), HasSubstr("failures: expected workloads with horizons beside failures"));
  const auto grid = Parse(kHead + failures + "workloads: [{name: w, files: t.csv, horizon_h: 9}]\n" + kPolicies);
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_EQ(grid->mean_up_us, 360'000'000'000);
  EXPECT_EQ(grid->mean_down_us, 1'800'000'000);
}

TEST(GridFile, PoliciesLearnAsMuchAsTheySay) {
  const std::string head = std::string(kHead) + kWorkloads;
  EXPECT_THAT(Refusal(head + "policies: [{policy: horus, learn: much}]\n"), HasSubstr("failures"));
  const auto grid = Parse(head + "policies: [{policy: horus, learn: pairs}, {policy: exclusive}]\n");
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_EQ(grid->policies[0].policy.learns, Learns::kPairs);
  EXPECT_EQ(grid->policies[1].policy.learns, Learns::kNothing);
}

TEST(GridFile, UnmeasuredJobsAreAloneWhereSpeedsAreMeasured) {
  EXPECT_FALSE(Parse(Whole())->truth.unmeasured_alone);
  std::string text = Whole();
  const std::string_view rule = "many_tenants: multiplies";
  text.replace(text.find(rule), rule.size(), "unmeasured_alone: true");
  const auto grid = Parse(text);
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_TRUE(grid->truth.unmeasured_alone);
  const size_t at = text.find("truth:");
  text.replace(at, text.find('\n', at) - at, "truth: {interference: utilisation, unmeasured_alone: true}");
  EXPECT_THAT(Refusal(text), HasSubstr("unmeasured_alone: expected such a key beside speeds only"));
}

TEST(GridFile, ABoundNeedsMeasuredSpeeds) {
  EXPECT_TRUE(Parse(Whole() + "lp_bound: true\n")->lp_bound);
  std::string predicted = Whole() + "lp_bound: true\n";
  const size_t at = predicted.find("truth:");
  const size_t end = predicted.find('\n', at);
  predicted.replace(at, end - at, "truth: {interference: utilisation}");
  EXPECT_THAT(Refusal(predicted), HasSubstr("lp_bound: expected measured speeds"));
}

TEST(GridFile, RefusesMoreRunsThanItsLimit) {
  std::string policies = "policies: [";
  for (int i = 0; i < 200; ++i) policies += "{policy: horus, name: p" + std::to_string(i) + "}, ";
  const auto grid = Parse(std::string(kHead) + kWorkloads + policies + "{policy: exclusive}]\nseeds: {count: 10000}\n");
  EXPECT_EQ(grid.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(grid.status().message()), HasSubstr("found 2010000"));
}

}  // namespace
}  // namespace horus
