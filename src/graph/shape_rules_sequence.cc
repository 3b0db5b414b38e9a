// SPDX-License-Identifier: Apache-2.0
// Operators over sequences, optionals and texts: known by name, their shapes stay unknown.
#include "graph/shape_rule.h"

namespace horus {
namespace {

absl::Status Opaque(RuleContext& /*c*/) { return absl::OkStatus(); }

absl::Status SequenceLength(RuleContext& c) { return c.Set(0, DType::kInt64, {}); }

absl::Status HasElement(RuleContext& c) { return c.Set(0, DType::kBool, {}); }

absl::Status TextPredicate(RuleContext& c) { return c.Same(0, DType::kBool); }

absl::Status TextConcat(RuleContext& c) {
  if (!c.ranked(0) || !c.ranked(1)) return absl::OkStatus();
  HORUS_ASSIGN_OR_RETURN(Dims dims, Broadcast(c.dims(0), c.dims(1)));
  return c.Set(0, DType::kString, std::move(dims));
}

constexpr RuleEntry kRules[] = {
    {"", "ConcatFromSequence", Opaque},
    {"", "ImageDecoder", Opaque},
    {"", "Optional", Opaque},
    {"", "OptionalGetElement", Opaque},
    {"", "OptionalHasElement", HasElement},
    {"", "RegexFullMatch", TextPredicate},
    {"", "SequenceAt", Opaque},
    {"", "SequenceConstruct", Opaque},
    {"", "SequenceEmpty", Opaque},
    {"", "SequenceErase", Opaque},
    {"", "SequenceInsert", Opaque},
    {"", "SequenceLength", SequenceLength},
    {"", "SequenceMap", Opaque},
    {"", "SplitToSequence", Opaque},
    {"", "StringConcat", TextConcat},
    {"", "StringNormalizer", Opaque},
    {"", "StringSplit", Opaque},
    {"", "TfIdfVectorizer", Opaque},
};

}  // namespace

std::span<const RuleEntry> SequenceRules() { return kRules; }

}  // namespace horus
