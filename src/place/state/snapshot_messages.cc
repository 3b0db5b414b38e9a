// SPDX-License-Identifier: Apache-2.0
// Goes over the top fields of a snapshot's message.
#include "place/state/snapshot_messages.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include "place/horus_snapshot.pb.h"

namespace horus {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using Top = snapshot::v1::Cluster;

std::vector<std::string_view>* ListOf(uint32_t tag, SnapshotMessages& out) {
  if (WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) return nullptr;
  switch (WireFormatLite::GetTagFieldNumber(tag)) {
    case Top::kGpuTypesFieldNumber:
      return &out.gpu_types;
    case Top::kNodesFieldNumber:
      return &out.nodes;
    case Top::kDemandsFieldNumber:
      return &out.demands;
    case Top::kJobsFieldNumber:
      return &out.jobs;
    case Top::kSensitivitiesFieldNumber:
      return &out.sensitivities;
    default:
      return nullptr;
  }
}

constexpr uint32_t kChangesTag =
    uint32_t{Top::kChangesFieldNumber} << WireFormatLite::kTagTypeBits | WireFormatLite::WIRETYPE_VARINT;

}  // namespace

absl::StatusOr<SnapshotMessages> FindSnapshotMessages(std::string_view message) {
  SnapshotMessages out;
  CodedInputStream in(reinterpret_cast<const uint8_t*>(message.data()), static_cast<int>(message.size()));
  const auto damaged = [&] {
    return MakeError(absl::StatusCode::kDataLoss, "snapshot: byte %d of the message of %d bytes: expected a field",
                     in.CurrentPosition(), message.size());
  };
  while (static_cast<size_t>(in.CurrentPosition()) < message.size()) {
    const uint32_t tag = in.ReadTag();
    if (std::vector<std::string_view>* list = ListOf(tag, out); list != nullptr) {
      uint32_t size = 0;
      if (!in.ReadVarint32(&size)) return damaged();
      const auto at = static_cast<size_t>(in.CurrentPosition());
      if (size > kMaxSnapshotPartBytes) {
        return MakeError(absl::StatusCode::kDataLoss,
                         "snapshot: byte %d of the message: expected a part of at most %d bytes, found %d", at,
                         kMaxSnapshotPartBytes, size);
      }
      if (!in.Skip(static_cast<int>(size))) return damaged();
      list->push_back(message.substr(at, size));
    } else if (tag == kChangesTag) {
      if (!in.ReadVarint64(&out.changes)) return damaged();
    } else if (!WireFormatLite::SkipField(&in, tag)) {
      return damaged();
    }
  }
  return out;
}

}  // namespace horus
