// SPDX-License-Identifier: Apache-2.0
// What is behind the handles that only a build with ONNX has: graph and predictor.
//
// Enters:  values of the rooms.   Leaves: the structs that horus.h only names.
#pragma once

#include "capi/telemetry.h"
#include "features/run_spec.h"
#include "graph/graph.h"
#include "horus/graph.h"
#include "predict/demand_cache.h"
#include "predict/predictor.h"

struct horus_graph {
  std::shared_ptr<const horus::Graph> value;
};

struct horus_predictor {
  explicit horus_predictor(std::shared_ptr<const horus::Predictor> predictor,
                           std::shared_ptr<horus::DemandCache> shared = std::make_shared<horus::DemandCache>())
      : value(std::move(predictor)), cache(std::move(shared)) {}
  std::shared_ptr<const horus::Predictor> value;
  // Demands without what was measured: a commit leaves them as they are, so predictors of all epochs share them.
  std::shared_ptr<horus::DemandCache> cache;
  horus::capi::TelemetrySlot telemetry{this};
  [[nodiscard]] uint64_t bytes_held() const { return static_cast<uint64_t>(value->bytes_held() + cache->bytes_held()); }
};

namespace horus::capi {

// ---- Run specifications of the C ABI as the features room takes them.

[[nodiscard]] absl::StatusOr<RunSpec> RunFromC(const horus_run_spec* given);

}  // namespace horus::capi
