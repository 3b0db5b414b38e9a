// SPDX-License-Identifier: Apache-2.0
// The shape of the `iasp` tower and embeddings, as its fit writes them and its model reads them.
//
// Enters:  nothing.
// Leaves:  where each layer's weights and each factor are.
// Units:   positions in a series of numbers; matrices row-major, one row an input.
// Cost:    none.                         Thread class: values.
#ifndef HORUS_INTERFERENCE_IASP_NET_H_
#define HORUS_INTERFERENCE_IASP_NET_H_

#include <cstddef>
#include <string_view>

#include "interference/iasp_model.h"

namespace horus {

inline constexpr size_t kIaspHidden = 16;

// Factors of a job: suffers, suffers_alike, inflicts, inflicts_alike.
inline constexpr size_t kIaspSuffersAlike = kIaspRank;
inline constexpr size_t kIaspInflicts = kIaspRank + 1;
inline constexpr size_t kIaspInflictsAlike = 2 * kIaspRank + 1;
inline constexpr size_t kIaspWidth = 2 * kIaspRank + 2;

// Tower: columns and device -> kIaspHidden -> factors.
inline constexpr size_t kIaspHiddenBias = kPointColumns * kIaspHidden;
inline constexpr size_t kIaspLast = kIaspHiddenBias + kIaspHidden;
inline constexpr size_t kIaspLastBias = kIaspLast + kIaspHidden * kIaspWidth;
inline constexpr size_t kIaspTowerSize = kIaspLastBias + kIaspWidth;

// What a device adds: to the margin, and to each hidden value of the tower.
inline constexpr size_t kIaspDeviceWidth = 1 + kIaspHidden;

inline constexpr std::string_view kIaspDevices = "devices";  // of each device, then of one without rows
inline constexpr std::string_view kIaspTower = "tower";
inline constexpr std::string_view kIaspEmbeddings = "embeddings";  // 0 for a job that is not remembered
static_assert(kMostPairJobs * kIaspWidth <= BundleLimits().max_series_values, "every PairSet fits a bundle");

}  // namespace horus

#endif  // HORUS_INTERFERENCE_IASP_NET_H_
