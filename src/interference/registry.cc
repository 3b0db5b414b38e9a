// SPDX-License-Identifier: Apache-2.0
// The list of interference models.
#include "interference/registry.h"

#include <algorithm>

#include "base/status.h"
#include "base/text.h"
#include "interference/learned_model.h"
#include "interference/pair_bundle.h"
#include "interference/utilisation_model.h"
#include "trees/bundle.h"

namespace horus {

// Generated at build time from default.hbundle.
extern const unsigned char kDefaultInterference[];
extern const size_t kDefaultInterferenceSize;

namespace {

constexpr std::string_view kUtilisation = "utilisation";

}  // namespace

std::vector<std::string_view> InterferenceModelNames() {
  std::vector<std::string_view> names = LearnedModelNames();
  names.push_back(kUtilisation);
  return names;
}

absl::StatusOr<std::shared_ptr<const InterferenceModel>> MakeInterferenceModel(std::string_view name) {
  if (name == kUtilisation) return std::make_shared<const UtilisationModel>();
  const std::vector<std::string_view> all = InterferenceModelNames();
  if (std::find(all.begin(), all.end(), name) != all.end()) {
    return InterferenceModelFromBundle(std::span(kDefaultInterference, kDefaultInterferenceSize), name,
                                       *Catalogue::Default());
  }
  return MakeError(absl::StatusCode::kNotFound, "interference model: %s%s", ExpectedOneOf(all, name),
                   WhereOtherModelsAre());
}

absl::StatusOr<std::shared_ptr<const InterferenceModel>> InterferenceModelFromBundle(std::span<const uint8_t> bytes,
                                                                                     std::string_view name,
                                                                                     const Catalogue& catalogue) {
  HORUS_ASSIGN_OR_RETURN(const Bundle bundle, ReadBundle(bytes));
  return LearnedModel::Create(bundle, name, catalogue);
}

}  // namespace horus
