// SPDX-License-Identifier: Apache-2.0
// Two values that differ in one field differ: jobs, nodes and devices are shared by equality, decisions compared by it.
#include <gtest/gtest.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "lab/synergy/round.h"
#include "place/decision.h"
#include "place/job/job.h"
#include "place/job/own_bound.h"
#include "place/job/sensitivity.h"
#include "place/state/cluster.h"
#include "place/state/ledger.h"
#include "place/state/node.h"

namespace horus {
namespace {

// Another value of the same type.
template <typename T>
  requires std::integral<T> || std::floating_point<T>
void Change(T& value) {
  value = static_cast<T>(value == T(1) ? 0 : 1);
}
template <typename T>
  requires std::is_enum_v<T>
void Change(T& value) {
  value = static_cast<T>(static_cast<int>(value) == 1 ? 0 : 1);
}
void Change(std::string& value) { value += "x"; }
void Change(std::string_view& value) { value = "x"; }
void Change(GpuTypeId& value) { value = GpuTypeId(7); }
void Change(Demand& value) { ++value.mem_mib.upper; }
void Change(Slowdown& value) { value.upper += 1; }
void Change(GpuMemory& value) { ++value.limit_mib; }
void Change(HostShare& value) { ++value.mem_mib; }
void Change(HostHolding& value) { ++value.mem_mib; }
void Change(PricedPlace& value) { value.cost += 1; }
void Change(NearestMiss& value) { value.needed += 1; }
void Change(DeviceList& value) { value = DeviceList(std::vector<DeviceSpec>(1)); }
void Change(SharedSensitivity& value) { value = SharedSensitivity(*Sensitivity::Create({1}, {1}, std::vector{1.0f})); }
template <typename T>
void Change(std::vector<T>& value) {
  value.emplace_back();
}
template <typename T, size_t inside>
void Change(absl::InlinedVector<T, inside>& value) {
  value.emplace_back();
}
template <typename T, size_t size>
void Change(std::array<T, size>& value) {
  Change(value.back());
}

// How many fields an aggregate has, so that a field that comes later is not forgotten here.
struct Anything {
  template <typename T>
  operator T() const;
};
template <typename T, size_t... at>
constexpr bool Takes(std::index_sequence<at...> /*fields*/) {
  return requires { T{(static_cast<void>(at), Anything())...}; };
}
template <typename T, size_t count = 0>
constexpr size_t FieldCount() {
  if constexpr (Takes<T>(std::make_index_sequence<count + 1>())) {
    return FieldCount<T, count + 1>();
  } else {
    return count;
  }
}

template <typename T, typename... Fields>
void ExpectEachCounts(Fields T::*... fields) {
  static_assert(FieldCount<T>() == sizeof...(fields), "a field is not listed");
  const T value{};
  EXPECT_EQ(value, T{});
  const auto expect_counts = [&](auto field) {
    T other{};
    Change(other.*field);
    EXPECT_FALSE(value == other) << __PRETTY_FUNCTION__;
    T same{};
    Change(same.*field);
    EXPECT_TRUE(other == same);
  };
  (expect_counts(fields), ...);
}

TEST(Equality, OfJobsReadsEveryField) {
  using A = JobAlternative;
  using J = JobSpec;
  ExpectEachCounts(&TypeDemand::type, &TypeDemand::demand);
  ExpectEachCounts(&A::tasks, &A::gpus_per_task, &A::gpu_milli, &A::cpu_milli, &A::mem_mib, &A::storage_mb_s, &A::rate,
                   &A::demands);
  ExpectEachCounts(&J::id, &J::name, &J::tenant, &J::kind, &J::tasks, &J::gpus_per_task, &J::gpu_milli, &J::exclusive,
                   &J::share, &J::gpu_mem_request_mib, &J::gpu_mem_limit_mib, &J::sm_cap_pct, &J::cpu_milli,
                   &J::mem_mib, &J::storage_mb_s, &J::stated_cpu_milli, &J::stated_mem_mib, &J::sensitivity,
                   &J::slowdown_bound, &J::slowdown_confidence, &J::priority, &J::weight, &J::submit_us,
                   &J::deadline_us, &J::request_rate_hz, &J::latency_bound_us, &J::demands, &J::node_selector,
                   &J::groups, &J::avoid_groups, &J::spread_tasks, &J::sm_cap_chosen, &J::exclusive_chosen,
                   &J::mps_chosen, &J::alternatives);
  ExpectEachCounts(&HostShare::cpu_milli, &HostShare::mem_mib);
  ExpectEachCounts(&HostChoice::share, &HostChoice::speed);
  ExpectEachCounts(&GpuMemory::request_mib, &GpuMemory::limit_mib);
  ExpectEachCounts(&LateAlone::bound_us, &LateAlone::p99_us, &LateAlone::expected_us);
}

TEST(Equality, OfSensitivitiesReadsAxesAndSpeeds) {
  const auto made = [](int64_t cpu_milli, int64_t mem_mib, float speed) {
    return SharedSensitivity(*Sensitivity::Create({cpu_milli}, {mem_mib}, std::vector{speed}));
  };
  EXPECT_EQ(made(1, 1, 1), made(1, 1, 1));
  EXPECT_NE(made(1, 1, 1), made(2, 1, 1));
  EXPECT_NE(made(1, 1, 1), made(1, 2, 1));
  EXPECT_NE(made(1, 1, 1), made(1, 1, 2));
  EXPECT_NE(made(1, 1, 1), SharedSensitivity());
  EXPECT_NE(SharedSensitivity(), made(1, 1, 1));
  EXPECT_EQ(SharedSensitivity(), SharedSensitivity());
}

TEST(Equality, OfNodesReadsEveryField) {
  using D = DeviceSpec;
  using N = NodeSpec;
  ExpectEachCounts(&D::type, &D::mode, &D::mig_profile, &D::physical_gpu, &D::island, &D::pcie_switch, &D::socket,
                   &D::max_tenants, &D::mem_mib, &D::compute_share, &D::mps_clients, &D::pcie_mb_s, &D::nvlink_mb_s);
  ExpectEachCounts(&N::id, &N::name, &N::cpu_milli, &N::mem_mib, &N::storage_mb_s, &N::network_mb_s, &N::rack,
                   &N::labels, &N::devices, &N::device_ids);
  ExpectEachCounts(&HostFree::cpu_milli, &HostFree::mem_mib, &HostFree::storage_mb_s);
  ExpectEachCounts(&GroupCount::group, &GroupCount::members, &GroupCount::avoiders);
  ExpectEachCounts(&LedgerResident::job, &LedgerResident::tenant, &LedgerResident::owner);
  ExpectEachCounts(&Resident::job, &Resident::task);
}

TEST(Equality, OfDecisionsReadsEveryField) {
  using D = Decision;
  using E = TenantEffect;
  ExpectEachCounts(&Slot::node, &Slot::device, &Slot::task);
  ExpectEachCounts(&E::job, &E::node, &E::device, &E::is_new, &E::before, &E::after, &E::calibrated);
  ExpectEachCounts(&CostTerm::name, &CostTerm::value);
  ExpectEachCounts(&PricedPlace::node, &PricedPlace::device, &PricedPlace::cost, &PricedPlace::terms);
  ExpectEachCounts(&NearestMiss::reason, &NearestMiss::node, &NearestMiss::device, &NearestMiss::needed,
                   &NearestMiss::available, &NearestMiss::unit, &NearestMiss::estimate, &NearestMiss::type);
  ExpectEachCounts(&D::job, &D::verdict, &D::reason, &D::slots, &D::effects, &D::own, &D::winner, &D::runner_up,
                   &D::has_runner_up, &D::spans_nodes, &D::cpu_only, &D::alternative, &D::relative_speed, &D::cpu_milli,
                   &D::mem_mib, &D::probe, &D::trial, &D::node_name, &D::refused_devices, &D::miss, &D::predicted_never,
                   &D::sm_cap_pct, &D::sm_cap_slowdown, &D::gpu_memory, &D::in_plan, &D::passed_by, &D::mode,
                   &D::mode_why, &D::mps_chosen, &D::mode_gains);
}

TEST(Equality, OfPlansReadsEveryField) {
  using M = Move;
  ExpectEachCounts(&SeenNode::node, &SeenNode::version);
  ExpectEachCounts(&HostHolding::cpu_milli, &HostHolding::mem_mib);
  ExpectEachCounts(&M::kind, &M::job, &M::from, &M::to, &M::gain, &M::cost, &M::host_from, &M::host_to);
}

TEST(Equality, OfRoundsReadsEveryField) {
  using R = SynergyRound;
  ExpectEachCounts(&SynergySlice::server, &SynergySlice::gpus);
  ExpectEachCounts(&SynergyGrant::slices, &SynergyGrant::share, &SynergyGrant::speed);
  ExpectEachCounts(&SynergyResize::resident, &SynergyResize::share);
  ExpectEachCounts(&R::grants, &R::resizes, &R::bound);
}

}  // namespace
}  // namespace horus
