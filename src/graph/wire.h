// SPDX-License-Identifier: Apache-2.0
// WireReader: a checked cursor over protobuf wire format.
//
// Enters:  a stream of known total size.
// Leaves:  fields, one at a time; errors carry field, message and byte offset.
// Cost:    linear; Skip seeks where the stream can.
#pragma once

#include <google/protobuf/io/coded_stream.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace horus {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kGroupStart = 3, kGroupEnd = 4, kFixed32 = 5 };

struct WireField {
  uint32_t number = 0;  // 0 = end of the enclosing message
  WireType type = WireType::kVarint;
};

class WireReader {
 public:
  using Limit = google::protobuf::io::CodedInputStream::Limit;

  WireReader(google::protobuf::io::ZeroCopyInputStream* stream, int total_bytes);

  // The next field's header; `message` names the enclosing message in errors and must outlive the reader.
  [[nodiscard]] absl::Status Next(const char* message, WireField* field);

  // Content of the field just read. Each checks the wire type.
  [[nodiscard]] absl::Status Int(const WireField& field, int64_t* value);
  [[nodiscard]] absl::Status Float(const WireField& field, float* value);
  [[nodiscard]] absl::Status Text(const WireField& field, int64_t max_bytes, std::string* value);
  [[nodiscard]] absl::Status Length(const WireField& field, int* bytes);   // then exactly so many follow
  [[nodiscard]] absl::Status Enter(const WireField& field, Limit* outer);  // a submessage; close with Leave
  void Leave(Limit outer) { in_.PopLimit(outer); }
  [[nodiscard]] absl::Status Skip(const WireField& field);
  [[nodiscard]] absl::Status SkipBytes(int bytes) {
    if (!in_.Skip(bytes)) return DataLoss("%s at byte %d: truncated", message_, offset());
    return absl::OkStatus();
  }
  [[nodiscard]] absl::Status Raw(int bytes, std::string* value) {
    if (!in_.ReadString(value, bytes)) return DataLoss("%s at byte %d: truncated", message_, offset());
    return absl::OkStatus();
  }

  // Appends elements of a repeated number, packed or not. More than `max_total` of them are read over, not kept:
  // `*dropped` becomes true and `values` empty.
  [[nodiscard]] absl::Status Ints(const WireField& field, int64_t max_total, std::vector<int64_t>* values,
                                  bool* dropped);
  [[nodiscard]] absl::Status Floats(const WireField& field, int64_t max_total, std::vector<float>* values,
                                    bool* dropped);

  [[nodiscard]] int offset() const { return in_.CurrentPosition(); }
  [[nodiscard]] int remaining() { return in_.BytesUntilLimit(); }

 private:
  [[nodiscard]] absl::Status Expect(const WireField& field, WireType type) const;
  [[nodiscard]] absl::Status Truncated(const WireField& field) const {
    return DataLoss("%s at byte %d: field %u is truncated", message_, offset(), field.number);
  }
  template <typename Element, typename Read>
  [[nodiscard]] absl::Status Repeated(const WireField& field, WireType single, int64_t max_total, int max_element_bytes,
                                      std::vector<Element>* values, bool* dropped, Read read);

  google::protobuf::io::CodedInputStream in_;
  const char* message_ = "";
};

}  // namespace horus
