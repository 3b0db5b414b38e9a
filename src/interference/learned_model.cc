// SPDX-License-Identifier: Apache-2.0
// Looks up the device, asks the kind for every two tenants, bounds and combines what it says.
#include "interference/learned_model.h"

#include "absl/container/inlined_vector.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/text.h"

namespace horus {
namespace {

constexpr size_t kUsualTenants = 4;  // that need no allocation

constexpr char kLearned[] = "interference";

absl::StatusOr<const BundleTarget*> TargetOf(const Bundle& bundle, std::string_view kind) {
  if (const BundleTarget* target = bundle.FindTarget(kind); target != nullptr) return target;
  std::vector<std::string_view> names;
  for (const BundleTarget& target : bundle.targets) names.push_back(target.name);
  return MakeError(absl::StatusCode::kNotFound, "interference model: %s", ExpectedOneOf(names, kind));
}

using Numbers = absl::InlinedVector<double, kUsualTenants>;

// What each needs of the device, which may be a slice.
Numbers WorksOn(const DeviceContext& device, std::span<const Demand* const> tenants) {
  const double growth = 1 / SliceShare(static_cast<double>(device.compute_share));
  Numbers works;
  for (const Demand* tenant : tenants) {
    const double work = WorkShare(*tenant);
    works.push_back(work * growth / Stretched(work, growth));
  }
  return works;
}

bool IsCapped(const Demand* tenant) { return tenant->sm_cap < 1; }
bool CappedPair(const DeviceContext& device, const Demand& one, const Demand& other) {
  return device.mode == SharingMode::kMps && (IsCapped(&one) || IsCapped(&other));
}

// Of every two tenants, out[i * n + j], i != j; of all, or of those of which one is capped. `most` does not count the
// SMs that a cap leaves its victim to spare, for which third tenants ask too: bounds rest on it.
void MpsPairs(const DeviceContext& device, std::span<const Demand* const> tenants, bool all, std::span<float> out,
              std::span<float> most) {
  if (!all && std::ranges::none_of(tenants, IsCapped)) return;
  const Numbers works = WorksOn(device, tenants);
  const auto cap = [&](size_t i) { return static_cast<double>(tenants[i]->sm_cap); };
  const auto slowed = [](double victim, double its_cap, double other, double other_cap) {
    std::array<double, 2> two;
    MpsSlowdowns(std::array{victim, other}, std::array{its_cap, other_cap}, two);
    return two[0];
  };
  for (size_t i = 0; i < works.size(); ++i) {
    const double alone = Stretched(works[i], 1 / cap(i));
    for (size_t j = 0; j < works.size(); ++j) {
      if (i == j || !(all || IsCapped(tenants[i]) || IsCapped(tenants[j]))) continue;
      const size_t at = i * works.size() + j;
      out[at] = most[at] = static_cast<float>(slowed(works[i], cap(i), works[j], cap(j)) / alone);
      if (IsCapped(tenants[i])) most[at] = static_cast<float>(slowed(works[i] / alone, 1, works[j], cap(j)));
    }
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<const LearnedModel>> LearnedModel::Create(const Bundle& bundle, std::string_view kind,
                                                                         const Catalogue& catalogue) {
  HORUS_ASSIGN_OR_RETURN(const PairBundleHead head, ReadHead(bundle));
  HORUS_ASSIGN_OR_RETURN(const BundleTarget* target, TargetOf(bundle, kind));
  HORUS_ASSIGN_OR_RETURN(const std::string bytes, WriteBundle(bundle));
  const std::shared_ptr<LearnedModel> model(new LearnedModel());
  model->name_ = kind;
  model->epoch_ = CombineHash(Hash64(bytes), Hash64(kind));
  HORUS_ASSIGN_OR_RETURN(model->bounds_, ReadBounds(head.header, *target));
  HORUS_ASSIGN_OR_RETURN(model->pairs_, ReadPairModel(head.header, *target));
  for (const std::vector<uint32_t>& jobs : head.seen) {
    std::vector<uint64_t>& seen = model->seen_.emplace_back();
    for (const uint32_t job : jobs) {
      if (head.header.profiles[job] != 0) seen.push_back(head.header.profiles[job]);
    }
    std::sort(seen.begin(), seen.end());
  }
  for (const GpuType& type : catalogue.types()) {
    auto& places = model->places_.emplace_back();
    for (const SharingMode mode : kSharingModes) {
      Place& place = places[static_cast<size_t>(mode)];
      // An exclusive device that is shared all the same is time-sliced.
      const SharingMode as = mode == SharingMode::kExclusive ? SharingMode::kTimeSlice : mode;
      place.device = head.header.DeviceOf({type.name, as});
      place.exact = place.device != kUnseen;
      for (size_t i = 0; i < kSharingModes.size() && place.device == kUnseen; ++i)
        place.device = head.header.DeviceOf({type.name, kSharingModes[i]});
    }
  }
  return std::shared_ptr<const LearnedModel>(model);
}

LearnedModel::Place LearnedModel::PlaceOf(const DeviceContext& device) const {
  const size_t type = device.type.value();
  Place place = type < places_.size() ? places_[type][static_cast<size_t>(device.mode)] : Place{};
  place.by_law = device.mode == SharingMode::kMps && !place.exact;
  return place;
}

bool LearnedModel::Seen(uint32_t device, uint64_t profile) const {
  return profile != 0 && std::binary_search(seen_[device].begin(), seen_[device].end(), profile);
}

PairMargin LearnedModel::MarginOf(const Place& place, uint64_t victim, uint64_t other) const {
  if (place.by_law && (victim == 0 || victim != other))
    return {.margin = std::max(bounds_.unseen.margin, kMpsUnmeasuredMargin)};
  if (!place.exact) return bounds_.unseen;
  const auto seen = [&](uint64_t profile) { return Seen(place.device, profile) ? 1 : 0; };
  return bounds_.Of(place.device, seen(victim) + seen(other));
}

PairMargin LearnedModel::MarginOf(const DeviceContext& device, uint64_t victim, uint64_t other) const {
  return MarginOf(PlaceOf(device), victim, other);
}

absl::Status LearnedModel::PredictPairs(const DeviceContext& device, std::span<const Demand* const> tenants,
                                        std::span<PairExcess> out) const {
  const size_t n = tenants.size();
  if (out.size() != n * n)
    return InvalidArgument("interference: expected room for %d pairs, found %d", n * n, out.size());
  HORUS_RETURN_IF_ERROR(CheckQuestion(kLearned, device, tenants, n));
  absl::InlinedVector<Tenant, kUsualTenants> points;
  for (const Demand* tenant : tenants) points.push_back(TenantOf(*tenant, device));
  if (n < 2) return absl::OkStatus();
  const Place place = PlaceOf(device);
  absl::InlinedVector<float, kUsualTenants * kUsualTenants> pairs(n * n, 1.0f), pairs_most;
  const std::span<float> slowdowns(pairs.data(), pairs.size());
  if (!place.by_law) pairs_->Pairs(place.device, points, slowdowns);
  pairs_most = pairs;
  if (device.mode == SharingMode::kMps)
    MpsPairs(device, tenants, place.by_law, slowdowns, std::span(pairs_most.data(), pairs_most.size()));
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      if (i == j) continue;
      Place from = place;
      const bool capped = CappedPair(device, *tenants[i], *tenants[j]);
      from.by_law |= capped;
      out[i * n + j] = Bounded(from, capped ? Tenant() : points[i], points[j], pairs[i * n + j], pairs_most[i * n + j]);
    }
  }
  return absl::OkStatus();
}

PairExcess LearnedModel::Bounded(const Place& place, const Tenant& victim, const Tenant& other, float slowdown,
                                 float most) const {
  const PairMargin margin = MarginOf(place, victim.profile_id, other.profile_id);
  auto least = static_cast<double>(most);
  // Light jobs that launch many small kernels wait more often than a law that conserves work says.
  if (place.device == kUnseen && !place.by_law && !DescribesKernels(victim.point))
    least = std::max(least, SlowdownOf(kConservingLevel + TheoryOf(victim.point, other.point)));
  return CountExcess(slowdown, static_cast<float>(UpperOf(least, margin.margin)));
}

absl::Status LearnedModel::PredictBeside(const DeviceContext& device, const Demand& newcomer,
                                         std::span<const Demand* const> others, std::span<PairExcess> mine,
                                         std::span<PairExcess> theirs) const {
  const Place place = PlaceOf(device);
  if (place.by_law ||
      (device.mode == SharingMode::kMps && (IsCapped(&newcomer) || std::ranges::any_of(others, IsCapped)))) {
    return InterferenceModel::PredictBeside(device, newcomer, others, mine, theirs);
  }
  HORUS_RETURN_IF_ERROR(CheckDevice(kLearned, device));
  const Tenant one = TenantOf(newcomer, device);
  std::vector<Tenant> points;
  points.reserve(others.size());
  for (const Demand* other : others) points.push_back(TenantOf(*other, device));
  std::vector<float> of_one(others.size()), of_others(others.size());
  pairs_->Beside(place.device, one, points, of_one, of_others);
  for (size_t i = 0; i < others.size(); ++i) {
    mine[i] = Bounded(place, one, points[i], of_one[i], of_one[i]);
    theirs[i] = Bounded(place, points[i], one, of_others[i], of_others[i]);
  }
  return absl::OkStatus();
}

// ---- Lower bounds. Levels are steps of a resident's part of z.
namespace {

constexpr double kFirstLevel = -6, kLevelsPerUnit = 8;  // below the first next to nothing; the last has no end
constexpr double kRounding = 1e-3;  // of z; far above what sums in another order, and floats, make of it

uint8_t LevelAt(double z) {
  constexpr auto kLast = static_cast<double>(InterferenceModel::kPairLevels - 1);
  return static_cast<uint8_t>(std::clamp(1 + std::floor((z - kFirstLevel) * kLevelsPerUnit), 0.0, kLast));
}

}  // namespace

bool LearnedModel::Bounds(const DeviceContext& device, const Demand& tenant, Place& place) const {
  place = PlaceOf(device);
  return CheckDevice(kLearned, device).ok() && !place.by_law && !IsCapped(&tenant);
}

InterferenceModel::PairLevels LearnedModel::LevelsOf(const DeviceContext& device, const Demand& tenant) const {
  Place place;
  if (!Bounds(device, tenant, place)) return {};
  const PairModel::Parts part = pairs_->PartOf(place.device, TenantOf(tenant, device));
  return {.inflicts = LevelAt(part.inflicts), .suffers = LevelAt(part.suffers)};
}

InterferenceModel::LeastPairs LearnedModel::LeastBeside(const DeviceContext& device, const Demand& newcomer) const {
  LeastPairs pairs;
  Place place;
  if (!Bounds(device, newcomer, place)) return pairs;
  const PairModel::Parts least = pairs_->LeastOf(place.device, TenantOf(newcomer, device));
  const auto excess = [](double z) {
    const auto slowdown = static_cast<float>(SlowdownOf(z - kRounding));
    return CountExcess(slowdown, slowdown).estimate;
  };
  for (size_t level = 1; level < kPairLevels; ++level) {
    const double begin = kFirstLevel + (static_cast<double>(level) - 1) / kLevelsPerUnit;
    pairs.mine[level] = excess(least.suffers + begin);
    pairs.theirs[level] = excess(least.inflicts + begin);
  }
  return pairs;
}

absl::Status LearnedModel::Predict(const DeviceContext& device, std::span<const Demand* const> tenants,
                                   std::span<Slowdown> out) const {
  if (out.size() != tenants.size())  // PredictPairs checks the rest
    return InvalidArgument("%s: expected room for %d slowdowns, found %d", kLearned, tenants.size(), out.size());
  absl::InlinedVector<PairExcess, kUsualTenants * kUsualTenants> pairs(tenants.size() * tenants.size());
  HORUS_RETURN_IF_ERROR(PredictPairs(device, tenants, std::span(pairs.data(), pairs.size())));
  SumPairs({pairs.data(), pairs.size()}, out);
  return absl::OkStatus();
}

void LearnedModel::CalibratedUpTo(const DeviceContext& device, std::span<const Demand* const> tenants,
                                  std::span<float> up_to) const {
  const Place there = PlaceOf(device);
  const auto profile = [](const Demand* tenant) { return tenant == nullptr ? 0 : tenant->profile_id; };
  std::fill(up_to.begin(), up_to.end(), 1.0f);
  for (size_t i = 0; i < tenants.size(); ++i) {
    for (size_t j = 0; j < tenants.size(); ++j) {
      if (i == j) continue;
      Place place = there;
      const bool capped =
          tenants[i] != nullptr && tenants[j] != nullptr && CappedPair(device, *tenants[i], *tenants[j]);
      place.by_law |= capped;
      const double promised = MarginOf(place, capped ? 0 : profile(tenants[i]), profile(tenants[j])).promised;
      up_to[i] = std::min(up_to[i], static_cast<float>(promised));
    }
  }
}

double LearnedModel::LevelError(const DeviceContext& device) const { return PlaceOf(device).exact ? 0 : bounds_.level; }

size_t LearnedModel::bytes_held() const {
  size_t bytes = sizeof(*this) + name_.capacity() + pairs_->bytes_held() + places_.capacity() * sizeof(places_[0]) +
                 bounds_.devices.capacity() * sizeof(bounds_.devices[0]);
  for (const auto& seen : seen_) bytes += sizeof(seen) + seen.capacity() * sizeof(uint64_t);
  return bytes;
}

}  // namespace horus
