// SPDX-License-Identifier: Apache-2.0
// Rankings: for each class of jobs the device states that suit it best, brought up to date when the class comes again.
//
// Enters:  a device index, a scorer with the current job.
// Leaves:  states in ascending cost, complete below a cutoff.
// Units:   costs of Policy::ScoreDevice.
// Cost:    a new class weighs every state with devices, a known one those that got devices since; a list holds a few
//          thousand states at most unless a search needs more.
// Thread class: one thread at a time.
#ifndef HORUS_PLACE_RANKING_H_
#define HORUS_PLACE_RANKING_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "base/id_map.h"
#include "place/device_index.h"
#include "place/scorer.h"

namespace horus {

struct RankedState {
  double cost = 0;
  uint32_t state = 0;
  uint64_t digest = 0;  // of what the state was then: ids are used again
  friend bool operator<(const RankedState& a, const RankedState& b) {
    if (a.cost != b.cost) return a.cost < b.cost;
    return a.state != b.state ? a.state < b.state : a.digest < b.digest;
  }
};

// The states of one class; a std::set, because absl's trees leak after a bad_alloc. Entries may be out of date (see
// IsCurrent); what is missing costs at least `cutoff`.
struct Ranking {
  std::set<RankedState> states;
  double cutoff = std::numeric_limits<double>::infinity();
  size_t wanted = 0;        // states that a rebuild keeps
  uint64_t generation = 0;  // of the index
  uint64_t seen = 0;        // openings of the index
};

class Rankings {
 public:
  explicit Rankings(uint64_t most_bytes) : most_bytes_(most_bytes) {}

  // The ranking of the scorer's current class, up to date with the index. It stays valid until the next call.
  [[nodiscard]] absl::Status Find(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer, Ranking*& ranking);
  // Makes it reach further: after that the cutoff is above what it was, or infinite.
  [[nodiscard]] absl::Status Extend(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer, Ranking& ranking);

  using Entry = std::set<RankedState>::iterator;
  // Removes an entry that is not current; returns the next.
  Entry Drop(Ranking& ranking, Entry entry) {
    --entries_;
    return ranking.states.erase(entry);
  }

  [[nodiscard]] static bool IsCurrent(const RankedState& entry, const Ledger& ledger, const DeviceIndex& index) {
    return index.has_devices(entry.state) && ledger.states().digest(entry.state) == entry.digest;
  }
  [[nodiscard]] uint64_t bytes_held() const {
    return of_class_.bytes_held() + of_class_.size() * sizeof(Ranking) + entries_ * kEntryBytes +
           (opened_.capacity() + all_.capacity()) * sizeof(Scorer::Brief) + left_.capacity() * sizeof(uint32_t) +
           scratch_.capacity() * sizeof(RankedState);
  }

 private:
  static constexpr uint64_t kEntryBytes = 64;  // 24 and a tree node around them
  [[nodiscard]] absl::Status Rebuild(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer, Ranking& ranking);
  [[nodiscard]] absl::Status CatchUp(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer, Ranking& ranking);

  void Trim(const Ledger& ledger, const DeviceIndex& index, Ranking& ranking);

  // Describes what the index has opened since; once for all classes.
  [[nodiscard]] absl::Status Describe(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer);
  [[nodiscard]] absl::Status Weigh(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer,
                                   std::span<const Scorer::Brief> briefs, double cutoff);

  uint64_t most_bytes_;  // of rankings: beyond, all are forgotten
  uint64_t entries_ = 0;
  uint64_t epoch_ = 0;                        // of the model
  IdMap<std::unique_ptr<Ranking>> of_class_;  // by JobView::digest
  std::vector<Scorer::Brief> opened_;         // of the index's openings from opened_begin() on
  uint64_t opened_begin_ = 0;
  uint64_t opened_generation_ = 0;
  uint64_t numbering_ = 0;          // Scorer::numbering of opened_
  std::vector<Scorer::Brief> all_;  // scratch
  std::vector<uint32_t> left_;
  std::vector<RankedState> scratch_;
};

}  // namespace horus

#endif  // HORUS_PLACE_RANKING_H_
