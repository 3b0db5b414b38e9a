// SPDX-License-Identifier: Apache-2.0
// Numbers contexts and guests, and asks the model for pairs on first use.
#include "place/search/pair_table.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/hash.h"

namespace horus {

uint32_t PairTable::ContextOf(const DeviceContext& device) {
  for (uint32_t i = 0; i < contexts_.size(); ++i) {
    if (contexts_[i].device == device) return i;
  }
  contexts_.push_back({device, {}});
  return static_cast<uint32_t>(contexts_.size() - 1);
}

uint32_t PairTable::GuestOf(uint32_t context, const TenantClass& tenant) {
  IdMap<uint32_t>& guests = contexts_[context].guests;
  if (const uint32_t* known = guests.Find(tenant.digest)) return *known;
  return guests.Insert(tenant.digest, static_cast<uint32_t>(guests.size()) + kNobody + 1);
}

PairTable::Row& PairTable::RowOf(uint32_t context, const TenantClass& newcomer) {
  const uint64_t key = CombineHash(newcomer.digest, context);
  if (std::unique_ptr<Row>* known = rows_.Find(key)) return **known;
  auto row = std::make_unique<Row>();
  row->summaries.resize(kNobody + 1, {0, 0, 0, 0});
  row->positions.resize(kNobody + 1, Row::kUnmet);
  return *rows_.Insert(key, std::move(row));
}

void PairTable::Grow(uint32_t context, Row& row) {
  const size_t before = row.summaries.capacity(), size = contexts_[context].guests.size() + kNobody + 1;
  if (before < size) row.summaries.reserve(std::max(size, 2 * before));
  row.positions.reserve(row.summaries.capacity());
  row.summaries.resize(size);
  row.positions.resize(size, Row::kUnmet);
  row_bytes_ += (row.summaries.capacity() - before) * (sizeof(StateSummary) + sizeof(uint32_t));
}

absl::Status PairTable::Meet(const InterferenceModel& model, uint32_t context, Row& row, const TenantClass& newcomer,
                             std::span<const Guest> guests) {
  demands_.clear();
  for (const Guest& one : guests) demands_.push_back(&one.tenant->demand);
  mine_.assign(guests.size(), {});
  theirs_.assign(guests.size(), {});
  HORUS_RETURN_IF_ERROR(model.PredictBeside(contexts_[context].device, newcomer.demand, demands_, mine_, theirs_));
  Widen(context, row);
  const auto summary = [](int64_t excess) {
    return static_cast<uint16_t>(std::clamp<int64_t>(excess / StateSummary::kStep, 0, StateSummary::kMost));
  };
  const size_t room = row.pairs.capacity();
  if (room < row.pairs.size() + guests.size()) row.pairs.reserve(std::max(row.pairs.size() + guests.size(), 2 * room));
  row_bytes_ += (row.pairs.capacity() - room) * sizeof(TenantPair);
  for (size_t i = 0; i < guests.size(); ++i) {
    const PairExcess &mine = mine_[i], &theirs = theirs_[i];
    row.positions[guests[i].guest] = static_cast<uint32_t>(row.pairs.size());
    row.pairs.push_back({mine, theirs});
    row.summaries[guests[i].guest] = {summary(mine.estimate), summary(theirs.estimate), summary(mine.upper),
                                      summary(theirs.upper)};
  }
  return absl::OkStatus();
}

absl::Status PairTable::Find(const InterferenceModel& model, uint32_t context, const TenantClass& first,
                             const TenantClass& second, TenantPair& pair) {
  if (second.order < first.order) {
    HORUS_RETURN_IF_ERROR(Find(model, context, second, first, pair));
    std::swap(pair.mine, pair.theirs);
    return absl::OkStatus();
  }
  const uint64_t key = CombineHash(CombineHash(first.digest, second.digest), context);
  if (const TenantPair* known = residents_.Find(key)) {
    pair = *known;
    return absl::OkStatus();
  }
  const std::array<const Demand*, 2> tenants = {&first.demand, &second.demand};
  std::array<PairExcess, 4> out;
  HORUS_RETURN_IF_ERROR(model.PredictPairs(contexts_[context].device, tenants, out));
  pair = {out[1], out[2]};
  residents_.Insert(key, pair);
  return absl::OkStatus();
}

void PairTable::ForgetRows() {
  rows_ = {};
  row_bytes_ = 0;
}

void PairTable::Clear() { *this = PairTable(); }

uint64_t PairTable::bytes_held() const {
  uint64_t bytes = bytes_of_rows() + residents_.bytes_held() + contexts_.capacity() * sizeof(Context) +
                   demands_.capacity() * sizeof(demands_[0]) +
                   (mine_.capacity() + theirs_.capacity()) * sizeof(PairExcess);
  for (const Context& context : contexts_) bytes += context.guests.bytes_held();
  return bytes;
}

}  // namespace horus
