// SPDX-License-Identifier: Apache-2.0
// Scorer: the one routine that judges a device for a job — fit, slowdowns, policy — and its memo.
//
// Enters:  a job, a device state.
// Leaves:  the first constraint that fails or the policy's cost; on demand the slowdowns behind it.
// Units:   see fit.h, policy.h.
// Cost:    a memo hit is one array access; a miss calls the policy once, and the model twice or, where its slowdowns
// add
//          up, only for pairs of tenants that never met. Sifting takes 10 to 20 ns a state.
// Thread class: one thread at a time.
#ifndef HORUS_PLACE_SEARCH_SCORER_H_
#define HORUS_PLACE_SEARCH_SCORER_H_

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/id_map.h"
#include "interference/model.h"
#include "place/fit.h"
#include "place/policy.h"
#include "place/search/pair_table.h"
#include "place/state/device_states.h"

namespace horus {

// A job as devices see it: one class per type that it allows.
struct JobView {
  struct OnType {
    GpuTypeId type;  // invalid = any
    TenantClass tenant;
    double relative_speed = 1;
    // Alone on a device with that share of a GPU, against the fastest whole device that the job lists.
    [[nodiscard]] double SpeedOn(float compute_share) const;
  };
  const JobSpec* job = nullptr;
  std::vector<OnType> types;  // ascending
  uint64_t digest = 0;        // of `types`: jobs of equal digest are judged alike on any device
  uint64_t request = 0;       // of all that decides where the job fits: `digest`, host needs, selector, shape, groups,
                              // and its owner where it shares with that one alone (see RequestOn)
  uint64_t owner = 0;         // OwnerMark
  [[nodiscard]] const OnType* On(GpuTypeId type) const;  // null = the job states no demand on it
};
[[nodiscard]] DeviceContext ContextOf(const DeviceRow& device);
// `probe_unknown`: alone on devices where its demand is unknown (IsUnknown).
[[nodiscard]] JobView ViewJob(const JobSpec& job, bool probe_unknown = false);

struct DeviceVerdict {
  double cost = 0;  // of Policy::ScoreDevice; for a refusal how far the device was from fitting, see fit.h
  Reason reason = Reason::kNone;
  double own_work = 0;  // of Policy::ScoreDevice for the GPU of a gang; else, and for a refusal, not to be used
};

// A verdict with all that led to it; the candidate's spans point into the scorer until its next call.
struct Evaluation {
  DeviceVerdict verdict;
  Shortfall shortfall;
  DeviceCandidate candidate;  // empty where the job states no demand on the type
};

class Scorer {
 public:
  Scorer(std::shared_ptr<const InterferenceModel> model, std::shared_ptr<const Policy> policy, const FitLimits& limits,
         uint64_t cache_bytes, bool exhaustive);  // half of them for verdicts, half for pairs

  // To be called before the first verdict on `view`, which must outlive them.
  void SetJob(const JobView& view);

  // The verdict on the devices in that state.
  [[nodiscard]] absl::Status Judge(const StateTable& states, uint32_t state, DeviceVerdict& verdict);
  // The same without the memo.
  [[nodiscard]] absl::Status Weigh(const StateTable& states, uint32_t state, DeviceVerdict& verdict);
  // A state as Sift wants it. Those with many tenants, and all where the model adds neither pairs nor loads, are not
  // sifted.
  struct StateSummary {
    uint64_t digest = 0;  // of the state when it was described; 0 = of no state
    uint32_t state = 0;
    uint16_t context = 0;
    uint16_t residents = kNotSifted;
    int32_t mem_free_mib = 0;  // by the residents' bounds, headroom included
    float per_mem_mib = 0;     // 1 / the device's memory
    struct Pairs {
      std::array<uint32_t, 3> guests = {};  // PairTable::kNobody where there are fewer
      std::array<float, 3> before = {};     // slowdown of each, estimate
      std::array<float, 3> weight = {};     // of each, 0 = nobody
      std::array<uint32_t, 3> room = {};    // what may be added to the upper excess of each
    };
    struct Loads {  // of the residents together
      int64_t estimate;
      int64_t upper;
      int64_t room;   // the sum beyond which one of them is too slow
      double weight;  // sum
    };
    union {
      Pairs pairs = {};  // where the model adds pairs
      Loads loads;       // where it adds loads
    };
    static constexpr uint16_t kNotSifted = UINT16_MAX;
  };
  [[nodiscard]] absl::Status Describe(const StateTable& states, uint32_t state, StateSummary& summary);
  // What Sift lets through.
  struct Sifted {
    uint32_t at = 0;   // position
    double floor = 0;  // the state costs no less; -infinity where only weighing can tell
  };
  // Appends to `left` those that may take the current job at a cost below `cutoff`; the others may not. Much cheaper
  // than weighing: most of many are passed over.
  void Sift(std::span<const StateSummary> summaries, double cutoff, std::vector<Sifted>& left);
  // The current job on one kind of device.
  struct OnContext {
    bool asked = false;
    bool known = true;                    // false: the model has no answer, weighing says which
    const JobView::OnType* on = nullptr;  // null = the type is not allowed
    PairTable::Row* row = nullptr;        // where pairs are added
    double relative_speed = 1;
    bool exclusive = false;
    int64_t mem_mib = 0;      // what must be free, headroom included
    uint64_t most_upper = 0;  // excess of the job's own bound beyond which it is refused
    Load load;                // where loads are added
    double most_load = 0;     // sum beyond which the job is too slow
  };
  [[nodiscard]] OnContext& OnContextOf(uint32_t context) {
    if (context < on_context_.size() && on_context_[context].asked) return on_context_[context];
    return Enter(context);
  }
  // Kinds of devices that were met, numbered from 0.
  [[nodiscard]] size_t contexts() const { return pairs_.contexts(); }
  // Whether states are sifted by pairs (ranking.h).
  [[nodiscard]] bool sifts_pairs() const { return adds_pairs_ && policy_->least_cost() != nullptr; }
  // Its reason alone, without the policy's price; asks the model only where somebody's slowdown is bounded.
  [[nodiscard]] absl::Status Fit(const StateTable& states, uint32_t state, Reason& reason);
  // The same, anew and in full.
  [[nodiscard]] absl::Status Evaluate(const StateTable& states, uint32_t state, Evaluation& evaluation);

  // Descriptions by Describe hold as long as this stays.
  [[nodiscard]] uint64_t numbering() const { return numbering_; }
  [[nodiscard]] bool exhaustive() const { return exhaustive_; }
  [[nodiscard]] uint64_t class_digest() const { return view_->digest; }
  [[nodiscard]] const InterferenceModel& model() const { return *model_; }
  [[nodiscard]] const Policy& policy() const { return *policy_; }
  [[nodiscard]] const std::shared_ptr<const InterferenceModel>& shared_model() const { return model_; }
  [[nodiscard]] const std::shared_ptr<const Policy>& shared_policy() const { return policy_; }
  [[nodiscard]] const FitLimits& limits() const { return limits_; }
  [[nodiscard]] uint64_t bytes_held() const;
  // Calls of Judge so far, and those that the memo did not answer.
  [[nodiscard]] uint64_t judged() const { return judged_; }
  [[nodiscard]] uint64_t weighed() const { return weighed_; }

 private:
  // 16 bytes, because there is one for every job class and state.
  struct Entry {
    static constexpr uint64_t kReasonMask = 0xFF;
    static constexpr uint64_t kUnset = 0xFF;
    uint64_t tag = kUnset;  // upper 56 bits of the state's digest (ids are used again), and the reason
    double cost = 0;
    [[nodiscard]] bool Holds(uint64_t digest) const {
      return ((tag ^ digest) & ~kReasonMask) == 0 && (tag & kReasonMask) != kUnset;
    }
    [[nodiscard]] Reason reason() const { return static_cast<Reason>(tag & kReasonMask); }
  };
  struct MemoRow {  // of a job class, by state id
    std::vector<Entry> entries;
    // Beside the entries, as many as gangs of the class needed; NaN = not known.
    std::vector<double> own_work;
  };
  // What the scorer needs of a state to add up pairs.
  struct PairState {
    static constexpr size_t kMost = 4;  // residents; more are predicted as a whole
    uint64_t digest = 0;                // of the state; 0 = nothing known. Nothing here is an id of a state table
    uint16_t context = 0;
    uint16_t residents = 0;
    std::array<uint32_t, kMost> guests = {};
    std::array<Promise, kMost> promises = {};
    std::array<float, kMost> weights = {};
    std::array<PairExcess, kMost> before = {};  // what the others cost each
    std::array<uint32_t, kMost> room = {};      // what may be added to the upper excess of each
  };
  [[nodiscard]] absl::Status Predict(const DeviceContext& device, size_t count, std::vector<Slowdown>& out);
  // Fills demands_, promises_, before_ and after_ for the newcomer `on` beside the tenants of a device.
  [[nodiscard]] absl::Status PredictCandidate(const StateTable& states, uint32_t state, const JobView::OnType& on);
  [[nodiscard]] OnContext& Enter(uint32_t context);
  void DescribeLoads(const StateTable& states, const DeviceRow& device, StateSummary& summary);
  void SiftPairs(const LeastCost& least, std::span<const StateSummary> summaries, double cutoff,
                 std::vector<Sifted>& left);
  void Prefetch(const StateSummary& summary) const;
  void SiftLoads(const LeastCost& least, std::span<const StateSummary> summaries, double cutoff,
                 std::vector<Sifted>& left);
  // Of costs: more than what floats round in the slowdowns of a few tenants, far less than what costs differ by.
  static constexpr double kCostMargin = 1e-6;
  [[nodiscard]] static double Floor(const LeastCost& least, const OnContext& here, const StateSummary& summary,
                                    double speed, double lost) {
    const auto left = static_cast<double>(summary.mem_free_mib - here.on->tenant.memory.request_mib) *
                      static_cast<double>(summary.per_mem_mib);
    return least.own_work * speed + least.lost_work * lost / static_cast<double>(here.on->tenant.weight) +
           least.memory_left * left + (summary.residents == 0 ? least.idle : 0) - kCostMargin;
  }
  // What is known of the state; null where it is predicted as a whole.
  [[nodiscard]] absl::Status PairStateOf(const StateTable& states, uint32_t state, const PairState*& pair_state);
  [[nodiscard]] absl::Status AddPairs(const StateTable& states, const TenantIds& tenants, const PairState& pair_state,
                                      OnContext& here);
  [[nodiscard]] absl::Status Meet(const StateTable& states, const DeviceRow& device, PairState& pair_state);
  [[nodiscard]] DeviceCandidate CandidateOf(const DeviceRow& device, const JobView::OnType& on) const;
  [[nodiscard]] absl::Status Price(const DeviceCandidate& candidate, DeviceVerdict& verdict) const;
  void CheckEpoch();
  [[nodiscard]] MemoRow* RowOf(const StateTable& states);
  // Weighs, and keeps the verdict.
  [[nodiscard]] absl::Status Learn(const StateTable& states, uint32_t state, MemoRow* row, DeviceVerdict& verdict);

  std::shared_ptr<const InterferenceModel> model_;
  std::shared_ptr<const Policy> policy_;
  FitLimits limits_;
  uint64_t memo_limit_;
  bool exhaustive_;

  const JobView* view_ = nullptr;
  bool waits_ = false;           // it is a gang, and the policy says how fast it is on each GPU
  MemoRow* memo_row_ = nullptr;  // of the current job
  // By JobView::digest. Rows stay where they are when the map grows.
  IdMap<std::unique_ptr<MemoRow>> memo_;
  uint64_t memo_entries_ = 0;  // and what else takes as much room
  uint64_t memo_epoch_ = 0;
  uint64_t judged_ = 0;
  uint64_t weighed_ = 0;

  bool adds_pairs_;
  bool adds_loads_;
  uint64_t numbering_ = 0;
  PairTable pairs_;
  std::vector<PairState> pair_states_;  // by state id
  std::vector<OnContext> on_context_;   // by context

  std::vector<const Demand*> demands_;  // scratch
  std::vector<const TenantClass*> tenants_;
  std::vector<Promise> promises_;
  std::vector<Slowdown> before_;
  std::vector<Slowdown> after_;
};

}  // namespace horus

#endif  // HORUS_PLACE_SEARCH_SCORER_H_
