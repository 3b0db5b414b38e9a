// SPDX-License-Identifier: Apache-2.0
// A user's own GPU types, added to those of a catalogue.
//
// Enters:  a YAML file and the catalogue to extend.
// Leaves:  the extended catalogue; or "file:line: key: expected ..., found ...".
// Units:   the keys are the members of GpuType; docs/files.md has the schema.
#pragma once

#include "device/catalogue.h"
#include "io/yaml.h"

namespace horus {

[[nodiscard]] absl::StatusOr<std::shared_ptr<const Catalogue>> ParseGpuFile(const std::string& file, std::string text,
                                                                            const Catalogue& base,
                                                                            const YamlLimits& limits = {});
[[nodiscard]] absl::StatusOr<std::shared_ptr<const Catalogue>> ReadGpuFile(const std::string& path,
                                                                           const Catalogue& base,
                                                                           const YamlLimits& limits = {});

// Adds the types of the files that `gpu_types_files` of a file names, as seen from its folder; none without that key.
[[nodiscard]] absl::Status ReadGpuFiles(const YamlMap& root, const YamlLimits& limits,
                                        std::shared_ptr<const Catalogue>& catalogue);

}  // namespace horus
