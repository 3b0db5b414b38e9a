// SPDX-License-Identifier: Apache-2.0
// The plain CSV of traces: what it may say, what is refused, and that what is written is read again.
#include <gmock/gmock.h>

#include <limits>
#include <string>

#include "base/draws.h"
#include "lab/io/traces/trace_file.h"
#include "lab/trace/synthetic.h"
#include "lab/trace/trace.h"

namespace horus {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<TraceRead> Parse(const std::string& text, bool skip_bad = false) {
  return ParseTrace(text, "jobs.csv", {.format = TraceFormat::kPlain, .skip_bad = skip_bad});
}

std::string Why(const std::string& text) { return std::string(Parse(text).status().message()); }

TEST(TracePlain, ReadsWhatPeopleWrite) {
  const auto read = ParseTrace(
      "submit_s,duration_s,tasks,gpus_per_task,profile,owner,gpu_types,kind,priority,deadline_s\n"
      "0,3600,2,4,\"ResNet-50, 64\",ann,V100|A100|V100,training,3,7200\n"
      "1.5,0.000001,,,,,,best-effort,,\n",
      "jobs.csv", {});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->format, TraceFormat::kPlain);
  const Trace& trace = read->trace;
  EXPECT_THAT(trace.profiles, ElementsAre("ResNet-50, 64"));
  EXPECT_THAT(trace.type_lists, ElementsAre(ElementsAre("A100", "V100")));
  const TraceJob& gang = trace.jobs[0];
  EXPECT_EQ(gang.tasks, 2);
  EXPECT_EQ(gang.gpus_per_task, 4);
  EXPECT_EQ(gang.duration_us, 3'600'000'000);
  EXPECT_EQ(gang.deadline_us, 7'200'000'000);
  EXPECT_EQ(gang.priority, 3);
  const TraceJob& small = trace.jobs[1];
  EXPECT_EQ(small.id, 1u);  // the second row
  EXPECT_EQ(small.submit_us, 1'500'000);
  EXPECT_EQ(small.duration_us, 1);
  EXPECT_EQ(small.tasks, 1);
  EXPECT_EQ(small.kind, JobKind::kBestEffort);
}

TEST(TracePlain, SecondsAreRoundedToTheNearestMicrosecond) {
  const auto read = Parse("submit_s,duration_s\n0.0000015,0.0000024999999999999999999999\n");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->trace.jobs[0].submit_us, 2);
  EXPECT_EQ(read->trace.jobs[0].duration_us, 2);
}

TEST(TracePlain, NamesFileLineAndField) {
  const auto refused = [](const std::string& header, const std::string& row, const std::string& words) {
    EXPECT_THAT(Why(header + "\n" + row + "\n"), HasSubstr(words)) << row;
  };
  const std::string base = "submit_us,duration_us";
  refused(base, "-1,5", "jobs.csv: line 2: submit_us: expected a whole number from 0 to 36028797018963968, found '-1'");
  refused(base, "1.5,5", "line 2: submit_us");
  refused(base, "0,x", "line 2: duration_us: expected a whole number");
  refused(base, "0,", "line 2: duration_us, steps: expected exactly one above 0, found 0 and 0");
  refused(base, "0", "line 2: expected 2 fields as in the header, found 1");
  refused(base, "0,\"5", "line 2: expected quoted fields that are closed");
  refused(base, "0,99999999999999999999999", "line 2: duration_us");
  refused(base + ",steps", "0,5,5", "found 5 and 5");
  refused(base + ",id", "0,5,-1", "line 2: id: expected a whole number from 0 to 18446744073709551615, found '-1'");
  refused(base + ",id", "0,5,7\n0,5,7", "line 3: id: expected each once, found 7 again");
  refused(base + ",tasks", "0,5,0", "tasks: expected a whole number from 1 to 65536, found '0'");
  refused(base + ",gpus_per_task", "0,5,-1", "gpus_per_task");
  refused(base + ",gpu_milli", "0,5,1001", "gpu_milli");
  refused(base + ",gpu_milli,gpus_per_task", "0,5,500,2", "gpu_milli: expected 0 or 1000 unless gpus_per_task is 1");
  refused(base + ",cpu_milli", "0,5,-1", "cpu_milli");
  refused(base + ",mem_mib", "0,5,-1", "mem_mib");
  refused(base + ",priority", "0,5,3000000000", "priority");
  refused(base + ",deadline_us", "5,5,4", "deadline_us: expected 0, or above submit_us 5 by at most");
  refused(base + ",endless", "0,5,2", "endless: expected a whole number from 0 to 1");
  refused(base + ",kind", "0,5,batch", "kind: expected training, inference or best-effort, found 'batch'");
  refused(base + ",profile", "0,5,a\tb", "profile: expected at most 1024 bytes without control characters");
  refused(base + ",owner", "0,5," + std::string(1025, 'o'), "owner: expected at most 1024 bytes");
  refused(base + ",gpu_types", "0,5,A100| V100", "gpu_types: expected names apart by |, without spaces around them");
  refused(base + ",host_us", "0,5,3", "step_us: expected above 0");
  refused(base + ",step_us", "0,5,-3", "step_us");
  refused(base + ",submit_s", "0,5,1", "submit_s: expected nothing beside submit_us, found '1'");
  refused("submit_s,duration_us", "1e3,5", "submit_s: expected a number from 0 to");
}

TEST(TracePlain, RefusesHeadersThatSayNothing) {
  EXPECT_THAT(Why(""), HasSubstr("jobs.csv: expected a header row, found none"));
  EXPECT_THAT(
      Why("submit_us,durations_us\n"),
      HasSubstr("line 1: header: expected a column of docs/simulate.md, found 'durations_us' (near: duration_us"));
  EXPECT_THAT(Why("submit_us,submit_us\n"), HasSubstr("header: expected each column once"));
  std::string wide = "submit_us";
  for (int i = 0; i < 2'000; ++i) wide += ",c" + std::to_string(i);
  EXPECT_THAT(Why(wide + "\n"), HasSubstr("line 1: header: expected at most 1024 columns, found more"));
  EXPECT_THAT(Why(std::string("submit_us\n1\0\n", 12)), HasSubstr("null byte"));
}

TEST(TracePlain, SkipsBadLinesAndCountsThem) {
  std::string text = "submit_us,duration_us\n1,1\n";
  for (int i = 0; i < 7; ++i) text += "x,1\n";
  text += "2,1,3\n3,\"open\n4,4\n";
  const auto read = Parse(text, true);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->trace.jobs.size(), 2u);
  EXPECT_EQ(read->trace.jobs[1].submit_us, 4);  // an open quote costs its line alone
  EXPECT_EQ(read->rows, 11);
  EXPECT_EQ(read->skipped, 9);
  ASSERT_EQ(read->messages.size(), kKeptMessages);
  EXPECT_THAT(read->messages[0], HasSubstr("jobs.csv: line 3: submit_us"));
}

TEST(TracePlain, ABadHeaderIsNeverSkipped) { EXPECT_FALSE(Parse("submit_us,what\n1,1\n", true).ok()); }

// Names with everything that a name may hold.
std::string OddName(Draws& draws) {
  constexpr std::string_view kOdd[] = {"a,b", "\"quoted\"", "ends\"", "two  spaces", "\xC3\xA9", "x", "#", ";", "'"};
  std::string name;
  for (uint64_t i = 0; i <= draws.Below(3); ++i) name += kOdd[draws.Below(std::size(kOdd))];
  return name;
}

TraceJob OddJob(uint64_t id, TraceBuilder& builder, Draws& draws) {
  TraceJob job{.id = draws.Below(2) == 0 ? id : ~id};
  job.submit_us = static_cast<int64_t>(draws.Below(2) == 0 ? draws.Below(3) : draws.Below(uint64_t{1} << 55));
  job.duration_us = static_cast<int64_t>(1 + draws.Below(uint64_t{1} << 55));
  if (draws.Below(3) == 0) std::swap(job.duration_us, job.steps);
  job.endless = job.steps == 0 && draws.Below(5) == 0;
  if (job.endless && draws.Below(2) == 0) job.duration_us = 0;
  if (draws.Below(3) == 0) job.deadline_us = job.submit_us + 1;
  job.gpus_per_task = static_cast<int32_t>(draws.Below(3));
  job.tasks = static_cast<int32_t>(1 + draws.Below(5));
  if (job.gpus_per_task == 1) job.gpu_milli = static_cast<uint16_t>(draws.Below(1001));
  job.cpu_milli = static_cast<int64_t>(draws.Below(uint64_t{1} << 40));
  job.mem_mib = static_cast<int64_t>(draws.Below(3));
  job.priority = static_cast<int32_t>(draws.Next());
  job.kind = static_cast<JobKind>(draws.Below(3));
  if (draws.Below(2) == 0) job.profile = builder.Profile(OddName(draws));
  if (draws.Below(2) == 0) job.owner = builder.Owner(OddName(draws));
  if (draws.Below(2) == 0) job.gpu_types = builder.GpuTypes({OddName(draws), OddName(draws)});
  if (draws.Below(2) == 0) {
    job.step_times = builder.StepTimes({.step_us = static_cast<int64_t>(1 + draws.Below(3)), .network_us = 2});
  }
  return job;
}

TEST(TracePlain, WritingAndReadingIsTheIdentity) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Draws draws(Mix64(seed));
    TraceBuilder builder;
    const uint64_t count = draws.Below(30);
    for (uint64_t i = 0; i < count; ++i) builder.Add(OddJob(i, builder, draws));
    const absl::StatusOr<Trace> trace = builder.Finish();
    ASSERT_TRUE(trace.ok()) << trace.status();
    const std::string text = WritePlainTrace(*trace);
    const auto read = Parse(text);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->trace, *trace) << text;
    EXPECT_EQ(WritePlainTrace(read->trace), text);
  }
}

TEST(TracePlain, WritesNoColumnThatSaysNothing) {
  TraceBuilder builder;
  builder.Add({.id = 4, .submit_us = 1, .duration_us = 2});
  EXPECT_EQ(WritePlainTrace(*builder.Finish()), "id,submit_us,duration_us\n4,1,2\n");
  EXPECT_EQ(WritePlainTrace(Trace()), "id,submit_us\n");
}

TEST(TracePlain, AMadeTraceIsReadAgain) {
  const Trace trace = *MakeSynthetic(*SyntheticPreset("horus2020"));
  EXPECT_EQ(Parse(WritePlainTrace(trace))->trace, trace);
}

TEST(TraceFormats, AreFoundByNameAndHeader) {
  EXPECT_EQ(*ParseTraceFormat("auto"), TraceFormat::kAuto);
  for (const TraceFormat format : {TraceFormat::kPlain, TraceFormat::kOpenb, TraceFormat::kGavel, TraceFormat::kChronus,
                                   TraceFormat::kMuri, TraceFormat::kPai}) {
    EXPECT_EQ(*ParseTraceFormat(TraceFormatName(format)), format);
  }
  EXPECT_THAT(std::string(ParseTraceFormat("philly").status().message()),
              HasSubstr("expected one of auto, plain, openb, gavel, chronus, muri, pai, found 'philly'"));
  EXPECT_THAT(std::string(ParseTrace("a,b\n1,2\n", "x.csv", {}).status().message()),
              HasSubstr("x.csv: line 1: header: expected the columns of one trace format"));
  EXPECT_FALSE(ParseTrace("", "x.csv", {}).ok());
  EXPECT_EQ(ReadTrace("/no/such/file.csv", {}).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace horus
