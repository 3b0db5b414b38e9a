// SPDX-License-Identifier: Apache-2.0
// Keeps the counts of open devices as the ledger changes.
#include "place/search/gang_index.h"

#include <algorithm>
#include <tuple>

#include "place/search/search_nodes.h"

namespace horus {

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
      if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
    }
    for (const uint32_t group : groups) entries_.push_back({group, row, node.spec->rack, node.spec->id, 0});
  }
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.group, a.rack, a.node) < std::tie(b.group, b.rack, b.node);
  });
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
  return entries_.capacity() * sizeof(Entry) + (first_.capacity() + positions_.capacity()) * sizeof(uint32_t);
}

}  // namespace horus
