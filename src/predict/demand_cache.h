// SPDX-License-Identifier: Apache-2.0
// DemandCache: demands of repeated jobs, so that a graph that was asked about before is not analysed again.
//
// Enters:  a graph, a run and a GPU type as one key of 128 bits; demands of one predictor.
// Leaves:  the demand that was put under the key, or none.
// Cost:    about 100 ns for a key and 50 ns for a look; some 150 bytes a slot once something is in it, never more.
// Thread class: internally synchronised.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "features/run_spec.h"
#include "predict/demand.h"

namespace horus {

struct Graph;
struct GpuType;
class Predictor;

struct DemandKey {
  uint64_t first = 0;
  uint64_t second = 0;
  friend bool operator==(const DemandKey&, const DemandKey&) = default;
};

// Empty for runs that name parameters: the graph's fingerprint does not know names.
[[nodiscard]] std::optional<DemandKey> KeyOf(const Graph& graph, const RunSpec& run);

class DemandCache {
 public:
  static constexpr size_t kSlots = 4096;
  explicit DemandCache(size_t slots = kSlots) : slot_count_(slots) {}

  [[nodiscard]] std::optional<Demand> Find(const DemandKey& key) const;
  void Put(const DemandKey& key, const Demand& demand);  // in the place of what has the same slot
  [[nodiscard]] int64_t bytes_held() const;

 private:
  struct Slot {
    DemandKey key;
    bool full = false;
    Demand demand;
  };
  size_t slot_count_;
  mutable std::mutex mutex_;
  std::vector<Slot> slots_;  // empty until the first Put
};

struct CachedDemands {
  std::vector<Demand> demands;  // by type, with what was measured
  bool known = false;           // all were in the cache
};

// Of one run on several types, in their order: from the cache where all are in it, else by one analysis.
[[nodiscard]] absl::StatusOr<CachedDemands> PredictCached(const Predictor& predictor, DemandCache& cache,
                                                          const std::shared_ptr<const Graph>& graph, const RunSpec& run,
                                                          std::span<const GpuType* const> types);

}  // namespace horus
