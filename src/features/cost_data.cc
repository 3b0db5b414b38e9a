// SPDX-License-Identifier: Apache-2.0
// Cost of operators that move data without computing: embeddings, gathers, copies, views, resizing.
#include <algorithm>
#include <cmath>

#include "features/cost_rules.h"

namespace horus {
namespace {

// PyTorch's dense embedding gradient: clear, sort the indices (two kernels), add.
constexpr double kEmbeddingBackwardKernels = 4;

// A copy forward and a copy of the gradient backward.
void Copy(CostContext& c, const CostRule&) {
  const double elements = c.OutCount(0);
  // Only what is written is read, whatever the input's size.
  const double moved = c.AllOutBytes();
  c.Forward(1, 2 * moved, PointwiseBlocks(elements));
  if (c.WantsAny(c.inputs())) c.Backward(1, 2 * moved, PointwiseBlocks(elements));
}

// The gradient of one input is a slice of the output's: views, no kernel.
void Concat(CostContext& c, const CostRule&) { c.Forward(1, 2 * c.OutBytes(0), PointwiseBlocks(c.OutCount(0))); }

// A view forward: no kernel. The gradient is written into zeros of the input's size.
void Slice(CostContext& c, const CostRule&) {
  if (c.Wants(0)) c.Backward(2, c.InBytes(0) + 2 * c.OutBytes(0), PointwiseBlocks(c.InCount(0)));
}

// Views forward; backward the pieces are joined.
void Split(CostContext& c, const CostRule&) {
  if (c.Wants(0)) c.Backward(1, 2 * c.InBytes(0), PointwiseBlocks(c.InCount(0)));
}

// A view with stride 0 forward; backward a sum.
void Expand(CostContext& c, const CostRule&) {
  if (!c.Wants(0) || c.OutCount(0) <= c.InCount(0)) return;
  c.BackwardOver(c.OutCount(0), c.OutCount(0), c.OutBytes(0) + c.InBytes(0));
}

// Gather of rows: an embedding when the table is a weight.
void Gather(CostContext& c, const CostRule&) {
  const double elements = c.OutCount(0);
  c.Forward(1, 2 * c.OutBytes(0) + c.InBytes(1), PointwiseBlocks(elements));
  if (c.IsWeight(0)) {
    c.cost.op_class = OpClass::kEmbedding;
    c.cost.horus_linears = 1;
  }
  if (!c.Wants(0)) return;
  c.SaveInput(1);
  c.cost.backward.flops_other = elements;
  // Most bytes are the cleared table's, however few rows are looked up.
  c.Backward(kEmbeddingBackwardKernels, c.InBytes(0) + 3 * c.OutBytes(0) + 3 * c.InBytes(1),
             PointwiseBlocks(std::max(elements, c.InCount(0))));
}

void Scatter(CostContext& c, const CostRule&) {
  const double updates = c.InCount(2);
  c.Forward(2, 2 * c.OutBytes(0) + 2 * c.InBytes(2) + c.InBytes(1), PointwiseBlocks(c.OutCount(0)));
  if (!c.Wants(0) && !c.Wants(2)) return;
  c.SaveInput(1);
  if (c.Wants(0)) c.Backward(2, 2 * c.OutBytes(0), PointwiseBlocks(c.OutCount(0)));
  if (c.Wants(2)) c.Backward(1, 2 * c.InBytes(2) + c.InBytes(1), PointwiseBlocks(updates));
}

// Interpolation; how many neighbours an output element reads depends on the mode.
void Resize(CostContext& c, const CostRule& rule) {
  const std::string_view mode = c.node().StringOr("mode", rule.name == "GridSample" ? "linear" : "nearest");
  double neighbours = 1;
  const double spatial = std::max<double>(1, c.Has(0) ? static_cast<double>(c.In(0).dims.size()) - 2 : 1);
  for (double d = 0; d < std::min(spatial, 3.0) && mode != "nearest"; ++d) neighbours *= mode == "cubic" ? 4 : 2;
  const double out = c.OutCount(0);
  const double flops = neighbours > 1 ? 2 * neighbours * out : 0;
  c.ForwardOver(out, flops, c.InBytes(0) + c.OutBytes(0));
  // PyTorch's kernels that interpolate have a thread for a position of one image, which takes planes in turn; forward
  // alone, and not of four channels and more that lie last (ATen/native/cuda/UpSample*.cu).
  if (neighbours > 1 && rule.name != "GridSample" && c.PlanesInTurn()) {
    const double positions = std::max(1.0, c.OutCount(0) / std::max(1.0, c.OutDim(0, 0) * c.OutDim(0, 1)));
    c.cost.forward.serial_reads = c.OutCount(0) / positions;
  }
  if (!c.Wants(0)) return;
  c.BackwardOver(out, flops + out, c.InBytes(0) + c.OutBytes(0));
}

// Fast Fourier transforms of real or complex vectors: 5 n log2 n each, as is customary.
void Fourier(CostContext& c, const CostRule& rule) {
  const bool frames =
      rule.name == "STFT";  // [batch, frames, frequencies, 2], else along an attribute or the last but one
  const bool onesided = c.node().IntOr("onesided", frames ? 1 : 0) != 0;
  const int64_t axis = frames ? -2 : c.node().IntOr("axis", -2);
  const double frequencies = c.HasOut(0) ? c.OutDim(0, axis) : 0;
  const double length = std::max(1.0, onesided ? 2 * (frequencies - 1) : frequencies);
  const double vectors = frequencies > 0 ? c.OutCount(0) / 2 / frequencies : 0;
  c.ForwardOver(c.OutCount(0), 5 * length * std::log2(length) * vectors, c.InBytes(0) + c.OutBytes(0));
  if (!c.Wants(0)) return;
  c.BackwardOver(c.OutCount(0), c.cost.forward.flops_other, c.InBytes(0) + c.OutBytes(0));
}

// Written from nothing, or small integer work.
void Fill(CostContext& c, const CostRule&) { c.Forward(1, c.AllOutBytes(), PointwiseBlocks(c.OutCount(0))); }

// Known to cost nothing on the GPU: names, views, host-side shape values, sequences.
void Free(CostContext&, const CostRule&) {}

constexpr OpClass kMove = OpClass::kDataMovement;

constexpr CostRule kDataCostRules[] = {
    {"Identity Constant Reshape Flatten Squeeze Unsqueeze Shape Size SequenceConstruct SequenceAt "
     "SequenceEmpty SequenceInsert SequenceErase SequenceLength SplitToSequence Optional "
     "OptionalGetElement OptionalHasElement horus::Beside",
     kMove, Free},
    {"ConcatFromSequence Concat", kMove, Concat},
    {"Slice", kMove, Slice},
    {"Split", kMove, Split},
    {kTurnedBackRule, kMove, Split},
    {"Expand", kMove, Expand},
    {"Transpose Pad Tile DepthToSpace SpaceToDepth Trilu ReverseSequence Compress Col2Im CenterCropPad", kMove, Copy},
    {"com.microsoft::MRotaryEmbedding com.microsoft::RotaryEmbedding RotaryEmbedding", OpClass::kElementwise, Copy},
    {"Gather GatherElements GatherND com.microsoft::GatherBlockQuantized", kMove, Gather},
    {"Scatter ScatterElements ScatterND", kMove, Scatter},
    {"Resize Upsample GridSample", kMove, Resize},
    {"AffineGrid ConstantOfShape Range EyeLike OneHot NonZero NonMaxSuppression BlackmanWindow "
     "HammingWindow HannWindow MelWeightMatrix Multinomial",
     kMove, Fill},
    {"DFT STFT", OpClass::kOther, Fourier},
};

}  // namespace

std::span<const CostRule> DataCostRules() { return kDataCostRules; }

// Views that PyTorch does not materialise; their outputs use the first input's storage.
bool IsViewOperator(const CostRule& rule) {
  return rule.apply == Slice || rule.apply == Split || rule.apply == Expand || rule.apply == Free;
}

}  // namespace horus
