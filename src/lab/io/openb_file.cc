// SPDX-License-Identifier: Apache-2.0
// Reads the columns that say what a node has and what a pod asks for.
#include "lab/io/openb_file.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "base/units.h"
#include "io/csv_row.h"
#include "place/job.h"
#include "place/state/node.h"

namespace horus {
namespace {

constexpr double kMaxAmount = static_cast<double>(kMaxHostQuantity);

absl::Status CheckHeader(const CsvColumns& columns, const std::string& file,
                         std::initializer_list<std::string_view> wanted) {
  for (const std::string_view name : wanted) {
    if (columns.contains(name)) continue;
    return InvalidArgument("%s: header: expected a column %s, found none", file, std::string(name));
  }
  return absl::OkStatus();
}

// A whole number in [0, most]; the published lists write some of them as 1.0.
absl::StatusOr<int64_t> Whole(const CsvRow& row, std::string_view column, double most) {
  const std::string expected = Formatted("a whole number from 0 to %.0f", most);
  HORUS_ASSIGN_OR_RETURN(const double value, row.Number(column, expected));
  if (value >= 0 && value <= most && value == static_cast<double>(static_cast<int64_t>(value))) {
    return static_cast<int64_t>(value);
  }
  return row.Wrong(column, expected, row.Find(column));
}

absl::StatusOr<std::string> Text(const CsvRow& row, std::string_view column) {
  const std::string_view text = row.Find(column);
  if (text.size() <= kMaxNameBytes) return std::string(text);
  return row.Wrong(column, "at most 1024 bytes", Formatted("%d", text.size()));
}

std::vector<std::string> Parts(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

absl::StatusOr<OpenbNode> ReadNode(const CsvRow& row) {
  OpenbNode node;
  HORUS_ASSIGN_OR_RETURN(node.name, Text(row, "sn"));
  HORUS_ASSIGN_OR_RETURN(node.cpu_milli, Whole(row, "cpu_milli", kMaxAmount));
  HORUS_ASSIGN_OR_RETURN(node.mem_mib, Whole(row, "memory_mib", kMaxAmount));
  HORUS_ASSIGN_OR_RETURN(const int64_t gpus, Whole(row, "gpu", kMaxDevicesPerNode));
  node.gpus = static_cast<int32_t>(gpus);
  HORUS_ASSIGN_OR_RETURN(node.model, Text(row, "model"));
  if (gpus > 0 && node.model.empty()) return row.Wrong("model", "the model of its GPUs", "");
  return node;
}

absl::StatusOr<OpenbPod> ReadPod(const CsvRow& row) {
  OpenbPod pod;
  HORUS_ASSIGN_OR_RETURN(pod.name, Text(row, "name"));
  HORUS_ASSIGN_OR_RETURN(pod.cpu_milli, Whole(row, "cpu_milli", kMaxAmount));
  HORUS_ASSIGN_OR_RETURN(pod.mem_mib, Whole(row, "memory_mib", kMaxAmount));
  HORUS_ASSIGN_OR_RETURN(const int64_t gpus, Whole(row, "num_gpu", kMaxDevicesPerNode));
  pod.gpus = static_cast<int32_t>(gpus);
  if (gpus == 0) return pod;  // its gpu_milli and gpu_spec say nothing
  HORUS_ASSIGN_OR_RETURN(const int64_t milli, Whole(row, "gpu_milli", kMilliPerGpu));
  pod.gpu_milli = static_cast<int32_t>(milli);
  if (milli == 0 || (gpus > 1 && milli < kMilliPerGpu)) {
    return row.Wrong("gpu_milli", gpus > 1 ? "1000 with several GPUs" : "1 to 1000 with a GPU", row.Find("gpu_milli"));
  }
  HORUS_ASSIGN_OR_RETURN(pod.spec, Text(row, "gpu_spec"));
  pod.models = Parts(pod.spec, '|');
  return pod;
}

template <typename One>
absl::StatusOr<std::vector<One>> ReadAll(std::string_view bytes, const std::string& file,
                                         std::initializer_list<std::string_view> wanted,
                                         absl::StatusOr<One> (*read)(const CsvRow&)) {
  HORUS_ASSIGN_OR_RETURN(const CsvTable table, ParseCsv(bytes, file));
  const CsvColumns columns = ColumnsOf(table);
  HORUS_RETURN_IF_ERROR(CheckHeader(columns, file, wanted));
  std::vector<One> all;
  all.reserve(table.rows.size());
  for (size_t i = 0; i < table.rows.size(); ++i) {
    HORUS_ASSIGN_OR_RETURN(One one, read(CsvRow(table, columns, i, file)));
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace

absl::StatusOr<OpenbPod> ReadOpenbPod(const CsvRow& row) { return ReadPod(row); }

absl::StatusOr<std::vector<OpenbNode>> ParseOpenbNodes(std::string_view bytes, const std::string& file) {
  return ReadAll<OpenbNode>(bytes, file, {"sn", "cpu_milli", "memory_mib", "gpu", "model"}, ReadNode);
}

absl::StatusOr<std::vector<OpenbPod>> ParseOpenbPods(std::string_view bytes, const std::string& file) {
  return ReadAll<OpenbPod>(bytes, file, {"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"}, ReadPod);
}

}  // namespace horus
