// SPDX-License-Identifier: Apache-2.0
// Keeps a byte a device for each class of gangs as the ledger changes.
#include "place/search/paces.h"

#include <algorithm>
#include <cmath>
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

constexpr uint8_t kUnslowed = DevicePaces::kUnknown + 1;

// A byte where nothing slows, which is common; then one for each step.
uint8_t StepsOf(double slowdown) {
  if (slowdown <= 1) return kUnslowed;
  const double steps = kUnslowed + 1 + std::floor((slowdown - 1) * kStepsPerSlowdown);
  return steps < kSlowest ? static_cast<uint8_t>(steps) : kSlowest;
}

// The devices of a node that changed: begin, end.
std::pair<uint32_t, uint32_t> DevicesOf(const Ledger& ledger, const Ledger::Touched& touched) {
  const LedgerNode& node = ledger.node(touched.node_row);
  if (node.spec == nullptr || touched.device == kNoDevice) return {0, 0};
  const bool one = touched.device != Ledger::kManyDevices;
  const uint32_t begin = node.first_device + (one ? static_cast<uint32_t>(touched.device) : 0);
  return {begin, begin + (one ? 1 : static_cast<uint32_t>(node.devices))};
}

}  // namespace

void DeviceChanges::MoveToFront(uint32_t device) {
  Device& here = devices_[device];
  if (device == newest_) return;
  if (here.newer != kNone) devices_[here.newer].older = here.older;
  if (here.older != kNone) devices_[here.older].newer = here.newer;
  if (newest_ != kNone) devices_[newest_].newer = device;
  here.newer = kNone;
  here.older = newest_;
  newest_ = device;
}

void DeviceChanges::Take(const Ledger& ledger, const Ledger::Touched& touched) {
  const auto [begin, end] = DevicesOf(ledger, touched);
  for (uint32_t device = begin; device < end; ++device) {
    const uint64_t digest = ledger.states().digest(ledger.state_id(device));
    if (std::exchange(devices_[device].digest, digest) == digest) continue;
    MoveToFront(device);
    devices_[device].change = ++count_;
  }
}

void DeviceChanges::CatchUp(const Ledger& ledger) {
  if (generation_ != ledger.generation()) {  // else rows of devices are the same as before
    devices_.assign(ledger.device_limit(), {});
    newest_ = kNone;
    seen_ = 0;
  }
  if (generation_ == ledger.generation() && seen_ >= ledger.log_begin()) {
    for (; seen_ < ledger.log_end(); ++seen_) Take(ledger, ledger.touched(seen_));
  } else {
    for (const uint32_t row : ledger.order()) Take(ledger, {.node_row = row});
  }
  generation_ = ledger.generation();
  seen_ = ledger.log_end();
}

uint8_t DevicePaces::Within(double slowdown) { return StepsOf(slowdown * (1 + kRounding)); }

uint8_t DevicePaces::SurelyWithin(double slowdown) {
  if (std::isinf(slowdown)) return kSlowest;
  return std::max(kUnslowed, static_cast<uint8_t>(StepsOf(slowdown * (1 - kRounding)) - 1));
}

absl::Status DevicePaces::Judge(const Ledger& ledger, Scorer& scorer, const JobView& view, bool timed, uint32_t device,
                                uint8_t& pace) {
  const uint32_t state = ledger.state_id(device);
  DeviceVerdict verdict;
  HORUS_RETURN_IF_ERROR(scorer.weighs_cheaply() ? scorer.Weigh(ledger.states(), state, verdict)
                                                : scorer.Judge(ledger.states(), state, verdict));
  pace = kUnslowed;
  if (verdict.reason != Reason::kNone) {
    pace = kNever;
  } else if (timed) {
    const double alone = view.WorkOn(ledger.states().state(state).type);
    pace = verdict.own_work > 0 ? StepsOf(alone / verdict.own_work) : kSlowest;
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
    const auto at = std::ranges::find(keys_, key);
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

absl::StatusOr<std::span<uint8_t>> DevicePaces::Of(const Ledger& ledger, Scorer& scorer, const JobView& view,
                                                   bool timed) {
  Follow(scorer);
  Table& table = TableOf(CombineHash(view.digest, timed ? 1 : 0), sizeof(Table) + ledger.device_limit());
  changes_.CatchUp(ledger);
  if (table.generation == ledger.generation()) {
    changes_.ForEachSince(table.seen, [&](uint32_t device) { table.paces[device] = kUnknown; });
  } else {
    table.generation = 0;  // unless all goes well
    const size_t before = table.paces.size();
    table.paces.assign(ledger.device_limit(), kUnknown);
    bytes_ += table.paces.size() - before;
    // All racks are about to be counted, and the order of the ledger is that of memory.
    for (const uint32_t row : ledger.order()) {
      const auto [begin, end] = DevicesOf(ledger, {.node_row = row});
      for (uint32_t device = begin; device < end; ++device) {
        if (device > begin && ledger.state_id(device) == ledger.state_id(device - 1)) {  // devices are often alike
          table.paces[device] = table.paces[device - 1];
          continue;
        }
        HORUS_RETURN_IF_ERROR(Judge(ledger, scorer, view, timed, device, table.paces[device]));
      }
    }
    table.generation = ledger.generation();
  }
  table.seen = changes_.count();
  return table.paces;
}

}  // namespace horus
