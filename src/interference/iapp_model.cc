// SPDX-License-Identifier: Apache-2.0
// Reads the networks of `iapp` and walks them; no foreign library.
#include "interference/iapp_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/status.h"
#include "interference/excess.h"
#include "interference/iapp_net.h"
#include "interference/pair_columns.h"

namespace horus {
namespace {

// Weights are decayed towards 0 and stay near 1; sums of so few of these are far from overflow.
constexpr double kMostWeight = 1000;

using Hidden = std::array<double, kIappHidden>;

// As bounded as a hyperbolic tangent, and a tenth of its time.
double Soft(double x) { return x / (1 + std::abs(x)); }

class IappModel final : public PairModel {
 public:
  IappModel(PointScale scale, IappShape shape, std::vector<double> weights)
      : scale_(scale), shape_(shape), weights_(std::move(weights)) {}

  void Pairs(uint32_t device, std::span<const Tenant> tenants, std::span<float> out) const override {
    const size_t bias = std::min<size_t>(device, shape_.devices - 1);
    for (size_t i = 0; i < tenants.size(); ++i) {
      const Columns victim = scale_.Standardise(tenants[i].point);
      for (size_t j = 0; j < tenants.size(); ++j) {
        if (i == j) continue;
        const Columns other = scale_.Standardise(tenants[j].point);
        double sum = 0;
        for (size_t at = 0; at < weights_.size(); at += shape_.size()) sum += Walk(&weights_[at], bias, victim, other);
        const double z = sum / static_cast<double>(kIappNetworks) + scale_.Theory(tenants[i].point, tenants[j].point);
        out[i * tenants.size() + j] = static_cast<float>(SlowdownOf(z));
      }
    }
  }

  [[nodiscard]] size_t bytes_held() const override { return sizeof(*this) + weights_.capacity() * sizeof(double); }

 private:
  [[nodiscard]] double Walk(const double* net, size_t bias, const Columns& victim, const Columns& other) const {
    Hidden first, second;
    std::copy_n(net + shape_.biases() + bias * kIappHidden, kIappHidden, first.begin());
    for (size_t c = 0; c < kPointColumns; ++c) {
      const double* of_victim = net + c * kIappHidden;
      const double* of_other = of_victim + kPointColumns * kIappHidden;
      for (size_t h = 0; h < kIappHidden; ++h) first[h] += of_victim[h] * victim[c] + of_other[h] * other[c];
    }
    for (double& value : first) value = Soft(value);
    std::copy_n(net + shape_.second_bias(), kIappHidden, second.begin());
    for (size_t g = 0; g < kIappHidden; ++g) {
      const double* row = net + shape_.second() + g * kIappHidden;
      for (size_t h = 0; h < kIappHidden; ++h) second[h] += row[h] * first[g];
    }
    double margin = net[shape_.last_bias()];
    for (size_t h = 0; h < kIappHidden; ++h) margin += net[shape_.last() + h] * Soft(second[h]);
    return margin;
  }

  PointScale scale_;
  IappShape shape_;
  std::vector<double> weights_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const PairModel>> ReadIapp(const PairHeader& header, const BundleTarget& target) {
  HORUS_RETURN_IF_ERROR(CheckPairTarget(target, kIappName, 0));
  HORUS_ASSIGN_OR_RETURN(const PointScale scale, ReadScale(target));
  const IappShape shape{.devices = header.devices.size() + 1};
  HORUS_ASSIGN_OR_RETURN(const auto weights,
                         ReadSeries(target, kIappWeights, kIappNetworks * shape.size(), kMostWeight));
  return std::make_unique<const IappModel>(scale, shape, std::vector<double>(weights.begin(), weights.end()));
}

}  // namespace horus
