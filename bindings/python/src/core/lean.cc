// SPDX-License-Identifier: Apache-2.0
// Walks the wire format of protobuf down to ModelProto.graph.initializer; see lean.h.
#include "lean.h"

#include <cstdint>
#include <optional>

namespace horus_python {
namespace {

// Field numbers of onnx.proto.
constexpr uint64_t kModelGraph = 7;
constexpr uint64_t kGraphInitializer = 5;
constexpr uint64_t kTensorPayloads[] = {4, 5, 6, 7, 9, 10, 11};  // float, int32, string, int64, raw, double, uint64
// The library reads the values of constants of up to 4,096 elements: shapes. 8 bytes each.
constexpr size_t kKeepBytes = size_t{4096} * 8;

constexpr unsigned kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;

struct Wire {
  const char* at;
  const char* end;
  [[nodiscard]] bool done() const { return at == end; }
};

struct Field {
  uint64_t number = 0;
  unsigned type = 0;
  const char* begin = nullptr;  // of tag and value
  const char* body = nullptr;   // of the value of a kBytes field
  const char* end = nullptr;
};

std::optional<uint64_t> ReadVarint(Wire& wire) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !wire.done(); shift += 7) {
    const auto byte = static_cast<unsigned char>(*wire.at++);
    value |= uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80U) return value;
  }
  return std::nullopt;
}

std::optional<Field> ReadField(Wire& wire) {
  Field field;
  field.begin = wire.at;
  const auto tag = ReadVarint(wire);
  if (!tag) return std::nullopt;
  field.number = *tag >> 3U;
  field.type = static_cast<unsigned>(*tag & 7U);
  uint64_t size = 0;
  if (field.type == kVarint) {
    if (!ReadVarint(wire)) return std::nullopt;
  } else if (field.type == kFixed64 || field.type == kFixed32) {
    size = field.type == kFixed64 ? 8 : 4;
  } else if (field.type == kBytes) {
    const auto length = ReadVarint(wire);
    if (!length) return std::nullopt;
    size = *length;
  } else {
    return std::nullopt;
  }
  if (size > static_cast<uint64_t>(wire.end - wire.at)) return std::nullopt;
  field.body = wire.at;
  wire.at += size;
  field.end = wire.at;
  return field;
}

void AppendVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80U; value >>= 7U) out += static_cast<char>((value & 0x7FU) | 0x80U);
  out += static_cast<char>(value);
}

void AppendBytes(std::string& out, uint64_t number, const std::string& body) {
  AppendVarint(out, number << 3U | kBytes);
  AppendVarint(out, body.size());
  out += body;
}

// Each level copies its fields, but for those that the next level rewrites. Empty: not of this form.
std::optional<std::string> LeanTensor(Wire wire) {
  std::string out;
  while (!wire.done()) {
    const auto field = ReadField(wire);
    if (!field) return std::nullopt;
    bool payload = false;
    for (const uint64_t number : kTensorPayloads) payload = payload || field->number == number;
    if (!payload) out.append(field->begin, field->end);
  }
  return out;
}

std::optional<std::string> LeanGraph(Wire wire) {
  std::string out;
  while (!wire.done()) {
    const auto field = ReadField(wire);
    if (!field) return std::nullopt;
    if (field->number == kGraphInitializer && field->type == kBytes &&
        static_cast<size_t>(field->end - field->body) > kKeepBytes) {
      const auto tensor = LeanTensor({field->body, field->end});
      if (!tensor) return std::nullopt;
      AppendBytes(out, field->number, *tensor);
    } else {
      out.append(field->begin, field->end);
    }
  }
  return out;
}

}  // namespace

std::string WithoutWeights(const char* data, size_t size) {
  Wire wire = {data, data + size};
  std::string out;
  while (!wire.done()) {
    const auto field = ReadField(wire);
    if (!field) return std::string(data, size);
    if (field->number == kModelGraph && field->type == kBytes) {
      const auto graph = LeanGraph({field->body, field->end});
      if (!graph) return std::string(data, size);
      AppendBytes(out, field->number, *graph);
    } else {
      out.append(field->begin, field->end);
    }
  }
  return out;
}

}  // namespace horus_python
