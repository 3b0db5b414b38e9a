// SPDX-License-Identifier: Apache-2.0
// Greedy migrations, each the best that is left by an exact look at the ledger.
#include "place/modes/rebalance.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "base/status.h"
#include "place/modes/mover.h"
#include "place/state/fit.h"

namespace horus {
namespace {

// Gains below this are rounding: slowdowns are floats.
constexpr double kLeastBetter = 1e-6;

class Rebalancer {
 public:
  Rebalancer(Placer& placer, const Cluster& cluster, const RebalanceOptions& options)
      : engine_(placer.engine()), cluster_(cluster), options_(options), meter_(cluster, engine_.scorer()) {}

  absl::StatusOr<Plan> Run(std::optional<std::span<const JobId>> jobs, const ProgressFn& progress);

 private:
  struct Mover {
    uint32_t job_row = 0;
    JobId job = 0;
    double most = 0;  // no move of it gains more, as things stand
    bool moved = false;
    PlacedSlots slots;  // where it is in the ledger
  };
  struct Step {
    size_t mover = 0;
    double gain = 0;
    double cost = 0;
    SearchResult found;
  };

  absl::Status Gather(std::optional<std::span<const JobId>> jobs);
  absl::Status Bound(Mover& mover);
  [[nodiscard]] double CostOf(const JobSpec& job) const {
    return MostWork(job) * options_.downtime_s / options_.horizon_s;
  }
  [[nodiscard]] const JobRow& RowOf(const Mover& mover) const { return cluster_.rows().jobs[mover.job_row]; }
  absl::Status Look(size_t index, Step& best);
  absl::Status BestStep(Step& best);
  absl::Status Take(Step step, Plan& plan);
  std::vector<uint32_t> Disturbed(std::span<const PlacedSlot> left, std::span<const PlacedSlot> taken);

  Engine& engine_;
  const Cluster& cluster_;
  const RebalanceOptions& options_;
  WorkMeter meter_;
  std::vector<Mover> movers_;
  std::vector<uint32_t> order_;  // movers_, a heap by what they may gain
  std::vector<uint32_t> touched_;
  uint64_t searches_ = 0;
};

// What is lost to sharing on the job's devices, and by running on a slower type than its fastest.
absl::Status Rebalancer::Bound(Mover& mover) {
  Ledger& ledger = engine_.ledger();
  const JobSpec& job = cluster_.rows().RequestOf(RowOf(mover));
  double before = 0;
  HORUS_RETURN_IF_ERROR(meter_.OfSlots(ledger, mover.slots, before));
  const size_t mark = ledger.Mark();
  ledger.Remove(mover.job, job, mover.slots);
  double without = 0;
  const absl::Status status = meter_.OfSlots(ledger, mover.slots, without);
  ledger.UndoTo(mark);
  HORUS_RETURN_IF_ERROR(status);
  mover.most = without + MostWork(job) - before - CostOf(job);
  return absl::OkStatus();
}

absl::Status Rebalancer::Gather(std::optional<std::span<const JobId>> jobs) {
  const ClusterRows& rows = cluster_.rows();
  std::vector<JobId> ids = jobs.has_value() ? std::vector<JobId>(jobs->begin(), jobs->end()) : cluster_.JobIds();
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  for (const JobId id : ids) {
    const uint32_t row = rows.RowOfJob(id);
    if (row == kNoRow) {
      return NotFound("rebalance: job %d: not in this cluster", id);
    }
    const JobRow& job = rows.jobs[row];
    if (IsCpuOnly(rows.RequestOf(job))) continue;  // nothing slows it here
    HORUS_RETURN_IF_ERROR(engine_.GoOn());
    Mover mover{.job_row = row, .job = id, .slots = job.slots};
    HORUS_RETURN_IF_ERROR(Bound(mover));
    if (mover.most > options_.min_gain + kLeastBetter) movers_.push_back(std::move(mover));
  }
  return absl::OkStatus();
}

// Whether the best move of that job beats `best`.
absl::Status Rebalancer::Look(size_t index, Step& best) {
  const Mover& mover = movers_[index];
  Ledger& ledger = engine_.ledger();
  const JobSpec job = cluster_.rows().SpecOf(RowOf(mover));
  const JobView view = ViewJob(job);
  double here = 0;
  HORUS_RETURN_IF_ERROR(meter_.OfSlots(ledger, mover.slots, here));
  const size_t mark = ledger.Mark();
  ledger.Remove(job, mover.slots);
  double left = 0;
  SearchResult found;
  absl::Status status = meter_.OfSlots(ledger, mover.slots, left);
  if (status.ok()) status = engine_.Find(view, nullptr, found);
  ++searches_;
  for (const bool second : {false, true}) {
    Placement& place = second ? found.second : found.best;
    if (!status.ok() || place.slots.empty()) break;
    double before = 0;
    double after = 0;
    status = meter_.OfSlots(ledger, place.slots, before);
    const size_t removed = ledger.Mark();
    meter_.KnowAt(job, place.slots);
    ledger.Place(job, place.slots);
    if (status.ok()) status = meter_.OfSlots(ledger, place.slots, after);
    ledger.UndoTo(removed);
    if (!status.ok()) break;
    // Slots of the job's own devices are in both differences, which cancel there.
    const double gain = (left - here) + (after - before);
    const double cost = CostOf(job);
    if (gain - cost > best.gain - best.cost + kLeastBetter) {
      best = {.mover = index, .gain = gain, .cost = cost, .found = found};
      if (second) best.found.best = found.second;
      best.found.second = Placement();
      best.found.spans_nodes = !second && found.spans_nodes;
    }
  }
  ledger.UndoTo(mark);
  return status;
}

absl::Status Rebalancer::BestStep(Step& best) {
  best = {.gain = options_.min_gain, .cost = 0};
  order_.clear();
  for (uint32_t i = 0; i < movers_.size(); ++i) {
    if (!movers_[i].moved) order_.push_back(i);
  }
  const auto later = [&](uint32_t a, uint32_t b) {
    return std::pair(-movers_[a].most, movers_[a].job) > std::pair(-movers_[b].most, movers_[b].job);
  };
  std::make_heap(order_.begin(), order_.end(), later);  // few are looked at
  while (!order_.empty() && searches_ < options_.max_searches) {
    const uint32_t index = order_.front();
    if (movers_[index].most <= best.gain - best.cost + kLeastBetter) break;
    std::pop_heap(order_.begin(), order_.end(), later);
    order_.pop_back();
    HORUS_RETURN_IF_ERROR(Look(index, best));
  }
  return absl::OkStatus();
}

// The devices, ascending, beside whose tenants somebody came or went: a gang with one GPU there is beside them all.
std::vector<uint32_t> Rebalancer::Disturbed(std::span<const PlacedSlot> left, std::span<const PlacedSlot> taken) {
  const Ledger& ledger = engine_.ledger();
  std::vector<uint32_t> devices;
  for (const std::span<const PlacedSlot> slots : {left, taken}) {
    for (const PlacedSlot& slot : slots) devices.push_back(ledger.device_of(slot));
  }
  for (size_t i = 0, count = devices.size(); i < count; ++i) {
    for (const LedgerResident& one : ledger.residents(devices[i])) {
      const std::vector<uint32_t> more = meter_.DevicesOf(ledger, one.job);
      if (more.size() > 1) devices.insert(devices.end(), more.begin(), more.end());
    }
  }
  std::ranges::sort(devices);
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return devices;
}

absl::Status Rebalancer::Take(Step step, Plan& plan) {
  Mover& mover = movers_[step.mover];
  Ledger& ledger = engine_.ledger();
  std::shared_ptr<const JobSpec> job = std::make_shared<const JobSpec>(cluster_.rows().SpecOf(RowOf(mover)));
  const JobView view = ViewJob(*job);
  ledger.Remove(*job, mover.slots);
  HORUS_ASSIGN_OR_RETURN(Decision decision, engine_.Explain(view, step.found));
  if (std::shared_ptr<const JobSpec> decided = AsDecided(*job, decision)) job = std::move(decided);
  meter_.KnowAt(*job, step.found.best.slots);
  ledger.Place(*job, step.found.best.slots);
  plan.moves.push_back({.kind = ActionKind::kMigrate,
                        .job = mover.job,
                        .from = SlotsOf(ledger, mover.slots),
                        .to = decision.slots,
                        .gain = step.gain,
                        .cost = step.cost});
  plan.actions.push_back({ActionKind::kMigrate, job, decision.slots});
  plan.decisions.push_back(std::move(decision));
  plan.work_after += step.gain;
  for (const PlacedSlot& slot : mover.slots) touched_.push_back(slot.node_row);
  for (const PlacedSlot& slot : step.found.best.slots) touched_.push_back(slot.node_row);
  const std::vector<uint32_t> near = Disturbed(mover.slots, step.found.best.slots);
  mover.slots = std::move(step.found.best.slots);
  mover.moved = true;  // a job moves once
  for (Mover& other : movers_) {
    const auto disturbed = [&](const PlacedSlot& slot) {
      return std::binary_search(near.begin(), near.end(), ledger.device_of(slot));
    };
    if (!other.moved && std::ranges::any_of(other.slots, disturbed)) {
      HORUS_RETURN_IF_ERROR(Bound(other));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Plan> Rebalancer::Run(std::optional<std::span<const JobId>> jobs, const ProgressFn& progress) {
  HORUS_ASSIGN_OR_RETURN(Plan plan, StartPlan(engine_, cluster_, meter_));
  HORUS_RETURN_IF_ERROR(Gather(jobs));
  while (plan.moves.size() < options_.max_migrations) {
    if (progress != nullptr && !progress(plan.moves.size(), options_.max_migrations)) {
      return Cancelled("rebalance: cancelled after %d migrations", plan.moves.size());
    }
    Step best;
    HORUS_RETURN_IF_ERROR(BestStep(best));
    if (best.found.best.slots.empty()) break;
    HORUS_RETURN_IF_ERROR(Take(std::move(best), plan));
  }
  engine_.AddSeen(touched_, plan);
  return plan;
}

}  // namespace

absl::Status CheckRebalance(const RebalanceOptions& options) {
  if (!(options.downtime_s >= 0) || !std::isfinite(options.downtime_s)) {
    return InvalidArgument("rebalance: downtime_s: expected 0 or more seconds, found %g", options.downtime_s);
  }
  if (!(options.horizon_s > 0) || !std::isfinite(options.horizon_s)) {
    return InvalidArgument("rebalance: horizon_s: expected more than 0 seconds, found %g", options.horizon_s);
  }
  if (!(options.min_gain >= 0) || !std::isfinite(options.min_gain)) {
    return InvalidArgument("rebalance: min_gain: expected 0 or more units of work, found %g", options.min_gain);
  }
  return absl::OkStatus();
}

absl::StatusOr<Plan> Rebalance(Placer& placer, const Cluster& cluster, const RebalanceOptions& options,
                               std::optional<std::span<const JobId>> jobs, const ProgressFn& progress) {
  HORUS_RETURN_IF_ERROR(CheckRebalance(options));
  return Rebalancer(placer, cluster, options).Run(jobs, progress);
}

}  // namespace horus
