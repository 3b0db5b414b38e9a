/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the libraries named on the command line in that order, all symbols global, then lets libhorus work. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  int (*work)(void) = NULL;
  int i;
  if (argc < 3) {
    fprintf(stderr, "SKIPPED: libonnx or libxgboost is not installed (apt: libonnx-dev libxgboost-dev)\n");
    return 77;
  }
  for (i = 1; i < argc; ++i) {
    void* library = dlopen(argv[i], RTLD_NOW | RTLD_GLOBAL);
    void* symbol;
    if (library == NULL) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    symbol = dlsym(library, "coexist_work");
    if (symbol != NULL) memcpy(&work, &symbol, sizeof work);
  }
  if (work == NULL) {
    fprintf(stderr, "none of the libraries has coexist_work\n");
    return 1;
  }
  return work();
}
