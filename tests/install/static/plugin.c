/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that holds libhorus: 0 when it is the one that the headers describe and a cluster can be made. */
#include <horus/horus.h>

int plugin_run(void) {
  horus_cluster* cluster = NULL;
  if (horus_abi_check(HORUS_ABI_NUMBER, NULL) != HORUS_OK) return 1;
  if (horus_cluster_create(NULL, &cluster, NULL) != HORUS_OK) return 1;
  horus_cluster_free(cluster);
  return 0;
}
