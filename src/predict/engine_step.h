// SPDX-License-Identifier: Apache-2.0
// EngineStep: one step of a net as an inference engine runs it, from the times of its operators.
//
// Enters:  a shaped graph, its costs, a run whose framework is an engine; a GPU type.
// Leaves:  microseconds on the device and of the whole step, each with a bound; what keeps the device busy.
// Cost:    EngineStepOf: linear in operators; TimeOf: about 2 us an operator unlike the others.
#pragma once

#include <optional>
#include <utility>

#include "features/cost.h"
#include "features/run_spec.h"
#include "graph/shaped.h"
#include "predict/operators.h"

namespace horus {

// The engine that dispatches the run; none for frameworks.
[[nodiscard]] std::optional<ServingEngine> EngineOf(Framework framework);

struct EngineStep {
  // What no law of operators knows: norms, activations, embeddings, ...
  struct Plain {
    double bytes = 0, flops = 0, kernels = 0;
    friend auto operator<=>(const Plain&, const Plain&) = default;
  };
  std::vector<std::pair<Operator, double>> operators;  // unlike ones, and how many run
  std::vector<std::pair<Plain, double>> plain;
  double bytes = 0;  // that the whole step reads and writes
};
[[nodiscard]] EngineStep EngineStepOf(const ShapedGraph& shaped, const StepCost& cost, const RunSpec& run);

// Of every operator of the graph, 0 for those without a kernel: for `inspect`.
[[nodiscard]] std::vector<double> OperatorTimesOf(const ShapedGraph& shaped, const StepCost& cost, const RunSpec& run,
                                                  const GpuType& gpu);

struct EngineTime {
  double device_us = 0, step_us = 0, step_upper_us = 0;
};
[[nodiscard]] EngineTime TimeOf(const EngineStep& step, const GpuType& gpu);

}  // namespace horus
