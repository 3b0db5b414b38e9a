// SPDX-License-Identifier: Apache-2.0
// From throughput files to slowdowns of pairs.
#include "bench/quality/pair_slowdowns.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/hash.h"
#include "lab/io/gavel_file.h"

namespace horus::bench {
namespace {

constexpr size_t kLeastJobs = 8;  // of a table that says something

PairSlowdowns TableOf(const GavelSpeeds& speeds, uint32_t gpu) {
  std::vector<double> alone(speeds.jobs.size(), 0);
  for (const GavelAlone& one : speeds.alone) {
    if (one.gpu == gpu) alone[one.job] = one.steps_per_s;
  }
  std::vector<std::vector<double>> slowdown(speeds.jobs.size(), std::vector<double>(speeds.jobs.size(), 0));
  for (const GavelTogether& two : speeds.together) {
    if (two.gpu != gpu) continue;
    const auto set = [&](uint32_t job, uint32_t other, double shared) {
      slowdown[job][other] = shared > 0 ? alone[job] / shared : kNeverTogether;
    };
    set(two.job, two.other, two.job_steps_per_s);
    set(two.other, two.job, two.other_steps_per_s);
  }
  PairSlowdowns table{.gpu = speeds.gpus[gpu], .jobs = {}, .slowdown = {}};
  std::vector<size_t> kept;
  for (size_t job = 0; job < alone.size(); ++job) {
    const bool any = std::any_of(slowdown[job].begin(), slowdown[job].end(), [](double one) { return one > 0; });
    if (alone[job] > 0 && any) kept.push_back(job);
  }
  for (const size_t job : kept) {
    table.jobs.push_back(speeds.jobs[job]);
    std::vector<double> row;
    for (const size_t other : kept) {
      const double one = slowdown[job][other];
      row.push_back(one <= 0 ? kNeverTogether : std::clamp(one, 0.5, kNeverTogether));
    }
    table.slowdown.push_back(std::move(row));
  }
  return table;
}

}  // namespace

std::vector<PairSlowdowns> ReadPairSlowdowns(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code ignored;
  for (auto at = std::filesystem::recursive_directory_iterator(folder, ignored);
       at != std::filesystem::recursive_directory_iterator(); at.increment(ignored)) {
    if (at->path().extension() == ".json") files.push_back(at->path().string());
  }
  std::sort(files.begin(), files.end());
  std::vector<PairSlowdowns> tables;
  for (const std::string& file : files) {
    std::ifstream in(file, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const auto speeds = ParseGavelSpeeds(file, text);
    if (!speeds.ok()) continue;
    for (uint32_t gpu = 0; gpu < speeds->gpus.size(); ++gpu) {
      PairSlowdowns table = TableOf(*speeds, gpu);
      if (table.jobs.size() >= kLeastJobs) tables.push_back(std::move(table));
    }
  }
  return tables;
}

PairSlowdowns MadeUpPairSlowdowns() {
  constexpr size_t kJobs = 16;
  PairSlowdowns table{.gpu = "made_up", .jobs = {}, .slowdown = {}};
  const auto draw = [](uint64_t seed) { return static_cast<double>(Mix64(seed) % 1000) / 1000; };
  for (size_t i = 0; i < kJobs; ++i) {
    table.jobs.push_back("job" + std::to_string(i));
    std::vector<double> row;
    for (size_t j = 0; j < kJobs; ++j) {
      const double clash = draw(1000 + i * kJobs + j) < 0.2 ? 0.4 : 0;
      row.push_back(1 + 0.6 * draw(i) * draw(j) + clash * draw(2000 + j));
    }
    table.slowdown.push_back(std::move(row));
  }
  return table;
}

}  // namespace horus::bench
