// SPDX-License-Identifier: Apache-2.0
// The summary of a trace as tables, and as JSON.
#include "cli/traces_report.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_format.h"
#include "cli/numbers.h"
#include "cli/table.h"
#include "io/json_text.h"
#include "lab/trace/trace_summary.h"
#include "nlohmann/json.hpp"

namespace horus::cli {
namespace {

constexpr double kUsPerHour = 3.6e9;
constexpr double kPercent = 100;
constexpr size_t kShownProfiles = 15;
constexpr size_t kMessageBytes = 300;

using Json = nlohmann::ordered_json;

double Share(double part, double whole) { return whole > 0 ? kPercent * part / whole : 0; }

// "-" where no duration is stated.
std::string Hours(double us, const TraceSummary& summary) {
  return summary.gpu_us > 0 ? absl::StrFormat("%.1f", us / kUsPerHour) : "-";
}

std::string SizeName(const TraceSizeRow& row, int64_t before) {
  if (row.most_gpu_milli == 0) return "none";
  if (row.most_gpu_milli < kMilliPerGpu) return "below 1";
  if (row.most_gpu_milli == std::numeric_limits<int64_t>::max()) {
    return absl::StrFormat("above %d", before / kMilliPerGpu);
  }
  return absl::StrFormat("%s%d", row.most_gpu_milli > 2 * kMilliPerGpu ? "up to " : "",
                         row.most_gpu_milli / kMilliPerGpu);
}

std::string SizesText(const TraceSummary& summary) {
  Table table({{"GPUS"}, Right("JOBS"), Right("% OF JOBS"), Right("GPU HOURS"), Right("% OF GPU HOURS")});
  int64_t before = 64 * kMilliPerGpu;  // the last row's lower end
  for (const TraceSizeRow& row : summary.sizes) {
    table.AddRow({SizeName(row, before), std::to_string(row.jobs),
                  absl::StrFormat("%.1f", Share(static_cast<double>(row.jobs), static_cast<double>(summary.jobs))),
                  Hours(row.gpu_us, summary),
                  summary.gpu_us > 0 ? absl::StrFormat("%.1f", Share(row.gpu_us, summary.gpu_us)) : "-"});
  }
  return table.Render("  ");
}

std::string ProfilesText(const TraceSummary& summary) {
  Table table({{"PROFILE", Align::kLeft, true}, Right("JOBS"), Right("% OF JOBS"), Right("GPU HOURS")});
  for (size_t i = 0; i < std::min(kShownProfiles, summary.profiles.size()); ++i) {
    const TraceProfileRow& row = summary.profiles[i];
    table.AddRow({row.profile.empty() ? "(not stated)" : Printable(row.profile), std::to_string(row.jobs),
                  absl::StrFormat("%.1f", Share(static_cast<double>(row.jobs), static_cast<double>(summary.jobs))),
                  Hours(row.gpu_us, summary)});
  }
  std::string text = table.Render("  ");
  if (summary.profiles.size() > kShownProfiles) {
    text += absl::StrFormat("  and %d more\n", summary.profiles.size() - kShownProfiles);
  }
  return text;
}

std::string HeadText(const TraceRead& read, const TraceSummary& summary) {
  const auto span = static_cast<double>(summary.last_submit_us - summary.first_submit_us);
  std::string text =
      absl::StrFormat("%s trace: %d jobs, %d GPUs asked for, digest %016x\n", std::string(TraceFormatName(read.format)),
                      summary.jobs, summary.gpus, summary.digest);
  text += absl::StrFormat("arrivals over %.1f h; gaps: mean %s, squared coefficient of variation %.1f\n",
                          span / kUsPerHour, Duration(summary.mean_gap_us), summary.gap_scv);
  text += absl::StrFormat("%d gangs, %d shares of a GPU, %d best-effort, %d with deadlines, %d owners\n", summary.gangs,
                          summary.shares, summary.best_effort, summary.deadlines, summary.owners);
  if (summary.endless > 0) text += absl::StrFormat("%d endless: they run until the simulation ends\n", summary.endless);
  if (summary.by_steps > 0) {
    text += absl::StrFormat("%d state steps: how long those take depends on the GPU, so they have no GPU hours here\n",
                            summary.by_steps);
  }
  return text;
}

std::string SkippedText(const TraceRead& read) {
  std::string text;
  for (const auto& [reason, count] : read.left_out) text += absl::StrFormat("%d rows left out: %s\n", count, reason);
  if (read.skipped == 0) return text;
  text += absl::StrFormat("%d of %d rows skipped, the first for:\n", read.skipped, read.rows);
  for (const std::string& message : read.messages) text += "  " + Printable(message, kMessageBytes) + "\n";
  return text;
}

}  // namespace

std::string TraceText(const TraceRead& read) {
  const TraceSummary summary = SummariseTrace(read.trace);
  std::string text = HeadText(read, summary) + "\n" + SizesText(summary) + "\n" + ProfilesText(summary);
  if (!summary.durations_us.empty()) {
    Table table({{"% OF JOBS TAKE AT MOST"}, Right("")});
    for (size_t i = 0; i < kDurationShares.size(); ++i) {
      const int32_t share = kDurationShares[i];
      const bool shown = share == 10 || share == 100 || share == 250 || share == 500 || share == 750 || share == 900 ||
                         share == 990 || share == 1000;
      if (!shown) continue;
      table.AddRow({absl::StrFormat("%g", share * kPercent / 1000),
                    absl::StrFormat("%.2f h", static_cast<double>(summary.durations_us[i]) / kUsPerHour)});
    }
    text += "\n" + table.Render("  ");
  }
  const std::string skipped = SkippedText(read);
  return skipped.empty() ? text : text + "\n" + skipped;
}

std::string TraceJson(const TraceRead& read) {
  const TraceSummary summary = SummariseTrace(read.trace);
  Json json = {{"schema", "horus-trace"},
               {"version", 1},
               {"format", TraceFormatName(read.format)},
               {"digest", absl::StrFormat("%016x", summary.digest)},
               {"rows", read.rows},
               {"skipped", read.skipped},
               {"messages", read.messages},
               {"jobs", summary.jobs},
               {"gpus", summary.gpus},
               {"gpu_hours", summary.gpu_us / kUsPerHour},
               {"endless", summary.endless},
               {"by_steps", summary.by_steps},
               {"gangs", summary.gangs},
               {"shares", summary.shares},
               {"best_effort", summary.best_effort},
               {"deadlines", summary.deadlines},
               {"owners", summary.owners},
               {"first_submit_us", summary.first_submit_us},
               {"last_submit_us", summary.last_submit_us},
               {"mean_gap_us", summary.mean_gap_us},
               {"gap_scv", summary.gap_scv}};
  json["left_out"] = Json::array();
  for (const auto& [reason, count] : read.left_out) json["left_out"].push_back({{"reason", reason}, {"rows", count}});
  json["sizes"] = Json::array();
  for (const TraceSizeRow& row : summary.sizes) {
    const bool open = row.most_gpu_milli == std::numeric_limits<int64_t>::max();
    json["sizes"].push_back({{"most_gpu_milli", open ? Json() : Json(row.most_gpu_milli)},
                             {"jobs", row.jobs},
                             {"gpu_hours", row.gpu_us / kUsPerHour}});
  }
  json["profiles"] = Json::array();
  for (const TraceProfileRow& row : summary.profiles) {
    json["profiles"].push_back({{"profile", row.profile}, {"jobs", row.jobs}, {"gpu_hours", row.gpu_us / kUsPerHour}});
  }
  json["durations"] = Json::array();
  for (size_t i = 0; i < summary.durations_us.size(); ++i) {
    json["durations"].push_back({{"share_milli", kDurationShares[i]}, {"duration_us", summary.durations_us[i]}});
  }
  return JsonText(json);
}

}  // namespace horus::cli
