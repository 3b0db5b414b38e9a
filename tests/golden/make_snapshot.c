/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the snapshot of the golden cluster: make_snapshot FILE LEVEL. Not part of any build; README.md says when to
 * run it. */
#include "golden_cluster.h"

int main(int argc, char** argv) {
  static char bytes[65536];
  size_t size = 0;
  horus_cluster* cluster;
  FILE* file;
  if (argc != 3) return 2;
  cluster = golden_cluster(atoi(argv[2]));
  MUST(horus_cluster_snapshot(cluster, sizeof bytes, bytes, &size, &golden_error));
  horus_cluster_free(cluster);
  file = fopen(argv[1], "wb");
  if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) {
    perror(argv[1]);
    return 1;
  }
  return 0;
}
