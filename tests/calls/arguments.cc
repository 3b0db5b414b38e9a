// SPDX-License-Identifier: Apache-2.0
// Makes the arguments.
#include "calls/arguments.h"

#include <algorithm>
#include <bit>

namespace horus::calls {
namespace {

constexpr std::array<const char*, 3> kMigProfiles = {"1g.5gb", "3g.20gb", "7g.40gb"};

constexpr std::array<const char*, kMostDevices> kDeviceIds = {"GPU-a", "GPU-b", nullptr, "", "GPU-c"};

void MakeDevices(Choices& choices, uint32_t count, NodeArgument& out) {
  horus_node& node = out.node.value;
  const char* type = choices.Of(kGpuTypes);
  const auto mode = static_cast<int32_t>(choices.Below(5));
  const bool mig = mode == HORUS_SHARING_MIG;
  const char* profile = choices.Of(kMigProfiles);
  const bool mixed = choices.OneIn(8);
  for (uint32_t i = 0; i < count; ++i) {
    out.gpu_types[i] = mig ? "a100-40gb" : mixed ? choices.Of(kGpuTypes) : type;
    out.sharing_modes[i] = mode;
    out.mig_profiles[i] = mig ? profile : nullptr;
    out.physical_gpus[i] = mig ? static_cast<int32_t>(profile == kMigProfiles[2] ? i : i / 2) : -1;
    out.islands[i] = static_cast<int32_t>(i / 4);
    out.switches[i] = static_cast<int32_t>(i / 2);
    out.max_tenants[i] = static_cast<int32_t>(choices.Below(5));
  }
  node.device_count = count;
  node.gpu_types = out.gpu_types.data();
  node.sharing_modes = out.sharing_modes.data();
  if (mig) {
    node.mig_profiles = out.mig_profiles.data();
    node.physical_gpus = out.physical_gpus.data();
  } else if (!mixed && choices.OneIn(2)) {
    node.nvlink_islands = out.islands.data();
    node.pcie_switches = out.switches.data();
  }
  if (choices.OneIn(2)) node.max_tenants = out.max_tenants.data();
  if (choices.OneIn(8)) {
    for (uint32_t i = 0; i < count; ++i) out.gpu_mem_mib[i] = 4096;
    node.gpu_mem_mib = out.gpu_mem_mib.data();
  }
  if (choices.OneIn(2)) node.device_ids = kDeviceIds.data();
  if (!choices.OneIn(16)) return;  // the columns that are taken apart by NULL entries and numbers
  const uint64_t at = choices.Below(count);
  if (choices.OneIn(2)) {
    out.gpu_types[at] = choices.OneIn(2) ? nullptr : HostileText(choices);
  } else {
    out.max_tenants[at] = out.physical_gpus[at] = out.sharing_modes[at] = static_cast<int32_t>(choices.HostileBits());
  }
}

}  // namespace

void MakeNode(Choices& choices, uint64_t id, uint32_t most_devices, uint64_t hostile, NodeArgument& out) {
  horus_node& node = out.node.value = HORUS_NODE_INIT;
  node.id = id;
  if (choices.OneIn(4)) node.name = "node";
  node.cpu_milli = 16'000 + 16'000 * static_cast<int64_t>(choices.Below(5));
  node.mem_mib = 262'144;
  node.storage_mb_s = choices.OneIn(4) ? 0 : 4'000;
  node.network_mb_s = 1'000 * static_cast<int64_t>(choices.Below(4));
  node.rack = choices.Below(3);
  if (choices.OneIn(2)) {
    out.label_keys = {choices.Of(kNames), "zone"};
    out.label_values = {"", "1"};
    node.label_count = 2;
    node.label_keys = out.label_keys.data();
    node.label_values = out.label_values.data();
  }
  const auto most = std::min(most_devices, kMostDevices);
  // Mostly full nodes; those without GPUs are rare.
  const auto count = choices.OneIn(3) ? static_cast<uint32_t>(choices.Below(most + 1)) : most;
  if (count > 0) MakeDevices(choices, count, out);
  MaybeCorrupt(choices, hostile, out.node);
}

void MakeDemand(Choices& choices, uint64_t hostile, Roomy<horus_demand>& out) {
  horus_demand& demand = out.value = HORUS_DEMAND_INIT;
  // Of so many kinds, so that jobs are alike now and then.
  const uint64_t kind = choices.Below(24);
  demand.flags = kind % 5 == 0 ? HORUS_DEMAND_OUTSIDE : HORUS_DEMAND_GIVEN;
  demand.profile_id = kind % 3 == 0 ? 0 : kind + 1;
  demand.gpu_util_pct = static_cast<float>(3 + kind * 4);
  demand.gpu_util_pct_upper = kind % 2 == 0 ? 0.0f : static_cast<float>(5 + kind * 4);
  demand.mem_bw_util_pct = static_cast<float>(kind * 3);
  demand.mem_mib = 300 + 450 * static_cast<int64_t>(kind);
  demand.mem_mib_upper = kind % 2 == 0 ? 0 : demand.mem_mib + 500;
  demand.step_time_us = kind % 7 == 0 ? 0 : 50'000;
  demand.gradient_mib = kind % 4 == 0 ? 100 : 0;
  MaybeCorrupt(choices, hostile, out);
}

void MakeDemands(Choices& choices, uint64_t hostile, DemandsArgument& out) {
  out.count = choices.OneIn(2) ? 1 : 2 + choices.Below(2);
  const uint64_t first = choices.Below(3);
  for (size_t i = 0; i < out.count; ++i) {
    MakeDemand(choices, hostile * 4, out.demands[i]);
    out.pointers[i] = &out.demands[i].value;
    out.gpu_types[i] = kGpuTypes[(first + i) % 3];
  }
  if (out.count == 1 && choices.OneIn(2)) out.gpu_types[0] = nullptr;  // any type
  if (choices.OneIn(4 * hostile)) out.pointers[0] = nullptr;
  if (choices.OneIn(4 * hostile)) out.gpu_types[0] = HostileText(choices);
}

namespace {

void MakeAlternatives(Choices& choices, uint64_t hostile, JobArgument& out) {
  const size_t count = 1 + choices.Below(2);
  for (size_t i = 0; i < count; ++i) {
    MakeDemands(choices, hostile, out.alternative_demands[i]);
    horus_job_alternative& way = out.alternatives[i].value = HORUS_JOB_ALTERNATIVE_INIT;
    way.tasks = static_cast<int32_t>(choices.Below(3));
    way.gpus_per_task = static_cast<int32_t>(choices.Below(3));
    way.demand_count = out.alternative_demands[i].count;
    way.gpu_types = out.alternative_demands[i].gpu_types.data();
    way.demands = out.alternative_demands[i].pointers.data();
    way.rate = 1.0 + static_cast<double>(i);
    way.cpu_milli = static_cast<int64_t>(choices.Below(3)) - 1;
    MaybeCorrupt(choices, hostile, out.alternatives[i]);
    out.alternative_pointers[i] = choices.OneIn(8 * hostile) ? nullptr : &out.alternatives[i].value;
  }
  out.job.value.alternative_count = count;
  out.job.value.alternatives = out.alternative_pointers.data();
}

void MakeSensitivity(Choices& choices, uint64_t hostile, JobArgument& out) {
  out.cpu_milli = {1'000, 3'000, 9'000};
  out.mem_mib = {4'096, 16'384};
  out.speeds = {0.5f, 0, 0.8f, 0.9f, 1, 1};
  if (choices.OneIn(4 * hostile)) out.cpu_milli[choices.Below(3)] = static_cast<int64_t>(choices.HostileBits());
  if (choices.OneIn(4 * hostile)) {
    out.speeds[choices.Below(6)] = std::bit_cast<float>(static_cast<uint32_t>(choices.HostileBits()));
  }
  horus_sensitivity& matrix = out.sensitivity.value = HORUS_SENSITIVITY_INIT;
  matrix.cpu_count = 3;
  matrix.cpu_milli = out.cpu_milli.data();
  matrix.mem_count = 2;
  matrix.mem_mib = out.mem_mib.data();
  matrix.speeds = out.speeds.data();
  MaybeCorrupt(choices, hostile, out.sensitivity);
  out.job.value.sensitivity = &out.sensitivity.value;
}

// Who may be near whom, and labels.
void MakeRelations(Choices& choices, JobArgument& out) {
  horus_job& job = out.job.value;
  job.tenant = choices.Of(kNames);
  job.share = choices.OneIn(4) ? HORUS_SHARE_SAME_TENANT : HORUS_SHARE_ANYONE;
  if (choices.OneIn(4)) job.slowdown_confidence = choices.OneIn(2) ? 0.6f : 0.99f;
  job.spread_tasks = choices.OneIn(4) ? 1 : 0;
  out.groups = {choices.Of(kNames), "c"};
  out.avoid = {choices.Of(kNames), "d"};
  job.group_count = choices.Below(3);
  job.groups = out.groups.data();
  job.avoid_count = choices.Below(3);
  job.avoid_groups = out.avoid.data();
  if (choices.OneIn(4)) {
    out.selector_keys = {"zone", choices.Of(kNames)};
    out.selector_values = {"1", ""};
    job.selector_count = 1 + choices.Below(2);
    job.selector_keys = out.selector_keys.data();
    job.selector_values = out.selector_values.data();
  }
}

void MakeRequests(Choices& choices, horus_job& job) {
  job.kind = static_cast<int32_t>(choices.Below(3));
  if (job.kind == HORUS_JOB_INFERENCE) {
    job.request_rate_hz = 3;
    job.latency_bound_us = choices.OneIn(2) ? 400'000 : 0;
  }
  job.slowdown_bound = 1.0f + 0.5f * static_cast<float>(choices.Below(4));
  job.storage_mb_s = 100 * static_cast<int64_t>(choices.Below(3));
  job.gpu_mem_request_mib = choices.OneIn(3) ? 2'000 : 0;
  job.gpu_mem_limit_mib = choices.OneIn(3) ? 5'000 : 0;
  job.sm_cap_pct = choices.OneIn(4) ? 30 : 0;
  job.deadline_us = static_cast<int64_t>(choices.Below(3));
  job.weight = choices.OneIn(3) ? 3.0f : 0.0f;
  job.stated_cpu_milli = choices.OneIn(8) ? 500 : 0;
}

}  // namespace

void MakeJob(Choices& choices, uint64_t id, uint64_t hostile, uint64_t variety, JobArgument& out) {
  horus_job& job = out.job.value = HORUS_JOB_INIT;
  job.id = id;
  job.cpu_milli = 500 * static_cast<int64_t>(choices.Below(6));
  job.mem_mib = 1'024 * static_cast<int64_t>(choices.Below(8));
  job.priority = static_cast<int32_t>(choices.Below(4)) - 1;
  job.submit_us = static_cast<int64_t>(choices.Below(16));
  const uint64_t shape = choices.Below(16);
  if (shape == 0) {
    job.gpus_per_task = HORUS_JOB_NO_GPUS;
    job.tasks = static_cast<int32_t>(choices.Below(4));
  } else if (shape == 1) {
    MakeAlternatives(choices, hostile, out);
  } else {
    MakeDemands(choices, hostile, out.demands);
    job.demand_count = out.demands.count;
    job.gpu_types = out.demands.gpu_types.data();
    job.demands = out.demands.pointers.data();
    if (shape < 5) job.tasks = 1 + static_cast<int32_t>(choices.Below(5));
    if (shape < 4) job.gpus_per_task = 1 + static_cast<int32_t>(choices.Below(4));
    if (shape > 12) job.gpu_milli = 100 * (1 + static_cast<int32_t>(choices.Below(10)));
    if (shape == 12) job.exclusive = 1;
  }
  if (choices.OneIn(variety)) MakeRelations(choices, out);
  if (choices.OneIn(variety)) MakeRequests(choices, job);
  if (choices.OneIn(2 * variety)) MakeSensitivity(choices, hostile, out);
  if (shape == 0) job.gpu_mem_request_mib = job.gpu_mem_limit_mib = 0;
  MaybeCorrupt(choices, hostile, out.job);
}

}  // namespace horus::calls
