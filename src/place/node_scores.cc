// SPDX-License-Identifier: Apache-2.0
// Node prices by request, brought up to date from a log of changed rows.
#include <algorithm>
#include <utility>

#include "base/status.h"
#include "place/search_nodes.h"

namespace horus {
namespace {

// Entries of the log for each node, before the older half is forgotten; a request that was not asked for since is
// priced anew for all nodes. Reading an entry costs about a hundredth of a price.
constexpr size_t kLogPerNode = 16;

}  // namespace

void NodeScores::Clear() {
  prices_.clear();
  bytes_ = 0;
  log_start_ += log_.size();
  log_.clear();
}

void NodeScores::Changed(uint32_t row) {
  if (row >= seen_.size()) return;  // not followed yet
  seen_[row].version = 0;
  if (log_.size() >= kLogPerNode * seen_.size()) {
    const size_t half = log_.size() / 2;
    log_.erase(log_.begin(), log_.begin() + static_cast<ptrdiff_t>(half));
    log_start_ += half;
  }
  seen_[row].last_change = log_start_ + log_.size();
  log_.push_back(row);
}

void NodeScores::Follow(const Ledger& ledger, uint64_t model_epoch) {
  const ClusterRows& rows = ledger.rows();
  const bool same_nodes = epoch_ == model_epoch && order_ == rows.order && seen_.size() == rows.nodes.size();
  if (!same_nodes) {
    Clear();
    epoch_ = model_epoch;
    order_ = rows.order;
    seen_.assign(rows.nodes.size(), Seen());
  }
  bool moved = false;
  for (const uint32_t row : order_) {
    const NodeRow& node = rows.nodes[row];
    Seen& seen = seen_[row];
    const Seen now{.version = node.version,
                   .first_device = node.first_device,
                   .devices = static_cast<uint32_t>(node.spec.devices.size())};
    const bool stays = seen.first_device == now.first_device && seen.devices == now.devices;
    if (stays && seen.version == now.version) continue;
    moved |= !stays;
    seen = now;
    Changed(row);
    seen.version = now.version;
  }
  if (moved) Clear();
}

// Takes the row's refusals out of the sums, or puts them in.
void NodeScores::Count(const Ledger& ledger, bool cpu_only, uint32_t row, bool add, Prices& prices) const {
  const auto change = [add](uint32_t& sum, uint32_t by) { sum = add ? sum + by : sum - by; };
  const NodeRow& node = ledger.rows().nodes[row];
  const size_t devices = cpu_only ? 0 : node.spec.devices.size();
  change(prices.fitting_in_all, prices.fitting[row]);
  if (const uint8_t refused = prices.node_refused[row]; refused != 0) {
    change(prices.refused[refused], cpu_only ? 1 : static_cast<uint32_t>(devices));
    return;
  }
  for (size_t i = 0; i < devices; ++i) {
    const uint8_t refused = prices.device_refused[node.first_device + i];
    if (refused != 0) change(prices.refused[refused], 1);
  }
}

absl::Status NodeScores::Update(const Ledger& ledger, const JobView& view, uint32_t row, NodePricer& pricer,
                                Prices& prices) const {
  NodeOutcome outcome;
  HORUS_RETURN_IF_ERROR(pricer.Price(ledger, view, row, outcome));
  const bool cpu_only = IsCpuOnly(*view.job);
  Count(ledger, cpu_only, row, /*add=*/false, prices);
  prices.cost[row] = outcome.cost;
  prices.fitting[row] = outcome.fitting;
  prices.most[row] = outcome.most;
  prices.node_refused[row] = static_cast<uint8_t>(outcome.refused);
  const uint32_t first = ledger.rows().nodes[row].first_device;
  for (size_t i = 0; i < outcome.devices.size(); ++i) {
    prices.device_refused[first + i] = static_cast<uint8_t>(outcome.devices[i]);
  }
  Count(ledger, cpu_only, row, /*add=*/true, prices);
  return absl::OkStatus();
}

absl::StatusOr<const NodeScores::Prices*> NodeScores::Of(const Ledger& ledger, const JobView& view,
                                                         NodePricer& pricer) {
  const ClusterRows& rows = ledger.rows();
  std::unique_ptr<Prices>* known = prices_.Find(view.request);
  if (known == nullptr) {
    const size_t nodes = rows.nodes.size();
    const size_t devices = IsCpuOnly(*view.job) ? 0 : rows.device_state.size();
    const uint64_t bytes = sizeof(Prices) + nodes * (sizeof(double) + 2 * sizeof(uint32_t) + 1) + devices;
    if (bytes_ + bytes > most_bytes_) Clear();
    auto fresh = std::make_unique<Prices>();
    fresh->cost.resize(nodes);
    fresh->fitting.resize(nodes);
    fresh->most.resize(nodes);
    fresh->node_refused.resize(nodes);
    fresh->device_refused.resize(devices);
    known = &prices_.Insert(view.request, std::move(fresh));
    bytes_ += bytes;
  }
  Prices& prices = **known;
  const uint64_t now = log_start_ + log_.size();
  const bool all = !prices.whole || prices.upto < log_start_;
  prices.whole = false;  // until nothing failed
  if (all) {
    for (const uint32_t row : order_) HORUS_RETURN_IF_ERROR(Update(ledger, view, row, pricer, prices));
  } else {
    for (uint64_t change = prices.upto; change < now; ++change) {
      const uint32_t row = log_[change - log_start_];
      if (seen_[row].last_change != change) continue;  // comes again
      HORUS_RETURN_IF_ERROR(Update(ledger, view, row, pricer, prices));
    }
  }
  prices.upto = now;
  prices.whole = true;
  return &prices;
}

uint64_t NodeScores::bytes_held() const {
  return bytes_ + prices_.bytes_held() + seen_.capacity() * sizeof(Seen) +
         (order_.capacity() + log_.capacity()) * sizeof(uint32_t);
}

}  // namespace horus
