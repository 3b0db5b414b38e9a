// SPDX-License-Identifier: Apache-2.0
// Work prices: what a unit of each profile's work is worth beside that of others, given what there is to do. Kinds of
// work that are good partners and scarce are dear; as weights of jobs (JobSpec::weight) prices make a placer that
// decides job by job spend them where they are worth most.
//
// Enters:  what is believed of profiles, a cluster, a placer; how much work of each profile there is.
// Leaves:  prices: the dual solution of the bound on the work rate (work_rate.h) for that mix.
// Units:   a price of 1 = a unit of the mix; amounts in any unit (jobs, GPU time).
// Cost:    a prediction of every pair once; then two linear programs a mix.   Thread class: immutable.
#ifndef HORUS_LAB_BOUND_PRICES_H_
#define HORUS_LAB_BOUND_PRICES_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lab/truth/speed_table.h"
#include "lab/truth/truth.h"
#include "place/placer.h"
#include "place/state/cluster.h"

namespace horus {

class WorkPrices {
 public:
  // Pairs as the placer's model predicts them within its slowdown bound, on the whole GPUs of the cluster's nodes.
  // Profiles without demands are worth 1. Errors: those of the model.
  [[nodiscard]] static absl::StatusOr<WorkPrices> Create(std::span<const ProfileDemands> beliefs,
                                                         const Cluster& cluster, const Placer& placer,
                                                         std::string lp_library = {});

  // By profile, two significant digits, so that jobs of one kind stay alike while the mix changes little; from
  // kLeastPrice on. `amounts`: by profile, some above 0. Errors: those of WorkRateBound (UNAVAILABLE: no
  // libhorus_lp.so).
  [[nodiscard]] absl::StatusOr<std::vector<float>> Of(std::span<const double> amounts) const;

  // Work that is worth less is done all the same. A chosen value.
  static constexpr double kLeastPrice = 0.01;

 private:
  SpeedTable table_;
  std::vector<double> gpus_;
  double slowdown_bound_ = 0;
  std::string lp_library_;
};

}  // namespace horus

#endif  // HORUS_LAB_BOUND_PRICES_H_
