// SPDX-License-Identifier: Apache-2.0
// Element types and attribute look-up of a Graph; sizes of tensors and of graph inputs.
#include "graph/graph.h"

#include <iterator>

#include "base/text.h"
#include "graph/shape_rule.h"

namespace horus {

namespace {

struct TypeInfo {
  std::string_view name;
  int bits = 0;  // of an element
  bool floating = false;
};

// In the order of DType.
constexpr TypeInfo kTypes[] = {
    {"undefined"},
    {"float32", 32, true},
    {"uint8", 8},
    {"int8", 8},
    {"uint16", 16},
    {"int16", 16},
    {"int32", 32},
    {"int64", 64},
    {"string"},
    {"bool", 8},
    {"float16", 16, true},
    {"float64", 64, true},
    {"uint32", 32},
    {"uint64", 64},
    {"complex64", 64},
    {"complex128", 128},
    {"bfloat16", 16, true},
    {"float8e4m3fn", 8, true},
    {"float8e4m3fnuz", 8, true},
    {"float8e5m2", 8, true},
    {"float8e5m2fnuz", 8, true},
    {"uint4", 4},
    {"int4", 4},
};
static_assert(std::size(kTypes) == static_cast<size_t>(DType::kInt4) + 1);

// A number that is no DType may come from a file.
const TypeInfo& InfoOf(DType dtype) {
  const auto at = static_cast<size_t>(dtype);
  return kTypes[at < std::size(kTypes) ? at : 0];
}

}  // namespace

std::string_view DTypeName(DType dtype) { return InfoOf(dtype).name; }
int BitsOf(DType dtype) { return InfoOf(dtype).bits; }
bool IsFloating(DType dtype) { return InfoOf(dtype).floating; }

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

// ---- ShapedGraph.

int64_t Tensor::elements() const { return known ? ElementsOf(dims) : 0; }

int64_t Tensor::bytes() const {
  // The number of elements is limited to 2^48 or what the caller says; bits of one element to 128.
  if (!known) return 0;
  const Wide bits = static_cast<Wide>(ElementsOf(dims)) * BitsOf(dtype);
  return static_cast<int64_t>((bits + 7) / 8);
}

std::vector<std::string_view> InputDims(const Graph& graph) {
  std::vector<std::string_view> names;
  std::vector<bool> seen(graph.symbols.size());
  for (const ValueId input : graph.main().inputs) {
    const Value& value = graph.main().values[input.value()];
    if (!value.dims.has_value()) continue;
    for (const DeclaredDim& dim : *value.dims) {
      if (!dim.symbol.valid() || seen[dim.symbol.value()]) continue;
      seen[dim.symbol.value()] = true;
      names.push_back(graph.symbols[dim.symbol.value()]);
    }
  }
  return names;
}

absl::Status CheckInputSizes(const ShapedGraph& shaped) {
  std::vector<std::string_view> open;
  std::string_view input;  // the first that has one
  for (const ShapedInput& one : shaped.inputs) {
    const Tensor& tensor = shaped.tensors[one.tensor.value()];
    const Value& value = shaped.graph->main().values[one.value.value()];
    for (size_t i = 0; value.dims.has_value() && i < value.dims->size() && i < tensor.dims.size(); ++i) {
      if (tensor.dims[i] != kUnknownDim) continue;
      const SymbolId symbol = (*value.dims)[i].symbol;
      if (!symbol.valid()) {
        return InvalidArgument("graph input %s: dimension %d has neither size nor name; export the graph with either",
                               Quoted(tensor.name), i);
      }
      const std::string_view name = shaped.graph->symbols[symbol.value()];
      if (std::ranges::find(open, name) != open.end()) continue;
      if (open.empty()) input = tensor.name;
      open.push_back(name);
    }
  }
  if (open.empty()) return absl::OkStatus();
  return InvalidArgument(
      "graph input %s: expected a size for %s, found none; give it in the run's dims (--dim NAME=SIZE, dim_names in C)",
      Quoted(input), QuotedSome(open));
}

}  // namespace horus
