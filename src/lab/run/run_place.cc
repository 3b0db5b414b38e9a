// SPDX-License-Identifier: Apache-2.0
// Jobs come to places, begin to work there, and leave them.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "lab/run/run.h"
#include "lab/run/waiting.h"
#include "lab/synergy/plan_round.h"
#include "place/modes/batch.h"

namespace horus {
namespace {

// Jobs of the queue in one plan at most; chosen. Prices need most of those who wait.
constexpr size_t kMostBatch = 2048;
// How much older a job seems whose patience is over: more than ranks differ by.
constexpr int64_t kPatientUs = 1'000'000'000;

}  // namespace

// Counts the job's places as taken, or with `sign` -1 as given back.
void SimRun::Occupy(uint32_t job, int32_t sign) {
  ++changes_;
  const auto host = host_nodes_.find(job);
  meter_.Take(trace_.jobs[job], lives_[job].devices,
              host == host_nodes_.end() ? std::span<const uint32_t>() : host->second, sign);
}

Slots SimRun::SlotsOf(uint32_t job) const {
  Slots slots;
  if (observer_ == nullptr) return slots;
  const std::span<const uint32_t> devices = lives_[job].devices;
  for (size_t i = 0; i < devices.size(); ++i) {
    const uint32_t node = map_.node_of(devices[i]);
    const auto task = static_cast<int32_t>(i) / trace_.jobs[job].gpus_per_task;
    slots.push_back({map_.id(node), static_cast<int32_t>(devices[i] - map_.first_device(node)), task});
  }
  if (const auto at = host_nodes_.find(job); at != host_nodes_.end()) {
    for (const uint32_t node : at->second)
      slots.push_back({map_.id(node), kNoDevice, static_cast<int32_t>(slots.size())});
  }
  return slots;
}

// Where the job shares a device: what was believed of each tenant there, and what is so.
void SimRun::CompareWithTruth(std::span<const TenantEffect> effects) {
  for (size_t begin = 0; begin < effects.size();) {
    size_t end = begin + 1;  // of the same device
    while (end < effects.size() && effects[end].node == effects[begin].node &&
           effects[end].device == effects[begin].device) {
      ++end;
    }
    const uint32_t device =
        map_.first_device(map_.at(effects[begin].node)) + static_cast<uint32_t>(effects[begin].device);
    const size_t tenants = execution_.TenantsOf(device).size();
    for (size_t i = begin; tenants > 1 && tenants == end - begin && i < end; ++i) {
      const double share = execution_.ShareOn(static_cast<uint32_t>(effects[i].job), device);
      if (share == 0) continue;
      result_.belief_error += std::abs(std::log(static_cast<double>(effects[i].after.estimate) * share));
      ++result_.beliefs;
    }
    begin = end;
  }
}

// Books nothing: the cluster has the job on those slots already.
void SimRun::Hold(uint32_t job, std::span<const Slot> slots) {
  for (const Slot& slot : slots) {
    const uint32_t node = map_.at(slot.node);
    if (slot.device == kNoDevice) {
      host_nodes_[job].push_back(node);
    } else {
      lives_[job].devices.push_back(map_.first_device(node) + static_cast<uint32_t>(slot.device));
    }
  }
  Occupy(job, 1);
  result_.jobs[job].end = SimEnd::kRunning;
}

void SimRun::Vacate(uint32_t job) {
  Occupy(job, -1);
  lives_[job].devices.clear();
  host_nodes_.erase(job);
  predicted_.erase(job);
}

// What the job's owner holds.
absl::Status SimRun::Charge(uint32_t job, int32_t sign) {
  if (!charges_owners_) return absl::OkStatus();
  const QueueResources asked = ResourcesOf(QueuedOf(job));
  QueueResources& held = owners_[trace_.jobs[job].owner];
  held.gpu_milli += sign * asked.gpu_milli;
  held.cpu_milli += sign * asked.cpu_milli;
  held.mem_mib += sign * asked.mem_mib;
  return queue_.SetOwnerUsage(trace_.jobs[job].owner, held);
}

// The job leaves its places, whether it worked there yet or not.
absl::Status SimRun::LetGo(uint32_t job) {
  Vacate(job);
  HORUS_RETURN_IF_ERROR(cluster_.Release(job));
  return Charge(job, -1);
}

// The job holds its places and begins to work there at once, or after what that takes.
absl::Status SimRun::Launch(uint32_t job) {
  const int64_t delay_us = options_.latency_us + (lives_[job].began ? options_.restart_us : 0);
  lives_[job].phase = Phase::kLaunching;
  if (delay_us == 0) return Start(job);
  launches_.Set(now_us_ + delay_us, job);
  return absl::OkStatus();
}

absl::Status SimRun::LaunchDue() {
  while (const std::optional<uint32_t> job = launches_.TakeDue(now_us_)) {
    HORUS_RETURN_IF_ERROR(Start(*job));
    refused_.Clear();  // others were refused while it held the places, which it may not have got
  }
  return absl::OkStatus();
}

absl::Status SimRun::Start(uint32_t job) {
  Life& life = lives_[job];
  GpuTypeId type;
  if (const Memory memory = MemoryFor(job, type); memory != Memory::kFits) {
    if (memory == Memory::kShortAlone) too_small_[job].push_back(type);
    return EndStart(job, SimEventKind::kOutOfMemory);
  }
  bool runs = true;
  HORUS_RETURN_IF_ERROR(execution_.Start(
      job,
      {.profile = trace_.jobs[job].profile, .devices = life.devices, .left = life.left, .host_speed = life.host_speed},
      runs));
  SimJob& record = result_.jobs[job];
  if (runs) {
    life.phase = Phase::kRunning;
    if (life.began) ++record.restarts;
    life.began = true;
    if (record.start_us < 0) record.start_us = now_us_;
    HORUS_RETURN_IF_ERROR(ShareHosts(life.devices));
    for (const uint32_t device : life.devices) device_observer_.Restart(device);
    if (!life.devices.empty()) profiling_.Begin(job, map_.node_of(life.devices[0]), now_us_);
    if (const auto at = predicted_.find(job); at != predicted_.end()) {
      CompareWithTruth(at->second);
      predicted_.erase(at);
    }
    return Tell(SimEventKind::kStart, job, SlotsOf(job));
  }
  return EndStart(job, SimEventKind::kFail);
}

// Whoever comes last asks the device for what is no longer there.
SimRun::Memory SimRun::MemoryFor(uint32_t job, GpuTypeId& type) const {
  const uint32_t profile = trace_.jobs[job].profile;
  for (const uint32_t device : lives_[job].devices) {
    const DeviceSpec& spec = map_.device(device);
    type = spec.type;
    const int64_t own = truth_.MemMib(profile, type);
    if (own == 0) continue;
    if (own > spec.mem_mib) return Memory::kShortAlone;
    int64_t all = own;
    for (const uint32_t tenant : execution_.TenantsOf(device)) {
      all += truth_.MemMib(trace_.jobs[tenant].profile, type);
    }
    if (all > spec.mem_mib) return Memory::kShort;
  }
  return Memory::kFits;
}

// The job could not begin to work where it is: it waits again, to be alone, or there is nowhere else for it.
absl::Status SimRun::EndStart(uint32_t job, SimEventKind why) {
  SimJob& record = result_.jobs[job];
  ++(why == SimEventKind::kFail ? record.failures : record.out_of_memory);
  bool learned = false;
  if (why == SimEventKind::kFail && record.failures < kMostFailures) {
    HORUS_ASSIGN_OR_RETURN(learned, LearnFailure(job));
  }
  lives_[job].alone = !learned;
  HORUS_RETURN_IF_ERROR(Tell(why, job, SlotsOf(job)));
  refused_.Clear();  // while it held the places
  HORUS_RETURN_IF_ERROR(LetGo(job));
  if (trace_.jobs[job].gpus_per_task == 0 || !SpecOf(job).demands.empty()) return Enqueue(job);
  return Reject(job);
}

absl::Status SimRun::Reject(uint32_t job) {
  lives_[job].phase = Phase::kGone;
  result_.jobs[job].end = SimEnd::kRejected;
  return Tell(SimEventKind::kReject, job);
}

// Ends a run, or a launch.
absl::Status SimRun::StopWork(uint32_t job, RunEnd& end) {
  Life& life = lives_[job];
  end = {.left = life.left, .left_on_disk = life.left};
  if (life.phase == Phase::kLaunching) {
    launches_.Cancel(job);
    return absl::OkStatus();
  }
  HORUS_RETURN_IF_ERROR(execution_.Stop(job, end));
  HORUS_RETURN_IF_ERROR(ShareHosts(life.devices));
  for (const uint32_t device : life.devices) device_observer_.Restart(device);
  profiling_.Stop(job);
  life.left = end.left;
  SimJob& record = result_.jobs[job];
  record.sums.done += end.sums.done;
  record.sums.undisturbed += end.sums.undisturbed;
  record.sums.backlogged += end.sums.backlogged;
  record.ran_us += end.ran_us;
  return absl::OkStatus();
}

absl::StatusOr<Plan> SimRun::AskPlacer(const JobSpec& spec) {
  const auto begin = std::chrono::steady_clock::now();
  HORUS_ASSIGN_OR_RETURN(Plan plan, placer_->MakePlan(cluster_, {&spec, 1}));
  const std::chrono::duration<float, std::micro> took = std::chrono::steady_clock::now() - begin;
  result_.took_us.push_back(took.count());
  ++result_.decisions;
  return plan;
}

// Carries out what the placer decided of a job that waits.
absl::Status SimRun::Settle(uint32_t job, Plan& plan, bool& left_queue) {
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

// A job that waits holds the places of the action from now on.
absl::Status SimRun::Admit(const Action& action) {
  const auto job = static_cast<uint32_t>(action.job->id);
  HORUS_RETURN_IF_ERROR(queue_.Serve(job, now_us_));
  Hold(job, action.slots);
  HORUS_RETURN_IF_ERROR(SetHost(*action.job));
  HORUS_RETURN_IF_ERROR(Charge(job, 1));
  return Launch(job);
}

// `behind`: who may be preempted for the job, the last first to go; those who were are taken out.
absl::Status SimRun::Try(uint32_t job, std::vector<uint32_t>& behind, bool& left_queue) {
  const JobSpec spec = SpecOf(job);
  HORUS_ASSIGN_OR_RETURN(Plan plan, AskPlacer(spec));
  if (plan.decisions.front().verdict == Verdict::kDefer && !behind.empty()) {
    HORUS_ASSIGN_OR_RETURN(const std::vector<uint32_t> victims, VictimsFor(spec, behind));
    for (const uint32_t victim : victims) {
      HORUS_RETURN_IF_ERROR(Preempt(victim));
      behind.erase(std::ranges::find(behind, victim));
    }
    if (!victims.empty()) {
      HORUS_ASSIGN_OR_RETURN(plan, placer_->MakePlan(cluster_, {&spec, 1}));
    }
  }
  return Settle(job, plan, left_queue);
}

// A job that was refused is asked again when another has left: those that come take room, they make none. Where run
// times are known, those behind the first gang that is refused go if it starts no later for that (EASY backfill).
absl::Status SimRun::Decide() {
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

// Jobs that wait although they could share.

double SimRun::LeftUs(uint32_t job) const {
  const Work left = lives_[job].phase == Phase::kRunning ? execution_.LeftOf(job) : lives_[job].left;
  return static_cast<double>(left) / static_cast<double>(kFullRate);
}

// When each GPU falls idle, infinite where the job cannot run: as if sharing neither gained nor lost, for how fast
// tenants really are nobody is told.
std::vector<double> SimRun::IdleTimes(const JobSpec& spec) const {
  std::vector<double> times(map_.devices(), 0);
  for (uint32_t device = 0; device < map_.devices(); ++device) {
    const bool runs = std::ranges::any_of(
        spec.demands, [&](const TypeDemand& one) { return !one.type.valid() || one.type == map_.device(device).type; });
    if (!runs) times[device] = std::numeric_limits<double>::infinity();
    for (const uint32_t tenant : execution_.TenantsOf(device)) times[device] += LeftUs(tenant);
  }
  return times;
}

// When a gang finds as many idle GPUs as it needs, those of each task on one node.
double SimRun::StartOf(const TraceJob& gang, std::span<const double> idle) const {
  const auto per_task = static_cast<size_t>(gang.gpus_per_task);
  std::vector<double> tasks, of_node;
  for (size_t first = 0; first < idle.size();) {
    const size_t count = map_.devices_on(map_.node_of(static_cast<uint32_t>(first)));
    of_node.assign(idle.begin() + static_cast<ptrdiff_t>(first), idle.begin() + static_cast<ptrdiff_t>(first + count));
    std::sort(of_node.begin(), of_node.end());
    for (size_t last = per_task; last <= count; last += per_task) tasks.push_back(of_node[last - 1]);
    first += count;
  }
  const auto needed = static_cast<size_t>(gang.tasks);
  if (tasks.size() < needed) return std::numeric_limits<double>::infinity();
  std::sort(tasks.begin(), tasks.end());
  return tasks[needed - 1];
}

SimRun::Promise SimRun::PromiseTo(uint32_t gang) const {
  Promise promise{.gang = gang, .idle = IdleTimes(SpecOf(gang))};
  promise.start_us = StartOf(trace_.jobs[gang], promise.idle);
  return promise;
}

// Whether the job, where the decision puts it, would still be in the gang's way when that could start.
bool SimRun::Delays(const JobSpec& spec, const Decision& decision, const Promise& promise) const {
  if (!std::isfinite(promise.start_us)) return false;
  std::vector<double> idle = promise.idle;
  for (const Slot& slot : decision.slots) {
    if (slot.device == kNoDevice) continue;
    idle[map_.first_device(map_.at(slot.node)) + static_cast<uint32_t>(slot.device)] +=
        LeftUs(static_cast<uint32_t>(spec.id));
  }
  return StartOf(trace_.jobs[promise.gang], idle) > promise.start_us;
}

int64_t SimRun::GpusOfThose(std::span<const uint64_t> jobs) const {
  int64_t gpus = 0;
  for (const uint64_t job : jobs) gpus += GpusOf(trace_.jobs[job]);
  return gpus;
}

// Of the job at `rank` of the window.
bool SimRun::HadBetterWait(const JobSpec& spec, const Decision& decision, std::span<const uint64_t> window,
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
  if (options_.rebalance_us > 0) {  // beyond the window one GPU each
    outlook.apart_us = of(GpusOfThose(window) + static_cast<int64_t>(queue_.size() - window.size()));
  }
  return WaitingIsBetter({.left_us = LeftUs(static_cast<uint32_t>(spec.id)),
                          .slowdown = static_cast<double>(decision.own.estimate),
                          .neighbours = neighbours},
                         outlook);
}

// Jobs that the placer cannot tell apart: where one would go, so would the others.
SimRun::Kind SimRun::KindOf(uint32_t job) const {
  const TraceJob& one = trace_.jobs[job];
  const auto too_small = too_small_.find(job);
  return {one.profile,
          one.gpu_types,
          one.tasks,
          one.gpus_per_task,
          one.gpu_milli,
          one.kind,
          one.priority,
          one.cpu_milli,
          one.mem_mib,
          lives_[job].alone,
          WeightOf(one, weights_),
          profiling_.IsProfiled(job),
          too_small == too_small_.end() ? 0 : too_small->second.size()};
}

// All that may be tried now in one plan of the queue, as schedulers ask for it.
absl::Status SimRun::DecideBatch() {
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
    const auto begin = std::chrono::steady_clock::now();
    HORUS_ASSIGN_OR_RETURN(const Plan plan, PlanBatch(*placer_, cluster_, specs,
                                                      {.now_us = kPatientUs,
                                                       .patience_us = kPatientUs - std::ssize(window),
                                                       .window = static_cast<uint32_t>(look_ahead_),
                                                       .prices = weights_ == SimWeights::kPrices}));
    const std::chrono::duration<float, std::micro> took = std::chrono::steady_clock::now() - begin;
    result_.took_us.push_back(took.count());
    ++result_.decisions;
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

// Policies that decide rounds: whoever may run in one plan, with leases those that run too.

// Who takes part in the round, in the queue's order: of those that wait all that GPUs are left for by their number, up
// to and with as many as are tried when the first does not fit; with leases all that hold whole GPUs too.
absl::StatusOr<std::vector<uint32_t>> SimRun::Contenders() {
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

absl::Status SimRun::DecideRound() {
  // A round that finds all as the last one left it gives what that one gave, but for ranks of those who wait.
  if (queue_.size() == 0 && (!options_.preempt || changes_ == round_changes_)) return absl::OkStatus();
  HORUS_ASSIGN_OR_RETURN(const std::vector<uint32_t> jobs, Contenders());
  std::vector<JobSpec> specs;
  for (const uint32_t job : jobs) specs.push_back(SpecOf(job));
  const auto begin = std::chrono::steady_clock::now();
  HORUS_ASSIGN_OR_RETURN(const Plan plan, MakeRound(*placer_, cluster_, specs));
  const std::chrono::duration<float, std::micro> took = std::chrono::steady_clock::now() - begin;
  result_.took_us.push_back(took.count());
  result_.decisions += jobs.size();
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
absl::Status SimRun::CarryOut(const Plan& plan) {
  for (const Action& action : plan.actions) {
    if (action.kind != ActionKind::kMigrate && action.kind != ActionKind::kPreempt) continue;
    const auto job = static_cast<uint32_t>(action.job->id);
    RunEnd end;
    HORUS_RETURN_IF_ERROR(StopWork(job, end));
    if (action.kind == ActionKind::kMigrate) {
      Vacate(job);
      continue;
    }
    ++result_.jobs[job].preemptions;
    HORUS_RETURN_IF_ERROR(Tell(SimEventKind::kPreempt, job, SlotsOf(job)));
    Vacate(job);
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

}  // namespace horus
