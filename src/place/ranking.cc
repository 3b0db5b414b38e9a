// SPDX-License-Identifier: Apache-2.0
// Builds, extends and refreshes the lists of best states.
#include "place/ranking.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/status.h"

namespace horus {
namespace {

// A class that comes once is not worth a long list; one that exhausts its list gets one so many times as long.
constexpr size_t kFirstWanted = 64;
constexpr size_t kGrowth = 8;

// A list may grow to so many times what is wanted before it is cut back.
constexpr size_t kMostOverWanted = 4;

bool Cheaper(const RankedState& a, const RankedState& b) {
  return std::tie(a.cost, a.state) < std::tie(b.cost, b.state);
}
bool Dearer(const RankedState& a, const RankedState& b) { return Cheaper(b, a); }

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
    if (numbering_ != scorer.numbering()) of_state_.clear();
    numbering_ = scorer.numbering();
  }
  opened_.erase(opened_.begin(), opened_.begin() + static_cast<ptrdiff_t>(index.opened_begin() - opened_begin_));
  opened_begin_ = index.opened_begin();
  for (const DeviceIndex::Opening& opening : index.opened_since(opened_begin_ + opened_.size())) {
    Scorer::Brief brief;  // of nothing
    // What is something else by now was opened again as such.
    if (ledger.states().digest(opening.state) == opening.digest) {
      HORUS_RETURN_IF_ERROR(scorer.Describe(ledger.states(), opening.state, brief));
      if (opening.state < of_state_.size()) of_state_[opening.state] = brief;
    }
    opened_.push_back(brief);
  }
  return absl::OkStatus();
}

absl::Status Rankings::Sift(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer,
                            std::span<const Scorer::Brief> briefs, double cutoff) {
  scratch_.clear();
  left_.clear();
  scorer.Sift(briefs, cutoff, left_);
  for (const Scorer::Sifted& one : left_) {
    RankedState entry{one.floor, briefs[one.at].state, false, briefs[one.at].digest};
    if (!IsCurrent(entry, index)) continue;
    if (!std::isinf(one.floor)) {
      scratch_.push_back(entry);
      continue;
    }
    bool fits = false;
    HORUS_RETURN_IF_ERROR(Weigh(ledger, scorer, entry, fits));
    if (fits && entry.cost < cutoff) scratch_.push_back(entry);
  }
  return absl::OkStatus();
}

absl::Status Rankings::Weigh(const Ledger& ledger, Scorer& scorer, RankedState& entry, bool& fits) {
  DeviceVerdict verdict;
  HORUS_RETURN_IF_ERROR(scorer.Weigh(ledger.states(), entry.state, verdict));
  entry.cost = verdict.cost;
  entry.weighed = true;
  fits = verdict.reason == Reason::kNone;
  return absl::OkStatus();
}

// Takes scratch_ as the whole list, but no more than is wanted; the rest costs `beyond` at least.
void Rankings::Keep(double beyond, Ranking& ranking) {
  ranking.cutoff = beyond;
  if (scratch_.size() > ranking.wanted) {
    const auto last = scratch_.begin() + static_cast<ptrdiff_t>(ranking.wanted);
    std::nth_element(scratch_.begin(), last, scratch_.end(), Cheaper);
    ranking.cutoff = std::min(beyond, last->cost);
    scratch_.erase(last, scratch_.end());
  }
  entries_ -= ranking.states.size();
  ranking.states.assign(scratch_.begin(), scratch_.end());
  std::make_heap(ranking.states.begin(), ranking.states.end(), Dearer);
  entries_ += ranking.states.size();
}

absl::Status Rankings::Rebuild(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer, Ranking& ranking) {
  ranking.generation = 0;  // until it is whole
  if (of_state_.size() < index.state_limit()) of_state_.resize(index.state_limit());
  for (uint32_t state = 0; state < index.state_limit(); ++state) {
    Scorer::Brief& brief = of_state_[state];
    if (brief.digest == index.digest(state)) continue;
    brief = {};
    if (index.has_devices(state)) HORUS_RETURN_IF_ERROR(scorer.Describe(ledger.states(), state, brief));
  }
  HORUS_RETURN_IF_ERROR(Sift(ledger, index, scorer, of_state_, kInfinity));
  Keep(kInfinity, ranking);
  ranking.generation = index.generation();
  ranking.seen = index.opened_end();
  return absl::OkStatus();
}

absl::Status Rankings::CatchUp(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer, Ranking& ranking) {
  const auto opened = std::span<const Scorer::Brief>(opened_).subspan(ranking.seen - opened_begin_);
  HORUS_RETURN_IF_ERROR(Sift(ledger, index, scorer, opened, ranking.cutoff));
  ranking.seen = index.opened_end();
  if (ranking.states.size() + scratch_.size() <= kMostOverWanted * ranking.wanted) {
    Push(ranking, scratch_);
    return absl::OkStatus();
  }
  for (const RankedState& entry : ranking.states) {
    if (IsCurrent(entry, index)) scratch_.push_back(entry);
  }
  Keep(ranking.cutoff, ranking);
  return absl::OkStatus();
}

void Rankings::Push(Ranking& ranking, std::span<const RankedState> states) {
  entries_ += states.size();
  for (const RankedState& entry : states) {
    ranking.states.push_back(entry);
    std::push_heap(ranking.states.begin(), ranking.states.end(), Dearer);
  }
}

absl::Status Rankings::Pop(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer, double limit, double floor,
                           Ranking& ranking, RankedState& state, bool& found) {
  found = false;
  while (!ranking.states.empty() && !(ranking.states.front().cost + floor > limit)) {
    std::pop_heap(ranking.states.begin(), ranking.states.end(), Dearer);
    state = ranking.states.back();
    ranking.states.pop_back();
    --entries_;
    if (!IsCurrent(state, index)) continue;
    if (state.weighed) {
      found = true;
      return absl::OkStatus();
    }
    bool fits = false;
    const absl::Status status = Weigh(ledger, scorer, state, fits);
    if (!status.ok()) ranking.generation = 0;  // one is missing
    HORUS_RETURN_IF_ERROR(status);
    if (fits) Push(ranking, {&state, 1});
  }
  return absl::OkStatus();
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
