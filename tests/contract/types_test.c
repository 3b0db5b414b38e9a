/* SPDX-License-Identifier: Apache-2.0 */
/* Handles that were made for one catalogue of GPU types meet handles of another: each call says so and does nothing. */
#include "sim_setup.h"

/* The built-in types and one more. */
static horus_catalogue* more_types(void) {
  const horus_gpu gpu = complete_gpu();
  const horus_gpu* const gpus[1] = {&gpu};
  horus_catalogue* out = NULL;
  CHECK_OK(horus_catalogue_extend(NULL, 1, gpus, &out, &error));
  return out;
}

static int32_t slows_nobody(void* user, const horus_device* device, size_t count, const horus_demand* const* demands,
                            float* slowdown, float* slowdown_upper) {
  size_t i;
  (void)user, (void)device, (void)demands, (void)slowdown_upper;
  for (i = 0; i < count; ++i) slowdown[i] = 1;
  return 0;
}

static int32_t at_no_cost(void* user, const horus_policy_candidate* candidate, double* cost, int32_t* declined) {
  (void)user, (void)candidate, (void)declined;
  *cost = 0;
  return 0;
}

static horus_interference* model_of(const horus_catalogue* types) {
  horus_interference* model = NULL;
  CHECK_OK(horus_interference_from_callback(types, slows_nobody, NULL, 1, 0, &model, &error));
  return model;
}

static horus_cluster* node_of(const horus_catalogue* types) {
  horus_cluster* cluster = NULL;
  const horus_node node = two_gpu_node(1);
  CHECK_OK(horus_cluster_create(types, &cluster, &error));
  CHECK_OK(horus_cluster_add_node(cluster, &node, &error));
  return cluster;
}

static void PlansApplyToTheTypesTheyWereMadeFor(const horus_catalogue* more) {
  horus_cluster *cluster = node_of(NULL), *other = node_of(more);
  horus_placer* placer = placer_of("first-fit");
  const uint64_t hash = state_hash(other);
  given_job given;
  horus_plan* plan;
  give_job(&given, 1, 50, 4000);
  plan = plan_one(placer, cluster, &given);
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "plan: expected one for the GPU types of this cluster",
                horus_cluster_apply(other, plan, &error));
  CHECK(state_hash(other) == hash);
  CHECK_OK(horus_cluster_apply(cluster, plan, &error));
  horus_plan_free(plan);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
  horus_cluster_free(other);
}

static void ModelsAndPlacersAgree(const horus_catalogue* more) {
  const char* const types[1] = {FIXTURE_GPU};
  const double shares[1] = {1};
  const int32_t gpus[1] = {1};
  horus_interference *model = model_of(NULL), *other = model_of(more), *made = NULL;
  horus_pair_table table = HORUS_PAIR_TABLE_INIT;
  horus_observations* observations = NULL;
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_workload workload = HORUS_WORKLOAD_INIT;
  horus_placer* placer = NULL;
  horus_cluster* cluster = node_of(more);
  horus_plan* plan = NULL;
  const horus_job* jobs[1];
  given_job given;
  give_job(&given, 1, 50, 4000);
  jobs[0] = &given.job;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "fallback: expected a model for the GPU types of the catalogue",
                horus_interference_from_table(NULL, &table, other, &made, &error));
  CHECK_OK(horus_observations_create(0, &observations, &error));
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "catalogue: expected the GPU types that the model was made for",
                horus_interference_commit(other, NULL, observations, NULL, NULL, &made, &error));
  CHECK(made == NULL);
  horus_observations_free(observations);

  options.interference = model;
  CHECK_OK(horus_placer_create(&options, &placer, &error));
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "cluster: expected the GPU types that the placer's callbacks were made for",
                horus_placer_plan(placer, cluster, 1, jobs, 0, NULL, NULL, NULL, &plan, &error));
  CHECK(plan == NULL);
  horus_placer_free(placer);
  placer = NULL;

  workload.task_count = 1;
  workload.gpus = gpus;
  workload.gpu_types = types;
  workload.shares = shares;
  options.interference = other;
  options.workload = &workload;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "workload: expected the GPU types that the callback model was made for",
                horus_placer_create(&options, &placer, &error));
  options.workload = NULL;
  options.interference = model;
  options.policy_callback = at_no_cost;
  options.policy_catalogue = more;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT,
                "policy_catalogue: expected the GPU types that the callback model was made for",
                horus_placer_create(&options, &placer, &error));
  CHECK(placer == NULL);
  options.interference = other;
  CHECK_OK(horus_placer_create(&options, &placer, &error));
  CHECK_OK(horus_placer_plan(placer, cluster, 1, jobs, 0, NULL, NULL, NULL, &plan, &error));
  horus_plan_free(plan);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
  horus_interference_free(model);
  horus_interference_free(other);
}

static void SimulationsAndTheirTruthsAgree(const horus_catalogue* more) {
  horus_truth *truth = truth_of_speeds(), *made = NULL;
  horus_trace* trace = trace_of_three();
  horus_cluster* cluster = node_of(more);
  horus_placer* placer = placer_of("first-fit");
  horus_interference* other = model_of(more);
  horus_sim_result* result = NULL;
  demands_of_two demands;
  give_demands(&demands, 4000);
  CHECK_MESSAGE(
      HORUS_ERR_INVALID_ARGUMENT, "truth: expected one for the GPU types of this cluster",
      horus_sim_run(trace, &demands.columns, truth, cluster, placer, NULL, NULL, NULL, NULL, &result, &error));
  CHECK(result == NULL);
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "model: expected one for the GPU types of the catalogue",
                horus_truth_from_model(NULL, other, &demands.columns, &made, &error));
  CHECK(made == NULL);
  horus_interference_free(other);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
  horus_trace_free(trace);
  horus_truth_free(truth);
}

int main(void) {
  horus_catalogue* more = more_types();
  PlansApplyToTheTypesTheyWereMadeFor(more);
  ModelsAndPlacersAgree(more);
  SimulationsAndTheirTruthsAgree(more);
  horus_catalogue_free(more);
  return report();
}
