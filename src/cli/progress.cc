// SPDX-License-Identifier: Apache-2.0
// Progress on a terminal.
#include "cli/progress.h"

#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_format.h"

namespace horus::cli {
namespace {

constexpr std::chrono::milliseconds kPatience{1000};  // shorter work says nothing
constexpr std::chrono::milliseconds kInterval{100};

}  // namespace

Progress::Progress() : terminal_(::isatty(STDERR_FILENO) == 1), next_(std::chrono::steady_clock::now() + kPatience) {}

Progress::~Progress() { Erase(); }

void Progress::Erase() {
  if (shown_ > 0) std::fprintf(stderr, "\r%*s\r", static_cast<int>(shown_), "");
  shown_ = 0;
}

void Progress::Update(std::string_view what, uint64_t done, uint64_t total) {
  if (!terminal_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + kInterval;
  Erase();
  const std::string line = absl::StrFormat("horus: %s %d of %d", std::string(what), done, total);
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
  shown_ = line.size();
}

}  // namespace horus::cli
