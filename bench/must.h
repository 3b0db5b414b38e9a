// SPDX-License-Identifier: Apache-2.0
// Must: what a benchmark cannot go on without; an error ends the program with its message.
//
// Enters:  a status, or a value that may be one.   Leaves: the value.
// Units:   none.
// Cost:    a move.                                 Thread class: pure functions.
#ifndef HORUS_BENCH_MUST_H_
#define HORUS_BENCH_MUST_H_

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace horus::bench {

inline void Must(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "bench: %s\n", status.ToString().c_str());
  std::exit(1);
}
template <typename T>
T Must(absl::StatusOr<T> value) {
  Must(value.status());
  return *std::move(value);
}

}  // namespace horus::bench

#endif  // HORUS_BENCH_MUST_H_
