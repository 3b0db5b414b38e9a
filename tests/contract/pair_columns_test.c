/* SPDX-License-Identifier: Apache-2.0 */
/* Columns and texts of measured pairs that train a model: one that is missing, or no UTF-8, is refused by its name. */
#include "fields.h"
#include "fixture.h"

static horus_status take_pairs(const void* given, horus_error* error) {
  horus_pair_options options = HORUS_PAIR_OPTIONS_INIT;
  horus_interference* model = NULL;
  horus_status status;
  options.model = "iasp";
  options.promise = 0.5;
  status = horus_interference_fit(NULL, given, &options, NULL, NULL, &model, error);
  CHECK((model != NULL) == (status == HORUS_OK));
  horus_interference_free(model);
  return status;
}

#define JOBS 6u
#define RUNS (JOBS * (JOBS - 1u))
static horus_pair_data pairs; /* RUNS runs that train */

static horus_status take_pair_options(const void* given, horus_error* error) {
  horus_interference* model = NULL;
  const horus_status status = horus_interference_fit(NULL, &pairs, given, NULL, NULL, &model, error);
  CHECK((model != NULL) == (status == HORUS_OK));
  horus_interference_free(model);
  return status;
}

static void OfMeasuredPairs(void) {
  static const field fields[] = {
      FIELD(horus_pair_data, FIELD_TEXTS, gpu_types),  FIELD(horus_pair_data, FIELD_COLUMN, demands),
      FIELD(horus_pair_data, FIELD_COLUMN, devices),   FIELD(horus_pair_data, FIELD_COLUMN, jobs_a),
      FIELD(horus_pair_data, FIELD_COLUMN, jobs_b),    FIELD(horus_pair_data, FIELD_COLUMN, slowdown_a),
      FIELD(horus_pair_data, FIELD_COLUMN, slowdown_b)};
  static const field of_jobs[] = {FIELD(horus_pair_data, FIELD_TEXTS, families)};
  static const field of_runs[] = {FIELD(horus_pair_data, FIELD_NAMES, campaigns)};
  static const field of_options[] = {FIELD(horus_pair_options, FIELD_TEXT, model),
                                     FIELD(horus_pair_options, FIELD_TEXT, library_path)};
  static const int32_t modes[2] = {0, HORUS_SHARING_MPS}, beyond[2] = {0, 9};
  static const char* const families[JOBS] = {"a", "b", "c", "d", "e", "f"};
  const char* unknown[2] = {"no-such-gpu", FIXTURE_GPU};
  uint32_t a[RUNS], b[RUNS], device[RUNS];
  double slowdown[RUNS];
  horus_demand values[JOBS * 2];
  const horus_demand* demands[JOBS * 2];
  horus_pair_options options = HORUS_PAIR_OPTIONS_INIT;
  horus_pair_data data = HORUS_PAIR_DATA_INIT, good;
  size_t i, j, run = 0;
  for (i = 0; i < JOBS * 2; ++i) {
    const horus_demand none = HORUS_DEMAND_INIT;
    values[i] = none;
    values[i].profile_id = 100 + i / 2;
    values[i].gpu_util_pct = 40.0f + 5.0f * (float)i;
    values[i].step_time_us = 20000 + 5000 * (int64_t)i;
    values[i].traits[2] = 2.5f;
    values[i].operator_us = 100.0f;
    demands[i] = &values[i];
  }
  for (i = 0; i < JOBS; ++i) {
    for (j = i + 1; j < JOBS; ++j, run += 2) {
      a[run] = a[run + 1] = (uint32_t)i;
      b[run] = b[run + 1] = (uint32_t)j;
      device[run] = 0;
      device[run + 1] = 1;
      slowdown[run] = slowdown[run + 1] = 1.2 + 0.05 * (double)(i + j);
    }
  }
  data.device_count = 2;
  data.gpu_types = kTwoGpus;
  data.sharing_modes = modes;
  data.job_count = JOBS;
  data.families = families;
  data.demands = demands;
  data.count = RUNS;
  data.devices = device;
  data.jobs_a = a;
  data.jobs_b = b;
  data.slowdown_a = data.slowdown_b = slowdown;
  pairs = good = data;
  options.model = "iasp";
  CHECK_FIELDS(take_pair_options, &options, of_options, 1);
  CHECK_FIELDS(take_pairs, &data, fields, 2);
  CHECK_FIELDS(take_pairs, &data, of_jobs, JOBS);
  CHECK_FIELDS(take_pairs, &data, of_runs, RUNS);
  CHECK_STRUCT(take_pairs, &data, horus_pair_data);
  options.struct_size = 4;
  CHECK_MESSAGE(HORUS_ERR_INVALID_STRUCT, "horus_pair_options", take_pair_options(&options, &error));
  data.sharing_modes = beyond;
  check_refused(take_pairs, &data, "expected", "found 9");
  data = good;
  data.gpu_types = unknown;
  CHECK_MESSAGE(HORUS_ERR_NOT_FOUND, "no-such-gpu", take_pairs(&data, &error));
  data = good;
  demands[3] = NULL;
  check_refused(take_pairs, &data, "job[1]", "found NULL");
  demands[3] = &values[3];
  values[3].profile_id = 7;
  check_refused(take_pairs, &data, "job[1]: demands[3]: profile_id", "found 7");
  values[3].profile_id = 101;
#define BEYOND(member, most) \
  data = good;               \
  data.member = (most) + 1;  \
  CHECK_MESSAGE(HORUS_ERR_LIMIT, "at most 64 devices, 2048 jobs and 200000 runs", take_pairs(&data, &error))
  BEYOND(device_count, 64);
  BEYOND(job_count, 2048);
  BEYOND(count, 200000);
#undef BEYOND
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "horus_pair_data: expected a struct, found NULL", take_pairs(NULL, &error));
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "out", horus_interference_fit(NULL, &good, NULL, NULL, NULL, NULL, &error));
}

int main(void) {
  OfMeasuredPairs();
  return report();
}
