/* SPDX-License-Identifier: Apache-2.0 */
/* horus/cluster.h: nodes, states, jobs that run already, and what can be asked of a cluster. */
#include "fixture.h"

static void NodesComeChangeAndGo(void) {
  horus_cluster* cluster = cluster_of(3);
  horus_node node = two_gpu_node(2);
  horus_node_info info = HORUS_NODE_INFO_INIT;
  uint64_t ids[3] = {0, 0, 0}, hash = state_hash(cluster);
  size_t count = 99;
  CHECK_STATUS(HORUS_ERR_EXISTS, horus_cluster_add_node(cluster, &node, &error));
  CHECK(state_hash(cluster) == hash);
  CHECK_OK(horus_cluster_nodes(cluster, 0, NULL, &count, &error));
  CHECK(count == 3);
  CHECK_STATUS(HORUS_ERR_BUFFER_TOO_SMALL, horus_cluster_nodes(cluster, 2, ids, &count, &error));
  CHECK(ids[0] == 0 && ids[1] == 0);
  CHECK_OK(horus_cluster_nodes(cluster, 3, ids, &count, &error));
  CHECK(ids[0] == 1 && ids[1] == 2 && ids[2] == 3);

  node.cpu_milli = 32000;
  CHECK_OK(horus_cluster_change_node(cluster, &node, &error));
  CHECK_OK(horus_cluster_get_node(cluster, 2, &info, 0, NULL, &count, &error));
  CHECK(info.cpu_milli == 32000 && info.cpu_free_milli == 32000 && info.devices == 2 && count == 0);
  node.id = 77;
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_cluster_change_node(cluster, &node, &error));
  CHECK_OK(horus_cluster_remove_node(cluster, 2, &error));
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_cluster_remove_node(cluster, 2, &error));
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_cluster_get_node(cluster, 2, &info, 0, NULL, NULL, &error));
  CHECK_OK(horus_cluster_nodes(cluster, 3, ids, &count, &error));
  CHECK(count == 2);
  horus_cluster_free(cluster);
}

static void BadNodesAreRefusedByField(void) {
  horus_cluster* cluster = cluster_of(1);
  const uint64_t hash = state_hash(cluster);
  const char* const unknown[2] = {FIXTURE_GPU, "v100-pcie-17gb"};
  const char* const missing[2] = {FIXTURE_GPU, NULL};
  const int32_t bad_modes[2] = {HORUS_SHARING_MPS, 9};
  const int32_t bad_islands[2] = {0, 70000};
  const char* const profiles[2] = {"1g.5gb", NULL};
  const int32_t mps[2] = {HORUS_SHARING_MPS, HORUS_SHARING_MPS}, mig[2] = {0, HORUS_SHARING_MIG};
  const char* const labels[1] = {"zone"};
  horus_node node = two_gpu_node(5);
  node.gpu_types = unknown;
  CHECK_MESSAGE(HORUS_ERR_NOT_FOUND, "node 5: gpu_types[1]", horus_cluster_add_node(cluster, &node, &error));
  node.gpu_types = missing;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "gpu_types[1]", horus_cluster_add_node(cluster, &node, &error));
  node.gpu_types = NULL;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "gpu_types", horus_cluster_add_node(cluster, &node, &error));
  node = two_gpu_node(5);
  node.sharing_modes = bad_modes;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "sharing_modes[1]", horus_cluster_add_node(cluster, &node, &error));
  node = two_gpu_node(5);
  node.nvlink_islands = bad_islands;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "nvlink_islands[1]", horus_cluster_add_node(cluster, &node, &error));
  node = two_gpu_node(5);
  node.mig_profiles = profiles; /* a V100 has none */
  CHECK_MESSAGE(HORUS_ERR_NOT_FOUND, "mig_profiles[0]", horus_cluster_add_node(cluster, &node, &error));
  node.sharing_modes = mps;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "mig_profiles[0]: expected NULL beside sharing mode mps, found '1g.5gb'",
                horus_cluster_add_node(cluster, &node, &error));
  node = two_gpu_node(5);
  node.sharing_modes = mig;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "mig_profiles[1]: expected a MIG profile of v100-pcie-16gb",
                horus_cluster_add_node(cluster, &node, &error));
  node = two_gpu_node(5);
  node.label_count = 1;
  node.label_keys = labels;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "label_values", horus_cluster_add_node(cluster, &node, &error));
  node = two_gpu_node(5);
  node.name = "caf\xc3";
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "UTF-8", horus_cluster_add_node(cluster, &node, &error));
  node = two_gpu_node(5);
  node.cpu_milli = -1;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_add_node(cluster, &node, &error));
  node = two_gpu_node(5);
  node.device_count = 0xFFFFFFFFu;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "device_count", horus_cluster_add_node(cluster, &node, &error));
  CHECK(state_hash(cluster) == hash);
  horus_cluster_free(cluster);
}

static void MigInstancesAreDevices(void) {
  horus_cluster* cluster = cluster_of(0);
  const char* const types[2] = {"a100-40gb", "a100-40gb"};
  const char* const profiles[2] = {"3g.20gb", "3g.20gb"};
  const int32_t cards[2] = {0, 0};
  horus_node node = two_gpu_node(1);
  horus_device_info info = HORUS_DEVICE_INFO_INIT;
  node.gpu_types = types;
  node.mig_profiles = profiles;
  node.physical_gpus = cards;
  CHECK_OK(horus_cluster_add_node(cluster, &node, &error));
  CHECK_OK(horus_cluster_get_device(cluster, 1, 1, &info, 0, NULL, NULL, &error));
  CHECK(info.sharing_mode == HORUS_SHARING_MIG && info.mem_mib < 40960);
  CHECK(info.mig_profile != NULL && strcmp(info.mig_profile, "3g.20gb") == 0);
  horus_cluster_free(cluster);
}

static void DevicesKeepTheIdsThatTheCallerGaveThem(void) {
  horus_cluster* cluster = cluster_of(0);
  const char* const none[2] = {NULL, ""};
  const char* const ids[2] = {"GPU-0a", NULL};
  const char* const others[2] = {"GPU-0b", "GPU-0a"};
  const char* const twice[2] = {"GPU-0a", "GPU-0a"};
  const uint64_t at = 1;
  const uint32_t device = 0;
  horus_node node = two_gpu_node(1);
  horus_device_info info = HORUS_DEVICE_INFO_INIT;
  given_job given;
  uint64_t hash;
  CHECK_OK(horus_cluster_add_node(cluster, &node, &error));
  hash = state_hash(cluster);
  node.device_ids = none;
  CHECK_OK(horus_cluster_change_node(cluster, &node, &error));
  CHECK(state_hash(cluster) == hash); /* the same as no column */
  CHECK_OK(horus_cluster_remove_node(cluster, 1, &error));
  node.device_ids = twice;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "device_ids[1]", horus_cluster_add_node(cluster, &node, &error));
  node.device_ids = ids;
  CHECK_OK(horus_cluster_add_node(cluster, &node, &error));
  CHECK_OK(horus_cluster_get_device(cluster, 1, 0, &info, 0, NULL, NULL, &error));
  CHECK(info.device_id != NULL && strcmp(info.device_id, "GPU-0a") == 0);
  CHECK_OK(horus_cluster_get_device(cluster, 1, 1, &info, 0, NULL, NULL, &error));
  CHECK(info.device_id == NULL);
  give_job(&given, 10, 60, 4000);
  CHECK_OK(horus_cluster_adopt(cluster, &given.job, 1, &at, &device, NULL, NULL, &error));
  node.device_ids = others; /* the job would be on another GPU */
  CHECK_MESSAGE(HORUS_ERR_STATE, "GPU-0b", horus_cluster_change_node(cluster, &node, &error));
  CHECK_OK(horus_cluster_release(cluster, 10, &error));
  CHECK_OK(horus_cluster_change_node(cluster, &node, &error));
  CHECK_OK(horus_cluster_get_device(cluster, 1, 1, &info, 0, NULL, NULL, &error));
  CHECK(strcmp(info.device_id, "GPU-0a") == 0);
  horus_cluster_free(cluster);
}

static void RunningJobsAreAdopted(void) {
  horus_cluster* cluster = cluster_of(2);
  const uint64_t nodes[2] = {1, 2}, unknown[2] = {1, 9};
  const uint32_t devices[2] = {0, 1}, tasks[2] = {0, 1}, beyond[2] = {0, 0x80000000u};
  uint64_t slot_nodes[2] = {0, 0};
  uint32_t slot_devices[2] = {9, 9}, slot_tasks[2] = {9, 9};
  horus_slots slots = HORUS_SLOTS_INIT;
  horus_job_info info = HORUS_JOB_INFO_INIT;
  uint64_t hash = state_hash(cluster);
  int32_t reason = 99;
  size_t count = 0;
  given_job given;
  give_job(&given, 10, 60, 4000);
  given.job.tasks = 2;
  CHECK_STATUS(HORUS_ERR_NOT_FOUND,
               horus_cluster_adopt(cluster, &given.job, 2, unknown, devices, tasks, &reason, &error));
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_cluster_adopt(cluster, &given.job, 2, nodes, beyond, tasks, &reason, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               horus_cluster_adopt(cluster, &given.job, 1, nodes, devices, tasks, &reason, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               horus_cluster_adopt(cluster, &given.job, 2, nodes, devices, NULL, &reason, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               horus_cluster_adopt(cluster, &given.job, 2, NULL, devices, tasks, &reason, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               horus_cluster_adopt(cluster, NULL, 2, nodes, devices, tasks, &reason, &error));
  CHECK(reason == 99 && state_hash(cluster) == hash);
  CHECK_OK(horus_cluster_adopt(cluster, &given.job, 2, nodes, devices, tasks, &reason, &error));
  CHECK(reason == HORUS_REASON_NONE && state_hash(cluster) != hash);
  CHECK_STATUS(HORUS_ERR_EXISTS, horus_cluster_adopt(cluster, &given.job, 2, nodes, devices, tasks, NULL, &error));

  CHECK_OK(horus_cluster_get_job(cluster, 10, &info, 0, NULL, NULL, &error));
  CHECK(info.adopted == 1 && info.over_committed == 0 && info.tasks == 2 && info.gpus_per_task == 1);
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_cluster_get_job(cluster, 11, &info, 0, NULL, NULL, &error));
  slots.capacity = 1;
  CHECK_STATUS(HORUS_ERR_BUFFER_TOO_SMALL, horus_cluster_job_slots(cluster, 10, &slots, &count, &error));
  CHECK(count == 2);
  slots.capacity = 2;
  slots.node_ids = slot_nodes;
  slots.devices = slot_devices;
  slots.tasks = slot_tasks;
  CHECK_OK(horus_cluster_job_slots(cluster, 10, &slots, &count, &error));
  CHECK(slot_nodes[0] == 1 && slot_devices[0] == 0 && slot_tasks[0] == 0);
  CHECK(slot_nodes[1] == 2 && slot_devices[1] == 1 && slot_tasks[1] == 1);
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_cluster_job_slots(cluster, 11, &slots, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_job_slots(cluster, 10, &slots, NULL, &error));

  /* What runs is true even where it does not fit: flagged, not refused. */
  give_job(&given, 11, 60, 15000);
  CHECK_OK(horus_cluster_adopt(cluster, &given.job, 1, nodes, devices, NULL, &reason, &error));
  CHECK(reason == HORUS_REASON_GPU_MEMORY);
  CHECK_OK(horus_cluster_get_job(cluster, 11, &info, 0, NULL, NULL, &error));
  CHECK(info.over_committed == 1);
  horus_cluster_free(cluster);
}

/* Whatever a job states is told of the resident, after a restore too, in as many bytes as it says. */
static void AResidentTellsAllThatWasStated(void) {
  static const char* const keys[] = {"zone"};
  static const char* const values[] = {"east"};
  static const char* const groups[] = {"a", "b"};
  static const char* const avoided[] = {"c"};
  static const int64_t cores[] = {1000, 2000}, memory[] = {512};
  static const float speeds[] = {0.5f, 1};
  const char* const types[] = {"V100-SXM2-16GB", "t4"};
  horus_cluster *cluster = cluster_of(1), *restored = NULL;
  const uint64_t node = 1;
  const uint32_t device = 0;
  horus_job_info info = HORUS_JOB_INFO_INIT;
  horus_sensitivity sensitivity = HORUS_SENSITIVITY_INIT;
  size_t count = 0, size = 0;
  char bytes[4096], snapshot[8192];
  const horus_demand* demands[2];
  horus_demand other = HORUS_DEMAND_INIT;
  const horus_job* told;
  given_job given;
  give_job(&given, 7, 30, 4000);
  other.gpu_util_pct = 50;
  other.step_time_us = 200000;
  other.profile_id = 77;
  demands[0] = &given.demand;
  demands[1] = &other;
  sensitivity.cpu_count = 2;
  sensitivity.cpu_milli = cores;
  sensitivity.mem_count = 1;
  sensitivity.mem_mib = memory;
  sensitivity.speeds = speeds;
  given.job.name = "resnet";
  given.job.tenant = "red";
  given.job.priority = 3;
  given.job.deadline_us = 99;
  given.job.weight = 2;
  given.job.slowdown_bound = 3;
  given.job.demand_count = 2;
  given.job.gpu_types = types;
  given.job.demands = demands;
  given.job.group_count = 2;
  given.job.groups = groups;
  given.job.avoid_count = 1;
  given.job.avoid_groups = avoided;
  given.job.selector_count = 1;
  given.job.selector_keys = keys;
  given.job.selector_values = values;
  given.job.sensitivity = &sensitivity;
  CHECK_OK(horus_cluster_adopt(cluster, &given.job, 1, &node, &device, NULL, NULL, &error));
  CHECK_OK(horus_cluster_snapshot(cluster, sizeof snapshot, snapshot, &size, &error));
  CHECK_OK(horus_cluster_restore(NULL, snapshot, size, &restored, &error));
  horus_cluster_free(cluster);

  CHECK_OK(horus_cluster_get_job(restored, 7, &info, 0, bytes, &count, &error));
  CHECK(count > sizeof(horus_job) && count < sizeof bytes - 1 && info.adopted == 1 && info.job == NULL);
  size = count;
  CHECK_STATUS(HORUS_ERR_BUFFER_TOO_SMALL, horus_cluster_get_job(restored, 7, &info, size - 1, bytes, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_get_job(restored, 7, &info, size, NULL, &count, &error));
  CHECK_OK(horus_cluster_get_job(restored, 7, &info, size, bytes + 1, NULL, &error)); /* of any alignment */
  told = info.job;
  CHECK((const char*)told > bytes && (const char*)(told + 1) <= bytes + 1 + size);
  CHECK(told->id == 7 && strcmp(told->name, "resnet") == 0 && strcmp(told->tenant, "red") == 0 && told->priority == 3);
  CHECK(told->deadline_us == 99 && told->weight == 2 && told->slowdown_bound == 3 && told->cpu_milli == 1000);
  CHECK(told->tasks == 1 && told->gpus_per_task == 1 && told->share == HORUS_SHARE_SAME_TENANT);
  CHECK(told->demand_count == 2 && strcmp(told->gpu_types[0], "v100-sxm2-16gb") == 0);
  CHECK(strcmp(told->gpu_types[1], "t4") == 0 && told->demands[0]->gpu_util_pct == 30);
  CHECK(told->demands[1]->profile_id == 77 && told->demands[1]->gpu_util_pct == 50);
  CHECK(told->group_count == 2 && strcmp(told->groups[1], "b") == 0 && strcmp(told->avoid_groups[0], "c") == 0);
  CHECK(strcmp(told->selector_keys[0], "zone") == 0 && strcmp(told->selector_values[0], "east") == 0);
  CHECK(told->sensitivity != NULL && told->sensitivity->cpu_milli[1] == 2000 && told->sensitivity->speeds[0] == 0.5f);
  CHECK(told->alternative_count == 0 && told->alternatives == NULL);

  {
    const uint64_t hash = state_hash(restored); /* and it can be stated again */
    CHECK_OK(horus_cluster_release(restored, 7, &error));
    CHECK_OK(horus_cluster_adopt(restored, told, 1, &node, &device, NULL, NULL, &error));
    CHECK(state_hash(restored) == hash);
  }
  horus_cluster_free(restored);
}

static void EachGpuTypeIsStatedOnce(void) {
  const char* const types[] = {"v100-sxm2-16gb", "V100-SXM2-16GB"};
  const horus_demand* demands[2];
  horus_cluster* cluster = cluster_of(1);
  const uint64_t node = 1;
  const uint32_t device = 0;
  given_job given;
  give_job(&given, 7, 30, 4000);
  demands[0] = demands[1] = &given.demand;
  given.job.demand_count = 2;
  given.job.gpu_types = types;
  given.job.demands = demands;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "each GPU type once, found 'V100-SXM2-16GB'",
                horus_cluster_adopt(cluster, &given.job, 1, &node, &device, NULL, NULL, &error));
  horus_cluster_free(cluster);
}

static void StatesReportTheJobsThere(void) {
  horus_cluster* cluster = cluster_of(2);
  const uint64_t nodes[1] = {1};
  const uint32_t first[1] = {0}, second[1] = {1};
  uint64_t jobs[2] = {0, 0}, hash;
  horus_device_info device = HORUS_DEVICE_INFO_INIT;
  horus_node_info node = HORUS_NODE_INFO_INIT;
  horus_cluster_info info = HORUS_CLUSTER_INFO_INIT;
  size_t count = 0;
  given_job given;
  give_job(&given, 21, 30, 4000);
  CHECK_OK(horus_cluster_adopt(cluster, &given.job, 1, nodes, first, NULL, NULL, &error));
  give_job(&given, 20, 30, 4000);
  CHECK_OK(horus_cluster_adopt(cluster, &given.job, 1, nodes, second, NULL, NULL, &error));
  hash = state_hash(cluster);

  CHECK_STATUS(HORUS_ERR_BUFFER_TOO_SMALL,
               horus_cluster_set_state(cluster, 1, HORUS_WHOLE_NODE, HORUS_STATE_DOWN, 1, jobs, &count, &error));
  CHECK(count == 2 && jobs[0] == 0 && state_hash(cluster) == hash);
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               horus_cluster_set_state(cluster, 1, HORUS_WHOLE_NODE, 3, 2, jobs, &count, &error));
  CHECK_STATUS(HORUS_ERR_NOT_FOUND,
               horus_cluster_set_state(cluster, 9, HORUS_WHOLE_NODE, HORUS_STATE_DOWN, 2, jobs, &count, &error));
  CHECK_OK(horus_cluster_set_state(cluster, 1, HORUS_WHOLE_NODE, HORUS_STATE_DOWN, 2, jobs, &count, &error));
  CHECK(count == 2 && jobs[0] == 20 && jobs[1] == 21 && state_hash(cluster) != hash);
  CHECK_OK(horus_cluster_get_node(cluster, 1, &node, 2, jobs, &count, &error));
  CHECK(node.state == HORUS_STATE_DOWN && node.jobs == 2 && count == 2);
  CHECK_STATUS(HORUS_ERR_BUFFER_TOO_SMALL, horus_cluster_get_node(cluster, 1, &node, 1, jobs, &count, &error));
  CHECK_OK(horus_cluster_set_state(cluster, 1, HORUS_WHOLE_NODE, HORUS_STATE_UP, 0, NULL, NULL,
                                   &error)); /* ids not wanted */
  CHECK(state_hash(cluster) == hash);

  jobs[0] = 0;
  CHECK_OK(horus_cluster_set_state(cluster, 1, 1, HORUS_STATE_DRAINED, 0, jobs, &count, &error));
  CHECK(count == 1 && jobs[0] == 0); /* counted, not written */
  CHECK_OK(horus_cluster_set_state(cluster, 1, 1, HORUS_STATE_DRAINED, 2, jobs, &count, &error));
  CHECK(count == 1 && jobs[0] == 20);
  CHECK_STATUS(HORUS_ERR_NOT_FOUND,
               horus_cluster_set_state(cluster, 1, 2, HORUS_STATE_DRAINED, 2, jobs, &count, &error));
  CHECK_STATUS(HORUS_ERR_NOT_FOUND,
               horus_cluster_set_state(cluster, 1, 0xFFFFFFFEu, HORUS_STATE_UP, 2, jobs, &count, &error));
  jobs[0] = 0;
  CHECK_OK(horus_cluster_get_device(cluster, 1, 1, &device, 2, jobs, &count, &error));
  CHECK(device.device_state == HORUS_STATE_DRAINED && device.node_state == HORUS_STATE_UP && device.tenants == 1);
  CHECK(device.mem_reserved_mib == 4000 && device.gpu_util_pct == 30 && device.mig_profile == NULL);
  CHECK(count == 1 && jobs[0] == 20 && device.sharing_mode == HORUS_SHARING_TIME_SLICE);
  CHECK_OK(horus_cluster_get_device(cluster, 1, 1, &device, 0, jobs, &count, &error));
  CHECK(count == 1);
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_cluster_get_device(cluster, 1, 2, &device, 2, jobs, &count, &error));
  CHECK_STATUS(HORUS_ERR_NOT_FOUND,
               horus_cluster_get_device(cluster, 1, 0xFFFFFFFFu, &device, 2, jobs, &count, &error));

  CHECK_STATUS(HORUS_ERR_STATE, horus_cluster_remove_node(cluster, 1, &error)); /* its jobs are not forgotten */
  CHECK_OK(horus_cluster_get_info(cluster, &info, &error));
  CHECK(info.nodes == 2 && info.devices == 4 && info.devices_used == 2 && info.jobs == 2 && info.slots == 2);
  CHECK(info.gpu_util_pct == 15 && info.gpu_mem_reserved_mib == 8000 && info.cpu_used_milli == 2000);
  CHECK(info.bytes_held > 0);
  CHECK_OK(horus_cluster_jobs(cluster, 2, jobs, &count, &error));
  CHECK(count == 2 && jobs[0] == 20 && jobs[1] == 21);
  CHECK_STATUS(HORUS_ERR_BUFFER_TOO_SMALL, horus_cluster_jobs(cluster, 1, jobs, &count, &error));
  CHECK_OK(horus_cluster_release(cluster, 20, &error));
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_cluster_release(cluster, 20, &error)); /* again: harmless */
  CHECK_OK(horus_cluster_release(cluster, 21, &error));
  CHECK_OK(horus_cluster_remove_node(cluster, 1, &error));
  horus_cluster_free(cluster);
}

static void JobsWithoutGpusTakeSlotsWithoutDevice(void) {
  horus_cluster* cluster = cluster_of(1);
  horus_placer* placer = placer_of(NULL);
  const uint64_t nodes[1] = {1};
  const uint32_t no_device[1] = {UINT32_MAX}, a_device[1] = {0};
  uint64_t slot_nodes[2] = {0, 0};
  uint32_t devices[2] = {0, 0}, tasks[2] = {9, 9};
  horus_slots slots = HORUS_SLOTS_INIT;
  horus_job_info info = HORUS_JOB_INFO_INIT;
  horus_job job = HORUS_JOB_INIT;
  const horus_job* jobs[1];
  horus_plan* plan = NULL;
  size_t count = 0;
  job.id = 5;
  job.gpus_per_task = HORUS_JOB_NO_GPUS;
  job.cpu_milli = 4000;
  jobs[0] = &job;
  slots.capacity = 2;
  slots.node_ids = slot_nodes;
  slots.devices = devices;
  slots.tasks = tasks;
  CHECK_OK(horus_placer_plan(placer, cluster, 1, jobs, 0, NULL, NULL, NULL, &plan, &error));
  CHECK_OK(horus_plan_slots(plan, HORUS_SLOTS_DECISION, 0, &slots, &count, &error));
  CHECK(count == 1 && slot_nodes[0] == 1 && devices[0] == UINT32_MAX && tasks[0] == 0);
  CHECK_OK(horus_cluster_apply(cluster, plan, &error));
  horus_plan_free(plan);
  CHECK_OK(horus_cluster_get_job(cluster, 5, &info, 0, NULL, NULL, &error));
  CHECK(info.gpus_per_task == HORUS_JOB_NO_GPUS);
  job.id = 6;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_adopt(cluster, &job, 1, nodes, a_device, NULL, NULL, &error));
  CHECK_OK(horus_cluster_adopt(cluster, &job, 1, nodes, no_device, NULL, NULL, &error));
  CHECK_OK(horus_cluster_release(cluster, 5, &error));
  CHECK_OK(horus_cluster_release(cluster, 6, &error));
  job.gpus_per_task = -2;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_adopt(cluster, &job, 1, nodes, no_device, NULL, NULL, &error));
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

static void NullHandlesAreRefused(void) {
  horus_node node = two_gpu_node(1);
  horus_cluster_info info = HORUS_CLUSTER_INFO_INIT;
  horus_node_info node_info = HORUS_NODE_INFO_INIT;
  horus_device_info device = HORUS_DEVICE_INFO_INIT;
  horus_job_info job = HORUS_JOB_INFO_INIT;
  horus_slots slots = HORUS_SLOTS_INIT;
  horus_cluster* cluster = cluster_of(1);
  size_t count = 5;
  given_job given;
  give_job(&given, 1, 10, 10);
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_create(NULL, NULL, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_add_node(NULL, &node, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_change_node(NULL, &node, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_change_node(cluster, NULL, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_remove_node(NULL, 1, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               horus_cluster_set_state(NULL, 1, HORUS_WHOLE_NODE, 0, 0, NULL, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_set_state(NULL, 1, 0, 0, 0, NULL, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_adopt(NULL, &given.job, 0, NULL, NULL, NULL, NULL, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_release(NULL, 1, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_get_info(NULL, &info, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_nodes(NULL, 0, NULL, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_nodes(cluster, 4, NULL, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_nodes(cluster, 0, NULL, NULL, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_jobs(NULL, 0, NULL, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_get_node(NULL, 1, &node_info, 0, NULL, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_get_device(NULL, 1, 0, &device, 0, NULL, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_get_job(NULL, 1, &job, 0, NULL, NULL, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_job_slots(NULL, 1, &slots, &count, &error));
  CHECK(count == 5);
  horus_cluster_free(cluster);
  horus_cluster_free(NULL);
}

int main(void) {
  NodesComeChangeAndGo();
  BadNodesAreRefusedByField();
  MigInstancesAreDevices();
  DevicesKeepTheIdsThatTheCallerGaveThem();
  RunningJobsAreAdopted();
  AResidentTellsAllThatWasStated();
  EachGpuTypeIsStatedOnce();
  StatesReportTheJobsThere();
  JobsWithoutGpusTakeSlotsWithoutDevice();
  NullHandlesAreRefused();
  return report();
}
