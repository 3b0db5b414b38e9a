// SPDX-License-Identifier: Apache-2.0
// The units of people's files and the integers that they become.
//
// Enters:  nothing.                      Leaves: scales for YamlValue::Scaled.
// Units:   in the names.
// Cost:    none.                         Thread class: constants.
#ifndef HORUS_IO_YAML_UNITS_H_
#define HORUS_IO_YAML_UNITS_H_

#include "base/units.h"
#include "io/yaml_reader.h"

namespace horus {

// Upper ends are far above any machine, and keep the products inside 53 bits or the limits of place/job.h.
inline constexpr Scale kCoresToMilli = {.per_unit = kMilliPerCore, .min = 0, .max = 1e6, .exact = true};
inline constexpr Scale kGibToMib = {.per_unit = 1024, .min = 0, .max = 1e6};
inline constexpr Scale kSecondsToUs = {.per_unit = 1'000'000, .min = 0, .max = 4e9};   // 126 years
inline constexpr Scale kMillisecondsToUs = {.per_unit = 1000, .min = 0, .max = 1e10};  // 115 days

inline constexpr Scale kPercentToMilli = {.per_unit = 10, .min = 0.1, .max = 100, .exact = true};

}  // namespace horus

#endif  // HORUS_IO_YAML_UNITS_H_
