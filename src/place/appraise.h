// SPDX-License-Identifier: Apache-2.0
// Appraisal: what a given place would do, whoever chose it: slowdowns, useful work, the rule that it breaks.
//
// Enters:  a cluster, a job that is not in it, slots.
// Leaves:  predicted slowdowns of the job and its neighbours, and the work that the cluster gains.
// Units:   work as in docs/place.md: 1 = one GPU of the job alone on its fastest type.
// Cost:    two model queries a device.   Thread class: const, share freely.
#ifndef HORUS_PLACE_APPRAISE_H_
#define HORUS_PLACE_APPRAISE_H_

#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "interference/model.h"
#include "place/decision.h"
#include "place/fit.h"
#include "place/state/cluster.h"

namespace horus {

struct Appraisal {
  Reason reason = Reason::kNone;  // the first rule that the place breaks
  Slowdown own{1, 1};             // the worst of the job's GPUs, communication left out
  double communication = 0;       // of a gang: time of its all-reduce / step time alone
  double work = 0;                // gained by the job, each GPU of a gang as its slowest, less what neighbours lose
  uint32_t tenants = 0;           // of the devices, the job's own slots included
  uint32_t beyond_bound = 0;      // of them predicted (upper) beyond their bounds, and by this job
  uint32_t used_devices = 0;      // that had tenants before
};

// What residents of one device suffer now.
struct DeviceSlowdowns {
  std::vector<JobId> jobs;
  std::vector<Slowdown> slowdowns;
};

class Appraiser {
 public:
  Appraiser(std::shared_ptr<const InterferenceModel> model, const FitLimits& limits, double rack_oversubscription)
      : model_(std::move(model)), limits_(limits), rack_oversubscription_(rack_oversubscription) {}

  // Errors as Cluster::BrokenRule, and what the model returns. A type that the job does not list is taken as the first
  // that it does.
  [[nodiscard]] absl::StatusOr<Appraisal> Of(const Cluster& cluster, const JobSpec& job,
                                             std::span<const Slot> slots) const;
  [[nodiscard]] absl::StatusOr<DeviceSlowdowns> Now(const Cluster& cluster, NodeId node, int32_t device) const;

 private:
  // `slowest`: the least own work of the GPUs so far.
  [[nodiscard]] absl::Status OfDevice(const Cluster& cluster, const JobSpec& job, const NodeRow& node, int32_t device,
                                      double& slowest, Appraisal& appraisal) const;

  std::shared_ptr<const InterferenceModel> model_;
  FitLimits limits_;
  double rack_oversubscription_;
};

}  // namespace horus

#endif  // HORUS_PLACE_APPRAISE_H_
