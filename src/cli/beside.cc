// SPDX-License-Identifier: Apache-2.0
// Asks the interference model for two jobs in each mode, and for the caps that protect one from the other.
#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "cli/inspect.h"
#include "cli/print.h"
#include "interference/laws.h"
#include "io/placement.h"
#include "place/policies/builtin.h"

namespace horus::cli {
namespace {

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
    for (size_t victim = 0; has_caps && victim < 2; ++victim) {
      HORUS_RETURN_IF_ERROR(AddCapped(model, device, tenants, uncapped.slowdowns, victim, rows));
    }
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

std::vector<Column> ColumnsOf(const std::array<BesideJob, 2>& jobs, const std::string& type, bool serves) {
  std::vector<Column> columns = {{"ON " + type}};
  for (size_t i = 0; i < 2; ++i) {
    const std::string name = kNames[i];
    columns.push_back(Right(serves ? name : name + " TAKES"));
    if (jobs[i].services.empty()) {
      columns.push_back(Right("AT MOST"));
    } else {
      columns.insert(columns.end(), {Right("FIRST"), Right("EACH")});
    }
  }
  columns.push_back(serves ? Column{"KEPT (SURELY)"} : Right("WORK"));
  return columns;
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
  for (const std::string& line :
       Wrap(absl::StrReplaceAll(words, {{"%g", absl::StrFormat("%g", serves ? kSlowdownGuard : kServiceGuard)}}) +
                " Caps, and different jobs under MPS, are reported, not promised: nobody has measured them. A fatal "
                "fault of an MPS client ends its neighbours.",
            kPageWidth - 2)) {
    text += "  " + line + "\n";
  }
  return text;
}

}  // namespace horus::cli
