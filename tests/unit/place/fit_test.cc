// SPDX-License-Identifier: Apache-2.0
// Rules of fit: each constraint at its edge, and how far off it says that a job was.
#include "place/state/fit.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "fixtures.h"
#include "interference/laws.h"

namespace horus {
namespace {

using testing_place::OneGpu;
using testing_place::V100Node;

constexpr FitLimits kLimits{.slowdown_bound = 2};
constexpr int64_t kDeviceMib = 16'384;

DeviceRow Device(size_t tenants = 0) {
  DeviceRow device;
  device.mem_mib = kDeviceMib;
  device.tenants.assign(tenants, 0);
  device.tenants_milli = static_cast<int32_t>(tenants) * kTenantMilli;
  return device;
}

TenantClass Asking(int64_t request_mib, int64_t limit_mib = 0) {
  TenantClass tenant;
  tenant.memory = {request_mib, limit_mib};
  return tenant;
}

void ExpectShort(const Shortfall& shortfall, double needed, double available, std::string_view unit) {
  EXPECT_EQ(shortfall.needed, needed);
  EXPECT_EQ(shortfall.available, available);
  EXPECT_EQ(shortfall.unit, unit);
}

TEST(Fit, DistanceIsTheMissingShareOfWhatWasNeeded) {
  EXPECT_EQ(Distance(Reason::kGpuMemory, {100, 25, "MiB"}), 0.75);
  EXPECT_EQ(Distance(Reason::kGpuMilli, {1, 0.5, "milli"}), 0.5);
  EXPECT_EQ(Distance(Reason::kCpu, {100, -100, "milli-cores"}), 2);
}

TEST(Fit, DistanceOfASlowdownIsHowFarItIsBeyondItsBound) {
  EXPECT_EQ(Distance(Reason::kSlowdownOwn, {1.5, 3, "x"}), 1);
  EXPECT_EQ(Distance(Reason::kSlowdownNeighbour, {2, 3, "x"}), 0.5);
}

TEST(Fit, DistanceIsOneWhereThereIsNoAmount) {
  EXPECT_EQ(Distance(Reason::kLabel, {}), 1);
  EXPECT_EQ(Distance(Reason::kOwner, {8, 2, ""}), 1);
  EXPECT_EQ(Distance(Reason::kGpuMemory, {0, 5, "MiB"}), 1);
}

TEST(Fit, EndlessIsOnlyAWaitAndOnlyTheLongestThatIsCounted) {
  const double most = static_cast<float>(kMostServiceUs);
  EXPECT_TRUE(IsUnbounded(most, kLateUnit));
  EXPECT_TRUE(IsUnbounded(2 * most, kLateUnit));
  EXPECT_FALSE(IsUnbounded(most / 2, kLateUnit));
  EXPECT_FALSE(IsUnbounded(most, "MiB"));
}

TEST(Fit, ANodeMustBeUpAndCarryEveryLabelAskedFor) {
  NodeSpec node = V100Node(1);
  node.labels = {{"disk", "ssd"}, {"zone", "a"}};
  JobSpec job = OneGpu(1);
  EXPECT_EQ(FitNode(job, node, AdminState::kUp), Reason::kNone);
  EXPECT_EQ(FitNode(job, node, AdminState::kDown), Reason::kNodeDown);
  EXPECT_EQ(FitNode(job, node, AdminState::kDrained), Reason::kNodeDrained);
  job.node_selector = {{"disk", "ssd"}, {"zone", "a"}};
  EXPECT_EQ(FitNode(job, node, AdminState::kUp), Reason::kNone);
  job.node_selector = {{"disk", "ssd"}, {"zone", "b"}};
  EXPECT_EQ(FitNode(job, node, AdminState::kUp), Reason::kLabel);
}

TEST(Fit, HostResourcesMayBeUsedUpToTheLastAndNoFurther) {
  struct Case {
    Reason reason;
    std::string_view unit;
    int64_t JobSpec::* asked;
    int64_t HostFree::* free;
  };
  const std::vector<Case> cases = {
      {Reason::kCpu, "milli-cores", &JobSpec::cpu_milli, &HostFree::cpu_milli},
      {Reason::kHostMemory, "MiB", &JobSpec::mem_mib, &HostFree::mem_mib},
      {Reason::kStorageBandwidth, "MB/s", &JobSpec::storage_mb_s, &HostFree::storage_mb_s},
  };
  for (const Case& one : cases) {
    JobSpec job = OneGpu(1);
    job.*one.asked = 10;
    HostFree free{1000, 1000, 1000};
    free.*one.free = 30;
    EXPECT_EQ(FitHost(job, free, 3), Reason::kNone) << one.unit;
    EXPECT_EQ(FitHost(job, free, 4), one.reason);
    Shortfall shortfall;
    free.*one.free = 29;
    EXPECT_EQ(FitHost(job, free, 3, &shortfall), one.reason);
    ExpectShort(shortfall, 30, 29, one.unit);
    job.*one.asked = 1;
    free.*one.free = 0;
    EXPECT_EQ(FitHost(job, free, 1), one.reason);
    free.*one.free = -1;
    job.*one.asked = 0;
    EXPECT_EQ(FitHost(job, free, 3), Reason::kNone) << "asks for none of what is over-committed: " << one.unit;
  }
}

TEST(Fit, HostTasksAreAsManyAsTheScarcestResourceCarries) {
  const HostFree free{30, 30, 30};
  JobSpec job = OneGpu(1);
  EXPECT_EQ(HostTasks(job, free, 7), 7);
  for (int64_t JobSpec::* asked : {&JobSpec::cpu_milli, &JobSpec::mem_mib, &JobSpec::storage_mb_s}) {
    job = OneGpu(1);
    job.*asked = 10;
    EXPECT_EQ(HostTasks(job, free, 7), 3);
    EXPECT_EQ(HostTasks(job, free, 2), 2);
    job.*asked = 31;
    EXPECT_EQ(HostTasks(job, free, 7), 0);
    job.*asked = 1;
    EXPECT_EQ(HostTasks(job, {1, 1, 1}, 7), 1);
    EXPECT_EQ(HostTasks(job, {0, 0, 0}, 7), 0);
    EXPECT_EQ(HostTasks(job, {-9, -9, -9}, 7), 0) << "over-committed";
  }
}

TEST(Fit, AJobThatSpreadsHasOneTaskANode) {
  JobSpec job = OneGpu(1);
  job.spread_tasks = true;
  EXPECT_EQ(HostTasks(job, {30, 30, 30}, 7), 1);
  EXPECT_EQ(HostTasks(job, {30, 30, 30}, 0), 0);
}

TEST(Fit, ADeviceMustBeUp) {
  EXPECT_EQ(FitDeviceState(AdminState::kUp), Reason::kNone);
  EXPECT_EQ(FitDeviceState(AdminState::kDrained), Reason::kDeviceDrained);
  EXPECT_EQ(FitDeviceState(AdminState::kDown), Reason::kDeviceDown);
}

TEST(Fit, ADeviceTakesMoreUntilNobodyWouldFit) {
  DeviceRow device = Device(2);
  device.milli_used = 999;
  device.mem_used_upper_mib = kDeviceMib - 500;
  EXPECT_TRUE(MayTakeMore(device, kLimits));
  device.milli_used = 1000;
  EXPECT_FALSE(MayTakeMore(device, kLimits));
  EXPECT_FALSE(MayTakeMore(Device(3), kLimits));
  device = Device();
  device.state = AdminState::kDrained;
  EXPECT_FALSE(MayTakeMore(device, kLimits));
}

TEST(Fit, AJobThatMissesItsLatencyAloneFitsNowhere) {
  TenantClass late;
  late.late = {.bound_us = 1000, .p99_us = 3000};
  Shortfall shortfall;
  EXPECT_EQ(FitDevice(&late, Device(), kLimits, &shortfall), Reason::kSlowdownOwn);
  ExpectShort(shortfall, 1000, 3000, kLateUnit);
  late.late.p99_us = 1;
  EXPECT_EQ(FitDevice(&late, Device(), kLimits), Reason::kSlowdownOwn);
  late.late.p99_us = 0;
  EXPECT_EQ(FitDevice(&late, Device(), kLimits), Reason::kNone);
}

// Its promises were worked out on the whole GPU: a slice on which it breaks them alone is refused, however empty.
TEST(Fit, AServiceGoesToNoSliceThatIsTooSlowForIt) {
  TenantClass service;
  service.demand.slowdown_bound = 1.5F;
  service.demand.gpu_util_pct = {100, 100};
  DeviceRow slice = Device();
  EXPECT_EQ(FitDevice(&service, slice, kLimits), Reason::kNone);
  slice.compute_share = 0.125F;
  Shortfall shortfall;
  EXPECT_EQ(FitDevice(&service, slice, kLimits, &shortfall), Reason::kSlowdownOwn);
  EXPECT_GT(shortfall.available, shortfall.needed);
  service.demand.slowdown_bound = 100;
  EXPECT_EQ(FitDevice(&service, slice, kLimits), Reason::kNone);
}

TEST(Fit, AMigInstanceTakesOneGpuOfAJobAndSharersOfIt) {
  DeviceRow instance = Device();
  instance.mode = SharingMode::kMig;
  TenantClass job;
  job.gpus = 1;
  EXPECT_EQ(FitTenant(&job, instance, kLimits), Reason::kNone);
  job.gpus = 2;
  EXPECT_EQ(FitTenant(&job, instance, kLimits), Reason::kSharingMode);
  EXPECT_EQ(FitTenant(&job, Device(), kLimits), Reason::kNone);
}

TEST(Fit, OnlyEmptyDevicesTakeAJobThatWantsToBeAlone) {
  const TenantClass sharer;
  TenantClass alone;
  alone.exclusive = true;
  EXPECT_EQ(FitTenant(&alone, Device(), kLimits), Reason::kNone);
  EXPECT_EQ(FitTenant(&alone, Device(1), kLimits), Reason::kExclusive);
  DeviceRow device = Device(1);
  device.exclusive_held = true;
  EXPECT_EQ(FitTenant(&sharer, device, kLimits), Reason::kExclusive);
  device = Device();
  device.mode = SharingMode::kExclusive;
  EXPECT_EQ(FitTenant(&sharer, device, kLimits), Reason::kNone);
  device.tenants.assign(1, 0);
  EXPECT_EQ(FitTenant(&sharer, device, kLimits), Reason::kSharingMode);
}

TEST(Fit, ADevicesOwnTenantLimitGoesBeforeThePlacers) {
  const TenantClass sharer;
  Shortfall shortfall;
  EXPECT_EQ(FitTenant(&sharer, Device(2), kLimits), Reason::kNone);
  EXPECT_EQ(FitTenant(&sharer, Device(3), kLimits, &shortfall), Reason::kTenantLimit);
  ExpectShort(shortfall, 4, 3, "tenants");
  DeviceRow device = Device(1);
  device.max_tenants = 1;
  EXPECT_EQ(FitTenant(&sharer, device, kLimits, &shortfall), Reason::kTenantLimit);
  ExpectShort(shortfall, 2, 1, "tenants");
  device.max_tenants = 2;
  EXPECT_EQ(FitTenant(&sharer, device, kLimits), Reason::kNone);
}

TEST(Fit, AnMpsServerAdmitsNoMoreClientsThanItCan) {
  const TenantClass sharer;
  Shortfall shortfall;
  DeviceRow device = Device(1);
  device.mps_clients = 1;
  EXPECT_EQ(FitTenant(&sharer, device, kLimits, &shortfall), Reason::kTenantLimit);
  ExpectShort(shortfall, 2, 1, "MPS clients");
  device.mps_clients = 2;
  EXPECT_EQ(FitTenant(&sharer, device, kLimits), Reason::kNone);
  device = Device(3);
  device.mps_clients = 3;  // no less than the tenant limit, which then is the one to name
  EXPECT_EQ(FitTenant(&sharer, device, kLimits, &shortfall), Reason::kTenantLimit);
  ExpectShort(shortfall, 4, 3, "tenants");
  device = Device(5);  // over-committed by those who were adopted
  device.mps_clients = 4;
  EXPECT_EQ(FitTenant(&sharer, device, kLimits, &shortfall), Reason::kTenantLimit);
  ExpectShort(shortfall, 6, 3, "tenants");
}

TEST(Fit, SharesOfAGpuMayFillItAndASharerWithoutOneTakesAThousandth) {
  DeviceRow device = Device(1);
  device.milli_used = 600;
  TenantClass job;
  job.gpu_milli = 400;
  EXPECT_EQ(FitTenant(&job, device, kLimits), Reason::kNone);
  Shortfall shortfall;
  job.gpu_milli = 401;
  EXPECT_EQ(FitTenant(&job, device, kLimits, &shortfall), Reason::kGpuMilli);
  ExpectShort(shortfall, 401, 400, "milli");
  job.gpu_milli = 0;
  device.milli_used = 1000;
  EXPECT_EQ(FitTenant(&job, device, kLimits, &shortfall), Reason::kGpuMilli);
  ExpectShort(shortfall, 1, 0, "milli");
}

TEST(Fit, RequestsAndTheHeadroomMayFillTheMemory) {
  DeviceRow device = Device(1);
  device.mem_used_upper_mib = 10'000;
  const int64_t rest = kDeviceMib - 500 - 10'000;
  const TenantClass fits = Asking(rest);
  EXPECT_EQ(FitTenant(&fits, device, kLimits), Reason::kNone);
  Shortfall shortfall;
  const TenantClass beyond = Asking(rest + 1);
  EXPECT_EQ(FitTenant(&beyond, device, kLimits, &shortfall), Reason::kGpuMemory);
  ExpectShort(shortfall, static_cast<double>(rest + 1), static_cast<double>(rest), "MiB");
  device.mem_used_upper_mib = kDeviceMib;
  EXPECT_EQ(FitTenant(&beyond, device, kLimits, &shortfall), Reason::kGpuMemory);
  EXPECT_EQ(shortfall.available, 0) << "what is over-committed is no less than nothing";
  device.mem_used_upper_mib = kDeviceMib - 500;
  EXPECT_EQ(FitTenant(&beyond, device, kLimits, &shortfall), Reason::kGpuMemory);
  EXPECT_EQ(shortfall.available, 0);
}

TEST(Fit, AnUnknownMemoryHasNoAmountsAndAPredictedOneTellsWhatIsExpected) {
  const DeviceRow device = Device();
  Shortfall shortfall;
  JobSpec job = testing_place::OneGpu(1, 10);
  job.demands[0].demand.mem_mib = {1'000, kUnboundedMemMib};
  const TenantClass unknown = MakeTenantClass(job, job.demands[0].demand);
  EXPECT_EQ(FitTenant(&unknown, device, kLimits), Reason::kNone) << "alone it may take what it likes";
  DeviceRow taken = device;
  taken.tenants = {0};
  EXPECT_EQ(FitTenant(&unknown, taken, kLimits), Reason::kMemoryUnknown);
  TenantClass predicted = Asking(kDeviceMib);
  for (const auto& [estimate, told] : {std::pair(9'000, 9'000), std::pair(int{kDeviceMib}, 0)}) {
    predicted.demand.flags = kDemandPredicted;
    predicted.demand.mem_mib = {estimate, kDeviceMib};
    EXPECT_EQ(FitTenant(&predicted, device, kLimits, &shortfall), Reason::kGpuMemory);
    EXPECT_EQ(shortfall.estimate, told) << "no more than expected is no bound";
    predicted.demand.flags = kDemandMeasured;
    EXPECT_EQ(FitTenant(&predicted, device, kLimits, &shortfall), Reason::kGpuMemory);
    EXPECT_EQ(shortfall.estimate, 0);
  }
}

TEST(Fit, LimitsMayOverCommitTheMemoryAsManyTimesAsStated) {
  DeviceRow device = Device(1);
  device.mem_limit_mib = 10'000;
  FitLimits limits = kLimits;
  limits.mem_overcommit = 1.5;
  const int64_t rest = kDeviceMib * 3 / 2 - 500 - 10'000;
  const TenantClass fits = Asking(10, rest);
  EXPECT_EQ(FitTenant(&fits, device, limits), Reason::kNone);
  Shortfall shortfall;
  const TenantClass beyond = Asking(10, rest + 1);
  EXPECT_EQ(FitTenant(&beyond, device, limits, &shortfall), Reason::kGpuMemory);
  ExpectShort(shortfall, static_cast<double>(rest + 1), static_cast<double>(rest), "MiB of limits");
  limits.mem_overcommit = std::numeric_limits<double>::infinity();
  EXPECT_EQ(FitTenant(&beyond, device, limits), Reason::kNone);
}

// The newcomer is the last; residents before it.
Reason Slowdowns(std::vector<float> bounds, std::vector<float> before, std::vector<float> after,
                 Shortfall* shortfall = nullptr) {
  std::vector<Slowdown> were;
  std::vector<Slowdown> are;
  for (const float one : before) were.push_back({1, one});  // upper bounds count
  for (const float one : after) are.push_back({1, one});
  std::vector<Promise> promises;
  for (const float bound : bounds) promises.push_back({bound});
  return FitSlowdowns(promises, were, are, kLimits, shortfall);
}

TEST(Fit, TheNewcomerStaysWithinItsBoundOrTheDefault) {
  EXPECT_EQ(Slowdowns({0}, {1}, {2}), Reason::kNone);
  EXPECT_EQ(Slowdowns({0}, {1}, {2.1f}), Reason::kSlowdownOwn);
  EXPECT_EQ(Slowdowns({1}, {1}, {1}), Reason::kNone);
  Shortfall shortfall;
  EXPECT_EQ(Slowdowns({1}, {1}, {1.5f}, &shortfall), Reason::kSlowdownOwn);
  ExpectShort(shortfall, 1, 1.5, "x");
  EXPECT_EQ(Slowdowns({4}, {1}, {3}), Reason::kNone);
  EXPECT_EQ(Slowdowns({0.5f}, {1}, {1}, &shortfall), Reason::kSlowdownOwn);
}

TEST(Fit, EveryResidentStaysWithinItsBoundUnlessItWasBeyondAsFar) {
  Shortfall shortfall;
  EXPECT_EQ(Slowdowns({0, 0, 9}, {1, 1, 1}, {2, 2, 5}), Reason::kNone);
  EXPECT_EQ(Slowdowns({0, 0, 9}, {1, 1, 1}, {2.5f, 1, 1}, &shortfall), Reason::kSlowdownNeighbour);
  ExpectShort(shortfall, 2, 2.5, "x");
  EXPECT_EQ(Slowdowns({0, 1, 9}, {1, 1, 1}, {1, 1.5f, 1}), Reason::kSlowdownNeighbour);
  EXPECT_EQ(Slowdowns({0, 9}, {3, 1}, {3, 1}), Reason::kNone) << "was beyond its bound, and is no worse off";
  EXPECT_EQ(Slowdowns({0, 9}, {3, 1}, {3.5f, 1}), Reason::kSlowdownNeighbour);
}

// Beside somebody expected to cost 1.2, at most 1.8 with probability 0.9.
Reason Promised(const Promise& promise, const FitLimits& limits, Shortfall* shortfall = nullptr) {
  const std::vector<Promise> promises = {promise};
  const std::vector<Slowdown> after = {{1.2f, 1.8f}};
  return FitSlowdowns(promises, {}, after, limits, shortfall);
}

TEST(Fit, APromiseHoldsWithItsConfidence) {
  EXPECT_EQ(Promised({1.8f}, kLimits), Reason::kNone) << "0.9 unless it says otherwise";
  EXPECT_EQ(Promised({1.79f}, kLimits), Reason::kSlowdownOwn);
  EXPECT_EQ(Promised({1.8f, 0.9f}, kLimits), Reason::kNone);
  EXPECT_EQ(Promised({1.2f, 0.5f}, kLimits), Reason::kNone) << "even odds ask for the estimate";
  EXPECT_EQ(Promised({1.19f, 0.5f}, kLimits), Reason::kSlowdownOwn);
  Shortfall shortfall;
  EXPECT_EQ(Promised({1.8f, 0.99f}, kLimits, &shortfall), Reason::kSlowdownOwn);
  ExpectShort(shortfall, 1.8f, SlowdownAt({1.2f, 1.8f}, 0.9, static_cast<double>(0.99f)), "x");
  EXPECT_GT(shortfall.available, 1.8);
}

TEST(Fit, AModelWithOneProbabilityIsAskedForNoOther) {
  FitLimits limits = kLimits;
  limits.upper_probability = 0;
  EXPECT_EQ(Promised({1.8f, 0.99f}, limits), Reason::kNone);
}

TEST(Fit, WhereSharingIsOffADeviceHasOneTenant) {
  FitLimits limits = kLimits;
  limits.share = false;
  const TenantClass newcomer = Asking(10, 10);
  DeviceRow device{.mode = SharingMode::kTimeSlice, .max_tenants = 4, .mem_mib = kDeviceMib};
  EXPECT_EQ(FitTenant(&newcomer, device, limits), Reason::kNone);
  device.tenants = {0};
  EXPECT_EQ(FitTenant(&newcomer, device, kLimits), Reason::kNone);
  EXPECT_EQ(FitTenant(&newcomer, device, limits), Reason::kSharingQuota);
}

}  // namespace
}  // namespace horus
