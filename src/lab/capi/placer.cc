// SPDX-License-Identifier: Apache-2.0
// horus/lab/policies.h: placers with the options of the laboratory's policies.
#include <memory>

#include "capi/args.h"
#include "capi/error.h"
#include "capi/handles.h"
#include "capi/planning.h"
#include "capi/structs.h"
#include "horus/lab/policies.h"
#include "lab/policies/options.h"

namespace horus::capi {
namespace {

absl::StatusOr<std::shared_ptr<const LabPolicyOptions>> LabFromC(const horus_lab_policy_options* given) {
  HORUS_ASSIGN_OR_RETURN(const horus_lab_policy_options c, ReadOptionalStruct(given));
  LabPolicyOptions options;
  HORUS_RETURN_IF_ERROR(CheckFlag("synergy_grow", c.synergy_grow));
  options.synergy_grow = c.synergy_grow == 1;
  SetAmount(options.synergy_tolerance, c.synergy_tolerance);
  SetUnlessZero(options.pack_threshold, c.pack_threshold);
  SetUnlessZero(options.foreground_bound, c.foreground_bound);
  if (c.profiling_label != nullptr) {
    HORUS_ASSIGN_OR_RETURN(options.profiling_label, ReadText(c.profiling_label, "profiling_label"));
  }
  return Lab(std::move(options));
}

}  // namespace
}  // namespace horus::capi

using namespace horus::capi;  // NOLINT(google-build-using-namespace): the C function below is its face

horus_status horus_lab_placer_create(const horus_placer_options* options, const horus_lab_policy_options* lab,
                                     horus_placer** out, horus_error* error) {
  return Guard(error, {{out, "out"}}, [&]() -> absl::Status {
    HORUS_ASSIGN_OR_RETURN(auto with, LabFromC(lab));
    return Give(MakePlacer(options, std::move(with)), out);
  });
}
