// SPDX-License-Identifier: Apache-2.0
// gandiva: packs at random when no device is idle, and never again what did less work together than one job alone.
#include <algorithm>
#include <array>
#include <utility>

#include "base/hash.h"
#include "base/seeded_hash.h"
#include "lab/policies/rivals.h"
#include "place/policies/tiers.h"

namespace horus {
namespace {

constexpr int kDoubleBits = 53;             // of a double's mantissa
constexpr double kWorthIt = 1.0;            // published: summed normalised throughput of one job alone
constexpr size_t kMostRemembered = 65'536;  // packs; a chosen limit, half a MiB

// Of a pack: GPU type, sharing mode and the profiles of its tenants, whatever their order; 0 where one has none.
uint64_t KeyOf(const DeviceContext& device, std::span<const Demand* const> tenants) {
  std::vector<uint64_t> profiles;
  profiles.reserve(tenants.size());
  for (const Demand* tenant : tenants) {
    if (tenant->profile_id == 0) return 0;
    profiles.push_back(tenant->profile_id);
  }
  std::sort(profiles.begin(), profiles.end());
  SecretHasher key;
  key.Add(device.type.value());
  key.Add(static_cast<uint64_t>(device.mode));
  for (const uint64_t profile : profiles) key.Add(profile);
  return key.Hash();
}

class GandivaPolicy final : public Policy {
 public:
  GandivaPolicy(uint64_t seed, std::vector<uint64_t> bad) : seed_(seed), bad_(std::move(bad)) {}
  std::string_view name() const override { return "gandiva"; }
  bool uses_place() const override { return true; }
  bool place_by_device() const override { return true; }

  absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const override {
    score = {.cost = TierOf(candidate), .declined = IsBad(candidate)};
    return absl::OkStatus();
  }

  double ScorePlace(const PlaceCandidate& place) const override {
    const uint64_t draw =
        CombineHash(CombineHash(CombineHash(seed_, place.job), place.node), static_cast<uint64_t>(place.device));
    return static_cast<double>(draw >> (64 - kDoubleBits)) / static_cast<double>(uint64_t{1} << kDoubleBits);
  }

  absl::StatusOr<Revision> Revise(const ObservedSharing& observed) const override {
    if (const absl::Status status = CheckObserved(observed); !status.ok()) return status;
    Revision revision;
    if (observed.demands.size() < 2) return revision;
    double sum = 0;
    for (const double throughput : observed.throughput) sum += throughput;
    revision.undo = sum < kWorthIt;
    const uint64_t key = KeyOf(observed.device, observed.demands);
    const auto at = std::lower_bound(bad_.begin(), bad_.end(), key);
    const bool known = at != bad_.end() && *at == key;
    if (key == 0 || known == revision.undo || (revision.undo && bad_.size() >= kMostRemembered)) return revision;
    std::vector<uint64_t> bad = bad_;
    const auto there = bad.begin() + (at - bad_.begin());
    if (revision.undo) {
      bad.insert(there, key);
    } else {
      bad.erase(there);  // what does well by now may be tried again
    }
    revision.policy = std::make_unique<GandivaPolicy>(seed_, std::move(bad));
    return revision;
  }

 private:
  // The pack as a whole, or the newcomer beside one of the residents.
  [[nodiscard]] bool IsBad(const DeviceCandidate& candidate) const {
    if (candidate.residents() == 0 || bad_.empty()) return false;
    const auto remembered = [&](std::span<const Demand* const> tenants) {
      const uint64_t key = KeyOf(candidate.device, tenants);
      return key != 0 && std::binary_search(bad_.begin(), bad_.end(), key);
    };
    if (remembered(candidate.demands)) return true;
    for (size_t i = 0; i < candidate.residents(); ++i) {
      const std::array<const Demand*, 2> pair = {candidate.demands[i], &candidate.newcomer()};
      if (remembered(pair)) return true;
    }
    return false;
  }

  uint64_t seed_;
  std::vector<uint64_t> bad_;  // keys of packs, ascending
};

}  // namespace

std::unique_ptr<Policy> MakeGandivaPolicy(const PolicyOptions& options) {
  return std::make_unique<GandivaPolicy>(options.seed, std::vector<uint64_t>());
}

}  // namespace horus
