// SPDX-License-Identifier: Apache-2.0
// A kinetic tournament: a tree of comparisons, each with the times between which it holds.
#include "queue/kinetic_order.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <tuple>

#include "base/vectors.h"

namespace horus {
namespace {

__extension__ typedef __int128 Wide;  // products of two times
constexpr int64_t kEarliest = std::numeric_limits<int64_t>::min();
constexpr int64_t kLatest = std::numeric_limits<int64_t>::max();

bool TieGoesTo(const KineticLine& a, const KineticLine& b) {
  return std::tie(a.submit_us, a.id) < std::tie(b.submit_us, b.id);
}

// Which comes first whatever the time: -1 a, 1 b, 0 the lines decide.
int Fixed(const KineticLine& a, const KineticLine& b) {
  if (a.not_priority != b.not_priority) return a.not_priority < b.not_priority ? -1 : 1;
  if (a.ideal_us > 0 && b.ideal_us > 0) return 0;
  if ((a.ideal_us > 0) != (b.ideal_us > 0)) return a.ideal_us > 0 ? -1 : 1;
  return TieGoesTo(a, b) ? -1 : 1;
}

// a - b, times both ideals, at time t: slope * t + constant.
struct Difference {
  Wide slope, constant;
};
Difference Between(const KineticLine& a, const KineticLine& b) {
  return {Wide{b.ideal_us} - a.ideal_us, Wide{a.offset_us} * b.ideal_us - Wide{b.offset_us} * a.ideal_us};
}

Wide FloorDivide(Wide a, Wide b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }
int64_t Clamp(Wide t) { return static_cast<int64_t>(std::clamp<Wide>(t, kEarliest, kLatest)); }

}  // namespace

bool GoesBefore(const KineticLine& a, const KineticLine& b, int64_t now_us) {
  if (const int fixed = Fixed(a, b); fixed != 0) return fixed < 0;
  const Difference difference = Between(a, b);
  const Wide value = difference.slope * now_us + difference.constant;
  return value != 0 ? value > 0 : TieGoesTo(a, b);
}

void KineticOrder::Play(size_t node) noexcept {
  const Node &left = nodes_[2 * node], &right = nodes_[2 * node + 1];
  Node& above = nodes_[node];
  above.from_us = std::max(left.from_us, right.from_us);
  above.until_us = std::min(left.until_us, right.until_us);
  if (left.winner == kNone || right.winner == kNone) {
    above.winner = left.winner == kNone ? right.winner : left.winner;
    return;
  }
  const bool left_wins = GoesBefore(lines_[left.winner], lines_[right.winner], now_us_);
  above.winner = left_wins ? left.winner : right.winner;
  const KineticLine& winner = lines_[above.winner];
  const KineticLine& loser = lines_[left_wins ? right.winner : left.winner];
  if (Fixed(winner, loser) != 0) return;
  const Difference difference = Between(winner, loser);
  // It wins while slope * t + constant >= least.
  const Wide least = TieGoesTo(winner, loser) ? 0 : 1;
  if (difference.slope > 0) {
    above.from_us = std::max(above.from_us, Clamp(-FloorDivide(difference.constant - least, difference.slope)));
  } else if (difference.slope < 0) {
    above.until_us = std::min(above.until_us, Clamp(FloorDivide(difference.constant - least, -difference.slope) + 1));
  }
}

void KineticOrder::Refresh(size_t node) noexcept {
  // As deep as the tree: at most 32 levels.
  const Node& here = nodes_[node];
  if (here.from_us <= now_us_ && now_us_ < here.until_us) return;
  Refresh(2 * node);
  Refresh(2 * node + 1);
  Play(node);
}

void KineticOrder::PlayAbove(uint32_t slot) noexcept {
  for (size_t node = (leaves() + slot) / 2; node >= kRoot; node /= 2) Play(node);
}

void KineticOrder::Reserve(uint32_t slot) {
  if (slot < lines_.size()) return;
  const size_t size = std::bit_ceil(std::max<size_t>(2, slot + size_t{1}));
  std::vector<KineticLine> lines(size);
  std::vector<Node> nodes(2 * size, Node{kNone, kEarliest, kLatest});
  std::copy(lines_.begin(), lines_.end(), lines.begin());
  for (size_t i = 0; i < lines_.size(); ++i) nodes[size + i] = nodes_[leaves() + i];
  lines_.swap(lines);
  nodes_.swap(nodes);
  for (size_t node = size - 1; node >= kRoot; --node) Play(node);
}

void KineticOrder::Insert(uint32_t slot, const KineticLine& line) noexcept {
  lines_[slot] = line;
  nodes_[leaves() + slot].winner = slot;
  PlayAbove(slot);
}

void KineticOrder::Erase(uint32_t slot) noexcept {
  nodes_[leaves() + slot].winner = kNone;
  PlayAbove(slot);
}

void KineticOrder::Change(uint32_t slot, const KineticLine& line) noexcept { Insert(slot, line); }

uint32_t KineticOrder::First(int64_t now_us) noexcept {
  now_us_ = now_us;
  Refresh(kRoot);
  return nodes_[kRoot].winner;
}

size_t KineticOrder::bytes_held() const { return BytesIn(lines_, nodes_); }

}  // namespace horus
