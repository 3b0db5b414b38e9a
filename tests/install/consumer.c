/* SPDX-License-Identifier: Apache-2.0 */
/* Places one job with a stated demand; exit status 0 when it was placed. */
#include <horus/horus.h>
#include <stdio.h>

int main(void) {
  const char* const gpu_types[1] = {"t4"};
  const horus_demand* demands[1];
  const horus_job* jobs[1];
  horus_error error = HORUS_ERROR_INIT;
  horus_cluster* cluster = NULL;
  horus_placer* placer = NULL;
  horus_plan* plan = NULL;
  horus_decision decision = HORUS_DECISION_INIT;
  horus_demand demand = HORUS_DEMAND_INIT;
  horus_node node = HORUS_NODE_INIT;
  horus_job job = HORUS_JOB_INIT;
  demand.gpu_util_pct = 40;
  demand.mem_mib = 3000;
  demands[0] = &demand;
  node.id = 1;
  node.device_count = 1;
  node.gpu_types = gpu_types;
  job.id = 1;
  job.demand_count = 1;
  job.demands = demands;
  jobs[0] = &job;
  if (horus_cluster_create(NULL, &cluster, &error) != HORUS_OK ||
      horus_cluster_add_node(cluster, &node, &error) != HORUS_OK ||
      horus_placer_create(NULL, &placer, &error) != HORUS_OK ||
      horus_placer_plan(placer, cluster, 1, jobs, 0, NULL, NULL, NULL, &plan, &error) != HORUS_OK ||
      horus_plan_get(plan, 0, &decision, &error) != HORUS_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  printf("%s\n", decision.text);
  horus_plan_free(plan);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
  return decision.verdict == HORUS_VERDICT_PLACE ? 0 : 1;
}
