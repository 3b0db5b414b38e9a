// SPDX-License-Identifier: Apache-2.0
// Explanations: from a search's result to a decision that says who is slowed, what it costs, what is missing.
//
// Enters:  the ledger before the job is booked, the search's result.
// Leaves:  the explained parts of a Decision.
// Units:   see decision.h.
// Cost:    O(slots x tenants) when placed; a refusal looks at each device once more in the memo.
// Thread class: one thread at a time .
#ifndef HORUS_PLACE_EXPLAIN_H_
#define HORUS_PLACE_EXPLAIN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "place/decision.h"
#include "place/search/scorer.h"
#include "place/search/search.h"
#include "place/state/ledger.h"

namespace horus {

// The others on the devices of a placed job, each once, with the worst slowdown among its devices there.
[[nodiscard]] std::vector<TenantEffect> NeighboursOf(const Decision& decision);

class Explainer {
 public:
  explicit Explainer(Scorer& scorer) : scorer_(scorer), pricer_(scorer) {}

  // Effects, terms, own slowdown. The scorer's current job is `view`; the ledger does not hold it yet.
  [[nodiscard]] absl::Status Placed(const Ledger& ledger, const JobView& view, const SearchResult& result,
                                    Decision& decision);
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
};

}  // namespace horus

#endif  // HORUS_PLACE_EXPLAIN_H_
