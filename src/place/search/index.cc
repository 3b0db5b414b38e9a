// SPDX-License-Identifier: Apache-2.0
// What the search keeps of a ledger and catches up with through its log: open devices, gangs' nodes, answers, refusals.
#include "place/search/index.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "place/search/admit.h"
#include "place/search/search_nodes.h"

namespace horus {

// ---- Keeps the devices sorted by state and place as the ledger changes.

// Openings that are held, per state with devices and at least; followers that fall behind read all states anew.
constexpr size_t kOpenedPerState = 2;
constexpr size_t kLeastOpened = 4096;

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
  return open_ * (sizeof(Member) + kTreeNodeBytes) + BytesIn(members_, place_, state_of_, opened_, digest_);
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

uint64_t GangIndex::bytes_held() const { return BytesIn(entries_, racks_, first_, positions_); }

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
      HORUS_ASSIGN_OR_RETURN(verdict, JudgeDevice(scorer_, ledger, view, device, memo));
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
  HORUS_ASSIGN_OR_RETURN(const DeviceVerdict verdict, JudgeDevice(scorer_, ledger, view, device, /*memo=*/false));
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

// ---- Keeps a byte a device for each class of gangs as the ledger changes.

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
  pays_.FindOrInsert(view.digest, true);
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
