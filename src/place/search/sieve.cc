// SPDX-License-Identifier: Apache-2.0
// Keeps what classes and guests cost each other in columns, and adds up thirty-two classes in a step.
#include "place/search/sieve.h"

#include <algorithm>

namespace horus {
namespace {

// Of costs, beside Scorer::kCostMargin: more than what floats round in a sum of a few terms near 1.
constexpr float kFloatMargin = 1e-5F;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A guest beyond what the row knows was not met.
PairTable::StateSummary PairIn(const PairTable::Row* row, uint32_t guest) {
  return row != nullptr && guest < row->summaries.size() ? row->summaries[guest] : PairTable::StateSummary();
}

}  // namespace

Sieve::Kind& Sieve::KindOf(uint32_t context) {
  while (kinds_.size() <= context) {
    auto kind = std::make_unique<Kind>();
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      // A class that never was asked on this kind of device may suit it: nobody is known to it.
      kind->mem_mib[slot] = taken_[slot] ? 0 : kNeverFits;
      kind->mem_beside_mib[slot] = kind->mem_mib[slot];
    }
    kinds_.push_back(std::move(kind));
  }
  return *kinds_[context];
}

Sieve::Column* Sieve::ColumnOf(Kind& kind, uint32_t guest) {
  if (guest < kind.columns.size() && kind.columns[guest] != nullptr) return kind.columns[guest].get();
  if (columns_ >= kMostColumns) return nullptr;
  if (kind.columns.size() <= guest) kind.columns.resize(std::max<size_t>(guest + 1, 2 * kind.columns.size()));
  auto column = std::make_unique<Column>();
  for (uint32_t slot = 0; slot < kSlots; ++slot) column->Set(slot, PairIn(kind.rows[slot], guest));
  kind.columns[guest] = std::move(column);
  ++columns_;
  return kind.columns[guest].get();
}

void Sieve::Reserve(Scorer& scorer, uint32_t slot) {
  for (uint32_t context = slot == kSlots ? 0 : known_kinds_[slot]; context < scorer.contexts(); ++context) {
    static_cast<void>(KindOf(context));
    static_cast<void>(scorer.OnContextOf(context));
  }
}

void Sieve::Admit(Scorer& scorer, uint32_t slot, double cutoff) noexcept {
  if (!taken_[slot]) {
    taken_[slot] = true;
    known_kinds_[slot] = 0;
    end_ = std::max(end_, slot + 1);
  }
  SetCutoff(slot, cutoff);
  for (uint32_t context = known_kinds_[slot]; context < scorer.contexts(); ++context) {
    Kind& kind = *kinds_[context];
    const Scorer::OnContext& here = scorer.OnContextOf(context);
    const bool fits = here.on != nullptr && here.mem_mib < kNeverFits;
    kind.mem_mib[slot] = fits ? static_cast<int32_t>(here.mem_mib) : kNeverFits;
    kind.mem_beside_mib[slot] = here.exclusive ? kNeverFits : kind.mem_mib[slot];
    kind.rows[slot] = here.row;
    if (fits) {
      kind.speed[slot] = static_cast<float>(here.relative_speed);
      kind.per_weight[slot] = 1 / here.on->tenant.weight;
      kind.request_mib[slot] = static_cast<float>(here.on->tenant.memory.request_mib);
      kind.most_upper[slot] = static_cast<int32_t>(std::min<uint64_t>(here.most_upper, kNeverFits));
    }
    for (uint32_t guest = 0; guest < kind.columns.size(); ++guest) {
      if (kind.columns[guest] != nullptr) kind.columns[guest]->Set(slot, PairIn(here.row, guest));
    }
  }
  known_kinds_[slot] = static_cast<uint32_t>(scorer.contexts());
}

void Sieve::Dismiss(uint32_t slot) noexcept {
  taken_[slot] = false;
  for (const std::unique_ptr<Kind>& kind : kinds_) {
    kind->mem_mib[slot] = kind->mem_beside_mib[slot] = kNeverFits;
    kind->rows[slot] = nullptr;
  }
}

void Sieve::Add(const Scorer::StateSummary& state, uint32_t slot) {
  if (state.residents == Scorer::StateSummary::kNotSifted) return;
  Kind& kind = KindOf(state.context);
  for (const uint32_t guest : state.pairs.guests) {
    if (Column* column = ColumnOf(kind, guest)) column->Set(slot, PairIn(kind.rows[slot], guest));
  }
}

void Sieve::Clear() {
  kinds_.clear();
  taken_ = {};
  end_ = columns_ = 0;
}

// Without branches, on arrays of one width, so that the compiler makes vector instructions of it.
void Sieve::Step(const LeastCost& least, const Kind& kind, const Scorer::StateSummary& state,
                 const std::array<const Column*, 3>& guests, uint32_t from, std::vector<Hit>& hits) const {
  constexpr auto kUnit = static_cast<float>(1e-6 * PairTable::StateSummary::kStep);  // of excess
  constexpr int32_t kUnknown = PairTable::StateSummary::kUnknown;
  alignas(64) std::array<int32_t, kLanes> own = {}, upper = {}, fits, unknown = {};
  alignas(64) std::array<float, kLanes> lost = {}, floor;
  fits.fill(1);
  for (size_t r = 0; r < guests.size(); ++r) {
    const float before = state.pairs.before[r];
    const float weight = state.pairs.weight[r];
    const auto room = static_cast<int32_t>(state.pairs.room[r]);
    const uint16_t* const mine = guests[r]->mine.data() + from;
    const uint16_t* const mine_upper = guests[r]->mine_upper.data() + from;
    const uint16_t* const theirs = guests[r]->theirs.data() + from;
    const uint16_t* const theirs_upper = guests[r]->theirs_upper.data() + from;
    for (uint32_t i = 0; i < kLanes; ++i) own[i] += mine[i];
    for (uint32_t i = 0; i < kLanes; ++i) unknown[i] |= static_cast<int32_t>(mine[i] == kUnknown);
    for (uint32_t i = 0; i < kLanes; ++i) upper[i] += mine_upper[i];
    for (uint32_t i = 0; i < kLanes; ++i) fits[i] &= static_cast<int32_t>(theirs_upper[i] <= room);
    for (uint32_t i = 0; i < kLanes; ++i) {
      const float more = kUnit * static_cast<float>(theirs[i]);
      lost[i] += weight * more / (before * (before + more));
    }
  }
  const auto own_work = static_cast<float>(least.own_work);
  const auto lost_work = static_cast<float>(least.lost_work);
  const auto per_mem = static_cast<float>(least.memory_left) * state.per_mem_mib;
  const auto free = static_cast<float>(state.mem_free_mib);
  const float least_of_all = static_cast<float>(state.residents == 0 ? least.idle : 0) - kFloatMargin;
  const float* const speed = kind.speed.data() + from;
  const float* const per_weight = kind.per_weight.data() + from;
  const float* const request = kind.request_mib.data() + from;
  const int32_t* const most_upper = kind.most_upper.data() + from;
  const float* const cutoff = cutoff_.data() + from;
  const int32_t* const mem = (state.residents == 0 ? kind.mem_mib : kind.mem_beside_mib).data() + from;
  int32_t any = 0;
  for (uint32_t i = 0; i < kLanes; ++i) {
    floor[i] = own_work * (speed[i] / (1 + kUnit * static_cast<float>(own[i]))) + lost_work * lost[i] * per_weight[i] +
               per_mem * (free - request[i]) + least_of_all;
    fits[i] &= static_cast<int32_t>(upper[i] <= most_upper[i]) & static_cast<int32_t>(floor[i] < cutoff[i]);
    fits[i] = (fits[i] | unknown[i]) & static_cast<int32_t>(mem[i] <= state.mem_free_mib);
    any |= fits[i];
  }
  if (any == 0) return;
  for (uint32_t i = 0; i < kLanes; ++i) {
    if (fits[i] != 0) hits.push_back({from + i, unknown[i] != 0 ? -kInfinity : floor[i]});
  }
}

bool Sieve::Sift(const LeastCost& least, const Scorer::StateSummary& state, std::vector<Hit>& hits) {
  if (state.residents == Scorer::StateSummary::kNotSifted) {
    for (uint32_t slot = 0; slot < end_; ++slot) {
      if (taken_[slot]) hits.push_back({slot, -kInfinity});
    }
    return true;
  }
  Kind& kind = KindOf(state.context);
  std::array<const Column*, 3> guests = {};
  for (size_t r = 0; r < guests.size(); ++r) {
    guests[r] = ColumnOf(kind, state.pairs.guests[r]);
    if (guests[r] == nullptr) return false;
  }
  for (uint32_t from = 0; from < end_; from += kLanes) Step(least, kind, state, guests, from, hits);
  return true;
}

uint64_t Sieve::bytes_held() const {
  uint64_t bytes = sizeof(*this) + kinds_.size() * sizeof(Kind) + columns_ * sizeof(Column);
  for (const std::unique_ptr<Kind>& kind : kinds_) bytes += kind->columns.capacity() * sizeof(void*);
  return bytes;
}

}  // namespace horus
