// SPDX-License-Identifier: Apache-2.0
// Keeps what refuses each device as the ledger changes.
#include "place/search/refusals.h"

#include <tuple>
#include <utility>

#include "base/status.h"
#include "place/admit.h"
#include "place/fit.h"

namespace horus {

NearestPlace NodeRefusal(const Policy& policy, const Ledger& ledger, uint32_t node_row, const JobSpec& job) {
  Shortfall shortfall;
  const Reason reason = AdmitNode(policy, ledger, node_row, job, 1, &shortfall);
  return {reason == Reason::kNone ? 0 : Distance(reason, shortfall), node_row, -1, reason};
}

void Refusals::Set(uint32_t device, Reason reason, Table& table) {
  --table.counts[table.reasons[device]];
  table.reasons[device] = static_cast<uint8_t>(reason);
  ++table.counts[table.reasons[device]];
}

absl::Status Refusals::LookAt(const Ledger& ledger, const JobView& view, uint32_t node_row, bool memo, Table& table) {
  const LedgerNode& node = ledger.node(node_row);
  if (node.spec == nullptr) return absl::OkStatus();
  NearestPlace nearest = NodeRefusal(scorer_.policy(), ledger, node_row, *view.job);
  const Reason all = nearest.reason;
  for (size_t i = 0; i < node.spec->devices.size(); ++i) {
    const uint32_t device = node.first_device + static_cast<uint32_t>(i);
    DeviceVerdict verdict{.reason = all};
    if (all == Reason::kNone) {
      HORUS_RETURN_IF_ERROR(JudgeDevice(scorer_, ledger, view, device, memo, verdict));
      nearest.Offer({verdict.cost, node_row, static_cast<int32_t>(i), verdict.reason});
    }
    Set(device, verdict.reason, table);
  }
  table.misses[node_row] = {nearest.distance, nearest.device, nearest.reason};
  table.stale[node_row] = false;
  return absl::OkStatus();
}

absl::Status Refusals::LookAtDevice(const Ledger& ledger, const JobView& view, const Ledger::Touched& touched,
                                    Table& table) {
  const LedgerNode& node = ledger.node(touched.node_row);
  if (node.spec == nullptr) return absl::OkStatus();
  Miss& miss = table.misses[touched.node_row];
  const bool was_refused = miss.device < 0;
  if (was_refused || touched.device == Ledger::kManyDevices ||
      NodeRefusal(scorer_.policy(), ledger, touched.node_row, *view.job).reason != Reason::kNone) {
    return LookAt(ledger, view, touched.node_row, false, table);
  }
  if (touched.device == kNoDevice) return absl::OkStatus();
  const uint32_t device = node.first_device + static_cast<uint32_t>(touched.device);
  DeviceVerdict verdict;
  HORUS_RETURN_IF_ERROR(JudgeDevice(scorer_, ledger, view, device, /*memo=*/false, verdict));
  Set(device, verdict.reason, table);
  const auto nearness = [](Reason reason, double distance, int32_t index) {
    return std::tuple(-AskedAt(reason), distance, index);
  };
  if (nearness(verdict.reason, verdict.cost, touched.device) <= nearness(miss.reason, miss.distance, miss.device)) {
    miss = {verdict.cost, touched.device, verdict.reason};
    table.stale[touched.node_row] = false;
  } else if (touched.device == miss.device) {
    table.stale[touched.node_row] = true;
  }
  return absl::OkStatus();
}

Refusals::Table& Refusals::TableOf(const Ledger& ledger, const JobView& view) {
  const uint64_t bytes = sizeof(Table) + ledger.device_limit() + ledger.node_rows() * sizeof(Miss);
  if (epoch_ != scorer_.model().epoch() || bytes_ + bytes > most_bytes_) {
    of_request_.clear();
    bytes_ = 0;
    epoch_ = scorer_.model().epoch();
  }
  const uint64_t request = RequestOn(ledger, view);
  if (std::unique_ptr<Table>* known = of_request_.Find(request)) return **known;
  Table& table = *of_request_.Insert(request, std::make_unique<Table>());
  bytes_ += bytes;
  return table;
}

void Refusals::FollowLog(const Ledger& ledger) {
  if (generation_ != ledger.generation() || followed_ < ledger.log_begin()) {
    last_change_.assign(ledger.device_limit(), 0);
    generation_ = ledger.generation();
    followed_ = ledger.log_begin();
  }
  for (; followed_ < ledger.log_end(); ++followed_) {
    const Ledger::Touched& touched = ledger.touched(followed_);
    if (touched.device < 0) continue;
    last_change_[ledger.node(touched.node_row).first_device + static_cast<uint32_t>(touched.device)] = followed_;
  }
}

bool Refusals::IsOld(const Ledger& ledger, uint64_t change) const {
  const Ledger::Touched& touched = ledger.touched(change);
  if (touched.device < 0) return false;
  return change < last_change_[ledger.node(touched.node_row).first_device + static_cast<uint32_t>(touched.device)];
}

absl::Status Refusals::Count(const Ledger& ledger, const JobView& view, Counts& refused, NearestPlace& nearest) {
  Table& table = TableOf(ledger, view);
  const bool incremental = table.generation == ledger.generation() && table.seen >= ledger.log_begin();
  table.generation = 0;  // unless all goes well
  FollowLog(ledger);
  if (incremental) {
    for (uint64_t i = table.seen; i < ledger.log_end(); ++i) {
      if (IsOld(ledger, i)) continue;
      HORUS_RETURN_IF_ERROR(LookAtDevice(ledger, view, ledger.touched(i), table));
    }
  } else {
    table.counts = {};
    table.counts[0] = static_cast<uint32_t>(ledger.device_count());
    table.reasons.assign(ledger.device_limit(), static_cast<uint8_t>(Reason::kNone));
    table.misses.assign(ledger.node_rows(), {});
    table.stale.assign(ledger.node_rows(), false);
    for (const uint32_t row : ledger.order()) HORUS_RETURN_IF_ERROR(LookAt(ledger, view, row, true, table));
  }
  table.seen = ledger.log_end();
  nearest = {};
  for (const uint32_t row : ledger.order()) {
    const Miss& miss = table.misses[row];
    NearestPlace offer = {miss.distance, row, miss.device, miss.reason};
    if (table.stale[row] && offer.IsNearerThan(nearest)) {
      HORUS_RETURN_IF_ERROR(LookAt(ledger, view, row, false, table));
      offer = {miss.distance, row, miss.device, miss.reason};
    }
    nearest.Offer(offer);
  }
  table.generation = ledger.generation();
  refused = table.counts;
  refused[0] = 0;
  return absl::OkStatus();
}

}  // namespace horus
