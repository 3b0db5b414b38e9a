// SPDX-License-Identifier: Apache-2.0
// Fuzz target: reads any bytes as one of the smaller files, of the kind that the first byte names; what is accepted is
// finite, in range and, where it can be written, the same after writing and reading.
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "bench/quality/openb.h"
#include "io/decision_log.h"
#include "io/gpu_file.h"
#include "io/sensitivity_file.h"
#include "lab/io/dataset_file.h"
#include "lab/io/pairs_file.h"
#include "lab/io/speeds_file.h"

namespace {

using horus::Catalogue;

void Demand(bool holds) {
  if (!holds) std::abort();
}

void Refused(const absl::Status& status) { Demand(!status.message().empty()); }

void Gpus(std::string_view text) {
  const auto base = Catalogue::Default();
  const auto read =
      horus::ParseGpuFile("fuzz", std::string(text), *base, {.max_bytes = size_t{1} << 16, .max_values = 10'000});
  if (!read.ok()) return Refused(read.status());
  Demand((*read)->size() >= base->size() && (*read)->size() <= Catalogue::kMaxTypes);
}

void Speeds(std::string_view text) {
  horus::SpeedsReader reader;
  if (const absl::Status status = reader.Parse("fuzz", text); !status.ok()) return Refused(status);
  for (const auto gangs : {horus::SpeedsReader::Gangs::kLeftOut, horus::SpeedsReader::Gangs::kAlone}) {
    const horus::SpeedTable table = reader.Table(gangs);
    Demand(table.alone.size() == table.gpus.size() * table.profiles.size());
    for (const double speed : table.alone) Demand(std::isfinite(speed) && speed >= 0);
    for (const horus::PairSpeed& pair : table.pairs) {
      Demand(pair.gpu < table.gpus.size() && pair.a < table.profiles.size() && pair.b < table.profiles.size());
      Demand(pair.speed_a >= 0 && pair.speed_a <= 1 && pair.speed_b >= 0 && pair.speed_b <= 1);
    }
  }
}

void Mix(std::string_view text) {
  const auto mix = horus::ParseMixFile("fuzz", text);
  if (!mix.ok()) return Refused(mix.status());
  for (const horus::MixRow& row : mix->rows) Demand(std::isfinite(row.amount) && row.amount >= 0);
}

void Predicted(std::string_view text) {
  const auto rows = horus::ParsePredicted("fuzz", text);
  if (!rows.ok()) return Refused(rows.status());
  for (const horus::PredictedPair& row : *rows) Demand(row.slowdown >= 1 && !(row.bound < row.slowdown));
  const std::string written = horus::PredictedText(*rows);
  const auto again = horus::ParsePredicted("again", written);
  Demand(again.ok() && again->size() == rows->size() && horus::PredictedText(*again) == written);
}

void Sensitivities(std::string_view text) {
  const auto read = horus::ParseSensitivities("fuzz", text);
  if (!read.ok()) return Refused(read.status());
  for (const auto& [profile, shared] : *read) {
    const horus::Sensitivity* matrix = shared.get();
    Demand(matrix != nullptr && matrix->speeds().size() == matrix->cpu_milli().size() * matrix->mem_mib().size());
    for (const float speed : matrix->speeds()) Demand(std::isfinite(speed) && speed >= 0);
  }
}

void JobTable(std::string_view text) {
  const auto jobs = horus::ParseJobTable("fuzz", text);
  if (!jobs.ok()) return Refused(jobs.status());
  Demand(jobs->size() <= horus::kMostTableJobs);
  for (const horus::TableJob& job : *jobs) Demand(!job.name.empty());
}

void OpenbNodes(std::string_view text) {
  const auto nodes = horus::ParseOpenbNodes(text, "fuzz");
  if (!nodes.ok()) return Refused(nodes.status());
  for (const horus::OpenbNode& node : *nodes) Demand(node.cpu_milli >= 0 && node.mem_mib >= 0 && node.gpus >= 0);
}

void OpenbPods(std::string_view text) {
  const auto pods = horus::ParseOpenbPods(text, "fuzz");
  if (!pods.ok()) return Refused(pods.status());
  for (const horus::OpenbPod& pod : *pods) Demand(pod.cpu_milli >= 0 && pod.gpus >= 0 && pod.gpu_milli >= 0);
}

// Reads from a path alone: a file without a name.
void Decisions(std::string_view text) {
  const int file = memfd_create("decisions", MFD_CLOEXEC);
  Demand(file >= 0 && write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  auto log = horus::DecisionLog::Open("/proc/self/fd/" + std::to_string(file));
  close(file);
  if (!log.ok()) return Refused(log.status());
  horus::LogEntry entry;
  for (size_t calls = 0;; ++calls) {
    Demand(calls <= text.size());  // each call leaves a line behind
    const auto more = log->Next(entry);
    if (!more.ok()) {
      Refused(more.status());
      continue;
    }
    if (!*more) break;
    Demand(entry.time_s >= 0 && entry.time_s <= horus::kMaxLogSeconds);
    Demand(entry.nodes.size() == entry.devices.size());
  }
  Demand(log->bytes_read() <= text.size() + 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static constexpr void (*kReaders[])(std::string_view) = {Gpus,     Speeds,     Mix,       Predicted, Sensitivities,
                                                           JobTable, OpenbNodes, OpenbPods, Decisions};
  if (size == 0) return 0;
  kReaders[data[0] % std::size(kReaders)]({reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}
