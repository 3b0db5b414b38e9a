// SPDX-License-Identifier: Apache-2.0
// Prints explanations, the features that moved a prediction most first.
#include "cli/explain_report.h"

#include <cmath>

#include "absl/strings/str_format.h"
#include "cli/numbers.h"
#include "cli/table.h"

namespace horus::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownShifts = 3;

std::string_view FeatureName(size_t index) {
  const size_t job = JobFeatureColumns().size();
  return index < job ? JobFeatureColumns()[index].name : DeviceFeatureColumns()[index - job].name;
}

std::string Value(Quantity quantity, double value) {
  switch (quantity) {
    case Quantity::kStepTime:
      return Duration(value);
    case Quantity::kMemory:
      return Mib(std::llround(std::ceil(value)));
    case Quantity::kPower:
      return absl::StrFormat("%.0f W", value);
    default:
      return Percent(value);
  }
}

std::string Times(double shift) { return absl::StrFormat("x%.2f", std::exp(shift)); }

double SumOf(const std::vector<FeatureShift>& shifts) {
  double sum = 0;
  for (const FeatureShift& shift : shifts) sum += shift.shift;
  return sum;
}

const Explanation* Farthest(const GpuReport& gpu) {
  const Explanation* farthest = nullptr;
  for (const Explanation& one : gpu.explanations) {
    if (one.quantity == Quantity::kGpuUtilMax || one.quantity == Quantity::kPower) continue;  // not part of the flag
    if (farthest == nullptr || one.parts.distance > farthest->parts.distance) farthest = &one;
  }
  return farthest;
}

}  // namespace

std::string OutsideText(const GpuReport& gpu) {
  const Explanation* farthest = Farthest(gpu);
  if (farthest == nullptr || farthest->parts.distance <= kOutsideDistance) return "";
  const Refined& parts = farthest->parts;
  for (const RangeColumn& column : RangeColumns()) {
    if (column.name != parts.farthest || column.ratio) continue;
    return absl::StrFormat("this kind of %s is not in its training data", std::string(column.name));
  }
  return absl::StrFormat("%s is %.1f times %s its training data for %s", std::string(parts.farthest),
                         std::exp(parts.distance), parts.below ? "below" : "above",
                         std::string(InfoOf(farthest->quantity).name));
}

std::string ExplainText(const GpuReport& gpu) {
  if (gpu.explanations.empty()) return "";
  const auto right = [](const char* title) { return Column{title, Align::kRight, false}; };
  Table table({{"QUANTITY"},
               right("ROOFLINE"),
               right("FITTED"),
               right("TREES"),
               right("PREDICTED"),
               right("AT MOST"),
               right("DISTANCE"),
               {"MOVED MOST BY", Align::kLeft, true}});
  for (const Explanation& one : gpu.explanations) {
    std::string moved;
    for (size_t i = 0; i < one.shifts.size() && i < kShownShifts; ++i) {
      absl::StrAppendFormat(&moved, "%s%s %s", i == 0 ? "" : ", ", std::string(FeatureName(one.shifts[i].feature)),
                            Times(one.shifts[i].shift));
    }
    const Refined& parts = one.parts;
    table.AddRow({std::string(InfoOf(one.quantity).name),
                  parts.roofline > 0 ? Value(one.quantity, parts.roofline) : "-", Value(one.quantity, parts.fitted),
                  one.shifts.empty() ? "-" : Times(SumOf(one.shifts)), Value(one.quantity, parts.value),
                  Value(one.quantity, parts.upper), absl::StrFormat("%.2f", parts.distance), moved});
  }
  return "\nWhy, on " + gpu.type.name + "\n" + table.Render("  ");
}

Json ExplainJson(const GpuReport& gpu) {
  Json list = Json::array();
  for (const Explanation& one : gpu.explanations) {
    Json shifts = Json::array();
    for (const FeatureShift& shift : one.shifts) {
      shifts.push_back({{"feature", std::string(FeatureName(shift.feature))}, {"factor", std::exp(shift.shift)}});
    }
    const Refined& parts = one.parts;
    list.push_back({{"quantity", std::string(InfoOf(one.quantity).name)},
                    {"roofline", parts.roofline},
                    {"fitted", parts.fitted},
                    {"predicted", parts.value},
                    {"upper", parts.upper},
                    {"calibrated", parts.calibrated},
                    {"distance", parts.distance},
                    {"farthest", std::string(parts.farthest)},
                    {"shifts", shifts}});
  }
  return list;
}

}  // namespace horus::cli
