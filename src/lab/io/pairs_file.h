// SPDX-License-Identifier: Apache-2.0
// Measured pairs: what two jobs cost each other on one GPU, by the names that a job table gives them.
//
// Enters:  CSV files of docs/measure.md, or JSON files in Gavel's layout (io/gavel_file.h); GPU types; names of jobs.
// Leaves:  pairs in file order, each once; or "pairs.csv: row 12: slowdown_a: expected ..., found ...".
// Units:   slowdown = step time shared / step time alone; NaN = not measured.
// Cost:    linear in the files; at most kMostPairRuns pairs.   Thread class: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/status.h"
#include "device/catalogue.h"
#include "device/sharing_mode.h"
#include "interference/model.h"

namespace horus {

struct NamedPair {
  GpuTypeId gpu;
  SharingMode mode = SharingMode::kTimeSlice;
  std::string job_a;
  std::string job_b;
  double slowdown_a = 0;  // of job_a beside job_b
  double slowdown_b = 0;
  std::string campaign;  // of a Gavel file: its name without folder and ".json"
  std::string where;     // "pairs.csv: row 12"
};

// Entries that are no pair, all of Gavel's layout.
struct PairsSkipped {
  size_t apart = 0;     // did not run together (both speeds 0)
  size_t no_alone = 0;  // one of the two has no speed alone
  size_t several = 0;   // on more than one GPU
  friend bool operator==(const PairsSkipped&, const PairsSkipped&) = default;
};

// (a, b) and (b, a) are one pair if they agree within so much: both may be rounded to two decimals. A chosen limit.
inline constexpr double kMirrorTolerance = 0.005;

class PairsReader {
 public:
  // Both must outlive the reader.
  PairsReader(const Catalogue& catalogue, std::vector<std::string> jobs);

  // May be called for several files: a pair must not be in two of them in the same campaign.
  [[nodiscard]] absl::Status Read(const std::string& path);
  [[nodiscard]] absl::Status Parse(const std::string& file, std::string_view text);

  [[nodiscard]] const std::vector<NamedPair>& pairs() const { return pairs_; }
  [[nodiscard]] const PairsSkipped& skipped() const { return skipped_; }

 private:
  using Key = std::tuple<GpuTypeId, SharingMode, std::string, std::string, std::string>;  // campaign, jobs ascending

  [[nodiscard]] absl::Status ParseTable(const std::string& file, std::string_view text);
  [[nodiscard]] absl::Status ParseGavel(const std::string& file, std::string_view text);
  [[nodiscard]] absl::Status CheckJob(const std::string& where, const char* column, const std::string& name) const;
  [[nodiscard]] absl::StatusOr<GpuTypeId> FindGpu(const std::string& where, std::string_view name) const;
  [[nodiscard]] absl::Status Add(NamedPair pair);

  const Catalogue& catalogue_;
  std::vector<std::string> jobs_;  // ascending
  std::vector<NamedPair> pairs_;
  struct Known {
    size_t position = 0;  // in pairs_
    bool mirrored = false;
  };
  std::map<Key, Known> known_;
  PairsSkipped skipped_;
};

// ---- Predicted slowdowns of two jobs on a GPU, by name: what a model says, kept in a file so that a simulation can
// believe it.

struct PredictedPair {
  std::string gpu;  // canonical type name
  SharingMode mode = SharingMode::kTimeSlice;
  std::string victim, other;
  double slowdown = 1;  // of the victim, at least 1
  double bound = 1;     // at least the slowdown
};

[[nodiscard]] std::string PredictedText(std::span<const PredictedPair> rows);

[[nodiscard]] absl::StatusOr<std::vector<PredictedPair>> ParsePredicted(const std::string& file, std::string_view text);
[[nodiscard]] absl::StatusOr<std::vector<PredictedPair>> ReadPredicted(const std::string& path);

// The rows as a model (TableModel without noise) over jobs known by the profile ids of `jobs`; rows of other jobs are
// left out, and pairs without a row answered by `fallback`. NOT_FOUND: a GPU type that the catalogue lacks.
[[nodiscard]] absl::StatusOr<std::shared_ptr<const InterferenceModel>> ModelOfPredicted(
    std::span<const PredictedPair> rows, const std::map<std::string, uint64_t>& jobs, const Catalogue& catalogue,
    std::shared_ptr<const InterferenceModel> fallback);

}  // namespace horus
