// SPDX-License-Identifier: Apache-2.0
// Pricing: what each job's work counts beside that of others, as SimOptions::weights says.
//
// Enters:  jobs that come and go; the placer, asked for prices (prices.h) now and then.
// Leaves:  a weight for each job.
// Units:   a weight of 1 = a unit of work like any other.
// Cost:    two linear programs every kPriceEvery starts, with prices alone.      Thread class: one thread at a time.
#ifndef HORUS_LAB_RUN_PRICING_H_
#define HORUS_LAB_RUN_PRICING_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "lab/bound/prices.h"
#include "lab/simulator.h"

namespace horus {

class Pricing {
 public:
  // All must outlive it.
  Pricing(const Trace& trace, std::span<const ProfileDemands> beliefs, const Cluster& cluster,
          const SimOptions& options)
      : trace_(trace), beliefs_(beliefs), cluster_(cluster), options_(options), gpus_there_(beliefs.size()) {}

  // The job came, or with `sign` -1 is gone for good.
  void Count(uint32_t job, int32_t sign);
  void CountStart() { ++starts_; }
  // Before jobs are decided, some of which wait. By what waits and runs, each job by its GPUs: nobody need know how
  // long they take.
  [[nodiscard]] absl::Status Update(const Placer& placer);
  [[nodiscard]] float WeightOf(uint32_t job) const;

 private:
  const Trace& trace_;
  std::span<const ProfileDemands> beliefs_;
  const Cluster& cluster_;
  const SimOptions& options_;
  std::optional<WorkPrices> pricer_;
  uint64_t epoch_ = 0;              // of the model that it asked
  std::vector<float> prices_;       // by profile
  std::vector<double> gpus_there_;  // by profile, of jobs that wait or run
  size_t starts_ = 0;
  size_t price_at_ = 0;  // starts
};

}  // namespace horus

#endif  // HORUS_LAB_RUN_PRICING_H_
