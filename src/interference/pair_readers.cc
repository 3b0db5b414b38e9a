// SPDX-License-Identifier: Apache-2.0
// The list of learned kinds and how each is read.
#include "interference/pair_readers.h"

#include <algorithm>
#include <array>

#include "base/status.h"
#include "base/text.h"
#include "interference/boosted_model.h"
#include "interference/iapp_model.h"
#include "interference/iasp_model.h"
#include "interference/kernel_model.h"

namespace horus {
namespace {

constexpr std::array<std::string_view, 4> kNames = {kKernelName, kBoostedName, kIaspName, kIappName};
using ReadFunction = absl::StatusOr<std::unique_ptr<const PairModel>> (*)(const PairHeader&, const BundleTarget&);
constexpr std::array<ReadFunction, 4> kReaders = {ReadKernelModel, ReadBoosted, ReadIasp, ReadIapp};

}  // namespace

std::span<const std::string_view> LearnedModelNames() { return kNames; }

absl::StatusOr<std::unique_ptr<const PairModel>> ReadPairModel(const PairHeader& header, const BundleTarget& target) {
  const auto at = std::find(kNames.begin(), kNames.end(), target.name);
  if (at != kNames.end()) return kReaders[static_cast<size_t>(at - kNames.begin())](header, target);
  return MakeError(absl::StatusCode::kNotFound, "interference model: expected one of %s, found %s", Listed(kNames),
                   Quoted(target.name));
}

}  // namespace horus
