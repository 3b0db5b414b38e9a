// SPDX-License-Identifier: Apache-2.0
// How work grows with its size: a ratio of processor times, which a busy machine hardly moves.
#ifndef HORUS_TESTS_UNIT_GRAPH_GROWTH_H_
#define HORUS_TESTS_UNIT_GRAPH_GROWTH_H_

#include <algorithm>
#include <ctime>
#include <limits>

namespace horus {

inline constexpr int kGrowth = 4;                // of the size
inline constexpr double kMostLinearGrowth = 10;  // of the time: linear work takes 4 times as long, quadratic 16 times

// Time of work(prepare(kGrowth * size)) over that of work(prepare(size)), each the least of three; preparing does not
// count.
template <typename Prepare, typename Work>
[[nodiscard]] double GrowthOf(int size, const Prepare& prepare, const Work& work) {
  const auto least = [&](int of) {
    const auto input = prepare(of);
    auto best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 3; ++i) {
      const std::clock_t start = std::clock();
      work(input);
      best = std::min(best, static_cast<double>(std::clock() - start));
    }
    return std::max(best, 1.0);
  };
  const double small = least(size);
  return least(kGrowth * size) / small;
}

}  // namespace horus

#endif  // HORUS_TESTS_UNIT_GRAPH_GROWTH_H_
