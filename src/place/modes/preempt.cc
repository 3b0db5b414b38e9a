// SPDX-License-Identifier: Apache-2.0
// The nodes where a job fits once others left, cheapest first; and the plan that does it.
#include "place/modes/preempt.h"

#include <queue>

#include "place/engine.h"
#include "place/search/admit.h"
#include "place/work.h"

namespace horus {
namespace {

// ---- Victims: the cheapest residents of one node whose leaving lets one task in.
// Cost: 2^residents of a device, then sets of devices; limits below.

struct VictimSet {
  std::vector<JobId> jobs;  // ascending
  double loss = 0;
  bool exact = true;
  bool found = false;  // else nothing below the bound lets the task in
};

constexpr size_t kMostOnDevice = 8;      // residents of a device whose every set is tried; the cheapest of more
constexpr size_t kMostLeaves = 4096;     // combinations of a node's devices
constexpr size_t kMostExtensions = 512;  // sets of further victims for the host's sake

std::vector<JobId> Union(std::span<const JobId> a, std::span<const JobId> b) {
  std::vector<JobId> both;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

class Victims {
 public:
  // Who may go: residents of `cluster` below `priority`.
  Victims(Engine& engine, const Cluster& cluster, int32_t priority, uint64_t max_checks)
      : engine_(engine), cluster_(cluster), priority_(priority), max_checks_(max_checks) {}

  // The loss of each; to be called once, on the ledger before anybody left.
  [[nodiscard]] absl::Status Measure(WorkMeter& meter) {
    const Ledger& ledger = engine_.ledger();
    for (const JobRow& row : cluster_.rows().jobs) {
      if (!row.live()) continue;
      const JobSpec& request = cluster_.rows().RequestOf(row);
      if (request.priority >= priority_) continue;
      double loss = WorkWeight(request) * request.tasks;  // undisturbed, as a job without GPUs is
      if (!IsCpuOnly(request)) HORUS_SET_OR_RETURN(loss, meter.OfJob(ledger, row.id));
      losses_.Insert(row.id, loss);
    }
    return absl::OkStatus();
  }

  [[nodiscard]] double LossOf(JobId job) const { return losses_.at(job); }

  // Of one task on one node, for less than `bound`; `group` = only devices of it (search_nodes.h), kAnyGroup = all.
  static constexpr uint32_t kAnyGroup = UINT32_MAX;

  [[nodiscard]] absl::StatusOr<VictimSet> Cheapest(const JobView& task, uint32_t node_row, uint32_t group,
                                                   double bound) {
    HORUS_RETURN_IF_ERROR(engine_.GoOn());
    const LedgerNode& node = engine_.ledger().node(node_row);
    VictimSet set{.jobs = {}, .loss = bound};
    if (spent() || FitNode(*task.job, *node.spec, node.state) != Reason::kNone) return set;
    devices_.clear();
    for (int32_t i = 0; i < static_cast<int32_t>(node.spec->devices.size()) && !IsCpuOnly(*task.job); ++i) {
      Device device;
      HORUS_RETURN_IF_ERROR(DeviceOptions(task, node_row, i, bound, device, set.exact));
      if (!device.options.empty() && (group == kAnyGroup || device.group == group))
        devices_.push_back(std::move(device));
    }
    Combine(task, bound, set.exact);
    const std::vector<Option> leaves = std::move(leaves_);
    for (const Option& leaf : leaves) {
      if (leaf.loss >= set.loss) break;
      if (spent()) {
        set.exact = false;
        break;
      }
      HORUS_ASSIGN_OR_RETURN(const bool fits, Check(task, node_row, group, leaf.jobs));
      if (fits) return VictimSet{.jobs = leaf.jobs, .loss = leaf.loss, .exact = set.exact, .found = true};
      HORUS_RETURN_IF_ERROR(Extend(task, node_row, group, leaf, set));
    }
    return set;
  }

  // Takes them out of the ledger, or puts one back.
  void Remove(std::span<const JobId> jobs) {
    for (const JobId job : jobs) engine_.ledger().Remove(job, RequestOf(job), RowOf(job).slots);
  }

  // Who is out for good, and is not to be thought of again; replaces those told before.
  void SetGone(std::span<const JobId> jobs) { gone_.assign(jobs.begin(), jobs.end()); }
  void PutBack(JobId job) { engine_.ledger().Place(job, RequestOf(job), RowOf(job).slots); }
  [[nodiscard]] bool spent() const { return checks_ >= max_checks_; }

 private:
  struct Option {  // victims on one device
    std::vector<JobId> jobs;
    double loss = 0;
  };
  struct Device {
    uint32_t group = 0;
    std::vector<Option> options;  // ascending loss; none contains another
  };
  [[nodiscard]] const JobRow& RowOf(JobId job) const { return cluster_.rows().jobs[cluster_.rows().RowOfJob(job)]; }
  [[nodiscard]] const JobSpec& RequestOf(JobId job) const { return cluster_.rows().RequestOf(RowOf(job)); }

  [[nodiscard]] double LossOf(std::span<const JobId> jobs) const {
    double loss = 0;
    for (const JobId job : jobs) loss += losses_.at(job);
    return loss;
  }

  // Every set of the device's residents that lets the task in, and of which no part does.
  [[nodiscard]] absl::Status DeviceOptions(const JobView& task, uint32_t node_row, int32_t device, double bound,
                                           Device& out, bool& exact) {
    Ledger& ledger = engine_.ledger();
    const uint32_t row = ledger.node(node_row).first_device + static_cast<uint32_t>(device);
    out.group = GroupOf(ledger.state(row));
    out.options.clear();
    std::vector<std::pair<double, JobId>> here;
    for (const LedgerResident& resident : ledger.residents(row)) {
      if (const double* loss = losses_.Find(resident.job)) here.emplace_back(*loss, resident.job);
    }
    std::ranges::sort(here);
    while (!here.empty() && here.back().first >= bound) here.pop_back();
    if (here.size() > kMostOnDevice) {
      here.resize(kMostOnDevice);
      exact = false;
    }
    std::vector<std::pair<double, uint32_t>> sets;
    for (uint32_t set = 0; set < 1u << here.size(); ++set) {
      double loss = 0;
      for (size_t i = 0; i < here.size(); ++i) loss += (set >> i & 1u) != 0 ? here[i].first : 0;
      if (loss < bound) sets.emplace_back(loss, set);
    }
    std::ranges::sort(sets);
    std::vector<uint32_t> enough;
    engine_.scorer().SetJob(task);
    for (const auto& [loss, set] : sets) {
      const uint32_t wanted = set;
      if (std::ranges::any_of(enough, [&](uint32_t one) { return (one & wanted) == one; })) continue;
      const size_t mark = ledger.Mark();
      Option option{.jobs = {}, .loss = loss};
      for (size_t i = 0; i < here.size(); ++i) {
        if ((set >> i & 1u) == 0) continue;
        option.jobs.push_back(here[i].second);
        const JobId job = here[i].second;
        ledger.Remove(job, RequestOf(job), std::array{SlotAt(node_row, device)});
      }
      ++checks_;
      HORUS_ASSIGN_OR_RETURN(const DeviceVerdict verdict,
                             JudgeDevice(engine_.scorer(), ledger, task, row, /*memo=*/false));
      ledger.UndoTo(mark);
      if (verdict.reason != Reason::kNone) continue;
      enough.push_back(set);
      std::ranges::sort(option.jobs);
      out.options.push_back(std::move(option));
    }
    return absl::OkStatus();
  }

  // All ways to give the task its devices for less than the bound, as `leaves_`.
  void Combine(const JobView& task, double bound, bool& exact) {
    leaves_.clear();
    const auto wanted = static_cast<size_t>(task.job->gpus_per_task);
    struct Partial {
      size_t next = 0;  // device
      size_t taken = 0;
      uint32_t group = 0;
      Option option;
    };
    std::vector<Partial> open(1);
    while (!open.empty()) {
      Partial partial = std::move(open.back());
      open.pop_back();
      if (partial.taken == wanted) {
        if (leaves_.size() >= kMostLeaves) {
          exact = false;
          return;
        }
        leaves_.push_back(std::move(partial.option));
        continue;
      }
      if (devices_.size() - partial.next < wanted - partial.taken) continue;
      const Device& device = devices_[partial.next];
      Partial without = partial;
      ++without.next;
      open.push_back(std::move(without));
      if (partial.taken > 0 && device.group != partial.group) continue;
      for (const Option& option : device.options) {
        Partial with{.next = partial.next + 1, .taken = partial.taken + 1, .group = device.group, .option = {}};
        with.option.jobs = Union(partial.option.jobs, option.jobs);
        with.option.loss = LossOf(with.option.jobs);
        if (with.option.loss < bound) open.push_back(std::move(with));
      }
    }
    std::ranges::stable_sort(leaves_, [](const Option& a, const Option& b) { return a.loss < b.loss; });
    leaves_.erase(
        std::unique(leaves_.begin(), leaves_.end(), [](const Option& a, const Option& b) { return a.jobs == b.jobs; }),
        leaves_.end());
  }

  // Whether the task fits there without them.
  [[nodiscard]] absl::StatusOr<bool> Check(const JobView& task, uint32_t node_row, uint32_t group,
                                           std::span<const JobId> victims) {
    Ledger& ledger = engine_.ledger();
    const size_t mark = ledger.Mark();
    Remove(victims);
    ++checks_;
    one_node_.assign(1, node_row);
    HORUS_RETURN_IF_ERROR(engine_.Find(task, &one_node_, found_));
    bool fits = !found_.best.slots.empty();
    if (fits && group != kAnyGroup && found_.best.slots[0].device != kNoDevice)
      fits = GroupOf(ledger.state(ledger.device_of(found_.best.slots[0]))) == group;
    ledger.UndoTo(mark);
    return fits;
  }

  // The devices would do, the host would not: further victims, by sets of ascending loss.
  [[nodiscard]] absl::Status Extend(const JobView& task, uint32_t node_row, uint32_t group, const Option& base,
                                    VictimSet& set) {
    std::vector<std::pair<double, JobId>> others;
    for (const JobId job : OnNode(node_row)) {
      if (!std::binary_search(base.jobs.begin(), base.jobs.end(), job)) others.emplace_back(losses_.at(job), job);
    }
    std::ranges::sort(others);
    // A set is followed by those with its last member replaced by the next and with the next added: each comes once.
    using Extension = std::pair<double, std::vector<uint32_t>>;
    std::priority_queue<Extension, std::vector<Extension>, std::greater<>> open;
    if (!others.empty()) open.push({others[0].first, {0}});
    for (size_t tried = 0; !open.empty(); ++tried) {
      if (tried >= kMostExtensions || spent()) {
        set.exact = false;
        return absl::OkStatus();
      }
      const Extension extension = open.top();
      open.pop();
      if (base.loss + extension.first >= set.loss) return absl::OkStatus();
      std::vector<JobId> more;
      for (const uint32_t i : extension.second) more.push_back(others[i].second);
      std::ranges::sort(more);
      const std::vector<JobId> all = Union(base.jobs, more);
      HORUS_ASSIGN_OR_RETURN(const bool fits, Check(task, node_row, group, all));
      if (fits) {
        set = {.jobs = all, .loss = LossOf(all), .exact = set.exact, .found = true};
        return absl::OkStatus();
      }
      const uint32_t last = extension.second.back();
      if (last + 1 >= others.size()) continue;
      Extension next = extension;
      next.second.push_back(last + 1);
      next.first += others[last + 1].first;
      open.push(next);
      next.second.erase(next.second.end() - 2);
      next.first -= others[last].first;
      open.push(std::move(next));
    }
    return absl::OkStatus();
  }

  [[nodiscard]] std::vector<JobId> OnNode(uint32_t node_row) const {
    const Ledger& ledger = engine_.ledger();
    const LedgerNode& node = ledger.node(node_row);
    std::vector<JobId> jobs;
    for (uint32_t i = 0; i < node.spec->devices.size(); ++i) {
      for (const LedgerResident& one : ledger.residents(node.first_device + i)) jobs.push_back(one.job);
    }
    // Tasks without GPUs are not in the ledger's residents; the cluster knows them.
    for (const HostResident& one : cluster_.rows().nodes[node_row].host_residents)
      jobs.push_back(cluster_.rows().jobs[one.job_row].id);
    SortUnique(jobs);
    std::erase_if(jobs,
                  [&](JobId job) { return !losses_.contains(job) || std::ranges::find(gone_, job) != gone_.end(); });
    return jobs;
  }

  Engine& engine_;
  const Cluster& cluster_;
  int32_t priority_;
  uint64_t max_checks_;
  uint64_t checks_ = 0;
  IdMap<double> losses_;  // of those who may go
  std::vector<JobId> gone_;
  std::vector<Device> devices_;
  std::vector<Option> leaves_;
  std::vector<uint32_t> one_node_;
  SearchResult found_;
};

constexpr double kNoBound = std::numeric_limits<double>::infinity();

struct Found {
  VictimSet set;
  std::vector<uint32_t> nodes;  // rows where the job may go; empty = wherever it likes
  SearchResult place;
};

class Preempter {
 public:
  Preempter(Placer& placer, const Cluster& cluster, const JobSpec& job, const PreemptOptions& options)
      : engine_(placer.engine()),
        cluster_(cluster),
        job_(job),
        options_(options),
        view_(ViewJob(job_)),
        meter_(cluster, engine_.scorer()),
        victims_(engine_, cluster, job.priority, options.max_checks) {}

  absl::StatusOr<Plan> Run(std::optional<std::span<const NodeId>> subset) {
    HORUS_ASSIGN_OR_RETURN(const JobOrder order, engine_.Order(cluster_, {&job_, 1}));
    HORUS_RETURN_IF_ERROR(engine_.Start(cluster_, subset));
    Plan plan;
    HORUS_RETURN_IF_ERROR(engine_.PlanJobs({&job_, 1}, order, nullptr, plan));
    engine_.ledger().UndoTo(0);
    if (plan.decisions[0].verdict != Verdict::kDefer) return plan;
    plan.has_work = true;
    HORUS_ASSIGN_OR_RETURN(plan.work_before, meter_.OfAll(engine_.ledger()));
    plan.work_after = plan.work_before;
    HORUS_RETURN_IF_ERROR(victims_.Measure(meter_));
    HORUS_RETURN_IF_ERROR(job_.tasks == 1 ? OnOneNode() : OverNodes());
    if (kept_.empty()) return plan;
    Tell(plan);
    HORUS_RETURN_IF_ERROR(CarryOut(plan));
    return plan;
  }

 private:
  absl::Status OnOneNode() {
    for (const uint32_t row : engine_.nodes()) {
      HORUS_ASSIGN_OR_RETURN(VictimSet set, victims_.Cheapest(view_, row, Victims::kAnyGroup, Bound()));
      if (set.found) HORUS_RETURN_IF_ERROR(Keep({.set = std::move(set), .nodes = {row}, .place = {}}));
    }
    return absl::OkStatus();
  }

  absl::Status OverNodes() {
    std::vector<uint32_t> groups;
    for (const uint32_t row : engine_.nodes()) {
      const LedgerNode& node = engine_.ledger().node(row);
      for (uint32_t i = 0; i < node.spec->devices.size(); ++i)
        groups.push_back(GroupOf(engine_.ledger().state(node.first_device + i)));
    }
    SortUnique(groups);
    if (IsCpuOnly(job_)) groups.assign(1, Victims::kAnyGroup);
    for (const uint32_t group : groups) {
      HORUS_RETURN_IF_ERROR(Spread(group));
      engine_.ledger().UndoTo(0);
    }
    return absl::OkStatus();
  }

  // One task after another where the next costs least, on devices of one group.
  absl::Status Spread(uint32_t group) {
    Ledger& ledger = engine_.ledger();
    JobSpec one = job_;
    one.tasks = 1;
    JobView task = view_;
    task.job = &one;
    JobSpec booked = one;
    booked.exclusive = true;  // a device serves one task
    const std::vector<uint32_t> rows(engine_.nodes().begin(), engine_.nodes().end());
    std::vector<VictimSet> offers(rows.size());
    const auto offer = [&](size_t i) -> absl::Status {
      HORUS_ASSIGN_OR_RETURN(offers[i], victims_.Cheapest(task, rows[i], group, kNoBound));
      return absl::OkStatus();
    };
    std::vector<JobId> gone;
    victims_.SetGone(gone);
    for (size_t i = 0; i < rows.size(); ++i) HORUS_RETURN_IF_ERROR(offer(i));
    for (int32_t done = 0; done < job_.tasks; ++done) {
      size_t best = rows.size();
      for (size_t i = 0; i < rows.size(); ++i) {
        if (offers[i].found && (best == rows.size() || offers[i].loss < offers[best].loss)) best = i;
      }
      if (best == rows.size()) return absl::OkStatus();
      const std::vector<JobId> jobs = offers[best].jobs;
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
          return std::binary_search(offers[i].jobs.begin(), offers[i].jobs.end(), job);
        };
        if (i != best && offers[i].found && std::ranges::any_of(jobs, shares)) anew.push_back(i);
      }
      for (const size_t i : anew) HORUS_RETURN_IF_ERROR(offer(i));
    }
    ledger.UndoTo(0);
    SortUnique(gone);
    victims_.Remove(gone);
    std::vector<JobId> dearest = gone;
    std::ranges::stable_sort(dearest, [&](JobId a, JobId b) { return victims_.LossOf(a) > victims_.LossOf(b); });
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

  // Where the job goes once they left, if it does.
  absl::Status Keep(Found found) {
    if (found.set.jobs.empty()) return absl::OkStatus();  // a gang that fits as things are, and does not pay
    Ledger& ledger = engine_.ledger();
    const size_t mark = ledger.Mark();
    victims_.Remove(found.set.jobs);
    HORUS_RETURN_IF_ERROR(engine_.Find(view_, found.nodes.empty() ? nullptr : &found.nodes, found.place));
    ledger.UndoTo(mark);
    if (found.place.best.slots.empty()) return absl::OkStatus();
    const auto at = std::upper_bound(kept_.begin(), kept_.end(), found.set.loss,
                                     [](double loss, const Found& one) { return loss < one.set.loss; });
    kept_.insert(at, std::move(found));
    if (kept_.size() > options_.max_candidates) kept_.pop_back();
    return absl::OkStatus();
  }

  void Tell(Plan& plan) {
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
  }

  absl::Status CarryOut(Plan& plan) {
    const Found& best = kept_.front();
    Ledger& ledger = engine_.ledger();
    PlacedSlots concerned = best.place.best.slots;
    for (const JobId job : best.set.jobs) {
      const JobRow& row = cluster_.rows().jobs[cluster_.rows().RowOfJob(job)];
      plan.moves.push_back({.kind = ActionKind::kPreempt,
                            .job = job,
                            .from = SlotsOf(ledger, row.slots),
                            .to = {},
                            .gain = -victims_.LossOf(job),
                            .cost = 0});
      plan.actions.push_back({ActionKind::kPreempt, std::make_shared<const JobSpec>(cluster_.rows().SpecOf(row)), {}});
      for (const PlacedSlot& slot : row.slots) concerned.push_back(slot);
    }
    HORUS_ASSIGN_OR_RETURN(const double before, meter_.OfSlots(ledger, concerned));
    victims_.Remove(best.set.jobs);
    HORUS_ASSIGN_OR_RETURN(Decision decision, engine_.Explain(view_, best.place));
    std::shared_ptr<const JobSpec> job = AsDecided(job_, decision);
    if (job == nullptr) job = std::make_shared<const JobSpec>(job_);
    meter_.Know(job_);
    meter_.KnowAt(job_, best.place.best.slots);
    ledger.Place(*job, best.place.best.slots);
    HORUS_ASSIGN_OR_RETURN(const double after, meter_.OfSlots(ledger, concerned));
    plan.work_after = plan.work_before + after - before;
    plan.actions.push_back({ActionKind::kPlace, std::move(job), decision.slots});
    plan.decisions.assign(1, std::move(decision));
    std::vector<uint32_t> touched;
    for (const PlacedSlot& slot : concerned) touched.push_back(slot.node_row);
    engine_.AddSeen(touched, plan);
    return absl::OkStatus();
  }

  [[nodiscard]] double Bound() const {
    return kept_.size() < options_.max_candidates ? kNoBound : kept_.back().set.loss;
  }

  Engine& engine_;
  const Cluster& cluster_;
  const JobSpec& job_;
  const PreemptOptions& options_;
  JobView view_;
  WorkMeter meter_;
  Victims victims_;
  std::vector<Found> kept_;  // ascending loss
};

}  // namespace

absl::StatusOr<Plan> PlanPreemption(Placer& placer, const Cluster& cluster, const JobSpec& job,
                                    const PreemptOptions& options, std::optional<std::span<const NodeId>> subset) {
  if (options.max_candidates == 0) return InvalidArgument("preemption: max_candidates: expected at least 1, found 0");
  return Preempter(placer, cluster, job, options).Run(subset);
}

}  // namespace horus
