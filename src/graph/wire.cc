// SPDX-License-Identifier: Apache-2.0
// Checked reading of protobuf wire format.
#include "graph/wire.h"

#include <bit>

namespace horus {
namespace {

constexpr int kMaxVarintBytes = 10;  // protobuf encoding of a 64-bit number
constexpr int kTagTypeBits = 3;      // protobuf encoding: tag = field number << 3 | wire type

// By WireType.
constexpr const char* kWireTypeNames[] = {"varint", "64-bit", "length-delimited", "group start", "group end", "32-bit"};
const char* NameOf(WireType type) { return kWireTypeNames[static_cast<size_t>(type)]; }

}  // namespace

WireReader::WireReader(google::protobuf::io::ZeroCopyInputStream* stream, int total_bytes) : in_(stream) {
  static_cast<void>(in_.PushLimit(total_bytes));
}

absl::Status WireReader::Next(const char* message, WireField* field) {
  message_ = message;
  const uint32_t tag = in_.ReadTag();
  if (tag == 0) {
    if (in_.BytesUntilLimit() == 0) {
      field->number = 0;
      return absl::OkStatus();
    }
    return DataLoss("%s at byte %d: not a protobuf field", message, offset());
  }
  field->number = tag >> kTagTypeBits;
  const uint32_t type = tag & ((1u << kTagTypeBits) - 1);
  field->type = static_cast<WireType>(type);
  if (field->number == 0 || type > static_cast<uint32_t>(WireType::kFixed32)) {
    return DataLoss("%s at byte %d: field %u has wire type %u, which protobuf lacks", message, offset(), field->number,
                    type);
  }
  return absl::OkStatus();
}

absl::Status WireReader::Expect(const WireField& field, WireType type) const {
  if (field.type == type) return absl::OkStatus();
  return DataLoss("%s at byte %d: field %u is %s, expected %s", message_, offset(), field.number, NameOf(field.type),
                  NameOf(type));
}

absl::Status WireReader::Int(const WireField& field, int64_t* value) {
  HORUS_RETURN_IF_ERROR(Expect(field, WireType::kVarint));
  uint64_t bits = 0;
  if (!in_.ReadVarint64(&bits)) return Truncated(field);
  *value = static_cast<int64_t>(bits);
  return absl::OkStatus();
}

absl::Status WireReader::Float(const WireField& field, float* value) {
  HORUS_RETURN_IF_ERROR(Expect(field, WireType::kFixed32));
  uint32_t bits = 0;
  if (!in_.ReadLittleEndian32(&bits)) return Truncated(field);
  *value = std::bit_cast<float>(bits);
  return absl::OkStatus();
}

absl::Status WireReader::Length(const WireField& field, int* bytes) {
  HORUS_RETURN_IF_ERROR(Expect(field, WireType::kBytes));
  uint64_t length = 0;
  if (!in_.ReadVarint64(&length)) return Truncated(field);
  const int left = in_.BytesUntilLimit();
  if (length > static_cast<uint64_t>(left)) {
    return DataLoss("%s at byte %d: field %u is truncated: expected %u bytes, found %d", message_, offset(),
                    field.number, length, left);
  }
  *bytes = static_cast<int>(length);
  return absl::OkStatus();
}

absl::Status WireReader::Text(const WireField& field, int64_t max_bytes, std::string* value) {
  int bytes = 0;
  HORUS_RETURN_IF_ERROR(Length(field, &bytes));
  if (bytes > max_bytes) {
    return ResourceExhausted("%s at byte %d: field %u is a text of %d bytes, limit %d", message_, offset(),
                             field.number, bytes, max_bytes);
  }
  return Raw(bytes, value);
}

absl::Status WireReader::Enter(const WireField& field, Limit* outer) {
  int bytes = 0;
  HORUS_RETURN_IF_ERROR(Length(field, &bytes));
  *outer = in_.PushLimit(bytes);
  return absl::OkStatus();
}

absl::Status WireReader::Skip(const WireField& field) {
  switch (field.type) {
    case WireType::kVarint: {
      int64_t ignored = 0;
      return Int(field, &ignored);
    }
    case WireType::kFixed64:
      return SkipBytes(8);
    case WireType::kFixed32:
      return SkipBytes(4);
    case WireType::kBytes: {
      int bytes = 0;
      HORUS_RETURN_IF_ERROR(Length(field, &bytes));
      return SkipBytes(bytes);
    }
    case WireType::kGroupStart:
    case WireType::kGroupEnd:
      break;
  }
  return DataLoss("%s at byte %d: field %u is a group, which ONNX lacks", message_, offset(), field.number);
}

template <typename Element, typename Read>
absl::Status WireReader::Repeated(const WireField& field, WireType single, int64_t max_total, int max_element_bytes,
                                  std::vector<Element>* values, bool* dropped, Read read) {
  const auto keep = [&](Element value) {
    if (*dropped || static_cast<int64_t>(values->size()) >= max_total) {
      *dropped = true;
      values->clear();
    } else {
      values->push_back(value);
    }
  };
  Element value{};
  if (field.type == single) {
    if (!read(&value)) return Truncated(field);
    keep(value);
    return absl::OkStatus();
  }
  int bytes = 0;
  HORUS_RETURN_IF_ERROR(Length(field, &bytes));
  if (*dropped || bytes / max_element_bytes > max_total) {
    *dropped = true;
    values->clear();
    return SkipBytes(bytes);
  }
  const Limit outer = in_.PushLimit(bytes);
  while (in_.BytesUntilLimit() > 0) {
    if (!read(&value)) return Truncated(field);
    keep(value);
  }
  Leave(outer);
  return absl::OkStatus();
}

absl::Status WireReader::Ints(const WireField& field, int64_t max_total, std::vector<int64_t>* values, bool* dropped) {
  return Repeated(field, WireType::kVarint, max_total, kMaxVarintBytes, values, dropped, [this](int64_t* value) {
    uint64_t bits = 0;
    const bool ok = in_.ReadVarint64(&bits);
    *value = static_cast<int64_t>(bits);
    return ok;
  });
}

absl::Status WireReader::Floats(const WireField& field, int64_t max_total, std::vector<float>* values, bool* dropped) {
  return Repeated(field, WireType::kFixed32, max_total, static_cast<int>(sizeof(float)), values, dropped,
                  [this](float* value) {
                    uint32_t bits = 0;
                    const bool ok = in_.ReadLittleEndian32(&bits);
                    *value = std::bit_cast<float>(bits);
                    return ok;
                  });
}

}  // namespace horus
