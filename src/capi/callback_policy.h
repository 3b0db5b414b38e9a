// SPDX-License-Identifier: Apache-2.0
// CallbackPolicy: a placement policy that the caller of the C ABI wrote.
//
// Enters:  a C callback, its user pointer, a name and the catalogue that names the GPU types.
// Leaves:  checked costs; CALLBACK for a failure or a value out of range.
// Units:   costs in the callback's own.
// Cost:    that of the callback and a few small allocations.   Thread class: as the callback allows.
#ifndef HORUS_CAPI_CALLBACK_POLICY_H_
#define HORUS_CAPI_CALLBACK_POLICY_H_

#include <memory>
#include <string>
#include <string_view>

#include "device/catalogue.h"
#include "horus/place.h"
#include "place/policy.h"

namespace horus::capi {

class CallbackPolicy final : public Policy {
 public:
  CallbackPolicy(std::shared_ptr<const Catalogue> catalogue, horus_policy_callback callback, void* user,
                 std::string name);

  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const override;

 private:
  std::shared_ptr<const Catalogue> catalogue_;
  horus_policy_callback callback_;
  void* user_;
  std::string name_;
};

}  // namespace horus::capi

#endif  // HORUS_CAPI_CALLBACK_POLICY_H_
