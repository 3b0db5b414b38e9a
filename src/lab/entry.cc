// SPDX-License-Identifier: Apache-2.0
// Tells the core what the laboratory adds, when the library or program that has the laboratory is loaded: before main
// or the end of dlopen, when nothing can ask yet. What is told are constants, so no order of initialisation matters.
#include <array>

#include "interference/pair_bundle.h"
#include "lab/models/boosted_model.h"
#include "lab/models/net_models.h"
#include "lab/policies/options.h"
#include "lab/policies/rivals.h"
#include "place/policies/policies.h"

namespace horus {
namespace {

constexpr std::array<PairModelReader, 3> kPairModels = {
    {{kBoostedName, ReadBoosted}, {kIaspName, ReadIasp}, {kIappName, ReadIapp}}};

[[gnu::constructor]] void Enter() {
  RegisterLabPolicies({LabPolicyEntries(), CheckLabOptions});
  RegisterLabPairModels(kPairModels);
}

}  // namespace
}  // namespace horus
