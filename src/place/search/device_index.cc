// SPDX-License-Identifier: Apache-2.0
// Keeps the devices sorted by state and place as the ledger changes.
#include "place/search/device_index.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/status.h"

namespace horus {
namespace {

// Openings that are held, per state with devices and at least; followers that fall behind read all states anew.
constexpr size_t kOpenedPerState = 2;
constexpr size_t kLeastOpened = 4096;

}  // namespace

PlaceCandidate PlaceOf(const Ledger& ledger, uint32_t node_row, JobId job, int32_t device) {
  const LedgerNode& node = ledger.node(node_row);
  return {.job = job,
          .node = node.id,
          .device = device,
          .node_devices = node.devices,
          .node_idle_devices = node.idle_devices,
          .cpu_free_milli = node.free.cpu_milli,
          .mem_free_mib = node.free.mem_mib};
}

void DeviceIndex::Take(const Member& member, uint32_t flat) {
  members_.erase(member);
  if (--count_[member.state] == 0) digest_[member.state] = 0;
  state_of_[flat] = kNoState;
}

void DeviceIndex::Put(const Member& member, uint32_t flat, uint64_t digest) {
  members_.insert(member);
  state_of_[flat] = member.state;
  if (count_.size() <= member.state) {
    count_.resize(member.state + size_t{1});
    digest_.resize(count_.size());
  }
  ++count_[member.state];
  if (digest_[member.state] == digest) return;
  digest_[member.state] = digest;
  if (opened_.size() >= std::max(kLeastOpened, kOpenedPerState * count_.size())) {
    const size_t older = opened_.size() / 2;
    opened_begin_ += older;
    opened_.erase(opened_.begin(), opened_.begin() + static_cast<ptrdiff_t>(older));
  }
  opened_.push_back({member.state, digest});
}

absl::Status DeviceIndex::TakeNode(const Ledger& ledger, uint32_t node_row) {
  const LedgerNode& node = ledger.node(node_row);
  if (node.spec == nullptr) return absl::OkStatus();
  const double place = policy_.uses_place() ? policy_.ScorePlace(PlaceOf(ledger, node_row, 0, 0)) : 0;
  if (!std::isfinite(place)) {
    return MakeError(absl::StatusCode::kInternal, "policy %s: expected a finite cost for node %d, found %g",
                     std::string(policy_.name()), node.spec->id, place);
  }
  double& known = place_[node_row];
  floor_ = std::min(floor_, place);
  const bool moved = known != place;
  for (size_t i = 0; i < node.spec->devices.size(); ++i) {
    const uint32_t flat = node.first_device + static_cast<uint32_t>(i);
    const uint32_t was = state_of_[flat];
    const uint32_t now = ledger.state_id(flat);
    const uint64_t digest = ledger.states().digest(now);
    if (was == now && digest_[was] == digest && !moved) continue;
    Member member{was, static_cast<int32_t>(i), known, node.spec->id, node_row};
    if (was != kNoState) Take(member, flat);
    if (node.state != AdminState::kUp || !MayTakeMore(ledger.states().state(now), limits_)) continue;
    member.state = now;
    member.place = place;
    Put(member, flat, digest);
  }
  known = place;
  return absl::OkStatus();
}

absl::Status DeviceIndex::CatchUp(const Ledger& ledger) {
  const bool incremental = ledger_generation_ == ledger.generation() && ledger_seen_ >= ledger.log_begin();
  const uint64_t from = ledger_seen_;
  ledger_generation_ = 0;  // unless all goes well
  if (incremental) {
    for (uint64_t i = from; i < ledger.log_end(); ++i)
      HORUS_RETURN_IF_ERROR(TakeNode(ledger, ledger.touched(i).node_row));
  } else {
    members_.clear();
    opened_.clear();
    opened_begin_ = 0;
    ++generation_;
    floor_ = 0;
    place_.assign(ledger.node_rows(), 0);
    state_of_.assign(ledger.device_limit(), kNoState);
    count_.assign(ledger.states().state_limit(), 0);
    digest_.assign(count_.size(), 0);
    for (const uint32_t row : ledger.order()) HORUS_RETURN_IF_ERROR(TakeNode(ledger, row));
  }
  ledger_generation_ = ledger.generation();
  ledger_seen_ = ledger.log_end();
  return absl::OkStatus();
}

uint64_t DeviceIndex::bytes_held() const {
  constexpr uint64_t kTreeNodeBytes = 40;  // around each member
  return members_.size() * (sizeof(Member) + kTreeNodeBytes) + place_.capacity() * sizeof(double) +
         (state_of_.capacity() + count_.capacity()) * sizeof(uint32_t) + opened_.capacity() * sizeof(Opening) +
         digest_.capacity() * sizeof(uint64_t);
}

}  // namespace horus
