// SPDX-License-Identifier: Apache-2.0
// Values of columns: short lists, rare values, vectors that equal ones share, and equal values under small ids that are
// reference-counted.
#pragma once

#include <array>
#include <cstring>
#include <initializer_list>

#include "base/id_map.h"

namespace horus {

// ---- ShortList: a list in a column of very many, most of which hold at most `kFew` values.
// Cost: 16 bytes where those take 12; longer ones lie elsewhere.

// As a vector. A failed allocation leaves the list as it was; what has room does not fail.
template <typename T, uint32_t kFew>
class ShortList {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  static_assert(alignof(T) <= alignof(uint32_t) && kFew * sizeof(T) >= sizeof(T*) + sizeof(uint32_t));

 public:
  ShortList() = default;
  ShortList(std::initializer_list<T> values) { assign(values.begin(), values.end()); }
  ShortList(const ShortList& other) { assign(other.begin(), other.end()); }
  ShortList(ShortList&& other) noexcept { swap(other); }
  ShortList& operator=(const ShortList& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  ShortList& operator=(ShortList&& other) noexcept {
    ShortList taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~ShortList() {
    if (head_.apart != 0) delete[] elsewhere();
  }

  [[nodiscard]] uint32_t size() const { return head_.size; }
  [[nodiscard]] bool empty() const { return head_.size == 0; }
  [[nodiscard]] uint32_t capacity() const { return head_.apart != 0 ? Stored<uint32_t>(sizeof(T*)) : kFew; }
  [[nodiscard]] const T* data() const {
    return head_.apart != 0 ? elsewhere() : reinterpret_cast<const T*>(here_.data());
  }
  [[nodiscard]] T* data() { return const_cast<T*>(std::as_const(*this).data()); }
  [[nodiscard]] const T* begin() const { return data(); }
  [[nodiscard]] const T* end() const { return data() + head_.size; }
  [[nodiscard]] T* begin() { return data(); }
  [[nodiscard]] T* end() { return data() + head_.size; }
  [[nodiscard]] const T& operator[](size_t i) const { return data()[i]; }
  [[nodiscard]] T& operator[](size_t i) { return data()[i]; }
  [[nodiscard]] const T& front() const { return *data(); }

  void reserve(size_t count) {
    if (count <= capacity()) return;
    const auto room = static_cast<uint32_t>(std::max<size_t>(count, 2 * size_t{capacity()}));
    T* const values = new T[room];
    std::copy_n(data(), head_.size, values);
    if (head_.apart != 0) delete[] elsewhere();
    head_.apart = 1;
    std::memcpy(here_.data(), &values, sizeof(values));
    std::memcpy(here_.data() + sizeof(values), &room, sizeof(room));
  }
  void push_back(T value) {
    reserve(size_t{head_.size} + 1);
    data()[head_.size] = value;
    ++head_.size;
  }
  void erase(const T* at) noexcept {
    T* const hole = begin() + (at - begin());
    std::copy(hole + 1, end(), hole);
    --head_.size;
  }
  template <typename Iterator>
  void assign(Iterator first, Iterator last) {
    const auto count = static_cast<uint32_t>(last - first);
    reserve(count);
    std::copy(first, last, data());
    head_.size = count & kMost;
  }
  void clear() noexcept { head_.size = 0; }
  [[nodiscard]] uint64_t bytes_elsewhere() const { return head_.apart != 0 ? capacity() * sizeof(T) : 0; }

 private:
  template <typename Value>
  [[nodiscard]] Value Stored(size_t at) const {
    Value value;
    std::memcpy(&value, here_.data() + at, sizeof(value));
    return value;
  }
  [[nodiscard]] T* elsewhere() const { return Stored<T*>(0); }
  void swap(ShortList& other) noexcept {
    std::swap(here_, other.here_);
    std::swap(head_, other.head_);
  }

  static constexpr uint32_t kMost = (1u << 31) - 1;
  struct Head {
    uint32_t size : 31 = 0;
    uint32_t apart : 1 = 0;  // whether here_ holds the address of the values, and for how many there is room
  };
  Head head_;
  alignas(uint32_t) std::array<std::byte, kFew * sizeof(T)> here_ = {};
};

// ---- Shelf: values under small ids, for what few rows of a column have.
// Cost: 4 bytes for the row's id, and 8 a value besides itself.

template <typename T>
class Shelf {
  static_assert(std::is_nothrow_move_assignable_v<T>);

 public:
  // The id of the value from now on. A failed allocation leaves the shelf as it was.
  [[nodiscard]] uint32_t Put(T value) {
    uint32_t id = free_;
    if (id == entries_.size()) {
      ReserveMore(entries_, 1);
      entries_.push_back({.next_free = id + 1});
    }
    free_ = entries_[id].next_free;
    entries_[id].value = std::move(value);
    return id;
  }
  void Drop(uint32_t id) noexcept {
    entries_[id] = {.next_free = free_};
    free_ = id;
  }
  [[nodiscard]] const T& at(uint32_t id) const { return entries_[id].value; }
  template <typename Behind>
  [[nodiscard]] uint64_t bytes_held(const Behind& behind) const {
    uint64_t bytes = entries_.capacity() * sizeof(Entry);
    for (const Entry& entry : entries_) bytes += behind(entry.value);
    return bytes;
  }

 private:
  struct Entry {
    T value;
    uint32_t next_free = 0;  // of a free one
  };
  std::vector<Entry> entries_;
  uint32_t free_ = 0;  // the first free one; their number where there is none
};

// ---- SharedList: a vector that equal ones may share in memory once they no longer change.
// Cost: 40 bytes, and what a vector costs unless it shares one; the first change of a shared list copies it.

template <typename T>
class SharedList {
 public:
  SharedList() = default;
  SharedList(std::vector<T> values) : own_(std::move(values)) {}
  SharedList(std::initializer_list<T> values) : own_(values) {}

  [[nodiscard]] const std::vector<T>& get() const { return shared_ != nullptr ? *shared_ : own_; }
  operator const std::vector<T>&() const { return get(); }
  [[nodiscard]] size_t size() const { return get().size(); }
  [[nodiscard]] bool empty() const { return get().empty(); }
  [[nodiscard]] const T& operator[](size_t i) const { return get()[i]; }
  [[nodiscard]] const T& front() const { return get().front(); }
  [[nodiscard]] const T& back() const { return get().back(); }
  [[nodiscard]] auto begin() const { return get().begin(); }
  [[nodiscard]] auto end() const { return get().end(); }
  friend bool operator==(const SharedList& a, const SharedList& b) {
    return &a.get() == &b.get() || a.get() == b.get();
  }

  // To change it; the rest as of a vector.
  [[nodiscard]] std::vector<T>& own() {
    if (shared_ != nullptr) {
      own_ = *shared_;
      shared_ = nullptr;
    }
    return own_;
  }
  [[nodiscard]] T& operator[](size_t i) { return own()[i]; }
  [[nodiscard]] T& front() { return own().front(); }
  [[nodiscard]] T& back() { return own().back(); }
  [[nodiscard]] auto begin() { return own().begin(); }
  [[nodiscard]] auto end() { return own().end(); }
  void push_back(const T& value) { own().push_back(value); }
  void pop_back() { own().pop_back(); }
  void assign(size_t count, const T& value) { own().assign(count, value); }
  void resize(size_t count) { own().resize(count); }
  void clear() noexcept {
    own_.clear();
    shared_ = nullptr;
  }

  // Lets go of its own values for `equal` ones that never change.
  void Share(std::shared_ptr<const std::vector<T>> equal) noexcept {
    shared_ = std::move(equal);
    std::vector<T>().swap(own_);
  }
  // Values that it has room for alone.
  [[nodiscard]] size_t own_capacity() const { return own_.capacity(); }

 private:
  std::vector<T> own_;  // empty where shared_ is set
  std::shared_ptr<const std::vector<T>> shared_;
};

// ---- InternTable: equal values once, under small ids that are reference-counted.
// Cost: one look-up by hash an Intern; about 40 bytes a distinct value besides itself.

// A failed allocation leaves the table as it was.
template <typename T>
class InternTable {
 public:
  static constexpr uint32_t kNone = 0xFFFFFFFFu;

  // The id of the value for which `same(value)` holds, all of which have that hash; where there is none it is what
  // `make(hash)` returns, which nobody holds yet. Values that only share a hash are told apart: `make` is told under
  // which one the new value goes.
  template <typename Same, typename Make>
  [[nodiscard]] uint32_t Intern(uint64_t hash, const Same& same, const Make& make) {
    hash = std::max<uint64_t>(hash, 1);  // 0 means none
    for (const uint32_t* id = id_of_.Find(hash); id != nullptr; id = id_of_.Find(hash)) {
      if (same(values_[*id])) return *id;
      hash = Mix64(hash);  // another value has this one
    }
    ReserveOne();
    T value = make(hash);
    // From here on nothing fails.
    uint32_t id = first_free_;
    if (id == kNone) {
      id = limit();
      values_.emplace_back();
      hashes_.emplace_back();
      holders_.emplace_back();
    } else {
      first_free_ = holders_[id];
    }
    values_[id] = std::move(value);
    hashes_[id] = hash;
    holders_[id] = 0;
    id_of_.Insert(hash, id);
    return id;
  }
  // Room for one more: the next Intern allocates nothing but what `make` does.
  void ReserveOne() {
    ReserveMore(values_, 1);
    ReserveMore(hashes_, 1);
    ReserveMore(holders_, 1);
    id_of_.ReserveOne();
  }
  // One holder more of an id in use.
  void Hold(uint32_t id) noexcept { ++holders_[id]; }
  // One holder less; without any the value goes, its id is used again, and the answer is true.
  bool Drop(uint32_t id) noexcept {
    if (--holders_[id] > 0) return false;
    id_of_.Erase(hashes_[id]);
    values_[id] = T();
    hashes_[id] = 0;
    holders_[id] = std::exchange(first_free_, id);
    return true;
  }

  [[nodiscard]] const T& at(uint32_t id) const { return values_[id]; }
  // From a column of its own; 0 for a free id.
  [[nodiscard]] uint64_t hash(uint32_t id) const { return hashes_[id]; }
  [[nodiscard]] uint32_t holders(uint32_t id) const { return hashes_[id] == 0 ? 0 : holders_[id]; }
  [[nodiscard]] size_t size() const { return id_of_.size(); }
  [[nodiscard]] uint32_t limit() const { return static_cast<uint32_t>(values_.size()); }  // above every id in use
  // Without what the values themselves point to.
  [[nodiscard]] uint64_t bytes_held() const { return BytesIn(values_, hashes_, holders_, id_of_); }

 private:
  std::vector<T> values_;
  std::vector<uint64_t> hashes_;   // under which each is in id_of_; 0 = free
  std::vector<uint32_t> holders_;  // of a free one: the next free one
  uint32_t first_free_ = kNone;
  IdMap<uint32_t> id_of_;  // by hash
};

// ---- SharedTable: the same of values that copies of the table share too.

template <typename T>
class SharedTable : public InternTable<std::shared_ptr<const T>> {
  using Table = InternTable<std::shared_ptr<const T>>;

 public:
  // As Intern, with one holder more.
  template <typename Same, typename Make>
  [[nodiscard]] uint32_t Hold(uint64_t hash, const Same& same, const Make& make) {
    const uint32_t id = Table::Intern(
        hash, [&](const std::shared_ptr<const T>& value) { return same(*value); },
        [&](uint64_t) { return std::make_shared<const T>(make()); });
    Table::Hold(id);
    return id;
  }
  using Table::Hold;

  [[nodiscard]] const T& at(uint32_t id) const { return *shared(id); }
  [[nodiscard]] const std::shared_ptr<const T>& shared(uint32_t id) const { return Table::at(id); }
  // `behind(value)`: what a value holds outside of itself.
  template <typename Behind>
  [[nodiscard]] uint64_t bytes_held(const Behind& behind) const {
    uint64_t bytes = Table::bytes_held();
    for (uint32_t id = 0; id < Table::limit(); ++id) {
      if (shared(id) != nullptr) bytes += sizeof(T) + behind(at(id));
    }
    return bytes;
  }
};

}  // namespace horus
