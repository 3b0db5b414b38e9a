// SPDX-License-Identifier: Apache-2.0
// Asks the interference model for two jobs in each mode, and for the caps that protect one from the other.
#include "cli/beside.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "cli/print.h"
#include "interference/laws.h"
#include "io/json_text.h"
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
  std::array<int, 2> caps_pct = {100, 100};
  Two slowdowns = {};
};

// The largest cap on the other that keeps `victim` where a service should stay, if a cap can.
absl::Status AddCapped(const InterferenceModel& model, const DeviceContext& device,
                       std::span<const Demand* const> tenants, const Two& uncapped, size_t victim,
                       std::vector<Row>& rows) {
  if (static_cast<double>(uncapped[victim].estimate) <= kServiceGuard) return absl::OkStatus();
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
    if (static_cast<double>(row.slowdowns[victim].estimate) > kServiceGuard) continue;
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
    Row row{.mode = "mig " + half->name};
    for (size_t i = 0; i < 2; ++i) {  // at most as one that fills its device
      row.slowdowns[i] = {static_cast<float>(1 / SliceSpeed(*tenants[i], share)),
                          static_cast<float>(1 / SliceShare(share))};
    }
    rows.push_back(std::move(row));
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

Json RowJson(const Row& row) {
  Json json = {{"mode", row.mode},
               {"caps_pct", row.caps_pct},
               {"work", WorkOf(row)},
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
  std::string text;
  for (size_t i = 0; i < 2; ++i)
    text += absl::StrFormat("%s  %s - %s\n", kNames[i], Printable(jobs[i].path), jobs[i].run);
  for (size_t t = 0; t < types.size(); ++t) {
    const GpuType& type = catalogue.at(types[t]);
    const std::array<const Demand*, 2> tenants = {&jobs[0].demands[t], &jobs[1].demands[t]};
    HORUS_ASSIGN_OR_RETURN(const std::vector<Row> rows, RowsOn(types[t], type, model, tenants));
    const int64_t memory = std::min(tenants[0]->mem_mib.upper + tenants[1]->mem_mib.upper, kUnboundedMemMib);
    Json options = Json::array();
    Table table(
        {{"ON " + type.name}, Right("A TAKES"), Right("AT MOST"), Right("B TAKES"), Right("AT MOST"), Right("WORK")});
    for (const Row& row : rows) {
      options.push_back(RowJson(row));
      std::vector<std::string> cells = {HowText(row)};
      for (const Slowdown& one : row.slowdowns) {
        cells.push_back(Factor(static_cast<double>(one.estimate)));
        cells.push_back(Factor(static_cast<double>(one.upper)));
      }
      cells.push_back(absl::StrFormat("%.2f", WorkOf(row)));
      table.AddRow(std::move(cells));
    }
    gpus.push_back({{"gpu_type", type.name},
                    {"memory_upper_mib", memory < kUnboundedMemMib ? Json(memory) : Json(nullptr)},
                    {"gpu_memory_mib", type.mem_mib},
                    {"fits", memory <= type.mem_mib},
                    {"options", std::move(options)}});
    text += "\n" + table.Render("  ") +
            absl::StrFormat("  Memory of both at most %s, of %s%s.\n", Mib(memory), Mib(type.mem_mib),
                            memory > type.mem_mib ? ": they do not fit together, whatever the mode" : "");
  }
  if (json) {
    return JsonText(Json{{"schema", "horus-beside"},
                         {"version", kBesideJsonVersion},
                         {"a", {{"path", jobs[0].path}, {"run", jobs[0].run}}},
                         {"b", {{"path", jobs[1].path}, {"run", jobs[1].run}}},
                         {"gpus", std::move(gpus)}});
  }
  for (const std::string& line :
       Wrap(absl::StrFormat("TAKES is how many times as long as alone on the whole GPU; WORK is what both do, 2 = two "
                            "GPUs. A cap is the "
                            "largest that keeps the other within %gx. Caps, and different jobs under MPS, are "
                            "reported, not promised: nobody has "
                            "measured them. A fatal fault of an MPS client ends its neighbours.",
                            kServiceGuard),
            kPageWidth - 2)) {
    text += "  " + line + "\n";
  }
  return text;
}

}  // namespace horus::cli
