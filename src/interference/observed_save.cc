// SPDX-License-Identifier: Apache-2.0
// Bytes of collected observations, the longest unseen first, and back.
#include <algorithm>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/status.h"
#include "interference/observed_slowdowns.h"
#include "interference/pair_set.h"

namespace horus {
namespace {

constexpr std::string_view kMagic = "HORUSSLO";
constexpr uint32_t kVersion = 1;
constexpr uint64_t kMostEpoch = uint64_t{1} << 62;
constexpr double kMostWeight = 1'000;  // of any running mean
constexpr double kMostLog = 10;        // of a slowdown within the limits, and more
constexpr size_t kMostNameBytes = 256;

void Write(const Demand& demand, ByteWriter& out) {
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
}

Demand ReadDemand(ByteReader& in) {
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
  return demand;
}

bool InRange(double value, double low, double high) { return value >= low && value <= high; }

bool Valid(const Situation& s) {
  bool valid = !s.gpu.empty() && s.gpu.size() <= kMostNameBytes && s.compute_share > 0 && s.compute_share <= 1 &&
               static_cast<size_t>(s.mode) < kSharingModes.size() && InRange(s.weight, 1, kMostWeight) &&
               InRange(s.mean, -kMostLog, kMostLog) && InRange(s.variance, 0, kMostLog * kMostLog);
  for (size_t i = 0; i < s.tenants.size() && valid; ++i) {
    valid = s.tenants[i].profile_id != 0 && ValidateDemand(s.tenants[i]).ok() &&
            (i < 2 || s.tenants[i - 1].profile_id <= s.tenants[i].profile_id);
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
  return InRange(c.weight, 0, kMostWeight) && InRange(c.bound_weight, 0, kMostWeight) && InRange(c.covered, 0, 1) &&
         InRange(c.error, 0, kMostMeasuredSlowdown) && InRange(c.bias, -1, kMostMeasuredSlowdown);
}

Situation ReadSituation(ByteReader& in) {
  Situation s;
  s.gpu = in.Text();
  s.mode = static_cast<SharingMode>(static_cast<uint8_t>(std::min<uint32_t>(in.U32(), 255)));
  s.compute_share = in.F32();
  const uint32_t tenants = in.U32();
  if (tenants < 2 || tenants > 1 + kMostCoTenants) return {};  // not valid
  for (uint32_t i = 0; i < tenants && in.ok(); ++i) s.tenants.push_back(ReadDemand(in));
  s.weight = in.F64();
  s.mean = in.F64();
  s.variance = in.F64();
  s.seen = in.U64();
  return s;
}

}  // namespace

std::string ObservedSlowdowns::Save() const {
  ByteWriter body;
  body.U64(capacity_);
  body.U64(epoch_);
  for (const double value :
       {calibration_.weight, calibration_.error, calibration_.bias, calibration_.covered, calibration_.bound_weight}) {
    body.F64(value);
  }
  body.U64(situations_.size());
  for (const size_t slot : situation_slots_.OldestFirst()) {
    const Situation& s = situations_[slot];
    body.Text(s.gpu);
    body.U32(static_cast<uint32_t>(s.mode));
    body.F32(s.compute_share);
    body.U32(static_cast<uint32_t>(s.tenants.size()));
    for (const Demand& tenant : s.tenants) Write(tenant, body);
    for (const double value : {s.weight, s.mean, s.variance}) body.F64(value);
    body.U64(s.seen);
  }
  body.U64(devices_.size());
  for (const size_t slot : device_slots_.OldestFirst()) {
    const DeviceRecord& d = devices_[slot];
    for (const uint64_t value : {d.device_id, d.profile_id, d.observations, d.seen}) body.U64(value);
    for (const double value : {d.slowdown, d.predicted, d.predicted_upper}) body.F64(value);
  }
  std::string bytes(kMagic);
  AppendLittleEndian(bytes, kVersion);
  AppendLittleEndian(bytes, Hash64(body.bytes()));
  return bytes + body.bytes();
}

absl::StatusOr<ObservedSlowdowns> ObservedSlowdowns::Restore(std::span<const uint8_t> bytes) {
  constexpr size_t kHeader = kMagic.size() + 4 + 8;
  const auto damaged = [](const char* what) { return MakeError(absl::StatusCode::kDataLoss, "slowdowns: %s", what); };
  if (bytes.size() < kHeader || !std::equal(kMagic.begin(), kMagic.end(), bytes.begin())) {
    return damaged("expected the bytes of saved slowdowns, found others");
  }
  ByteReader header(bytes.subspan(kMagic.size()));
  if (const uint32_t version = header.U32(); version != kVersion) {
    return MakeError(absl::StatusCode::kOutOfRange, "slowdowns: expected format %d, found %d", kVersion, version);
  }
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
    Situation situation = ReadSituation(in);
    if (!in.ok() || !Valid(situation) || situation.seen <= last || situation.seen > result.epoch_ || i >= capacity) {
      return damaged("a situation is not one that was saved");
    }
    last = situation.seen;
    const uint64_t key = KeyOf(situation);
    if (result.situation_slots_.Contains(key)) return damaged("a situation occurs twice");
    result.situation_slots_.Append(key);
    result.situations_.push_back(std::move(situation));
  }
  last = 0;
  const uint64_t devices = in.U64();
  for (uint64_t i = 0; i < devices && in.ok(); ++i) {
    DeviceRecord d;
    for (uint64_t* value : {&d.device_id, &d.profile_id, &d.observations, &d.seen}) *value = in.U64();
    for (double* value : {&d.slowdown, &d.predicted, &d.predicted_upper}) *value = in.F64();
    if (!in.ok() || !Valid(d) || d.seen <= last || d.seen > result.epoch_ || i >= capacity) {
      return damaged("a device's record is not one that was saved");
    }
    last = d.seen;
    if (result.device_slots_.Contains(KeyOf(d))) return damaged("a device's record occurs twice");
    result.device_slots_.Append(KeyOf(d));
    result.devices_.push_back(d);
  }
  if (!in.ok() || in.left() != 0) return damaged("expected as many entries as are announced");
  return result;
}

}  // namespace horus
