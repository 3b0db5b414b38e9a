// SPDX-License-Identifier: Apache-2.0
// Choices: where a random sequence of calls gets its decisions from: the bytes of a fuzzer, or a seed.
//
// Enters:  bytes, used up one by one; or a seed, which never ends.
// Leaves:  numbers below a limit; 0 once the bytes are used up.
// Units:   none.
// Cost:    a byte a choice among up to 256.   Thread class: one thread at a time.
#ifndef HORUS_TESTS_CALLS_CHOICES_H_
#define HORUS_TESTS_CALLS_CHOICES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/hash.h"

namespace horus::calls {

class Choices {
 public:
  explicit Choices(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  explicit Choices(uint64_t seed) : endless_(true), state_(Mix64(seed)) {}

  [[nodiscard]] bool over() const { return !endless_ && at_ >= bytes_.size(); }

  uint64_t Below(uint64_t limit) {
    if (limit <= 1) return 0;
    if (endless_) return (state_ = Mix64(state_)) % limit;
    uint64_t value = 0;
    for (uint64_t rest = limit - 1; rest > 0; rest >>= 8) value = value << 8 | Byte();
    return value % limit;
  }
  // Rare choices are never made by bytes that are used up.
  bool OneIn(uint64_t n) { return Below(n) == n - 1; }

  template <typename T, size_t N>
  const T& Of(const std::array<T, N>& list) {
    return list[Below(N)];
  }

  // Numbers that are wrong in most places, in the low bits also as a 32-bit number.
  uint64_t HostileBits() {
    static constexpr std::array<uint64_t, 22> kBits = {
        0,
        1,
        ~uint64_t{0},        // -1
        ~uint64_t{1},        // -2
        0x7fffffffffffffff,  // the largest int64
        0x8000000000000000,  // the smallest; -0.0
        0x7fffffff,          // the largest int32
        0x80000000,          // the smallest; -0.0f
        0xffffffff,          // the largest uint32
        0x100000000,         //
        0x7ff8000000000000,  // NaN
        0x7ff0000000000000,  // infinity
        0xfff0000000000000,  //
        0x7fefffffffffffff,  // the largest double
        0x7fc000007fc00000,  // NaN as a float
        0x7f8000007f800000,  // infinity as a float
        0xff800000ff800000,  //
        0x7f7fffff7f7fffff,  // the largest float
        0x0000000100000001,  // denormal
        0x3ff0000000000000,  // 1.0
        0x3f8000003f800000,  // 1.0f
        uint64_t{1} << 40,   // the most of a host resource
    };
    const uint64_t kind = Below(kBits.size() + 3);
    if (kind < kBits.size()) return kBits[kind];
    if (kind == kBits.size()) return uint64_t{1} << Below(64);
    return kind == kBits.size() + 1 ? Below(256) : Below(65'536);
  }

 private:
  uint8_t Byte() { return at_ < bytes_.size() ? bytes_[at_++] : 0; }

  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
  bool endless_ = false;
  uint64_t state_ = 0;
};

}  // namespace horus::calls

#endif  // HORUS_TESTS_CALLS_CHOICES_H_
