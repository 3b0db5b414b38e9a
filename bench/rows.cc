// SPDX-License-Identifier: Apache-2.0
// Command line and row output shared by all benchmark programs.
#include "bench/rows.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

namespace horus::bench {
namespace {

nlohmann::ordered_json ToJson(const Row& row) {
  nlohmann::ordered_json json;
  json["metric"] = row.metric;
  json["value"] = row.value;
  json["unit"] = row.unit;
  json["aim"] = row.aim == 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(row.aim);
  json["better"] = row.lower_is_better ? "lower" : "higher";
  json["baseline"] = row.baseline;
  json["protocol"] = row.protocol;
  return json;
}

}  // namespace

int Main(int argc, char** argv, const std::function<void(const Options&, std::vector<Row>*)>& measure) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const bool has_value = i + 1 < argc;
    if (argument == "--smoke") {
      options.smoke = true;
    } else if (argument == "--data" && has_value) {
      options.data = argv[++i];
    } else if (argument == "--rows" && has_value) {
      options.rows = argv[++i];
    } else if (argument == "--only" && has_value) {
      options.only = argv[++i];
    } else {
      std::fprintf(stderr, "usage: %s [--smoke] [--data DIR] [--rows FILE] [--only PART]\n", argv[0]);
      return 2;
    }
  }
  std::vector<Row> rows;
  measure(options, &rows);
  std::ofstream file;
  if (!options.rows.empty()) file.open(options.rows);
  std::ostream& out = options.rows.empty() ? std::cout : file;
  for (const Row& row : rows) out << ToJson(row).dump() << '\n';
  out.flush();
  if (rows.empty() || !out) {
    std::fprintf(stderr, "%s: %s\n", argv[0], rows.empty() ? "no rows" : "cannot write the rows");
    return 1;
  }
  return 0;
}

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double position = q * static_cast<double>(values.size() - 1);
  const size_t low = static_cast<size_t>(std::floor(position));
  const size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (position - static_cast<double>(low)) * (values[high] - values[low]);
}

}  // namespace horus::bench
