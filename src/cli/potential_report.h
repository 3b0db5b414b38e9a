// SPDX-License-Identifier: Apache-2.0
// What `horus potential` found out, before it is printed as text, JSON or CSV.
//
// Enters:  the potential by GPU type, and what of the inputs did not count.
// Leaves:  text for a terminal of 100 columns, JSON, one CSV row a case and bound.
// Units:   rates in GPUs of the case's reference type that work alone; gains and shares in per cent.
// Cost:    linear.                       Thread class: value, share freely.
#ifndef HORUS_CLI_POTENTIAL_REPORT_H_
#define HORUS_CLI_POTENTIAL_REPORT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "lab/bound/potential.h"

namespace horus::cli {

struct PotentialReport {
  SpeedTable table;
  std::string source;  // "measured", or the interference model
  size_t jobs = 0;     // rows of the mix that count
  uint32_t reference = 0;
  double clip_percentile = 100;
  double least_gain = 0;
  std::vector<double> quantiles_pct;
  std::vector<std::string> notes;  // what was left out
  std::vector<PotentialCase> cases;
};

[[nodiscard]] std::string PotentialText(const PotentialReport& report);
[[nodiscard]] std::string PotentialJson(const PotentialReport& report);
[[nodiscard]] std::string PotentialCsv(const PotentialReport& report);

}  // namespace horus::cli

#endif  // HORUS_CLI_POTENTIAL_REPORT_H_
