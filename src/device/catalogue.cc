// SPDX-License-Identifier: Apache-2.0
// Look-up in the catalogue and its extension by checked types.
#include "device/catalogue.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/text.h"
#include "base/vectors.h"
#include "device/fold_name.h"
#include "device/gpu_fields.h"

namespace horus {

namespace {

std::shared_ptr<const Catalogue> BuiltIn() {
  absl::StatusOr<Catalogue> built = Catalogue::Extend(Catalogue(), BuiltInTypes());
  assert(built.ok());  // the tests validate every built-in type
  return std::make_shared<const Catalogue>(built.ok() ? *std::move(built) : Catalogue());
}

// What nothing destroys: a process that ends runs other exit handlers, and perhaps threads, after those of this
// library.
union Shared {
  constexpr Shared() : value() {}
  ~Shared() {}
  struct {
    std::mutex mutex;
    std::shared_ptr<const Catalogue> catalogue;
  } value;
};
constinit Shared shared;

// Longer than any name: not found, and not worth folding or comparing.
bool IsPossible(std::string_view name_or_alias) { return name_or_alias.size() <= 2 * kMaxGpuNameBytes; }

// What Kubernetes' GPU feature discovery appends to the name of a card that several share; the card is the same.
constexpr std::string_view kSharedSuffix = "-shared";
// And between card and profile of a MIG instance.
constexpr std::string_view kMigInfix = "-mig-";

std::string_view WithoutShared(std::string_view folded) {
  return folded.ends_with(kSharedSuffix) ? folded.substr(0, folded.size() - kSharedSuffix.size()) : folded;
}

}  // namespace

std::shared_ptr<const Catalogue> Catalogue::Default() {
  // An unloaded library leaks nothing; whoever asks later than that in a process that ends has it made again.
  struct GivesBack {
    ~GivesBack() {
      std::shared_ptr<const Catalogue> last;
      const std::lock_guard lock(shared.value.mutex);
      last.swap(shared.value.catalogue);
    }
  };
  static const GivesBack gives_back;
  const std::lock_guard lock(shared.value.mutex);
  if (shared.value.catalogue == nullptr) shared.value.catalogue = BuiltIn();
  return shared.value.catalogue;
}

absl::StatusOr<Catalogue> Catalogue::Extend(const Catalogue& base, std::vector<GpuType> types) {
  // Bounded: both are in memory.
  if (base.size() + types.size() > kMaxTypes) {
    return ResourceExhausted("GPU catalogue: expected at most %d types, found %d", kMaxTypes,
                             base.size() + types.size());
  }
  Catalogue result = base;
  for (GpuType& type : types) {
    // The rules multiply sm_count; a value out of range is left for the check below to report.
    if (type.sm_count > 0 && type.sm_count <= kMaxSmCount) CompleteByRule(type);
    HORUS_RETURN_IF_ERROR(ValidateGpuType(type));
    const GpuTypeId id(static_cast<uint16_t>(result.types_.size()));
    result.keys_.push_back({FoldDeviceName(type.name), id});
    for (const std::string& alias : type.aliases) result.keys_.push_back({FoldDeviceName(alias), id});
    result.types_.push_back(std::move(type));
  }
  std::ranges::stable_sort(result.keys_, {}, &Key::folded);
  const auto twice = std::adjacent_find(result.keys_.begin(), result.keys_.end(),
                                        [](const Key& a, const Key& b) { return a.folded == b.folded; });
  if (twice != result.keys_.end()) {
    const GpuType& first = result.at(twice->id);
    const GpuType& second = result.at(std::next(twice)->id);
    return AlreadyExists("GPU type %s: name or alias %s: expected a new one, found it taken by %s", Quoted(second.name),
                         Quoted(twice->folded), Quoted(first.name));
  }
  return result;
}

std::optional<GpuTypeId> Catalogue::FindFolded(std::string_view folded) const {
  const Key* found = FindSorted(keys_, folded, &Key::folded);
  return found == nullptr ? std::nullopt : std::optional(found->id);
}

std::optional<GpuTypeId> Catalogue::FindKnown(std::string_view name_or_alias) const {
  if (!IsPossible(name_or_alias)) return std::nullopt;
  const std::string folded = FoldDeviceName(name_or_alias);
  if (const std::optional<GpuTypeId> known = FindFolded(folded)) return known;
  return FindFolded(WithoutShared(folded));
}

// A MIG instance has a part of the card's rates and memory: no name of the card.
absl::Status Catalogue::RefuseMigInstance(std::string_view name) const {
  if (!IsPossible(name)) return absl::OkStatus();
  const std::string folded = FoldDeviceName(name);
  const size_t infix = folded.find(kMigInfix);
  if (infix == std::string::npos) return absl::OkStatus();
  const std::optional<GpuTypeId> card = FindFolded(std::string_view(folded).substr(0, infix));
  if (!card) return absl::OkStatus();
  const std::string_view profile = WithoutShared(std::string_view(folded).substr(infix + kMigInfix.size()));
  return MakeError(
      absl::StatusCode::kNotFound,
      "GPU type: expected a whole GPU, found %s, a MIG instance: name its card, %s, and its profile, %s, apart",
      Quoted(name), at(*card).name, Quoted(profile));
}

absl::StatusOr<GpuTypeId> Catalogue::Find(std::string_view name_or_alias) const {
  if (const std::optional<GpuTypeId> known = FindKnown(name_or_alias)) return *known;
  HORUS_RETURN_IF_ERROR(RefuseMigInstance(name_or_alias));
  std::vector<std::string_view> names;
  for (const GpuType& type : types_) names.push_back(type.name);
  for (const Key& key : keys_) {
    if (key.folded != at(key.id).name) names.push_back(key.folded);
  }
  const std::string near = IsPossible(name_or_alias) ? Nearest(FoldDeviceName(name_or_alias), names) : "";
  const std::string hint = near.empty() ? "none is near it" : "nearest: " + near;
  return NotFound("GPU type: expected one of the %d known names, found %s; %s", types_.size(), Quoted(name_or_alias),
                  hint);
}

}  // namespace horus
