// SPDX-License-Identifier: Apache-2.0
// What is counted, and under which names it is told.
#include "metrics/metrics.h"

#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace horus {
namespace {

double ValueOf(const Metrics& metrics, const std::string& name, const std::string& labels) {
  for (const MetricRow& row : metrics.Rows()) {
    if (row.name == name && row.labels == labels) return row.value;
  }
  return -1;
}

double Bucket(const Metrics& metrics, const char* le) {
  return ValueOf(metrics, "horus_call_duration_seconds_bucket", std::string("call=\"plan\",le=\"") + le + "\"");
}

TEST(Metrics, ATimeIsCountedInEveryBucketThatEndsNotBelowIt) {
  Metrics metrics;
  metrics.Called(Call::kPlan, kStatusOk, 0);
  metrics.Called(Call::kPlan, kStatusOk, 1000);
  metrics.Called(Call::kPlan, kStatusOk, 1001);
  metrics.Called(Call::kPlan, kStatusOk, 4000);
  metrics.Called(Call::kPlan, kStatusOk, 16'777'216'000);
  metrics.Called(Call::kPlan, kStatusOk, 16'777'216'001);
  EXPECT_EQ(Bucket(metrics, "1e-06"), 2);
  EXPECT_EQ(Bucket(metrics, "2e-06"), 3);
  EXPECT_EQ(Bucket(metrics, "4e-06"), 4);
  EXPECT_EQ(Bucket(metrics, "8.388608"), 4);
  EXPECT_EQ(Bucket(metrics, "16.777216"), 5);
  EXPECT_EQ(Bucket(metrics, "+Inf"), 6);
  EXPECT_EQ(ValueOf(metrics, "horus_call_duration_seconds_count", "call=\"plan\""), 6);
}

TEST(Metrics, CallsWithoutATimeAreCountedAndNotTimed) {
  Metrics metrics;
  metrics.Called(Call::kApply, kStatusConflict, std::nullopt);
  EXPECT_EQ(ValueOf(metrics, "horus_calls_total", "call=\"apply\",status=\"CONFLICT\""), 1);
  EXPECT_EQ(ValueOf(metrics, "horus_conflicts_total", ""), 1);
  EXPECT_EQ(ValueOf(metrics, "horus_call_duration_seconds_count", "call=\"apply\""), -1);
}

TEST(Metrics, ARefusalIsCountedByItsReasonAndAPlacementByItsVerdictAlone) {
  Metrics metrics;
  Plan plan;
  plan.decisions.resize(3);
  plan.decisions[0].verdict = Verdict::kPlace;
  plan.decisions[1].verdict = Verdict::kDefer;
  plan.decisions[1].reason = Reason::kCpu;
  plan.decisions[2].verdict = Verdict::kReject;
  plan.decisions[2].reason = Reason::kCpu;
  metrics.Decided(plan);
  EXPECT_EQ(ValueOf(metrics, "horus_decisions_total", "verdict=\"place\""), 1);
  EXPECT_EQ(ValueOf(metrics, "horus_decisions_total", "verdict=\"defer\""), 1);
  EXPECT_EQ(ValueOf(metrics, "horus_refusals_total", "reason=\"cpu\""), 2);
}

TEST(Metrics, RowsOfOneFamilyAreNeighboursAndNoneIsTwice) {
  Metrics metrics;
  for (size_t call = 0; call < kCallCount; ++call) {
    for (size_t status = 0; status < kStatusNames.size(); ++status) {
      metrics.Called(static_cast<Call>(call), static_cast<int>(status), uint64_t{1} << (2 * status));
    }
  }
  metrics.Looked(Cache::kDemands, 1, 2);
  metrics.Looked(Cache::kJudgements, 3, 4);
  std::set<const MetricFamily*> ended;
  std::set<std::string> seen;
  const MetricFamily* family = nullptr;
  for (const MetricRow& row : metrics.Rows()) {
    if (row.family != family) {
      EXPECT_TRUE(ended.insert(row.family).second) << row.family->name;
    }
    family = row.family;
    EXPECT_TRUE(seen.insert(std::string(row.name) + row.labels).second) << row.name << row.labels;
    EXPECT_TRUE(std::string(row.name).starts_with(family->name));
  }
  EXPECT_EQ(ended.size(), 5u);
}

TEST(Metrics, TextNamesEachFamilyOnceWithItsKind) {
  Metrics metrics;
  metrics.Called(Call::kRelease, kStatusOk, std::nullopt);
  metrics.Called(Call::kApply, kStatusOk, std::nullopt);
  metrics.Looked(Cache::kDemands, (uint64_t{1} << 53) - 1, 0);
  EXPECT_EQ(MetricsText(metrics.Rows()),
            "# HELP horus_calls_total Calls of the library, by status.\n"
            "# TYPE horus_calls_total counter\n"
            "horus_calls_total{call=\"apply\",status=\"OK\"} 1\n"
            "horus_calls_total{call=\"release\",status=\"OK\"} 1\n"
            "# HELP horus_conflicts_total Plans refused because a node had moved since they were made.\n"
            "# TYPE horus_conflicts_total counter\n"
            "horus_conflicts_total 0\n"
            "# HELP horus_cache_hits_total Answers that a cache knew.\n"
            "# TYPE horus_cache_hits_total counter\n"
            "horus_cache_hits_total{cache=\"demands\"} 9007199254740991\n");
}

}  // namespace
}  // namespace horus
