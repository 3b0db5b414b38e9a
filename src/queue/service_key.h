// SPDX-License-Identifier: Apache-2.0
// ServiceKey: a place in a service order that no event but a change of the job moves.
//
// Enters:  a job and its rank in the discipline, smaller first.
// Leaves:  keys whose < is the service order: priority, rank, submission time, id.
// Units:   ranks are unsigned images of numbers in the discipline's own unit.
// Cost:    32 bytes.                     Thread class: values, share freely.
#ifndef HORUS_QUEUE_SERVICE_KEY_H_
#define HORUS_QUEUE_SERVICE_KEY_H_

#include <bit>
#include <compare>
#include <cstdint>
#include <limits>

#include "queue/queued_job.h"

namespace horus {

struct ServiceKey {
  int32_t not_priority = 0;  // ~priority: falls as priority rises, without overflow
  uint64_t rank = 0;
  int64_t submit_us = 0;
  uint64_t id = 0;
  friend auto operator<=>(const ServiceKey&, const ServiceKey&) = default;
};

[[nodiscard]] inline ServiceKey KeyOf(const QueuedJob& job, uint64_t rank) {
  return {~job.priority, rank, job.submit_us, job.id};
}

inline constexpr uint64_t kLastRank = std::numeric_limits<uint64_t>::max();

// Images that keep the order.
[[nodiscard]] constexpr uint64_t RankOf(int64_t value) { return static_cast<uint64_t>(value) ^ (uint64_t{1} << 63); }
// `value` not NaN; -0 counts as 0.
[[nodiscard]] inline uint64_t RankOf(double value) {
  const auto bits = std::bit_cast<uint64_t>(value + 0.0);
  const uint64_t sign = uint64_t{1} << 63;
  return (bits & sign) != 0 ? ~bits : bits | sign;
}

}  // namespace horus

#endif  // HORUS_QUEUE_SERVICE_KEY_H_
