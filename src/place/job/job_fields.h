// SPDX-License-Identifier: Apache-2.0
// The fields of a job and of its demands by name, for what does the same with each of them.
//
// Enters:  a job.   Leaves: lists of its fields.
#pragma once

#include <tuple>

#include "place/job/job.h"

namespace horus {

// X(field) for each that horus_job and the job of a snapshot have too, by the same name, in the same unit and with the
// same values: convert.cc and snapshot.cc copy them by this list, and the others one by one.
#define HORUS_PLAIN_JOB_FIELDS(X) \
  X(gpu_milli)                    \
  X(gpu_mem_request_mib)          \
  X(gpu_mem_limit_mib)            \
  X(sm_cap_pct)                   \
  X(cpu_milli)                    \
  X(mem_mib)                      \
  X(storage_mb_s)                 \
  X(slowdown_bound)               \
  X(slowdown_confidence)          \
  X(priority)                     \
  X(request_rate_hz)              \
  X(latency_bound_us)

// The same of horus_demand and the demand of a snapshot: those with an upper bound beside them (mem_mib,
// mem_mib_upper), and those without.
#define HORUS_BOUNDED_DEMAND_FIELDS(X) X(gpu_util_pct) X(mem_bw_util_pct) X(mem_mib) X(step_time_us) X(power_w)
#define HORUS_PLAIN_DEMAND_FIELDS(X) \
  X(profile_id) X(flags) X(gradient_mib) X(distance) X(operator_us) X(host_us) X(slowdown_bound)

// All fields but the job's own, which are id, name, submit_us and deadline_us; jobs that agree in them are one request
// (state/requests.h). A new field of JobSpec does not compile here until it is named on one of the sides.
[[nodiscard]] inline auto SharedFields(const JobSpec& job) {
  const auto& [id, name, tenant, kind, tasks, gpus_per_task, gpu_milli, exclusive, share, gpu_mem_request_mib,
               gpu_mem_limit_mib, sm_cap_pct, cpu_milli, mem_mib, storage_mb_s, stated_cpu_milli, stated_mem_mib,
               sensitivity, slowdown_bound, slowdown_confidence, priority, weight, submit_us, deadline_us,
               request_rate_hz, latency_bound_us, demands, node_selector, groups, avoid_groups, spread_tasks,
               sm_cap_chosen, exclusive_chosen, mps_chosen, alternatives] = job;
  return std::tie(tenant, kind, tasks, gpus_per_task, gpu_milli, exclusive, share, gpu_mem_request_mib,
                  gpu_mem_limit_mib, sm_cap_pct, cpu_milli, mem_mib, storage_mb_s, stated_cpu_milli, stated_mem_mib,
                  sensitivity, slowdown_bound, slowdown_confidence, priority, weight, request_rate_hz, latency_bound_us,
                  demands, node_selector, groups, avoid_groups, spread_tasks, sm_cap_chosen, exclusive_chosen,
                  mps_chosen, alternatives);
}

}  // namespace horus
