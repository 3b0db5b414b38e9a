// SPDX-License-Identifier: Apache-2.0
// Little-endian numbers and counted text, written to a string and read back with every bound checked.
//
// Enters:  bytes of a file.    Leaves: numbers and text; a failed read makes ok() false for good.
// Units:   sizes in bytes; float and double as their IEEE-754 bits.
// Cost:    a few instructions a number.  Thread class: one thread at a time.
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace horus {

// Whether a file that begins so is text: no byte commands a device instead of showing something, but for white space.
[[nodiscard]] inline bool IsText(std::string_view head) {
  constexpr std::string_view kSpace = " \t\n\r";
  constexpr unsigned char kBlank = 0x20, kDelete = 0x7F;
  return !head.empty() && std::ranges::all_of(head, [&](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte >= kBlank && byte != kDelete) || kSpace.find(c) != std::string_view::npos;
  });
}

template <std::unsigned_integral T>
void AppendLittleEndian(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>(static_cast<uint8_t>(value >> (8 * i))));
}

class ByteWriter {
 public:
  void U32(uint32_t value) { AppendLittleEndian(bytes_, value); }
  void U64(uint64_t value) { AppendLittleEndian(bytes_, value); }
  void F32(float value) { U32(std::bit_cast<uint32_t>(value)); }
  void F64(double value) { U64(std::bit_cast<uint64_t>(value)); }
  void Text(std::string_view text) {
    U32(static_cast<uint32_t>(text.size()));
    bytes_.append(text);
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// After a read past the end, that read and all later ones give zero, and ok() is false.
class ByteReader {
 public:
  explicit ByteReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  [[nodiscard]] uint32_t U32() { return Number<uint32_t>(); }
  [[nodiscard]] uint64_t U64() { return Number<uint64_t>(); }
  [[nodiscard]] float F32() { return std::bit_cast<float>(U32()); }
  [[nodiscard]] double F64() { return std::bit_cast<double>(U64()); }
  [[nodiscard]] std::string_view Text() {
    const uint32_t size = U32();
    const std::span<const uint8_t> taken = Take(size);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] size_t left() const { return bytes_.size() - at_; }

 private:
  template <std::unsigned_integral T>
  T Number() {
    T value = 0;
    const std::span<const uint8_t> taken = Take(sizeof(T));
    for (size_t i = 0; i < taken.size(); ++i) value |= static_cast<T>(static_cast<T>(taken[i]) << (8 * i));
    return value;
  }
  std::span<const uint8_t> Take(size_t size) {
    if (!ok_ || size > left()) {
      ok_ = false;
      return {};
    }
    at_ += size;
    return bytes_.subspan(at_ - size, size);
  }

  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace horus
