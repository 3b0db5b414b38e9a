// SPDX-License-Identifier: Apache-2.0
// What the search keeps of a ledger and catches up with through its log: open devices, gangs' nodes, answers, refusals.
#include "place/search/index.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>

#include "base/status.h"
#include "place/search/admit.h"
#include "place/search/search_nodes.h"

namespace horus {
namespace {

// ---- Keeps the devices sorted by state and place as the ledger changes.

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

DeviceIndex::Members::node_type DeviceIndex::Take(const Member& member, uint32_t flat) {
  const uint32_t state = std::exchange(state_of_[flat], kNoState);
  Members::node_type taken = members_[state].extract(member);
  --open_;
  if (members_[state].empty()) digest_[state] = 0;
  return taken;
}

// `into` is used again, if it holds a member.
void DeviceIndex::Put(const Member& member, uint32_t flat, uint32_t state, uint64_t digest, Members::node_type into) {
  if (members_.size() <= state) {
    members_.resize(state + size_t{1});
    digest_.resize(members_.size());
  }
  if (into.empty()) {
    members_[state].insert(member);
  } else {
    into.value() = member;
    members_[state].insert(std::move(into));
  }
  ++open_;
  state_of_[flat] = state;
  if (digest_[state] == digest) return;
  digest_[state] = digest;
  if (opened_.size() >= std::max(kLeastOpened, kOpenedPerState * members_.size())) {
    const size_t older = opened_.size() / 2;
    opened_begin_ += older;
    opened_.erase(opened_.begin(), opened_.begin() + static_cast<ptrdiff_t>(older));
  }
  opened_.push_back({state, digest});
}

absl::Status DeviceIndex::TakeNode(const Ledger& ledger, const Ledger::Touched& touched) {
  const uint32_t node_row = touched.node_row;
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
  if (touched.device == kNoDevice && !moved) return absl::OkStatus();
  const bool all = touched.device == Ledger::kManyDevices || moved;
  const int32_t first = all ? 0 : touched.device;
  const int32_t end = all ? node.devices : touched.device + 1;
  for (int32_t i = first; i < end; ++i) {
    const uint32_t flat = node.first_device + static_cast<uint32_t>(i);
    const uint32_t was = state_of_[flat];
    const uint32_t now = ledger.state_id(flat);
    const uint64_t digest = ledger.states().digest(now);
    if (was == now && digest_[was] == digest && !moved) continue;
    Member member{i, node_row, known, node.spec->id};
    Members::node_type taken;
    if (was != kNoState) taken = Take(member, flat);
    if (node.state != AdminState::kUp || !MayTakeMore(ledger.states().state(now), limits_)) continue;
    member.place = place;
    Put(member, flat, now, digest, std::move(taken));
  }
  known = place;
  return absl::OkStatus();
}

absl::Status DeviceIndex::CatchUp(const Ledger& ledger) {
  const bool incremental = ledger_generation_ == ledger.generation() && ledger_seen_ >= ledger.log_begin();
  const uint64_t from = ledger_seen_;
  ledger_generation_ = 0;  // unless all goes well
  if (incremental) {
    for (uint64_t i = from; i < ledger.log_end(); ++i) HORUS_RETURN_IF_ERROR(TakeNode(ledger, ledger.touched(i)));
  } else {
    members_.clear();
    members_.resize(ledger.states().state_limit());
    open_ = 0;
    opened_.clear();
    opened_begin_ = 0;
    ++generation_;
    floor_ = 0;
    place_.assign(ledger.node_rows(), 0);
    state_of_.assign(ledger.device_limit(), kNoState);
    digest_.assign(members_.size(), 0);
    for (const uint32_t row : ledger.order()) HORUS_RETURN_IF_ERROR(TakeNode(ledger, {row, Ledger::kManyDevices}));
  }
  ledger_generation_ = ledger.generation();
  ledger_seen_ = ledger.log_end();
  return absl::OkStatus();
}

uint64_t DeviceIndex::bytes_held() const {
  constexpr uint64_t kTreeNodeBytes = 40;  // around each member
  return open_ * (sizeof(Member) + kTreeNodeBytes) + members_.capacity() * sizeof(Members) +
         place_.capacity() * sizeof(double) + state_of_.capacity() * sizeof(uint32_t) +
         opened_.capacity() * sizeof(Opening) + digest_.capacity() * sizeof(uint64_t);
}

// ---- Keeps the counts of open devices as the ledger changes.

void GangIndex::Count(const Ledger& ledger, uint32_t node_row) {
  const LedgerNode& node = ledger.node(node_row);
  const auto positions =
      std::span(positions_).subspan(first_[node_row], first_[node_row + size_t{1}] - first_[node_row]);
  for (const uint32_t at : positions) entries_[at].open = 0;
  if (node.spec == nullptr || node.state != AdminState::kUp) return;
  for (size_t i = 0; i < node.spec->devices.size(); ++i) {
    const DeviceRow& state = ledger.state(node.first_device + static_cast<uint32_t>(i));
    if (!MayTakeMore(state, limits_)) continue;
    const uint32_t group = GroupOf(state);
    for (const uint32_t at : positions) entries_[at].open += entries_[at].group == group ? 1 : 0;
  }
}

void GangIndex::StartAnew(const Ledger& ledger) {
  entries_.clear();
  std::vector<uint32_t> groups;
  for (const uint32_t row : ledger.order()) {
    const LedgerNode& node = ledger.node(row);
    groups.clear();
    for (size_t i = 0; i < node.spec->devices.size(); ++i) {
      const uint32_t group = GroupOf(ledger.state(node.first_device + static_cast<uint32_t>(i)));
      if (std::ranges::find(groups, group) == groups.end()) groups.push_back(group);
    }
    for (const uint32_t group : groups) {
      entries_.push_back({.group = group,
                          .node_row = row,
                          .rack = node.spec->rack,
                          .node = node.spec->id,
                          .first_device = node.first_device,
                          .devices = static_cast<uint32_t>(node.devices),
                          .whole = groups.size() == 1});
    }
  }
  std::ranges::sort(entries_, [](const Entry& a, const Entry& b) {
    return std::tie(a.group, a.rack, a.node) < std::tie(b.group, b.rack, b.node);
  });
  racks_.clear();
  for (uint32_t at = 0; at < entries_.size(); ++at) {
    const Entry& entry = entries_[at];
    if (racks_.empty() || racks_.back().group != entry.group || racks_.back().rack != entry.rack)
      racks_.push_back({entry.group, entry.rack, at, at});
    ++racks_.back().end;
  }
  first_.assign(ledger.node_rows() + 1, 0);
  for (const Entry& entry : entries_) ++first_[entry.node_row + size_t{1}];
  for (size_t row = 1; row < first_.size(); ++row) first_[row] += first_[row - 1];
  positions_.resize(entries_.size());
  std::vector<uint32_t> next(first_.begin(), first_.end());
  for (uint32_t at = 0; at < entries_.size(); ++at) positions_[next[entries_[at].node_row]++] = at;
  for (const uint32_t row : ledger.order()) Count(ledger, row);
}

void GangIndex::CatchUp(const Ledger& ledger) {
  const bool incremental = ledger_generation_ == ledger.generation() && ledger_seen_ >= ledger.log_begin();
  const uint64_t from = ledger_seen_;
  ledger_generation_ = 0;  // unless all goes well
  if (incremental) {
    for (uint64_t i = from; i < ledger.log_end(); ++i) Count(ledger, ledger.touched(i).node_row);
  } else {
    StartAnew(ledger);
  }
  ledger_generation_ = ledger.generation();
  ledger_seen_ = ledger.log_end();
}

uint64_t GangIndex::bytes_held() const {
  return entries_.capacity() * sizeof(Entry) + racks_.capacity() * sizeof(Rack) +
         (first_.capacity() + positions_.capacity()) * sizeof(uint32_t);
}

// ---- Forgets the answers of nodes that changed.

std::span<NodeAnswer> NodeAnswers::Of(const Ledger& ledger, uint64_t request, uint64_t epoch) {
  std::unique_ptr<Table>* known = epoch == epoch_ ? of_request_.Find(request) : nullptr;
  if (known == nullptr) {
    if (epoch != epoch_ || bytes_ + sizeof(Table) + ledger.node_rows() * sizeof(NodeAnswer) > most_bytes_) {
      of_request_.clear();
      bytes_ = 0;
      epoch_ = epoch;
    }
    known = &of_request_.Insert(request, std::make_unique<Table>());
    bytes_ += sizeof(Table);
  }
  Table& table = **known;
  if (table.generation == ledger.generation() && table.seen >= ledger.log_begin()) {
    for (uint64_t i = table.seen; i < ledger.log_end(); ++i) table.answers[ledger.touched(i).node_row].known = false;
  } else {
    bytes_ += (ledger.node_rows() - table.answers.size()) * sizeof(NodeAnswer);
    table.answers.assign(ledger.node_rows(), {});
    table.generation = ledger.generation();
  }
  table.seen = ledger.log_end();
  return table.answers;
}

// ---- Keeps what refuses each device as the ledger changes.

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
