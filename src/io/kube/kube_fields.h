// SPDX-License-Identifier: Apache-2.0
// Fields that several kinds of object have.
//
// Enters:  views of fields.   Leaves: checked values.
// Units:   thousandths of a core, bytes.
#pragma once

#include <string>

#include "base/status.h"
#include "io/kube/kube_items.h"
#include "io/kube/kube_objects.h"

namespace horus {

// Of an object, as the API server checks names; not empty.
[[nodiscard]] absl::StatusOr<std::string> ReadKubeName(const KubeView& view);
[[nodiscard]] absl::StatusOr<KubeTexts> ReadKubeTexts(const KubeView& view);
// A resource list: cpu, memory and what device plugins for the vendor's GPUs count, parts of GPUs by HAMi's names.
[[nodiscard]] absl::StatusOr<KubeRequests> ReadKubeResources(const KubeView& resources);

}  // namespace horus
