// SPDX-License-Identifier: Apache-2.0
// Reads NodeProto and AttributeProto.
#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "graph/parser.h"

namespace horus {

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
// AttributeProto.AttributeType.
enum AttributeType : int64_t {
  kTypeFloat = 1,
  kTypeInt = 2,
  kTypeText = 3,
  kTypeTensor = 4,
  kTypeGraph = 5,
  kTypeFloats = 6,
  kTypeInts = 7,
  kTypeTexts = 8,
  kTypeGraphs = 10,
};

// Numbers or texts of one attribute that are kept; longer lists (vocabularies, trees) shape nothing.
constexpr int64_t kMaxAttributeElements = 1 << 16;

int64_t TypeOfField(uint32_t field) {
  switch (field) {
    case kFloat:
      return kTypeFloat;
    case kInt:
      return kTypeInt;
    case kText:
      return kTypeText;
    case kTensor:
      return kTypeTensor;
    case kGraph:
      return kTypeGraph;
    case kFloats:
      return kTypeFloats;
    case kInts:
      return kTypeInts;
    case kTexts:
      return kTypeTexts;
    case kGraphs:
      return kTypeGraphs;
    default:
      return 0;
  }
}

void Assemble(AttributeParts parts, Attribute* attribute) {
  attribute->name = std::move(parts.name);
  attribute->ref = std::move(parts.ref);
  if (parts.dropped || !attribute->ref.empty()) return;
  switch (parts.type != 0 ? parts.type : TypeOfField(parts.last_field)) {
    case kTypeFloat:
      attribute->value = parts.float_value;
      break;
    case kTypeInt:
      attribute->value = parts.int_value;
      break;
    case kTypeText:
      attribute->value = std::move(parts.text);
      break;
    case kTypeTensor:
      attribute->value = std::move(parts.tensor);
      break;
    case kTypeGraph:
      if (!parts.graphs.empty()) attribute->value = parts.graphs.front();
      break;
    case kTypeFloats:
      attribute->value = std::move(parts.floats);
      break;
    case kTypeInts:
      AvoidReserved(&parts.ints);
      attribute->value = std::move(parts.ints);
      break;
    case kTypeTexts:
      attribute->value = std::move(parts.texts);
      break;
    case kTypeGraphs:
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
    return MakeError(absl::StatusCode::kResourceExhausted, "the file has more than %d nodes", limits_.max_nodes);
  }
  HORUS_RETURN_IF_ERROR(Hold(sizeof(Node)));
  // Subgraphs inside this node refer to its position, so it gets its place before it is read.
  Node node;
  scope.body.nodes.emplace_back();
  WireReader::Limit outer;
  HORUS_RETURN_IF_ERROR(in_.Enter(field, &outer));
  absl::Status status = NodeFields(body, &node);
  if (status.ok() && node.op_type.empty()) {
    status = MakeError(absl::StatusCode::kDataLoss, "no op_type");
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
  WireField field;
  while (true) {
    HORUS_RETURN_IF_ERROR(in_.Next("NodeProto", &field));
    switch (field.number) {
      case 0:
        if (node->domain == "ai.onnx") node->domain.clear();
        if (!overload.empty()) node->op_type += ":" + overload;
        return absl::OkStatus();
      case kInput:
      case kOutput: {
        HORUS_RETURN_IF_ERROR(Name(field, &scratch_));
        std::vector<ValueId>& list = field.number == kInput ? node->inputs : node->outputs;
        const size_t values_before = scope.body.values.size();
        list.push_back(scratch_.empty() ? ValueId() : scope.Intern(scratch_));
        const bool added = scope.body.values.size() > values_before;
        HORUS_RETURN_IF_ERROR(
            Hold(static_cast<int64_t>(sizeof(ValueId) + (added ? sizeof(Value) + scratch_.size() : 0))));
        break;
      }
      case kName:
        HORUS_RETURN_IF_ERROR(Name(field, &node->name));
        break;
      case kOpType:
        HORUS_RETURN_IF_ERROR(Name(field, &node->op_type));
        break;
      case kDomain:
        HORUS_RETURN_IF_ERROR(Name(field, &node->domain));
        break;
      case kOverload:
        HORUS_RETURN_IF_ERROR(Name(field, &overload));
        break;
      case kAttribute:
        HORUS_RETURN_IF_ERROR(AttributeMessage(field, body, &node->attributes.emplace_back()));
        break;
      default:
        HORUS_RETURN_IF_ERROR(in_.Skip(field));
    }
  }
}

absl::Status Parser::AttributeMessage(const WireField& field, BodyId body, Attribute* attribute) {
  WireReader::Limit outer;
  HORUS_RETURN_IF_ERROR(in_.Enter(field, &outer));
  AttributeParts parts;
  WireField inner;
  while (true) {
    absl::Status status = in_.Next("AttributeProto", &inner);
    if (status.ok() && inner.number == 0) break;
    if (status.ok()) status = AttributeField(inner, body, &parts);
    if (!status.ok()) return Within(absl::StrCat("attribute ", Quoted(parts.name)), status);
  }
  in_.Leave(outer);
  int64_t bytes = static_cast<int64_t>(sizeof(Attribute) + parts.name.size() + parts.text.size() + parts.ref.size());
  bytes += static_cast<int64_t>(parts.ints.size() * sizeof(int64_t) + parts.floats.size() * sizeof(float));
  HORUS_RETURN_IF_ERROR(Hold(bytes));
  Assemble(std::move(parts), attribute);
  return absl::OkStatus();
}

absl::Status Parser::AttributeField(const WireField& field, BodyId body, AttributeParts* parts) {
  if (TypeOfField(field.number) != 0) parts->last_field = field.number;
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
