// SPDX-License-Identifier: Apache-2.0
// Adds up the offers of one run: what was asked for and allocated, and the allocation at two loads.
//
// Enters:  pods in the order of arrival, each with the row of its node or none.
// Leaves:  an Outcome without its time.
// Units:   GPU milli; per cent of `capacity`.
// Cost:    a few instructions an offer.   Thread class: one thread.
#ifndef HORUS_BENCH_QUALITY_ALLOCATION_CURVE_H_
#define HORUS_BENCH_QUALITY_ALLOCATION_CURVE_H_

#include <cmath>
#include <cstdint>
#include <optional>

#include "bench/quality/allocation_run.h"

namespace horus::bench {

class Curve {
 public:
  explicit Curve(int64_t capacity) : capacity_(static_cast<double>(capacity)) {}

  void Offer(const OpenbPod& pod, std::optional<uint32_t> node_row) {
    constexpr uint64_t kModulus = 1'000'000'007;
    const int64_t request = int64_t{pod.gpus} * pod.gpu_milli;
    ++sums_.offers;
    sums_.arrived += request;
    if (node_row.has_value()) {
      sums_.used += request;
      sums_.hash = (sums_.hash + (sums_.offers - sums_.dropped) * uint64_t{*node_row}) % kModulus;
    } else {
      ++sums_.dropped;
    }
    const double load = std::nearbyint(100 * static_cast<double>(sums_.arrived) / capacity_);  // half to even
    const double allocated = std::round(100 * (100 * static_cast<double>(sums_.used) / capacity_)) / 100;
    if (load == 100) Add(at_100_, allocated);
    if (load == 130) Add(at_130_, allocated);
  }

  [[nodiscard]] Outcome Finish() const {
    Outcome outcome = sums_;
    outcome.allocation_100 = Mean(at_100_);
    outcome.allocation_130 = Mean(at_130_);
    return outcome;
  }

 private:
  struct Sum {
    double of = 0;
    size_t count = 0;
  };
  static void Add(Sum& sum, double value) {
    sum.of += value;
    ++sum.count;
  }
  static double Mean(const Sum& sum) { return sum.count == 0 ? 0 : sum.of / static_cast<double>(sum.count); }

  double capacity_;
  Outcome sums_;
  Sum at_100_;
  Sum at_130_;
};

}  // namespace horus::bench

#endif  // HORUS_BENCH_QUALITY_ALLOCATION_CURVE_H_
