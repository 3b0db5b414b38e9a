// SPDX-License-Identifier: Apache-2.0
// Fuzz target: decodes any bytes as a sequence of calls of the C ABI, good and hostile ones, on a small cluster; after
// each all that tests/calls checks must hold.
#include <cstdint>
#include <span>

#include "calls/harness.h"

namespace {

// An input stays far below the fuzzer's limit on time.
constexpr int kMostActions = 64;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  horus::calls::Choices choices(std::span<const uint8_t>(data, size));
  horus::calls::Harness harness(&choices, {});
  for (int actions = 0; actions < kMostActions && !choices.over(); ++actions) harness.Step();
  return 0;
}
