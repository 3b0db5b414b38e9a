// SPDX-License-Identifier: Apache-2.0
// The list of built-in interference models.
#include "interference/registry.h"

#include <array>
#include <string>

#include "base/status.h"
#include "base/text.h"
#include "interference/utilisation_model.h"

namespace horus {
namespace {

constexpr std::array<std::string_view, 1> kNames = {"utilisation"};

}  // namespace

std::span<const std::string_view> InterferenceModelNames() { return kNames; }

absl::StatusOr<std::shared_ptr<const InterferenceModel>> MakeInterferenceModel(std::string_view name) {
  if (name == "utilisation") return std::make_shared<const UtilisationModel>();
  std::string names;
  for (const std::string_view known : kNames) {
    if (!names.empty()) names += ", ";
    names += known;
  }
  return MakeError(absl::StatusCode::kNotFound, "interference model: expected one of %s, found %s", names,
                   Quoted(name));
}

}  // namespace horus
