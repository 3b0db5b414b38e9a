// SPDX-License-Identifier: Apache-2.0
// IndexedHeap: a heap of slots by key, the smallest key first, in which any slot can be found, moved or taken out.
//
// Enters:  slots (small dense numbers), each at most once, and keys of a strict order.
// Leaves:  the first slot; the first k in order without changing anything.
// Cost:    O(log n) a change, O(k log k) for the first k; nothing but Reserve and Visit allocates.
// Thread class: value with one writer; readers share freely while nobody writes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/id_map.h"

namespace horus {

// Where each slot lies. Several heaps share one as long as no slot is in two of them at once.
using HeapPositions = std::vector<uint32_t>;

// A position for `slot`. May fail, and then changes nothing.
inline void ReservePosition(HeapPositions& positions, uint32_t slot) {
  if (positions.size() <= slot) positions.resize(std::max<size_t>(2 * positions.size(), slot + size_t{1}));
}

template <typename Key>
class IndexedHeap {
 public:
  struct Entry {
    Key key;
    uint32_t slot;
  };

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] size_t size() const { return entries_.size(); }
  [[nodiscard]] const Entry& top() const { return entries_.front(); }
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }  // in no order that matters
  [[nodiscard]] size_t bytes_held() const { return BytesIn(entries_); }

  // Room for `size` entries in all, grown as push_back grows. May fail, and then changes nothing.
  void Reserve(size_t size) {
    if (size > entries_.size()) ReserveMore(entries_, size - entries_.size());
  }

  // Requires room and a position for the slot.
  void Push(const Key& key, uint32_t slot, HeapPositions& positions) noexcept {
    entries_.push_back({key, slot});
    Up(entries_.size() - 1, positions);
  }
  void Erase(uint32_t slot, HeapPositions& positions) noexcept {
    const size_t at = positions[slot];
    const Entry last = entries_.back();
    entries_.pop_back();
    if (at == entries_.size()) return;
    entries_[at] = last;
    Settle(at, positions);
  }
  void Change(uint32_t slot, const Key& key, HeapPositions& positions) noexcept {
    const size_t at = positions[slot];
    entries_[at].key = key;
    Settle(at, positions);
  }
  // Many at once, in linear time: Append puts entries anywhere, Heapify then orders them. Append requires room.
  void Append(const Key& key, uint32_t slot) noexcept { entries_.push_back({key, slot}); }
  void Heapify(HeapPositions& positions) noexcept {
    for (size_t i = 0; i < entries_.size(); ++i) positions[entries_[i].slot] = static_cast<uint32_t>(i);
    for (size_t i = entries_.size() / kArity + 1; i-- > 0;) {
      if (i < entries_.size()) Down(i, positions);
    }
  }
  // New keys for all, in linear time.
  template <typename KeyOf>
  void ChangeAll(const KeyOf& key_of, HeapPositions& positions) noexcept {
    for (Entry& entry : entries_) entry.key = key_of(entry.slot);
    Heapify(positions);
  }
  void Clear() noexcept { entries_.clear(); }

  // Calls visit(slot) for the first `count` in order. Allocates before the first call only.
  template <typename Visit>
  void VisitFirst(size_t count, const Visit& visit) const {
    count = std::min(count, entries_.size());
    if (count == 0) return;
    const auto later = [this](uint32_t a, uint32_t b) { return entries_[b].key < entries_[a].key; };
    std::vector<uint32_t> frontier;
    frontier.reserve(std::min(entries_.size(), count * (kArity - 1) + 1));
    frontier.push_back(0);
    for (; count > 0; --count) {
      std::pop_heap(frontier.begin(), frontier.end(), later);
      const uint32_t at = frontier.back();
      frontier.pop_back();
      visit(entries_[at].slot);
      for (size_t child = kArity * at + 1; child <= kArity * at + kArity && child < entries_.size(); ++child) {
        frontier.push_back(static_cast<uint32_t>(child));
        std::push_heap(frontier.begin(), frontier.end(), later);
      }
    }
  }

 private:
  static constexpr size_t kArity = 4;  // half the levels of a binary heap; children lie side by side

  void Place(size_t at, const Entry& entry, HeapPositions& positions) noexcept {
    entries_[at] = entry;
    positions[entry.slot] = static_cast<uint32_t>(at);
  }
  void Settle(size_t at, HeapPositions& positions) noexcept {
    if (at > 0 && entries_[at].key < entries_[(at - 1) / kArity].key) {
      Up(at, positions);
    } else {
      Down(at, positions);
    }
  }
  void Up(size_t at, HeapPositions& positions) noexcept {
    const Entry entry = entries_[at];
    while (at > 0) {
      const size_t parent = (at - 1) / kArity;
      if (!(entry.key < entries_[parent].key)) break;
      Place(at, entries_[parent], positions);
      at = parent;
    }
    Place(at, entry, positions);
  }
  void Down(size_t at, HeapPositions& positions) noexcept {
    const Entry entry = entries_[at];
    for (;;) {
      const size_t first = kArity * at + 1;
      if (first >= entries_.size()) break;
      const size_t last = std::min(first + kArity, entries_.size());
      size_t best = first;
      for (size_t child = first + 1; child < last; ++child) {
        if (entries_[child].key < entries_[best].key) best = child;
      }
      if (!(entries_[best].key < entry.key)) break;
      Place(at, entries_[best], positions);
      at = best;
    }
    Place(at, entry, positions);
  }

  std::vector<Entry> entries_;
};

}  // namespace horus
