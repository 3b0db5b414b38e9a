// SPDX-License-Identifier: Apache-2.0
// Fuzz target: reads any bytes as a model bundle; what is accepted writes the same bytes, can be walked and predicts.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "features/feature_row.h"
#include "predict/predictor.h"
#include "trees/bundle.h"

namespace {

// The layout as docs/trees.md gives it, not as the reader's code has it.
constexpr size_t kHeader = 32;
constexpr size_t kEntry = 16;

uint64_t Get(const std::string& bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= uint64_t{static_cast<uint8_t>(bytes[at + i])} << (8 * i);
  return value;
}

void Put(std::string& bytes, size_t at, uint64_t value) {
  for (size_t i = 0; i < 8; ++i) bytes[at + i] = static_cast<char>(static_cast<uint8_t>(value >> (8 * i)));
}

// Makes sizes and checksums fit, so that mutated bytes reach the code behind the checks.
bool Reseal(std::string& bytes) {
  if (bytes.size() < kHeader) return false;
  const uint64_t count = Get(bytes, 12, 4);
  if (count == 0 || count > (bytes.size() - kHeader) / kEntry) return false;
  Put(bytes, 16, bytes.size());
  size_t at = kHeader + kEntry * count;
  for (uint64_t i = 0; i < count; ++i) {
    const size_t entry = kHeader + kEntry * i;
    const size_t left = bytes.size() - at;
    const uint64_t size = i + 1 == count || Get(bytes, entry, 8) > left ? left : Get(bytes, entry, 8);
    Put(bytes, entry, size);
    Put(bytes, entry + 8, horus::Hash64(std::string_view(bytes).substr(at, size)));
    at += size;
  }
  Put(bytes, 24, horus::Hash64(bytes.substr(0, 24) + bytes.substr(kHeader, kEntry * count)));
  return true;
}

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
      const horus::Refined refined = model->Refine(row, "v100", 1000, 2000);
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
  if (Reseal(bytes)) Check(bytes);
  return 0;
}
