// SPDX-License-Identifier: Apache-2.0
// Parser: walks ModelProto and everything below it; nodes, attributes and tensors are in parser_node.cc.
//
// Enters:  a WireReader at the start of a ModelProto.
// Leaves:  scopes with raw order, functions and the header fields of a Graph.
// Units:   bytes, counts.
// Cost:    linear; call depth is bounded by ReadLimits::max_nesting.     Thread class: one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"
#include "graph/reader.h"
#include "graph/scope.h"
#include "graph/wire.h"

namespace horus {

class Parser {
 public:
  Parser(WireReader* in, const ReadLimits& limits) : in_(*in), limits_(limits) {}

  [[nodiscard]] absl::Status Model();  // parser.cc

  Graph graph;  // without bodies
  Scopes scopes;
  bool saw_graph = false;

 private:
  // parser.cc
  [[nodiscard]] absl::Status OpsetImport(const WireField& field);
  [[nodiscard]] absl::Status Metadata(const WireField& field);
  [[nodiscard]] absl::Status FunctionBody(const WireField& field);
  [[nodiscard]] absl::Status CheckVersions() const;
  [[nodiscard]] absl::Status Hold(int64_t bytes);  // counts heap against the limit
  [[nodiscard]] absl::Status Name(const WireField& field, std::string* text) {
    return in_.Text(field, limits_.max_name_bytes, text);
  }
  // The fields of the message that the reader stands in, one after another.
  template <typename ReadField>
  [[nodiscard]] absl::Status Fields(const char* message, const ReadField& read) {
    WireField field;
    while (true) {
      HORUS_RETURN_IF_ERROR(in_.Next(message, &field));
      if (field.number == 0) return absl::OkStatus();
      HORUS_RETURN_IF_ERROR(read(field));
    }
  }
  // Those of the message inside `field`.
  template <typename ReadField>
  [[nodiscard]] absl::Status Message(const WireField& field, const char* message, const ReadField& read) {
    WireReader::Limit outer;
    HORUS_RETURN_IF_ERROR(in_.Enter(field, &outer));
    HORUS_RETURN_IF_ERROR(Fields(message, read));
    in_.Leave(outer);
    return absl::OkStatus();
  }

  // parser.cc
  [[nodiscard]] absl::Status GraphMessage(const WireField& field, BodyId parent, uint32_t owner_node, BodyId* id);
  [[nodiscard]] absl::Status GraphFields(BodyId id);
  [[nodiscard]] absl::Status Initialiser(const WireField& field, Scope* scope, bool sparse);
  [[nodiscard]] absl::Status ValueInfo(const WireField& field, Scope* scope, ValueId* id);
  [[nodiscard]] absl::Status Type(const WireField& field, Value* value);
  [[nodiscard]] absl::Status TensorType(const WireField& field, Value* value);
  [[nodiscard]] absl::Status Shape(const WireField& field, Value* value);
  [[nodiscard]] absl::Status Dim(const WireField& field, DeclaredDim* dim);
  SymbolId InternSymbol(const std::string& name);

  // parser_node.cc
  [[nodiscard]] absl::Status NodeMessage(const WireField& field, BodyId body);
  [[nodiscard]] absl::Status NodeFields(BodyId body, Node* node);
  [[nodiscard]] absl::Status AttributeMessage(const WireField& field, BodyId body, Attribute* attribute);
  [[nodiscard]] absl::Status AttributeField(const WireField& field, BodyId body, struct AttributeParts* parts);

  // parser_node.cc
  [[nodiscard]] absl::Status Tensor(const WireField& field, Literal* literal, std::string* name);
  [[nodiscard]] absl::Status SparseTensor(const WireField& field, Literal* literal, std::string* name);
  [[nodiscard]] absl::Status Dims(const WireField& field, std::vector<int64_t>* dims);
  [[nodiscard]] absl::Status TensorPayload(const WireField& field, struct TensorParts* parts);
  [[nodiscard]] int64_t MaxElements(DType dtype) const;  // kept of one tensor

  WireReader& in_;
  const ReadLimits limits_;
  int64_t nodes_ = 0;
  int64_t held_ = 0;
  int64_t depth_ = 0;
  std::string scratch_;
  NameTable symbols_;
};

// The element type of a TensorProto.DataType number; kUndefined for numbers this reader does not know.
[[nodiscard]] DType DTypeOfNumber(int64_t number);

// Raises the least 64-bit integer by one: shape rules use it as the mark of an unknown element, and where a file
// holds it (the open end of a slice) its neighbour says the same.
void AvoidReserved(std::vector<int64_t>* elements);

// The same for what may be inside others of its kind: of a long way there the end stays, behind "...".
[[nodiscard]] absl::Status Within(std::string_view where, const absl::Status& status);

}  // namespace horus
