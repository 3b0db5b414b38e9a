// SPDX-License-Identifier: Apache-2.0
// The loop over events: those who finish, those who come, those who begin to work, then decisions.
#include "lab/run/run.h"

#include <chrono>

#include "lab/synergy/round.h"
#include "place/modes/batch.h"
#include "place/modes/what_if.h"

namespace horus {
namespace {

// Jobs of the queue in one plan at most; chosen. Prices need most of those who wait.
constexpr size_t kMostBatch = 2048;
// How much older a job seems whose patience is over: more than ranks differ by.
constexpr int64_t kPatientUs = 1'000'000'000;

// The outages of a simulation as events, ascending.
struct NodeEvent {
  int64_t time_us = 0;
  bool down = false;  // at one time those that come back come first
  uint32_t node = 0;
  friend auto operator<=>(const NodeEvent&, const NodeEvent&) = default;
};

// INVALID_ARGUMENT: an outage of no node, without length, or beside another of its node.
absl::StatusOr<std::vector<NodeEvent>> EventsOf(std::span<const NodeOutage> outages, const ClusterMap& map) {
  std::vector<NodeEvent> events;
  for (size_t i = 0; i < outages.size(); ++i) {
    const NodeOutage& outage = outages[i];
    const uint32_t* node = map.Find(outage.node);
    if (node == nullptr)
      return InvalidArgument("simulation: outages[%d]: node: expected one of the cluster, found %d", i, outage.node);
    if (outage.from_us < 0 || outage.until_us <= outage.from_us || outage.until_us > kMaxTraceTimeUs) {
      return InvalidArgument(
          "simulation: outages[%d]: until_us: expected more than from_us of %d, which is 0 or more, and at most %d, "
          "found %d",
          i, outage.from_us, kMaxTraceTimeUs, outage.until_us);
    }
    events.push_back({outage.from_us, true, *node});
    events.push_back({outage.until_us, false, *node});
  }
  std::ranges::sort(events);
  std::vector<bool> down(map.nodes());
  for (const NodeEvent& event : events) {
    if (event.down && down[event.node]) {
      return InvalidArgument("simulation: outages: expected one at a time of node %d, found another at %d us",
                             map.id(event.node), event.time_us);
    }
    down[event.node] = event.down;
  }
  return events;
}

class SimRun final : SimJobs {
 public:
  SimRun(const Trace& trace, std::span<const ProfileDemands> beliefs, const Truth& truth, Cluster& cluster,
         Queue& queue, Placer& placer, const SimOptions& options, const SimObserver& observer)
      : SimJobs(trace, beliefs, truth, cluster, queue, options, observer),
        beliefs_(beliefs),
        placer_(&placer),
        way_(WayOf()),
        promises_(options.know_run_times && ServesShortest()),
        look_ahead_(options.look_ahead != 0  ? options.look_ahead
                    : way_ == Way::kOneByOne ? queue.look_ahead()
                                             : BatchOptions{}.window) {}

  absl::StatusOr<SimResult> Go() {
    for (size_t job = 0; job < trace_.jobs.size(); ++job) HORUS_RETURN_IF_ERROR(CheckJob(job));
    HORUS_ASSIGN_OR_RETURN(node_events_, EventsOf(options_.outages, map_));
    std::ranges::reverse(node_events_);
    if (!trace_.jobs.empty()) now_us_ = trace_.jobs.front().submit_us;
    execution_.PassTime(now_us_, false);
    most_work_ = MostOfWork();
    const int64_t horizon = options_.horizon_us == 0 ? kNoEvent : options_.horizon_us;
    for (int64_t next = NextEvent(); next < horizon; next = NextEvent()) {
      HORUS_RETURN_IF_ERROR(CountRound(next));
      PassTime(next);
      HORUS_RETURN_IF_ERROR(FinishDue());
      HORUS_RETURN_IF_ERROR(ObserveDue());
      HORUS_RETURN_IF_ERROR(NodesDue());
      HORUS_RETURN_IF_ERROR(ProfilingDue());
      HORUS_RETURN_IF_ERROR(TakeArrivals());
      HORUS_RETURN_IF_ERROR(LaunchDue());
      HORUS_RETURN_IF_ERROR(RebalanceDue());
      HORUS_RETURN_IF_ERROR(DecideWhenDue());
    }
    if (horizon != kNoEvent && horizon > now_us_) PassTime(horizon);
    for (uint32_t job = 0; job < trace_.jobs.size(); ++job) {
      if (result_.jobs[job].end != SimEnd::kRunning) continue;
      HORUS_RETURN_IF_ERROR(StopWork(job).status());
      HORUS_RETURN_IF_ERROR(LetGo(job));
    }
    result_.use = meter_.use();
    result_.end_us = now_us_;
    result_.backlog_us = execution_.backlog_us();
    return std::move(result_);
  }

 private:
  // SimOptions::one_by_one.
  enum class Way : uint8_t { kOneByOne, kChooses, kMayWait };
  [[nodiscard]] Way WayOf() const {
    const bool rounds = RoundPolicyOf(*placer_) != nullptr;
    if (options_.one_by_one || options_.preempt || rounds || !placer_->policy().maximises_work()) return Way::kOneByOne;
    if (queue_.name() == "fifo" || queue_.name() == "las") return Way::kChooses;
    return ServesShortest() && weights_ == SimWeights::kShortest ? Way::kMayWait : Way::kOneByOne;
  }

  // ---- The loop over events.

  absl::Status CheckJob(size_t job) const {
    const TraceJob& one = trace_.jobs[job];
    if (one.duration_us <= 0 && !one.endless)
      return InvalidArgument("simulation: job[%d]: duration_us: expected a run time, found steps alone", job);
    if (one.endless && options_.horizon_us == 0)
      return InvalidArgument("simulation: horizon_us: expected one, for job[%d] never ends", job);
    if (one.gpus_per_task == 0) return absl::OkStatus();
    if (one.profile == kNotStated || one.profile >= beliefs_.size() || beliefs_[one.profile].empty()) {
      return InvalidArgument("simulation: job[%d]: profile: expected one that something is believed of, found '%s'",
                             job, std::string(ProfileOf(trace_, one)));
    }
    return absl::OkStatus();
  }

  Work MostOfWork() const {
    Work all = 0;
    for (const TraceJob& job : trace_.jobs) {
      if (job.endless) return 0;
      all += Work(job.duration_us) * kFullRate * GpusOf(job);
    }
    return all - all * (100 - kMostWorkPct) / 100;
  }

  int64_t NextEvent() const {
    int64_t next = decide_at_us_;
    if (arrived_ < trace_.jobs.size()) next = std::min(next, trace_.jobs[arrived_].submit_us);
    if (!execution_.empty()) next = std::min(next, execution_.Next().time_us);
    next = std::min({next, launches_.next_us(), observations_.next_us(), profiling_.next_us()});
    const bool holds = cluster_.job_count() > 0;
    if (holds && options_.rebalance_us > 0)
      next = std::min(next, now_us_ - now_us_ % options_.rebalance_us + options_.rebalance_us);
    // When all is done, what happens to nodes no longer counts.
    const bool counts = holds || queue_.size() > 0 || arrived_ < trace_.jobs.size();
    if (counts && !node_events_.empty()) next = std::min(next, std::max(now_us_, node_events_.back().time_us));
    return next;
  }

  absl::Status CountRound(int64_t at_us) {
    const auto is_round = [&](int64_t every) { return every > 0 && at_us % every == 0; };
    if (!is_round(options_.round_us) && !is_round(options_.rebalance_us)) return absl::OkStatus();
    if (++rounds_ <= options_.most_rounds) return absl::OkStatus();
    return ResourceExhausted("simulation: expected at most %d rounds of decisions and rebalances, found more at %d us",
                             options_.most_rounds, at_us);
  }

  void PassTime(int64_t to_us) {
    const absl::int128 passed = to_us - now_us_;
    const bool waits = queue_.size() > 0;
    meter_.PassTime(to_us - now_us_, waits);
    if (const Work missing = most_work_ - execution_.done(); missing > 0) {
      const Work rate = execution_.rate();
      const bool reached = missing <= passed * rate;
      result_.most_done_us = reached ? now_us_ + static_cast<int64_t>((missing + rate - 1) / rate) : -1;
    }
    execution_.PassTime(to_us, waits);
    now_us_ = to_us;
  }

  absl::Status FinishDue() {
    while (!execution_.empty() && execution_.Next().time_us == now_us_) {
      const uint32_t job = execution_.Next().job;
      profiling_.Finish(job);
      HORUS_RETURN_IF_ERROR(StopWork(job).status());
      HORUS_RETURN_IF_ERROR(Tell(SimEventKind::kFinish, job, SlotsOf(job)));
      HORUS_RETURN_IF_ERROR(LetGo(job));
      refused_.Clear();
      lives_[job].phase = Phase::kGone;
      result_.jobs[job].end = SimEnd::kFinished;
      result_.jobs[job].end_us = now_us_;
    }
    return absl::OkStatus();
  }

  absl::Status TakeArrivals() {
    for (; arrived_ < trace_.jobs.size() && trace_.jobs[arrived_].submit_us == now_us_; ++arrived_) {
      const auto job = static_cast<uint32_t>(arrived_);
      const TraceJob& one = trace_.jobs[arrived_];
      lives_[job].left = Work(one.endless ? kMaxTraceTimeUs : one.duration_us) * kFullRate;
      HORUS_RETURN_IF_ERROR(Enqueue(job));
      HORUS_RETURN_IF_ERROR(Tell(SimEventKind::kArrive, job));
    }
    return absl::OkStatus();
  }

  absl::Status NodesDue() {
    while (!node_events_.empty() && node_events_.back().time_us <= now_us_) {
      const NodeEvent event = node_events_.back();
      node_events_.pop_back();
      const NodeId node = map_.id(event.node);
      const Slot whole[] = {{node, kNoDevice, 0}};
      meter_.SetUp(event.node, !event.down);
      ++changes_;
      HORUS_RETURN_IF_ERROR(Tell(event.down ? SimEventKind::kNodeDown : SimEventKind::kNodeUp, kNotStated, whole));
      HORUS_ASSIGN_OR_RETURN(const std::vector<JobId> jobs,
                             cluster_.SetNodeState(node, event.down ? AdminState::kDown : AdminState::kUp));
      refused_.Clear();
      if (!event.down) continue;
      for (const JobId job : jobs) HORUS_RETURN_IF_ERROR(Interrupt(static_cast<uint32_t>(job)));
    }
    return absl::OkStatus();
  }

  // Tells policy and learner how the tenants of the device fare.
  absl::StatusOr<Revision> Observe(uint32_t device) const {
    const DeviceContext context = map_.context(device);
    const std::vector<const Demand*> demands = BeliefsOfTenants(device);
    std::vector<double> speeds, slowdowns;
    for (const uint32_t job : execution_.TenantsOf(device)) {
      speeds.push_back(execution_.ShareOn(job, device));
      slowdowns.push_back(1 / speeds.back());
    }
    HORUS_ASSIGN_OR_RETURN(Revision revision, placer_->policy().Revise({context, demands, speeds}));
    if (options_.learner != nullptr)
      HORUS_RETURN_IF_ERROR(options_.learner->Observe({now_us_, context, demands, slowdowns}));
    return revision;
  }

  absl::Status ObserveDue() {
    while (const std::optional<uint32_t> device = observations_.TakeDue(now_us_)) {
      HORUS_ASSIGN_OR_RETURN(Revision revision, Observe(*device));
      if (revision.policy != nullptr) {
        HORUS_ASSIGN_OR_RETURN(revised_,
                               Placer::Create(placer_->shared_model(), std::move(revision.policy), placer_->options()));
        placer_ = revised_.get();
        refused_.Clear();
      }
      if (options_.learner != nullptr) refused_.Clear();
      if (revision.undo) HORUS_RETURN_IF_ERROR(Preempt(execution_.TenantsOf(*device).back()));  // who came last
    }
    return absl::OkStatus();
  }

  absl::Status ProfilingDue() {
    while (const std::optional<uint32_t> job = profiling_.TakeDue(now_us_))
      HORUS_RETURN_IF_ERROR(PutBack(*job, SimEventKind::kProfiled));
    return absl::OkStatus();
  }

  absl::Status RebalanceDue() {
    if (options_.rebalance_us == 0 || now_us_ % options_.rebalance_us != 0) return absl::OkStatus();
    // What was best stays so while nobody comes or goes and nothing is learned.
    const std::pair state(changes_, placer_->model().epoch());
    if (state == settled_) return absl::OkStatus();
    std::vector<JobId> movable = cluster_.JobIds();
    std::erase_if(movable, [&](JobId job) { return lives_[job].phase != Phase::kRunning; });
    if (movable.empty()) return absl::OkStatus();
    HORUS_ASSIGN_OR_RETURN(const Plan plan, Rebalance(*placer_, cluster_, options_.rebalance, movable));
    if (plan.actions.empty()) {
      settled_ = state;
      return absl::OkStatus();
    }
    HORUS_RETURN_IF_ERROR(cluster_.Apply(plan));
    // All leave before the first comes, as in the cluster: they may change places.
    for (const Action& action : plan.actions) {
      const auto job = static_cast<uint32_t>(action.job->id);
      HORUS_RETURN_IF_ERROR(StopWork(job).status());
      Vacate(job);
    }
    for (const Action& action : plan.actions)
      HORUS_RETURN_IF_ERROR(MoveTo(static_cast<uint32_t>(action.job->id), action));
    refused_.Clear();
    return absl::OkStatus();
  }

  absl::Status DecideWhenDue() {
    const int64_t round = options_.round_us;
    if (round == 0 || now_us_ % round == 0) {
      decide_at_us_ = kNoEvent;
      HORUS_RETURN_IF_ERROR(RoundPolicyOf(*placer_) != nullptr ? DecideRound()
                            : options_.preempt                 ? DecideByRank()
                            : way_ == Way::kChooses            ? DecideBatch()
                                                               : Decide());
      HORUS_RETURN_IF_ERROR(Regrant());
      // Ranks change while jobs run.
      const bool again = options_.preempt && round > 0 && cluster_.job_count() > 0;
      if (!again || queue_.size() == 0) return absl::OkStatus();
    }
    const bool renews = options_.preempt && RoundPolicyOf(*placer_) != nullptr && changes_ != round_changes_;
    if (queue_.size() > 0 || renews) decide_at_us_ = now_us_ - now_us_ % round + round;
    return absl::OkStatus();
  }

  // Those who work get what others gave back.
  absl::Status Regrant() {
    if (options_.sensitivities == nullptr || !placer_->policy().grants_host()) return absl::OkStatus();
    HORUS_ASSIGN_OR_RETURN(const Plan plan, placer_->MakePlan(cluster_, {}));
    if (plan.actions.empty()) return absl::OkStatus();
    HORUS_RETURN_IF_ERROR(cluster_.Apply(plan));
    return Resize(plan);
  }

  // ---- One job after the other.

  // The plan that `ask` gives of so many jobs, timed.
  template <typename Ask>
  [[nodiscard]] absl::StatusOr<Plan> Timed(size_t decisions, const Ask& ask) {
    const auto begin = std::chrono::steady_clock::now();
    absl::StatusOr<Plan> plan = ask();
    const std::chrono::duration<float, std::micro> took = std::chrono::steady_clock::now() - begin;
    result_.took_us.push_back(took.count());
    result_.decisions += decisions;
    return plan;
  }
  [[nodiscard]] absl::StatusOr<Plan> AskPlacer(const JobSpec& spec) {
    return Timed(1, [&] { return placer_->MakePlan(cluster_, {&spec, 1}); });
  }

  // Carries out what the placer decided of a job that waits.
  absl::Status Settle(uint32_t job, Plan& plan, bool& left_queue) {
    if (!plan.actions.empty()) HORUS_RETURN_IF_ERROR(cluster_.Apply(plan));
    HORUS_RETURN_IF_ERROR(Resize(plan));
    const Verdict verdict = plan.decisions.front().verdict;
    left_queue = verdict != Verdict::kDefer;
    if (verdict == Verdict::kPlace) {
      TenantEffects& effects = plan.decisions.front().effects;
      if (std::ssize(effects) > GpusOf(trace_.jobs[job])) predicted_[job] = std::move(effects);
      return Admit(plan.actions.front());
    }
    if (verdict == Verdict::kDefer) return absl::OkStatus();
    HORUS_RETURN_IF_ERROR(queue_.Remove(job));
    return Reject(job);
  }

  // When each GPU falls idle, infinite where the job cannot run: as if sharing neither gained nor lost, for how fast
  // tenants really are nobody is told.
  std::vector<double> IdleTimes(const JobSpec& spec) const {
    std::vector<double> times(map_.devices(), 0);
    for (uint32_t device = 0; device < map_.devices(); ++device) {
      const bool runs = std::ranges::any_of(spec.demands, [&](const TypeDemand& one) {
        return !one.type.valid() || one.type == map_.device(device).type;
      });
      if (!runs) times[device] = std::numeric_limits<double>::infinity();
      for (const uint32_t tenant : execution_.TenantsOf(device)) times[device] += LeftUs(tenant);
    }
    return times;
  }

  // When the first gang that waits can start.
  struct Promise {
    uint32_t gang = 0;
    std::vector<double> idle;  // IdleTimes
    double start_us = 0;       // from now
  };

  // When a gang finds as many idle GPUs as it needs, those of each task on one node.
  double StartOf(const TraceJob& gang, std::span<const double> idle) const {
    const auto per_task = static_cast<size_t>(gang.gpus_per_task);
    std::vector<double> tasks, of_node;
    for (size_t first = 0; first < idle.size();) {
      const size_t count = map_.devices_on(map_.node_of(static_cast<uint32_t>(first)));
      of_node.assign(idle.begin() + static_cast<ptrdiff_t>(first),
                     idle.begin() + static_cast<ptrdiff_t>(first + count));
      std::sort(of_node.begin(), of_node.end());
      for (size_t last = per_task; last <= count; last += per_task) tasks.push_back(of_node[last - 1]);
      first += count;
    }
    const auto needed = static_cast<size_t>(gang.tasks);
    if (tasks.size() < needed) return std::numeric_limits<double>::infinity();
    std::sort(tasks.begin(), tasks.end());
    return tasks[needed - 1];
  }

  Promise PromiseTo(uint32_t gang) const {
    Promise promise{.gang = gang, .idle = IdleTimes(SpecOf(gang))};
    promise.start_us = StartOf(trace_.jobs[gang], promise.idle);
    return promise;
  }

  // Whether the job, where the decision puts it, would still be in the gang's way when that could start.
  bool Delays(const JobSpec& spec, const Decision& decision, const Promise& promise) const {
    if (!std::isfinite(promise.start_us)) return false;
    std::vector<double> idle = promise.idle;
    for (const Slot& slot : decision.slots) {
      if (slot.device == kNoDevice) continue;
      idle[map_.first_device(map_.at(slot.node)) + static_cast<uint32_t>(slot.device)] +=
          LeftUs(static_cast<uint32_t>(spec.id));
    }
    return StartOf(trace_.jobs[promise.gang], idle) > promise.start_us;
  }

  // Of the job at `rank` of the window.
  bool HadBetterWait(const JobSpec& spec, const Decision& decision, std::span<const uint64_t> window,
                     size_t rank) const {
    if (way_ != Way::kMayWait || decision.effects.size() <= decision.slots.size()) return false;
    // Gangs wait for many GPUs at once, and whoever ends by then passes them.
    const int64_t before = std::count_if(window.begin(), window.begin() + static_cast<ptrdiff_t>(rank),
                                         [&](uint64_t job) { return GpusOf(trace_.jobs[job]) == 1; });
    std::vector<double> idle = IdleTimes(spec);  // of GPUs in use
    std::erase_if(idle, [](double time) { return time == 0 || !std::isfinite(time); });
    std::sort(idle.begin(), idle.end());
    const auto of = [&](int64_t gpus) {
      return gpus < std::ssize(idle) ? idle[static_cast<size_t>(gpus)] : std::numeric_limits<double>::infinity();
    };
    std::vector<SharingNeighbour> neighbours;
    std::map<JobId, size_t> places;
    for (const TenantEffect& effect : decision.effects) {
      if (effect.is_new) continue;
      // A gang runs as its slowest GPU.
      const auto [at, first] = places.emplace(effect.job, neighbours.size());
      if (first) neighbours.push_back({.left_us = LeftUs(static_cast<uint32_t>(effect.job))});
      SharingNeighbour& one = neighbours[at->second];
      one.before = std::max(one.before, static_cast<double>(effect.before.estimate));
      one.after = std::max(one.after, static_cast<double>(effect.after.estimate));
    }
    WaitOutlook outlook{.idle_us = of(before + std::ssize(decision.slots) - 1)};
    if (options_.rebalance_us > 0) {
      auto gpus = static_cast<int64_t>(queue_.size() - window.size());  // beyond the window one each
      for (const uint64_t job : window) gpus += GpusOf(trace_.jobs[job]);
      outlook.apart_us = of(gpus);
    }
    return WaitingIsBetter({.left_us = LeftUs(static_cast<uint32_t>(spec.id)),
                            .slowdown = static_cast<double>(decision.own.estimate),
                            .neighbours = neighbours},
                           outlook);
  }

  // A job that was refused is asked again when another has left: those that come take room, they make none. Where run
  // times are known, those behind the first gang that is refused go if it starts no later for that (EASY backfill).
  absl::Status Decide() {
    for (bool changed = true; changed && queue_.size() > 0;) {
      changed = false;
      HORUS_ASSIGN_OR_RETURN(const std::vector<uint64_t> window, queue_.Window(now_us_, look_ahead_));
      std::optional<Promise> promise;
      for (size_t i = 0; i < window.size(); ++i) {
        const auto job = static_cast<uint32_t>(window[i]);
        const Kind kind = KindOf(job);
        if (!refused_.HasJob(window[i]) && !refused_.HasKind(kind)) {
          const JobSpec spec = SpecOf(job);
          HORUS_ASSIGN_OR_RETURN(Plan plan, AskPlacer(spec));
          const Decision& decision = plan.decisions.front();
          if (!HadBetterWait(spec, decision, window, i) && !(promise && Delays(spec, decision, *promise))) {
            HORUS_RETURN_IF_ERROR(Settle(job, plan, changed));
            if (changed) break;
            refused_.AddKind(kind);
          }
        }
        refused_.AddJob(window[i]);
        if (promises_ && !promise && GpusOf(trace_.jobs[job]) > 1) promise = PromiseTo(job);
      }
    }
    return absl::OkStatus();
  }

  // All that may be tried now in one plan of the queue, as schedulers ask for it.
  absl::Status DecideBatch() {
    while (queue_.size() > 0) {
      HORUS_ASSIGN_OR_RETURN(const std::vector<uint64_t> window,
                             queue_.Window(now_us_, std::max(look_ahead_, kMostBatch)));
      std::vector<JobSpec> specs;
      for (size_t rank = 0; rank < window.size(); ++rank) {
        const auto job = static_cast<uint32_t>(window[rank]);
        if (refused_.HasKind(KindOf(job))) continue;
        specs.push_back(SpecOf(job));
        // The queue's order; whoever has waited too long comes first there, and is passed by nobody here.
        const bool patient = queue_.patience_us() > 0 && now_us_ - trace_.jobs[job].submit_us >= queue_.patience_us();
        specs.back().submit_us = static_cast<int64_t>(rank) + (patient ? 0 : kPatientUs);
      }
      if (specs.empty()) break;
      const BatchOptions batch{.now_us = kPatientUs,
                               .patience_us = kPatientUs - std::ssize(window),
                               .window = static_cast<uint32_t>(look_ahead_),
                               .prices = weights_ == SimWeights::kPrices};
      HORUS_ASSIGN_OR_RETURN(const Plan plan, Timed(1, [&] { return PlanBatch(*placer_, cluster_, specs, batch); }));
      if (!plan.actions.empty()) HORUS_RETURN_IF_ERROR(cluster_.Apply(plan));
      bool rejected = false;
      for (const Decision& decision : plan.decisions) {
        const auto job = static_cast<uint32_t>(decision.job);
        if (decision.verdict == Verdict::kPlace) {
          if (std::ssize(decision.effects) > GpusOf(trace_.jobs[job])) predicted_[job] = decision.effects;
        } else if (decision.verdict == Verdict::kReject) {
          HORUS_RETURN_IF_ERROR(queue_.Remove(job));
          HORUS_RETURN_IF_ERROR(Reject(job));
          rejected = true;
        } else {
          refused_.AddKind(KindOf(job));
        }
      }
      for (const Action& action : plan.actions) HORUS_RETURN_IF_ERROR(Admit(action));
      if (plan.actions.empty() && !rejected) break;
    }
    return absl::OkStatus();
  }

  // ---- Preemption by rank: jobs that wait take the places of jobs that run and rank behind them.

  // All jobs that wait, hold places or run, in the order in which the queue would serve them now.
  absl::StatusOr<std::vector<uint32_t>> Ranking() {
    const std::vector<JobId> held = cluster_.JobIds();
    for (const JobId job : held) HORUS_RETURN_IF_ERROR(queue_.Push(QueuedOf(static_cast<uint32_t>(job))));
    HORUS_ASSIGN_OR_RETURN(const std::vector<uint64_t> order, queue_.Window(now_us_, queue_.size()));
    for (const JobId job : held) HORUS_RETURN_IF_ERROR(queue_.Remove(job));
    return std::vector<uint32_t>(order.begin(), order.end());
  }

  absl::StatusOr<bool> FitsWithout(const JobSpec& spec, std::span<const uint32_t> victims) {
    std::vector<SupposedChange> changes;
    for (const uint32_t victim : victims) changes.push_back({.kind = ChangeKind::kRelease, .job = victim});
    HORUS_ASSIGN_OR_RETURN(const Plan plan, WhatIf(*placer_, cluster_, changes, {&spec, 1}, false));
    return plan.decisions.front().verdict == Verdict::kPlace;
  }

  // Of those behind, in rank order, few that make room for the job: the last ones, but for those whose places it can do
  // without. None where all of them do not.
  absl::StatusOr<std::vector<uint32_t>> VictimsFor(const JobSpec& spec, std::span<const uint32_t> behind) {
    std::vector<uint32_t> victims;
    for (size_t count = 1;; count = std::min(2 * count, behind.size())) {
      victims.assign(behind.end() - static_cast<std::ptrdiff_t>(count), behind.end());
      HORUS_ASSIGN_OR_RETURN(const bool fits, FitsWithout(spec, victims));
      if (fits) break;
      if (count == behind.size()) return std::vector<uint32_t>();
    }
    for (size_t i = 0; i < victims.size() && victims.size() > 1;) {
      const uint32_t spared = victims[i];
      victims.erase(victims.begin() + static_cast<std::ptrdiff_t>(i));
      HORUS_ASSIGN_OR_RETURN(const bool fits, FitsWithout(spec, victims));
      if (fits) continue;
      victims.insert(victims.begin() + static_cast<std::ptrdiff_t>(i), spared);
      ++i;
    }
    return victims;
  }

  // `behind`: who may be preempted for the job, the last first to go; those who were are taken out.
  absl::Status Try(uint32_t job, std::vector<uint32_t>& behind, bool& left_queue) {
    const JobSpec spec = SpecOf(job);
    HORUS_ASSIGN_OR_RETURN(Plan plan, AskPlacer(spec));
    if (plan.decisions.front().verdict == Verdict::kDefer && !behind.empty()) {
      HORUS_ASSIGN_OR_RETURN(const std::vector<uint32_t> victims, VictimsFor(spec, behind));
      for (const uint32_t victim : victims) {
        HORUS_RETURN_IF_ERROR(Preempt(victim));
        behind.erase(std::ranges::find(behind, victim));
      }
      if (!victims.empty()) HORUS_SET_OR_RETURN(plan, placer_->MakePlan(cluster_, {&spec, 1}));
    }
    return Settle(job, plan, left_queue);
  }

  absl::Status DecideByRank() {
    if (queue_.size() == 0) return absl::OkStatus();
    HORUS_ASSIGN_OR_RETURN(const std::vector<uint32_t> order, Ranking());
    std::vector<uint32_t> behind;  // who holds places and ranks behind the job at hand, best first
    const auto holds = [&](uint32_t job) { return lives_[job].phase != Phase::kWaiting; };
    std::copy_if(order.begin(), order.end(), std::back_inserter(behind), holds);
    size_t refused = 0;
    for (const uint32_t job : order) {
      if (holds(job)) {
        behind.erase(std::remove(behind.begin(), behind.end(), job), behind.end());
        continue;
      }
      bool left_queue = false;
      HORUS_RETURN_IF_ERROR(Try(job, behind, left_queue));
      if (!left_queue && ++refused == look_ahead_) break;
    }
    return absl::OkStatus();
  }

  // ---- Policies that decide rounds: whoever may run in one plan, with leases those that run too.

  // Who takes part in the round, in the queue's order: of those that wait all that GPUs are left for by their number,
  // up to and with as many as are tried when the first does not fit; with leases all that hold whole GPUs too.
  absl::StatusOr<std::vector<uint32_t>> Contenders() {
    std::vector<uint32_t> order, chosen;
    if (options_.preempt) {
      HORUS_ASSIGN_OR_RETURN(order, Ranking());
    } else {
      HORUS_ASSIGN_OR_RETURN(const std::vector<uint64_t> window, queue_.Window(now_us_, queue_.size()));
      order.assign(window.begin(), window.end());
    }
    int64_t left = static_cast<int64_t>(options_.preempt ? meter_.up() : meter_.idle());
    size_t refused = 0;
    for (const uint32_t job : order) {
      const bool holds = lives_[job].phase != Phase::kWaiting;
      const TraceJob& one = trace_.jobs[job];
      if (holds && (one.gpus_per_task == 0 || (one.gpu_milli != 0 && one.gpu_milli < kMilliPerGpu))) continue;
      if (!holds && refused == look_ahead_) continue;
      const bool fits = GpusOf(one) <= left;
      if (fits) left -= GpusOf(one);
      if (!fits && !holds) ++refused;
      chosen.push_back(job);
    }
    return chosen;
  }

  absl::Status DecideRound() {
    // A round that finds all as the last one left it gives what that one gave, but for ranks of those who wait.
    if (queue_.size() == 0 && (!options_.preempt || changes_ == round_changes_)) return absl::OkStatus();
    HORUS_ASSIGN_OR_RETURN(const std::vector<uint32_t> jobs, Contenders());
    std::vector<JobSpec> specs;
    for (const uint32_t job : jobs) specs.push_back(SpecOf(job));
    HORUS_ASSIGN_OR_RETURN(const Plan plan, Timed(jobs.size(), [&] { return MakeRound(*placer_, cluster_, specs); }));
    if (!plan.actions.empty()) HORUS_RETURN_IF_ERROR(cluster_.Apply(plan));
    HORUS_RETURN_IF_ERROR(CarryOut(plan));
    for (size_t i = 0; i < jobs.size(); ++i) {
      if (plan.decisions[i].verdict != Verdict::kReject || lives_[jobs[i]].phase != Phase::kWaiting) continue;
      HORUS_RETURN_IF_ERROR(queue_.Remove(jobs[i]));
      HORUS_RETURN_IF_ERROR(Reject(jobs[i]));
    }
    round_changes_ = changes_;
    return absl::OkStatus();
  }

  // What the cluster did already. All leave before the first comes, as there.
  absl::Status CarryOut(const Plan& plan) {
    for (const Action& action : plan.actions) {
      if (action.kind != ActionKind::kMigrate && action.kind != ActionKind::kPreempt) continue;
      const auto job = static_cast<uint32_t>(action.job->id);
      HORUS_RETURN_IF_ERROR(StopWork(job).status());
      const bool leaves = action.kind == ActionKind::kPreempt;
      if (leaves) HORUS_RETURN_IF_ERROR(Tell(SimEventKind::kPreempt, job, SlotsOf(job)));
      Vacate(job);
      if (!leaves) continue;
      ++result_.jobs[job].preemptions;
      HORUS_RETURN_IF_ERROR(Charge(job, -1));
      HORUS_RETURN_IF_ERROR(Enqueue(job));
    }
    for (const Action& action : plan.actions) {
      const auto job = static_cast<uint32_t>(action.job->id);
      if (action.kind == ActionKind::kMigrate) HORUS_RETURN_IF_ERROR(MoveTo(job, action));
      if (action.kind == ActionKind::kPlace) HORUS_RETURN_IF_ERROR(Admit(action));
    }
    HORUS_RETURN_IF_ERROR(Resize(plan));
    refused_.Clear();
    return absl::OkStatus();
  }

  std::span<const ProfileDemands> beliefs_;
  Placer* placer_;  // the caller's, or `revised_`
  std::unique_ptr<Placer> revised_;
  Way way_;
  bool promises_;  // to gangs
  size_t look_ahead_;
  std::vector<NodeEvent> node_events_;                    // those to come, the next one last
  uint64_t round_changes_ = 0;                            // `changes_` of the last round
  std::pair<uint64_t, uint64_t> settled_{UINT64_MAX, 0};  // changes and epoch at which nothing was to be moved
  Work most_work_ = 0;                                    // 0 = does not count
  int64_t rounds_ = 0;                                    // so far
  size_t arrived_ = 0;
  int64_t decide_at_us_ = kNoEvent;
};

// ---- Checks what a simulation is asked, and runs it.

absl::Status CheckOptions(const SimOptions& options, const Placer& placer, size_t profiles) {
  const std::pair<const char*, int64_t> times[] = {
      {"horizon_us", options.horizon_us}, {"round_us", options.round_us},
      {"restart_us", options.restart_us}, {"checkpoint_us", options.checkpoint_us},
      {"latency_us", options.latency_us}, {"rebalance_us", options.rebalance_us},
      {"observe_us", options.observe_us}, {"profiling_us", options.profiling_us}};
  for (const auto& [name, value] : times) {
    if (value >= 0 && value <= kMaxTraceTimeUs) continue;
    return InvalidArgument("simulation: %s: expected 0 to %d, found %d", name, kMaxTraceTimeUs, value);
  }
  if (options.weights == SimWeights::kShortest && !options.know_run_times)
    return InvalidArgument("simulation: weights: expected others without know_run_times, found the shortest first");
  if (options.rebalance_us > 0 && RoundPolicyOf(placer) != nullptr) {
    return InvalidArgument("simulation: rebalance_us: expected a policy that decides job by job, found %s",
                           std::string(placer.policy().name()));
  }
  if (options.sensitivities != nullptr && options.sensitivities->size() < profiles) {
    return InvalidArgument("simulation: sensitivities: expected one entry for each of %d profiles, found %d", profiles,
                           options.sensitivities->size());
  }
  if (options.measured != nullptr && options.measured->size() < profiles) {
    return InvalidArgument("simulation: measured: expected one entry for each of %d profiles, found %d", profiles,
                           options.measured->size());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SimResult> Simulate(const Trace& trace, std::span<const ProfileDemands> beliefs, const Truth& truth,
                                   Cluster& cluster, Queue& queue, Placer& placer, const SimOptions& options,
                                   const SimObserver& observer) {
  HORUS_RETURN_IF_ERROR(ValidateTrace(trace));
  HORUS_RETURN_IF_ERROR(CheckOptions(options, placer, trace.profiles.size()));
  if (cluster.job_count() > 0 || queue.size() > 0) {
    return InvalidArgument("simulation: expected a cluster and a queue without jobs, found %d and %d",
                           cluster.job_count(), queue.size());
  }
  for (const NodeId node : cluster.NodeIds()) {
    const absl::StatusOr<NodeInfo> info = cluster.Node(node);
    for (const DeviceSpec& device : info->spec.devices) {
      if (device.mode != SharingMode::kTimeSliceOrMps) continue;
      return Unimplemented("simulation: node %d: expected devices of one sharing mode, found %s", node,
                           std::string(SharingModeName(device.mode)));
    }
  }
  return SimRun(trace, beliefs, truth, cluster, queue, placer, options, observer).Go();
}

}  // namespace horus
