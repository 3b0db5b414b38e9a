// SPDX-License-Identifier: Apache-2.0
// Alibaba's trace of 2020 (cluster-trace-gpu-v2020): a task with GPUs is a job; its owner and its submission are in the
// table of jobs. Written against the published list of columns.
#include <algorithm>
#include <utility>

#include "io/csv.h"
#include "lab/io/traces/format.h"

namespace horus {
namespace {

constexpr int64_t kMilliPerPercent = 10;  // of a core and of a GPU
constexpr int64_t kWholePercent = 100;
constexpr int64_t kMibPerGib = 1024;  // plan_mem, "GB": 29.296875 is 30,000 MiB
constexpr size_t kMostPaiJobs = kMaxTraceJobs;

// A time that is told: 0 and nothing mean that it is not.
absl::StatusOr<int64_t> TimeCell(const CsvRow& row, std::string_view column) {
  if (row.Find(column).empty()) return 0;
  return ScaledCell(row, column, kUsPerSecond, kMaxTraceTimeUs);
}

absl::Status ReadGpus(const CsvRow& row, TraceJob& job) {
  HORUS_ASSIGN_OR_RETURN(const int64_t percent, WholeCell(row, "plan_gpu", 1, kMaxGpusPerJob * kWholePercent));
  if (percent > kWholePercent && percent % kWholePercent != 0) {
    return row.Wrong("plan_gpu", "at most 100 or a multiple of it", row.Find("plan_gpu"));
  }
  job.gpus_per_task = percent <= kWholePercent ? 1 : static_cast<int32_t>(percent / kWholePercent);
  // Bounded: at most kWholePercent.
  job.gpu_milli = static_cast<uint16_t>(std::min(percent, kWholePercent) * kMilliPerPercent);
  return absl::OkStatus();
}

absl::Status ReadHost(const CsvRow& row, TraceJob& job) {
  if (!row.Find("plan_cpu").empty()) {
    HORUS_ASSIGN_OR_RETURN(job.cpu_milli, ScaledCell(row, "plan_cpu", kMilliPerPercent, kMaxHostQuantity));
  }
  if (!row.Find("plan_mem").empty()) {
    HORUS_ASSIGN_OR_RETURN(job.mem_mib, ScaledCell(row, "plan_mem", kMibPerGib, kMaxHostQuantity));
  }
  return absl::OkStatus();
}

// When it came and how long it ran; false where it never began.
absl::StatusOr<bool> ReadTimes(const CsvRow& row, TraceJob& job) {
  HORUS_ASSIGN_OR_RETURN(const int64_t began, TimeCell(row, "start_time"));
  HORUS_ASSIGN_OR_RETURN(const int64_t ended, TimeCell(row, "end_time"));
  if (began == 0) return false;
  job.submit_us = began;
  job.endless = ended == 0;
  if (job.endless) return true;
  if (ended < began) return row.Wrong("end_time", "at least start_time", row.Find("end_time"));
  job.duration_us = std::max(ended - began, kUsPerSecond);  // times are whole seconds: 0 is less than one
  return true;
}

absl::Status ReadPai(const CsvRow& row, TraceSink& sink) {
  TraceJob job{.id = sink.row_id()};
  const std::string_view gpus = row.Find("plan_gpu");
  if (gpus.empty() || ScaledDecimal(gpus, 1, 0).has_value()) {
    sink.LeaveOut("a task without GPUs");
    return absl::OkStatus();
  }
  HORUS_RETURN_IF_ERROR(ReadGpus(row, job));
  HORUS_RETURN_IF_ERROR(ReadHost(row, job));
  HORUS_ASSIGN_OR_RETURN(const int64_t tasks, WholeCell(row, "inst_num", 1, kMaxGpusPerJob));
  job.tasks = static_cast<int32_t>(tasks);
  HORUS_ASSIGN_OR_RETURN(const bool began, ReadTimes(row, job));
  if (!began) {
    sink.LeaveOut("never started, so that its run time is not known");
    return absl::OkStatus();
  }
  HORUS_ASSIGN_OR_RETURN(const std::string_view profile, NameCell(row, "task_name"));
  if (sink.pai_jobs != nullptr) {
    const auto at = sink.pai_jobs->find(std::string(row.Find("job_name")));
    if (at == sink.pai_jobs->end()) return row.Wrong("job_name", "a job of pai_job_table", row.Find("job_name"));
    job.owner = sink.builder().Owner(at->second.owner);
    if (at->second.submit_us >= 0) job.submit_us = std::min(job.submit_us, at->second.submit_us);
  }
  job.profile = sink.builder().Profile(profile);
  return sink.Add(row, job);
}

Header TaskColumns() {
  return {"job_name", "task_name", "inst_num", "status",   "start_time",
          "end_time", "plan_cpu",  "plan_mem", "plan_gpu", "gpu_type"};
}

}  // namespace

const FormatRules& PaiRules() {
  static const FormatRules rules = {
      .format = TraceFormat::kPai,
      .name = "pai",
      .needs = {"job_name", "task_name", "inst_num", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu"},
      .without_header = {TaskColumns()},
      .both = true,
      .read = ReadPai};
  return rules;
}

absl::StatusOr<PaiJobs> ReadPaiJobs(std::string_view bytes, const std::string& file, RowProblems& problems) {
  const Header columns = {"job_name", "inst_id", "user", "status", "start_time", "end_time"};
  CsvColumns positions;
  for (size_t i = 0; i < columns.size(); ++i) positions.emplace(columns[i], i);
  PaiJobs jobs;
  const auto read = [&](const CsvLine& line) -> absl::Status {
    const std::string where = Formatted("%s: line %d", file, line.line);
    if (line.broken != nullptr || line.fields.size() != columns.size()) {
      return InvalidArgument("%s: expected %d fields, found %s", where, columns.size(),
                             line.broken != nullptr ? line.broken : std::to_string(line.fields.size()));
    }
    const CsvRow row(positions, line.fields, where);
    HORUS_ASSIGN_OR_RETURN(const std::string_view owner, NameCell(row, "user"));
    HORUS_ASSIGN_OR_RETURN(const int64_t submitted, TimeCell(row, "start_time"));
    if (jobs.size() >= kMostPaiJobs) {
      return MakeError(absl::StatusCode::kResourceExhausted, "%s: expected at most %d jobs, found more", where,
                       kMostPaiJobs);
    }
    const PaiJob job{.owner = std::string(owner), .submit_us = submitted > 0 ? submitted : -1};
    if (jobs.emplace(row.Find("job_name"), job).second) return absl::OkStatus();
    return row.Wrong("job_name", "each once", row.Find("job_name"));
  };
  bool first = true;
  HORUS_RETURN_IF_ERROR(ScanCsv(bytes, file, ',', [&](const CsvLine& line) -> absl::Status {
    const bool header = std::exchange(first, false) && line.broken == nullptr && line.fields == columns;
    return header ? absl::OkStatus() : problems.Take(read(line));
  }));
  return jobs;
}

}  // namespace horus
