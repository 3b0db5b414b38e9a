// SPDX-License-Identifier: Apache-2.0
// The additive rule: sums, limits, and that neither order nor a further tenant can lower anything.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "draw.h"
#include "interference/laws.h"

namespace horus {
namespace {

std::vector<Slowdown> Combine(const std::vector<float>& pairs, const std::vector<float>& uppers, size_t count) {
  std::vector<Slowdown> out(count, Slowdown{-1, -1});
  std::vector<PairExcess> excesses;
  for (size_t i = 0; i < pairs.size(); ++i) excesses.push_back(CountExcess(pairs[i], uppers[i]));
  SumPairs(excesses, out);
  return out;
}

TEST(Combine, TheExcessesOfTheOthersAddUp) {
  const std::vector<float> pairs = {9, 1.5f, 1.25f, 2, 9, 1, 1.75f, 3, 9};
  const std::vector<float> uppers = {9, 2, 1.5f, 2.5f, 9, 1.5f, 2, 4, 9};
  EXPECT_EQ(Combine(pairs, uppers, 3), (std::vector<Slowdown>{{1.75f, 2.5f}, {2, 3}, {3.75f, 5}}));
}

TEST(Combine, ALoneTenantAndNoneAreUndisturbed) {
  EXPECT_EQ(Combine({7}, {7}, 1), (std::vector<Slowdown>{{1, 1}}));
  EXPECT_TRUE(Combine({}, {}, 0).empty());
}

TEST(Combine, AnswersStayWithinTheSeam) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Combine({1, 0.5f, 0.9f, 1}, {1, 0.1f, 0.95f, 1}, 2), (std::vector<Slowdown>{{1, 1}, {1, 1}}));
  EXPECT_EQ(Combine({1, 2, 1.5f, 1}, {1, 1.5f, kNan, 1}, 2), (std::vector<Slowdown>{{2, 2}, {1.5f, kMaxSlowdown}}));
  EXPECT_EQ(Combine({1, kNan, kInfinite, 1}, {1, 1, 1, 1}, 2),
            (std::vector<Slowdown>{{kMaxSlowdown, kMaxSlowdown}, {kMaxSlowdown, kMaxSlowdown}}));
  const std::vector<float> most(256, kMaxSlowdown);
  EXPECT_EQ(Combine(most, most, 16), std::vector<Slowdown>(16, Slowdown{kMaxSlowdown, kMaxSlowdown}));
}

struct Drawn {
  std::vector<float> pairs, uppers;
};

// Slowdowns of very different sizes, so that a float sum would show the order.
Drawn DrawPairs(size_t count, uint64_t seed) {
  Drawn drawn{std::vector<float>(count * count, 1), std::vector<float>(count * count, 1)};
  for (size_t i = 0; i < count * count; ++i) {
    drawn.pairs[i] = static_cast<float>(1 + std::exp(20 * Draw(seed * 1000 + i) - 12));
    drawn.uppers[i] = static_cast<float>(drawn.pairs[i] * (1 + Draw(seed * 1000 + 500 + i)));
  }
  return drawn;
}

TEST(Combine, NoOrderOfTheTenantsCanShow) {
  constexpr size_t kCount = 6;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Drawn drawn = DrawPairs(kCount, seed);
    const std::vector<Slowdown> expected = Combine(drawn.pairs, drawn.uppers, kCount);
    std::vector<size_t> order(kCount);
    std::iota(order.begin(), order.end(), size_t{0});
    for (int turn = 0; turn < 30; ++turn) {
      std::next_permutation(order.begin(), order.end());
      Drawn moved = drawn;
      for (size_t i = 0; i < kCount; ++i) {
        for (size_t j = 0; j < kCount; ++j) {
          moved.pairs[i * kCount + j] = drawn.pairs[order[i] * kCount + order[j]];
          moved.uppers[i * kCount + j] = drawn.uppers[order[i] * kCount + order[j]];
        }
      }
      const std::vector<Slowdown> found = Combine(moved.pairs, moved.uppers, kCount);
      for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(found[i], expected[order[i]]);
    }
  }
}

TEST(Combine, OneTenantMoreNeverLowersAnybodysSlowdown) {
  constexpr size_t kMost = 8;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Drawn drawn = DrawPairs(kMost, seed);
    std::vector<Slowdown> before;
    for (size_t count = 1; count <= kMost; ++count) {
      Drawn part{std::vector<float>(count * count), std::vector<float>(count * count)};
      for (size_t i = 0; i < count; ++i) {
        for (size_t j = 0; j < count; ++j) {
          part.pairs[i * count + j] = drawn.pairs[i * kMost + j];
          part.uppers[i * count + j] = drawn.uppers[i * kMost + j];
        }
      }
      const std::vector<Slowdown> after = Combine(part.pairs, part.uppers, count);
      for (size_t i = 0; i < before.size(); ++i) {
        EXPECT_GE(after[i].estimate, before[i].estimate);
        EXPECT_GE(after[i].upper, before[i].upper);
      }
      for (const Slowdown& slowdown : after) EXPECT_GE(slowdown.upper, slowdown.estimate);
      before = after;
    }
  }
}

}  // namespace
}  // namespace horus
