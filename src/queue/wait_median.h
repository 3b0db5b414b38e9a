// SPDX-License-Identifier: Apache-2.0
// WaitMedian: the median submission time of a changing set of jobs.
//
// Enters:  slots with their submission time and id.
// Leaves:  the median: of an even number the mean of the middle two, rounded down.
// Units:   microseconds.
// Cost:    O(log n) a change; only Reserve allocates.   Thread class: value with one writer.
#ifndef HORUS_QUEUE_WAIT_MEDIAN_H_
#define HORUS_QUEUE_WAIT_MEDIAN_H_

#include <compare>
#include <cstddef>
#include <cstdint>

#include "queue/indexed_heap.h"
#include "queue/queued_job.h"

namespace horus {

class WaitMedian {
 public:
  [[nodiscard]] size_t size() const { return early_.size() + late_.size(); }
  // Requires a job.
  [[nodiscard]] int64_t submit_us() const {
    const int64_t middle = early_.top().key.key.submit_us;
    if (early_.size() > late_.size()) return middle;
    return middle + (late_.top().key.submit_us - middle) / 2;
  }

  // Room for `size` jobs in all. May fail, and then changes nothing.
  void Reserve(size_t size) {
    early_.Reserve(size / 2 + 2);  // one more than its half while it is balanced
    late_.Reserve(size / 2 + 2);
  }
  // Both require a position for the slot, Push room too.
  void Push(const QueuedJob& job, uint32_t slot, HeapPositions& positions) noexcept {
    const Late key{job.submit_us, job.id};
    if (early_.empty() || key < early_.top().key.key) {
      early_.Push({key}, slot, positions);
    } else {
      late_.Push(key, slot, positions);
    }
    Balance(positions);
  }
  void Erase(const QueuedJob& job, uint32_t slot, HeapPositions& positions) noexcept {
    if (early_.top().key.key < Late{job.submit_us, job.id}) {
      late_.Erase(slot, positions);
    } else {
      early_.Erase(slot, positions);
    }
    Balance(positions);
  }
  // Many at once, in linear time: Append to an empty one with the earlier half, rounded up, marked; then Heapify.
  void Append(const QueuedJob& job, uint32_t slot, bool early) noexcept {
    const Late key{job.submit_us, job.id};
    if (early) {
      early_.Append({key}, slot);
    } else {
      late_.Append(key, slot);
    }
  }
  void Heapify(HeapPositions& positions) noexcept {
    early_.Heapify(positions);
    late_.Heapify(positions);
  }
  void Clear() noexcept {
    early_.Clear();
    late_.Clear();
  }
  [[nodiscard]] size_t bytes_held() const { return early_.bytes_held() + late_.bytes_held(); }

 private:
  struct Late {
    int64_t submit_us;
    uint64_t id;
    friend auto operator<=>(const Late&, const Late&) = default;
  };
  // The latest first.
  struct Early {
    Late key;
    friend bool operator<(const Early& a, const Early& b) { return b.key < a.key; }
  };

  // The early half is as large as the late one, or one larger.
  void Balance(HeapPositions& positions) noexcept {
    if (early_.size() > late_.size() + 1) {
      const auto moved = early_.top();
      early_.Erase(moved.slot, positions);
      late_.Push(moved.key.key, moved.slot, positions);
    } else if (early_.size() < late_.size()) {
      const auto moved = late_.top();
      late_.Erase(moved.slot, positions);
      early_.Push({moved.key}, moved.slot, positions);
    }
  }

  IndexedHeap<Early> early_;
  IndexedHeap<Late> late_;
};

}  // namespace horus

#endif  // HORUS_QUEUE_WAIT_MEDIAN_H_
