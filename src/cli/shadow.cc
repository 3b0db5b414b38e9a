// SPDX-License-Identifier: Apache-2.0
// horus shadow: another scheduler's log beside what ours would have done.
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/container/flat_hash_map.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/inputs.h"
#include "cli/placing.h"
#include "cli/progress.h"
#include "cli/shadow_replay.h"
#include "cli/shadow_report.h"
#include "io/cluster_file.h"
#include "io/decision_log.h"
#include "io/jobs_file.h"
#include "place/placer.h"

namespace horus::cli {
namespace {

constexpr char kFooter[] = R"(
Examples:
  horus shadow --cluster cluster.yaml --jobs jobs.yaml --log decisions.csv
  horus shadow --cluster cluster.yaml --jobs jobs.yaml --log decisions.csv --out beside.csv --prometheus shadow.prom

Nothing is decided for anybody: the log's placements are carried out, and before each of them ours plans the same job
in the same state. docs/shadow.md describes the log and what is compared.)";

struct Options {
  std::string cluster, jobs, log;
  PlacingOptions placing;
  std::string out, prometheus;
  bool skip_bad = false;
  bool json = false;
};

constexpr uint64_t kProgressStep = 1024;  // lines between two updates
constexpr size_t kShownBadLines = 5;

// Jobs by name or id, each with its demands from the first time that the log names it.
class Jobs {
 public:
  Jobs(std::vector<JobRequest> requests, DemandShelf& shelf, std::vector<GpuTypeId> present)
      : requests_(std::move(requests)), shelf_(shelf), present_(std::move(present)) {
    for (size_t i = 0; i < requests_.size(); ++i) {
      if (!requests_[i].spec.name.empty()) by_name_.emplace(requests_[i].spec.name, i);
      by_id_.emplace(requests_[i].spec.id, i);
    }
  }

  absl::StatusOr<const JobSpec*> Find(const std::string& name) {
    size_t index = 0;
    if (const auto known = by_name_.find(name); known != by_name_.end()) {
      index = known->second;
    } else {
      JobId id = 0;
      const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
      const auto at = error == std::errc() && end == name.data() + name.size() ? by_id_.find(id) : by_id_.end();
      if (at == by_id_.end()) return InvalidArgument("expected a name or id of the jobs file, found %s", Quoted(name));
      index = at->second;
    }
    auto& spec = specs_[index];
    if (spec == nullptr) {
      HORUS_ASSIGN_OR_RETURN(JobSpec complete, shelf_.Complete(requests_[index], present_));
      spec = std::make_unique<JobSpec>(std::move(complete));
    }
    return spec.get();
  }

  [[nodiscard]] std::string NameOf(JobId id) const {
    const auto at = by_id_.find(id);
    if (at == by_id_.end() || requests_[at->second].spec.name.empty()) return std::to_string(id);
    return requests_[at->second].spec.name;
  }

 private:
  std::vector<JobRequest> requests_;
  DemandShelf& shelf_;
  std::vector<GpuTypeId> present_;
  absl::flat_hash_map<std::string, size_t> by_name_;
  absl::flat_hash_map<JobId, size_t> by_id_;
  absl::flat_hash_map<size_t, std::unique_ptr<JobSpec>> specs_;
};

// Records as they come, into a file beside `path` that takes its place at the end.
class RecordFile {
 public:
  explicit RecordFile(const std::string& path) : path_(path), part_(path + ".part") {}
  ~RecordFile() {
    if (stream_.is_open()) std::remove(part_.c_str());
  }

  absl::Status Open() {
    stream_.open(part_, std::ios::binary | std::ios::trunc);
    if (!json()) stream_ << RecordHeader();
    return Check();
  }
  absl::Status Add(const ShadowRecord& record, const ShadowNames& names) {
    stream_ << (json() ? RecordJson(record, names) : RecordCsv(record, names));
    return Check();
  }
  absl::Status Close() {
    stream_.close();
    if (stream_.fail() || std::rename(part_.c_str(), path_.c_str()) != 0) return Failed();
    return absl::OkStatus();
  }

 private:
  [[nodiscard]] bool json() const { return path_.ends_with(".json") || path_.ends_with(".jsonl"); }
  [[nodiscard]] absl::Status Failed() const {
    return MakeError(absl::StatusCode::kUnavailable, "%s: cannot be written", path_);
  }
  [[nodiscard]] absl::Status Check() const { return stream_.good() ? absl::OkStatus() : Failed(); }

  std::string path_;
  std::string part_;
  std::ofstream stream_;
};

absl::Status Replay(const Options& options, ShadowReplay& replay) {
  HORUS_ASSIGN_OR_RETURN(DecisionLog log, DecisionLog::Open(options.log));
  Progress progress;
  std::error_code ignored;  // of a pipe nobody knows the size
  const auto size = std::filesystem::file_size(options.log, ignored);
  const uint64_t bytes = ignored ? 0 : size;
  LogEntry entry;
  for (uint64_t lines = 0;; ++lines) {
    if (lines % kProgressStep == 0) progress.Update("replaying bytes:", log.bytes_read(), bytes);
    const absl::StatusOr<bool> more = log.Next(entry);
    if (more.ok() && !*more) return replay.Finish();
    absl::Status status = more.ok() ? replay.Take(log, entry) : more.status();
    if (status.ok()) continue;
    if (!options.skip_bad || status.code() != absl::StatusCode::kInvalidArgument) return status;
    if (replay.totals().bad_lines < kShownBadLines) {
      PrintProblem("left out: " + std::string(status.message()));
    }
    replay.CountBadLine();
  }
}

absl::Status Shadow(const Options& options) {
  const PlacingOptions& placing = options.placing;
  HORUS_RETURN_IF_ERROR(CheckPlacing(placing));
  HORUS_ASSIGN_OR_RETURN(const auto predictor, LoadPredictor(placing.bundle));
  HORUS_ASSIGN_OR_RETURN(auto catalogue, LoadCatalogue(placing.gpus_files));
  HORUS_ASSIGN_OR_RETURN(const ClusterFile file, ReadClusterFile(options.cluster, std::move(catalogue)));
  HORUS_ASSIGN_OR_RETURN(std::vector<JobRequest> requests, ReadJobsFile(options.jobs, *file.catalogue));
  HORUS_ASSIGN_OR_RETURN(Cluster cluster, MakeCluster(file));
  HORUS_ASSIGN_OR_RETURN(const auto model, LoadInterference(placing.interference, file.catalogue, predictor));
  HORUS_ASSIGN_OR_RETURN(std::unique_ptr<Placer> placer, MakePlacer(placing, model));
  DemandShelf shelf(file.catalogue, predictor);
  const std::vector<GpuTypeId> present = TypesPresent(file);
  HORUS_RETURN_IF_ERROR(AdoptResidents(file, present, shelf, cluster));
  Jobs jobs(std::move(requests), shelf, present);

  absl::flat_hash_map<NodeId, std::string> node_names;
  for (const FileNode& node : file.nodes) node_names.emplace(node.spec.id, node.spec.name);
  const ShadowNames names{[&](NodeId id) { return node_names.contains(id) ? node_names[id] : std::to_string(id); },
                          [&](JobId id) { return jobs.NameOf(id); }};
  RecordFile records(options.out);
  const bool keep = !options.out.empty();
  if (keep) HORUS_RETURN_IF_ERROR(records.Open());
  ShadowReplay replay(
      std::move(cluster), std::move(placer), model, [&](const std::string& name) { return jobs.Find(name); },
      [&](const ShadowRecord& record) { return keep ? records.Add(record, names) : absl::OkStatus(); });
  HORUS_RETURN_IF_ERROR(Replay(options, replay));
  if (keep) HORUS_RETURN_IF_ERROR(records.Close());
  const ShadowTotals& totals = replay.totals();
  if (!options.prometheus.empty()) HORUS_RETURN_IF_ERROR(WriteFileOrDevice(options.prometheus, ShadowMetrics(totals)));
  const std::string text = options.json ? ShadowJson(totals, placing.policy, NameOf(placing.interference))
                                        : ShadowText(totals, placing.policy);
  std::fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

Command AddShadow(CLI::App& parser) {
  auto options = std::make_shared<Options>();
  CLI::App* app = parser.add_subcommand("shadow", "What another scheduler's decisions cost, beside what ours would do");
  app->add_option("--cluster", options->cluster, "YAML file with nodes, GPUs and running jobs")
      ->required()
      ->type_name("FILE");
  app->add_option("--jobs", options->jobs, "YAML file with the jobs that the log names")->required()->type_name("FILE");
  app->add_option("--log", options->log, "CSV file with the other scheduler's decisions")
      ->required()
      ->type_name("FILE");
  AddPlacingOptions(*app, options->placing);
  app->add_option("--out", options->out, "Also write every decision: CSV, or JSON lines for .json and .jsonl")
      ->type_name("FILE");
  app->add_option("--prometheus", options->prometheus, "Also write the totals as Prometheus text")->type_name("FILE");
  app->add_flag("--skip-bad", options->skip_bad, "Count lines that are wrong and go on");
  app->add_flag("--json", options->json, "Print JSON");
  app->footer(kFooter);
  return {app, [options] {
            const absl::Status status = Shadow(*options);
            return status.ok() ? kExitDecided : Fail(status);
          }};
}

}  // namespace horus::cli
