// SPDX-License-Identifier: Apache-2.0
// Walks ModelProto and everything below it: of a tensor type and dims always, elements only of small integer, bool and
// float ones.
#include <bit>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "base/units.h"
#include "graph/reader.h"
#include "graph/scope.h"
#include "graph/wire.h"

namespace horus {
namespace {

// Field numbers of onnx.proto (ONNX project), by message: the model, sets of operators, metadata, functions, graphs,
// values, types, tensors, nodes and attributes.
constexpr uint32_t kIrVersion = 1, kProducer = 2, kModelGraph = 7, kOpsets = 8, kMetadata = 14, kFunctions = 25;
constexpr uint32_t kOpsetDomain = 1, kOpsetVersion = 2;
constexpr uint32_t kKey = 1, kEntryText = 2;
constexpr uint32_t kFunctionName = 1, kFunctionInput = 4, kFunctionOutput = 5, kFunctionAttribute = 6,
                   kFunctionNode = 7, kFunctionDomain = 10, kFunctionDefaults = 11, kFunctionOverload = 13;
constexpr uint32_t kNode = 1, kGraphName = 2, kInitialisers = 5, kGraphInput = 11, kGraphOutput = 12, kValueInfo = 13,
                   kSparseInitialiser = 15;
constexpr uint32_t kValueName = 1, kValueType = 2;
constexpr uint32_t kTensorType = 1, kSparseTensorType = 8;
constexpr uint32_t kElementType = 1, kShape = 2;
constexpr uint32_t kDim = 1;
constexpr uint32_t kDimValue = 1, kDimParam = 2;
constexpr uint32_t kDims = 1, kDataType = 2, kFloatData = 4, kInt32Data = 5, kInt64Data = 7, kTensorName = 8,
                   kRawData = 9, kDoubleData = 10, kUint64Data = 11, kDataLocation = 14;
constexpr uint32_t kSparseValues = 1, kSparseDims = 3;
constexpr uint32_t kInput = 1, kOutput = 2, kName = 3, kOpType = 4, kAttribute = 5, kDomain = 7, kOverload = 8;
constexpr uint32_t kAttributeName = 1, kFloat = 2, kInt = 3, kText = 4, kTensor = 5, kGraph = 6, kFloats = 7, kInts = 8,
                   kTexts = 9, kGraphs = 11, kType = 20, kRef = 21;

// Versions beyond this are damage, not the future (ONNX is at IR 13 and opset 25 after nine years).
constexpr int64_t kAbsurdVersion = 1000;
constexpr int64_t kLocationExternal = 1;  // TensorProto.DataLocation
// Numbers or texts of one attribute that are kept; longer lists (vocabularies, trees) shape nothing.
constexpr int64_t kMaxAttributeElements = 1 << 16;

// The same for what may be inside others of its kind: of a long way there the end stays, behind "...".
absl::Status Within(std::string_view where, const absl::Status& status) {
  constexpr size_t kLongestBytes = 512;
  constexpr std::string_view kOmitted = "...";
  const std::string_view message(status.message().data(), status.message().size());
  if (message.size() <= kLongestBytes) return At(where, status);
  return message.starts_with(kOmitted) ? status : At(kOmitted, status);
}

// Raises the least 64-bit integer by one: shape rules use it as the mark of an unknown element, and where a file holds
// it (the open end of a slice) its neighbour says the same.
void AvoidReserved(std::vector<int64_t>* elements) {
  for (int64_t& element : *elements) element = std::max(element, std::numeric_limits<int64_t>::min() + 1);
}

// The content of one TensorProto before its elements are decoded.
struct TensorParts {
  Literal literal;
  std::string name;
  std::string raw;
  std::vector<int64_t> ints;  // int32_data, int64_data or uint64_data
  std::vector<float> floats;  // float_data
  int64_t raw_bytes = -1;     // length of raw_data, kept or not; -1 = absent
  bool dropped = false;       // there are elements that were not kept
  bool external = false;
};

int64_t WireBytes(DType dtype) { return BitsOf(dtype) / 8; }

bool KeepsElements(DType dtype) {
  if (IsFloating(dtype)) return dtype == DType::kFloat32 || dtype == DType::kFloat64;
  return BitsOf(dtype) >= 8 && dtype != DType::kComplex64 && dtype != DType::kComplex128;
}

uint64_t LittleEndian(const std::string& raw, size_t offset, size_t bytes) {
  uint64_t bits = 0;
  for (size_t i = bytes; i-- > 0;) bits = bits << 8 | static_cast<uint8_t>(raw[offset + i]);
  return bits;
}

int64_t SignExtend(uint64_t bits, size_t bytes) {
  // Bounded: at most 8 bytes of 8 bits.
  const int shift = static_cast<int>(64 - 8 * bytes);
  // Bounded: at most 8 bytes of 8 bits.
  return static_cast<int64_t>(bits << shift) >> shift;
}

void DecodeRaw(const std::string& raw, Literal* literal) {
  const DType type = literal->dtype;
  const auto width = static_cast<size_t>(WireBytes(type));
  for (size_t at = 0; at + width <= raw.size(); at += width) {
    const uint64_t bits = LittleEndian(raw, at, width);
    if (type == DType::kFloat32) {
      literal->floats.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    } else if (type == DType::kFloat64) {
      literal->floats.push_back(static_cast<float>(std::bit_cast<double>(bits)));
    } else {
      const bool has_sign = type == DType::kInt8 || type == DType::kInt16 || type == DType::kInt32;
      literal->ints.push_back(has_sign ? SignExtend(bits, width) : static_cast<int64_t>(bits));
    }
  }
}

// Moves the elements that were read into the literal, after checking their number.
absl::Status Settle(TensorParts* parts, int64_t max_elements) {
  Literal& literal = parts->literal;
  const std::optional<int64_t> elements = CheckedProduct(literal.dims);
  if (!elements.has_value()) return DataLoss("the number of elements overflows 64 bits");
  if (parts->external) return absl::OkStatus();
  const int bits = BitsOf(literal.dtype);
  if (parts->raw_bytes > 0 && bits >= 8) {
    const std::optional<int64_t> bytes = CheckedMul(*elements, bits / 8);
    if (bytes != parts->raw_bytes) {
      return DataLoss("raw_data has %d bytes, expected %d elements of %s", parts->raw_bytes, *elements,
                      DTypeName(literal.dtype));
    }
  }
  if (parts->dropped || *elements > max_elements || !KeepsElements(literal.dtype)) return absl::OkStatus();
  const bool floating = IsFloating(literal.dtype);
  if (!parts->raw.empty()) {
    DecodeRaw(parts->raw, &literal);
  } else if (floating) {
    literal.floats = std::move(parts->floats);
  } else {
    literal.ints = std::move(parts->ints);
  }
  const auto found = static_cast<int64_t>(floating ? literal.floats.size() : literal.ints.size());
  if (found != *elements) {
    if (found == 0) return absl::OkStatus();  // a graph without weights, or double_data
    literal.ints.clear();
    literal.floats.clear();
    return DataLoss("found %d elements, expected %d", found, *elements);
  }
  (floating ? literal.floats.shrink_to_fit() : literal.ints.shrink_to_fit());
  AvoidReserved(&literal.ints);
  literal.has_data = true;
  return absl::OkStatus();
}

// The content of one AttributeProto before its kind is known.
struct AttributeParts {
  std::string name, ref;
  int64_t type = 0, int_value = 0;
  float float_value = 0;
  std::string text;
  Literal tensor;
  std::vector<BodyId> graphs;
  std::vector<int64_t> ints;
  std::vector<float> floats;
  std::vector<std::string> texts;
  uint32_t last_field = 0;  // the value field seen last, for files that leave the type out
  bool dropped = false;     // too long to keep
};

// The field that holds the value, where that is one: AttributeProto numbers its types one below their fields.
bool HoldsValue(uint32_t field) { return (field >= kFloat && field <= kTexts) || field == kGraphs; }
uint64_t FieldOfType(int64_t type) { return static_cast<uint64_t>(type) + 1; }

void Assemble(AttributeParts parts, Attribute* attribute) {
  attribute->name = std::move(parts.name);
  attribute->ref = std::move(parts.ref);
  if (parts.dropped || !attribute->ref.empty()) return;
  AvoidReserved(&parts.ints);
  const uint64_t field = parts.type != 0 ? FieldOfType(parts.type) : parts.last_field;
  if (field == kFloat) attribute->value = parts.float_value;
  if (field == kInt) attribute->value = parts.int_value;
  if (field == kText) attribute->value = std::move(parts.text);
  if (field == kTensor) attribute->value = std::move(parts.tensor);
  if (field == kGraph && !parts.graphs.empty()) attribute->value = parts.graphs.front();
  if (field == kFloats) attribute->value = std::move(parts.floats);
  if (field == kInts) attribute->value = std::move(parts.ints);
  if (field == kTexts) attribute->value = std::move(parts.texts);
  if (field == kGraphs) attribute->value = std::move(parts.graphs);
}

class Parser {
 public:
  Parser(WireReader* in, const ReadLimits& limits) : in_(*in), limits_(limits) {}

  [[nodiscard]] absl::Status Model() {
    const auto read = [&](const WireField& field) -> absl::Status {
      switch (field.number) {
        case kIrVersion:
          return in_.Int(field, &parsed.graph.ir_version);
        case kProducer:
          return Name(field, &parsed.graph.producer);
        case kModelGraph: {
          if (saw_graph_) return DataLoss("ModelProto has two graphs");
          saw_graph_ = true;
          BodyId id;
          // A function may come first in the file; the main graph is always body 0.
          if (parsed.scopes.empty()) parsed.scopes.emplace_back();
          return GraphMessage(field, BodyId(), kNoNode, &id);
        }
        case kOpsets:
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

  ParsedModel parsed;

 private:
  // Counts heap against the limit.
  [[nodiscard]] absl::Status Hold(int64_t bytes) {
    held_ += bytes;
    if (held_ <= limits_.max_bytes_held) {
      parsed.graph.bytes_held = held_;
      return absl::OkStatus();
    }
    return ResourceExhausted("the graph needs more than %d bytes in memory at byte %d", limits_.max_bytes_held,
                             in_.offset());
  }
  [[nodiscard]] absl::Status Name(const WireField& field, std::string* text) {
    return in_.Text(field, limits_.max_name_bytes, text);
  }
  // The fields of the message that the reader stands in, one after another.
  [[nodiscard]] absl::Status Fields(const char* message, const auto& read) {
    WireField field;
    while (true) {
      HORUS_RETURN_IF_ERROR(in_.Next(message, &field));
      if (field.number == 0) return absl::OkStatus();
      HORUS_RETURN_IF_ERROR(read(field));
    }
  }
  // Those of the message inside `field`.
  [[nodiscard]] absl::Status Message(const WireField& field, const char* message, const auto& read) {
    WireReader::Limit outer;
    HORUS_RETURN_IF_ERROR(in_.Enter(field, &outer));
    HORUS_RETURN_IF_ERROR(Fields(message, read));
    in_.Leave(outer);
    return absl::OkStatus();
  }

  [[nodiscard]] absl::Status CheckVersions() const {
    if (parsed.graph.ir_version < kOldestIrVersion || parsed.graph.ir_version > kAbsurdVersion) {
      return MakeError(absl::StatusCode::kOutOfRange, "ONNX IR version is %d, supported are %d to %d",
                       parsed.graph.ir_version, kOldestIrVersion, kNewestIrVersion);
    }
    if (!saw_graph_) return DataLoss("ModelProto has no graph");
    bool needs_opset = false;
    for (const Node& node : parsed.scopes.front().body.nodes) needs_opset = needs_opset || node.domain.empty();
    if (parsed.graph.opset == 0 && !needs_opset) return absl::OkStatus();
    if (parsed.graph.opset < kOldestOpset || parsed.graph.opset > kAbsurdVersion) {
      return MakeError(absl::StatusCode::kOutOfRange, "opset of the default ONNX domain is %d, supported are %d to %d",
                       parsed.graph.opset, kOldestOpset, kNewestOpset);
    }
    return absl::OkStatus();
  }

  [[nodiscard]] absl::Status OpsetImport(const WireField& field) {
    std::string domain;
    int64_t version = 0;
    const auto read = [&](const WireField& inner) -> absl::Status {
      if (inner.number == kOpsetDomain) return Name(inner, &domain);
      return inner.number == kOpsetVersion ? in_.Int(inner, &version) : in_.Skip(inner);
    };
    HORUS_RETURN_IF_ERROR(Message(field, "OperatorSetIdProto", read));
    if (domain.empty() || domain == "ai.onnx") {
      if (parsed.graph.opset != 0 && parsed.graph.opset != version)
        return DataLoss("two opsets of the default ONNX domain: %d and %d", parsed.graph.opset, version);
      parsed.graph.opset = version;
    }
    return absl::OkStatus();
  }

  [[nodiscard]] absl::Status Metadata(const WireField& field) {
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
    parsed.graph.metadata.push_back(std::move(entry));
    return absl::OkStatus();
  }

  [[nodiscard]] absl::Status FunctionBody(const WireField& field) {
    if (parsed.scopes.empty()) parsed.scopes.emplace_back();
    const BodyId body(static_cast<uint32_t>(parsed.scopes.size()));
    parsed.scopes.emplace_back();
    HORUS_RETURN_IF_ERROR(Hold(sizeof(Scope)));
    Function function{.body = body};
    std::string overload;
    const auto read = [&](const WireField& inner) -> absl::Status {
      Scope& scope = parsed.scopes[body.value()];
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
    parsed.scopes[body.value()].body.name = function.name;
    parsed.graph.functions.push_back(std::move(function));
    return absl::OkStatus();
  }

  // ---- GraphProto, its declared types and its initialisers.

  [[nodiscard]] absl::Status GraphMessage(const WireField& field, BodyId parent, uint32_t owner_node, BodyId* id) {
    const int64_t most = std::min(limits_.max_nesting, kMostNesting);
    if (depth_ > most) {  // the model's own graph is inside none
      return ResourceExhausted("subgraphs are nested deeper than %d at byte %d", most, in_.offset());
    }
    *id = BodyId(0);
    if (parent.valid()) {
      *id = BodyId(static_cast<uint32_t>(parsed.scopes.size()));
      parsed.scopes.emplace_back();
      HORUS_RETURN_IF_ERROR(Hold(sizeof(Scope)));
    }
    Scope& scope = parsed.scopes[id->value()];
    scope.body.parent = parent;
    scope.owner_node = owner_node;
    WireReader::Limit outer;
    HORUS_RETURN_IF_ERROR(in_.Enter(field, &outer));
    ++depth_;
    if (absl::Status status = GraphFields(*id); !status.ok())
      return parent.valid() ? Within(DescribeBody(scope.body, id->value()), status) : status;
    --depth_;
    in_.Leave(outer);
    return absl::OkStatus();
  }

  [[nodiscard]] absl::Status GraphFields(BodyId id) {
    Scope& scope = parsed.scopes[id.value()];
    return Fields("GraphProto", [&](const WireField& field) -> absl::Status {
      ValueId value;
      switch (field.number) {
        case kNode:
          return NodeMessage(field, id);
        case kGraphName:
          HORUS_RETURN_IF_ERROR(Name(field, &scope.body.name));
          if (id.value() == 0) parsed.graph.name = scope.body.name;
          return absl::OkStatus();
        case kInitialisers:
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

  [[nodiscard]] absl::Status Initialiser(const WireField& field, Scope* scope, bool sparse) {
    Literal literal;
    std::string name;
    const size_t position = scope->body.literals.size();
    const absl::Status read = sparse ? SparseTensor(field, &literal, &name) : Tensor(field, &literal, &name);
    if (!read.ok()) return At(Formatted("initialiser %d %s", position, Quoted(name)), read);
    if (name.empty()) return DataLoss("initialiser %d at byte %d has no name", position, in_.offset());
    HORUS_RETURN_IF_ERROR(Hold(static_cast<int64_t>(sizeof(Value) + name.size())));
    const ValueId id = scope->Intern(name);
    Value& value = scope->body.values[id.value()];
    if (value.literal >= 0)
      return DataLoss("two initialisers are named %s (%d and %d)", Quoted(name), value.literal, position);
    value.literal = static_cast<int32_t>(position);
    scope->definition[id.value()] = Scope::Definition::kInitialiser;
    scope->body.literals.push_back(std::move(literal));
    return absl::OkStatus();
  }

  [[nodiscard]] absl::Status ValueInfo(const WireField& field, Scope* scope, ValueId* id) {
    Value declared;
    const auto read = [&](const WireField& inner) -> absl::Status {
      if (inner.number == kValueName) return Name(inner, &declared.name);
      if (inner.number != kValueType) return in_.Skip(inner);
      const absl::Status status = Type(inner, &declared);
      return status.ok() ? status : At(absl::StrCat("type of value ", Quoted(declared.name)), status);
    };
    HORUS_RETURN_IF_ERROR(Message(field, "ValueInfoProto", read));
    if (declared.name.empty()) return DataLoss("a graph input, output or value at byte %d has no name", in_.offset());
    HORUS_RETURN_IF_ERROR(Hold(static_cast<int64_t>(sizeof(Value) + declared.name.size())));
    *id = scope->Intern(declared.name);
    Value& value = scope->body.values[id->value()];
    if (value.dtype == DType::kUndefined) value.dtype = declared.dtype;
    if (!value.dims.has_value()) value.dims = std::move(declared.dims);
    return absl::OkStatus();
  }

  [[nodiscard]] absl::Status Type(const WireField& field, Value* value) {
    return Message(field, "TypeProto", [&](const WireField& inner) -> absl::Status {
      // Sequences, maps and optionals stay without type and shape.
      const bool tensor = inner.number == kTensorType || inner.number == kSparseTensorType;
      return tensor ? TensorType(inner, value) : in_.Skip(inner);
    });
  }

  [[nodiscard]] absl::Status TensorType(const WireField& field, Value* value) {
    return Message(field, "TypeProto.Tensor", [&](const WireField& inner) -> absl::Status {
      if (inner.number == kShape) return Shape(inner, value);
      if (inner.number != kElementType) return in_.Skip(inner);
      int64_t number = 0;
      HORUS_RETURN_IF_ERROR(in_.Int(inner, &number));
      value->dtype = DTypeOfNumber(number);
      return absl::OkStatus();
    });
  }

  [[nodiscard]] absl::Status Shape(const WireField& field, Value* value) {
    std::vector<DeclaredDim> dims;
    const auto read = [&](const WireField& inner) -> absl::Status {
      if (inner.number != kDim) return in_.Skip(inner);
      if (static_cast<int64_t>(dims.size()) >= limits_.max_rank)
        return ResourceExhausted("more than %d dimensions", limits_.max_rank);
      return Dim(inner, &dims.emplace_back());
    };
    HORUS_RETURN_IF_ERROR(Message(field, "TensorShapeProto", read));
    HORUS_RETURN_IF_ERROR(Hold(static_cast<int64_t>(dims.size() * sizeof(DeclaredDim))));
    value->dims = std::move(dims);
    return absl::OkStatus();
  }

  [[nodiscard]] absl::Status Dim(const WireField& field, DeclaredDim* dim) {
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

  [[nodiscard]] SymbolId InternSymbol(const std::string& name) {
    const uint32_t known =
        symbols_.Find(name, [this](uint32_t id) -> std::string_view { return parsed.graph.symbols[id]; });
    if (known != NameTable::kNone) return SymbolId(known);
    const auto id = static_cast<uint32_t>(parsed.graph.symbols.size());
    symbols_.ReserveOne();
    held_ += static_cast<int64_t>(sizeof(std::string) + name.size());
    parsed.graph.symbols.push_back(name);
    symbols_.Add(id);
    return SymbolId(id);
  }

  // ---- TensorProto.

  [[nodiscard]] absl::Status Tensor(const WireField& field, Literal* literal, std::string* name) {
    TensorParts parts;
    const absl::Status read =
        Message(field, "TensorProto", [&](const WireField& inner) { return TensorPayload(inner, &parts); });
    *name = std::move(parts.name);
    HORUS_RETURN_IF_ERROR(read);
    for (const int64_t dim : parts.literal.dims) {
      if (dim < 0) return DataLoss("dimension is %d, expected at least 0", dim);
    }
    HORUS_RETURN_IF_ERROR(Settle(&parts, MaxElements(parts.literal.dtype)));
    *literal = std::move(parts.literal);
    const size_t bytes = sizeof(Literal) + (literal->dims.size() + literal->ints.size()) * sizeof(int64_t) +
                         literal->floats.size() * sizeof(float);
    return Hold(static_cast<int64_t>(bytes));
  }

  // Floats steer shapes as scales, one an axis, and as limits; integers in longer lists too.
  [[nodiscard]] int64_t MaxElements(DType dtype) const {
    return IsFloating(dtype) ? std::min(limits_.max_literal_elements, limits_.max_rank) : limits_.max_literal_elements;
  }

  [[nodiscard]] absl::Status Dims(const WireField& field, std::vector<int64_t>* dims) {
    bool too_many = false;
    HORUS_RETURN_IF_ERROR(in_.Ints(field, limits_.max_rank, dims, &too_many));
    return too_many ? ResourceExhausted("more than %d dimensions", limits_.max_rank) : absl::OkStatus();
  }

  [[nodiscard]] absl::Status TensorPayload(const WireField& field, TensorParts* parts) {
    switch (field.number) {
      case kDims:
        return Dims(field, &parts->literal.dims);
      case kDataType: {
        int64_t number = 0;
        HORUS_RETURN_IF_ERROR(in_.Int(field, &number));
        parts->literal.dtype = DTypeOfNumber(number);
        return absl::OkStatus();
      }
      case kTensorName:
        return Name(field, &parts->name);
      case kFloatData:
        return in_.Floats(field, MaxElements(DType::kFloat32), &parts->floats, &parts->dropped);
      case kInt32Data:
      case kInt64Data:
      case kUint64Data:
        return in_.Ints(field, limits_.max_literal_elements, &parts->ints, &parts->dropped);
      case kRawData: {
        int bytes = 0;
        HORUS_RETURN_IF_ERROR(in_.Length(field, &bytes));
        parts->raw_bytes = bytes;
        const DType dtype = parts->literal.dtype;  // writers put it before the payload; undefined where it comes later
        const int64_t width = dtype == DType::kUndefined ? static_cast<int64_t>(sizeof(int64_t)) : WireBytes(dtype);
        const std::optional<int64_t> kept =
            CheckedMul(MaxElements(dtype), width);  // a caller's limit may be any number
        if (!kept.has_value() || bytes <= *kept) return in_.Raw(bytes, &parts->raw);
        parts->dropped = true;
        return in_.SkipBytes(bytes);
      }
      case kDataLocation: {
        int64_t location = 0;
        HORUS_RETURN_IF_ERROR(in_.Int(field, &location));
        parts->external = location == kLocationExternal;
        return absl::OkStatus();
      }
      default:
        return in_.Skip(field);  // texts, doubles, segments, file names of external data
    }
  }

  [[nodiscard]] absl::Status SparseTensor(const WireField& field, Literal* literal, std::string* name) {
    std::vector<int64_t> dims;
    Literal values;
    const auto read = [&](const WireField& inner) -> absl::Status {
      if (inner.number == kSparseValues) return Tensor(inner, &values, name);
      return inner.number == kSparseDims ? Dims(inner, &dims) : in_.Skip(inner);
    };
    HORUS_RETURN_IF_ERROR(Message(field, "SparseTensorProto", read));
    for (const int64_t dim : dims) {
      if (dim < 0) return DataLoss("dimension is %d, expected at least 0", dim);
    }
    if (!CheckedProduct(dims).has_value()) return DataLoss("the number of elements overflows 64 bits");
    literal->dtype = values.dtype;
    literal->dims = std::move(dims);
    return absl::OkStatus();
  }

  // ---- NodeProto and AttributeProto.

  [[nodiscard]] absl::Status NodeMessage(const WireField& field, BodyId body) {
    Scope& scope = parsed.scopes[body.value()];
    const size_t position = scope.body.nodes.size();
    if (++nodes_ > limits_.max_nodes) return ResourceExhausted("the file has more than %d nodes", limits_.max_nodes);
    HORUS_RETURN_IF_ERROR(Hold(sizeof(Node)));
    // Subgraphs inside this node refer to its position, so it gets its place before it is read.
    Node node;
    scope.body.nodes.emplace_back();
    WireReader::Limit outer;
    HORUS_RETURN_IF_ERROR(in_.Enter(field, &outer));
    absl::Status status = NodeFields(body, &node);
    if (status.ok() && node.op_type.empty()) status = DataLoss("no op_type");
    if (!status.ok()) return Within(DescribeNode(node, position), status);
    in_.Leave(outer);
    HORUS_RETURN_IF_ERROR(Hold(static_cast<int64_t>(node.name.size() + node.op_type.size() + node.domain.size())));
    scope.body.nodes[position] = std::move(node);
    return absl::OkStatus();
  }

  [[nodiscard]] absl::Status NodeFields(BodyId body, Node* node) {
    Scope& scope = parsed.scopes[body.value()];
    std::string overload;
    const auto read = [&](const WireField& field) -> absl::Status {
      switch (field.number) {
        case kInput:
        case kOutput: {
          HORUS_RETURN_IF_ERROR(Name(field, &scratch_));
          std::vector<ValueId>& list = field.number == kInput ? node->inputs : node->outputs;
          const size_t values_before = scope.body.values.size();
          list.push_back(scratch_.empty() ? ValueId() : scope.Intern(scratch_));
          const bool added = scope.body.values.size() > values_before;
          return Hold(static_cast<int64_t>(sizeof(ValueId) + (added ? sizeof(Value) + scratch_.size() : 0)));
        }
        case kName:
          return Name(field, &node->name);
        case kOpType:
          return Name(field, &node->op_type);
        case kDomain:
          return Name(field, &node->domain);
        case kOverload:
          return Name(field, &overload);
        case kAttribute:
          return AttributeMessage(field, body, &node->attributes.emplace_back());
        default:
          return in_.Skip(field);
      }
    };
    HORUS_RETURN_IF_ERROR(Fields("NodeProto", read));
    if (node->domain == "ai.onnx") node->domain.clear();
    if (!overload.empty()) node->op_type += ":" + overload;
    return absl::OkStatus();
  }

  [[nodiscard]] absl::Status AttributeMessage(const WireField& field, BodyId body, Attribute* attribute) {
    WireReader::Limit outer;
    HORUS_RETURN_IF_ERROR(in_.Enter(field, &outer));
    AttributeParts parts;
    const auto read = [&](const WireField& inner) { return AttributeField(inner, body, &parts); };
    if (const absl::Status status = Fields("AttributeProto", read); !status.ok())
      return Within(absl::StrCat("attribute ", Quoted(parts.name)), status);
    in_.Leave(outer);
    int64_t bytes = static_cast<int64_t>(sizeof(Attribute) + parts.name.size() + parts.text.size() + parts.ref.size());
    bytes += static_cast<int64_t>(parts.ints.size() * sizeof(int64_t) + parts.floats.size() * sizeof(float));
    HORUS_RETURN_IF_ERROR(Hold(bytes));
    Assemble(std::move(parts), attribute);
    return absl::OkStatus();
  }

  [[nodiscard]] absl::Status AttributeField(const WireField& field, BodyId body, AttributeParts* parts) {
    if (HoldsValue(field.number)) parts->last_field = field.number;
    switch (field.number) {
      case kAttributeName:
        return Name(field, &parts->name);
      case kFloat:
        return in_.Float(field, &parts->float_value);
      case kInt:
        return in_.Int(field, &parts->int_value);
      case kTensor: {
        std::string name;
        return Tensor(field, &parts->tensor, &name);
      }
      case kGraph:
      case kGraphs: {
        const auto owner = static_cast<uint32_t>(parsed.scopes[body.value()].body.nodes.size() - 1);
        BodyId id;
        HORUS_RETURN_IF_ERROR(GraphMessage(field, body, owner, &id));
        parts->graphs.push_back(id);
        return absl::OkStatus();
      }
      case kFloats:
        return in_.Floats(field, kMaxAttributeElements, &parts->floats, &parts->dropped);
      case kInts:
        return in_.Ints(field, kMaxAttributeElements, &parts->ints, &parts->dropped);
      case kText:
      case kTexts: {
        int bytes = 0;
        HORUS_RETURN_IF_ERROR(in_.Length(field, &bytes));
        const bool many = static_cast<int64_t>(parts->texts.size()) >= kMaxAttributeElements;
        if (bytes > limits_.max_name_bytes || many) {
          parts->dropped = true;
          return in_.SkipBytes(bytes);
        }
        if (field.number == kText) return in_.Raw(bytes, &parts->text);
        HORUS_RETURN_IF_ERROR(Hold(static_cast<int64_t>(sizeof(std::string)) + bytes));
        return in_.Raw(bytes, &parts->texts.emplace_back());
      }
      case kType:
        return in_.Int(field, &parts->type);
      case kRef:
        return Name(field, &parts->ref);
      default:
        return in_.Skip(field);
    }
  }

  WireReader& in_;
  const ReadLimits limits_;
  int64_t nodes_ = 0;
  int64_t held_ = 0;
  int64_t depth_ = 0;
  std::string scratch_;
  NameTable symbols_;
  bool saw_graph_ = false;
};

}  // namespace

absl::StatusOr<ParsedModel> ParseModel(WireReader* in, const ReadLimits& limits) {
  Parser parser(in, limits);
  HORUS_RETURN_IF_ERROR(parser.Model());
  return std::move(parser.parsed);
}

}  // namespace horus
