// SPDX-License-Identifier: Apache-2.0
// Keeps a byte a device for each class of gangs as the ledger changes.
#include "place/search/paces.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/hash.h"
#include "base/status.h"

namespace horus {
namespace {

// A choice: a byte reaches a slowdown of 3.5, beyond the bounds that people set.
constexpr double kStepsPerSlowdown = 50;
constexpr uint8_t kSlowest = DevicePaces::kNever - 1;
constexpr size_t kWorthwhile = 32;      // 1 / the least share of the nodes; chosen
constexpr size_t kMostNoted = 1 << 16;  // classes
constexpr double kRounding = 1e-6;      // of slowdowns, far below a step

uint8_t StepsOf(double slowdown) {
  const double steps = std::floor((slowdown - 1) * kStepsPerSlowdown);
  if (!(steps < kSlowest)) return kSlowest;
  return static_cast<uint8_t>(std::max(steps, 0.0));
}

}  // namespace

uint8_t DevicePaces::Within(double slowdown) { return StepsOf(slowdown * (1 + kRounding)); }

// Eight bytes at once: all are below 128, so 128 + most - byte keeps its upper bit where the byte is at most `most`.
int32_t DevicePaces::Count(std::span<const uint8_t> paces, uint8_t most) {
  constexpr uint64_t kEach = 0x0101010101010101, kUpper = 0x80 * kEach;
  int32_t count = 0;
  size_t i = 0;
  for (; i + sizeof(uint64_t) <= paces.size(); i += sizeof(uint64_t)) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, &paces[i], sizeof(bytes));
    count += std::popcount((kUpper + kEach * most - bytes) & kUpper);
  }
  for (; i < paces.size(); ++i) count += paces[i] <= most ? 1 : 0;
  return count;
}

// Devices of a node from `begin` on; those are left out that change again after `change`.
absl::Status DevicePaces::Update(const Ledger& ledger, Scorer& scorer, const JobView& view, bool timed, uint32_t begin,
                                 uint32_t end, uint64_t change, Table& table) {
  uint32_t judged = kNoState;  // devices of a node are often alike
  DeviceVerdict verdict;
  for (uint32_t device = begin; device < end; ++device) {
    if (change < last_change_[device]) continue;
    const uint32_t state = ledger.state_id(device);
    if (state != judged) {
      HORUS_RETURN_IF_ERROR(scorer.weighs_cheaply() ? scorer.Weigh(ledger.states(), state, verdict)
                                                    : scorer.Judge(ledger.states(), state, verdict));
      judged = state;
    }
    uint8_t& pace = table.paces[device];
    if (verdict.reason != Reason::kNone) {
      pace = kNever;
    } else if (timed) {
      const JobView::OnType* on = view.On(ledger.states().state(state).type);
      pace = verdict.own_work > 0 ? StepsOf(on->relative_speed / verdict.own_work) : kSlowest;
    } else {
      pace = 0;
    }
  }
  return absl::OkStatus();
}

void DevicePaces::Follow(const Scorer& scorer) {
  if (epoch_ == scorer.model().epoch()) return;
  of_class_.clear();
  keys_.clear();
  pays_.clear();
  bytes_ = 0;
  epoch_ = scorer.model().epoch();
}

bool DevicePaces::Pays(const Scorer& scorer, const JobView& view) {
  Follow(scorer);
  return pays_.Find(view.digest) != nullptr;
}

void DevicePaces::LookedAt(const JobView& view, size_t nodes, size_t of) {
  if (nodes * kWorthwhile <= of) return;
  if (pays_.size() >= kMostNoted) pays_.clear();
  if (pays_.Find(view.digest) == nullptr) pays_.Insert(view.digest, true);
}

DevicePaces::Table& DevicePaces::TableOf(uint64_t key, uint64_t bytes) {
  if (std::unique_ptr<Table>* known = of_class_.Find(key)) {
    const auto at = std::find(keys_.begin(), keys_.end(), key);
    std::rotate(at, at + 1, keys_.end());
    return **known;
  }
  for (; !keys_.empty() && bytes_ + bytes > most_bytes_; keys_.erase(keys_.begin())) {
    bytes_ -= sizeof(Table) + (*of_class_.Find(keys_.front()))->paces.size();
    of_class_.Erase(keys_.front());
  }
  keys_.reserve(keys_.size() + 1);  // what follows may fail for want of memory, and leaves both alike
  Table& table = *of_class_.Insert(key, std::make_unique<Table>());
  keys_.push_back(key);
  bytes_ += sizeof(Table);
  return table;
}

absl::StatusOr<std::span<const uint8_t>> DevicePaces::Of(const Ledger& ledger, Scorer& scorer, const JobView& view,
                                                         bool timed) {
  Follow(scorer);
  Table& table = TableOf(CombineHash(view.digest, timed ? 1 : 0), sizeof(Table) + ledger.device_limit());
  const bool incremental = table.generation == ledger.generation() && table.seen >= ledger.log_begin();
  table.generation = 0;  // unless all goes well
  last_change_.resize(ledger.device_limit());
  const auto devices = [&](const Ledger::Touched& touched) {  // begin and end of those that changed
    const LedgerNode& node = ledger.node(touched.node_row);
    if (node.spec == nullptr || touched.device == kNoDevice) return std::pair(0u, 0u);
    const bool one = touched.device != Ledger::kManyDevices;
    const uint32_t begin = node.first_device + (one ? static_cast<uint32_t>(touched.device) : 0);
    return std::pair(begin, begin + (one ? 1 : static_cast<uint32_t>(node.devices)));
  };
  if (incremental) {
    for (uint64_t i = table.seen; i < ledger.log_end(); ++i) {
      const auto [begin, end] = devices(ledger.touched(i));
      std::fill(last_change_.begin() + begin, last_change_.begin() + end, i);
    }
    for (uint64_t i = table.seen; i < ledger.log_end(); ++i) {
      const auto [begin, end] = devices(ledger.touched(i));
      HORUS_RETURN_IF_ERROR(Update(ledger, scorer, view, timed, begin, end, i, table));
    }
  } else {
    bytes_ += ledger.device_limit() - table.paces.size();
    table.paces.assign(ledger.device_limit(), kNever);
    for (const uint32_t row : ledger.order()) {
      const auto [begin, end] = devices({.node_row = row});
      HORUS_RETURN_IF_ERROR(Update(ledger, scorer, view, timed, begin, end, UINT64_MAX, table));
    }
  }
  table.seen = ledger.log_end();
  table.generation = ledger.generation();
  return table.paces;
}

}  // namespace horus
