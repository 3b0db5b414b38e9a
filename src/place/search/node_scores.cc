// SPDX-License-Identifier: Apache-2.0
// Node prices by request, brought up to date from a log of changed rows.
#include <algorithm>
#include <utility>

#include "base/status.h"
#include "place/admit.h"
#include "place/search/search_nodes.h"

namespace horus {
// Takes the row's refusals out of the sums, or puts them in.
void NodeScores::Count(const Ledger& ledger, bool cpu_only, uint32_t row, bool add, Prices& prices) const {
  const auto change = [add](uint32_t& sum, uint32_t by) { sum = add ? sum + by : sum - by; };
  const LedgerNode& node = ledger.node(row);
  const size_t devices = cpu_only ? 0 : node.spec->devices.size();
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
  const uint32_t first = ledger.node(row).first_device;
  for (size_t i = 0; i < outcome.devices.size(); ++i) {
    prices.device_refused[first + i] = static_cast<uint8_t>(outcome.devices[i]);
  }
  Count(ledger, cpu_only, row, /*add=*/true, prices);
  return absl::OkStatus();
}

absl::StatusOr<const NodeScores::Prices*> NodeScores::Of(const Ledger& ledger, const JobView& view,
                                                         uint64_t model_epoch, NodePricer& pricer) {
  if (epoch_ != model_epoch || generation_ != ledger.generation()) Clear();
  epoch_ = model_epoch;
  generation_ = ledger.generation();
  const uint64_t request = RequestOn(ledger, view);
  std::unique_ptr<Prices>* known = prices_.Find(request);
  if (known == nullptr) {
    const size_t nodes = ledger.node_rows();
    const size_t devices = IsCpuOnly(*view.job) ? 0 : ledger.device_limit();
    const uint64_t bytes = sizeof(Prices) + nodes * (sizeof(double) + 2 * sizeof(uint32_t) + 1) + devices;
    if (bytes_ + bytes > most_bytes_) Clear();
    auto fresh = std::make_unique<Prices>();
    fresh->cost.resize(nodes);
    fresh->fitting.resize(nodes);
    fresh->most.resize(nodes);
    fresh->node_refused.resize(nodes);
    fresh->device_refused.resize(devices);
    known = &prices_.Insert(request, std::move(fresh));
    bytes_ += bytes;
  }
  Prices& prices = **known;
  const bool all = !prices.whole || prices.upto < ledger.log_begin();
  prices.whole = false;  // until nothing failed
  if (all) {
    for (const uint32_t row : ledger.order()) HORUS_RETURN_IF_ERROR(Update(ledger, view, row, pricer, prices));
  } else {
    last_change_.resize(ledger.node_rows());
    for (uint64_t i = prices.upto; i < ledger.log_end(); ++i) last_change_[ledger.touched(i).node_row] = i;
    for (uint64_t i = prices.upto; i < ledger.log_end(); ++i) {
      const uint32_t row = ledger.touched(i).node_row;
      if (last_change_[row] == i) HORUS_RETURN_IF_ERROR(Update(ledger, view, row, pricer, prices));
    }
  }
  prices.upto = ledger.log_end();
  prices.whole = true;
  return &prices;
}

void NodeScores::Clear() {
  prices_.clear();
  bytes_ = 0;
}

uint64_t NodeScores::bytes_held() const {
  return bytes_ + prices_.bytes_held() + last_change_.capacity() * sizeof(uint64_t);
}

}  // namespace horus
