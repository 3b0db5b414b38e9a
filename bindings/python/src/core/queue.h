// SPDX-License-Identifier: Apache-2.0
// Options of queues, for queues alone and in simulations.
#ifndef HORUS_PYTHON_QUEUE_H_
#define HORUS_PYTHON_QUEUE_H_

#include <cstdint>
#include <vector>

#include "args.h"

namespace horus_python {

struct QueueOptions : horus_queue_options {
  static constexpr const char* kName = "QueueOptions";
  QueueOptions() : horus_queue_options(HORUS_QUEUE_OPTIONS_INIT) {}
  std::vector<int64_t> thresholds = {};
  bool continuous = false;

  // As the C ABI takes it; borrows from this.
  [[nodiscard]] horus_queue_options ToC() const {
    horus_queue_options c = *this;
    c.las_continuous = continuous ? 1 : 0;
    c.las_threshold_count = thresholds.size();
    c.las_thresholds_gpu_us = thresholds.empty() ? nullptr : thresholds.data();
    return c;
  }
};
template <>
struct Arg<QueueOptions> : ValueArg<QueueOptions> {};

}  // namespace horus_python

#endif  // HORUS_PYTHON_QUEUE_H_
