// SPDX-License-Identifier: Apache-2.0
// SnapshotMessages: where the parts of a snapshot's message lie, so that each is parsed by itself. Parsed as a whole,
// bytes made for that become more than a hundred times as much memory.
//
// Enters:  the message of an envelope, from anywhere; it must outlive what is read here.
// Leaves:  the bytes of each part, in order; a part as a message until the next is read.
// Units:   bytes.
// Cost:    one look at each part's header.     Thread class: one thread at a time.
#ifndef HORUS_PLACE_STATE_SNAPSHOT_MESSAGES_H_
#define HORUS_PLACE_STATE_SNAPSHOT_MESSAGES_H_

#include <google/protobuf/arena.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace horus {

// Of one node, job or other part; what a node and a job may have is below 4 MiB (node.h, job.h).
inline constexpr size_t kMaxSnapshotPartBytes = size_t{8} << 20;

// The fields of Cluster in horus_snapshot.proto. Others are passed over, as protobuf does.
struct SnapshotMessages {
  std::vector<std::string_view> gpu_types, nodes, demands, jobs, sensitivities;
  uint64_t changes = 0;
};

// DATA_LOSS where the bytes are no message, or a part is too long.
[[nodiscard]] absl::StatusOr<SnapshotMessages> FindSnapshotMessages(std::string_view message);

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
    return MakeError(absl::StatusCode::kDataLoss, "snapshot: %s[%d] of %d bytes cannot be parsed", list, index,
                     bytes.size());
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

#endif  // HORUS_PLACE_STATE_SNAPSHOT_MESSAGES_H_
