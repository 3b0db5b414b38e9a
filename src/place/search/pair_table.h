// SPDX-License-Identifier: Apache-2.0
// PairTable: a cache of slowdowns in pairs, for models whose excesses (slowdown - 1) add up (interference/laws.h).
//
// Enters:  such a model; tenant classes on device contexts.
// Leaves:  the excess of each tenant beside the other; the model is asked once per pair until Clear.
// Units:   millionths of excess.
// Cost:    a newcomer's pair is two accesses; 12 bytes a guest in each newcomer's row and 32 each that it met, about
//          100 bytes a pair of residents.
// Thread class: one thread at a time.
#pragma once

#include "base/id_map.h"
#include "base/status.h"
#include "interference/model.h"
#include "place/state/device_states.h"

namespace horus {

// Excesses of two tenants of a device.
struct TenantPair {
  PairExcess mine;    // of the first beside the second
  PairExcess theirs;  // of the second beside the first
};

class PairTable {
 public:
  // A TenantPair rounded down to fewer bits. The sieve scans very many of them, so the rows of many classes must fit
  // in the processor's cache.
  struct StateSummary {
    static constexpr uint16_t kUnknown = UINT16_MAX;
    static constexpr int64_t kMost = kUnknown - 1;
    static constexpr int64_t kStep = 100;  // millionths
    uint16_t mine = 0;                     // estimates; of a guest who was not met, at least
    uint16_t theirs = 0;
    uint16_t mine_upper = kUnknown;  // kUnknown = was not met
    uint16_t theirs_upper = kUnknown;
    [[nodiscard]] bool met() const { return mine_upper != kUnknown; }
  };
  // The pairs of one newcomer in one context, by guest. Its address holds until ForgetRows or Clear.
  struct Row {
    std::vector<StateSummary> summaries;
    std::vector<StateSummary> least;  // of whom it did not meet, by level (InterferenceModel::PairLevels)
    std::vector<uint32_t> positions;  // in `pairs`, of whom it met; of the same size as `summaries`
    std::vector<TenantPair> pairs;    // in the order in which they met
    [[nodiscard]] bool Knows(uint32_t guest) const { return guest < summaries.size() && summaries[guest].met(); }
  };

  // The guest that stands for no tenant: its excesses are 0.
  static constexpr uint32_t kNobody = 0;

  // Dense numbers: contexts for devices that differ in DeviceContext, guests for tenant classes in a context.
  [[nodiscard]] uint32_t ContextOf(const DeviceContext& device);
  [[nodiscard]] uint32_t GuestOf(const InterferenceModel& model, uint32_t context, const TenantClass& tenant);
  [[nodiscard]] Row& RowOf(uint32_t context, const TenantClass& newcomer);

  [[nodiscard]] const DeviceContext& device(uint32_t context) const { return contexts_[context].device; }
  [[nodiscard]] size_t contexts() const { return contexts_.size(); }

  // The newcomer of `row` beside a guest.
  [[nodiscard]] absl::Status Find(const InterferenceModel& model, uint32_t context, Row& row, uint32_t guest,
                                  const TenantClass& newcomer, const TenantClass& resident, TenantPair& pair) {
    if (!row.Knows(guest)) {
      const Guest one = {guest, &resident};
      HORUS_RETURN_IF_ERROR(Meet(model, context, row, newcomer, {&one, 1}));
    }
    pair = row.pairs[row.positions[guest]];
    return absl::OkStatus();
  }
  // Room in the row for every guest of the context so far.
  void Widen(const InterferenceModel& model, uint32_t context, Row& row, const TenantClass& newcomer) {
    if (row.summaries.size() <= contexts_[context].guests.size()) Grow(model, context, row, newcomer);
  }
  // Asks for the pairs of the newcomer of `row` beside all these, at once.
  struct Guest {
    uint32_t guest = 0;
    const TenantClass* tenant = nullptr;
  };
  [[nodiscard]] absl::Status Meet(const InterferenceModel& model, uint32_t context, Row& row,
                                  const TenantClass& newcomer, std::span<const Guest> guests);
  // Two residents.
  [[nodiscard]] absl::Status Find(const InterferenceModel& model, uint32_t context, const TenantClass& first,
                                  const TenantClass& second, TenantPair& pair);

  // Guests keep their numbers, and residents their pairs.
  void ForgetRows();
  void Clear();
  [[nodiscard]] uint64_t bytes_of_rows() const { return rows_.bytes_held() + rows_.size() * sizeof(Row) + row_bytes_; }
  [[nodiscard]] uint64_t bytes_held() const;

 private:
  void Grow(const InterferenceModel& model, uint32_t context, Row& row, const TenantClass& newcomer);
  struct Context {
    DeviceContext device;
    IdMap<uint32_t> guests;                             // by class digest, from kNobody + 1 on
    std::vector<InterferenceModel::PairLevels> levels;  // by guest
  };
  std::vector<Context> contexts_;
  IdMap<std::unique_ptr<Row>> rows_;  // by context and class
  IdMap<TenantPair> residents_;       // by context and both classes, as TenantClass::order
  uint64_t row_bytes_ = 0;
  std::vector<const Demand*> demands_;  // scratch of Meet
  std::vector<PairExcess> mine_;
  std::vector<PairExcess> theirs_;
};

}  // namespace horus
