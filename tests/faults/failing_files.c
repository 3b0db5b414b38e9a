/* SPDX-License-Identifier: Apache-2.0 */
/* The C library's file calls, which fail when told to. A test program that is linked with this one calls these, and so
 * does libhorus.so in its process. */
#include "failing_files.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static enum FileFault fault = kNoFault;
static int at = -1;   /* calls of the kind until the fault; -1 = never */
static int again = 0; /* how often it comes in a row */
static int met = 0;
static int lowest = -1;

void FailFiles(enum FileFault which, int calls_before, int times) {
  fault = which;
  at = calls_before;
  again = times;
  met = 0;
  lowest = -1;
}

int FaultsMet(void) { return met; }
int LowestWritten(void) { return lowest; }

static int Fails(enum FileFault which) {
  if (fault != which || at < 0) return 0;
  if (at > 0) {
    --at;
    return 0;
  }
  if (again == 0) return 0;
  --again;
  ++met;
  return 1;
}

static void* Real(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  if (found == NULL) abort();
  return found;
}
#define REAL(type, name)                 \
  static type real = NULL;               \
  if (real == NULL) {                    \
    void* const found = Real(name);      \
    memcpy(&real, &found, sizeof found); \
  }

static int Fail(int error) {
  errno = error;
  return -1;
}

int open(const char* path, int flags, ...) {
  typedef int (*Open)(const char*, int, ...);
  mode_t mode = 0;
  REAL(Open, "open")
  if (flags & O_CREAT) {
    va_list rest;
    va_start(rest, flags);
    mode = va_arg(rest, mode_t);
    va_end(rest);
  }
  if (Fails(kOpenInterrupted)) return Fail(EINTR);
  if (Fails(kOpenRefused)) return Fail(EACCES);
  if (Fails(kOpenTooMany)) return Fail(EMFILE);
  return real(path, flags, mode);
}

ssize_t read(int fd, void* bytes, size_t size) {
  typedef ssize_t (*Read)(int, void*, size_t);
  REAL(Read, "read")
  if (Fails(kReadInterrupted)) return Fail(EINTR);
  if (Fails(kReadBroken)) return Fail(EIO);
  if (Fails(kReadEnds)) return 0;
  if (Fails(kReadShort) && size > 1) size = 1;
  return real(fd, bytes, size);
}

ssize_t write(int fd, const void* bytes, size_t size) {
  typedef ssize_t (*Write)(int, const void*, size_t);
  REAL(Write, "write")
  if (lowest < 0 || fd < lowest) lowest = fd;
  if (Fails(kWriteInterrupted)) return Fail(EINTR);
  if (Fails(kWriteFull)) return Fail(ENOSPC);
  if (Fails(kWriteBroken)) return Fail(EIO);
  if (Fails(kWriteNothing)) return 0;
  if (Fails(kWriteShort) && size > 1) size = 1;
  return real(fd, bytes, size);
}

int fsync(int fd) {
  typedef int (*Sync)(int);
  REAL(Sync, "fsync")
  if (Fails(kSyncInterrupted)) return Fail(EINTR);
  if (Fails(kSyncBroken)) return Fail(EIO);
  return real(fd);
}

int close(int fd) {
  typedef int (*Close)(int);
  REAL(Close, "close")
  if (Fails(kCloseInterrupted)) return real(fd), Fail(EINTR);
  if (Fails(kCloseFull)) return real(fd), Fail(ENOSPC);
  return real(fd);
}

int rename(const char* from, const char* to) {
  typedef int (*Rename)(const char*, const char*);
  REAL(Rename, "rename")
  if (Fails(kRenameFull)) return Fail(ENOSPC);
  return real(from, to);
}
