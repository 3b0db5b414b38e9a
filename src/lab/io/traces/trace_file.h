// SPDX-License-Identifier: Apache-2.0
// Traces from people's files: the formats of public data sets, and a plain CSV of our own, which is written too.
//
// Enters:  files or their bytes; docs/simulate.md has the columns of each format.
// Leaves:  a trace; or "jobs.csv: line 12: num_gpu: expected ..., found ...".
// Units:   lines count from 1, the header included.
// Cost:    linear; in memory are the file's bytes (at most kMaxTraceBytes) and at most kMaxTraceJobs jobs.
#pragma once

#include "lab/trace/trace.h"

namespace horus {

enum class TraceFormat : uint8_t {
  kAuto = 0,     // by the header
  kPlain = 1,    // our own
  kOpenb = 2,    // pods of Alibaba, 2023 (FGD)
  kGavel = 3,    // tab-separated, no header
  kChronus = 4,  // Philly's jobs as Chronus published them
  kMuri = 5,
  kPai = 6,  // pai_task_table of Alibaba, 2020, and pai_job_table beside it
};

inline constexpr size_t kMaxTraceBytes = size_t{1} << 30;  // of one file
inline constexpr size_t kMaxTraceFiles = 10'000;           // read as one trace
inline constexpr size_t kKeptMessages = 5;                 // of skipped lines

struct TraceReadOptions {
  TraceFormat format = TraceFormat::kAuto;
  bool skip_bad = false;  // leave out lines that are wrong, and count them
  std::string
      pai_job_table;  // path: owners and submissions of a pai trace; empty = tasks are submitted when they start
};

struct TraceRead {
  Trace trace;
  TraceFormat format = TraceFormat::kAuto;  // what it was; kAuto for files of several
  int64_t rows = 0;                         // without header and blank lines
  int64_t skipped = 0;                      // of them wrong, and of the lines of pai_job_table
  std::vector<std::string> messages;        // what was wrong with the first kKeptMessages of these
  std::map<std::string, int64_t> left_out;  // right, but no jobs that can be simulated: reason and count
};

// "plain", ...; NOT_FOUND lists them.
[[nodiscard]] std::string_view TraceFormatName(TraceFormat format);
[[nodiscard]] absl::StatusOr<TraceFormat> ParseTraceFormat(std::string_view name);

[[nodiscard]] absl::StatusOr<TraceRead> ReadTrace(const std::string& path, const TraceReadOptions& options);
// Several files as one trace with new ids (MergeTraces); a folder stands for the files in it, in the order of their
// names. One file is read as ReadTrace does.
[[nodiscard]] absl::StatusOr<TraceRead> ReadTraces(std::span<const std::string> paths, const TraceReadOptions& options);

// The same of bytes; `file` is the name in errors, `pai_job_table` the other file's bytes.
[[nodiscard]] absl::StatusOr<TraceRead> ParseTrace(std::string_view bytes, const std::string& file,
                                                   const TraceReadOptions& options,
                                                   std::string_view pai_job_table = {});

// The plain CSV; reading it gives the same trace. Columns that say nothing of any job are left out.
[[nodiscard]] std::string WritePlainTrace(const Trace& trace);

}  // namespace horus
