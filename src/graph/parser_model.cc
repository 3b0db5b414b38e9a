// SPDX-License-Identifier: Apache-2.0
// Reads the outermost messages of an ONNX file: ModelProto and FunctionProto.
#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "graph/parser.h"

namespace horus {
namespace {

// Field numbers of onnx.proto (ONNX project), by message.
enum ModelField : uint32_t { kIrVersion = 1, kProducer = 2, kGraph = 7, kOpset = 8, kMetadata = 14, kFunctions = 25 };
enum OpsetField : uint32_t { kOpsetDomain = 1, kOpsetVersion = 2 };
enum EntryField : uint32_t { kKey = 1, kText = 2 };
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

absl::Status At(std::string_view where, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(absl::string_view(where.data(), where.size()), ": ", status.message()));
}

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
  return MakeError(absl::StatusCode::kResourceExhausted, "the graph needs more than %d bytes in memory at byte %d",
                   limits_.max_bytes_held, in_.offset());
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
      case kGraph: {
        if (saw_graph) return MakeError(absl::StatusCode::kDataLoss, "ModelProto has two graphs");
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
  if (!saw_graph) return MakeError(absl::StatusCode::kDataLoss, "ModelProto has no graph");
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
      return MakeError(absl::StatusCode::kDataLoss, "two opsets of the default ONNX domain: %d and %d", graph.opset,
                       version);
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
    } else if (inner.number == kText) {
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

}  // namespace horus
