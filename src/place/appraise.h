// SPDX-License-Identifier: Apache-2.0
// Appraisal and explanation: what a place does to everybody on its devices, and what a decision says of that.
//
// Enters:  the ledger before the job is booked, the search's result.
// Leaves:  the explained parts of a Decision.
// Cost:    O(slots x tenants) when placed; a refusal looks at each device once more in the memo.
// Thread class: one thread at a time.
#pragma once

#include "place/decision.h"
#include "place/search/search.h"

namespace horus {

// ---- Appraisal: what a given place would do, whoever chose it: slowdowns, useful work, the rule that it breaks.
// Cost: two model queries a device.

struct Appraisal {
  Reason reason = Reason::kNone;  // the first rule that the place breaks
  Slowdown own{1, 1};             // the worst of the job's GPUs, communication left out
  double communication = 0;       // of a gang: time of its all-reduce / step time alone
  double work = 0;                // gained by the job, each GPU of a gang as its slowest, less what neighbours lose
  double lost = 0;                // by the neighbours
  uint32_t tenants = 0;           // of the devices, the job's own slots included
  uint32_t beyond_bound = 0;      // of them predicted (upper) beyond their bounds, and by this job
  uint32_t used_devices = 0;      // that had tenants before
};

// Gangs of which a newcomer slows some GPUs: all GPUs of each wait for the slowest.
class GangsWaiting {
 public:
  void Clear() { gangs_.clear(); }
  // `lost`: work of one GPU there.
  void Add(JobId job, int32_t gpus, double lost);
  [[nodiscard]] double lost() const;   // by all GPUs of the gangs
  [[nodiscard]] int32_t gpus() const;  // that wait elsewhere

 private:
  struct Gang {
    JobId job = 0;
    int32_t gpus = 0;
    int32_t here = 0;  // of them those that were added
    double lost = 0;   // most
  };
  absl::InlinedVector<Gang, 4> gangs_;
};

// What residents of one device suffer now.
struct DeviceSlowdowns {
  std::vector<JobId> jobs;
  std::vector<Slowdown> slowdowns;
};

class Appraiser {
 public:
  Appraiser(std::shared_ptr<const InterferenceModel> model, const FitLimits& limits, double rack_oversubscription)
      : model_(std::move(model)), limits_(limits), rack_oversubscription_(rack_oversubscription) {}

  // Errors as Cluster::BrokenRule, and what the model returns. A type that the job does not list is taken as the first
  // that it does.
  [[nodiscard]] absl::StatusOr<Appraisal> Of(const Cluster& cluster, const JobSpec& job,
                                             std::span<const Slot> slots) const;
  [[nodiscard]] absl::StatusOr<DeviceSlowdowns> Now(const Cluster& cluster, NodeId node, int32_t device) const;

 private:
  // `slowest`: the least own work of the GPUs so far; `waiting`: the gangs that have one of them.
  [[nodiscard]] absl::Status OfDevice(const Cluster& cluster, const JobSpec& job, const NodeRow& node, int32_t device,
                                      double& slowest, GangsWaiting& waiting, Appraisal& appraisal) const;

  std::shared_ptr<const InterferenceModel> model_;
  FitLimits limits_;
  double rack_oversubscription_;
};

// The others on the devices of a placed job, each once, with the worst slowdown among its devices there.
[[nodiscard]] TenantEffects NeighboursOf(const Decision& decision);

class Explainer {
 public:
  explicit Explainer(Scorer& scorer) : scorer_(scorer), pricer_(scorer) {}

  // Effects, terms, own slowdown. The scorer's current job is `view`; the ledger does not hold it yet.
  [[nodiscard]] absl::Status Placed(const Ledger& ledger, const JobView& view, const SearchResult& result,
                                    Decision& decision);
  // Of a gang that was placed, by a policy that maximises work: whether it gains enough for all whom it slows. They
  // wait on every GPU for the slowest, which one GPU's price cannot know.
  [[nodiscard]] bool GangPays(const JobView& view, const SearchResult& result, const Decision& decision) const;
  // Reason and nearest miss.
  [[nodiscard]] absl::Status Refused(const Ledger& ledger, const JobView& view, std::span<const uint32_t> nodes,
                                     const SearchResult& result, Decision& decision);

 private:
  [[nodiscard]] absl::Status AddEffects(const Ledger& ledger, const JobView& view, const PlacedSlot& slot,
                                        Decision& decision);
  [[nodiscard]] absl::Status PriceNode(const Ledger& ledger, const JobView& view, const Placement& placement,
                                       PricedPlace& priced);
  [[nodiscard]] absl::Status PriceDevices(const Ledger& ledger, const JobView& view, const Placement& placement,
                                          PricedPlace& priced);
  [[nodiscard]] absl::Status Price(const Ledger& ledger, const JobView& view, const Placement& placement,
                                   PricedPlace& priced);

  Scorer& scorer_;
  NodePricer pricer_;
  std::vector<const Demand*> demands_;  // scratch, as the next
  std::vector<float> calibrated_;
  CostTerms terms_;
  GangsWaiting waiting_;  // for the decision that Placed explained last
  double others_lost_ = 0;
};

}  // namespace horus
