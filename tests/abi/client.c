/* SPDX-License-Identifier: Apache-2.0 */
/* An embedder's program as it was compiled at one revision of the ABI. clients/ keeps its binary of every revision,
 * which is run against the library of today.
 *
 * Exit status: 0 = the library does all that it did for this program; 3 = horus_abi_check told it no, and it ended;
 * 1 = anything else, said on stderr. Add to the end what later revisions bring; what is here stays. */
#include <stdio.h>
#include <string.h>

#include "horus/horus.h"

#ifndef CLIENT_ABI
#define CLIENT_ABI HORUS_ABI_NUMBER
#endif

#define NODES 4
#define JOBS 6
#define SNAPSHOT_BYTES 65536

static horus_error error = HORUS_ERROR_INIT;
static int failures = 0;

static void expect(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "client: %s; last error: %s\n", what, error.message);
  ++failures;
}
#define EXPECT(condition) expect((condition) != 0, #condition)
#define EXPECT_OK(call) expect((call) == HORUS_OK, #call)

static horus_cluster* a_cluster(void) {
  static const char* const kTypes[2] = {"v100-pcie-16gb", "v100-pcie-16gb"};
  horus_cluster* cluster = NULL;
  uint64_t id;
  EXPECT_OK(horus_cluster_create(NULL, &cluster, &error));
  for (id = 1; id <= NODES; ++id) {
    horus_node node = HORUS_NODE_INIT;
    node.id = id;
    node.name = "node";
    node.device_count = 2;
    node.cpu_milli = 64000;
    node.mem_mib = 262144;
    node.gpu_types = kTypes;
    EXPECT_OK(horus_cluster_add_node(cluster, &node, &error));
  }
  return cluster;
}

static void plan_and_apply(horus_cluster* cluster, horus_placer* placer) {
  static const horus_demand kNone = HORUS_DEMAND_INIT;
  static const horus_job kJob = HORUS_JOB_INIT;
  static horus_demand demands[JOBS];
  static const horus_demand* columns[JOBS][1];
  static horus_job jobs[JOBS];
  const horus_job* pointers[JOBS];
  horus_plan* plan = NULL;
  horus_plan_info info = HORUS_PLAN_INFO_INIT;
  size_t i;
  for (i = 0; i < JOBS; ++i) {
    demands[i] = kNone;
    demands[i].flags = HORUS_DEMAND_GIVEN;
    demands[i].gpu_util_pct = 40;
    demands[i].mem_mib = 3000;
    demands[i].step_time_us = 100000;
    columns[i][0] = &demands[i];
    jobs[i] = kJob;
    jobs[i].id = 100 + i;
    jobs[i].cpu_milli = 1000;
    jobs[i].mem_mib = 1024;
    jobs[i].submit_us = (int64_t)i;
    jobs[i].demand_count = 1;
    jobs[i].demands = columns[i];
    pointers[i] = &jobs[i];
  }
  EXPECT_OK(horus_placer_plan(placer, cluster, JOBS, pointers, 0, NULL, NULL, NULL, &plan, &error));
  EXPECT_OK(horus_plan_get_info(plan, &info, &error));
  EXPECT(info.decisions == JOBS);
  for (i = 0; i < JOBS; ++i) {
    horus_decision decision = HORUS_DECISION_INIT;
    horus_slots slots = HORUS_SLOTS_INIT;
    uint64_t node = 0;
    uint32_t device = 9;
    size_t count = 0;
    slots.capacity = 1;
    slots.node_ids = &node;
    slots.devices = &device;
    EXPECT_OK(horus_plan_get(plan, i, &decision, &error));
    EXPECT(decision.verdict == HORUS_VERDICT_PLACE && decision.job_id == 100 + i && decision.slots == 1);
    EXPECT(decision.slowdown >= 1 && decision.text != NULL && decision.alternative == -1);
    EXPECT_OK(horus_plan_slots(plan, HORUS_SLOTS_DECISION, i, &slots, &count, &error));
    EXPECT(count == 1 && node >= 1 && node <= NODES && device < 2);
  }
  EXPECT_OK(horus_cluster_apply(cluster, plan, &error));
  EXPECT(horus_cluster_apply(cluster, plan, &error) == HORUS_ERR_EXISTS);
  horus_plan_free(plan);
}

static void too_large_is_refused(horus_cluster* cluster, horus_placer* placer) {
  horus_demand demand = HORUS_DEMAND_INIT;
  const horus_demand* column = &demand;
  horus_job job = HORUS_JOB_INIT;
  const horus_job* pointer = &job;
  horus_plan* plan = NULL;
  horus_decision decision = HORUS_DECISION_INIT;
  demand.flags = HORUS_DEMAND_GIVEN;
  demand.gpu_util_pct = 10;
  demand.mem_mib = 40000;
  job.id = 7;
  job.demand_count = 1;
  job.demands = &column;
  EXPECT_OK(horus_placer_plan(placer, cluster, 1, &pointer, 0, NULL, NULL, NULL, &plan, &error));
  EXPECT_OK(horus_plan_get(plan, 0, &decision, &error));
  EXPECT(decision.verdict == HORUS_VERDICT_REJECT && decision.reason == HORUS_REASON_GPU_MEMORY);
  EXPECT(strcmp(horus_reason_name(decision.reason), "gpu_memory") == 0);
  horus_plan_free(plan);
}

static void keeps_its_state(horus_cluster* cluster) {
  static char bytes[SNAPSHOT_BYTES];
  horus_cluster* again = NULL;
  horus_cluster_info before = HORUS_CLUSTER_INFO_INIT, after = HORUS_CLUSTER_INFO_INIT;
  size_t size = 0;
  EXPECT_OK(horus_cluster_get_info(cluster, &before, &error));
  EXPECT(before.nodes == NODES && before.devices == 2 * NODES && before.jobs == JOBS);
  EXPECT_OK(horus_cluster_snapshot(cluster, sizeof bytes, bytes, &size, &error));
  EXPECT_OK(horus_cluster_restore(NULL, bytes, size, &again, &error));
  EXPECT_OK(horus_cluster_get_info(again, &after, &error));
  EXPECT(before.state_hash == after.state_hash && after.jobs == JOBS);
  EXPECT_OK(horus_cluster_release(again, 100, &error));
  EXPECT(horus_cluster_release(again, 100, &error) == HORUS_ERR_NOT_FOUND);
  horus_cluster_free(again);
}

static void serves_a_queue(void) {
  const horus_queue_options options = HORUS_QUEUE_OPTIONS_INIT;
  horus_queue_info info = HORUS_QUEUE_INFO_INIT;
  horus_queue* queue = NULL;
  uint64_t id = 0;
  size_t count = 0;
  EXPECT_OK(horus_queue_create("sjf", &options, &queue, &error));
  for (id = 1; id <= 2; ++id) {
    horus_queued_job job = HORUS_QUEUED_JOB_INIT;
    job.id = id;
    job.submit_us = (int64_t)id;
    job.total_us = 10 - (int64_t)id; /* the second is the shorter */
    EXPECT_OK(horus_queue_push(queue, &job, &error));
  }
  EXPECT_OK(horus_queue_pop(queue, 10, &id, &count, &error));
  EXPECT_OK(horus_queue_get_info(queue, &info, &error));
  EXPECT(count == 1 && id == 2 && info.jobs == 1);
  horus_queue_free(queue);
}

int main(void) {
  horus_library_info library = HORUS_LIBRARY_INFO_INIT;
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_cluster* cluster;
  horus_placer* placer = NULL;
  const horus_status check = horus_abi_check(CLIENT_ABI, &error);
  if (check == HORUS_ERR_VERSION) {
    printf("told no: %s\n", error.message);
    return 3;
  }
  EXPECT(check == HORUS_OK);
  EXPECT_OK(horus_library_get_info(&library, &error));
  EXPECT(library.abi_number == CLIENT_ABI);
  options.policy = "first-fit";
  EXPECT_OK(horus_placer_create(&options, &placer, &error));
  cluster = a_cluster();
  plan_and_apply(cluster, placer);
  too_large_is_refused(cluster, placer);
  keeps_its_state(cluster);
  serves_a_queue();
  horus_placer_free(placer);
  horus_cluster_free(cluster);
  if (failures == 0) printf("client of ABI %#x: all as before\n", (unsigned)CLIENT_ABI);
  return failures == 0 ? 0 : 1;
}
