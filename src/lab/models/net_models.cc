// SPDX-License-Identifier: Apache-2.0
// `iapp` and `iasp`: small networks that predict slowdowns, as their fits write them; read and walked without foreign
// libraries.
#include "lab/models/net_models.h"

#include <algorithm>
#include <cmath>

#include "base/status.h"

namespace horus {
namespace {

// ---- Reads the networks of `iapp` and walks them; no foreign library.

// Weights are decayed towards 0 and stay near 1; sums of so few of these are far from overflow.
constexpr double kMostWeight = 1000;

// Floats: four to a vector on every machine, and what they round away is far below any margin's error.
using Hidden = std::array<float, kIappHidden>;

// As bounded as a hyperbolic tangent, and a tenth of its time.
float Soft(float x) { return x / (1 + std::abs(x)); }

class IappModel final : public PairModel {
 public:
  IappModel(PointScale scale, IappShape shape, std::span<const double> weights)
      : scale_(scale), shape_(shape), weights_(weights.begin(), weights.end()) {}

  void Pairs(uint32_t device, std::span<const Tenant> tenants, std::span<float> out) const override {
    const size_t n = tenants.size();
    for (size_t i = 0; i + 1 < n; ++i) {
      const Parts one = PartsOf(device, tenants[i]);
      for (size_t j = i + 1; j < n; ++j) {
        const Parts other = PartsOf(device, tenants[j]);
        out[i * n + j] = Answer(one, other);
        out[j * n + i] = Answer(other, one);
      }
    }
  }

  void Beside(uint32_t device, const Tenant& newcomer, std::span<const Tenant> others, std::span<float> mine,
              std::span<float> theirs) const override {
    const Parts one = PartsOf(device, newcomer);
    for (size_t i = 0; i < others.size(); ++i) {
      const Parts other = PartsOf(device, others[i]);
      mine[i] = Answer(one, other);
      theirs[i] = Answer(other, one);
    }
  }

  [[nodiscard]] size_t bytes_held() const override { return sizeof(*this) + weights_.capacity() * sizeof(float); }

 private:
  // The first layer is the sum of a part of the victim and a part of the other. Of each network.
  struct Parts {
    JobPoint point;
    std::array<Hidden, kIappNetworks> as_victim, as_other;
  };

  [[nodiscard]] Parts PartsOf(uint32_t device, const Tenant& tenant) const {
    const size_t bias = std::min<size_t>(device, shape_.devices - 1);
    const Columns columns = scale_.Standardise(tenant.point);
    Parts parts{.point = tenant.point};
    for (size_t k = 0; k < kIappNetworks; ++k) {
      const float* net = &weights_[k * shape_.size()];
      Hidden &victim = parts.as_victim[k], &other = parts.as_other[k];
      std::copy_n(net + shape_.biases() + bias * kIappHidden, kIappHidden, victim.begin());
      other.fill(0);
      for (size_t c = 0; c < kPointColumns; ++c) {
        const auto value = static_cast<float>(columns[c]);
        const float* of_victim = net + c * kIappHidden;
        const float* of_other = of_victim + kPointColumns * kIappHidden;
        for (size_t h = 0; h < kIappHidden; ++h) victim[h] += of_victim[h] * value;
        for (size_t h = 0; h < kIappHidden; ++h) other[h] += of_other[h] * value;
      }
    }
    return parts;
  }

  [[nodiscard]] float Answer(const Parts& victim, const Parts& other) const {
    float sum = 0;
    for (size_t k = 0; k < kIappNetworks; ++k) {
      sum += MarginOf(&weights_[k * shape_.size()], victim.as_victim[k], other.as_other[k]);
    }
    const double z = double{sum} / kIappNetworks + scale_.Theory(victim.point, other.point);
    return static_cast<float>(SlowdownOf(z));
  }

  [[nodiscard]] float MarginOf(const float* net, const Hidden& of_victim, const Hidden& of_other) const {
    Hidden first, second;
    for (size_t h = 0; h < kIappHidden; ++h) first[h] = Soft(of_victim[h] + of_other[h]);
    std::copy_n(net + shape_.second_bias(), kIappHidden, second.begin());
    for (size_t g = 0; g < kIappHidden; ++g) {
      const float* row = net + shape_.second() + g * kIappHidden;
      for (size_t h = 0; h < kIappHidden; ++h) second[h] += row[h] * first[g];
    }
    for (float& value : second) value = Soft(value);
    float margin = net[shape_.last_bias()];
    for (size_t h = 0; h < kIappHidden; ++h) margin += net[shape_.last() + h] * second[h];
    return margin;
  }

  PointScale scale_;
  IappShape shape_;
  std::vector<float> weights_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const PairModel>> ReadIapp(const PairHeader& header, const BundleTarget& target) {
  HORUS_RETURN_IF_ERROR(CheckPairTarget(target, kIappName, 0));
  HORUS_ASSIGN_OR_RETURN(const PointScale scale, ReadScale(target));
  const IappShape shape{.devices = header.devices.size() + 1};
  HORUS_ASSIGN_OR_RETURN(const auto weights,
                         ReadSeries(target, kIappWeights, kIappNetworks * shape.size(), kMostWeight));
  return std::make_unique<const IappModel>(scale, shape, weights);
}

namespace {

// ---- Reads the factors of `iasp` and multiplies them; no foreign library.

constexpr size_t kTenantsOnStack = 16;

}  // namespace

const double* IaspModel::DeviceAt(uint32_t device) const {
  return &devices_[std::min(device * kIaspDeviceWidth, devices_.size() - kIaspDeviceWidth)];
}

IaspFactors IaspModel::FactorsOf(uint32_t device, const Tenant& tenant) const {
  const Columns columns = scale_.Standardise(tenant.point);
  std::array<double, kIaspHidden> hidden;
  std::copy_n(&tower_[kIaspHiddenBias], kIaspHidden, hidden.begin());
  const double* of_device = DeviceAt(device) + 1;
  for (size_t h = 0; h < kIaspHidden; ++h) hidden[h] += of_device[h];
  for (size_t c = 0; c < kPointColumns; ++c) {
    for (size_t h = 0; h < kIaspHidden; ++h) hidden[h] += tower_[c * kIaspHidden + h] * columns[c];
  }
  std::array<double, kIaspWidth> out;
  std::copy_n(&tower_[kIaspLastBias], kIaspWidth, out.begin());
  for (size_t h = 0; h < kIaspHidden; ++h) {
    const double active = hidden[h] / (1 + std::abs(hidden[h]));
    for (size_t f = 0; f < kIaspWidth; ++f) out[f] += tower_[kIaspLast + h * kIaspWidth + f] * active;
  }
  const auto known = std::lower_bound(remembered_.begin(), remembered_.end(), std::pair(tenant.profile_id, 0u));
  if (known != remembered_.end() && known->first == tenant.profile_id) {
    for (size_t f = 0; f < kIaspWidth; ++f) out[f] += embeddings_[known->second * kIaspWidth + f];
  }
  IaspFactors factors{.suffers_alike = out[kIaspSuffersAlike], .inflicts_alike = out[kIaspInflictsAlike]};
  std::copy_n(out.begin(), kIaspRank, factors.suffers.begin());
  std::copy_n(out.begin() + kIaspInflicts, kIaspRank, factors.inflicts.begin());
  return factors;
}

void IaspModel::Pairs(uint32_t device, std::span<const Tenant> tenants, std::span<float> out) const {
  std::array<IaspFactors, kTenantsOnStack> few;
  std::vector<IaspFactors> many;
  std::span<IaspFactors> factors = few;
  if (tenants.size() > few.size()) {
    many.resize(tenants.size());
    factors = many;
  }
  for (size_t i = 0; i < tenants.size(); ++i) factors[i] = FactorsOf(device, tenants[i]);
  const double offset = *DeviceAt(device);
  for (size_t i = 0; i < tenants.size(); ++i) {
    for (size_t j = 0; j < tenants.size(); ++j) {
      if (i == j) continue;
      const IaspFactors &victim = factors[i], &other = factors[j];
      double margin =
          offset + victim.suffers_alike + other.inflicts_alike + scale_.Theory(tenants[i].point, tenants[j].point);
      for (size_t r = 0; r < kIaspRank; ++r) margin += victim.suffers[r] * other.inflicts[r];
      out[i * tenants.size() + j] = static_cast<float>(SlowdownOf(margin));
    }
  }
}

size_t IaspModel::bytes_held() const {
  return sizeof(*this) + (devices_.capacity() + tower_.capacity() + embeddings_.capacity()) * sizeof(double) +
         remembered_.capacity() * sizeof(remembered_[0]);
}

absl::StatusOr<std::unique_ptr<const IaspModel>> ReadIaspModel(const PairHeader& header, const BundleTarget& target) {
  HORUS_RETURN_IF_ERROR(CheckPairTarget(target, kIaspName, 0));
  auto model = std::make_unique<IaspModel>();
  HORUS_ASSIGN_OR_RETURN(model->scale_, ReadScale(target));
  const auto read = [&target](std::string_view name, size_t count, std::vector<double>& values) {
    const auto series = ReadSeries(target, name, count, kMostWeight);
    if (series.ok()) values.assign(series->begin(), series->end());
    return series.status();
  };
  HORUS_RETURN_IF_ERROR(read(kIaspDevices, (header.devices.size() + 1) * kIaspDeviceWidth, model->devices_));
  HORUS_RETURN_IF_ERROR(read(kIaspTower, kIaspTowerSize, model->tower_));
  HORUS_RETURN_IF_ERROR(read(kIaspEmbeddings, header.profiles.size() * kIaspWidth, model->embeddings_));
  for (uint32_t job = 0; job < header.profiles.size(); ++job) {
    if (header.profiles[job] != 0) model->remembered_.emplace_back(header.profiles[job], job);
  }
  std::sort(model->remembered_.begin(), model->remembered_.end());  // of jobs of one profile the first is found
  return model;
}

absl::StatusOr<std::unique_ptr<const PairModel>> ReadIasp(const PairHeader& header, const BundleTarget& target) {
  HORUS_ASSIGN_OR_RETURN(std::unique_ptr<const PairModel> model, ReadIaspModel(header, target));
  return model;
}

}  // namespace horus
