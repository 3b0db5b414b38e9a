/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded beside PyTorch on a CPU: logs each 64-byte aligned allocation (tensors, in c10) and each release. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

enum { kTensorAlignment = 64 };
static FILE* log_file;

void log_start(const char* path) { log_file = fopen(path, "w"); }

void log_stop(void) {
  if (log_file != NULL) fclose(log_file);
  log_file = NULL;
}

static void log_line(const char* kind, void* address, size_t size) {
  FILE* file = log_file;
  if (file == NULL) return;
  log_file = NULL; /* the library's own buffers are not logged */
  fprintf(file, "%s %p %zu\n", kind, address, size);
  log_file = file;
}

int posix_memalign(void** address, size_t alignment, size_t size) {
  static int (*real)(void**, size_t, size_t);
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "posix_memalign");
  const int failed = real(address, alignment, size);
  if (!failed) log_line(alignment == kTensorAlignment ? "take" : "other", *address, size);
  return failed;
}

void free(void* address) {
  static void (*real)(void*);
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "free");
  if (address != NULL) log_line("give", address, 0);
  real(address);
}
