/* SPDX-License-Identifier: Apache-2.0 */
/* The whole way of a job in C99: graph file -> demand on two GPU types -> cluster -> plan -> apply -> snapshot ->
 * restore -> release. Usage: place MODEL.onnx */
#include <horus/horus.h>
#include <stdio.h>
#include <stdlib.h>

/* Every call is checked; the error says what was wrong. */
#define TRY(call)                                                                  \
  do {                                                                             \
    horus_error error = HORUS_ERROR_INIT;                                          \
    if ((call) != HORUS_OK) {                                                      \
      fprintf(stderr, "%s: %s\n", horus_status_name(error.status), error.message); \
      exit(1);                                                                     \
    }                                                                              \
  } while (0)

static const char* const kTypes[2] = {"v100-pcie-16gb", "a100-40gb"};

static void add_node(horus_cluster* cluster, uint64_t id, const char* gpu_type) {
  const char* const gpu_types[2] = {gpu_type, gpu_type};
  horus_node node = HORUS_NODE_INIT;
  node.id = id;
  node.device_count = 2;
  node.gpu_types = gpu_types;
  node.cpu_milli = 32000;
  node.mem_mib = 128 * 1024;
  TRY(horus_cluster_add_node(cluster, &node, &error));
}

static void print_decision(const horus_plan* plan, size_t index) {
  horus_decision decision = HORUS_DECISION_INIT;
  horus_effects effects = HORUS_EFFECTS_INIT;
  uint64_t jobs[8], nodes[8];
  uint32_t devices[8];
  float after[8];
  size_t count = 0, i;
  TRY(horus_plan_get(plan, index, &decision, &error));
  printf("job %llu: %s\n", (unsigned long long)decision.job_id, decision.text);
  effects.capacity = 8;
  effects.job_ids = jobs;
  effects.node_ids = nodes;
  effects.devices = devices;
  effects.slowdown_after = after;
  TRY(horus_plan_effects(plan, index, &effects, &count, &error));
  for (i = 0; i < count; ++i) {
    printf("  node %llu GPU %u: job %llu will run at %.2f times its own step time\n", (unsigned long long)nodes[i],
           (unsigned)devices[i], (unsigned long long)jobs[i], after[i]);
  }
}

int main(int argc, char** argv) {
  horus_graph* graph = NULL;
  horus_predictor* predictor = NULL;
  horus_cluster *cluster = NULL, *restored = NULL;
  horus_placer* placer = NULL;
  horus_demand demands[2] = {HORUS_DEMAND_INIT, HORUS_DEMAND_INIT};
  horus_demand* demand_out[2];
  const horus_demand* demand_in[2];
  horus_run_spec run = HORUS_RUN_SPEC_INIT;
  horus_cluster_info info = HORUS_CLUSTER_INFO_INIT;
  size_t i, size = 0;
  void* bytes;
  if (argc != 2) {
    fprintf(stderr, "usage: %s MODEL.onnx\n", argv[0]);
    return 2;
  }
  TRY(horus_abi_check(HORUS_ABI_NUMBER, &error));

  /* From the file to what the job will ask of each GPU type. */
  for (i = 0; i < 2; ++i) demand_in[i] = demand_out[i] = &demands[i];
  run.batch = 64;
  run.optimizer = HORUS_OPTIMIZER_ADAM;
  TRY(horus_graph_from_file(argv[1], NULL, &graph, &error));
  TRY(horus_predictor_default(&predictor, &error));
  TRY(horus_predictor_demand(predictor, NULL, graph, &run, 2, kTypes, demand_out, &error));
  for (i = 0; i < 2; ++i) {
    printf("%s: %.0f %% busy, %lld MiB, %lld us a step\n", kTypes[i], demands[i].gpu_util_pct,
           (long long)demands[i].mem_mib, (long long)demands[i].step_time_us);
  }

  /* A cluster of four GPUs, and five jobs of that kind one after another. */
  TRY(horus_cluster_create(NULL, &cluster, &error));
  add_node(cluster, 1, kTypes[0]);
  add_node(cluster, 2, kTypes[1]);
  TRY(horus_placer_create(NULL, &placer, &error));
  for (uint64_t id = 1; id <= 5; ++id) {
    horus_plan* plan = NULL;
    horus_job job = HORUS_JOB_INIT;
    const horus_job* jobs[1];
    job.id = id;
    job.cpu_milli = 4000;
    job.demand_count = 2;
    job.gpu_types = kTypes;
    job.demands = demand_in;
    jobs[0] = &job;
    TRY(horus_placer_plan(placer, cluster, 1, jobs, 0, NULL, NULL, NULL, &plan, &error));
    print_decision(plan, 0);
    TRY(horus_cluster_apply(cluster, plan, &error)); /* a refused job applies as nothing */
    horus_plan_free(plan);
  }

  /* A scheduler restarts and loses nothing. */
  (void)horus_cluster_snapshot(cluster, 0, NULL, &size, NULL); /* asks for the size */
  bytes = malloc(size);
  TRY(bytes == NULL ? HORUS_ERR_NO_MEMORY : horus_cluster_snapshot(cluster, size, bytes, &size, &error));
  TRY(horus_cluster_restore(NULL, bytes, size, &restored, &error));
  TRY(horus_cluster_release(restored, 1, &error));
  TRY(horus_cluster_get_info(restored, &info, &error));
  printf("restored from %lu bytes; after job 1 left: %llu jobs on %llu GPUs\n", (unsigned long)size,
         (unsigned long long)info.jobs, (unsigned long long)info.devices);
  free(bytes);
  horus_placer_free(placer);
  horus_cluster_free(restored);
  horus_cluster_free(cluster);
  horus_predictor_free(predictor);
  horus_graph_free(graph);
  return 0;
}
