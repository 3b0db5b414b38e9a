// SPDX-License-Identifier: Apache-2.0
// modes: time of a batch, of rebalancing, of a what-if and of a preemption in a busy cluster.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/hash.h"
#include "bench/rows.h"
#include "device/catalogue.h"
#include "interference/registry.h"
#include "place/cluster.h"
#include "place/modes/batch.h"
#include "place/modes/preempt.h"
#include "place/modes/rebalance.h"
#include "place/modes/what_if.h"
#include "place/placer.h"

namespace horus::bench {
namespace {

// The cluster of benchmark `place`: 8 GPUs a node, 5 types, 80 % of the slots of up to 3 tenants taken, 200 profiles.
constexpr int32_t kGpusPerNode = 8;
constexpr const char* kGpuTypes[] = {"k80", "p100-sxm2-16gb", "v100-sxm2-32gb", "a100-40gb", "h100-sxm"};
constexpr int32_t kTenants = 3;
constexpr double kFill = 0.8;
constexpr uint64_t kProfiles = 200;
constexpr float kBound = 4;
constexpr double kBatchAimS = 3;

template <typename T>
T Must(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "modes: %s\n", value.status().ToString().c_str());
    std::exit(1);
  }
  return *std::move(value);
}
void Must(const absl::Status& status) {
  if (!status.ok()) Must(absl::StatusOr<int>(status));
}

uint64_t Draw(uint64_t seed, uint64_t range) { return Mix64(seed) % range; }
double Between(uint64_t seed, double low, double high) {
  return low + (high - low) * static_cast<double>(Mix64(seed) >> 11) / 9007199254740992.0;  // 2^53
}

std::vector<TypeDemand> MakeDemands(const std::vector<GpuTypeId>& types, uint64_t profile) {
  std::vector<TypeDemand> demands;
  for (const GpuTypeId type : types) {
    const auto draw = [&](uint64_t what, double low, double high) {
      return static_cast<float>(Between((profile * 8 + type.value()) * 64 + what, low, high));
    };
    Demand demand;
    demand.profile_id = profile + 1;
    demand.flags = kDemandGiven;
    const float util = draw(1, 5, 95), bandwidth = util * draw(2, 0.1, 0.7);
    demand.gpu_util_pct = {util, std::min(100.0f, util + 5)};
    demand.mem_bw_util_pct = {bandwidth, std::min(100.0f, bandwidth * 1.3f)};
    const auto mem = static_cast<int64_t>(512 + Draw(profile * 17 + 3, 3000));
    demand.mem_mib = {mem, mem + mem / 10};
    const auto step_us = static_cast<int64_t>(draw(3, 10'000, 400'000));
    demand.step_time_us = {step_us, step_us * 5 / 4};
    demand.operator_us = draw(4, 30, 900);
    const float compute = draw(5, 0.1f, 0.8f), launch = (1 - compute) * draw(6, 0.05f, 0.6f);
    demand.traits = {draw(7, 10, 13),      draw(8, 8, 11), draw(9, 2.2f, 3.4f),   compute,
                     1 - compute - launch, launch,         draw(10, 0.6f, 0.99f), draw(11, 0.3f, 1)};
    demands.push_back({type, demand});
  }
  return demands;
}

JobSpec MakeJob(const std::vector<GpuTypeId>& types, JobId id) {
  JobSpec job;
  job.id = id;
  job.cpu_milli = 2000;
  job.mem_mib = 8192;
  job.demands = MakeDemands(types, Draw(id, kProfiles));
  return job;
}

struct Setting {
  std::vector<GpuTypeId> types;
  Cluster cluster{Catalogue::Default()};
};

Setting MakeSetting(int32_t gpus) {
  Setting setting;
  for (const char* name : kGpuTypes) setting.types.push_back(Must(Catalogue::Default()->Find(name)));
  std::sort(setting.types.begin(), setting.types.end());
  const int32_t nodes = gpus / kGpusPerNode;
  for (int32_t n = 0; n < nodes; ++n) {
    NodeSpec node;
    node.id = static_cast<NodeId>(n);
    node.cpu_milli = 96'000;
    node.mem_mib = 768 * 1024;
    node.rack = static_cast<uint64_t>(n / 16);
    const GpuTypeId type = setting.types[Draw(static_cast<uint64_t>(n), setting.types.size())];
    node.devices.assign(kGpusPerNode, DeviceSpec{.type = type});
    Must(setting.cluster.AddNode(node));
  }
  const auto wanted = static_cast<size_t>(kFill * kTenants * gpus);
  std::vector<uint8_t> taken(static_cast<size_t>(gpus));
  for (JobId id = 1; setting.cluster.job_count() < wanted; ++id) {
    const Slot slot{.node = Draw(id * 3, static_cast<uint64_t>(nodes)),
                    .device = static_cast<int32_t>(Draw(id * 5, kGpusPerNode))};
    uint8_t& tenants = taken[slot.node * kGpusPerNode + static_cast<size_t>(slot.device)];
    if (tenants == kTenants) continue;
    ++tenants;
    Must(setting.cluster.Adopt(MakeJob(setting.types, id), {&slot, 1}).status());
  }
  return setting;
}

double NowS() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

template <typename Run>
auto Timed(const Run& run, double* seconds) {
  const double start = NowS();
  auto value = Must(run());
  *seconds = NowS() - start;
  return value;
}

void Measure(const Options& options, std::vector<Row>* rows) {
  const int32_t gpus = options.smoke ? 400 : 100'000;
  const size_t batch_size = options.smoke ? 80 : 10'000;
  const std::string size = options.smoke ? "_smoke" : "_100k";
  const Setting setting = MakeSetting(gpus);
  const auto placer = Must(
      Placer::Create(Must(MakeInterferenceModel("boosted")), Must(MakePolicy("horus")), {.slowdown_bound = kBound}));
  const std::string protocol = absl::StrFormat("%d GPUs, 80 %% of the slots taken, 200 profiles, boosted model", gpus);
  std::vector<JobSpec> jobs;
  for (size_t i = 0; i < batch_size; ++i) jobs.push_back(MakeJob(setting.types, (JobId{1} << 40) + i));
  double seconds = 0;
  double cold = 0;
  const Plan first = Timed([&] { return placer->MakePlan(setting.cluster, jobs); }, &cold);
  const Plan one = Timed([&] { return placer->MakePlan(setting.cluster, jobs); }, &seconds);
  const Plan batch = Timed([&] { return PlanBatch(*placer, setting.cluster, jobs); }, &cold);
  rows->push_back(
      {"batch_s" + size, cold, "s", kBatchAimS, true,
       absl::StrFormat("%.3g s one by one; work %.7g against %.7g", seconds, batch.work_after, batch.work_before),
       absl::StrFormat("%d jobs, %s", batch_size, protocol)});
  const RebalanceOptions moves = {.max_migrations = 16};
  const Plan rebalanced = Timed([&] { return Rebalance(*placer, setting.cluster, moves); }, &seconds);
  rows->push_back({"rebalance_s" + size, seconds, "s", 0, true,
                   absl::StrFormat("%d migrations gain %.4g", rebalanced.moves.size(),
                                   rebalanced.work_after - rebalanced.work_before),
                   "at most 16 migrations of any job, " + protocol});
  const std::vector<SupposedChange> drain = {
      {.kind = ChangeKind::kNodeState, .node = 1, .state = AdminState::kDrained}};
  const std::vector<JobSpec> few(jobs.begin(), jobs.begin() + 8);
  Timed([&] { return WhatIf(*placer, setting.cluster, drain, few, /*work=*/false); }, &seconds);
  rows->push_back(
      {"what_if_us" + size, 1e6 * seconds, "us", 0, true, "", "one node drained, 8 jobs decided, " + protocol});
  JobSpec urgent = jobs.front();
  urgent.priority = 100;
  urgent.gpus_per_task = 4;
  urgent.exclusive = true;
  const Plan preempted = Timed([&] { return PlanPreemption(*placer, setting.cluster, urgent); }, &seconds);
  rows->push_back({"preempt_s" + size, seconds, "s", 0, true,
                   absl::StrFormat("%d candidates, the best loses %.3g", preempted.candidates.size(),
                                   preempted.candidates.empty() ? 0 : preempted.candidates.front().loss),
                   "four GPUs of one node alone, 8 candidates of all nodes, " + protocol});
}

}  // namespace
}  // namespace horus::bench

int main(int argc, char** argv) { return horus::bench::Main(argc, argv, horus::bench::Measure); }
