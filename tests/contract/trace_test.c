/* SPDX-License-Identifier: Apache-2.0 */
/* Contract of horus/lab/trace.h: columns in, summaries out; NULL, wrong structs, rows that are refused. */
#include "check.h"

static const char* const kProfiles[2] = {"b", "a"};
static const char* const kOwners[1] = {"ann"};
static const char* const kLists[2] = {"v100-pcie-16gb|a100-40gb", "t4"};

/* Three jobs, the last of which comes first. */
static const uint64_t kIds[3] = {7, 8, 9};
static const int64_t kSubmit[3] = {20, 10, 0};
static const int64_t kDuration[3] = {100, 0, 50};
static const int64_t kSteps[3] = {0, 5, 0};
static const uint32_t kRuns[3] = {0, 1, 1};

static horus_trace_columns three_jobs(void) {
  horus_trace_columns columns = HORUS_TRACE_COLUMNS_INIT;
  columns.count = 3;
  columns.ids = kIds;
  columns.submit_us = kSubmit;
  columns.duration_us = kDuration;
  columns.steps = kSteps;
  columns.profile_count = 2;
  columns.profile_names = kProfiles;
  columns.profiles = kRuns;
  return columns;
}

static horus_trace_summary summary_of(const horus_trace_columns* columns) {
  horus_trace_summary summary = HORUS_TRACE_SUMMARY_INIT;
  horus_trace* trace = NULL;
  CHECK_OK(horus_trace_create(columns, &trace, &error));
  CHECK_OK(horus_trace_get_summary(trace, &summary, &error));
  horus_trace_free(trace);
  return summary;
}

static void JobsAreSortedAndNamesKept(void) {
  horus_trace_columns columns = three_jobs();
  horus_trace* trace = NULL;
  CHECK_OK(horus_trace_create(&columns, &trace, &error));
  CHECK(horus_trace_count(trace) == 3 && horus_trace_profile_count(trace) == 2);
  CHECK(horus_trace_bytes_held(trace) > 3 * 64);
  CHECK(strcmp(horus_trace_profile_name(trace, 0), "a") == 0); /* job 9 comes first */
  CHECK(strcmp(horus_trace_profile_name(trace, 1), "b") == 0);
  CHECK(horus_trace_profile_name(trace, 2) == NULL && horus_trace_profile_name(NULL, 0) == NULL);
  horus_trace_free(trace);
  CHECK(horus_trace_count(NULL) == 0 && horus_trace_profile_count(NULL) == 0 && horus_trace_bytes_held(NULL) == 0);
  horus_trace_free(NULL);
}

static void EveryColumnReachesTheJobs(void) {
  const uint8_t endless[3] = {1, 0, 0};
  const int32_t tasks[3] = {2, 0, 1}, gpus[3] = {3, 0, HORUS_JOB_NO_GPUS}, milli[3] = {0, 500, 0};
  const int32_t kinds[3] = {HORUS_JOB_TRAINING, HORUS_JOB_BEST_EFFORT, HORUS_JOB_INFERENCE};
  const int64_t deadlines[3] = {0, 11, 0}, cpu[3] = {1000, 0, 0};
  const uint32_t owners[3] = {HORUS_NOT_STATED, 0, 0}, lists[3] = {1, HORUS_NOT_STATED, 0};
  horus_trace_columns columns = three_jobs();
  horus_trace_summary plain = summary_of(&columns), summary;
  CHECK(plain.jobs == 3 && plain.gpus == 3 && plain.by_steps == 1 && plain.profiles == 2 && plain.owners == 0);
  CHECK(plain.first_submit_us == 0 && plain.last_submit_us == 20 && plain.mean_gap_us == 10 && plain.gap_scv == 0);
  CHECK(plain.gpu_us == 150 && plain.endless == 0 && plain.gangs == 0 && plain.shares == 0 && plain.deadlines == 0);
  columns.endless = endless;
  columns.tasks = tasks;
  columns.gpus_per_task = gpus;
  columns.gpu_milli = milli;
  columns.kinds = kinds;
  columns.deadline_us = deadlines;
  columns.cpu_milli = columns.mem_mib = cpu;
  columns.priorities = tasks;
  columns.owner_count = 1;
  columns.owner_names = kOwners;
  columns.owners = owners;
  columns.type_list_count = 2;
  columns.type_lists = kLists;
  columns.gpu_types = lists;
  summary = summary_of(&columns);
  CHECK(summary.jobs == 3 && summary.endless == 1 && summary.gpus == 7 && summary.gangs == 1 && summary.shares == 1);
  CHECK(summary.best_effort == 1 && summary.deadlines == 1 && summary.owners == 1 && summary.digest != plain.digest);
}

static void TheOrderOfRowsDoesNotMatter(void) {
  const uint64_t ids[3] = {9, 7, 8};
  const int64_t submit[3] = {0, 20, 10}, duration[3] = {50, 100, 0}, steps[3] = {0, 0, 5};
  const uint32_t runs[3] = {1, 0, 1};
  horus_trace_columns columns = three_jobs();
  const uint64_t digest = summary_of(&columns).digest;
  columns.ids = ids;
  columns.submit_us = submit;
  columns.duration_us = duration;
  columns.steps = steps;
  columns.profiles = runs;
  CHECK(summary_of(&columns).digest == digest);
}

static void ColumnsThatAreLeftOutAreDefaults(void) {
  const int64_t duration[2] = {5, 6};
  horus_trace_columns columns = HORUS_TRACE_COLUMNS_INIT;
  horus_trace_summary summary = summary_of(&columns);
  CHECK(summary.jobs == 0 && summary.mean_gap_us == 0);
  columns.count = 2;
  columns.duration_us = duration;
  summary = summary_of(&columns);
  CHECK(summary.jobs == 2 && summary.gpus == 2 && summary.last_submit_us == 0 && summary.profiles == 0);
}

static void WrongRowsAreNamed(void) {
  const int64_t negative[3] = {0, -1, 0}, both[3] = {100, 1, 50}, lowest[3] = {0, 0, INT64_MIN};
  const uint64_t twice[3] = {7, 7, 9};
  const uint32_t beyond[3] = {0, 1, 2};
  const int32_t wide[3] = {0, 65536 + 1, 0}, unknown[3] = {0, 3, 0};
  const uint8_t flags[3] = {0, 0, 2};
  const char* const bad_utf8[2] = {"b", "\xff"};
  const char* const spaced[2] = {"b", " a"};
  const char* const no_type[2] = {"t4", "t4|"};
  horus_trace* trace = NULL;
  horus_trace_columns columns = three_jobs();
  columns.submit_us = negative;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "row[1]: submit_us: expected 0 to",
                horus_trace_create(&columns, &trace, &error));
  columns = three_jobs();
  columns.duration_us = both;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "row[1]: duration_us, steps", horus_trace_create(&columns, &trace, &error));
  columns = three_jobs();
  columns.deadline_us = lowest;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "row[2]: deadline_us", horus_trace_create(&columns, &trace, &error));
  columns = three_jobs();
  columns.ids = twice;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "found 7 twice", horus_trace_create(&columns, &trace, &error));
  columns = three_jobs();
  columns.profiles = beyond;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "row[2]: profiles: expected less than 2",
                horus_trace_create(&columns, &trace, &error));
  columns.profile_names = NULL;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "profile_names", horus_trace_create(&columns, &trace, &error));
  columns.profile_names = bad_utf8;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "profile_names[1]: expected UTF-8",
                horus_trace_create(&columns, &trace, &error));
  columns.profile_names = spaced;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "profile_names[1]", horus_trace_create(&columns, &trace, &error));
  columns = three_jobs();
  columns.gpu_milli = wide; /* 1, were it cut to 16 bits */
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "row[1]: gpu_milli", horus_trace_create(&columns, &trace, &error));
  columns = three_jobs();
  columns.kinds = unknown;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "row[1]: kinds", horus_trace_create(&columns, &trace, &error));
  columns = three_jobs();
  columns.endless = flags;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "row[2]: endless: expected 0 or 1",
                horus_trace_create(&columns, &trace, &error));
  columns = three_jobs();
  columns.type_list_count = 2;
  columns.type_lists = no_type;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "type_lists[1]", horus_trace_create(&columns, &trace, &error));
  columns = three_jobs();
  columns.count = 4000001;
  CHECK_STATUS(HORUS_ERR_LIMIT, horus_trace_create(&columns, &trace, &error));
  CHECK(trace == NULL);
}

static void WrongArgumentsAreRefused(void) {
  horus_trace_columns columns = three_jobs();
  horus_trace_summary summary = HORUS_TRACE_SUMMARY_INIT;
  horus_trace* trace = NULL;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_trace_create(NULL, &trace, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_trace_create(&columns, NULL, &error));
  columns.struct_size = 8;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT, horus_trace_create(&columns, &trace, &error));
  columns.struct_size = sizeof columns;
  columns.reserved = 1;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT, horus_trace_create(&columns, &trace, &error));
  CHECK(trace == NULL);
  columns.reserved = 0;
  CHECK_OK(horus_trace_create(&columns, &trace, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_trace_get_summary(NULL, &summary, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_trace_get_summary(trace, NULL, &error));
  summary.struct_size = 8;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT, horus_trace_get_summary(trace, &summary, &error));
  CHECK(summary.jobs == 0);
  horus_trace_free(trace);
}

/* All that a trace of three jobs was told, read back. */
static void JobsAreReadAsTheyWereGiven(void) {
  const uint32_t owners[3] = {HORUS_NOT_STATED, 0, 0}, lists[3] = {1, HORUS_NOT_STATED, 0};
  const int64_t step[3] = {0, 90, 80}, host[3] = {7, 10, 20}, gpu[3] = {7, 70, 0}, network[3] = {7, 0, 5};
  const int32_t gpus[3] = {3, 0, HORUS_JOB_NO_GPUS};
  horus_trace_columns columns = three_jobs();
  horus_trace_jobs jobs = HORUS_TRACE_JOBS_INIT;
  horus_trace* trace = NULL;
  uint64_t ids[3];
  int64_t submit[3], steps[3], step_back[3], host_back[3], network_back[3];
  int32_t gpus_back[3];
  uint32_t profiles[3], owners_back[3], lists_back[3];
  size_t count = 0;
  columns.gpus_per_task = gpus;
  columns.owner_count = 1;
  columns.owner_names = kOwners;
  columns.owners = owners;
  columns.type_list_count = 2;
  columns.type_lists = kLists;
  columns.gpu_types = lists;
  columns.step_us = step;
  columns.host_us = host;
  columns.gpu_us = gpu;
  columns.network_us = network;
  CHECK_OK(horus_trace_create(&columns, &trace, &error));
  CHECK_OK(horus_trace_get_jobs(trace, &jobs, &count, &error));
  CHECK(count == 3);
  jobs.capacity = 3;
  jobs.ids = ids;
  jobs.submit_us = submit;
  jobs.steps = steps;
  jobs.gpus_per_task = gpus_back;
  jobs.profiles = profiles;
  jobs.owners = owners_back;
  jobs.gpu_types = lists_back;
  jobs.step_us = step_back;
  jobs.host_us = host_back;
  jobs.network_us = network_back;
  CHECK_OK(horus_trace_get_jobs(trace, &jobs, &count, &error));
  CHECK(ids[0] == 9 && ids[2] == 7 && submit[2] == 20 && steps[1] == 5 && profiles[0] == 0 && profiles[2] == 1);
  CHECK(gpus_back[0] == HORUS_JOB_NO_GPUS && gpus_back[1] == 1 && gpus_back[2] == 3);
  CHECK(owners_back[0] == 0 && owners_back[2] == HORUS_NOT_STATED &&
        strcmp(horus_trace_owner_name(trace, 0), "ann") == 0);
  CHECK(lists_back[0] == 0 && lists_back[1] == HORUS_NOT_STATED && lists_back[2] == 1);
  CHECK(strcmp(horus_trace_type_name(trace, 0, 0), "a100-40gb") == 0 && horus_trace_type_name(trace, 0, 2) == NULL);
  CHECK(strcmp(horus_trace_type_name(trace, 1, 0), "t4") == 0 && horus_trace_type_name(trace, 2, 0) == NULL);
  CHECK(horus_trace_owner_name(trace, 1) == NULL && horus_trace_owner_name(NULL, 0) == NULL);
  CHECK(step_back[0] == 80 && host_back[1] == 10 && network_back[0] == 5);
  CHECK(step_back[2] == 0 && host_back[2] == 0); /* no step, nothing of it */
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_trace_get_jobs(NULL, &jobs, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_trace_get_jobs(trace, &jobs, NULL, &error));
  jobs.struct_size = 8;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT, horus_trace_get_jobs(trace, &jobs, &count, &error));
  horus_trace_free(trace);
  trace = NULL;
  columns.step_us = submit; /* 0, 10, 20 */
  submit[1] = -1;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "row[1]: step_us", horus_trace_create(&columns, &trace, &error));
  CHECK(trace == NULL);
}

static void DrawnTracesFollowTheirOptions(void) {
  const int32_t gpus[2] = {1, 4}, shares[2] = {0, 1000};
  const int64_t durations[2] = {10, 20};
  horus_synthetic_options options = HORUS_SYNTHETIC_OPTIONS_INIT;
  const horus_synthetic_options none = HORUS_SYNTHETIC_OPTIONS_INIT;
  horus_trace_summary summary = HORUS_TRACE_SUMMARY_INIT;
  horus_trace* trace = NULL;
  uint64_t digest;
  CHECK_OK(horus_trace_create_synthetic(NULL, &trace, &error));
  CHECK(horus_trace_count(trace) == 1000 && horus_trace_profile_count(trace) == 16);
  CHECK_OK(horus_trace_get_summary(trace, &summary, &error));
  digest = summary.digest;
  horus_trace_free(trace);
  options.preset = "horus2020";
  CHECK_OK(horus_trace_create_synthetic(&options, &trace, &error));
  CHECK(horus_trace_count(trace) == 2500);
  CHECK_OK(horus_trace_get_summary(trace, &summary, &error));
  CHECK(summary.gpus == 2500 && summary.last_submit_us == 0 && summary.digest != digest);
  horus_trace_free(trace);
  options = none;
  options.seed = 9;
  options.jobs = 40;
  options.arrivals = HORUS_ARRIVALS_POISSON;
  options.mean_gap_us = 50;
  options.size_count = options.duration_count = 2;
  options.size_gpus = gpus;
  options.duration_shares_milli = shares;
  options.duration_us = durations;
  options.profile_count = 2;
  options.profile_names = kProfiles;
  options.owners = 1;
  CHECK_OK(horus_trace_create_synthetic(&options, &trace, &error));
  CHECK_OK(horus_trace_get_summary(trace, &summary, &error));
  CHECK(summary.jobs == 40 && summary.profiles == 2 && summary.owners == 1 && summary.last_submit_us > 500);
  CHECK(summary.gpus > 40 && summary.gpus < 160 && summary.gpu_us >= 10 * 40 && summary.gpu_us <= 20 * 160);
  horus_trace_free(trace);
  trace = NULL;
#define REFUSED(status, text)                                                          \
  CHECK_MESSAGE(status, text, horus_trace_create_synthetic(&options, &trace, &error)); \
  options = none
  options.preset = "rome";
  REFUSED(HORUS_ERR_NOT_FOUND, "rome");
  options.arrivals = 4;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "arrivals: expected HORUS_ARRIVALS_*");
  options.jobs = -1;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "synthetic: jobs: expected 1 to 4000000, found -1");
  options.size_count = 1;
  REFUSED(HORUS_ERR_INVALID_ARGUMENT, "size_gpus");
  options.profile_count = 4000001;
  REFUSED(HORUS_ERR_LIMIT, "profile_count");
  options.struct_size = 8;
  REFUSED(HORUS_ERR_INVALID_STRUCT, "horus_synthetic_options");
#undef REFUSED
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_trace_create_synthetic(&options, NULL, &error));
  CHECK(trace == NULL);
}

int main(void) {
  JobsAreSortedAndNamesKept();
  EveryColumnReachesTheJobs();
  TheOrderOfRowsDoesNotMatter();
  ColumnsThatAreLeftOutAreDefaults();
  JobsAreReadAsTheyWereGiven();
  DrawnTracesFollowTheirOptions();
  WrongRowsAreNamed();
  WrongArgumentsAreRefused();
  return report();
}
