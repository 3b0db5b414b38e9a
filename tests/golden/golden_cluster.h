/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster in the golden snapshots, built by calls. Level 1 is what the first release of snapshots could say, level
 * 2 adds device memory requests, sharing and groups, level 3 sensitivities, stated resources and weights. Compiled
 * against old headers too, to make a snapshot by old code: then with GOLDEN_LEVEL as far as they go. */
#ifndef HORUS_TESTS_GOLDEN_GOLDEN_CLUSTER_H_
#define HORUS_TESTS_GOLDEN_GOLDEN_CLUSTER_H_

#include <stdio.h>
#include <stdlib.h>

#include "horus/lab/lab.h"

#ifndef GOLDEN_LEVEL
#define GOLDEN_LEVEL 3
#endif

#define GOLDEN_NODES 4
#define GOLDEN_DEVICES 9
#define GOLDEN_JOBS 5

static horus_error golden_error = HORUS_ERROR_INIT;

static void golden_must(horus_status status, const char* call) {
  if (status == HORUS_OK) return;
  fprintf(stderr, "%s: %d %s\n", call, (int)status, golden_error.message);
  exit(1);
}
#define MUST(call) golden_must(call, #call)

static void golden_nodes(horus_cluster* cluster) {
  static const char* const kV100[4] = {"v100-pcie-16gb", "v100-pcie-16gb", "v100-pcie-16gb", "v100-pcie-16gb"};
  static const char* const kA100[3] = {"a100-40gb", "a100-40gb", "a100-40gb"};
  static const char* const kSlices[3] = {"3g.20gb", "2g.10gb", "2g.10gb"};
  static const int32_t kOneCard[3] = {0, 0, 0};
  static const int32_t kIslands[4] = {0, 0, 1, 1};
  static const char* const kKeys[2] = {"zone", "disk"};
  static const char* const kValues[2] = {"east", "nvme"};
  horus_node node = HORUS_NODE_INIT;
  node.cpu_milli = 64000;
  node.mem_mib = 262144;
  node.storage_mb_s = 4000;
  node.id = 1;
  node.name = "v100-0";
  node.rack = 3;
  node.device_count = 4;
  node.gpu_types = kV100;
  node.nvlink_islands = kIslands;
  node.label_count = 2;
  node.label_keys = kKeys;
  node.label_values = kValues;
  MUST(horus_cluster_add_node(cluster, &node, &golden_error));
  node.id = 20;
  node.name = "v100-1";
  node.device_count = 2;
  node.nvlink_islands = NULL;
  node.label_count = 0;
  MUST(horus_cluster_add_node(cluster, &node, &golden_error));
  node.id = 300;
  node.name = "mig";
  node.rack = 4;
  node.device_count = 3;
  node.gpu_types = kA100;
  node.mig_profiles = kSlices;
  node.physical_gpus = kOneCard;
  MUST(horus_cluster_add_node(cluster, &node, &golden_error));
  node.id = UINT64_MAX;
  node.name = "host";
  node.device_count = 0;
  node.gpu_types = NULL;
  node.mig_profiles = NULL;
  node.physical_gpus = NULL;
  MUST(horus_cluster_add_node(cluster, &node, &golden_error));
  MUST(horus_cluster_set_state(cluster, 20, HORUS_WHOLE_NODE, HORUS_STATE_DRAINED, 0, NULL, NULL, &golden_error));
  MUST(horus_cluster_set_state(cluster, 300, 2, HORUS_STATE_DOWN, 0, NULL, NULL, &golden_error));
}

static horus_demand golden_demand(float gpu_util_pct, int64_t mem_mib) {
  horus_demand demand = HORUS_DEMAND_INIT;
  demand.flags = HORUS_DEMAND_GIVEN;
  demand.gpu_util_pct = gpu_util_pct;
  demand.mem_mib = mem_mib;
  demand.mem_mib_upper = mem_mib + 500;
  demand.step_time_us = 120000;
  demand.gradient_mib = 90;
  return demand;
}

static void golden_adopt(horus_cluster* cluster, const horus_job* job, size_t count, const uint64_t* nodes,
                         const uint32_t* devices, const uint32_t* tasks) {
  MUST(horus_cluster_adopt(cluster, job, count, nodes, devices, tasks, NULL, &golden_error));
}

/* Two neighbours, a gang of two tasks, one in a MIG instance, one that breaks a constraint where it runs. */
static void golden_jobs(horus_cluster* cluster) {
  static const uint64_t kNode1[2] = {1, 1}, kNode20[1] = {20}, kNode300[1] = {300};
  static const uint32_t kDevices[3] = {0, 1, 2}, kTasks[2] = {0, 1}, kGangDevices[2] = {1, 2};
  static const char* const kKeys[1] = {"zone"};
  static const char* const kValues[1] = {"west"};
  const horus_demand demand = golden_demand(35, 3000);
  const horus_demand* demands[1];
  horus_job job = HORUS_JOB_INIT;
  demands[0] = &demand;
  job.share = HORUS_SHARE_ANYONE; /* the default when the snapshots were written */
  job.demand_count = 1;
  job.demands = demands;
  job.cpu_milli = 4000;
  job.mem_mib = 16384;
  job.id = 7;
  job.name = "resnet";
  job.tenant = "ada";
  job.priority = 3;
  job.submit_us = 1234567;
  golden_adopt(cluster, &job, 1, kNode1, kDevices, NULL);
  job.id = 8;
  job.kind = HORUS_JOB_INFERENCE;
  job.request_rate_hz = 2;
  job.storage_mb_s = 100;
  job.slowdown_bound = 3;
  job.gpu_milli = 400;
  golden_adopt(cluster, &job, 1, kNode1, kDevices, NULL);
  job.id = 9;
  job.kind = HORUS_JOB_TRAINING;
  job.request_rate_hz = 0;
  job.slowdown_bound = 0;
  job.gpu_milli = 0;
  job.tasks = 2;
  job.exclusive = 1;
  golden_adopt(cluster, &job, 2, kNode1, kGangDevices, kTasks);
  job.id = 10;
  job.tasks = 1;
  job.exclusive = 0;
  job.deadline_us = 99000000;
  golden_adopt(cluster, &job, 1, kNode300, kDevices, NULL);
  job.id = 11;
  job.selector_count = 1;
  job.selector_keys = kKeys;
  job.selector_values = kValues;
  golden_adopt(cluster, &job, 1, kNode20, kDevices + 1, NULL);
}

#if GOLDEN_LEVEL >= 2
static void golden_jobs_2(horus_cluster* cluster) {
  static const uint64_t kNode20[1] = {20};
  static const uint32_t kFirst[1] = {0};
  static const char* const kGroups[2] = {"blue", "red"};
  const horus_demand demand = golden_demand(20, 2000);
  const horus_demand* demands[1];
  horus_job job = HORUS_JOB_INIT;
  demands[0] = &demand;
  job.id = 12;
  job.demand_count = 1;
  job.demands = demands;
  job.tenant = "bob";
  job.gpu_mem_request_mib = 2500;
  job.gpu_mem_limit_mib = 9000;
  job.share = HORUS_SHARE_SAME_TENANT;
  job.group_count = 2;
  job.groups = kGroups;
  job.avoid_count = 1;
  job.avoid_groups = kGroups + 1;
  golden_adopt(cluster, &job, 1, kNode20, kFirst, NULL);
}
#endif

#if GOLDEN_LEVEL >= 3
static void golden_jobs_3(horus_cluster* cluster) {
  static const uint64_t kNode1[1] = {1};
  static const uint32_t kLast[1] = {3};
  static const int64_t kCpu[2] = {2000, 6000}, kMem[1] = {16384};
  static const float kSpeeds[2] = {0.5F, 1.0F};
  const horus_demand demand = golden_demand(50, 6000);
  const horus_demand* demands[1];
  horus_sensitivity sensitivity = HORUS_SENSITIVITY_INIT;
  horus_job job = HORUS_JOB_INIT;
  demands[0] = &demand;
  job.share = HORUS_SHARE_ANYONE;
  sensitivity.cpu_count = 2;
  sensitivity.cpu_milli = kCpu;
  sensitivity.mem_count = 1;
  sensitivity.mem_mib = kMem;
  sensitivity.speeds = kSpeeds;
  job.id = 13;
  job.demand_count = 1;
  job.demands = demands;
  job.cpu_milli = 6000;
  job.mem_mib = 16384;
  job.stated_cpu_milli = 2000;
  job.sensitivity = &sensitivity;
  job.weight = 2.5F;
  golden_adopt(cluster, &job, 1, kNode1, kLast, NULL);
}
#endif

static horus_cluster* golden_cluster(int level) {
  horus_cluster* cluster = NULL;
  MUST(horus_cluster_create(NULL, &cluster, &golden_error));
  golden_nodes(cluster);
  golden_jobs(cluster);
#if GOLDEN_LEVEL >= 2
  if (level >= 2) golden_jobs_2(cluster);
#endif
#if GOLDEN_LEVEL >= 3
  if (level >= 3) golden_jobs_3(cluster);
#endif
  (void)level;
  return cluster;
}

#endif /* HORUS_TESTS_GOLDEN_GOLDEN_CLUSTER_H_ */
