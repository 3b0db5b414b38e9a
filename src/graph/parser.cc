// SPDX-License-Identifier: Apache-2.0
// Parser: walks ModelProto and everything below it; nodes, attributes and tensors are in parser_node.cc.
#include "graph/parser.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text.h"

namespace horus {
namespace {

// ---- Reads the outermost messages of an ONNX file: ModelProto and FunctionProto.

// Field numbers of onnx.proto (ONNX project), by message.
enum ModelField : uint32_t {
  kIrVersion = 1,
  kProducer = 2,
  kModelGraph = 7,
  kOpset = 8,
  kMetadata = 14,
  kFunctions = 25
};
enum OpsetField : uint32_t { kOpsetDomain = 1, kOpsetVersion = 2 };
enum EntryField : uint32_t { kKey = 1, kEntryText = 2 };
enum FunctionField : uint32_t {
  kFunctionName = 1,
  kFunctionInput = 4,
  kFunctionOutput = 5,
  kFunctionAttribute = 6,
  kFunctionNode = 7,
  kFunctionDomain = 10,
  kFunctionDefaults = 11,
  kFunctionOverload = 13,
};

// Versions beyond this are damage, not the future (ONNX is at IR 13 and opset 25 after nine years).
constexpr int64_t kAbsurdVersion = 1000;

}  // namespace

absl::Status Within(std::string_view where, const absl::Status& status) {
  constexpr size_t kLongestBytes = 512;
  constexpr std::string_view kOmitted = "...";
  const std::string_view message(status.message().data(), status.message().size());
  if (message.size() <= kLongestBytes) return At(where, status);
  return message.starts_with(kOmitted) ? status : At(kOmitted, status);
}

absl::Status Parser::Hold(int64_t bytes) {
  held_ += bytes;
  if (held_ <= limits_.max_bytes_held) {
    graph.bytes_held = held_;
    return absl::OkStatus();
  }
  return ResourceExhausted("the graph needs more than %d bytes in memory at byte %d", limits_.max_bytes_held,
                           in_.offset());
}

absl::Status Parser::Model() {
  const auto read = [&](const WireField& field) -> absl::Status {
    switch (field.number) {
      case kIrVersion:
        return in_.Int(field, &graph.ir_version);
      case kProducer:
        return Name(field, &graph.producer);
      case kModelGraph: {
        if (saw_graph) return DataLoss("ModelProto has two graphs");
        saw_graph = true;
        BodyId id;
        // A function may come first in the file; the main graph is always body 0.
        if (scopes.empty()) scopes.emplace_back();
        return GraphMessage(field, BodyId(), kNoNode, &id);
      }
      case kOpset:
        return OpsetImport(field);
      case kMetadata:
        return Metadata(field);
      case kFunctions:
        return FunctionBody(field);
      default:
        return in_.Skip(field);
    }
  };
  HORUS_RETURN_IF_ERROR(Fields("ModelProto", read));
  return CheckVersions();
}

absl::Status Parser::CheckVersions() const {
  if (graph.ir_version < kOldestIrVersion || graph.ir_version > kAbsurdVersion) {
    return MakeError(absl::StatusCode::kOutOfRange, "ONNX IR version is %d, supported are %d to %d", graph.ir_version,
                     kOldestIrVersion, kNewestIrVersion);
  }
  if (!saw_graph) return DataLoss("ModelProto has no graph");
  bool needs_opset = false;
  for (const Node& node : scopes.front().body.nodes) needs_opset = needs_opset || node.domain.empty();
  if (graph.opset == 0 && !needs_opset) return absl::OkStatus();
  if (graph.opset < kOldestOpset || graph.opset > kAbsurdVersion) {
    return MakeError(absl::StatusCode::kOutOfRange, "opset of the default ONNX domain is %d, supported are %d to %d",
                     graph.opset, kOldestOpset, kNewestOpset);
  }
  return absl::OkStatus();
}

absl::Status Parser::OpsetImport(const WireField& field) {
  std::string domain;
  int64_t version = 0;
  const auto read = [&](const WireField& inner) -> absl::Status {
    if (inner.number == kOpsetDomain) return Name(inner, &domain);
    return inner.number == kOpsetVersion ? in_.Int(inner, &version) : in_.Skip(inner);
  };
  HORUS_RETURN_IF_ERROR(Message(field, "OperatorSetIdProto", read));
  if (domain.empty() || domain == "ai.onnx") {
    if (graph.opset != 0 && graph.opset != version) {
      return DataLoss("two opsets of the default ONNX domain: %d and %d", graph.opset, version);
    }
    graph.opset = version;
  }
  return absl::OkStatus();
}

absl::Status Parser::Metadata(const WireField& field) {
  std::pair<std::string, std::string> entry;
  bool whole = true;
  const auto read = [&](const WireField& inner) -> absl::Status {
    if (inner.number == kKey) return Name(inner, &entry.first);
    if (inner.number != kEntryText) return in_.Skip(inner);
    int bytes = 0;
    HORUS_RETURN_IF_ERROR(in_.Length(inner, &bytes));
    whole = bytes <= limits_.max_name_bytes;  // long notes (whole vocabularies) are no metadata of ours
    return whole ? in_.Raw(bytes, &entry.second) : in_.SkipBytes(bytes);
  };
  HORUS_RETURN_IF_ERROR(Message(field, "StringStringEntryProto", read));
  if (!whole) return absl::OkStatus();
  HORUS_RETURN_IF_ERROR(Hold(static_cast<int64_t>(sizeof(entry) + entry.first.size() + entry.second.size())));
  graph.metadata.push_back(std::move(entry));
  return absl::OkStatus();
}

absl::Status Parser::FunctionBody(const WireField& field) {
  if (scopes.empty()) scopes.emplace_back();
  const BodyId body(static_cast<uint32_t>(scopes.size()));
  scopes.emplace_back();
  HORUS_RETURN_IF_ERROR(Hold(sizeof(Scope)));
  Function function{.body = body};
  std::string overload;
  const auto read = [&](const WireField& inner) -> absl::Status {
    Scope& scope = scopes[body.value()];
    switch (inner.number) {
      case kFunctionName:
        return Name(inner, &function.name);
      case kFunctionDomain:
        return Name(inner, &function.domain);
      case kFunctionOverload:
        return Name(inner, &overload);
      case kFunctionInput:
      case kFunctionOutput: {
        HORUS_RETURN_IF_ERROR(Name(inner, &scratch_));
        HORUS_RETURN_IF_ERROR(Hold(static_cast<int64_t>(sizeof(Value) + scratch_.size())));
        const ValueId id = scope.Intern(scratch_);
        (inner.number == kFunctionInput ? scope.declared_inputs : scope.body.outputs).push_back(id);
        return absl::OkStatus();
      }
      case kFunctionAttribute:
        HORUS_RETURN_IF_ERROR(Name(inner, &scratch_));
        function.attribute_names.push_back(scratch_);
        return Hold(static_cast<int64_t>(sizeof(std::string) + scratch_.size()));
      case kFunctionDefaults:
        return AttributeMessage(inner, body, &function.attribute_defaults.emplace_back());
      case kFunctionNode: {
        const absl::Status status = NodeMessage(inner, body);
        return status.ok() ? status : At(absl::StrCat("function ", Quoted(function.name)), status);
      }
      default:
        return in_.Skip(inner);
    }
  };
  HORUS_RETURN_IF_ERROR(Message(field, "FunctionProto", read));
  if (function.domain == "ai.onnx") function.domain.clear();
  if (!overload.empty()) function.name += ":" + overload;
  scopes[body.value()].body.name = function.name;
  graph.functions.push_back(std::move(function));
  return absl::OkStatus();
}

namespace {

// ---- Reads GraphProto, its declared types and its initialisers.

// Field numbers of onnx.proto (ONNX project), by message.
enum GraphField : uint32_t {
  kNode = 1,
  kGraphName = 2,
  kInitialiser = 5,
  kGraphInput = 11,
  kGraphOutput = 12,
  kValueInfo = 13,
  kSparseInitialiser = 15,
};
enum ValueInfoField : uint32_t { kValueName = 1, kValueType = 2 };
enum TypeField : uint32_t { kTensorType = 1, kSparseTensorType = 8 };
enum TensorTypeField : uint32_t { kElementType = 1, kShape = 2 };
enum ShapeField : uint32_t { kDim = 1 };
enum DimField : uint32_t { kDimValue = 1, kDimParam = 2 };

}  // namespace

absl::Status Parser::GraphMessage(const WireField& field, BodyId parent, uint32_t owner_node, BodyId* id) {
  const int64_t most = std::min(limits_.max_nesting, kMostNesting);
  if (depth_ > most) {  // the model's own graph is inside none
    return ResourceExhausted("subgraphs are nested deeper than %d at byte %d", most, in_.offset());
  }
  *id = BodyId(0);
  if (parent.valid()) {
    *id = BodyId(static_cast<uint32_t>(scopes.size()));
    scopes.emplace_back();
    HORUS_RETURN_IF_ERROR(Hold(sizeof(Scope)));
  }
  Scope& scope = scopes[id->value()];
  scope.body.parent = parent;
  scope.owner_node = owner_node;
  WireReader::Limit outer;
  HORUS_RETURN_IF_ERROR(in_.Enter(field, &outer));
  ++depth_;
  if (absl::Status status = GraphFields(*id); !status.ok()) {
    return parent.valid() ? Within(DescribeBody(scope.body, id->value()), status) : status;
  }
  --depth_;
  in_.Leave(outer);
  return absl::OkStatus();
}

absl::Status Parser::GraphFields(BodyId id) {
  Scope& scope = scopes[id.value()];
  return Fields("GraphProto", [&](const WireField& field) -> absl::Status {
    ValueId value;
    switch (field.number) {
      case kNode:
        return NodeMessage(field, id);
      case kGraphName:
        HORUS_RETURN_IF_ERROR(Name(field, &scope.body.name));
        if (id.value() == 0) graph.name = scope.body.name;
        return absl::OkStatus();
      case kInitialiser:
      case kSparseInitialiser:
        return Initialiser(field, &scope, field.number == kSparseInitialiser);
      case kGraphInput:
        HORUS_RETURN_IF_ERROR(ValueInfo(field, &scope, &value));
        scope.declared_inputs.push_back(value);
        return absl::OkStatus();
      case kGraphOutput:
        HORUS_RETURN_IF_ERROR(ValueInfo(field, &scope, &value));
        scope.body.outputs.push_back(value);
        return absl::OkStatus();
      case kValueInfo:
        return ValueInfo(field, &scope, &value);
      default:
        return in_.Skip(field);
    }
  });
}

absl::Status Parser::Initialiser(const WireField& field, Scope* scope, bool sparse) {
  Literal literal;
  std::string name;
  const size_t position = scope->body.literals.size();
  const absl::Status read = sparse ? SparseTensor(field, &literal, &name) : Tensor(field, &literal, &name);
  if (!read.ok()) return At(Formatted("initialiser %d %s", position, Quoted(name)), read);
  if (name.empty()) {
    return DataLoss("initialiser %d at byte %d has no name", position, in_.offset());
  }
  HORUS_RETURN_IF_ERROR(Hold(static_cast<int64_t>(sizeof(Value) + name.size())));
  const ValueId id = scope->Intern(name);
  Value& value = scope->body.values[id.value()];
  if (value.literal >= 0) {
    return DataLoss("two initialisers are named %s (%d and %d)", Quoted(name), value.literal, position);
  }
  value.literal = static_cast<int32_t>(position);
  scope->definition[id.value()] = Scope::Definition::kInitialiser;
  scope->body.literals.push_back(std::move(literal));
  return absl::OkStatus();
}

absl::Status Parser::ValueInfo(const WireField& field, Scope* scope, ValueId* id) {
  Value declared;
  const auto read = [&](const WireField& inner) -> absl::Status {
    if (inner.number == kValueName) return Name(inner, &declared.name);
    if (inner.number != kValueType) return in_.Skip(inner);
    const absl::Status status = Type(inner, &declared);
    return status.ok() ? status : At(absl::StrCat("type of value ", Quoted(declared.name)), status);
  };
  HORUS_RETURN_IF_ERROR(Message(field, "ValueInfoProto", read));
  if (declared.name.empty()) {
    return DataLoss("a graph input, output or value at byte %d has no name", in_.offset());
  }
  HORUS_RETURN_IF_ERROR(Hold(static_cast<int64_t>(sizeof(Value) + declared.name.size())));
  *id = scope->Intern(declared.name);
  Value& value = scope->body.values[id->value()];
  if (value.dtype == DType::kUndefined) value.dtype = declared.dtype;
  if (!value.dims.has_value()) value.dims = std::move(declared.dims);
  return absl::OkStatus();
}

absl::Status Parser::Type(const WireField& field, Value* value) {
  return Message(field, "TypeProto", [&](const WireField& inner) -> absl::Status {
    // Sequences, maps and optionals stay without type and shape.
    const bool tensor = inner.number == kTensorType || inner.number == kSparseTensorType;
    return tensor ? TensorType(inner, value) : in_.Skip(inner);
  });
}

absl::Status Parser::TensorType(const WireField& field, Value* value) {
  return Message(field, "TypeProto.Tensor", [&](const WireField& inner) -> absl::Status {
    if (inner.number == kShape) return Shape(inner, value);
    if (inner.number != kElementType) return in_.Skip(inner);
    int64_t number = 0;
    HORUS_RETURN_IF_ERROR(in_.Int(inner, &number));
    value->dtype = DTypeOfNumber(number);
    return absl::OkStatus();
  });
}

absl::Status Parser::Shape(const WireField& field, Value* value) {
  std::vector<DeclaredDim> dims;
  const auto read = [&](const WireField& inner) -> absl::Status {
    if (inner.number != kDim) return in_.Skip(inner);
    if (static_cast<int64_t>(dims.size()) >= limits_.max_rank) {
      return ResourceExhausted("more than %d dimensions", limits_.max_rank);
    }
    return Dim(inner, &dims.emplace_back());
  };
  HORUS_RETURN_IF_ERROR(Message(field, "TensorShapeProto", read));
  HORUS_RETURN_IF_ERROR(Hold(static_cast<int64_t>(dims.size() * sizeof(DeclaredDim))));
  value->dims = std::move(dims);
  return absl::OkStatus();
}

absl::Status Parser::Dim(const WireField& field, DeclaredDim* dim) {
  return Message(field, "Dimension", [&](const WireField& inner) -> absl::Status {
    if (inner.number == kDimValue) {
      HORUS_RETURN_IF_ERROR(in_.Int(inner, &dim->size));
      if (dim->size < 0) return DataLoss("dimension is %d, expected at least 0", dim->size);
      dim->symbol = SymbolId();
      return absl::OkStatus();
    }
    if (inner.number != kDimParam) return in_.Skip(inner);
    std::string name;
    HORUS_RETURN_IF_ERROR(Name(inner, &name));
    dim->size = kUnknownDim;
    if (!name.empty()) dim->symbol = InternSymbol(name);
    return Hold(0);
  });
}

SymbolId Parser::InternSymbol(const std::string& name) {
  const uint32_t known = symbols_.Find(name, [this](uint32_t id) -> std::string_view { return graph.symbols[id]; });
  if (known != NameTable::kNone) return SymbolId(known);
  const auto id = static_cast<uint32_t>(graph.symbols.size());
  symbols_.ReserveOne();
  held_ += static_cast<int64_t>(sizeof(std::string) + name.size());
  graph.symbols.push_back(name);
  symbols_.Add(id);
  return SymbolId(id);
}

}  // namespace horus
