// SPDX-License-Identifier: Apache-2.0
// The structs of the C ABI as the first release had them: the least that any caller passes.
//
// Leaves:  the first size of each struct.
// Units:   bytes; given by the last field of the first release, so that they hold on every platform.
#pragma once

#include <cstddef>

#include "horus/horus.h"

namespace horus::capi {

// A struct without a row is not frozen yet: all of it.
template <typename T>
inline constexpr size_t kFirstSize = sizeof(T);

// scripts/abi-accept adds the row of a new struct. It never changes: a new field at the struct's end leaves it alone.
#define HORUS_FIRST_RELEASE(Type, last_field) \
  template <>                                 \
  inline constexpr size_t kFirstSize<Type> = offsetof(Type, last_field) + sizeof(Type::last_field)

HORUS_FIRST_RELEASE(horus_graph_limits, max_rank);
HORUS_FIRST_RELEASE(horus_graph_info, bytes_held);
HORUS_FIRST_RELEASE(horus_run_spec, layout);
HORUS_FIRST_RELEASE(horus_mig_profile, max_instances);
HORUS_FIRST_RELEASE(horus_gpu, aliases);
HORUS_FIRST_RELEASE(horus_demand, operator_us);
HORUS_FIRST_RELEASE(horus_solve_options, resident_mib);
HORUS_FIRST_RELEASE(horus_solution, message);
HORUS_FIRST_RELEASE(horus_demand_observation, step_time_us);
HORUS_FIRST_RELEASE(horus_device, compute_share);
HORUS_FIRST_RELEASE(horus_pair_table, noise);
HORUS_FIRST_RELEASE(horus_slowdown_observation, device_id);
HORUS_FIRST_RELEASE(horus_calibration, covered);
HORUS_FIRST_RELEASE(horus_node, network_mb_s);
HORUS_FIRST_RELEASE(horus_job_alternative, storage_mb_s);
HORUS_FIRST_RELEASE(horus_job, slowdown_confidence);
HORUS_FIRST_RELEASE(horus_sensitivity, speeds);
HORUS_FIRST_RELEASE(horus_slots, tasks);
HORUS_FIRST_RELEASE(horus_cluster_info, bytes_held);
HORUS_FIRST_RELEASE(horus_node_info, network_mb_s);
HORUS_FIRST_RELEASE(horus_device_info, mem_limit_mib);
HORUS_FIRST_RELEASE(horus_job_info, stated_mem_mib);
HORUS_FIRST_RELEASE(horus_placer_options, sharing_quota);
HORUS_FIRST_RELEASE(horus_workload, catalogue);
HORUS_FIRST_RELEASE(horus_decision, trial);
HORUS_FIRST_RELEASE(horus_effects, calibrated_up_to);
HORUS_FIRST_RELEASE(horus_batch_options, max_evaluations);
HORUS_FIRST_RELEASE(horus_rebalance_options, job_ids);
HORUS_FIRST_RELEASE(horus_change, tasks);
HORUS_FIRST_RELEASE(horus_appraisal, reserved);
HORUS_FIRST_RELEASE(horus_plan_info, work_after);
HORUS_FIRST_RELEASE(horus_preempt_options, max_checks);
HORUS_FIRST_RELEASE(horus_move, mem_mib);
HORUS_FIRST_RELEASE(horus_tenant_review, reserved0);
HORUS_FIRST_RELEASE(horus_preemption, slots);
HORUS_FIRST_RELEASE(horus_queue_options, patience_us);
HORUS_FIRST_RELEASE(horus_queued_job, ideal_us);
HORUS_FIRST_RELEASE(horus_metrics_options, clock_user);
HORUS_FIRST_RELEASE(horus_metric_columns, values);
HORUS_FIRST_RELEASE(horus_config_options, cache);
HORUS_FIRST_RELEASE(horus_service_load, token_us);
HORUS_FIRST_RELEASE(horus_service, engine_arguments);
HORUS_FIRST_RELEASE(horus_library_info, models);
HORUS_FIRST_RELEASE(horus_interference_info, name);
HORUS_FIRST_RELEASE(horus_slowdowns, measured);
HORUS_FIRST_RELEASE(horus_queue_info, jobs);
HORUS_FIRST_RELEASE(horus_service_run, token_us);

}  // namespace horus::capi
