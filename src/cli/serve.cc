// SPDX-License-Identifier: Apache-2.0
// Services as a table, as JSON, and in the words of their engines.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/inspect.h"
#include "cli/print.h"
#include "io/placement.h"

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
  switch (service.verdict) {
    case ServiceVerdict::kServed:
      return "";
    case ServiceVerdict::kNoRoom:
      return "memory";
    case ServiceVerdict::kUnsupported:
      return WhyNot(run, gpu);
    case ServiceVerdict::kOverloaded:
      return "too slow";
    case ServiceVerdict::kLate:
      break;
  }
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
  Json rows = Json::array();
  for (const ServedOn& row : report.rows) rows.push_back(ServiceJson(row, load));
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
      {"gpus", rows}});
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
    std::vector<Column> columns;
    std::vector<std::string> cells;
    for (auto& [title, cell] : CellsOf(row, report)) {
      columns.push_back(Right(title));
      cells.push_back(std::move(cell));
    }
    columns.front().align = Align::kLeft;
    columns.back() = Wrapped(columns.back().title);
    if (!table.has_value()) table.emplace(std::move(columns));
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

}  // namespace horus::cli
