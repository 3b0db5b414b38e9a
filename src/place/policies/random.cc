// SPDX-License-Identifier: Apache-2.0
// random: each feasible device draws a lot from a hash of seed, job, node and device; the lowest wins.
#include "base/hash.h"
#include "place/policies/builtin.h"

namespace horus {
namespace {

constexpr int kDoubleBits = 53;  // of a double's mantissa

class RandomPolicy final : public Policy {
 public:
  explicit RandomPolicy(uint64_t seed) : seed_(seed) {}
  std::string_view name() const override { return "random"; }
  bool uses_place() const override { return true; }
  bool place_by_device() const override { return true; }

  absl::Status ScoreDevice(const DeviceCandidate& /*candidate*/, DeviceScore& score) const override {
    score = DeviceScore();
    return absl::OkStatus();
  }

  double ScorePlace(const PlaceCandidate& place) const override {
    const uint64_t draw =
        CombineHash(CombineHash(CombineHash(seed_, place.job), place.node), static_cast<uint64_t>(place.device));
    return static_cast<double>(draw >> (64 - kDoubleBits)) / static_cast<double>(uint64_t{1} << kDoubleBits);
  }

 private:
  uint64_t seed_;
};

}  // namespace

std::unique_ptr<Policy> MakeRandomPolicy(const PolicyOptions& options) {
  return std::make_unique<RandomPolicy>(options.seed);
}

}  // namespace horus
