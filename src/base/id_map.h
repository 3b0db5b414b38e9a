// SPDX-License-Identifier: Apache-2.0
// IdMap: values by 64-bit id. A failed allocation leaves it as it was, which absl's hash maps do not promise.
//
// Enters:  ids (any 64 bits) and values that move without failing.
// Leaves:  pointers to values, valid until the next insert or erase. There is no order and no iteration.
// Cost:    one probe sequence a call; 4/3 to 8/3 cells an entry.
// Thread class: value with one writer; readers share freely while nobody writes.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "base/hash.h"
#include "base/vectors.h"

namespace horus {

template <typename Value>
class IdMap {
  static_assert(std::is_nothrow_move_constructible_v<Value>);

 public:
  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] bool contains(uint64_t id) const { return Find(id) != nullptr; }
  [[nodiscard]] const Value* Find(uint64_t id) const {
    if (size_ == 0) return nullptr;
    const Cell& cell = cells_[CellOf(id)];
    return cell.full ? &cell.value : nullptr;
  }
  [[nodiscard]] Value* Find(uint64_t id) { return const_cast<Value*>(std::as_const(*this).Find(id)); }
  // Requires contains(id).
  [[nodiscard]] const Value& at(uint64_t id) const { return *Find(id); }

  // Room for one more: the next Insert allocates nothing. May fail, and then changes nothing.
  void ReserveOne() {
    if ((size_ + 1) * kLoadDenominator <= cells_.size() * kLoadNumerator) return;
    std::vector<Cell> old(cells_.empty() ? kFirstCells : 2 * cells_.size());
    // Ids come from outside: without a seed anybody could choose ids that all collide.
    if (cells_.empty()) seed_ = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(old.data()));
    old.swap(cells_);
    for (Cell& cell : old) {
      if (cell.full) Become(cells_[CellOf(cell.id)], std::move(cell));
    }
  }

  // Requires that `id` is absent.
  Value& Insert(uint64_t id, Value value) {
    ReserveOne();
    Cell& cell = cells_[CellOf(id)];
    Become(cell, {id, std::move(value), true});
    ++size_;
    return cell.value;
  }

  Value& FindOrInsert(uint64_t id, Value value) {
    Value* known = Find(id);
    return known != nullptr ? *known : Insert(id, std::move(value));
  }

  void Erase(uint64_t id) noexcept {
    if (size_ == 0) return;
    size_t hole = CellOf(id);
    if (!cells_[hole].full) return;
    --size_;
    // Close the gap: whoever was pushed past it moves up.
    for (size_t i = Next(hole); cells_[i].full; i = Next(i)) {
      const size_t from_home = (i - Home(cells_[i].id)) & (cells_.size() - 1);
      if (from_home < ((i - hole) & (cells_.size() - 1))) continue;
      Become(cells_[hole], std::move(cells_[i]));
      hole = i;
    }
    Become(cells_[hole], {});
  }

  void clear() noexcept {
    if (size_ > 0) cells_.clear();
    size_ = 0;
  }

  // Without what the values themselves point to.
  [[nodiscard]] uint64_t bytes_held() const { return BytesIn(cells_); }

 private:
  static constexpr size_t kFirstCells = 8;  // a power of two, as all sizes
  static constexpr size_t kLoadNumerator = 3;
  static constexpr size_t kLoadDenominator = 4;

  struct Cell {
    uint64_t id = 0;
    Value value{};
    bool full = false;
  };
  // Made anew, since absl::InlinedVector does not promise that its move assignment throws nothing.
  static void Become(Cell& cell, Cell&& other) noexcept {
    std::destroy_at(&cell);
    std::construct_at(&cell, std::move(other));
  }

  [[nodiscard]] size_t Home(uint64_t id) const { return Mix64(id ^ seed_) & (cells_.size() - 1); }
  [[nodiscard]] size_t Next(size_t cell) const { return (cell + 1) & (cells_.size() - 1); }
  // Where `id` is, else the empty cell where it would go.
  [[nodiscard]] size_t CellOf(uint64_t id) const {
    size_t cell = Home(id);
    while (cells_[cell].full && cells_[cell].id != id) cell = Next(cell);
    return cell;
  }

  std::vector<Cell> cells_;
  size_t size_ = 0;
  uint64_t seed_ = 0;
};

// Room for `more` entries. Short columns double; long ones grow by an eighth, since what stays empty is memory held.
template <typename T>
void ReserveMore(std::vector<T>& vector, size_t more) {
  constexpr size_t kLong = 4096;
  if (vector.capacity() - vector.size() >= more) return;
  vector.reserve(vector.size() + std::max(more, vector.size() < kLong ? vector.size() : vector.size() / 8));
}

// ---- RowIndex: rows by the 64-bit id that each of them holds; the index itself holds no ids. A failed allocation
// leaves it as it was.
// Cost: one probe sequence a call and a look at the row; 4 bytes a cell, 4/3 to 8/3 cells an entry.

class RowIndex {
 public:
  static constexpr uint32_t kNone = 0xFFFFFFFFu;
  static constexpr size_t kMaxRows = (size_t{1} << 27) - 1;

  [[nodiscard]] size_t size() const { return size_; }

  template <typename IdOf>
  [[nodiscard]] uint32_t Find(uint64_t id, const IdOf& id_of) const {
    if (size_ == 0) return kNone;
    return RowIn(cells_[CellOf(id, id_of)]);
  }

  // Room for one more: the next Insert allocates nothing. May fail, and then changes nothing.
  template <typename IdOf>
  void ReserveOne(const IdOf& id_of) {
    if ((size_ + 1) * kLoadDenominator <= cells_.size() * kLoadNumerator) return;
    std::vector<uint32_t> old(cells_.empty() ? kFirstCells : 2 * cells_.size());
    // Ids come from outside: without a seed anybody could choose ids that all collide.
    if (cells_.empty()) seed_ = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(old.data()));
    old.swap(cells_);
    for (const uint32_t cell : old) {
      if (cell != kEmpty) cells_[FreeCell(HashOf(id_of(RowIn(cell))))] = cell;
    }
  }

  // Requires that no row with that id is in the index, and a ReserveOne since the last Insert.
  void Insert(uint64_t id, uint32_t row) noexcept {
    const uint64_t hash = HashOf(id);
    cells_[FreeCell(hash)] = CellFor(hash, row);
    ++size_;
  }

  // Passes over an id that is not there. Its row, and all others, must still hold their ids.
  template <typename IdOf>
  void Erase(uint64_t id, const IdOf& id_of) noexcept {
    if (size_ == 0) return;
    size_t hole = CellOf(id, id_of);
    if (cells_[hole] == kEmpty) return;
    --size_;
    // Close the gap: whoever was pushed past it moves up.
    for (size_t i = Next(hole); cells_[i] != kEmpty; i = Next(i)) {
      const size_t from_home = (i - Home(HashOf(id_of(RowIn(cells_[i]))))) & (cells_.size() - 1);
      if (from_home < ((i - hole) & (cells_.size() - 1))) continue;
      cells_[hole] = cells_[i];
      hole = i;
    }
    cells_[hole] = kEmpty;
  }

  [[nodiscard]] uint64_t bytes_held() const { return BytesIn(cells_); }

 private:
  static constexpr size_t kFirstCells = 8;  // a power of two, as all sizes
  static constexpr size_t kLoadNumerator = 3;
  static constexpr size_t kLoadDenominator = 4;
  // A cell is the row plus 1, and above it bits of the id's hash, so that few other rows are looked at.
  static constexpr uint32_t kEmpty = 0;
  static constexpr uint32_t kRowBits = 27;
  static constexpr uint32_t kRowMask = (1u << kRowBits) - 1;

  [[nodiscard]] static uint32_t RowIn(uint32_t cell) { return (cell & kRowMask) - 1; }  // kNone of an empty one
  [[nodiscard]] static uint32_t CellFor(uint64_t hash, uint32_t row) { return TagOf(hash) | (row + 1); }
  [[nodiscard]] static uint32_t TagOf(uint64_t hash) { return static_cast<uint32_t>(hash >> 32) & ~kRowMask; }
  [[nodiscard]] uint64_t HashOf(uint64_t id) const { return Mix64(id ^ seed_); }
  [[nodiscard]] size_t Home(uint64_t hash) const { return hash & (cells_.size() - 1); }
  [[nodiscard]] size_t Next(size_t cell) const { return (cell + 1) & (cells_.size() - 1); }
  [[nodiscard]] size_t FreeCell(uint64_t hash) const {
    size_t cell = Home(hash);
    while (cells_[cell] != kEmpty) cell = Next(cell);
    return cell;
  }
  // Where `id` is, else an empty cell.
  template <typename IdOf>
  [[nodiscard]] size_t CellOf(uint64_t id, const IdOf& id_of) const {
    const uint64_t hash = HashOf(id);
    size_t cell = Home(hash);
    for (; cells_[cell] != kEmpty; cell = Next(cell)) {
      if ((cells_[cell] & ~kRowMask) == TagOf(hash) && id_of(RowIn(cells_[cell])) == id) break;
    }
    return cell;
  }

  std::vector<uint32_t> cells_;
  size_t size_ = 0;
  uint64_t seed_ = 0;
};

}  // namespace horus
