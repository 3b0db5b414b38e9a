// SPDX-License-Identifier: Apache-2.0
// The nodes where a job fits once others left, cheapest first; and the plan that does it.
#include "place/modes/preempt.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "base/status.h"
#include "place/engine.h"
#include "place/modes/moves.h"
#include "place/modes/victims.h"
#include "place/search/search_nodes.h"
#include "place/work.h"

namespace horus {
namespace {

constexpr double kNoBound = std::numeric_limits<double>::infinity();

struct Found {
  VictimSet set;
  std::vector<uint32_t> nodes;  // rows where the job may go; empty = wherever it likes
  SearchResult place;
};

class Preempter {
 public:
  Preempter(Placer& placer, const Cluster& cluster, const JobSpec& job, const PreemptOptions& options)
      : engine_(placer),
        cluster_(cluster),
        job_(job),
        options_(options),
        view_(ViewJob(job_)),
        meter_(cluster, engine_.scorer()),
        victims_(engine_, cluster, job.priority, options.max_checks) {}

  absl::StatusOr<Plan> Run(std::optional<std::span<const NodeId>> subset);

 private:
  absl::Status OnOneNode();
  absl::Status OverNodes();
  absl::Status Spread(uint32_t group);
  absl::Status Keep(Found found);
  absl::Status Tell(Plan& plan);
  absl::Status CarryOut(Plan& plan);
  [[nodiscard]] double Bound() const {
    return kept_.size() < options_.max_candidates ? kNoBound : kept_.back().set.loss;
  }

  Engine engine_;
  const Cluster& cluster_;
  const JobSpec& job_;
  const PreemptOptions& options_;
  JobView view_;
  WorkMeter meter_;
  Victims victims_;
  std::vector<Found> kept_;  // ascending loss
};

// Where the job goes once they left, if it does.
absl::Status Preempter::Keep(Found found) {
  Ledger& ledger = engine_.ledger();
  const size_t mark = ledger.Mark();
  victims_.Remove(found.set.jobs);
  const absl::Status status = engine_.Find(view_, found.nodes.empty() ? nullptr : &found.nodes, found.place);
  ledger.UndoTo(mark);
  HORUS_RETURN_IF_ERROR(status);
  if (found.place.best.slots.empty()) return absl::OkStatus();
  const auto at = std::upper_bound(kept_.begin(), kept_.end(), found.set.loss,
                                   [](double loss, const Found& one) { return loss < one.set.loss; });
  kept_.insert(at, std::move(found));
  if (kept_.size() > options_.max_candidates) kept_.pop_back();
  return absl::OkStatus();
}

absl::Status Preempter::OnOneNode() {
  for (const uint32_t row : engine_.nodes()) {
    VictimSet set;
    bool found = false;
    HORUS_RETURN_IF_ERROR(victims_.Cheapest(view_, row, Victims::kAnyGroup, Bound(), set, found));
    if (found) HORUS_RETURN_IF_ERROR(Keep({.set = std::move(set), .nodes = {row}, .place = {}}));
  }
  return absl::OkStatus();
}

// One task after another where the next costs least, on devices of one group.
absl::Status Preempter::Spread(uint32_t group) {
  Ledger& ledger = engine_.ledger();
  JobSpec one = job_;
  one.tasks = 1;
  JobView task = view_;
  task.job = &one;
  JobSpec booked = one;
  booked.exclusive = true;  // a device serves one task
  const std::vector<uint32_t> rows(engine_.nodes().begin(), engine_.nodes().end());
  struct Offer {
    VictimSet set;
    bool found = false;
  };
  std::vector<Offer> offers(rows.size());
  const auto offer = [&](size_t i) -> absl::Status {
    return victims_.Cheapest(task, rows[i], group, kNoBound, offers[i].set, offers[i].found);
  };
  std::vector<JobId> gone;
  victims_.SetGone(gone);
  for (size_t i = 0; i < rows.size(); ++i) HORUS_RETURN_IF_ERROR(offer(i));
  for (int32_t done = 0; done < job_.tasks; ++done) {
    size_t best = rows.size();
    for (size_t i = 0; i < rows.size(); ++i) {
      if (offers[i].found && (best == rows.size() || offers[i].set.loss < offers[best].set.loss)) best = i;
    }
    if (best == rows.size()) return absl::OkStatus();
    const std::vector<JobId> jobs = offers[best].set.jobs;
    victims_.Remove(jobs);
    gone.insert(gone.end(), jobs.begin(), jobs.end());
    victims_.SetGone(gone);
    SearchResult place;
    const std::vector<uint32_t> node = {rows[best]};
    HORUS_RETURN_IF_ERROR(engine_.Find(task, &node, place));
    if (place.best.slots.empty()) return absl::OkStatus();  // cannot be: it was found to fit
    ledger.Place(booked, place.best.slots);
    std::vector<size_t> anew = {best};
    for (size_t i = 0; i < rows.size(); ++i) {  // gangs leave other nodes too
      const auto shares = [&](JobId job) {
        return std::binary_search(offers[i].set.jobs.begin(), offers[i].set.jobs.end(), job);
      };
      if (i != best && offers[i].found && std::any_of(jobs.begin(), jobs.end(), shares)) anew.push_back(i);
    }
    for (const size_t i : anew) HORUS_RETURN_IF_ERROR(offer(i));
  }
  ledger.UndoTo(0);
  std::sort(gone.begin(), gone.end());
  gone.erase(std::unique(gone.begin(), gone.end()), gone.end());
  victims_.Remove(gone);
  std::vector<JobId> dearest = gone;
  std::stable_sort(dearest.begin(), dearest.end(),
                   [&](JobId a, JobId b) { return victims_.LossOf(a) > victims_.LossOf(b); });
  for (const JobId job : dearest) {  // who need not go
    const size_t mark = ledger.Mark();
    victims_.PutBack(job);
    SearchResult place;
    HORUS_RETURN_IF_ERROR(engine_.Find(view_, nullptr, place));
    if (place.best.slots.empty()) {
      ledger.UndoTo(mark);
    } else {
      std::erase(gone, job);
    }
  }
  ledger.UndoTo(0);
  VictimSet set{.jobs = gone, .loss = 0, .exact = false};
  for (const JobId job : gone) set.loss += victims_.LossOf(job);
  return Keep({.set = std::move(set), .nodes = {}, .place = {}});
}

absl::Status Preempter::OverNodes() {
  std::vector<uint32_t> groups;
  for (const uint32_t row : engine_.nodes()) {
    const LedgerNode& node = engine_.ledger().node(row);
    for (uint32_t i = 0; i < node.spec->devices.size(); ++i) {
      groups.push_back(GroupOf(engine_.ledger().state(node.first_device + i)));
    }
  }
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  if (IsCpuOnly(job_)) groups.assign(1, Victims::kAnyGroup);
  for (const uint32_t group : groups) {
    const absl::Status status = Spread(group);
    engine_.ledger().UndoTo(0);
    HORUS_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

absl::Status Preempter::Tell(Plan& plan) {
  for (const Found& found : kept_) {
    PreemptionCandidate candidate{.slots = SlotsOf(engine_.ledger(), found.place.best.slots),
                                  .victims = found.set.jobs,
                                  .losses = {},
                                  .loss = found.set.loss,
                                  .exact = found.set.exact};
    candidate.node = candidate.slots.front().node;
    for (const JobId job : candidate.victims) candidate.losses.push_back(victims_.LossOf(job));
    plan.candidates.push_back(std::move(candidate));
  }
  return absl::OkStatus();
}

absl::Status Preempter::CarryOut(Plan& plan) {
  const Found& best = kept_.front();
  Ledger& ledger = engine_.ledger();
  std::vector<PlacedSlot> concerned = best.place.best.slots;
  for (const JobId job : best.set.jobs) {
    const JobRow& row = cluster_.rows().jobs[cluster_.rows().RowOfJob(job)];
    plan.moves.push_back({.kind = ActionKind::kPreempt,
                          .job = job,
                          .from = SlotsOf(ledger, row.slots),
                          .to = {},
                          .gain = -victims_.LossOf(job),
                          .cost = 0});
    plan.actions.push_back({ActionKind::kPreempt, std::make_shared<const JobSpec>(cluster_.rows().SpecOf(row)), {}});
    concerned.insert(concerned.end(), row.slots.begin(), row.slots.end());
  }
  double before = 0;
  double after = 0;
  HORUS_RETURN_IF_ERROR(meter_.OfSlots(ledger, concerned, before));
  victims_.Remove(best.set.jobs);
  HORUS_ASSIGN_OR_RETURN(Decision decision, engine_.Explain(view_, best.place));
  meter_.Know(job_);
  meter_.KnowAt(job_, best.place.best.slots);
  ledger.Place(job_, best.place.best.slots);
  HORUS_RETURN_IF_ERROR(meter_.OfSlots(ledger, concerned, after));
  plan.work_after = plan.work_before + after - before;
  plan.actions.push_back({ActionKind::kPlace, std::make_shared<const JobSpec>(job_), decision.slots});
  plan.decisions.assign(1, std::move(decision));
  std::vector<uint32_t> touched;
  for (const PlacedSlot& slot : concerned) touched.push_back(slot.node_row);
  engine_.AddSeen(touched, plan);
  return absl::OkStatus();
}

absl::StatusOr<Plan> Preempter::Run(std::optional<std::span<const NodeId>> subset) {
  HORUS_ASSIGN_OR_RETURN(const std::vector<uint32_t> order, engine_.Order(cluster_, {&job_, 1}));
  HORUS_RETURN_IF_ERROR(engine_.Start(cluster_, subset));
  Plan plan;
  HORUS_RETURN_IF_ERROR(engine_.PlanJobs({&job_, 1}, order, nullptr, plan));
  engine_.ledger().UndoTo(0);
  if (plan.decisions[0].verdict != Verdict::kDefer) return plan;
  plan.has_work = true;
  HORUS_RETURN_IF_ERROR(meter_.OfAll(engine_.ledger(), plan.work_before));
  plan.work_after = plan.work_before;
  HORUS_RETURN_IF_ERROR(victims_.Measure(meter_));
  HORUS_RETURN_IF_ERROR(job_.tasks == 1 ? OnOneNode() : OverNodes());
  if (kept_.empty()) return plan;
  HORUS_RETURN_IF_ERROR(Tell(plan));
  HORUS_RETURN_IF_ERROR(CarryOut(plan));
  return plan;
}

}  // namespace

absl::StatusOr<Plan> PlanPreemption(Placer& placer, const Cluster& cluster, const JobSpec& job,
                                    const PreemptOptions& options, std::optional<std::span<const NodeId>> subset) {
  if (options.max_candidates == 0) {
    return InvalidArgument("preemption: max_candidates: expected at least 1, found 0");
  }
  return Preempter(placer, cluster, job, options).Run(subset);
}

}  // namespace horus
