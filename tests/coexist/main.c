/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the libraries named on the command line in that order and lets libhorus work, at once and after the last.
 *
 * Usage: coexist --global|--local LIBRARY... ; with --local the symbols of one library are not seen by the others. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  int (*work)(void) = NULL;
  int flags, i;
  if (argc < 2 || (strcmp(argv[1], "--global") != 0 && strcmp(argv[1], "--local") != 0)) {
    fprintf(stderr, "usage: coexist --global|--local LIBRARY...\n");
    return 2;
  }
  flags = RTLD_NOW | (strcmp(argv[1], "--global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL);
  if (argc < 4) {
    fprintf(stderr, "SKIPPED: libonnx or libxgboost is not installed (apt: libonnx-dev libxgboost-dev)\n");
    return 77;
  }
  for (i = 2; i < argc; ++i) {
    void* library = dlopen(argv[i], flags);
    void* symbol;
    if (library == NULL) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    symbol = dlsym(library, "coexist_work");
    if (symbol == NULL) continue;
    memcpy(&work, &symbol, sizeof work);
    if (work() != 0) return 1;
  }
  if (work == NULL) {
    fprintf(stderr, "none of the libraries has coexist_work\n");
    return 1;
  }
  return work();
}
