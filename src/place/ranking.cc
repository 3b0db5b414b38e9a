// SPDX-License-Identifier: Apache-2.0
// Builds, extends and refreshes the lists of best states.
#include "place/ranking.h"

#include <algorithm>

#include "base/status.h"

namespace horus {
namespace {

// A class that comes once is not worth a long list; one that exhausts its list gets one so many times as long.
constexpr size_t kFirstWanted = 64;
constexpr size_t kGrowth = 8;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A class without entries: a ranking and its cell in the map at the mean load.
constexpr uint64_t kClassBytes = sizeof(Ranking) + 64;

}  // namespace

absl::Status Rankings::Describe(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer) {
  if (opened_generation_ != index.generation() || numbering_ != scorer.numbering() ||
      index.opened_begin() > opened_begin_ + opened_.size()) {
    opened_.clear();
    opened_begin_ = index.opened_begin();
    opened_generation_ = index.generation();
    numbering_ = scorer.numbering();
  }
  opened_.erase(opened_.begin(), opened_.begin() + static_cast<ptrdiff_t>(index.opened_begin() - opened_begin_));
  opened_begin_ = index.opened_begin();
  for (const DeviceIndex::Opening& opening : index.opened_since(opened_begin_ + opened_.size())) {
    Scorer::Brief brief{.digest = opening.digest, .state = opening.state, .residents = 0};
    // What is something else by now was opened again as such.
    if (ledger.states().digest(opening.state) == opening.digest) {
      HORUS_RETURN_IF_ERROR(scorer.Describe(ledger.states(), opening.state, brief));
    }
    opened_.push_back(brief);
  }
  return absl::OkStatus();
}

// Leaves in scratch_ those of `briefs` that cost less than `cutoff`.
absl::Status Rankings::Weigh(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer,
                             std::span<const Scorer::Brief> briefs, double cutoff) {
  scratch_.clear();
  left_.clear();
  scorer.Sift(briefs, cutoff, left_);
  for (const uint32_t at : left_) {
    const RankedState entry{0, briefs[at].state, briefs[at].digest};
    if (!IsCurrent(entry, ledger, index)) continue;
    DeviceVerdict verdict;
    HORUS_RETURN_IF_ERROR(scorer.Weigh(ledger.states(), entry.state, verdict));
    if (verdict.reason == Reason::kNone && verdict.cost < cutoff) {
      scratch_.push_back({verdict.cost, entry.state, entry.digest});
    }
  }
  return absl::OkStatus();
}

absl::Status Rankings::Rebuild(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer, Ranking& ranking) {
  ranking.generation = 0;  // until it is whole
  all_.clear();
  for (uint32_t state = 0; state < index.state_limit(); ++state) {
    if (!index.has_devices(state)) continue;
    HORUS_RETURN_IF_ERROR(scorer.Describe(ledger.states(), state, all_.emplace_back()));
  }
  HORUS_RETURN_IF_ERROR(Weigh(ledger, index, scorer, all_, kInfinity));
  ranking.cutoff = std::numeric_limits<double>::infinity();
  if (scratch_.size() > ranking.wanted) {
    const auto last = scratch_.begin() + static_cast<ptrdiff_t>(ranking.wanted);
    std::nth_element(scratch_.begin(), last, scratch_.end());
    ranking.cutoff = last->cost;
    scratch_.erase(last, scratch_.end());
  }
  std::sort(scratch_.begin(), scratch_.end());
  entries_ -= ranking.states.size();
  ranking.states.clear();
  ranking.states.insert(scratch_.begin(), scratch_.end());
  entries_ += ranking.states.size();
  ranking.generation = index.generation();
  ranking.seen = index.opened_end();
  return absl::OkStatus();
}

absl::Status Rankings::CatchUp(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer, Ranking& ranking) {
  const size_t before = ranking.states.size();
  const auto opened = std::span<const Scorer::Brief>(opened_).subspan(ranking.seen - opened_begin_);
  HORUS_RETURN_IF_ERROR(Weigh(ledger, index, scorer, opened, ranking.cutoff));
  ranking.states.insert(scratch_.begin(), scratch_.end());
  ranking.seen = index.opened_end();
  entries_ += ranking.states.size() - before;
  if (ranking.states.size() > 2 * ranking.wanted) Trim(ledger, index, ranking);
  return absl::OkStatus();
}

// Drops what is out of date, then what is beyond the best `wanted`.
void Rankings::Trim(const Ledger& ledger, const DeviceIndex& index, Ranking& ranking) {
  entries_ -= ranking.states.size();
  scratch_.clear();
  for (const RankedState& entry : ranking.states) {
    if (!IsCurrent(entry, ledger, index)) continue;
    if (scratch_.size() == ranking.wanted) {
      ranking.cutoff = entry.cost;
      break;
    }
    scratch_.push_back(entry);
  }
  ranking.states.clear();
  ranking.states.insert(scratch_.begin(), scratch_.end());
  entries_ += ranking.states.size();
}

absl::Status Rankings::Find(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer, Ranking*& ranking) {
  const uint64_t bytes = of_class_.size() * kClassBytes + entries_ * kEntryBytes;
  if (epoch_ != scorer.model().epoch() || bytes > most_bytes_) {
    of_class_.clear();
    entries_ = 0;
    epoch_ = scorer.model().epoch();
  }
  HORUS_RETURN_IF_ERROR(Describe(ledger, index, scorer));
  std::unique_ptr<Ranking>* known = of_class_.Find(scorer.class_digest());
  if (known == nullptr) known = &of_class_.Insert(scorer.class_digest(), std::make_unique<Ranking>());
  ranking = known->get();
  if (ranking->wanted == 0 || ranking->generation != index.generation() || ranking->seen < index.opened_begin()) {
    ranking->wanted = std::max(ranking->wanted, kFirstWanted);
    return Rebuild(ledger, index, scorer, *ranking);
  }
  const absl::Status status = CatchUp(ledger, index, scorer, *ranking);
  if (!status.ok()) ranking->generation = 0;
  return status;
}

absl::Status Rankings::Extend(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer, Ranking& ranking) {
  ranking.wanted *= kGrowth;
  return Rebuild(ledger, index, scorer, ranking);
}

}  // namespace horus
