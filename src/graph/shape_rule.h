// SPDX-License-Identifier: Apache-2.0
// RuleContext: what the shape rule of one operator sees and sets; and the table of all rules.
//
// Enters:  the node, types, dims and (where known) elements of its inputs.
// Leaves:  types, dims and elements of its outputs, or an error that says which shapes contradict each other.
// Units:   elements; kUnknownDim and kUnknownElement mark what is not known.
// Cost:    constant per operator, plus folded elements (at most kMaxFoldedElements).
#pragma once

#include <limits>
#include <map>
#include <span>

#include "base/seeded_hash.h"
#include "base/status.h"
#include "graph/shaped.h"

namespace horus {

using Dims = std::vector<int64_t>;
__extension__ typedef __int128 Wide;  // products of two 64-bit sizes

inline constexpr int64_t kUnknownElement = std::numeric_limits<int64_t>::min();
inline constexpr int64_t kMaxFoldedElements = 4096;  // larger tensors are never computed
inline constexpr int64_t kMaxFoldedTotal = 1 << 23;  // elements of one binding; then nothing more is folded
inline constexpr int64_t kMaxRank = 64;              // as ReadLimits::max_rank
inline constexpr int64_t kMaxAttribute = 1 << 30;    // strides, pads, kernel sizes: more is damage

// Elements of a tensor that is computed from constants; one of the two lists, by element type.
struct Elements {
  std::vector<int64_t> ints;  // integer and bool; kUnknownElement where not known
  std::vector<float> floats;  // NaN where not known
};

// Where a tensor that no operator of the step computes comes from.
enum class Source : uint8_t { kComputed, kInput, kWeightInput, kInitialiser };

// What is known of one tensor besides Tensor::dims.
struct Facts {
  bool ranked = false;    // the number of dims is known
  bool sequence = false;  // a sequence of tensors: dims and elements are those of the tensors stacked
  Source source = Source::kComputed;
  int32_t elements = -1;  // position in ShapeState::elements
};

// The growing table of tensors.
struct ShapeState {
  std::vector<Tensor> tensors;
  std::vector<Facts> facts;
  std::vector<Elements> elements;
  int64_t folded = 0;  // elements held in `elements`
  int64_t opset = 0;
  int64_t max_tensor_elements = 0;
  bool bounds_sizes = true;  // a size that the data decides is the most that it can be; else unknown
  int64_t bounded = 0;       // sizes for which that was done
  int64_t old_batch = 0;     // fixed batch size in the file that was replaced; 0 = none
  int64_t new_batch = 0;
  struct Reshaped {
    Dims from, to;
  };
  std::map<size_t, Reshaped> written_reshapes;  // by operator: as the file has them, where its batch was replaced
  size_t op = 0;                                // position of the operator whose rule runs

  // Elements known of a tensor.
  [[nodiscard]] int64_t HeldBy(TensorId t) const {
    const int32_t at = facts[t.value()].elements;
    if (at < 0) return 0;
    const Elements& known = elements[static_cast<size_t>(at)];
    return static_cast<int64_t>(known.ints.size() + known.floats.size());
  }
};

class RuleContext {
 public:
  RuleContext(ShapeState* state, const Node* node, std::span<const TensorId> inputs, std::span<const TensorId> outputs)
      : state_(*state), node_(*node), inputs_(inputs), outputs_(outputs) {}

  [[nodiscard]] const Node& node() const { return node_; }
  [[nodiscard]] const ShapeState& state() const { return state_; }
  [[nodiscard]] int64_t opset() const { return state_.opset; }
  [[nodiscard]] size_t inputs() const { return inputs_.size(); }
  [[nodiscard]] size_t outputs() const { return outputs_.size(); }
  [[nodiscard]] bool has(size_t i) const { return i < inputs_.size() && inputs_[i].valid(); }
  [[nodiscard]] bool wants(size_t i) const { return i < outputs_.size() && outputs_[i].valid(); }
  [[nodiscard]] DType dtype(size_t i) const { return has(i) ? In(i).dtype : DType::kUndefined; }
  [[nodiscard]] bool ranked(size_t i) const { return has(i) && state_.facts[inputs_[i].value()].ranked; }
  [[nodiscard]] const Dims& dims(size_t i) const;           // empty when the rank is unknown
  [[nodiscard]] int64_t dim(size_t i, int64_t axis) const;  // negative axes from the end; kUnknownDim when out of range
  [[nodiscard]] int64_t rank(size_t i) const { return static_cast<int64_t>(dims(i).size()); }
  [[nodiscard]] const Elements* elements(size_t i) const;  // nullptr = not constant; may hold unknowns
  // The integers of them; nullptr of floats.
  [[nodiscard]] const std::vector<int64_t>* ints(size_t i) const {
    const Elements* all = elements(i);
    return all == nullptr || IsFloating(In(i).dtype) ? nullptr : &all->ints;
  }
  [[nodiscard]] const std::vector<float>* floats(size_t i) const {
    const Elements* all = elements(i);
    return all == nullptr || !IsFloating(In(i).dtype) ? nullptr : &all->floats;
  }
  [[nodiscard]] const std::vector<int64_t>* known_ints(size_t i) const;  // nullptr unless every element is known
  // The only element of known_ints.
  [[nodiscard]] std::optional<int64_t> Scalar(size_t i) const {
    const std::vector<int64_t>* values = known_ints(i);
    return values != nullptr && values->size() == 1 ? std::optional(values->front()) : std::nullopt;
  }
  // The only element of floats.
  [[nodiscard]] std::optional<float> Real(size_t i) const {
    const std::vector<float>* values = floats(i);
    return values != nullptr && values->size() == 1 ? std::optional(values->front()) : std::nullopt;
  }
  [[nodiscard]] bool folds(size_t i) const { return elements(i) != nullptr; }

  // Attribute `name`, or input `i`, as integers: whether it is there at all, and known.
  struct Setting {
    bool given = false, known = false;
    std::vector<int64_t> values;
  };
  [[nodiscard]] Setting IntsOf(std::string_view name, size_t i) const;

  // Sets an output; ignored when the node leaves it out. Refuses negative sizes and too many elements.
  [[nodiscard]] absl::Status Set(size_t output, DType dtype, Dims dims);
  [[nodiscard]] absl::Status SetFound(absl::StatusOr<Dims> dims) {  // as below, or why there are none
    return dims.ok() ? Set(*std::move(dims)) : dims.status();
  }
  [[nodiscard]] absl::Status Set(Dims dims);  // output 0, whose type is set: that of input 0 unless the rule said more
  // The type alone: the rank stays unknown.
  void SetType(size_t output, DType dtype) {
    if (wants(output)) state_.tensors[outputs_[output].value()].dtype = dtype;
  }
  void MarkSequence(size_t output) {
    if (wants(output)) state_.facts[outputs_[output].value()].sequence = true;
  }
  void SetElements(size_t output, Elements elements);  // those of the output's type are taken
  void SetInts(size_t output, std::vector<int64_t> values) {
    if (wants(output) && !IsFloating(state_.tensors[outputs_[output].value()].dtype))
      SetElements(output, Elements{.ints = std::move(values)});
  }
  void SetFloats(size_t output, std::vector<float> values) {
    if (wants(output) && IsFloating(state_.tensors[outputs_[output].value()].dtype))
      SetElements(output, Elements{.floats = std::move(values)});
  }

  // Output 0 like input 0; the usual rule of elementwise operators.
  [[nodiscard]] absl::Status Same(DType dtype) {
    SetType(0, dtype);
    return ranked(0) ? Set(dims(0)) : absl::OkStatus();
  }
  [[nodiscard]] absl::Status Same() { return Same(dtype(0)); }

  // A size that the data decides, of which this is the most.
  [[nodiscard]] int64_t AtMost(int64_t size) const {
    if (size == kUnknownDim || !state_.bounds_sizes) return kUnknownDim;
    ++state_.bounded;
    return size;
  }

  // Checks `axis` against `rank` and makes it non-negative.
  [[nodiscard]] absl::Status Axis(int64_t rank, int64_t* axis) const;
  [[nodiscard]] absl::Status Axes(int64_t rank,
                                  std::vector<int64_t>* axes) const;  // the same for a list without repeats
  // Attribute `axis` of a tensor of that rank.
  [[nodiscard]] absl::StatusOr<int64_t> AxisOr(int64_t fallback, int64_t rank) const {
    int64_t axis = node_.IntOr("axis", fallback);
    HORUS_RETURN_IF_ERROR(Axis(rank, &axis));
    return axis;
  }
  // Of input 0.
  [[nodiscard]] absl::StatusOr<int64_t> AxisOr(int64_t fallback) const { return AxisOr(fallback, rank(0)); }

 private:
  [[nodiscard]] const Tensor& In(size_t i) const { return state_.tensors[inputs_[i].value()]; }

  ShapeState& state_;
  const Node& node_;
  std::span<const TensorId> inputs_;
  std::span<const TensorId> outputs_;
};

using ShapeRule = absl::Status (*)(RuleContext& c);

// What one rule holds for.
struct RuleEntry {
  std::string_view operators;  // with blanks between them
  ShapeRule rule;
  size_t ranked = 0;  // without the ranks of so many inputs the rule has nothing to say, and does not run
  std::string_view domain = "";
  bool view = false;               // output 0 shares the storage of input 0
  DType type = DType::kUndefined;  // of output 0 before the rule runs; kUndefined: that of input 0

  [[nodiscard]] absl::Status Apply(RuleContext& c) const;
};

// One list per file of rules.
[[nodiscard]] std::span<const RuleEntry> PointwiseRules();
[[nodiscard]] std::span<const RuleEntry> ConvolutionRules();
[[nodiscard]] std::span<const RuleEntry> MatrixRules();
[[nodiscard]] std::span<const RuleEntry> LayoutRules();
[[nodiscard]] std::span<const RuleEntry> GeneratorRules();

// All rules by operator; built once per binding.
class RuleTable {
 public:
  RuleTable();
  [[nodiscard]] const RuleEntry* Find(const Node& node) const;  // nullptr = unknown operator

 private:
  SeededMap<std::string_view, const RuleEntry*> rules_;
  SeededMap<std::string_view, const RuleEntry*> other_rules_;  // of all other domains: no two have a name in common
};

// "[1,3,?,224]".
[[nodiscard]] std::string DimsText(const Dims& dims);

// Keeps the elements of tensor `t` if they are few and as many as its dims say.
void SetElements(ShapeState* state, TensorId t, Elements elements);

// Sets dims of tensor `t` after checking them against the limits; the message names the tensor.
[[nodiscard]] absl::Status SetDims(ShapeState* state, TensorId t, DType dtype, Dims dims);

// Numpy broadcasting. Unknown sizes give way to known ones above 1.
[[nodiscard]] absl::StatusOr<Dims> Broadcast(const Dims& a, const Dims& b);

// Where a fixed batch was replaced: one is the old size, written into a constant, the other the new one.
[[nodiscard]] bool IsBatchPair(const ShapeState& state, int64_t a, int64_t b);

// As Broadcast, and an old batch beside the new one (a table that constant folding repeated, say) takes the new one.
// *rescaled, if given, says so.
[[nodiscard]] absl::StatusOr<Dims> BroadcastBatch(const ShapeState& state, const Dims& a, const Dims& b,
                                                  bool* rescaled = nullptr);

// Those from position `from` on, up to that of `end`.
[[nodiscard]] inline Dims Part(const Dims& dims, size_t from, size_t end) {
  return {dims.begin() + static_cast<std::ptrdiff_t>(from), dims.begin() + static_cast<std::ptrdiff_t>(end)};
}
[[nodiscard]] inline Dims Part(const Dims& dims, size_t from) { return Part(dims, from, dims.size()); }

// 0, 1, ... of a tensor of that rank.
[[nodiscard]] std::vector<int64_t> AllAxes(int64_t rank);

// Sizes given as elements of a constant: unknown ones are unknown dims. Refuses negative ones of `what`.
[[nodiscard]] absl::StatusOr<Dims> DimsFrom(const std::vector<int64_t>& elements, const char* what);

// Their sum, where both are known; false where that overflows.
[[nodiscard]] bool Grow(int64_t* size, int64_t by);

// Product of dims; kUnknownDim when one is unknown (and none is 0) or 64 bits overflow.
[[nodiscard]] int64_t ElementsOf(const Dims& dims);

// a and b agree, or one is unknown; the known one.
[[nodiscard]] bool Agree(int64_t a, int64_t b);
[[nodiscard]] inline int64_t Known(int64_t a, int64_t b) { return a == kUnknownDim ? b : a; }

// ---- Folding of small constant tensors: the arithmetic that exporters leave in a graph to compute
// shapes. Output 0 has its dims already; unknown elements, and those that overflow, are unknown in the result. Linear
// in elements, at most kMaxFoldedElements.
//
// Floating elements are folded in the precision of their type: float32 rounds as ONNX does, and of the other types a
// result is kept where it is exact. Infinite and undefined results are unknown.

void FoldElementwise(RuleContext& c);  // by op_type: arithmetic, comparison, logic; operands from left to right
void FoldClip(RuleContext& c);
void FoldWhere(RuleContext& c);
void FoldCast(RuleContext& c, DType to);

// `value` as an element of `dtype`; NaN, which stands for unknown, where the type cannot hold it.
[[nodiscard]] float HeldAs(double value, DType dtype);
// The same for integers and bool; kUnknownElement where the value would wrap around.
[[nodiscard]] int64_t HeldAs(int64_t value, DType dtype);

// For each element of `out`, in order, the position in a tensor of dims `in` that broadcasts to it.
[[nodiscard]] std::vector<size_t> BroadcastPositions(const Dims& in, const Dims& out);

// Row-major steps of `dims`.
[[nodiscard]] std::vector<int64_t> StepsOf(const Dims& dims);

// Copies elements of input `i` to an output by position; nothing happens when they are not known.
void FoldCopy(RuleContext& c, size_t i, const std::vector<size_t>& positions, size_t output = 0);

// As above with every element in its place (Reshape and its like).
void FoldAll(RuleContext& c, size_t i);

// Joins the inputs along `axis` to a tensor of dims `joined`; elements of an unknown input stay unknown.
void FoldConcat(RuleContext& c, size_t axis, const Dims& joined);

}  // namespace horus
