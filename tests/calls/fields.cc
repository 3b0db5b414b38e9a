// SPDX-License-Identifier: Apache-2.0
// The tables of what may be corrupted. Callbacks and what they get, and paths of libraries are left alone.
#include <array>

#include "calls/corrupt.h"

namespace horus::calls {

#define F(member) HORUS_FIELD(Given, member)
#define FEWER(member) HORUS_FEWER(Given, member)
#define HORUS_FIELDS(type, ...)                          \
  template <>                                            \
  std::span<const Field> FieldsOf<type>() {              \
    using Given = type;                                  \
    static constexpr std::array kFields = {__VA_ARGS__}; \
    return kFields;                                      \
  }

HORUS_FIELDS(horus_node, F(device_count), F(id), F(name), F(cpu_milli), F(mem_mib), F(storage_mb_s), F(rack),
             F(gpu_types), F(sharing_modes), F(mig_profiles), F(physical_gpus), F(nvlink_islands), F(pcie_switches),
             F(sockets), F(max_tenants), F(gpu_mem_mib), F(label_count), F(label_keys), F(label_values),
             F(network_mb_s))
HORUS_FIELDS(horus_demand, F(flags), F(profile_id), F(gpu_util_pct), F(gpu_util_pct_upper), F(mem_bw_util_pct),
             F(mem_bw_util_pct_upper), F(mem_mib), F(mem_mib_upper), F(step_time_us), F(step_time_us_upper),
             F(gradient_mib), F(traits), F(power_w), F(power_w_upper), F(distance), F(operator_us))
HORUS_FIELDS(horus_job_alternative, F(tasks), F(gpus_per_task), F(gpu_milli), F(demand_count), F(gpu_types), F(demands),
             F(rate), F(cpu_milli), F(mem_mib), F(storage_mb_s))
HORUS_FIELDS(horus_sensitivity, F(reserved), F(cpu_count), F(cpu_milli), F(mem_count), F(mem_mib), F(speeds))
HORUS_FIELDS(horus_job, F(kind), F(id), F(name), F(tasks), F(gpus_per_task), F(gpu_milli), F(exclusive), F(priority),
             F(slowdown_bound), F(cpu_milli), F(mem_mib), F(storage_mb_s), F(submit_us), F(deadline_us),
             F(request_rate_hz), F(latency_bound_us), F(demand_count), F(gpu_types), F(demands), F(selector_count),
             F(selector_keys), F(selector_values), F(tenant), F(alternative_count), F(alternatives),
             F(gpu_mem_request_mib), F(gpu_mem_limit_mib), F(share), F(spread_tasks), F(group_count), F(groups),
             F(avoid_count), F(avoid_groups), F(sensitivity), F(stated_cpu_milli), F(stated_mem_mib), F(weight),
             F(slowdown_confidence))
HORUS_FIELDS(horus_workload, F(reserved), FEWER(task_count), F(cpu_milli), F(gpus), F(gpu_milli), F(gpu_types),
             F(shares), FEWER(job_count), F(jobs))
HORUS_FIELDS(horus_placer_options, F(max_tenants), F(policy), F(interference), F(seed), F(slowdown_bound),
             F(probe_outside), F(mem_headroom_mib), F(max_jobs), F(rack_oversubscription), F(mem_overcommit),
             F(gpu_price), F(pack_threshold), F(foreground_bound), F(profiling_label), F(workload),
             F(synergy_tolerance), F(synergy_grow), F(max_candidates), F(terse), F(sharing_quota))
HORUS_FIELDS(horus_batch_options, F(max_rounds), F(restarts), F(reserved))
HORUS_FIELDS(horus_rebalance_options, F(max_migrations), F(downtime_s), F(horizon_s), F(min_gain), F(max_searches),
             FEWER(job_count), F(job_ids))
HORUS_FIELDS(horus_preempt_options, F(max_candidates))
HORUS_FIELDS(horus_change, F(kind), F(job_id), F(node_id), F(device), F(state), F(job), FEWER(slot_count), F(node_ids),
             F(devices), F(tasks))
HORUS_FIELDS(horus_queue_options, F(clusters), F(gpu_milli), F(cpu_milli), F(mem_mib), F(las_threshold_count),
             F(las_thresholds_gpu_us), F(las_continuous), F(reserved), F(aging_us_per_pct), F(recluster_share),
             F(patience_us))
HORUS_FIELDS(horus_queued_job, F(priority), F(id), F(owner), F(submit_us), F(tasks), F(gpus), F(gpu_milli), F(reserved),
             F(cpu_milli), F(mem_mib), F(gpu_util_pct), F(gpu_util_pct_upper), F(gpu_mem_mib), F(gpu_mem_mib_upper),
             F(total_us), F(remaining_us), F(attained_gpu_us), F(deadline_us), F(ideal_us))
HORUS_FIELDS(horus_gpu, F(reserved), F(name), F(display_name), F(architecture), F(source), F(compute_capability),
             F(sm_count), F(boost_clock_mhz), F(fp64_gflops), F(fp32_gflops), F(fp16_gflops), F(int8_gops), F(mem_mib),
             F(mem_bandwidth_mb_s), F(l2_kib), F(pcie_mb_s), F(nvlink_mb_s), F(tdp_w), F(context_mib),
             F(max_mps_clients), FEWER(mig_count), F(mig_profiles), FEWER(alias_count), F(aliases))
HORUS_FIELDS(horus_mig_profile, F(reserved), F(name), F(compute_slices), F(memory_slices), F(mem_mib), F(max_instances))
HORUS_FIELDS(horus_device, F(sharing_mode), F(gpu_type), F(compute_share))
HORUS_FIELDS(horus_pair_table, F(reserved), FEWER(count), F(gpu_types), F(sharing_modes), F(profiles_a), F(profiles_b),
             F(slowdown_a), F(slowdown_b), F(noise))
HORUS_FIELDS(horus_slowdown_observation, F(sharing_mode), F(gpu_type), F(compute_share), F(job), F(co_tenant_count),
             F(co_tenants), F(slowdown), F(predicted), F(predicted_upper), F(device_id))
HORUS_FIELDS(horus_demand_observation, F(measured), F(profile_id), F(gpu_type), F(gpu_util_pct), F(mem_bw_util_pct),
             F(mem_mib), F(step_time_us))
HORUS_FIELDS(horus_request_load, F(reserved), F(requests_per_s), F(service_us), F(slowdown), F(service_cv))
HORUS_FIELDS(horus_trace_columns, F(reserved), FEWER(count), F(ids), F(submit_us), F(duration_us), F(steps), F(endless),
             F(deadline_us), F(tasks), F(gpus_per_task), F(gpu_milli), F(cpu_milli), F(mem_mib), F(kinds),
             F(priorities), FEWER(profile_count), F(profile_names), F(profiles))
HORUS_FIELDS(horus_synthetic_options, F(arrivals), F(preset), F(seed), F(mean_gap_us), F(capacity_gpu_milli),
             F(load_milli), F(gap_scv_milli), F(owners), F(reserved0))
HORUS_FIELDS(horus_profile_demands, F(reserved), FEWER(count), F(profiles), F(gpu_types), F(demands))
HORUS_FIELDS(horus_sim_options, F(hide_run_times), F(discipline), F(queue), F(look_ahead), F(preempt),
             F(best_of_window), F(weights), F(profile_each_job), F(restart_us), F(checkpoint_us), F(latency_us),
             FEWER(outage_count), F(outage_nodes), F(outage_from_us), F(outage_until_us), F(rebalance), F(observe_us),
             F(profiling_us), F(profiling_label), F(weigh_waiting), F(reserved0), F(learns), F(reserved1))
HORUS_FIELDS(horus_speeds, F(reference), F(gpu_count), F(gpu_types), F(profile_count), F(profiles), F(alone),
             F(pair_count), F(pair_gpus), F(pairs_a), F(pairs_b), F(speeds_a), F(speeds_b), F(slowdowns))
HORUS_FIELDS(horus_potential_options, F(reserved), FEWER(bound_count), F(slowdown_bounds), F(least_gain))
HORUS_FIELDS(horus_graph_limits, F(reserved), F(max_nodes), F(max_nesting), F(max_held_bytes), F(max_literal_elements),
             F(max_name_bytes), F(max_rank))
HORUS_FIELDS(horus_run_spec, F(mode), F(precision), F(optimizer), F(batch), FEWER(dim_count), F(dim_names),
             F(dim_sizes), F(checkpoint_segments), F(data_parallel), FEWER(frozen_count), F(frozen_prefixes),
             F(framework), F(reserved))
HORUS_FIELDS(horus_solve_options, F(reserved), F(dim), F(max_value), F(resident_mib))
HORUS_FIELDS(horus_training_data, F(reserved), FEWER(count), F(graphs), F(runs), F(gpu_types), F(families), F(nets),
             F(gpu_util_pct), F(mem_mib), F(step_time_us))
HORUS_FIELDS(horus_training_options, F(rounds), F(promise), F(seed), F(reserved))
HORUS_FIELDS(horus_pair_data, F(reserved), FEWER(device_count), F(gpu_types), F(sharing_modes), FEWER(job_count),
             F(families), F(demands), FEWER(count), F(devices), F(jobs_a), F(jobs_b), F(campaigns), F(slowdown_a),
             F(slowdown_b))
HORUS_FIELDS(horus_pair_options, F(seed), F(model), F(promise))
HORUS_FIELDS(horus_profile_sensitivities, F(reserved), FEWER(count), F(profiles), F(sensitivities))
HORUS_FIELDS(horus_metrics_options, F(log_level))
HORUS_FIELDS(horus_sim_window, F(reserved), F(from_us), F(to_us), F(slowdown_bound))

}  // namespace horus::calls
