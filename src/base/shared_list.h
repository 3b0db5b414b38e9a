// SPDX-License-Identifier: Apache-2.0
// SharedList: a vector that equal ones may share in memory once they no longer change.
//
// Enters:  values, as into a vector.
// Leaves:  the same, as a const vector. Lists are equal when their values are.
// Units:   none.
// Cost:    40 bytes, and what a vector costs unless it shares one; the first change of a shared list copies it.
// Thread class: value, share freely.
#ifndef HORUS_BASE_SHARED_LIST_H_
#define HORUS_BASE_SHARED_LIST_H_

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace horus {

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

}  // namespace horus

#endif  // HORUS_BASE_SHARED_LIST_H_
