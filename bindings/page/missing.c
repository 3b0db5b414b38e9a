// SPDX-License-Identifier: Apache-2.0
// What the command calls of POSIX and emscripten 3.1.6 lacks.
#include <errno.h>
#include <spawn.h>
#include <sys/random.h>
#include <unistd.h>

ssize_t getrandom(void* buffer, size_t size, unsigned flags) {
  (void)flags;
  return getentropy(buffer, size) == 0 ? (ssize_t)size : -1;
}

// No other programs in a browser.
int posix_spawnp(pid_t* pid, const char* file, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const arguments[], char* const environment[]) {
  (void)pid, (void)file, (void)actions, (void)attributes, (void)arguments, (void)environment;
  return ENOSYS;
}
