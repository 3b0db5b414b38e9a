// SPDX-License-Identifier: Apache-2.0
// Soak: so many random calls on a cluster of so many GPUs; memory must stay flat, and all that calls.h checks must
// hold.
//   soak [--calls N] [--gpus N] [--seed N] [--check-every N] [--progress]
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "calls/harness.h"

namespace {

using horus::calls::CallCount;
using horus::calls::Choices;
using horus::calls::Harness;
using horus::calls::HarnessOptions;
using Clock = std::chrono::steady_clock;

constexpr uint32_t kDevices = 8;
constexpr uint64_t kSamples = 200;  // of the resident memory
// Memory is flat when the second half of the run needs at most so much more than the first.
constexpr double kGrowthShare = 0.05;
constexpr double kGrowthMib = 8;
// Shorter runs are still filling their caches in the second half.
constexpr uint64_t kCallsToBeFlat = 10'000'000;
// Of the placer: small, so that they are full early and what grows then is no cache.
constexpr uint64_t kCacheBytes = uint64_t{16} << 20;

struct Run {
  uint64_t calls = 100'000;
  uint64_t gpus = 1'000;
  uint64_t seed = 1;
  uint64_t check_every = 20'000;
  bool progress = false;
};

[[noreturn]] void Usage() {
  std::fprintf(stderr, "soak [--calls N] [--gpus N] [--seed N] [--check-every N] [--progress]\n");
  std::exit(2);
}

Run Parse(int argc, char** argv) {
  Run run;
  const std::map<std::string_view, uint64_t*> numbers = {
      {"--calls", &run.calls}, {"--gpus", &run.gpus}, {"--seed", &run.seed}, {"--check-every", &run.check_every}};
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--progress") {
      run.progress = true;
      continue;
    }
    const auto number = numbers.find(argv[i]);
    if (number == numbers.end() || i + 1 == argc) Usage();
    char* end = nullptr;
    *number->second = std::strtoull(argv[++i], &end, 10);
    if (*end != '\0' || argv[i][0] == '-' || argv[i] == end) Usage();
  }
  if (run.calls == 0 || run.check_every == 0) Usage();
  return run;
}

double ResidentMib() {
  std::ifstream file("/proc/self/statm");
  uint64_t all = 0, resident = 0;
  file >> all >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1024 * 1024);
}

// What the allocator has given out and not got back; the rest of what is resident lies between. 0: nobody can say.
double InUseMib() {
#ifdef __GLIBC__
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd) / (1024 * 1024);
#else
  return 0;
#endif
}

// By the handles' own account; the rest is what the driver keeps.
std::string Held(const Harness& harness) {
  horus_cluster_info info = HORUS_CLUSTER_INFO_INIT;
  (void)horus_cluster_get_info(harness.cluster.get(), &info, nullptr);
  uint64_t placers = 0, models = horus_observations_bytes_held(harness.observations.get());
  for (const auto& placer : harness.placers) placers += horus_placer_bytes_held(placer.get());
  for (const auto& model : harness.models) models += horus_interference_bytes_held(model.get());
  constexpr double kMib = 1024.0 * 1024.0;
  char text[128];
  std::snprintf(text, sizeof text, "cluster %.1f, placers %.1f, models %.1f",
                static_cast<double>(info.bytes_held) / kMib, static_cast<double>(placers) / kMib,
                static_cast<double>(models) / kMib);
  return text;
}

double Seconds(Clock::duration took) { return std::chrono::duration<double>(took).count(); }

void Report(const Harness& harness) {
  std::printf("%-34s %12s %12s %10s %10s\n", "call", "times", "refused", "mean us", "longest ms");
  for (const auto& [name, count] : harness.counts()) {
    std::printf("%-34s %12llu %12llu %10.2f %10.3f\n", std::string(name).c_str(),
                static_cast<unsigned long long>(count.calls), static_cast<unsigned long long>(count.failed),
                Seconds(count.together) * 1e6 / static_cast<double>(count.calls), Seconds(count.longest) * 1e3);
  }
}

bool IsFlat(const char* what, const std::vector<double>& samples) {
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  const double first = *std::max_element(samples.begin(), middle);
  const double second = *std::max_element(middle, samples.end());
  std::printf("%s memory: at most %.1f MiB in the first half, %.1f MiB in the second\n", what, first, second);
  return second <= first * (1 + kGrowthShare) + kGrowthMib;
}

}  // namespace

int main(int argc, char** argv) {
  const Run run = Parse(argc, argv);
  Choices choices(run.seed);
  const uint64_t nodes = std::max<uint64_t>(run.gpus / kDevices, 1);
  Harness harness(&choices, {.nodes = nodes,
                             .max_nodes = nodes + nodes / 8,
                             .devices = kDevices,
                             .job_ids = 4 * run.gpus,
                             .hostile = 40,
                             .variety = 40,
                             .other_placers = 8,
                             .cache_bytes = kCacheBytes,
                             .max_fits = run.calls,
                             .check_every = run.check_every});
  const auto begin = Clock::now();
  std::vector<double> resident = {ResidentMib()}, in_use = {InUseMib()};
  while (harness.calls() < run.calls) {
    harness.Step();
    if (harness.calls() < run.calls / kSamples * resident.size()) continue;
    resident.push_back(ResidentMib());
    in_use.push_back(InUseMib());
    if (!run.progress || resident.size() % (kSamples / 20) != 0) continue;
    std::printf("%llu calls, %.0f s, %zu jobs, %.1f MiB, in use %.1f, of which %s\n",
                static_cast<unsigned long long>(harness.calls()), Seconds(Clock::now() - begin), harness.jobs.size(),
                resident.back(), in_use.back(), Held(harness).c_str());
    std::fflush(stdout);
  }
  harness.CheckAll();
  const double took = Seconds(Clock::now() - begin);
  const double worked = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  Report(harness);
  std::printf(
      "soak: %llu calls, seed %llu, %llu GPUs, %zu jobs in the end; %.0f calls/s, %.0f of processor time; "
      "digest %016llx\n",
      static_cast<unsigned long long>(harness.calls()), static_cast<unsigned long long>(run.seed),
      static_cast<unsigned long long>(run.gpus), harness.jobs.size(), static_cast<double>(harness.calls()) / took,
      static_cast<double>(harness.calls()) / worked, static_cast<unsigned long long>(harness.digest()));
  const bool resident_is_flat = IsFlat("resident", resident), in_use_is_flat = IsFlat("in use", in_use);
  if (run.calls < kCallsToBeFlat || (resident_is_flat && in_use_is_flat)) return 0;
  std::printf("soak: memory grows\n");
  return 1;
}
