// SPDX-License-Identifier: Apache-2.0
// SimLearner: what a simulation lets a scheduler learn while jobs run, and the door by which it changes its mind.
//
// Enters:  what the tenants of a device were seen to lose beside each other.
// Leaves:  another placer to go on with, or none.
// Units:   slowdown = step time shared / step time alone.
// Cost:    CorrectingLearner: an observation about 1 us, a commit as CorrectedModel::Commit and a new placer.
// Thread class: one thread at a time.
#ifndef HORUS_SIM_LEARNER_H_
#define HORUS_SIM_LEARNER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "interference/observed_slowdowns.h"
#include "place/placer.h"

namespace horus {

struct SeenSharing {
  int64_t now_us = 0;
  DeviceContext device;
  std::span<const Demand* const> demands;  // of the tenants, as the placer believes them
  std::span<const double> slowdowns;       // of each, as it is
};

class SimLearner {
 public:
  virtual ~SimLearner() = default;
  // The placer from now on, which the simulation keeps; null = the one that it has.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<Placer>> Observe(const SeenSharing& seen) = 0;
};

// Corrects a model by what was seen (CorrectedModel) and makes a placer of it after every `commit_every` observed
// devices. Demands without profile id, and slowdowns that no measurement shows, teach nothing.
class CorrectingLearner final : public SimLearner {
 public:
  using PolicyMaker = std::function<absl::StatusOr<std::unique_ptr<Policy>>()>;
  CorrectingLearner(std::shared_ptr<const InterferenceModel> model, PolicyMaker policy, const PlacerOptions& options,
                    std::shared_ptr<const Catalogue> catalogue, uint64_t commit_every = 1)
      : model_(std::move(model)),
        policy_(std::move(policy)),
        options_(options),
        catalogue_(std::move(catalogue)),
        commit_every_(commit_every) {}
  [[nodiscard]] absl::StatusOr<std::unique_ptr<Placer>> Observe(const SeenSharing& seen) override;

  [[nodiscard]] const ObservedSlowdowns& observed() const { return observed_; }

 private:
  std::shared_ptr<const InterferenceModel> model_;
  PolicyMaker policy_;
  PlacerOptions options_;
  std::shared_ptr<const Catalogue> catalogue_;
  uint64_t commit_every_;
  ObservedSlowdowns observed_;
  uint64_t seen_ = 0;
};

}  // namespace horus

#endif  // HORUS_SIM_LEARNER_H_
