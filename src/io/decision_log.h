// SPDX-License-Identifier: Apache-2.0
// decisions.csv: what another scheduler did, line by line.
//
// Enters:  a path; docs/shadow.md has the columns.
// Leaves:  one entry at a time; or "decisions.csv:12: devices: expected ..., found ...".
// Units:   seconds; milliseconds a step; slowdown = shared / alone.
// Cost:    linear, one line in memory.   Thread class: one thread at a time.
#pragma once

#include <fstream>

#include "io/csv.h"

namespace horus {

enum class LogEvent : uint8_t { kPlace, kRelease, kFinish };

struct LogEntry {
  uint64_t line = 0;
  double time_s = 0;
  LogEvent event = LogEvent::kPlace;
  std::string job;                            // name or id
  std::vector<std::string> nodes;             // names or ids; only of kPlace
  std::vector<std::vector<int32_t>> devices;  // of each node
  double observed_slowdown = 0;               // 0 = not given
  double observed_step_ms = 0;                // 0 = not given
};

inline constexpr size_t kMaxLogLineBytes = size_t{1} << 16;
inline constexpr double kMaxLogSeconds = 1e12;  // 30,000 years

class DecisionLog {
 public:
  // Reads the header. UNAVAILABLE, or INVALID_ARGUMENT for a header that lacks columns or has others.
  [[nodiscard]] static absl::StatusOr<DecisionLog> Open(const std::string& path);

  // False at the end. INVALID_ARGUMENT for a malformed line, which is then behind us: the next call reads the next one.
  [[nodiscard]] absl::StatusOr<bool> Next(LogEntry& entry);

  [[nodiscard]] uint64_t bytes_read() const { return bytes_read_; }

  // An error about the line of `entry`, which somebody else found to be wrong.
  [[nodiscard]] absl::Status Wrong(const LogEntry& entry, std::string_view field, std::string_view what) const {
    return InvalidArgument("%s:%d: %s: %s", path_, entry.line, field, what);
  }

 private:
  explicit DecisionLog(std::string path) : path_(std::move(path)) {}
  [[nodiscard]] absl::Status ReadHeader();
  [[nodiscard]] absl::StatusOr<bool> ReadLine(std::vector<std::string>& fields);
  [[nodiscard]] absl::Status Read(const std::vector<std::string>& fields, LogEntry& entry) const;

  std::string path_;
  std::ifstream stream_;
  std::string buffer_;
  uint64_t line_ = 0;
  uint64_t bytes_read_ = 0;
  CsvTable header_;     // without rows
  CsvColumns columns_;  // views of it
};

}  // namespace horus
