/* SPDX-License-Identifier: Apache-2.0 */
/* Place, watch, mend: what a scheduler does while jobs share. place -> observe -> commit -> review -> apply; and back
 * to the model before, should the new one predict worse. Prints output.txt. Usage: loop */
#include <horus/horus.h>
#include <stdio.h>
#include <stdlib.h>

#define JOBS 3

/* Every call is checked; the error says what was wrong. */
#define TRY(call)                                                                  \
  do {                                                                             \
    horus_error error = HORUS_ERROR_INIT;                                          \
    if ((call) != HORUS_OK) {                                                      \
      fprintf(stderr, "%s: %s\n", horus_status_name(error.status), error.message); \
      exit(1);                                                                     \
    }                                                                              \
  } while (0)

static const char* const kGpu[1] = {"v100-sxm2-16gb"};
static const float kBusyPct[JOBS] = {85, 30, 25};
static const int64_t kStepUs[JOBS] = {190000, 40000, 60000};

/* What the runtime would report: the step time now / alone. Here the second and the third job do each other harm. */
static double watched(size_t job, size_t other) { return job + other == 3 && job != other ? 2.3 : 1.1; }

/* Each tenant of a shared GPU for three minutes; in this small cluster a GPU has two at most. `gpus`: where each job
 * is. */
static void observe(const char* title, const uint32_t* gpus, const horus_demand* const* demands,
                    const horus_interference* model, horus_observations* observations) {
  horus_device device = HORUS_DEVICE_INIT;
  size_t job, other;
  int minute;
  printf("%s\n", title);
  device.gpu_type = kGpu[0];
  for (job = 0; job < JOBS; ++job) {
    for (other = 0; other < JOBS; ++other) {
      horus_slowdown_observation seen = HORUS_SLOWDOWN_OBSERVATION_INIT;
      const horus_demand* tenants[2];
      float slowdown[2], upper[2];
      horus_slowdowns columns = HORUS_SLOWDOWNS_INIT;
      if (other == job || gpus[other] != gpus[job]) continue;
      tenants[0] = demands[job];
      tenants[1] = demands[other];
      columns.slowdown = slowdown;
      columns.slowdown_upper = upper;
      TRY(horus_interference_slowdown(model, NULL, &device, 2, tenants, 0, &columns, &error));
      seen.gpu_type = kGpu[0];
      seen.job = demands[job];
      seen.co_tenant_count = 1;
      seen.co_tenants = &demands[other];
      seen.slowdown = watched(job, other);
      seen.predicted = slowdown[0];
      seen.predicted_upper = upper[0];
      printf("  job %u on gpu %u beside job %u: expected %.2fx, seen %.2fx\n", (unsigned)job + 1, gpus[job],
             (unsigned)other + 1, slowdown[0], seen.slowdown);
      for (minute = 0; minute < 3; ++minute) TRY(horus_observations_add_slowdown(observations, NULL, &seen, &error));
    }
  }
}

static double error_of(const horus_observations* observations) {
  horus_calibration calibration = HORUS_CALIBRATION_INIT;
  TRY(horus_observations_get_calibration(observations, &calibration, &error));
  return calibration.error;
}

static horus_placer* placer_of(const horus_interference* model) {
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_placer* placer = NULL;
  options.interference = model;
  TRY(horus_placer_create(&options, &placer, &error));
  return placer;
}

int main(void) {
  static const char* const kAdvice[] = {"stay", "move", "run alone"};
  const char* const gpu_types[2] = {kGpu[0], kGpu[0]};
  horus_interference *model = NULL, *learned = NULL;
  horus_observations *observations = NULL, *again = NULL, *after = NULL;
  horus_cluster* cluster = NULL;
  horus_placer *placer, *mender;
  horus_plan *plan = NULL, *review = NULL;
  horus_node node = HORUS_NODE_INIT;
  horus_demand demands[JOBS];
  const horus_demand* pointers[JOBS];
  horus_job jobs[JOBS];
  const horus_job* queue[JOBS];
  uint32_t gpus[JOBS];
  size_t i, count;
  horus_plan_info info = HORUS_PLAN_INFO_INIT;
  int better;
  TRY(horus_abi_check(HORUS_ABI_NUMBER, &error));
  TRY(horus_cluster_create(NULL, &cluster, &error));
  node.id = 1;
  node.name = "gpu-node";
  node.device_count = 2;
  node.gpu_types = gpu_types;
  node.cpu_milli = 32000;
  node.mem_mib = 128 * 1024;
  TRY(horus_cluster_add_node(cluster, &node, &error));

  /* Three jobs, measured alone; horus_predictor_demand predicts the same from a graph (examples/c/place.c). */
  for (i = 0; i < JOBS; ++i) {
    const horus_demand demand = HORUS_DEMAND_INIT;
    const horus_job job = HORUS_JOB_INIT;
    demands[i] = demand;
    demands[i].flags = HORUS_DEMAND_GIVEN;
    demands[i].profile_id = i + 1; /* how observations know the job again */
    demands[i].gpu_util_pct = kBusyPct[i];
    demands[i].mem_mib = 3000;
    demands[i].step_time_us = kStepUs[i];
    pointers[i] = &demands[i];
    jobs[i] = job;
    jobs[i].id = i + 1;
    jobs[i].demand_count = 1;
    jobs[i].gpu_types = kGpu;
    jobs[i].demands = &pointers[i];
    queue[i] = &jobs[i];
  }
  TRY(horus_interference_create(NULL, &model, &error));
  placer = placer_of(model);
  TRY(horus_placer_plan(placer, cluster, JOBS, queue, 0, NULL, NULL, NULL, &plan, &error));
  for (i = 0; i < JOBS; ++i) {
    horus_decision decision = HORUS_DECISION_INIT;
    horus_slots slots = HORUS_SLOTS_INIT;
    TRY(horus_plan_get(plan, i, &decision, &error));
    printf("job %llu: %s\n", (unsigned long long)decision.job_id, decision.text);
    slots.capacity = 1;
    slots.devices = &gpus[decision.job_id - 1];
    TRY(horus_plan_slots(plan, HORUS_SLOTS_DECISION, i, &slots, &count, &error));
  }
  TRY(horus_cluster_apply(cluster, plan, &error));

  TRY(horus_observations_create(0, &observations, &error));
  observe("By the built-in model:", gpus, pointers, model, observations);

  /* A new model beside the old one: keep it where it predicts what was seen, else go on with the old one. */
  TRY(horus_interference_commit(model, NULL, observations, NULL, NULL, &learned, &error));
  TRY(horus_observations_create(0, &again, &error));
  observe("By a model that learned from it:", gpus, pointers, learned, again);
  better = error_of(again) <= error_of(observations);
  printf("The new model errs by %.0f %%, the old one by %.0f %%: the %s one is kept.\nReview:\n", 100 * error_of(again),
         100 * error_of(observations), better ? "new" : "old");
  mender = placer_of(better ? learned : model);

  TRY(horus_placer_review(mender, cluster, NULL, &review, &error));
  TRY(horus_plan_get_info(review, &info, &error));
  for (i = 0; i < info.reviews; ++i) {
    horus_tenant_review one = HORUS_TENANT_REVIEW_INIT;
    TRY(horus_plan_get_review(review, i, &one, &error));
    printf("  job %u on gpu %u: slowed %.2fx, the GPU does %.2f of the work of one job alone: %s\n",
           (unsigned)one.job_id, one.device, one.slowdown, one.pack_work, kAdvice[one.advice]);
  }
  for (i = 0; i < info.moves; ++i) {
    horus_move move = HORUS_MOVE_INIT;
    horus_slots slots = HORUS_SLOTS_INIT;
    TRY(horus_plan_get_move(review, i, &move, &error));
    slots.capacity = 1;
    slots.devices = &gpus[move.job_id - 1];
    TRY(horus_plan_slots(review, HORUS_SLOTS_MOVE_TO, i, &slots, &count, &error));
    printf("  job %u moves to gpu %u: %.2f of work gained\n", (unsigned)move.job_id, gpus[move.job_id - 1], move.gain);
  }
  TRY(horus_cluster_apply(cluster, review, &error));
  TRY(horus_observations_create(0, &after, &error));
  observe("After the review:", gpus, pointers, better ? learned : model, after);

  horus_plan_free(review);
  horus_plan_free(plan);
  horus_placer_free(mender);
  horus_placer_free(placer);
  horus_observations_free(after);
  horus_observations_free(again);
  horus_observations_free(observations);
  horus_interference_free(learned);
  horus_interference_free(model);
  horus_cluster_free(cluster);
  return 0;
}
