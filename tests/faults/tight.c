/* SPDX-License-Identifier: Apache-2.0 */
/* A linear program in a process whose memory ends somewhere: at each limit it is solved, or refused with nothing lost.
 *
 * Each limit is tried in a child of its own (RLIMIT_AS), from none left to more than enough. Wants the setting
 * GLIBC_TUNABLES=glibc.malloc.tcache_count=0: what the C library keeps for later looks like lost. Exit status 77
 * without the solver. */
#include <malloc.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define PROFILES 60
#define PAIRS (PROFILES * (PROFILES + 1) / 2)
#define STEP_BYTES (256 << 10)
#define MOST_BYTES (8 << 20)
#define LOST 101 /* refused, and memory is not given back */

static double alone[PROFILES], work[PROFILES], a_speeds[PAIRS], b_speeds[PAIRS];
static uint32_t gpus[PAIRS], first[PAIRS], second[PAIRS];
static const double kGpus[1] = {100};

static horus_status solve(void) {
  horus_speeds speeds = HORUS_SPEEDS_INIT;
  uint32_t a, b, pair = 0;
  for (a = 0; a < PROFILES; ++a) {
    alone[a] = 10 + a;
    work[a] = 1 + a % 7;
    for (b = a; b < PROFILES; ++b, ++pair) {
      first[pair] = a;
      second[pair] = b;
      a_speeds[pair] = 0.5 + (a * 31 + b * 17) % 50 / 100.0;
      b_speeds[pair] = a == b ? a_speeds[pair] : 0.5 + (a * 13 + b * 41) % 50 / 100.0;
    }
  }
  speeds.gpu_count = 1;
  speeds.profile_count = PROFILES;
  speeds.alone = alone;
  speeds.pair_count = PAIRS;
  speeds.pair_gpus = gpus;
  speeds.pairs_a = first;
  speeds.pairs_b = second;
  speeds.speeds_a = a_speeds;
  speeds.speeds_b = b_speeds;
  return horus_potential_compute(&speeds, work, kGpus, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
}

static size_t bytes_used(void) {
  unsigned long pages = 0;
  FILE* const file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%lu", &pages) != 1) abort();
  fclose(file);
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* The status of the call in a child that has so many bytes more than it uses; -1 when it died. */
static int solve_within(size_t bytes) {
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    struct rlimit limit;
    size_t held;
    limit.rlim_cur = limit.rlim_max = bytes_used() + bytes;
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(100);
    malloc_trim(0);
    held = mallinfo2().uordblks;
    status = (int)solve();
    malloc_trim(0);
    _exit(status == HORUS_ERR_NO_MEMORY && mallinfo2().uordblks > held ? LOST : status);
  }
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

int main(void) {
  size_t bytes, solved = 0, refused = 0;
  const horus_status here = solve(); /* loads the solver */
  if (here == HORUS_ERR_IO) {
    puts("SKIPPED: built without the solver of linear programs");
    return 77;
  }
  CHECK(here == HORUS_OK);
  malloc_trim(0);
  for (bytes = 0; bytes <= MOST_BYTES; bytes += STEP_BYTES) {
    const int status = solve_within(bytes);
    if (status == HORUS_OK) ++solved;
    if (status == HORUS_ERR_NO_MEMORY) ++refused;
    if (status != HORUS_OK && status != HORUS_ERR_NO_MEMORY) {
      fprintf(stderr, "with %lu KiB left: %d\n", (unsigned long)(bytes >> 10), status);
      ++failures;
    }
  }
  printf("%lu limits at which it is solved, %lu at which it is refused\n", (unsigned long)solved,
         (unsigned long)refused);
  CHECK(solved > 0 && refused > 0);
  return report();
}
