// SPDX-License-Identifier: Apache-2.0
// A busy cluster and jobs for it: what the benchmarks of placement start from.
//
// Enters:  how many GPUs, how many job profiles, which model.
// Leaves:  a cluster with 80 % of 3 slots a GPU taken, its residents, jobs, placers.
// Units:   as job.h.
// Cost:    about 2 us a resident.         Thread class: pure functions.
#ifndef HORUS_BENCH_MICRO_BUSY_CLUSTER_H_
#define HORUS_BENCH_MICRO_BUSY_CLUSTER_H_

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "bench/must.h"
#include "device/catalogue.h"
#include "interference/registry.h"
#include "place/placer.h"
#include "place/state/cluster.h"

namespace horus::bench {

// The shape of the workload: GPUs per node, GPU types, tenants per GPU, share of the slots taken, job profiles.
inline constexpr int32_t kGpusPerNode = 8;
inline constexpr const char* kGpuTypes[] = {"k80", "p100-sxm2-16gb", "v100-sxm2-32gb", "a100-40gb", "h100-sxm"};
inline constexpr int32_t kTenants = 3;
inline constexpr double kFill = 0.8;
inline constexpr uint64_t kProfiles = 200;
inline constexpr uint64_t kIdleEvery = 50;  // nodes, for gangs of whole nodes: else none is free at this fill; chosen
inline constexpr float kBound = 4;          // of slowdowns, so that a cluster this full has room for nearly every job

// From 0 to range - 1.
[[nodiscard]] uint64_t Draw(uint64_t seed, uint64_t range);

// One-GPU jobs; a profile each where `profiles` is 0.
[[nodiscard]] JobSpec MakeJob(const std::vector<GpuTypeId>& types, JobId id, uint64_t profiles);

struct Shape {
  int32_t gpus = 0;
  uint64_t profiles = kProfiles;
  std::string_view model = kDefaultInterferenceModel;
  bool exhaustive = false;
  uint64_t idle_every = 0;      // node that is left to gangs; 0 = none
  uint32_t max_candidates = 0;  // PlacerOptions
  bool terse = false;           // the same
  double fill = kFill;
};

struct Setting {
  std::shared_ptr<const Catalogue> catalogue = Catalogue::Default();
  std::vector<GpuTypeId> types;
  Cluster cluster{catalogue};
  std::vector<JobId> residents;
};

[[nodiscard]] Setting MakeSetting(const Shape& shape);
[[nodiscard]] std::unique_ptr<Placer> MakePlacer(const Shape& shape);

// CPU time of this thread: what else a shared machine does is not its matter.
[[nodiscard]] double NowUs();

}  // namespace horus::bench

#endif  // HORUS_BENCH_MICRO_BUSY_CLUSTER_H_
