/* SPDX-License-Identifier: Apache-2.0 */
/* horus/interference.h: the built-in model, callback models and their answers out of range. */
#include <math.h>

#include "fixture.h"

typedef struct script {
  int32_t result;
  float slowdown, upper; /* what every tenant gets */
  int fill_upper;
  int calls;
  char gpu_type[64];
  int32_t sharing_mode;
} script;

static int32_t scripted(void* user, const horus_device* device, size_t count, const horus_demand* const* demands,
                        float* slowdown, float* slowdown_upper) {
  script* plan = user;
  size_t i;
  ++plan->calls;
  snprintf(plan->gpu_type, sizeof plan->gpu_type, "%s", device->gpu_type);
  plan->sharing_mode = device->sharing_mode;
  for (i = 0; i < count; ++i) {
    CHECK(demands[i]->struct_size == sizeof(horus_demand));
    CHECK(isnan(slowdown[i]) && isnan(slowdown_upper[i]));
    slowdown[i] = plan->slowdown;
    if (plan->fill_upper) slowdown_upper[i] = plan->upper;
  }
  return plan->result;
}

static void demands_of(float util, horus_demand* first, horus_demand* second, const horus_demand** demands) {
  const horus_demand none = HORUS_DEMAND_INIT;
  *first = none;
  *second = none;
  first->gpu_util_pct = util;
  second->gpu_util_pct = util;
  demands[0] = first;
  demands[1] = second;
}

static void BuiltInModelSlowsOvercommittedDevices(void) {
  horus_interference* model = NULL;
  horus_demand first, second;
  const horus_demand* demands[2];
  float slowdown[2] = {0, 0}, upper[2] = {0, 0};
  CHECK_OK(horus_interference_create("utilisation", &model, &error));
  demands_of(90, &first, &second, demands);
  CHECK_OK(
      slowdowns_of(model, NULL, device_of(FIXTURE_GPU, HORUS_SHARING_TIME_SLICE), 2, demands, slowdown, upper, &error));
  CHECK(slowdown[0] > 1 && slowdown[1] > 1 && upper[0] >= slowdown[0] && upper[1] >= slowdown[1]);
  demands_of(20, &first, &second, demands);
  CHECK_OK(slowdowns_of(model, NULL, device_of(FIXTURE_GPU, HORUS_SHARING_MPS), 2, demands, slowdown, NULL, &error));
  CHECK(slowdown[0] == 1 && slowdown[1] == 1);
  CHECK_OK(slowdowns_of(model, NULL, device_of(FIXTURE_GPU, HORUS_SHARING_MPS), 0, NULL, NULL, NULL, &error));
  horus_interference_free(model);
}

static void TenantsOfASliceSlowMore(void) {
  horus_interference* model = NULL;
  horus_demand first, second;
  const horus_demand* demands[2];
  horus_device slice = *device_of(FIXTURE_GPU, HORUS_SHARING_MIG);
  float slowdown[2] = {0, 0};
  CHECK_OK(horus_interference_create("utilisation", &model, &error));
  demands_of(40, &first, &second, demands);
  slice.compute_share = 0.5;
  CHECK_OK(slowdowns_of(model, NULL, &slice, 2, demands, slowdown, NULL, &error));
  CHECK(fabs(slowdown[0] - 1.6) < 1e-6 && fabs(slowdown[1] - 1.6) < 1e-6);
  horus_interference_free(model);
}

static void BadArgumentsLeaveOutputsAlone(void) {
  horus_interference* model = NULL;
  horus_interference* none = NULL;
  horus_demand first, second;
  const horus_demand* demands[2];
  float slowdown[2] = {7, 7}, upper[2] = {7, 7};
  demands_of(50, &first, &second, demands);
  CHECK_MESSAGE(HORUS_ERR_NOT_FOUND, "utilisation", horus_interference_create("oracle", &none, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_interference_create("utilisation", NULL, &error));
  CHECK_OK(horus_interference_create(NULL, &model, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, slowdowns_of(NULL, NULL, device_of(FIXTURE_GPU, HORUS_SHARING_MPS), 2,
                                                        demands, slowdown, upper, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               slowdowns_of(model, NULL, device_of(NULL, HORUS_SHARING_MPS), 2, demands, slowdown, upper, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               slowdowns_of(model, NULL, device_of(FIXTURE_GPU, HORUS_SHARING_MPS), 2, NULL, slowdown, upper, &error));
  CHECK_STATUS(
      HORUS_ERR_INVALID_ARGUMENT,
      horus_interference_slowdown(model, NULL, device_of(FIXTURE_GPU, HORUS_SHARING_MPS), 2, demands, 0, NULL, &error));
  CHECK_STATUS(HORUS_ERR_NOT_FOUND,
               slowdowns_of(model, NULL, device_of("abacus", HORUS_SHARING_MPS), 2, demands, slowdown, upper, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               slowdowns_of(model, NULL, device_of(FIXTURE_GPU, -1), 2, demands, slowdown, upper, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, slowdowns_of(model, NULL, NULL, 2, demands, slowdown, upper, &error));
  {
    horus_device device = *device_of(FIXTURE_GPU, HORUS_SHARING_MIG);
    device.compute_share = 1.5;
    CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "compute_share",
                  slowdowns_of(model, NULL, &device, 2, demands, slowdown, upper, &error));
  }
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT,
               slowdowns_of(model, NULL, device_of(FIXTURE_GPU, 5), 2, demands, slowdown, upper, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, slowdowns_of(model, NULL, device_of(FIXTURE_GPU, HORUS_SHARING_MPS),
                                                        (size_t)-1, demands, slowdown, upper, &error));
  second.gpu_util_pct = NAN;
  CHECK_MESSAGE(
      HORUS_ERR_INVALID_ARGUMENT, "demands[1]",
      slowdowns_of(model, NULL, device_of(FIXTURE_GPU, HORUS_SHARING_MPS), 2, demands, slowdown, upper, &error));
  second.gpu_util_pct = 50;
  second.gpu_util_pct_upper = 40; /* below the estimate */
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, slowdowns_of(model, NULL, device_of(FIXTURE_GPU, HORUS_SHARING_MPS), 2,
                                                        demands, slowdown, upper, &error));
  second.gpu_util_pct_upper = 0;
  second.flags = 0x80000000u;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, slowdowns_of(model, NULL, device_of(FIXTURE_GPU, HORUS_SHARING_MPS), 2,
                                                        demands, slowdown, upper, &error));
  CHECK(slowdown[0] == 7 && slowdown[1] == 7 && upper[0] == 7 && upper[1] == 7 && none == NULL);
  horus_interference_free(model);
  horus_interference_free(NULL);
}

static horus_status ask(script* user, float* slowdown, float* upper, horus_error* error) {
  horus_interference* model = NULL;
  horus_demand first, second;
  const horus_demand* demands[2];
  horus_status status;
  demands_of(50, &first, &second, demands);
  CHECK(horus_interference_from_callback(NULL, scripted, user, 1, 0, &model, NULL) == HORUS_OK);
  status = slowdowns_of(model, NULL, device_of("V100-PCIe", HORUS_SHARING_MPS), 2, demands, slowdown, upper, error);
  horus_interference_free(model);
  return status;
}

static void CallbackAnswersAreChecked(void) {
  const script good = {0, 1.5f, 2.0f, 1, 0, "", 0};
  script user = good;
  float slowdown[2] = {7, 7}, upper[2] = {7, 7};
  user.result = 3;
  CHECK_MESSAGE(HORUS_ERR_CALLBACK, "3", ask(&user, slowdown, upper, &error));
  user = good;
  user.slowdown = NAN;
  CHECK_STATUS(HORUS_ERR_CALLBACK, ask(&user, slowdown, upper, &error));
  user.slowdown = 0.5f;
  CHECK_STATUS(HORUS_ERR_CALLBACK, ask(&user, slowdown, upper, &error));
  user.slowdown = INFINITY;
  CHECK_STATUS(HORUS_ERR_CALLBACK, ask(&user, slowdown, upper, &error));
  user = good;
  user.upper = 1.2f;
  CHECK_MESSAGE(HORUS_ERR_CALLBACK, "slowdown_upper", ask(&user, slowdown, upper, &error));
  CHECK(slowdown[0] == 7 && upper[1] == 7);

  user = good;
  CHECK_OK(ask(&user, slowdown, upper, &error));
  CHECK(slowdown[1] == 1.5f && upper[1] == 2.0f && user.calls == 1);
  CHECK(strcmp(user.gpu_type, FIXTURE_GPU) == 0 && user.sharing_mode == HORUS_SHARING_MPS);
  user.fill_upper = 0; /* an upper bound that is left alone is the slowdown */
  CHECK_OK(ask(&user, slowdown, upper, &error));
  CHECK(upper[0] == 1.5f);
}

/* ln(slowdown - 0.9) is normal: 0.5 gives the estimate, 0.9 the upper bound, and margins are as the deviations. */
static void SlowdownsAreAskedForWithAProbability(void) {
  horus_interference* model = NULL;
  horus_demand first, second;
  const horus_demand* demands[2];
  horus_slowdowns columns = HORUS_SLOWDOWNS_INIT;
  float slowdown[2], upper[2], at[2];
  uint8_t calibrated[2] = {7, 7};
  demands_of(50, &first, &second, demands);
  CHECK_OK(horus_interference_create("horus", &model, &error));
  columns.slowdown_upper = at;
  columns.calibrated = calibrated;
#define AT(p)                                                                                                         \
  horus_interference_slowdown(model, NULL, device_of(FIXTURE_GPU, HORUS_SHARING_TIME_SLICE), 2, demands, p, &columns, \
                              &error)
  CHECK_OK(
      slowdowns_of(model, NULL, device_of(FIXTURE_GPU, HORUS_SHARING_TIME_SLICE), 2, demands, slowdown, upper, &error));
  CHECK_OK(AT(0.5));
  CHECK(fabsf(at[0] - slowdown[0]) < 1e-5f && fabsf(at[1] - slowdown[1]) < 1e-5f);
  CHECK_OK(AT(0.9));
  CHECK(at[0] == upper[0] && at[1] == upper[1]);
  CHECK_OK(AT(0.999));
  CHECK(at[0] > upper[0] && calibrated[0] == 0 && calibrated[1] == 0);
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "probability", AT(0.4));
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "probability", AT(1));
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "probability", AT(NAN));
  horus_interference_free(model);
#undef AT
}

/* A callback model knows one probability, 0.9 unless it says so, and is asked for no other; not by jobs either. */
static void CallbackModelsKnowOneProbability(void) {
  script user = {0, 1.5f, 2.0f, 1, 0, "", 0};
  horus_interference* model = NULL;
  horus_placer_options options = HORUS_PLACER_OPTIONS_INIT;
  horus_placer* placer = NULL;
  horus_cluster* cluster = cluster_of(1);
  horus_plan* plan = NULL;
  horus_demand first, second;
  const horus_demand* demands[2];
  const horus_job* jobs[1];
  horus_slowdowns columns = HORUS_SLOWDOWNS_INIT;
  float at[2];
  given_job given;
  demands_of(50, &first, &second, demands);
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "upper_probability",
                horus_interference_from_callback(NULL, scripted, &user, 1, 2, &model, &error));
  CHECK_OK(horus_interference_from_callback(NULL, scripted, &user, 1, 0.95, &model, &error));
  columns.slowdown_upper = at;
#define ASK(p) \
  horus_interference_slowdown(model, NULL, device_of(FIXTURE_GPU, HORUS_SHARING_MPS), 2, demands, p, &columns, &error)
  CHECK_OK(ASK(0.95));
  CHECK(at[0] == 2.0f);
  CHECK_MESSAGE(HORUS_ERR_UNSUPPORTED, "0.95", ASK(0.9));
  options.interference = model;
  CHECK_OK(horus_placer_create(&options, &placer, &error));
  give_job(&given, 1, 10, 2000);
  jobs[0] = &given.job;
  given.job.slowdown_confidence = 0.9f;
  CHECK_MESSAGE(HORUS_ERR_UNSUPPORTED, "slowdown_confidence",
                horus_placer_plan(placer, cluster, 1, jobs, 0, NULL, NULL, NULL, &plan, &error));
  given.job.slowdown_confidence = 0.95f;
  CHECK_OK(horus_placer_plan(placer, cluster, 1, jobs, 0, NULL, NULL, NULL, &plan, &error));
  horus_plan_free(plan);
  horus_placer_free(placer);
  horus_cluster_free(cluster);
  horus_interference_free(model);
#undef ASK
}

static void CallbackModelsKeepToTheirCatalogue(void) {
  horus_interference* model = NULL;
  horus_catalogue* extended = NULL;
  horus_catalogue* base = NULL;
  horus_gpu gpu = HORUS_GPU_INIT;
  const horus_gpu* gpus[1];
  horus_demand first, second;
  const horus_demand* demands[2];
  float slowdown[2];
  script user = {0, 1, 1, 1, 0, "", 0};
  CHECK_OK(horus_catalogue_default(&base, &error));
  CHECK_OK(horus_catalogue_get(base, 0, &gpu, &error));
  gpu.name = "test-gpu";
  gpu.mig_count = 0;
  gpus[0] = &gpu;
  CHECK_OK(horus_catalogue_extend(base, 1, gpus, &extended, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_interference_from_callback(base, NULL, NULL, 1, 0, &model, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_interference_from_callback(base, scripted, NULL, 1, 0, NULL, &error));
  CHECK_OK(horus_interference_from_callback(base, scripted, &user, 1, 0, &model, &error));
  demands_of(50, &first, &second, demands);
  CHECK_MESSAGE(
      HORUS_ERR_INVALID_ARGUMENT, "catalogue",
      slowdowns_of(model, extended, device_of(FIXTURE_GPU, HORUS_SHARING_MPS), 2, demands, slowdown, NULL, &error));
  horus_catalogue_free(base);
  CHECK_OK(slowdowns_of(model, NULL, device_of(FIXTURE_GPU, HORUS_SHARING_MPS), 2, demands, slowdown, NULL, &error));
  horus_interference_free(model);
  horus_catalogue_free(extended);
}

int main(void) {
  BuiltInModelSlowsOvercommittedDevices();
  TenantsOfASliceSlowMore();
  BadArgumentsLeaveOutputsAlone();
  SlowdownsAreAskedForWithAProbability();
  CallbackAnswersAreChecked();
  CallbackModelsKnowOneProbability();
  CallbackModelsKeepToTheirCatalogue();
  return report();
}
