// SPDX-License-Identifier: Apache-2.0
// The list of interference models.
#include "interference/registry.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/status.h"
#include "base/text.h"
#include "interference/learned_model.h"
#include "interference/utilisation_model.h"
#include "trees/bundle.h"

namespace horus {

// Generated at build time from default.hbundle.
extern const unsigned char kDefaultInterference[];
extern const size_t kDefaultInterferenceSize;

namespace {

constexpr std::array<std::string_view, 5> kNames = {kDefaultInterferenceModel, "boosted", "iasp", "iapp",
                                                    "utilisation"};

}  // namespace

std::span<const std::string_view> InterferenceModelNames() { return kNames; }

absl::StatusOr<std::shared_ptr<const InterferenceModel>> MakeInterferenceModel(std::string_view name) {
  if (name == "utilisation") return std::make_shared<const UtilisationModel>();
  if (std::find(kNames.begin(), kNames.end(), name) != kNames.end()) {
    return InterferenceModelFromBundle(std::span(kDefaultInterference, kDefaultInterferenceSize), name,
                                       *Catalogue::Default());
  }
  std::string names;
  for (const std::string_view known : kNames) {
    if (!names.empty()) names += ", ";
    names += known;
  }
  return MakeError(absl::StatusCode::kNotFound, "interference model: expected one of %s, found %s", names,
                   Quoted(name));
}

absl::StatusOr<std::shared_ptr<const InterferenceModel>> InterferenceModelFromBundle(std::span<const uint8_t> bytes,
                                                                                     std::string_view name,
                                                                                     const Catalogue& catalogue) {
  HORUS_ASSIGN_OR_RETURN(const Bundle bundle, ReadBundle(bytes));
  return LearnedModel::Create(bundle, name, catalogue);
}

}  // namespace horus
