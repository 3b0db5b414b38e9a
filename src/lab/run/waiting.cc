// SPDX-License-Identifier: Apache-2.0
// Delays by sharing against the delay by waiting.
#include "lab/run/waiting.h"

namespace horus {

bool WaitingIsBetter(const SharingOffer& offer, const WaitOutlook& outlook) {
  double longest_us = 0, lost_us = 0;
  for (const SharingNeighbour& one : offer.neighbours) {
    const double shared_us = std::min({offer.left_us * offer.slowdown, one.left_us * one.after, outlook.apart_us});
    longest_us = std::max(longest_us, shared_us);
    lost_us += shared_us * (1 / one.before - 1 / one.after);
  }
  lost_us += longest_us * (1 - 1 / offer.slowdown);
  return lost_us > outlook.idle_us;
}

}  // namespace horus
