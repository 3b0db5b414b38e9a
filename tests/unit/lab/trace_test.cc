// SPDX-License-Identifier: Apache-2.0
// Traces: what is one, what is none, and that equal workloads are equal values.
#include "lab/trace/trace.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>

namespace horus {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TraceJob Job(uint64_t id, int64_t submit_us, int64_t duration_us = 10) {
  return {.id = id, .submit_us = submit_us, .duration_us = duration_us};
}

TEST(Trace, AJobTakes88Bytes) { EXPECT_EQ(sizeof(TraceJob), 88u); }

TEST(Trace, TheBuilderSortsJobsAndNamesByFirstUse) {
  TraceBuilder builder;
  TraceJob late = Job(1, 50);
  late.profile = builder.Profile("late");
  late.gpu_types = builder.GpuTypes({"V100", "P100", "V100"});
  TraceJob early = Job(2, 5);
  early.profile = builder.Profile("early");
  early.owner = builder.Owner("");
  builder.Add(late);
  builder.Add(early);
  const auto trace = builder.Finish();
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_THAT(trace->profiles, ElementsAre("early", "late"));
  EXPECT_THAT(trace->type_lists, ElementsAre(ElementsAre("P100", "V100")));
  EXPECT_EQ(trace->jobs[0].id, 2u);
  EXPECT_EQ(trace->jobs[0].owner, kNotStated);
  EXPECT_EQ(ProfileOf(*trace, trace->jobs[1]), "late");
  EXPECT_EQ(builder.size(), 0u);
}

TEST(Trace, TheOrderOfAddingDoesNotMatter) {
  const auto made = [](bool backwards) {
    TraceBuilder builder;
    for (uint64_t i = 0; i < 20; ++i) {
      const uint64_t id = backwards ? 19 - i : i;
      TraceJob job = Job(id, static_cast<int64_t>(id / 3));
      job.profile = builder.Profile("p" + std::to_string(id % 4));
      job.step_times = builder.StepTimes({.step_us = static_cast<int64_t>(1 + id % 2)});
      builder.Add(job);
    }
    return *builder.Finish();
  };
  EXPECT_EQ(made(false), made(true));
  EXPECT_EQ(TraceDigest(made(false)), TraceDigest(made(true)));
}

TEST(Trace, RefusesJobsThatCannotBe) {
  const auto refused = [](const std::function<void(TraceJob&)>& change, const std::string& words) {
    TraceJob job = Job(0, 7);
    ASSERT_TRUE(ValidateTraceJob(job).ok());
    change(job);
    const absl::Status status = ValidateTraceJob(job);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  };
  refused([](TraceJob& j) { j.submit_us = -1; }, "submit_us: expected 0 to");
  refused([](TraceJob& j) { j.duration_us = 0; }, "duration_us, steps: expected exactly one above 0, found 0 and 0");
  refused([](TraceJob& j) { j.steps = 3; }, "found 10 and 3");
  refused([](TraceJob& j) { j.duration_us = -3; }, "duration_us: expected 0 to");
  refused([](TraceJob& j) { j.duration_us = kMaxTraceTimeUs + 1; }, "duration_us");
  refused([](TraceJob& j) { j.steps = -1; }, "steps: expected 0 to");
  refused([](TraceJob& j) { j.endless = true, j.steps = 4; }, "steps: expected 0 for an endless job, found 4");
  refused([](TraceJob& j) { j.deadline_us = 7; }, "deadline_us: expected 0, or above submit_us 7 by at most");
  refused([](TraceJob& j) { j.deadline_us = -1; }, "found -1");
  refused([](TraceJob& j) { j.deadline_us = std::numeric_limits<int64_t>::min(); }, "found -9223372036854775808");
  refused([](TraceJob& j) { j.deadline_us = std::numeric_limits<int64_t>::max(); }, "found 9223372036854775807");
  refused([](TraceJob& j) { j.deadline_us = kMaxTraceTimeUs + 8; }, "deadline_us");
  refused([](TraceJob& j) { j.tasks = 0; }, "tasks: expected 1 to");
  refused([](TraceJob& j) { j.gpus_per_task = -1; }, "gpus_per_task: expected 0 to");
  refused([](TraceJob& j) { j.tasks = 60'000, j.gpus_per_task = 2; }, "found 120000");
  refused([](TraceJob& j) { j.gpu_milli = 1001; }, "gpu_milli: expected 0 to 1000, found 1001");
  refused([](TraceJob& j) { j.gpu_milli = 500, j.gpus_per_task = 2; }, "unless gpus_per_task is 1");
  refused([](TraceJob& j) { j.gpu_milli = 1000, j.gpus_per_task = 0; }, "expected 0 without GPUs");
  refused([](TraceJob& j) { j.cpu_milli = -1; }, "cpu_milli");
  refused([](TraceJob& j) { j.mem_mib = -1; }, "mem_mib");
  refused([](TraceJob& j) { j.kind = static_cast<JobKind>(3); }, "kind");
}

TEST(Trace, AnEndlessJobNeedsNoWork) {
  TraceJob job = Job(0, 0, 0);
  job.endless = true;
  EXPECT_TRUE(ValidateTraceJob(job).ok());
  job.duration_us = 5;  // that the trace saw
  EXPECT_TRUE(ValidateTraceJob(job).ok());
}

TEST(Trace, RefusesWhatIsNoTrace) {
  const auto refused = [](const std::function<void(Trace&)>& change, const std::string& words) {
    TraceBuilder builder;
    for (uint64_t i = 0; i < 3; ++i) {
      TraceJob job = Job(i, static_cast<int64_t>(i));
      job.profile = builder.Profile(i == 0 ? "a" : "b");
      job.owner = builder.Owner("o");
      job.gpu_types = builder.GpuTypes({"T4", "V100"});
      job.step_times = builder.StepTimes({.step_us = 1});
      builder.Add(job);
    }
    Trace trace = *builder.Finish();
    change(trace);
    const absl::Status status = ValidateTrace(trace);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  };
  refused([](Trace& t) { t.jobs[2].tasks = 0; }, "trace: job[2]: tasks: expected 1 to 65536, found 0");
  refused([](Trace& t) { std::swap(t.jobs[1], t.jobs[2]); }, "job[2]: submit_us: expected jobs ascending");
  refused([](Trace& t) { t.jobs[2].id = 0; }, "trace: id: expected each once, found 0 twice");
  refused([](Trace& t) { t.jobs[1].profile = 2; }, "job[1]: profile: expected a position below 2, found 2");
  refused([](Trace& t) { t.owners[0] = ""; }, "owners[0]: owners: expected 1 to 1024 bytes");
  refused([](Trace& t) { t.owners[0] = "o\n"; }, "control characters");
  refused([](Trace& t) { t.owners[0] = " o"; }, "spaces around");
  refused([](Trace& t) { t.step_times[0].step_us = 0; }, "step_times[0]: step_us: expected 1 to");
}

TEST(Trace, TheDigestTellsEveryFieldApart) {
  const auto digest = [](const std::function<void(TraceJob&, TraceBuilder&)>& change) {
    TraceBuilder builder;
    TraceJob job = Job(1, 2);
    change(job, builder);
    builder.Add(job);
    return TraceDigest(*builder.Finish());
  };
  const std::vector<std::function<void(TraceJob&, TraceBuilder&)>> changes = {
      [](TraceJob&, TraceBuilder&) {},
      [](TraceJob& j, TraceBuilder&) { j.id = 2; },
      [](TraceJob& j, TraceBuilder&) { j.submit_us = 3; },
      [](TraceJob& j, TraceBuilder&) { j.duration_us = 3; },
      [](TraceJob& j, TraceBuilder&) { j.steps = j.duration_us, j.duration_us = 0; },
      [](TraceJob& j, TraceBuilder&) { j.deadline_us = 3; },
      [](TraceJob& j, TraceBuilder&) { j.cpu_milli = 3; },
      [](TraceJob& j, TraceBuilder&) { j.mem_mib = 3; },
      [](TraceJob& j, TraceBuilder& b) { j.profile = b.Profile("p"); },
      [](TraceJob& j, TraceBuilder& b) { j.owner = b.Owner("p"); },
      [](TraceJob& j, TraceBuilder& b) { j.gpu_types = b.GpuTypes({"p"}); },
      [](TraceJob& j, TraceBuilder& b) { j.step_times = b.StepTimes({.step_us = 3}); },
      [](TraceJob& j, TraceBuilder&) { j.tasks = 3; },
      [](TraceJob& j, TraceBuilder&) { j.gpus_per_task = 3; },
      [](TraceJob& j, TraceBuilder&) { j.priority = 3; },
      [](TraceJob& j, TraceBuilder&) { j.gpu_milli = 3; },
      [](TraceJob& j, TraceBuilder&) { j.kind = JobKind::kInference; },
      [](TraceJob& j, TraceBuilder&) { j.endless = true; }};
  std::vector<uint64_t> all;
  for (const auto& change : changes) all.push_back(digest(change));
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
}

TEST(TraceSummary, CountsSizesGapsAndDurations) {
  constexpr int64_t kSecond = 1'000'000;
  TraceBuilder builder;
  TraceJob share = Job(0, 0, 4 * kSecond);
  share.gpu_milli = 500;
  share.profile = builder.Profile("a");
  TraceJob gang = Job(1, kSecond, 2 * kSecond);
  gang.tasks = 4;
  TraceJob steps = Job(2, 4 * kSecond, 0);
  steps.steps = 9;
  TraceJob service = Job(3, 6 * kSecond, 7 * kSecond);
  service.endless = true;
  for (const TraceJob& job : {share, gang, steps, service}) builder.Add(job);
  const TraceSummary summary = SummariseTrace(*builder.Finish());
  EXPECT_EQ(summary.jobs, 4);
  EXPECT_EQ(summary.gpus, 7);
  EXPECT_EQ(summary.gangs, 1);
  EXPECT_EQ(summary.shares, 1);
  EXPECT_EQ(summary.by_steps, 1);
  EXPECT_EQ(summary.endless, 1);
  EXPECT_DOUBLE_EQ(summary.gpu_us, 10e6);  // half of 4 s, and 4 of 2 s
  EXPECT_DOUBLE_EQ(summary.mean_gap_us, 2e6);
  EXPECT_DOUBLE_EQ(summary.gap_scv, (0.25 + 0.25 + 0) / 3);
  ASSERT_EQ(summary.sizes.size(), 3u);  // below 1, 1, up to 4
  EXPECT_EQ(summary.sizes[1].jobs, 2);
  EXPECT_EQ(summary.profiles[0].jobs, 3);  // those that state none
  EXPECT_EQ(summary.durations_us.front(), 2 * kSecond);
  EXPECT_EQ(summary.durations_us.back(), 4 * kSecond);
}

}  // namespace
}  // namespace horus
