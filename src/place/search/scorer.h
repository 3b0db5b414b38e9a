// SPDX-License-Identifier: Apache-2.0
// Scorer: judges a device for a job by fit, slowdowns and policy, and memoises the verdicts.
//
// Enters:  a job, a device state.
// Leaves:  the first constraint that fails, or the policy's cost; on demand the slowdowns behind it.
// Cost:    a memo hit is one array access. A miss calls the policy once and the model twice; a model whose slowdowns
//          add up only for new pairs of tenants. Sifting takes 10 to 20 ns a state.
// Thread class: one thread at a time.
#pragma once

#include <array>

#include "place/search/pair_table.h"
#include "place/search/policy.h"
#include "place/state/fit.h"

namespace horus {

// A job as devices see it: one tenant class per type that it allows.
struct JobView {
  struct OnType {
    GpuTypeId type;  // invalid = any
    TenantClass tenant;
    double relative_speed = 1;
    // Speed alone on a device with that share of a GPU, over that on the fastest whole device that the job lists.
    [[nodiscard]] double SpeedOn(float compute_share) const;
  };
  const JobSpec* job = nullptr;
  std::vector<OnType> types;  // ascending
  uint64_t digest = 0;        // of `types`: jobs with equal digests are judged alike on any device
  uint64_t request = 0;  // digest of all that decides where the job fits: `digest`, host requests, selector, shape,
                         // groups, and its owner if it shares with that owner alone (RequestOn)
  uint64_t owner = 0;    // OwnerMark
  [[nodiscard]] const OnType* On(GpuTypeId type) const;  // null = the job states no demand on it
  [[nodiscard]] double WorkOn(GpuTypeId type) const;     // of a GPU of that type alone; 1 without a demand on it
};
[[nodiscard]] DeviceContext ContextOf(const DeviceRow& device);
// `probe_unknown`: the job runs alone where its demand is unknown (IsUnknown). `used`: its memory is used again.
[[nodiscard]] JobView ViewJob(const JobSpec& job, bool probe_unknown = false, JobView used = {});

struct DeviceVerdict {
  double cost = 0;  // of Policy::ScoreDevice; of a refusal: how far the device was from fitting (fit.h)
  Reason reason = Reason::kNone;
  double own_work = 0;  // DeviceScore::own_work for a GPU of a gang; undefined for other jobs and refusals
};

// A verdict and its grounds. The candidate's spans point into the scorer; they are valid until its next call.
struct Evaluation {
  DeviceVerdict verdict;
  Shortfall shortfall;
  DeviceCandidate candidate;  // empty where the job states no demand on the type
};

class Scorer {
 public:
  Scorer(std::shared_ptr<const InterferenceModel> model, std::shared_ptr<const Policy> policy, const FitLimits& limits,
         uint64_t cache_bytes, bool exhaustive);  // cache_bytes: half for verdicts, half for pairs

  // Call it before the first verdict on `view`, which must outlive the verdicts.
  void SetJob(const JobView& view);

  // The verdict on devices in the state.
  [[nodiscard]] absl::Status Judge(const StateTable& states, uint32_t state, DeviceVerdict& verdict);
  // The same without the memo.
  [[nodiscard]] absl::Status Weigh(const StateTable& states, uint32_t state, DeviceVerdict& verdict);
  // What Sift needs of a state. Not sifted are states with many tenants, and all states if the model adds neither pairs
  // nor loads.
  struct StateSummary {
    uint64_t digest = 0;  // of the state when it was described; 0 = no state
    uint32_t state = 0;
    uint16_t context = 0;
    uint16_t residents = kNotSifted;
    int32_t mem_free_mib = 0;  // not requested by residents; the headroom is not subtracted
    float per_mem_mib = 0;     // 1 / the device's memory
    float crowding = 0;        // what tells states apart that slow a newcomer much or little: the residents' load, as
                               // a slowdown; if the model adds pairs, how many they are
    bool has_loads = false;    // which of the two below
    struct Pairs {
      std::array<uint32_t, 3> guests = {};  // filled up with PairTable::kNobody
      std::array<float, 3> before = {};     // slowdown of each, estimate
      std::array<float, 3> weight = {};     // of each; 0 = kNobody
      std::array<uint32_t, 3> room = {};    // most that may be added to the upper excess of each
    };
    struct Loads {  // sums over the residents
      int64_t estimate;
      int64_t upper;
      int64_t room;  // the sum above which a resident exceeds its slowdown bound
      double weight;
    };
    union {
      Pairs pairs = {};  // if the model adds pairs
      Loads loads;       // if it adds loads
    };
    static constexpr uint16_t kNotSifted = UINT16_MAX;
  };
  [[nodiscard]] absl::Status Describe(const StateTable& states, uint32_t state, StateSummary& summary);
  struct Sifted {
    uint32_t at = 0;   // position in `summaries`
    double floor = 0;  // lower bound on the cost; -infinity = unknown until weighed or met
    bool met = true;   // false = the floor may rise when the job meets residents (MeetNext)
  };
  // Appends to `left` all states that may take the current job at a cost below `cutoff`. Much cheaper than to weigh
  // them; most states are passed over.
  void Sift(std::span<const StateSummary> summaries, double cutoff, std::vector<Sifted>& left);
  // Asks the model at once for one pair in each of these states: of the job and the first resident that it did not
  // meet. Removes states that refuse it.
  [[nodiscard]] absl::Status MeetNext(const StateTable& states, std::vector<const StateSummary*>& unmet);
  // Bounds on what states of one context have.
  struct Region {
    uint16_t context = 0;  // of its states; undefined where there are none
    bool sifted = true;    // false = holds a state that is not sifted
    bool idle = false;     // holds a state without residents
    bool taken = false;    // holds one with residents
    int32_t most_free_mib = 0;
    float least_free = std::numeric_limits<float>::infinity();  // share of the device's memory
    float most_per_mib = 0;
    // If the model adds loads, of the sums over residents:
    int64_t least_load = std::numeric_limits<int64_t>::max();  // estimate
    int64_t most_load = 0;
    int64_t least_upper = std::numeric_limits<int64_t>::max();
    int64_t most_room = 0;
    double least_weight = std::numeric_limits<double>::infinity();
    void Cover(const StateSummary& state);
    void Cover(const Region& other);
  };
  // Lower bound on what any state there costs the current job; infinity = none takes it.
  [[nodiscard]] double LeastCostIn(const Region& region);
  // The current job in one context (PairTable).
  struct OnContext {
    bool asked = false;
    bool known = true;                    // false = the model returns an error, which weighing reports
    const JobView::OnType* on = nullptr;  // null = the type is not allowed
    PairTable::Row* row = nullptr;        // if the model adds pairs
    double work_alone = 1;
    bool exclusive = false;
    int64_t mem_mib = 0;      // must be free, headroom included
    uint64_t most_upper = 0;  // largest upper excess within the job's own slowdown bound
    Load load;                // if the model adds loads
    double most_load = 0;     // largest sum of loads within the job's own slowdown bound
  };
  [[nodiscard]] OnContext& OnContextOf(uint32_t context) {
    if (context < on_context_.size() && on_context_[context].asked) return on_context_[context];
    return Enter(context);
  }
  // Whether Residents keeps what the model said.
  [[nodiscard]] bool keeps_residents() const { return adds_pairs_; }
  // Whether to weigh costs hardly more than to find what was weighed among many states.
  [[nodiscard]] bool weighs_cheaply() const { return adds_pairs_ || adds_loads_; }
  // Whether Sift says more of a state than that it is there.
  [[nodiscard]] bool bounds_states() const { return weighs_cheaply() && policy_->least_cost() != nullptr; }
  // Number of contexts so far.
  [[nodiscard]] size_t contexts() const { return pairs_.contexts(); }
  // Whether states are sifted by pairs (ranking.h).
  [[nodiscard]] bool sifts_pairs() const { return adds_pairs_ && policy_->least_cost() != nullptr; }
  // Only the reason of the verdict, without the policy's cost. Asks the model only if a slowdown is bounded.
  [[nodiscard]] absl::Status Fit(const StateTable& states, uint32_t state, Reason& reason);
  // The verdict without the memo, with its grounds.
  [[nodiscard]] absl::StatusOr<Evaluation> Evaluate(const StateTable& states, uint32_t state);

  // The slowdowns of those who are on a device, in the order of DeviceRow::tenants. If the model adds pairs, they are
  // kept by state; needs no current job.
  [[nodiscard]] absl::Status Residents(const StateTable& states, uint32_t state, std::vector<Slowdown>& slowdowns);

  // Changes when summaries by Describe become invalid.
  [[nodiscard]] uint64_t numbering() const { return numbering_; }
  // Changes when rows of pairs become invalid (OnContext).
  [[nodiscard]] uint64_t rows_numbering() const { return rows_numbering_; }
  [[nodiscard]] bool exhaustive() const { return exhaustive_; }
  [[nodiscard]] uint64_t class_digest() const { return view_->digest; }
  [[nodiscard]] const InterferenceModel& model() const { return *model_; }
  [[nodiscard]] const Policy& policy() const { return *policy_; }
  [[nodiscard]] const std::shared_ptr<const InterferenceModel>& shared_model() const { return model_; }
  [[nodiscard]] const std::shared_ptr<const Policy>& shared_policy() const { return policy_; }
  [[nodiscard]] const FitLimits& limits() const { return limits_; }
  [[nodiscard]] uint64_t bytes_held() const;
  // Number of calls of Judge, and of those that the memo did not answer.
  [[nodiscard]] uint64_t judged() const { return judged_; }
  [[nodiscard]] uint64_t weighed() const { return weighed_; }

 private:
  // 16 bytes, because there is one for every job class and state.
  struct Entry {
    static constexpr uint64_t kReasonMask = 0xFF;
    static constexpr uint64_t kUnset = 0xFF;
    uint64_t tag = kUnset;  // upper 56 bits of the state's digest (ids are reused), then the reason
    double cost = 0;
    [[nodiscard]] bool Holds(uint64_t digest) const {
      return ((tag ^ digest) & ~kReasonMask) == 0 && (tag & kReasonMask) != kUnset;
    }
    [[nodiscard]] Reason reason() const { return static_cast<Reason>(tag & kReasonMask); }
  };
  struct MemoRow {  // of a job class, by state id
    std::vector<Entry> entries;
    // By state id, as far as gangs of the class needed; NaN = not known.
    std::vector<double> own_work;
  };
  // What the scorer needs of a state to add up pairs. It holds no ids of a state table.
  struct PairState {
    static constexpr size_t kMost = 4;  // residents; the model predicts more of them together
    uint64_t digest = 0;                // of the state; 0 = nothing known
    uint16_t context = 0;
    uint16_t residents = 0;
    std::array<uint32_t, kMost> guests = {};
    std::array<Promise, kMost> promises = {};
    std::array<float, kMost> weights = {};
    std::array<PairExcess, kMost> before = {};  // of each beside the others
    std::array<uint32_t, kMost> room = {};      // most that may be added to the upper excess of each
  };
  [[nodiscard]] absl::Status Predict(const DeviceContext& device, size_t count, std::vector<Slowdown>& out);
  // Fills demands_, promises_, before_ and after_ for the newcomer `on` beside the tenants of a device.
  [[nodiscard]] absl::Status PredictCandidate(const StateTable& states, uint32_t state, const JobView::OnType& on);
  [[nodiscard]] OnContext& Enter(uint32_t context);
  void DescribeLoads(const StateTable& states, const DeviceRow& device, StateSummary& summary);
  // What is known of the current job in a state that is sifted by pairs.
  struct Glance {
    bool met = true;  // all pairs are known
    bool fits = true;
    double floor = 0;  // lower bound on the cost
  };
  [[nodiscard]] static Glance GlanceAt(const LeastCost& least, const OnContext& here, const StateSummary& summary);
  void SiftPairs(const LeastCost& least, std::span<const StateSummary> summaries, double cutoff,
                 std::vector<Sifted>& left);
  // Asks the model for these pairs of the current job at once.
  [[nodiscard]] absl::Status MeetAll(uint32_t context, std::vector<PairTable::Guest>& guests);
  void Prefetch(const StateSummary& summary) const;
  void SiftLoads(const LeastCost& least, std::span<const StateSummary> summaries, double cutoff,
                 std::vector<Sifted>& left);
  // Of costs: above the rounding of floats in the slowdowns of a few tenants, far below differences between costs.
  static constexpr double kCostMargin = 1e-6;
  [[nodiscard]] static double Floor(const LeastCost& least, const OnContext& here, const StateSummary& summary,
                                    double speed, double lost) {
    const auto left = static_cast<double>(summary.mem_free_mib - here.on->tenant.memory.request_mib) *
                      static_cast<double>(summary.per_mem_mib);
    return least.own_work * speed + least.lost_work * lost / static_cast<double>(here.on->tenant.weight) +
           least.memory_left * left + (summary.residents == 0 ? least.idle : 0) - kCostMargin;
  }
  // Null = the model must predict the tenants together: it does not add pairs, or there are too many tenants.
  [[nodiscard]] absl::Status PairStateOf(const StateTable& states, uint32_t state, const PairState*& pair_state);
  [[nodiscard]] absl::Status AddPairs(const StateTable& states, const TenantIds& tenants, const PairState& pair_state,
                                      OnContext& here);
  [[nodiscard]] absl::Status Meet(const StateTable& states, const DeviceRow& device, PairState& pair_state);
  [[nodiscard]] DeviceCandidate CandidateOf(const DeviceRow& device, const JobView::OnType& on) const;
  [[nodiscard]] absl::Status Price(const DeviceCandidate& candidate, DeviceVerdict& verdict) const;
  // `candidate` may be null.
  [[nodiscard]] absl::Status Weigh(const StateTable& states, uint32_t state, DeviceVerdict& verdict,
                                   Shortfall& shortfall, DeviceCandidate* candidate);
  void CheckEpoch();
  [[nodiscard]] MemoRow* RowOf(const StateTable& states);
  // Weighs the state and keeps the verdict.
  [[nodiscard]] absl::Status Learn(const StateTable& states, uint32_t state, MemoRow* row, DeviceVerdict& verdict);

  std::shared_ptr<const InterferenceModel> model_;
  std::shared_ptr<const Policy> policy_;
  FitLimits limits_;
  uint64_t memo_limit_;
  bool exhaustive_;

  const JobView* view_ = nullptr;
  bool waits_ = false;           // the job is a gang, and the policy sets own_work
  MemoRow* memo_row_ = nullptr;  // of the current job
  // By JobView::digest. Rows stay where they are when the map grows.
  IdMap<std::unique_ptr<MemoRow>> memo_;
  uint64_t memo_entries_ = 0;  // own_work counts in units of an entry
  uint64_t memo_epoch_ = 0;
  uint64_t judged_ = 0;
  uint64_t weighed_ = 0;

  bool adds_pairs_;
  bool adds_loads_;
  uint64_t numbering_ = 0;
  uint64_t rows_numbering_ = 0;
  PairTable pairs_;
  std::vector<PairState> pair_states_;  // by state id
  std::vector<OnContext> on_context_;   // by context

  std::vector<PairTable::Guest> unmet_;  // scratch, as are the rest
  std::vector<const Demand*> demands_;
  std::vector<const TenantClass*> tenants_;
  std::vector<Promise> promises_;
  std::vector<Slowdown> before_;
  std::vector<Slowdown> after_;
};

}  // namespace horus
