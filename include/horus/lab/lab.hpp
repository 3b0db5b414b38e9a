// SPDX-License-Identifier: Apache-2.0
// The C++20 face of the laboratory, over lab.h: horus.hpp, simulations, training, features. Link with libhorus_lab.so
// instead of libhorus.so.
#ifndef HORUS_LAB_LAB_HPP_
#define HORUS_LAB_LAB_HPP_

#include <cstdint>
#include <vector>

#include "horus/horus.hpp"
#include "horus/lab/lab.h"
#include "horus/lab/latency.hpp"
#include "horus/lab/policies.hpp"
#include "horus/lab/sim.hpp"
#include "horus/lab/train.hpp"

namespace horus {
inline namespace face_v0 {  // see values.hpp

// The cost of one step.
[[nodiscard]] inline horus_step_cost StepCost(const Graph& graph, const RunSpec& run = {}) {
  horus_step_cost cost = HORUS_STEP_COST_INIT;
  detail::Call(horus_graph_cost, graph.get(), detail::CRunSpec(run).get(), &cost);
  return cost;
}

// The feature row of a graph and run, in schema order.
[[nodiscard]] inline std::vector<float> Features(const Graph& graph, const RunSpec& run = {}) {
  const detail::CRunSpec c(run);
  return detail::Collect<float>([&](size_t capacity, float* values, size_t* count, horus_error* error) {
    return horus_graph_features(graph.get(), c.get(), capacity, values, count, error);
  });
}

// Memory that a handle holds, approximately, in bytes.
[[nodiscard]] inline uint64_t BytesHeld(const Interference& model) {
  return horus_interference_bytes_held(model.get());
}
[[nodiscard]] inline uint64_t BytesHeld(const Queue& queue) { return horus_queue_bytes_held(queue.get()); }
[[nodiscard]] inline uint64_t BytesHeld(const Observations& observations) {
  return horus_observations_bytes_held(observations.get());
}

}  // namespace face_v0
}  // namespace horus

#endif  // HORUS_LAB_LAB_HPP_
