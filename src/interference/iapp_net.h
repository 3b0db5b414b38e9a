// SPDX-License-Identifier: Apache-2.0
// The shape of the `iapp` networks, as its fit writes them and its model reads them.
//
// Enters:  number of devices.
// Leaves:  where each layer's weights are.
// Units:   positions in a series of numbers; matrices row-major, one row an input.
// Cost:    none.                         Thread class: values.
#ifndef HORUS_INTERFERENCE_IAPP_NET_H_
#define HORUS_INTERFERENCE_IAPP_NET_H_

#include <cstddef>
#include <string_view>

#include "interference/job_point.h"

namespace horus {

inline constexpr size_t kIappHidden = 16;
inline constexpr size_t kIappInputs = 2 * kPointColumns;  // victim, other
// Answers are the mean of so many networks, which start from different draws: where there is no data each invents
// something else, and the mean invents less.
inline constexpr size_t kIappNetworks = 2;

// One network: columns and device -> kIappHidden -> kIappHidden -> margin over Theory.
struct IappShape {
  size_t devices = 0;  // a bias of the first layer each; in a bundle one more, of a device without rows

  [[nodiscard]] constexpr size_t biases() const { return kIappInputs * kIappHidden; }
  [[nodiscard]] constexpr size_t second() const { return biases() + devices * kIappHidden; }
  [[nodiscard]] constexpr size_t second_bias() const { return second() + kIappHidden * kIappHidden; }
  [[nodiscard]] constexpr size_t last() const { return second_bias() + kIappHidden; }
  [[nodiscard]] constexpr size_t last_bias() const { return last() + kIappHidden; }
  [[nodiscard]] constexpr size_t size() const { return last_bias() + 1; }
};

inline constexpr std::string_view kIappWeights = "weights";  // of the networks, one after another

}  // namespace horus

#endif  // HORUS_INTERFERENCE_IAPP_NET_H_
