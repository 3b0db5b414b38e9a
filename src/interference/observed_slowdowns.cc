// SPDX-License-Identifier: Apache-2.0
// Collects observations: checks them, keeps robust means and the running calibration.
#include "interference/observed_slowdowns.h"

#include <bit>
#include <tuple>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/seeded_hash.h"
#include "base/status.h"
#include "base/text.h"
#include "interference/pair_model.h"

namespace horus {
namespace {

constexpr double kMostRemembered = 50;     // observations of one situation that count: older ones fade
constexpr double kMostCalibration = 1000;  // observations of all that count in the running calibration
constexpr double kLeastNoise = 0.05;       // of ln(slowdown): what repeats of one run differ by at least
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
  if (!IsModelled(o.mode))
    return InvalidArgument("observation: sharing_mode: expected a known mode, found %d", static_cast<int>(o.mode));
  if (!(o.compute_share > 0 && o.compute_share <= 1))
    return InvalidArgument("observation: compute_share: expected above 0 and up to 1, found %g", o.compute_share);
  if (o.others.empty() || o.others.size() > kMostCoTenants)
    return InvalidArgument("observation: co-tenants: expected 1 to %d, found %d", kMostCoTenants, o.others.size());
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
    const double spread = kCredible * std::max(std::sqrt(situation.variance), kLeastNoise);
    value = std::clamp(value, situation.mean - spread, situation.mean + spread);
  }
  const double weight = std::min(situation.weight + 1, kMostRemembered);
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
  for (const Demand& tenant : s.tenants) key.Add(ProfileAsRun(tenant));
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
  std::ranges::sort(others, {}, [](const Demand* other) { return ProfileAsRun(*other); });

  // All that can fail comes first.
  Situation next{.gpu = std::string(o.gpu), .mode = o.mode, .compute_share = o.compute_share, .tenants = {*o.victim}};
  for (const Demand* other : others) next.tenants.push_back(*other);
  Table<Situation>::Node room = situations_.Reserve();
  Table<DeviceRecord>::Node device_room = devices_.Reserve();

  next.seen = ++epoch_;
  Situation& situation = situations_.Touch(KeyOf(next), epoch_, capacity_, std::move(room));
  std::tie(next.weight, next.mean, next.variance) = std::tie(situation.weight, situation.mean, situation.variance);
  Update(next, std::log(o.slowdown));
  situation = std::move(next);
  Follow(o, std::move(device_room));
  return absl::OkStatus();
}

void ObservedSlowdowns::Follow(const SlowdownObservation& o, Table<DeviceRecord>::Node node) {
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
  DeviceRecord record{.device_id = o.device_id,
                      .profile_id = ProfileAsRun(*o.victim),
                      .slowdown = o.slowdown,
                      .predicted = o.predicted,
                      .predicted_upper = o.predicted_upper,
                      .observations = 1,
                      .seen = epoch_};
  DeviceRecord& kept = devices_.Touch(KeyOf(record), epoch_, capacity_, std::move(node));
  record.observations += kept.observations;
  kept = record;
}

std::vector<DeviceRecord> ObservedSlowdowns::DevicesOldestFirst() const {
  std::vector<DeviceRecord> records;
  for (const auto& [age, record] : devices_.by_age) records.push_back(record);
  return records;
}

size_t ObservedSlowdowns::bytes_held() const {
  size_t bytes = sizeof(*this) + situations_.bytes_held() + devices_.bytes_held();
  for (const auto& [age, situation] : situations_.by_age)
    bytes += situation.gpu.capacity() + situation.tenants.capacity() * sizeof(Demand);
  return bytes;
}

// Bytes of collected observations, the longest unseen first, and back.
namespace {

constexpr std::string_view kMagic = "HORUSSLO";
constexpr uint32_t kVersion = 2;  // 1 where no tenant is capped
constexpr uint64_t kMostEpoch = uint64_t{1} << 62;
constexpr double kMostSavedWeight = 1'000;  // of any running mean
constexpr double kMostLog = 10;             // of a slowdown within the limits, and more
constexpr size_t kMostNameBytes = 256;

void Write(const Demand& demand, uint32_t version, ByteWriter& out) {
  out.U64(demand.profile_id);
  for (const Bounded& b : {demand.gpu_util_pct, demand.mem_bw_util_pct, demand.power_w}) {
    out.F32(b.estimate);
    out.F32(b.upper);
  }
  for (const BoundedInt& b : {demand.mem_mib, demand.step_time_us}) {
    out.U64(static_cast<uint64_t>(b.estimate));
    out.U64(static_cast<uint64_t>(b.upper));
  }
  out.U64(static_cast<uint64_t>(demand.gradient_mib));
  out.U32(demand.flags);
  out.F32(demand.distance);
  out.F32(demand.operator_us);
  for (const float trait : demand.traits) out.F32(trait);
  if (version > 1) out.F32(demand.sm_cap);
}

Demand ReadDemand(ByteReader& in, uint32_t version) {
  Demand demand{.profile_id = in.U64()};
  for (Bounded* b : {&demand.gpu_util_pct, &demand.mem_bw_util_pct, &demand.power_w}) {
    b->estimate = in.F32();
    b->upper = in.F32();
  }
  for (BoundedInt* b : {&demand.mem_mib, &demand.step_time_us}) {
    b->estimate = static_cast<int64_t>(in.U64());
    b->upper = static_cast<int64_t>(in.U64());
  }
  demand.gradient_mib = static_cast<int64_t>(in.U64());
  demand.flags = in.U32();
  demand.distance = in.F32();
  demand.operator_us = in.F32();
  for (float& trait : demand.traits) trait = in.F32();
  if (version > 1) demand.sm_cap = in.F32();
  return demand;
}

bool InRange(double value, double low, double high) { return value >= low && value <= high; }

bool Valid(const Situation& s) {
  bool valid = !s.gpu.empty() && s.gpu.size() <= kMostNameBytes && s.compute_share > 0 && s.compute_share <= 1 &&
               static_cast<size_t>(s.mode) < kSharingModes.size() && InRange(s.weight, 1, kMostSavedWeight) &&
               InRange(s.mean, -kMostLog, kMostLog) && InRange(s.variance, 0, kMostLog * kMostLog);
  for (size_t i = 0; i < s.tenants.size() && valid; ++i) {
    valid = s.tenants[i].profile_id != 0 && ValidateDemand(s.tenants[i]).ok() &&
            (i < 2 || ProfileAsRun(s.tenants[i - 1]) <= ProfileAsRun(s.tenants[i]));
  }
  return valid;
}

bool Valid(const DeviceRecord& d) {
  const auto known = [](double value) { return value == 0 || InRange(value, 1, static_cast<double>(kMaxSlowdown)); };
  return d.device_id != 0 && d.profile_id != 0 && d.observations >= 1 && d.observations <= d.seen &&
         known(d.predicted) && InRange(d.slowdown, kLeastMeasuredSlowdown, kMostMeasuredSlowdown) &&
         known(d.predicted_upper);
}

bool Valid(const RunningCalibration& c) {
  return InRange(c.weight, 0, kMostSavedWeight) && InRange(c.bound_weight, 0, kMostSavedWeight) &&
         InRange(c.covered, 0, 1) && InRange(c.error, 0, kMostMeasuredSlowdown) &&
         InRange(c.bias, -1, kMostMeasuredSlowdown);
}

Situation ReadSituation(ByteReader& in, uint32_t version) {
  Situation s;
  s.gpu = in.Text();
  s.mode = static_cast<SharingMode>(static_cast<uint8_t>(std::min<uint32_t>(in.U32(), 255)));
  s.compute_share = in.F32();
  const uint32_t tenants = in.U32();
  if (tenants < 2 || tenants > 1 + kMostCoTenants) return {};  // not valid
  for (uint32_t i = 0; i < tenants && in.ok(); ++i) s.tenants.push_back(ReadDemand(in, version));
  s.weight = in.F64();
  s.mean = in.F64();
  s.variance = in.F64();
  s.seen = in.U64();
  return s;
}

// The oldest format that says it all, so that an older library reads what has no caps.
uint32_t FormatOf(const auto& situations) {
  const auto capped = [](const auto& one) {
    return std::ranges::any_of(one.second.tenants, [](const Demand& tenant) { return tenant.sm_cap < 1; });
  };
  return std::ranges::any_of(situations, capped) ? kVersion : 1;
}

}  // namespace

std::string ObservedSlowdowns::Save() const {
  const uint32_t version = FormatOf(situations_.by_age);
  ByteWriter body;
  body.U64(capacity_);
  body.U64(epoch_);
  for (const double value :
       {calibration_.weight, calibration_.error, calibration_.bias, calibration_.covered, calibration_.bound_weight}) {
    body.F64(value);
  }
  body.U64(situations_.by_age.size());
  for (const auto& [age, s] : situations_.by_age) {
    body.Text(s.gpu);
    body.U32(static_cast<uint32_t>(s.mode));
    body.F32(s.compute_share);
    body.U32(static_cast<uint32_t>(s.tenants.size()));
    for (const Demand& tenant : s.tenants) Write(tenant, version, body);
    for (const double value : {s.weight, s.mean, s.variance}) body.F64(value);
    body.U64(s.seen);
  }
  body.U64(devices_.by_age.size());
  for (const auto& [age, d] : devices_.by_age) {
    for (const uint64_t value : {d.device_id, d.profile_id, d.observations, d.seen}) body.U64(value);
    for (const double value : {d.slowdown, d.predicted, d.predicted_upper}) body.F64(value);
  }
  std::string bytes(kMagic);
  AppendLittleEndian(bytes, version);
  AppendLittleEndian(bytes, Hash64(body.bytes()));
  return bytes + body.bytes();
}

absl::StatusOr<ObservedSlowdowns> ObservedSlowdowns::Restore(std::span<const uint8_t> bytes) {
  constexpr size_t kHeader = kMagic.size() + 4 + 8;
  const auto damaged = [](const char* what) { return MakeError(absl::StatusCode::kDataLoss, "slowdowns: %s", what); };
  if (bytes.size() < kHeader || !std::equal(kMagic.begin(), kMagic.end(), bytes.begin()))
    return damaged("expected the bytes of saved slowdowns, found others");
  ByteReader header(bytes.subspan(kMagic.size()));
  const uint32_t version = header.U32();
  if (version < 1 || version > kVersion)
    return MakeError(absl::StatusCode::kOutOfRange, "slowdowns: expected format 1 to %d, found %d", kVersion, version);
  const std::span<const uint8_t> body = bytes.subspan(kHeader);
  if (header.U64() != Hash64(body.data(), body.size())) return damaged("the checksum does not fit the bytes");
  ByteReader in(body);
  const uint64_t capacity = in.U64();
  if (capacity < 1 || capacity > kMostCapacity) return damaged("expected a capacity within the limits");
  ObservedSlowdowns result(capacity);
  result.epoch_ = in.U64();
  RunningCalibration& c = result.calibration_;
  for (double* value : {&c.weight, &c.error, &c.bias, &c.covered, &c.bound_weight}) *value = in.F64();
  if (result.epoch_ > kMostEpoch || !Valid(c)) return damaged("expected counts and a calibration within the limits");

  uint64_t last = 0;  // entries come in the order in which they were seen, so that equal observations have equal bytes
  const uint64_t situations = in.U64();
  for (uint64_t i = 0; i < situations && in.ok(); ++i) {
    Situation situation = ReadSituation(in, version);
    if (!in.ok() || !Valid(situation) || situation.seen <= last || situation.seen > result.epoch_ || i >= capacity)
      return damaged("a situation is not one that was saved");
    last = situation.seen;
    if (!result.situations_.Append(KeyOf(situation), last, situation)) return damaged("a situation occurs twice");
  }
  last = 0;
  const uint64_t devices = in.U64();
  for (uint64_t i = 0; i < devices && in.ok(); ++i) {
    DeviceRecord d;
    for (uint64_t* value : {&d.device_id, &d.profile_id, &d.observations, &d.seen}) *value = in.U64();
    for (double* value : {&d.slowdown, &d.predicted, &d.predicted_upper}) *value = in.F64();
    if (!in.ok() || !Valid(d) || d.seen <= last || d.seen > result.epoch_ || i >= capacity)
      return damaged("a device's record is not one that was saved");
    last = d.seen;
    if (!result.devices_.Append(KeyOf(d), last, d)) return damaged("a device's record occurs twice");
  }
  if (!in.ok() || in.left() != 0) return damaged("expected as many entries as are announced");
  if (version != FormatOf(result.situations_.by_age)) return damaged("expected format 1, for no tenant is capped");
  return result;
}

}  // namespace horus
