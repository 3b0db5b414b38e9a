// SPDX-License-Identifier: Apache-2.0
// Pricing one node for one task, and the search over such prices.
#include "place/search/search_nodes.h"

#include <cmath>

#include "base/units.h"
#include "place/search/admit.h"
#include "place/search/search.h"

namespace horus {

// ---- Node prices by request, brought up to date from a log of changed rows.

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
  HORUS_ASSIGN_OR_RETURN(const NodeOutcome outcome, pricer.Price(ledger, view, row));
  const bool cpu_only = IsCpuOnly(*view.job);
  Count(ledger, cpu_only, row, /*add=*/false, prices);
  prices.cost[row] = outcome.cost;
  prices.fitting[row] = outcome.fitting;
  prices.most[row] = outcome.most;
  prices.node_refused[row] = static_cast<uint8_t>(outcome.refused);
  const uint32_t first = ledger.node(row).first_device;
  for (size_t i = 0; i < outcome.devices.size(); ++i)
    prices.device_refused[first + i] = static_cast<uint8_t>(outcome.devices[i]);
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

uint64_t NodeScores::bytes_held() const { return bytes_ + BytesIn(prices_, last_change_); }

absl::Status NodePricer::JudgeDevices(const Ledger& ledger, const LedgerNode& node, const JobView& view,
                                      NodeOutcome& outcome) {
  const bool with_costs = scorer_.policy().node_uses_devices();
  const size_t count = node.spec->devices.size();
  devices_.resize(count);
  reasons_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const uint32_t id = ledger.state_id(node.first_device + static_cast<uint32_t>(i));
    const DeviceRow& state = ledger.states().state(id);
    DeviceVerdict verdict;
    if (with_costs) {
      HORUS_RETURN_IF_ERROR(scorer_.Judge(ledger.states(), id, verdict));
    } else {
      HORUS_RETURN_IF_ERROR(scorer_.Fit(ledger.states(), id, verdict.reason));
    }
    if (verdict.reason == Reason::kNone)
      verdict.reason = BarsFrom(ledger, node.first_device + static_cast<uint32_t>(i), view);
    reasons_[i] = verdict.reason;
    devices_[i] = {.type = state.type,
                   .group = GroupOf(state),
                   .free_milli = state.state == AdminState::kUp ? kMilliPerGpu - state.milli_used : 0,
                   .fits = verdict.reason == Reason::kNone,
                   .kinds = state.kinds,
                   .cost = verdict.cost};
    outcome.fitting += devices_[i].fits ? 1 : 0;
  }
  outcome.devices = reasons_;
  return absl::OkStatus();
}

void NodePricer::CountGroups(int32_t gpus, NodeOutcome& outcome) {
  const auto wanted = static_cast<uint32_t>(gpus);
  const bool one_group =
      std::ranges::all_of(devices_, [&](const NodeDevice& device) { return device.group == devices_.front().group; });
  if (one_group) {
    outcome.most = outcome.fitting;
    if (outcome.most >= wanted) return;
    for (NodeDevice& device : devices_) device.fits = false;
    return;
  }
  std::vector<std::pair<uint32_t, uint32_t>> groups;  // group, fitting
  for (const NodeDevice& device : devices_) {
    if (!device.fits) continue;
    const auto at = std::ranges::find_if(groups, [&](const auto& group) { return group.first == device.group; });
    if (at == groups.end()) {
      groups.emplace_back(device.group, 1);
    } else {
      ++at->second;
    }
  }
  for (const auto& [group, fitting] : groups) {
    outcome.most = std::max(outcome.most, fitting);
    if (fitting >= wanted) continue;
    for (NodeDevice& device : devices_) device.fits = device.fits && device.group != group;
  }
}

absl::Status NodePricer::CheckScore(const JobSpec& job) const {
  const auto bad = [&](const char* what) {
    return MakeError(absl::StatusCode::kInternal, "policy %s: node %d: %s", std::string(scorer_.policy().name()),
                     candidate_.node, what);
  };
  if (!std::isfinite(score_.cost)) return bad("expected a finite cost");
  if (score_.devices.size() != static_cast<size_t>(job.gpus_per_task)) return bad("expected one device for each GPU");
  for (size_t i = 0; i < score_.devices.size(); ++i) {
    const auto device = static_cast<size_t>(score_.devices[i]);
    if (device >= devices_.size() || !devices_[device].fits) return bad("expected devices that fit");
    if (i > 0 && score_.devices[i - 1] >= score_.devices[i]) return bad("expected ascending devices");
    if (devices_[device].group != devices_[static_cast<size_t>(score_.devices[0])].group)
      return bad("expected devices of one type and sharing mode");
  }
  return absl::OkStatus();
}

absl::StatusOr<NodeOutcome> NodePricer::Price(const Ledger& ledger, const JobView& view, uint32_t node_row) {
  NodeOutcome outcome;
  const JobSpec& job = *view.job;
  const LedgerNode& node = ledger.node(node_row);
  const HostFree& free = node.free;
  outcome.refused = AdmitNode(scorer_.policy(), ledger, node_row, job);
  if (outcome.refused != Reason::kNone) return outcome;
  candidate_ = {.job = &job,
                .gpu_milli = IsCpuOnly(job) ? 0 : std::max(job.gpu_milli, 1),
                .kind = IsCpuOnly(job) ? 0 : KindBit(job.gpu_milli, GpuCount(job)),
                .node = node.spec->id,
                .spec = node.spec.get(),
                .cpu_milli = node.spec->cpu_milli,
                .mem_mib = node.spec->mem_mib,
                .cpu_free_milli = free.cpu_milli,
                .mem_free_mib = free.mem_mib,
                .devices = {}};
  HORUS_RETURN_IF_ERROR(JudgeDevices(ledger, node, view, outcome));
  candidate_.devices = devices_;
  if (IsCpuOnly(job)) {
    outcome.devices = {};
    outcome.fitting = 1;
  } else {
    CountGroups(job.gpus_per_task, outcome);
    if (outcome.most < static_cast<uint32_t>(job.gpus_per_task)) return outcome;
  }
  score_.cost = 0;
  score_.devices.clear();
  HORUS_RETURN_IF_ERROR(scorer_.policy().ScoreNode(candidate_, score_));
  HORUS_RETURN_IF_ERROR(CheckScore(job));
  outcome.cost = score_.cost;
  outcome.chosen = score_.devices;
  return outcome;
}

namespace {

// The two cheapest nodes of a search; ties stay with the one that came first.
class TwoBest {
 public:
  static constexpr double kNone = std::numeric_limits<double>::infinity();
  void Offer(double cost, uint32_t row) {
    if (cost < best) {
      second = std::exchange(best, cost);
      second_row = std::exchange(best_row, row);
    } else if (cost < second) {
      second = cost;
      second_row = row;
    }
  }

  double best = kNone, second = kNone;
  uint32_t best_row = 0, second_row = 0;
};

}  // namespace

absl::Status Search::RunNodes(std::span<const uint32_t> nodes, bool all, SearchResult& result) {
  const JobSpec& job = *view_->job;
  const Policy& policy = scorer_.policy();
  const bool draws = policy.draws();
  TwoBest two;
  // A draw is never negative, so what is above the second best without it stays out.
  const auto offer = [&](double cost, uint32_t row) {
    if (cost >= two.second) return;
    two.Offer(draws ? cost + policy.Draw(job.id, ledger_->spec(row).id) : cost, row);
  };
  const auto note_most = [&](uint32_t most, uint32_t row) {
    if (job.gpus_per_task <= 1 || most <= result.most_fitting) return;
    result.most_fitting = most;
    result.most_node_row = row;
  };
  if (all && !scorer_.exhaustive()) {
    HORUS_ASSIGN_OR_RETURN(const NodeScores::Prices* const kept,
                           scores_.Of(*ledger_, *view_, scorer_.model().epoch(), pricer_));
    result.refused = kept->refused;
    result.fitting = kept->fitting_in_all;
    for (const uint32_t row : nodes) offer(kept->cost[row], row);
    if (job.gpus_per_task > 1) {
      for (const uint32_t row : nodes) note_most(kept->most[row], row);
    }
  } else {
    for (const uint32_t row : nodes) {
      HORUS_ASSIGN_OR_RETURN(const NodeOutcome outcome, pricer_.Price(*ledger_, *view_, row));
      AddRefusals(row, outcome, result);
      offer(outcome.cost, row);
      note_most(outcome.most, row);
    }
  }
  if (two.best == TwoBest::kNone) {
    result.refused[static_cast<size_t>(Reason::kGang)] += result.fitting;
    return absl::OkStatus();
  }
  result.refused = {};
  HORUS_RETURN_IF_ERROR(TakeNode(two.best_row, two.best, result.best));
  if (two.second == TwoBest::kNone) return absl::OkStatus();
  return TakeNode(two.second_row, two.second, result.second);
}

void Search::AddRefusals(uint32_t node_row, const NodeOutcome& outcome, SearchResult& result) {
  if (outcome.refused != Reason::kNone) {
    const size_t devices = IsCpuOnly(*view_->job) ? 1 : ledger_->spec(node_row).devices.size();
    result.refused[static_cast<size_t>(outcome.refused)] += static_cast<uint32_t>(devices);
  }
  for (const Reason reason : outcome.devices) {
    if (reason != Reason::kNone) ++result.refused[static_cast<size_t>(reason)];
  }
  result.fitting += outcome.fitting;
}

absl::Status Search::TakeNode(uint32_t node_row, double cost, Placement& placement) {
  HORUS_ASSIGN_OR_RETURN(const NodeOutcome outcome, pricer_.Price(*ledger_, *view_, node_row));
  placement.cost = cost;
  placement.slots.clear();
  if (IsCpuOnly(*view_->job)) placement.slots.push_back(SlotAt(node_row, kNoDevice));
  for (const int32_t device : outcome.chosen) placement.slots.push_back(SlotAt(node_row, device));
  return absl::OkStatus();
}

absl::Status Search::GatherPriced(uint32_t node_row, SearchResult& result) {
  fitting_.clear();
  HORUS_ASSIGN_OR_RETURN(NodeOutcome outcome, pricer_.Price(*ledger_, *view_, node_row));
  AddRefusals(node_row, outcome, result);
  if (!std::isfinite(outcome.cost)) return absl::OkStatus();
  if (scorer_.policy().draws()) outcome.cost += scorer_.policy().Draw(view_->job->id, pricer_.candidate().node);
  if (IsCpuOnly(*view_->job)) {
    fitting_.push_back({outcome.cost, kNoDevice, 0});
    return absl::OkStatus();
  }
  // In the price of a task is what the job does on the devices that the policy chose for it.
  double own_work = 0;
  for (size_t i = 0; waits_ && i < outcome.chosen.size(); ++i) {
    const uint32_t device = ledger_->node(node_row).first_device + static_cast<uint32_t>(outcome.chosen[i]);
    DeviceVerdict verdict;
    HORUS_RETURN_IF_ERROR(scorer_.Judge(ledger_->states(), ledger_->state_id(device), verdict));
    own_work = i == 0 ? verdict.own_work : std::min(own_work, verdict.own_work);
  }
  const std::span<const NodeDevice> devices = pricer_.candidate().devices;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (!devices[i].fits) continue;
    fitting_.push_back({outcome.cost / view_->job->gpus_per_task, static_cast<int32_t>(i), devices[i].group, own_work});
  }
  return absl::OkStatus();
}

}  // namespace horus
