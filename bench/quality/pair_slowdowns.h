// SPDX-License-Identifier: Apache-2.0
// Measured slowdowns of pairs, one table per file and GPU type.
//
// Enters:  a folder of throughput files as src/lab/io/gavel_file.h reads them, at any depth.
// Leaves:  for each GPU of each file the jobs that ran with every other, and what each lost beside each.
// Units:   slowdown = speed alone / speed shared.
// Cost:    linear in the files.                Thread class: pure functions.
#ifndef HORUS_BENCH_QUALITY_PAIR_SLOWDOWNS_H_
#define HORUS_BENCH_QUALITY_PAIR_SLOWDOWNS_H_

#include <string>
#include <vector>

namespace horus::bench {

struct PairSlowdowns {
  std::string gpu;
  std::vector<std::string> jobs;
  std::vector<std::vector<double>> slowdown;  // [victim][other]; kNeverTogether where they did not run together
};
inline constexpr double kNeverTogether = 500;  // far beyond any bound, and within what a model takes

// Files that are no such table are passed over; jobs without a speed alone are left out.
[[nodiscard]] std::vector<PairSlowdowns> ReadPairSlowdowns(const std::string& folder);

// 16 jobs whose slowdowns follow a sum of two loads and a third that only some pairs feel; equal on every machine.
[[nodiscard]] PairSlowdowns MadeUpPairSlowdowns();

}  // namespace horus::bench

#endif  // HORUS_BENCH_QUALITY_PAIR_SLOWDOWNS_H_
