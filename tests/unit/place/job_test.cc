// SPDX-License-Identifier: Apache-2.0
// Rules of job requests.
#include "place/job/job.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace horus {
namespace {

JobSpec Good() {
  JobSpec job;
  job.id = 7;
  job.name = "resnet";
  job.demands = {{GpuTypeId(0), Demand()}, {GpuTypeId(2), Demand()}};
  return job;
}

struct BadCase {
  std::string field;
  std::function<void(JobSpec&)> spoil;
};

TEST(Job, AcceptsAPlainRequest) { EXPECT_TRUE(ValidateJob(Good()).ok()); }

TEST(Job, NamesJobFieldExpectedAndFoundOfABadRequest) {
  const std::vector<BadCase> cases = {
      {"tasks", [](JobSpec& job) { job.tasks = 0; }},
      {"tasks", [](JobSpec& job) { job.tasks = -1; }},
      {"gpus_per_task", [](JobSpec& job) { job.gpus_per_task = -1; }},
      {"demands", [](JobSpec& job) { job.gpus_per_task = 0; }},
      {"gpu_milli",
       [](JobSpec& job) {
         job.gpus_per_task = 0;
         job.gpu_milli = 100;
       }},
      {"exclusive",
       [](JobSpec& job) {
         job.gpus_per_task = 0;
         job.exclusive = true;
       }},
      {"tasks x gpus_per_task", [](JobSpec& job) { job.tasks = job.gpus_per_task = kMaxGpusPerJob; }},
      {"gpu_milli", [](JobSpec& job) { job.gpu_milli = 1001; }},
      {"gpu_milli", [](JobSpec& job) { job.gpu_milli = -1; }},
      {"gpu_milli",
       [](JobSpec& job) {
         job.gpu_milli = 500;
         job.gpus_per_task = 2;
       }},
      {"cpu_milli", [](JobSpec& job) { job.cpu_milli = -1; }},
      {"mem_mib", [](JobSpec& job) { job.mem_mib = INT64_MAX; }},
      {"storage_mb_s", [](JobSpec& job) { job.storage_mb_s = -5; }},
      {"slowdown_bound", [](JobSpec& job) { job.slowdown_bound = 0.5f; }},
      {"weight", [](JobSpec& job) { job.weight = 0; }},
      {"weight", [](JobSpec& job) { job.weight = std::nanf(""); }},
      {"weight", [](JobSpec& job) { job.weight = 2 * kMaxWorkWeight; }},
      {"slowdown_bound", [](JobSpec& job) { job.slowdown_bound = std::nanf(""); }},
      {"sm_cap_pct", [](JobSpec& job) { job.sm_cap_pct = 100; }},
      {"request_rate_hz", [](JobSpec& job) { job.request_rate_hz = -1; }},
      {"deadline_us", [](JobSpec& job) { job.deadline_us = -1; }},
      {"latency_bound_us", [](JobSpec& job) { job.latency_bound_us = 500'000; }},  // of a training job
      {"kind", [](JobSpec& job) { job.kind = static_cast<JobKind>(9); }},
      {"demands", [](JobSpec& job) { job.demands.clear(); }},
      {"demands[1]", [](JobSpec& job) { job.demands[1].type = GpuTypeId(0); }},
      {"demands[1]", [](JobSpec& job) { job.demands[1].type = GpuTypeId::Invalid(); }},
      {"demands[0]", [](JobSpec& job) { job.demands[0].demand.mem_mib = {5, 4}; }},
      {"tenant", [](JobSpec& job) { job.tenant = std::string(kMaxNameBytes + 1, 'x'); }},
      {"node_selector[0]", [](JobSpec& job) { job.node_selector = {{"", "x"}}; }},
      {"node_selector[1]", [](JobSpec& job) { job.node_selector = {{"b", "x"}, {"a", "y"}}; }},
      {"alternatives", [](JobSpec& job) { job.alternatives.resize(1); }},
  };
  for (const BadCase& bad : cases) {
    JobSpec job = Good();
    bad.spoil(job);
    const absl::Status status = ValidateJob(job);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad.field;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("job 7 ('resnet'): " + bad.field));
  }
}

TEST(Job, FindsTheDemandOfAllowedTypesOnly) {
  const JobSpec job = Good();
  EXPECT_EQ(FindDemand(job, GpuTypeId(2)), &job.demands[1].demand);
  EXPECT_EQ(FindDemand(job, GpuTypeId(1)), nullptr);
}

TEST(Job, OneDemandWithoutATypeHoldsForEveryType) {
  JobSpec job = Good();
  job.demands = {{GpuTypeId::Invalid(), Demand()}};
  EXPECT_TRUE(ValidateJob(job).ok());
  EXPECT_EQ(FindDemand(job, GpuTypeId(5)), &job.demands[0].demand);
}

TEST(Job, NormalizeSortsWhatValidateWantsSorted) {
  JobSpec job = Good();
  std::swap(job.demands[0], job.demands[1]);
  job.node_selector = {{"b", "x"}, {"a", "y"}};
  EXPECT_FALSE(ValidateJob(job).ok());
  NormalizeJob(job);
  EXPECT_TRUE(ValidateJob(job).ok());
}

}  // namespace
}  // namespace horus
