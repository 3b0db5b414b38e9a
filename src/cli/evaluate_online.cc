// SPDX-License-Identifier: Apache-2.0
// horus evaluate --pairs --observe: how fast a model learns what jobs of an unknown family lose and cost.
#include "lab/evaluate/evaluate_online.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/exit_code.h"
#include "cli/inputs.h"
#include "cli/pair_commands.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "interference/pair_kinds.h"
#include "io/json_text.h"
#include "nlohmann/json.hpp"

namespace horus::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kPercent = 100;
constexpr size_t kShownBound = 1;  // of kAskedBounds, in text

struct Judged {
  std::string model;
  OnlineErrors errors;
};

Json NumberOrNull(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json ScoresJson(const OnlineScores& scores) {
  if (scores.questions == 0) return nullptr;
  const auto json = [](const OnlineScore& score) -> Json {
    Json admission = Json::array();
    for (size_t b = 0; b < kAskedBounds.size(); ++b) {
      const OnlineAdmission& of = score.admission[b];
      admission.push_back({{"bound", kAskedBounds[b]},
                           {"truly_pct", of.truly_pct},
                           {"admitted_pct", NumberOrNull(of.admitted_pct)},
                           {"kept_pct", NumberOrNull(of.kept_pct)}});
    }
    return {{"mape_pct", score.mape_pct},
            {"covered_pct", score.covered_pct},
            {"slack_pct", score.slack_pct},
            {"admission", admission}};
  };
  return {{"questions", scores.questions},
          {"pairs", scores.pairs},
          {"before", json(scores.before)},
          {"after", json(scores.after)}};
}

std::string ReportJson(const std::vector<Judged>& all, const PairSet& set, const OnlinePlan& plan) {
  Json list = Json::array();
  for (const Judged& judged : all) {
    const PairDevice& device = set.devices[judged.errors.device];
    list.push_back({{"model", judged.model},
                    {"gpu", device.gpu},
                    {"sharing_mode", std::string(SharingModeName(device.mode))},
                    {"observed", judged.errors.observed},
                    {"all", ScoresJson(judged.errors.all)},
                    {"residents", ScoresJson(judged.errors.residents)}});
  }
  const Json document = {{"schema", "horus-evaluate-online"},
                         {"version", 1},
                         {"noise_pct", kPercent * plan.noise},
                         {"draws", plan.draws},
                         {"gpu_left_out", plan.leave_gpu},
                         {"settled", plan.settled},
                         {"evaluations", list}};
  return JsonText(document);
}

std::string ReportText(const std::vector<Judged>& all, const PairSet& set, const OnlinePlan& plan) {
  const std::vector<Column> who = {{"MODEL"}, {"GPU"}, {"SHARING"}, {"BESIDE"}, Right("SEEN")};
  const auto with = [&who](std::vector<Column> columns) {
    columns.insert(columns.begin(), who.begin(), who.end());
    return columns;
  };
  Table errors(with({Right("MAPE %"), Right("COVERED %"), Right("SLACK %")}));
  Table admitted(with({Right("TRULY %"), Right("ADMITTED %"), Right("KEPT %")}));
  const auto both = [](double before, double after) { return absl::StrFormat("%.3g -> %.3g", before, after); };
  const auto share = [](double pct) { return std::isnan(pct) ? "-" : absl::StrFormat("%.3g", pct); };
  for (const Judged& judged : all) {
    const PairDevice& device = set.devices[judged.errors.device];
    for (const auto& [beside, scores] :
         {std::pair{"anybody", &judged.errors.all}, {"residents", &judged.errors.residents}}) {
      if (scores->questions == 0) continue;
      const OnlineScore &before = scores->before, &after = scores->after;
      std::vector<std::string> row = {judged.model, device.gpu, std::string(SharingModeName(device.mode)), beside,
                                      std::to_string(judged.errors.observed)};
      std::vector<std::string> of_bound = row;
      for (const std::string& text :
           {both(before.mape_pct, after.mape_pct), both(before.covered_pct, after.covered_pct),
            both(before.slack_pct, after.slack_pct)}) {
        row.push_back(text);
      }
      const OnlineAdmission& of = after.admission[kShownBound];
      for (const double pct : {of.truly_pct, of.admitted_pct, of.kept_pct}) of_bound.push_back(share(pct));
      errors.AddRow(row);
      admitted.AddRow(of_bound);
    }
  }
  const std::string settled =
      plan.settled == 0 ? "" : absl::StrFormat(" (%d of other jobs there before)", plan.settled);
  return absl::StrFormat(
             "Slowdowns of jobs whose family%s training has not seen,\n"
             "before -> after some of their co-locations%s were seen\n"
             "with %.3g %% noise (%d draws)\n",
             plan.leave_gpu ? " and GPU type" : "", settled, kPercent * plan.noise, plan.draws) +
         errors.Render("  ") +
         absl::StrFormat("Then, of pairs: truly within %.3g; of those admitted by bounds; of tenants admitted: kept\n",
                         kAskedBounds[kShownBound]) +
         admitted.Render("  ");
}

absl::StatusOr<std::string> EvaluateToText(const EvaluateOnlineOptions& options) {
  if (!(options.plan.noise >= 0 && options.plan.noise <= kMostObservedNoise)) {
    return InvalidArgument("--noise: expected 0 to %g per cent, found %g", kPercent * kMostObservedNoise,
                           kPercent * options.plan.noise);
  }
  std::vector<const PairModelKind*> kinds;
  for (const std::string& name : options.models) {
    HORUS_ASSIGN_OR_RETURN(const PairModelKind* kind, FindPairModelKind(name));
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  }
  if (kinds.empty()) {
    for (const PairModelKind& kind : PairModelKinds()) kinds.push_back(&kind);
  }
  HORUS_ASSIGN_OR_RETURN(const auto catalogue, LoadCatalogue(options.inputs.gpus_files));
  HORUS_ASSIGN_OR_RETURN(const LoadedPairs pairs, LoadPairSet(options.inputs));
  std::vector<Judged> all;
  for (const PairModelKind* kind : kinds) {
    Progress progress;
    constexpr uint64_t kWhole = 1000;
    const auto show = [&](double done) {
      progress.Update("evaluating " + std::string(kind->name), static_cast<uint64_t>(done * kWhole), kWhole);
      return true;
    };
    HORUS_ASSIGN_OR_RETURN(const std::vector<OnlineErrors> errors,
                           EvaluateOnline(pairs.set, kind->name, *catalogue, options.plan, options.train, show));
    for (const OnlineErrors& each : errors) all.push_back({std::string(kind->name), each});
  }
  return options.json ? ReportJson(all, pairs.set, options.plan)
                      : ReportText(all, pairs.set, options.plan) + SkippedText(pairs.skipped);
}

}  // namespace

int RunEvaluateOnline(const EvaluateOnlineOptions& options) {
  const absl::StatusOr<std::string> text = EvaluateToText(options);
  if (!text.ok()) return Fail(text.status());
  std::fputs(text->c_str(), stdout);
  return kExitDecided;
}

}  // namespace horus::cli
