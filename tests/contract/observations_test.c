/* SPDX-License-Identifier: Apache-2.0 */
/* Contract of horus/learn.h: observations, which every build has. */
#include <stdlib.h>

#include "check.h"

static horus_demand_observation Observation(void) {
  horus_demand_observation observation = HORUS_DEMAND_OBSERVATION_INIT;
  observation.profile_id = 7;
  observation.gpu_type = "V100-SXM2-16GB";
  observation.measured = HORUS_OBSERVED_MEMORY | HORUS_OBSERVED_STEP_TIME;
  observation.mem_mib = 9000;
  observation.step_time_us = 12345;
  return observation;
}

static void WrongObservationsAreRefusedAndLeaveNothing(horus_observations* observations) {
  const uint64_t before = horus_observations_bytes_held(observations);
  horus_demand_observation observation = Observation();
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_observations_add_demand(NULL, NULL, &observation, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_observations_add_demand(observations, NULL, NULL, &error));
  observation.struct_size = 8;
  CHECK_STATUS(HORUS_ERR_INVALID_STRUCT, horus_observations_add_demand(observations, NULL, &observation, &error));
  observation = Observation();
  observation.gpu_type = "abacus";
  CHECK_STATUS(HORUS_ERR_NOT_FOUND, horus_observations_add_demand(observations, NULL, &observation, &error));
  observation = Observation();
  observation.profile_id = 0;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "profile_id",
                horus_observations_add_demand(observations, NULL, &observation, &error));
  observation = Observation();
  observation.measured = 16;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "measured",
                horus_observations_add_demand(observations, NULL, &observation, &error));
  observation.measured = 0;
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_observations_add_demand(observations, NULL, &observation, &error));
  observation = Observation();
  observation.mem_mib = -1;
  CHECK_MESSAGE(HORUS_ERR_INVALID_ARGUMENT, "mem_mib",
                horus_observations_add_demand(observations, NULL, &observation, &error));
  CHECK(horus_observations_bytes_held(observations) == before);
}

static void ASnapshotIsRestoredAndADamagedOneRefused(const horus_observations* observations) {
  size_t size = 0, again = 0, i;
  unsigned char* bytes;
  unsigned char* second;
  horus_observations* restored = NULL;
  CHECK_OK(horus_observations_snapshot(observations, 0, NULL, &size, &error));
  CHECK(size > 0);
  bytes = malloc(size + 1);
  second = malloc(size);
  CHECK_OK(horus_observations_snapshot(observations, size, bytes, &size, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_observations_snapshot(observations, size, bytes, NULL, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_observations_snapshot(NULL, size, bytes, &again, &error));
  CHECK_OK(horus_observations_restore(bytes, size, &restored, &error));
  CHECK_OK(horus_observations_snapshot(restored, size, second, &again, &error));
  CHECK(again == size && memcmp(bytes, second, size) == 0);
  horus_observations_free(restored);
  restored = NULL;
  for (i = 0; i < size; ++i) {
    bytes[i] ^= 1;
    CHECK(horus_observations_restore(bytes, size, &restored, NULL) != HORUS_OK && restored == NULL);
    bytes[i] ^= 1;
  }
  CHECK_STATUS(HORUS_ERR_CORRUPT, horus_observations_restore(bytes, size - 1, &restored, &error));
  CHECK_STATUS(HORUS_ERR_CORRUPT, horus_observations_restore(bytes, size + 1, &restored, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_observations_restore(NULL, size, &restored, &error));
  CHECK(restored == NULL);
  free(bytes);
  free(second);
}

/* The first snapshots were what is now the first part alone, after its size. */
static void AnOldSnapshotIsRestoredAndADamagedOneRefused(const horus_observations* observations) {
  unsigned char bytes[4096];
  horus_observations* restored = NULL;
  size_t size = 0, first = 0, i;
  CHECK_OK(horus_observations_snapshot(observations, sizeof bytes, bytes, &size, &error));
  for (i = 0; i < 8; ++i) first |= (size_t)bytes[i] << (8 * i);
  CHECK(first > 8 && first + 8 < size && memcmp(bytes + 8, "HORUSOBS", 8) == 0);
  CHECK_OK(horus_observations_restore(bytes + 8, first, &restored, &error));
  CHECK(horus_observations_bytes_held(restored) == horus_observations_bytes_held(observations));
  horus_observations_free(restored);
  restored = NULL;
  for (i = 8; i < first; ++i) {
    bytes[8 + i] ^= 1;
    CHECK(horus_observations_restore(bytes + 8, first, &restored, NULL) != HORUS_OK && restored == NULL);
    bytes[8 + i] ^= 1;
  }
  CHECK_STATUS(HORUS_ERR_CORRUPT, horus_observations_restore(bytes + 8, first - 1, &restored, &error));
  CHECK(restored == NULL);
}

int main(void) {
  horus_observations* observations = NULL;
  const horus_demand_observation observation = Observation();
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_observations_create(0, NULL, &error));
  CHECK_STATUS(HORUS_ERR_INVALID_ARGUMENT, horus_observations_create((1u << 20) + 1, &observations, &error));
  CHECK_OK(horus_observations_create(1u << 20, &observations, &error));
  horus_observations_free(observations);
  CHECK_OK(horus_observations_create(0, &observations, &error));
  CHECK(horus_observations_bytes_held(observations) > 0 && horus_observations_bytes_held(NULL) == 0);
  WrongObservationsAreRefusedAndLeaveNothing(observations);
  CHECK_OK(horus_observations_add_demand(observations, NULL, &observation, &error));
  ASnapshotIsRestoredAndADamagedOneRefused(observations);
  AnOldSnapshotIsRestoredAndADamagedOneRefused(observations);
  horus_observations_free(observations);
  horus_observations_free(NULL);
  return report();
}
