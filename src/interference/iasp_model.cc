// SPDX-License-Identifier: Apache-2.0
// Reads the factors of `iasp` and multiplies them; no foreign library.
#include "interference/iasp_model.h"

#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "interference/excess.h"
#include "interference/iasp_net.h"

namespace horus {
namespace {

constexpr double kMostWeight = 1000;  // weights are held back and stay near 1; sums of so few are far from overflow
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

double InterferenceSimilarity(const IaspModel& model, uint32_t device, const Tenant& a, const Tenant& b) {
  const IaspFactors fa = model.FactorsOf(device, a), fb = model.FactorsOf(device, b);
  double product = fa.suffers_alike * fb.suffers_alike + fa.inflicts_alike * fb.inflicts_alike;
  double square_a = fa.suffers_alike * fa.suffers_alike + fa.inflicts_alike * fa.inflicts_alike;
  double square_b = fb.suffers_alike * fb.suffers_alike + fb.inflicts_alike * fb.inflicts_alike;
  for (size_t r = 0; r < kIaspRank; ++r) {
    product += fa.suffers[r] * fb.suffers[r] + fa.inflicts[r] * fb.inflicts[r];
    square_a += fa.suffers[r] * fa.suffers[r] + fa.inflicts[r] * fa.inflicts[r];
    square_b += fb.suffers[r] * fb.suffers[r] + fb.inflicts[r] * fb.inflicts[r];
  }
  const double length = std::sqrt(square_a) * std::sqrt(square_b);
  return length > 0 ? std::clamp(product / length, -1.0, 1.0) : 0;
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
