// SPDX-License-Identifier: Apache-2.0
// Which cores and host memory are worth giving to whom, where jobs share GPUs.
//
// Enters:  jobs with sensitivities, and how long the GPU takes for their steps beside others.
// Leaves:  shares per GPU: those worth trying for a newcomer; of a node's users the division that does most work.
// Units:   per GPU of a job: thousandths of a core, MiB; work, 0-1: speed / speed alone on the GPU with all it can use.
// Cost:    of a division O(users^2 x choices^2).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "place/job/job.h"
#include "place/job/sensitivity.h"

namespace horus {

// A job that may hold more or less.
struct HostUser {
  const Sensitivity* matrix = nullptr;
  double gpu_us = 0;    // of a step on its GPUs alone; 0 = unknown: then its best speed is taken for the GPU's
  double slowdown = 1;  // of its GPUs beside those who share them
  HostShare least;      // what it holds at least
  int32_t gpus = 1;     // that it has there
  double weight = 1;    // of a GPU's work
};

// Of one of its GPUs, given that much.
[[nodiscard]] double WorkWith(const HostUser& user, const HostShare& share);

// The least share for a job that may hold what it likes between `need` and `most`: `need`, or more where it would
// otherwise be slower than `bound` times as slow as with the fair share of a GPU, if the matrix knows such a share.
[[nodiscard]] HostShare LeastShare(const HostUser& user, const HostShare& need, const HostShare& fair,
                                   const HostShare& most, double bound);

// Shares from user.least to `most`, each faster than all smaller ones, the fastest first: at most `count` (from 2), of
// which the fastest is the smallest within kBestCellTolerance of the best, and the last is the least.
[[nodiscard]] std::vector<HostShare> SharesToTry(const HostUser& user, const HostShare& fair, const HostShare& most,
                                                 size_t count);

// By user: its least, and of `free`, which is left when all have that, to whom it does most work for its size, until
// nobody gains. `fair` measures sizes: cores and memory of a GPU's fair share weigh alike.
[[nodiscard]] std::vector<HostShare> DivideHost(std::span<const HostUser> users, HostShare free, const HostShare& fair);

}  // namespace horus
