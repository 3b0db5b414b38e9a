// SPDX-License-Identifier: Apache-2.0
// Measured speeds alone and in pairs, for the simulator: throughput files in Gavel's layout (gavel_file.h).
//
// Enters:  files, each with GPU types of its own.
// Leaves:  one table of all; or "file.json: 'k80': ...: expected ..., found ...".
// Units:   steps a second; pairs as shares of the speed alone, above 1 (noise) taken as 1.
// Thread class: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/status.h"
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

}  // namespace horus
