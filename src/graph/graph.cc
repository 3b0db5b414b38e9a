// SPDX-License-Identifier: Apache-2.0
// Element types and attribute look-up of a Graph.
#include "graph/graph.h"

namespace horus {

std::string_view DTypeName(DType dtype) {
  switch (dtype) {
    case DType::kUndefined:
      return "undefined";
    case DType::kFloat32:
      return "float32";
    case DType::kUint8:
      return "uint8";
    case DType::kInt8:
      return "int8";
    case DType::kUint16:
      return "uint16";
    case DType::kInt16:
      return "int16";
    case DType::kInt32:
      return "int32";
    case DType::kInt64:
      return "int64";
    case DType::kString:
      return "string";
    case DType::kBool:
      return "bool";
    case DType::kFloat16:
      return "float16";
    case DType::kFloat64:
      return "float64";
    case DType::kUint32:
      return "uint32";
    case DType::kUint64:
      return "uint64";
    case DType::kComplex64:
      return "complex64";
    case DType::kComplex128:
      return "complex128";
    case DType::kBfloat16:
      return "bfloat16";
    case DType::kFloat8E4M3Fn:
      return "float8e4m3fn";
    case DType::kFloat8E4M3Fnuz:
      return "float8e4m3fnuz";
    case DType::kFloat8E5M2:
      return "float8e5m2";
    case DType::kFloat8E5M2Fnuz:
      return "float8e5m2fnuz";
    case DType::kUint4:
      return "uint4";
    case DType::kInt4:
      return "int4";
  }
  return "undefined";
}

int BitsOf(DType dtype) {
  switch (dtype) {
    case DType::kUndefined:
    case DType::kString:
      return 0;
    case DType::kUint4:
    case DType::kInt4:
      return 4;
    case DType::kUint8:
    case DType::kInt8:
    case DType::kBool:
    case DType::kFloat8E4M3Fn:
    case DType::kFloat8E4M3Fnuz:
    case DType::kFloat8E5M2:
    case DType::kFloat8E5M2Fnuz:
      return 8;
    case DType::kUint16:
    case DType::kInt16:
    case DType::kFloat16:
    case DType::kBfloat16:
      return 16;
    case DType::kFloat32:
    case DType::kInt32:
    case DType::kUint32:
      return 32;
    case DType::kInt64:
    case DType::kFloat64:
    case DType::kUint64:
    case DType::kComplex64:
      return 64;
    case DType::kComplex128:
      return 128;
  }
  return 0;
}

bool IsFloating(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kFloat16:
    case DType::kFloat64:
    case DType::kBfloat16:
    case DType::kFloat8E4M3Fn:
    case DType::kFloat8E4M3Fnuz:
    case DType::kFloat8E5M2:
    case DType::kFloat8E5M2Fnuz:
      return true;
    default:
      return false;
  }
}

const Attribute* Node::FindAttribute(std::string_view attribute) const {
  for (const Attribute& candidate : attributes) {
    if (candidate.name == attribute) return &candidate;
  }
  return nullptr;
}

int64_t Node::IntOr(std::string_view attribute, int64_t fallback) const {
  const Attribute* found = FindAttribute(attribute);
  const int64_t* value = found == nullptr ? nullptr : std::get_if<int64_t>(&found->value);
  return value == nullptr ? fallback : *value;
}

const std::vector<int64_t>* Node::Ints(std::string_view attribute) const {
  const Attribute* found = FindAttribute(attribute);
  return found == nullptr ? nullptr : std::get_if<std::vector<int64_t>>(&found->value);
}

std::string_view Node::StringOr(std::string_view attribute, std::string_view fallback) const {
  const Attribute* found = FindAttribute(attribute);
  const std::string* value = found == nullptr ? nullptr : std::get_if<std::string>(&found->value);
  return value == nullptr ? fallback : std::string_view(*value);
}

}  // namespace horus
