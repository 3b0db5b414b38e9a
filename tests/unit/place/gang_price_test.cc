// SPDX-License-Identifier: Apache-2.0
// What a gang costs whose GPUs wait for the slowest, by hand and beside every choice.
#include <gmock/gmock.h>

#include <algorithm>
#include <limits>

#include "base/hash.h"
#include "fixtures.h"
#include "place/search/gang.h"

namespace horus {
namespace {

using testing::ElementsAre;
using testing_place::Decide;
using testing_place::Gang;
using testing_place::OneGpu;
using testing_place::V100Node;

constexpr GangPace kSilent = {};

std::vector<int32_t> DevicesOf(std::span<const PricedGpu> gpus) {
  std::vector<int32_t> devices;
  for (const PricedGpu& gpu : gpus) devices.push_back(gpu.device);
  std::sort(devices.begin(), devices.end());
  return devices;
}

TEST(GangPrice, CountsTheSlowestForEachGpu) {
  // Work of 1 and 0.5; the second GPU's neighbours lose 0.1.
  const std::vector<PricedGpu> gpus = {{-1, 0, 0, 1}, {-0.4, 1, 0, 0.5}};
  const GangPrice price = PriceGang(gpus, kSilent);
  EXPECT_DOUBLE_EQ(price.cost, -2 * 0.5 + 0.1);
  EXPECT_DOUBLE_EQ(price.straggler, 0.5);
  EXPECT_EQ(price.sent, 0);
}

TEST(GangPrice, AGangThatSendsWaitsForTheLinksToo) {
  const std::vector<PricedGpu> gpus = {{-1, 0, 0, 1}, {-0.5, 1, 0, 0.5}};  // slowed by 1 and 2
  const GangPrice price = PriceGang(gpus, {.speed = 1, .communication = 0.5});
  EXPECT_DOUBLE_EQ(price.cost, -2 / 2.5);
  EXPECT_DOUBLE_EQ(price.sent, (1 - 1 / 1.5) + (0.5 - 1 / 2.5));
  EXPECT_DOUBLE_EQ(price.straggler, 1 / 1.5 - 1 / 2.5);
}

TEST(GangPrice, SumsTheGpusOfPoliciesThatNameNoWork) {
  const std::vector<PricedGpu> gpus = {{3, 0, 0, 0}, {4, 1, 0, 0}};
  EXPECT_EQ(PriceGang(gpus, kSilent).cost, 7);
  EXPECT_EQ(PriceGang(gpus, kSilent).straggler, 0);
}

TEST(GangPrice, AGpuThatSlowsAllIsNotTaken) {
  // Alone each costs less the faster it runs, but 2 holds the others up by more than 3 takes from its neighbours.
  const std::vector<PricedGpu> gpus = {{-1, 0, 0, 1}, {-1, 1, 0, 1}, {-0.7, 2, 0, 0.7}, {-0.65, 3, 0, 1}};
  const GangOffer offer{gpus, 3};
  std::vector<PricedGpu> chosen;
  const GangPrice price = CheapestGang({&offer, 1}, kSilent, chosen);
  EXPECT_THAT(DevicesOf(chosen), ElementsAre(0, 1, 3));
  EXPECT_DOUBLE_EQ(price.cost, -3 + 0.35);
  EXPECT_EQ(price.straggler, 0);
}

TEST(GangPrice, WhoeverIsHeldUpAnywayTakesGpusThatHurtNobody) {
  // 0 must be taken and is slow: 2, as slow and alone, then beats 1, which is fast and takes 0.2 from others.
  const std::vector<PricedGpu> first = {{-0.5, 0, 0, 0.5}};
  const std::vector<PricedGpu> second = {{-0.8, 1, 0, 1}, {-0.5, 2, 0, 0.5}};
  const std::vector<GangOffer> offers = {{first, 1}, {second, 1}};
  std::vector<PricedGpu> chosen;
  EXPECT_DOUBLE_EQ(CheapestGang(offers, kSilent, chosen).cost, -1);
  EXPECT_THAT(DevicesOf(chosen), ElementsAre(0, 2));
}

TEST(GangPrice, TheCheapestGangIsTheCheapestOfAll) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    uint64_t state = Mix64(seed);
    const auto draw = [&state](uint64_t limit) { return (state = Mix64(state)) % limit; };
    const GangPace pace{.speed = 1, .communication = seed % 2 == 0 ? 0 : 0.1 * static_cast<double>(draw(20))};
    std::vector<PricedGpu> gpus;
    for (int32_t i = 0; i < 8; ++i) {
      const double own_work = 1 / (1 + 0.25 * static_cast<double>(draw(5)));
      gpus.push_back({-own_work + 0.1 * static_cast<double>(draw(8)), i, 0, own_work});
    }
    std::sort(gpus.begin(), gpus.begin() + 4, [](const auto& a, const auto& b) { return a.cost < b.cost; });
    std::sort(gpus.begin() + 4, gpus.end(), [](const auto& a, const auto& b) { return a.cost < b.cost; });
    const std::vector<GangOffer> offers = {{std::span(gpus).first(4), 1 + draw(4)},
                                           {std::span(gpus).subspan(4), 1 + draw(4)}};
    double best = std::numeric_limits<double>::infinity();
    for (uint32_t set = 0; set < 1u << gpus.size(); ++set) {
      if (static_cast<size_t>(__builtin_popcount(set & 15u)) != offers[0].wanted) continue;
      if (static_cast<size_t>(__builtin_popcount(set >> 4)) != offers[1].wanted) continue;
      double rest = 0;
      double slowest = 1;
      for (size_t i = 0; i < gpus.size(); ++i) {
        if ((set >> i & 1u) == 0) continue;
        rest += gpus[i].cost + gpus[i].own_work;
        slowest = std::min(slowest, gpus[i].own_work);
      }
      best = std::min(best, rest - __builtin_popcount(set) / (1 / slowest + pace.communication));
    }
    std::vector<PricedGpu> chosen;
    const GangPrice price = CheapestGang(offers, pace, chosen);
    EXPECT_NEAR(price.cost, best, 1e-12);
    EXPECT_EQ(chosen.size(), offers[0].wanted + offers[1].wanted);
    EXPECT_EQ(PriceGang(chosen, pace).cost, price.cost);
  }
}

double Term(const Decision& decision, std::string_view name) {
  double value = 0;
  for (const CostTerm& term : decision.winner.terms) value += term.name == name ? term.value : 0;
  return value;
}

// Four GPUs, two of them idle; a gang of 3 at 60 %. With one resident of 70 % it and the resident are slowed by 1.3;
// with one of 60 % by 1.2.
TEST(HorusGang, WaitsForTheSlowestGpu) {
  Cluster cluster(Catalogue::Default());
  ASSERT_TRUE(cluster.AddNode(V100Node(1, 4)).ok());
  ASSERT_TRUE(cluster.Adopt(OneGpu(100, 70), std::vector<Slot>{{1, 0, 0}}).ok());
  ASSERT_TRUE(cluster.Adopt(OneGpu(101, 60), std::vector<Slot>{{1, 3, 0}}).ok());
  const Decision decision = Decide(cluster, Gang(1, 1, 3, 60));
  ASSERT_EQ(decision.verdict, Verdict::kPlace);
  EXPECT_EQ(decision.slots, (Slots{{1, 1, 0}, {1, 2, 0}, {1, 3, 0}}));
  EXPECT_NEAR(Term(decision, "straggler"), 2 * (1 - 1 / 1.2), 1e-6);
  EXPECT_NEAR(Term(decision, "newcomer_work") + Term(decision, "straggler"), -3 / 1.2, 1e-6);
  EXPECT_NEAR(Term(decision, "neighbours_loss"), 1 - 1 / 1.2, 1e-6);
  double sum = 0;
  for (const CostTerm& term : decision.winner.terms) sum += term.value;
  EXPECT_NEAR(sum, decision.winner.cost, 1e-12);
}

// Nine GPUs, a gang of 8 at 60 %. Beside one resident of 70 % both are slowed by 1.3, which alone costs -1/1.3 + (1 -
// 1/1.3) = -0.54; beside 35 % and 30 % all are by 1.25, which alone costs -1/1.25 + 2 (1 - 1/1.25) = -0.4. But the gang
// loses 8 (1/1.25 - 1/1.3) = 0.25 by the former.
TEST(HorusGang, LeavesAloneTheGpuThatWouldHoldItUp) {
  Cluster cluster(Catalogue::Default());
  ASSERT_TRUE(cluster.AddNode(V100Node(1, 9)).ok());
  ASSERT_TRUE(cluster.Adopt(OneGpu(100, 70), std::vector<Slot>{{1, 0, 0}}).ok());
  ASSERT_TRUE(cluster.Adopt(OneGpu(101, 35), std::vector<Slot>{{1, 1, 0}}).ok());
  ASSERT_TRUE(cluster.Adopt(OneGpu(102, 30), std::vector<Slot>{{1, 1, 0}}).ok());
  for (const auto& [tasks, gpus] : {std::pair(1, 8), std::pair(8, 1)}) {
    const Decision decision = Decide(cluster, Gang(1, tasks, gpus, 60));
    ASSERT_EQ(decision.verdict, Verdict::kPlace);
    EXPECT_EQ(decision.slots.front().device, 1);
    EXPECT_NEAR(Term(decision, "newcomer_work") + Term(decision, "straggler"), -8 / 1.25, 1e-5);
  }
  const Decision one = Decide(cluster, Gang(1, 1, 1, 60));
  EXPECT_EQ(Term(one, "straggler"), 0);
}

// Two nodes hold the gang only with the GPUs in use, which slow all of it by 1.3: 8/1.3 - 2 (1 - 1/1.3) = 5.7 of work;
// on three nodes it works alone.
TEST(HorusGang, SpreadsFurtherWhereThatIsWorthTheLinks) {
  Cluster cluster(Catalogue::Default());
  for (NodeId id = 1; id <= 3; ++id) {
    ASSERT_TRUE(cluster.AddNode(V100Node(id, 4)).ok());
    ASSERT_TRUE(cluster.Adopt(OneGpu(100 + id, 70), std::vector<Slot>{{id, 0, 0}}).ok());
  }
  JobSpec gang = Gang(1, 8, 1, 60);
  const auto nodes_of = [&] {
    std::vector<NodeId> nodes;
    for (const Slot& slot : Decide(cluster, gang).slots) nodes.push_back(slot.node);
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    return nodes.size();
  };
  EXPECT_EQ(nodes_of(), 2u);  // nobody says what the links cost
  gang.demands[0].demand.step_time_us = {100'000, 100'000};
  gang.demands[0].demand.gradient_mib = 10;
  EXPECT_EQ(nodes_of(), 3u);
  EXPECT_EQ(Term(Decide(cluster, gang), "straggler"), 0);
}

}  // namespace
}  // namespace horus
