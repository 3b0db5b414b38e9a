// SPDX-License-Identifier: Apache-2.0
// The rules of a round by sensitivity to cores and host memory, one by one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lab/synergy/round.h"

namespace horus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A server of 4 GPUs, 12 cores and 400 MiB: the fair share is 3 cores and 100 MiB.
constexpr HostShare kFair = {3000, 100};
SynergyServer Server(int32_t gpus_free = 4, HostShare used = {}) {
  return {.gpus = 4,
          .gpus_free = gpus_free,
          .cpu_milli = 12'000,
          .mem_mib = 400,
          .cpu_free_milli = 12'000 - used.cpu_milli,
          .mem_free_mib = 400 - used.mem_mib};
}
// Speed 0.3, 1, 2 with 1, 3, 6 cores; memory matters not.
const Sensitivity kHungry = *Sensitivity::Create({1000, 3000, 6000}, {100}, std::vector<float>{0.3f, 1, 2});
// As `kHungry`, and with 9 cores 3.5.
const Sensitivity kStarved =
    *Sensitivity::Create({1000, 3000, 6000, 9000}, {100}, std::vector<float>{0.3f, 1, 2, 3.5f});
// One core and 25 MiB are enough.
const Sensitivity kModest = *Sensitivity::Create({1000, 3000}, {25, 100}, std::vector<float>{1, 1, 1, 1});
constexpr HostShare kHungryBest = {6000, 100};
constexpr HostShare kModestFloor = {1000, 25};

SynergyJob Job(const Sensitivity* sensitivity, int32_t gpus = 1) { return {.gpus = gpus, .sensitivity = sensitivity}; }

SynergyRound Allocate(SynergyRule rule, const std::vector<SynergyServer>& servers, const std::vector<SynergyJob>& jobs,
                      const std::vector<SynergyResident>& residents = {}, const SynergyOptions& options = {}) {
  auto round = AllocateRound(rule, {servers, residents, jobs}, options);
  EXPECT_TRUE(round.ok()) << round.status();
  return round.ok() ? *round : SynergyRound();
}

std::vector<SynergySlice> On(uint32_t server, int32_t gpus = 1) { return {{server, gpus}}; }

TEST(SynergyFair, GivesTheGpuProportionalShareWhateverTheSensitivity) {
  const auto round = Allocate(SynergyRule::kFair, {Server()}, {Job(&kHungry), Job(&kModest, 2), Job(nullptr)});
  EXPECT_EQ(round.grants[0], (SynergyGrant{On(0), kFair, 1}));
  EXPECT_EQ(round.grants[1], (SynergyGrant{On(0, 2), kFair, 1}));
  EXPECT_EQ(round.grants[2], (SynergyGrant{On(0), kFair, 1}));
}

TEST(SynergyGreedy, GivesTheBestCellOrSkipsTheJob) {
  const auto round = Allocate(SynergyRule::kGreedy, {Server()}, {Job(&kHungry), Job(&kHungry), Job(nullptr)});
  EXPECT_EQ(round.grants[0], (SynergyGrant{On(0), kHungryBest, 2}));
  EXPECT_EQ(round.grants[1], (SynergyGrant{On(0), kHungryBest, 2}));
  EXPECT_EQ(round.grants[2], SynergyGrant()) << "the cores are gone: it waits beside two idle GPUs";
}

TEST(SynergyTune, TakesTheFullestServerThatFitsTheBestCell) {
  const std::vector<SynergyServer> servers = {Server(4), Server(1, {9000, 300}), Server(2, {6000, 200})};
  const auto round = Allocate(SynergyRule::kTune, servers, {Job(&kHungry), Job(&kModest)});
  EXPECT_EQ(round.grants[0], (SynergyGrant{On(2), kHungryBest, 2})) << "server 1 has 3 cores left";
  EXPECT_EQ(round.grants[1], (SynergyGrant{On(1), kModestFloor, 1}));
}

TEST(SynergyTune, TiesGoToTheLowestServer) {
  const auto round = Allocate(SynergyRule::kTune, {Server(), Server(), Server()}, {Job(&kHungry)});
  EXPECT_EQ(round.grants[0].slices, On(0));
}

TEST(SynergyTune, RetriesAtTheFloorWhereTheBestCellDoesNotFit) {
  const auto round = Allocate(SynergyRule::kTune, {Server(2, {6000, 200})}, {Job(&kStarved)});
  EXPECT_EQ(round.grants[0], (SynergyGrant{On(0), kFair, 1}));
}

TEST(SynergyTune, ReclaimsFromThoseAboveTheirFloorUntilItFits) {
  const auto round =
      Allocate(SynergyRule::kTune, {Server()}, {Job(&kHungry), Job(&kHungry), Job(nullptr), Job(nullptr)});
  for (const SynergyGrant& grant : round.grants) EXPECT_EQ(grant, (SynergyGrant{On(0), kFair, 1}));
}

TEST(SynergyTune, CutsBackFirstWhomItCostsLeastAmongEqualsTheLowest) {
  // 3 cores cost the first 1.5 and the others 1.
  const std::vector<SynergyResident> residents = {
      {.slices = On(0), .held = {9000, 100}, .floor = kFair, .sensitivity = &kStarved},
      {.slices = On(0), .held = kHungryBest, .floor = kFair, .sensitivity = &kHungry},
      {.slices = On(0), .held = kHungryBest, .floor = kFair, .sensitivity = &kHungry}};
  SynergyServer server = Server(1, {});
  server.cpu_milli = 21'000;
  server.cpu_free_milli = 0;
  server.mem_free_mib = 100;
  SynergyJob job = Job(&kModest);
  job.need = {3000, 100};
  const auto round = Allocate(SynergyRule::kTune, {server}, {job}, residents);
  EXPECT_EQ(round.grants[0].slices, On(0));
  EXPECT_THAT(round.resizes, ElementsAre(SynergyResize{1, kFair}));
}

TEST(SynergyTune, CutsBackOnlyAsFarAsTheNewcomerNeeds) {
  const std::vector<SynergyResident> residents = {
      {.slices = On(0), .held = {9000, 100}, .floor = kFair, .sensitivity = &kStarved}};
  const auto one = Allocate(SynergyRule::kTune, {Server(3, {9000, 100})}, {Job(nullptr), Job(nullptr)}, residents);
  EXPECT_THAT(one.resizes, ElementsAre(SynergyResize{0, kHungryBest}));
  const auto two = Allocate(SynergyRule::kTune, {Server(3, {9000, 100})}, std::vector(3, Job(nullptr)), residents);
  EXPECT_THAT(two.resizes, ElementsAre(SynergyResize{0, kFair}));
}

TEST(SynergyTune, CutsBackOnEveryServerOfASplitJob) {
  std::vector<SynergyResident> residents;
  for (const uint32_t server : {0, 1}) {
    residents.push_back({.slices = On(server, 2), .held = kHungryBest, .floor = kFair, .sensitivity = &kHungry});
  }
  const std::vector<SynergyServer> servers = {Server(2, {12'000, 200}), Server(2, {12'000, 200})};
  const auto round = Allocate(SynergyRule::kTune, servers, {Job(nullptr, 4)}, residents);
  EXPECT_THAT(round.grants[0].slices, ElementsAre(SynergySlice{0, 2}, SynergySlice{1, 2}));
  EXPECT_THAT(round.resizes, ElementsAre(SynergyResize{0, kFair}, SynergyResize{1, kFair}));
}

TEST(SynergyTune, NobodyIsCutBelowItsFloor) {
  const std::vector<SynergyResident> residents = {
      {.slices = On(0), .held = {10'000, 100}, .floor = {10'000, 100}, .sensitivity = nullptr}};
  const auto round = Allocate(SynergyRule::kTune, {Server(3, {10'000, 100})}, {Job(nullptr)}, residents);
  EXPECT_THAT(round.grants[0].slices, IsEmpty());
  EXPECT_THAT(round.resizes, IsEmpty());
}

TEST(SynergyTune, KeepsAJobTogetherWhereTheGpusOfOneServerHoldIt) {
  // Server 0 has the GPUs but not the cores for the best cell; two servers would have both.
  const std::vector<SynergyServer> servers = {Server(4, {0, 0}), Server(1), Server(1)};
  const auto round = Allocate(SynergyRule::kTune, servers, {Job(&kHungry, 4)});
  EXPECT_EQ(round.grants[0], (SynergyGrant{On(0, 4), kFair, 1}));
}

TEST(SynergyTune, SplitsInProportionOverAsFewServersAsPossible) {
  const std::vector<SynergyServer> servers = {Server(1, {9000, 300}), Server(3), Server(2, {0, 200}), Server(4)};
  const auto round = Allocate(SynergyRule::kTune, servers, {Job(&kModest, 6)});
  EXPECT_THAT(round.grants[0].slices, ElementsAre(SynergySlice{2, 2}, SynergySlice{3, 4}))
      << "the last slice fits best";
  EXPECT_EQ(round.grants[0].share, kModestFloor);
}

TEST(SynergyTune, SlicesAreWholeTasks) {
  SynergyJob job = Job(nullptr, 4);
  job.unit = 2;
  const auto round = Allocate(SynergyRule::kTune, {Server(3), Server(3)}, {job});
  EXPECT_THAT(round.grants[0].slices, ElementsAre(SynergySlice{0, 2}, SynergySlice{1, 2}));
  job.unit = 4;
  EXPECT_THAT(Allocate(SynergyRule::kTune, {Server(3), Server(3)}, {job}).grants[0].slices, IsEmpty());
}

TEST(SynergyTune, SlicesStayOnServersAlike) {
  std::vector<SynergyServer> servers = {Server(2), Server(2), Server(2)};
  servers[0].kind = 7;
  const auto round = Allocate(SynergyRule::kTune, servers, {Job(nullptr, 4)});
  EXPECT_THAT(round.grants[0].slices, ElementsAre(SynergySlice{1, 2}, SynergySlice{2, 2}));
}

TEST(SynergyTune, KeepsToAllowedServersAndStatedNeeds) {
  const std::vector<uint32_t> allowed = {1};
  SynergyJob job = Job(&kModest);
  job.allowed = allowed;
  job.need = {4000, 0};
  const auto round = Allocate(SynergyRule::kTune, {Server(1), Server(4)}, {job});
  EXPECT_EQ(round.grants[0], (SynergyGrant{On(1), {4000, 25}, 1}));
}

TEST(SynergyTune, RunsInPolicyOrderAndSkipsWhatTheGpusDoNotHold) {
  const auto round = Allocate(SynergyRule::kTune, {Server()}, {Job(nullptr, 3), Job(nullptr, 2), Job(&kModest)});
  EXPECT_EQ(round.grants[0].slices, On(0, 3));
  EXPECT_THAT(round.grants[1].slices, IsEmpty());
  EXPECT_EQ(round.grants[2].slices, On(0));
}

TEST(SynergyTune, FallsBackToFairsPlacesWhereItWouldRunFewerJobs) {
  // At its best cell the first job goes to the idle server, which the second needs whole.
  const std::vector<SynergyServer> servers = {Server(2, {6000, 200}), Server(4)};
  const std::vector<SynergyJob> jobs = {Job(&kStarved), {.gpus = 4, .unit = 4}};
  const auto round = Allocate(SynergyRule::kTune, servers, jobs);
  EXPECT_EQ(round.grants[0], (SynergyGrant{On(0), kFair, 1}));
  EXPECT_EQ(round.grants[1], (SynergyGrant{On(1, 4), kFair, 1}));
}

TEST(SynergyTune, GrowingHandsOutWhatIsLeftToWhomItHelpsMost) {
  const std::vector<SynergyResident> residents = {
      {.slices = On(0), .held = kFair, .floor = kFair, .sensitivity = &kHungry}};
  const std::vector<SynergyServer> servers = {Server(2, {3000, 100})};
  const std::vector<SynergyJob> jobs = {Job(&kModest), Job(&kModest)};
  EXPECT_THAT(Allocate(SynergyRule::kTune, servers, jobs, residents).resizes, IsEmpty());
  const auto grown = Allocate(SynergyRule::kTune, servers, jobs, residents, {.grow = true});
  EXPECT_THAT(grown.resizes, ElementsAre(SynergyResize{0, kHungryBest}));
}

TEST(Synergy, NothingInNothingOut) {
  for (const SynergyRule rule : {SynergyRule::kGreedy, SynergyRule::kFair, SynergyRule::kTune, SynergyRule::kOpt}) {
    EXPECT_EQ(Allocate(rule, {}, {}), SynergyRound());
    EXPECT_EQ(Allocate(rule, {SynergyServer()}, {}), SynergyRound());
  }
  EXPECT_THAT(Allocate(SynergyRule::kTune, {SynergyServer()}, {Job(nullptr)}).grants, ElementsAre(SynergyGrant()));
}

// Nobody's cores and memory are known: the GPUs alone count.
TEST(Synergy, ServersWithoutHostResourcesHoldAsManyAsTheyHaveGpus) {
  const SynergyServer bare = {.gpus = 2, .gpus_free = 2};
  for (const SynergyRule rule : {SynergyRule::kGreedy, SynergyRule::kFair, SynergyRule::kTune}) {
    const auto round = Allocate(rule, {bare}, {Job(nullptr), Job(nullptr), Job(nullptr)});
    EXPECT_EQ(round.grants[0], (SynergyGrant{On(0), {}, 1}));
    EXPECT_EQ(round.grants[1], (SynergyGrant{On(0), {}, 1}));
    EXPECT_THAT(round.grants[2].slices, IsEmpty());
  }
}

TEST(SynergyTune, GrowingPassesOverServersWithoutGpus) {
  const SynergyServer host = {.cpu_milli = 12'000, .mem_mib = 400, .cpu_free_milli = 12'000, .mem_free_mib = 400};
  const auto round = Allocate(SynergyRule::kTune, {host, Server()}, {Job(&kHungry)}, {}, {.grow = true});
  EXPECT_EQ(round.grants[0].slices, On(1));
}

TEST(SynergyTune, AJobStaysWhereItRanOnlyInWholeTasksOnServersAlike) {
  const auto granted = [](std::vector<SynergyServer> servers, int32_t unit, const std::vector<SynergySlice>& held) {
    SynergyJob job = Job(nullptr, 4);
    job.unit = unit;
    job.held = held;
    return Allocate(SynergyRule::kTune, servers, {job}).grants[0].slices;
  };
  const std::vector<SynergySlice> halves = {{1, 2}, {2, 2}};
  EXPECT_EQ(granted({Server(4), Server(2), Server(2)}, 1, halves), halves);
  EXPECT_EQ(granted({Server(4), Server(2), Server(2)}, 4, halves), On(0, 4)) << "a task is on one server";
  EXPECT_EQ(granted({Server(4), Server(2), Server(1)}, 1, halves), On(0, 4)) << "one of its GPUs is another's now";
  std::vector<SynergyServer> unlike = {Server(4), Server(2), Server(2)};
  unlike[2].kind = 7;
  EXPECT_EQ(granted(unlike, 1, halves), On(0, 4)) << "its servers are of two kinds";
}

TEST(SynergyOpt, SaysWhichLibraryIsMissingAndHowToGetIt) {
  const std::vector<SynergyServer> servers = {Server()};
  const std::vector<SynergyJob> jobs = {Job(nullptr)};
  const auto round = AllocateRound(SynergyRule::kOpt, {servers, {}, jobs}, {.lp_library = "/nowhere/libhorus_lp.so"});
  EXPECT_EQ(round.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(round.status().message()), HasSubstr("/nowhere/libhorus_lp.so"));
  EXPECT_THAT(std::string(round.status().message()), HasSubstr("coinor-libclp-dev"));
}

}  // namespace
}  // namespace horus
