/* SPDX-License-Identifier: Apache-2.0 */
/* libhorus: on which GPUs should this deep-learning job run, beside whom, at what expected slowdown?
 * The whole C ABI, one header a topic. Since 0.1 where nothing else is said. A program (cc first.c -lhorus):
 *
 *   #include <horus/horus.h>
 *   #include <stdio.h>
 *   int main(void) {
 *     const char* const types[] = {"t4"};
 *     const horus_demand demand = {sizeof demand, .gpu_util_pct = 60, .mem_mib = 4000}, *const demands[] = {&demand};
 *     const horus_node node = {sizeof node, .id = 1, .device_count = 1, .gpu_types = types};
 *     const horus_job job = {sizeof job, .id = 7, .demand_count = 1, .gpu_types = types, .demands = demands};
 *     const horus_job* jobs[] = {&job};
 *     horus_cluster* cluster; horus_placer* placer; horus_plan* plan; horus_decision decision = HORUS_DECISION_INIT;
 *     if (horus_cluster_create(NULL, &cluster, NULL) || horus_cluster_add_node(cluster, &node, NULL) ||
 *         horus_placer_create(NULL, &placer, NULL) ||
 *         horus_placer_plan(placer, cluster, 1, jobs, 0, NULL, NULL, NULL, &plan, NULL) ||
 *         horus_plan_get(plan, 0, &decision, NULL)) return 1;
 *     puts(decision.text);
 *   }
 *
 * examples/c/place.c and examples/loop/loop.c show what it leaves out: errors that say what is wrong, freeing, and:
 *   horus_cluster_create, horus_cluster_add_node    the cluster as it is
 *   horus_graph_from_file                           a job's ONNX graph
 *   horus_predictor_default, horus_predictor_demand what the job will demand of each GPU type
 *   horus_placer_create                             a policy with its options
 *   horus_placer_plan                               where jobs should go
 *   horus_plan_get, horus_plan_slots                each decision, with its reason
 *   horus_cluster_apply, horus_cluster_release      carry out a plan; end a job
 *   horus_observations_add_slowdown, horus_interference_commit
 *                                                   observe, and get a model that learned
 *
 * Every handle has a function that frees it. A simulator, traces and training are in horus/lab/lab.h. */
#ifndef HORUS_HORUS_H_
#define HORUS_HORUS_H_

#include "horus/base.h"         /* status, errors, versions */
#include "horus/cluster.h"      /* nodes, devices, jobs; apply, release, snapshot */
#include "horus/demand.h"       /* GPU catalogue, predicted demand */
#include "horus/graph.h"        /* ONNX graphs */
#include "horus/interference.h" /* demands on one device -> slowdown of each tenant */
#include "horus/learn.h"        /* observations of running jobs, and predictors that answer with them */
#include "horus/learn_pairs.h"  /* interference models corrected by observed slowdowns */
#include "horus/metrics.h"      /* a log and counters */
#include "horus/modes.h"        /* batches, rebalancing, what-ifs, preemption */
#include "horus/place.h"        /* plans, decisions, verdicts */
#include "horus/queue.h"        /* the order of waiting jobs */

#endif /* HORUS_HORUS_H_ */
