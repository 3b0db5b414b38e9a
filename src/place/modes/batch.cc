// SPDX-License-Identifier: Apache-2.0
// One by one, then better: the batch's starts compared, and the plan of the best.
#include "place/modes/batch.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/status.h"
#include "place/engine.h"
#include "place/modes/batch_search.h"
#include "place/modes/selection.h"
#include "place/search/admit.h"
#include "place/search/search_nodes.h"
#include "place/work.h"

namespace horus {
namespace {

constexpr double kLeastDifference = 1e-6;
constexpr uint64_t kProgressSteps = 4;  // one by one, two starts, the plan

struct Outcome {
  explicit Outcome(size_t count) : decisions(count), places(count), jobs(count) {}

  bool fits = true;
  std::vector<Decision> decisions;                   // in planning order
  std::vector<Placement> places;                     // in planning order; empty slots: left out
  std::vector<std::shared_ptr<const JobSpec>> jobs;  // in planning order, where they do not run as they were given
  std::vector<size_t> placed;                        // jobs, by distinct priority from the highest
  double work = 0, cost = 0;
};

class Batcher {
 public:
  Batcher(Placer& placer, const Cluster& cluster, std::span<const JobSpec> jobs, const BatchOptions& options)
      : engine_(placer.engine()),
        cluster_(cluster),
        jobs_(jobs),
        options_(options),
        meter_(cluster, engine_.scorer()) {}

  absl::StatusOr<Plan> Run(std::optional<std::span<const NodeId>> subset, const ProgressFn& progress) {
    uint64_t step = 0;
    const auto go_on = [&] { return progress == nullptr || progress(step++, kProgressSteps); };
    const auto cancelled = [] { return Cancelled("batch: cancelled"); };
    HORUS_ASSIGN_OR_RETURN(const JobOrder order, engine_.OrderAny(cluster_, jobs_));
    HORUS_RETURN_IF_ERROR(engine_.Start(cluster_, subset));
    if (!go_on()) return cancelled();
    views_.reserve(order.size());
    for (const uint32_t index : order) {
      views_.push_back(ViewJob(jobs_[index]));
      meter_.Know(jobs_[index]);
      // A job to be probed, or run in one of several ways, has no view that a search may move.
      if (Moves(views_.back()) && !engine_.IsOpen(jobs_[index]))
        movable_.push_back(static_cast<uint32_t>(views_.size() - 1));
    }
    const size_t mark = engine_.ledger().Mark();
    Outcome selected(views_.size());
    selected.fits = false;
    if (engine_.policy().maximises_work()) {
      HORUS_ASSIGN_OR_RETURN(Selected found, Select(selected, /*largest_first=*/false));
      engine_.ledger().UndoTo(mark);
      if (found.leaves_gang) {  // small jobs may have broken up what it needs
        Outcome other(views_.size());
        for (const JobView& view : views_) meter_.Know(*view.job);  // as it was given
        HORUS_ASSIGN_OR_RETURN(const Selected largest, Select(other, /*largest_first=*/true));
        engine_.ledger().UndoTo(mark);
        if (PlacesMore(other, selected) && other.work > selected.work - kLeastDifference) {
          selected = std::move(other);
          found = largest;
        }
      }
      const bool enough = found.enough;
      selected.fits = !enough;
      if (!enough && (options_.prices || options_.patience_us > 0)) {  // they value more than the work of this call
        HORUS_ASSIGN_OR_RETURN(Plan plan, PlanOf(std::move(selected), 0));
        plan.has_work = false;
        plan.work_after = 0;
        return plan;
      }
    }
    for (const JobView& view : views_) meter_.Know(*view.job);  // as it was given
    Outcome first(views_.size());
    HORUS_RETURN_IF_ERROR(OneByOne(first));
    if (PlacesMore(selected, first)) {  // those before them took what later ones need
      first = std::move(selected);
      first.fits = true;
      selected = Outcome(views_.size());
      selected.fits = false;
    }
    fixed_.assign(views_.size(), false);
    for (size_t at = 0; at < views_.size(); ++at) {
      if (first.jobs[at] == nullptr) continue;
      const Decision& decision = first.decisions[at];
      fixed_[at] =
          decision.probe || decision.alternative >= 0 || first.jobs[at]->sm_cap_pct != views_[at].job->sm_cap_pct;
      if (!fixed_[at])
        views_[at].job = first.jobs[at].get();  // the search lets it run in the mode that was chosen for it
    }
    const double work = first.work;
    engine_.ledger().UndoTo(mark);
    std::erase_if(movable_, [&](uint32_t at) { return fixed_[at]; });
    Outcome& most = Beats(selected, first) ? selected : first;
    if (movable_.empty() || order.size() < 2 || (selected.fits && order.size() > options_.window))
      return PlanOf(std::move(most), work);
    if (!go_on()) return cancelled();
    std::vector<BatchPlace> moved;
    bool going = true;
    HORUS_RETURN_IF_ERROR(Search(first, [&] { return going = go_on(); }, moved));
    if (!going || !go_on()) return cancelled();
    engine_.ledger().UndoTo(mark);
    Outcome better(views_.size());
    better.fits = !moved.empty();
    if (better.fits) HORUS_RETURN_IF_ERROR(Replay(first, moved, better));
    engine_.ledger().UndoTo(mark);
    return PlanOf(Beats(better, most) ? std::move(better) : std::move(most), work);
  }

 private:
  [[nodiscard]] bool Moves(const JobView& view) const {
    return GpuCount(*view.job) == 1 && !engine_.policy().PricesNode(*view.job);
  }
  struct Selected {
    bool enough = true;  // there was room for all who fitted somewhere
    bool leaves_gang = false;
  };
  absl::StatusOr<Selected> Select(Outcome& outcome, bool largest_first) {
    Selected found;
    Selection selection(engine_, views_, options_, largest_first);
    HORUS_RETURN_IF_ERROR(selection.Start(engine_.pricer()));
    while (true) {
      HORUS_ASSIGN_OR_RETURN(std::optional<Selection::Chosen> chosen, selection.Next());
      if (!chosen) break;
      outcome.jobs[chosen->at] = chosen->job;
      HORUS_RETURN_IF_ERROR(Take(chosen->at, chosen->view, chosen->place, std::move(chosen->decision), outcome));
    }
    for (const size_t at : selection.left()) {
      HORUS_ASSIGN_OR_RETURN(outcome.decisions[at], selection.Left(at));
      found.enough = found.enough && outcome.decisions[at].reason != Reason::kPassedOver;
    }
    found.leaves_gang = selection.LeavesGang();
    CountPlaced(outcome);
    return found;
  }

  absl::Status OneByOne(Outcome& outcome) {
    for (size_t at = 0; at < views_.size(); ++at) HORUS_RETURN_IF_ERROR(Decide(at, outcome));
    CountPlaced(outcome);
    return absl::OkStatus();
  }

  absl::Status Replay(const Outcome& first, std::span<const BatchPlace> moved, Outcome& outcome) {
    std::vector<size_t> left_out;
    size_t next = 0;
    for (size_t at = 0; at < views_.size() && outcome.fits; ++at) {
      Placement place = first.places[at];
      if (next < movable_.size() && movable_[next] == at) {
        const BatchPlace& to = moved[next++];
        place = Placement();
        if (to.device != kNoDevice) place.slots = {SlotAt(to.node_row, to.device)};
      }
      if (fixed_[at]) {  // as the search booked it
        outcome.jobs[at] = first.jobs[at];
        HORUS_RETURN_IF_ERROR(PutBack(at, ViewJob(*first.jobs[at]), place, outcome));
        outcome.decisions[at].probe = first.decisions[at].probe;
        outcome.decisions[at].alternative = first.decisions[at].alternative;
      } else if (place.slots.empty()) {
        left_out.push_back(at);
      } else {
        HORUS_RETURN_IF_ERROR(PutBack(at, views_[at], place, outcome));
      }
    }
    for (const size_t at : left_out) {
      if (outcome.fits) HORUS_RETURN_IF_ERROR(Decide(at, outcome));
    }
    CountPlaced(outcome);
    return absl::OkStatus();
  }

  absl::Status PutBack(size_t at, const JobView& view, const Placement& place, Outcome& outcome) {
    HORUS_RETURN_IF_ERROR(Fits(view, place.slots, outcome.fits));
    if (!outcome.fits) return absl::OkStatus();
    SearchResult found;
    if (Moves(view)) {
      HORUS_RETURN_IF_ERROR(engine_.Find(view, nullptr, found));
      const auto same = [&](const Placement& one) {
        return !one.slots.empty() && one.slots[0].node_row == place.slots[0].node_row &&
               one.slots[0].device == place.slots[0].device;
      };
      if (!same(found.best)) {
        if (!same(found.second)) found.second = Placement();
        std::swap(found.best, found.second);
        if (found.best.slots.empty()) {  // neither of the policy's best two: priced here
          found.best = place;
          HORUS_RETURN_IF_ERROR(engine_.Price(view, found.best));
        }
      }
    } else {
      found.best = place;
      if (GpuCount(*view.job) > 1 && !engine_.policy().PricesNode(*view.job))
        HORUS_RETURN_IF_ERROR(engine_.Price(view, found.best));  // beside those who come before it now
      found.spans_nodes = std::ranges::any_of(
          place.slots, [&](const PlacedSlot& slot) { return slot.node_row != place.slots[0].node_row; });
    }
    LetWait(at);
    HORUS_ASSIGN_OR_RETURN(Decision decision, engine_.Explain(view, found));
    return Take(at, view, found.best, std::move(decision), outcome);
  }

  absl::Status Decide(size_t at, Outcome& outcome) {
    LetWait(at);
    const JobView& view = views_[at];
    Decision& decision = outcome.decisions[at];
    if (!engine_.IsOpen(*view.job)) {
      HORUS_ASSIGN_OR_RETURN(decision, engine_.Decide(view));
      if (decision.verdict == Verdict::kPlace) return Take(at, engine_.found().best, std::move(decision), outcome);
      if (!engine_.HasOtherWays(*view.job)) return absl::OkStatus();
    }
    HORUS_ASSIGN_OR_RETURN(ChosenWay way, engine_.Choose(*view.job));
    outcome.jobs[at] = way.job;
    if (way.job != nullptr)
      return Take(at, ViewJob(*way.job), {.cost = way.decision.winner.cost, .slots = std::move(way.slots)},
                  std::move(way.decision), outcome);
    decision = std::move(way.decision);
    return absl::OkStatus();
  }

  // Those after it wait (Engine::SetWaiting).
  void LetWait(size_t at) {
    waiting_.clear();
    for (size_t i = at + 1; i < views_.size() && waiting_.size() < kMostWaiting; ++i) waiting_.push_back(views_[i].job);
    engine_.SetWaiting(waiting_);
  }

  absl::Status Take(size_t at, const Placement& place, Decision decision, Outcome& outcome) {
    return Take(at, views_[at], place, std::move(decision), outcome);
  }

  absl::Status Take(size_t at, const JobView& given, const Placement& place, Decision decision, Outcome& outcome) {
    Ledger& ledger = engine_.ledger();
    double gain = 0;
    std::shared_ptr<const JobSpec> decided = AsDecided(*given.job, decision);
    const JobView other = decided != nullptr ? ViewJob(*decided) : JobView();
    const JobView& view = decided != nullptr ? other : given;
    if (decided != nullptr) outcome.jobs[at] = std::move(decided);
    meter_.Know(*view.job);
    if (GpuCount(*view.job) == 1) {
      const uint32_t device = ledger.device_of(place.slots[0]);
      engine_.scorer().SetJob(view);
      HORUS_ASSIGN_OR_RETURN(const Evaluation evaluation,
                             engine_.scorer().Evaluate(ledger.states(), ledger.state_id(device)));
      if (!evaluation.candidate.after.empty()) {
        HORUS_ASSIGN_OR_RETURN(gain, meter_.GainOf(ledger, device, *view.job, evaluation.candidate));
      }
      ledger.Place(*view.job, place.slots);
    } else {
      HORUS_ASSIGN_OR_RETURN(gain, meter_.Book(ledger, *view.job, place.slots));
    }
    outcome.work += gain;
    outcome.cost += place.cost;
    outcome.places[at] = place;
    outcome.decisions[at] = std::move(decision);
    return absl::OkStatus();
  }

  // Every constraint anew: a model may say that a job fits beside two others but not beside one of them.
  absl::Status Fits(const JobView& view, std::span<const PlacedSlot> slots, bool& fits) {
    const Ledger& ledger = engine_.ledger();
    Scorer& scorer = engine_.scorer();
    scorer.SetJob(view);
    IdMap<int64_t> tasks;  // by node row
    ForEachTask(slots, [&](uint32_t row) { ++tasks.FindOrInsert(row, 0); });
    fits = true;
    for (const PlacedSlot& slot : slots) {
      DeviceVerdict verdict;
      verdict.reason = AdmitNode(scorer.policy(), ledger, slot.node_row, *view.job, tasks.at(slot.node_row));
      if (verdict.reason == Reason::kNone && slot.device != kNoDevice) {
        // Without the memo, which would have to grow for every kind of job.
        HORUS_ASSIGN_OR_RETURN(verdict, JudgeDevice(scorer, ledger, view, ledger.device_of(slot), /*memo=*/false));
      }
      fits = fits && verdict.reason == Reason::kNone;
    }
    return absl::OkStatus();
  }

  absl::Status Search(const Outcome& first, const std::function<bool()>& go_on, std::vector<BatchPlace>& best) {
    BatchSearch search(engine_, meter_, options_);
    Ledger& ledger = engine_.ledger();
    std::vector<BatchPlace> start;
    size_t next = 0;
    for (size_t at = 0; at < views_.size(); ++at) {
      const PlacedSlots& slots = first.places[at].slots;
      if (next < movable_.size() && movable_[next] == at) {
        ++next;
        search.Add(views_[at]);
        start.push_back(slots.empty() ? BatchPlace() : BatchPlace{slots[0].node_row, slots[0].device});
      } else if (!slots.empty()) {
        ledger.Place(first.jobs[at] != nullptr ? *first.jobs[at] : *views_[at].job, slots);
      }
    }
    HORUS_RETURN_IF_ERROR(search.FindCandidates());
    const size_t count = search.size();
    std::vector<uint32_t> order(count);
    for (uint32_t i = 0; i < count; ++i) order[i] = i;
    const bool small = count <= kSmallBatch;
    double most = 0;
    const auto finish = [&]() -> absl::Status {
      HORUS_RETURN_IF_ERROR(search.Improve());
      const std::vector<BatchPlace> places = search.places();
      HORUS_ASSIGN_OR_RETURN(const std::optional<double> total, search.Total(places));
      if (total && (best.empty() || *total > most + kLeastDifference)) {
        most = *total;
        best = places;
      }
      return absl::OkStatus();
    };
    search.Book(start);
    HORUS_RETURN_IF_ERROR(search.Insert(order));
    HORUS_RETURN_IF_ERROR(finish());
    if (!go_on()) return absl::OkStatus();
    if (!search.spent()) {
      search.Clear();
      HORUS_RETURN_IF_ERROR(search.BookMatching());
      HORUS_RETURN_IF_ERROR(search.Insert(order));
      HORUS_RETURN_IF_ERROR(finish());
    }
    for (uint32_t again = 0; small && again < options_.restarts && !search.spent(); ++again) {
      search.Clear();
      std::ranges::sort(order, [&](uint32_t a, uint32_t b) {
        return std::pair(Mix64(uint64_t{again} << 32 | a), a) < std::pair(Mix64(uint64_t{again} << 32 | b), b);
      });
      HORUS_RETURN_IF_ERROR(search.Insert(order));
      HORUS_RETURN_IF_ERROR(finish());
    }
    return absl::OkStatus();
  }

  void CountPlaced(Outcome& outcome) const {
    outcome.placed.clear();
    for (size_t at = 0; at < views_.size(); ++at) {
      if (at == 0 || views_[at].job->priority != views_[at - 1].job->priority) outcome.placed.push_back(0);
      outcome.placed.back() += outcome.places[at].slots.empty() ? 0 : 1;
    }
  }

  // All that the other places, and others beside.
  [[nodiscard]] static bool PlacesMore(const Outcome& one, const Outcome& other) {
    bool more = false;
    for (size_t at = 0; at < one.places.size(); ++at) {
      const bool here = !one.places[at].slots.empty(), there = !other.places[at].slots.empty();
      if (there && !here) return false;
      more = more || here != there;
    }
    return more;
  }

  [[nodiscard]] bool Beats(const Outcome& one, const Outcome& other) const {
    if (!one.fits) return false;
    if (!engine_.policy().maximises_work()) {
      if (one.placed != other.placed) return one.placed > other.placed;
      return one.cost < other.cost - kLeastDifference;
    }
    size_t mine = 0, theirs = 0;
    for (size_t i = 0; i + 1 < one.placed.size(); ++i) {
      mine += one.placed[i];
      theirs += other.placed[i];
      if (mine < theirs) return false;
    }
    return one.work > other.work + kLeastDifference;
  }

  absl::StatusOr<Plan> PlanOf(Outcome outcome, double work_one_by_one) {
    Plan plan;
    plan.model_epoch = engine_.scorer().model().epoch();
    plan.has_work = true;
    plan.work_before = work_one_by_one;
    plan.work_after = outcome.work;
    std::vector<uint32_t> touched;
    for (size_t at = 0; at < views_.size(); ++at) {
      if (outcome.decisions[at].verdict != Verdict::kPlace) continue;
      std::shared_ptr<const JobSpec> job = outcome.jobs[at];
      if (job == nullptr) job = std::make_shared<const JobSpec>(*views_[at].job);
      plan.actions.push_back({ActionKind::kPlace, std::move(job), outcome.decisions[at].slots});
      for (const PlacedSlot& slot : outcome.places[at].slots) touched.push_back(slot.node_row);
    }
    plan.decisions = std::move(outcome.decisions);
    TellInPlan(plan.decisions);
    engine_.AddSeen(touched, plan);
    return plan;
  }

  Engine& engine_;
  const Cluster& cluster_;
  std::span<const JobSpec> jobs_;
  const BatchOptions& options_;
  WorkMeter meter_;
  std::vector<JobView> views_;  // in planning order
  std::vector<uint32_t> movable_;
  std::vector<bool> fixed_;              // in the one-by-one plan run in a way that was chosen for the place
  std::vector<const JobSpec*> waiting_;  // scratch
};

}  // namespace

absl::StatusOr<Plan> PlanBatch(Placer& placer, const Cluster& cluster, std::span<const JobSpec> jobs,
                               const BatchOptions& options, std::optional<std::span<const NodeId>> subset,
                               const ProgressFn& progress) {
  return Batcher(placer, cluster, jobs, options).Run(subset, progress);
}

}  // namespace horus
