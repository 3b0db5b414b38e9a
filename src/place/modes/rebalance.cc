// SPDX-License-Identifier: Apache-2.0
// Plans that move residents: greedy migrations, each the best that is left by an exact look at the ledger; off some
// nodes; out of trouble.
#include "place/modes/rebalance.h"

#include <cmath>

#include "place/engine.h"
#include "place/work.h"

namespace horus {
namespace {

// The engine started, and a plan that changes nothing yet.
absl::StatusOr<Plan> StartPlan(Engine& engine, const Cluster& cluster, WorkMeter& meter) {
  HORUS_RETURN_IF_ERROR(engine.Start(cluster));
  Plan plan;
  plan.model_epoch = engine.scorer().model().epoch();
  plan.has_work = true;
  HORUS_ASSIGN_OR_RETURN(plan.work_before, meter.OfAll(engine.ledger()));
  plan.work_after = plan.work_before;
  return plan;
}

void TellMove(JobId id, Slots from, std::shared_ptr<const JobSpec> job, Decision decision, double gain, double cost,
              Plan& plan) {
  plan.work_after += gain;
  plan.moves.push_back({.kind = ActionKind::kMigrate,
                        .job = id,
                        .from = std::move(from),
                        .to = decision.slots,
                        .gain = gain,
                        .cost = cost});
  plan.actions.push_back({ActionKind::kMigrate, std::move(job), decision.slots});
  plan.decisions.push_back(std::move(decision));
}

// ---- ResidentMover: a resident leaves the ledger, is decided anew, and is booked again, where the policy wants it as
// things stand.
// Cost: a search a resident, and the work of the devices that it leaves and comes to.

class ResidentMover {
 public:
  // All must outlive it. The engine has started on the cluster.
  ResidentMover(Engine& engine, WorkMeter& meter, const Cluster& cluster)
      : engine_(engine), meter_(meter), cluster_(cluster) {}

  // The decision about the job as though it were not there. Where it has another place and `accepts` takes what all
  // gain by that, the job is moved, in the ledger and in the plan, whose work_after follows; else all is as it was.
  struct Outcome {
    Decision decision;
    bool moved = false;
  };
  absl::StatusOr<Outcome> Move(JobId id, double cost, const std::function<bool(double gain)>& accepts, Plan& plan) {
    Ledger& ledger = engine_.ledger();
    const ClusterRows& rows = cluster_.rows();
    const JobRow& row = rows.jobs[rows.RowOfJob(id)];
    const auto job = std::make_shared<const JobSpec>(rows.SpecOf(row));
    std::shared_ptr<const JobSpec> there = job;
    const PlacedSlots from = row.slots;
    const Slots was = SlotsOf(ledger, from);
    HORUS_ASSIGN_OR_RETURN(const double here, meter_.OfSlots(ledger, from));
    const size_t mark = ledger.Mark();
    ledger.Remove(*job, from);
    HORUS_ASSIGN_OR_RETURN(const double left, meter_.OfSlots(ledger, from));
    const JobView view = ViewJob(*job);
    Outcome outcome;
    HORUS_ASSIGN_OR_RETURN(outcome.decision, engine_.Decide(view));
    const Decision& decision = outcome.decision;
    if (decision.verdict == Verdict::kPlace && decision.slots != was) {
      const PlacedSlots to = engine_.found().best.slots;
      if (std::shared_ptr<const JobSpec> decided = AsDecided(*job, decision)) there = std::move(decided);
      HORUS_ASSIGN_OR_RETURN(const double there_too, meter_.Book(ledger, *there, to));
      const double gain = (left - here) + there_too;  // what the two have in common cancels
      outcome.moved = accepts(gain);
      if (outcome.moved) {
        for (const PlacedSlot& slot : from) touched_.push_back(slot.node_row);
        for (const PlacedSlot& slot : to) touched_.push_back(slot.node_row);
        TellMove(id, was, std::move(there), decision, gain, cost, plan);
      }
    }
    if (!outcome.moved) ledger.UndoTo(mark);
    return outcome;
  }

  // Notes in the plan what it saw of the nodes that jobs left and came to.
  void AddSeen(Plan& plan) const { engine_.AddSeen(touched_, plan); }

 private:
  Engine& engine_;
  WorkMeter& meter_;
  const Cluster& cluster_;
  std::vector<uint32_t> touched_;  // rows of nodes
};

// ---- Rebalance: the best move, then the best that is left.

// Gains below this are rounding: slowdowns are floats.
constexpr double kLeastBetter = 1e-6;

class Rebalancer {
 public:
  Rebalancer(Placer& placer, const Cluster& cluster, const RebalanceOptions& options)
      : engine_(placer.engine()), cluster_(cluster), options_(options), meter_(cluster, engine_.scorer()) {}

  absl::StatusOr<Plan> Run(std::optional<std::span<const JobId>> jobs, const ProgressFn& progress) {
    HORUS_ASSIGN_OR_RETURN(Plan plan, StartPlan(engine_, cluster_, meter_));
    HORUS_RETURN_IF_ERROR(Gather(jobs));
    while (plan.moves.size() < options_.max_migrations) {
      if (progress != nullptr && !progress(plan.moves.size(), options_.max_migrations))
        return Cancelled("rebalance: cancelled after %d migrations", plan.moves.size());
      Step best;
      HORUS_RETURN_IF_ERROR(BestStep(best));
      if (best.found.best.slots.empty()) break;
      HORUS_RETURN_IF_ERROR(Take(std::move(best), plan));
    }
    engine_.AddSeen(touched_, plan);
    return plan;
  }

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
    double gain = 0, cost = 0;
    SearchResult found;
  };

  absl::Status Gather(std::optional<std::span<const JobId>> jobs) {
    const ClusterRows& rows = cluster_.rows();
    std::vector<JobId> ids = jobs.has_value() ? std::vector<JobId>(jobs->begin(), jobs->end()) : cluster_.JobIds();
    SortUnique(ids);
    for (const JobId id : ids) {
      const uint32_t row = rows.RowOfJob(id);
      if (row == kNoRow) return NotFound("rebalance: job %d: not in this cluster", id);
      const JobRow& job = rows.jobs[row];
      if (IsCpuOnly(rows.RequestOf(job))) continue;  // nothing slows it here
      HORUS_RETURN_IF_ERROR(engine_.GoOn());
      Mover mover{.job_row = row, .job = id, .slots = job.slots};
      HORUS_RETURN_IF_ERROR(Bound(mover));
      if (mover.most > options_.min_gain + kLeastBetter) movers_.push_back(std::move(mover));
    }
    return absl::OkStatus();
  }

  // What is lost to sharing on the job's devices, and by running on a slower type than its fastest.
  absl::Status Bound(Mover& mover) {
    Ledger& ledger = engine_.ledger();
    const JobSpec& job = cluster_.rows().RequestOf(RowOf(mover));
    HORUS_ASSIGN_OR_RETURN(const double before, meter_.OfSlots(ledger, mover.slots));
    const size_t mark = ledger.Mark();
    ledger.Remove(mover.job, job, mover.slots);
    HORUS_ASSIGN_OR_RETURN(const double without, meter_.OfSlots(ledger, mover.slots));
    ledger.UndoTo(mark);
    mover.most = without + MostWork(job) - before - CostOf(job);
    return absl::OkStatus();
  }

  [[nodiscard]] double CostOf(const JobSpec& job) const {
    return MostWork(job) * options_.downtime_s / options_.horizon_s;
  }
  [[nodiscard]] const JobRow& RowOf(const Mover& mover) const { return cluster_.rows().jobs[mover.job_row]; }

  // Whether the best move of that job beats `best`.
  absl::Status Look(size_t index, Step& best) {
    const Mover& mover = movers_[index];
    Ledger& ledger = engine_.ledger();
    const JobSpec job = cluster_.rows().SpecOf(RowOf(mover));
    const JobView view = ViewJob(job);
    HORUS_ASSIGN_OR_RETURN(const double here, meter_.OfSlots(ledger, mover.slots));
    const size_t mark = ledger.Mark();
    ledger.Remove(job, mover.slots);
    HORUS_ASSIGN_OR_RETURN(const double left, meter_.OfSlots(ledger, mover.slots));
    SearchResult found;
    HORUS_RETURN_IF_ERROR(engine_.Find(view, nullptr, found));
    ++searches_;
    const double cost = CostOf(job);
    for (const bool second : {false, true}) {
      const Placement& place = second ? found.second : found.best;
      if (place.slots.empty()) break;
      const size_t removed = ledger.Mark();
      HORUS_ASSIGN_OR_RETURN(const double there, meter_.Book(ledger, job, place.slots));
      ledger.UndoTo(removed);
      const double gain = (left - here) + there;  // what the two have in common cancels
      if (gain - cost > best.gain - best.cost + kLeastBetter) {
        best = {.mover = index, .gain = gain, .cost = cost, .found = found};
        if (second) best.found.best = found.second;
        best.found.second = Placement();
        best.found.spans_nodes = !second && found.spans_nodes;
      }
    }
    ledger.UndoTo(mark);
    return absl::OkStatus();
  }

  absl::Status BestStep(Step& best) {
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

  absl::Status Take(Step step, Plan& plan) {
    Mover& mover = movers_[step.mover];
    Ledger& ledger = engine_.ledger();
    std::shared_ptr<const JobSpec> job = std::make_shared<const JobSpec>(cluster_.rows().SpecOf(RowOf(mover)));
    const JobView view = ViewJob(*job);
    ledger.Remove(*job, mover.slots);
    HORUS_ASSIGN_OR_RETURN(Decision decision, engine_.Explain(view, step.found));
    if (std::shared_ptr<const JobSpec> decided = AsDecided(*job, decision)) job = std::move(decided);
    meter_.KnowAt(*job, step.found.best.slots);
    ledger.Place(*job, step.found.best.slots);
    TellMove(mover.job, SlotsOf(ledger, mover.slots), std::move(job), std::move(decision), step.gain, step.cost, plan);
    for (const PlacedSlot& slot : mover.slots) touched_.push_back(slot.node_row);
    for (const PlacedSlot& slot : step.found.best.slots) touched_.push_back(slot.node_row);
    const std::vector<uint32_t> near = Disturbed(mover.slots, step.found.best.slots);
    mover.slots = std::move(step.found.best.slots);
    mover.moved = true;  // a job moves once
    for (Mover& other : movers_) {
      const auto disturbed = [&](const PlacedSlot& slot) {
        return std::binary_search(near.begin(), near.end(), ledger.device_of(slot));
      };
      if (!other.moved && std::ranges::any_of(other.slots, disturbed)) HORUS_RETURN_IF_ERROR(Bound(other));
    }
    return absl::OkStatus();
  }

  // The devices, ascending, beside whose tenants somebody came or went: a gang with one GPU there is beside them all.
  std::vector<uint32_t> Disturbed(std::span<const PlacedSlot> left, std::span<const PlacedSlot> taken) {
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
    SortUnique(devices);
    return devices;
  }

  Engine& engine_;
  const Cluster& cluster_;
  const RebalanceOptions& options_;
  WorkMeter meter_;
  std::vector<Mover> movers_;
  std::vector<uint32_t> order_;  // movers_, a heap by what they may gain
  std::vector<uint32_t> touched_;
  uint64_t searches_ = 0;
};

}  // namespace

absl::Status CheckRebalance(const RebalanceOptions& options) {
  if (!(options.downtime_s >= 0) || !std::isfinite(options.downtime_s))
    return InvalidArgument("rebalance: downtime_s: expected 0 or more seconds, found %g", options.downtime_s);
  if (!(options.horizon_s > 0) || !std::isfinite(options.horizon_s))
    return InvalidArgument("rebalance: horizon_s: expected more than 0 seconds, found %g", options.horizon_s);
  if (!(options.min_gain >= 0) || !std::isfinite(options.min_gain))
    return InvalidArgument("rebalance: min_gain: expected 0 or more units of work, found %g", options.min_gain);
  return absl::OkStatus();
}

absl::StatusOr<Plan> Rebalance(Placer& placer, const Cluster& cluster, const RebalanceOptions& options,
                               std::optional<std::span<const JobId>> jobs, const ProgressFn& progress) {
  HORUS_RETURN_IF_ERROR(CheckRebalance(options));
  return Rebalancer(placer, cluster, options).Run(jobs, progress);
}

// ---- Evacuate: each job in turn leaves the ledger, in which the nodes are drained, and is decided anew.

absl::StatusOr<Plan> Evacuate(Placer& placer, const Cluster& cluster, std::span<const NodeId> nodes,
                              const ProgressFn& progress) {
  Engine& engine = placer.engine();
  const ClusterRows& rows = cluster.rows();
  WorkMeter meter(cluster, engine.scorer());
  HORUS_ASSIGN_OR_RETURN(Plan plan, StartPlan(engine, cluster, meter));
  std::vector<uint32_t> drained;  // rows, ascending
  for (const NodeId id : nodes) {
    const uint32_t* row = rows.node_of.Find(id);
    if (row == nullptr) return NotFound("evacuate: node %d: not in this cluster", id);
    drained.push_back(*row);
  }
  SortUnique(drained);
  for (const uint32_t row : drained) engine.ledger().SetNodeState(row, AdminState::kDrained);
  std::vector<JobSpec> jobs;  // that are there
  IdMap<bool> gone;
  for (const JobId id : cluster.JobIds()) {
    const JobRow& job = rows.jobs[rows.RowOfJob(id)];
    const auto is_drained = [&](const PlacedSlot& slot) { return std::ranges::binary_search(drained, slot.node_row); };
    if (!std::ranges::any_of(job.slots, is_drained)) continue;
    jobs.push_back(rows.SpecOf(job));
    gone.Insert(id, true);
  }
  ResidentMover mover(engine, meter, cluster);
  HORUS_ASSIGN_OR_RETURN(const JobOrder order, engine.Order(cluster, jobs, &gone));
  for (size_t i = 0; i < order.size(); ++i) {
    if (progress != nullptr && !progress(i, order.size()))
      return Cancelled("evacuate: cancelled after %d of %d jobs", i, order.size());
    HORUS_ASSIGN_OR_RETURN(ResidentMover::Outcome outcome,
                           mover.Move(jobs[order[i]].id, 0, [](double) { return true; }, plan));
    if (!outcome.moved) plan.decisions.push_back(std::move(outcome.decision));
  }
  mover.AddSeen(plan);
  return plan;
}

// ---- Review: looks at every shared device, then at the jobs in trouble, the worst first.

namespace {

constexpr double kLeastLoss = 1e-6;  // of work: less is rounding

// The worst first.
bool Before(const TenantReview& a, const TenantReview& b) {
  const auto key = [](const TenantReview& one) {
    return std::tuple(one.broken() ? -one.held / one.bound : 0.0, one.pack_work, one.job,
                      -static_cast<double>(one.slowdown.estimate));
  };
  return key(a) < key(b);
}

class Reviewer {
 public:
  Reviewer(Placer& placer, const Cluster& cluster, const RebalanceOptions& options)
      : engine_(placer.engine()),
        cluster_(cluster),
        options_(options),
        meter_(cluster, engine_.scorer()),
        mover_(engine_, meter_, cluster) {}

  absl::StatusOr<ReviewResult> Run() {
    ReviewResult result;
    HORUS_ASSIGN_OR_RETURN(result.plan, StartPlan(engine_, cluster_, meter_));
    const Ledger& ledger = engine_.ledger();
    std::vector<TenantReview> seen;
    for (const uint32_t row : ledger.order()) {
      HORUS_RETURN_IF_ERROR(engine_.GoOn());
      for (size_t i = 0; i < ledger.spec(row).devices.size(); ++i)
        HORUS_RETURN_IF_ERROR(LookAt(row, static_cast<int32_t>(i), seen));
    }
    std::ranges::sort(seen, Before);
    IdMap<bool> known;
    result.tenants.reserve(seen.size());
    for (const TenantReview& one : seen) {  // of a gang the device where it is worst
      if (gangs_.contains(one.job)) {
        if (known.contains(one.job)) continue;
        known.Insert(one.job, true);
      }
      result.tenants.push_back(one);
    }
    for (TenantReview& tenant : result.tenants) {
      if (!tenant.broken() && !tenant.loses()) continue;
      HORUS_RETURN_IF_ERROR(engine_.GoOn());
      HORUS_RETURN_IF_ERROR(Relieve(tenant, result.plan));
    }
    mover_.AddSeen(result.plan);
    return result;
  }

 private:
  // A line for each tenant of a device that several share.
  absl::Status LookAt(uint32_t node_row, int32_t device, std::vector<TenantReview>& seen) {
    const Ledger& ledger = engine_.ledger();
    const uint32_t row = ledger.node(node_row).first_device + static_cast<uint32_t>(device);
    const std::span<const LedgerResident> residents = ledger.residents(row);
    if (residents.size() < 2) return absl::OkStatus();
    HORUS_RETURN_IF_ERROR(engine_.scorer().Residents(ledger.states(), ledger.state_id(row), of_tenants_));
    const TenantIds& tenants = ledger.state(row).tenants;
    absl::InlinedVector<Slowdown, 4> slowdowns;
    for (const LedgerResident& one : residents)
      slowdowns.push_back(of_tenants_[static_cast<size_t>(std::ranges::find(tenants, one.tenant) - tenants.begin())]);
    const FitLimits& limits = engine_.scorer().limits();
    const bool trial = IsTrial(slowdowns);
    double work = 0;
    for (const Slowdown& slowdown : slowdowns) work += 1 / static_cast<double>(slowdown.estimate);
    for (size_t i = 0; i < residents.size(); ++i) {
      const TenantClass& tenant = ledger.states().tenant(residents[i].tenant);
      const Promise& promise = tenant.promise;
      if (tenant.gpus > 1) gangs_.FindOrInsert(residents[i].job, true);
      seen.push_back({.job = residents[i].job,
                      .node = ledger.spec(node_row).id,
                      .device = device,
                      .slowdown = slowdowns[i],
                      .held = SlowdownFor(promise, slowdowns[i], limits),
                      .bound = BoundOf(promise, limits),
                      .pack_work = work,
                      .trial = trial});
    }
    return absl::OkStatus();
  }

  // The job as things stand in the ledger.
  absl::StatusOr<TenantReview> Now(JobId job) {
    const JobRow& row = cluster_.rows().jobs[cluster_.rows().RowOfJob(job)];
    std::vector<TenantReview> seen;
    for (const PlacedSlot& slot : row.slots) HORUS_RETURN_IF_ERROR(LookAt(slot.node_row, slot.device, seen));
    TenantReview worst{.job = job, .bound = 1, .pack_work = 1};  // of one who shares no more
    bool shares = false;
    for (const TenantReview& one : seen) {
      if (one.job == job && (!std::exchange(shares, true) || Before(one, worst))) worst = one;
    }
    return worst;
  }

  absl::Status Relieve(TenantReview& tenant, Plan& plan) {
    HORUS_ASSIGN_OR_RETURN(const TenantReview now, Now(tenant.job));
    if (!now.broken() && !now.loses()) return absl::OkStatus();  // an earlier move relieved it
    tenant.advice = Advice::kRunAlone;
    if (plan.moves.size() >= options_.max_migrations || searches_ >= options_.max_searches) return absl::OkStatus();
    ++searches_;
    const ClusterRows& rows = cluster_.rows();
    const JobSpec& job = rows.RequestOf(rows.jobs[rows.RowOfJob(tenant.job)]);
    const double cost = MostWork(job) * options_.downtime_s / options_.horizon_s;
    const auto accepts = [&](double gain) { return now.broken() || gain - cost > options_.min_gain; };
    HORUS_ASSIGN_OR_RETURN(const ResidentMover::Outcome outcome, mover_.Move(tenant.job, cost, accepts, plan));
    if (outcome.moved) tenant.advice = Advice::kMove;
    return absl::OkStatus();
  }

  Engine& engine_;
  const Cluster& cluster_;
  const RebalanceOptions& options_;
  WorkMeter meter_;
  ResidentMover mover_;
  uint64_t searches_ = 0;
  IdMap<bool> gangs_;                 // that were looked at
  std::vector<Slowdown> of_tenants_;  // scratch
};

}  // namespace

bool TenantReview::broken() const { return IsBeyond(held, bound); }
bool TenantReview::loses() const { return pack_work < 1 - kLeastLoss; }

absl::StatusOr<ReviewResult> Review(Placer& placer, const Cluster& cluster, const RebalanceOptions& options) {
  HORUS_RETURN_IF_ERROR(CheckRebalance(options));
  return Reviewer(placer, cluster, options).Run();
}

}  // namespace horus
