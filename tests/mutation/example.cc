// SPDX-License-Identifier: Apache-2.0
// For mutants_test.py: ten lines with something to change, and much that must be left alone. Is compiled by no build.
// clang-format off
#include <vector>
constexpr int kMost = 4 + 1;
struct Row { int used = 0; };
bool Fits(const Row& row, std::vector<int>& all, int asked, const char* text = nullptr) {
  const auto more = [&all](const int* one) { return *one > 0; };  // a < b, c + 1
  if (asked <= 0 || (text != nullptr && *text == '<')) return false;
  all.push_back(row.used - asked);
  for (int i = 0; i < asked; ++i) all[0] += static_cast<int>(i);
  return std::min<int>(row.used, "a + b"[0]) != kMost && !more(all.data());
}
