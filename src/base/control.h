// SPDX-License-Identifier: Apache-2.0
// Which characters command a terminal instead of showing something.
//
// Enters:  one UTF-8 character, or one byte of what is none.       Leaves: yes or no.
// Units:   none.
// Cost:    none.                         Thread class: pure function.
#ifndef HORUS_BASE_CONTROL_H_
#define HORUS_BASE_CONTROL_H_

#include <string_view>

namespace horus {

// C0 (below the blank), DEL and C1 (U+0080 to U+009F: two bytes in UTF-8).
[[nodiscard]] constexpr bool IsControl(std::string_view character) {
  constexpr unsigned char kBlank = 0x20, kDelete = 0x7F, kC1Lead = 0xC2, kC1End = 0xA0;
  if (character.empty()) return false;
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < kBlank || first == kDelete;
  return character.size() == 2 && first == kC1Lead && static_cast<unsigned char>(character[1]) < kC1End;
}

}  // namespace horus

#endif  // HORUS_BASE_CONTROL_H_
