// SPDX-License-Identifier: Apache-2.0
// Writing and checking the envelope, byte by byte so that the machine's endianness does not matter.
#include "place/state/snapshot_envelope.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "place/state/horus_snapshot.pb.h"

namespace horus {

std::string WrapSnapshot(const std::string& message, uint32_t version) {
  std::string out(kSnapshotMagic);
  out.reserve(kEnvelopeBytes + message.size());
  AppendLittleEndian(out, version);
  AppendLittleEndian(out, uint32_t{0});
  AppendLittleEndian(out, uint64_t{message.size()});
  AppendLittleEndian(out, Hash64(message, version));
  out += message;
  return out;
}

absl::StatusOr<std::string_view> UnwrapSnapshot(std::span<const uint8_t> bytes) {
  if (bytes.size() < kEnvelopeBytes)
    return DataLoss("snapshot: expected at least %d bytes, found %d", kEnvelopeBytes, bytes.size());
  if (bytes.size() > kMaxSnapshotBytes)
    return DataLoss("snapshot: expected at most %d bytes, found %d", kMaxSnapshotBytes, bytes.size());
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (all.substr(0, kSnapshotMagic.size()) != kSnapshotMagic)
    return DataLoss("snapshot: expected the magic %s at byte 0, found other bytes", std::string(kSnapshotMagic));
  ByteReader head(bytes.subspan(kSnapshotMagic.size()));
  const uint32_t version = head.U32(), reserved = head.U32();
  const uint64_t length = head.U64(), stored = head.U64();
  if (version > kSnapshotVersion) {
    return MakeError(absl::StatusCode::kOutOfRange,
                     "snapshot: format version %d is newer than %d, the newest that this library reads", version,
                     kSnapshotVersion);
  }
  if (version == 0 || reserved != 0) {
    return DataLoss("snapshot: expected version 1 to %d and 0 behind it, found version %d and %d", kSnapshotVersion,
                    version, reserved);
  }
  const std::string_view message = all.substr(kEnvelopeBytes);
  if (length != message.size())
    return DataLoss("snapshot: expected %d bytes behind the envelope, found %d", length, message.size());
  const uint64_t checksum = Hash64(message, version);
  if (stored != checksum)
    return DataLoss("snapshot: checksum: expected %016x, found %016x: the bytes were altered", stored, checksum);
  return message;
}

namespace {

// ---- Goes over the top fields of a snapshot's message.

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

bool IsOwn(uint32_t tag) {
  using snapshot::v1::Job;
  switch (WireFormatLite::GetTagFieldNumber(tag)) {
    case Job::kIdFieldNumber:
    case Job::kNameFieldNumber:
    case Job::kSubmitUsFieldNumber:
    case Job::kDeadlineUsFieldNumber:
    case Job::kSlotsFieldNumber:
    case Job::kAdoptedFieldNumber:
    case Job::kOverCommittedFieldNumber:
      return true;
    default:
      return false;
  }
}

}  // namespace

absl::StatusOr<SnapshotMessages> FindSnapshotMessages(std::string_view message) {
  SnapshotMessages out;
  CodedInputStream in(reinterpret_cast<const uint8_t*>(message.data()), static_cast<int>(message.size()));
  const auto damaged = [&] {
    return DataLoss("snapshot: byte %d of the message of %d bytes: expected a field", in.CurrentPosition(),
                    message.size());
  };
  while (static_cast<size_t>(in.CurrentPosition()) < message.size()) {
    const uint32_t tag = in.ReadTag();
    if (std::vector<std::string_view>* list = ListOf(tag, out); list != nullptr) {
      uint32_t size = 0;
      if (!in.ReadVarint32(&size)) return damaged();
      const auto at = static_cast<size_t>(in.CurrentPosition());
      if (size > kMaxSnapshotPartBytes) {
        return DataLoss("snapshot: byte %d of the message: expected a part of at most %d bytes, found %d", at,
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

bool SplitJob(std::string_view job, std::string& own, std::string& shared) {
  own.clear();
  shared.clear();
  CodedInputStream in(reinterpret_cast<const uint8_t*>(job.data()), static_cast<int>(job.size()));
  for (size_t begin = 0; begin < job.size(); begin = static_cast<size_t>(in.CurrentPosition())) {
    const uint32_t tag = in.ReadTag();
    if (!WireFormatLite::SkipField(&in, tag)) return false;
    (IsOwn(tag) ? own : shared).append(job.substr(begin, static_cast<size_t>(in.CurrentPosition()) - begin));
  }
  return true;
}

}  // namespace horus
