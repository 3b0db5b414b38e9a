// SPDX-License-Identifier: Apache-2.0
// Draws: numbers that a seed decides, equal on every machine; std:: distributions differ between standard libraries.
//
// Enters:  a seed.   Leaves: 64 bits at a time, numbers below a limit, normal ones, exponential times.
// Cost:    1 ns; 15 ns an exponential.   Thread class: one thread at a time.
#pragma once

#include <cmath>
#include <numbers>

#include "base/hash.h"

namespace horus {

// Uniform in [0, 1), in steps of 2^-53, by the upper bits of a draw or hash.
[[nodiscard]] constexpr double UnitOf(uint64_t draw) { return static_cast<double>(draw >> 11) * 0x1p-53; }

// Standard normal, of two draws (Box and Muller 1958).
[[nodiscard]] inline double NormalOf(uint64_t a, uint64_t b) {
  constexpr double kHalfStep = 0x1p-54;  // so that numbers lie in (0, 1)
  return std::sqrt(-2 * std::log(UnitOf(a) + kHalfStep)) * std::cos(2 * std::numbers::pi * (UnitOf(b) + kHalfStep));
}

// SplitMix64 (Steele et al. 2014), period 2^64.
class Draws {
 public:
  explicit constexpr Draws(uint64_t seed) : state_(seed) {}

  [[nodiscard]] constexpr uint64_t Next() {
    const uint64_t value = Mix64(state_);
    state_ += kStep;
    return value;
  }

  // Uniform from 0 to below `limit`, which is above 0, but for limit / 2^64.
  [[nodiscard]] constexpr uint64_t Below(uint64_t limit) { return High(Next(), limit); }

  // Exponential with that mean, rounded down, in integers alone (von Neumann 1951): runs of falling uniform numbers, of
  // which the first of odd length starts with the fraction, and those before count the whole part.
  [[nodiscard]] constexpr uint64_t Exponential(uint64_t mean) {
    for (uint64_t whole = 0;; ++whole) {
      const uint64_t first = Next();
      uint64_t last = first;
      bool odd = true;
      for (uint64_t next = Next(); next <= last; next = Next()) {
        last = next;
        odd = !odd;
      }
      if (odd) return whole * mean + High(first, mean);
    }
  }

 private:
  static constexpr uint64_t kStep = 0x9E3779B97F4A7C15u;
  __extension__ typedef unsigned __int128 Wide;
  [[nodiscard]] static constexpr uint64_t High(uint64_t a, uint64_t b) {
    return static_cast<uint64_t>((static_cast<Wide>(a) * b) >> 64);
  }

  uint64_t state_;
};

}  // namespace horus
