/* SPDX-License-Identifier: Apache-2.0 */
/* Columns and texts of traces and simulations: one that is missing, or no UTF-8, is refused by its name. */
#include "fields.h"
#include "sim_setup.h"

static horus_status take_trace(const void* given, horus_error* error) {
  horus_trace* trace = NULL;
  const horus_status status = horus_trace_create(given, &trace, error);
  CHECK((trace != NULL) == (status == HORUS_OK));
  horus_trace_free(trace);
  return status;
}

static void OfTraces(void) {
  static const field fields[] = {FIELD(horus_trace_columns, FIELD_TEXTS, profile_names),
                                 FIELD(horus_trace_columns, FIELD_TEXTS, owner_names),
                                 FIELD(horus_trace_columns, FIELD_TEXTS, type_lists)};
  static const int32_t below[2] = {0, -1}, no_kind[2] = {0, -1};
  static const uint32_t beyond[2] = {0, 2};
  static const char* const spaced[2] = {"ann ", "bob"};
  static const int64_t durations[2] = {5, 6};
  horus_trace_columns columns = HORUS_TRACE_COLUMNS_INIT, good;
  columns.count = 2;
  columns.duration_us = durations;
  columns.profile_count = columns.owner_count = columns.type_list_count = 2;
  columns.profile_names = columns.owner_names = columns.type_lists = kProfiles;
  CHECK_FIELDS(take_trace, &columns, fields, 2);
  good = columns;
  columns.gpu_milli = below;
  check_refused(take_trace, &columns, "row[1]: gpu_milli", "expected 0 to 1000, found -1");
  columns = good;
  columns.kinds = no_kind;
  check_refused(take_trace, &columns, "row[1]: kinds", "found -1");
  columns = good;
  columns.owners = beyond;
  check_refused(take_trace, &columns, "row[1]: owners", "expected less than 2, or HORUS_NOT_STATED, found 2");
  columns = good;
  columns.gpu_types = beyond;
  check_refused(take_trace, &columns, "row[1]: gpu_types", "found 2");
  columns = good;
  columns.owner_names = spaced;
  check_refused(take_trace, &columns, "owner_names[0]", "found");
  columns = good;
  columns.owner_count = 4000001;
  CHECK_MESSAGE(HORUS_ERR_LIMIT, "owner_names: expected at most 4000000, found 4000001", take_trace(&columns, &error));
  columns = good;
  columns.type_list_count = 4000001;
  CHECK_MESSAGE(HORUS_ERR_LIMIT, "type_lists: expected at most 4000000, found 4000001", take_trace(&columns, &error));
}

static horus_status take_synthetic(const void* given, horus_error* error) {
  horus_trace* trace = NULL;
  const horus_status status = horus_trace_create_synthetic(given, &trace, error);
  CHECK((trace != NULL) == (status == HORUS_OK));
  horus_trace_free(trace);
  return status;
}

static void OfSyntheticTraces(void) {
  static const field fields[] = {FIELD(horus_synthetic_options, FIELD_TEXT, preset),
                                 FIELD(horus_synthetic_options, FIELD_COLUMN, size_gpus),
                                 FIELD(horus_synthetic_options, FIELD_COLUMN, duration_shares_milli),
                                 FIELD(horus_synthetic_options, FIELD_COLUMN, duration_us),
                                 FIELD(horus_synthetic_options, FIELD_TEXTS, profile_names)};
  static const int32_t sizes[2] = {1, 2}, shares[2] = {0, 1000};
  static const int64_t durations[2] = {1000, 2000};
  static const uint32_t alike[2] = {1, 1};
  horus_synthetic_options options = HORUS_SYNTHETIC_OPTIONS_INIT;
  horus_trace *plain = NULL, *weighted = NULL;
  horus_trace_summary one = HORUS_TRACE_SUMMARY_INIT, two = HORUS_TRACE_SUMMARY_INIT;
  options.jobs = 20;
  options.arrivals = HORUS_ARRIVALS_BACKLOG;
  options.size_count = options.duration_count = options.profile_count = 2;
  options.size_gpus = sizes;
  options.duration_shares_milli = shares;
  options.duration_us = durations;
  options.profile_names = kProfiles;
  CHECK_FIELDS(take_synthetic, &options, fields, 2);
  options.reserved0 = 1;
  CHECK_MESSAGE(HORUS_ERR_INVALID_STRUCT, "horus_synthetic_options: reserved0", take_synthetic(&options, &error));
  options.reserved0 = 0;
  CHECK_OK(horus_trace_create_synthetic(&options, &plain, &error));
  options.size_weights = options.profile_weights = alike; /* as if left out */
  CHECK_OK(horus_trace_create_synthetic(&options, &weighted, &error));
  CHECK_OK(horus_trace_get_summary(plain, &one, &error));
  CHECK_OK(horus_trace_get_summary(weighted, &two, &error));
  CHECK(one.jobs == 20 && one.digest == two.digest && one.gpus > 20 && one.gpus < 40);
  horus_trace_free(plain);
  horus_trace_free(weighted);
}

static horus_status take_speeds(const void* given, horus_error* error) {
  horus_truth* truth = NULL;
  const horus_status status = horus_truth_from_speeds(NULL, given, HORUS_TENANTS_MULTIPLY, &truth, error);
  CHECK((truth != NULL) == (status == HORUS_OK));
  horus_truth_free(truth);
  return status;
}

static void OfSpeeds(void) {
  static const field of_gpus[] = {FIELD(horus_speeds, FIELD_TEXTS, gpu_types)};
  static const field fields[] = {
      FIELD(horus_speeds, FIELD_TEXTS, profiles),   FIELD(horus_speeds, FIELD_COLUMN, alone),
      FIELD(horus_speeds, FIELD_COLUMN, pair_gpus), FIELD(horus_speeds, FIELD_COLUMN, pairs_a),
      FIELD(horus_speeds, FIELD_COLUMN, pairs_b),   FIELD(horus_speeds, FIELD_COLUMN, speeds_a),
      FIELD(horus_speeds, FIELD_COLUMN, speeds_b)};
  static const char *const spaced[2] = {" a", "b"}, *const same[2] = {"a", "a"};
  static const double nowhere[2] = {0, 0};
  horus_speeds speeds = speeds_of_two(), good;
  CHECK_FIELDS(take_speeds, &speeds, of_gpus, 1);
  CHECK_FIELDS(take_speeds, &speeds, fields, 2);
  good = speeds;
  speeds.profiles = spaced;
  check_refused(take_speeds, &speeds, "speeds: profiles[0]", "found");
  speeds.profiles = same;
  check_refused(take_speeds, &speeds, "speeds: profiles[1]", "expected each name once, found 'a' twice");
  speeds = good;
  speeds.alone = nowhere;
  check_refused(take_speeds, &speeds, "speeds: alone", "expected some speed above 0, found none");
  speeds = good;
  speeds.reference = 1;
  check_refused(take_speeds, &speeds, "speeds: reference", "expected less than 1, found 1");
  speeds = good;
  speeds.profile_count = 0;
  check_refused(take_speeds, &speeds, "speeds: expected GPU types and profiles", "found 1 and 0");
#define BEYOND(member, most)                                                                       \
  speeds = good;                                                                                   \
  speeds.member = (most) + 1;                                                                      \
  CHECK_MESSAGE(HORUS_ERR_LIMIT, "expected at most 64 GPU types, 2048 profiles and 4000000 pairs", \
                take_speeds(&speeds, &error))
  BEYOND(gpu_count, 64);
  BEYOND(profile_count, 2048);
  BEYOND(pair_count, 4000000);
#undef BEYOND
}

static horus_status take_demands(const void* given, horus_error* error) {
  horus_truth* truth = NULL;
  const horus_status status = horus_truth_from_model(NULL, NULL, given, &truth, error);
  CHECK((truth != NULL) == (status == HORUS_OK));
  horus_truth_free(truth);
  return status;
}

static horus_truth* speeds_alone; /* what take_sensitivities starts from */

static horus_status take_sensitivities(const void* given, horus_error* error) {
  horus_truth* truth = NULL;
  const horus_status status = horus_truth_with_sensitivities(speeds_alone, given, &truth, error);
  CHECK((truth != NULL) == (status == HORUS_OK));
  horus_truth_free(truth);
  return status;
}

static void OfProfiles(void) {
  static const field fields[] = {FIELD(horus_profile_demands, FIELD_TEXTS, profiles),
                                 FIELD(horus_profile_demands, FIELD_NAMES, gpu_types),
                                 FIELD(horus_profile_demands, FIELD_COLUMN, demands)};
  static const field of_matrices[] = {FIELD(horus_profile_sensitivities, FIELD_TEXTS, profiles),
                                      FIELD(horus_profile_sensitivities, FIELD_COLUMN, sensitivities)};
  static const char* const spaced[2] = {"a\n", "b"};
  static const char* const same[2] = {"a", "a"};
  static const char* const unknown[2] = {NULL, "no-such-gpu"};
  static const char* const then_any[2] = {FIXTURE_GPU, NULL};
  static const char* const any_first[2] = {NULL, FIXTURE_GPU};
  static const int64_t cores[1] = {1000};
  static const float speeds[1] = {1};
  const horus_sensitivity matrix = matrix_of(1, cores, speeds);
  const horus_sensitivity* matrices[2];
  horus_profile_sensitivities sensitivities = HORUS_PROFILE_SENSITIVITIES_INIT;
  demands_of_two given;
  give_demands(&given, 2000);
  CHECK_FIELDS(take_demands, &given.columns, fields, 2);
  CHECK_STRUCT(take_demands, &given.columns, horus_profile_demands);
  given.columns.profiles = spaced;
  check_refused(take_demands, &given.columns, "row[0]: profiles", "found");
  given.columns.profiles = kProfiles;
  given.columns.gpu_types = unknown;
  CHECK_MESSAGE(HORUS_ERR_NOT_FOUND, "demands: row[1]", take_demands(&given.columns, &error));
  given.columns.profiles = same;
  given.columns.gpu_types = then_any;
  check_refused(take_demands, &given.columns, "row[1]: gpu_types", "or any alone");
  given.columns.gpu_types = any_first;
  check_refused(take_demands, &given.columns, "row[1]: gpu_types", "or any alone");
  given.columns.profiles = kProfiles; /* one step time or none are both fine where each row is alone */
  given.columns.gpu_types = NULL;
  given.jobs[0].demand.step_time_us = given.jobs[1].demand.step_time_us = 0;
  CHECK_OK(take_demands(&given.columns, &error));

  matrices[0] = matrices[1] = &matrix;
  sensitivities.count = 2;
  sensitivities.profiles = kProfiles;
  sensitivities.sensitivities = matrices;
  CHECK_FIELDS(take_sensitivities, &sensitivities, of_matrices, 2);
  CHECK_STRUCT(take_sensitivities, &sensitivities, horus_profile_sensitivities);
}

static setup box; /* what take_options plays in */

static horus_status take_options(const void* given, horus_error* error) {
  horus_sim_result* result = NULL;
  const uint64_t before = state_hash(box.cluster);
  const horus_status status = play(&box, given, NULL, NULL, NULL, &result, error);
  CHECK((result != NULL) == (status == HORUS_OK) && state_hash(box.cluster) == before);
  horus_sim_result_free(result);
  return status;
}

static void OfSimulations(void) {
  static const field fields[] = {
      FIELD(horus_sim_options, FIELD_TEXT, discipline), FIELD(horus_sim_options, FIELD_TEXT, profiling_label),
      FIELD(horus_sim_options, FIELD_COLUMN, outage_nodes), FIELD(horus_sim_options, FIELD_COLUMN, outage_from_us),
      FIELD(horus_sim_options, FIELD_COLUMN, outage_until_us)};
  static const uint64_t nodes[1] = {1};
  static const int64_t from[1] = {20}, until[1] = {30};
  static const struct {
    const char* name;
    size_t offset;
    int32_t value;
  } codes[] = {
      {"hide_run_times", offsetof(horus_sim_options, hide_run_times), 2},
      {"preempt", offsetof(horus_sim_options, preempt), -1},
      {"one_by_one", offsetof(horus_sim_options, one_by_one), 2},
      {"profile_each_job", offsetof(horus_sim_options, profile_each_job), 2},
      {"learns", offsetof(horus_sim_options, learns), -1},
      {"weights", offsetof(horus_sim_options, weights), -1},
  };
  horus_sim_options options = HORUS_SIM_OPTIONS_INIT;
  horus_rebalance_options rebalance = HORUS_REBALANCE_OPTIONS_INIT;
  horus_profile_demands measured = HORUS_PROFILE_DEMANDS_INIT;
  size_t i;
  options.outage_count = 1;
  options.outage_nodes = nodes;
  options.outage_from_us = from;
  options.outage_until_us = until;
  CHECK_FIELDS(take_options, &options, fields, 1);
  for (i = 0; i < sizeof codes / sizeof *codes; ++i) {
    horus_sim_options wrong = HORUS_SIM_OPTIONS_INIT;
    memcpy((char*)&wrong + codes[i].offset, &codes[i].value, sizeof codes[i].value);
    check_refused(take_options, &wrong, codes[i].name, "found ");
  }
  rebalance.job_ids = nodes; /* even none of them */
  options.rebalance = &rebalance;
  check_refused(take_options, &options, "rebalance: job_ids", "expected NULL");
  rebalance.struct_size = 4;
  CHECK_MESSAGE(HORUS_ERR_INVALID_STRUCT, "horus_rebalance_options", take_options(&options, &error));
  options.rebalance = NULL;
  measured.count = 1;
  options.measured = &measured;
  check_refused(take_options, &options, "measured: profiles", "found NULL");
}

int main(void) {
  speeds_alone = truth_of_speeds();
  open_world(&box, 0);
  OfTraces();
  OfSyntheticTraces();
  OfSpeeds();
  OfProfiles();
  OfSimulations();
  close_world(&box);
  horus_truth_free(speeds_alone);
  return report();
}
