// SPDX-License-Identifier: Apache-2.0
// The public traces themselves: every file is read, and holds what its origin says.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "lab/io/traces/trace_file.h"
#include "lab/trace/trace.h"

namespace horus {
namespace {

const std::string kFolder = HORUS_SHARED_DATA "/traces/";

#define SKIP_WITHOUT(path)                                                                                 \
  if (!std::filesystem::exists(path)) {                                                                    \
    GTEST_SKIP() << "SKIPPED: no " << (path) << " (CMake: -DHORUS_SHARED_DATA=DIR), nothing was compared"; \
  }

TraceRead Read(const std::string& path) {
  const auto read = ReadTraces(std::vector<std::string>{kFolder + path}, {});
  EXPECT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->skipped, 0);
  EXPECT_TRUE(ValidateTrace(read->trace).ok());
  const auto again = ParseTrace(WritePlainTrace(read->trace), "plain.csv", {});
  EXPECT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->trace, read->trace) << "the plain CSV says something else";
  return *read;
}

int64_t CountIf(const Trace& trace, bool (*predicate)(const TraceJob&)) {
  return std::count_if(trace.jobs.begin(), trace.jobs.end(), predicate);
}

TEST(TraceReal, Openb) {
  SKIP_WITHOUT(kFolder + "openb");
  const TraceRead read = Read("openb/openb_pod_list_default.csv");
  EXPECT_EQ(read.format, TraceFormat::kOpenb);
  EXPECT_EQ(read.rows, 8152);
  EXPECT_EQ(read.trace.jobs.size(), 8152u - 897);  // 897 were never scheduled
  EXPECT_EQ(CountIf(read.trace, [](const TraceJob& job) { return job.endless; }), 34);
  const TraceRead gpus = Read("openb/openb_pod_list_multigpu40.csv");  // without times
  EXPECT_EQ(gpus.trace.jobs.size(), 8746u);
  EXPECT_EQ(CountIf(gpus.trace, [](const TraceJob& job) { return job.endless; }), 8746);
}

TEST(TraceReal, Gavel) {
  SKIP_WITHOUT(kFolder + "gavel_msr_seed0");
  const TraceRead read = Read("gavel_msr_seed0");
  EXPECT_EQ(read.format, TraceFormat::kGavel);
  EXPECT_EQ(read.trace.jobs.size(), 15'264u);
  EXPECT_EQ(read.trace.profiles.size(), 26u);
  EXPECT_EQ(read.trace.owners.size(), 15u);
  EXPECT_EQ(FilterTrace(read.trace, IsSingleGpu()).jobs.size(), 10'480u);
  EXPECT_EQ(CountIf(read.trace, [](const TraceJob& job) { return job.steps > 0; }), 15'264);
  EXPECT_EQ(Read("gavel_physical").trace.jobs.size(), 287u);
}

TEST(TraceReal, Chronus) {
  SKIP_WITHOUT(kFolder + "chronus_philly_mix1.csv");
  const TraceRead read = Read("chronus_philly_mix1.csv");
  EXPECT_EQ(read.format, TraceFormat::kChronus);
  EXPECT_EQ(read.rows, 30'940);
  EXPECT_EQ(read.trace.jobs.size(), 30'940u - 184);  // 184 ask for no GPU
  for (const TraceJob& job : read.trace.jobs) {
    EXPECT_TRUE(job.deadline_us == 0 || job.deadline_us - job.submit_us > job.duration_us);
  }
}

TEST(TraceReal, Muri) {
  SKIP_WITHOUT(kFolder + "muri_trace1.csv");
  const std::pair<const char*, size_t> files[] = {
      {"muri_trace1.csv", 1494},    {"muri_trace1_pr.csv", 1494}, {"muri_trace2.csv", 5755},
      {"muri_trace2_pr.csv", 5755}, {"muri_trace3.csv", 992},     {"muri_trace3_pr.csv", 992},
      {"muri_trace4.csv", 2638},    {"muri_trace4_pr.csv", 2638}, {"muri_testbed_trace.csv", 400}};
  for (const auto& [file, jobs] : files) {
    const TraceRead read = Read(file);
    EXPECT_EQ(read.format, TraceFormat::kMuri);
    EXPECT_EQ(read.trace.jobs.size(), jobs) << file;
    EXPECT_EQ(CountIf(read.trace, [](const TraceJob& job) { return job.step_times == kNotStated; }), 0);
  }
  // The files *_pr.csv are the same jobs, all there at 0.
  EXPECT_EQ(Backlog(Read("muri_trace1.csv").trace), Read("muri_trace1_pr.csv").trace);
}

}  // namespace
}  // namespace horus
