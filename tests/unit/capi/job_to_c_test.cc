// SPDX-License-Identifier: Apache-2.0
// A job that crosses the C boundary outwards comes back as it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "capi/convert.h"

namespace horus::capi {
namespace {

Demand DemandOf(float util) {
  Demand demand;
  demand.profile_id = 7;
  demand.gpu_util_pct = {util, util + 1};
  demand.mem_bw_util_pct = {3, 4};
  demand.mem_mib = {500, 600};
  demand.step_time_us = {70, 80};
  demand.flags = kDemandGiven;
  return demand;
}

// Every field other than its default.
JobSpec Whole(const Catalogue& catalogue) {
  JobSpec job;
  job.id = 3;
  job.name = "name";
  job.tenant = "tenant";
  job.kind = JobKind::kInference;
  job.tasks = 2;
  job.gpus_per_task = 4;
  job.gpu_milli = 1000;
  job.exclusive = true;
  job.share = ShareWith::kSameTenant;
  job.gpu_mem_request_mib = 11;
  job.gpu_mem_limit_mib = 12;
  job.cpu_milli = 13;
  job.mem_mib = 14;
  job.storage_mb_s = 15;
  job.stated_cpu_milli = 0;
  job.stated_mem_mib = 5;
  job.sensitivity = SharedSensitivity(*Sensitivity::Create({1, 2}, {3}, std::vector<float>{0.5F, 1}));
  job.slowdown_bound = 1.5F;
  job.priority = -16;
  job.weight = 0.25F;
  job.submit_us = 17;
  job.deadline_us = 18;
  job.request_rate_hz = 19;
  job.latency_bound_us = 20;
  job.sm_cap_pct = 30;
  job.mps_chosen = true;
  job.demands = {{*catalogue.Find("t4"), DemandOf(40)}, {*catalogue.Find("a100-40gb"), DemandOf(30)}};
  job.node_selector = {{"zone", "east"}, {"disk", "ssd"}};
  job.groups = {"g", "a"};
  job.avoid_groups = {"h"};
  job.spread_tasks = true;
  NormalizeJob(job);
  return job;
}

JobSpec ThereAndBack(const Catalogue& catalogue, const JobSpec& job) {
  std::vector<char> bytes(JobBytes(catalogue, job));
  const absl::StatusOr<JobSpec> back = JobFromC(catalogue, PutJob(catalogue, job, bytes.data()));
  EXPECT_TRUE(back.ok()) << back.status();
  return back.value_or(JobSpec());
}

TEST(PutJob, EveryFieldComesBack) {
  const auto catalogue = Catalogue::Default();
  const JobSpec job = Whole(*catalogue);
  EXPECT_EQ(ThereAndBack(*catalogue, job), job);
}

TEST(PutJob, DefaultsAndAnyTypeComeBack) {
  const auto catalogue = Catalogue::Default();
  JobSpec job;
  job.demands = {{GpuTypeId::Invalid(), DemandOf(10)}};
  EXPECT_EQ(ThereAndBack(*catalogue, job), job);
  job.demands.clear();
  job.gpus_per_task = 0;  // the host alone
  EXPECT_EQ(ThereAndBack(*catalogue, job), job);
}

TEST(PutJob, WaysToRunComeBack) {
  const auto catalogue = Catalogue::Default();
  JobSpec job;
  job.alternatives = {{.tasks = 2, .gpus_per_task = 2, .cpu_milli = 0, .mem_mib = 9, .rate = 3},
                      {.gpu_milli = 300, .storage_mb_s = 4, .rate = 5}};
  for (JobAlternative& way : job.alternatives) way.demands = {{*catalogue->Find("t4"), DemandOf(10)}};
  EXPECT_EQ(ThereAndBack(*catalogue, job), job);
}

}  // namespace
}  // namespace horus::capi
