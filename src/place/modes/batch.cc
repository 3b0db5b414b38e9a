// SPDX-License-Identifier: Apache-2.0
// One by one, then better: a local search from several starts, and the plan of the best.
#include "place/modes/batch.h"

#include "base/hash.h"
#include "place/modes/selection.h"
#include "place/search/admit.h"
#include "place/work.h"

namespace horus {
namespace {

// ---- The local search: jobs of one GPU on a planner's ledger, which holds what does not move.
// Cost: at most max_evaluations places priced.

// Being placed, for policies whose costs do not say what it is worth: above any cost that tells places apart.
constexpr double kPlaced = 1e9;
constexpr double kLeastGain = 1e-6;  // below is rounding: slowdowns are floats
// A search for the best place costs about as much as so many prices.
constexpr uint64_t kSearchPrice = 16;
constexpr size_t kMostCandidates = 64;  // of a kind of job
constexpr size_t kSpareCandidates = 2;  // beyond one for each job of the kind
constexpr size_t kFewDevices = 64;      // all of them are candidates
constexpr size_t kTriedCandidates = 8;  // of a job in a large batch

struct BatchPlace {
  uint32_t node_row = 0;
  int32_t device = kNoDevice;  // kNoDevice: left out
  friend bool operator==(const BatchPlace&, const BatchPlace&) = default;
};

// Values are useful work, or kPlaced minus the policy's cost; higher is better.
class BatchSearch {
 public:
  BatchSearch(Engine& engine, WorkMeter& meter, const BatchOptions& options)
      : engine_(engine), meter_(meter), options_(options) {}

  // Jobs of one GPU in planning order; they and their views must outlive it.
  void Add(const JobView& view) { items_.push_back({.view = &view}); }
  [[nodiscard]] size_t size() const { return items_.size(); }
  [[nodiscard]] std::vector<BatchPlace> places() const {
    std::vector<BatchPlace> places;
    places.reserve(items_.size());
    for (const Item& item : items_) places.push_back(item.place);
    return places;
  }

  // All are left out again.
  void Clear() {
    for (Item& item : items_) {
      if (item.placed()) Take(item);
    }
  }

  // Books them where they are told; each must fit.
  void Book(std::span<const BatchPlace> places) {
    for (size_t i = 0; i < items_.size(); ++i) {
      if (places[i].device != kNoDevice) Put(items_[i], places[i]);
    }
  }

  // The same with what they add in all, each after those before it; nothing where one does not fit.
  absl::StatusOr<std::optional<double>> Total(std::span<const BatchPlace> places) {
    Clear();
    double total = 0;
    for (size_t i = 0; i < items_.size(); ++i) {
      if (places[i].device == kNoDevice) continue;
      HORUS_ASSIGN_OR_RETURN(const std::optional<double> value, Value(items_[i], places[i]));
      if (!value) return std::nullopt;
      total += *value;
      Put(items_[i], places[i]);
    }
    return total;
  }

  // Those left out, one by one in that order of positions, at the policy's best place.
  absl::Status Insert(std::span<const uint32_t> order) {
    for (const uint32_t index : order) {
      if (items_[index].placed()) continue;
      HORUS_ASSIGN_OR_RETURN(const Valued best, FindPlace(items_[index]));
      if (best.found()) Put(items_[index], best.place);
    }
    return absl::OkStatus();
  }

  // Where jobs might go: to be called once, when all are left out.
  absl::Status FindCandidates() {
    Ledger& ledger = engine_.ledger();
    thorough_ = items_.size() <= kSmallBatch;
    IdMap<uint32_t> group_of;  // by request
    std::vector<size_t> count;
    std::vector<uint32_t> example;
    for (uint32_t i = 0; i < items_.size(); ++i) {
      Item& item = items_[i];
      item_of_.FindOrInsert(item.job().id, i);
      item.group = group_of.FindOrInsert(item.view->request, static_cast<uint32_t>(count.size()));
      if (item.group == count.size()) {
        count.push_back(0);
        example.push_back(i);
      }
      ++count[item.group];
    }
    candidates_.assign(count.size(), {});
    size_t devices = 0;
    for (const uint32_t row : engine_.nodes()) devices += ledger.spec(row).devices.size();
    for (uint32_t group = 0; group < count.size() && !spent(); ++group) {
      Item item = items_[example[group]];
      std::vector<BatchPlace>& places = candidates_[group];
      if (devices <= kFewDevices) {
        for (const uint32_t row : engine_.nodes()) {
          for (int32_t i = 0; i < static_cast<int32_t>(ledger.spec(row).devices.size()); ++i)
            places.push_back({row, i});
        }
      } else {
        // Where they would go if nobody else came.
        const size_t mark = ledger.Mark();
        const size_t wanted = std::min(count[group] + kSpareCandidates, kMostCandidates);
        for (size_t i = 0; i < wanted && !spent(); ++i) {
          evaluations_ += kSearchPrice;
          HORUS_RETURN_IF_ERROR(engine_.Find(*item.view, nullptr, found_));
          if (found_.best.slots.empty()) break;
          const BatchPlace place = {found_.best.slots[0].node_row, found_.best.slots[0].device};
          if (std::ranges::find(places, place) == places.end()) places.push_back(place);
          ledger.Place(item.job(), found_.best.slots);
        }
        ledger.UndoTo(mark);
      }
      std::vector<BatchPlace> fitting;
      for (const BatchPlace& place : places) {
        HORUS_ASSIGN_OR_RETURN(const std::optional<double> value, Value(item, place));
        if (value) fitting.push_back(place);
      }
      places = std::move(fitting);
    }
    return absl::OkStatus();
  }

  // Moves, exchanges and replacements until nothing gains or the budget is spent.
  absl::Status Improve() {
    for (uint32_t round = 0; round < options_.max_rounds && !spent(); ++round) {
      double in_round = 0;
      for (uint32_t i = 0; i < items_.size() && !spent(); ++i) {
        HORUS_RETURN_IF_ERROR(TryRelocate(i, in_round));
        HORUS_RETURN_IF_ERROR(TryCandidates(i, in_round));
      }
      if (in_round <= kLeastGain) break;
    }
    return absl::OkStatus();
  }

  [[nodiscard]] bool spent() const { return evaluations_ >= options_.max_evaluations; }

 private:
  struct Item {
    const JobView* view = nullptr;
    BatchPlace place;
    uint32_t group = 0;  // jobs alike, with one list of candidates
    [[nodiscard]] const JobSpec& job() const { return *view->job; }
    [[nodiscard]] bool placed() const { return place.device != kNoDevice; }
  };

  // What the job adds there, as the ledger is; nothing where it does not fit.
  absl::StatusOr<std::optional<double>> Value(const Item& item, const BatchPlace& place) {
    ++evaluations_;
    Ledger& ledger = engine_.ledger();
    Scorer& scorer = engine_.scorer();
    const JobSpec& job = item.job();
    const uint32_t device = DeviceOf(place);
    if (AdmitNode(scorer.policy(), ledger, place.node_row, job) != Reason::kNone ||
        BarsFrom(ledger, device, *item.view) != Reason::kNone) {
      return std::nullopt;
    }
    scorer.SetJob(*item.view);
    if (!scorer.policy().maximises_work()) {
      DeviceVerdict verdict;
      HORUS_RETURN_IF_ERROR(scorer.Weigh(ledger.states(), ledger.state_id(device), verdict));
      if (verdict.reason != Reason::kNone) return std::nullopt;
      return kPlaced - verdict.cost;
    }
    HORUS_ASSIGN_OR_RETURN(const Evaluation evaluation, scorer.Evaluate(ledger.states(), ledger.state_id(device)));
    if (evaluation.verdict.reason != Reason::kNone) return std::nullopt;
    return meter_.GainOf(ledger, device, job, evaluation.candidate);
  }

  // The policy's best place for it, if any, and its value.
  struct Valued {
    BatchPlace place;
    double value = 0;
    [[nodiscard]] bool found() const { return place.device != kNoDevice; }
  };
  absl::StatusOr<Valued> FindPlace(const Item& item) {
    Valued best;
    evaluations_ += kSearchPrice;
    HORUS_RETURN_IF_ERROR(engine_.Find(*item.view, nullptr, found_));
    for (const Placement* one : {&found_.best, &found_.second}) {
      if (one->slots.empty()) break;
      const BatchPlace here = {one->slots[0].node_row, one->slots[0].device};
      HORUS_ASSIGN_OR_RETURN(const std::optional<double> gain, Value(item, here));
      if (gain && (!best.found() || *gain > best.value + kLeastGain)) best = {here, *gain};
    }
    return best;
  }

  void Put(Item& item, const BatchPlace& place) {
    const std::array slots = {SlotAt(place.node_row, place.device)};
    engine_.ledger().Place(item.job(), slots);
    item.place = place;
  }

  void Take(Item& item) {
    const std::array slots = {SlotAt(item.place.node_row, item.place.device)};
    engine_.ledger().Remove(item.job(), slots);
    item.place = {};
  }

  // Trials: what was put and taken since `mark` is taken back.
  void Back(size_t mark, std::span<const std::pair<uint32_t, BatchPlace>> before) {
    engine_.ledger().UndoTo(mark);
    for (const auto& [index, place] : before) items_[index].place = place;
  }

  // To its best place as things are.
  absl::Status TryRelocate(uint32_t index, double& gained) {
    Item& item = items_[index];
    const BatchPlace was = item.place;
    const size_t mark = engine_.ledger().Mark();
    std::optional<double> here = 0;
    if (item.placed()) {
      Take(item);
      HORUS_ASSIGN_OR_RETURN(here, Value(item, was));
    }
    HORUS_ASSIGN_OR_RETURN(const Valued best, FindPlace(item));
    if (here && best.found() && best.value > *here + kLeastGain) {
      Put(item, best.place);
      gained += best.value - *here;
      return absl::OkStatus();
    }
    Back(mark, std::array{std::pair(index, was)});
    return absl::OkStatus();
  }

  // The job where `other` is, and that one where the job was, or at its best place, or left out.
  absl::StatusOr<bool> TryInsteadOf(uint32_t index, uint32_t other, double& gained) {
    Item& item = items_[index];
    Item& out = items_[other];
    const std::array before = {std::pair(index, item.place), std::pair(other, out.place)};
    const size_t mark = engine_.ledger().Mark();
    const auto [was, target] = std::pair(item.place, out.place);
    const bool was_placed = item.placed();
    std::optional<double> mine = 0;
    if (was_placed) {
      Take(item);
      HORUS_ASSIGN_OR_RETURN(mine, Value(item, was));
    }
    Take(out);
    HORUS_ASSIGN_OR_RETURN(const std::optional<double> theirs, Value(out, target));
    std::optional<double> instead;
    if (mine && theirs) {  // what does not fit without itself is nobody's to price
      HORUS_ASSIGN_OR_RETURN(instead, Value(item, target));
    }
    if (instead) {
      Put(item, target);
      Valued best;
      if (thorough_ || !was_placed) {
        HORUS_ASSIGN_OR_RETURN(best, FindPlace(out));
      } else {
        HORUS_ASSIGN_OR_RETURN(const std::optional<double> swapped, Value(out, was));
        if (swapped) best = {was, *swapped};
      }
      const double delta = -*mine - *theirs + *instead + best.value;
      if (delta > kLeastGain && (best.found() || (!was_placed && out.job().priority <= item.job().priority))) {
        if (best.found()) Put(out, best.place);
        gained += delta;
        return true;
      }
    }
    Back(mark, before);
    return false;
  }

  absl::Status TryCandidates(uint32_t index, double& gained) {
    const Ledger& ledger = engine_.ledger();
    const std::vector<BatchPlace>& places = candidates_[items_[index].group];
    // Jobs of one kind start at different candidates, so that they do not all ask for the same.
    const size_t tried = thorough_ ? places.size() : std::min(places.size(), kTriedCandidates);
    for (size_t i = 0; i < tried && !spent(); ++i) {
      const BatchPlace& place = places[thorough_ ? i : (index + i) % places.size()];
      if (place == items_[index].place) continue;
      std::vector<uint32_t> others;  // the residents change below
      for (const LedgerResident& resident : ledger.residents(DeviceOf(place))) {
        if (const uint32_t* other = item_of_.Find(resident.job)) others.push_back(*other);
      }
      for (const uint32_t other : others) {
        HORUS_ASSIGN_OR_RETURN(const bool done, TryInsteadOf(index, other, gained));
        if (done) return absl::OkStatus();
      }
    }
    return absl::OkStatus();
  }

  [[nodiscard]] uint32_t DeviceOf(const BatchPlace& place) const {
    return engine_.ledger().node(place.node_row).first_device + static_cast<uint32_t>(place.device);
  }

  Engine& engine_;
  WorkMeter& meter_;
  const BatchOptions& options_;
  std::vector<Item> items_;
  std::vector<std::vector<BatchPlace>> candidates_;  // by group
  IdMap<uint32_t> item_of_;                          // by JobId
  SearchResult found_;
  uint64_t evaluations_ = 0;
  bool thorough_ = false;
};

// ---- The starts compared, and the plan of the best.

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
    bool leaves_some = false;
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
      leaves_some = !found.enough && (options_.prices || options_.patience_us > 0);
      selected.fits = !found.enough && !leaves_some;
    }
    for (const JobView& view : views_) meter_.Know(*view.job);  // as it was given
    Outcome first(views_.size());
    if (!leaves_some || views_.size() <= kSmallBatch) HORUS_RETURN_IF_ERROR(OneByOne(first));
    // Prices and patience value more than the work of this call, but not where nobody needs to wait.
    if (leaves_some && !IsRoom(first, selected)) {
      engine_.ledger().UndoTo(mark);
      HORUS_ASSIGN_OR_RETURN(Plan plan, PlanOf(std::move(selected), 0));
      plan.has_work = false;
      plan.work_after = 0;
      return plan;
    }
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
    const bool beats =
        Beats(better, most) && !PlacesMore(first, better) && (!leaves_some || better.placed == most.placed);
    return PlanOf(beats ? std::move(better) : std::move(most), work);
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
      if (!evaluation.candidate.after.empty())
        HORUS_SET_OR_RETURN(gain, meter_.GainOf(ledger, device, *view.job, evaluation.candidate));
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
    double most = 0;
    const auto has_device = [](const BatchPlace& place) { return place.device != kNoDevice; };
    const auto finish = [&]() -> absl::Status {
      HORUS_RETURN_IF_ERROR(search.Improve());
      const std::vector<BatchPlace> places = search.places();
      if (HasMore(start, places, has_device)) return absl::OkStatus();  // as Beats
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
    const uint32_t others = 1 + (count <= kSmallBatch ? options_.restarts : 0);
    for (uint32_t again = 0; again < others && !search.spent(); ++again) {
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
    return HasMore(one.places, other.places, [](const auto& place) { return !place.slots.empty(); });
  }
  [[nodiscard]] static bool HasMore(const auto& one, const auto& other, const auto& placed) {
    bool more = false;
    for (size_t at = 0; at < one.size(); ++at) {
      const bool here = placed(one[at]), there = placed(other[at]);
      if (there && !here) return false;
      more = more || here != there;
    }
    return more;
  }

  // Whether the one-by-one plan has all that were selected and those who were passed over; of the patient, all jobs.
  [[nodiscard]] bool IsRoom(const Outcome& first, const Outcome& selected) const {
    for (size_t at = 0; at < first.places.size(); ++at) {
      if (!first.places[at].slots.empty()) continue;
      if (options_.patience_us > 0 || !selected.places[at].slots.empty() ||
          selected.decisions[at].reason == Reason::kPassedOver)
        return false;
    }
    return true;
  }

  // Never by leaving out somebody for whom there is room in the other, all whom the first places placed too.
  [[nodiscard]] bool Beats(const Outcome& one, const Outcome& other) const {
    if (!one.fits || PlacesMore(other, one)) return false;
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
