// SPDX-License-Identifier: Apache-2.0
// Fuzz target: reads any bytes as a trace, of the format that the first byte names; what is accepted is a trace, and is
// the same after writing and reading.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "lab/io/traces/trace_file.h"

namespace {

constexpr uint8_t kFormats = 7;
constexpr uint8_t kSkip = 8;  // bit of the first byte

void Check(const horus::TraceRead& read) {
  if (!horus::ValidateTrace(read.trace).ok()) std::abort();
  if (read.skipped < 0 || read.skipped > read.rows) std::abort();
  const auto again =
      horus::ParseTrace(horus::WritePlainTrace(read.trace), "plain", {.format = horus::TraceFormat::kPlain});
  if (!again.ok() || again->trace != read.trace) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const horus::TraceReadOptions options{.format = static_cast<horus::TraceFormat>(data[0] % kFormats),
                                        .skip_bad = (data[0] & kSkip) != 0};
  const auto read = horus::ParseTrace(bytes, "fuzz", options);
  if (read.ok()) {
    Check(*read);
  } else if (read.status().message().empty()) {
    std::abort();
  }
  return 0;
}
