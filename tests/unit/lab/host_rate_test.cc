// SPDX-License-Identifier: Apache-2.0
// The bound on the work rate where cores and host memory count: programs solved by hand, and what is left out of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "draw.h"
#include "lab/bound/work_rate.h"

namespace horus {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kExact = 1e-9;
constexpr int64_t kCore = 1000;

WorkRate Solve(const WorkProblem& problem, double bound = 1e9) {
  const auto rate = WorkRateBound(problem, {.slowdown_bound = bound});
  EXPECT_TRUE(rate.ok()) << rate.status();
  return rate.ok() ? *rate : WorkRate{};
}

HostsOfProfile OfCores(std::vector<std::pair<int64_t, double>> cells) {
  HostsOfProfile profile{.cells = {}, .best = 0};
  for (const auto& [cores, speed] : cells) {
    profile.cells.push_back({{cores * kCore, 1}, speed});
    profile.best = std::max(profile.best, speed);
  }
  return profile;
}

// One node of `gpus` GPUs with `cores` cores and 4 MiB each.
HostsOfType OneNode(int64_t gpus, int64_t cores) {
  const HostShare all = {gpus * cores * kCore, gpus * 4};
  return {static_cast<double>(all.cpu_milli), static_cast<double>(all.mem_mib), {cores * kCore, 4}, all};
}

// Profile 0 hungers for cores: its GPU could go twice as fast as at the fair share, 4 cores. Profile 1 needs one core.
// Both at their best halve each other.
WorkProblem HungryForCoresAndForGpu() {
  WorkProblem problem{.gpus = {4}, .mix = {1, 1}, .alone = {1, 1}, .pairs = {{0, 0, 1, 0.5, 0.5}}};
  problem.hosts =
      HostResources{.types = {OneNode(4, 4)}, .profiles = {OfCores({{2, 0.5}, {4, 1}, {8, 2}}), OfCores({{1, 1}})}};
  return problem;
}

TEST(HostRate, ThePairsThatMeasuredNothingToGainDoSoWhereOneWaitsForItsHost) {
  const WorkRate rate = Solve(HungryForCoresAndForGpu());
  EXPECT_THAT(rate.exclusive, DoubleNear(4, kExact));
  // With 8 cores profile 0 needs half the GPUs of profile 1: c = 4 / 3 of them, r = 2 * 2 c; 8 c + 8 / 3 of 16 cores.
  ASSERT_TRUE(rate.resizing && rate.both);
  EXPECT_THAT(rate.resizing->rate, DoubleNear(16.0 / 3, kExact));
  // Within 4 cores: 2 and 1. Busy for a quarter, profile 0 runs at min(0.5, 2 / (1 + 1)) and profile 1 at
  // 1 / (1 + 0.25) = 0.8. p of 4 GPUs share, the others run profile 0 at 1: 0.5 p + 4 - p = 0.8 p, p = 4 / 1.3.
  EXPECT_THAT(rate.bound, DoubleNear(1.6 * 4 / 1.3, kExact));
  // 4 cores and 1: profile 0 at min(1, 2 / 2), profile 1 at 1 / 1.5, and profile 1 alone: p = 2 / 3 p + 4 - p, p = 3.
  EXPECT_THAT(rate.both->rate, DoubleNear(6, kExact));
  ASSERT_EQ(rate.both->uses.size(), 2);
  EXPECT_THAT(rate.both->uses[0].gpus, DoubleNear(3, kExact));
}

TEST(HostRate, CoresHaveAPriceWhereTheyAreScarce) {
  // x of 2 GPUs run with 8 cores, the others with 2: 8 x + 2 (2 - x) = 8, x = 2 / 3.
  WorkProblem problem{.gpus = {2}, .mix = {1}, .alone = {1}, .pairs = {}};
  problem.hosts = HostResources{.types = {OneNode(2, 4)}, .profiles = {OfCores({{2, 0.8}, {8, 1}})}};
  const WorkRate rate = Solve(problem);
  EXPECT_THAT(rate.exclusive, DoubleNear(1.6, kExact));
  EXPECT_EQ(rate.bound, rate.exclusive);
  EXPECT_THAT(rate.resizing->rate, DoubleNear(2.0 / 3 + 0.8 * 4 / 3, kExact));
  // Six cores more bring 0.2; what 2 cores bring beyond their price is the GPU's rental.
  EXPECT_THAT(rate.resizing->cpu_prices, ElementsAre(DoubleNear(0.2 / 6 / kCore, kExact)));
  EXPECT_THAT(rate.resizing->mem_prices, ElementsAre(DoubleNear(0, kExact)));
  EXPECT_THAT(rate.resizing->rentals, ElementsAre(DoubleNear(0.8 - 2 * 0.2 / 6, kExact)));
  EXPECT_EQ(rate.both->rate, rate.resizing->rate);
}

TEST(HostRate, NoJobHoldsMoreThanANodeHas) {
  WorkProblem problem{.gpus = {2}, .mix = {1}, .alone = {1}, .pairs = {}};
  problem.hosts = HostResources{.types = {OneNode(2, 4)}, .profiles = {OfCores({{2, 0.8}, {8, 1}})}};
  problem.hosts->types[0].most.cpu_milli = 4 * kCore;  // two nodes
  EXPECT_THAT(Solve(problem).resizing->rate, DoubleNear(1.6, kExact));
}

TEST(HostRate, MemoryIsARowBesideCores) {
  // 5 MiB speed a job up, of 8 MiB on 2 GPUs: with 1 and 5 MiB one GPU each, y = 7 / 4 of them have both.
  WorkProblem problem{.gpus = {2}, .mix = {1}, .alone = {1}, .pairs = {}};
  problem.hosts =
      HostResources{.types = {OneNode(2, 4)}, .profiles = {{.cells = {{{kCore, 1}, 0.5}, {{kCore, 5}, 1}}, .best = 1}}};
  const WorkRate rate = Solve(problem);
  EXPECT_THAT(rate.exclusive, DoubleNear(1, kExact));
  EXPECT_THAT(rate.resizing->rate, DoubleNear(1.5 + 0.25, kExact));  // 5 x + (2 - x) = 8, x = 1.5
  EXPECT_THAT(rate.resizing->mem_prices, ElementsAre(DoubleNear(0.125, kExact)));
}

TEST(HostRate, ABoundCountsTheSlowdownThatWaitingLeaves) {
  // Measured at their best both are slowed twofold. Beside profile 0, busy for a quarter, profile 1 loses a quarter.
  const WorkProblem problem = HungryForCoresAndForGpu();
  EXPECT_THAT(Solve(problem, 1.25).bound, DoubleNear(1.6 * 4 / 1.3, kExact));
  EXPECT_EQ(Solve(problem, 1.24).bound, Solve(problem, 1.24).exclusive);
}

TEST(HostRate, WithoutSensitiveProfilesAllIsAsWithoutHosts) {
  WorkProblem problem{.gpus = {4, 3}, .mix = {3, 1, 2}, .alone = {1, 2, 3, 2, 1, 1}, .pairs = {}};
  problem.pairs = {{0, 0, 1, 0.8, 0.7}, {0, 1, 1, 0.6, 0.6, 2}, {1, 0, 2, 1.1, 0.4}, {1, 1, 2, 0.5, 0.5}};
  for (const double bound : {1.5, 1e9}) {
    WorkProblem with = problem;
    with.hosts = HostResources{.types = {OneNode(4, 1), OneNode(3, 0)}, .profiles = {{}, {}, {}}};
    const WorkRate before = Solve(problem, bound), after = Solve(with, bound);
    EXPECT_EQ(after.exclusive, before.exclusive);
    EXPECT_EQ(after.bound, before.bound);
    EXPECT_EQ(after.uses, before.uses);
    EXPECT_EQ(after.prices, before.prices);
    EXPECT_FALSE(before.resizing || before.both);
    EXPECT_THAT(after.resizing->rate, DoubleNear(before.exclusive, kExact));
    EXPECT_THAT(after.both->rate, DoubleNear(before.bound, kExact));
  }
}

// Cells that more cores and memory make faster, above 0; pairs that slow each other at random.
WorkProblem Drawn(uint64_t seed) {
  uint64_t drawn = seed * 1000;
  const auto draw = [&drawn] { return Draw(drawn++); };
  constexpr uint32_t kProfiles = 4;
  WorkProblem problem{.gpus = {3, 5}, .mix = {}, .alone = {}, .pairs = {}};
  problem.hosts = HostResources{.types = {OneNode(3, 3), OneNode(5, 4)}, .profiles = {}};
  for (uint32_t k = 0; k < kProfiles; ++k) {
    problem.mix.push_back(0.1 + draw());
    HostsOfProfile hosts{.cells = {}, .best = 0};
    const double most = 1 + draw();
    for (int64_t cores = 1; cores <= 6 && k > 0; ++cores) {
      for (const int64_t mib : {1, 3, 6}) {
        const double speed = std::min(most, 0.3 * static_cast<double>(cores) + 0.1 * static_cast<double>(mib));
        hosts.cells.push_back({{cores * kCore, mib}, speed});
        hosts.best = std::max(hosts.best, speed);
      }
    }
    if (k > 0) hosts.best *= 1 + draw() / 4;  // measured on other nodes
    problem.hosts->profiles.push_back(hosts);
  }
  for (uint32_t gpu = 0; gpu < 2; ++gpu) {
    for (uint32_t a = 0; a < kProfiles; ++a) problem.alone.push_back(0.5 + draw());
    for (uint32_t a = 0; a < kProfiles; ++a) {
      for (uint32_t b = a; b < kProfiles; ++b) {
        problem.pairs.push_back({gpu, a, b, 0.3 + 0.8 * draw(), 0.3 + 0.8 * draw()});
      }
    }
  }
  return problem;
}

// Every way of one GPU, none left out, by the rule of Truth::SharesOfHosts.
std::vector<Way> AllWays(const WorkProblem& problem) {
  const auto cells_of = [&](uint32_t k) {
    const auto& cells = problem.hosts->profiles[k].cells;
    return cells.empty() ? std::vector<HostChoice>{{{}, 1}} : cells;
  };
  const auto best_of = [&](uint32_t k) {
    return problem.hosts->profiles[k].cells.empty() ? 1.0 : problem.hosts->profiles[k].best;
  };
  std::vector<Way> ways = WaysAlone(problem, problem.mix, HostLimit::kNode);
  for (const PairSpeed& pair : problem.pairs) {
    const double* const alone = &problem.alone[pair.gpu * problem.mix.size()];
    for (const HostChoice& a : cells_of(pair.a)) {
      for (const HostChoice& b : cells_of(pair.b)) {
        const HostShare held = {a.share.cpu_milli + b.share.cpu_milli, a.share.mem_mib + b.share.mem_mib};
        if (!IsWithin(held, problem.hosts->types[pair.gpu].most)) continue;
        const double busy_a = a.speed / best_of(pair.a), busy_b = b.speed / best_of(pair.b);
        const auto speed = [](double host, double best, double share, double other) {
          return std::min(host, best / (1 + other * (1 / std::min(1.0, share) - 1)));
        };
        ways.push_back({.gpu = pair.gpu,
                        .a = pair.a,
                        .b = pair.b,
                        .rate_a = alone[pair.a] * speed(a.speed, best_of(pair.a), pair.speed_a, busy_b),
                        .rate_b = alone[pair.b] * speed(b.speed, best_of(pair.b), pair.speed_b, busy_a),
                        .cpu_milli = static_cast<double>(held.cpu_milli),
                        .mem_mib = static_cast<double>(held.mem_mib)});
      }
    }
  }
  return ways;
}

TEST(HostRate, EachFigureIsAtLeastThoseOfFewerWays) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const WorkRate rate = Solve(Drawn(seed));
    ASSERT_TRUE(rate.resizing && rate.both);
    EXPECT_GE(rate.bound, rate.exclusive);
    EXPECT_GE(rate.resizing->rate, rate.exclusive);
    EXPECT_GE(rate.both->rate, std::max(rate.bound, rate.resizing->rate));
    EXPECT_GT(rate.both->rate, std::max(rate.bound, rate.resizing->rate) * 1.001) << seed;
  }
}

TEST(HostRate, NoWayThatIsLeftOutIsWorthMoreThanWhatItUses) {
  size_t all = 0, kept = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const WorkProblem problem = Drawn(seed);
    const WorkRate rate = Solve(problem);
    ASSERT_TRUE(rate.both);
    const std::vector<Way> ways = AllWays(problem);
    for (const Way& way : ways) {
      const double pays = rate.both->rentals[way.gpu] + way.cpu_milli * rate.both->cpu_prices[way.gpu] +
                          way.mem_mib * rate.both->mem_prices[way.gpu];
      EXPECT_LE(way.Worth(rate.both->prices), pays * (1 + 1e-6)) << seed;
    }
    std::vector<Way> listed = WaysAlone(problem, problem.mix, HostLimit::kNode);
    AddWaysTogether(problem, problem.mix, 1e9, HostLimit::kNode, listed);
    all += ways.size();
    kept += listed.size();
  }
  EXPECT_LT(kept, all * 3 / 4);  // some are left out
}

TEST(HostRate, UsefulCellsComeFromTheMatrix) {
  const auto matrix = Sensitivity::Create({1000, 2000, 4000}, {10, 20}, std::vector<float>{0.5, 0.5, 1, 1, 1, 2});
  ASSERT_TRUE(matrix.ok());
  const HostResources hosts = MakeHostResources(
      {{.cpu_milli = 4000, .mem_mib = 40, .fair = {500, 10}, .most = {4000, 40}}}, {{SharedSensitivity(*matrix), {}}});
  ASSERT_EQ(hosts.profiles.size(), 2);
  EXPECT_EQ(hosts.profiles[0].best, 2);
  // Less than was measured, which the fair share is, counts as the least that was.
  EXPECT_THAT(hosts.profiles[0].cells, ElementsAre(HostChoice{{1000, 10}, 0.5}, HostChoice{{2000, 10}, 1},
                                                   HostChoice{{4000, 20}, 2}, HostChoice{{500, 10}, 0.5}));
  EXPECT_TRUE(hosts.profiles[1].cells.empty());
}

TEST(HostRate, RefusesWhatIsNoProblem) {
  const auto refusal = [](auto change) {
    WorkProblem problem = HungryForCoresAndForGpu();
    change(problem);
    return WorkRateBound(problem).status();
  };
  const absl::Status fewer = refusal([](WorkProblem& p) { p.hosts->profiles.pop_back(); });
  EXPECT_THAT(std::string(fewer.message()), HasSubstr("expected 1 GPU types and 2 profiles"));
  const absl::Status many = refusal([](WorkProblem& p) {
    p.hosts->profiles = {OfCores({}), OfCores({})};
    for (HostsOfProfile& profile : p.hosts->profiles) {
      profile.best = 1;
      for (int64_t i = 1; i <= 2001; ++i) profile.cells.push_back({{i, 1}, static_cast<double>(i) / 2001});
    }
  });
  EXPECT_EQ(many.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(many.message()), HasSubstr("fewer cells or fewer profiles"));
}

}  // namespace
}  // namespace horus
