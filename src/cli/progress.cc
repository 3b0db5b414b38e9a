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

constexpr size_t kBarWidth = 24;

// "40 s", "12 min", "3 h 20 min".
std::string Left(double seconds) {
  constexpr double kMinute = 60;
  const auto minutes = static_cast<int64_t>(seconds / kMinute + 0.5);
  if (seconds < 2 * kMinute) return absl::StrFormat("%.0f s", seconds);
  constexpr int64_t kHour = 60;
  if (minutes < 2 * kHour) return absl::StrFormat("%d min", minutes);
  return absl::StrFormat("%d h %d min", minutes / kHour, minutes % kHour);
}

}  // namespace

Progress::Progress() : terminal_(::isatty(STDERR_FILENO) == 1), next_(std::chrono::steady_clock::now() + kPatience) {}

Progress::~Progress() { Erase(); }

void Progress::Erase() {
  if (shown_ > 0) std::fprintf(stderr, "\r%*s\r", static_cast<int>(shown_), "");
  shown_ = 0;
}

void Progress::Show(const std::string& line) {
  Erase();
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
  shown_ = line.size();
}

void Progress::Update(std::string_view what, uint64_t done, uint64_t total) {
  if (!terminal_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + kInterval;
  Show(absl::StrFormat("horus: %s %d of %d", std::string(what), done, total));
}

void Progress::UpdateBar(std::string_view what, uint64_t done, uint64_t total) {
  if (!terminal_ || total == 0) return;
  const auto now = std::chrono::steady_clock::now();
  if (!bar_started_) {
    bar_started_ = true;
    bar_since_ = now;
    bar_first_ = done;
  }
  if (now < next_) return;
  next_ = now + kInterval;
  const auto full = static_cast<size_t>(kBarWidth * done / total);
  const std::string bar = std::string(full, '#') + std::string(kBarWidth - full, '.');
  std::string left;
  if (done > bar_first_) {
    const double seconds = std::chrono::duration<double>(now - bar_since_).count();
    left = ", " + Left(seconds / static_cast<double>(done - bar_first_) * static_cast<double>(total - done)) + " left";
  }
  Show(absl::StrFormat("horus: %s [%s] %d of %d%s", std::string(what), bar, done, total, left));
}

}  // namespace horus::cli
