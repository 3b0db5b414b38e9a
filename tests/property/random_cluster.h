// SPDX-License-Identifier: Apache-2.0
// Random nodes and jobs from a seed, equal on every machine.
//
// Enters:  a seed.                        Leaves: values that pass validation.
// Units:   as node.h and job.h.
// Cost:    none.                          Thread class: one thread at a time.
#ifndef HORUS_TESTS_PROPERTY_RANDOM_CLUSTER_H_
#define HORUS_TESTS_PROPERTY_RANDOM_CLUSTER_H_

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "device/catalogue.h"
#include "lab/policies/rivals.h"
#include "place/job/job.h"
#include "place/policies/policies.h"
#include "place/state/node.h"

namespace horus::testing_property {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(Mix64(seed)) {}
  uint64_t Next() { return state_ = Mix64(state_); }
  // From 0 to below `limit`.
  uint64_t Below(uint64_t limit) { return Next() % limit; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }

 private:
  uint64_t state_;
};

inline constexpr std::array<std::string_view, 3> kTypes = {"k80", "v100-sxm2-16gb", "a100-40gb"};

inline GpuTypeId TypeAt(size_t index) { return *Catalogue::Default()->Find(kTypes[index]); }

inline NodeSpec RandomNode(Random& random, NodeId id) {
  NodeSpec node;
  node.id = id;
  node.cpu_milli = 8000 + static_cast<int64_t>(random.Below(5)) * 4000;
  node.mem_mib = 65'536;
  node.storage_mb_s = 500;
  node.network_mb_s = 1000 * static_cast<int64_t>(1 + id % 3);
  node.rack = random.Below(3);
  if (random.OneIn(2)) node.labels = {{"zone", random.OneIn(2) ? "a" : "b"}};
  const size_t type = random.Below(kTypes.size());
  const auto mode = static_cast<SharingMode>(random.Below(5));
  const size_t count = 1 + random.Below(4);
  for (size_t i = 0; i < count; ++i) {
    DeviceSpec device{.type = TypeAt(type), .mode = mode == SharingMode::kMig ? SharingMode::kTimeSlice : mode};
    if (mode == SharingMode::kMig && kTypes[type] == "a100-40gb") {
      device.mode = SharingMode::kMig;
      device.mig_profile = 0;
      device.physical_gpu = 0;
    }
    if (random.OneIn(5)) device.max_tenants = 1 + static_cast<int32_t>(random.Below(4));
    node.devices.push_back(device);
  }
  if (random.OneIn(4)) node.labels.insert(node.labels.begin(), {kProfilingLabel, ""});
  return node;
}

// One of `profiles` demands per type, so that device states repeat.
inline Demand RandomDemand(Random& random, uint64_t profiles, size_t type) {
  Random profile(1000 + random.Below(profiles) * 10 + type);
  Demand demand;
  const auto util = static_cast<float>(5 + profile.Below(90));
  demand.gpu_util_pct = {util, util + static_cast<float>(profile.Below(6))};
  const auto mem = static_cast<int64_t>(200 + profile.Below(9000));
  demand.mem_mib = {mem, mem + static_cast<int64_t>(profile.Below(500))};
  const auto step = static_cast<int64_t>(10'000 + profile.Below(200'000));
  demand.step_time_us = {step, step};
  const auto traffic = static_cast<float>(profile.Below(60));
  demand.mem_bw_util_pct = {traffic, traffic};
  if (!profile.OneIn(3)) demand.flags = kDemandMeasured;
  if (profile.OneIn(3)) demand.flags |= kDemandOutside;
  if (profile.OneIn(5)) {  // a service: late alone, barely within its promises, or with room
    demand.slowdown_bound = 0.8f + 0.6f * static_cast<float>(profile.Below(4));
    if (!profile.OneIn(4)) demand.duty = 0.1f * static_cast<float>(1 + profile.Below(9));
  }
  return demand;
}

inline JobSpec RandomJob(Random& random, JobId id, uint64_t profiles = 12) {
  JobSpec job;
  job.id = id;
  job.priority = static_cast<int32_t>(random.Below(3));
  job.submit_us = static_cast<int64_t>(random.Below(5));
  if (random.OneIn(4)) job.tasks = 1 + static_cast<int32_t>(random.Below(6));
  if (random.OneIn(6)) job.gpus_per_task = 1 + static_cast<int32_t>(random.Below(3));
  if (job.gpus_per_task == 1 && random.OneIn(4)) job.gpu_milli = 100 * (1 + static_cast<int32_t>(random.Below(10)));
  job.exclusive = random.OneIn(8);
  const bool cpu_only = random.OneIn(8);
  job.cpu_milli = 500 * static_cast<int64_t>(random.Below(6));
  job.mem_mib = 1024 * static_cast<int64_t>(random.Below(8));
  job.storage_mb_s = 20 * static_cast<int64_t>(random.Below(4));
  if (random.OneIn(3)) job.slowdown_bound = 1.0f + 0.25f * static_cast<float>(random.Below(6));
  if (random.OneIn(6)) job.slowdown_confidence = random.OneIn(2) ? 0.7f : 0.95f;
  if (random.OneIn(4)) job.weight = random.OneIn(2) ? 4.0f : 0.3f;
  if (random.OneIn(6)) job.node_selector = {{"zone", "a"}};
  constexpr std::array<const char*, 3> kNames = {"a", "b", "c"};  // of tenants and of groups
  if (random.OneIn(2)) job.tenant = kNames[random.Below(2)];
  if (!random.OneIn(6)) job.share = ShareWith::kAnyone;
  if (random.OneIn(6)) job.groups.emplace_back(kNames[random.Below(3)]);
  if (random.OneIn(8)) job.avoid_groups.emplace_back(kNames[random.Below(3)]);
  job.spread_tasks = random.OneIn(8);
  if (random.OneIn(12)) job.sm_cap_pct = 10 * (1 + static_cast<int32_t>(random.Below(9)));
  if (random.OneIn(5)) job.gpu_mem_request_mib = 500 * static_cast<int64_t>(random.Below(8));
  if (random.OneIn(5)) job.gpu_mem_limit_mib = job.gpu_mem_request_mib + 1000 * static_cast<int64_t>(random.Below(8));
  if (cpu_only) {
    job.gpus_per_task = job.gpu_milli = job.sm_cap_pct = 0;
    job.gpu_mem_request_mib = job.gpu_mem_limit_mib = 0;
    job.exclusive = false;
  } else if (random.OneIn(3)) {
    job.demands = {{GpuTypeId::Invalid(), RandomDemand(random, profiles, 0)}};
  } else {
    for (size_t type = 0; type < kTypes.size(); ++type) {
      if (!random.OneIn(3) || (type + 1 == kTypes.size() && job.demands.empty())) {
        job.demands.push_back({TypeAt(type), RandomDemand(random, profiles, type)});
      }
    }
  }
  if (random.OneIn(3)) job.kind = random.OneIn(2) ? JobKind::kInference : JobKind::kBestEffort;
  if (job.kind == JobKind::kInference && random.OneIn(2)) {
    job.latency_bound_us = 20'000 * (1 + static_cast<int64_t>(random.Below(20)));
    job.request_rate_hz = static_cast<double>(random.Below(10));
  }
  NormalizeJob(job);
  return job;
}

// Noisy, with holes, around the fair shares of random nodes.
inline SharedSensitivity RandomSensitivity(Random& random) {
  std::vector<int64_t> cpu, mem;
  for (uint64_t i = 1 + random.Below(6), at = 0; i > 0; --i)
    cpu.push_back(static_cast<int64_t>(at += 1000 + random.Below(3000)));
  for (uint64_t i = 1 + random.Below(3), at = 0; i > 0; --i)
    mem.push_back(static_cast<int64_t>(at += 4096 + random.Below(20'000)));
  std::vector<float> speeds;
  for (size_t i = 0; i < cpu.size() * mem.size(); ++i) {
    speeds.push_back(random.OneIn(10) ? 0.0f : 0.01f * static_cast<float>(1 + random.Below(300)));
  }
  speeds.back() = 1;
  return SharedSensitivity(*Sensitivity::Create(std::move(cpu), std::move(mem), speeds));
}

// Now and then the job with one.
inline JobSpec MaybeSensitive(Random& random, JobSpec job) {
  if (random.OneIn(3)) job.sensitivity = RandomSensitivity(random);
  return job;
}

// Those that this build can run.
inline std::vector<std::string_view> Policies() {
  std::vector<std::string_view> names = PolicyNames();
#ifndef HORUS_TEST_LP
  std::erase(names, "synergy-opt");
#endif
  return names;
}

// Now and then the job as it is, or on one GPU at a third of the speed.
inline JobSpec MaybeInTwoWays(Random& random, JobSpec job) {
  if (IsCpuOnly(job) || !random.OneIn(5)) return job;
  JobAlternative way{.tasks = job.tasks, .gpus_per_task = job.gpus_per_task, .gpu_milli = job.gpu_milli, .rate = 3};
  way.demands = std::move(job.demands);
  job.demands.clear();
  job.tasks = job.gpus_per_task = 1;
  job.gpu_milli = 0;
  job.alternatives = {way, way};
  job.alternatives[1].tasks = job.alternatives[1].gpus_per_task = 1;
  job.alternatives[1].rate = 1;
  return job;
}

}  // namespace horus::testing_property

#endif  // HORUS_TESTS_PROPERTY_RANDOM_CLUSTER_H_
