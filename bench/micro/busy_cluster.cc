// SPDX-License-Identifier: Apache-2.0
// Draws demands and fills the cluster.
#include "bench/micro/busy_cluster.h"

#include <time.h>

#include <algorithm>

#include "base/hash.h"
#include "interference/registry.h"
#include "place/policies/policies.h"

namespace horus::bench {
namespace {

double Between(uint64_t seed, double low, double high) {
  return low + (high - low) * static_cast<double>(Mix64(seed) >> 11) / 9007199254740992.0;  // 2^53
}

// What a job of that profile demands of each type: busy 5-95 %, memory 0.5-3.4 GiB, so that three fit the smallest GPU,
// steps of 10-400 ms, roofline shares that add up to 1.
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

}  // namespace

uint64_t Draw(uint64_t seed, uint64_t range) { return Mix64(seed) % range; }

JobSpec MakeJob(const std::vector<GpuTypeId>& types, JobId id, uint64_t profiles) {
  JobSpec job;
  job.id = id;
  job.cpu_milli = 2000;
  job.mem_mib = 8192;
  job.demands = MakeDemands(types, profiles == 0 ? id : Draw(id, profiles));
  return job;
}

Setting MakeSetting(const Shape& shape) {
  Setting setting;
  for (const char* name : kGpuTypes) setting.types.push_back(Must(setting.catalogue->Find(name)));
  std::sort(setting.types.begin(), setting.types.end());
  const int32_t nodes = shape.gpus / kGpusPerNode;
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
  const auto wanted = static_cast<size_t>(shape.fill * kTenants * shape.gpus);
  std::vector<uint8_t> taken(static_cast<size_t>(shape.gpus));
  for (JobId id = 1; setting.residents.size() < wanted; ++id) {
    const Slot slot{.node = Draw(id * 3, static_cast<uint64_t>(nodes)),
                    .device = static_cast<int32_t>(Draw(id * 5, kGpusPerNode))};
    if (shape.idle_every > 0 && slot.node % shape.idle_every == 0) continue;
    uint8_t& tenants = taken[slot.node * kGpusPerNode + static_cast<size_t>(slot.device)];
    if (tenants == kTenants) continue;
    ++tenants;
    Must(setting.cluster.Adopt(MakeJob(setting.types, id, shape.profiles), {&slot, 1}).status());
    setting.residents.push_back(id);
  }
  return setting;
}

std::unique_ptr<Placer> MakePlacer(const Shape& shape) {
  PlacerOptions options;
  options.exhaustive = shape.exhaustive;
  options.slowdown_bound = kBound;
  options.max_candidates = shape.max_candidates;
  options.terse = shape.terse;
  return Must(Placer::Create(Must(MakeInterferenceModel(shape.model)), Must(MakePolicy("horus")), options));
}

double NowUs() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e6 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_nsec);
}

}  // namespace horus::bench
