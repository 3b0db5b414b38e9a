// SPDX-License-Identifier: Apache-2.0
// Reads a job's run from a row.
#include "lab/io/run_columns.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "base/file.h"

namespace horus {
namespace {

// "seq=128; tgt_seq=32"
absl::Status ReadDims(const CsvRow& row, DimBindings& dims) {
  std::string_view rest = row.Find("dims");
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(';'), rest.size());
    std::string_view one = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    while (!one.empty() && one.front() == ' ') one.remove_prefix(1);
    while (!one.empty() && one.back() == ' ') one.remove_suffix(1);
    if (one.empty()) continue;
    const size_t equals = one.find('=');
    int64_t size = 0;
    const bool named = equals != std::string_view::npos && equals > 0;
    const std::string_view number = named ? one.substr(equals + 1) : std::string_view();
    const auto [stop, error] = std::from_chars(number.data(), number.data() + number.size(), size);
    if (!named || error != std::errc() || stop != number.data() + number.size() || size < 1 || size > kMaxCsvCount) {
      return row.Wrong("dims", "NAME=SIZE;NAME=SIZE with sizes from 1", one);
    }
    dims.dims.emplace_back(std::string(one.substr(0, equals)), size);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelRun> ReadModelRun(const CsvRow& row, const std::string& file) {
  ModelRun model;
  const std::string_view graph = row.Find("graph");
  if (graph.size() > kMaxPathBytes) return row.Wrong("graph", "a path of at most 4096 bytes", graph);
  if (!graph.empty()) model.path = PathBeside(file, std::string(graph));
  RunSpec& run = model.run;
  HORUS_RETURN_IF_ERROR(row.ReadCount("batch", 1, run.dims.batch));
  HORUS_RETURN_IF_ERROR(ReadDims(row, run.dims));
  HORUS_RETURN_IF_ERROR(row.ReadName("mode", ParseRunMode, run.mode));
  HORUS_RETURN_IF_ERROR(row.ReadName("precision", ParsePrecision, run.precision));
  HORUS_RETURN_IF_ERROR(row.ReadName("optimizer", ParseOptimizer, run.optimizer));
  HORUS_RETURN_IF_ERROR(row.ReadName("framework", ParseFramework, run.framework));
  HORUS_RETURN_IF_ERROR(row.ReadCount("checkpoint_segments", 0, run.checkpoint_segments));
  HORUS_RETURN_IF_ERROR(row.ReadCount("replicas", 1, run.data_parallel));
  return model;
}

absl::StatusOr<std::string> ReadFamily(const CsvRow& row) {
  HORUS_ASSIGN_OR_RETURN(std::string family, row.Label("family"));
  if (family.empty()) return row.Wrong("family", "the name of the model family", "");
  return family;
}

}  // namespace horus
