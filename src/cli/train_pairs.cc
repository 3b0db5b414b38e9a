// SPDX-License-Identifier: Apache-2.0
// horus train --pairs: a bundle of interference models from measured pairs.
#include "interference/train_pairs.h"

#include <cstdio>

#include "absl/strings/str_format.h"
#include "base/file.h"
#include "cli/exit_code.h"
#include "cli/pair_commands.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "io/json_text.h"
#include "nlohmann/json.hpp"

namespace horus::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Trained {
  LoadedPairs pairs;
  Bundle bundle;
  std::vector<TrainedKind> kinds;
};

Json ReportJson(const TrainPairsOptions& options, const Trained& trained) {
  const PairSet& set = trained.pairs.set;
  Json devices = Json::array(), kinds = Json::array();
  for (const PairDevice& device : set.devices) {
    devices.push_back({{"gpu", device.gpu}, {"sharing_mode", std::string(SharingModeName(device.mode))}});
  }
  for (const TrainedKind& kind : trained.kinds) {
    kinds.push_back({{"kind", kind.kind},
                     {"pair_mape_pct", kind.pair_mape},
                     {"family_mape_pct", kind.family_mape},
                     {"pair_coverage_promised", kind.pair_promised},
                     {"pair_coverage_observed", kind.pair_observed},
                     {"family_coverage_promised", kind.family_promised},
                     {"family_coverage_observed", kind.family_observed}});
  }
  const PairsSkipped& skipped = trained.pairs.skipped;
  return {{"schema", "horus-train-pairs"},
          {"version", 1},
          {"out", options.out},
          {"devices", devices},
          {"jobs", set.jobs.size()},
          {"pairs", set.runs.size()},
          {"rows", RowsOf(set).size()},
          {"left_out", {{"apart", skipped.apart}, {"no_alone", skipped.no_alone}, {"several", skipped.several}}},
          {"kinds", kinds},
          {"data_fingerprint", absl::StrFormat("%016x", trained.bundle.data_fingerprint)}};
}

std::string ReportText(const TrainPairsOptions& options, const Trained& trained) {
  const auto right = [](const char* title) { return Column{title, Align::kRight, true}; };
  Table table({{"MODEL"},
               right("MAPE, PAIR UNSEEN"),
               right("FAMILY UNSEEN"),
               right("PROMISED"),
               right("OBSERVED"),
               right("FAMILY: PROMISED"),
               right("OBSERVED")});
  const auto percent = [](double value) { return absl::StrFormat("%.1f %%", value); };
  const auto share = [](double value) {
    return value > 0 ? absl::StrFormat("%.0f %%", 100 * value) : std::string("-");
  };
  for (const TrainedKind& kind : trained.kinds) {
    table.AddRow({kind.kind, percent(kind.pair_mape), percent(kind.family_mape), share(kind.pair_promised),
                  share(kind.pair_observed), share(kind.family_promised), share(kind.family_observed)});
  }
  const PairSet& set = trained.pairs.set;
  return table.Render() + SkippedText(trained.pairs.skipped) +
         absl::StrFormat("%s: %d pairs of %d jobs on %d devices, data fingerprint %016x\n",
                         Printable(options.out, options.out.size()), set.runs.size(), set.jobs.size(),
                         set.devices.size(), trained.bundle.data_fingerprint);
}

absl::StatusOr<Trained> Train(const TrainPairsOptions& options) {
  Trained trained;
  HORUS_ASSIGN_OR_RETURN(trained.pairs, LoadPairSet(options.inputs));
  Progress progress;
  constexpr uint64_t kWhole = 1000;
  const auto show = [&progress](double done) {
    progress.Update("training", static_cast<uint64_t>(done * kWhole), kWhole);
    return true;
  };
  HORUS_ASSIGN_OR_RETURN(trained.bundle, TrainInterference(trained.pairs.set, options.train, show, &trained.kinds));
  HORUS_ASSIGN_OR_RETURN(const std::string bytes, WriteBundle(trained.bundle));
  HORUS_RETURN_IF_ERROR(WriteFileOrDevice(options.out, bytes));
  return trained;
}

}  // namespace

int RunTrainPairs(const TrainPairsOptions& options) {
  const absl::StatusOr<Trained> trained = Train(options);
  if (!trained.ok()) return Fail(trained.status());
  const std::string text = options.json ? JsonText(ReportJson(options, *trained)) : ReportText(options, *trained);
  std::fputs(text.c_str(), stdout);
  return kExitDecided;
}

}  // namespace horus::cli
