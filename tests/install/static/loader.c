/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the plugin, which is its argument, and runs it. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  int (*run)(void) = NULL;
  void* symbol = NULL;
  void* plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (plugin != NULL) symbol = dlsym(plugin, "plugin_run");
  if (symbol == NULL) {
    fprintf(stderr, "%s\n", argc > 1 ? dlerror() : "usage: loader PLUGIN");
    return 1;
  }
  memcpy(&run, &symbol, sizeof run); /* C99 has no conversion from an object's address to a function's */
  return run();
}
