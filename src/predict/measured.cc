// SPDX-License-Identifier: Apache-2.0
// Keeps what was measured, and puts it in the place of what was predicted.
#include "predict/measured.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/status.h"

namespace horus {
namespace {

constexpr double kMostWeight = 100;  // observations; older ones fade by one in a hundred each
// What one observation leaves open: repeated runs of one job differ by 5-10 %, the caching allocator by a segment or
// two.
constexpr double kTimeNoise = 0.10;
constexpr double kMemoryNoise = 0.05;
constexpr double kTwoSigma = 2;
constexpr double kMostPct = 100;
constexpr size_t kMostNameBytes = 256;
constexpr std::string_view kMagic = "HORUSOBS";
constexpr uint32_t kVersion = 1;
constexpr uint64_t kMostEpoch = uint64_t{1} << 62;

struct Limit {
  const char* name;
  const char* unit;
  double most;
  bool zero_allowed;
};
constexpr std::array<Limit, 4> kLimits = {{{"gpu_util_pct", "per cent", kMostPct, true},
                                           {"mem_bw_util_pct", "per cent", kMostPct, true},
                                           {"mem_mib", "MiB", kMostMemMib, false},
                                           {"step_time_us", "us", kMostStepUs, false}}};
constexpr size_t kMemory = 2;  // a peak: the largest one seen counts, for ever

std::array<std::optional<double>, 4> Values(const DemandObservation& o) {
  return {o.gpu_util_pct, o.mem_bw_util_pct, o.mem_mib, o.step_time_us};
}

// Above the mean by the noise of a single run and by the doubt that is left of the mean itself.
double UpperOf(const RunningMean& seen, double noise) {
  const double sigma = std::max(noise * seen.mean, std::sqrt(seen.variance));
  return std::max(seen.largest, seen.mean + kTwoSigma * sigma / std::sqrt(seen.weight) + sigma);
}

}  // namespace

void RunningMean::Add(double value, bool largest_fades) {
  weight = std::min(weight + 1, kMostWeight);
  const double share = 1 / weight, before = value - mean;
  mean += share * before;
  variance = (1 - share) * (variance + share * before * before);
  const bool fades = largest_fades && weight >= kMostWeight;
  largest = std::max(value, fades ? largest - share * (largest - mean) : largest);
}

absl::Status MeasuredDemands::Add(uint64_t profile_id, std::string_view gpu_type,
                                  const DemandObservation& observation) {
  if (profile_id == 0) return InvalidArgument("observation: profile_id: expected one that is not 0, found 0");
  if (gpu_type.empty() || gpu_type.size() > kMostNameBytes)
    return InvalidArgument("observation: gpu_type: expected 1 to %d bytes, found %d", kMostNameBytes, gpu_type.size());
  const auto values = Values(observation);
  bool any = false;
  for (size_t i = 0; i < kQuantities; ++i) {
    if (!values[i].has_value()) continue;
    any = true;
    const bool positive = kLimits[i].zero_allowed ? *values[i] >= 0 : *values[i] > 0;  // false for NaN
    if (positive && *values[i] <= kLimits[i].most) continue;
    return InvalidArgument("observation: %s: expected %s 0 to %g %s, found %g", kLimits[i].name,
                           kLimits[i].zero_allowed ? "from" : "above", kLimits[i].most, kLimits[i].unit, *values[i]);
  }
  if (!any) return InvalidArgument("observation: expected at least one measured quantity, found none");
  Key key(profile_id, gpu_type);
  const auto [at, is_new] = entries_.try_emplace(key);
  try {
    by_age_.emplace(epoch_ + 1, std::move(key));
  } catch (...) {  // no memory: as if nothing had been said
    if (is_new) entries_.erase(at);
    throw;
  }
  Entry& entry = at->second;
  if (entry.seen != 0) by_age_.erase(entry.seen);
  entry.seen = ++epoch_;
  for (size_t i = 0; i < kQuantities; ++i) {
    if (values[i].has_value()) entry.quantities[i].Add(*values[i], i != kMemory);
  }
  Forget();
  return absl::OkStatus();
}

void MeasuredDemands::Forget() {
  while (entries_.size() > std::max<size_t>(1, capacity_)) {
    entries_.erase(by_age_.begin()->second);
    by_age_.erase(by_age_.begin());
  }
}

Demand MeasuredDemands::Apply(std::string_view gpu_type, Demand demand) const {
  if (entries_.empty()) return demand;
  const auto found = entries_.find(Key(demand.profile_id, gpu_type));
  if (found == entries_.end()) return demand;
  const auto& [util, bandwidth, memory, step] = found->second.quantities;
  const auto percent = [](const RunningMean& seen) {
    return BoundedOf(seen.mean, UpperOf(seen, kTimeNoise), kMostPct);
  };
  if (util.weight > 0) {
    demand.gpu_util_pct = percent(util);
    ForgetDeviceShare(demand);
  }
  if (bandwidth.weight > 0) demand.mem_bw_util_pct = percent(bandwidth);
  // Memory is a peak: the largest one seen counts.
  if (memory.weight > 0)
    demand.mem_mib = BoundedIntOf(memory.largest, memory.largest * (1 + kMemoryNoise), kMostMemMib);
  if (step.weight > 0) demand.step_time_us = BoundedIntOf(step.mean, UpperOf(step, kTimeNoise), kMostStepUs);
  demand.flags |= kDemandMeasured;
  if (memory.weight > 0 && step.weight > 0) demand.flags &= ~static_cast<uint32_t>(kDemandPredicted | kDemandTooLarge);
  const bool all = util.weight > 0 && bandwidth.weight > 0 && memory.weight > 0 && step.weight > 0;
  if (all) {
    demand.flags &= ~static_cast<uint32_t>(kDemandOutside | kDemandUncalibrated);
    demand.distance = 0;
  }
  return demand;
}

int64_t MeasuredDemands::bytes_held() const {
  constexpr size_t kMapNode = 48;  // of a red-black tree, with its allocation
  size_t bytes = sizeof(MeasuredDemands);
  for (const auto& [key, entry] : entries_)
    bytes += 2 * (kMapNode + sizeof(Key) + key.second.capacity()) + sizeof(entry) + sizeof(uint64_t);
  return static_cast<int64_t>(bytes);
}

std::string MeasuredDemands::Save() const {
  ByteWriter body;
  body.U64(capacity_);
  body.U64(epoch_);
  body.U64(entries_.size());
  for (const auto& [key, entry] : entries_) {
    body.U64(key.first);
    body.Text(key.second);
    body.U64(entry.seen);
    for (const RunningMean& mean : entry.quantities) {
      for (const double value : {mean.weight, mean.mean, mean.variance, mean.largest}) body.F64(value);
    }
  }
  std::string bytes(kMagic);
  AppendLittleEndian(bytes, kVersion);
  AppendLittleEndian(bytes, Hash64(body.bytes()));
  return bytes + body.bytes();
}

absl::StatusOr<MeasuredDemands> MeasuredDemands::Restore(std::span<const uint8_t> bytes) {
  constexpr size_t kVersionAt = kMagic.size(), kHashAt = kVersionAt + 4, kHeader = kHashAt + 8;
  const auto damaged = [](const char* what) { return DataLoss("observations: %s", what); };
  if (bytes.size() < kHeader || !std::equal(kMagic.begin(), kMagic.end(), bytes.begin()))
    return damaged("expected the bytes of saved observations, found others");
  ByteReader header(bytes.subspan(kVersionAt));
  if (const uint32_t version = header.U32(); version != kVersion)
    return MakeError(absl::StatusCode::kOutOfRange, "observations: expected format %d, found %d", kVersion, version);
  const std::span<const uint8_t> body = bytes.subspan(kHeader);
  if (header.U64() != Hash64(body.data(), body.size())) return damaged("the checksum does not fit the bytes");
  ByteReader in(body);
  const uint64_t capacity = in.U64();
  if (capacity > kMostCapacity) return damaged("expected a capacity within the limits");
  MeasuredDemands result(capacity);
  result.epoch_ = in.U64();
  if (result.epoch_ > kMostEpoch) return damaged("expected fewer than 2^62 observations");
  const uint64_t count = in.U64();
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    const uint64_t profile = in.U64();
    std::string gpu(in.Text());
    Entry entry{.seen = in.U64()};
    bool valid =
        profile != 0 && !gpu.empty() && gpu.size() <= kMostNameBytes && entry.seen >= 1 && entry.seen <= result.epoch_;
    // In the order in which they are saved, so that equal observations have equal bytes.
    valid = valid && (result.entries_.empty() || result.entries_.rbegin()->first < Key(profile, gpu));
    for (size_t q = 0; q < kQuantities; ++q) {
      RunningMean& mean = entry.quantities[q];
      for (double* value : {&mean.weight, &mean.mean, &mean.variance, &mean.largest}) *value = in.F64();
      const double most = kLimits[q].most;
      valid = valid && mean.weight >= 0 && mean.weight <= kMostWeight && mean.mean >= 0 && mean.mean <= most &&
              mean.variance >= 0 && mean.variance <= most * most && mean.largest >= 0 && mean.largest <= most;
    }
    if (!valid || !in.ok()) return damaged("an entry is not one that was saved");
    if (!result.by_age_.emplace(entry.seen, Key(profile, gpu)).second ||
        !result.entries_.emplace(Key(profile, gpu), entry).second) {
      return damaged("an entry occurs twice");
    }
  }
  if (!in.ok() || in.left() != 0 || result.entries_.size() != count || count > std::max<size_t>(1, result.capacity_))
    return damaged("expected as many entries as are announced");
  return result;
}

}  // namespace horus
