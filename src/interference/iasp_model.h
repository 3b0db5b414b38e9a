// SPDX-License-Identifier: Apache-2.0
// `iasp`: collaborative filtering. What a job suffers and what it inflicts are factors; the slowdown is their product.
//
// Enters:  to fit: rows of a PairSet. To answer: the tenants of a device.
// Leaves:  as pair_model.h says; how alike two jobs are as tenants.
// Units:   factors add to the margin, ln(slowdown - kSlowdownShift); similarity from -1 to 1.
// Cost:    a fit: 0.1 s for 2,000 rows. An answer: 0.2 us a tenant; no allocation up to 16 tenants.
// Thread class: pure functions; the model is immutable, share freely.
#ifndef HORUS_INTERFERENCE_IASP_MODEL_H_
#define HORUS_INTERFERENCE_IASP_MODEL_H_

#include <array>
#include <utility>

#include "interference/pair_columns.h"
#include "interference/pair_model.h"

namespace horus {

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

// How alike two jobs are on a device, a position in the header's list or kUnseen, in what they suffer and inflict: the
// cosine of their factors. 1 = in the same proportions, -1 = opposite; 0 where nothing is known of one of them.
// Symmetric, finite; 1 for a job and itself up to rounding.
[[nodiscard]] double InterferenceSimilarity(const IaspModel& model, uint32_t device, const Tenant& a, const Tenant& b);

// Part of a build with ONNX only: needs Eigen.
[[nodiscard]] absl::StatusOr<BundleTarget> FitIasp(const PairSet& set, std::span<const PairRow> rows,
                                                   const PairFitOptions& options);
[[nodiscard]] absl::StatusOr<std::unique_ptr<const IaspModel>> ReadIaspModel(const PairHeader& header,
                                                                             const BundleTarget& target);
[[nodiscard]] absl::StatusOr<std::unique_ptr<const PairModel>> ReadIasp(const PairHeader& header,
                                                                        const BundleTarget& target);

}  // namespace horus

#endif  // HORUS_INTERFERENCE_IASP_MODEL_H_
