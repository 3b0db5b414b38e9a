// SPDX-License-Identifier: Apache-2.0
// The list of learned kinds.
#include "interference/pair_kinds.h"

#include <array>

#include "base/status.h"
#include "base/text.h"
#include "interference/boosted_model.h"
#include "interference/iapp_model.h"
#include "interference/iasp_model.h"
#include "interference/kernel_model.h"
#include "interference/pair_readers.h"

namespace horus {

std::span<const PairModelKind> PairModelKinds() {
  static constexpr std::array<PairModelKind, 4> kKinds = {{{kKernelName, FitKernelTarget, ReadKernelModel},
                                                           {kBoostedName, FitBoosted, ReadBoosted},
                                                           {kIaspName, FitIasp, ReadIasp},
                                                           {kIappName, FitIapp, ReadIapp}}};
  return kKinds;
}

absl::StatusOr<const PairModelKind*> FindPairModelKind(std::string_view name) {
  for (const PairModelKind& kind : PairModelKinds()) {
    if (kind.name == name) return &kind;
  }
  return MakeError(absl::StatusCode::kNotFound, "learned interference model: expected one of %s, found %s",
                   Listed(LearnedModelNames()), Quoted(name));
}

}  // namespace horus
