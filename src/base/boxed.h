// SPDX-License-Identifier: Apache-2.0
// Boxed: a value that lies elsewhere, or none; for columns of which few rows have one.
//
// Enters:  a value, once.
// Leaves:  a pointer to it, valid until the box is changed; null = none. A copy of a box copies the value.
// Units:   none.
// Cost:    8 bytes, and an allocation where there is a value.   Thread class: value, share freely.
#ifndef HORUS_BASE_BOXED_H_
#define HORUS_BASE_BOXED_H_

#include <memory>
#include <utility>

namespace horus {

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

}  // namespace horus

#endif  // HORUS_BASE_BOXED_H_
