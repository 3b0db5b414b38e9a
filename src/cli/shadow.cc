// SPDX-License-Identifier: Apache-2.0
// horus shadow: another scheduler's log beside what ours would have done.
#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/status.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/print.h"
#include "cli/report.h"
#include "cli/shadow_replay.h"
#include "io/csv.h"
#include "io/placement.h"
#include "metrics/metrics.h"

namespace horus::cli {
namespace {

// ---- What a replay found, for people, programs and Prometheus.
// Cost: linear in what is printed.

struct ShadowNames {
  std::function<std::string(NodeId)> node;
  std::function<std::string(JobId)> job;
};

double ShareOf(double part, double whole) { return whole > 0 ? part / whole : 0; }

double Mean(double sum, uint64_t count) { return ShareOf(sum, static_cast<double>(count)); }

// "gpu-a:0;1|gpu-b:0".
std::string PlacesText(Slots slots, const ShadowNames& names) {
  std::ranges::sort(slots, {}, ByDevice);
  std::string text;
  for (size_t i = 0; i < slots.size(); ++i) {
    const bool same_node = i > 0 && slots[i].node == slots[i - 1].node;
    if (!same_node) absl::StrAppend(&text, i > 0 ? "|" : "", names.node(slots[i].node), slots[i].device < 0 ? "" : ":");
    if (slots[i].device >= 0) absl::StrAppend(&text, same_node ? ";" : "", slots[i].device);
  }
  return text;
}

std::string JobsText(const std::vector<JobId>& jobs, const ShadowNames& names) {
  constexpr size_t kShown = 3;  // chosen
  std::string text;
  for (size_t i = 0; i < jobs.size() && i < kShown; ++i) absl::StrAppend(&text, i > 0 ? ", " : "", names.job(jobs[i]));
  if (jobs.size() > kShown) absl::StrAppend(&text, " and ", jobs.size() - kShown, " more");
  return text;
}

// Why their place is worse than ours: slowdown, what the neighbours lose, the GPU.
std::string WhyWorse(const ShadowRecord& record, const ShadowNames& names) {
  constexpr double kShown = 0.005;  // two decimals are
  const Appraisal& their = record.theirs.does;
  const Appraisal& our = record.ours.does;
  const auto speed_alone = [](const Appraisal& one) {
    return (one.work + one.lost) * (static_cast<double>(one.own.estimate) + one.communication);
  };
  std::vector<std::string> parts;
  if (their.reason != Reason::kNone) parts.push_back("breaks " + std::string(ReasonName(their.reason)));
  const auto other = [&](double ours, double least, const char* unit) {
    return ours > least + kShown ? absl::StrFormat(", ours %.2f%s", ours, unit) : std::string();
  };
  const auto own = static_cast<double>(their.own.estimate);
  const auto our_own = static_cast<double>(our.own.estimate);
  if (own > our_own + kShown) parts.push_back(absl::StrFormat("slowed %.2fx", own) + other(our_own, 1, "x"));
  if (their.lost > our.lost + kShown)
    parts.push_back(absl::StrFormat("others lose %.2f", their.lost) + other(our.lost, 0, ""));
  const double speed = ShareOf(speed_alone(their), speed_alone(our));
  if (speed < 1 - kShown) parts.push_back(absl::StrFormat("GPU at %.2f of the speed of ours", speed));
  const std::string why = absl::StrJoin(parts, "; ");
  return record.beside.empty() ? why : absl::StrCat("beside ", JobsText(record.beside, names), ": ", why);
}

// The columns of a record in their order; absent values are blank.
std::vector<std::pair<const char*, Json>> ColumnsOf(const ShadowRecord& record, const ShadowNames& names) {
  const bool decided = record.is_decision;
  const bool both = decided && record.ours.verdict == Verdict::kPlace;
  const Appraisal& their = record.theirs.does;
  const Appraisal& our = record.ours.does;
  const auto number = [](bool given, double value) { return given ? Json(value) : Json(nullptr); };
  const auto slowdown = [&](bool given, float value) { return given ? Json(ShortDouble(value)) : Json(nullptr); };
  const auto text = [](bool given, std::string_view value) { return given ? Json(std::string(value)) : Json(nullptr); };
  return {
      {"line", record.line > 0 ? Json(record.line) : Json(nullptr)},
      {"time_s", record.time_s},
      {"kind", decided ? "decision" : "observation"},
      {"job", names.job(record.job)},
      {"theirs", text(decided, PlacesText(record.theirs.slots, names))},
      {"ours", text(both, PlacesText(record.ours.slots, names))},
      {"our_verdict", text(decided, VerdictName(record.ours.verdict))},
      {"our_reason", text(decided && !both, ReasonName(record.ours.refused))},
      {"their_broken_rule", text(decided && their.reason != Reason::kNone, ReasonName(their.reason))},
      {"same", decided ? Json(record.same) : Json(nullptr)},
      {"regret", number(both, record.regret())},
      {"their_work", number(decided, their.work)},
      {"our_work", number(both, our.work)},
      {"their_slowdown", slowdown(decided, their.own.estimate)},
      {"their_slowdown_upper", slowdown(decided, their.own.upper)},
      {"our_slowdown", slowdown(both, our.own.estimate)},
      {"our_slowdown_upper", slowdown(both, our.own.upper)},
      {"their_beyond_bound", decided ? Json(their.beyond_bound) : Json(nullptr)},
      {"our_beyond_bound", both ? Json(our.beyond_bound) : Json(nullptr)},
      {"predicted_slowdown", number(!decided, record.predicted)},
      {"observed_slowdown", number(!decided, record.observed)},
      {"why", text(both && record.IsWorse(), WhyWorse(record, names))},
  };
}

Json RecordJson(const ShadowRecord& record, const ShadowNames& names) {
  Json line = Json::object();
  for (auto& [name, value] : ColumnsOf(record, names)) line[name] = value;
  return line;
}

Json HistogramJson(const SlowdownHistogram& one) {
  return one.count == 0 ? Json(nullptr) : Json({{"count", one.count}, {"mean", one.Mean()}});
}

std::string MostCostlyText(const ShadowTotals& totals, const ShadowNames& names) {
  if (totals.most_costly.empty()) return "";
  Table table("JOB|~THEIRS|~OURS|>COST|~WHY");
  for (const ShadowRecord& record : totals.most_costly) {
    table.AddRow({names.job(record.job), PlacesText(record.theirs.slots, names), PlacesText(record.ours.slots, names),
                  absl::StrFormat("%.2f", record.regret()), WhyWorse(record, names)});
  }
  return "\nTheir choices that cost most, GPUs of useful work\n" + table.Render("  ");
}

std::string ShadowText(const ShadowTotals& totals, const std::string& policy, const ShadowNames& names) {
  Table table("|>THEIRS|>OURS|>NO SHARING");
  const auto row = [&](const char* label, const auto& cell) {
    table.AddRow({label, cell(totals.theirs), cell(totals.ours), cell(totals.exclusive)});
  };
  row("jobs placed", [](const ShadowSide& side) { return absl::StrCat(side.placed); });
  row("useful work gained, GPUs", [](const ShadowSide& side) { return absl::StrFormat("%.2f", side.work); });
  row("the same, GPU-hours", [](const ShadowSide& side) { return absl::StrFormat("%.4g", side.gpu_hours); });
  row("mean predicted slowdown", [](const ShadowSide& side) {
    return side.slowdown.count == 0 ? std::string("-") : Factor(side.slowdown.Mean());
  });
  row("tenants beyond their bounds", [](const ShadowSide& side) { return absl::StrCat(side.beyond_bound); });
  std::string text =
      "The log's jobs in turn, as theirs placed them and as policies " + policy + " and exclusive would\n\n";
  absl::StrAppend(&text, table.Render("  "), "\n");
  if (totals.ours.gpu_hours < 0.999 * std::max(totals.theirs.gpu_hours, totals.exclusive.gpu_hours)) {
    absl::StrAppend(&text,
                    "  Here OURS is not the best: it places each job as it comes, without those that follow.\n\n");
  }
  const auto line = [&](const char* label, const std::string& value) {
    absl::StrAppendFormat(&text, "  %-26s %s\n", label, value);
  };
  absl::StrAppend(&text, "Each choice of theirs by itself, beside that of policy ", policy, " in the same state\n");
  line("their choices", absl::StrFormat("%d the same, %d equally good, %d worse, %d better", totals.same,
                                        totals.equally_good, totals.worse, totals.better) +
                            (totals.refused() > 0 ? absl::StrFormat(", %d where ours waits", totals.refused()) : ""));
  line("regret", absl::StrFormat("%.4g GPU-hours of useful work in %.4g hours", totals.regret_gpu_hours, totals.hours));
  for (size_t i = 1; i < kReasonCount; ++i) {
    if (totals.broken[i] == 0) continue;
    line("their places break a rule",
         absl::StrFormat("%d %s", totals.broken[i], std::string(ReasonName(static_cast<Reason>(i)))));
  }
  if (totals.observed > 0) {
    line("observed", absl::StrFormat("%d jobs, mean slowdown %s, %d beyond their bounds", totals.observed,
                                     Factor(totals.observations.Mean()), totals.observed_beyond_bound));
    line("prediction error",
         absl::StrFormat("%.1f %% mean, bias %+.1f %%", 100 * Mean(totals.error_sum, totals.observed),
                         100 * Mean(totals.bias_sum, totals.observed)));
  }
  if (totals.of_requests_alone > 0) {
    line("known by requests alone",
         absl::StrFormat("%d of %d jobs: what these cost is a guess until you say what they run",
                         totals.of_requests_alone, totals.decisions));
  }
  if (totals.bad_lines > 0) line("bad lines left out", absl::StrCat(totals.bad_lines));
  return text + MostCostlyText(totals, names);
}

Json RecordsJson(const std::vector<ShadowRecord>& records, const ShadowNames& names) {
  Json list = Json::array();
  for (const ShadowRecord& record : records) list.emplace_back(RecordJson(record, names))["hours"] = record.hours;
  return list;
}

std::string ShadowJson(const ShadowTotals& totals, const PlacementReport& end, const ShadowNames& names) {
  const auto side = [](const ShadowSide& one) {
    return Json{{"placed", one.placed},
                {"work", one.work},
                {"gpu_hours", one.gpu_hours},
                {"slowdown", HistogramJson(one.slowdown)},
                {"beyond_bound", one.beyond_bound}};
  };
  const auto mean_pct = [&](double sum) {
    return totals.observed == 0 ? Json(nullptr) : Json(100 * Mean(sum, totals.observed));
  };
  Json broken = Json::object();
  for (size_t i = 1; i < kReasonCount; ++i) {
    if (totals.broken[i] > 0) broken[std::string(ReasonName(static_cast<Reason>(i)))] = totals.broken[i];
  }
  Json document = {
      {"schema", "horus-shadow"},
      {"version", 1},
      {"policy", end.settings.policy},
      {"interference", end.settings.interference},
      {"entries", totals.entries},
      {"bad_lines", totals.bad_lines},
      {"decisions", totals.decisions},
      {"decisions_of_requests_alone", totals.of_requests_alone},
      {"releases", totals.releases},
      {"same", totals.same},
      {"equally_good", totals.equally_good},
      {"worse", totals.worse},
      {"better", totals.better},
      {"refused", totals.refused()},
      {"regret", totals.regret},
      {"hours", totals.hours},
      {"regret_gpu_hours", totals.regret_gpu_hours},
      {"theirs", side(totals.theirs)},
      {"ours", side(totals.ours)},
      {"exclusive", side(totals.exclusive)},
      {"broken_rules", broken},
      {"observed",
       {{"jobs", totals.observed},
        {"slowdown", HistogramJson(totals.observations)},
        {"beyond_bound", totals.observed_beyond_bound},
        {"mean_error_pct", mean_pct(totals.error_sum)},
        {"bias_pct", mean_pct(totals.bias_sum)}}},
      {"most_costly", RecordsJson(totals.most_costly, names)},
  };
  AddStateJson(end, document);
  return JsonText(document);
}

// Families and their samples; rows point to both.
class PrometheusRows {
 public:
  void Begin(const char* name, MetricKind kind, const char* help) { families_.push_back({name, kind, help}); }
  void Add(const std::string& labels, double value, const char* suffix = "") {
    const MetricFamily& family = families_.back();
    const std::string &name = texts_.emplace_back(family.name + std::string(suffix)),
                      &kept = texts_.emplace_back(labels);
    rows_.push_back({&family, name.c_str(), kept.c_str(), value});
  }
  void Add(const std::string& labels, uint64_t count, const char* suffix = "") {
    Add(labels, static_cast<double>(count), suffix);
  }
  void Count(const char* name, const char* help, uint64_t value) {
    Begin(name, MetricKind::kCounter, help);
    Add("", value);
  }
  void Gauge(const char* name, const char* help, double value) {
    Begin(name, MetricKind::kGauge, help);
    Add("", value);
  }
  void Histogram(const std::string& label, const SlowdownHistogram& one) {
    const std::string before = label.empty() ? "" : label + ",";
    uint64_t below = 0;
    for (size_t i = 0; i < SlowdownHistogram::kBounds.size(); ++i) {
      below += one.counts[i];
      Add(absl::StrFormat("%sle=\"%g\"", before, SlowdownHistogram::kBounds[i]), below, "_bucket");
    }
    Add(before + "le=\"+Inf\"", one.count, "_bucket");
    Add(label, one.sum, "_sum");
    Add(label, one.count, "_count");
  }
  [[nodiscard]] std::string Text() const { return MetricsText(rows_); }

 private:
  std::deque<MetricFamily> families_;
  std::deque<std::string> texts_;  // names and labels
  std::vector<MetricRow> rows_;
};

std::string ShadowMetrics(const ShadowTotals& totals) {
  constexpr char kTheirs[] = "scheduler=\"theirs\"", kOurs[] = "scheduler=\"ours\"";
  PrometheusRows rows;
  rows.Count("horus_shadow_decisions_total", "Placements of the other scheduler.", totals.decisions);
  rows.Count("horus_shadow_releases_total", "Jobs that ended or were taken off.", totals.releases);
  rows.Count("horus_shadow_bad_lines_total", "Lines of the log that were left out.", totals.bad_lines);
  rows.Count("horus_shadow_same_total", "Decisions that ours would have taken too.", totals.same);
  rows.Count("horus_shadow_refused_total", "Decisions where ours would have let the job wait.", totals.refused());
  rows.Gauge("horus_shadow_regret_gpus", "Useful work that ours would have gained more, each choice by itself.",
             totals.regret);
  rows.Begin("horus_shadow_work_gpus", MetricKind::kGauge, "Useful work gained, the choices of each taken in turn.");
  rows.Add(kTheirs, totals.theirs.work);
  rows.Add(kOurs, totals.ours.work);
  rows.Begin("horus_shadow_beyond_bound_total", MetricKind::kCounter,
             "Tenants predicted beyond their slowdown bounds.");
  rows.Add(kTheirs, totals.theirs.beyond_bound);
  rows.Add(kOurs, totals.ours.beyond_bound);
  rows.Begin("horus_shadow_broken_rules_total", MetricKind::kCounter,
             "Their places by the first rule of ours that they break.");
  for (size_t i = 1; i < kReasonCount; ++i)
    rows.Add(absl::StrFormat("rule=\"%s\"", ReasonName(static_cast<Reason>(i))), totals.broken[i]);
  rows.Begin("horus_shadow_predicted_slowdown", MetricKind::kHistogram,
             "Predicted slowdown of the job, the choices of each in turn.");
  rows.Histogram(kTheirs, totals.theirs.slowdown);
  rows.Histogram(kOurs, totals.ours.slowdown);
  rows.Begin("horus_shadow_observed_slowdown", MetricKind::kHistogram, "Slowdown that the log reports.");
  rows.Histogram("", totals.observations);
  rows.Count("horus_shadow_observed_beyond_bound_total", "Jobs observed beyond their slowdown bounds.",
             totals.observed_beyond_bound);
  rows.Gauge("horus_shadow_prediction_error_ratio", "Mean of |predicted - observed| / observed slowdown.",
             Mean(totals.error_sum, totals.observed));
  rows.Gauge("horus_shadow_prediction_bias_ratio", "Mean of (predicted - observed) / observed slowdown.",
             Mean(totals.bias_sum, totals.observed));
  return rows.Text();
}

std::string RecordHeader() {
  std::string text;
  const ShadowNames none{[](NodeId) { return std::string(); }, [](JobId) { return std::string(); }};
  for (const auto& [name, value] : ColumnsOf({}, none)) absl::StrAppend(&text, text.empty() ? "" : ",", name);
  return text + "\n";
}

std::string RecordCsv(const ShadowRecord& record, const ShadowNames& names) {
  std::string text;
  bool first = true;
  for (const auto& [name, value] : ColumnsOf(record, names)) {
    if (!std::exchange(first, false)) text += ',';
    if (value.is_string()) {
      text += CsvField(value.get<std::string>());
    } else if (!value.is_null()) {
      text += value.dump();
    }
  }
  return text + "\n";
}

constexpr char kShadowFooter[] = R"(
Examples:
  horus shadow --cluster cluster.yaml --jobs jobs.yaml --log decisions.csv
  horus shadow --cluster cluster.yaml --jobs jobs.yaml --log decisions.csv --out beside.csv --prometheus shadow.prom

Nothing is decided for anybody: the log's placements are carried out, and before each of them ours plans the same job
in the same state, and in that which its own choices led to. docs/shadow.md describes the log and what is compared.)";

struct ShadowFlags {
  std::string log;
  PlacingOptions placing;
  std::string out, prometheus;
  PageOptions page;
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
    const auto known = by_name_.find(name);
    const std::optional<JobId> id = ParseNumber<JobId>(name);
    const auto at = known == by_name_.end() && id ? by_id_.find(*id) : by_id_.end();
    if (known == by_name_.end() && at == by_id_.end()) {
      return InvalidArgument("expected a name or id of the jobs file, found %s%s", Quoted(name),
                             NearestKey(name, by_name_));
    }
    const size_t index = known != by_name_.end() ? known->second : at->second;
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
    stream_ << (json() ? JsonText(RecordJson(record, names), kJsonLine) : RecordCsv(record, names));
    return Check();
  }
  absl::Status Close() {
    stream_.close();
    if (stream_.fail() || std::rename(part_.c_str(), path_.c_str()) != 0) return Failed();
    return absl::OkStatus();
  }

 private:
  [[nodiscard]] bool json() const { return path_.ends_with(".json") || path_.ends_with(".jsonl"); }
  [[nodiscard]] absl::Status Failed() const { return Unavailable("%s: cannot be written", path_); }
  [[nodiscard]] absl::Status Check() const { return stream_.good() ? absl::OkStatus() : Failed(); }

  std::string path_;
  std::string part_;
  std::ofstream stream_;
};

absl::Status Replay(const ShadowFlags& options, ShadowReplay& replay) {
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
    if (replay.totals().bad_lines < kShownBadLines) PrintProblem("left out: " + std::string(status.message()));
    replay.CountBadLine();
  }
}

absl::StatusOr<std::string> Shadow(const ShadowFlags& options) {
  const PlacingOptions& placing = options.placing;
  HORUS_ASSIGN_OR_RETURN(PlacingInputs inputs, LoadPlacing(placing));
  const double bound = inputs.placer->slowdown_bound();
  HORUS_ASSIGN_OR_RETURN(std::unique_ptr<Placer> ours, MakePlacer(placing, inputs.model));
  PlacingOptions alone = placing;
  alone.policy = "exclusive";
  HORUS_ASSIGN_OR_RETURN(std::unique_ptr<Placer> exclusive, MakePlacer(alone, inputs.model));
  Jobs jobs(std::move(inputs.requests), *inputs.shelf, inputs.present);

  absl::flat_hash_map<NodeId, std::string> node_names;
  for (const FileNode& node : inputs.file.nodes) node_names.emplace(node.spec.id, node.spec.name);
  const ShadowNames names{[&](NodeId id) { return node_names.contains(id) ? node_names[id] : std::to_string(id); },
                          [&](JobId id) { return jobs.NameOf(id); }};
  RecordFile records(options.out);
  const bool keep = !options.out.empty();
  if (keep) HORUS_RETURN_IF_ERROR(records.Open());
  ShadowReplay replay(
      std::move(inputs.cluster), std::move(inputs.placer), std::move(ours), std::move(exclusive),
      [&](const std::string& name) { return jobs.Find(name); },
      [&](const ShadowRecord& record) { return keep ? records.Add(record, names) : absl::OkStatus(); });
  HORUS_RETURN_IF_ERROR(Replay(options, replay));
  if (keep) HORUS_RETURN_IF_ERROR(records.Close());
  const ShadowTotals& totals = replay.totals();
  if (!options.prometheus.empty()) HORUS_RETURN_IF_ERROR(WriteFileOrDevice(options.prometheus, ShadowMetrics(totals)));
  if (!options.json && options.page.path.empty()) return ShadowText(totals, placing.policy, names);
  HORUS_ASSIGN_OR_RETURN(const PlacementReport end,
                         MakePlacementReport(replay.cluster(), {}, {}, *inputs.model,
                                             {placing.policy, NameOf(placing.interference), bound}));
  const std::string json = ShadowJson(totals, end, names);
  HORUS_RETURN_IF_ERROR(WritePage(options.page, json));
  return options.json ? json : ShadowText(totals, placing.policy, names);
}

}  // namespace

Command AddShadow(CLI::App& parser) {
  auto options = std::make_shared<ShadowFlags>();
  CLI::App* app = parser.add_subcommand("shadow", "What another scheduler's decisions cost, beside what ours would do");
  AddOption(*app, "--log", options->log, "CSV file with the other scheduler's decisions", "FILE")->required();
  AddPlacingOptions(*app, "the jobs that the log names", options->placing);
  AddOption(*app, "--out", options->out, "Also write every decision: CSV, or JSON lines for .json and .jsonl", "FILE");
  AddOption(*app, "--prometheus", options->prometheus, "Also write the totals as Prometheus text", "FILE");
  AddPageOptions(*app, options->page);
  app->add_flag("--skip-bad", options->skip_bad, "Count lines that are wrong and go on");
  app->add_flag("--json", options->json, "Print JSON");
  app->footer(kShadowFooter);
  return {app, [options] { return Print(Shadow(*options)); }};
}

}  // namespace horus::cli
