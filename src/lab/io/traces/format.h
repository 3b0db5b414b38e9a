// SPDX-License-Identifier: Apache-2.0
// What a trace format is to the reader: its columns, and how a row of it becomes a job.
//
// Enters:  rows.   Leaves: jobs in a TraceSink.
// Thread class: one thread at a time.
#pragma once

#include <algorithm>
#include <optional>

#include "base/seeded_hash.h"
#include "base/status.h"
#include "io/csv.h"
#include "lab/io/traces/trace_file.h"

namespace horus {

inline constexpr int64_t kUsPerMs = 1000;
inline constexpr int64_t kUsPerSecond = 1'000'000;

struct PaiJob {
  std::string owner;
  int64_t submit_us = -1;  // -1 = not stated
};
using PaiJobs = SeededMap<std::string, PaiJob>;  // by job_name; looked up only

// Where rows go.
class TraceSink {
 public:
  explicit TraceSink(std::string file) : file_(std::move(file)) {}

  TraceBuilder& builder() { return builder_; }
  const std::string& file() const { return file_; }
  int64_t rows() const { return rows_; }
  void NextRow() { ++rows_; }
  // Of the present row, from 0: the id of jobs whose trace has no numbers.
  uint64_t row_id() const { return static_cast<uint64_t>(rows_ - 1); }

  // Refuses what no trace may hold, and an id that was there.
  [[nodiscard]] absl::Status Add(const CsvRow& row, const TraceJob& job);
  void LeaveOut(const char* reason) { ++left_out_[reason]; }
  const std::map<std::string, int64_t>& left_out() const { return left_out_; }

  // A job that may still run when the trace ends: one of those that end last.
  void MayGoOn(uint64_t id, int64_t end_us) {
    Ends(end_us);
    if (end_us == last_end_us_) last_.insert(id);
  }
  // Some job ends then.
  void Ends(int64_t end_us) {
    if (end_us > last_end_us_) last_.clear();
    last_end_us_ = std::max(last_end_us_, end_us);
  }
  // Builds the trace, in which jobs that go on are endless.
  [[nodiscard]] absl::StatusOr<Trace> Finish();

  const PaiJobs* pai_jobs = nullptr;

 private:
  std::string file_;
  TraceBuilder builder_;
  SeededSet<uint64_t> ids_;  // looked up only
  std::map<std::string, int64_t> left_out_;
  int64_t last_end_us_ = -1;
  SeededSet<uint64_t> last_;  // looked up only
  int64_t rows_ = 0;
};

using Header = std::vector<std::string>;

struct FormatRules {
  TraceFormat format;
  std::string_view name;
  char separator = ',';
  std::vector<std::string_view> needs;  // columns; a header with all of them is this format
  std::vector<Header> without_header;   // the columns of files without one, by their number; empty = files have one
  bool both = false;                    // files come with and without a header
  bool closed = false;                  // no other columns than `knows`
  std::vector<std::string_view> knows;
  absl::Status (*read)(const CsvRow& row, TraceSink& sink) = nullptr;
};

[[nodiscard]] FormatRules PlainRules();
[[nodiscard]] std::vector<FormatRules> PublishedRules();

// Wrong rows end the reading, or are counted where that is allowed.
struct RowProblems {
  bool skip = false;
  int64_t skipped = 0;
  std::vector<std::string> messages;
  [[nodiscard]] absl::Status Take(const absl::Status& status);
};

[[nodiscard]] absl::StatusOr<PaiJobs> ReadPaiJobs(std::string_view bytes, const std::string& file,
                                                  RowProblems& problems);

// Cells. A whole number; 12.0 counts as one.
[[nodiscard]] absl::StatusOr<int64_t> WholeCell(const CsvRow& row, std::string_view column, int64_t least,
                                                int64_t most);
// A decimal number of at least 0 times `unit`, rounded to the nearest whole and at most `most`, in integers alone.
[[nodiscard]] absl::StatusOr<int64_t> ScaledCell(const CsvRow& row, std::string_view column, int64_t unit,
                                                 int64_t most);
// A name; may be blank.
[[nodiscard]] absl::StatusOr<std::string_view> NameCell(const CsvRow& row, std::string_view column);

// Names apart by '|', blank ones left out.
[[nodiscard]] GpuTypeNames SplitTypes(std::string_view text);

// The number of a decimal text times `unit`; nullopt where it is none.
[[nodiscard]] std::optional<int64_t> ScaledDecimal(std::string_view text, int64_t unit, int64_t most);

// ---- A row of a pod list of the openb trace (Alibaba, 2023; hkust-adsl/kubernetes-scheduler-simulator).

struct OpenbPod {
  std::string name;
  int64_t cpu_milli = 0;
  int64_t mem_mib = 0;
  int32_t gpus = 0;
  int32_t gpu_milli = 0;            // per GPU; 0 without GPUs
  std::vector<std::string> models;  // that it may run on, in file order; empty = any
  std::string spec;                 // the same as written
};

// INVALID_ARGUMENT names the row's place, column, expected and found.
[[nodiscard]] absl::StatusOr<OpenbPod> ReadOpenbPod(const CsvRow& row);

// At most as long as the name of a node or a job may be.
[[nodiscard]] absl::StatusOr<std::string> OpenbText(const CsvRow& row, std::string_view column);

}  // namespace horus
