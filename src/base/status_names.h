// SPDX-License-Identifier: Apache-2.0
// The names of the statuses of the C boundary, in the order of their numbers.
//
// Leaves:  text ended by NUL.
#pragma once

#include <array>

namespace horus {

inline constexpr std::array kStatusNames = {
    "OK",        "INVALID_ARGUMENT", "INVALID_STRUCT", "BUFFER_TOO_SMALL", "NOT_FOUND", "EXISTS", "CONFLICT",    "BUSY",
    "CALLBACK",  "CANCELLED",        "LIMIT",          "CORRUPT",          "VERSION",   "STATE",  "UNSUPPORTED", "IO",
    "NO_MEMORY", "INTERNAL"};
inline constexpr int kStatusOk = 0;
inline constexpr int kStatusConflict = 6;

}  // namespace horus
