// SPDX-License-Identifier: Apache-2.0
// A plan is told to its telemetry line by line: where memory runs out, lines are missing and nothing else.
#include <gtest/gtest.h>

#include <cstring>

#include "capi/telemetry.h"
#include "failing_new.h"
#include "place/decision.h"

namespace horus::capi {
namespace {

constexpr size_t kDecisions = 3;
constexpr char kLine[] = "decision: Deferred: does not fit now.";

struct Told {
  size_t lines = 0;
  bool whole = true;
};

// With so many allocations for all of them.
size_t LinesTold(size_t allocations) {
  Told told;
  horus_metrics_options options = HORUS_METRICS_OPTIONS_INIT;
  options.log_level = HORUS_LOG_DEBUG;
  options.log_user = &told;
  options.log = [](void* user, int32_t level, const char* text) {  // allocates nothing
    auto* to = static_cast<Told*>(user);
    to->whole = to->whole && level == HORUS_LOG_DEBUG && std::strcmp(text, kLine) == 0;
    ++to->lines;
  };
  Telemetry telemetry(options);
  Plan plan;
  plan.decisions.resize(kDecisions);
  allocations_left = allocations;
  TellDecisions(telemetry, plan);
  allocations_left = kNever;
  EXPECT_TRUE(told.whole);
  return told.lines;
}

TEST(TellDecisions, LeavesLinesOutWithoutMemory) {
  EXPECT_EQ(LinesTold(0), 0u);
  size_t last = 0;
  for (size_t allocations = 1; last < kDecisions; ++allocations) {
    const size_t lines = LinesTold(allocations);
    ASSERT_GE(lines, last);
    ASSERT_LT(allocations, 10000u);
    last = lines;
  }
}

}  // namespace
}  // namespace horus::capi
