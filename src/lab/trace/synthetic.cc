// SPDX-License-Identifier: Apache-2.0
// Draws jobs one after the other, in integers.
#include "lab/trace/synthetic.h"

#include <algorithm>
#include <cmath>

#include "base/draws.h"
#include "base/status.h"
#include "base/text.h"

namespace horus {
namespace {

// ---- What measured traces and published descriptions say of sizes, durations and models. Each figure names its
// command; DIR is the folder of the public files that src/lab/trace/README.md lists.

constexpr int64_t kUsPerSecond = 1'000'000;
constexpr int64_t kPhillyJobs = 1000;
constexpr int64_t kPhillyGpus = 64;  // a cluster of the published comparisons
constexpr int32_t kPhillyProfiles = 16;
constexpr int32_t kFullLoadMilli = 1000;
constexpr int64_t kHorus2020Jobs = 2500;  // TPDS 2022, as the next two
constexpr int32_t kHorus2020Batches[] = {16, 32, 64, 128, 256};

// 13 types; which ones is not published beyond CNNs, recurrent and Transformer language models and translation. Chosen
// among the graphs of examples/models: CNNs, two of language, two of translation.
constexpr const char* kHorus2020Models[] = {
    "alexnet",     "vgg16",        "googlenet",           "inception_v3",       "resnet50",
    "densenet121", "mobilenet_v2", "squeezenet1_1",       "shufflenet_v2_x1_0", "lstm_wikitext2",
    "bert_small",  "gru_seq2seq",  "transformer_multi30k"};

SyntheticOptions Philly() {
  return {.jobs = kPhillyJobs,
          .arrivals = Arrivals::kBursty,
          .capacity_gpu_milli = kPhillyGpus * kMilliPerGpu,
          .load_milli = kFullLoadMilli,
          .gap_scv_milli = kPhillyGapScvMilli,
          .sizes = PhillySizes(),
          .durations = PhillyDurations(),
          .profiles = NumberedProfiles(kPhillyProfiles)};
}

// Arrivals, sizes and durations are not published: all jobs at once, one GPU each, Philly's durations. Chosen.
SyntheticOptions Horus2020() {
  SyntheticOptions options;
  options.jobs = kHorus2020Jobs;
  options.arrivals = Arrivals::kBacklog;
  options.sizes = {{.gpus = 1, .weight = 1}};
  options.durations = PhillyDurations();
  for (const char* model : kHorus2020Models) {
    for (const int32_t batch : kHorus2020Batches)
      options.profiles.push_back({.name = Formatted("%s (batch size %d)", model, batch)});
  }
  return options;
}

__extension__ typedef __int128 Wide;

constexpr int64_t kMilli = 1000;           // of a share, a load, a squared coefficient
constexpr double kChanceScale = 1u << 31;  // of the chance of a short gap

// A list to draw from, by cumulative weight.
template <typename Entry>
class Lottery {
 public:
  explicit Lottery(const std::vector<Entry>& entries) {
    for (const Entry& entry : entries) upto_.push_back((upto_.empty() ? 0 : upto_.back()) + entry.weight);
  }
  [[nodiscard]] size_t Draw(Draws& draws) const {
    const uint64_t lot = draws.Below(upto_.back());
    return static_cast<size_t>(std::upper_bound(upto_.begin(), upto_.end(), lot) - upto_.begin());
  }

 private:
  std::vector<uint64_t> upto_;
};

template <typename Entry>
absl::Status CheckWeights(const char* field, const std::vector<Entry>& entries) {
  uint64_t sum = 0;
  for (const Entry& entry : entries) sum += entry.weight;
  if (sum > 0 && sum <= kMaxSyntheticWeight) return absl::OkStatus();
  return InvalidArgument("synthetic: %s: expected weights that sum to 1 to %d, found %d of %d entries", field,
                         kMaxSyntheticWeight, sum, entries.size());
}

absl::Status CheckDurations(const std::vector<SyntheticDuration>& points) {
  const bool ends = points.size() >= 2 && points.front().share_milli == 0 && points.back().share_milli == kMilli;
  if (!ends)
    return InvalidArgument("synthetic: durations: expected points from share 0 to 1000, found %d points",
                           points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    const bool sane = points[i].duration_us >= 1 && points[i].duration_us <= kMaxTraceTimeUs;
    if (sane && (i == 0 || (points[i].share_milli > points[i - 1].share_milli &&
                            points[i].duration_us >= points[i - 1].duration_us))) {
      continue;
    }
    return InvalidArgument(
        "synthetic: durations[%d]: expected a share above and 1 to %d us not below those before, "
        "found %d and %d us",
        i, kMaxTraceTimeUs, points[i].share_milli, points[i].duration_us);
  }
  return absl::OkStatus();
}

absl::Status Check(const SyntheticOptions& options) {
  if (options.jobs < 1 || options.jobs > static_cast<int64_t>(kMaxTraceJobs))
    return InvalidArgument("synthetic: jobs: expected 1 to %d, found %d", kMaxTraceJobs, options.jobs);
  HORUS_RETURN_IF_ERROR(CheckWeights("sizes", options.sizes));
  HORUS_RETURN_IF_ERROR(CheckWeights("profiles", options.profiles));
  HORUS_RETURN_IF_ERROR(CheckDurations(options.durations));
  for (const SyntheticSize& size : options.sizes) {
    if (size.gpus >= 0 && size.gpus <= kMaxGpusPerJob) continue;
    return InvalidArgument("synthetic: sizes: expected 0 to %d GPUs, found %d", kMaxGpusPerJob, size.gpus);
  }
  if (options.owners < 0 || options.owners > kMaxSyntheticOwners)
    return InvalidArgument("synthetic: owners: expected 0 to %d, found %d", kMaxSyntheticOwners, options.owners);
  if (options.arrivals > Arrivals::kBursty)
    return InvalidArgument("synthetic: arrivals: expected 0 to 2, found %d", static_cast<int>(options.arrivals));
  if (options.arrivals == Arrivals::kBursty &&
      (options.gap_scv_milli < kMilli || options.gap_scv_milli > kMaxGapScvMilli)) {
    return InvalidArgument("synthetic: gap_scv_milli: expected %d to %d for bursty arrivals, found %d", kMilli,
                           kMaxGapScvMilli, options.gap_scv_milli);
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> MeanGap(const SyntheticOptions& options) {
  if (options.arrivals == Arrivals::kBacklog) return 0;
  double gap = static_cast<double>(options.mean_gap_us);
  if (options.mean_gap_us == 0) {
    if (options.capacity_gpu_milli <= 0 || options.load_milli <= 0) {
      return InvalidArgument("synthetic: mean_gap_us: expected above 0, or a capacity and a load, found 0, %d and %d",
                             options.capacity_gpu_milli, options.load_milli);
    }
    gap = MeanGpuTime(options) * kMilliPerGpu * kMilli /
          (static_cast<double>(options.capacity_gpu_milli) * static_cast<double>(options.load_milli));
  }
  // Twice the mean time of the whole trace, for luck, must still be a time.
  if (gap >= 1 && gap * 2 * static_cast<double>(options.jobs) <= static_cast<double>(kMaxTraceTimeUs))
    return static_cast<int64_t>(gap);
  return InvalidArgument("synthetic: mean_gap_us: expected 1 to %d for %d jobs, found %.0f",
                         kMaxTraceTimeUs / 2 / options.jobs, options.jobs, gap);
}

// The gaps of one process; Poisson is the process of one mean.
class Gaps {
 public:
  Gaps(Arrivals arrivals, int64_t mean_us, int32_t scv_milli) : short_us_(mean_us), long_us_(mean_us) {
    if (arrivals != Arrivals::kBursty) return;
    // Balanced means: short gaps and long ones fill half of the time each.
    const double scv = static_cast<double>(scv_milli) / kMilli;
    const double chance = (1 + std::sqrt((scv - 1) / (scv + 1))) / 2;
    const auto mean = static_cast<double>(mean_us);
    often_ = static_cast<uint64_t>(chance * kChanceScale);
    short_us_ = static_cast<int64_t>(mean / (2 * chance));
    long_us_ = static_cast<int64_t>(mean / (2 * (1 - chance)));
  }
  [[nodiscard]] int64_t Draw(Draws& draws) const {
    const bool is_short = draws.Below(static_cast<uint64_t>(kChanceScale)) < often_;
    return static_cast<int64_t>(draws.Exponential(static_cast<uint64_t>(is_short ? short_us_ : long_us_)));
  }

 private:
  int64_t short_us_, long_us_;
  uint64_t often_ = 0;
};

int64_t DrawDuration(const std::vector<SyntheticDuration>& points, Draws& draws) {
  constexpr uint64_t kFine = uint64_t{1} << 40;  // steps of a thousandth
  const uint64_t at = draws.Below(kMilli * kFine);
  size_t i = 1;
  // Bounded: at most 1,000 times 2^40.
  while (at >= static_cast<uint64_t>(points[i].share_milli) * kFine) ++i;
  const SyntheticDuration& low = points[i - 1];
  const SyntheticDuration& high = points[i];
  const Wide into = static_cast<Wide>(at - static_cast<uint64_t>(low.share_milli) * kFine);
  const Wide width = static_cast<Wide>(high.share_milli - low.share_milli) * kFine;
  // Bounded: 128 bits.
  return low.duration_us + static_cast<int64_t>((high.duration_us - low.duration_us) * into / width);
}

}  // namespace

// Jobs by GPUs in the 15,264 of Gavel's trace, 15 of odd sizes counted with the next:
// horus traces show DIR/gavel_msr_seed0 (jobs).
std::vector<SyntheticSize> PhillySizes() {
  return {{1, 10'480}, {2, 463}, {4, 2044}, {8, 1918}, {16, 261}, {32, 97}, {64, 1}};
}

// Seconds at each thousandth of the 10,879 jobs of Muri's four traces. Linear between points, their mean is 5 % above
// that of the jobs:
// horus traces show DIR/muri_trace1.csv DIR/muri_trace2.csv DIR/muri_trace3.csv DIR/muri_trace4.csv --json (durations).
std::vector<SyntheticDuration> PhillyDurations() {
  constexpr std::pair<int32_t, int64_t> kSeconds[] = {
      {0, 1},           {10, 8},          {50, 32},         {100, 56},      {150, 160},       {200, 203},
      {250, 337},       {300, 655},       {350, 1031},      {400, 2233},    {450, 4489},      {500, 7696},
      {550, 14'401},    {600, 23'160},    {650, 40'369},    {700, 61'685},  {750, 90'017},    {800, 145'061},
      {850, 193'287},   {900, 304'253},   {950, 551'195},   {970, 750'946}, {980, 1'204'465}, {990, 2'040'658},
      {995, 2'421'023}, {999, 4'159'372}, {1000, 4'628'239}};
  std::vector<SyntheticDuration> points;
  // Bounded: of the table above.
  for (const auto& [share, seconds] : kSeconds) points.push_back({share, seconds * kUsPerSecond});
  return points;
}

std::vector<SyntheticProfile> NumberedProfiles(int32_t count) {
  std::vector<SyntheticProfile> profiles;
  for (int32_t i = 0; i < count; ++i) profiles.push_back({.name = "profile-" + std::to_string(i)});
  return profiles;
}

absl::StatusOr<SyntheticOptions> SyntheticPreset(std::string_view name) {
  if (name == "philly") return Philly();
  if (name == "horus2020") return Horus2020();
  return NotFound("synthetic: expected the preset philly or horus2020, found %s", Quoted(name));
}

double MeanGpuTime(const SyntheticOptions& options) {
  double weights = 0;
  double gpus = 0;
  for (const SyntheticSize& size : options.sizes) {
    weights += size.weight;
    gpus += static_cast<double>(size.weight) * size.gpus;
  }
  double duration = 0;
  for (size_t i = 1; i < options.durations.size(); ++i) {
    const SyntheticDuration& low = options.durations[i - 1];
    const SyntheticDuration& high = options.durations[i];
    duration += (high.share_milli - low.share_milli) / 2.0 / kMilli *
                (static_cast<double>(low.duration_us) + static_cast<double>(high.duration_us));
  }
  return weights > 0 ? gpus / weights * duration : 0;
}

absl::StatusOr<Trace> MakeSynthetic(const SyntheticOptions& options) {
  HORUS_RETURN_IF_ERROR(Check(options));
  HORUS_ASSIGN_OR_RETURN(const int64_t mean_gap_us, MeanGap(options));
  const Gaps gaps(options.arrivals, mean_gap_us, options.gap_scv_milli);
  const Lottery sizes(options.sizes);
  const Lottery profiles(options.profiles);
  TraceBuilder builder;
  std::vector<uint32_t> positions, owners;
  for (const SyntheticProfile& profile : options.profiles) positions.push_back(builder.Profile(profile.name));
  for (int32_t i = 0; i < options.owners; ++i) owners.push_back(builder.Owner("owner-" + std::to_string(i)));
  int64_t now_us = 0;
  for (int64_t i = 0; i < options.jobs; ++i) {
    Draws draws(CombineHash(Mix64(options.seed), static_cast<uint64_t>(i)));
    if (i > 0 && mean_gap_us > 0) now_us += gaps.Draw(draws);
    TraceJob job{.id = static_cast<uint64_t>(i), .submit_us = now_us};
    const int32_t gpus = options.sizes[sizes.Draw(draws)].gpus;
    job.tasks = std::max(gpus, 1);
    job.gpus_per_task = std::min(gpus, 1);
    job.duration_us = DrawDuration(options.durations, draws);
    const size_t profile = profiles.Draw(draws);
    job.profile = positions[profile];
    job.cpu_milli = options.profiles[profile].cpu_milli;
    job.mem_mib = options.profiles[profile].mem_mib;
    if (!owners.empty()) job.owner = owners[draws.Below(owners.size())];
    builder.Add(job);
  }
  return builder.Finish();
}

}  // namespace horus
