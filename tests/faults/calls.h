/* SPDX-License-Identifier: Apache-2.0 */
/* One call of the C ABI again and again, each time with a later allocation failing, until it runs to its end.
 *
 * Enters:  the call's outputs, its cluster, its error.   Leaves: the status of the call that ran to its end.
 * Units:   allocations, bytes.
 * Cost:    as many calls as allocations; see HORUS_FAULTS_EACH in calls.cc.   Thread class: any thread; only the
 *          caller's own allocations fail. */
#ifndef HORUS_TESTS_FAULTS_CALLS_H_
#define HORUS_TESTS_FAULTS_CALLS_H_

#include <stdbool.h>
#include <stddef.h>

#include "horus/lab/lab.h"

#ifdef __cplusplus
extern "C" {
#endif

struct Function {
  const char* name;
  void (*real)(void);
  struct Function* next;
};

/* Where a call writes when it succeeds. */
struct Output {
  const void* bytes;
  size_t size;
};

enum { kMaxOutputs = 24 };

struct Trial {
  struct Function* function;
  const struct Output* outputs;
  unsigned char* before[kMaxOutputs];
  size_t output_count;
  const horus_cluster* cluster;
  horus_cluster_info info;
  horus_error* error;
  horus_error error_before;
  size_t at;
  horus_status refused; /* what the call answered when an allocation had failed, neither OK nor NO_MEMORY */
  bool outermost;       /* else called from a callback of a call that is tried: it just runs */
  bool last;
};

/* The library's function of that name. */
void (*Find(struct Function* function, const char* name))(void);

/* Bytes that `count` structs starting with struct_size hold, as the first says; 0 for NULL. */
size_t StructBytes(const void* first, size_t size, size_t count);

/* `calls_back`: the caller gave a callback, which runs within the call. */
void Begin(struct Trial* trial, struct Function* function, size_t output_count, const struct Output* outputs,
           const horus_cluster* cluster, bool calls_back, horus_error* error);
void Arm(struct Trial* trial);
bool Again(struct Trial* trial, horus_status status);

/* A call without status may not allocate. */
bool BeginPlain(struct Function* function);
void EndPlain(struct Function* function, bool outermost);

#ifdef __cplusplus
}
#endif

#endif /* HORUS_TESTS_FAULTS_CALLS_H_ */
