/* SPDX-License-Identifier: Apache-2.0 */
/* What libhorus must be able to do in any company: read a graph, predict its demand, place it, save and restore. */
#include <stdio.h>
#include <stdlib.h>

#include "horus/horus.h"

int coexist_work(void);

static int failed(horus_status status, const horus_error* error, const char* call) {
  if (status != HORUS_OK) fprintf(stderr, "%s: %s: %s\n", call, horus_status_name(status), error->message);
  return status != HORUS_OK;
}
#define TRY(call) \
  if (failed(call, &error, #call)) return 1

static int demand_of_model(horus_demand* demand) {
#if HORUS_WITH_ONNX
  const char* const types[1] = {"t4"};
  horus_error error = HORUS_ERROR_INIT;
  horus_graph* graph = NULL;
  horus_predictor* predictor = NULL;
  TRY(horus_graph_from_file(HORUS_MODEL, NULL, &graph, &error));
  TRY(horus_predictor_default(&predictor, &error));
  TRY(horus_predictor_demand(predictor, NULL, graph, NULL, 1, types, &demand, &error));
  horus_predictor_free(predictor);
  horus_graph_free(graph);
#else
  demand->gpu_util_pct = 40;
  demand->mem_mib = 3000;
#endif
  return 0;
}

int coexist_work(void) {
  const char* const types[1] = {"t4"};
  horus_error error = HORUS_ERROR_INIT;
  horus_demand demand = HORUS_DEMAND_INIT;
  const horus_demand* demands[1];
  horus_node node = HORUS_NODE_INIT;
  horus_job job = HORUS_JOB_INIT;
  const horus_job* jobs[1];
  horus_cluster *cluster = NULL, *restored = NULL;
  horus_placer* placer = NULL;
  horus_plan* plan = NULL;
  size_t size = 0;
  void* bytes;
  if (demand_of_model(&demand) != 0) return 1;
  demands[0] = &demand;
  node.id = 1;
  node.device_count = 1;
  node.gpu_types = types;
  job.id = 1;
  job.demand_count = 1;
  job.demands = demands;
  jobs[0] = &job;
  TRY(horus_cluster_create(NULL, &cluster, &error));
  TRY(horus_cluster_add_node(cluster, &node, &error));
  TRY(horus_placer_create(NULL, &placer, &error));
  TRY(horus_placer_plan(placer, cluster, 1, jobs, 0, NULL, NULL, NULL, &plan, &error));
  TRY(horus_cluster_apply(cluster, plan, &error));
  TRY(horus_cluster_snapshot(cluster, 0, NULL, &size, &error));
  bytes = malloc(size);
  if (bytes == NULL) return 1;
  TRY(horus_cluster_snapshot(cluster, size, bytes, &size, &error));
  TRY(horus_cluster_restore(NULL, bytes, size, &restored, &error));
  TRY(horus_cluster_release(restored, 1, &error));
  free(bytes);
  horus_cluster_free(restored);
  horus_plan_free(plan);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
  return 0;
}
