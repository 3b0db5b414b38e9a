// SPDX-License-Identifier: Apache-2.0
// Traces of other schedulers' public artefacts: openb (FGD), Gavel, Chronus, Muri. docs/traces.md says what each column
// is taken to mean, and why.
#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include "lab/io/openb_file.h"
#include "lab/io/traces/format.h"

namespace horus {
namespace {

constexpr int64_t kNoSlo = -1;  // of Gavel

// n GPUs of which nothing more is told: n tasks of one GPU; 0 = a job for the host alone.
void TakeGpus(int64_t gpus, TraceJob& job) {
  job.tasks = static_cast<int32_t>(std::max<int64_t>(gpus, 1));
  job.gpus_per_task = gpus > 0 ? 1 : 0;
}

std::string WithBatch(std::string_view model, std::string_view batch) {
  return Formatted("%s (batch size %s)", model, batch);
}

// ---- openb

absl::Status ReadOpenbTimes(const CsvRow& row, TraceSink& sink, TraceJob& job, bool& keep) {
  constexpr int64_t kMostSeconds = kMaxTraceTimeUs / kUsPerSecond;
  keep = true;
  if (row.Find("creation_time").empty()) {  // the multi-GPU lists tell no times
    job.endless = true;
    return absl::OkStatus();
  }
  HORUS_ASSIGN_OR_RETURN(const int64_t created, WholeCell(row, "creation_time", 0, kMostSeconds));
  HORUS_ASSIGN_OR_RETURN(const int64_t deleted, WholeCell(row, "deletion_time", created, kMostSeconds));
  // Bounded: at most kMostSeconds.
  job.submit_us = created * kUsPerSecond;
  if (row.Find("scheduled_time").empty()) {
    sink.LeaveOut("never scheduled, so that its run time is not known");
    keep = false;
    return absl::OkStatus();
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
  return absl::OkStatus();
}

absl::Status ReadOpenb(const CsvRow& row, TraceSink& sink) {
  HORUS_ASSIGN_OR_RETURN(OpenbPod pod, ReadOpenbPod(row));
  TraceJob job{.id = sink.row_id(), .cpu_milli = pod.cpu_milli, .mem_mib = pod.mem_mib};
  job.gpus_per_task = pod.gpus;
  job.gpu_milli = static_cast<uint16_t>(pod.gpu_milli);
  bool keep = false;
  HORUS_RETURN_IF_ERROR(ReadOpenbTimes(row, sink, job, keep));
  if (!keep) return absl::OkStatus();
  if (row.Find("qos") == "BE") job.kind = JobKind::kBestEffort;
  for (const std::string& model : pod.models) {
    if (!ValidateTraceName("", model).ok()) return row.Wrong("gpu_spec", "names apart by |", pod.spec);
  }
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
  if (const std::string_view slo = row.Find("SLO"); !slo.empty() && !WholeCell(row, "SLO", kNoSlo, kNoSlo).ok()) {
    return row.Wrong("SLO", "-1, as what others are counted from is not published", slo);
  }
  const std::string cluster = std::filesystem::path(sink.file()).stem().string();
  job.profile = sink.builder().Profile(profile);
  job.owner = sink.builder().Owner(ValidateTraceName("", cluster).ok() ? cluster : "");
  return sink.Add(row, job);
}

std::vector<Header> GavelColumns() {
  return {{"job_type", "command", "num_steps_arg", "needs_data_dir", "total_steps", "arrival_time", "scale_factor"},
          {"job_type", "command", "num_steps_arg", "needs_data_dir", "total_steps", "scale_factor", "priority_weight",
           "SLO", "arrival_time"},
          {"job_type", "command", "working_directory", "num_steps_arg", "needs_data_dir", "total_steps", "scale_factor",
           "priority_weight", "SLO", "arrival_time"}};
}

// ---- Chronus

absl::Status ReadChronus(const CsvRow& row, TraceSink& sink) {
  TraceJob job;
  constexpr int64_t kMostId = std::numeric_limits<int64_t>::max();
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
  constexpr int64_t kMostId = std::numeric_limits<int64_t>::max();
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
  job.profile = sink.builder().Profile(model.empty() ? "" : WithBatch(model, std::to_string(batch)));
  job.step_times = sink.builder().StepTimes(times);
  return sink.Add(row, job);
}

}  // namespace

const FormatRules& OpenbRules() {
  static const FormatRules rules = {.format = TraceFormat::kOpenb,
                                    .name = "openb",
                                    .needs = {"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"},
                                    .read = ReadOpenb};
  return rules;
}

const FormatRules& GavelRules() {
  static const FormatRules rules = {.format = TraceFormat::kGavel,
                                    .name = "gavel",
                                    .separator = '\t',
                                    .without_header = GavelColumns(),
                                    .read = ReadGavel};
  return rules;
}

const FormatRules& ChronusRules() {
  static const FormatRules rules = {.format = TraceFormat::kChronus,
                                    .name = "chronus",
                                    .needs = {"job_id", "user", "num_gpu", "submit_time", "model_name", "duration",
                                              "expect_time_list", "best_effort"},
                                    .read = ReadChronus};
  return rules;
}

const FormatRules& MuriRules() {
  static const FormatRules rules = {
      .format = TraceFormat::kMuri,
      .name = "muri",
      .needs = {"job_id", "num_gpu", "submit_time", "iterations", "model_name", "batch_size", "iteration_time",
                "resource_time_0", "resource_time_1", "resource_time_2", "priority"},
      .read = ReadMuri};
  return rules;
}

}  // namespace horus
