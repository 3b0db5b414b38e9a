// SPDX-License-Identifier: Apache-2.0
// Sizes of named dimensions and of the batch; tensors of the graph inputs.
#include <algorithm>
#include <map>
#include <string_view>

#include "base/text.h"
#include "graph/binder.h"
#include "graph/roles.h"

namespace horus {
namespace {

// Names that exporters give the batch dimension, most telling first.
constexpr std::string_view kBatchNames[] = {"batch", "batch_size", "N", "n", "bs"};

}  // namespace

absl::Status Binder::BindSymbols() {
  symbol_sizes_.assign(graph_.symbols.size(), kUnknownDim);
  FindWeightInputs();
  if (bindings_.batch < 0) return InvalidArgument("batch is %d, expected at least 1", bindings_.batch);
  HORUS_RETURN_IF_ERROR(BindNamed());
  return BindBatch();
}

absl::Status Binder::BindNamed() {
  if (bindings_.dims.empty()) return absl::OkStatus();
  std::map<std::string_view, size_t> positions;
  for (size_t i = 0; i < graph_.symbols.size(); ++i) positions.emplace(graph_.symbols[i], i);
  for (const auto& [name, size] : bindings_.dims) {
    if (size < 1) return InvalidArgument("dimension %s is %d, expected at least 1", Quoted(name), size);
    const auto found = positions.find(name);
    if (found == positions.end()) {
      const std::vector<std::string_view> names(graph_.symbols.begin(), graph_.symbols.end());
      const std::string near = Nearest(name, names);
      if (!near.empty()) {
        return InvalidArgument("the graph has no dimension %s, did you mean: %s", Quoted(name), near);
      }
      const std::vector<std::string_view> inputs = InputDims(graph_);
      return InvalidArgument("the graph has no dimension %s; %s", Quoted(name),
                             inputs.empty() ? "its inputs name none" : "its inputs name " + QuotedSome(inputs));
    }
    int64_t& bound = symbol_sizes_[found->second];
    if (bound != kUnknownDim && bound != size) {
      return InvalidArgument("dimension %s is bound to %d and to %d", Quoted(name), bound, size);
    }
    bound = size;
  }
  return absl::OkStatus();
}

// Inputs that are weights in disguise: fixed sizes, read where an operator expects weights.
void Binder::FindWeightInputs() {
  const GraphBody& main = graph_.main();
  weight_inputs_.assign(main.inputs.size(), false);
  if (main.inputs.size() < 2) return;
  std::vector<int32_t> position(main.values.size(), -1);
  for (size_t i = 0; i < main.inputs.size(); ++i) position[main.inputs[i].value()] = static_cast<int32_t>(i);
  for (const Node& node : main.nodes) {
    for (size_t slot = 0; slot < node.inputs.size(); ++slot) {
      const ValueId id = node.inputs[slot];
      if (!id.valid() || position[id.value()] < 0 || SlotOf(node, slot) != InputSlot::kWeight) continue;
      const Value& value = main.values[id.value()];
      if (!value.dims.has_value() || !IsFloating(value.dtype)) continue;
      const bool fixed = std::all_of(value.dims->begin(), value.dims->end(),
                                     [](const DeclaredDim& dim) { return dim.size != kUnknownDim; });
      if (fixed) weight_inputs_[static_cast<size_t>(position[id.value()])] = true;
    }
  }
}

absl::Status Binder::BindBatch() {
  const GraphBody& main = graph_.main();
  const DeclaredDim* leading = nullptr;
  int64_t* symbol = nullptr;
  size_t best = std::size(kBatchNames);
  for (size_t i = 0; i < main.inputs.size(); ++i) {
    const Value& value = main.values[main.inputs[i].value()];
    if (weight_inputs_[i] || !value.dims.has_value() || value.dims->empty()) continue;
    if (leading == nullptr) leading = &value.dims->front();
    for (const DeclaredDim& dim : *value.dims) {
      if (!dim.symbol.valid()) continue;
      const auto* name = std::find(std::begin(kBatchNames), std::end(kBatchNames), graph_.symbols[dim.symbol.value()]);
      const auto rank = static_cast<size_t>(name - std::begin(kBatchNames));
      if (rank >= best) continue;
      best = rank;
      symbol = &symbol_sizes_[dim.symbol.value()];
    }
  }
  if (symbol == nullptr && leading != nullptr && leading->symbol.valid())
    symbol = &symbol_sizes_[leading->symbol.value()];
  const int64_t wished = bindings_.batch;
  if (symbol != nullptr) {
    if (*symbol != kUnknownDim && wished > 0 && *symbol != wished) {
      return InvalidArgument("the batch dimension is bound to %d and to %d", *symbol, wished);
    }
    if (*symbol == kUnknownDim) *symbol = wished > 0 ? wished : 1;
    result.batch = *symbol;
    unnamed_leading_is_batch_ = false;
    return absl::OkStatus();
  }
  if (leading == nullptr) {
    if (wished > 0) return InvalidArgument("batch is %d, but no graph input has a leading dimension", wished);
    return absl::OkStatus();
  }
  if (leading->size == kUnknownDim) {
    unnamed_leading_is_batch_ = true;
    result.batch = wished > 0 ? wished : 1;
    return absl::OkStatus();
  }
  result.batch = wished > 0 ? wished : std::max<int64_t>(leading->size, 1);
  if (wished > 0 && leading->size != wished) {
    if (leading->size < 1) return InvalidArgument("the batch dimension has size %d in the file", leading->size);
    state.old_batch = leading->size;
    state.new_batch = wished;
    fixed_batch_replaced_ = true;
  }
  return absl::OkStatus();
}

absl::Status Binder::MakeInputs(Frame* frame) {
  const GraphBody& main = graph_.main();
  for (size_t i = 0; i < main.inputs.size(); ++i) {
    const Value& value = main.values[main.inputs[i].value()];
    const TensorId t = NewTensor(value.name);
    frame->tensors[main.inputs[i].value()] = t;
    const bool weight = weight_inputs_[i];
    state.facts[t.value()].source = weight ? Source::kWeightInput : Source::kInput;
    if (!weight) result.inputs.push_back({main.inputs[i], t});
    state.tensors[t.value()].dtype = value.dtype;
    if (!value.dims.has_value()) continue;
    Dims dims;
    for (const DeclaredDim& dim : *value.dims) {
      dims.push_back(dim.symbol.valid() ? symbol_sizes_[dim.symbol.value()] : dim.size);
    }
    if (!weight && !dims.empty()) {
      const bool unnamed = !value.dims->front().symbol.valid() && dims[0] == kUnknownDim;
      if (unnamed && unnamed_leading_is_batch_) dims[0] = result.batch;
      if (fixed_batch_replaced_ && dims[0] == state.old_batch) dims[0] = state.new_batch;
    }
    if (absl::Status status = SetDims(&state, t, value.dtype, std::move(dims)); !status.ok()) {
      return MakeError(status.code(), "graph input %d: %s", i, status.message());
    }
  }
  return absl::OkStatus();
}

}  // namespace horus
