// SPDX-License-Identifier: Apache-2.0
// potential: by how much sharing could raise the work rate of a trace at best, per GPU type, bound and reading of the
// mix; and how long the linear program takes.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/hash.h"
#include "bench/quality/pair_slowdowns.h"
#include "bench/rows.h"
#include "lab/bound/potential.h"
#include "lab/io/speeds_file.h"

namespace horus::bench {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();
constexpr double kWhole = 100;  // percentile: no job is clipped
constexpr double kClipped = 99;
constexpr double kGpusOfEach = 64;  // of a mixed cluster
const std::vector<double> kBounds = {1.25, 1.5, 2, 2.5, kNone};

struct Data {
  SpeedTable table;
  std::vector<MixJob> jobs;
  std::string source;  // for protocols
};

std::vector<std::string> FilesBelow(const std::string& folder, const char* extension) {
  std::vector<std::string> files;
  std::error_code ignored;
  for (auto at = std::filesystem::recursive_directory_iterator(folder, ignored);
       at != std::filesystem::recursive_directory_iterator(); at.increment(ignored)) {
    if (at->path().extension() == extension) files.push_back(at->path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The folder of traces with the most jobs whose speeds are known.
Data ReadData(const std::string& folder) {
  SpeedsReader reader;
  for (const std::string& file : FilesBelow(folder, ".json")) {
    const absl::Status status = reader.Read(file);
    if (!status.ok()) std::fprintf(stderr, "potential: passed over: %s\n", std::string(status.message()).c_str());
  }
  Data data{.table = reader.Table(), .jobs = {}, .source = {}};
  std::map<std::string, std::vector<MixFile>> traces;
  for (const std::string& file : FilesBelow(folder, ".trace")) {
    const auto mix = ReadMixFile(file);
    if (mix.ok()) traces[std::filesystem::path(file).parent_path().filename().string()].push_back(*mix);
  }
  for (const auto& [name, files] : traces) {
    if (data.table.profiles.empty()) break;
    const auto mix = JoinMix(files, data.table, 0);
    if (!mix.ok() || mix->jobs.size() <= data.jobs.size()) continue;
    data.jobs = mix->jobs;
    data.source = absl::StrFormat("%d single-GPU jobs of %d measured types of the traces in %s", data.jobs.size(),
                                  data.table.profiles.size(), name);
  }
  return data;
}

Data MadeUpData() {
  const PairSlowdowns made_up = MadeUpPairSlowdowns();
  Data data{.table = {.profiles = made_up.jobs, .gpus = {made_up.gpu}, .alone = {}, .pairs = {}},
            .jobs = {},
            .source = "made-up pairs (no speeds and traces under --data), jobs alike"};
  data.table.alone.assign(made_up.jobs.size(), 1);
  for (uint32_t a = 0; a < made_up.jobs.size(); ++a) {
    data.jobs.push_back({a, 1});
    for (uint32_t b = a; b < made_up.jobs.size(); ++b) {
      data.table.pairs.push_back({0, a, b, 1 / made_up.slowdown[a][b], 1 / made_up.slowdown[b][a]});
    }
  }
  return data;
}

[[noreturn]] void Stop(const absl::Status& status) {
  std::fprintf(stderr, "potential: %s\n", status.ToString().c_str());
  std::exit(1);
}

std::vector<PotentialCase> Ask(const SpeedTable& table, const std::vector<MixJob>& jobs, double percentile,
                               const std::vector<double>& bounds) {
  const std::vector<double> gpus(table.gpus.size(), kGpusOfEach);
  auto cases = PotentialOfCluster(table, jobs, gpus, 0, percentile,
                                  {.slowdown_bounds = bounds, .other_units = ProfilesOfOtherUnits(table)});
  if (!cases.ok()) Stop(cases.status());
  return *std::move(cases);
}

std::string BoundSuffix(double bound) {
  if (bound == kNone) return "";
  std::string suffix = absl::StrFormat("_at_%g", bound);
  std::replace(suffix.begin(), suffix.end(), '.', '_');
  return suffix;
}

// Jobs as others might weigh them: each alike in time on `gpu`, each type alike, or by steps.
std::vector<MixJob> Weighed(const Data& data, uint32_t gpu, const std::string& reading) {
  std::vector<MixJob> jobs = data.jobs;
  std::vector<bool> seen(data.table.profiles.size(), false);
  for (MixJob& job : jobs) {
    const double second = data.table.Alone(gpu, job.profile);
    if (reading == "by_steps") {
      job.progress *= second;
    } else {
      job.progress = reading == "types_alike" && seen[job.profile] ? 0 : second;
    }
    seen[job.profile] = true;
  }
  return jobs;
}

// What another reading of the mix would say, so that figures of others can be recognised.
void AddReadings(const Data& data, const PotentialCase& one, std::vector<Row>* rows) {
  struct Reading {
    const char* suffix;
    double percentile;
    const char* meaning;
  };
  const Reading readings[] = {{"clipped_p99", kClipped, "GPU time, jobs clipped at percentile 99"},
                              {"jobs_alike", kWhole, "number of jobs, as if all took the same GPU time"},
                              {"types_alike", kWhole, "every job type the same GPU time"},
                              {"by_steps", kWhole, "steps, though those of two types are not comparable"}};
  for (const Reading& reading : readings) {
    const bool same = std::string(reading.suffix) == "clipped_p99";
    const std::vector<MixJob> jobs = same ? data.jobs : Weighed(data, *one.gpu, reading.suffix);
    for (const PotentialCase& found : Ask(data.table, jobs, reading.percentile, {1.5, kNone})) {
      if (found.gpu != one.gpu || !found.potential) continue;
      rows->push_back({absl::StrFormat("potential_gain_%s_%s_pct", data.table.gpus[*one.gpu], reading.suffix),
                       100 * found.potential->at[1].gain, "%", 0, false,
                       absl::StrFormat("at 1.5: %.4g %%", 100 * found.potential->at[0].gain),
                       absl::StrFormat("%s; mix by %s", data.source, reading.meaning)});
    }
  }
}

void AddCase(const Data& data, const PotentialCase& one, std::vector<Row>* rows) {
  if (!one.potential) return;
  const std::string name = one.gpu ? data.table.gpus[*one.gpu] : "all";
  const std::string where = one.gpu ? "each GPU of type " + name : absl::StrFormat("%g GPUs of each type", kGpusOfEach);
  for (const PotentialAtBound& at : one.potential->at) {
    rows->push_back(
        {absl::StrFormat("potential_gain_%s%s_pct", name, BoundSuffix(at.slowdown_bound)), 100 * at.gain, "%", 0, false,
         absl::StrFormat("admits %d of %d pairs, %.3g %% by mix; makespan %.3g %% shorter; %s", at.admitted,
                         one.potential->run, 100 * at.admitted_of_mix, 100 * at.makespan_cut,
                         at.pays ? "can pay" : "does not pay"),
         absl::StrFormat(
             "%s; mix by GPU time alone; bound of the linear program on the work rate over exclusive use, %s",
             data.source, where)});
  }
}

// Random speeds; equal on every machine.
WorkProblem MadeUpProblem(uint32_t profiles, uint32_t types) {
  uint64_t drawn = 0;
  const auto draw = [&drawn] { return static_cast<double>(Mix64(drawn++) % 1'000'000) / 1e6; };
  WorkProblem problem;
  problem.gpus.assign(types, 1000);
  std::vector<double> loads;
  for (uint32_t k = 0; k < profiles; ++k) {
    problem.mix.push_back(0.1 + draw());
    loads.push_back(0.2 + 0.8 * draw());
  }
  for (uint32_t gpu = 0; gpu < types; ++gpu) {
    for (uint32_t k = 0; k < profiles; ++k) problem.alone.push_back((1 + gpu) * (0.5 + draw()));
    for (uint32_t a = 0; a < profiles; ++a) {
      for (uint32_t b = a; b < profiles; ++b) {
        const double slowed = std::max(1.0, loads[a] + loads[b]);
        problem.pairs.push_back({gpu, a, b, std::min(1.0, 1 / (slowed * (0.9 + 0.3 * draw()))),
                                 std::min(1.0, 1 / (slowed * (0.9 + 0.3 * draw())))});
      }
    }
  }
  return problem;
}

void AddTime(uint32_t profiles, uint32_t types, std::vector<Row>* rows) {
  const WorkProblem problem = MadeUpProblem(profiles, types);
  const std::clock_t start = std::clock();
  const auto rate = WorkRateBound(problem);
  const double took_ms = 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  if (!rate.ok()) Stop(rate.status());
  rows->push_back({absl::StrFormat("potential_solve_ms_%dx%d", profiles, types), took_ms, "ms", 0, true, "",
                   absl::StrFormat("WorkRateBound of %d profiles on %d GPU types, %d made-up pairs, no bound; both "
                                   "programs and the check, CPU time, one run",
                                   profiles, types, problem.pairs.size())});
}

// Each profile's speed grows with cores to its own limit; the fair share is 3 of 6 cells.
void AddHosts(uint32_t cells, WorkProblem& problem) {
  constexpr int64_t kNodeGpus = 8;
  HostResources hosts;
  for (const double gpus : problem.gpus) {
    const HostShare fair = {3000, 64'000};
    hosts.types.push_back({.cpu_milli = gpus * static_cast<double>(fair.cpu_milli),
                           .mem_mib = gpus * static_cast<double>(fair.mem_mib),
                           .fair = fair,
                           .most = {kNodeGpus * fair.cpu_milli, kNodeGpus * fair.mem_mib}});
  }
  for (uint32_t k = 0; k < problem.mix.size(); ++k) {
    HostsOfProfile& profile = hosts.profiles.emplace_back();
    const double power = 0.2 + 0.8 * static_cast<double>(Mix64(~uint64_t{k}) % 1000) / 1000;
    for (int64_t cores = 1; cores <= cells; ++cores) {
      profile.cells.push_back({{cores * 1000, cores * 8000}, std::pow(static_cast<double>(cores) / 3, power)});
    }
    profile.best = profile.cells.back().speed;
  }
  problem.hosts = std::move(hosts);
}

void AddHostsTime(uint32_t profiles, uint32_t types, uint32_t cells, std::vector<Row>* rows) {
  WorkProblem problem = MadeUpProblem(profiles, types);
  AddHosts(cells, problem);
  const std::clock_t start = std::clock();
  const auto rate = WorkRateBound(problem);
  const double took_ms = 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  if (!rate.ok()) Stop(rate.status());
  rows->push_back(
      {absl::StrFormat("potential_hosts_ms_%dx%d%s", profiles, cells, types > 1 ? absl::StrFormat("x%d", types) : ""),
       took_ms, "ms", 0, true,
       absl::StrFormat("exclusive 1, resized %.4g, shared %.4g, both %.4g", rate->resizing->rate / rate->exclusive,
                       rate->bound / rate->exclusive, rate->both->rate / rate->exclusive),
       absl::StrFormat(
           "WorkRateBound of %d profiles with %d cells each of cores and memory on %d GPU types, %d made-up "
           "pairs, no bound; four programs and the checks, CPU time, one run",
           profiles, cells, types, problem.pairs.size())});
}

void Measure(const Options& options, std::vector<Row>* rows) {
  Data data;
  if (!options.data.empty()) data = ReadData(options.data);
  const bool measured = !data.jobs.empty();
  if (!measured) data = MadeUpData();
  WorkProblem probe{.gpus = {1}, .mix = {1}, .alone = {1}, .pairs = {}};
  const auto solved = WorkRateBound(probe);  // loads the library, so that no time has that in it
  if (!solved.ok()) {
    if (!absl::IsUnavailable(solved.status())) Stop(solved.status());
    std::fprintf(stderr, "potential: no figures: %s\n", solved.status().ToString().c_str());
    rows->push_back({"potential_has_solver", 0, "1 = yes", 0, false, "", "whether libhorus_lp.so was found"});
    return;
  }
  for (const PotentialCase& one : Ask(data.table, data.jobs, kWhole, kBounds)) {
    AddCase(data, one, rows);
    if (measured && one.gpu && one.potential) AddReadings(data, one, rows);
  }
  AddTime(22, 1, rows);
  AddHostsTime(22, 1, 6, rows);
  if (options.smoke) return;
  for (const uint32_t profiles : {50, 100, 200}) AddTime(profiles, 5, rows);
  AddHostsTime(50, 5, 6, rows);
}

}  // namespace
}  // namespace horus::bench

int main(int argc, char** argv) { return horus::bench::Main(argc, argv, horus::bench::Measure); }
