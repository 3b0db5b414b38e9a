// SPDX-License-Identifier: Apache-2.0
// Snapshot: a cluster as versioned, checksummed bytes, and back.
//
// Enters:  a cluster; or bytes from anywhere, damaged or hostile ones included, and a catalogue.
// Leaves:  bytes; or a cluster with equal state_hash, equal node versions and equal later decisions.
// Units:   integers little-endian; GPU types and MIG profiles by name, so that ids may differ.
#pragma once

#include "place/state/cluster.h"

namespace horus {

// 2: what jobs state of memory, sharing and affinity. What 1 cannot say has its default there.
inline constexpr uint32_t kSnapshotVersion = 2;
inline constexpr uint64_t kMaxSnapshotBytes = uint64_t{1} << 30;

// Equal clusters give equal bytes. RESOURCE_EXHAUSTED above `max_bytes`, at most kMaxSnapshotBytes.
[[nodiscard]] absl::StatusOr<std::string> SaveSnapshot(const Cluster& cluster, uint64_t max_bytes = kMaxSnapshotBytes);

// DATA_LOSS: not a snapshot, cut short, or altered. OUT_OF_RANGE: of a newer version (both are named).
// NOT_FOUND: a GPU type or MIG profile that the catalogue lacks. INVALID_ARGUMENT: contents that no cluster has.
[[nodiscard]] absl::StatusOr<Cluster> RestoreSnapshot(std::span<const uint8_t> bytes,
                                                      std::shared_ptr<const Catalogue> catalogue);

}  // namespace horus
