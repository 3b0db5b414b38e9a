// SPDX-License-Identifier: Apache-2.0
// Scorer: the one routine that judges a device for a job — fit, slowdowns, policy — and its memo.
//
// Enters:  a job, a device state.
// Leaves:  the first constraint that fails or the policy's cost; on demand the slowdowns behind it.
// Units:   see fit.h, policy.h.
// Cost:    a memo hit is one array access; a miss calls the model twice and the policy once.
// Thread class: one thread at a time.
#ifndef HORUS_PLACE_SCORER_H_
#define HORUS_PLACE_SCORER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/id_map.h"
#include "interference/model.h"
#include "place/device_states.h"
#include "place/fit.h"
#include "place/policy.h"

namespace horus {

// A job as devices see it: one class per type that it allows.
struct JobView {
  struct OnType {
    GpuTypeId type;  // invalid = any
    TenantClass tenant;
    double relative_speed = 1;
  };
  const JobSpec* job = nullptr;
  std::vector<OnType> types;  // ascending
  uint64_t digest = 0;        // of `types`: jobs of equal digest are judged alike on any device
  uint64_t request = 0;       // of all that decides where the job fits: `digest`, host needs, selector, shape
};
[[nodiscard]] JobView ViewJob(const JobSpec& job);

struct DeviceVerdict {
  double cost = 0;  // of Policy::ScoreDevice; for a refusal how far the device was from fitting, see fit.h
  Reason reason = Reason::kNone;
};

// A verdict with all that led to it; the candidate's spans point into the scorer until its next call.
struct Evaluation {
  DeviceVerdict verdict;
  Shortfall shortfall;
  DeviceCandidate candidate;  // empty where the job states no demand on the type
};

class Scorer {
 public:
  Scorer(std::shared_ptr<const InterferenceModel> model, std::unique_ptr<const Policy> policy, const FitLimits& limits,
         uint64_t memo_bytes, bool exhaustive);

  // To be called before the first verdict on `view`, which must outlive them.
  void SetJob(const JobView& view, const StateTable& states);

  // The verdict on the devices in that state.
  [[nodiscard]] absl::Status Judge(const StateTable& states, uint32_t state, DeviceVerdict& verdict);
  // Its reason alone, without the policy's price; asks the model only where somebody's slowdown is bounded.
  [[nodiscard]] absl::Status Fit(const StateTable& states, uint32_t state, Reason& reason);
  // The same, anew and in full.
  [[nodiscard]] absl::Status Evaluate(const StateTable& states, const DeviceRow& device, Evaluation& evaluation);

  [[nodiscard]] const InterferenceModel& model() const { return *model_; }
  [[nodiscard]] const Policy& policy() const { return *policy_; }
  [[nodiscard]] const FitLimits& limits() const { return limits_; }
  [[nodiscard]] uint64_t bytes_held() const;

 private:
  // 16 bytes, because there is one for every job class and state.
  struct Entry {
    static constexpr uint64_t kReasonMask = 0xFF;
    static constexpr uint64_t kUnset = 0xFF;
    uint64_t tag = kUnset;  // upper 56 bits of the state's digest (ids are used again), and the reason
    double cost = 0;
  };
  [[nodiscard]] absl::Status Predict(const DeviceContext& device, size_t count, std::vector<Slowdown>& out);

  std::shared_ptr<const InterferenceModel> model_;
  std::unique_ptr<const Policy> policy_;
  FitLimits limits_;
  uint64_t memo_limit_;
  bool exhaustive_;

  const JobView* view_ = nullptr;
  std::vector<Entry>* row_ = nullptr;  // of the current job, indexed by state id
  // By JobView::digest. Rows stay where they are when the map grows.
  IdMap<std::unique_ptr<std::vector<Entry>>> memo_;
  uint64_t memo_entries_ = 0;
  uint64_t memo_epoch_ = 0;

  std::vector<const Demand*> demands_;  // scratch
  std::vector<const TenantClass*> tenants_;
  std::vector<float> bounds_;
  std::vector<Slowdown> before_;
  std::vector<Slowdown> after_;
};

}  // namespace horus

#endif  // HORUS_PLACE_SCORER_H_
