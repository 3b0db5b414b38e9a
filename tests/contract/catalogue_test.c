/* SPDX-License-Identifier: Apache-2.0 */
/* horus/demand.h, the catalogue: reading it, extending it, refusing bad types. */
#include "fixture.h"

static void EveryTypeCanBeReadAndFound(const horus_catalogue* catalogue) {
  size_t index, found;
  CHECK(horus_catalogue_count(catalogue) >= 25);
  CHECK(horus_catalogue_count(NULL) == 0);
  for (index = 0; index < horus_catalogue_count(catalogue); ++index) {
    horus_gpu gpu = HORUS_GPU_INIT;
    found = 999999;
    CHECK_OK(horus_catalogue_get(catalogue, index, &gpu, &error));
    CHECK(gpu.struct_size == sizeof gpu);
    CHECK(gpu.name != NULL && gpu.name[0] != '\0' && gpu.source[0] != '\0');
    CHECK(gpu.sm_count > 0 && gpu.fp32_gflops > 0 && gpu.mem_mib > 0 && gpu.context_mib > 0);
    CHECK_OK(horus_catalogue_find(catalogue, gpu.name, &found, &error));
    CHECK(found == index);
  }
}

static void MigProfilesCanBeRead(const horus_catalogue* catalogue) {
  horus_gpu gpu = HORUS_GPU_INIT;
  size_t index = 0, profile;
  CHECK_OK(horus_catalogue_find(catalogue, "A100-40GB", &index, &error));
  CHECK_OK(horus_catalogue_get(catalogue, index, &gpu, &error));
  CHECK(gpu.mig_count >= 5);
  for (profile = 0; profile < gpu.mig_count; ++profile) {
    const horus_mig_profile* mig = gpu.mig_profiles[profile];
    CHECK(mig->struct_size == sizeof *mig && mig->name != NULL && mig->mem_mib > 0 && mig->max_instances > 0);
  }
}

static void BadArgumentsLeaveOutputsAlone(const horus_catalogue* catalogue) {
  horus_gpu gpu = HORUS_GPU_INIT, before = HORUS_GPU_INIT;
  size_t index = 7;
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_catalogue_get(catalogue, horus_catalogue_count(catalogue), &gpu, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_catalogue_get(NULL, 0, &gpu, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_catalogue_get(catalogue, 0, NULL, &error));
  CHECK(memcmp(&gpu, &before, sizeof gpu) == 0);
  CHECK_MESSAGE(HORUS_ERR_NOT_FOUND, "a100-40gb", horus_catalogue_find(catalogue, "a100-41gb", &index, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_catalogue_find(catalogue, NULL, &index, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_catalogue_find(NULL, "a100-40gb", &index, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_catalogue_find(catalogue, "a100-40gb", NULL, &error));
  CHECK(horus_catalogue_find(catalogue, "no such gpu", &index, NULL) == HORUS_ERR_NOT_FOUND);
  CHECK(index == 7);
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_catalogue_default(NULL, &error));
}

static void ExtendAppendsACopy(const horus_catalogue* base) {
  const char* const aliases[] = {"my card"};
  horus_mig_profile mig = HORUS_MIG_PROFILE_INIT;
  const horus_mig_profile* profiles[1];
  horus_gpu gpu = complete_gpu(), read = HORUS_GPU_INIT;
  const horus_gpu* gpus[1];
  horus_catalogue* extended = NULL;
  size_t index = 0;
  mig.name = "1g.5gb";
  mig.compute_slices = 1;
  mig.memory_slices = 1;
  mig.mem_mib = 4864;
  mig.max_instances = 7;
  profiles[0] = &mig;
  gpu.mig_count = 1;
  gpu.mig_profiles = profiles;
  gpu.alias_count = 1;
  gpu.aliases = aliases;
  gpus[0] = &gpu;
  CHECK_OK(horus_catalogue_extend(base, 1, gpus, &extended, &error));
  CHECK(horus_catalogue_count(extended) == horus_catalogue_count(base) + 1);
  CHECK_OK(horus_catalogue_find(extended, "My_Card", &index, &error));
  CHECK(index == horus_catalogue_count(base));
  CHECK_OK(horus_catalogue_get(extended, index, &read, &error));
  CHECK(strcmp(read.name, "test-gpu") == 0 && read.mig_count == 1 && read.context_mib > 0);
  CHECK(strcmp(read.mig_profiles[0]->name, mig.name) == 0 && read.mig_profiles[0]->mem_mib == mig.mem_mib);
  horus_catalogue_free(extended);

  extended = NULL; /* the built-in catalogue is the default base */
  CHECK_OK(horus_catalogue_extend(NULL, 1, gpus, &extended, &error));
  CHECK(horus_catalogue_count(extended) == horus_catalogue_count(base) + 1);
  horus_catalogue_free(extended);
}

static void ExtendRefusesBadTypes(const horus_catalogue* base) {
  horus_gpu gpu = complete_gpu();
  const horus_gpu* gpus[2];
  horus_catalogue* out = NULL;
  gpus[0] = &gpu;
  gpus[1] = NULL;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_catalogue_extend(base, 1, NULL, &out, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_catalogue_extend(base, 1, gpus, NULL, &error));
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "gpus[1]", horus_catalogue_extend(base, 2, gpus, &out, &error));
  CHECK_STATUS(HORUS_ERR_LIMIT, horus_catalogue_extend(base, (size_t)-1, gpus, &out, &error));
  gpu.sm_count = -4;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "sm_count", horus_catalogue_extend(base, 1, gpus, &out, &error));
  gpu = complete_gpu();
  gpu.name = NULL;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "name", horus_catalogue_extend(base, 1, gpus, &out, &error));
  gpu = complete_gpu();
  gpu.name = "a100-40gb";
  CHECK_MESSAGE(HORUS_ERR_EXISTS, "a100-40gb", horus_catalogue_extend(base, 1, gpus, &out, &error));
  gpu = complete_gpu();
  gpu.display_name = "\xff\xfe";
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "UTF-8", horus_catalogue_extend(base, 1, gpus, &out, &error));
  gpu = complete_gpu();
  gpu.mig_count = 1;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "mig_profiles", horus_catalogue_extend(base, 1, gpus, &out, &error));
  CHECK(out == NULL);
}

int main(void) {
  horus_catalogue* catalogue = NULL;
  CHECK_OK(horus_catalogue_default(&catalogue, &error));
  EveryTypeCanBeReadAndFound(catalogue);
  MigProfilesCanBeRead(catalogue);
  BadArgumentsLeaveOutputsAlone(catalogue);
  ExtendAppendsACopy(catalogue);
  ExtendRefusesBadTypes(catalogue);
  horus_catalogue_free(catalogue);
  horus_catalogue_free(NULL);
  return report();
}
