// SPDX-License-Identifier: Apache-2.0
// The formats of public traces, on small examples made for these tests.
#include <gmock/gmock.h>

#include <functional>
#include <string>

#include "lab/io/traces/trace_file.h"

namespace horus {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000;

// `line` put into the second row of a file that is right; the error that names it.
std::string Why(TraceFormat format, const std::string& before, const std::string& line) {
  const auto read = ParseTrace(before + line + "\n", "t", {.format = format});
  return std::string(read.status().message());
}

TEST(TraceOpenb, ReadsPodsAndTheirTimes) {
  const auto read = ParseTrace(
      "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
      "p0,4000,1024,1,460,T4|P100,LS,Succeeded,100,400,150\n"
      "p1,8000,2048,0,0,,BE,Pending,110,300,\n"
      "p2,8000,2048,8,1000,,BE,Running,120,900.0,130.0\n"
      "p3,1,1,1,1000,,LS,Failed,90,900,95\n",
      "pods.csv", {});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->format, TraceFormat::kOpenb);
  EXPECT_EQ(read->rows, 4);
  EXPECT_THAT(read->left_out, ElementsAre(testing::Pair(HasSubstr("never scheduled"), 1)));
  ASSERT_EQ(read->trace.jobs.size(), 3u);
  const TraceJob& failed = read->trace.jobs[0];  // came first
  EXPECT_EQ(failed.id, 3u);
  EXPECT_FALSE(failed.endless);  // it ended at the end of the trace, but by itself
  const TraceJob& share = read->trace.jobs[1];
  EXPECT_EQ(share.gpu_milli, 460);
  EXPECT_EQ(share.submit_us, 100 * kSecond);
  EXPECT_EQ(share.duration_us, 250 * kSecond);
  EXPECT_THAT(read->trace.type_lists[share.gpu_types], ElementsAre("P100", "T4"));
  const TraceJob& service = read->trace.jobs[2];
  EXPECT_EQ(service.gpus_per_task, 8);
  EXPECT_EQ(service.tasks, 1);
  EXPECT_EQ(service.kind, JobKind::kBestEffort);
  EXPECT_TRUE(service.endless);
  EXPECT_EQ(service.duration_us, 770 * kSecond);
}

TEST(TraceOpenb, APodThatAnotherOutlivesHasEnded) {
  const auto read = ParseTrace(
      "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
      "p0,1,1,1,1000,,LS,Running,10,400,15\n"
      "p1,1,1,1,1000,,LS,Failed,20,401,25\n",
      "pods.csv", {});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE(read->trace.jobs[0].endless);
}

TEST(TraceOpenb, AListWithoutTimesIsEndless) {
  const auto read = ParseTrace("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,1,2,1,1000\n", "pods.csv", {});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->trace.jobs[0].endless);
  EXPECT_EQ(read->trace.jobs[0].duration_us, 0);
}

TEST(TraceOpenb, NamesLineAndField) {
  const std::string head =
      "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n";
  const auto why = [&](const std::string& line) { return Why(TraceFormat::kOpenb, head, line); };
  EXPECT_THAT(why("p,1,2,x,1000,,LS,Failed,1,3,2"), HasSubstr("t: line 2: num_gpu: expected a whole number"));
  EXPECT_THAT(why("p,1,2,2,500,,LS,Failed,1,3,2"), HasSubstr("line 2: gpu_milli: expected 1000 with several GPUs"));
  EXPECT_THAT(why("p,1,2,1,1000,,LS,Failed,-1,3,2"), HasSubstr("line 2: creation_time"));
  EXPECT_THAT(why("p,1,2,1,1000,,LS,Failed,1,,2"), HasSubstr("line 2: deletion_time"));
  EXPECT_THAT(why("p,1,2,1,1000,,LS,Failed,5,3,4"), HasSubstr("line 2: deletion_time: expected a whole number from 5"));
  EXPECT_THAT(why("p,1,2,1,1000,,LS,Failed,1,3,9"), HasSubstr("line 2: scheduled_time: expected a whole number from 1 "
                                                              "to 3, found '9'"));
  EXPECT_THAT(why("p,1,2,1,1000,,LS,Failed,1,3,3"), HasSubstr("scheduled_time: expected before deletion_time"));
  EXPECT_THAT(why("p,1,2,1,1000,\"a|\tb\",LS,Failed,1,3,2"), HasSubstr("gpu_spec: expected names apart by |"));
  EXPECT_THAT(why("p,1,2,1"), HasSubstr("line 2: expected 11 fields"));
  EXPECT_THAT(Why(TraceFormat::kOpenb, "name,num_gpu\n", ""), HasSubstr("line 1: header: expected a column cpu_milli"));
}

TEST(TraceGavel, ReadsItsThreeWidths) {
  const auto jobs = [](const std::string& line) {
    const auto read = ParseTrace(line + "\n", "dir/vc_1.trace", {});
    EXPECT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->format, TraceFormat::kGavel);
    EXPECT_THAT(read->trace.owners, ElementsAre("vc_1"));
    return read->trace;
  };
  const Trace seven = jobs("LM (batch size 5)\tcd %s && run\t--steps\t1\t42\t6.500000\t4");
  EXPECT_EQ(seven.jobs[0].steps, 42);
  EXPECT_EQ(seven.jobs[0].duration_us, 0);
  EXPECT_EQ(seven.jobs[0].tasks, 4);
  EXPECT_EQ(seven.jobs[0].gpus_per_task, 1);
  EXPECT_EQ(seven.jobs[0].submit_us, 6'500'000);
  EXPECT_THAT(seven.profiles, ElementsAre("LM (batch size 5)"));
  EXPECT_EQ(jobs("A3C\trun\t--n\t0\t7\t2\t1\t-1.000000\t3").jobs[0].submit_us, 3 * kSecond);
  EXPECT_EQ(jobs("A3C\trun\trl\t--n\t0\t7\t2\t1\t-1.000000\t3").jobs[0].tasks, 2);
}

TEST(TraceGavel, NamesLineAndField) {
  const std::string good = "A3C\trun\t-n\t0\t7\t3\t1\n";
  const auto why = [&](const std::string& line) { return Why(TraceFormat::kGavel, good, line); };
  EXPECT_THAT(why("A3C\trun\t-n\t0\t0\t3\t1"), HasSubstr("t: line 2: total_steps: expected a whole number from 1"));
  EXPECT_THAT(why("A3C\trun\t-n\t0\t7\t-3\t1"), HasSubstr("line 2: arrival_time: expected a number from 0"));
  EXPECT_THAT(why("A3C\trun\t-n\t0\t7\t3\t0"), HasSubstr("line 2: scale_factor"));
  EXPECT_THAT(why("A3C\trun\t-n\t0\t7\t3"), HasSubstr("line 2: expected 7 fields as in the first row, found 6"));
  EXPECT_THAT(Why(TraceFormat::kGavel, "", "A3C\trun"), HasSubstr("line 1: expected 7 or 9 or 10 fields, found 2"));
  EXPECT_THAT(Why(TraceFormat::kGavel, "", "A\tr\t-n\t0\t7\t2\t1\t60\t3"), HasSubstr("SLO: expected -1"));
  EXPECT_THAT(why(std::string(2000, 'n') + "\trun\t-n\t0\t7\t3\t1"), HasSubstr("line 2: job_type"));
}

constexpr char kChronus[] =
    "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,expect_value_list,"
    "best_effort,job_type\n";

TEST(TraceChronus, ReadsDeadlinesFromTheSubmission) {
  const auto read = ParseTrace(std::string(kChronus) +
                                   "4,vc_a,8,100,5049,vgg16,747,14,1105,10,0,strict\n"
                                   "5,vc_b,1,90,5,alexnet,20,14,90,10,1,best\n"
                                   "6,vc_b,0,91,5,alexnet,20,14,30,10,0,strict\n",
                               "t.csv", {});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->format, TraceFormat::kChronus);
  EXPECT_EQ(read->rows, 3);
  EXPECT_THAT(read->left_out, ElementsAre(testing::Pair(HasSubstr("no GPU"), 1)));
  const TraceJob& best = read->trace.jobs[0];
  EXPECT_EQ(best.kind, JobKind::kBestEffort);
  EXPECT_EQ(best.deadline_us, 0);
  const TraceJob& strict = read->trace.jobs[1];
  EXPECT_EQ(strict.id, 4u);
  EXPECT_EQ(strict.deadline_us, 1205 * kSecond);
  EXPECT_EQ(strict.duration_us, 747 * kSecond);
  EXPECT_EQ(strict.steps, 0);  // iterations there have nothing to do with durations
  EXPECT_EQ(strict.tasks, 8);
  EXPECT_EQ(OwnerOf(read->trace, strict), "vc_a");
}

TEST(TraceChronus, NamesLineAndField) {
  const auto why = [&](const std::string& line) { return Why(TraceFormat::kChronus, kChronus, line); };
  EXPECT_THAT(why("x,u,1,1,1,m,1,1,1,1,0,strict"), HasSubstr("t: line 2: job_id"));
  EXPECT_THAT(why("1,u,-1,1,1,m,1,1,1,1,0,strict"), HasSubstr("line 2: num_gpu"));
  EXPECT_THAT(why("1,u,1,,1,m,1,1,1,1,0,strict"), HasSubstr("line 2: submit_time"));
  EXPECT_THAT(why("1,u,1,1,1,m,0,1,1,1,0,strict"), HasSubstr("line 2: duration_us, steps: expected exactly one"));
  EXPECT_THAT(why("1,u,1,1,1,m,1,1,0,1,0,strict"), HasSubstr("line 2: expect_time_list: expected above 0"));
  EXPECT_THAT(why("1,u,1,1,1,m,1,1,1-2,1,0,strict"), HasSubstr("line 2: expect_time_list"));
  EXPECT_THAT(why("1,u,1,1,1,m,1,1,1,1,2,strict"), HasSubstr("line 2: best_effort"));
  EXPECT_THAT(why("1,u,1,1,1,m,1,1,1,1,0,strict\n1,u,1,1,1,m,1,1,1,1,0,strict"), HasSubstr("line 3: id: expected each "
                                                                                           "once, found 1 again"));
}

constexpr char kMuri[] =
    "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,resource_time_0,"
    "resource_time_1,resource_time_2,priority\n";

TEST(TraceMuri, ReadsStepsWithTheirTimes) {
  const auto read =
      ParseTrace(std::string(kMuri) + "7,8,1534000,10,gpt2,4,5095000,91000,437,0.6,419,49,1\n", "t.csv", {});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->format, TraceFormat::kMuri);
  const TraceJob& job = read->trace.jobs[0];
  EXPECT_EQ(job.submit_us, 1534 * kSecond);
  EXPECT_EQ(job.duration_us, 4'370'000);  // 10 x 437 ms, whatever the column duration says
  EXPECT_EQ(job.kind, JobKind::kBestEffort);
  EXPECT_EQ(read->trace.step_times[0],
            (TraceStepTimes{.step_us = 437'000, .host_us = 600, .gpu_us = 419'000, .network_us = 49'000}));
  EXPECT_THAT(read->trace.profiles, ElementsAre("gpt2 (batch size 4)"));
}

TEST(TraceMuri, NamesLineAndField) {
  const auto why = [&](const std::string& line) { return Why(TraceFormat::kMuri, kMuri, line); };
  EXPECT_THAT(why("x,8,0,1,m,4,1,1,437,1,1,1,0"), HasSubstr("t: line 2: job_id"));
  EXPECT_THAT(why("1,0,0,1,m,4,1,1,437,1,1,1,0"), HasSubstr("line 2: num_gpu"));
  EXPECT_THAT(why("1,8,-5,1,m,4,1,1,437,1,1,1,0"), HasSubstr("line 2: submit_time"));
  EXPECT_THAT(why("1,8,0,0,m,4,1,1,437,1,1,1,0"), HasSubstr("line 2: iterations"));
  EXPECT_THAT(why("1,8,0,1,m,4,1,1,0,1,1,1,0"), HasSubstr("line 2: iteration_time: expected above 0"));
  EXPECT_THAT(why("1,8,0,36000000000000000,m,4,1,1,437,1,1,1,0"), HasSubstr("iterations: expected iterations x"));
  EXPECT_THAT(why("1,8,0,1,m,0,1,1,437,1,1,1,0"), HasSubstr("line 2: batch_size"));
  EXPECT_THAT(why("1,8,0,1,m,4,1,1,437,-1,1,1,0"), HasSubstr("line 2: resource_time_0"));
  EXPECT_THAT(why("1,8,0,1,m,4,1,1,437,1,one,1,0"), HasSubstr("line 2: resource_time_1"));
  EXPECT_THAT(why("1,8,0,1,m,4,1,1,437,1,1,,0"), HasSubstr("line 2: resource_time_2"));
  EXPECT_THAT(why("1,8,0,1,m,4,1,1,437,1,1,1,7"), HasSubstr("line 2: priority"));
}

constexpr char kPai[] = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n";
constexpr char kPaiTasks[] =
    "j1,worker,2.0,Terminated,1739162.0,1739200.0,600.0,29.296875,50.0,MISC\n"
    "j1,ps,1.0,Terminated,1739162.0,1739200.0,400.0,10,,\n"
    "j2,tensorflow,1.0,Running,1739000.0,,600.0,1,800.0,V100\n"
    "j3,tensorflow,1.0,Waiting,,,600.0,1,100.0,V100\n";
constexpr char kPaiJobs[] =
    "j1,i1,ann,Terminated,1739150.0,1739201.0\n"
    "j2,i2,bob,Running,,\n"
    "j3,i3,bob,Waiting,1739160,\n";

TEST(TracePai, TasksWithGpusAreJobs) {
  const auto read = ParseTrace(std::string(kPai) + kPaiTasks, "t.csv", {});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->format, TraceFormat::kPai);
  EXPECT_EQ(read->rows, 4);
  EXPECT_THAT(read->left_out,
              ElementsAre(testing::Pair("a task without GPUs", 1), testing::Pair(HasSubstr("never started"), 1)));
  ASSERT_EQ(read->trace.jobs.size(), 2u);
  const TraceJob& runs = read->trace.jobs[0];
  EXPECT_TRUE(runs.endless);
  EXPECT_EQ(runs.gpus_per_task, 8);
  EXPECT_EQ(runs.gpu_milli, 1000);
  const TraceJob& half = read->trace.jobs[1];
  EXPECT_EQ(half.tasks, 2);
  EXPECT_EQ(half.gpu_milli, 500);
  EXPECT_EQ(half.cpu_milli, 6000);
  EXPECT_EQ(half.mem_mib, 30'000);
  EXPECT_EQ(half.duration_us, 38 * kSecond);
  EXPECT_EQ(ProfileOf(read->trace, half), "worker");
}

TEST(TracePai, TheJobTableSaysOwnersAndSubmissions) {
  const TraceReadOptions options{.format = TraceFormat::kPai, .pai_job_table = "jobs.csv"};
  const auto read = ParseTrace(kPaiTasks, "t.csv", options, kPaiJobs);
  ASSERT_TRUE(read.ok()) << read.status();
  const TraceJob& half = read->trace.jobs[1];
  EXPECT_EQ(half.submit_us, 1739150 * kSecond);
  EXPECT_EQ(OwnerOf(read->trace, half), "ann");
  EXPECT_EQ(read->trace.jobs[0].submit_us, 1739000 * kSecond);  // not told: when it started
  const auto late = ParseTrace("j1,w,1,Failed,50,60,1,1,100,T4\n", "t.csv", options, "j1,i1,ann,Failed,55,60\n");
  EXPECT_EQ(late->trace.jobs[0].submit_us, 50 * kSecond);  // no task starts before its job is there
  const auto why = [&](const std::string& jobs) {
    return std::string(ParseTrace(kPaiTasks, "t.csv", options, jobs).status().message());
  };
  EXPECT_THAT(why("j1,i1,ann,Terminated,1,2\n"), HasSubstr("t.csv: line 3: job_name: expected a job of pai_job_table"));
  EXPECT_THAT(why("j1,i1,ann\n"), HasSubstr("jobs.csv: line 1: expected 6 fields, found 3"));
  EXPECT_THAT(why("j1,i1,ann,Terminated,x,2\n"), HasSubstr("jobs.csv: line 1: start_time"));
  EXPECT_THAT(why(std::string(kPaiJobs) + "j1,i1,ann,Failed,1,2\n"), HasSubstr("jobs.csv: line 4: job_name: expected "
                                                                               "each once"));
  EXPECT_THAT(std::string(ParseTrace("submit_us,duration_us\n1,1\n", "t.csv", {}, kPaiJobs).status().message()),
              HasSubstr("expected a trace of the format pai beside pai_job_table"));
}

TEST(TracePai, AHeaderMayHaveOtherColumnsInAnyOrder) {
  const auto read = ParseTrace(
      "plan_gpu,job_name,task_name,inst_num,start_time,end_time,plan_cpu,plan_mem,note\n100,j,w,1,5,9,100,1,x\n",
      "t.csv", {});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->format, TraceFormat::kPai);
  EXPECT_EQ(read->trace.jobs[0].gpu_milli, 1000);
}

TEST(TracePai, NamesLineAndField) {
  const auto why = [&](const std::string& line) { return Why(TraceFormat::kPai, kPai, line); };
  EXPECT_THAT(why("j,w,0,Failed,1,2,1,1,50,T4"), HasSubstr("t: line 2: inst_num"));
  EXPECT_THAT(why("j,w,1,Failed,x,2,1,1,50,T4"), HasSubstr("line 2: start_time"));
  EXPECT_THAT(why("j,w,1,Failed,5,2,1,1,50,T4"), HasSubstr("line 2: end_time: expected at least start_time"));
  EXPECT_THAT(why("j,w,1,Failed,1,2,-1,1,50,T4"), HasSubstr("line 2: plan_cpu"));
  EXPECT_THAT(why("j,w,1,Failed,1,2,1,much,50,T4"), HasSubstr("line 2: plan_mem"));
  EXPECT_THAT(why("j,w,1,Failed,1,2,1,1,150,T4"), HasSubstr("line 2: plan_gpu: expected at most 100 or a multiple"));
  EXPECT_THAT(why("j,w,1,Failed,1,2,1,1,half,T4"), HasSubstr("line 2: plan_gpu"));
  EXPECT_THAT(why("j,w,1,Failed,1,2,1,1,50"), HasSubstr("line 2: expected 10 fields"));
}

}  // namespace
}  // namespace horus
