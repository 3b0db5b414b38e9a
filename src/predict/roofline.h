// SPDX-License-Identifier: Apache-2.0
// Roofline: step time, utilisation and bandwidth of a job on a GPU type from specifications alone.
//
// Enters:  the StepCost of a job, its RunSpec and a GPU type.   Leaves: times, shares and utilisation; no fitting.
// Units:   microseconds, per cent 0-100, shares 0-1.
// Cost:    linear in operators, about 20 ns each.
#pragma once

#include <cstdint>
#include <vector>

#include "features/cost.h"
#include "features/feature_row.h"
#include "features/run_spec.h"

namespace horus {

struct GpuType;

// What a group of kernels waits for.
enum class Limit : uint8_t { kCompute, kBandwidth, kLaunch };

struct OpTime {
  double forward_us = 0;  // sum of its kernels' durations
  double backward_us = 0;
  Limit limit = Limit::kLaunch;  // of the larger part
  double parallelism = 0;        // min(1, thread blocks / blocks that fill the GPU), of the larger part
};

// The step as a whole.
[[nodiscard]] RooflineTerms RooflineOf(const StepCost& cost, const RunSpec& run, const GpuType& gpu);

// What no GPU of the type can undercut: of each product in turn, its FLOPs over the peak (in half precision over the
// best rate that was measured and that the board sustains), and its bytes over the bandwidth but for what the cache may
// hold of each kernel's. Of weights and caches, if they are more than the cache holds, it has nothing left of the step
// before.
[[nodiscard]] double FloorUs(const StepCost& cost, const RunSpec& run, const GpuType& gpu);

// Every operator, parallel to StepCost::ops: for `inspect` and for explanations.
[[nodiscard]] std::vector<OpTime> RooflineOps(const StepCost& cost, const RunSpec& run, const GpuType& gpu);

// Dense peak that matrix products can reach under `precision`, GFLOP/s; falls back to the next type that the
// GPU has (tf32 -> fp32, bf16 -> fp32, fp16 -> fp32).
[[nodiscard]] double MatrixPeakGflops(const GpuType& gpu, Precision precision);

}  // namespace horus
