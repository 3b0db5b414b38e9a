// SPDX-License-Identifier: Apache-2.0
// A table in which every key has one place.
#include "predict/demand_cache.h"

#include "base/status.h"
#include "device/gpu_fields.h"
#include "graph/graph.h"
#include "predict/predictor.h"

namespace horus {
namespace {

// Two hashes of the same values with different seeds.
class KeyMaker {
 public:
  explicit KeyMaker(const DemandKey& seed) : key_(seed) {}
  void Add(uint64_t value) {
    key_.first = CombineHash(key_.first, value);
    key_.second = CombineHash(key_.second, ~value);
  }
  void Add(int64_t value) { Add(static_cast<uint64_t>(value)); }
  void Add(std::string_view text) { Add(Hash64(text)); }
  [[nodiscard]] DemandKey key() const { return key_; }

 private:
  DemandKey key_;
};

DemandKey OnGpu(const DemandKey& job, const GpuType& gpu) {
  KeyMaker maker(job);
  maker.Add(std::string_view(gpu.name));
  for (const GpuField& field : GpuFields()) maker.Add(gpu.*field.member);
  return maker.key();
}

}  // namespace

std::optional<DemandKey> KeyOf(const Graph& graph, const RunSpec& run) {
  if (!run.frozen.empty()) return std::nullopt;
  KeyMaker maker({graph.fingerprint, ~graph.fingerprint});
  for (const uint64_t code :
       {static_cast<uint64_t>(run.mode), static_cast<uint64_t>(run.precision), static_cast<uint64_t>(run.optimizer),
        static_cast<uint64_t>(run.framework), static_cast<uint64_t>(run.layout)}) {
    maker.Add(code);
  }
  maker.Add(run.dims.batch);
  maker.Add(run.checkpoint_segments);
  maker.Add(run.data_parallel);
  for (const auto& [name, size] : run.dims.dims) {
    maker.Add(std::string_view(name));
    maker.Add(size);
  }
  return maker.key();
}

std::optional<Demand> DemandCache::Find(const DemandKey& key) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (slots_.empty()) return std::nullopt;
  const Slot& slot = slots_[key.first % slot_count_];
  if (!slot.full || slot.key != key) return std::nullopt;
  return slot.demand;
}

void DemandCache::Put(const DemandKey& key, const Demand& demand) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (slots_.empty()) slots_.resize(slot_count_);
  slots_[key.first % slot_count_] = {.key = key, .full = true, .demand = demand};
}

absl::StatusOr<CachedDemands> PredictCached(const Predictor& predictor, DemandCache& cache,
                                            const std::shared_ptr<const Graph>& graph, const RunSpec& run,
                                            std::span<const GpuType* const> types) {
  const std::optional<DemandKey> job = KeyOf(*graph, run);
  CachedDemands found;
  for (const GpuType* type : types) {
    if (!job) break;
    const std::optional<Demand> known = cache.Find(OnGpu(*job, *type));
    if (!known) break;
    found.demands.push_back(predictor.WithMeasurements(*type, *known));
  }
  found.known = !types.empty() && found.demands.size() == types.size();
  if (found.known) return found;
  found.demands.clear();
  HORUS_ASSIGN_OR_RETURN(const JobProfile profile, Analyse(graph, run));
  for (const GpuType* type : types) {
    const Demand predicted = predictor.PredictUnmeasured(profile, *type);
    if (job) cache.Put(OnGpu(*job, *type), predicted);
    found.demands.push_back(predictor.WithMeasurements(*type, predicted));
  }
  return found;
}

int64_t DemandCache::bytes_held() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int64_t>(sizeof(DemandCache) + slots_.capacity() * sizeof(Slot));
}

}  // namespace horus
