// SPDX-License-Identifier: Apache-2.0
// horus traces: what a trace holds, and any trace as the plain CSV; made ones too.
#include <cmath>
#include <cstdio>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/status.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/table.h"
#include "cli/traces_report.h"
#include "lab/io/traces/trace_file.h"
#include "lab/trace/synthetic.h"

namespace horus::cli {
namespace {

constexpr char kFooter[] = R"(
Examples:
  horus traces show philly.csv                      jobs, sizes, profiles, arrivals
  horus traces show gavel_msr_seed0 --json          all files of a folder as one trace
  horus traces convert openb_pod_list_default.csv --to plain.csv
  horus traces convert pai_task_table.csv --format pai --pai-job-table pai_job_table.csv --to plain.csv
  horus traces make horus2020 --seed 7 --to plain.csv
  horus traces make philly --jobs 8000 --gpus 512 --load 0.8 --arrivals poisson --to plain.csv

docs/traces.md has the columns of every format and what they are taken to mean.)";

constexpr size_t kMessageBytes = 400;  // of a skipped line, printed

struct Options {
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

absl::StatusOr<TraceRead> Read(const Options& options) {
  TraceReadOptions read{.skip_bad = options.skip_bad, .pai_job_table = options.pai_job_table};
  HORUS_ASSIGN_OR_RETURN(read.format, ParseTraceFormat(options.format));
  return ReadTraces(options.in, read);
}

// What was not taken, on stderr: the first messages and the counts.
void TellSkipped(const TraceRead& read) {
  for (const std::string& message : read.messages) {
    absl::FPrintF(stderr, "horus: skipped: %s\n", Printable(message, kMessageBytes));
  }
  if (read.skipped > 0) absl::FPrintF(stderr, "horus: %d of %d rows skipped\n", read.skipped, read.rows);
  for (const auto& [reason, count] : read.left_out) absl::FPrintF(stderr, "horus: %d left out: %s\n", count, reason);
}

int RunShow(const Options& options) {
  const absl::StatusOr<TraceRead> read = Read(options);
  if (!read.ok()) return Fail(read.status());
  std::fputs((options.json ? TraceJson(*read) : TraceText(*read)).c_str(), stdout);
  return kExitDecided;
}

int Write(const Trace& trace, const std::string& to) {
  const absl::Status status = WriteFileOrDevice(to, WritePlainTrace(trace));
  if (!status.ok()) return Fail(status);
  absl::PrintF("%d jobs written to %s, digest %016x\n", trace.jobs.size(), Printable(to, kMessageBytes),
               TraceDigest(trace));
  return kExitDecided;
}

int RunConvert(const Options& options) {
  const absl::StatusOr<TraceRead> read = Read(options);
  if (!read.ok()) return Fail(read.status());
  TellSkipped(*read);
  return Write(read->trace, options.to);
}

constexpr const char* kArrivals[] = {"backlog", "poisson", "bursty"};  // as the enum
constexpr double kMilli = 1000;

absl::StatusOr<SyntheticOptions> Asked(const Options& options) {
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

int RunMake(const Options& options) {
  const absl::StatusOr<SyntheticOptions> asked = Asked(options);
  if (!asked.ok()) return Fail(asked.status());
  const absl::StatusOr<Trace> trace = MakeSynthetic(*asked);
  if (!trace.ok()) return Fail(trace.status());
  return Write(*trace, options.to);
}

void AddInput(CLI::App& app, Options& options) {
  app.add_option("IN", options.in, "Trace files; several, or the files of a folder, become one trace")
      ->required()
      ->type_name("PATH");
  app.add_option("--format", options.format, "auto, plain, openb, gavel, chronus, muri or pai")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--pai-job-table", options.pai_job_table, "Owners and submissions of a pai trace")->type_name("FILE");
  app.add_flag("--skip-bad", options.skip_bad, "Leave out lines that are wrong, and say how many");
}

// What may differ from the preset.
void AddShape(CLI::App& make, Options& options) {
  constexpr double kMostGpus = 1e9;  // beyond any cluster
  constexpr double kMostLoad = 1e6;
  constexpr double kMostProfiles = 100'000;
  make.add_option("--jobs", options.jobs, "How many")->check(CLI::PositiveNumber)->type_name("N");
  make.add_option("--arrivals", options.arrivals, "backlog, poisson or bursty")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(kArrivals), std::end(kArrivals))))
      ->type_name("NAME");
  make.add_option("--gpus", options.gpus, "Of the cluster that --load means")
      ->check(CLI::Range(1.0, kMostGpus))
      ->type_name("N");
  make.add_option("--load", options.load, "GPUs x time that comes, by GPUs x time that there is")
      ->check(CLI::Range(1 / kMilli, kMostLoad))
      ->type_name("X");
  make.add_option("--profiles", options.profiles, "That many numbered ones, equally likely")
      ->check(CLI::Range(1.0, kMostProfiles))
      ->type_name("N");
}

}  // namespace

Command AddTraces(CLI::App& parser) {
  auto options = std::make_shared<Options>();
  CLI::App* app = parser.add_subcommand("traces", "Traces of jobs: look at one, convert one, make one");
  app->require_subcommand(1);
  app->footer(kFooter);
  CLI::App* show = app->add_subcommand("show", "What a trace holds");
  AddInput(*show, *options);
  show->add_flag("--json", options->json, "Print JSON");
  CLI::App* convert = app->add_subcommand("convert", "Any trace as the plain CSV");
  AddInput(*convert, *options);
  convert->add_option("--to", options->to, "File to write")->required()->type_name("FILE");
  CLI::App* make = app->add_subcommand("make", "A synthetic trace as the plain CSV");
  make->add_option("PRESET", options->preset, "philly or horus2020")->required();
  AddShape(*make, *options);
  make->add_option("--seed", options->seed, "What it is drawn from")->type_name("N")->capture_default_str();
  make->add_option("--to", options->to, "File to write")->required()->type_name("FILE");
  return {app, [options, show, convert] {
            if (show->parsed()) return RunShow(*options);
            return convert->parsed() ? RunConvert(*options) : RunMake(*options);
          }};
}

}  // namespace horus::cli
