// SPDX-License-Identifier: Apache-2.0
// What several commands have alike: options, each with what its help calls its value, such as FILE or N; GPU files and
// model bundles.
//
// Enters:  paths.   Leaves: values, or errors that name the file.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "device/catalogue.h"
#include "io/demand_shelf.h"
#include "predict/predictor.h"

namespace horus::cli {

template <typename Value>
CLI::Option* AddOption(CLI::App& app, const std::string& name, Value& value, const std::string& what,
                       const std::string& called) {
  return app.add_option(name, value, what)->type_name(called);
}

// One that is given once for each of its values.
template <typename Value>
CLI::Option* AddRepeated(CLI::App& app, const std::string& name, Value& values, const std::string& what,
                         const std::string& called) {
  return AddOption(app, name, values, what, called)->allow_extra_args(false);
}

void AddGpusFileOption(CLI::App& app, std::vector<std::string>& files);

// The built-in catalogue and after it the types of `files`.
[[nodiscard]] absl::StatusOr<std::shared_ptr<const Catalogue>> LoadCatalogue(std::span<const std::string> files);

inline constexpr size_t kMaxBundleBytes = size_t{1} << 30;

// Names in place of a bundle's path: the built-in one, and the analytical prior alone.
inline constexpr std::string_view kBuiltinBundle = "builtin";
inline constexpr std::string_view kNoBundle = "none";

// That of the bundle; the built-in one for an empty path.
[[nodiscard]] absl::StatusOr<std::shared_ptr<const Predictor>> LoadPredictor(const std::string& bundle);

}  // namespace horus::cli
