/* SPDX-License-Identifier: Apache-2.0 */
/* horus_job: what a job may state beyond its demand, and that the placer keeps it. */
#include <math.h>

#include "fixture.h"

static horus_placer* placer_with(const horus_placer_options* given) {
  horus_placer_options options = *given;
  horus_interference* model = NULL;
  horus_placer* placer = NULL;
  CHECK_OK(horus_interference_create("utilisation", &model, &error));
  options.interference = model;
  CHECK_OK(horus_placer_create(&options, &placer, &error));
  horus_interference_free(model);
  return placer;
}

/* Plans and applies; the decision's text goes with the plan. */
static horus_decision place(horus_placer* placer, horus_cluster* cluster, const given_job* given) {
  horus_plan* plan = plan_one(placer, cluster, given);
  const horus_decision decision = decision_of(plan, 0);
  CHECK_OK(horus_cluster_apply(cluster, plan, &error));
  horus_plan_free(plan);
  return decision;
}

static void LimitsAreLentTwiceOnlyByOverCommit(void) {
  horus_cluster* cluster = cluster_of(1);
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_device_info info = HORUS_DEVICE_INFO_INIT;
  horus_placer *strict, *lending;
  given_job given;
  CHECK_OK(horus_cluster_set_device_state(cluster, 1, 1, HORUS_STATE_DRAINED, 0, NULL, NULL, &error));
  strict = placer_with(&options);
  options.mem_overcommit = 1.5;
  lending = placer_with(&options);
  give_job(&given, 1, 10, 2000);
  given.job.gpu_mem_request_mib = 1000;
  given.job.gpu_mem_limit_mib = 12000;
  CHECK(place(strict, cluster, &given).verdict == HORUS_VERDICT_PLACE);
  CHECK_OK(horus_cluster_get_device(cluster, 1, 0, &info, 0, NULL, NULL, &error));
  CHECK(info.mem_reserved_mib == 1000 && info.mem_limit_mib == 12000);
  given.job.id = 2;
  CHECK(place(strict, cluster, &given).miss_reason == HORUS_REASON_GPU_MEMORY);
  CHECK(place(lending, cluster, &given).verdict == HORUS_VERDICT_PLACE);
  given.job.id = 3;
  given.job.gpu_mem_limit_mib = 999;
  {
    const horus_job* jobs[1];
    horus_plan* plan = NULL;
    jobs[0] = &given.job;
    CHECK_MESSAGE(HORUS_INVALID_ARGUMENT, "gpu_mem_limit_mib",
                  horus_placer_plan(strict, cluster, 1, jobs, 0, NULL, NULL, NULL, &plan, &error));
  }
  options.mem_overcommit = 0.5;
  {
    horus_placer* none = NULL;
    CHECK_MESSAGE(HORUS_INVALID_ARGUMENT, "mem_overcommit", horus_placer_create(&options, &none, &error));
  }
  horus_placer_free(strict);
  horus_placer_free(lending);
  horus_cluster_free(cluster);
}

static void TenantsAndGroupsKeepApart(void) {
  static const char* const web[1] = {"web"};
  horus_cluster* cluster = cluster_of(2);
  horus_placer* placer = placer_of("first-fit");
  const horus_job* jobs[1];
  horus_plan* plan = NULL;
  given_job given;
  CHECK_OK(horus_cluster_set_device_state(cluster, 1, 1, HORUS_STATE_DRAINED, 0, NULL, NULL, &error));
  CHECK_OK(horus_cluster_set_device_state(cluster, 2, 1, HORUS_STATE_DRAINED, 0, NULL, NULL, &error));
  give_job(&given, 1, 10, 2000);
  given.job.tenant = "a";
  given.job.share = HORUS_SHARE_SAME_TENANT;
  CHECK(place(placer, cluster, &given).verdict == HORUS_VERDICT_PLACE); /* node 1 */
  give_job(&given, 2, 10, 2000);
  given.job.group_count = 1;
  given.job.groups = web;
  CHECK(place(placer, cluster, &given).verdict == HORUS_VERDICT_PLACE); /* node 2 */
  give_job(&given, 3, 10, 2000);
  given.job.tenant = "b";
  given.job.avoid_count = 1;
  given.job.avoid_groups = web;
  CHECK(place(placer, cluster, &given).miss_reason == HORUS_REASON_OWNER);
  CHECK_OK(horus_cluster_set_node_state(cluster, 1, HORUS_STATE_DOWN, 0, NULL, NULL, &error));
  CHECK(place(placer, cluster, &given).miss_reason == HORUS_REASON_ANTI_AFFINITY);
  given.job.avoid_count = 0;
  given.job.tasks = 2;
  given.job.spread_tasks = 1;
  CHECK(place(placer, cluster, &given).reason == HORUS_REASON_GANG);
  jobs[0] = &given.job;
#define REFUSED(text)                         \
  CHECK_MESSAGE(HORUS_INVALID_ARGUMENT, text, \
                horus_placer_plan(placer, cluster, 1, jobs, 0, NULL, NULL, NULL, &plan, &error))
  given.job.share = 2;
  REFUSED("share");
  given.job.share = HORUS_SHARE_SAME_TENANT;
  given.job.tenant = NULL;
  REFUSED("tenant");
  given.job.share = 0;
  given.job.spread_tasks = 2;
  REFUSED("spread_tasks");
  given.job.spread_tasks = 0;
  given.job.group_count = 1;
  REFUSED("groups");
#undef REFUSED
  horus_placer_free(placer);
  horus_cluster_free(cluster);
}

int main(void) {
  LimitsAreLentTwiceOnlyByOverCommit();
  TenantsAndGroupsKeepApart();
  return report();
}
