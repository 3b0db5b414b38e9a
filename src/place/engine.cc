// SPDX-License-Identifier: Apache-2.0
// Hands a placer's parts to the modes.
#include "place/engine.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/status.h"
#include "interference/laws.h"
#include "place/placer_impl.h"
#include "place/search/prices.h"

namespace horus {

// ---- The work of devices by the estimates, with the slowdowns of each state kept.

double SpeedAlone(const JobSpec& job, const DeviceRow& device) {
  if (job.demands.empty()) return 1;
  const Demand& demand = DemandOn(job, device.type);
  const double speed = RelativeSpeed(job, demand);
  if (device.compute_share == 1) return speed;
  return speed * SliceSpeed(demand, static_cast<double>(device.compute_share));
}

void WorkMeter::Know(const JobSpec& job) {
  if (const JobSpec** known = known_.Find(job.id)) {
    *known = &job;
  } else {
    known_.Insert(job.id, &job);
  }
}

void WorkMeter::KnowAt(const JobSpec& job, std::span<const PlacedSlot> slots) {
  if (GpuCount(job) <= 1) return;
  PlacedSlots* known = known_at_.Find(job.id);
  if (known == nullptr) known = &known_at_.Insert(job.id, {});
  known->assign(slots.begin(), slots.end());
}

const JobSpec* WorkMeter::SpecOf(JobId job) const {
  if (const JobSpec* const* known = known_.size() == 0 ? nullptr : known_.Find(job)) return *known;
  const uint32_t row = cluster_.rows().RowOfJob(job);
  return row == kNoRow ? nullptr : &cluster_.rows().RequestOf(cluster_.rows().jobs[row]);
}

absl::Status WorkMeter::Slowdowns(const Ledger& ledger, uint32_t device, std::span<const float>& slowdowns) {
  const DeviceRow& row = ledger.state(device);
  if (row.tenants.size() <= 1) {
    estimates_.assign(row.tenants.size(), 1.0f);
    slowdowns = estimates_;
    return absl::OkStatus();
  }
  if (scorer_.keeps_residents()) {
    HORUS_RETURN_IF_ERROR(scorer_.Residents(ledger.states(), ledger.state_id(device), predicted_));
    estimates_.resize(predicted_.size());
    for (size_t i = 0; i < predicted_.size(); ++i) estimates_[i] = predicted_[i].estimate;
    slowdowns = estimates_;
    return absl::OkStatus();
  }
  if (const uint32_t* at = memo_.Find(row.digest)) {
    slowdowns = std::span<const float>(slowdowns_).subspan(*at, row.tenants.size());
    return absl::OkStatus();
  }
  if (slowdowns_.size() + row.tenants.size() > most_kept_) {
    memo_.clear();
    slowdowns_.clear();
  }
  demands_.clear();
  for (const uint32_t tenant : row.tenants) demands_.push_back(&ledger.states().tenant(tenant).demand);
  predicted_.assign(demands_.size(), Slowdown());
  HORUS_RETURN_IF_ERROR(scorer_.model().Predict(ContextOf(row), std::span(demands_), predicted_));
  const auto first = static_cast<uint32_t>(slowdowns_.size());
  for (const Slowdown& one : predicted_) {
    if (!(one.estimate > 0)) {
      return MakeError(absl::StatusCode::kInternal, "interference model %s: expected a slowdown above 0, found %g",
                       std::string(scorer_.model().name()), one.estimate);
    }
    slowdowns_.push_back(one.estimate);
  }
  memo_.Insert(row.digest, first);
  slowdowns = std::span<const float>(slowdowns_).subspan(first);
  return absl::OkStatus();
}

double WorkMeter::Share(const Ledger& ledger, uint32_t device, const LedgerResident& resident,
                        std::span<const float> slowdowns) const {
  const DeviceRow& row = ledger.state(device);
  const JobSpec* job = SpecOf(resident.job);
  const auto at = std::ranges::find(row.tenants, resident.tenant);
  if (job == nullptr || at == row.tenants.end()) return 0;  // cannot be: the resident is there
  const float slowdown = slowdowns[static_cast<size_t>(at - row.tenants.begin())];
  const TenantClass& tenant = ledger.states().tenant(*at);
  return WorkWeight(*job) * static_cast<double>(tenant.work_alone) * SpeedAlone(*job, row) /
         WorkSlowdown(tenant.demand, slowdown);
}

std::vector<uint32_t> WorkMeter::DevicesOf(const Ledger& ledger, JobId job) const {
  std::vector<uint32_t> devices;
  const auto add = [&](std::span<const PlacedSlot> slots) {
    for (const PlacedSlot& slot : slots) {
      if (slot.device == kNoDevice) continue;
      const uint32_t device = ledger.device_of(slot);
      const std::span<const LedgerResident> here = ledger.residents(device);
      if (std::ranges::any_of(here, [&](const LedgerResident& one) { return one.job == job; }))
        devices.push_back(device);
    }
  };
  if (const uint32_t row = cluster_.rows().RowOfJob(job); row != kNoRow) add(cluster_.rows().jobs[row].slots);
  if (const PlacedSlots* known = known_at_.Find(job)) add(*known);
  std::ranges::sort(devices);
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return devices;
}

absl::Status WorkMeter::WorkOf(const Ledger& ledger, JobId job, std::optional<uint32_t> except, GangWork& work) {
  work = GangWork();
  for (const uint32_t device : DevicesOf(ledger, job)) {
    ++work.devices;
    if (device == except) continue;
    std::span<const float> slowdowns;
    HORUS_RETURN_IF_ERROR(Slowdowns(ledger, device, slowdowns));
    for (const LedgerResident& one : ledger.residents(device)) {
      if (one.job == job) work.slowest = std::min(work.slowest, Share(ledger, device, one, slowdowns));
    }
  }
  return absl::OkStatus();
}

absl::Status WorkMeter::OfJob(const Ledger& ledger, JobId job, double& work) {
  GangWork of;
  HORUS_RETURN_IF_ERROR(WorkOf(ledger, job, std::nullopt, of));
  work = of.devices == 0 ? 0 : static_cast<double>(of.devices) * of.slowest;
  return absl::OkStatus();
}

absl::Status WorkMeter::GainOf(const Ledger& ledger, uint32_t device, const JobSpec& job,
                               const DeviceCandidate& candidate, double& gain) {
  const DeviceRow& row = ledger.state(device);
  const auto work_alone = [&](size_t i) { return static_cast<double>(candidate.tenants[i]->work_alone); };
  const auto slowed = [&](size_t i, const Slowdown& slowdown) {
    return WorkSlowdown(candidate.tenants[i]->demand, slowdown.estimate);
  };
  gain = WorkWeight(job) * work_alone(candidate.residents()) * candidate.relative_speed /
         slowed(candidate.residents(), candidate.after.back());
  for (const LedgerResident& resident : ledger.residents(device)) {
    const auto at = std::ranges::find(row.tenants, resident.tenant);
    const auto i = static_cast<size_t>(at - row.tenants.begin());
    const JobSpec* spec = SpecOf(resident.job);
    if (spec == nullptr || i >= candidate.residents()) continue;  // cannot be
    const double alone = WorkWeight(*spec) * work_alone(i) * SpeedAlone(*spec, row);
    GangWork others{.devices = 1};
    if (GpuCount(*spec) > 1) HORUS_RETURN_IF_ERROR(WorkOf(ledger, resident.job, device, others));
    gain += static_cast<double>(others.devices) * (std::min(others.slowest, alone / slowed(i, candidate.after[i])) -
                                                   std::min(others.slowest, alone / slowed(i, candidate.before[i])));
  }
  return absl::OkStatus();
}

absl::Status WorkMeter::OfSlots(const Ledger& ledger, std::span<const PlacedSlot> slots, double& work) {
  work = 0;
  gangs_.clear();
  devices_.clear();
  for (const PlacedSlot& slot : slots) {
    if (slot.device != kNoDevice) devices_.push_back(ledger.device_of(slot));
  }
  std::ranges::sort(devices_);
  devices_.erase(std::unique(devices_.begin(), devices_.end()), devices_.end());
  for (const uint32_t device : devices_) {
    std::span<const float> slowdowns;
    HORUS_RETURN_IF_ERROR(Slowdowns(ledger, device, slowdowns));
    for (const LedgerResident& one : ledger.residents(device)) {
      const JobSpec* spec = SpecOf(one.job);
      if (spec != nullptr && GpuCount(*spec) > 1) {
        gangs_.push_back(one.job);
      } else {
        work += Share(ledger, device, one, slowdowns);
      }
    }
  }
  std::ranges::sort(gangs_);
  gangs_.erase(std::unique(gangs_.begin(), gangs_.end()), gangs_.end());
  for (const JobId gang : gangs_) {
    double one = 0;
    HORUS_RETURN_IF_ERROR(OfJob(ledger, gang, one));
    work += one;
  }
  return absl::OkStatus();
}

absl::Status WorkMeter::OfAll(const Ledger& ledger, double& work) {
  work = 0;
  std::vector<GangWork> gangs;
  IdMap<uint32_t> gang_of;  // by job
  for (const uint32_t row : ledger.order()) {
    const LedgerNode& node = ledger.node(row);
    for (uint32_t i = 0; i < node.spec->devices.size(); ++i) {
      std::span<const float> slowdowns;
      HORUS_RETURN_IF_ERROR(Slowdowns(ledger, node.first_device + i, slowdowns));
      for (const LedgerResident& one : ledger.residents(node.first_device + i)) {
        const double share = Share(ledger, node.first_device + i, one, slowdowns);
        const JobSpec* spec = SpecOf(one.job);
        if (spec == nullptr || GpuCount(*spec) == 1) {
          work += share;
          continue;
        }
        const uint32_t* known = gang_of.Find(one.job);
        if (known == nullptr) {
          known = &gang_of.Insert(one.job, static_cast<uint32_t>(gangs.size()));
          gangs.emplace_back();
        }
        GangWork& gang = gangs[*known];
        gang.slowest = std::min(gang.slowest, share);
        ++gang.devices;
      }
    }
  }
  for (const GangWork& gang : gangs) work += static_cast<double>(gang.devices) * gang.slowest;
  return absl::OkStatus();
}

Engine::Engine(Placer& placer) : my_(*placer.impl_) {}

absl::Status Engine::Start(const Cluster& cluster, std::optional<std::span<const NodeId>> subset) {
  if (my_.rounds != nullptr) {
    return Unimplemented("policy %s: expected one that decides job by job, for it makes plans of whole rounds alone",
                         std::string(my_.scorer.policy().name()));
  }
  return Follow(cluster, subset);
}

absl::Status Engine::Follow(const Cluster& cluster, std::optional<std::span<const NodeId>> subset) {
  my_.waiting.clear();
  HORUS_RETURN_IF_ERROR(my_.SelectNodes(cluster, subset));
  my_.ledger.Follow(cluster);
  return absl::OkStatus();
}

absl::StatusOr<JobOrder> Engine::Order(const Cluster& cluster, std::span<const JobSpec> jobs,
                                       const IdMap<bool>* gone) const {
  for (const JobSpec& job : jobs) HORUS_RETURN_IF_ERROR(my_.CheckSettled(job));
  return OrderAny(cluster, jobs, gone);
}

absl::StatusOr<JobOrder> Engine::OrderAny(const Cluster& cluster, std::span<const JobSpec> jobs,
                                          const IdMap<bool>* gone) const {
  if (jobs.size() > my_.options.max_jobs) {
    return ResourceExhausted("plan: expected at most %d jobs, found %d", my_.options.max_jobs, jobs.size());
  }
  return PlanningOrder(cluster, jobs, my_.scorer.model(), gone);
}

absl::Status Engine::PlanJobs(std::span<const JobSpec> jobs, std::span<const uint32_t> order,
                              const ProgressFn& progress, Plan& plan) {
  return my_.PlanJobs(jobs, order, /*book_last=*/true, progress, /*host=*/nullptr, plan);
}

absl::Status Engine::Choose(const JobSpec& job, ChosenWay& choice) { return my_.Choose(job, choice); }
bool Engine::IsOpen(const JobSpec& job) const { return my_.IsOpen(job); }
bool Engine::HasOtherWays(const JobSpec& job) const {
  return my_.options.sm_caps || RestsOnPredictions(job) || IsOpen(job);
}
absl::StatusOr<Decision> Engine::Decide(const JobView& view) { return my_.Decide(view); }
bool Engine::Probes(const JobSpec& job, const PlacedSlot& slot) const { return my_.IsProbe(job, slot); }

absl::Status Engine::Find(const JobView& view, const std::vector<uint32_t>* nodes, SearchResult& found) {
  HORUS_RETURN_IF_ERROR(my_.GoOn());
  my_.scorer.SetJob(view);
  return my_.search.Run(my_.ledger, view, nodes != nullptr ? nodes : my_.selected(), found,
                        /*why=*/false);
}

void Engine::SetWaiting(std::span<const JobSpec* const> jobs) {
  my_.waiting.assign(jobs.begin(), jobs.begin() + static_cast<ptrdiff_t>(std::min(jobs.size(), kMostWaiting)));
}

absl::Status Engine::GoOn() const { return my_.GoOn(); }

absl::Status Engine::Price(const JobView& view, Placement& placement) {
  my_.scorer.SetJob(view);
  return my_.search.PriceSlots(my_.ledger, view, placement);
}

absl::StatusOr<Decision> Engine::Explain(const JobView& view, const SearchResult& found) {
  Decision decision;
  decision.job = view.job->id;
  decision.cpu_only = IsCpuOnly(*view.job);
  my_.scorer.SetJob(view);
  HORUS_RETURN_IF_ERROR(my_.explainer.Placed(my_.ledger, view, found, decision));
  HORUS_RETURN_IF_ERROR(my_.ChooseMode(view, found.best.slots, decision));
  return decision;
}

void Engine::AddSeen(std::span<const uint32_t> node_rows, Plan& plan) const { my_.AddSeen(node_rows, plan); }
const SearchResult& Engine::found() const { return my_.result; }
const Policy& Engine::policy() const { return my_.scorer.policy(); }
Ledger& Engine::ledger() { return my_.ledger; }
const Ledger& Engine::emptied() {
  my_.emptied.FollowEmptied(my_.ledger);
  return my_.emptied;
}
Scorer& Engine::scorer() { return my_.scorer; }
const PlacerOptions& Engine::options() const { return my_.options; }
WorkPricer& Engine::pricer() {
  if (my_.pricer == nullptr) my_.pricer = std::make_shared<WorkPricer>();
  return *my_.pricer;
}
std::span<const uint32_t> Engine::nodes() const { return my_.considered(my_.ledger); }

// ---- A job leaves the ledger, is decided, and is booked again.

Slots SlotsOf(const Ledger& ledger, std::span<const PlacedSlot> placed) {
  Slots slots;
  slots.reserve(placed.size());
  for (const PlacedSlot& slot : placed) slots.push_back({ledger.spec(slot.node_row).id, slot.device, slot.task});
  std::ranges::sort(slots, [](const Slot& a, const Slot& b) {
    return std::tie(a.task, a.node, a.device) < std::tie(b.task, b.node, b.device);
  });
  return slots;
}

absl::StatusOr<ResidentMover::Outcome> ResidentMover::Move(JobId id, double cost,
                                                           const std::function<bool(double gain)>& accepts,
                                                           Plan& plan) {
  Ledger& ledger = engine_.ledger();
  const ClusterRows& rows = cluster_.rows();
  const JobRow& row = rows.jobs[rows.RowOfJob(id)];
  const auto job = std::make_shared<const JobSpec>(rows.SpecOf(row));
  std::shared_ptr<const JobSpec> there = job;
  const PlacedSlots from = row.slots;
  const Slots was = SlotsOf(ledger, from);
  double here = 0, left = 0, before = 0, after = 0;
  HORUS_RETURN_IF_ERROR(meter_.OfSlots(ledger, from, here));
  const size_t mark = ledger.Mark();
  ledger.Remove(*job, from);
  HORUS_RETURN_IF_ERROR(meter_.OfSlots(ledger, from, left));
  const JobView view = ViewJob(*job);
  Outcome outcome;
  HORUS_ASSIGN_OR_RETURN(outcome.decision, engine_.Decide(view));
  const Decision& decision = outcome.decision;
  double gain = 0;
  if (decision.verdict == Verdict::kPlace && decision.slots != was) {
    const PlacedSlots to = engine_.found().best.slots;
    if (std::shared_ptr<const JobSpec> decided = AsDecided(*job, decision)) there = std::move(decided);
    HORUS_RETURN_IF_ERROR(meter_.OfSlots(ledger, to, before));
    meter_.KnowAt(*job, to);
    ledger.Place(*there, to);
    HORUS_RETURN_IF_ERROR(meter_.OfSlots(ledger, to, after));
    gain = (left - here) + (after - before);  // what the two have in common cancels
    outcome.moved = accepts(gain);
    for (const PlacedSlots* slots : {&from, &to}) {
      for (const PlacedSlot& slot : *slots) {
        if (outcome.moved) touched_.push_back(slot.node_row);
      }
    }
  }
  if (!outcome.moved) {
    ledger.UndoTo(mark);
    return outcome;
  }
  plan.work_after += gain;
  plan.moves.push_back(
      {.kind = ActionKind::kMigrate, .job = id, .from = was, .to = decision.slots, .gain = gain, .cost = cost});
  plan.actions.push_back({ActionKind::kMigrate, std::move(there), decision.slots});
  plan.decisions.push_back(decision);
  return outcome;
}

}  // namespace horus
