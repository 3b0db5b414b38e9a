// SPDX-License-Identifier: Apache-2.0
// Quantities and times as Kubernetes writes them: "500m", "1.5Gi", "2e3"; "2026-11-26T12:00:00Z".
//
// Enters:  text of an object.   Leaves: integers, or nullopt for what is no quantity or beyond the limits.
// Units:   what the caller asks for: parts of the quantity's unit; seconds since 1970.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace horus {

// Far above any node, and far below where sums over a cluster would overflow: 2^60 bytes, or thousandths of a core.
inline constexpr int64_t kMostQuantity = int64_t{1} << 60;

// The quantity times `per_unit` (1000: cores to thousandths), rounded up as Kubernetes does; from 0 to kMostQuantity.
// Suffixes n, u, m, k, M, G, T, P, E, Ki to Ei, and exponents (e3, E-3).
[[nodiscard]] std::optional<int64_t> ParseKubeQuantity(std::string_view text, int64_t per_unit);

// RFC 3339 in UTC, as the API server writes it; parts of a second are dropped. Years 1970 to 9999.
[[nodiscard]] std::optional<int64_t> ParseKubeTime(std::string_view text);

}  // namespace horus
