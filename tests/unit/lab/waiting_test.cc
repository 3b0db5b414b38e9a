// SPDX-License-Identifier: Apache-2.0
// When a job waits although it could share: delays counted by hand.
#include <gtest/gtest.h>

#include "lab/run/beliefs.h"
#include "sim_setup.h"

namespace horus {
namespace {

using testing_sim::SimSetup;

// Two that slow each other by 2, `left_us` of the newcomer and 100 of the neighbour.
bool Waits(double left_us, WaitOutlook outlook) {
  const SharingNeighbour neighbour{.left_us = 100, .before = 1, .after = 2};
  return WaitingIsBetter({.left_us = left_us, .slowdown = 2, .neighbours = {&neighbour, 1}}, outlook);
}

TEST(Waiting, IsBetterWhereItDelaysLessThanSharing) {
  // Together for 200, of which each loses half: 200 in all.
  EXPECT_TRUE(Waits(100, {.idle_us = 199}));
  EXPECT_FALSE(Waits(100, {.idle_us = 200}));
  // A short one is gone after 20.
  EXPECT_TRUE(Waits(10, {.idle_us = 19}));
  EXPECT_FALSE(Waits(10, {.idle_us = 20}));
}

TEST(Waiting, CostsOfSharingEndWhenTheTenantsMoveApart) {
  EXPECT_FALSE(Waits(100, {.idle_us = 50, .apart_us = 50}));
  EXPECT_TRUE(Waits(100, {.idle_us = 50, .apart_us = 51}));
}

TEST(Waiting, WhoDisturbsNobodyShares) {
  const SharingNeighbour neighbour{.left_us = 100};
  EXPECT_FALSE(WaitingIsBetter({.left_us = 100, .neighbours = {&neighbour, 1}}, {.idle_us = 0}));
}

TEST(Waiting, OfSeveralNeighboursEachLosesAndTheNewcomerOnce) {
  const SharingNeighbour neighbours[] = {{.left_us = 50, .before = 1, .after = 2},
                                         {.left_us = 10, .before = 2, .after = 4}};
  // Together for 100 and 40: the neighbours lose 50 and 10, the newcomer half of 100.
  EXPECT_TRUE(WaitingIsBetter({.left_us = 100, .slowdown = 2, .neighbours = neighbours}, {.idle_us = 109}));
  EXPECT_FALSE(WaitingIsBetter({.left_us = 100, .slowdown = 2, .neighbours = neighbours}, {.idle_us = 110}));
}

// One job of 100 on each GPU from 0 on; another comes at 10. Believed and true: two slow each other by 1.6. The
// shortest go first.
absl::StatusOr<SimResult> Play(int64_t newcomer_us, SimOptions options = {}, size_t gpus = 1) {
  SimSetup setup("horus", gpus);
  setup.queue = *MakeQueue("srtf");
  setup.AddProfile(80, 1000);
  setup.truth.share = {{{0, 0}, 1 / 1.6}};
  setup.options = std::move(options);
  for (size_t i = 0; i < gpus; ++i) setup.AddJob(0, 100);
  setup.AddJob(10, newcomer_us);
  return setup.Go();
}

TEST(SimWaiting, AJobWaitsForTheGpuThatFallsIdleWhereThatIsBetter) {
  // Sharing for 144: 0.375 of it lost twice, 108; the GPU falls idle in 90.
  EXPECT_EQ(Play(100)->jobs[1].start_us, 100);
  // A job of 10 is gone after 16, of which 12 are lost.
  EXPECT_EQ(Play(10)->jobs[1].start_us, 10);
}

TEST(SimWaiting, NobodyWaitsWhereThatIsNotAskedOrRunTimesAreNotKnown) {
  for (const SimOptions& options : {SimOptions{.one_by_one = true}, SimOptions{.weights = SimWeights::kAlike},
                                    SimOptions{.know_run_times = false}}) {
    EXPECT_EQ(Play(100, options)->jobs[1].start_us, 10);
  }
}

TEST(SimWaiting, EveryJobIsDoneInTheEnd) {
  SimSetup setup("horus", 2);
  setup.queue = *MakeQueue("srtf");
  setup.AddProfile(80, 1000);
  setup.truth.share = {{{0, 0}, 1 / 1.6}};
  for (int i = 0; i < 20; ++i) setup.AddJob(i, 100 + 7 * i, 0, 1 + i % 2);
  const auto result = setup.Go();
  ASSERT_TRUE(result.ok()) << result.status();
  for (const SimJob& job : result->jobs) EXPECT_EQ(job.end, SimEnd::kFinished);
}

}  // namespace
}  // namespace horus
