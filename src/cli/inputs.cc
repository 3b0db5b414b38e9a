// SPDX-License-Identifier: Apache-2.0
// Reads what several commands share.
#include "cli/inputs.h"

#include "base/file.h"
#include "base/status.h"
#include "io/gpu_file.h"

namespace horus::cli {

void AddGpusFileOption(CLI::App& app, std::vector<std::string>& files) {
  AddRepeated(app, "--gpus-file", files, "YAML file with GPU types of your own; may be repeated", "FILE");
}

absl::StatusOr<std::shared_ptr<const Catalogue>> LoadCatalogue(std::span<const std::string> files) {
  std::shared_ptr<const Catalogue> catalogue = Catalogue::Default();
  for (const std::string& file : files) {
    HORUS_ASSIGN_OR_RETURN(catalogue, ReadGpuFile(file, *catalogue));
  }
  return catalogue;
}

absl::StatusOr<std::shared_ptr<const Predictor>> LoadPredictor(const std::string& bundle) {
  if (bundle.empty() || bundle == kBuiltinBundle) return Predictor::Default();
  if (bundle == kNoBundle) return Predictor::Prior();
  HORUS_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(bundle, kMaxBundleBytes));
  return At(bundle, Predictor::FromBundle({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}));
}

}  // namespace horus::cli
