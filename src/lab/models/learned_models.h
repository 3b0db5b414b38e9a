// SPDX-License-Identifier: Apache-2.0
// `boosted`, `iapp` and `iasp`: models that predict slowdowns, as their fits write them; read and walked without
// foreign libraries. Pure functions; models are immutable, share freely.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "interference/laws.h"
#include "interference/pair_model.h"

namespace horus {

// ---- `boosted`: trees that refine the physical law of how one tenant slows another: they add to the margin,
// ln(slowdown - kSlowdownShift).
// Cost: a fit: 0.2 s for 2,000 rows. An answer: about a microsecond an ordered pair, no allocation; on a device that
// was not trained on, trees that differ by device are walked for each that was. Memory: a forest for each trained
// device and one for all others.

inline constexpr std::string_view kBoostedName = "boosted";

// Loads libhorus_train.so; errors: those of trees/trainer.h.
[[nodiscard]] absl::StatusOr<BundleTarget> FitBoosted(const PairSet& set, std::span<const PairRow> rows,
                                                      const PairFitOptions& options);
[[nodiscard]] absl::StatusOr<std::unique_ptr<const PairModel>> ReadBoosted(const PairHeader& header,
                                                                           const BundleTarget& target);

// ---- The shape of the `iapp` networks, as its fit writes them and its model reads them.

inline constexpr size_t kIappHidden = 16;
inline constexpr size_t kIappInputs = 2 * kPointColumns;  // victim, other
// Answers are the mean of so many networks, which start from different draws: where there is no data each invents
// something else, and the mean invents less.
inline constexpr size_t kIappNetworks = 2;

// One network: columns and device -> kIappHidden -> kIappHidden -> margin over Theory.
struct IappShape {
  size_t devices = 0;  // a bias of the first layer each; in a bundle one more, of a device without rows

  [[nodiscard]] constexpr size_t biases() const { return kIappInputs * kIappHidden; }
  [[nodiscard]] constexpr size_t second() const { return biases() + devices * kIappHidden; }
  [[nodiscard]] constexpr size_t second_bias() const { return second() + kIappHidden * kIappHidden; }
  [[nodiscard]] constexpr size_t last() const { return second_bias() + kIappHidden; }
  [[nodiscard]] constexpr size_t last_bias() const { return last() + kIappHidden; }
  [[nodiscard]] constexpr size_t size() const { return last_bias() + 1; }
};

inline constexpr std::string_view kIappWeights = "weights";  // of the networks, one after another

// ---- `iapp`: a small neural network that predicts the slowdown from the columns of victim, other and device.
// Cost: a fit: 0.5 s for 2,000 rows. An answer: 0.4 us an ordered pair (bench_interference_speed); no allocation.

inline constexpr std::string_view kIappName = "iapp";

// Part of a build with ONNX only: needs Eigen.
[[nodiscard]] absl::StatusOr<BundleTarget> FitIapp(const PairSet& set, std::span<const PairRow> rows,
                                                   const PairFitOptions& options);
[[nodiscard]] absl::StatusOr<std::unique_ptr<const PairModel>> ReadIapp(const PairHeader& header,
                                                                        const BundleTarget& target);

// ---- `iasp`: collaborative filtering. What a job suffers and what it inflicts are factors; the slowdown is their
// product.
// Cost: a fit: 0.1 s for 2,000 rows. An answer: 0.2 us a tenant; no allocation up to 16 tenants.

inline constexpr std::string_view kIaspName = "iasp";
inline constexpr size_t kIaspRank = 8;  // a few ways of disturbing, fewer than jobs

// What a job is as a tenant. A tower makes it of the job's point on the device; to a job that was trained on it adds
// what that job's rows said of it.
struct IaspFactors {
  std::array<double, kIaspRank> suffers = {}, inflicts = {};
  double suffers_alike = 0, inflicts_alike = 0;  // whoever the other is
};

class IaspModel final : public PairModel {
 public:
  void Pairs(uint32_t device, std::span<const Tenant> tenants, std::span<float> out) const override;
  [[nodiscard]] size_t bytes_held() const override;
  [[nodiscard]] IaspFactors FactorsOf(uint32_t device, const Tenant& tenant) const;

 private:
  friend absl::StatusOr<std::unique_ptr<const IaspModel>> ReadIaspModel(const PairHeader& header,
                                                                        const BundleTarget& target);
  [[nodiscard]] const double* DeviceAt(uint32_t device) const;

  PointScale scale_;
  std::vector<double> devices_;  // of each device, then of any other
  std::vector<double> tower_;
  std::vector<double> embeddings_;                         // of each job of the header
  std::vector<std::pair<uint64_t, uint32_t>> remembered_;  // profile and position, by profile
};

// Part of a build with ONNX only: needs Eigen.
[[nodiscard]] absl::StatusOr<BundleTarget> FitIasp(const PairSet& set, std::span<const PairRow> rows,
                                                   const PairFitOptions& options);
[[nodiscard]] absl::StatusOr<std::unique_ptr<const IaspModel>> ReadIaspModel(const PairHeader& header,
                                                                             const BundleTarget& target);
[[nodiscard]] absl::StatusOr<std::unique_ptr<const PairModel>> ReadIasp(const PairHeader& header,
                                                                        const BundleTarget& target);

// ---- The shape of the `iasp` tower and embeddings, as its fit writes them and its model reads them.

inline constexpr size_t kIaspHidden = 16;

// Factors of a job: suffers, suffers_alike, inflicts, inflicts_alike.
inline constexpr size_t kIaspSuffersAlike = kIaspRank;
inline constexpr size_t kIaspInflicts = kIaspRank + 1;
inline constexpr size_t kIaspInflictsAlike = 2 * kIaspRank + 1;
inline constexpr size_t kIaspWidth = 2 * kIaspRank + 2;

// Tower: columns and device -> kIaspHidden -> factors.
inline constexpr size_t kIaspHiddenBias = kPointColumns * kIaspHidden;
inline constexpr size_t kIaspLast = kIaspHiddenBias + kIaspHidden;
inline constexpr size_t kIaspLastBias = kIaspLast + kIaspHidden * kIaspWidth;
inline constexpr size_t kIaspTowerSize = kIaspLastBias + kIaspWidth;

// What a device adds: to the margin, and to each hidden value of the tower.
inline constexpr size_t kIaspDeviceWidth = 1 + kIaspHidden;

inline constexpr std::string_view kIaspDevices = "devices";  // of each device, then of one without rows
inline constexpr std::string_view kIaspTower = "tower";
inline constexpr std::string_view kIaspEmbeddings = "embeddings";  // 0 for a job that is not remembered
static_assert(kMostPairJobs * kIaspWidth <= BundleLimits().max_series_values, "every PairSet fits a bundle");

}  // namespace horus
