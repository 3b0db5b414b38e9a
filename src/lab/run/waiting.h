// SPDX-License-Identifier: Apache-2.0
// Whether a job that could share a GPU now had better wait for one that falls idle.
//
// Enters:  what sharing costs the tenants, what is left of them, and when GPUs would fall idle.
// Leaves:  yes or no.
// Units:   microseconds; slowdowns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace horus {

struct SharingNeighbour {
  double left_us = 0;  // of its work, alone
  double before = 1;   // slowdowns: without the newcomer, and with it
  double after = 1;
};

struct SharingOffer {
  double left_us = 0;  // of the newcomer's work, alone
  double slowdown = 1;
  std::span<const SharingNeighbour> neighbours;
};

struct WaitOutlook {
  double idle_us = 0;  // until enough GPUs fall idle for the job and those before it
  double apart_us = std::numeric_limits<double>::infinity();  // until one does for which nobody waits, so that tenants
                                                              // may move apart; infinite where nobody ever moves
};

// By how much everybody's completion is delayed, summed. Sharing with a neighbour lasts until one of the two is done or
// they move apart; each loses of that time the part that it does not work. Waiting costs the newcomer its wait.
[[nodiscard]] inline bool WaitingIsBetter(const SharingOffer& offer, const WaitOutlook& outlook) {
  double longest_us = 0, lost_us = 0;
  for (const SharingNeighbour& one : offer.neighbours) {
    const double shared_us = std::min({offer.left_us * offer.slowdown, one.left_us * one.after, outlook.apart_us});
    longest_us = std::max(longest_us, shared_us);
    lost_us += shared_us * (1 / one.before - 1 / one.after);
  }
  lost_us += longest_us * (1 - 1 / offer.slowdown);
  return lost_us > outlook.idle_us;
}

// ---- Who was refused a place since a job left: those that came since took room and made none, so nobody of them, and
// nobody like them, needs to be asked about again.

// `Kind`: what the placer sees of a job; equal where it cannot tell two apart.
template <typename Kind>
class RefusedJobs {
 public:
  [[nodiscard]] bool HasJob(uint64_t job) const { return std::binary_search(jobs_.begin(), jobs_.end(), job); }
  [[nodiscard]] bool HasKind(const Kind& kind) const { return std::ranges::find(kinds_, kind) != kinds_.end(); }
  void AddJob(uint64_t job) {
    const auto at = std::lower_bound(jobs_.begin(), jobs_.end(), job);
    if (at == jobs_.end() || *at != job) jobs_.insert(at, job);
  }
  void AddKind(const Kind& kind) {
    if (!HasKind(kind)) kinds_.push_back(kind);
  }
  void Clear() {
    jobs_.clear();
    kinds_.clear();
  }

 private:
  std::vector<uint64_t> jobs_;  // ascending
  std::vector<Kind> kinds_;
};

}  // namespace horus
