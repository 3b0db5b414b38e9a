// SPDX-License-Identifier: Apache-2.0
// K-means over jobs' features in integers: the same points give the same clusters in whatever order they come.
//
// Enters:  jobs, or points on a grid.   Leaves: centres, and for each point the nearest one.
// Units:   each feature from 0 (its least value) to kFeatureGrid (its greatest).
// Cost:    clusters x (points + at most kMostFitted x kMostPasses).
#pragma once

#include <array>

#include "queue/queue.h"

namespace horus {

// Tasks, utilisation mean and bound, GPUs, GPU memory mean and bound: the features of Horus+.
inline constexpr size_t kJobFeatures = 6;
using JobFeatures = std::array<double, kJobFeatures>;
using GridPoint = std::array<int32_t, kJobFeatures>;
inline constexpr int32_t kFeatureGrid = 4095;  // squared distances fit 32 bits
inline constexpr size_t kMostFitted = 4096;    // points that centres are fitted to: chosen, a thousand a cluster
inline constexpr int kMostPasses = 20;         // chosen: clusters of queues settle in fewer than ten

[[nodiscard]] JobFeatures FeaturesOf(const QueuedJob& job);

// Where features lie between the least and the greatest seen; beyond them, at the edge.
class FeatureScale {
 public:
  void Include(const JobFeatures& features);
  [[nodiscard]] GridPoint Place(const JobFeatures& features) const;

 private:
  JobFeatures least_ = {}, greatest_ = {};
  bool any_ = false;
};

// At most `clusters` centres: the first is the point farthest from the mean, each further one the point farthest from
// those before (ties: the lexicographically smallest point), fewer when no point is left that differs; then Lloyd's
// passes until nothing moves. Empty without points.
[[nodiscard]] std::vector<GridPoint> FitCentres(std::span<const GridPoint> points, size_t clusters);

// The nearest centre, the first of equals.
[[nodiscard]] size_t NearestCentre(std::span<const GridPoint> centres, const GridPoint& point);

struct JobClustering {
  FeatureScale scale;
  std::vector<GridPoint> centres;
  std::vector<uint8_t> cluster_of;  // by job
};

// The features of `jobs` on a grid over all of them, and their clusters, at most 255: the nearest of the centres of
// about kMostFitted jobs, chosen by a hash of their ids.
[[nodiscard]] JobClustering ClusterJobs(std::span<const QueuedJob* const> jobs, size_t clusters);

}  // namespace horus
