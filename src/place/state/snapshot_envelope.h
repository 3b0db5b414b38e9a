// SPDX-License-Identifier: Apache-2.0
// The envelope of a snapshot: magic, format version, length and checksum around the message.
//
// Enters:  the message's bytes; or bytes from anywhere.
// Leaves:  the wrapped bytes; or the message inside, whole and unaltered.
// Units:   bytes; integers little-endian.
// Cost:    one pass for the checksum.     Thread class: pure functions.
#ifndef HORUS_PLACE_STATE_SNAPSHOT_ENVELOPE_H_
#define HORUS_PLACE_STATE_SNAPSHOT_ENVELOPE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "place/state/snapshot.h"

namespace horus {

// Offset  Size  Field
//      0     8  magic "HORUSNAP"
//      8     4  format version
//     12     4  reserved, 0
//     16     8  length of the message
//     24     8  XXH3 of the message, seeded with the version
//     32        the message
inline constexpr std::string_view kSnapshotMagic = "HORUSNAP";
inline constexpr size_t kEnvelopeBytes = 32;

// `version`: another than the newest only for tests, which write what older releases wrote.
[[nodiscard]] std::string WrapSnapshot(const std::string& message, uint32_t version = kSnapshotVersion);

// DATA_LOSS or OUT_OF_RANGE as RestoreSnapshot says; never reads beyond `bytes`.
[[nodiscard]] absl::StatusOr<std::string_view> UnwrapSnapshot(std::span<const uint8_t> bytes);

}  // namespace horus

#endif  // HORUS_PLACE_STATE_SNAPSHOT_ENVELOPE_H_
