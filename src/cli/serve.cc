// SPDX-License-Identifier: Apache-2.0
// Services as a table, as JSON, and in the words of their engines. Two jobs in each sharing mode: asks the interference
// model, also for the caps that protect one from the other.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "cli/inspect.h"
#include "cli/print.h"
#include "interference/laws.h"
#include "io/placement.h"
#include "place/policies/policies.h"

namespace horus::cli {
namespace {

constexpr int kServiceJsonVersion = 1;

int64_t Whole(double value) { return static_cast<int64_t>(std::llround(value)); }
std::string MibText(double mib) { return Mib(Whole(mib)); }
std::string Gib(double mib) { return absl::StrFormat("%.1f", mib / 1024); }

std::string TimeText(const ServiceTime& time) {
  return absl::StrFormat("%s <= %s", Duration(time.estimate_us), Duration(time.upper_us));
}

// Why it is not served; empty where it is.
std::string WhyText(const Service& service, const ServiceLoad& load, const RunSpec& run, const GpuType& gpu) {
  if (service.verdict == ServiceVerdict::kServed) return "";
  if (service.verdict == ServiceVerdict::kNoRoom) return "memory";
  if (service.verdict == ServiceVerdict::kUnsupported) return WhyNot(run, gpu);
  if (service.verdict == ServiceVerdict::kOverloaded) return "too slow";
  if (AnswersAtOnce(load)) return "answers late";
  return load.token_us > 0 && service.token.upper_us > load.token_us ? "tokens late" : "first late";
}

bool IsServed(const Service& service) { return service.verdict == ServiceVerdict::kServed; }
bool Fits(const ServedOn& row) {
  return row.service.verdict != ServiceVerdict::kNoRoom && row.service.verdict != ServiceVerdict::kUnsupported;
}

std::string ServedText(const ServedOn& row, const ServicesReport& report) {
  const ServiceLoad& load = report.load;
  if (row.solved.has_value() && row.solved->value > 0) {
    if (row.solved->next == 0) return report.unknown == ServiceUnknown::kContext ? "its context" : "";
    const std::string why = WhyText(row.solved->beyond, load, report.run, row.gpu);
    return report.unknown == ServiceUnknown::kReplicas ? why : absl::StrCat(Plain(row.solved->next), ": ", why);
  }
  const std::string why = WhyText(row.service, load, report.run, row.gpu);
  const double most = row.service.most_requests_per_s;
  if (why.empty()) return "yes";
  if (!report.unknown.has_value() && most * static_cast<double>(kMostReplicas) > load.requests_per_s && most > 0)
    return absl::StrFormat("by %s", Plain(std::ceil(load.requests_per_s / most)));
  return "no: " + why;
}

// GPUs of all copies.
double GpusOf(const ServedOn& row) { return row.solved->value * static_cast<double>(row.service.gpus); }

std::string SolvedText(const ServedOn& row, const ServicesReport& report) {
  const double value = row.solved->value;
  if (value == 0) return "-";
  if (report.unknown != ServiceUnknown::kReplicas) return Plain(value, 3);
  return absl::StrFormat("%s = %sx%d", Plain(GpusOf(row)), Plain(value), row.service.gpus);
}

std::string_view ServiceName(ServiceVerdict verdict) {
  constexpr std::array<std::string_view, 5> kNames = {"served", "no-room", "overloaded", "late", "unsupported"};
  return kNames[static_cast<size_t>(verdict)];
}

Json ServiceJson(const ServedOn& row, const ServiceLoad& load) {
  const Service& service = row.service;
  const auto ms = [](double us) { return ShortDouble(static_cast<float>(us / kUsPerMs)); };
  const auto real = [](double value) { return ShortDouble(static_cast<float>(value)); };
  Json solved = nullptr;
  if (row.solved.has_value()) {
    solved = {{"value", row.solved->value},
              {"next", row.solved->next > 0 ? Json(row.solved->next) : Json(nullptr)},
              {"next_verdict", std::string(ServiceName(row.solved->beyond.verdict))},
              {"gpus", GpusOf(row)}};
  }
  return {{"gpu_type", row.gpu.name},
          {"tensor_parallel", service.gpus},
          {"solved", std::move(solved)},
          {"verdict", std::string(ServiceName(service.verdict))},
          {"memory_mib", Whole(service.memory_mib())},
          {"weights_mib", Whole(service.weights_mib)},
          {"activations_mib", Whole(service.activations_mib)},
          {"engine_mib", Whole(service.engine_mib)},
          {"cache_mib", Whole(service.cache_mib)},
          {"cache_tokens", Whole(service.cache_tokens)},
          {"room_for_neighbours_mib", Whole(service.room_mib)},
          {"running", real(service.running)},
          {"most_running", Whole(service.most_running)},
          {"first_token_ms", ms(service.first_token.estimate_us)},
          {"first_token_ms_upper", ms(service.first_token.upper_us)},
          {"token_ms", ms(service.token.estimate_us)},
          {"token_ms_upper", ms(service.token.upper_us)},
          {"requests_per_s", real(service.requests_per_s)},
          {"tokens_per_s", real(service.tokens_per_s)},
          {"most_requests_per_s", load.concurrency > 0 ? Json(nullptr) : Json(real(service.most_requests_per_s))},
          {"busy", real(service.busy)},
          {"largest_slowdown", real(service.largest_slowdown)},
          {"engine_arguments", service.engine_arguments.empty() ? Json(nullptr) : Json(service.engine_arguments)}};
}

// A row's cells, each with its title.
std::vector<std::pair<const char*, std::string>> CellsOf(const ServedOn& row, const ServicesReport& report) {
  const Service& service = row.service;
  const std::optional<ServiceUnknown> unknown = report.unknown;
  const bool at_once = AnswersAtOnce(report.load), open = report.load.concurrency == 0, solves = unknown.has_value();
  std::vector<std::pair<const char*, std::string>> cells = {{"GPU", row.gpu.name}};
  const auto add = [&cells](bool shown, const char* title, std::string text) {
    if (shown) cells.emplace_back(title, std::move(text));
  };
  // Of what fits alone.
  const auto of = [fits = Fits(row)](std::string text) { return fits ? text : "-"; };
  if (solves) {
    constexpr std::array<const char*, 3> kTitles = {"REQUESTS/S", "TOKENS", "GPUS"};
    const bool users = *unknown == ServiceUnknown::kLoad && !open;
    add(true, users ? "USERS" : kTitles[static_cast<size_t>(*unknown)], SolvedText(row, report));
  }
  add(!at_once && !solves, "NEEDS", Gib(service.memory_mib() - service.room_mib));
  add(true, "TAKES", Gib(service.memory_mib()));
  add(true, at_once ? "ANSWER" : "FIRST TOKEN", of(TimeText(service.first_token)));
  add(!at_once, "EACH FURTHER", of(TimeText(service.token)));
  const double most = service.most_requests_per_s;
  add(open && !solves, "MOST/S", of(most < 1000 ? absl::StrFormat("%.3g", most) : Plain(std::round(most))));
  add(!open && !at_once && !solves, "TOKENS/S", of(Plain(std::round(service.tokens_per_s))));
  add(unknown != ServiceUnknown::kLoad, "BEARS", IsServed(service) ? Factor(service.largest_slowdown) : "-");
  add(true, solves ? "LIMIT" : "SERVED", ServedText(row, report));
  return cells;
}

// What the memory of one is for, and what is told to all that serve it.
std::string ToldText(const Service& service, bool at_once, const std::string& arguments) {
  std::string text = absl::StrFormat("\nOn the first that serves it\n  weights %s, %s %s, engine %s",
                                     MibText(service.weights_mib), at_once ? "the largest batch" : "a chunk of prompts",
                                     MibText(service.activations_mib), MibText(service.engine_mib));
  if (at_once) return text + "\n\nTold to the server\n" + arguments;
  absl::StrAppendFormat(&text,
                        ", cache %s: %s tokens, %.3g requests at once\n  %s of the cache are for being slowed by "
                        "neighbours\n\nTold to take no more; requests of more than %s tokens are then refused\n",
                        MibText(service.cache_mib), Plain(std::round(service.cache_tokens)), service.running,
                        MibText(service.room_mib), Plain(service.longest));
  return text + arguments;
}

// ---- Two jobs.

using Two = std::array<Slowdown, 2>;

constexpr int kBesideJsonVersion = 1;
constexpr int kCapSteps = 10;
constexpr int64_t kFirstWithCaps = 70;  // compute capability: MPS limits the SMs of a client since Volta
constexpr std::array<const char*, 2> kNames = {"A", "B"};

struct Row {
  std::string mode;
  int64_t mem_mib = 0;  // of the GPU, or of each one's slice
  std::array<int, 2> caps_pct = {100, 100};
  Two slowdowns = {};
};

// How much a job may be slowed: by its promises. Of what promises nothing: as a service should, but beside one as
// placers let any other job.
double LimitOf(const Demand& demand, const Demand& other) {
  if (demand.slowdown_bound > 0) return static_cast<double>(demand.slowdown_bound);
  return other.slowdown_bound > 0 ? kSlowdownGuard : kServiceGuard;
}

// The largest cap on the other that keeps `victim` within its limit, if a cap can.
absl::Status AddCapped(const InterferenceModel& model, const DeviceContext& device,
                       std::span<const Demand* const> tenants, const Two& uncapped, size_t victim,
                       std::vector<Row>& rows) {
  const double limit = LimitOf(*tenants[victim], *tenants[1 - victim]);
  if (static_cast<double>(uncapped[victim].estimate) <= limit) return absl::OkStatus();
  for (int step = kCapSteps - 1; step > 0; --step) {
    Row row{.mode = "mps"};
    row.caps_pct[1 - victim] = 100 * step / kCapSteps;
    Demand capped = *tenants[1 - victim];
    capped.sm_cap = static_cast<float>(row.caps_pct[1 - victim]) / 100;
    std::array<const Demand*, 2> two = {tenants[0], tenants[1]};
    two[1 - victim] = &capped;
    HORUS_RETURN_IF_ERROR(model.Predict(device, two, row.slowdowns));
    const auto stretch = static_cast<float>(CapStretch(capped));  // over alone and without a cap
    row.slowdowns[1 - victim].estimate *= stretch;
    row.slowdowns[1 - victim].upper *= stretch;
    if (static_cast<double>(row.slowdowns[victim].estimate) > limit) continue;
    rows.push_back(std::move(row));
    break;
  }
  return absl::OkStatus();
}

// Each alone on one of the largest instances of which there are two; null without.
const MigProfile* HalfOf(const GpuType& type) {
  const MigProfile* half = nullptr;
  for (const MigProfile& profile : type.mig) {
    if (profile.max_instances >= 2) half = &profile;  // smallest first
  }
  return half;
}

absl::StatusOr<std::vector<Row>> RowsOn(GpuTypeId id, const GpuType& type, const InterferenceModel& model,
                                        std::span<const Demand* const> tenants) {
  std::vector<Row> rows = {{.mode = "time-slice"}};
  DeviceContext device{.type = id};
  HORUS_RETURN_IF_ERROR(model.Predict(device, tenants, rows[0].slowdowns));
  if (type.max_mps_clients >= 2) {
    device.mode = SharingMode::kMps;
    Row uncapped{.mode = "mps"};
    HORUS_RETURN_IF_ERROR(model.Predict(device, tenants, uncapped.slowdowns));
    rows.push_back(uncapped);
    const bool has_caps = type.compute_capability >= kFirstWithCaps;
    for (size_t victim = 0; has_caps && victim < 2; ++victim)
      HORUS_RETURN_IF_ERROR(AddCapped(model, device, tenants, uncapped.slowdowns, victim, rows));
  }
  const MigProfile* half = HalfOf(type);
  const auto fits = [half](const Demand* tenant) { return tenant->mem_mib.upper <= half->mem_mib; };
  if (half != nullptr && std::all_of(tenants.begin(), tenants.end(), fits)) {
    const double slices = static_cast<double>(type.mig.back().compute_slices);
    const double share = static_cast<double>(half->compute_slices) / slices;
    Row row{.mode = "mig " + half->name, .mem_mib = half->mem_mib};
    for (size_t i = 0; i < 2; ++i) {  // at most as one that fills its device
      row.slowdowns[i] = {static_cast<float>(1 / SliceSpeed(*tenants[i], share)),
                          static_cast<float>(1 / SliceShare(share))};
    }
    rows.push_back(std::move(row));
  }
  for (Row& row : rows) {
    if (row.mem_mib == 0) row.mem_mib = type.mem_mib;
  }
  return rows;
}

double WorkOf(const Row& row) {
  return 1 / static_cast<double>(row.slowdowns[0].estimate) + 1 / static_cast<double>(row.slowdowns[1].estimate);
}

std::string HowText(const Row& row) {
  for (size_t i = 0; i < 2; ++i) {
    if (row.caps_pct[i] < 100)
      return absl::StrFormat("%s, %s capped at %d %% of the SMs", row.mode, kNames[i], row.caps_pct[i]);
  }
  return row.mode;
}

// Whose limits hold: by what is expected, or by the bounds of slowdowns.
std::array<bool, 2> KeptBy(const Row& row, std::span<const Demand* const> tenants, float Slowdown::* which) {
  const auto keeps = [&](size_t i) {
    return static_cast<double>(row.slowdowns[i].*which) <= LimitOf(*tenants[i], *tenants[1 - i]);
  };
  return {keeps(0), keeps(1)};
}

std::string NamesOf(const std::array<bool, 2>& which) {
  return which[0] && which[1] ? "both" : which[0] ? "A" : which[1] ? "B" : "none";
}

// A job's cells: of a service what its users get, of another its bound.
void AddCells(const BesideJob& job, size_t type, const Slowdown& slowdown, std::vector<std::string>& cells) {
  cells.push_back(Factor(static_cast<double>(slowdown.estimate)));
  if (job.services.empty()) {
    cells.push_back(Factor(static_cast<double>(slowdown.upper)));
    return;
  }
  const auto times = job.services[type].At(static_cast<double>(slowdown.estimate));
  cells.push_back(times.has_value() ? Duration(times->first_token.estimate_us) : "overrun");
  cells.push_back(times.has_value() && times->token.estimate_us > 0 ? Duration(times->token.estimate_us) : "-");
}

std::string ColumnsOf(const std::array<BesideJob, 2>& jobs, const std::string& type, bool serves) {
  std::string columns = "ON " + type;
  for (size_t i = 0; i < 2; ++i) {
    absl::StrAppend(&columns, "|>", kNames[i], serves ? "" : " TAKES",
                    jobs[i].services.empty() ? "|>AT MOST" : "|>FIRST|>EACH");
  }
  return columns + (serves ? "|KEPT (SURELY)" : "|>WORK");
}

// The row that keeps most: by what is expected, then surely, then by the work of both.
size_t BestOf(const std::vector<Row>& rows, std::span<const Demand* const> tenants) {
  const auto worth = [&](const Row& row) {
    const auto count = [&](float Slowdown::* which) {
      const std::array<bool, 2> kept = KeptBy(row, tenants, which);
      return kept[0] + kept[1];
    };
    return std::tuple(count(&Slowdown::estimate), count(&Slowdown::upper), WorkOf(row));
  };
  return static_cast<size_t>(std::ranges::max_element(rows, {}, worth) - rows.begin());
}

// In the words of its engine; empty of no service, and where it is not served.
std::string ToldTo(const BesideJob& job, size_t type, const GpuType& gpu, int64_t mem_mib) {
  if (job.services.empty() || job.services[type].verdict != ServiceVerdict::kServed) return "";
  return EngineArguments(job.engine, job.services[type], gpu, mem_mib);
}

Json RowJson(const Row& row, const std::array<BesideJob, 2>& jobs, size_t type) {
  const std::array<const Demand*, 2> tenants = {&jobs[0].demands[type], &jobs[1].demands[type]};
  Json first = Json::array(), further = Json::array();
  for (size_t i = 0; i < 2; ++i) {
    const auto times = jobs[i].services.empty()
                           ? std::nullopt
                           : jobs[i].services[type].At(static_cast<double>(row.slowdowns[i].estimate));
    const auto ms = [](double us) { return ShortDouble(static_cast<float>(us / kUsPerMs)); };
    first.push_back(times.has_value() ? Json(ms(times->first_token.estimate_us)) : Json(nullptr));
    further.push_back(times.has_value() ? Json(ms(times->token.estimate_us)) : Json(nullptr));
  }
  Json json = {{"mode", row.mode},
               {"caps_pct", row.caps_pct},
               {"work", WorkOf(row)},
               {"first_token_ms", std::move(first)},
               {"token_ms", std::move(further)},
               {"kept", KeptBy(row, tenants, &Slowdown::estimate)},
               {"kept_surely", KeptBy(row, tenants, &Slowdown::upper)},
               {"slowdown", Json::array()},
               {"slowdown_upper", Json::array()}};
  for (const Slowdown& one : row.slowdowns) {
    json["slowdown"].push_back(ShortDouble(one.estimate));
    json["slowdown_upper"].push_back(ShortDouble(one.upper));
  }
  return json;
}

}  // namespace

std::string LoadText(const ServiceLoad& load, std::optional<ServiceUnknown> unknown) {
  std::string text;
  if (unknown == ServiceUnknown::kLoad) {
    text = load.concurrency > 0 ? "the most users at once" : "the most requests a second";
  } else {
    text = load.concurrency > 0 ? absl::StrFormat("%s users at once", Plain(load.concurrency))
                                : absl::StrFormat("%s requests a second", Plain(load.requests_per_s));
  }
  if (AnswersAtOnce(load)) {
    text += ", answered in one step";
    if (load.first_token_us > 0) absl::StrAppendFormat(&text, " within %s", Duration(load.first_token_us));
  } else {
    absl::StrAppendFormat(&text, ", %s tokens in and %s out", Plain(load.tokens_in), Plain(load.tokens_out));
    if (load.first_token_us > 0) absl::StrAppendFormat(&text, ", first token within %s", Duration(load.first_token_us));
    if (load.token_us > 0) absl::StrAppendFormat(&text, ", each further one within %s", Duration(load.token_us));
  }
  if (unknown == ServiceUnknown::kContext) text += "; the longest request";
  if (unknown == ServiceUnknown::kReplicas) text += "; the fewest GPUs";
  return text;
}

std::string ServicesJson(const ServicesReport& report) {
  const ServiceLoad& load = report.load;
  return JsonText(Json{
      {"schema", "horus-service"},
      {"version", kServiceJsonVersion},
      {"model", report.path},
      {"framework", std::string(Name(report.run.framework))},
      {"solve", report.unknown.has_value() ? Json(std::string(kServiceUnknowns[static_cast<size_t>(*report.unknown)]))
                                           : Json(nullptr)},
      {"load",
       {{"requests_per_s", load.requests_per_s},
        {"concurrency", load.concurrency},
        {"tokens_in", load.tokens_in},
        {"tokens_out", load.tokens_out},
        {"longest", report.rows.empty() ? load.longest : report.rows[0].service.longest},
        {"first_token_ms", load.first_token_us / kUsPerMs},
        {"token_ms", load.token_us / kUsPerMs},
        {"confidence", load.confidence}}},
      {"gpus", JsonList(report.rows, [&](const ServedOn& row) { return ServiceJson(row, load); })}});
}

std::string ServicesText(const ServicesReport& report) {
  const bool at_once = AnswersAtOnce(report.load);
  std::string text = absl::StrFormat("%s - %s\n%s\n\n", Printable(report.path),
                                     RunText(report.run, report.run.dims.batch), LoadText(report.load, report.unknown));
  std::optional<Table> table;
  size_t none = 0;
  const Service* shown = nullptr;
  std::string arguments;
  for (const ServedOn& row : report.rows) {
    if (report.all && !IsServed(row.service)) {
      ++none;
      continue;
    }
    std::string columns;
    std::vector<std::string> cells;
    auto titled = CellsOf(row, report);
    for (auto& [title, cell] : titled) {
      const bool last = title == titled.back().first;
      absl::StrAppend(&columns, columns.empty() ? "" : last ? "|~" : "|>", title);
      cells.push_back(std::move(cell));
    }
    if (!table.has_value()) table.emplace(columns);
    table->AddRow(std::move(cells));
    if (!IsServed(row.service)) continue;
    if (shown == nullptr) shown = &row.service;
    absl::StrAppend(&arguments, "  ", row.gpu.name, "  ", row.service.engine_arguments, "\n");
  }
  const bool parallel = std::ranges::any_of(report.rows, [](const ServedOn& row) { return row.service.gpus > 1; });
  if (table.has_value()) {
    absl::StrAppend(&text, table->Render("  "), "  Memory in GiB",
                    parallel ? ", on each of the GPUs that share the model" : "", ".\n");
  }
  if (report.unknown == ServiceUnknown::kReplicas)
    text += "  GPUS = copies of the model x GPUs that share one; LIMIT: with one copy fewer.\n";
  if (none > 0) absl::StrAppendFormat(&text, "  %d GPU types do not serve it; --gpu TYPE says why.\n", none);
  return shown == nullptr || report.all ? text : text + ToldText(*shown, at_once, arguments);
}

absl::StatusOr<std::string> BesideReport(const std::array<BesideJob, 2>& jobs, std::span<const GpuTypeId> types,
                                         const Catalogue& catalogue, const InterferenceModel& model, bool json) {
  Json gpus = Json::array();
  const bool serves = !jobs[0].services.empty() || !jobs[1].services.empty();
  std::string text;
  for (size_t i = 0; i < 2; ++i)
    text += absl::StrFormat("%s  %s - %s\n%s", kNames[i], Printable(jobs[i].path), jobs[i].run,
                            jobs[i].load.empty() ? "" : "   " + jobs[i].load + "\n");
  for (size_t t = 0; t < types.size(); ++t) {
    const GpuType& type = catalogue.at(types[t]);
    const std::array<const Demand*, 2> tenants = {&jobs[0].demands[t], &jobs[1].demands[t]};
    HORUS_ASSIGN_OR_RETURN(const std::vector<Row> rows, RowsOn(types[t], type, model, tenants));
    const int64_t memory = std::min(tenants[0]->mem_mib.upper + tenants[1]->mem_mib.upper, kUnboundedMemMib);
    Json options = Json::array();
    Table table(ColumnsOf(jobs, type.name, serves));
    for (const Row& row : rows) {
      options.push_back(RowJson(row, jobs, t));
      std::vector<std::string> cells = {HowText(row)};
      for (size_t i = 0; i < 2; ++i) AddCells(jobs[i], t, row.slowdowns[i], cells);
      cells.push_back(serves ? absl::StrFormat("%s (%s)", NamesOf(KeptBy(row, tenants, &Slowdown::estimate)),
                                               NamesOf(KeptBy(row, tenants, &Slowdown::upper)))
                             : absl::StrFormat("%.2f", WorkOf(row)));
      table.AddRow(std::move(cells));
    }
    const size_t best = BestOf(rows, tenants);
    Json arguments = Json::array();
    std::string told;
    for (size_t i = 0; i < 2; ++i) {
      const std::string words = ToldTo(jobs[i], t, type, rows[best].mem_mib);
      arguments.push_back(words.empty() ? Json(nullptr) : Json(words));
      if (jobs[i].services.empty()) continue;
      told += absl::StrFormat("  %s  %s\n", kNames[i], words.empty() ? "is not served here, even alone" : words);
    }
    gpus.push_back({{"gpu_type", type.name},
                    {"memory_upper_mib", memory < kUnboundedMemMib ? Json(memory) : Json(nullptr)},
                    {"gpu_memory_mib", type.mem_mib},
                    {"fits", memory <= type.mem_mib},
                    {"best", best},
                    {"engine_arguments", std::move(arguments)},
                    {"options", std::move(options)}});
    text += "\n" + table.Render("  ") +
            absl::StrFormat("  Memory of both at most %s, of %s%s.\n", Mib(memory), Mib(type.mem_mib),
                            memory > type.mem_mib ? ": they do not fit together, whatever the mode" : "");
    if (serves && memory <= type.mem_mib)
      absl::StrAppendFormat(&text, "  Best: %s. For it:\n%s", HowText(rows[best]), told);
  }
  if (json) {
    return JsonText(Json{{"schema", "horus-beside"},
                         {"version", kBesideJsonVersion},
                         {"a", {{"path", jobs[0].path}, {"run", jobs[0].run}, {"load", jobs[0].load}}},
                         {"b", {{"path", jobs[1].path}, {"run", jobs[1].run}, {"load", jobs[1].load}}},
                         {"gpus", std::move(gpus)}});
  }
  const std::string words =
      serves
          ? "A and B are how many times as long as alone on the whole GPU; FIRST is the time to the first token, or "
            "to the answer, EACH that of each further one, means. KEPT are whose promises hold as expected, and in "
            "nine of ten cases; what promises nothing is held to %gx; overrun: more come than are served. A cap is the "
            "largest that keeps the other."
          : "TAKES is how many times as long as alone on the whole GPU; WORK is what both do, 2 = two GPUs. A cap is "
            "the largest that keeps the other within %gx.";
  const std::string limit = absl::StrFormat("%g", serves ? kSlowdownGuard : kServiceGuard);
  return text + Paragraph(absl::StrReplaceAll(words, {{"%g", limit}}) +
                              " Caps, and different jobs under MPS, are reported, not promised: nobody has measured "
                              "them. A fatal fault of an MPS client ends its neighbours.",
                          "  ");
}

}  // namespace horus::cli
