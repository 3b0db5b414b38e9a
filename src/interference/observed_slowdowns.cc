// SPDX-License-Identifier: Apache-2.0
// Collects observations: checks them, keeps robust means and the running calibration.
#include "interference/observed_slowdowns.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/seeded_hash.h"
#include "base/status.h"
#include "base/text.h"
#include "interference/pair_set.h"

namespace horus {
namespace {

constexpr double kMostWeight = 50;         // observations of one situation that count: older ones fade
constexpr double kMostCalibration = 1000;  // observations of all that count in the running calibration
constexpr double kLeastSpread = 0.05;      // of ln(slowdown): what repeats of one run differ by at least
constexpr double kCredible = 3;            // spreads from the mean beyond which a value counts as if it were there
constexpr double kFirstSpreads = 3;        // before a mean rests on so many values nothing is too far away

absl::Status CheckTenant(const Demand* demand, const char* who, size_t index) {
  if (demand == nullptr) return InvalidArgument("observation: %s[%d]: expected a demand, found NULL", who, index);
  if (demand->profile_id == 0)
    return InvalidArgument("observation: %s[%d].profile_id: expected one, found 0", who, index);
  return ValidateDemand(*demand);
}

absl::Status Check(const SlowdownObservation& o) {
  if (o.gpu.empty() || o.gpu.size() > 256)
    return InvalidArgument("observation: gpu: expected a name, found %s", Quoted(o.gpu));
  if (std::find(kSharingModes.begin(), kSharingModes.end(), o.mode) == kSharingModes.end()) {
    return InvalidArgument("observation: sharing_mode: expected a known mode, found %d", static_cast<int>(o.mode));
  }
  if (!(o.compute_share > 0 && o.compute_share <= 1)) {
    return InvalidArgument("observation: compute_share: expected above 0 and up to 1, found %g", o.compute_share);
  }
  if (o.others.empty() || o.others.size() > kMostCoTenants) {
    return InvalidArgument("observation: co-tenants: expected 1 to %d, found %d", kMostCoTenants, o.others.size());
  }
  HORUS_RETURN_IF_ERROR(CheckTenant(o.victim, "job", 0));
  for (size_t i = 0; i < o.others.size(); ++i) HORUS_RETURN_IF_ERROR(CheckTenant(o.others[i], "co_tenants", i));
  if (!(o.slowdown >= kLeastMeasuredSlowdown && o.slowdown <= kMostMeasuredSlowdown)) {
    return InvalidArgument("observation: slowdown: expected a ratio from %g to %g, found %g", kLeastMeasuredSlowdown,
                           kMostMeasuredSlowdown, o.slowdown);
  }
  const auto known = [](double value) {
    return value == 0 || (value >= 1 && value <= static_cast<double>(kMaxSlowdown));
  };
  if (!known(o.predicted))
    return InvalidArgument("observation: predicted: expected 0 or at least 1, found %g", o.predicted);
  if (!known(o.predicted_upper) || (o.predicted_upper != 0 && o.predicted_upper < o.predicted)) {
    return InvalidArgument("observation: predicted_upper: expected 0 or at least predicted (%g), found %g", o.predicted,
                           o.predicted_upper);
  }
  return absl::OkStatus();
}

void Update(Situation& situation, double value) {
  if (situation.weight >= kFirstSpreads) {
    const double spread = kCredible * std::max(std::sqrt(situation.variance), kLeastSpread);
    value = std::clamp(value, situation.mean - spread, situation.mean + spread);
  }
  const double weight = std::min(situation.weight + 1, kMostWeight);
  const double step = value - situation.mean;
  situation.mean += step / weight;
  situation.variance += ((1 - 1 / weight) * step * step - situation.variance) / weight;
  situation.weight = weight;
}

}  // namespace

uint64_t ObservedSlowdowns::KeyOf(const Situation& s) {
  SecretHasher key;
  key.Add(s.gpu);
  key.Add(static_cast<uint64_t>(s.mode));
  key.Add(uint64_t{std::bit_cast<uint32_t>(s.compute_share)});
  for (const Demand& tenant : s.tenants) key.Add(tenant.profile_id);
  return key.Hash();
}

uint64_t ObservedSlowdowns::KeyOf(const DeviceRecord& record) {
  SecretHasher key;
  key.Add(record.device_id);
  key.Add(record.profile_id);
  return key.Hash();
}

ObservedSlowdowns::ObservedSlowdowns(size_t capacity) : capacity_(std::clamp<size_t>(capacity, 1, kMostCapacity)) {}

absl::Status ObservedSlowdowns::Add(const SlowdownObservation& o) {
  HORUS_RETURN_IF_ERROR(Check(o));
  std::array<const Demand*, kMostCoTenants> sorted = {};
  std::copy(o.others.begin(), o.others.end(), sorted.begin());
  const std::span<const Demand*> others(sorted.data(), o.others.size());
  std::sort(others.begin(), others.end(),
            [](const Demand* a, const Demand* b) { return a->profile_id < b->profile_id; });

  // All that can fail comes first.
  Situation next{.gpu = std::string(o.gpu), .mode = o.mode, .compute_share = o.compute_share, .tenants = {*o.victim}};
  for (const Demand* other : others) next.tenants.push_back(*other);
  ReserveMore(situations_, 1);
  ReserveMore(devices_, 1);
  situation_slots_.ReserveOne();
  device_slots_.ReserveOne();

  next.seen = ++epoch_;
  bool fresh = false;
  const size_t slot = situation_slots_.Touch(KeyOf(next), capacity_, fresh);
  if (slot == situations_.size()) situations_.emplace_back();
  Situation& situation = situations_[slot];
  if (!fresh)
    std::tie(next.weight, next.mean, next.variance) = std::tie(situation.weight, situation.mean, situation.variance);
  Update(next, std::log(o.slowdown));
  situation = std::move(next);
  Follow(o);
  return absl::OkStatus();
}

void ObservedSlowdowns::Follow(const SlowdownObservation& o) {
  if (o.predicted > 0) {
    const double error = o.slowdown / o.predicted - 1;
    calibration_.weight = std::min(calibration_.weight + 1, kMostCalibration);
    calibration_.error += (std::abs(error) - calibration_.error) / calibration_.weight;
    calibration_.bias += (error - calibration_.bias) / calibration_.weight;
  }
  if (o.predicted_upper > 0) {
    calibration_.bound_weight = std::min(calibration_.bound_weight + 1, kMostCalibration);
    calibration_.covered +=
        ((o.slowdown <= o.predicted_upper ? 1 : 0) - calibration_.covered) / calibration_.bound_weight;
  }
  if (o.device_id == 0) return;
  bool fresh = false;
  DeviceRecord record{.device_id = o.device_id,
                      .profile_id = o.victim->profile_id,
                      .slowdown = o.slowdown,
                      .predicted = o.predicted,
                      .predicted_upper = o.predicted_upper,
                      .observations = 1,
                      .seen = epoch_};
  const size_t slot = device_slots_.Touch(KeyOf(record), capacity_, fresh);
  if (slot == devices_.size()) devices_.emplace_back();
  if (!fresh) record.observations += devices_[slot].observations;
  devices_[slot] = record;
}

std::vector<DeviceRecord> ObservedSlowdowns::DevicesOldestFirst() const {
  std::vector<DeviceRecord> records;
  for (const size_t slot : device_slots_.OldestFirst()) records.push_back(devices_[slot]);
  return records;
}

size_t ObservedSlowdowns::bytes_held() const {
  size_t bytes = sizeof(*this) + situations_.capacity() * sizeof(Situation) +
                 devices_.capacity() * sizeof(DeviceRecord) + situation_slots_.bytes_held() +
                 device_slots_.bytes_held();
  for (const Situation& situation : situations_) {
    bytes += situation.gpu.capacity() + situation.tenants.capacity() * sizeof(Demand);
  }
  return bytes;
}

void ObservedSlowdowns::Slots::ReserveOne() {
  ReserveMore(links_, 1);
  slot_of_.ReserveOne();
}

size_t ObservedSlowdowns::Slots::Touch(uint64_t key, size_t capacity, bool& fresh) {
  const size_t* known = slot_of_.Find(key);
  fresh = known == nullptr;
  if (!fresh) {
    const size_t slot = *known;
    Unlink(slot);
    MakeNewest(slot);
    return slot;
  }
  if (links_.size() < capacity) {
    Append(key);
    return links_.size() - 1;
  }
  const size_t slot = oldest_;
  slot_of_.Erase(links_[slot].key);
  Unlink(slot);
  links_[slot].key = key;
  slot_of_.Insert(key, slot);
  MakeNewest(slot);
  return slot;
}

void ObservedSlowdowns::Slots::Append(uint64_t key) {
  slot_of_.Insert(key, links_.size());
  links_.push_back({key, kNone, kNone});
  MakeNewest(links_.size() - 1);
}

void ObservedSlowdowns::Slots::Unlink(size_t slot) {
  const Link& link = links_[slot];
  (link.older == kNone ? oldest_ : links_[link.older].newer) = link.newer;
  (link.newer == kNone ? newest_ : links_[link.newer].older) = link.older;
}

void ObservedSlowdowns::Slots::MakeNewest(size_t slot) {
  links_[slot].older = newest_;
  links_[slot].newer = kNone;
  (newest_ == kNone ? oldest_ : links_[newest_].newer) = slot;
  newest_ = slot;
}

std::vector<size_t> ObservedSlowdowns::Slots::OldestFirst() const {
  std::vector<size_t> slots;
  for (size_t slot = oldest_; slot != kNone; slot = links_[slot].newer) slots.push_back(slot);
  return slots;
}

size_t ObservedSlowdowns::Slots::bytes_held() const { return links_.capacity() * sizeof(Link) + slot_of_.bytes_held(); }

}  // namespace horus
