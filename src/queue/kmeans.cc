// SPDX-License-Identifier: Apache-2.0
// Lloyd's k-means with farthest-first seeds, in integers.
#include "queue/kmeans.h"

#include <cmath>
#include <limits>

#include "base/hash.h"

namespace horus {
namespace {

struct Sum {
  std::array<int64_t, kJobFeatures> total = {};
  int64_t count = 0;
  void Add(const GridPoint& point) {
    for (size_t f = 0; f < kJobFeatures; ++f) total[f] += point[f];
    ++count;
  }
  // Rounded to the grid.
  [[nodiscard]] GridPoint Mean() const {
    GridPoint mean = {};
    for (size_t f = 0; f < kJobFeatures; ++f) mean[f] = static_cast<int32_t>((2 * total[f] + count) / (2 * count));
    return mean;
  }
};

int32_t SquaredDistance(const GridPoint& a, const GridPoint& b) {
  int32_t sum = 0;
  for (size_t f = 0; f < kJobFeatures; ++f) sum += (a[f] - b[f]) * (a[f] - b[f]);
  return sum;
}

std::vector<GridPoint> FarthestFirst(std::span<const GridPoint> points, size_t clusters) {
  Sum sum;
  for (const GridPoint& point : points) sum.Add(point);
  std::vector<GridPoint> seeds = {sum.Mean()};  // the mean is none of them, and leaves once the first is known
  std::vector<int32_t> nearest(points.size(), std::numeric_limits<int32_t>::max());
  for (size_t seed = 0; seed < clusters; ++seed) {
    size_t farthest = 0;
    for (size_t i = 0; i < points.size(); ++i) {
      nearest[i] = std::min(nearest[i], SquaredDistance(points[i], seeds.back()));
      const bool further = nearest[i] > nearest[farthest];
      if (further || (nearest[i] == nearest[farthest] && points[i] < points[farthest])) farthest = i;
    }
    if (seed == 0) {
      seeds.clear();
      std::ranges::fill(nearest, std::numeric_limits<int32_t>::max());
    } else if (nearest[farthest] == 0) {
      break;
    }
    seeds.push_back(points[farthest]);
  }
  return seeds;
}

// All points of few jobs; of many about kMostFitted, by a hash of the job's id, so that their order does not matter.
std::vector<GridPoint> SampleOf(std::span<const QueuedJob* const> jobs, const std::vector<GridPoint>& points) {
  if (points.size() <= kMostFitted) return points;
  const uint64_t below = std::numeric_limits<uint64_t>::max() / points.size() * kMostFitted;
  std::vector<GridPoint> sample;
  for (size_t i = 0; i < points.size(); ++i) {
    if (Mix64(jobs[i]->id) < below) sample.push_back(points[i]);
  }
  return sample.empty() ? points : sample;
}

}  // namespace

JobFeatures FeaturesOf(const QueuedJob& job) {
  return {static_cast<double>(job.tasks),
          static_cast<double>(job.gpu_util_pct.estimate),
          static_cast<double>(job.gpu_util_pct.upper),
          static_cast<double>(job.gpus),
          static_cast<double>(job.gpu_mem_mib.estimate),
          static_cast<double>(job.gpu_mem_mib.upper)};
}

void FeatureScale::Include(const JobFeatures& features) {
  if (!any_) least_ = greatest_ = features;
  any_ = true;
  for (size_t f = 0; f < kJobFeatures; ++f) {
    least_[f] = std::min(least_[f], features[f]);
    greatest_[f] = std::max(greatest_[f], features[f]);
  }
}

GridPoint FeatureScale::Place(const JobFeatures& features) const {
  GridPoint point = {};
  for (size_t f = 0; f < kJobFeatures; ++f) {
    const double range = greatest_[f] - least_[f];
    const double share = range > 0 ? std::clamp((features[f] - least_[f]) / range, 0.0, 1.0) : 0.0;
    point[f] = static_cast<int32_t>(std::floor(share * kFeatureGrid + 0.5));
  }
  return point;
}

std::vector<GridPoint> FitCentres(std::span<const GridPoint> points, size_t clusters) {
  if (points.empty()) return {};
  std::vector<GridPoint> centres = FarthestFirst(points, clusters);
  std::vector<Sum> sums(centres.size());
  for (int pass = 0; pass < kMostPasses; ++pass) {
    std::ranges::fill(sums, Sum());
    for (const GridPoint& point : points) sums[NearestCentre(centres, point)].Add(point);
    bool moved = false;
    for (size_t c = 0; c < centres.size(); ++c) {
      if (sums[c].count == 0) continue;
      const GridPoint mean = sums[c].Mean();
      moved = moved || mean != centres[c];
      centres[c] = mean;
    }
    if (!moved) break;
  }
  return centres;
}

size_t NearestCentre(std::span<const GridPoint> centres, const GridPoint& point) {
  size_t nearest = 0;
  int32_t least = std::numeric_limits<int32_t>::max();
  for (size_t c = 0; c < centres.size(); ++c) {
    const int32_t distance = SquaredDistance(centres[c], point);
    if (distance >= least) continue;
    least = distance;
    nearest = c;
  }
  return nearest;
}

JobClustering ClusterJobs(std::span<const QueuedJob* const> jobs, size_t clusters) {
  JobClustering fit;
  for (const QueuedJob* job : jobs) fit.scale.Include(FeaturesOf(*job));
  std::vector<GridPoint> points;
  points.reserve(jobs.size());
  for (const QueuedJob* job : jobs) points.push_back(fit.scale.Place(FeaturesOf(*job)));
  fit.centres = FitCentres(SampleOf(jobs, points), clusters);
  fit.cluster_of.reserve(jobs.size());
  for (const GridPoint& point : points)
    fit.cluster_of.push_back(static_cast<uint8_t>(NearestCentre(fit.centres, point)));
  return fit;
}

}  // namespace horus
