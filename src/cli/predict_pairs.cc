// SPDX-License-Identifier: Apache-2.0
// horus evaluate --predictions: what a model that has seen neither job's family says of every two jobs, as a file.
#include <cstdio>

#include "absl/strings/str_format.h"
#include "base/file.h"
#include "cli/exit_code.h"
#include "cli/pair_commands.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "lab/evaluate/evaluate_pairs.h"
#include "lab/io/predictions_file.h"

namespace horus::cli {
namespace {

absl::StatusOr<std::string> PredictToText(const PredictPairsOptions& options) {
  HORUS_ASSIGN_OR_RETURN(const LoadedPairs pairs, LoadPairSet(options.inputs));
  Progress progress;
  constexpr uint64_t kWhole = 1000;
  const auto show = [&](double done) {
    progress.Update("predicting by " + options.model, static_cast<uint64_t>(done * kWhole), kWhole);
    return true;
  };
  HORUS_ASSIGN_OR_RETURN(const std::vector<UnseenPrediction> predictions,
                         PredictUnseen(pairs.set, options.model, options.train, show));
  std::vector<PredictedPair> rows;
  for (const UnseenPrediction& one : predictions) {
    const PairDevice& device = pairs.set.devices[one.device];
    rows.push_back({device.gpu, device.mode, pairs.set.jobs[one.victim].name, pairs.set.jobs[one.other].name,
                    one.predicted, one.upper});
  }
  HORUS_RETURN_IF_ERROR(WriteFileOrDevice(options.out, PredictedText(rows)));
  return absl::StrFormat("%s: %d slowdowns of %d jobs on %d devices, each predicted without the families of both\n",
                         Printable(options.out, options.out.size()), rows.size(), pairs.set.jobs.size(),
                         pairs.set.devices.size());
}

}  // namespace

int RunPredictPairs(const PredictPairsOptions& options) {
  const absl::StatusOr<std::string> text = PredictToText(options);
  if (!text.ok()) return Fail(text.status());
  std::fputs(text->c_str(), stdout);
  return kExitDecided;
}

}  // namespace horus::cli
