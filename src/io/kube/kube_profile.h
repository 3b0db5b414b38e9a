// SPDX-License-Identifier: Apache-2.0
// What the scheduler of bindings/kubernetes knows of jobs: JobProfiles, and the annotations by which pods name them.
//
// Enters:  JobProfiles as JSON, pods' annotations, the catalogue.
// Leaves:  demands by GPU type, and how a pod is to be placed.
// Units:   per cent, MiB, microseconds.
#pragma once

#include <vector>

#include "base/status.h"
#include "device/catalogue.h"
#include "io/kube/kube_ask.h"
#include "io/kube/kube_items.h"
#include "io/kube/kube_objects.h"
#include "place/job/job.h"
#include "predict/demand.h"

namespace horus {

[[nodiscard]] absl::StatusOr<KubeProfile> ReadKubeProfile(const KubeView& object);
[[nodiscard]] absl::StatusOr<KubeTermsOfPod> ReadKubeTermsOfPod(const KubeView& annotations);

// INVALID_ARGUMENT for what jobs.yaml cannot say: the message is the reason.
[[nodiscard]] absl::StatusOr<std::vector<TypeDemand>> DemandsOf(const KubeProfile& profile, const Catalogue& catalogue);

// A job of a known profile: consent decides with whom it shares, and not that it asks for a part. INVALID_ARGUMENT for
// annotations that the scheduler refuses; the job then is one that shares with nobody.
[[nodiscard]] absl::Status AddTerms(const KubeTermsOfPod& terms, const KubeAsk& ask, KubeShape& shape);

}  // namespace horus
