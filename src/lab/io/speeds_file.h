// SPDX-License-Identifier: Apache-2.0
// Measured speeds alone and in pairs, in Gavel's layout (gavel_file.h); and the mix of work that comes to a cluster.
//
// Enters:  throughput files, each with GPU types of its own; a trace of Gavel (traces/trace_file.h), known by its tabs,
//          or a CSV: profile, share.
// Leaves:  one table of all; jobs of its profiles; or "file.json: 'k80': ...: expected ..., found ...".
// Units:   steps a second; pairs as shares of the speed alone, above 1 (noise) taken as 1. Steps; shares in GPU time
//          alone on the reference type, any scale.
// Thread class: one thread at a time.
#pragma once

#include <map>
#include <tuple>
#include <utility>

#include "lab/io/gavel_file.h"
#include "lab/truth/speed_table.h"

namespace horus {

// Entries that are left out.
struct SpeedsSkipped {
  size_t no_alone = 0;  // pairs of which one has no speed alone
  size_t several = 0;   // of jobs on more than one GPU, which a table with gangs holds where they are alone
  friend bool operator==(const SpeedsSkipped&, const SpeedsSkipped&) = default;
};

class SpeedsReader {
 public:
  // RESOURCE_EXHAUSTED above kMostWorkTypes types or kMostWorkProfiles profiles of all files.
  // May be called for several files: each GPU type must be in one of them, since speeds of two campaigns are no table.
  [[nodiscard]] absl::Status Read(const std::string& path);
  [[nodiscard]] absl::Status Parse(const std::string& file, std::string_view text);

  // Types in the order read, profiles by name. With gangs, what is so fast alone on several GPUs is a profile too
  // (GangName); nobody measured it beside others.
  enum class Gangs : uint8_t { kLeftOut, kAlone };
  [[nodiscard]] SpeedTable Table(Gangs gangs = Gangs::kLeftOut) const;
  [[nodiscard]] const SpeedsSkipped& skipped() const { return skipped_; }

 private:
  using PairKey = std::tuple<size_t, uint32_t, uint32_t>;  // type, numbers in jobs_ of names that ascend
  struct Pair {
    double speed_first = 0, speed_second = 0;
    bool first_leads = true;  // as told: the entry of the first name
    bool mirrored = false;
  };

  [[nodiscard]] absl::Status AddPair(const std::string& file, size_t gpu, const GavelSpeeds& speeds,
                                     const GavelTogether& both);
  // A table has a cell for each type and profile, however few a file tells of.
  [[nodiscard]] absl::Status CheckSize(const std::string& file) const;

  std::vector<std::pair<std::string, std::string>> gpus_;  // name, and the file that told of it
  std::map<std::pair<size_t, std::string>, double> alone_;
  std::map<std::tuple<std::string, int32_t, size_t>, double> gangs_;  // name, GPUs, type
  std::map<std::string, uint32_t> jobs_;  // of pairs: a number each, so that a long name is kept once
  std::map<PairKey, Pair> pairs_;
  SpeedsSkipped skipped_;
};

// ---- The mix of work.

struct MixRow {
  std::string profile;
  double amount = 0;  // steps of a job, or a share
  size_t row = 0;     // of a table, from 1 after its header
};

struct MixFile {
  std::string file;
  bool is_trace = false;  // rows are jobs
  std::vector<MixRow> rows;
  size_t several = 0;  // jobs on more than one GPU, left out
};

[[nodiscard]] absl::StatusOr<MixFile> ParseMixFile(const std::string& file, std::string_view text);
[[nodiscard]] absl::StatusOr<MixFile> ReadMixFile(const std::string& path);

struct Mix {
  std::vector<MixJob> jobs;
  std::map<std::string, size_t> unknown;  // jobs of traces whose type the table does not have, left out
  size_t several = 0;                     // jobs on more than one GPU, left out
};

// A trace's job brings its steps; a share, that of UnitType(reference). INVALID_ARGUMENT: a share of a profile that the
// table lacks, or no job that it knows.
[[nodiscard]] absl::StatusOr<Mix> JoinMix(std::span<const MixFile> files, const SpeedTable& table, uint32_t reference);

}  // namespace horus
