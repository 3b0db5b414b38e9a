// SPDX-License-Identifier: Apache-2.0
// A line on stderr while work is long; silent when stderr is no terminal.
//
// Enters:  what is done and how much there is.   Leaves: at most ten updates a second, erased at the end.
// Units:   counts.
// Cost:    one clock reading a call.     Thread class: one thread at a time.
#ifndef HORUS_CLI_PROGRESS_H_
#define HORUS_CLI_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace horus::cli {

class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Update(std::string_view what, uint64_t done, uint64_t total);
  // A bar, and how long the rest takes if it goes on as it went since the first call.
  void UpdateBar(std::string_view what, uint64_t done, uint64_t total);

 private:
  void Erase();
  void Show(const std::string& line);

  bool terminal_;
  size_t shown_ = 0;  // characters on the line
  std::chrono::steady_clock::time_point next_;
  std::chrono::steady_clock::time_point bar_since_;
  bool bar_started_ = false;
  uint64_t bar_first_ = 0;  // done at the first call
};

}  // namespace horus::cli

#endif  // HORUS_CLI_PROGRESS_H_
