// SPDX-License-Identifier: Apache-2.0
// Services as a table, as JSON, and in the words of their engines.
#include "cli/serve.h"

#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/inspect_report.h"
#include "cli/print.h"
#include "io/json_text.h"
#include "io/placement.h"

namespace horus::cli {
namespace {

constexpr int kServiceJsonVersion = 1;
constexpr double kMostReplicas = 64;

int64_t Whole(double value) { return static_cast<int64_t>(std::llround(value)); }
std::string MibText(double mib) { return Mib(Whole(mib)); }
std::string Gib(double mib) { return absl::StrFormat("%.1f", mib / 1024); }

std::string TimeText(const ServiceTime& time) {
  return absl::StrFormat("%s <= %s", Duration(time.estimate_us), Duration(time.upper_us));
}

std::string LoadText(const ServiceLoad& load) {
  std::string text = load.concurrency > 0 ? absl::StrFormat("%s users at once", Plain(load.concurrency))
                                          : absl::StrFormat("%s requests a second", Plain(load.requests_per_s));
  absl::StrAppendFormat(&text, ", %s tokens in and %s out", Plain(load.tokens_in), Plain(load.tokens_out));
  if (load.first_token_us > 0) absl::StrAppendFormat(&text, ", first token within %s", Duration(load.first_token_us));
  if (load.token_us > 0) absl::StrAppendFormat(&text, ", each further one within %s", Duration(load.token_us));
  return text;
}

std::string ServedText(const Service& service, const ServiceLoad& load, const RunSpec& run, const GpuType& gpu) {
  switch (service.verdict) {
    case ServiceVerdict::kServed:
      return "yes";
    case ServiceVerdict::kNoRoom:
      return "no: memory";
    case ServiceVerdict::kUnsupported:
      return "no: " + WhyNot(run, gpu);
    case ServiceVerdict::kOverloaded:
    case ServiceVerdict::kLate:
      // Beyond it a promise is kept by nearly idle GPUs alone.
      if (service.most_requests_per_s * kMostReplicas > load.requests_per_s)
        return absl::StrFormat("by %s", Plain(std::ceil(load.requests_per_s / service.most_requests_per_s)));
      if (service.verdict == ServiceVerdict::kOverloaded) return "no: too slow";
      return load.token_us > 0 && service.token.upper_us > load.token_us ? "no: tokens late" : "no: first late";
  }
  return "";
}

std::string_view ServiceName(ServiceVerdict verdict) {
  constexpr std::array<std::string_view, 5> kNames = {"served", "no-room", "overloaded", "late", "unsupported"};
  return kNames[static_cast<size_t>(verdict)];
}

Json ServiceJson(const Service& service, const ServiceLoad& load, const GpuType& gpu) {
  const auto ms = [](double us) { return ShortDouble(static_cast<float>(us / kUsPerMs)); };
  const auto real = [](double value) { return ShortDouble(static_cast<float>(value)); };
  return {{"gpu_type", gpu.name},
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

}  // namespace

std::string ServicesReport(const std::string& path, const RunSpec& run, const ServiceLoad& load,
                           std::span<const GpuType> gpus, std::span<const Service> services, bool all, bool json) {
  if (json) {
    Json rows = Json::array();
    for (size_t i = 0; i < gpus.size(); ++i) rows.push_back(ServiceJson(services[i], load, gpus[i]));
    return JsonText(Json{{"schema", "horus-service"},
                         {"version", kServiceJsonVersion},
                         {"model", path},
                         {"framework", std::string(Name(run.framework))},
                         {"load",
                          {{"requests_per_s", load.requests_per_s},
                           {"concurrency", load.concurrency},
                           {"tokens_in", load.tokens_in},
                           {"tokens_out", load.tokens_out},
                           {"longest", services.empty() ? load.longest : services[0].longest},
                           {"first_token_ms", load.first_token_us / kUsPerMs},
                           {"token_ms", load.token_us / kUsPerMs},
                           {"confidence", load.confidence}}},
                         {"gpus", rows}});
  }
  std::string text = absl::StrFormat("%s - %s\n%s\n\n", Printable(path), RunText(run, 0), LoadText(load));
  const bool open = load.concurrency == 0;
  Table table({{"GPU"},
               Right("NEEDS"),
               Right("TAKES"),
               Right("FIRST TOKEN"),
               Right("EACH FURTHER"),
               Right(open ? "MOST/S" : "TOKENS/S"),
               Right("BEARS"),
               {"SERVED"}});
  size_t listed = 0, none = 0;
  const Service* shown = nullptr;
  std::string arguments;
  for (size_t i = 0; i < gpus.size(); ++i) {
    const Service& service = services[i];
    const bool served = service.verdict == ServiceVerdict::kServed;
    if (all && !served) {
      ++none;
      continue;
    }
    ++listed;
    const bool fits = service.verdict != ServiceVerdict::kNoRoom && service.verdict != ServiceVerdict::kUnsupported;
    const std::string rate =
        open ? absl::StrFormat("%.3g", service.most_requests_per_s) : Plain(std::round(service.tokens_per_s));
    table.AddRow({gpus[i].name, Gib(service.memory_mib() - service.room_mib), Gib(service.memory_mib()),
                  fits ? TimeText(service.first_token) : "-", fits ? TimeText(service.token) : "-", fits ? rate : "-",
                  served ? Factor(static_cast<double>(service.demand.slowdown_bound)) : "-",
                  ServedText(service, load, run, gpus[i])});
    if (!served) continue;
    if (shown == nullptr) shown = &service;
    if (!all) {
      absl::StrAppend(&arguments, "  ", gpus[i].name, "  ", service.engine_arguments, "\n");
    }
  }
  if (listed > 0) text += table.Render("  ");
  if (listed > 0 && services[0].gpus == 1) text += "  Memory in GiB.\n";
  if (!services.empty() && services[0].gpus > 1) {
    absl::StrAppendFormat(&text, "  Memory in GiB, on each of the %d GPUs that share the model.\n", services[0].gpus);
  }
  if (none > 0) absl::StrAppendFormat(&text, "  %d GPU types do not serve it; --gpu TYPE says why.\n", none);
  if (shown != nullptr && !all) {
    absl::StrAppendFormat(&text,
                          "\nOn the first that serves it\n  weights %s, a chunk of prompts %s, engine %s, cache %s: %s "
                          "tokens, %.3g requests at once\n  %s of the cache are for being slowed by neighbours\n",
                          MibText(shown->weights_mib), MibText(shown->activations_mib), MibText(shown->engine_mib),
                          MibText(shown->cache_mib), Plain(std::round(shown->cache_tokens)), shown->running,
                          MibText(shown->room_mib));
    absl::StrAppendFormat(&text, "\nTold to take no more; requests of more than %s tokens are then refused\n%s",
                          Plain(shown->longest), arguments);
  }
  return text;
}

}  // namespace horus::cli
