// SPDX-License-Identifier: Apache-2.0
// What measured traces and published descriptions say of sizes, durations and models. Each figure names its command;
// DIR is the folder of the public files that docs/traces.md lists.
#include "base/status.h"
#include "base/text.h"
#include "lab/trace/synthetic.h"

namespace horus {
namespace {

constexpr int64_t kUsPerSecond = 1'000'000;
constexpr int64_t kPhillyJobs = 1000;
constexpr int64_t kPhillyGpus = 64;  // a cluster of the published comparisons
constexpr int32_t kPhillyProfiles = 16;
constexpr int32_t kFullLoadMilli = 1000;
constexpr int64_t kHorus2020Jobs = 2500;  // TPDS 2022, as the next two
constexpr int32_t kHorus2020Batches[] = {16, 32, 64, 128, 256};

// 13 types; which ones is not published beyond CNNs, recurrent and Transformer language models and translation. Chosen
// among the graphs of examples/models.
constexpr const char* kHorus2020Models[] = {
    "alexnet",
    "vgg16",
    "googlenet",
    "inception_v3",
    "resnet50",
    "densenet121",  //
    "mobilenet_v2",
    "squeezenet1_1",
    "shufflenet_v2_x1_0",  // CNNs
    "lstm_wikitext2",
    "bert_small",  // language
    "gru_seq2seq",
    "transformer_multi30k",  // translation
};

SyntheticOptions Philly() {
  SyntheticOptions options;
  options.jobs = kPhillyJobs;
  options.arrivals = Arrivals::kBursty;
  options.gap_scv_milli = kPhillyGapScvMilli;
  options.capacity_gpu_milli = kPhillyGpus * kMilliPerGpu;
  options.load_milli = kFullLoadMilli;
  options.sizes = PhillySizes();
  options.durations = PhillyDurations();
  options.profiles = NumberedProfiles(kPhillyProfiles);
  return options;
}

// Arrivals, sizes and durations are not published: all jobs at once, one GPU each, Philly's durations. Chosen.
SyntheticOptions Horus2020() {
  SyntheticOptions options;
  options.jobs = kHorus2020Jobs;
  options.arrivals = Arrivals::kBacklog;
  options.sizes = {{.gpus = 1, .weight = 1}};
  options.durations = PhillyDurations();
  for (const char* model : kHorus2020Models) {
    for (const int32_t batch : kHorus2020Batches) {
      options.profiles.push_back({.name = Formatted("%s (batch size %d)", model, batch)});
    }
  }
  return options;
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
  return MakeError(absl::StatusCode::kNotFound, "synthetic: expected the preset philly or horus2020, found %s",
                   Quoted(name));
}

}  // namespace horus
