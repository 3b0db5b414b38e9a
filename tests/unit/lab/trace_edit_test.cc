// SPDX-License-Identifier: Apache-2.0
// Derived traces: what changes, what stays, and that the result is a trace again.

#include <gmock/gmock.h>

#include <string>

#include "base/draws.h"
#include "lab/trace/synthetic.h"
#include "lab/trace/trace.h"

namespace horus {
namespace {

using testing::HasSubstr;

// Jobs of every kind that a trace may hold.
Trace Mixed(uint64_t seed, size_t count) {
  TraceBuilder builder;
  Draws draws(seed);
  for (size_t i = 0; i < count; ++i) {
    TraceJob job{.id = 1000 - i, .submit_us = static_cast<int64_t>(draws.Below(5000))};
    job.duration_us = static_cast<int64_t>(1 + draws.Below(1000));
    job.tasks = static_cast<int32_t>(1 + draws.Below(12));
    if (draws.Below(4) == 0) job.deadline_us = job.submit_us + 100;
    if (draws.Below(9) == 0) job.endless = true;
    job.profile = builder.Profile("p" + std::to_string(draws.Below(5)));
    builder.Add(job);
  }
  return *builder.Finish();
}

int64_t Slack(const TraceJob& job) { return job.deadline_us == 0 ? 0 : job.deadline_us - job.submit_us; }

TEST(TraceEdit, EveryResultIsATrace) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Trace trace = Mixed(seed, 50);
    EXPECT_TRUE(ValidateTrace(FilterTrace(trace, IsSingleGpu())).ok());
    EXPECT_TRUE(ValidateTrace(FilterTrace(trace, RunsOneOf({"p3", "p1"}))).ok());
    EXPECT_TRUE(ValidateTrace(*TakeSample(trace, 7, seed)).ok());
    EXPECT_TRUE(ValidateTrace(*MergeTraces(std::vector<Trace>{trace, trace})).ok());
    EXPECT_TRUE(ValidateTrace(Backlog(trace)).ok());
    EXPECT_TRUE(ValidateTrace(*ClipDurations(trace, 500)).ok());
    EXPECT_TRUE(ValidateTrace(*ScaleArrivals(trace, 8000, 800)).ok());
  }
}

TEST(TraceEdit, FiltersBySizeAndProfile) {
  const Trace trace = Mixed(1, 200);
  for (const TraceJob& job : FilterTrace(trace, IsSingleGpu()).jobs) EXPECT_EQ(GpusOf(job), 1);
  const Trace some = FilterTrace(trace, RunsOneOf({"p3", "none"}));
  EXPECT_EQ(some.profiles, std::vector<std::string>{"p3"});
  EXPECT_GT(some.jobs.size(), 0u);
}

TEST(TraceEdit, ASampleIsDrawnWithoutReplacementBySeedAndId) {
  const Trace trace = Mixed(1, 200);
  const Trace one = *TakeSample(trace, 50, 7);
  EXPECT_EQ(one.jobs.size(), 50u);
  EXPECT_EQ(one, *TakeSample(trace, 50, 7));
  EXPECT_NE(one, *TakeSample(trace, 50, 8));
  EXPECT_EQ(*TakeSample(trace, 200, 7), trace);
  EXPECT_THAT(std::string(TakeSample(trace, 201, 7).status().message()),
              HasSubstr("sample: expected at most the 200 jobs of the trace, found 201"));
}

TEST(TraceEdit, SamplesAreEquallyLikely) {
  const Trace trace = Mixed(1, 20);
  std::vector<int> times(20);
  constexpr int kDraws = 4000;
  for (uint64_t seed = 0; seed < kDraws; ++seed) {
    const Trace drawn = *TakeSample(trace, 5, seed);
    for (const TraceJob& job : drawn.jobs) ++times[1000 - job.id];
  }
  // 1,000 expected each, standard deviation 27.
  for (const int count : times) EXPECT_NEAR(count, 1000, 140);
}

TEST(TraceEdit, ABacklogIsAllThereAtOnce) {
  const Trace trace = Mixed(3, 40);
  const Trace backlog = Backlog(trace);
  ASSERT_EQ(backlog.jobs.size(), trace.jobs.size());
  for (size_t i = 0; i < backlog.jobs.size(); ++i) {
    EXPECT_EQ(backlog.jobs[i].submit_us, 0);
    EXPECT_EQ(backlog.jobs[i].id, 1000 - 39 + i);  // ids stay, and are the order now
  }
}

TEST(TraceEdit, DeadlinesMoveWithSubmissions) {
  const Trace trace = Mixed(3, 40);
  const Trace slow = *ScaleArrivals(trace, 8000, 100);
  int64_t before = 0, after = 0, backlog = 0;
  for (const TraceJob& job : trace.jobs) before += Slack(job);
  for (const TraceJob& job : slow.jobs) after += Slack(job);
  for (const TraceJob& job : Backlog(trace).jobs) backlog += Slack(job);
  EXPECT_GT(before, 0);
  EXPECT_EQ(before, after);
  EXPECT_EQ(before, backlog);
}

TEST(TraceEdit, ClipsAtTheNearestRank) {
  TraceBuilder builder;
  for (uint64_t i = 1; i <= 10; ++i) builder.Add({.id = i, .submit_us = 0, .duration_us = static_cast<int64_t>(i)});
  builder.Add({.id = 11, .submit_us = 0, .duration_us = 99, .endless = true});
  const Trace trace = *builder.Finish();
  const Trace clipped = *ClipDurations(trace, 850);  // rank 9 of 10
  EXPECT_EQ(clipped.jobs[8].duration_us, 9);
  EXPECT_EQ(clipped.jobs[9].duration_us, 9);
  EXPECT_EQ(clipped.jobs[10].duration_us, 99);  // endless jobs neither count nor change
  EXPECT_EQ(*ClipDurations(trace, 1000), trace);
  EXPECT_FALSE(ClipDurations(trace, 0).ok());
  EXPECT_FALSE(ClipDurations(trace, 1001).ok());
}

TEST(TraceEdit, ClipsNothingWhoseDurationIsNotKnown) {
  TraceBuilder builder;
  builder.Add({.id = 0, .steps = 100});
  EXPECT_THAT(std::string(ClipDurations(*builder.Finish(), 500).status().message()),
              HasSubstr("trace: job[0]: duration: expected 1 to"));
}

// GPUs x time that comes / GPUs x time that there is.
double LoadOn(const Trace& trace, double gpus) {
  const TraceSummary summary = SummariseTrace(trace);
  return summary.gpu_us / (gpus * static_cast<double>(summary.last_submit_us - summary.first_submit_us));
}

TEST(TraceEdit, ScalesArrivalsToTheLoad) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const Trace trace = Mixed(seed, 100);
    for (const int32_t load : {500, 1000, 1500}) {
      const Trace scaled = *ScaleArrivals(trace, 16'000, load);
      EXPECT_EQ(scaled.jobs.front().submit_us, trace.jobs.front().submit_us);
      EXPECT_NEAR(LoadOn(scaled, 16), load / 1000.0, 0.002);
    }
  }
}

TEST(TraceEdit, RefusesLoadsThatCannotBe) {
  const Trace trace = Mixed(1, 10);
  EXPECT_FALSE(ScaleArrivals(trace, 0, 1000).ok());
  EXPECT_FALSE(ScaleArrivals(trace, 1000, 0).ok());
  EXPECT_FALSE(ScaleArrivals(trace, int64_t{1} << 62, 1000).ok());  // shorter than a microsecond
  EXPECT_THAT(std::string(ScaleArrivals(Backlog(trace), 1000, 1000).status().message()),
              HasSubstr("submit_us: expected jobs at two times at least"));
}

TEST(TraceEdit, MergesByTimeWithNewIds) {
  TraceBuilder first, second;
  TraceJob a{.id = 9, .submit_us = 5, .duration_us = 1};
  a.profile = first.Profile("x");
  first.Add(a);
  TraceJob b{.id = 9, .submit_us = 3, .duration_us = 2};
  b.profile = second.Profile("y");
  second.Add(b);
  b.id = 10;
  b.submit_us = 5;
  second.Add(b);
  const Trace both = *MergeTraces(std::vector<Trace>{*first.Finish(), *second.Finish()});
  ASSERT_EQ(both.jobs.size(), 3u);
  EXPECT_EQ(ProfileOf(both, both.jobs[0]), "y");
  EXPECT_EQ(ProfileOf(both, both.jobs[1]), "x");  // at equal times the first trace goes first
  EXPECT_EQ(both.jobs[2].id, 2u);
}

}  // namespace
}  // namespace horus
