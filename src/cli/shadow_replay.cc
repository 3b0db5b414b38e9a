// SPDX-License-Identifier: Apache-2.0
// Their state is the truth: ours plans on it, and beside it goes on in a state of its own.
#include "cli/shadow_replay.h"

#include <cmath>
#include <optional>
#include <utility>

#include "base/status.h"
#include "cli/inputs.h"

namespace horus::cli {
namespace {

// Positions without their tasks.
std::vector<std::pair<NodeId, int32_t>> PlacesOf(std::span<const Slot> slots) {
  std::vector<std::pair<NodeId, int32_t>> places;
  for (const Slot& slot : slots) places.emplace_back(slot.node, slot.device);
  std::sort(places.begin(), places.end());
  return places;
}

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

}  // namespace

void SlowdownHistogram::Add(double slowdown) {
  const auto at = std::lower_bound(kBounds.begin(), kBounds.end(), slowdown);
  ++counts[static_cast<size_t>(at - kBounds.begin())];
  ++count;
  sum += slowdown;
}

void ShadowSide::Add(const Appraisal& does) {
  ++placed;
  slowdown.Add(static_cast<double>(does.own.estimate));
  work += does.work;
  beyond_bound += does.beyond_bound;
}

double ShadowReplay::Running::Now() const {
  double worst = 1;
  for (const auto& [slot, one] : slowdown) worst = std::max(worst, one);
  return (worst + communication) / (1 + communication);
}

void ShadowReplay::Running::Pass(double time) {
  integral += Now() * (time - last);
  last = time;
}

ShadowReplay::ShadowReplay(Cluster cluster, std::unique_ptr<Placer> placer, std::unique_ptr<Placer> ours,
                           std::unique_ptr<Placer> exclusive, JobFinder jobs, Sink sink)
    : cluster_(std::move(cluster)),
      placer_(std::move(placer)),
      ours_{cluster_, std::move(ours)},
      exclusive_{cluster_, std::move(exclusive)},
      appraiser_(placer_->appraiser()),
      jobs_(std::move(jobs)),
      sink_(std::move(sink)) {
  for (const NodeRow& node : cluster_.rows().nodes) {
    if (node.spec != nullptr && !node.spec->name.empty()) nodes_.emplace(node.spec->name, node.spec->id);
  }
}

absl::StatusOr<Slots> ShadowReplay::SlotsOf(const DecisionLog& log, const LogEntry& entry, const JobSpec& job) const {
  Slots slots;
  for (size_t i = 0; i < entry.nodes.size(); ++i) {
    const std::string& name = entry.nodes[i];
    const auto known = nodes_.find(name);
    const std::optional<NodeId> node = known == nodes_.end() ? ParseNumber<NodeId>(name) : known->second;
    if (!node || !cluster_.HasNode(*node)) {
      return log.Wrong(
          entry, "node",
          "expected a name or id of a node of the cluster, found " + Quoted(name) + NearestKey(name, nodes_));
    }
    if (IsCpuOnly(job)) slots.push_back({*node, kNoDevice, 0});
    for (const int32_t device : entry.devices[i]) slots.push_back({*node, device, 0});
  }
  const auto wanted = static_cast<size_t>(SlotCount(job));
  if (slots.size() != wanted) {
    return log.Wrong(
        entry, "devices",
        "expected " + std::to_string(wanted) + " GPUs, as the job has, found " + std::to_string(slots.size()));
  }
  for (size_t i = 0; i < slots.size(); ++i) slots[i].task = static_cast<int32_t>(i) / SlotsPerTask(job);
  return slots;
}

ShadowReplay::Running ShadowReplay::Follow(const JobSpec& job, std::span<const Slot> slots, const LogEntry& entry,
                                           double communication) const {
  Running running{.since = entry.time_s, .last = entry.time_s, .communication = communication};
  for (const Slot& slot : slots) running.slowdown.emplace_back(slot, 1.0);
  running.bound = job.slowdown_bound > 0 ? static_cast<double>(job.slowdown_bound) : placer_->slowdown_bound();
  if (slots.front().device != kNoDevice) {
    const auto device = cluster_.Device(slots.front().node, slots.front().device);
    const Demand* demand = device.ok() ? FindDemand(job, device->spec.type) : nullptr;
    if (demand != nullptr)
      running.alone_ms = static_cast<double>(demand->step_time_us.estimate) / 1000 * (1 + communication);
  }
  return running;
}

// The predicted slowdowns of all who are on those devices, from now on.
absl::Status ShadowReplay::Refresh(std::span<const Slot> slots) {
  for (const Slot& slot : slots) {
    if (slot.device == kNoDevice) continue;
    HORUS_ASSIGN_OR_RETURN(const DeviceSlowdowns now, appraiser_.Now(cluster_, slot.node, slot.device));
    for (size_t i = 0; i < now.jobs.size(); ++i) {
      const auto at = running_.find(now.jobs[i]);
      if (at == running_.end()) continue;  // it ran before the log began
      at->second.Pass(time_s_);
      for (auto& [where, slowdown] : at->second.slowdown) {
        if (where.node == slot.node && where.device == slot.device)
          slowdown = static_cast<double>(now.slowdowns[i].estimate);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status ShadowReplay::Observe(const DecisionLog& log, const LogEntry& entry, Running& running) const {
  if (entry.observed_step_ms > 0 && running.alone_ms == 0) {
    return log.Wrong(entry, "observed_step_ms",
                     "expected nothing, because the job's step time alone is not known, found " +
                         std::to_string(entry.observed_step_ms));
  }
  if (entry.observed_step_ms > 0) running.observed = entry.observed_step_ms / running.alone_ms;
  if (entry.observed_slowdown > 0) running.observed = entry.observed_slowdown;
  return absl::OkStatus();
}

absl::StatusOr<ShadowChoice> ShadowReplay::ChoiceOf(Placer& placer, const Cluster& cluster, const JobSpec& job) const {
  HORUS_ASSIGN_OR_RETURN(const Plan plan, placer.MakePlan(cluster, {&job, 1}));
  const Decision& decision = plan.decisions.front();
  ShadowChoice choice{decision.verdict, decision.reason, decision.slots, {}, nullptr};
  if (choice.verdict == Verdict::kPlace) {
    choice.job = plan.actions.front().job;
    HORUS_ASSIGN_OR_RETURN(choice.does, appraiser_.Of(cluster, *choice.job, choice.slots));
  }
  return choice;
}

absl::StatusOr<double> ShadowReplay::TakeTurn(Turn& turn, const JobSpec& job, ShadowSide& side) const {
  HORUS_ASSIGN_OR_RETURN(const ShadowChoice choice, ChoiceOf(*turn.placer, turn.cluster, job));
  if (choice.verdict != Verdict::kPlace) return 0.0;
  HORUS_RETURN_IF_ERROR(turn.cluster.Adopt(*choice.job, choice.slots).status());
  side.Add(choice.does);
  return choice.does.work;
}

std::vector<JobId> ShadowReplay::TenantsOn(std::span<const Slot> slots) const {
  std::vector<JobId> jobs;
  const ClusterRows& rows = cluster_.rows();
  for (const Slot& slot : slots) {
    if (slot.device == kNoDevice) continue;
    const NodeRow& node = rows.nodes[*rows.node_of.Find(slot.node)];
    for (const uint32_t row : rows.residents[node.first_device + static_cast<uint32_t>(slot.device)]) {
      if (std::find(jobs.begin(), jobs.end(), rows.jobs[row].id) == jobs.end()) jobs.push_back(rows.jobs[row].id);
    }
  }
  return jobs;
}

void ShadowReplay::Count(const ShadowRecord& record) {
  ++totals_.decisions;
  ++totals_.broken[static_cast<size_t>(record.theirs.does.reason)];
  totals_.theirs.Add(record.theirs.does);
  if (record.ours.verdict != Verdict::kPlace) return;
  const double regret = record.regret();
  ++totals_.compared;
  totals_.regret += regret;
  uint64_t& kind = record.same                    ? totals_.same
                   : record.IsWorse()             ? totals_.worse
                   : regret < -record.tolerance() ? totals_.better
                                                  : totals_.equally_good;
  ++kind;
  if (!record.IsWorse()) return;
  std::vector<ShadowRecord>& most = totals_.most_costly;
  const auto at = std::upper_bound(most.begin(), most.end(), regret,
                                   [](double cost, const ShadowRecord& other) { return cost > other.regret(); });
  most.insert(at, record);
  if (most.size() > kMostCostly) most.pop_back();
}

absl::Status ShadowReplay::Place(const DecisionLog& log, const LogEntry& entry, const JobSpec& job) {
  if (cluster_.HasJob(job.id))
    return log.Wrong(entry, "job",
                     "expected a job that does not run yet (after horus import: cluster.yaml, not now.yaml), found " +
                         Quoted(entry.job));
  if (!job.alternatives.empty())
    return log.Wrong(entry, "job", "expected a job that runs in one way, found alternatives for " + Quoted(entry.job));
  ShadowRecord record{.line = entry.line, .time_s = entry.time_s, .job = job.id};
  Slots& slots = record.theirs.slots;
  HORUS_ASSIGN_OR_RETURN(slots, SlotsOf(log, entry, job));
  const absl::StatusOr<Appraisal> their = appraiser_.Of(cluster_, job, slots);
  if (!their.ok()) return log.Wrong(entry, "devices", MessageOf(their.status()));
  record.theirs.does = *their;
  record.beside = TenantsOn(slots);
  HORUS_ASSIGN_OR_RETURN(record.ours, ChoiceOf(*placer_, cluster_, job));
  record.same = PlacesOf(slots) == PlacesOf(record.ours.slots);
  Running running = Follow(job, slots, entry, their->communication);
  HORUS_RETURN_IF_ERROR(Observe(log, entry, running));
  if (absl::Status status = cluster_.Adopt(job, slots).status(); !status.ok())
    return log.Wrong(entry, "devices", MessageOf(status));
  time_s_ = entry.time_s;
  HORUS_ASSIGN_OR_RETURN(running.our_work, TakeTurn(ours_, job, totals_.ours));
  HORUS_ASSIGN_OR_RETURN(running.exclusive_work, TakeTurn(exclusive_, job, totals_.exclusive));
  running.decision = record;
  totals_.of_requests_alone += IsRequestAlone(job) ? 1 : 0;
  running_[job.id] = std::move(running);
  HORUS_RETURN_IF_ERROR(Refresh(slots));
  Count(record);
  return sink_(record);
}

// When the job leaves: what the choice of its place cost is known then.
void ShadowReplay::CountHours(Running& running) {
  constexpr double kSecondsAnHour = 3600;
  ShadowRecord& decision = running.decision;
  decision.hours = (time_s_ - decision.time_s) / kSecondsAnHour;
  totals_.theirs.gpu_hours += decision.theirs.does.work * decision.hours;
  totals_.ours.gpu_hours += running.our_work * decision.hours;
  totals_.exclusive.gpu_hours += running.exclusive_work * decision.hours;
  if (decision.ours.verdict == Verdict::kPlace) totals_.regret_gpu_hours += decision.regret() * decision.hours;
  for (ShadowRecord& one : totals_.most_costly) {
    if (one.line == decision.line) one.hours = decision.hours;
  }
  totals_.hours = (time_s_ - began_s_) / kSecondsAnHour;
}

absl::Status ShadowReplay::Compare(uint64_t line, JobId job, const Running& running) {
  if (running.observed == 0) return absl::OkStatus();
  const double passed = running.last - running.since;
  ShadowRecord record{.line = line, .time_s = time_s_, .job = job, .is_decision = false};
  record.predicted = passed > 0 ? running.integral / passed : running.Now();
  record.observed = running.observed;
  ++totals_.observed;
  totals_.observations.Add(record.observed);
  const double error = (record.predicted - record.observed) / record.observed;
  totals_.error_sum += std::abs(error);
  totals_.bias_sum += error;
  totals_.observed_beyond_bound += IsBeyond(record.observed, running.bound) ? 1 : 0;
  return sink_(record);
}

absl::Status ShadowReplay::Release(const DecisionLog& log, const LogEntry& entry, const JobSpec& job) {
  const absl::StatusOr<JobInfo> info = cluster_.Job(job.id);
  if (!info.ok()) return log.Wrong(entry, "job", "expected a job that runs, found " + Quoted(entry.job));
  const auto at = running_.find(job.id);
  if (at != running_.end()) HORUS_RETURN_IF_ERROR(Observe(log, entry, at->second));
  time_s_ = entry.time_s;
  if (at != running_.end()) {
    at->second.Pass(time_s_);
    CountHours(at->second);
    HORUS_RETURN_IF_ERROR(Compare(entry.line, job.id, at->second));
    running_.erase(at);
  }
  for (Cluster* cluster : {&cluster_, &ours_.cluster, &exclusive_.cluster}) {
    if (cluster->HasJob(job.id)) HORUS_RETURN_IF_ERROR(cluster->Release(job.id));
  }
  ++totals_.releases;
  return Refresh(info->slots);
}

absl::Status ShadowReplay::Take(const DecisionLog& log, const LogEntry& entry) {
  if (entry.time_s < time_s_) {
    return log.Wrong(entry, "time_s",
                     "expected no less than the line before's " + std::to_string(time_s_) + ", found " +
                         std::to_string(entry.time_s));
  }
  if (totals_.entries == 0) began_s_ = entry.time_s;
  const absl::StatusOr<const JobSpec*> job = jobs_(entry.job);
  if (!job.ok()) return log.Wrong(entry, "job", MessageOf(job.status()));
  HORUS_RETURN_IF_ERROR(entry.event == LogEvent::kPlace ? Place(log, entry, **job) : Release(log, entry, **job));
  ++totals_.entries;
  return absl::OkStatus();
}

absl::Status ShadowReplay::Finish() {
  for (const JobId job : cluster_.JobIds()) {
    const auto at = running_.find(job);
    if (at == running_.end()) continue;
    at->second.Pass(time_s_);
    CountHours(at->second);
    HORUS_RETURN_IF_ERROR(Compare(0, job, at->second));
  }
  return absl::OkStatus();
}

}  // namespace horus::cli
