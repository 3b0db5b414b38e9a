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
  WireField field;
  while (true) {
    HORUS_RETURN_IF_ERROR(in_.Next("ModelProto", &field));
    if (field.number == 0) break;
    switch (field.number) {
      case kIrVersion:
        HORUS_RETURN_IF_ERROR(in_.Int(field, &graph.ir_version));
        break;
      case kProducer:
        HORUS_RETURN_IF_ERROR(Name(field, &graph.producer));
        break;
      case kModelGraph: {
        if (saw_graph) return DataLoss("ModelProto has two graphs");
        saw_graph = true;
        BodyId id;
        // A function may come first in the file; the main graph is always body 0.
        if (scopes.empty()) scopes.emplace_back();
        HORUS_RETURN_IF_ERROR(GraphMessage(field, BodyId(), kNoNode, &id));
        break;
      }
      case kOpset:
        HORUS_RETURN_IF_ERROR(OpsetImport(field));
        break;
      case kMetadata:
        HORUS_RETURN_IF_ERROR(Metadata(field));
        break;
      case kFunctions:
        HORUS_RETURN_IF_ERROR(FunctionBody(field));
        break;
      default:
        HORUS_RETURN_IF_ERROR(in_.Skip(field));
    }
  }
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
  WireReader::Limit outer;
  HORUS_RETURN_IF_ERROR(in_.Enter(field, &outer));
  std::string domain;
  int64_t version = 0;
  WireField inner;
  while (true) {
    HORUS_RETURN_IF_ERROR(in_.Next("OperatorSetIdProto", &inner));
    if (inner.number == 0) break;
    switch (inner.number) {
      case kOpsetDomain:
        HORUS_RETURN_IF_ERROR(Name(inner, &domain));
        break;
      case kOpsetVersion:
        HORUS_RETURN_IF_ERROR(in_.Int(inner, &version));
        break;
      default:
        HORUS_RETURN_IF_ERROR(in_.Skip(inner));
    }
  }
  in_.Leave(outer);
  if (domain.empty() || domain == "ai.onnx") {
    if (graph.opset != 0 && graph.opset != version) {
      return DataLoss("two opsets of the default ONNX domain: %d and %d", graph.opset, version);
    }
    graph.opset = version;
  }
  return absl::OkStatus();
}

absl::Status Parser::Metadata(const WireField& field) {
  WireReader::Limit outer;
  HORUS_RETURN_IF_ERROR(in_.Enter(field, &outer));
  std::pair<std::string, std::string> entry;
  WireField inner;
  bool whole = true;
  while (true) {
    HORUS_RETURN_IF_ERROR(in_.Next("StringStringEntryProto", &inner));
    if (inner.number == 0) break;
    if (inner.number == kKey) {
      HORUS_RETURN_IF_ERROR(Name(inner, &entry.first));
    } else if (inner.number == kEntryText) {
      int bytes = 0;
      HORUS_RETURN_IF_ERROR(in_.Length(inner, &bytes));
      whole = bytes <= limits_.max_name_bytes;  // long notes (whole vocabularies) are no metadata of ours
      HORUS_RETURN_IF_ERROR(whole ? in_.Raw(bytes, &entry.second) : in_.SkipBytes(bytes));
    } else {
      HORUS_RETURN_IF_ERROR(in_.Skip(inner));
    }
  }
  in_.Leave(outer);
  if (!whole) return absl::OkStatus();
  HORUS_RETURN_IF_ERROR(Hold(static_cast<int64_t>(sizeof(entry) + entry.first.size() + entry.second.size())));
  graph.metadata.push_back(std::move(entry));
  return absl::OkStatus();
}

absl::Status Parser::FunctionBody(const WireField& field) {
  WireReader::Limit outer;
  HORUS_RETURN_IF_ERROR(in_.Enter(field, &outer));
  if (scopes.empty()) scopes.emplace_back();
  const BodyId body(static_cast<uint32_t>(scopes.size()));
  scopes.emplace_back();
  HORUS_RETURN_IF_ERROR(Hold(sizeof(Scope)));
  Function function{.body = body};
  std::string overload;
  WireField inner;
  while (true) {
    Scope& scope = scopes[body.value()];
    HORUS_RETURN_IF_ERROR(in_.Next("FunctionProto", &inner));
    if (inner.number == 0) break;
    switch (inner.number) {
      case kFunctionName:
        HORUS_RETURN_IF_ERROR(Name(inner, &function.name));
        break;
      case kFunctionDomain:
        HORUS_RETURN_IF_ERROR(Name(inner, &function.domain));
        break;
      case kFunctionOverload:
        HORUS_RETURN_IF_ERROR(Name(inner, &overload));
        break;
      case kFunctionInput:
      case kFunctionOutput: {
        HORUS_RETURN_IF_ERROR(Name(inner, &scratch_));
        HORUS_RETURN_IF_ERROR(Hold(static_cast<int64_t>(sizeof(Value) + scratch_.size())));
        const ValueId id = scope.Intern(scratch_);
        (inner.number == kFunctionInput ? scope.declared_inputs : scope.body.outputs).push_back(id);
        break;
      }
      case kFunctionAttribute:
        HORUS_RETURN_IF_ERROR(Name(inner, &scratch_));
        HORUS_RETURN_IF_ERROR(Hold(static_cast<int64_t>(sizeof(std::string) + scratch_.size())));
        function.attribute_names.push_back(scratch_);
        break;
      case kFunctionDefaults:
        HORUS_RETURN_IF_ERROR(AttributeMessage(inner, body, &function.attribute_defaults.emplace_back()));
        break;
      case kFunctionNode:
        if (absl::Status status = NodeMessage(inner, body); !status.ok()) {
          return At(absl::StrCat("function ", Quoted(function.name)), status);
        }
        break;
      default:
        HORUS_RETURN_IF_ERROR(in_.Skip(inner));
    }
  }
  in_.Leave(outer);
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
  WireField field;
  while (true) {
    HORUS_RETURN_IF_ERROR(in_.Next("GraphProto", &field));
    switch (field.number) {
      case 0:
        return absl::OkStatus();
      case kNode:
        HORUS_RETURN_IF_ERROR(NodeMessage(field, id));
        break;
      case kGraphName:
        HORUS_RETURN_IF_ERROR(Name(field, &scope.body.name));
        if (id.value() == 0) graph.name = scope.body.name;
        break;
      case kInitialiser:
        HORUS_RETURN_IF_ERROR(Initialiser(field, &scope, false));
        break;
      case kSparseInitialiser:
        HORUS_RETURN_IF_ERROR(Initialiser(field, &scope, true));
        break;
      case kGraphInput: {
        ValueId input;
        HORUS_RETURN_IF_ERROR(ValueInfo(field, &scope, &input));
        scope.declared_inputs.push_back(input);
        break;
      }
      case kGraphOutput: {
        ValueId output;
        HORUS_RETURN_IF_ERROR(ValueInfo(field, &scope, &output));
        scope.body.outputs.push_back(output);
        break;
      }
      case kValueInfo: {
        ValueId ignored;
        HORUS_RETURN_IF_ERROR(ValueInfo(field, &scope, &ignored));
        break;
      }
      default:
        HORUS_RETURN_IF_ERROR(in_.Skip(field));
    }
  }
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
  WireReader::Limit outer;
  HORUS_RETURN_IF_ERROR(in_.Enter(field, &outer));
  Value declared;
  WireField inner;
  while (true) {
    HORUS_RETURN_IF_ERROR(in_.Next("ValueInfoProto", &inner));
    if (inner.number == 0) break;
    if (inner.number == kValueName) {
      HORUS_RETURN_IF_ERROR(Name(inner, &declared.name));
    } else if (inner.number == kValueType) {
      if (absl::Status status = Type(inner, &declared); !status.ok()) {
        return At(absl::StrCat("type of value ", Quoted(declared.name)), status);
      }
    } else {
      HORUS_RETURN_IF_ERROR(in_.Skip(inner));
    }
  }
  in_.Leave(outer);
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
  WireReader::Limit outer;
  HORUS_RETURN_IF_ERROR(in_.Enter(field, &outer));
  WireField inner;
  while (true) {
    HORUS_RETURN_IF_ERROR(in_.Next("TypeProto", &inner));
    if (inner.number == 0) break;
    // Sequences, maps and optionals stay without type and shape.
    const bool tensor = inner.number == kTensorType || inner.number == kSparseTensorType;
    HORUS_RETURN_IF_ERROR(tensor ? TensorType(inner, value) : in_.Skip(inner));
  }
  in_.Leave(outer);
  return absl::OkStatus();
}

absl::Status Parser::TensorType(const WireField& field, Value* value) {
  WireReader::Limit outer;
  HORUS_RETURN_IF_ERROR(in_.Enter(field, &outer));
  WireField inner;
  while (true) {
    HORUS_RETURN_IF_ERROR(in_.Next("TypeProto.Tensor", &inner));
    if (inner.number == 0) break;
    if (inner.number == kElementType) {
      int64_t number = 0;
      HORUS_RETURN_IF_ERROR(in_.Int(inner, &number));
      value->dtype = DTypeOfNumber(number);
    } else if (inner.number == kShape) {
      HORUS_RETURN_IF_ERROR(Shape(inner, value));
    } else {
      HORUS_RETURN_IF_ERROR(in_.Skip(inner));
    }
  }
  in_.Leave(outer);
  return absl::OkStatus();
}

absl::Status Parser::Shape(const WireField& field, Value* value) {
  WireReader::Limit outer;
  HORUS_RETURN_IF_ERROR(in_.Enter(field, &outer));
  std::vector<DeclaredDim> dims;
  WireField inner;
  while (true) {
    HORUS_RETURN_IF_ERROR(in_.Next("TensorShapeProto", &inner));
    if (inner.number == 0) break;
    if (inner.number != kDim) {
      HORUS_RETURN_IF_ERROR(in_.Skip(inner));
      continue;
    }
    if (static_cast<int64_t>(dims.size()) >= limits_.max_rank) {
      return ResourceExhausted("more than %d dimensions", limits_.max_rank);
    }
    HORUS_RETURN_IF_ERROR(Dim(inner, &dims.emplace_back()));
  }
  in_.Leave(outer);
  HORUS_RETURN_IF_ERROR(Hold(static_cast<int64_t>(dims.size() * sizeof(DeclaredDim))));
  value->dims = std::move(dims);
  return absl::OkStatus();
}

absl::Status Parser::Dim(const WireField& field, DeclaredDim* dim) {
  WireReader::Limit outer;
  HORUS_RETURN_IF_ERROR(in_.Enter(field, &outer));
  WireField inner;
  while (true) {
    HORUS_RETURN_IF_ERROR(in_.Next("Dimension", &inner));
    if (inner.number == 0) break;
    if (inner.number == kDimValue) {
      HORUS_RETURN_IF_ERROR(in_.Int(inner, &dim->size));
      if (dim->size < 0) {
        return DataLoss("dimension is %d, expected at least 0", dim->size);
      }
      dim->symbol = SymbolId();
    } else if (inner.number == kDimParam) {
      std::string name;
      HORUS_RETURN_IF_ERROR(Name(inner, &name));
      dim->size = kUnknownDim;
      if (!name.empty()) dim->symbol = InternSymbol(name);
      HORUS_RETURN_IF_ERROR(Hold(0));
    } else {
      HORUS_RETURN_IF_ERROR(in_.Skip(inner));
    }
  }
  in_.Leave(outer);
  return absl::OkStatus();
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
