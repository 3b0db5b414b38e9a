// SPDX-License-Identifier: Apache-2.0
// Reads NodeProto, AttributeProto and TensorProto: type and dims of a tensor always, elements only of small integer,
// bool and float ones.
#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "base/units.h"
#include "graph/parser.h"

namespace horus {

// ---- Reads TensorProto: type and dims always, elements only of small integer, bool and float tensors.

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

namespace {

// Field numbers of onnx.proto (ONNX project), by message.
enum TensorField : uint32_t {
  kDims = 1,
  kDataType = 2,
  kFloatData = 4,
  kInt32Data = 5,
  kInt64Data = 7,
  kTensorName = 8,
  kRawData = 9,
  kDoubleData = 10,
  kUint64Data = 11,
  kDataLocation = 14,
};
enum SparseField : uint32_t { kSparseValues = 1, kSparseDims = 3 };
constexpr int64_t kLocationExternal = 1;  // TensorProto.DataLocation

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
  const auto width = static_cast<size_t>(WireBytes(literal->dtype));
  for (size_t at = 0; at + width <= raw.size(); at += width) {
    const uint64_t bits = LittleEndian(raw, at, width);
    switch (literal->dtype) {
      case DType::kFloat32:
        literal->floats.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
        break;
      case DType::kFloat64:
        literal->floats.push_back(static_cast<float>(std::bit_cast<double>(bits)));
        break;
      case DType::kInt8:
      case DType::kInt16:
      case DType::kInt32:
        literal->ints.push_back(SignExtend(bits, width));
        break;
      default:
        literal->ints.push_back(static_cast<int64_t>(bits));
        break;
    }
  }
}

// Moves the elements that were read into the literal, after checking their number.
absl::Status Settle(TensorParts* parts, int64_t max_elements) {
  Literal& literal = parts->literal;
  const std::optional<int64_t> elements = CheckedProduct(literal.dims);
  if (!elements.has_value()) {
    return DataLoss("the number of elements overflows 64 bits");
  }
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
  if (!parts->raw.empty()) {
    DecodeRaw(parts->raw, &literal);
  } else {
    if (IsFloating(literal.dtype)) {
      literal.floats = std::move(parts->floats);
    } else {
      literal.ints = std::move(parts->ints);
    }
  }
  const bool floating = IsFloating(literal.dtype);
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

}  // namespace

DType DTypeOfNumber(int64_t number) {
  return number >= 0 && number <= static_cast<int64_t>(DType::kInt4) ? static_cast<DType>(number) : DType::kUndefined;
}

void AvoidReserved(std::vector<int64_t>* elements) {
  for (int64_t& element : *elements) element = std::max(element, std::numeric_limits<int64_t>::min() + 1);
}

absl::Status Parser::Tensor(const WireField& field, Literal* literal, std::string* name) {
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
int64_t Parser::MaxElements(DType dtype) const {
  return IsFloating(dtype) ? std::min(limits_.max_literal_elements, limits_.max_rank) : limits_.max_literal_elements;
}

absl::Status Parser::Dims(const WireField& field, std::vector<int64_t>* dims) {
  bool too_many = false;
  HORUS_RETURN_IF_ERROR(in_.Ints(field, limits_.max_rank, dims, &too_many));
  return too_many ? ResourceExhausted("more than %d dimensions", limits_.max_rank) : absl::OkStatus();
}

absl::Status Parser::TensorPayload(const WireField& field, TensorParts* parts) {
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
      const std::optional<int64_t> kept = CheckedMul(MaxElements(dtype), width);  // a caller's limit may be any number
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

absl::Status Parser::SparseTensor(const WireField& field, Literal* literal, std::string* name) {
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
  if (!CheckedProduct(dims).has_value()) {
    return DataLoss("the number of elements overflows 64 bits");
  }
  literal->dtype = values.dtype;
  literal->dims = std::move(dims);
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

namespace {

// Field numbers of onnx.proto (ONNX project), by message.
enum NodeField : uint32_t {
  kInput = 1,
  kOutput = 2,
  kName = 3,
  kOpType = 4,
  kAttribute = 5,
  kDomain = 7,
  kOverload = 8
};
enum AttributeField : uint32_t {
  kAttributeName = 1,
  kFloat = 2,
  kInt = 3,
  kText = 4,
  kTensor = 5,
  kGraph = 6,
  kFloats = 7,
  kInts = 8,
  kTexts = 9,
  kGraphs = 11,
  kType = 20,
  kRef = 21,
};
// Numbers or texts of one attribute that are kept; longer lists (vocabularies, trees) shape nothing.
constexpr int64_t kMaxAttributeElements = 1 << 16;

// The field that holds the value, where that is one: AttributeProto numbers its types one below their fields.
bool HoldsValue(uint32_t field) { return (field >= kFloat && field <= kTexts) || field == kGraphs; }
uint64_t FieldOfType(int64_t type) { return static_cast<uint64_t>(type) + 1; }

void Assemble(AttributeParts parts, Attribute* attribute) {
  attribute->name = std::move(parts.name);
  attribute->ref = std::move(parts.ref);
  if (parts.dropped || !attribute->ref.empty()) return;
  AvoidReserved(&parts.ints);
  switch (parts.type != 0 ? FieldOfType(parts.type) : parts.last_field) {
    case kFloat:
      attribute->value = parts.float_value;
      break;
    case kInt:
      attribute->value = parts.int_value;
      break;
    case kText:
      attribute->value = std::move(parts.text);
      break;
    case kTensor:
      attribute->value = std::move(parts.tensor);
      break;
    case kGraph:
      if (!parts.graphs.empty()) attribute->value = parts.graphs.front();
      break;
    case kFloats:
      attribute->value = std::move(parts.floats);
      break;
    case kInts:
      attribute->value = std::move(parts.ints);
      break;
    case kTexts:
      attribute->value = std::move(parts.texts);
      break;
    case kGraphs:
      attribute->value = std::move(parts.graphs);
      break;
    default:
      break;
  }
}

}  // namespace

absl::Status Parser::NodeMessage(const WireField& field, BodyId body) {
  Scope& scope = scopes[body.value()];
  const size_t position = scope.body.nodes.size();
  if (++nodes_ > limits_.max_nodes) {
    return ResourceExhausted("the file has more than %d nodes", limits_.max_nodes);
  }
  HORUS_RETURN_IF_ERROR(Hold(sizeof(Node)));
  // Subgraphs inside this node refer to its position, so it gets its place before it is read.
  Node node;
  scope.body.nodes.emplace_back();
  WireReader::Limit outer;
  HORUS_RETURN_IF_ERROR(in_.Enter(field, &outer));
  absl::Status status = NodeFields(body, &node);
  if (status.ok() && node.op_type.empty()) {
    status = DataLoss("no op_type");
  }
  if (!status.ok()) return Within(DescribeNode(node, position), status);
  in_.Leave(outer);
  HORUS_RETURN_IF_ERROR(Hold(static_cast<int64_t>(node.name.size() + node.op_type.size() + node.domain.size())));
  scope.body.nodes[position] = std::move(node);
  return absl::OkStatus();
}

absl::Status Parser::NodeFields(BodyId body, Node* node) {
  Scope& scope = scopes[body.value()];
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

absl::Status Parser::AttributeMessage(const WireField& field, BodyId body, Attribute* attribute) {
  WireReader::Limit outer;
  HORUS_RETURN_IF_ERROR(in_.Enter(field, &outer));
  AttributeParts parts;
  const auto read = [&](const WireField& inner) { return AttributeField(inner, body, &parts); };
  if (const absl::Status status = Fields("AttributeProto", read); !status.ok()) {
    return Within(absl::StrCat("attribute ", Quoted(parts.name)), status);
  }
  in_.Leave(outer);
  int64_t bytes = static_cast<int64_t>(sizeof(Attribute) + parts.name.size() + parts.text.size() + parts.ref.size());
  bytes += static_cast<int64_t>(parts.ints.size() * sizeof(int64_t) + parts.floats.size() * sizeof(float));
  HORUS_RETURN_IF_ERROR(Hold(bytes));
  Assemble(std::move(parts), attribute);
  return absl::OkStatus();
}

absl::Status Parser::AttributeField(const WireField& field, BodyId body, AttributeParts* parts) {
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
      const auto owner = static_cast<uint32_t>(scopes[body.value()].body.nodes.size() - 1);
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

}  // namespace horus
