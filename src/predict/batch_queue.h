// SPDX-License-Identifier: Apache-2.0
// BatchQueue: dynamic batching, as Triton and TEI serve models that answer in one step: a server that is free takes all
// who wait into its next step, up to a largest batch, and waits for nobody.
//
// Enters:  the time of a step by its number of requests; a load.
// Leaves:  batches, times to the answer; nothing where more come than are served.
// Units:   us, requests/s.
// Cost:    about 1 us.
//
// Closed forms after the model of Inoue (Performance Evaluation 147, 2021). Against simulation, steps of a + b n up to
// 90 % of what is served: means, and the time that nine in ten stay below, are within 17 %
// (tests/unit/predict/batch_queue_test.cc).
#pragma once

#include <optional>
#include <utility>
#include <vector>

namespace horus {

class BatchQueue {
 public:
  // (requests, us), ascending from one request to the largest batch. Between them times are linear.
  explicit BatchQueue(std::vector<std::pair<double, double>> steps);

  struct Point {
    double batch = 1;                  // requests in a step, mean
    double rate = 0;                   // requests/s
    double busy = 1;                   // share of all time in which a step runs
    double mean_us = 0, upper_us = 0;  // to the answer; `upper_us` of the share `confidence` of the requests
  };
  // Independent users. `slowdown`: of all steps.
  [[nodiscard]] std::optional<Point> At(double requests_per_s, double slowdown, double confidence) const;
  // Users who ask again once they are answered: half of them wait while the others are served.
  [[nodiscard]] Point OfUsers(double users, double slowdown) const;

 private:
  [[nodiscard]] double StepUs(double requests) const;  // of several steps beyond the largest batch
  std::vector<std::pair<double, double>> steps_;
};

}  // namespace horus
