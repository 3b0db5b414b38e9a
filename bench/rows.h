// SPDX-License-Identifier: Apache-2.0
// Rows: what a benchmark found, in the form that scripts/bench collects.
//
// Enters:  Google Benchmark runs (their counters), or rows added by hand.
// Leaves:  one JSON object a line in the file named by --rows.
// Units:   each row carries its own.
// Cost:    none while timing.            Thread class: one thread.
#ifndef HORUS_BENCH_ROWS_H_
#define HORUS_BENCH_ROWS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace horus::bench {

struct Row {
  std::string metric;
  double value = 0;
  std::string unit;
  double aim = 0;  // 0 = none stated
  bool lower_is_better = true;
  std::string baseline;  // what stands beside it, e.g. "exhaustive scan 812 us"
  std::string protocol;  // how it was measured
};

struct Options {
  bool smoke = false;  // the smallest size that still says something; never read its times
  std::string data;    // folder of measured data; empty = none given
  std::string rows;    // file to write; empty = standard output
  std::string only;    // part to measure, where a benchmark names its parts; empty = all
};

// Parses --smoke, --data DIR, --rows FILE, --only PART, calls `measure` and writes its rows. Returns the exit status:
// 2 for bad arguments, 1 when no row came out or the file cannot be written.
int Main(int argc, char** argv, const std::function<void(const Options&, std::vector<Row>*)>& measure);

// The q-quantile (0-1) of `values` by linear interpolation; `values` must not be empty.
[[nodiscard]] double Quantile(std::vector<double> values, double q);

}  // namespace horus::bench

#endif  // HORUS_BENCH_ROWS_H_
