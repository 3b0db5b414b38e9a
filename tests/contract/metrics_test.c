/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics counts, times and tells the calls of the handles that it is set on, and changes no answer. */
#include "horus/metrics.h"

#include <stdlib.h>

#include "fixture.h"

typedef struct lines {
  size_t count;
  int32_t level;           /* of the last */
  char last[300];          /* and its beginning */
  horus_cluster* released; /* a job of it is released by the callback */
  horus_placer* unmetered; /* the metrics is taken off it by the callback */
} lines;

static void keep_line(void* user, int32_t level, const char* text) {
  lines* to = user;
  ++to->count;
  to->level = level;
  strncpy(to->last, text, sizeof to->last - 1);
  if (to->released != NULL) {
    horus_cluster* cluster = to->released;
    to->released = NULL;
    CHECK_OK(horus_cluster_release(cluster, 1, &error));
  }
  if (to->unmetered != NULL) {
    CHECK_OK(horus_placer_set_metrics(to->unmetered, NULL, &error));
    to->unmetered = NULL;
  }
}

static uint64_t tick(void* user) { return *(uint64_t*)user += 3000; } /* each call takes 3 us */

static horus_metrics* metrics_of(int32_t level, lines* to, uint64_t* now) {
  horus_metrics_options options = HORUS_METRICS_OPTIONS_INIT;
  horus_metrics* metrics = NULL;
  options.log_level = level;
  options.log = to == NULL ? NULL : keep_line;
  options.log_user = to;
  options.clock = now == NULL ? NULL : tick;
  options.clock_user = now;
  CHECK_OK(horus_metrics_create(&options, &metrics, &error));
  return metrics;
}

static void CallsDecisionsAndConflictsAreCounted(void) {
  uint64_t now = 0;
  horus_metrics* metrics = metrics_of(0, NULL, &now);
  horus_cluster* cluster = cluster_of(1);
  horus_placer* placer = placer_of("first-fit");
  horus_plan *first, *second, *refused;
  given_job one, two, large;
  give_job(&one, 1, 20, 1000);
  give_job(&two, 2, 20, 1000);
  give_job(&large, 3, 20, 1000000);
  CHECK_OK(horus_cluster_set_metrics(cluster, metrics, &error));
  CHECK_OK(horus_placer_set_metrics(placer, metrics, &error));
  first = plan_one(placer, cluster, &one);
  second = plan_one(placer, cluster, &two);
  refused = plan_one(placer, cluster, &large);
  CHECK_OK(horus_cluster_apply(cluster, first, &error));
  CHECK_STATUS(HORUS_ERR_CONFLICT, horus_cluster_apply(cluster, second, &error));
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_cluster_release(cluster, 9, &error));
  CHECK(value_of(metrics, "horus_calls_total", "call=\"plan\",status=\"OK\"") == 3);
  CHECK(value_of(metrics, "horus_calls_total", "call=\"apply\",status=\"OK\"") == 1);
  CHECK(value_of(metrics, "horus_calls_total", "call=\"apply\",status=\"CONFLICT\"") == 1);
  CHECK(value_of(metrics, "horus_calls_total", "call=\"release\",status=\"NOT_FOUND\"") == 1);
  CHECK(value_of(metrics, "horus_calls_total", "call=\"release\",status=\"OK\"") == -1);
  CHECK(value_of(metrics, "horus_conflicts_total", "") == 1);
  CHECK(value_of(metrics, "horus_decisions_total", "verdict=\"place\"") == 2);
  CHECK(value_of(metrics, "horus_decisions_total", "verdict=\"reject\"") == 1);
  CHECK(value_of(metrics, "horus_refusals_total", "reason=\"gpu_memory\"") == 1);
  CHECK(value_of(metrics, "horus_cache_misses_total", "cache=\"judgements\"") > 0);
  CHECK(value_of(metrics, "horus_call_duration_seconds_count", "call=\"plan\"") == 3);
  CHECK(value_of(metrics, "horus_call_duration_seconds_sum", "call=\"plan\"") == 9e-6);
  CHECK(value_of(metrics, "horus_call_duration_seconds_bucket", "call=\"plan\",le=\"2e-06\"") == 0);
  CHECK(value_of(metrics, "horus_call_duration_seconds_bucket", "call=\"plan\",le=\"4e-06\"") == 3);
  CHECK(value_of(metrics, "horus_call_duration_seconds_bucket", "call=\"plan\",le=\"+Inf\"") == 3);
  {
    horus_cluster_info info = HORUS_CLUSTER_INFO_INIT;
    CHECK_OK(horus_cluster_get_info(cluster, &info, &error));
    CHECK(value_of(metrics, "horus_bytes_held", "handle=\"cluster\"") == (double)info.bytes_held);
  }
  CHECK(value_of(metrics, "horus_bytes_held", "handle=\"placer\"") == (double)horus_placer_bytes_held(placer));
  for (two.job.id = 1; two.job.id <= 50; ++two.job.id) { /* verdicts are remembered too */
    const uint64_t node = 1;
    int32_t verdict;
    two.demand.gpu_util_pct = (float)two.job.id;
    CHECK_OK(horus_placer_verdicts(placer, cluster, &two.job, 1, &node, &verdict, NULL, NULL, &error));
  }
  CHECK(value_of(metrics, "horus_bytes_held", "handle=\"placer\"") == (double)horus_placer_bytes_held(placer));
  horus_plan_free(first);
  horus_plan_free(second);
  horus_plan_free(refused);
  horus_placer_free(placer);
  CHECK(value_of(metrics, "horus_bytes_held", "handle=\"placer\"") == 0); /* gone with its handle */
  horus_cluster_free(cluster);
  horus_metrics_free(metrics);
}

static void TheLogTellsUpToItsLevelAndMayCallBack(void) {
  lines warnings = {0, 0, {0}, NULL, NULL}, all = {0, 0, {0}, NULL, NULL};
  horus_metrics *quiet = metrics_of(0, &warnings, NULL), *loud = metrics_of(HORUS_LOG_DEBUG, &all, NULL);
  horus_cluster* cluster = cluster_of(1);
  horus_placer* placer = placer_of("first-fit");
  horus_plan* plan;
  given_job one;
  give_job(&one, 1, 20, 1000);
  CHECK_OK(horus_placer_set_metrics(placer, loud, &error));
  CHECK_OK(horus_cluster_set_metrics(cluster, quiet, &error));
  plan = plan_one(placer, cluster, &one);
  CHECK(all.count == 2 && all.level == HORUS_LOG_DEBUG && strcmp(all.last, "plan: OK") == 0); /* and the decision */
  CHECK_OK(horus_cluster_apply(cluster, plan, &error));
  CHECK_STATUS(HORUS_ERR_EXISTS, horus_cluster_apply(cluster, plan, &error));
  CHECK(warnings.count == 1 && warnings.level == HORUS_LOG_WARNING);
  CHECK(strncmp(warnings.last, "apply: EXISTS: job 1", 20) == 0);
  /* Without an error struct of the caller's the message is told all the same. */
  CHECK(horus_cluster_apply(cluster, plan, NULL) == HORUS_ERR_EXISTS);
  CHECK(warnings.count == 2 && strncmp(warnings.last, "apply: EXISTS: job 1", 20) == 0);
  warnings.released = cluster;
  CHECK(horus_cluster_apply(cluster, plan, NULL) ==
        HORUS_ERR_EXISTS); /* the callback releases the job: no lock is held */
  CHECK_OK(horus_cluster_set_metrics(cluster, NULL, &error));
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_cluster_release(cluster, 1, &error));
  CHECK(warnings.count == 3); /* no metrics are set any more */
  horus_plan_free(plan);
  horus_metrics_free(loud);
  all.unmetered = placer; /* the last to hold the metrics lets go of it in the middle of its lines */
  horus_plan_free(plan_one(placer, cluster, &one));
  CHECK(all.count == 4 && strcmp(all.last, "plan: OK") == 0); /* that call is told to its end */
  horus_plan_free(plan_one(placer, cluster, &one));
  CHECK(all.count == 4);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
  horus_metrics_free(quiet);
}

static void TheTextIsWhatPrometheusReads(void) {
  horus_metrics* metrics = metrics_of(0, NULL, NULL);
  horus_cluster* cluster = cluster_of(1);
  size_t size = 0, again = 0;
  char* text;
  CHECK_OK(horus_cluster_set_metrics(cluster, metrics, &error));
  horus_metrics_free(NULL);
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_cluster_release(cluster, 1, &error));
  CHECK_OK(horus_metrics_text(metrics, 0, NULL, &size, &error));
  text = malloc(size);
  CHECK_OK(horus_metrics_text(metrics, size, text, &again, &error));
  CHECK(again == size && strlen(text) + 1 == size);
  CHECK(strstr(text, "# TYPE horus_calls_total counter\nhorus_calls_total{call=\"release\",status=\"NOT_FOUND\"} 1\n"));
  CHECK(strstr(text, "# TYPE horus_conflicts_total counter\nhorus_conflicts_total 0\n"));
  CHECK(strstr(text, "duration") == NULL); /* no clock, no times */
  free(text);
  horus_metrics_free(metrics); /* before the handle that they count */
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_cluster_release(cluster, 1, &error));
  horus_cluster_free(cluster);
}

static int32_t set_from_callback(void* user, double done) {
  horus_metrics* metrics = metrics_of(0, NULL, NULL);
  (void)done;
  CHECK_STATUS(HORUS_ERR_BUSY, horus_placer_set_metrics(*(horus_placer**)user, metrics, &error));
  horus_metrics_free(metrics);
  return 0;
}

static void WrongArgumentsAreRefused(void) {
  horus_metrics_options options = HORUS_METRICS_OPTIONS_INIT;
  horus_metric_columns columns = HORUS_METRIC_COLUMNS_INIT;
  horus_metrics* metrics = NULL;
  horus_cluster* cluster = cluster_of(1);
  horus_placer* placer = placer_of("first-fit");
  horus_plan* plan = NULL;
  const horus_job* jobs[1];
  given_job one;
  size_t count = 7;
  give_job(&one, 1, 20, 1000);
  jobs[0] = &one.job;
  options.log_level = HORUS_LOG_DEBUG + 1;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "log_level", horus_metrics_create(&options, &metrics, &error));
  options.log_level = -1;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "log_level: expected 0 (warnings) to 4, found -1",
                horus_metrics_create(&options, &metrics, &error));
  options.log_level = 0;
  options.struct_size = 4;
  CHECK_MESSAGE(HORUS_ERR_INVALID_STRUCT, "horus_metrics_options", horus_metrics_create(&options, &metrics, &error));
  CHECK(metrics == NULL);
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_metrics_create(NULL, NULL, &error));
  CHECK_OK(horus_metrics_create(NULL, &metrics, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_cluster_set_metrics(NULL, metrics, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_placer_set_metrics(NULL, metrics, &error));
  CHECK(horus_predictor_set_metrics(NULL, metrics, NULL) != HORUS_OK);
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_metrics_get(NULL, &columns, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_metrics_text(NULL, 0, NULL, &count, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_metrics_text(metrics, 100, NULL, &count, &error));
  columns.reserved = 1;
  CHECK_MESSAGE(HORUS_ERR_INVALID_STRUCT, "horus_metric_columns: reserved",
                horus_metrics_get(metrics, &columns, &count, &error));
  columns.reserved = 0;
  CHECK(count == 7);
  CHECK_OK(horus_metrics_get(metrics, &columns, &count, &error));
  CHECK(count == 4); /* conflicts, and the bytes of three kinds of handles */
  CHECK_OK(horus_placer_plan(placer, cluster, 1, jobs, 0, NULL, set_from_callback, &placer, &plan, &error));
  horus_plan_free(plan);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
  horus_metrics_free(metrics);
}

int main(void) {
  CallsDecisionsAndConflictsAreCounted();
  TheLogTellsUpToItsLevelAndMayCallBack();
  TheTextIsWhatPrometheusReads();
  WrongArgumentsAreRefused();
  return report();
}
