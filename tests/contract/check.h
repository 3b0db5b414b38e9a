/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of the contract tests: C99, no framework. A test program counts what failed and returns it. */
#ifndef HORUS_TESTS_CONTRACT_CHECK_H_
#define HORUS_TESTS_CONTRACT_CHECK_H_

#include <stdio.h>
#include <string.h>

#include "horus/lab/lab.h"

static int failures = 0;

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                              \
    }                                                                          \
  } while (0)

/* The call must answer `expected` and, unless that is OK, fill the error that it gets (named `error`). */
#define CHECK_STATUS(expected, call)                                                                               \
  do {                                                                                                             \
    horus_error error = HORUS_ERROR_INIT;                                                                          \
    const horus_status found_ = (call);                                                                            \
    if (found_ != (expected)) {                                                                                    \
      fprintf(stderr, "%s:%d: expected %s of %s, found %s: %s\n", __FILE__, __LINE__, horus_status_name(expected), \
              #call, horus_status_name(found_), error.message);                                                    \
      ++failures;                                                                                                  \
    }                                                                                                              \
    if (error.status != found_ || (found_ != HORUS_OK) != (error.message[0] != '\0')) {                            \
      fprintf(stderr, "%s:%d: %s: the error struct does not agree: status %d, message '%s'\n", __FILE__, __LINE__, \
              #call, (int)error.status, error.message);                                                            \
      ++failures;                                                                                                  \
    }                                                                                                              \
  } while (0)

#define CHECK_OK(call) CHECK_STATUS(HORUS_OK, call)

/* The call must fail so, and its message must hold `text`. */
#define CHECK_MESSAGE(expected, text, call)                                                                            \
  do {                                                                                                                 \
    horus_error error = HORUS_ERROR_INIT;                                                                              \
    const horus_status found_ = (call);                                                                                \
    if (found_ != (expected) || strstr(error.message, (text)) == NULL) {                                               \
      fprintf(stderr, "%s:%d: expected %s with '%s', found %s: %s\n", __FILE__, __LINE__, horus_status_name(expected), \
              (text), horus_status_name(found_), error.message);                                                       \
      ++failures;                                                                                                      \
    }                                                                                                                  \
  } while (0)

static int report(void) {
  if (failures != 0) fprintf(stderr, "%d checks failed\n", failures);
  return failures == 0 ? 0 : 1;
}

#endif /* HORUS_TESTS_CONTRACT_CHECK_H_ */
