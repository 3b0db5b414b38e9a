// SPDX-License-Identifier: Apache-2.0
// Counts devices that are up and held, and lets their time pass.
#include "lab/run/use_meter.h"

#include <cmath>

namespace horus {

static constexpr int64_t kMicroPerMilli = 1000;

std::vector<std::vector<GpuTypeId>> KnownTypes(const Trace& trace, const Catalogue& catalogue) {
  std::vector<std::vector<GpuTypeId>> lists;
  for (const GpuTypeNames& names : trace.type_lists) {
    std::vector<GpuTypeId>& types = lists.emplace_back();
    for (const std::string& name : names) {
      if (const auto type = catalogue.FindKnown(name)) types.push_back(*type);
    }
    std::ranges::sort(types);
  }
  return lists;
}

std::shared_ptr<const Workload> WorkloadOf(const Trace& trace, const Catalogue& catalogue) {
  const std::vector<std::vector<GpuTypeId>> lists = KnownTypes(trace, catalogue);
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

UseMeter::UseMeter(const Cluster& cluster, const ClusterMap& map, std::shared_ptr<const Workload> workload)
    : map_(map), workload_(std::move(workload)), holders_(map.devices()), up_(map.devices()) {
  if (workload_ == nullptr) return;
  free_milli_.assign(map.devices(), kMilliPerGpu);
  for (uint32_t node = 0; node < map.nodes(); ++node) {
    const NodeInfo info = *cluster.Node(map.id(node));
    nodes_.push_back({.cpu_free_milli = info.spec.cpu_milli, .up = info.state == AdminState::kUp});
    Refresh(node);
  }
}

void UseMeter::Refresh(uint32_t index) {
  if (workload_ == nullptr) return;
  Node& node = nodes_[index];
  scratch_.clear();
  int64_t free = 0;
  const uint32_t first = map_.first_device(index);
  for (uint32_t device = first; device < first + map_.devices_on(index); ++device) {
    scratch_.push_back({map_.device(device).type, node.up ? std::max(0, free_milli_[device]) : 0});
    free += scratch_.back().free_milli * kMicroPerMilli;
  }
  const double lost = free == 0 ? 0 : workload_->Fragment(node.cpu_free_milli, scratch_);
  const int64_t fragment = std::llround(lost * static_cast<double>(kMicroPerMilli));
  free_ += free - std::exchange(node.free, free);
  fragment_ += fragment - std::exchange(node.fragment, fragment);
}

void UseMeter::Take(const TraceJob& job, std::span<const uint32_t> devices, std::span<const uint32_t> host_nodes,
                    int32_t sign) {
  for (const uint32_t device : devices) {
    const bool was_idle = holders_[device] == 0;
    holders_[device] = static_cast<uint16_t>(holders_[device] + sign);
    used_ += was_idle ? 1 : holders_[device] == 0 ? -1 : 0;
  }
  const int32_t milli = sign * (job.gpu_milli == 0 ? kMilliPerGpu : job.gpu_milli);
  const auto per_task = static_cast<size_t>(job.gpus_per_task);
  for (size_t first = 0; first < devices.size(); first += per_task)
    TakeTask(map_.node_of(devices[first]), devices.subspan(first, per_task), milli, sign * job.cpu_milli);
  if (!devices.empty()) return;
  for (const uint32_t node : host_nodes) TakeTask(node, {}, 0, sign * job.cpu_milli);
}

}  // namespace horus
