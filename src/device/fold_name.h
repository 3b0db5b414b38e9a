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
[[nodiscard]] inline std::string FoldDeviceName(std::string_view name) {
  std::string folded(name);
  for (char& c : folded) c = FoldChar(c);
  // In the order in which a driver writes them.
  constexpr std::string_view kBrands[] = {"nvidia-", "tesla-", "quadro-", "geforce-"};
  size_t start = 0;
  for (const std::string_view brand : kBrands) {
    // HAMi puts the vendor before a name that has it: "NVIDIA-NVIDIA L40S".
    while (std::string_view(folded).substr(start).starts_with(brand)) start += brand.size();
  }
  return folded.substr(start);
}

}  // namespace horus
