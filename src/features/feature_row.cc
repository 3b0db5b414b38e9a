// SPDX-License-Identifier: Apache-2.0
// Builds feature rows from the column tables, and the schema's hash and page from the same tables.
#include "features/feature_row.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/hash.h"
#include "device/gpu_type.h"
#include "features/feature_columns.h"

namespace horus {
namespace {

template <size_t N, typename Entry>
constexpr std::array<FeatureColumn, N> ColumnsOf(const Entry (&table)[N]) {
  std::array<FeatureColumn, N> columns;
  for (size_t i = 0; i < N; ++i) columns[i] = table[i].column;
  return columns;
}

constexpr auto kJobColumns = ColumnsOf(kJobFeatureTable);
constexpr auto kDeviceColumns = ColumnsOf(kDeviceFeatureTable);

// Nearest-rank quantiles of the values.
Quantiles QuantilesOf(std::vector<double>& values) {
  Quantiles q;
  if (values.empty()) return q;
  std::ranges::sort(values);
  const auto at = [&values](double share) {
    const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size())));
    return values[std::clamp<size_t>(rank, 1, values.size()) - 1];
  };
  q.p10 = at(0.10);
  q.p50 = at(0.50);
  q.p90 = at(0.90);
  q.max = values.back();
  return q;
}

void AppendTable(std::string& page, std::span<const FeatureColumn> columns, size_t& index) {
  page += "\n| # | column | unit | definition |\n|---|---|---|---|\n";
  for (const FeatureColumn& column : columns) {
    AppendFormatted(&page, "| %d | `%s` | %s | %s |\n", index++, std::string(column.name), std::string(column.unit),
                    std::string(column.definition));
  }
}

}  // namespace

std::span<const FeatureColumn> JobFeatureColumns() { return kJobColumns; }
std::span<const FeatureColumn> DeviceFeatureColumns() { return kDeviceColumns; }
size_t FeatureCount() { return kJobColumns.size() + kDeviceColumns.size(); }

std::optional<size_t> FindFeature(std::string_view name) {
  size_t index = 0;
  for (const std::span<const FeatureColumn> columns : {JobFeatureColumns(), DeviceFeatureColumns()}) {
    for (const FeatureColumn& column : columns) {
      if (column.name == name) return index;
      ++index;
    }
  }
  return std::nullopt;
}

uint64_t FeatureSchemaHash() {
  uint64_t hash = CombineHash(kFeatureSchemaVersion, kJobColumns.size());
  for (const std::span<const FeatureColumn> columns : {JobFeatureColumns(), DeviceFeatureColumns()}) {
    for (const FeatureColumn& column : columns) {
      for (const std::string_view text : {column.name, column.unit, column.definition}) {
        hash = CombineHash(hash, Hash64(text));
      }
    }
  }
  return hash;
}

std::vector<float> JobFeatures(const ShapedGraph& shaped, const StepCost& cost, const StepMemory& memory,
                               const RunSpec& run) {
  std::vector<double> flops, bytes, intensity;
  for (size_t i = 0; i < cost.ops.size(); ++i) {
    const OpCost& op = cost.ops[i];
    if (shaped.ops[i].plumbing || op.forward_kernels <= 0) continue;
    flops.push_back(op.forward_flops + op.forward_flops_other);
    bytes.push_back(op.forward_bytes);
    if (op.forward_bytes > 0) intensity.push_back(flops.back() / op.forward_bytes);
  }
  const JobFeatureSource source{
      shaped, cost, memory, run, QuantilesOf(flops), QuantilesOf(bytes), QuantilesOf(intensity)};
  std::vector<float> row;
  row.reserve(kJobColumns.size());
  for (const JobFeatureEntry& entry : kJobFeatureTable) row.push_back(static_cast<float>(entry.value(source)));
  return row;
}

void DeviceFeatures(const RooflineTerms& roofline, const StepMemory& memory, const GpuType& gpu, const RunSpec& run,
                    std::span<float> out) {
  const DeviceFeatureSource source{roofline, memory, gpu, run};
  const size_t count = std::min(out.size(), kDeviceColumns.size());
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<float>(kDeviceFeatureTable[i].value(source));
}

std::string FeatureSchemaMarkdown() {
  std::string page;
  AppendFormatted(&page, "\nSchema version %d, hash `%016x`, %d columns, float32 in this order.\n",
                  kFeatureSchemaVersion, FeatureSchemaHash(), FeatureCount());
  size_t index = 0;
  page += "\n### Columns of the job\n";
  AppendTable(page, JobFeatureColumns(), index);
  page += "\n### Columns of the job on a GPU type\n";
  AppendTable(page, DeviceFeatureColumns(), index);
  return page;
}

}  // namespace horus
