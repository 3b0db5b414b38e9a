// SPDX-License-Identifier: Apache-2.0
// Builds, extends and refreshes the lists of best states.
#include "place/search/ranking.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/status.h"

namespace horus {
namespace {

// A class that comes once is not worth a long list; one that exhausts its list gets one so many times as long.
constexpr size_t kFirstWanted = 64;
constexpr size_t kGrowth = 8;

// A list may grow to so many times what is wanted before it is cut back.
constexpr size_t kMostOverWanted = 4;

// What the sieve finds for a class that stays away is kept up to so many times what is wanted; then the class starts
// anew.
constexpr size_t kMostSievedOverWanted = 16;

// Openings after which a class that stayed away makes room in the sieve for another.
constexpr uint64_t kStaleAfter = 32 * Sieve::kSlots;

// States between two looks at how far a list being made has come.
constexpr size_t kSiftedAtOnce = 1024;

bool Cheaper(const RankedState& a, const RankedState& b) {
  return std::tie(a.cost, a.state) < std::tie(b.cost, b.state);
}
bool Dearer(const RankedState& a, const RankedState& b) { return Cheaper(b, a); }

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A class without entries: a ranking and its cell in the map at the mean load.
constexpr uint64_t kClassBytes = sizeof(Ranking) + 64;

}  // namespace

void Rankings::List(const Scorer::StateSummary& summary) {
  if (at_.size() <= summary.state) at_.resize(summary.state + size_t{1}, kNowhere);
  uint32_t& at = at_[summary.state];
  if (at == kNowhere) {
    listed_.push_back(summary);
    at = static_cast<uint32_t>(listed_.size() - 1);
  } else {
    listed_[at] = summary;
  }
}

// Describes all anew where too much was missed.
absl::Status Rankings::Relist(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer) {
  generation_ = 0;  // until all is well
  DismissAll(0);
  sieve_.Clear();
  opened_.clear();
  listed_.clear();
  at_.clear();
  for (uint32_t state = 0; state < index.state_limit(); ++state) {
    if (!index.has_devices(state)) continue;
    Scorer::StateSummary summary;
    HORUS_RETURN_IF_ERROR(scorer.Describe(ledger.states(), state, summary));
    List(summary);
  }
  opened_begin_ = index.opened_end();
  generation_ = index.generation();
  numbering_ = scorer.numbering();
  return absl::OkStatus();
}

absl::Status Rankings::Describe(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer) {
  if (generation_ != index.generation() || numbering_ != scorer.numbering() ||
      index.opened_begin() > opened_begin_ + opened_.size()) {
    return Relist(ledger, index, scorer);
  }
  if (index.opened_begin() > opened_begin_) {
    opened_.erase(opened_.begin(), opened_.begin() + static_cast<ptrdiff_t>(index.opened_begin() - opened_begin_));
    opened_begin_ = index.opened_begin();
  }
  for (const DeviceIndex::Opening& opening : index.opened_since(opened_begin_ + opened_.size())) {
    Scorer::StateSummary summary;  // of nothing
    // What is something else by now was opened again as such.
    if (ledger.states().digest(opening.state) == opening.digest) {
      HORUS_RETURN_IF_ERROR(scorer.Describe(ledger.states(), opening.state, summary));
      List(summary);
      SiftForAll(scorer, summary);
    }
    opened_.push_back(summary);
  }
  return absl::OkStatus();
}

void Rankings::ForgetSieved(Ranking& ranking) noexcept {
  entries_ -= ranking.sieved.size();
  ranking.sieved.clear();
  if (ranking.sieved.capacity() > kMostOverWanted * ranking.wanted) std::vector<RankedState>().swap(ranking.sieved);
}

void Rankings::Dismiss(uint32_t slot, uint64_t seen) noexcept {
  Ranking& ranking = *std::exchange(seats_[slot].ranking, nullptr);
  ranking.slot = Ranking::kNoSlot;
  ranking.seen = seen;
  sieve_.Dismiss(slot);
}

void Rankings::DismissAll(uint64_t seen) {
  for (uint32_t slot = 0; slot < seats_.size(); ++slot) {
    if (seats_[slot].ranking != nullptr) Dismiss(slot, seen);
  }
}

void Rankings::Admit(Scorer& scorer, Ranking& ranking) {
  uint32_t slot = ranking.slot;
  bool makes_room = false;
  if (slot == Ranking::kNoSlot) {
    const auto free =
        std::find_if(seats_.begin(), seats_.end(), [](const Seat& seat) { return seat.ranking == nullptr; });
    slot = static_cast<uint32_t>(free - seats_.begin());
    if (slot == Sieve::kSlots) {
      const auto longest_away = std::min_element(
          seats_.begin(), seats_.end(), [](const Seat& a, const Seat& b) { return a.last_came < b.last_came; });
      if (longest_away->last_came + kStaleAfter > ranking.seen) return;
      slot = static_cast<uint32_t>(longest_away - seats_.begin());
      makes_room = true;
    }
  }
  sieve_.Reserve(scorer, ranking.slot == Ranking::kNoSlot ? Sieve::kSlots : slot);
  if (slot == seats_.size()) seats_.emplace_back();
  // From here on nothing fails.
  if (makes_room) Dismiss(slot, ranking.seen);
  seats_[slot] = {&ranking, ranking.seen};
  ranking.slot = slot;
  sieve_.Admit(scorer, slot, ranking.cutoff);
}

void Rankings::SiftForAll(const Scorer& scorer, const Scorer::StateSummary& summary) {
  if (seats_.empty()) return;
  hits_.clear();
  if (!sieve_.Sift(*scorer.policy().least_cost(), summary, hits_)) {
    DismissAll(opened_begin_ + opened_.size());
    sieve_.Clear();
    return;
  }
  for (const Sieve::Hit& hit : hits_) {
    Ranking& ranking = *seats_[hit.slot].ranking;
    ranking.sieved.push_back({static_cast<double>(hit.floor), summary.state, false, summary.digest});
    ++entries_;
    if (ranking.sieved.size() <= kMostSievedOverWanted * ranking.wanted) continue;
    ForgetSieved(ranking);  // to be made anew, should it come again
    ranking.generation = 0;
    Dismiss(hit.slot, 0);
  }
}

absl::Status Rankings::Sift(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer,
                            std::span<const Scorer::StateSummary> summaries, double cutoff) {
  left_.clear();
  scorer.Sift(summaries, cutoff, left_);
  for (const Scorer::Sifted& one : left_) {
    RankedState entry{one.floor, summaries[one.at].state, false, summaries[one.at].digest};
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

// Leaves no more than the `wanted` cheapest in scratch_; what is not there costs `cutoff` at least.
void Rankings::CutBack(size_t wanted, double& cutoff) {
  if (scratch_.size() <= wanted) return;
  const auto last = scratch_.begin() + static_cast<ptrdiff_t>(wanted);
  std::nth_element(scratch_.begin(), last, scratch_.end(), Cheaper);
  cutoff = std::min(cutoff, last->cost);
  scratch_.erase(last, scratch_.end());
}

// Takes scratch_ as the list.
void Rankings::Keep(double cutoff, Ranking& ranking) {
  CutBack(ranking.wanted, cutoff);
  ranking.cutoff = cutoff;
  entries_ -= ranking.states.size();
  if (ranking.slot != Ranking::kNoSlot) sieve_.SetCutoff(ranking.slot, cutoff);
  ranking.states.assign(scratch_.begin(), scratch_.end());
  std::make_heap(ranking.states.begin(), ranking.states.end(), Dearer);
  entries_ += ranking.states.size();
}

absl::Status Rankings::Rebuild(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer, Ranking& ranking) {
  ranking.generation = 0;  // until it is whole
  for (size_t i = 0; i < listed_.size();) {
    const Scorer::StateSummary& summary = listed_[i];
    if (summary.digest == index.digest(summary.state)) {
      ++i;
      continue;
    }
    at_[summary.state] = kNowhere;  // it has no devices any more
    if (i + 1 < listed_.size()) {
      listed_[i] = listed_.back();
      at_[listed_[i].state] = static_cast<uint32_t>(i);
    }
    listed_.pop_back();
  }
  ForgetSieved(ranking);
  scratch_.clear();
  double cutoff = kInfinity;
  for (size_t from = 0; from < listed_.size(); from += kSiftedAtOnce) {
    const auto some = std::span<const Scorer::StateSummary>(listed_).subspan(from);
    HORUS_RETURN_IF_ERROR(Sift(ledger, index, scorer, some.first(std::min(some.size(), kSiftedAtOnce)), cutoff));
    if (scratch_.size() > kMostOverWanted * ranking.wanted) CutBack(ranking.wanted, cutoff);
  }
  Keep(cutoff, ranking);
  ranking.generation = index.generation();
  ranking.seen = index.opened_end();
  return absl::OkStatus();
}

absl::Status Rankings::CatchUp(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer, Ranking& ranking) {
  scratch_.clear();
  ranking.generation = 0;  // until it is whole
  for (RankedState entry : ranking.sieved) {
    if (!IsCurrent(entry, index)) continue;
    if (std::isinf(entry.cost)) {
      bool fits = false;
      HORUS_RETURN_IF_ERROR(Weigh(ledger, scorer, entry, fits));
      if (ranking.slot != Ranking::kNoSlot) sieve_.Add(listed_[at_[entry.state]], ranking.slot);
      if (!fits || !(entry.cost < ranking.cutoff)) continue;
    }
    scratch_.push_back(entry);
  }
  ForgetSieved(ranking);
  if (ranking.slot == Ranking::kNoSlot) {
    const auto opened = std::span<const Scorer::StateSummary>(opened_).subspan(ranking.seen - opened_begin_);
    HORUS_RETURN_IF_ERROR(Sift(ledger, index, scorer, opened, ranking.cutoff));
  }
  ranking.seen = index.opened_end();
  if (ranking.states.size() + scratch_.size() <= kMostOverWanted * ranking.wanted) {
    Push(ranking, scratch_);
  } else {
    for (const RankedState& entry : ranking.states) {
      if (IsCurrent(entry, index)) scratch_.push_back(entry);
    }
    Keep(ranking.cutoff, ranking);
  }
  ranking.generation = index.generation();
  if (scorer.sifts_pairs()) Admit(scorer, ranking);
  return absl::OkStatus();
}

void Rankings::Push(Ranking& ranking, std::span<const RankedState> states) {
  for (const RankedState& entry : states) {
    ranking.states.push_back(entry);
    ++entries_;
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
    HORUS_RETURN_IF_ERROR(Weigh(ledger, scorer, state, fits));
    if (fits) Push(ranking, {&state, 1});
  }
  return absl::OkStatus();
}

absl::Status Rankings::Find(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer, Ranking*& ranking) {
  const uint64_t bytes = of_class_.size() * kClassBytes + entries_ * kEntryBytes + sieve_.bytes_held();
  if (epoch_ != scorer.model().epoch() || bytes > most_bytes_) {
    DismissAll(0);
    sieve_.Clear();
    of_class_.clear();
    entries_ = 0;
    epoch_ = scorer.model().epoch();
  }
  HORUS_RETURN_IF_ERROR(Describe(ledger, index, scorer));
  std::unique_ptr<Ranking>* known = of_class_.Find(scorer.class_digest());
  if (known == nullptr) known = &of_class_.Insert(scorer.class_digest(), std::make_unique<Ranking>());
  ranking = known->get();
  if (ranking->wanted == 0 || ranking->generation != index.generation() ||
      (ranking->slot == Ranking::kNoSlot && ranking->seen < opened_begin_)) {
    ranking->wanted = std::max(ranking->wanted, kFirstWanted);
    return Rebuild(ledger, index, scorer, *ranking);
  }
  return CatchUp(ledger, index, scorer, *ranking);
}

absl::Status Rankings::Extend(const Ledger& ledger, const DeviceIndex& index, Scorer& scorer, Ranking& ranking) {
  ranking.wanted *= kGrowth;
  return Rebuild(ledger, index, scorer, ranking);
}

}  // namespace horus
