// SPDX-License-Identifier: Apache-2.0
// Fuzz target: reads any bytes as a model bundle; what is accepted writes the same bytes, can be walked and predicts.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "features/feature_row.h"
#include "predict/predictor.h"
#include "reseal.h"
#include "trees/bundle.h"

namespace {

// Whatever a bundle says, a refined value is finite, in its range and at most its bound.
void CheckPredictor(const horus::Bundle& bundle) {
  for (const horus::BundleTarget& target : bundle.targets) {
    const auto model = horus::FromBundle(target, target.forest.num_features);
    if (!model.ok()) {
      if (model.status().message().empty()) std::abort();
      continue;
    }
    for (const float value : {0.0f, 1.0f, 1e12f}) {
      const std::vector<float> row(horus::FeatureCount(), value);
      const horus::Refined refined = model->Refine(row, "v100", {1000, 2000});
      const double most = horus::InfoOf(model->quantity).most;
      if (!(refined.value >= 0 && refined.value <= refined.upper && refined.upper <= most)) std::abort();
      if (!(refined.distance >= 0)) std::abort();
    }
  }
  const auto predictor = horus::Predictor::FromBundle(bundle);
  if (predictor.ok() && (*predictor)->bytes_held() <= 0) std::abort();
}

void Check(std::string_view bytes) {
  const absl::StatusOr<horus::Bundle> bundle =
      horus::ReadBundle({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  if (!bundle.ok()) {
    if (bundle.status().message().empty()) std::abort();
    return;
  }
  const absl::StatusOr<std::string> written = horus::WriteBundle(*bundle);
  if (!written.ok() || *written != bytes) std::abort();
  for (const horus::BundleTarget& target : bundle->targets) {
    const absl::StatusOr<horus::Forest> forest = horus::Forest::Create(target.forest);
    if (!forest.ok()) std::abort();
    const std::vector<float> row = {1.0f, -2.0f};  // what is absent is missing
    std::vector<double> parts(forest->num_features());
    if (forest->num_trees() < 100) (void)forest->Contributions(row, parts);
    (void)forest->PredictMargin(row);
  }
  CheckPredictor(*bundle);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  Check(bytes);
  if (horus::Reseal(bytes)) Check(bytes);
  return 0;
}
