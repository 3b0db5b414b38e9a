// SPDX-License-Identifier: Apache-2.0
// Interning of tenant classes and device states.
#include "place/state/device_states.h"

#include <algorithm>
#include <bit>

#include "base/hash.h"
#include "base/units.h"
#include "interference/slice.h"

namespace horus {
namespace {

uint64_t Bits(float value) { return std::bit_cast<uint32_t>(value == 0 ? 0.0f : value); }  // -0 equals 0

uint64_t Add(uint64_t seed, const Bounded& value) {
  return CombineHash(seed, Bits(value.estimate) << 32 | Bits(value.upper));
}

uint64_t Add(uint64_t seed, const BoundedInt& value) {
  return CombineHash(CombineHash(seed, static_cast<uint64_t>(value.estimate)), static_cast<uint64_t>(value.upper));
}

uint64_t DigestOf(const Demand& demand) {
  uint64_t digest = CombineHash(demand.profile_id, demand.flags);
  digest = Add(digest, demand.gpu_util_pct);
  digest = Add(digest, demand.mem_bw_util_pct);
  digest = Add(digest, demand.mem_mib);
  digest = Add(digest, demand.step_time_us);
  digest = Add(digest, demand.power_w);
  digest = CombineHash(digest, static_cast<uint64_t>(demand.gradient_mib));
  digest = CombineHash(digest, Bits(demand.distance) << 32 | Bits(demand.operator_us));
  for (size_t i = 0; i < kTraitCount; i += 2)
    digest = CombineHash(digest, Bits(demand.traits[i]) << 32 | Bits(demand.traits[i + 1]));
  return digest;
}
static_assert(kTraitCount % 2 == 0);

bool SameState(const DeviceRow& a, const DeviceRow& b) {
  return a.type == b.type && a.mode == b.mode && a.state == b.state && a.max_tenants == b.max_tenants &&
         a.mem_mib == b.mem_mib && a.compute_share == b.compute_share && a.tenants == b.tenants;
}

// The id of an equal entry under `digest` or, should another entry have the same digest, the next; the
// digest under which it is, or must be, is left in `digest`.
template <typename Find, typename Same>
uint32_t Probe(uint64_t& digest, const Find& find, const Same& same) {
  for (;; digest = Mix64(digest)) {
    const uint32_t id = find(digest);
    if (id == UINT32_MAX || same(id)) return id;
  }
}

uint32_t Look(const IdMap<uint32_t>& map, uint64_t digest) {
  const uint32_t* id = map.Find(digest);
  return id == nullptr ? UINT32_MAX : *id;
}

template <typename T>
uint32_t TakeRow(std::vector<T>& rows, std::vector<uint32_t>& refs, std::vector<uint32_t>& free) {
  if (!free.empty()) {
    const uint32_t row = free.back();
    free.pop_back();
    return row;
  }
  rows.emplace_back();
  refs.push_back(0);
  return static_cast<uint32_t>(rows.size() - 1);
}

}  // namespace

uint64_t KindBit(int32_t gpu_milli, int32_t gpus) {
  constexpr int32_t kLastBit = 63;
  if (gpu_milli < kMilliPerGpu) return 1;
  return uint64_t{1} << std::min(gpus, kLastBit);
}

double RelativeSpeed(const JobSpec& job, const Demand& demand) {
  const int64_t own = demand.step_time_us.estimate;
  if (own <= 0) return 1;
  int64_t fastest = own;
  for (const TypeDemand& entry : job.demands) {
    const int64_t step = entry.demand.step_time_us.estimate;
    if (step > 0) fastest = std::min(fastest, step);
  }
  return static_cast<double>(fastest) / static_cast<double>(own);
}

TenantClass MakeTenantClass(const JobSpec& job, const Demand& demand, bool alone) {
  const OwnBound bound = OwnBoundOf(job, demand);
  TenantClass tenant{.demand = demand,
                     .slowdown_bound = bound.slowdown,
                     .gpu_milli = job.gpu_milli,
                     .exclusive = job.exclusive || alone,
                     .gpus = GpuCount(job),
                     .distributed = job.tasks > 1,
                     .kind = job.kind,
                     .priority = job.priority,
                     .weight = job.weight,
                     .worth = job.weight * static_cast<float>(RelativeSpeed(job, demand)),
                     .memory = GpuMemoryOf(job, demand),
                     .late = bound.late};
  tenant.digest =
      CombineHash(DigestOf(demand), Bits(tenant.slowdown_bound) << 32 | static_cast<uint64_t>(tenant.gpu_milli) << 1 |
                                        uint64_t{tenant.exclusive});
  tenant.digest = CombineHash(tenant.digest, static_cast<uint64_t>(tenant.gpus));
  tenant.digest =
      CombineHash(tenant.digest, static_cast<uint64_t>(static_cast<uint32_t>(tenant.priority)) << 32 |
                                     static_cast<uint64_t>(tenant.kind) << 1 | uint64_t{tenant.distributed});
  // What most jobs do not state leaves the digest alone.
  if (tenant.weight != 1) tenant.digest = CombineHash(tenant.digest, Bits(tenant.weight));
  if (tenant.worth != tenant.weight) tenant.digest = CombineHash(tenant.digest, Bits(tenant.worth));
  if (tenant.memory != GpuMemory{demand.mem_mib.upper, demand.mem_mib.upper}) {
    tenant.digest = CombineHash(CombineHash(tenant.digest, static_cast<uint64_t>(tenant.memory.request_mib)),
                                static_cast<uint64_t>(tenant.memory.limit_mib));
  }
  if (tenant.late != LateAlone()) {
    tenant.digest = CombineHash(tenant.digest, Bits(tenant.late.bound_us) << 32 | Bits(tenant.late.p99_us));
  }
  return tenant;
}

bool SameTenant(const TenantClass& a, const TenantClass& b) {
  return a.demand == b.demand && a.slowdown_bound == b.slowdown_bound && a.gpu_milli == b.gpu_milli &&
         a.exclusive == b.exclusive && a.gpus == b.gpus && a.distributed == b.distributed && a.kind == b.kind &&
         a.priority == b.priority && a.weight == b.weight && a.worth == b.worth && a.memory == b.memory &&
         a.late == b.late;
}

uint32_t StateTable::InternTenant(const TenantClass& tenant) {
  uint64_t digest = tenant.digest;
  const uint32_t found = Probe(
      digest, [this](uint64_t wanted) { return Look(tenant_of_, wanted); },
      [&](uint32_t id) { return SameTenant(this->tenant(id), tenant); });
  if (found != UINT32_MAX) return found;
  ReserveTenant();
  const uint32_t row = TakeRow(tenants_, tenant_refs_, free_tenants_);
  tenants_[row] = tenant;
  tenants_[row].digest = digest;
  tenant_refs_[row] = 0;
  tenant_of_.Insert(digest, row);
  return row;
}

uint32_t StateTable::HoldTenant(const TenantClass& tenant) {
  const uint32_t id = InternTenant(tenant);
  ++tenant_refs_[id];
  return id;
}

void StateTable::DropTenant(uint32_t id) noexcept {
  if (--tenant_refs_[id] == 0) Discard(id);
}

void StateTable::Finish(DeviceRow& row) const {
  std::sort(row.tenants.begin(), row.tenants.end(),
            [this](uint32_t a, uint32_t b) { return tenant(a).digest < tenant(b).digest; });
  row.mem_used_upper_mib = row.mem_limit_mib = row.mem_used_mib = 0;
  row.milli_used = 0;
  row.exclusive_held = false;
  row.bounded = false;
  row.kinds = 0;
  row.util_pct = row.util_upper_pct = 0;
  uint64_t digest =
      CombineHash(row.type.value(), static_cast<uint64_t>(row.mode) << 8 | static_cast<uint64_t>(row.state));
  digest = CombineHash(digest, static_cast<uint64_t>(row.max_tenants));
  digest = CombineHash(digest, static_cast<uint64_t>(row.mem_mib));
  digest = CombineHash(digest, Bits(row.compute_share));
  for (const uint32_t id : row.tenants) {
    const TenantClass& one = tenant(id);
    row.mem_used_upper_mib += one.memory.request_mib;
    row.mem_limit_mib += one.memory.limit_mib;
    row.mem_used_mib += one.demand.mem_mib.estimate;
    row.milli_used += std::max(one.gpu_milli, 1);
    row.exclusive_held |= one.exclusive;
    row.bounded |= one.slowdown_bound > 0;
    row.kinds |= KindBit(one.gpu_milli, one.gpus);
    const auto share = static_cast<double>(row.compute_share);
    row.util_pct += SliceUtilPct(static_cast<double>(one.demand.gpu_util_pct.estimate), share);
    row.util_upper_pct += SliceUtilPct(static_cast<double>(one.demand.gpu_util_pct.upper), share);
    digest = CombineHash(digest, one.digest);
  }
  row.digest = digest != 0 ? digest : 1;  // 0 means none
}

uint32_t StateTable::InternState(DeviceRow row) {
  Finish(row);
  const uint32_t found = Probe(
      row.digest, [this](uint64_t wanted) { return Look(state_of_, wanted); },
      [&](uint32_t id) { return SameState(state(id), row); });
  if (found != UINT32_MAX) return found;
  ReserveState();
  const uint32_t at = TakeRow(states_, state_refs_, free_states_);
  for (const uint32_t id : row.tenants) {
    ++tenant_refs_[id];
  }
  state_of_.Insert(row.digest, at);
  digests_.resize(states_.size());
  digests_[at] = row.digest;
  states_[at] = std::move(row);
  state_refs_[at] = 0;
  return at;
}

uint32_t StateTable::WithTenant(uint32_t state_id, const TenantClass& tenant, uint32_t& tenant_id) {
  DeviceRow row = state(state_id);
  row.tenants.reserve(row.tenants.size() + 1);
  ReserveTenant();
  ReserveState();  // a class that no state holds would stay for ever
  tenant_id = InternTenant(tenant);
  row.tenants.push_back(tenant_id);
  return InternState(std::move(row));
}

uint32_t StateTable::WithoutTenant(uint32_t state_id, uint32_t tenant_id) {
  DeviceRow row = state(state_id);
  const auto at = std::find(row.tenants.begin(), row.tenants.end(), tenant_id);
  if (at != row.tenants.end()) row.tenants.erase(at);
  return InternState(std::move(row));
}

uint32_t StateTable::WithState(uint32_t state_id, AdminState admin) {
  DeviceRow row = state(state_id);
  row.state = admin;
  return InternState(std::move(row));
}

void StateTable::ReserveTenant() {
  ReserveMore(tenants_, 1);
  ReserveMore(tenant_refs_, 1);
  ReserveFree();
  tenant_of_.ReserveOne();
}

void StateTable::ReserveFree() {
  if (free_tenants_.capacity() < tenants_.capacity()) free_tenants_.reserve(tenants_.capacity());
  if (free_states_.capacity() < states_.capacity()) free_states_.reserve(states_.capacity());
}

void StateTable::ReserveState() {
  ReserveMore(states_, 1);
  ReserveMore(digests_, 1);
  ReserveMore(state_refs_, 1);
  ReserveFree();
  state_of_.ReserveOne();
}

void StateTable::Ref(uint32_t id) noexcept { ++state_refs_[id]; }

void StateTable::Unref(uint32_t id) noexcept {
  if (--state_refs_[id] > 0) return;
  DeviceRow& row = states_[id];
  state_of_.Erase(row.digest);
  for (const uint32_t tenant_id : row.tenants) {
    DropTenant(tenant_id);
  }
  row = DeviceRow();
  digests_[id] = 0;
  free_states_.push_back(id);
}

void StateTable::Discard(uint32_t id) noexcept {
  if (tenant_refs_[id] != 0) return;
  tenant_of_.Erase(tenants_[id].digest);
  tenants_[id] = TenantClass();
  free_tenants_.push_back(id);
}

uint64_t StateTable::bytes_held() const {
  return tenants_.capacity() * sizeof(TenantClass) + states_.capacity() * sizeof(DeviceRow) +
         digests_.capacity() * sizeof(uint64_t) +
         (tenant_refs_.capacity() + free_tenants_.capacity() + state_refs_.capacity() + free_states_.capacity()) *
             sizeof(uint32_t) +
         tenant_of_.bytes_held() + state_of_.bytes_held();
}

}  // namespace horus
