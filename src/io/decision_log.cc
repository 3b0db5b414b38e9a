// SPDX-License-Identifier: Apache-2.0
// Reads a log of decisions without holding it.
#include "io/decision_log.h"

#include <algorithm>

#include "absl/strings/str_split.h"
#include "base/text.h"
#include "place/state/node.h"

namespace horus {
namespace {

constexpr std::array<std::string_view, 7> kNames = {
    "time_s", "event", "job", "node", "devices", "observed_slowdown", "observed_step_ms"};
constexpr size_t kNecessary = 5;  // the columns before the observed ones
constexpr std::array<std::string_view, 3> kEvents = {"place", "release", "finish"};
constexpr double kMaxObserved = 1e9;  // ms a step, or times slower; beyond any that says something

std::string_view TrimmedField(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

// Fields of one line; a field in double quotes may hold commas, and quotes doubled. False: a quote is left open.
bool Split(std::string_view line, std::vector<std::string>& fields) {
  fields.clear();
  std::string field;
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted) {
      if (c != '"') {
        field += c;
      } else if (i + 1 < line.size() && line[i + 1] == '"') {
        field += line[++i];
      } else {
        quoted = false;
      }
    } else if (c == '"' && TrimmedField(field).empty()) {
      field.clear();
      quoted = true;
    } else if (c == ',') {
      fields.emplace_back(TrimmedField(std::exchange(field, {})));
    } else {
      field += c;
    }
  }
  fields.emplace_back(TrimmedField(field));
  return !quoted;
}

std::vector<std::string> Parts(std::string_view text, char separator) {
  return absl::StrSplit(absl::string_view(text.data(), text.size()), separator);
}

// "0;2;4-7"; false for anything else.
bool ParseDevices(std::string_view text, std::vector<int32_t>& devices) {
  constexpr auto kMost = static_cast<int32_t>(kMaxDevicesPerNode);
  for (const std::string_view part : Parts(text, ';')) {
    const size_t dash = part.find('-');
    const auto first = ParseNumber<int32_t>(TrimmedField(part.substr(0, dash)));
    const auto last = dash == part.npos ? first : ParseNumber<int32_t>(TrimmedField(part.substr(dash + 1)));
    if (!first || !last || *first < 0 || *last < *first || *last >= kMost) return false;
    if (devices.size() + static_cast<size_t>(*last - *first) >= kMaxDevicesPerNode) return false;
    for (int32_t i = *first; i <= *last; ++i) devices.push_back(i);
  }
  return true;
}

}  // namespace

absl::StatusOr<bool> DecisionLog::ReadLine(std::vector<std::string>& fields) {
  for (;;) {
    buffer_.resize(kMaxLogLineBytes + 1);
    stream_.getline(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    const auto count = stream_.gcount();
    bytes_read_ += static_cast<uint64_t>(count);
    if (stream_.bad()) return Unavailable("%s:%d: cannot be read", path_, line_ + 1);
    if (count == 0 && stream_.eof()) return false;
    ++line_;
    if (stream_.fail() && !stream_.eof()) {  // the line is longer than the buffer
      stream_.clear();
      stream_.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
      return InvalidArgument("%s:%d: expected at most %d bytes a line, found more", path_, line_, kMaxLogLineBytes);
    }
    const bool ended = !stream_.eof();
    std::string_view line(buffer_.data(), static_cast<size_t>(count) - (ended ? 1 : 0));
    if (line_ == 1 && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
    if (TrimmedField(line).empty()) continue;
    if (!Split(line, fields))
      return InvalidArgument("%s:%d: expected a closing double quote, found the end of the line", path_, line_);
    return true;
  }
}

absl::Status DecisionLog::ReadHeader() {
  HORUS_ASSIGN_OR_RETURN(const bool any, ReadLine(header_.header));
  if (!any)
    return InvalidArgument("%s: expected a header with the columns %s, found an empty file", path_, Listed(kNames));
  const std::string where = Formatted("%s:%d", path_, line_);
  for (const std::string& name : header_.header) {
    if (std::ranges::find(kNames, name) == kNames.end()) return UnknownColumn(where, name, kNames);
    if (!columns_.emplace(name, columns_.size()).second)
      return InvalidArgument("%s: header: the column %s occurs twice", where, name);
  }
  return CheckRequiredColumns(header_, where, std::span(kNames).first(kNecessary));
}

absl::StatusOr<DecisionLog> DecisionLog::Open(const std::string& path) {
  DecisionLog log(path);
  log.stream_.open(path, std::ios::binary);
  if (!log.stream_ || log.stream_.peek() == std::ifstream::traits_type::eof()) {
    if (!log.stream_.is_open() || log.stream_.bad()) return Unavailable("%s: cannot be read", path);
    log.stream_.clear();
  }
  HORUS_RETURN_IF_ERROR(log.ReadHeader());
  return log;
}

absl::Status DecisionLog::Read(const std::vector<std::string>& fields, LogEntry& entry) const {
  const CsvRow row(columns_, fields, Formatted("%s:%d", path_, entry.line));
  const auto wrong = [&](std::string_view column, const std::string& expected) {
    return row.Wrong(column, expected, row.Find(column));
  };
  const auto number = [&](std::string_view column, double least, double most, double& value) {
    value = ParseNumber<double>(row.Find(column)).value_or(-1);
    return value >= least && value <= most;
  };
  if (!number("time_s", 0, kMaxLogSeconds, entry.time_s)) return wrong("time_s", "seconds from 0 to 1e12");
  const auto event = std::ranges::find(kEvents, row.Find("event"));
  if (event == kEvents.end()) return wrong("event", Listed(kEvents));
  entry.event = static_cast<LogEvent>(event - kEvents.begin());
  entry.job = row.Find("job");
  if (entry.job.empty()) return wrong("job", "a name or id");
  if (constexpr auto kSlowdown = "observed_slowdown";
      !row.Find(kSlowdown).empty() && !number(kSlowdown, 1e-3, kMaxObserved, entry.observed_slowdown)) {
    return wrong(kSlowdown, "nothing, or a number from 0.001 to 1e9");
  }
  if (constexpr auto kStep = "observed_step_ms";
      !row.Find(kStep).empty() && !number(kStep, 1e-6, kMaxObserved, entry.observed_step_ms)) {
    return wrong(kStep, "nothing, or milliseconds from 0.000001 to 1e9");
  }
  if (entry.event != LogEvent::kPlace) return absl::OkStatus();
  for (const std::string_view node : Parts(row.Find("node"), '|')) {
    if (TrimmedField(node).empty()) return wrong("node", "names or ids of nodes with '|' between them");
    entry.nodes.emplace_back(TrimmedField(node));
  }
  entry.devices.resize(entry.nodes.size());
  const std::string_view devices = row.Find("devices");
  if (devices.empty()) return absl::OkStatus();  // a job without GPUs
  const std::vector<std::string> parts = Parts(devices, '|');
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i == entry.devices.size()) entry.devices.emplace_back();
    if (!ParseDevices(parts[i], entry.devices[i])) return wrong("devices", "positions of GPUs such as 0;2;4-7");
  }
  if (parts.size() == entry.nodes.size()) return absl::OkStatus();
  return wrong("devices",
               "one list for each of " + std::to_string(entry.nodes.size()) + " nodes, with '|' between them");
}

absl::StatusOr<bool> DecisionLog::Next(LogEntry& entry) {
  entry = LogEntry();
  std::vector<std::string> fields;
  HORUS_ASSIGN_OR_RETURN(const bool any, ReadLine(fields));
  entry.line = line_;
  if (!any) return false;
  if (const size_t width = header_.header.size(); fields.size() != width)
    return InvalidArgument("%s:%d: expected %d fields as in the header, found %d", path_, line_, width, fields.size());
  HORUS_RETURN_IF_ERROR(Read(fields, entry));
  return true;
}

}  // namespace horus
