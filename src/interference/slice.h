// SPDX-License-Identifier: Apache-2.0
// What a job loses on a slice of a GPU, such as a MIG instance.
//
// Enters:  the job's utilisation of the whole GPU and of its memory bandwidth, and the share of its compute that the
// slice has. Leaves:  its utilisation of the slice; its speed there relative to the whole GPU. Units:   per cent 0-100;
// shares and speeds 0-1. Cost:    a division or two.              Thread class: pure functions.
#ifndef HORUS_INTERFERENCE_SLICE_H_
#define HORUS_INTERFERENCE_SLICE_H_

#include <algorithm>

namespace horus {

// A job that keeps a whole GPU busy u % of the time asks for u/100 of it; a slice with the share s of its compute gives
// at most s. Cautious: a kernel that fills only part of the GPU keeps a slice busy for less.
[[nodiscard]] inline double SliceUtilPct(double util_pct, double share) { return std::min(100.0, util_pct / share); }

// How much of a step takes longer on a slice: a share of the busy time, and more of it the more memory traffic says
// that kernels fill the GPU. Fitted to the public iteration times of an A100 (MISO, SoCC 2022: 113 points of 8 nets on
// 1-4 of 7 slices); see "MIG" in docs/interference.md.
inline constexpr double kBusyScaling = 0.2;
inline constexpr double kBandwidthScaling = 1.3;

// That part of the step takes 1 / share of its time, the rest as long as before. With the bandwidth unknown (0) the
// slice is only a capacity.
[[nodiscard]] inline double SliceSpeed(double util_pct, double mem_bw_util_pct, double share) {
  if (!(mem_bw_util_pct > 0)) return util_pct > 100.0 * share ? 100.0 * share / util_pct : 1.0;
  const double scaling = std::min(1.0, (kBusyScaling * util_pct + kBandwidthScaling * mem_bw_util_pct) / 100.0);
  return 1.0 / (1.0 + scaling * (1.0 / share - 1.0));
}

}  // namespace horus

#endif  // HORUS_INTERFERENCE_SLICE_H_
