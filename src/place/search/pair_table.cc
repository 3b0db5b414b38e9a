// SPDX-License-Identifier: Apache-2.0
// Numbers contexts and guests, and asks the model for pairs on first use.
#include "place/search/pair_table.h"

#include <algorithm>
#include <array>

#include "base/hash.h"

namespace horus {

uint32_t PairTable::ContextOf(const DeviceContext& device) {
  for (uint32_t i = 0; i < contexts_.size(); ++i) {
    if (contexts_[i].device == device) return i;
  }
  contexts_.push_back({device, {}, {}});
  return static_cast<uint32_t>(contexts_.size() - 1);
}

uint32_t PairTable::GuestOf(const InterferenceModel& model, uint32_t context, const TenantClass& tenant) {
  Context& here = contexts_[context];
  if (const uint32_t* known = here.guests.Find(tenant.digest)) return *known;
  const auto guest = static_cast<uint32_t>(here.guests.size()) + kNobody + 1;
  here.levels.resize(guest + size_t{1});
  here.levels[guest] = model.LevelsOf(here.device, tenant.demand);
  return here.guests.Insert(tenant.digest, guest);
}

PairTable::Row& PairTable::RowOf(uint32_t context, const TenantClass& newcomer) {
  const uint64_t key = CombineHash(newcomer.digest, context);
  if (std::unique_ptr<Row>* known = rows_.Find(key)) return **known;
  auto row = std::make_unique<Row>();
  row->summaries.resize(kNobody + 1, {0, 0, 0, 0});
  row->positions.resize(kNobody + 1);
  return *rows_.Insert(key, std::move(row));
}

namespace {

uint16_t Steps(int64_t excess) {
  using Summary = PairTable::StateSummary;
  return static_cast<uint16_t>(std::clamp<int64_t>(excess / Summary::kStep, 0, Summary::kMost));
}

}  // namespace

void PairTable::Grow(const InterferenceModel& model, uint32_t context, Row& row, const TenantClass& newcomer) {
  if (row.least.empty()) {
    const InterferenceModel::LeastPairs least = model.LeastBeside(contexts_[context].device, newcomer.demand);
    row.least.reserve(least.mine.size());  // all or nothing
    for (size_t level = 0; level < least.mine.size(); ++level)
      row.least.push_back({.mine = Steps(least.mine[level]), .theirs = Steps(least.theirs[level])});
    row_bytes_ += row.least.capacity() * sizeof(StateSummary);
  }
  const std::vector<InterferenceModel::PairLevels>& levels = contexts_[context].levels;
  const bool keeps_work = KeepsWork(newcomer.demand);  // then its own slowdown costs nothing
  const size_t before = row.summaries.capacity(), first = row.summaries.size();
  const size_t size = contexts_[context].guests.size() + kNobody + 1;
  if (before < size) row.summaries.reserve(std::max(size, 2 * before));
  row.positions.reserve(row.summaries.capacity());
  row.summaries.resize(size);
  row.positions.resize(size);
  for (size_t guest = first; guest < size; ++guest) {
    row.summaries[guest].mine = keeps_work ? 0 : row.least[levels[guest].inflicts].mine;
    row.summaries[guest].theirs = row.least[levels[guest].suffers].theirs;
  }
  row_bytes_ += (row.summaries.capacity() - before) * (sizeof(StateSummary) + sizeof(uint32_t));
}

absl::Status PairTable::Meet(const InterferenceModel& model, uint32_t context, Row& row, const TenantClass& newcomer,
                             std::span<const Guest> guests) {
  demands_.clear();
  for (const Guest& one : guests) demands_.push_back(&one.tenant->demand);
  mine_.assign(guests.size(), {});
  theirs_.assign(guests.size(), {});
  HORUS_RETURN_IF_ERROR(model.PredictBeside(contexts_[context].device, newcomer.demand, demands_, mine_, theirs_));
  Widen(model, context, row, newcomer);
  const size_t room = row.pairs.capacity();
  if (room < row.pairs.size() + guests.size()) row.pairs.reserve(std::max(row.pairs.size() + guests.size(), 2 * room));
  row_bytes_ += (row.pairs.capacity() - room) * sizeof(TenantPair);
  for (size_t i = 0; i < guests.size(); ++i) {
    const PairExcess &mine = mine_[i], &theirs = theirs_[i];
    row.positions[guests[i].guest] = static_cast<uint32_t>(row.pairs.size());
    row.pairs.push_back({mine, theirs});
    const uint16_t own = KeepsWork(newcomer.demand) ? 0 : Steps(mine.estimate);
    row.summaries[guests[i].guest] = {own, Steps(theirs.estimate), Steps(mine.upper), Steps(theirs.upper)};
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
  uint64_t bytes = bytes_of_rows() + BytesIn(residents_, contexts_, demands_, mine_, theirs_);
  for (const Context& context : contexts_) bytes += BytesIn(context.guests, context.levels);
  return bytes;
}

}  // namespace horus
