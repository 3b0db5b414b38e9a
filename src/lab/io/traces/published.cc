// SPDX-License-Identifier: Apache-2.0
// Traces of other schedulers' public artefacts: openb (FGD), Gavel, Chronus, Muri; and Alibaba's of 2020.
// src/lab/trace/README.md says what each column is taken to mean, and why.
#include <filesystem>
#include <utility>

#include "absl/strings/str_split.h"
#include "lab/io/traces/format.h"
#include "place/state/node.h"

namespace horus {
namespace {

// ---- Alibaba's trace of 2020 (cluster-trace-gpu-v2020): a task with GPUs is a job; its owner and its submission are
// in the table of jobs. Written against the published list of columns.

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
  if (percent > kWholePercent && percent % kWholePercent != 0)
    return row.Wrong("plan_gpu", "at most 100 or a multiple of it", row.Find("plan_gpu"));
  job.gpus_per_task = percent <= kWholePercent ? 1 : static_cast<int32_t>(percent / kWholePercent);
  // Bounded: at most kWholePercent.
  job.gpu_milli = static_cast<uint16_t>(std::min(percent, kWholePercent) * kMilliPerPercent);
  return absl::OkStatus();
}

absl::Status ReadHost(const CsvRow& row, TraceJob& job) {
  if (!row.Find("plan_cpu").empty())
    HORUS_SET_OR_RETURN(job.cpu_milli, ScaledCell(row, "plan_cpu", kMilliPerPercent, kMaxHostQuantity));
  if (!row.Find("plan_mem").empty())
    HORUS_SET_OR_RETURN(job.mem_mib, ScaledCell(row, "plan_mem", kMibPerGib, kMaxHostQuantity));
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

constexpr int64_t kMostId = std::numeric_limits<int64_t>::max();
constexpr int64_t kNoSlo = -1;  // of Gavel

// n GPUs of which nothing more is told: n tasks of one GPU; 0 = a job for the host alone.
void TakeGpus(int64_t gpus, TraceJob& job) {
  job.tasks = static_cast<int32_t>(std::max<int64_t>(gpus, 1));
  job.gpus_per_task = gpus > 0 ? 1 : 0;
}

// ---- openb

// False: it is left out.
absl::StatusOr<bool> ReadOpenbTimes(const CsvRow& row, TraceSink& sink, TraceJob& job) {
  constexpr int64_t kMostSeconds = kMaxTraceTimeUs / kUsPerSecond;
  job.endless = row.Find("creation_time").empty();  // the multi-GPU lists tell no times
  if (job.endless) return true;
  HORUS_ASSIGN_OR_RETURN(const int64_t created, WholeCell(row, "creation_time", 0, kMostSeconds));
  HORUS_ASSIGN_OR_RETURN(const int64_t deleted, WholeCell(row, "deletion_time", created, kMostSeconds));
  // Bounded: at most kMostSeconds.
  job.submit_us = created * kUsPerSecond;
  if (row.Find("scheduled_time").empty()) {
    sink.LeaveOut("never scheduled, so that its run time is not known");
    return false;
  }
  HORUS_ASSIGN_OR_RETURN(const int64_t began, WholeCell(row, "scheduled_time", created, deleted));
  if (began == deleted) return row.Wrong("scheduled_time", "before deletion_time", row.Find("scheduled_time"));
  // Bounded: at most kMostSeconds.
  job.duration_us = (deleted - began) * kUsPerSecond;
  // What still ran at the end of the trace was deleted with it.
  if (row.Find("pod_phase") == "Running") {
    // Bounded: at most kMostSeconds.
    sink.MayGoOn(job.id, deleted * kUsPerSecond);
  } else {
    // Bounded: at most kMostSeconds.
    sink.Ends(deleted * kUsPerSecond);
  }
  return true;
}

absl::Status ReadOpenb(const CsvRow& row, TraceSink& sink) {
  HORUS_ASSIGN_OR_RETURN(OpenbPod pod, ReadOpenbPod(row));
  TraceJob job{.id = sink.row_id(), .cpu_milli = pod.cpu_milli, .mem_mib = pod.mem_mib};
  job.gpus_per_task = pod.gpus;
  job.gpu_milli = static_cast<uint16_t>(pod.gpu_milli);
  HORUS_ASSIGN_OR_RETURN(const bool is_kept, ReadOpenbTimes(row, sink, job));
  if (!is_kept) return absl::OkStatus();
  if (row.Find("qos") == "BE") job.kind = JobKind::kBestEffort;
  for (const std::string& model : pod.models) {
    if (!ValidateTraceName("", model).ok()) return row.Wrong("gpu_spec", "names apart by |", pod.spec);
  }
  if (pod.models.size() > kMaxTraceTypes)
    return row.Wrong("gpu_spec", Formatted("at most %d names", kMaxTraceTypes), std::to_string(pod.models.size()));
  job.gpu_types = sink.builder().GpuTypes(std::move(pod.models));
  return sink.Add(row, job);
}

// ---- Gavel

absl::Status ReadGavel(const CsvRow& row, TraceSink& sink) {
  TraceJob job{.id = sink.row_id()};
  HORUS_ASSIGN_OR_RETURN(const std::string_view profile, NameCell(row, "job_type"));
  HORUS_ASSIGN_OR_RETURN(job.steps, WholeCell(row, "total_steps", 1, kMaxTraceSteps));
  HORUS_ASSIGN_OR_RETURN(const int64_t gpus, WholeCell(row, "scale_factor", 1, kMaxGpusPerJob));
  HORUS_ASSIGN_OR_RETURN(job.submit_us, ScaledCell(row, "arrival_time", kUsPerSecond, kMaxTraceTimeUs));
  TakeGpus(gpus, job);
  if (const std::string_view slo = row.Find("SLO"); !slo.empty() && !WholeCell(row, "SLO", kNoSlo, kNoSlo).ok())
    return row.Wrong("SLO", "-1, as what others are counted from is not published", slo);
  const std::string cluster = std::filesystem::path(sink.file()).stem().string();
  job.profile = sink.builder().Profile(profile);
  job.owner = sink.builder().Owner(ValidateTraceName("", cluster).ok() ? cluster : "");
  return sink.Add(row, job);
}

// ---- Chronus

absl::Status ReadChronus(const CsvRow& row, TraceSink& sink) {
  TraceJob job;
  HORUS_ASSIGN_OR_RETURN(const int64_t id, WholeCell(row, "job_id", 0, kMostId));
  HORUS_ASSIGN_OR_RETURN(const int64_t gpus, WholeCell(row, "num_gpu", 0, kMaxGpusPerJob));
  HORUS_ASSIGN_OR_RETURN(job.submit_us, ScaledCell(row, "submit_time", kUsPerSecond, kMaxTraceTimeUs));
  HORUS_ASSIGN_OR_RETURN(job.duration_us, ScaledCell(row, "duration", kUsPerSecond, kMaxTraceTimeUs));
  HORUS_ASSIGN_OR_RETURN(const int64_t best, WholeCell(row, "best_effort", 0, 1));
  HORUS_ASSIGN_OR_RETURN(const std::string_view profile, NameCell(row, "model_name"));
  HORUS_ASSIGN_OR_RETURN(const std::string_view owner, NameCell(row, "user"));
  job.id = static_cast<uint64_t>(id);
  TakeGpus(gpus, job);
  if (best == 1) {
    job.kind = JobKind::kBestEffort;  // what expect_time_list holds then is the submission
  } else {
    HORUS_ASSIGN_OR_RETURN(const int64_t within, ScaledCell(row, "expect_time_list", kUsPerSecond, kMaxTraceTimeUs));
    if (within == 0) return row.Wrong("expect_time_list", "above 0", row.Find("expect_time_list"));
    job.deadline_us = job.submit_us + within;
  }
  if (gpus == 0) {
    sink.LeaveOut("asks for no GPU; Chronus leaves it out too");
    return absl::OkStatus();
  }
  job.profile = sink.builder().Profile(profile);
  job.owner = sink.builder().Owner(owner);
  return sink.Add(row, job);
}

// ---- Muri

absl::Status ReadMuri(const CsvRow& row, TraceSink& sink) {
  TraceJob job;
  TraceStepTimes times;
  HORUS_ASSIGN_OR_RETURN(const int64_t id, WholeCell(row, "job_id", 0, kMostId));
  HORUS_ASSIGN_OR_RETURN(const int64_t gpus, WholeCell(row, "num_gpu", 1, kMaxGpusPerJob));
  HORUS_ASSIGN_OR_RETURN(job.submit_us, ScaledCell(row, "submit_time", kUsPerMs, kMaxTraceTimeUs));
  HORUS_ASSIGN_OR_RETURN(const int64_t steps, WholeCell(row, "iterations", 1, kMaxTraceSteps));
  HORUS_ASSIGN_OR_RETURN(times.step_us, ScaledCell(row, "iteration_time", kUsPerMs, kMaxTraceTimeUs));
  HORUS_ASSIGN_OR_RETURN(times.host_us, ScaledCell(row, "resource_time_0", kUsPerMs, kMaxTraceTimeUs));
  HORUS_ASSIGN_OR_RETURN(times.gpu_us, ScaledCell(row, "resource_time_1", kUsPerMs, kMaxTraceTimeUs));
  HORUS_ASSIGN_OR_RETURN(times.network_us, ScaledCell(row, "resource_time_2", kUsPerMs, kMaxTraceTimeUs));
  HORUS_ASSIGN_OR_RETURN(const std::string_view model, NameCell(row, "model_name"));
  HORUS_ASSIGN_OR_RETURN(const int64_t batch, WholeCell(row, "batch_size", 1, kMaxCsvCount));
  HORUS_ASSIGN_OR_RETURN(const int64_t opportunistic, WholeCell(row, "priority", 0, 1));
  if (times.step_us == 0) return row.Wrong("iteration_time", "above 0", row.Find("iteration_time"));
  const std::optional<int64_t> work = CheckedMul(steps, times.step_us);
  if (!work.has_value() || *work > kMaxTraceTimeUs) {
    return row.Wrong("iterations", Formatted("iterations x iteration_time of at most %d us", kMaxTraceTimeUs),
                     row.Find("iterations"));
  }
  job.id = static_cast<uint64_t>(id);
  job.duration_us = *work;
  if (opportunistic == 1) job.kind = JobKind::kBestEffort;
  TakeGpus(gpus, job);
  job.profile = sink.builder().Profile(model.empty() ? "" : Formatted("%s (batch size %d)", model, batch));
  job.step_times = sink.builder().StepTimes(times);
  return sink.Add(row, job);
}

}  // namespace

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
    if (jobs.size() >= kMostPaiJobs)
      return ResourceExhausted("%s: expected at most %d jobs, found more", where, kMostPaiJobs);
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

absl::StatusOr<std::string> OpenbText(const CsvRow& row, std::string_view column) {
  const std::string_view text = row.Find(column);
  if (text.size() <= kMaxNameBytes) return std::string(text);
  return row.Wrong(column, "at most 1024 bytes", Formatted("%d", text.size()));
}

absl::StatusOr<OpenbPod> ReadOpenbPod(const CsvRow& row) {
  OpenbPod pod;
  HORUS_ASSIGN_OR_RETURN(pod.name, OpenbText(row, "name"));
  HORUS_ASSIGN_OR_RETURN(pod.cpu_milli, WholeCell(row, "cpu_milli", 0, kMaxHostQuantity));
  HORUS_ASSIGN_OR_RETURN(pod.mem_mib, WholeCell(row, "memory_mib", 0, kMaxHostQuantity));
  HORUS_ASSIGN_OR_RETURN(const int64_t gpus, WholeCell(row, "num_gpu", 0, kMaxDevicesPerNode));
  pod.gpus = static_cast<int32_t>(gpus);
  if (gpus == 0) return pod;  // its gpu_milli and gpu_spec say nothing
  HORUS_ASSIGN_OR_RETURN(const int64_t milli, WholeCell(row, "gpu_milli", 0, kMilliPerGpu));
  pod.gpu_milli = static_cast<int32_t>(milli);
  if (milli == 0 || (gpus > 1 && milli < kMilliPerGpu))
    return row.Wrong("gpu_milli", gpus > 1 ? "1000 with several GPUs" : "1 to 1000 with a GPU", row.Find("gpu_milli"));
  HORUS_ASSIGN_OR_RETURN(pod.spec, OpenbText(row, "gpu_spec"));
  pod.models = absl::StrSplit(pod.spec, '|', absl::SkipEmpty());
  return pod;
}

std::vector<FormatRules> PublishedRules() {
  return {{.format = TraceFormat::kOpenb,
           .name = "openb",
           .needs = {"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"},
           .read = ReadOpenb},
          {.format = TraceFormat::kGavel,
           .name = "gavel",
           .separator = '\t',
           .without_header = {{"job_type", "command", "num_steps_arg", "needs_data_dir", "total_steps", "arrival_time",
                               "scale_factor"},
                              {"job_type", "command", "num_steps_arg", "needs_data_dir", "total_steps", "scale_factor",
                               "priority_weight", "SLO", "arrival_time"},
                              {"job_type", "command", "working_directory", "num_steps_arg", "needs_data_dir",
                               "total_steps", "scale_factor", "priority_weight", "SLO", "arrival_time"}},
           .read = ReadGavel},
          {.format = TraceFormat::kChronus,
           .name = "chronus",
           .needs = {"job_id", "user", "num_gpu", "submit_time", "model_name", "duration", "expect_time_list",
                     "best_effort"},
           .read = ReadChronus},
          {.format = TraceFormat::kMuri,
           .name = "muri",
           .needs = {"job_id", "num_gpu", "submit_time", "iterations", "model_name", "batch_size", "iteration_time",
                     "resource_time_0", "resource_time_1", "resource_time_2", "priority"},
           .read = ReadMuri},
          {.format = TraceFormat::kPai,
           .name = "pai",
           .needs = {"job_name", "task_name", "inst_num", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu"},
           .without_header = {{"job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu",
                               "plan_mem", "plan_gpu", "gpu_type"}},
           .both = true,
           .read = ReadPai}};
}

}  // namespace horus
