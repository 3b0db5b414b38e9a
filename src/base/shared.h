// SPDX-License-Identifier: Apache-2.0
// Values held once: a column's rare value, a vector that equal ones share, and equal values under small ids that are
// reference-counted.
#ifndef HORUS_BASE_SHARED_H_
#define HORUS_BASE_SHARED_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/id_map.h"

namespace horus {

// ---- Boxed: a value that lies elsewhere, or none; for columns of which few rows have one.
// Cost: 8 bytes, and an allocation where there is a value.

template <typename T>
class Boxed {
 public:
  Boxed() = default;
  explicit Boxed(T value) : value_(std::make_unique<const T>(std::move(value))) {}
  Boxed(const Boxed& other) : value_(other.value_ == nullptr ? nullptr : std::make_unique<const T>(*other.value_)) {}
  Boxed(Boxed&&) noexcept = default;
  Boxed& operator=(const Boxed& other) { return *this = Boxed(other); }
  Boxed& operator=(Boxed&&) noexcept = default;
  ~Boxed() = default;

  [[nodiscard]] const T* get() const { return value_.get(); }

 private:
  std::unique_ptr<const T> value_;
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

// ---- SharedTable: equal values held once, under small ids that are reference-counted.
// Cost: one look-up by hash a Hold; about 70 bytes a distinct value besides itself.

// A failed allocation leaves the table as it was.
template <typename T>
class SharedTable {
 public:
  static constexpr uint32_t kNone = 0xFFFFFFFFu;

  // The id of the value for which `same(value)` holds, all of which have that hash, with one holder more; where there
  // is none it is what `make()` returns.
  template <typename Same, typename Make>
  [[nodiscard]] uint32_t Hold(uint64_t hash, const Same& same, const Make& make) {
    for (const uint32_t* id = id_of_.Find(hash); id != nullptr; id = id_of_.Find(hash)) {
      if (same(at(*id))) {
        ++entries_[*id].holders;
        return *id;
      }
      hash = Mix64(hash);  // another value has this one
    }
    id_of_.ReserveOne();
    ReserveMore(entries_, 1);
    auto value = std::make_shared<const T>(make());
    // From here on nothing fails.
    uint32_t id = first_free_;
    if (id == kNone) {
      id = static_cast<uint32_t>(entries_.size());
      entries_.emplace_back();
    } else {
      first_free_ = entries_[id].next_free;
    }
    id_of_.Insert(hash, id);
    entries_[id] = {.value = std::move(value), .hash = hash, .holders = 1};
    return id;
  }
  // One holder more of an id in use.
  void HoldMore(uint32_t id) noexcept { ++entries_[id].holders; }
  // One holder less; without any the value goes, and its id is used again.
  void Drop(uint32_t id) noexcept {
    if (--entries_[id].holders > 0) return;
    id_of_.Erase(entries_[id].hash);
    entries_[id] = Entry{.next_free = first_free_};
    first_free_ = id;
  }

  [[nodiscard]] const T& at(uint32_t id) const { return *entries_[id].value; }
  [[nodiscard]] const std::shared_ptr<const T>& shared(uint32_t id) const { return entries_[id].value; }
  [[nodiscard]] uint32_t holders(uint32_t id) const { return entries_[id].holders; }
  [[nodiscard]] uint32_t limit() const { return static_cast<uint32_t>(entries_.size()); }  // above every id in use
  // `behind(value)`: what a value holds outside of itself.
  template <typename Behind>
  [[nodiscard]] uint64_t bytes_held(const Behind& behind) const {
    uint64_t bytes = entries_.capacity() * sizeof(Entry) + id_of_.bytes_held();
    for (const Entry& entry : entries_) {
      if (entry.value != nullptr) bytes += sizeof(T) + behind(*entry.value);
    }
    return bytes;
  }

 private:
  struct Entry {
    std::shared_ptr<const T> value;  // null = free
    uint64_t hash = 0;               // under which it is in id_of_
    uint32_t holders = 0;
    uint32_t next_free = kNone;
  };
  std::vector<Entry> entries_;
  uint32_t first_free_ = kNone;
  IdMap<uint32_t> id_of_;  // by hash
};

}  // namespace horus

#endif  // HORUS_BASE_SHARED_H_
