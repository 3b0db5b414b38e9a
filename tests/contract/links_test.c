/* SPDX-License-Identifier: Apache-2.0 */
/* Links between nodes: what a gang over two racks costs follows network_mb_s and rack_oversubscription. */
#include "fixture.h"

/* The cost of a gang that fills two nodes, in racks of their own or in one. */
static double cost_of_gang(int64_t network_mb_s, int apart, double rack_oversubscription) {
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_cluster* cluster = NULL;
  horus_placer* placer = NULL;
  horus_plan* plan;
  given_job given;
  double cost;
  uint64_t id;
  CHECK_OK(horus_cluster_create(NULL, &cluster, &error));
  for (id = 1; id <= 2; ++id) {
    horus_node node = two_gpu_node(id);
    node.rack = apart ? id : 1;
    node.network_mb_s = network_mb_s;
    CHECK_OK(horus_cluster_add_node(cluster, &node, &error));
  }
  options.rack_oversubscription = rack_oversubscription;
  CHECK_OK(horus_placer_create(&options, &placer, &error));
  give_job(&given, 1, 90, 4000);
  given.demand.gradient_mib = 1000;
  given.job.tasks = 2;
  given.job.gpus_per_task = 2;
  plan = plan_one(placer, cluster, &given);
  CHECK(decision_of(plan, 0).verdict == HORUS_VERDICT_PLACE);
  cost = decision_of(plan, 0).cost;
  horus_plan_free(plan);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
  return cost;
}

static void SlowerLinksCostMore(void) {
  CHECK(cost_of_gang(3000, 0, 0) > cost_of_gang(6000, 0, 0));
  CHECK(cost_of_gang(0, 0, 0) == cost_of_gang(12000, 0, 0)); /* the default */
}

static void OversubscriptionSlowsWhatLeavesARackAlone(void) {
  CHECK(cost_of_gang(6000, 0, 2) == cost_of_gang(6000, 0, 1));
  CHECK(cost_of_gang(6000, 1, 1) == cost_of_gang(6000, 0, 1));
  CHECK(cost_of_gang(6000, 1, 2) == cost_of_gang(3000, 0, 1));
}

static void TheNodeTellsItsNetwork(void) {
  horus_cluster* cluster = NULL;
  horus_node_info info = HORUS_NODE_INFO_INIT;
  horus_node node = two_gpu_node(1);
  CHECK_OK(horus_cluster_create(NULL, &cluster, &error));
  node.network_mb_s = -1;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_add_node(cluster, &node, &error));
  node.network_mb_s = 25000;
  CHECK_OK(horus_cluster_add_node(cluster, &node, &error));
  CHECK_OK(horus_cluster_get_node(cluster, 1, &info, 0, NULL, NULL, &error));
  CHECK(info.network_mb_s == 25000);
  horus_cluster_free(cluster);
}

static void ImpossibleRatiosAreRefused(void) {
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_placer* placer = NULL;
  options.rack_oversubscription = 0.5;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_placer_create(&options, &placer, &error));
  CHECK(placer == NULL);
}

int main(void) {
  SlowerLinksCostMore();
  OversubscriptionSlowsWhatLeavesARackAlone();
  TheNodeTellsItsNetwork();
  ImpossibleRatiosAreRefused();
  return report();
}
