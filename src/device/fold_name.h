// SPDX-License-Identifier: Apache-2.0
// One spelling for the many ways people write a device name.
//
// Enters:  a name as written by a driver, a label or a person, ASCII meant, any bytes accepted.
// Leaves:  its folded form: lower case, '-' for ' ' and '_'.
#pragma once

#include <string>
#include <string_view>

namespace horus {

[[nodiscard]] constexpr char FoldChar(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<char>(c - 'A' + 'a');
  return c == ' ' || c == '_' ? '-' : c;
}

[[nodiscard]] constexpr bool SameFolded(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (FoldChar(a[i]) != FoldChar(b[i])) return false;
  }
  return true;
}

// The folded name without the brands in front of it, so that the driver's "NVIDIA GeForce RTX 4090",
// the Kubernetes label "NVIDIA-GeForce-RTX-4090" and "rtx-4090" are the same.
[[nodiscard]] std::string FoldDeviceName(std::string_view name);

}  // namespace horus
