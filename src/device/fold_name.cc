// SPDX-License-Identifier: Apache-2.0
// Folding of device names: case, separators and brand prefixes.
#include "device/fold_name.h"

#include <array>

namespace horus {

std::string FoldDeviceName(std::string_view name) {
  std::string folded(name);
  for (char& c : folded) c = FoldChar(c);
  // In the order in which a driver writes them.
  constexpr std::array<std::string_view, 4> kBrands = {"nvidia-", "tesla-", "quadro-", "geforce-"};
  size_t start = 0;
  for (const std::string_view brand : kBrands) {
    // HAMi puts the vendor before a name that has it: "NVIDIA-NVIDIA L40S".
    while (std::string_view(folded).substr(start).starts_with(brand)) start += brand.size();
  }
  return folded.substr(start);
}

}  // namespace horus
