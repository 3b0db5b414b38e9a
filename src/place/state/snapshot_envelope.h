// SPDX-License-Identifier: Apache-2.0
// The shell of a snapshot: magic, format version, length and checksum; and where the message's parts lie inside.
//
// Enters:  the message's bytes; or bytes from anywhere.
// Leaves:  the wrapped bytes; or the message inside, whole and unaltered.
// Units:   bytes; integers little-endian.
// Cost:    one pass for the checksum.
#pragma once

#include <google/protobuf/arena.h>

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

// ---- SnapshotMessages: where the parts of a snapshot's message lie, so that each is parsed by itself. Parsed as a
// whole, bytes made for that become more than a hundred times as much memory.
// Cost: one look at each part's header.

// Of one node, job or other part; what a node and a job may have is below 4 MiB (node.h, job.h).
inline constexpr size_t kMaxSnapshotPartBytes = size_t{8} << 20;

// The fields of Cluster in horus_snapshot.proto. Others are passed over, as protobuf does.
struct SnapshotMessages {
  std::vector<std::string_view> gpu_types, nodes, demands, jobs, sensitivities;
  uint64_t changes = 0;
};

// DATA_LOSS where the bytes are no message, or a part is too long.
[[nodiscard]] absl::StatusOr<SnapshotMessages> FindSnapshotMessages(std::string_view message);

// The fields of a job's message: those of its own, and the others, which jobs that ask for the same have in common.
// False where the bytes are no message.
[[nodiscard]] bool SplitJob(std::string_view job, std::string& own, std::string& shared);

// One part as a message. What it holds goes with the next part or the end of this, also where memory runs out half-way.
template <typename Message>
class SnapshotPart {
 public:
  SnapshotPart() : room_(kRoomBytes), arena_(Options()) {}

  // `list` and `index` say in errors which part it is.
  [[nodiscard]] absl::StatusOr<const Message*> Parse(std::string_view bytes, const char* list, size_t index) {
    arena_.Reset();
    auto* message = google::protobuf::Arena::CreateMessage<Message>(&arena_);
    if (message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return message;
    return DataLoss("snapshot: %s[%d] of %d bytes cannot be parsed", list, index, bytes.size());
  }

 private:
  static constexpr size_t kRoomBytes = size_t{16} << 10;  // of most parts; larger ones allocate
  [[nodiscard]] google::protobuf::ArenaOptions Options() {
    google::protobuf::ArenaOptions options;
    options.initial_block = room_.data();
    options.initial_block_size = room_.size();
    return options;
  }

  std::vector<char> room_;
  google::protobuf::Arena arena_;
};

}  // namespace horus
