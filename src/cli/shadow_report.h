// SPDX-License-Identifier: Apache-2.0
// What a replay found, for people, programs and Prometheus.
//
// Enters:  totals and records.           Leaves: text, JSON, CSV lines, Prometheus text exposition 0.0.4.
// Units:   in the names.
// Cost:    linear in what is printed.    Thread class: pure functions.
#ifndef HORUS_CLI_SHADOW_REPORT_H_
#define HORUS_CLI_SHADOW_REPORT_H_

#include <functional>
#include <string>

#include "cli/shadow_replay.h"

namespace horus::cli {

struct ShadowNames {
  std::function<std::string(NodeId)> node;
  std::function<std::string(JobId)> job;
};

[[nodiscard]] std::string ShadowText(const ShadowTotals& totals, const std::string& policy);
[[nodiscard]] std::string ShadowJson(const ShadowTotals& totals, const std::string& policy,
                                     const std::string& interference);
[[nodiscard]] std::string ShadowMetrics(const ShadowTotals& totals);

[[nodiscard]] std::string RecordHeader();  // of RecordCsv, with its newline
[[nodiscard]] std::string RecordCsv(const ShadowRecord& record, const ShadowNames& names);
[[nodiscard]] std::string RecordJson(const ShadowRecord& record, const ShadowNames& names);  // one line

}  // namespace horus::cli

#endif  // HORUS_CLI_SHADOW_REPORT_H_
