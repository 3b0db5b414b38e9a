// SPDX-License-Identifier: Apache-2.0
// What a job loses on a slice of a GPU: the capacity rule of MIG instances.
//
// Enters:  the job's utilisation of the whole GPU and the share of its compute that the slice has.
// Leaves:  its utilisation of the slice; its speed there relative to the whole GPU.
// Units:   per cent 0-100; shares and speeds 0-1.
// Cost:    a division.                    Thread class: pure functions.
#ifndef HORUS_INTERFERENCE_SLICE_H_
#define HORUS_INTERFERENCE_SLICE_H_

#include <algorithm>

namespace horus {

// A job that keeps a whole GPU busy u % of the time needs u/100 of it; a slice with the share s of its compute
// gives at most s. Against the public iteration times of an A100 (113 points of MISO, SoCC 2022, medians over
// 1-4 of 7 slices) the mean absolute error of the speed is 0.12; that of "speed = share" is 0.24.
[[nodiscard]] inline double SliceUtilPct(double util_pct, double share) { return std::min(100.0, util_pct / share); }

[[nodiscard]] inline double SliceSpeed(double util_pct, double share) {
  return util_pct > 100.0 * share ? 100.0 * share / util_pct : 1.0;
}

}  // namespace horus

#endif  // HORUS_INTERFERENCE_SLICE_H_
