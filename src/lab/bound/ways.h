// SPDX-License-Identifier: Apache-2.0
// What one GPU may do: run a profile or a pair, where profiles are sensitive with each choice of cores and host memory.
//
// Enters:  a checked problem; whether jobs keep to the fair share of their GPU, and which slowdowns are admitted.
// Leaves:  ways, the columns of the linear program; of those that never help none.
// Cost:    of a pair the product of both profiles' choices, times their sum.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/bound/work_rate.h"

namespace horus {

struct Way {
  uint32_t gpu = 0, a = 0, b = WorkUse::kAlone;
  double rate_a = 0, rate_b = 0;      // work a second
  double cpu_milli = 0, mem_mib = 0;  // that its jobs hold together

  [[nodiscard]] double Worth(const std::vector<double>& prices) const {
    return rate_a * prices[a] + (b == WorkUse::kAlone ? 0 : rate_b * prices[b]);
  }
};

[[nodiscard]] std::vector<Way> WaysAlone(const WorkProblem& problem, const std::vector<double>& mix);
void AddWaysTogether(const WorkProblem& problem, const std::vector<double>& mix, double bound, std::vector<Way>& ways);

// ---- The same of a problem with hosts.

enum class HostLimit : uint8_t {
  kFairShare,  // all that run on a GPU hold together no more than its fair share
  kNode,       // no more than the largest node has; rows of the program bound the sum
};

[[nodiscard]] std::vector<Way> HostWaysAlone(const WorkProblem& problem, const std::vector<double>& mix,
                                             HostLimit limit);
void AddHostWaysTogether(const WorkProblem& problem, const std::vector<double>& mix, double bound, HostLimit limit,
                         std::vector<Way>& ways);

// How many of both there may be before those that never help are left out.
[[nodiscard]] double MostHostWays(const WorkProblem& problem);

}  // namespace horus
