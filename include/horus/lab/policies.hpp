// SPDX-License-Identifier: Apache-2.0
// Options of the laboratory's policies in C++, over policies.h. Included by lab.hpp.
#ifndef HORUS_LAB_POLICIES_HPP_
#define HORUS_LAB_POLICIES_HPP_

#include <string>

#include "horus/horus.hpp"
#include "horus/lab/policies.h"

namespace horus {
inline namespace face_v0 {  // see values.hpp

struct LabPolicyOptions {
  bool synergy_grow = false;
  double synergy_tolerance = 0;                     // for "synergy-*"; 0 = the default; -1 = none
  double pack_threshold = 0, foreground_bound = 0;  // 0 = the default
  std::string profiling_label = {};                 // empty = the default
};

namespace detail {

// Borrows the options.
inline horus_lab_policy_options ToC(const LabPolicyOptions& options) {
  return {sizeof(horus_lab_policy_options), options.synergy_grow ? 1 : 0, options.synergy_tolerance,
          options.pack_threshold,           options.foreground_bound,     TextOrNull(options.profiling_label)};
}

}  // namespace detail

[[nodiscard]] inline Placer MakeLabPlacer(const PlacerOptions& options, const LabPolicyOptions& lab) {
  const horus_placer_options c = detail::ToC(options);
  const horus_lab_policy_options of_lab = detail::ToC(lab);
  horus_placer* out = nullptr;
  detail::Call(horus_lab_placer_create, &c, &of_lab, &out);
  return Placer(out);
}

}  // namespace face_v0
}  // namespace horus

#endif  // HORUS_LAB_POLICIES_HPP_
