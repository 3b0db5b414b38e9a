// SPDX-License-Identifier: Apache-2.0
// Engine: what a placer plans with — ledger, scorer, search — for the modes of this room.
//
// Enters:  a placer; the cluster it is to follow, or a part of it; jobs.
// Leaves:  the placer's own ledger to book on and take back, places and decisions found on it.
// Units:   as placer.h.
// Cost:    none of its own; whatever is booked is taken back by the placer's next Follow.
// Thread class: one thread at a time, with the placer.
#ifndef HORUS_PLACE_ENGINE_H_
#define HORUS_PLACE_ENGINE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/id_map.h"
#include "place/placer.h"
#include "place/search/scorer.h"
#include "place/search/search.h"
#include "place/state/ledger.h"

namespace horus {

class Engine {
 public:
  explicit Engine(Placer& placer);  // which must outlive it

  // The ledger as the cluster is. UNIMPLEMENTED: the policy decides rounds (Policy::round). NOT_FOUND: a node of the
  // subset, which is the only one considered from then on.
  [[nodiscard]] absl::Status Start(const Cluster& cluster, std::optional<std::span<const NodeId>> subset = {});

  // Checks the jobs as MakePlan does, those of `gone` not counting as resident, and gives their planning order.
  [[nodiscard]] absl::StatusOr<std::vector<uint32_t>> Order(const Cluster& cluster, std::span<const JobSpec> jobs,
                                                            const IdMap<bool>* gone = nullptr) const;
  // Decides them in that order on the ledger as it is, and books them; fills `plan` as MakePlan does.
  [[nodiscard]] absl::Status PlanJobs(std::span<const JobSpec> jobs, std::span<const uint32_t> order,
                                      const ProgressFn& progress, Plan& plan);

  // One job on the ledger as it is, booking nothing; found() has the place.
  [[nodiscard]] absl::StatusOr<Decision> Decide(const JobView& view);
  [[nodiscard]] const SearchResult& found() const;
  // The same without a word about refusals; `nodes`: rows, ascending id, null = all that are considered.
  [[nodiscard]] absl::Status Find(const JobView& view, const std::vector<uint32_t>* nodes, SearchResult& found);
  // For long work without them: CANCELLED where the placer's GoOnFn says so.
  [[nodiscard]] absl::Status GoOn() const;
  // The policy's price of the placement's slots; of jobs that are not priced by node.
  [[nodiscard]] absl::Status Price(const JobView& view, Placement& placement);
  // The decision that puts the job where `found` says; the ledger does not hold it.
  [[nodiscard]] absl::StatusOr<Decision> Explain(const JobView& view, const SearchResult& found);

  // Appends those nodes to what the plan saw, once each.
  void AddSeen(std::span<const uint32_t> node_rows, Plan& plan) const;

  [[nodiscard]] Ledger& ledger();
  [[nodiscard]] Scorer& scorer();
  [[nodiscard]] const Policy& policy() const;
  [[nodiscard]] std::span<const uint32_t> nodes() const;  // rows that are considered

 private:
  Placer::Impl& my_;
};

}  // namespace horus

#endif  // HORUS_PLACE_ENGINE_H_
