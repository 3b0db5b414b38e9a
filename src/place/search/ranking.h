// SPDX-License-Identifier: Apache-2.0
// Rankings: for each class of jobs the device states that suit it best, brought up to date when the class comes again.
//
// Enters:  a device index, a scorer with the current job.
// Leaves:  states in ascending cost, complete below a cutoff.
// Units:   costs of Policy::ScoreDevice.
// Cost:    a new class looks at every state with devices, a known one at those that got devices since, unless the
//          sieve (sieve.h) looked at them for it; only states that come first are weighed. A list holds 64 to 256
//          states unless a search needs more.
// Thread class: one thread at a time.
#ifndef HORUS_PLACE_SEARCH_RANKING_H_
#define HORUS_PLACE_SEARCH_RANKING_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "base/id_map.h"
#include "place/search/device_index.h"
#include "place/search/scorer.h"
#include "place/search/sieve.h"

namespace horus {

struct RankedState {
  double cost = 0;  // or less, until it is weighed
  uint32_t state = 0;
  bool weighed = false;
  uint64_t digest = 0;  // of what the state was then: ids are used again
};

// The states of one class. Entries may be out of date (see IsCurrent); what is missing costs at least `cutoff`.
struct Ranking {
  std::vector<RankedState> states;  // a heap, the cheapest first
  double cutoff = std::numeric_limits<double>::infinity();
  size_t wanted = 0;        // states that a rebuild keeps
  uint64_t generation = 0;  // of the index
  uint64_t seen = 0;        // openings of the index
  static constexpr uint32_t kNoSlot = UINT32_MAX;
  uint32_t slot = kNoSlot;          // in the sieve, which looks at openings for it
  std::vector<RankedState> sieved;  // what came of that; costs -infinity where only weighing can tell
};

class Rankings {
 public:
  explicit Rankings(uint64_t most_bytes) : most_bytes_(most_bytes) {}

  // The ranking of the scorer's current class, up to date with the index. It stays valid until the next call.
  [[nodiscard]] absl::Status Find(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer, Ranking*& ranking);
  // Makes it reach further: after that the cutoff is above what it was, or infinite.
  [[nodiscard]] absl::Status Extend(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer, Ranking& ranking);

  // Takes out the cheapest state, weighed; not found where none is left that, with `floor` added, may cost `limit` or
  // less.
  [[nodiscard]] absl::Status Pop(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer, double limit,
                                 double floor, Ranking& ranking, RankedState& state, bool& found);
  // Puts back what Pop took out.
  void Push(Ranking& ranking, std::span<const RankedState> states);

  [[nodiscard]] static bool IsCurrent(const RankedState& entry, const DeviceIndex& index) {
    return index.digest(entry.state) == entry.digest;
  }
  [[nodiscard]] uint64_t bytes_held() const {
    return of_class_.bytes_held() + of_class_.size() * sizeof(Ranking) + entries_ * kEntryBytes +
           (opened_.capacity() + listed_.capacity()) * sizeof(Scorer::StateSummary) +
           at_.capacity() * sizeof(uint32_t) + left_.capacity() * sizeof(Scorer::Sifted) + sieve_.bytes_held() +
           scratch_.capacity() * sizeof(RankedState);
  }

 private:
  static constexpr uint64_t kEntryBytes = sizeof(RankedState);
  [[nodiscard]] absl::Status Rebuild(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer, Ranking& ranking);
  [[nodiscard]] absl::Status CatchUp(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer, Ranking& ranking);
  [[nodiscard]] static absl::Status Weigh(const Ledger& ledger, Scorer& scorer, RankedState& entry, bool& fits);
  void Keep(double cutoff, Ranking& ranking);

  // Describes what the index has opened since; once for all classes.
  [[nodiscard]] absl::Status Describe(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer);
  void List(const Scorer::StateSummary& summary);
  // For the classes in the sieve.
  void SiftForAll(const Scorer& scorer, const Scorer::StateSummary& summary);
  // A slot for a class that came again, if there is one.
  void Admit(Scorer& scorer, Ranking& ranking);
  // The class looks for itself again, from `seen` on.
  void Dismiss(uint32_t slot, uint64_t seen) noexcept;
  void DismissAll(uint64_t seen);
  void ForgetSieved(Ranking& ranking) noexcept;
  [[nodiscard]] absl::Status Relist(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer);
  void CutBack(size_t wanted, double& cutoff);
  // Appends to scratch_ those of `summaries` that may cost less than `cutoff`.
  [[nodiscard]] absl::Status Sift(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer,
                                  std::span<const Scorer::StateSummary> summaries, double cutoff);

  uint64_t most_bytes_;  // of rankings: beyond, all are forgotten
  uint64_t entries_ = 0;
  uint64_t epoch_ = 0;                        // of the model
  IdMap<std::unique_ptr<Ranking>> of_class_;  // by JobView::digest
  static constexpr uint32_t kNowhere = UINT32_MAX;
  uint64_t generation_ = 0;                   // of the index
  uint64_t numbering_ = 0;                    // Scorer::numbering of the descriptions
  std::vector<Scorer::StateSummary> opened_;  // of the index's openings from opened_begin_ on
  uint64_t opened_begin_ = 0;
  std::vector<Scorer::StateSummary> listed_;  // of every state with devices, and of some that have none any more
  std::vector<uint32_t> at_;                  // where it is listed, by state
  Sieve sieve_;
  struct Seat {
    Ranking* ranking = nullptr;  // null = free
    uint64_t last_came = 0;      // openings then
  };
  std::vector<Seat> seats_;           // by slot of the sieve
  std::vector<Scorer::Sifted> left_;  // scratch
  std::vector<Sieve::Hit> hits_;
  std::vector<RankedState> scratch_;
};

}  // namespace horus

#endif  // HORUS_PLACE_SEARCH_RANKING_H_
