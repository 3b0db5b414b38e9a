// SPDX-License-Identifier: Apache-2.0
// The table of metrics, and Student's intervals.
#include "lab/grid_metrics.h"

#include <array>
#include <cmath>
#include <limits>

namespace horus {
namespace {

constexpr double kUsPerS = 1e6;
constexpr double kPct = 100;
constexpr double kLeastBaseline = 1e-9;  // of a difference from it: below is what rounding leaves of 0; chosen
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

using M = SimMetrics;
constexpr auto kLower = Better::kLower;
constexpr auto kHigher = Better::kHigher;
constexpr auto kNeither = Better::kNeither;

double Count(uint64_t count) { return static_cast<double>(count); }

constexpr auto kMetrics = std::to_array<GridMetric>({
    {"jobs", kNeither, [](const M& m) { return Count(m.jobs); }},
    {"finished", kHigher, [](const M& m) { return Count(m.finished); }},
    {"running", kNeither, [](const M& m) { return Count(m.running); }},
    {"waiting", kLower, [](const M& m) { return Count(m.waiting); }},
    {"rejected", kLower, [](const M& m) { return Count(m.rejected); }},
    {"failures", kLower, [](const M& m) { return Count(m.failures); }},
    {"makespan_s", kLower, [](const M& m) { return static_cast<double>(m.makespan_us) / kUsPerS; }},
    {"jct_mean_s", kLower, [](const M& m) { return m.jct_us.mean / kUsPerS; }},
    {"jct_p50_s", kLower, [](const M& m) { return m.jct_us.p50 / kUsPerS; }},
    {"jct_p95_s", kLower, [](const M& m) { return m.jct_us.p95 / kUsPerS; }},
    {"jct_p99_s", kLower, [](const M& m) { return m.jct_us.p99 / kUsPerS; }},
    {"jct_to_horizon_mean_s", kLower, [](const M& m) { return m.jct_to_horizon_us.mean / kUsPerS; }},
    {"jct_to_horizon_p95_s", kLower, [](const M& m) { return m.jct_to_horizon_us.p95 / kUsPerS; }},
    {"wait_mean_s", kLower, [](const M& m) { return m.wait_us.mean / kUsPerS; }},
    {"wait_p50_s", kLower, [](const M& m) { return m.wait_us.p50 / kUsPerS; }},
    {"wait_p95_s", kLower, [](const M& m) { return m.wait_us.p95 / kUsPerS; }},
    {"wait_p99_s", kLower, [](const M& m) { return m.wait_us.p99 / kUsPerS; }},
    {"slowdown_mean", kLower, [](const M& m) { return m.slowdown.mean; }},
    {"slowdown_p50", kLower, [](const M& m) { return m.slowdown.p50; }},
    {"slowdown_p95", kLower, [](const M& m) { return m.slowdown.p95; }},
    {"slowdown_p99", kLower, [](const M& m) { return m.slowdown.p99; }},
    {"above_bound_pct", kLower, [](const M& m) { return m.above_bound * kPct; }},
    {"allocation_pct", kHigher, [](const M& m) { return m.allocation * kPct; }},
    {"useful_pct", kHigher, [](const M& m) { return m.useful * kPct; }},
    {"work_rate", kHigher, [](const M& m) { return m.work_rate; }},
    {"backlog_rate", kHigher, [](const M& m) { return m.backlog_rate; }},
    {"bound_rate", kNeither, [](const M& m) { return m.bound_rate > 0 ? m.bound_rate : kNone; }},
    {"gap_closed", kHigher, [](const M& m) { return m.gap_closed.value_or(kNone); }},
    {"backlog_s", kLower, [](const M& m) { return static_cast<double>(m.backlog_us) / kUsPerS; }},
    {"most_done_s", kLower,
     [](const M& m) { return m.most_done_us < 0 ? kNone : static_cast<double>(m.most_done_us) / kUsPerS; }},
    {"preemptions", kNeither, [](const M& m) { return Count(m.preemptions); }},
    {"migrations", kNeither, [](const M& m) { return Count(m.migrations); }},
    {"interruptions", kLower, [](const M& m) { return Count(m.interruptions); }},
    {"restarts", kNeither, [](const M& m) { return Count(m.restarts); }},
    {"out_of_memory", kLower, [](const M& m) { return Count(m.out_of_memory); }},
    {"fairness_rho_mean", kLower, [](const M& m) { return m.finish_time_fairness.mean; }},
    {"fairness_rho_p99", kLower, [](const M& m) { return m.finish_time_fairness.p99; }},
    {"jain", kHigher, [](const M& m) { return m.jain; }},
    {"fragmentation_pct", kLower, [](const M& m) { return m.fragmentation * kPct; }},
    {"belief_error", kLower, [](const M& m) { return m.belief_error; }},
});

// To two and a half digits beyond what is printed; Abramowitz and Stegun, Handbook of Mathematical Functions, table
// 26.10.
constexpr std::array<double, 10> kT975 = {12.7062, 4.30265, 3.18245, 2.77645, 2.57058,
                                          2.44691, 2.36462, 2.30600, 2.26216, 2.22814};
constexpr double kZ975 = 1.959963985;  // of the normal distribution

}  // namespace

std::span<const GridMetric> GridMetrics() { return kMetrics; }

std::optional<size_t> FindGridMetric(std::string_view name) {
  for (size_t i = 0; i < kMetrics.size(); ++i) {
    if (kMetrics[i].name == name) return i;
  }
  return std::nullopt;
}

double StudentT975(size_t degrees_of_freedom) {
  if (degrees_of_freedom == 0) return std::numeric_limits<double>::quiet_NaN();
  if (degrees_of_freedom <= kT975.size()) return kT975[degrees_of_freedom - 1];
  // Cornish and Fisher's expansion (26.7.5 there): within 1e-5 from 10 degrees on.
  const auto n = static_cast<double>(degrees_of_freedom);
  const double z = kZ975, z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n);
}

std::optional<double> PairedMean::OfBaseline(double amount) const {
  const double size = std::abs(baseline);
  const bool counts = std::isfinite(size) && size > kLeastBaseline * std::abs(difference);
  return counts ? std::optional(amount / size) : std::nullopt;
}

PairedMean ComparePaired(std::span<const double> values, std::span<const double> baseline) {
  const auto n = static_cast<double>(values.size());
  PairedMean paired;
  for (size_t i = 0; i < values.size(); ++i) {
    paired.mean += values[i] / n;
    paired.baseline += baseline[i] / n;
    paired.difference += (values[i] - baseline[i]) / n;
  }
  double squares = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double off = values[i] - baseline[i] - paired.difference;
    squares += off * off;
  }
  paired.half_width = values.size() < 2 ? std::numeric_limits<double>::quiet_NaN()
                                        : StudentT975(values.size() - 1) * std::sqrt(squares / (n - 1) / n);
  return paired;
}

}  // namespace horus
