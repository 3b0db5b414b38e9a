// SPDX-License-Identifier: Apache-2.0
// KineticOrder: the first of many lines (t + offset) / ideal at a time t, while lines come and go and time moves.
//
// Enters:  slots with a line each; times, forwards or backwards.
// Leaves:  the slot whose line is highest at that time: exact, compared in 128-bit integers.
// Units:   microseconds.
// Cost:    O(log n) comparisons a change. A new time costs one look unless a comparison has turned, else a path of the
//          tree for each that has: O(log^2 n) amortised a change while time goes forwards (Basch, Guibas and
//          Hershberger 1997); comparisons that turn back and forth are paid each time.
// Thread class: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace horus {

// The line of a job: (now + offset) / ideal, higher first.
struct KineticLine {
  int32_t not_priority = 0;  // before every line; smaller first
  int64_t offset_us = 0;     // magnitude <= 2^62
  int64_t ideal_us = 0;      // <= 2^61; 0 = no line: after all that have one
  int64_t submit_us = 0;     // ties
  uint64_t id = 0;
};

// Whether `a` goes before `b` at `now_us`.
[[nodiscard]] bool GoesBefore(const KineticLine& a, const KineticLine& b, int64_t now_us);

class KineticOrder {
 public:
  [[nodiscard]] bool empty() const { return nodes_.empty() || nodes_[kRoot].winner == kNone; }

  // Room for `slot`. May fail, and then changes nothing.
  void Reserve(uint32_t slot);
  // Requires room and an empty slot.
  void Insert(uint32_t slot, const KineticLine& line) noexcept;
  void Erase(uint32_t slot) noexcept;
  void Change(uint32_t slot, const KineticLine& line) noexcept;
  // Requires a line.
  [[nodiscard]] uint32_t First(int64_t now_us) noexcept;

  [[nodiscard]] size_t bytes_held() const;

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  static constexpr size_t kRoot = 1;  // children of node i: 2i and 2i + 1; leaves follow the inner nodes

  // The winner below, and the times at which every comparison below comes out as it did: from <= t < until.
  struct Node {
    uint32_t winner = kNone;
    int64_t from_us = 0, until_us = 0;
  };

  [[nodiscard]] size_t leaves() const { return lines_.size(); }
  void Play(size_t node) noexcept;         // from its children
  void Refresh(size_t node) noexcept;      // what has turned at or below `node`
  void PlayAbove(uint32_t slot) noexcept;  // the leaf changed

  std::vector<KineticLine> lines_;  // by slot; a power of two
  std::vector<Node> nodes_;         // inner nodes and leaves
  int64_t now_us_ = 0;
};

}  // namespace horus
