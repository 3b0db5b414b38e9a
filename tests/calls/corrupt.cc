// SPDX-License-Identifier: Apache-2.0
// How a field is corrupted.
#include "calls/corrupt.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

namespace horus::calls {
namespace {

// Beyond every documented limit of a count.
constexpr std::array<uint64_t, 3> kHugeCounts = {uint64_t{1} << 32, uint64_t{1} << 61, ~uint64_t{0}};

uint32_t HostileStructSize(Choices& choices, size_t size) {
  const std::array<uint32_t, 8> sizes = {0,
                                         4,
                                         8,
                                         static_cast<uint32_t>(size) - 1,
                                         static_cast<uint32_t>(size) - 8,
                                         static_cast<uint32_t>(size) + 8,
                                         static_cast<uint32_t>(size + kRoom),
                                         ~uint32_t{0}};
  return choices.Of(sizes);
}

void CorruptCount(Choices& choices, const Field& field, char* at) {
  uint64_t count = 0;
  std::memcpy(&count, at, field.size);  // its low bytes
  const bool beyond = field.kind == FieldKind::kCount && choices.OneIn(4);
  count = beyond ? choices.Of(kHugeCounts) : choices.Below(count + 1);
  std::memcpy(at, &count, field.size);
}

}  // namespace

const char* HostileText(Choices& choices) {
  static const std::string kLong(4096, 'x');
  static const std::string kWide = [] {
    std::string text;
    for (int i = 0; i < 700; ++i) text += "\xe2\x82\xac";  // the error's line is cut inside one of these
    return text;
  }();
  const std::array<const char*, 12> texts = {
      "",           " ",           "%s%n%x",       "\xff\xfe",    "\xc3",       "a\nb\tc", "../../etc/passwd",
      "{\"a\": 1}", "caf\xc3\xa9", "\xed\xa0\x80", kLong.c_str(), kWide.c_str()};
  return choices.Of(texts);
}

void CorruptBytes(Choices& choices, std::span<const Field> fields, void* base, size_t size) {
  const uint64_t which = choices.Below(fields.size() + 2);
  auto* bytes = static_cast<char*>(base);
  if (which == fields.size()) {
    const uint32_t given = HostileStructSize(choices, size);
    std::memcpy(bytes, &given, sizeof given);
    return;
  }
  if (which == fields.size() + 1) {  // a field of a newer header is set
    const auto given = static_cast<uint32_t>(size + kRoom);
    std::memcpy(bytes, &given, sizeof given);
    bytes[size + choices.Below(kRoom)] = 1;
    return;
  }
  const Field& field = fields[which];
  char* at = bytes + field.offset;
  switch (field.kind) {
    case FieldKind::kNumber: {
      const uint64_t bits = choices.HostileBits();
      for (size_t i = 0; i < field.size; i += sizeof(bits)) {
        std::memcpy(at + i, &bits, std::min(sizeof bits, field.size - i));
      }
      return;
    }
    case FieldKind::kCount:
    case FieldKind::kFewer:
      return CorruptCount(choices, field, at);
    case FieldKind::kText: {
      const char* text = choices.OneIn(4) ? nullptr : HostileText(choices);
      std::memcpy(at, &text, sizeof text);
      return;
    }
    case FieldKind::kPointer:
      std::memset(at, 0, field.size);
  }
}

}  // namespace horus::calls
