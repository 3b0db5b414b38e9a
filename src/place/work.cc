// SPDX-License-Identifier: Apache-2.0
// The work of devices by the estimates, with the slowdowns of each state kept.
#include "place/work.h"

#include <algorithm>

#include "interference/laws.h"

namespace horus {

double SpeedAlone(const JobSpec& job, const DeviceRow& device) {
  if (job.demands.empty()) return 1;
  const Demand& demand = DemandOn(job, device.type);
  const double speed = RelativeSpeed(job, demand);
  if (device.compute_share == 1 || ServesAll(job, demand)) return speed;
  return speed * SliceSpeed(demand, static_cast<double>(device.compute_share));
}

void WorkMeter::Know(const JobSpec& job) { known_.FindOrInsert(job.id, &job) = &job; }

void WorkMeter::KnowAt(const JobSpec& job, std::span<const PlacedSlot> slots) {
  if (GpuCount(job) <= 1) return;
  known_at_.FindOrInsert(job.id, {}).assign(slots.begin(), slots.end());
}

const JobSpec* WorkMeter::SpecOf(JobId job) const {
  if (const JobSpec* const* known = known_.size() == 0 ? nullptr : known_.Find(job)) return *known;
  const uint32_t row = cluster_.rows().RowOfJob(job);
  return row == kNoRow ? nullptr : &cluster_.rows().RequestOf(cluster_.rows().jobs[row]);
}

absl::StatusOr<std::span<const float>> WorkMeter::Slowdowns(const Ledger& ledger, uint32_t device) {
  const DeviceRow& row = ledger.state(device);
  if (row.tenants.size() <= 1) {
    estimates_.assign(row.tenants.size(), 1.0f);
    return estimates_;
  }
  if (scorer_.keeps_residents()) {
    HORUS_RETURN_IF_ERROR(scorer_.Residents(ledger.states(), ledger.state_id(device), predicted_));
    estimates_.resize(predicted_.size());
    for (size_t i = 0; i < predicted_.size(); ++i) estimates_[i] = predicted_[i].estimate;
    return estimates_;
  }
  if (const uint32_t* at = memo_.Find(row.digest))
    return std::span<const float>(slowdowns_).subspan(*at, row.tenants.size());
  if (slowdowns_.size() + row.tenants.size() > most_kept_) {
    memo_.clear();
    slowdowns_.clear();
  }
  demands_.clear();
  for (const uint32_t tenant : row.tenants) demands_.push_back(&ledger.states().tenant(tenant).demand);
  predicted_.assign(demands_.size(), Slowdown());
  HORUS_RETURN_IF_ERROR(scorer_.model().Predict(ContextOf(row), std::span(demands_), predicted_));
  const auto first = static_cast<uint32_t>(slowdowns_.size());
  for (const Slowdown& one : predicted_) {
    if (!(one.estimate > 0)) {
      return MakeError(absl::StatusCode::kInternal, "interference model %s: expected a slowdown above 0, found %g",
                       std::string(scorer_.model().name()), one.estimate);
    }
    slowdowns_.push_back(one.estimate);
  }
  memo_.Insert(row.digest, first);
  return std::span<const float>(slowdowns_).subspan(first);
}

double WorkMeter::Share(const Ledger& ledger, uint32_t device, const LedgerResident& resident,
                        std::span<const float> slowdowns) const {
  const DeviceRow& row = ledger.state(device);
  const JobSpec* job = SpecOf(resident.job);
  const auto at = std::ranges::find(row.tenants, resident.tenant);
  if (job == nullptr || at == row.tenants.end()) return 0;  // cannot be: the resident is there
  const float slowdown = slowdowns[static_cast<size_t>(at - row.tenants.begin())];
  const TenantClass& tenant = ledger.states().tenant(*at);
  return WorkWeight(*job) * static_cast<double>(tenant.work_alone) * SpeedAlone(*job, row) /
         WorkSlowdown(tenant.demand, slowdown);
}

std::vector<uint32_t> WorkMeter::DevicesOf(const Ledger& ledger, JobId job) const {
  std::vector<uint32_t> devices;
  const auto add = [&](std::span<const PlacedSlot> slots) {
    for (const PlacedSlot& slot : slots) {
      if (slot.device == kNoDevice) continue;
      const uint32_t device = ledger.device_of(slot);
      const std::span<const LedgerResident> here = ledger.residents(device);
      if (std::ranges::any_of(here, [&](const LedgerResident& one) { return one.job == job; }))
        devices.push_back(device);
    }
  };
  if (const uint32_t row = cluster_.rows().RowOfJob(job); row != kNoRow) add(cluster_.rows().jobs[row].slots);
  if (const PlacedSlots* known = known_at_.Find(job)) add(*known);
  SortUnique(devices);
  return devices;
}

absl::StatusOr<WorkMeter::GangWork> WorkMeter::WorkOf(const Ledger& ledger, JobId job, std::optional<uint32_t> except) {
  GangWork work;
  for (const uint32_t device : DevicesOf(ledger, job)) {
    ++work.devices;
    if (device == except) continue;
    HORUS_ASSIGN_OR_RETURN(const std::span<const float> slowdowns, Slowdowns(ledger, device));
    for (const LedgerResident& one : ledger.residents(device)) {
      if (one.job == job) work.slowest = std::min(work.slowest, Share(ledger, device, one, slowdowns));
    }
  }
  return work;
}

absl::StatusOr<double> WorkMeter::OfJob(const Ledger& ledger, JobId job) {
  HORUS_ASSIGN_OR_RETURN(const GangWork of, WorkOf(ledger, job, std::nullopt));
  return of.devices == 0 ? 0 : static_cast<double>(of.devices) * of.slowest;
}

absl::StatusOr<double> WorkMeter::GainOf(const Ledger& ledger, uint32_t device, const JobSpec& job,
                                         const DeviceCandidate& candidate) {
  const DeviceRow& row = ledger.state(device);
  const auto work_alone = [&](size_t i) { return static_cast<double>(candidate.tenants[i]->work_alone); };
  const auto slowed = [&](size_t i, const Slowdown& slowdown) {
    return WorkSlowdown(candidate.tenants[i]->demand, slowdown.estimate);
  };
  double gain = WorkWeight(job) * work_alone(candidate.residents()) * candidate.relative_speed /
                slowed(candidate.residents(), candidate.after.back());
  for (const LedgerResident& resident : ledger.residents(device)) {
    const auto at = std::ranges::find(row.tenants, resident.tenant);
    const auto i = static_cast<size_t>(at - row.tenants.begin());
    const JobSpec* spec = SpecOf(resident.job);
    if (spec == nullptr || i >= candidate.residents()) continue;  // cannot be
    const double alone = WorkWeight(*spec) * work_alone(i) * SpeedAlone(*spec, row);
    GangWork others{.devices = 1};
    if (GpuCount(*spec) > 1) HORUS_SET_OR_RETURN(others, WorkOf(ledger, resident.job, device));
    gain += static_cast<double>(others.devices) * (std::min(others.slowest, alone / slowed(i, candidate.after[i])) -
                                                   std::min(others.slowest, alone / slowed(i, candidate.before[i])));
  }
  return gain;
}

absl::StatusOr<double> WorkMeter::OfSlots(const Ledger& ledger, std::span<const PlacedSlot> slots) {
  double work = 0;
  gangs_.clear();
  devices_.clear();
  for (const PlacedSlot& slot : slots) {
    if (slot.device != kNoDevice) devices_.push_back(ledger.device_of(slot));
  }
  SortUnique(devices_);
  for (const uint32_t device : devices_) {
    HORUS_ASSIGN_OR_RETURN(const std::span<const float> slowdowns, Slowdowns(ledger, device));
    for (const LedgerResident& one : ledger.residents(device)) {
      const JobSpec* spec = SpecOf(one.job);
      if (spec != nullptr && GpuCount(*spec) > 1) {
        gangs_.push_back(one.job);
      } else {
        work += Share(ledger, device, one, slowdowns);
      }
    }
  }
  SortUnique(gangs_);
  for (const JobId gang : gangs_) {
    HORUS_ASSIGN_OR_RETURN(const double one, OfJob(ledger, gang));
    work += one;
  }
  return work;
}

absl::StatusOr<double> WorkMeter::Book(Ledger& ledger, const JobSpec& job, std::span<const PlacedSlot> slots) {
  HORUS_ASSIGN_OR_RETURN(const double before, OfSlots(ledger, slots));
  KnowAt(job, slots);
  ledger.Place(job, slots);
  HORUS_ASSIGN_OR_RETURN(const double after, OfSlots(ledger, slots));
  return after - before;
}

absl::StatusOr<double> WorkMeter::OfAll(const Ledger& ledger) {
  double work = 0;
  std::vector<GangWork> gangs;
  IdMap<uint32_t> gang_of;  // by job
  for (const uint32_t row : ledger.order()) {
    const LedgerNode& node = ledger.node(row);
    for (uint32_t i = 0; i < node.spec->devices.size(); ++i) {
      HORUS_ASSIGN_OR_RETURN(const std::span<const float> slowdowns, Slowdowns(ledger, node.first_device + i));
      for (const LedgerResident& one : ledger.residents(node.first_device + i)) {
        const double share = Share(ledger, node.first_device + i, one, slowdowns);
        const JobSpec* spec = SpecOf(one.job);
        if (spec == nullptr || GpuCount(*spec) == 1) {
          work += share;
          continue;
        }
        const uint32_t at = gang_of.FindOrInsert(one.job, static_cast<uint32_t>(gangs.size()));
        if (at == gangs.size()) gangs.emplace_back();
        GangWork& gang = gangs[at];
        gang.slowest = std::min(gang.slowest, share);
        ++gang.devices;
      }
    }
  }
  for (const GangWork& gang : gangs) work += static_cast<double>(gang.devices) * gang.slowest;
  return work;
}

}  // namespace horus
