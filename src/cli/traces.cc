// SPDX-License-Identifier: Apache-2.0
// horus traces: what a trace holds, and any trace as the plain CSV; made ones too.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>

#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/status.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/print.h"
#include "lab/io/traces/trace_file.h"
#include "lab/trace/synthetic.h"
#include "lab/trace/trace.h"

namespace horus::cli {
namespace {

// ---- A trace for people and for programs: docs/reference/json.md has the keys.

constexpr double kUsPerHour = 3.6e9;
constexpr double kPercent = 100;
constexpr size_t kShownProfiles = 15;
constexpr size_t kReportMessageBytes = 300;

double Share(double part, double whole) { return whole > 0 ? kPercent * part / whole : 0; }

// "-" where no duration is stated.
std::string Hours(double us, const TraceSummary& summary) {
  return summary.gpu_us > 0 ? absl::StrFormat("%.1f", us / kUsPerHour) : "-";
}

std::string SizeName(const TraceSizeRow& row, int64_t before) {
  if (row.most_gpu_milli == 0) return "none";
  if (row.most_gpu_milli < kMilliPerGpu) return "below 1";
  if (row.most_gpu_milli == std::numeric_limits<int64_t>::max())
    return absl::StrFormat("above %d", before / kMilliPerGpu);
  return absl::StrFormat("%s%d", row.most_gpu_milli > 2 * kMilliPerGpu ? "up to " : "",
                         row.most_gpu_milli / kMilliPerGpu);
}

std::string SizesText(const TraceSummary& summary) {
  Table table("GPUS|>JOBS|>% OF JOBS|>GPU HOURS|>% OF GPU HOURS");
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
  Table table("~PROFILE|>JOBS|>% OF JOBS|>GPU HOURS");
  for (size_t i = 0; i < std::min(kShownProfiles, summary.profiles.size()); ++i) {
    const TraceProfileRow& row = summary.profiles[i];
    table.AddRow({row.profile.empty() ? "(not stated)" : Printable(row.profile), std::to_string(row.jobs),
                  absl::StrFormat("%.1f", Share(static_cast<double>(row.jobs), static_cast<double>(summary.jobs))),
                  Hours(row.gpu_us, summary)});
  }
  std::string text = table.Render("  ");
  if (summary.profiles.size() > kShownProfiles)
    text += absl::StrFormat("  and %d more\n", summary.profiles.size() - kShownProfiles);
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

std::string SkippedLines(const TraceRead& read) {
  std::string text;
  for (const auto& [reason, count] : read.left_out) text += absl::StrFormat("%d rows left out: %s\n", count, reason);
  if (read.skipped == 0) return text;
  text += absl::StrFormat("%d of %d rows skipped, the first for:\n", read.skipped, read.rows);
  for (const std::string& message : read.messages) text += "  " + Printable(message, kReportMessageBytes) + "\n";
  return text;
}

std::string TraceText(const TraceRead& read) {
  const TraceSummary summary = SummariseTrace(read.trace);
  std::string text = HeadText(read, summary) + "\n" + SizesText(summary) + "\n" + ProfilesText(summary);
  if (!summary.durations_us.empty()) {
    Table table("% OF JOBS TAKE AT MOST|>");
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
  const std::string skipped = SkippedLines(read);
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
  for (const TraceProfileRow& row : summary.profiles)
    json["profiles"].push_back({{"profile", row.profile}, {"jobs", row.jobs}, {"gpu_hours", row.gpu_us / kUsPerHour}});
  json["durations"] = Json::array();
  for (size_t i = 0; i < summary.durations_us.size(); ++i)
    json["durations"].push_back({{"share_milli", kDurationShares[i]}, {"duration_us", summary.durations_us[i]}});
  return JsonText(json);
}

constexpr char kTracesFooter[] = R"(
Examples:
  horus traces show philly.csv                      jobs, sizes, profiles, arrivals
  horus traces show gavel_msr_seed0 --json          all files of a folder as one trace
  horus traces convert openb_pod_list_default.csv --to plain.csv
  horus traces convert pai_task_table.csv --format pai --pai-job-table pai_job_table.csv --to plain.csv
  horus traces make horus2020 --seed 7 --to plain.csv
  horus traces make philly --jobs 8000 --gpus 512 --load 0.8 --arrivals poisson --to plain.csv

docs/simulate.md has the columns of the plain format, src/lab/trace/README.md those of the public ones.)";

struct TracesArguments {
  std::vector<std::string> in;
  std::string preset;
  std::string format = "auto";
  std::string to;
  std::string pai_job_table;
  uint64_t seed = 1;
  int64_t jobs = 0;  // 0 = the preset's, as the next four
  int64_t gpus = 0;
  double load = 0;
  int32_t profiles = 0;
  std::string arrivals;
  bool skip_bad = false;
  bool json = false;
};

absl::StatusOr<TraceRead> Read(const TracesArguments& options) {
  TraceReadOptions read{.skip_bad = options.skip_bad, .pai_job_table = options.pai_job_table};
  HORUS_ASSIGN_OR_RETURN(read.format, ParseTraceFormat(options.format));
  return ReadTraces(options.in, read);
}

// What was not taken, on stderr: the first messages and the counts.
void TellSkipped(const TraceRead& read) {
  for (const std::string& message : read.messages)
    absl::FPrintF(stderr, "horus: skipped: %s\n", Printable(message, kMessageBytes));
  if (read.skipped > 0) absl::FPrintF(stderr, "horus: %d of %d rows skipped\n", read.skipped, read.rows);
  for (const auto& [reason, count] : read.left_out) absl::FPrintF(stderr, "horus: %d left out: %s\n", count, reason);
}

absl::StatusOr<std::string> Show(const TracesArguments& options) {
  HORUS_ASSIGN_OR_RETURN(const TraceRead read, Read(options));
  return options.json ? TraceJson(read) : TraceText(read);
}

absl::StatusOr<std::string> Write(const Trace& trace, const std::string& to) {
  HORUS_RETURN_IF_ERROR(WriteFileOrDevice(to, WritePlainTrace(trace)));
  return absl::StrFormat("%d jobs written to %s, digest %016x\n", trace.jobs.size(), Printable(to, kMessageBytes),
                         TraceDigest(trace));
}

absl::StatusOr<std::string> Convert(const TracesArguments& options) {
  HORUS_ASSIGN_OR_RETURN(const TraceRead read, Read(options));
  TellSkipped(read);
  return Write(read.trace, options.to);
}

constexpr const char* kArrivals[] = {"backlog", "poisson", "bursty"};  // as the enum
constexpr double kMilli = 1000;

absl::StatusOr<SyntheticOptions> Asked(const TracesArguments& options) {
  HORUS_ASSIGN_OR_RETURN(SyntheticOptions asked, SyntheticPreset(options.preset));
  asked.seed = options.seed;
  if (options.jobs > 0) asked.jobs = options.jobs;
  if (options.gpus > 0) asked.capacity_gpu_milli = options.gpus * kMilliPerGpu;
  if (options.load > 0) asked.load_milli = static_cast<int32_t>(std::lround(options.load * kMilli));
  if (options.profiles > 0) asked.profiles = NumberedProfiles(options.profiles);
  for (size_t i = 0; i < std::size(kArrivals); ++i) {
    if (options.arrivals == kArrivals[i]) asked.arrivals = static_cast<Arrivals>(i);
  }
  if (asked.gap_scv_milli == 0) asked.gap_scv_milli = kPhillyGapScvMilli;
  return asked;
}

absl::StatusOr<std::string> Make(const TracesArguments& options) {
  HORUS_ASSIGN_OR_RETURN(const SyntheticOptions asked, Asked(options));
  HORUS_ASSIGN_OR_RETURN(const Trace trace, MakeSynthetic(asked));
  return Write(trace, options.to);
}

void AddInput(CLI::App& app, TracesArguments& options) {
  AddOption(app, "IN", options.in, "Trace files; several, or the files of a folder, become one trace", "PATH")
      ->required();
  AddOption(app, "--format", options.format, "auto, plain, openb, gavel, chronus, muri or pai", "NAME")
      ->capture_default_str();
  AddOption(app, "--pai-job-table", options.pai_job_table, "Owners and submissions of a pai trace", "FILE");
  app.add_flag("--skip-bad", options.skip_bad, "Leave out lines that are wrong, and say how many");
}

// What may differ from the preset.
void AddShape(CLI::App& make, TracesArguments& options) {
  constexpr double kMostGpus = 1e9;  // beyond any cluster
  constexpr double kMostLoad = 1e6;
  constexpr double kMostProfiles = 100'000;
  AddOption(make, "--jobs", options.jobs, "How many", "N")->check(CLI::PositiveNumber);
  AddOption(make, "--arrivals", options.arrivals, "backlog, poisson or bursty", "NAME")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(kArrivals), std::end(kArrivals))));
  AddRanged(make, "--gpus", options.gpus, "Of the cluster that --load means", "N", 1.0, kMostGpus);
  AddRanged(make, "--load", options.load, "GPUs x time that comes, by GPUs x time that there is", "X", 1 / kMilli,
            kMostLoad);
  AddRanged(make, "--profiles", options.profiles, "That many numbered ones, equally likely", "N", 1.0, kMostProfiles);
}

}  // namespace

Command AddTraces(CLI::App& parser) {
  auto options = std::make_shared<TracesArguments>();
  CLI::App* app = parser.add_subcommand("traces", "Traces of jobs: look at one, convert one, make one");
  app->require_subcommand(1);
  app->footer(kTracesFooter);
  CLI::App* show = app->add_subcommand("show", "What a trace holds");
  AddInput(*show, *options);
  show->add_flag("--json", options->json, "Print JSON");
  CLI::App* convert = app->add_subcommand("convert", "Any trace as the plain CSV");
  AddInput(*convert, *options);
  AddOption(*convert, "--to", options->to, "File to write", "FILE")->required();
  CLI::App* make = app->add_subcommand("make", "A synthetic trace as the plain CSV");
  make->add_option("PRESET", options->preset, "philly or horus2020")->required();
  AddShape(*make, *options);
  AddOption(*make, "--seed", options->seed, "What it is drawn from", "N")->capture_default_str();
  AddOption(*make, "--to", options->to, "File to write", "FILE")->required();
  return {app, [options, show, convert] {
            return Print(show->parsed() ? Show(*options) : convert->parsed() ? Convert(*options) : Make(*options));
          }};
}

}  // namespace horus::cli
