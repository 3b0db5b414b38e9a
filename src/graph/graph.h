// SPDX-License-Identifier: Apache-2.0
// Graph: what the job computes, as the ONNX file says it, before any dimension is bound.
//
// Enters:  ONNX bytes or a file (reader.h).   Leaves: an immutable graph without weights.
// Units:   dimensions in elements; -1 = unknown.
// Cost:    memory linear in nodes and names; payloads are never loaded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/ids.h"

namespace horus {

// ONNX TensorProto.DataType numbers.
enum class DType : uint8_t {
  kUndefined = 0,
  kFloat32 = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kFloat64 = 11,
  kUint32 = 12,
  kUint64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBfloat16 = 16,
  kFloat8E4M3Fn = 17,
  kFloat8E4M3Fnuz = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2Fnuz = 20,
  kUint4 = 21,
  kInt4 = 22,
};
[[nodiscard]] std::string_view DTypeName(DType dtype);
[[nodiscard]] int BitsOf(DType dtype);  // 0 for undefined and string
[[nodiscard]] bool IsFloating(DType dtype);
[[nodiscard]] constexpr DType DTypeOfNumber(int64_t number) {  // kUndefined for numbers that are none of these
  return number >= 0 && number <= static_cast<int64_t>(DType::kInt4) ? static_cast<DType>(number) : DType::kUndefined;
}

inline constexpr int64_t kUnknownDim = -1;

using ValueId = DenseId<struct ValueTag>;    // position in GraphBody::values
using BodyId = DenseId<struct BodyTag>;      // position in Graph::bodies
using SymbolId = DenseId<struct SymbolTag>;  // position in Graph::symbols

struct DeclaredDim {
  int64_t size = kUnknownDim;  // known size, or
  SymbolId symbol;             // a named dimension ("batch"), or neither
  friend bool operator==(const DeclaredDim&, const DeclaredDim&) = default;
};

// A tensor written in the file: type and shape always; elements only where they are few and steer shapes.
struct Literal {
  DType dtype = DType::kUndefined;
  std::vector<int64_t> dims;
  std::vector<int64_t> ints;  // integer and bool elements; empty unless has_data
  std::vector<float> floats;  // float elements; empty unless has_data
  bool has_data = false;
};

struct Attribute {
  std::string name;
  // none, INT, FLOAT, STRING, TENSOR, GRAPH, INTS, FLOATS, STRINGS, GRAPHS; other kinds are kept as none.
  std::variant<std::monostate, int64_t, float, std::string, Literal, BodyId, std::vector<int64_t>, std::vector<float>,
               std::vector<std::string>, std::vector<BodyId>>
      value;
  std::string ref;  // function bodies: the calling node's attribute that gives the value
};

// Of operators: onnxruntime's, and those by which from_config.cc says what ONNX cannot.
inline constexpr std::string_view kMicrosoftDomain = "com.microsoft", kHorusDomain = "horus";

struct Node {
  std::string name;    // may be empty
  std::string domain;  // "" = default ONNX domain ("ai.onnx" is folded into it)
  std::string op_type;
  std::vector<ValueId> inputs;  // invalid id = optional input left out
  std::vector<ValueId> outputs;
  std::vector<Attribute> attributes;

  [[nodiscard]] const Attribute* FindAttribute(std::string_view attribute) const;
  [[nodiscard]] int64_t IntOr(std::string_view attribute, int64_t fallback) const;
  [[nodiscard]] const std::vector<int64_t>* Ints(std::string_view attribute) const;  // nullptr when absent
  [[nodiscard]] std::string_view StringOr(std::string_view attribute, std::string_view fallback) const;
};

struct Value {
  std::string name;
  DType dtype = DType::kUndefined;
  std::optional<std::vector<DeclaredDim>> dims;  // as declared by the file; absent = rank unknown
  int32_t literal = -1;                          // position in GraphBody::literals for initialisers
};

// One scope: the main graph, a subgraph of If/Loop/Scan, or the body of a model-local function.
struct GraphBody {
  std::string name;
  std::vector<Value> values;
  std::vector<Literal> literals;
  std::vector<Node> nodes;      // topological order, ties in file order
  std::vector<ValueId> inputs;  // without initialisers
  std::vector<ValueId> outputs;
  BodyId parent;                                      // enclosing scope; invalid for the main graph and functions
  std::vector<std::pair<ValueId, ValueId>> captures;  // (value here, value in the parent) for outer names used here
};

// A model-local function; formal inputs and outputs are those of its body.
struct Function {
  std::string domain;
  std::string name;
  BodyId body;
  std::vector<std::string> attribute_names;
  std::vector<Attribute> attribute_defaults;  // used where the call does not give the attribute
};

struct Graph {
  int64_t ir_version = 0;
  int64_t opset = 0;  // of the default domain; 0 = not declared
  std::string producer;
  std::string name;
  std::vector<std::string> symbols;   // named dimensions, in order of first appearance
  std::vector<int64_t> unless_bound;  // by symbol: the size of one that nobody binds; empty = all unknown
  std::vector<GraphBody> bodies;      // [0] = main graph
  std::vector<Function> functions;
  std::vector<std::pair<std::string, std::string>> metadata;
  uint64_t fingerprint = 0;  // of structure, types, attributes and shape constants; names and weights do not count
  int64_t bytes_held = 0;    // approximate heap bytes of this value

  [[nodiscard]] const GraphBody& main() const { return bodies.front(); }
};

// Each of several names with blanks between them, as tables of operators have them.
void ForEachName(std::string_view names, const auto& use) {
  for (size_t end = 0; !names.empty(); names.remove_prefix(std::min(end + 1, names.size()))) {
    end = std::min(names.find(' '), names.size());
    use(names.substr(0, end));
  }
}

// 64 bits that name what a linked graph computes: operators, wiring, attributes, declared input types with the names of
// their dimensions, and the constants that steer shapes, which are integers and the floats that are scales, limits or
// depths. Names of values, texts of documentation and weights do not count.
[[nodiscard]] uint64_t FingerprintOf(const Graph& graph);

}  // namespace horus
