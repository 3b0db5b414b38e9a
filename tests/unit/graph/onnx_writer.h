// SPDX-License-Identifier: Apache-2.0
// A tiny writer of ONNX bytes for tests: messages are strings, fields are appended.
//
// Enters:  names, dims, attributes as C++ values.
// Leaves:  protobuf wire format of ONNX messages, valid or damaged as the test wishes.
// Units:   ONNX field numbers, in the order of onnx.proto.
// Cost:    linear.                       Thread class: values.
#ifndef HORUS_TESTS_UNIT_GRAPH_ONNX_WRITER_H_
#define HORUS_TESTS_UNIT_GRAPH_ONNX_WRITER_H_

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace horus::onnx_writer {

using Bytes = std::string;

inline void Varint(Bytes* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}
inline Bytes Int(uint32_t field, int64_t value) {
  Bytes out;
  Varint(&out, uint64_t{field} << 3);
  Varint(&out, static_cast<uint64_t>(value));
  return out;
}
inline Bytes Text(uint32_t field, std::string_view value) {
  Bytes out;
  Varint(&out, uint64_t{field} << 3 | 2);
  Varint(&out, value.size());
  out.append(value);
  return out;
}
inline Bytes Float(uint32_t field, float value) {
  Bytes out;
  Varint(&out, uint64_t{field} << 3 | 5);
  const auto bits = std::bit_cast<uint32_t>(value);
  for (int i = 0; i < 4; ++i) out.push_back(static_cast<char>(bits >> (8 * i)));
  return out;
}
inline Bytes PackedInts(uint32_t field, const std::vector<int64_t>& values) {
  Bytes packed;
  for (const int64_t value : values) Varint(&packed, static_cast<uint64_t>(value));
  return Text(field, packed);
}
inline Bytes Ints(uint32_t field, const std::vector<int64_t>& values) {
  Bytes out;
  for (const int64_t value : values) out += Int(field, value);
  return out;
}

// TensorProto.DataType.
inline constexpr int64_t kFloat = 1, kUint8 = 2, kInt8 = 3, kInt32 = 6, kInt64 = 7, kBool = 9, kHalf = 10;

inline Bytes RawInt64(const std::vector<int64_t>& values) {
  Bytes raw;
  for (const int64_t value : values) {
    for (int i = 0; i < 8; ++i) raw.push_back(static_cast<char>(static_cast<uint64_t>(value) >> (8 * i)));
  }
  return raw;
}
// Bodies of messages, without their own field header.
inline Bytes Tensor(std::string_view name, const std::vector<int64_t>& dims, int64_t type, const Bytes& payload = "") {
  return Ints(1, dims) + Int(2, type) + payload + Text(8, name);
}
inline Bytes Int64Tensor(std::string_view name, const std::vector<int64_t>& dims, const std::vector<int64_t>& values) {
  return Tensor(name, dims, kInt64, Text(9, RawInt64(values)));
}
inline Bytes FloatTensor(std::string_view name, const std::vector<int64_t>& dims, const std::vector<float>& values) {
  Bytes payload;
  for (const float value : values) payload += Float(4, value);
  return Tensor(name, dims, kFloat, payload);
}

// A dimension of a declared type: a size, or a name; "" is neither.
struct Dim {
  Dim(int64_t value) : size(value) {}                            // NOLINT: literals read better
  Dim(const char* symbol) : name(symbol), open(name.empty()) {}  // NOLINT
  int64_t size = 0;
  std::string name;
  bool open = false;
};
inline Bytes Value(std::string_view name, int64_t type, const std::vector<Dim>& dims) {
  Bytes shape;
  for (const Dim& dim : dims) {
    const Bytes size = dim.open ? Bytes() : Int(1, dim.size);
    shape += Text(1, dim.name.empty() ? size : Text(2, dim.name));
  }
  return Text(1, name) + Text(2, Text(1, Int(1, type) + Text(2, shape)));
}
inline Bytes UntypedValue(std::string_view name) { return Text(1, name); }

inline Bytes IntAttribute(std::string_view name, int64_t value) { return Text(1, name) + Int(3, value) + Int(20, 2); }
inline Bytes FloatAttribute(std::string_view name, float value) { return Text(1, name) + Float(2, value) + Int(20, 1); }
inline Bytes TextAttribute(std::string_view name, std::string_view v) {
  return Text(1, name) + Text(4, v) + Int(20, 3);
}
inline Bytes TensorAttribute(std::string_view name, const Bytes& t) { return Text(1, name) + Text(5, t) + Int(20, 4); }
inline Bytes GraphAttribute(std::string_view name, const Bytes& g) { return Text(1, name) + Text(6, g) + Int(20, 5); }
inline Bytes IntsAttribute(std::string_view name, const std::vector<int64_t>& v) {
  return Text(1, name) + Ints(8, v) + Int(20, 7);
}
inline Bytes RefAttribute(std::string_view name, std::string_view ref, int64_t type) {
  return Text(1, name) + Int(20, type) + Text(21, ref);
}

inline Bytes Node(std::string_view type, const std::vector<std::string>& inputs,
                  const std::vector<std::string>& outputs, const std::vector<Bytes>& attributes = {},
                  std::string_view name = "", std::string_view domain = "") {
  Bytes out;
  for (const std::string& input : inputs) out += Text(1, input);
  for (const std::string& output : outputs) out += Text(2, output);
  if (!name.empty()) out += Text(3, name);
  out += Text(4, type);
  for (const Bytes& attribute : attributes) out += Text(5, attribute);
  if (!domain.empty()) out += Text(7, domain);
  return out;
}

struct GraphParts {
  std::vector<Bytes> nodes, initialisers, inputs, outputs, value_infos;
  std::string name = "g";
};
inline Bytes Graph(const GraphParts& parts) {
  Bytes out;
  for (const Bytes& node : parts.nodes) out += Text(1, node);
  out += Text(2, parts.name);
  for (const Bytes& tensor : parts.initialisers) out += Text(5, tensor);
  for (const Bytes& input : parts.inputs) out += Text(11, input);
  for (const Bytes& output : parts.outputs) out += Text(12, output);
  for (const Bytes& info : parts.value_infos) out += Text(13, info);
  return out;
}
inline Bytes Function(std::string_view domain, std::string_view name, const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs, const std::vector<Bytes>& nodes,
                      const std::vector<std::string>& attributes = {}, const std::vector<Bytes>& defaults = {}) {
  Bytes out = Text(1, name);
  for (const std::string& input : inputs) out += Text(4, input);
  for (const std::string& output : outputs) out += Text(5, output);
  for (const std::string& attribute : attributes) out += Text(6, attribute);
  for (const Bytes& node : nodes) out += Text(7, node);
  for (const Bytes& attribute : defaults) out += Text(11, attribute);
  return out + Text(10, domain);
}
inline Bytes Model(const Bytes& graph, int64_t opset = 17, int64_t ir_version = 8,
                   const std::vector<Bytes>& functions = {}) {
  Bytes out = Int(1, ir_version) + Text(7, graph) + Text(8, Text(1, "") + Int(2, opset));
  for (const Bytes& function : functions) out += Text(25, function);
  return out;
}
inline Bytes Model(const GraphParts& parts, int64_t opset = 17) { return Model(Graph(parts), opset); }

inline std::span<const uint8_t> Span(const Bytes& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

}  // namespace horus::onnx_writer

#endif  // HORUS_TESTS_UNIT_GRAPH_ONNX_WRITER_H_
