// SPDX-License-Identifier: Apache-2.0
// Which mutant is on in a program that holds them all (HORUS_MUTANT), and which were passed (to the file
// HORUS_MUTANTS_PASSED).
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

std::vector<unsigned char>& Passed() {
  static auto* const passed = new std::vector<unsigned char>(HORUS_MUTANTS);
  return *passed;
}

struct WriteAtExit {
  ~WriteAtExit() {
    const char* path = std::getenv("HORUS_MUTANTS_PASSED");
    if (path == nullptr) return;
    std::FILE* file = std::fopen(path, "wb");
    if (file == nullptr) return;
    std::fwrite(Passed().data(), 1, Passed().size(), file);
    std::fclose(file);
  }
} write_at_exit;

}  // namespace

bool HorusMutantIsOn(int number) {
  static const int on = std::getenv("HORUS_MUTANT") != nullptr ? std::atoi(std::getenv("HORUS_MUTANT")) : -1;
  static std::vector<unsigned char>& passed = Passed();
  passed[static_cast<size_t>(number)] = 1;
  return number == on;
}
