// SPDX-License-Identifier: Apache-2.0
// Gangs on all nodes, by the index: looks only at nodes that may hold the whole gang, else at racks that may matter.
#include <algorithm>
#include <queue>
#include <tuple>
#include <utility>

#include "place/admit.h"
#include "place/fit.h"
#include "place/search/search.h"

namespace horus {
namespace {

using Entry = GangIndex::Entry;

int64_t TasksOn(const Entry& entry, int32_t per_task) { return entry.open / per_task; }

// No fewer nodes of these hold so many tasks.
size_t LeastNodes(std::span<const Entry> entries, int32_t per_task, int64_t tasks, std::vector<int64_t>& scratch) {
  scratch.clear();
  for (const Entry& entry : entries) scratch.push_back(TasksOn(entry, per_task));
  std::sort(scratch.begin(), scratch.end(), std::greater<>());
  size_t nodes = 0;
  while (nodes < scratch.size() && tasks > 0) tasks -= scratch[nodes++];
  return nodes;
}

}  // namespace

bool Search::CanIndexGang(const JobView& view) const {
  const JobSpec& job = *view.job;
  return GpuCount(job) > 1 && !scorer_.exhaustive() && !(job.tasks == 1 && scorer_.policy().PricesNode(job));
}

absl::Status Search::OfferNode(const Ledger& ledger, const JobView& view, uint32_t node_row, SearchResult& result) {
  const JobSpec& job = *view.job;
  const LedgerNode& node = ledger.node(node_row);
  if (AdmitNode(scorer_.policy(), ledger, node_row, job) != Reason::kNone) return absl::OkStatus();
  HORUS_RETURN_IF_ERROR(GatherNode(ledger, node_row, view, result));
  TakeGang(ledger, node_row, view, HostTasks(job, node.free, job.tasks), result);
  return absl::OkStatus();
}

// What the nodes of one rack and group offer at that pace; tells how many tasks.
absl::Status Search::OfferRack(const Ledger& ledger, const JobView& view, std::span<const Entry> rack, double pace,
                               std::vector<Share>& shares, int64_t& tasks, SearchResult& result) {
  tasks = 0;
  shares.clear();
  for (const Entry& entry : rack) {
    if (TasksOn(entry, view.job->gpus_per_task) == 0) continue;
    const OfferRange* known = node_offers_.Find(entry.node_row);
    if (known == nullptr) {
      const auto first = static_cast<uint32_t>(offers_.size());
      HORUS_RETURN_IF_ERROR(OfferNode(ledger, view, entry.node_row, result));
      known = &node_offers_.Insert(entry.node_row, {first, static_cast<uint32_t>(offers_.size())});
    }
    for (uint32_t i = known->first; i < known->last; ++i) {
      if (offers_[i].group != entry.group) continue;
      const Share share = ShareOf(view, i, pace);
      if (share.tasks == 0) continue;
      shares.push_back(share);
      tasks += share.tasks;
    }
  }
  return absl::OkStatus();
}

// All racks of a group together, those with most tasks first, as far as the gang needs them.
absl::Status Search::SpreadOverRacks(const Ledger& ledger, const JobView& view, std::span<const IndexedRack> racks,
                                     double pace, Span& best, SearchResult& result) {
  struct Turn {
    int64_t tasks = 0;  // at most; exactly, once they are offered
    uint64_t rack = 0;
    size_t index = 0;
    bool offered = false;
    bool operator<(const Turn& other) const {  // the queue takes the largest
      return std::tie(tasks, other.rack) < std::tie(other.tasks, rack);
    }
  };
  std::vector<Turn> heap;
  for (size_t i = 0; i < racks.size(); ++i) heap.push_back({racks[i].most, racks[i].entries.front().rack, i});
  std::priority_queue<Turn> queue(std::less<Turn>(), std::move(heap));
  std::vector<Share> shares;
  std::vector<Share> of_rack;
  int64_t left = view.job->tasks;
  while (left > 0 && !queue.empty()) {
    Turn turn = queue.top();
    queue.pop();
    const bool exact = std::exchange(turn.offered, true);
    HORUS_RETURN_IF_ERROR(OfferRack(ledger, view, racks[turn.index].entries, pace, of_rack, turn.tasks, result));
    if (!exact) {
      if (turn.tasks > 0) queue.push(turn);
      continue;
    }
    shares.insert(shares.end(), of_rack.begin(), of_rack.end());
    left -= turn.tasks;
  }
  if (left > 0) return absl::OkStatus();
  const auto rack = [&](const Share& share) { return ledger.spec(offers_[share.offer].node_row).rack; };
  std::stable_sort(shares.begin(), shares.end(), [&](const Share& a, const Share& b) { return rack(a) < rack(b); });
  TrySpan(ledger, view, pace, std::move(shares), best);
  return absl::OkStatus();
}

absl::Status Search::SpreadGroup(const Ledger& ledger, const JobView& view, std::span<const Entry> group, double pace,
                                 Span& best, SearchResult& result) {
  const int32_t per_task = view.job->gpus_per_task;
  const int64_t tasks = view.job->tasks;
  std::vector<IndexedRack> racks;
  int64_t most = 0;
  for (size_t begin = 0, end = 0; begin < group.size(); begin = end) {
    int64_t in_rack = 0;
    while (end < group.size() && group[end].rack == group[begin].rack) in_rack += TasksOn(group[end++], per_task);
    if (in_rack > 0) racks.push_back({group.subspan(begin, end - begin), in_rack});
    most += in_rack;
  }
  if (most < tasks) return absl::OkStatus();
  std::vector<int64_t> scratch;
  if (!best.picks.empty() && LeastNodes(group, per_task, tasks, scratch) > best.picks.size()) return absl::OkStatus();
  bool one_rack = false;
  std::vector<const IndexedRack*> passed;  // too many nodes, if they hold it at all
  std::vector<Share> shares;
  int64_t held = 0;
  for (const IndexedRack& rack : racks) {
    if (rack.most < tasks) continue;
    if (!best.picks.empty() && LeastNodes(rack.entries, per_task, tasks, scratch) > best.picks.size()) {
      passed.push_back(&rack);
      continue;
    }
    HORUS_RETURN_IF_ERROR(OfferRack(ledger, view, rack.entries, pace, shares, held, result));
    if (held < tasks) continue;
    one_rack = true;
    TrySpan(ledger, view, pace, shares, best);
  }
  for (size_t i = 0; i < passed.size() && !one_rack; ++i) {
    HORUS_RETURN_IF_ERROR(OfferRack(ledger, view, passed[i]->entries, pace, shares, held, result));
    one_rack = held >= tasks;
  }
  return one_rack ? absl::OkStatus() : SpreadOverRacks(ledger, view, racks, pace, best, result);
}

absl::Status Search::SpreadIndexed(const Ledger& ledger, const JobView& view, double pace, Span& best,
                                   SearchResult& result) {
  const std::span<const Entry> entries = gangs_.entries();
  for (size_t begin = 0, end = 0; begin < entries.size(); begin = end) {
    while (end < entries.size() && entries[end].group == entries[begin].group) ++end;
    HORUS_RETURN_IF_ERROR(SpreadGroup(ledger, view, entries.subspan(begin, end - begin), pace, best, result));
  }
  return absl::OkStatus();
}

absl::Status Search::TakeIndexedGang(const Ledger& ledger, const JobView& view, SearchResult& result) {
  const int32_t per_task = view.job->gpus_per_task;
  offers_.clear();
  offered_.clear();
  node_offers_.clear();
  gangs_.CatchUp(ledger);
  const std::span<const Entry> entries = gangs_.entries();
  std::vector<std::pair<NodeId, uint32_t>> whole;  // nodes that may hold the whole gang
  for (const Entry& entry : entries) {
    if (TasksOn(entry, per_task) >= view.job->tasks) whole.emplace_back(entry.node, entry.node_row);
  }
  std::sort(whole.begin(), whole.end());
  whole.erase(std::unique(whole.begin(), whole.end()), whole.end());
  for (const auto& [id, row] : whole) {
    const auto first = static_cast<uint32_t>(offers_.size());
    HORUS_RETURN_IF_ERROR(OfferNode(ledger, view, row, result));
    node_offers_.Insert(row, {first, static_cast<uint32_t>(offers_.size())});
  }
  if (!result.best.slots.empty() || view.job->tasks == 1) return absl::OkStatus();
  const auto at = [&](double pace, Span& best) { return SpreadIndexed(ledger, view, pace, best, result); };
  return SpreadAtPaces(ledger, view, at, result);
}

}  // namespace horus
