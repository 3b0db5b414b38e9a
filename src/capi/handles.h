// SPDX-License-Identifier: Apache-2.0
// What is behind the opaque handles of every build (graph and predictor: graph_handles.h).
//
// Enters:  values of the rooms.           Leaves: the structs that horus.h only names.
// Units:   none.
// Cost:    one allocation a handle.       Thread class: as horus.h says of each.
#ifndef HORUS_CAPI_HANDLES_H_
#define HORUS_CAPI_HANDLES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "capi/cluster_gate.h"
#include "capi/telemetry.h"
#include "device/catalogue.h"
#include "horus/horus.h"
#include "interference/model.h"
#include "interference/observed_slowdowns.h"
#include "place/decision.h"
#include "place/modes/rebalance.h"
#include "place/placer.h"
#include "place/state/cluster.h"
#include "predict/measured.h"
#include "queue/queue.h"

struct horus_catalogue {
  std::shared_ptr<const horus::Catalogue> value;
};

struct horus_observations {
  horus::MeasuredDemands demands;
  horus::ObservedSlowdowns slowdowns;
};

struct horus_interference {
  std::shared_ptr<const horus::InterferenceModel> value;
  // Whose type ids the model understands; null = any.
  std::shared_ptr<const horus::Catalogue> catalogue;
  std::string bundle;  // empty without
};

struct horus_cluster {
  explicit horus_cluster(horus::Cluster cluster) : value(std::move(cluster)) {}
  horus::Cluster value;
  mutable horus::capi::ClusterGate gate;
  horus::capi::TelemetrySlot telemetry{this};
};

struct horus_placer {
  std::unique_ptr<horus::Placer> value;
  std::shared_ptr<const horus::Catalogue> catalogue;  // of its model; null = any
  std::atomic<bool> busy = false;
  std::atomic<uint64_t> bytes_held = 0;  // at the end of the last call, of a placer that is metered
  horus::Placer::Judgements judged;      // already told to the telemetry
  horus::capi::TelemetrySlot telemetry{this};
};

struct horus_plan {
  horus::Plan value;
  std::shared_ptr<const horus::Catalogue> catalogue;  // whose type ids it speaks
  std::vector<horus::TenantReview> reviews;           // of a review
  mutable std::once_flag texts_once;
  mutable std::vector<std::string> texts;  // one per decision, written when first asked for
};

struct horus_queue {
  std::unique_ptr<horus::Queue> value;
};

namespace horus::capi {

// The catalogue behind a handle; the built-in one for null.
[[nodiscard]] inline std::shared_ptr<const Catalogue> CatalogueOf(const horus_catalogue* handle) {
  return handle == nullptr ? Catalogue::Default() : handle->value;
}

// Whether type ids mean the same in both; null agrees with everything.
[[nodiscard]] inline bool SameTypes(const std::shared_ptr<const Catalogue>& a,
                                    const std::shared_ptr<const Catalogue>& b) {
  return a == nullptr || b == nullptr || a == b || *a == *b;
}

}  // namespace horus::capi

#endif  // HORUS_CAPI_HANDLES_H_
