// SPDX-License-Identifier: Apache-2.0
// KineticOrder at thousands of lines and times, forwards and backwards, against a look at all of them.
#include "queue/kinetic_order.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "draw.h"
#include "queue/queue.h"

namespace horus {
namespace {

int64_t Int(uint64_t seed, int64_t range) { return static_cast<int64_t>(Draw(seed) * static_cast<double>(range)); }

KineticLine RandomLine(uint64_t i, int64_t spread) {
  return {.not_priority = static_cast<int32_t>(Int(4 * i, 2)),
          .offset_us = Int(4 * i + 1, spread) - spread / 2,
          .ideal_us = Int(4 * i + 2, spread),
          .submit_us = Int(4 * i + 3, 3),
          .id = i};
}

TEST(KineticOrder, AgreesWithALookAtAllLinesAtAnyTime) {
  for (const int64_t spread : {int64_t{8}, int64_t{1000}, kMostQueueTimeUs}) {
    KineticOrder order;
    std::vector<KineticLine> lines;
    std::vector<bool> present;
    for (uint64_t i = 0; i < 700; ++i) {
      order.Reserve(static_cast<uint32_t>(i));
      lines.push_back(RandomLine(i, spread));
      present.push_back(true);
      order.Insert(static_cast<uint32_t>(i), lines.back());
      if (i % 3 == 1) {
        const auto gone = static_cast<size_t>(Int(90'000 + i, static_cast<int64_t>(i)));
        if (present[gone]) order.Erase(static_cast<uint32_t>(gone));
        present[gone] = false;
      }
      if (i % 5 == 2) {
        lines[i] = RandomLine(70'000 + i, spread);
        order.Change(static_cast<uint32_t>(i), lines[i]);
      }
      const int64_t now = Int(80'000 + i, 2 * spread) - spread;
      size_t best = lines.size();
      for (size_t j = 0; j < lines.size(); ++j) {
        if (present[j] && (best == lines.size() || GoesBefore(lines[j], lines[best], now))) best = j;
      }
      ASSERT_EQ(order.First(now), best) << "spread " << spread << ", step " << i;
    }
  }
}

TEST(KineticOrder, BeforeIsAStrictOrderAtAnyTime) {
  for (uint64_t i = 0; i < 3000; ++i) {
    const KineticLine a = RandomLine(3 * i, 6), b = RandomLine(3 * i + 1, 6), c = RandomLine(3 * i + 2, 6);
    const int64_t now = Int(i, 10) - 5;
    EXPECT_NE(GoesBefore(a, b, now), GoesBefore(b, a, now));
    EXPECT_FALSE(GoesBefore(a, a, now));
    if (GoesBefore(a, b, now) && GoesBefore(b, c, now)) {
      EXPECT_TRUE(GoesBefore(a, c, now)) << i;
    }
  }
}

}  // namespace
}  // namespace horus
