// SPDX-License-Identifier: Apache-2.0
// Reads a workload; a list of loads makes one of each.
#include "lab/io/grid_workload.h"

#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/format.h"
#include "io/jobs_file.h"
#include "io/yaml.h"

namespace horus {
namespace {

constexpr std::array<std::string_view, 15> kKeys = {
    "name",    "files", "format",    "skip_bad",    "synthetic", "single_gpu",  "known_only",     "sample",
    "backlog", "load",  "horizon_h", "horizon_pct", "warm_up_h", "warm_up_pct", "clip_percentile"};
constexpr std::array<std::string_view, 6> kSyntheticKeys = {"preset", "jobs", "arrivals", "load", "profiles", "seed"};
constexpr std::array<std::string_view, 3> kArrivals = {"backlog", "poisson", "bursty"};  // as the enum

constexpr Scale kHoursToUs = {.per_unit = int64_t{3600} * 1'000'000, .min = 0, .max = 1e6};  // 114 years
constexpr Scale kPctToMilli = {.per_unit = 10, .min = 0, .max = 1e5, .exact = true};         // 1000 times
constexpr Scale kLoadToMilli = {.per_unit = 1000, .min = 1e-3, .max = 1e6, .exact = true};
constexpr size_t kMaxLoads = 100;
constexpr size_t kMaxProfiles = 100'000;
constexpr int64_t kMaxWeight = 1'000'000;

absl::Status ReadTime(const YamlMap& map, std::string_view hours, std::string_view pct, GridTime& time) {
  if (map.Has(hours) && map.Has(pct)) {
    return map.Find(pct)->Error(Formatted("expected one of %s and %s, found both", hours, pct));
  }
  HORUS_RETURN_IF_ERROR(map.ReadScaled(hours, kHoursToUs, time.us));
  int64_t milli = time.span_milli;
  HORUS_RETURN_IF_ERROR(map.ReadScaled(pct, kPctToMilli, milli));
  time.span_milli = static_cast<int32_t>(milli);
  return absl::OkStatus();
}

absl::Status ReadFiles(const YamlMap& map, GridFileWorkload& entry) {
  const YamlValue& files = *map.Find("files");
  std::vector<YamlValue> items = {files};
  if (files.is_list()) {
    HORUS_ASSIGN_OR_RETURN(items, files.List(kMaxGridPaths));
  }
  if (items.empty()) return files.Expected("at least one path");
  for (const YamlValue& item : items) {
    HORUS_ASSIGN_OR_RETURN(const std::string path, item.Text(kMaxPathBytes));
    entry.files.push_back(PathBeside(item.file(), path));
  }
  if (const YamlValue* format = map.Find("format")) {
    HORUS_ASSIGN_OR_RETURN(const std::string name, format->Text(kMaxNameBytes));
    const absl::StatusOr<TraceFormat> parsed = ParseTraceFormat(name);
    if (!parsed.ok()) return format->Wrap(parsed.status());
    entry.read.format = *parsed;
  }
  return map.ReadBool("skip_bad", entry.read.skip_bad);
}

absl::Status ReadProfiles(const YamlMap& map, GridFileWorkload& entry) {
  const YamlValue* value = map.Find("profiles");
  entry.all_profiles = value == nullptr;
  if (value == nullptr) return absl::OkStatus();
  HORUS_ASSIGN_OR_RETURN(const auto pairs, value->Pairs(kMaxProfiles));
  if (pairs.empty()) return value->Expected("at least one profile and its weight");
  entry.workload.synthetic.profiles.clear();
  for (const auto& [name, weight] : pairs) {
    HORUS_ASSIGN_OR_RETURN(const int64_t read, weight.Integer(1, kMaxWeight));
    if (const absl::Status status = ValidateTraceName("profile", name); !status.ok()) return weight.Wrap(status);
    entry.workload.synthetic.profiles.push_back({.name = name, .weight = static_cast<uint32_t>(read)});
  }
  return absl::OkStatus();
}

absl::Status ReadSynthetic(const YamlValue& value, int64_t capacity_gpu_milli, GridFileWorkload& entry) {
  HORUS_ASSIGN_OR_RETURN(const YamlMap map, value.Map(kSyntheticKeys));
  HORUS_ASSIGN_OR_RETURN(const YamlValue preset, map.Require("preset", "philly or horus2020"));
  HORUS_ASSIGN_OR_RETURN(const std::string name, preset.Text(kMaxNameBytes));
  absl::StatusOr<SyntheticOptions> made = SyntheticPreset(name);
  if (!made.ok()) return preset.Wrap(made.status());
  SyntheticOptions& options = entry.workload.synthetic = *std::move(made);
  options.capacity_gpu_milli = capacity_gpu_milli;
  if (options.gap_scv_milli == 0) options.gap_scv_milli = kPhillyGapScvMilli;
  HORUS_RETURN_IF_ERROR(map.ReadId("seed", options.seed));
  HORUS_RETURN_IF_ERROR(map.ReadInteger("jobs", 1, static_cast<int64_t>(kMaxTraceJobs), options.jobs));
  if (const YamlValue* arrivals = map.Find("arrivals")) {
    HORUS_ASSIGN_OR_RETURN(const size_t choice, arrivals->Choice(kArrivals));
    options.arrivals = static_cast<Arrivals>(choice);
  }
  int64_t load = options.load_milli;
  HORUS_RETURN_IF_ERROR(map.ReadScaled("load", kLoadToMilli, load));
  options.load_milli = static_cast<int32_t>(load);
  return ReadProfiles(map, entry);
}

absl::Status ReadEdits(const YamlMap& map, GridEdits& edits) {
  HORUS_RETURN_IF_ERROR(map.ReadBool("single_gpu", edits.single_gpu));
  HORUS_RETURN_IF_ERROR(map.ReadBool("known_only", edits.known_only));
  HORUS_RETURN_IF_ERROR(map.ReadInteger("sample", 1, static_cast<int64_t>(kMaxTraceJobs), edits.sample));
  HORUS_RETURN_IF_ERROR(map.ReadBool("backlog", edits.backlog));
  int64_t clip = edits.clip_milli;
  HORUS_RETURN_IF_ERROR(map.ReadScaled("clip_percentile", kPercentToMilli, clip));
  edits.clip_milli = static_cast<int32_t>(clip);
  return absl::OkStatus();
}

absl::Status AddLoads(const YamlMap& map, const GridFileWorkload& entry, std::vector<GridFileWorkload>& workloads) {
  const YamlValue* value = map.Find("load");
  if (value == nullptr) {
    workloads.push_back(entry);
    return absl::OkStatus();
  }
  if (entry.workload.edits.backlog) return value->Error("expected one of backlog and load, found both");
  std::vector<YamlValue> loads = {*value};
  if (value->is_list()) {
    HORUS_ASSIGN_OR_RETURN(loads, value->List(kMaxLoads));
  }
  if (loads.empty()) return value->Expected("at least one load");
  for (const YamlValue& load : loads) {
    HORUS_ASSIGN_OR_RETURN(const int64_t milli, load.Scaled(kLoadToMilli));
    GridFileWorkload one = entry;
    one.workload.edits.load_milli = static_cast<int32_t>(milli);
    AppendFormatted(&one.workload.content, "load: %d/1000\n", milli);
    if (loads.size() > 1) AppendFormatted(&one.workload.name, " at load %.6g", static_cast<double>(milli) / kGridWhole);
    workloads.push_back(std::move(one));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadGridWorkload(const YamlValue& value, int64_t capacity_gpu_milli,
                              std::vector<GridFileWorkload>& workloads) {
  HORUS_ASSIGN_OR_RETURN(const YamlMap map, value.Map(kKeys));
  GridFileWorkload entry;
  HORUS_ASSIGN_OR_RETURN(const YamlValue name, map.Require("name", "how the results call it"));
  HORUS_ASSIGN_OR_RETURN(entry.workload.name, name.Text(kMaxNameBytes));
  if (map.Has("files") == map.Has("synthetic")) {
    return value.Error(Formatted("expected one of files and synthetic, found %s", map.Has("files") ? "both" : "none"));
  }
  if (map.Has("files")) {
    HORUS_RETURN_IF_ERROR(ReadFiles(map, entry));
  } else {
    HORUS_RETURN_IF_ERROR(ReadSynthetic(*map.Find("synthetic"), capacity_gpu_milli, entry));
  }
  HORUS_RETURN_IF_ERROR(ReadEdits(map, entry.workload.edits));
  HORUS_RETURN_IF_ERROR(ReadTime(map, "horizon_h", "horizon_pct", entry.workload.horizon));
  HORUS_RETURN_IF_ERROR(ReadTime(map, "warm_up_h", "warm_up_pct", entry.workload.warm_up));
  for (const char* key : {"horizon_pct", "warm_up_pct"}) {
    if (!entry.workload.edits.backlog || !map.Has(key)) continue;
    return map.Find(key)->Error("expected hours beside backlog, whose jobs all come at once, found per cent");
  }
  static constexpr std::array<std::string_view, 3> kApart = {"name", "files", "load"};
  entry.workload.content = value.Flat(kApart);
  return AddLoads(map, entry, workloads);
}

}  // namespace horus
