/* SPDX-License-Identifier: Apache-2.0 */
/* horus/learn_pairs.h and the models of horus/interference.h that know jobs: tables, observations, commits, training.
 */
#include <math.h>
#include <stdlib.h>

#include "fixture.h"

#define JOBS 6u
#define RUNS (JOBS * (JOBS - 1u) / 2u)

/* Job `index` on any type: the higher, the busier and the longer its kernels. */
static horus_demand job_demand(uint64_t index) {
  horus_demand demand = HORUS_DEMAND_INIT;
  demand.profile_id = 100 + index;
  demand.gpu_util_pct = 40.0f + 10.0f * (float)index;
  demand.step_time_us = 20000 + 5000 * (int64_t)index;
  demand.traits[2] = 2.5f; /* log10 of the kernels */
  demand.operator_us = 100.0f * (float)(1 + index);
  return demand;
}

static horus_slowdown_observation observation_of(const horus_demand* job, const horus_demand* const* others) {
  horus_slowdown_observation observation = HORUS_SLOWDOWN_OBSERVATION_INIT;
  observation.gpu_type = FIXTURE_GPU;
  observation.job = job;
  observation.co_tenant_count = 1;
  observation.co_tenants = others;
  observation.slowdown = 3;
  observation.device_id = 9;
  observation.predicted = 2;
  observation.predicted_upper = 2.5;
  return observation;
}

static horus_interference_info model_info(const horus_interference* model) {
  horus_interference_info info = HORUS_INTERFERENCE_INFO_INIT;
  CHECK_OK(horus_interference_get_info(model, &info, &error));
  return info;
}

static float slowdown_of_first(const horus_interference* model, const horus_demand* a, const horus_demand* b) {
  const horus_demand* two[2];
  float slowdown[2] = {0, 0}, upper[2] = {0, 0};
  two[0] = a;
  two[1] = b;
  CHECK_OK(slowdowns_of(model, NULL, device_of(FIXTURE_GPU, 0), 2, two, slowdown, upper, &error));
  CHECK(slowdown[0] >= 1 && upper[0] >= slowdown[0] && slowdown[1] >= 1 && upper[1] >= slowdown[1]);
  return slowdown[0];
}

static void check_measured(const horus_interference* model, const horus_demand* a, const horus_demand* b,
                           int expected) {
  const horus_demand* two[2];
  horus_slowdowns columns = HORUS_SLOWDOWNS_INIT;
  uint8_t measured[4] = {9, 9, 9, 9};
  two[0] = a;
  two[1] = b;
  columns.measured = measured;
  CHECK_OK(horus_interference_slowdown(model, NULL, device_of(FIXTURE_GPU, 0), 2, two, 0, &columns, &error));
  CHECK(measured[0] == 1 && measured[3] == 1 && measured[1] == expected && measured[2] == expected);
}

static int32_t stop(void* user, double done) {
  (void)user;
  (void)done;
  return 1;
}

static void EveryModelSaysWhoItIs(void) {
  static const char* const names[] = {"horus", "boosted", "iasp", "iapp", "utilisation"};
  horus_interference_info info = HORUS_INTERFERENCE_INFO_INIT;
  horus_interference* model = NULL;
  uint64_t last = 0;
  size_t i, count = 7;
  for (i = 0; i < sizeof names / sizeof *names; ++i) {
    CHECK_OK(horus_interference_create(names[i], &model, &error));
    CHECK_OK(horus_interference_get_info(model, &info, &error));
    CHECK(strcmp(info.name, names[i]) == 0);
    CHECK(info.epoch != last && horus_interference_bytes_held(model) > 0);
    last = info.epoch;
    CHECK_STATUS(HORUS_ERR_UNSUPPORTED, horus_interference_to_bytes(model, 0, NULL, &count, &error));
    CHECK_OK(horus_interference_get_changes(model, 0, NULL, NULL, NULL, &count, &error));
    CHECK(count == 0);
    horus_interference_free(model);
  }
  CHECK_OK(horus_interference_create(NULL, &model, &error));
  CHECK_OK(horus_interference_get_info(model, &info, &error));
  CHECK(strcmp(info.name, "horus") == 0);
  horus_interference_free(model);
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_interference_get_info(NULL, &info, &error));
  CHECK(horus_interference_bytes_held(NULL) == 0);
}

static void ATableAnswersWithWhatWasMeasured(void) {
  const char* const types[2] = {FIXTURE_GPU, FIXTURE_GPU};
  const uint64_t a[2] = {100, 101}, b[2] = {101, 101};
  double first[2] = {1.75, 1.5}, second[2] = {1.25, 1.5};
  const horus_demand one = job_demand(0), two = job_demand(1), three = job_demand(2);
  horus_pair_table table = HORUS_PAIR_TABLE_INIT;
  horus_interference *model = NULL, *fallback = NULL;
  CHECK_OK(horus_interference_create("utilisation", &fallback, &error));
  table.count = 2;
  table.gpu_types = types;
  table.profiles_a = a;
  table.profiles_b = b;
  table.slowdown_a = first;
  table.slowdown_b = second;
  CHECK_OK(horus_interference_from_table(NULL, &table, fallback, &model, &error));
  CHECK(strcmp(model_info(model).name, "table") == 0);
  CHECK(fabs(slowdown_of_first(model, &one, &two) - 1.75) < 1e-6);
  CHECK(fabs(slowdown_of_first(model, &two, &one) - 1.25) < 1e-6);
  CHECK(slowdown_of_first(model, &one, &three) == slowdown_of_first(fallback, &one, &three));
  check_measured(model, &one, &two, 1);
  check_measured(model, &one, &three, 0);
  check_measured(fallback, &one, &two, 0);
  horus_interference_free(model);
  model = NULL;
  first[1] = 2; /* two copies of a job that differ */
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_interference_from_table(NULL, &table, NULL, &model, &error));
  first[1] = 1e9;
  second[1] = 1e9;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_interference_from_table(NULL, &table, NULL, &model, &error));
  table.slowdown_a = NULL;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "slowdown_a",
                horus_interference_from_table(NULL, &table, NULL, &model, &error));
  CHECK(model == NULL);
  horus_interference_free(fallback);
}

static void WrongObservationsAreRefusedAndLeaveNothing(horus_observations* observations) {
  const uint64_t before = horus_observations_bytes_held(observations);
  const double wrong[] = {0, -1, 0.4, 1e9, NAN, INFINITY};
  const horus_demand one = job_demand(0), two = job_demand(1);
  const horus_demand* others[1];
  horus_demand nobody = job_demand(0);
  horus_slowdown_observation observation;
  size_t i;
  others[0] = &two;
  for (i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    observation = observation_of(&one, others);
    observation.slowdown = wrong[i];
    CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "slowdown",
                  horus_observations_add_slowdown(observations, NULL, &observation, &error));
  }
  observation = observation_of(&one, others);
  observation.gpu_type = "abacus";
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_observations_add_slowdown(observations, NULL, &observation, &error));
  observation = observation_of(&one, others);
  observation.co_tenant_count = 0;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_observations_add_slowdown(observations, NULL, &observation, &error));
  observation.co_tenant_count = 1000;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_observations_add_slowdown(observations, NULL, &observation, &error));
  nobody.profile_id = 0;
  observation = observation_of(&nobody, others);
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "profile_id",
                horus_observations_add_slowdown(observations, NULL, &observation, &error));
  observation = observation_of(&one, others);
  observation.predicted_upper = 1.5;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "predicted_upper",
                horus_observations_add_slowdown(observations, NULL, &observation, &error));
  observation.struct_size = 8;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT, horus_observations_add_slowdown(observations, NULL, &observation, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_observations_add_slowdown(observations, NULL, NULL, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_observations_add_slowdown(NULL, NULL, &observation, &error));
  CHECK(horus_observations_bytes_held(observations) == before);
}

static void ACommitMovesAnswersTowardsWhatWasSeen(horus_observations* observations) {
  const horus_demand one = job_demand(0), two = job_demand(1), stranger = job_demand(5);
  const horus_demand* others[1];
  horus_slowdown_observation observation;
  horus_interference *model = NULL, *first = NULL, *second = NULL, *none = NULL;
  const char* types[4];
  int32_t modes[4];
  uint64_t profiles[4];
  size_t count = 0;
  others[0] = &two;
  observation = observation_of(&one, others);
  CHECK_OK(horus_interference_create("horus", &model, &error));
  CHECK_OK(horus_observations_add_slowdown(observations, NULL, &observation, &error));
  CHECK_OK(horus_interference_commit(model, NULL, observations, NULL, NULL, &first, &error));
  CHECK(slowdown_of_first(first, &one, &two) > slowdown_of_first(model, &one, &two));
  /* The model was not trained on this GPU type: what is seen there tells of jobs that nobody saw. */
  CHECK(slowdown_of_first(first, &stranger, &stranger) > slowdown_of_first(model, &stranger, &stranger));
  CHECK(model_info(first).epoch != model_info(model).epoch);
  CHECK_STATUS(HORUS_ERR_BUFFER_TOO_SMALL,
               horus_interference_get_changes(first, 1, types, modes, profiles, &count, &error));
  CHECK(count == 3);
  CHECK_OK(horus_interference_get_changes(first, 4, types, modes, profiles, &count, &error));
  CHECK(count == 3 && strcmp(types[0], FIXTURE_GPU) == 0 && modes[0] == HORUS_SHARING_TIME_SLICE);
  CHECK(profiles[0] == 0 && profiles[1] == 100 && profiles[2] == 101);
  CHECK_OK(horus_interference_commit(first, NULL, observations, NULL, NULL, &second, &error));
  CHECK(slowdown_of_first(second, &one, &two) == slowdown_of_first(first, &one, &two));
  CHECK_OK(horus_interference_get_changes(second, 4, NULL, NULL, NULL, &count, &error));
  CHECK(count == 0);
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_interference_get_changes(second, 4, NULL, NULL, NULL, NULL, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               horus_interference_commit(NULL, NULL, observations, NULL, NULL, &second, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_interference_commit(model, NULL, NULL, NULL, NULL, &second, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               horus_interference_commit(model, NULL, observations, NULL, NULL, NULL, &error));
  CHECK_STATUS(HORUS_ERR_CANCELLED, horus_interference_commit(model, NULL, observations, stop, NULL, &none, &error));
  CHECK(none == NULL);
  horus_interference_free(first);
  horus_interference_free(second);
  horus_interference_free(model);
}

static void PredictedStandsBesideObserved(const horus_observations* observations) {
  horus_calibration calibration = HORUS_CALIBRATION_INIT;
  uint64_t device[2] = {0, 0}, profile[2] = {0, 0}, times[2] = {0, 0};
  double observed[2] = {0, 0}, predicted[2] = {0, 0}, upper[2] = {0, 0};
  size_t count = 0;
  CHECK_OK(horus_observations_get_calibration(observations, &calibration, &error));
  CHECK(calibration.predictions == 1 && fabs(calibration.error - 0.5) < 1e-12 && fabs(calibration.bias - 0.5) < 1e-12);
  CHECK(calibration.bounds == 1 && calibration.covered == 0);
  CHECK_OK(horus_observations_get_devices(observations, 0, NULL, NULL, NULL, NULL, NULL, NULL, &count, &error));
  CHECK_OK(horus_observations_get_devices(observations, 2, device, profile, observed, predicted, upper, times, &count,
                                          &error));
  CHECK(count == 1 && device[0] == 9 && profile[0] == 100 && times[0] == 1);
  CHECK(observed[0] == 3 && predicted[0] == 2 && upper[0] == 2.5);
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_observations_get_calibration(NULL, &calibration, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_observations_get_calibration(observations, NULL, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               horus_observations_get_devices(observations, 2, device, NULL, NULL, NULL, NULL, NULL, NULL, &error));
}

/* Observed where it is, a resident is what its demand and those of its co-tenants say. */
static void AResidentIsObservedByItsPlace(void) {
  horus_cluster* cluster = cluster_of(1);
  horus_observations *by_place = NULL, *stated = NULL;
  horus_slowdown_observation seen = HORUS_SLOWDOWN_OBSERVATION_INIT;
  horus_demand_observation taken = HORUS_DEMAND_OBSERVATION_INIT;
  const uint64_t node = 1;
  const uint32_t first = 0;
  unsigned char one[8192], two[8192];
  size_t one_size = 0, two_size = 0;
  given_job jobs[2];
  uint64_t i;
  CHECK_OK(horus_observations_create(0, &by_place, &error));
  CHECK_OK(horus_observations_create(0, &stated, &error));
  for (i = 0; i < 2; ++i) {
    give_job(&jobs[i], i + 1, 0, 0);
    jobs[i].demand = job_demand(i);
    jobs[i].demand.mem_mib = 1000; /* or the cluster would take it as unknown */
    CHECK_OK(horus_cluster_adopt(cluster, &jobs[i].job, 1, &node, &first, NULL, NULL, &error));
  }
  seen.cluster = cluster;
  seen.job_id = 2;
  seen.node_id = 1;
  seen.slowdown = 3;
  seen.predicted = 2;
  seen.predicted_upper = 2.5;
  seen.device_id = 9;
  CHECK_OK(horus_observations_add_slowdown(by_place, NULL, &seen, &error));
  {
    const horus_slowdown_observation same = observation_of(&jobs[1].demand, jobs[0].demands);
    CHECK_OK(horus_observations_add_slowdown(stated, NULL, &same, &error));
  }
  taken.cluster = cluster;
  taken.job_id = 1;
  taken.node_id = 1;
  taken.measured = HORUS_OBSERVED_MEMORY;
  taken.mem_mib = 5000;
  CHECK_OK(horus_observations_add_demand(by_place, NULL, &taken, &error));
  taken.gpu_type = FIXTURE_GPU;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "gpu_type", horus_observations_add_demand(by_place, NULL, &taken, &error));
  taken.cluster = NULL;
  taken.profile_id = 100;
  CHECK_OK(horus_observations_add_demand(stated, NULL, &taken, &error));
  CHECK_OK(horus_observations_snapshot(by_place, sizeof one, one, &one_size, &error));
  CHECK_OK(horus_observations_snapshot(stated, sizeof two, two, &two_size, &error));
  CHECK(one_size == two_size && memcmp(one, two, one_size) == 0);

  seen.job = &jobs[1].demand;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "job", horus_observations_add_slowdown(by_place, NULL, &seen, &error));
  seen.job = NULL;
  seen.job_id = 3;
  CHECK_MESSAGE(HORUS_ERR_NOT_FOUND, "a job on device 0 of node 1, found 3",
                horus_observations_add_slowdown(by_place, NULL, &seen, &error));
  seen.device = 2;
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_observations_add_slowdown(by_place, NULL, &seen, &error));
  seen.device = 0;
  seen.job_id = 2;
  give_job(&jobs[0], 4, 10, 100); /* of a profile that nobody can name again */
  CHECK_OK(horus_cluster_adopt(cluster, &jobs[0].job, 1, &node, &first, NULL, NULL, &error));
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "job 4: expected a profile_id in its demand on " FIXTURE_GPU,
                horus_observations_add_slowdown(by_place, NULL, &seen, &error));
  CHECK_OK(horus_cluster_release(cluster, 4, &error));
  CHECK_OK(horus_cluster_release(cluster, 1, &error)); /* alone, nothing slows it */
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "co-tenants",
                horus_observations_add_slowdown(by_place, NULL, &seen, &error));
  horus_observations_free(by_place);
  horus_observations_free(stated);
  horus_cluster_free(cluster);
}

static void ACommittedModelSaysWhatToKeep(const horus_observations* observations) {
  horus_interference *model = NULL, *committed = NULL;
  size_t size = 0;
  CHECK_OK(horus_interference_create("utilisation", &model, &error));
  CHECK_OK(horus_interference_commit(model, NULL, observations, NULL, NULL, &committed, &error));
  CHECK_MESSAGE(HORUS_ERR_UNSUPPORTED, "horus_observations_snapshot",
                horus_interference_to_bytes(committed, 0, NULL, &size, &error));
  CHECK_MESSAGE(HORUS_ERR_UNSUPPORTED, "found utilisation", horus_interference_to_bytes(model, 0, NULL, &size, &error));
  horus_interference_free(committed);
  horus_interference_free(model);
}

static void WhatWasSeenSurvivesASnapshot(const horus_observations* observations) {
  const horus_demand one = job_demand(0), two = job_demand(1);
  horus_observations* restored = NULL;
  horus_interference *model = NULL, *before = NULL, *after = NULL;
  size_t size = 0;
  unsigned char* bytes;
  CHECK_OK(horus_observations_snapshot(observations, 0, NULL, &size, &error));
  bytes = malloc(size);
  CHECK_OK(horus_observations_snapshot(observations, size, bytes, &size, &error));
  CHECK_OK(horus_observations_restore(bytes, size, &restored, &error));
  CHECK_OK(horus_interference_create(NULL, &model, &error));
  CHECK_OK(horus_interference_commit(model, NULL, observations, NULL, NULL, &before, &error));
  CHECK_OK(horus_interference_commit(model, NULL, restored, NULL, NULL, &after, &error));
  CHECK(slowdown_of_first(before, &one, &two) == slowdown_of_first(after, &one, &two));
  CHECK(model_info(before).epoch == model_info(after).epoch);
  horus_interference_free(before);
  horus_interference_free(after);
  horus_interference_free(model);
  horus_observations_free(restored);
  free(bytes);
}

static int32_t cancel(void* user, double done) {
  (void)user;
  (void)done;
  return 1;
}

static void AModelIsTrainedSavedAndReadAgain(void) {
  const char* const types[1] = {FIXTURE_GPU};
  static const char* const families[JOBS] = {"a", "a", "b", "b", "c", "c"};
  const char* const two_types[2] = {FIXTURE_GPU, "t4"};
  horus_demand demands[JOBS];
  const horus_demand* pointers[JOBS];
  uint32_t devices[RUNS], a[RUNS], b[RUNS], i, j, n = 0;
  double first[RUNS], second[RUNS];
  horus_pair_data data = HORUS_PAIR_DATA_INIT;
  horus_pair_options options = HORUS_PAIR_OPTIONS_INIT;
  horus_interference *model = NULL, *again = NULL;
  horus_status trained;
  for (i = 0; i < JOBS; ++i) {
    demands[i] = job_demand(i);
    pointers[i] = &demands[i];
    for (j = 0; j < i; ++j, ++n) {
      devices[n] = 0;
      a[n] = i;
      b[n] = j;
      first[n] = 1.2 + 0.1 * j;
      second[n] = 1.2 + 0.1 * i;
    }
  }
  data.device_count = 1;
  data.gpu_types = types;
  data.job_count = JOBS;
  data.families = families;
  data.demands = pointers;
  data.count = RUNS;
  data.devices = devices;
  data.jobs_a = a;
  data.jobs_b = b;
  data.slowdown_a = first;
  data.slowdown_b = second;
  trained = horus_interference_fit(NULL, &data, &options, NULL, NULL, &model, NULL);
  if (trained == HORUS_ERR_UNSUPPORTED) return; /* a build without graphs trains nothing */
  CHECK(trained == HORUS_OK);
  CHECK(fabs(slowdown_of_first(model, &demands[5], &demands[4]) - 1.6) < 0.1);
  {
    size_t size = 0;
    unsigned char* bytes;
    CHECK_OK(horus_interference_to_bytes(model, 0, NULL, &size, &error));
    bytes = malloc(size);
    CHECK_OK(horus_interference_to_bytes(model, size, bytes, &size, &error));
    CHECK_OK(horus_interference_from_bytes(NULL, bytes, size, NULL, &again, &error));
    CHECK(slowdown_of_first(again, &demands[5], &demands[0]) == slowdown_of_first(model, &demands[5], &demands[0]));
    horus_interference_free(again);
    again = NULL;
    CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_interference_from_bytes(NULL, bytes, size, "iasp", &again, &error));
    CHECK_STATUS(HORUS_ERR_CORRUPT, horus_interference_from_bytes(NULL, bytes, size - 1, NULL, &again, &error));
    CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_interference_from_bytes(NULL, NULL, size, NULL, &again, &error));
    free(bytes);
  }
  CHECK_STATUS(HORUS_ERR_CANCELLED, horus_interference_fit(NULL, &data, NULL, cancel, NULL, &again, &error));
  options.model = "oracle";
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_interference_fit(NULL, &data, &options, NULL, NULL, &again, &error));
  first[3] = 0;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "row[3]",
                horus_interference_fit(NULL, &data, NULL, NULL, NULL, &again, &error));
  first[3] = 1.5;
  a[3] = JOBS;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_interference_fit(NULL, &data, NULL, NULL, NULL, &again, &error));
  data.device_count = 2; /* then the second demand is the first job's too */
  data.gpu_types = two_types;
  data.job_count = JOBS / 2;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT,
                "demands[1]: profile_id: expected that of the job's other demands, 100, found 101",
                horus_interference_fit(NULL, &data, NULL, NULL, NULL, &again, &error));
  CHECK(again == NULL);
  horus_interference_free(model);
}

int main(void) {
  horus_observations* observations = NULL;
  CHECK_OK(horus_observations_create(0, &observations, &error));
  EveryModelSaysWhoItIs();
  ATableAnswersWithWhatWasMeasured();
  WrongObservationsAreRefusedAndLeaveNothing(observations);
  ACommitMovesAnswersTowardsWhatWasSeen(observations);
  PredictedStandsBesideObserved(observations);
  AResidentIsObservedByItsPlace();
  ACommittedModelSaysWhatToKeep(observations);
  WhatWasSeenSurvivesASnapshot(observations);
  AModelIsTrainedSavedAndReadAgain();
  horus_observations_free(observations);
  return report();
}
