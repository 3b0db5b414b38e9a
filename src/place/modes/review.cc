// SPDX-License-Identifier: Apache-2.0
// Looks at every shared device, then at the jobs in trouble, the worst first.
#include "place/modes/review.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <tuple>
#include <utility>

#include "base/status.h"
#include "place/engine.h"
#include "place/fit.h"
#include "place/modes/moves.h"
#include "place/work.h"

namespace horus {
namespace {

constexpr double kLeastLoss = 1e-6;  // of work: less is rounding

class Reviewer {
 public:
  Reviewer(Placer& placer, const Cluster& cluster, const RebalanceOptions& options)
      : engine_(placer), cluster_(cluster), options_(options), meter_(cluster, engine_.scorer()) {}

  absl::StatusOr<ReviewResult> Run();

 private:
  absl::Status LookAt(uint32_t node_row, int32_t device, std::vector<TenantReview>& seen);
  // The job as things stand in the ledger.
  absl::StatusOr<TenantReview> Now(JobId job);
  absl::Status Relieve(TenantReview& tenant, Plan& plan);

  Engine engine_;
  const Cluster& cluster_;
  const RebalanceOptions& options_;
  WorkMeter meter_;
  std::vector<uint32_t> touched_;
  uint64_t searches_ = 0;
};

// A line for each tenant of a device that several share.
absl::Status Reviewer::LookAt(uint32_t node_row, int32_t device, std::vector<TenantReview>& seen) {
  const Ledger& ledger = engine_.ledger();
  const uint32_t row = ledger.node(node_row).first_device + static_cast<uint32_t>(device);
  const std::span<const LedgerResident> residents = ledger.residents(row);
  if (residents.size() < 2) return absl::OkStatus();
  std::vector<const Demand*> demands;
  for (const LedgerResident& one : residents) demands.push_back(&ledger.states().tenant(one.tenant).demand);
  std::vector<Slowdown> slowdowns(demands.size());
  const FitLimits& limits = engine_.scorer().limits();
  HORUS_RETURN_IF_ERROR(engine_.scorer().model().Predict(ContextOf(ledger.state(row)), demands, slowdowns));
  double work = 0;
  for (const Slowdown& slowdown : slowdowns) work += 1 / static_cast<double>(slowdown.estimate);
  for (size_t i = 0; i < residents.size(); ++i) {
    const Promise& promise = ledger.states().tenant(residents[i].tenant).promise;
    seen.push_back({.job = residents[i].job,
                    .node = ledger.spec(node_row).id,
                    .device = device,
                    .slowdown = slowdowns[i],
                    .held = SlowdownFor(promise, slowdowns[i], limits),
                    .bound = BoundOf(promise, limits),
                    .pack_work = work});
  }
  return absl::OkStatus();
}

// The worst first.
bool Before(const TenantReview& a, const TenantReview& b) {
  const auto key = [](const TenantReview& one) {
    return std::tuple(one.broken() ? -one.held / one.bound : 0.0, one.pack_work, one.job,
                      -static_cast<double>(one.slowdown.estimate));
  };
  return key(a) < key(b);
}

absl::StatusOr<TenantReview> Reviewer::Now(JobId job) {
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

absl::Status Reviewer::Relieve(TenantReview& tenant, Plan& plan) {
  HORUS_ASSIGN_OR_RETURN(const TenantReview now, Now(tenant.job));
  if (!now.broken() && !now.loses()) return absl::OkStatus();  // an earlier move relieved it
  tenant.advice = Advice::kRunAlone;
  if (plan.moves.size() >= options_.max_migrations || searches_ >= options_.max_searches) return absl::OkStatus();
  ++searches_;
  Ledger& ledger = engine_.ledger();
  const ClusterRows& rows = cluster_.rows();
  const JobRow& row = rows.jobs[rows.RowOfJob(tenant.job)];
  auto job = std::make_shared<const JobSpec>(rows.SpecOf(row));
  const std::vector<PlacedSlot> from(row.slots.begin(), row.slots.end());
  double here = 0, left = 0, before = 0, after = 0;
  HORUS_RETURN_IF_ERROR(meter_.OfSlots(ledger, from, here));
  const size_t mark = ledger.Mark();
  ledger.Remove(*job, from);
  HORUS_RETURN_IF_ERROR(meter_.OfSlots(ledger, from, left));
  HORUS_ASSIGN_OR_RETURN(Decision decision, engine_.Decide(ViewJob(*job)));
  const std::vector<Slot> was = SlotsOf(ledger, from);
  if (decision.verdict != Verdict::kPlace || decision.slots == was) {
    ledger.UndoTo(mark);
    return absl::OkStatus();
  }
  const std::vector<PlacedSlot> to = engine_.found().best.slots;
  HORUS_RETURN_IF_ERROR(meter_.OfSlots(ledger, to, before));
  meter_.KnowAt(*job, to);
  ledger.Place(*job, to);
  HORUS_RETURN_IF_ERROR(meter_.OfSlots(ledger, to, after));
  const double gain = (left - here) + (after - before);  // what the two have in common cancels
  const double cost = WorkWeight(*job) * GpuCount(*job) * options_.downtime_s / options_.horizon_s;
  if (!now.broken() && gain - cost <= options_.min_gain) {
    ledger.UndoTo(mark);
    return absl::OkStatus();
  }
  tenant.advice = Advice::kMove;
  plan.work_after += gain;
  plan.moves.push_back(
      {.kind = ActionKind::kMigrate, .job = job->id, .from = was, .to = decision.slots, .gain = gain, .cost = cost});
  plan.actions.push_back({ActionKind::kMigrate, std::move(job), decision.slots});
  plan.decisions.push_back(std::move(decision));
  for (const std::span<const PlacedSlot> slots : {std::span(from), std::span(to)}) {
    for (const PlacedSlot& slot : slots) touched_.push_back(slot.node_row);
  }
  return absl::OkStatus();
}

absl::StatusOr<ReviewResult> Reviewer::Run() {
  HORUS_RETURN_IF_ERROR(engine_.Start(cluster_));
  const Ledger& ledger = engine_.ledger();
  ReviewResult result;
  result.plan.model_epoch = engine_.scorer().model().epoch();
  result.plan.has_work = true;
  HORUS_RETURN_IF_ERROR(meter_.OfAll(ledger, result.plan.work_before));
  result.plan.work_after = result.plan.work_before;
  std::vector<TenantReview> seen;
  for (const uint32_t row : ledger.order()) {
    HORUS_RETURN_IF_ERROR(engine_.GoOn());
    for (size_t i = 0; i < ledger.spec(row).devices.size(); ++i) {
      HORUS_RETURN_IF_ERROR(LookAt(row, static_cast<int32_t>(i), seen));
    }
  }
  std::sort(seen.begin(), seen.end(), Before);
  IdMap<bool> known;
  for (const TenantReview& one : seen) {  // of a gang the device where it is worst
    if (known.contains(one.job)) continue;
    known.Insert(one.job, true);
    result.tenants.push_back(one);
  }
  for (TenantReview& tenant : result.tenants) {
    if (!tenant.broken() && !tenant.loses()) continue;
    HORUS_RETURN_IF_ERROR(engine_.GoOn());
    HORUS_RETURN_IF_ERROR(Relieve(tenant, result.plan));
  }
  engine_.AddSeen(touched_, result.plan);
  return result;
}

}  // namespace

bool TenantReview::broken() const { return IsBeyond(held, bound); }
bool TenantReview::loses() const { return pack_work < 1 - kLeastLoss; }

absl::StatusOr<ReviewResult> Review(Placer& placer, const Cluster& cluster, const RebalanceOptions& options) {
  HORUS_RETURN_IF_ERROR(CheckRebalance(options));
  return Reviewer(placer, cluster, options).Run();
}

}  // namespace horus
