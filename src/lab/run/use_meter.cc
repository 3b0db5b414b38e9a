// SPDX-License-Identifier: Apache-2.0
// Counts devices that are up and held, and lets their time pass.
#include "lab/run/use_meter.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

namespace horus {
namespace {

// ---- Keeps each node's free GPU and fragment, and their sums.

constexpr int64_t kMicroPerMilli = 1000;

}  // namespace

std::shared_ptr<const Workload> WorkloadOf(const Trace& trace, const Catalogue& catalogue) {
  std::vector<std::vector<GpuTypeId>> lists;
  for (const GpuTypeNames& names : trace.type_lists) {
    std::vector<GpuTypeId>& types = lists.emplace_back();
    for (const std::string& name : names) {
      if (const auto type = catalogue.FindKnown(name)) types.push_back(*type);
    }
    std::ranges::sort(types);
  }
  std::map<std::tuple<int64_t, int32_t, int32_t, uint32_t>, int64_t> counts;
  int64_t all = 0;
  for (const TraceJob& job : trace.jobs) {
    if (job.gpu_types != kNotStated && lists[job.gpu_types].empty()) continue;  // no GPU is of use to it
    const int32_t milli = job.gpus_per_task == 0 ? 0 : job.gpu_milli == 0 ? kMilliPerGpu : job.gpu_milli;
    counts[{job.cpu_milli, job.gpus_per_task, milli, job.gpu_types}] += job.tasks;
    all += job.tasks;
  }
  std::vector<TaskClass> tasks;
  for (const auto& [key, count] : counts) {
    const auto& [cpu_milli, gpus, milli, list] = key;
    tasks.push_back({cpu_milli, gpus, milli, list == kNotStated ? std::vector<GpuTypeId>() : lists[list],
                     static_cast<double>(count) / static_cast<double>(all)});
  }
  auto workload = Workload::Create(std::move(tasks));
  return workload.ok() ? *std::move(workload) : nullptr;
}

FragmentMeter::FragmentMeter(const Cluster& cluster, std::shared_ptr<const Workload> workload)
    : workload_(std::move(workload)) {
  if (workload_ == nullptr) return;
  for (const NodeId id : cluster.NodeIds()) {
    const NodeInfo info = *cluster.Node(id);
    nodes_.push_back({.first = static_cast<uint32_t>(types_.size()),
                      .devices = static_cast<uint32_t>(info.spec.devices.size()),
                      .cpu_free_milli = info.spec.cpu_milli,
                      .up = info.state == AdminState::kUp});
    for (const DeviceSpec& device : info.spec.devices) types_.push_back(device.type);
  }
  free_milli_.assign(types_.size(), kMilliPerGpu);
  for (Node& node : nodes_) Refresh(node);
}

void FragmentMeter::Refresh(Node& node) {
  scratch_.clear();
  int64_t free = 0;
  for (uint32_t device = node.first; device < node.first + node.devices; ++device) {
    scratch_.push_back({types_[device], node.up ? std::max(0, free_milli_[device]) : 0});
    free += scratch_.back().free_milli * kMicroPerMilli;
  }
  const double lost = free == 0 ? 0 : workload_->Fragment(node.cpu_free_milli, scratch_);
  const int64_t fragment = std::llround(lost * static_cast<double>(kMicroPerMilli));
  free_ += free - std::exchange(node.free, free);
  fragment_ += fragment - std::exchange(node.fragment, fragment);
}

void FragmentMeter::Take(uint32_t node, std::span<const uint32_t> devices, int32_t gpu_milli, int64_t cpu_milli,
                         int32_t sign) {
  if (workload_ == nullptr) return;
  for (const uint32_t device : devices) free_milli_[device] -= sign * gpu_milli;
  nodes_[node].cpu_free_milli -= sign * cpu_milli;
  Refresh(nodes_[node]);
}

void FragmentMeter::SetUp(uint32_t node, bool up) {
  if (workload_ == nullptr) return;
  nodes_[node].up = up;
  Refresh(nodes_[node]);
}

void UseMeter::Take(const TraceJob& job, std::span<const uint32_t> devices, std::span<const uint32_t> host_nodes,
                    int32_t sign) {
  if (devices.empty()) {
    for (const uint32_t node : host_nodes) fragments_.Take(node, {}, 0, job.cpu_milli, sign);
    return;
  }
  for (const uint32_t device : devices) {
    const bool was_idle = holders_[device] == 0;
    holders_[device] = static_cast<uint16_t>(holders_[device] + sign);
    used_ += was_idle ? 1 : holders_[device] == 0 ? -1 : 0;
  }
  const int32_t milli = job.gpu_milli == 0 ? kMilliPerGpu : job.gpu_milli;
  const auto per_task = static_cast<size_t>(job.gpus_per_task);
  for (size_t first = 0; first < devices.size(); first += per_task) {
    fragments_.Take(map_.node_of(devices[first]), devices.subspan(first, per_task), milli, job.cpu_milli, sign);
  }
}

void UseMeter::SetUp(uint32_t node, bool up) {
  up_ = up ? up_ + map_.devices_on(node) : up_ - map_.devices_on(node);
  fragments_.SetUp(node, up);
}

void UseMeter::PassTime(int64_t passed_us, bool waits) {
  const absl::int128 passed = passed_us;
  use_.device_us += passed * up_;
  use_.used_us += passed * used_;
  use_.free_us += passed * fragments_.free();
  use_.fragment_us += passed * fragments_.fragment();
  if (waits) use_.backlog_device_us += passed * up_;
}

}  // namespace horus
