// SPDX-License-Identifier: Apache-2.0
// Sets of victims: on a device every one, on a node the combinations of them, by branch and bound.
#include "place/modes/victims.h"

#include <algorithm>
#include <array>
#include <queue>
#include <utility>

#include "base/status.h"
#include "place/admit.h"
#include "place/fit.h"
#include "place/search/search_nodes.h"

namespace horus {
namespace {

constexpr size_t kMostOnDevice = 8;      // residents of a device whose every set is tried; the cheapest of more
constexpr size_t kMostLeaves = 4096;     // combinations of a node's devices
constexpr size_t kMostExtensions = 512;  // sets of further victims for the host's sake

std::vector<JobId> Union(std::span<const JobId> a, std::span<const JobId> b) {
  std::vector<JobId> both;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

}  // namespace

absl::Status Victims::Measure(WorkMeter& meter) {
  const Ledger& ledger = engine_.ledger();
  for (const JobRow& row : cluster_.rows().jobs) {
    if (!row.live()) continue;
    const JobSpec& request = cluster_.rows().RequestOf(row);
    if (request.priority >= priority_) continue;
    double loss = 0;
    if (IsCpuOnly(request)) {
      loss = WorkWeight(request) * request.tasks;  // undisturbed
    } else {
      HORUS_RETURN_IF_ERROR(meter.OfJob(ledger, row.id, loss));
    }
    losses_.Insert(row.id, loss);
  }
  return absl::OkStatus();
}

double Victims::LossOf(std::span<const JobId> jobs) const {
  double loss = 0;
  for (const JobId job : jobs) loss += losses_.at(job);
  return loss;
}

void Victims::Remove(std::span<const JobId> jobs) {
  for (const JobId job : jobs) engine_.ledger().Remove(job, RequestOf(job), RowOf(job).slots);
}

void Victims::PutBack(JobId job) { engine_.ledger().Place(job, RequestOf(job), RowOf(job).slots); }

// Every set of the device's residents that lets the task in, and of which no part does.
absl::Status Victims::DeviceOptions(const JobView& task, uint32_t node_row, int32_t device, double bound, Device& out,
                                    bool& exact) {
  Ledger& ledger = engine_.ledger();
  const uint32_t row = ledger.node(node_row).first_device + static_cast<uint32_t>(device);
  out.group = GroupOf(ledger.state(row));
  out.options.clear();
  std::vector<std::pair<double, JobId>> here;
  for (const LedgerResident& resident : ledger.residents(row)) {
    if (const double* loss = losses_.Find(resident.job)) here.emplace_back(*loss, resident.job);
  }
  std::sort(here.begin(), here.end());
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
  std::sort(sets.begin(), sets.end());
  std::vector<uint32_t> enough;
  engine_.scorer().SetJob(task);
  for (const auto& [loss, set] : sets) {
    const uint32_t wanted = set;
    if (std::any_of(enough.begin(), enough.end(), [&](uint32_t one) { return (one & wanted) == one; })) continue;
    const size_t mark = ledger.Mark();
    Option option{.jobs = {}, .loss = loss};
    for (size_t i = 0; i < here.size(); ++i) {
      if ((set >> i & 1u) == 0) continue;
      option.jobs.push_back(here[i].second);
      const JobId job = here[i].second;
      ledger.Remove(job, RequestOf(job), std::array{PlacedSlot{node_row, device, 0, 0}});
    }
    ++checks_;
    DeviceVerdict verdict;
    const absl::Status status = JudgeDevice(engine_.scorer(), ledger, task, row, /*memo=*/false, verdict);
    ledger.UndoTo(mark);
    HORUS_RETURN_IF_ERROR(status);
    if (verdict.reason != Reason::kNone) continue;
    enough.push_back(set);
    std::sort(option.jobs.begin(), option.jobs.end());
    out.options.push_back(std::move(option));
  }
  return absl::OkStatus();
}

// All ways to give the task its devices for less than the bound, as `leaves_`.
void Victims::Combine(const JobView& task, double bound, bool& exact) {
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
  std::stable_sort(leaves_.begin(), leaves_.end(), [](const Option& a, const Option& b) { return a.loss < b.loss; });
  leaves_.erase(
      std::unique(leaves_.begin(), leaves_.end(), [](const Option& a, const Option& b) { return a.jobs == b.jobs; }),
      leaves_.end());
}

absl::Status Victims::Check(const JobView& task, uint32_t node_row, uint32_t group, std::span<const JobId> victims,
                            bool& fits) {
  Ledger& ledger = engine_.ledger();
  const size_t mark = ledger.Mark();
  Remove(victims);
  ++checks_;
  one_node_.assign(1, node_row);
  const absl::Status status = engine_.Find(task, &one_node_, found_);
  fits = status.ok() && !found_.best.slots.empty();
  if (fits && group != kAnyGroup && found_.best.slots[0].device != kNoDevice) {
    fits = GroupOf(ledger.state(ledger.device_of(found_.best.slots[0]))) == group;
  }
  ledger.UndoTo(mark);
  return status;
}

std::vector<JobId> Victims::OnNode(uint32_t node_row) const {
  const Ledger& ledger = engine_.ledger();
  const LedgerNode& node = ledger.node(node_row);
  std::vector<JobId> jobs;
  for (uint32_t i = 0; i < node.spec->devices.size(); ++i) {
    for (const LedgerResident& one : ledger.residents(node.first_device + i)) jobs.push_back(one.job);
  }
  // Tasks without GPUs are not in the ledger's residents; the cluster knows them.
  for (const HostResident& one : cluster_.rows().nodes[node_row].host_residents) {
    jobs.push_back(cluster_.rows().jobs[one.job_row].id);
  }
  std::sort(jobs.begin(), jobs.end());
  jobs.erase(std::unique(jobs.begin(), jobs.end()), jobs.end());
  std::erase_if(jobs, [&](JobId job) {
    return !losses_.contains(job) || std::find(gone_.begin(), gone_.end(), job) != gone_.end();
  });
  return jobs;
}

// The devices would do, the host would not: further victims, by sets of ascending loss.
absl::Status Victims::Extend(const JobView& task, uint32_t node_row, uint32_t group, const Option& base, VictimSet& set,
                             bool& found) {
  std::vector<std::pair<double, JobId>> others;
  for (const JobId job : OnNode(node_row)) {
    if (!std::binary_search(base.jobs.begin(), base.jobs.end(), job)) others.emplace_back(losses_.at(job), job);
  }
  std::sort(others.begin(), others.end());
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
    std::sort(more.begin(), more.end());
    const std::vector<JobId> all = Union(base.jobs, more);
    bool fits = false;
    HORUS_RETURN_IF_ERROR(Check(task, node_row, group, all, fits));
    if (fits) {
      set.jobs = all;
      set.loss = LossOf(all);
      found = true;
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

absl::Status Victims::Cheapest(const JobView& task, uint32_t node_row, uint32_t group, double bound, VictimSet& set,
                               bool& found) {
  HORUS_RETURN_IF_ERROR(engine_.GoOn());
  const LedgerNode& node = engine_.ledger().node(node_row);
  found = false;
  set = {.jobs = {}, .loss = bound, .exact = true};
  if (spent() || FitNode(*task.job, *node.spec, node.state) != Reason::kNone) return absl::OkStatus();
  devices_.clear();
  for (int32_t i = 0; i < static_cast<int32_t>(node.spec->devices.size()) && !IsCpuOnly(*task.job); ++i) {
    Device device;
    HORUS_RETURN_IF_ERROR(DeviceOptions(task, node_row, i, bound, device, set.exact));
    if (!device.options.empty() && (group == kAnyGroup || device.group == group)) devices_.push_back(std::move(device));
  }
  Combine(task, bound, set.exact);
  const std::vector<Option> leaves = std::move(leaves_);
  for (const Option& leaf : leaves) {
    if (leaf.loss >= set.loss) break;
    if (spent()) {
      set.exact = false;
      break;
    }
    bool fits = false;
    HORUS_RETURN_IF_ERROR(Check(task, node_row, group, leaf.jobs, fits));
    if (fits) {
      set.jobs = leaf.jobs;
      set.loss = leaf.loss;
      found = true;
      break;
    }
    HORUS_RETURN_IF_ERROR(Extend(task, node_row, group, leaf, set, found));
  }
  return absl::OkStatus();
}

}  // namespace horus
