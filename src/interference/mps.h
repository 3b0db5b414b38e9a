// SPDX-License-Identifier: Apache-2.0
// What two jobs cost each other under MPS, where kernels run side by side as long as SMs are free.
//
// Enters:  a job's demand and the share of the compute that its device has; later two such fills.
// Leaves:  how far its kernels fill the device; a slowdown.
// Units:   fills 0-1; slowdown = shared / alone.
// Cost:    a few powers.                 Thread class: pure functions.
#ifndef HORUS_INTERFERENCE_MPS_H_
#define HORUS_INTERFERENCE_MPS_H_

#include <algorithm>
#include <cmath>

#include "interference/slice.h"
#include "interference/theory.h"
#include "predict/demand.h"

namespace horus {

// Fitted to equal copies of seven nets, inference, under MPS on slices of an A100 (ParvaGPU, SC 2024):
// `scripts/bench mps`; docs/interference.md, "MPS", says how well.
inline constexpr double kMpsLeastExcess = 0.02;  // of a pair that leaves each other room
inline constexpr double kMpsFullExcess = 0.9;    // beside that, where both fill the device
inline constexpr double kMpsHostUs = 26;  // SM time of an operator that fills half: what the host takes to send one
inline constexpr double kMpsSteepness = 4;

// What copies of a job would cost each other of all that they could, 0-1. A device is full while operators take it
// longer than the host takes to send them. What an operator takes is its time on all SMs; of one that leaves SMs idle,
// so much less. More than under time slicing (theory.h) copies do not cost each other: by how busy the job keeps the
// device. That alone stands where operator times are unknown.
[[nodiscard]] inline double MpsFill(const Demand& demand, double share) {
  const double busy = SliceUtilPct(static_cast<double>(demand.gpu_util_pct.estimate), share) / 100;
  const double in_turns = std::pow(busy, 1 + kVictimShare);
  const double parallelism = demand.traits[static_cast<size_t>(Trait::kMeanParallelism)];
  const double operator_us =
      static_cast<double>(demand.operator_us) * (parallelism > 0 ? std::min(parallelism, 1.0) : 1) / share;
  if (!(operator_us > 0)) return in_turns;
  return std::min(in_turns, 1 / (1 + std::pow(kMpsHostUs / operator_us, kMpsSteepness)));
}

// The other counts twice as much as the victim, as under time slicing; of copies this is their fill. Nobody has
// published pairs of different jobs.
[[nodiscard]] inline double MpsSlowdown(double victim_fill, double other_fill) {
  constexpr double kOther = 1 / (1 + kVictimShare);
  return 1 + kMpsLeastExcess + kMpsFullExcess * std::pow(victim_fill, 1 - kOther) * std::pow(other_fill, kOther);
}

}  // namespace horus

#endif  // HORUS_INTERFERENCE_MPS_H_
