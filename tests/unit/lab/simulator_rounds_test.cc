// SPDX-License-Identifier: Apache-2.0
// Policies that decide rounds, with and without leases: by hand, to the microsecond.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "sim_setup.h"

namespace horus {
namespace {

using ::testing::HasSubstr;
using testing_sim::FixedTruth;
using testing_sim::SimSetup;
using testing_sim::Type;

// Nodes of two GPUs and eight cores: the fair share is four; half, all and one and a half of the speed with two, four
// and eight.
struct Rounds {
  SimSetup setup;
  std::vector<SharedSensitivity> sensitivities = {
      SharedSensitivity(*Sensitivity::Create({2'000, 4'000, 8'000}, {1'000}, std::vector<float>{0.5, 1, 1.5}))};
  explicit Rounds(std::string_view policy, size_t nodes = 1) : setup(policy) {
    for (size_t i = 0; i < nodes; ++i) {
      NodeSpec node{.id = 2 + i, .cpu_milli = 8'000, .mem_mib = 64'000};
      node.devices = std::vector<DeviceSpec>(2, DeviceSpec{.type = Type("v100-sxm2-16gb")});
      EXPECT_TRUE(setup.cluster.AddNode(node).ok());
    }
    EXPECT_TRUE(setup.cluster.RemoveNode(1).ok());
    setup.AddProfile(40, 1000);
    setup.options.preempt = true;
    setup.options.round_us = 10;
    setup.options.sensitivities = &sensitivities;
  }
  SimResult Go() {
    const SensitiveTruth truth(std::make_shared<FixedTruth>(setup.truth), sensitivities);
    auto result =
        Simulate(setup.trace, setup.beliefs, truth, setup.cluster, *setup.queue, *setup.placer, setup.options);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *std::move(result) : SimResult{.jobs = std::vector<SimJob>(setup.trace.jobs.size())};
  }
};

// Two at a time, each for ten of twenty: nothing but what a round gives is restarted.
TEST(SimRounds, ALeaseIsRenewedWithoutARestart) {
  Rounds rounds("synergy-fair");
  rounds.setup.options.restart_us = 5;
  rounds.setup.AddJob(0, 50);
  rounds.setup.AddJob(0, 80);
  rounds.setup.AddJob(3, 20);  // waits for a place, round by round
  const SimResult result = rounds.Go();
  EXPECT_EQ(result.jobs[0].end_us, 50);
  EXPECT_EQ(result.jobs[1].end_us, 80);
  EXPECT_EQ(result.jobs[2].start_us, 50);
  EXPECT_EQ(result.jobs[2].end_us, 70);
  for (const SimJob& job : result.jobs) {
    EXPECT_EQ(job.restarts, 0);
    EXPECT_EQ(job.migrations, 0);
    EXPECT_EQ(job.preemptions, 0);
  }
}

// The shortest first: at 10 the newcomers rank before both, which go on where they were.
TEST(SimRounds, WhoRanksBehindLosesItsLease) {
  Rounds rounds("synergy-fair");
  rounds.setup.queue = *MakeQueue("srtf");
  rounds.setup.options.restart_us = 3;
  rounds.setup.AddJob(0, 100);
  rounds.setup.AddJob(0, 60);
  rounds.setup.AddJob(5, 20);
  const SimResult result = rounds.Go();
  EXPECT_EQ(result.jobs[2].start_us, 10);
  EXPECT_EQ(result.jobs[2].end_us, 30);
  EXPECT_EQ(result.jobs[1].end_us, 60) << "its lease was renewed";
  EXPECT_EQ(result.jobs[0].preemptions, 1);
  EXPECT_EQ(result.jobs[0].restarts, 1);
  EXPECT_EQ(result.jobs[0].end_us, 123) << "10 done, back at 30, at work from 33 on";
  EXPECT_EQ(result.jobs[0].sums.done, Work(100) * kFullRate);
}

// Cut back at 10 for the second, whole again at the round after that is gone: 15 + 40 + 45.
TEST(SimRounds, ALeaseGrowsWhenOthersLeave) {
  Rounds rounds("synergy-tune");
  rounds.setup.AddJob(0, 100);
  rounds.setup.AddJob(10, 40);
  const SimResult result = rounds.Go();
  EXPECT_EQ(result.jobs[1].end_us, 50);
  EXPECT_EQ(result.jobs[0].end_us, 80);
  EXPECT_EQ(result.jobs[0].restarts, 0);
}

// The job at the head of the queue takes an idle GPU, and not that of one which runs and ranks behind it.
TEST(SimRounds, WhoRanksBeforeTakesIdleGpusFirst) {
  Rounds rounds("synergy-fair", 2);
  rounds.setup.queue = *MakeQueue("srtf");
  for (int64_t length = 100; length > 70; length -= 10) rounds.setup.AddJob(0, length);
  rounds.setup.AddJob(5, 20);
  const SimResult result = rounds.Go();
  EXPECT_EQ(result.jobs[3].start_us, 10);
  EXPECT_EQ(result.jobs[3].end_us, 30);
  for (size_t job = 0; job < 3; ++job) {
    EXPECT_EQ(result.jobs[job].end_us, 100 - 10 * static_cast<int64_t>(job));
    EXPECT_EQ(result.jobs[job].migrations + result.jobs[job].preemptions, 0) << job;
  }
}

// All four GPUs are taken, one of each node ends: the gang of two needs one node, and ranks before all others.
TEST(SimRounds, AJobThatFindsNoRoomBesideLeasesMovesThem) {
  Rounds rounds("synergy-fair", 2);
  rounds.setup.options.restart_us = 2;
  for (const int64_t length : {100, 20, 100, 20}) rounds.setup.AddJob(0, length);
  rounds.setup.AddJob(15, 30, 0, /*gpus=*/2);
  rounds.setup.trace.jobs[4].priority = 1;
  const SimResult result = rounds.Go();
  EXPECT_EQ(result.jobs[4].start_us, 20);
  EXPECT_EQ(result.jobs[4].end_us, 50);
  EXPECT_EQ(result.jobs[0].migrations + result.jobs[2].migrations, 1);
  EXPECT_EQ(result.jobs[0].preemptions + result.jobs[2].preemptions, 0);
  EXPECT_EQ(std::max(result.jobs[0].end_us, result.jobs[2].end_us), 102);
}

TEST(SimRounds, WithoutLeasesWhoeverRunsStays) {
  Rounds rounds("synergy-tune");
  rounds.setup.queue = *MakeQueue("srtf");
  rounds.setup.options.preempt = false;
  rounds.setup.AddJob(0, 100);
  rounds.setup.AddJob(0, 60);
  rounds.setup.AddJob(5, 20);
  const SimResult result = rounds.Go();
  EXPECT_EQ(result.jobs[2].start_us, 60);
  EXPECT_EQ(result.jobs[0].preemptions, 0);
}

TEST(SimRounds, AGangAtTheHeadHoldsUpWhoComesAfterItButForALookAhead) {
  const auto starts = [](size_t look_ahead) {
    Rounds rounds("synergy-fair");
    rounds.setup.options.preempt = false;
    rounds.setup.options.look_ahead = look_ahead;
    rounds.setup.AddJob(0, 50);
    rounds.setup.AddJob(0, 30, 0, /*gpus=*/2);
    rounds.setup.AddJob(0, 30);
    const SimResult result = rounds.Go();
    return std::pair(result.jobs[1].start_us, result.jobs[2].start_us);
  };
  EXPECT_EQ(starts(1), std::pair(int64_t{50}, int64_t{80}));
  EXPECT_EQ(starts(2), std::pair(int64_t{50}, int64_t{0}));
}

}  // namespace
}  // namespace horus
