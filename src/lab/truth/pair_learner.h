// SPDX-License-Identifier: Apache-2.0
// PairLearner: remembers which two jobs could not run together, and what two that could cost each other.
//
// Enters:  another model; what the simulation sees (learner.h).
// Leaves:  a model that answers with what was seen of a pair on a kind of device, and as the other one elsewhere.
// Units:   slowdown = step time shared / step time alone.
// Cost:    something new: a sort of the pairs seen so far, and with `corrects` a commit of CorrectedModel.
// Thread class: learner, model and placer: one thread at a time.
#ifndef HORUS_LAB_TRUTH_PAIR_LEARNER_H_
#define HORUS_LAB_TRUTH_PAIR_LEARNER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

#include "device/catalogue.h"
#include "interference/model.h"
#include "interference/observed_slowdowns.h"
#include "lab/truth/learner.h"

namespace horus {

enum class Learns : uint8_t {
  kNothing = 0,   // a job that failed beside others runs alone
  kFailures = 1,  // pairs of profiles that failed are not tried again: each is predicted to slow the other 1,000 times
  kPairs = 2,     // and pairs that ran answer for themselves, once a device was observed
  kCorrects = 3,  // and what was seen of them corrects what is predicted of others (CorrectedModel)
};

inline constexpr int64_t kLearnFromUs =
    60'000'000;  // how long tenants who share are observed, as `reactive` profiles a job

class PairLearner final : public SimLearner {
 public:
  PairLearner(std::shared_ptr<const InterferenceModel> model, std::shared_ptr<const Catalogue> catalogue,
              Learns learns);

  // For the placer. Its answers and its epoch change as it learns.
  [[nodiscard]] std::shared_ptr<const InterferenceModel> model() const;
  // What it answers now; stays as it is.
  [[nodiscard]] std::shared_ptr<const InterferenceModel> known() const;

  // Devices of two tenants with profile ids teach.
  [[nodiscard]] absl::Status Observe(const SeenSharing& seen) override;
  [[nodiscard]] absl::StatusOr<bool> Failed(const SeenSharing& seen) override;

 private:
  class Believed;                                                      // forwards to what is known now
  using Key = std::tuple<GpuTypeId, SharingMode, uint64_t, uint64_t>;  // victim, other

  [[nodiscard]] absl::StatusOr<bool> Learn(const SeenSharing& seen, double first, double second);

  std::shared_ptr<const InterferenceModel> beneath_;
  std::shared_ptr<const Catalogue> catalogue_;
  Learns learns_;
  std::shared_ptr<Believed> believed_;
  std::map<Key, double> seen_;
  ObservedSlowdowns observed_;
};

}  // namespace horus

#endif  // HORUS_LAB_TRUTH_PAIR_LEARNER_H_
