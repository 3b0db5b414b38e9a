// SPDX-License-Identifier: Apache-2.0
// The hard constraints, in the order in which they are asked.
#include "place/state/fit.h"

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "interference/laws.h"

namespace horus {
namespace {

Reason Fail(Reason reason, Shortfall* shortfall, double needed, double available, std::string_view unit,
            double estimate = 0) {
  // The predicted amount is the larger of the two; where it is no more than expected, there is nothing to tell apart.
  if (estimate >= std::max(needed, available)) estimate = 0;
  if (shortfall != nullptr) *shortfall = {needed, available, unit, estimate};
  return reason;
}

// Far above what all limits on a device can sum to: beyond it they are not counted.
constexpr int64_t kMaxLimitsMib = int64_t{1} << 60;

int64_t Carries(int64_t free, int64_t per_task, int64_t limit) {
  if (per_task <= 0) return limit;
  return free <= 0 ? 0 : std::min(limit, free / per_task);
}

}  // namespace

bool IsUnbounded(double amount, std::string_view unit) {
  return unit == kLateUnit && amount >= static_cast<double>(static_cast<float>(kMostServiceUs));  // as LateAlone has it
}

double Distance(Reason reason, const Shortfall& shortfall) {
  if (shortfall.unit.empty() || shortfall.needed <= 0) return 1;
  const bool slowdown = reason == Reason::kSlowdownOwn || reason == Reason::kSlowdownNeighbour;
  const double missing = slowdown ? shortfall.available - shortfall.needed : shortfall.needed - shortfall.available;
  return missing / shortfall.needed;
}

Reason FitNode(const JobSpec& job, const NodeSpec& node, AdminState state) {
  if (state == AdminState::kDown) return Reason::kNodeDown;
  if (state == AdminState::kDrained) return Reason::kNodeDrained;
  for (const auto& wanted : job.node_selector) {  // both ascending
    if (!std::binary_search(node.labels.begin(), node.labels.end(), wanted)) return Reason::kLabel;
  }
  return Reason::kNone;
}

Reason FitHost(const JobSpec& job, const HostFree& free, int64_t tasks, Shortfall* shortfall) {
  // A job that asks for none of a resource fits even where adopted jobs over-commit it.
  const auto lacks = [tasks](int64_t per_task, int64_t have) { return per_task > 0 && per_task * tasks > have; };
  const auto amount = [](int64_t value) { return static_cast<double>(value); };
  if (lacks(job.cpu_milli, free.cpu_milli))
    return Fail(Reason::kCpu, shortfall, amount(job.cpu_milli * tasks), amount(free.cpu_milli), "milli-cores");
  if (lacks(job.mem_mib, free.mem_mib))
    return Fail(Reason::kHostMemory, shortfall, amount(job.mem_mib * tasks), amount(free.mem_mib), "MiB");
  if (lacks(job.storage_mb_s, free.storage_mb_s)) {
    return Fail(Reason::kStorageBandwidth, shortfall, amount(job.storage_mb_s * tasks), amount(free.storage_mb_s),
                "MB/s");
  }
  return Reason::kNone;
}

int64_t HostTasks(const JobSpec& job, const HostFree& free, int64_t limit) {
  if (job.spread_tasks) limit = std::min(limit, int64_t{1});
  limit = Carries(free.cpu_milli, job.cpu_milli, limit);
  limit = Carries(free.mem_mib, job.mem_mib, limit);
  return Carries(free.storage_mb_s, job.storage_mb_s, limit);
}

Reason FitDeviceState(AdminState state) {
  if (state == AdminState::kDown) return Reason::kDeviceDown;
  return state == AdminState::kDrained ? Reason::kDeviceDrained : Reason::kNone;
}

bool MayTakeMore(const DeviceRow& device, const FitLimits& limits) {
  // Shares, uses no memory, and is hardly there.
  static const TenantClass smallest{.counted_milli = static_cast<int32_t>(kTenantMilli * kLeastCounted)};
  return FitDevice(&smallest, device, limits) == Reason::kNone;
}

Reason FitDevice(const TenantClass* newcomer, const DeviceRow& device, const FitLimits& limits, Shortfall* shortfall) {
  const Reason reason = FitDeviceState(device.state);
  if (reason != Reason::kNone) return reason;
  if (const Reason tenant = FitTenant(newcomer, device, limits, shortfall); tenant != Reason::kNone) return tenant;
  const LateAlone& late = newcomer->late;
  if (late.p99_us == 0) {
    // What a service keeps was worked out on the whole GPU. A slice alone slows it.
    const auto bound = static_cast<double>(newcomer->demand.slowdown_bound);
    if (bound == 0) return Reason::kNone;
    const double slowed = 1 / SliceSpeed(newcomer->demand, static_cast<double>(device.compute_share));
    return IsBeyond(slowed, bound) ? Fail(Reason::kSlowdownOwn, shortfall, bound, slowed, "x", slowed) : Reason::kNone;
  }
  return Fail(Reason::kSlowdownOwn, shortfall, static_cast<double>(late.bound_us), static_cast<double>(late.p99_us),
              kLateUnit, static_cast<double>(late.expected_us));
}

Reason FitTenant(const TenantClass* newcomer, const DeviceRow& device, const FitLimits& limits, Shortfall* shortfall) {
  if (newcomer == nullptr) return Reason::kGpuType;
  // MIG instances have no peer-to-peer path (NVIDIA MIG User Guide), so a gang cannot train across them.
  if (device.mode == SharingMode::kMig && newcomer->gpus > 1) return Reason::kSharingMode;
  const bool mps = device.mode == SharingMode::kMps || device.mode == SharingMode::kTimeSliceOrMps;
  if (!mps && newcomer->demand.sm_cap < 1) return Reason::kSharingMode;
  const auto tenants = static_cast<int32_t>(device.tenants.size());
  if (tenants > 0 && device.mode == SharingMode::kExclusive) return Reason::kSharingMode;
  if (device.exclusive_held) return Reason::kExclusive;
  if (newcomer->exclusive && tenants > 0)
    return HasMemoryBound(newcomer->demand) ? Reason::kExclusive : Reason::kMemoryUnknown;
  if (!limits.share && tenants > 0) return Reason::kSharingQuota;
  // What a device states is what its runtime lets in; the placer's own limit is for jobs that keep a GPU busy.
  const bool counts_all = device.max_tenants > 0 || limits.max_tenants == 1;
  const int32_t most = device.max_tenants > 0 ? device.max_tenants : limits.max_tenants;
  const int32_t held = counts_all ? (tenants + 1) * kTenantMilli : device.tenants_milli + newcomer->counted_milli;
  if (held > most * kTenantMilli || tenants >= kMaxTenantsPerDevice)
    return Fail(Reason::kTenantLimit, shortfall, static_cast<double>(held) / kTenantMilli, most, "tenants");
  // Every tenant is a process of its own, and so a client of the device's MPS server.
  if (device.mps_clients > 0 && tenants + 1 > device.mps_clients)
    return Fail(Reason::kTenantLimit, shortfall, tenants + 1, device.mps_clients, "MPS clients");
  const int32_t milli = std::max(newcomer->gpu_milli, 1);  // a sharer without a request counts one thousandth
  if (device.milli_used + milli > kMilliPerGpu)
    return Fail(Reason::kGpuMilli, shortfall, milli, kMilliPerGpu - device.milli_used, "milli");
  const int64_t free = device.mem_mib - limits.mem_headroom_mib - device.mem_used_upper_mib;
  const Demand& demand = newcomer->demand;
  const auto lacks = [&](int64_t needed, int64_t available, std::string_view unit) {
    const bool predicted = IsOnlyPredicted(demand) && needed == demand.mem_mib.upper;
    return Fail(Reason::kGpuMemory, shortfall, static_cast<double>(needed),
                static_cast<double>(std::max(available, int64_t{0})), unit,
                predicted ? static_cast<double>(demand.mem_mib.estimate) : 0);
  };
  if (newcomer->memory.request_mib > free) return lacks(newcomer->memory.request_mib, free, "MiB");
  // Rounded down, and so exact without over-commit. Infinity = limits do not count.
  const double most_limits = limits.mem_overcommit * static_cast<double>(device.mem_mib);
  if (most_limits < static_cast<double>(kMaxLimitsMib)) {
    const int64_t burst = static_cast<int64_t>(most_limits) - limits.mem_headroom_mib - device.mem_limit_mib;
    if (newcomer->memory.limit_mib > burst) return lacks(newcomer->memory.limit_mib, burst, "MiB of limits");
  }
  return Reason::kNone;
}

double SlowdownFor(const Promise& promise, const Slowdown& answer, const FitLimits& limits) {
  const auto confidence = static_cast<double>(promise.confidence);
  if (confidence == 0 || limits.upper_probability == 0) return static_cast<double>(answer.upper);
  return SlowdownAt(answer, limits.upper_probability, confidence);
}

Reason FitSlowdowns(std::span<const Promise> promises, std::span<const Slowdown> before,
                    std::span<const Slowdown> after, const FitLimits& limits, Shortfall* shortfall) {
  const size_t newcomer = after.size() - 1;
  const double own = BoundOf(promises[newcomer], limits);
  const double predicted = SlowdownFor(promises[newcomer], after[newcomer], limits);
  const auto expected = [&after](size_t i) { return static_cast<double>(after[i].estimate); };
  if (IsBeyond(predicted, own)) return Fail(Reason::kSlowdownOwn, shortfall, own, predicted, "x", expected(newcomer));
  for (size_t i = 0; i < newcomer; ++i) {
    const double bound = BoundOf(promises[i], limits);
    if (std::isinf(bound)) continue;
    const double now = SlowdownFor(promises[i], after[i], limits);
    if (IsBeyond(now, bound) && IsBeyond(now, SlowdownFor(promises[i], before[i], limits)))
      return Fail(Reason::kSlowdownNeighbour, shortfall, bound, now, "x", expected(i));
  }
  return Reason::kNone;
}

}  // namespace horus
