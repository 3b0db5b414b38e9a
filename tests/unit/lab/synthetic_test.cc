// SPDX-License-Identifier: Apache-2.0
// Synthetic traces: equal for equal options, and their marginals what is asked for.
#include "lab/trace/synthetic.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <string>

#include "base/draws.h"
#include "lab/trace/trace.h"

namespace horus {
namespace {

using testing::HasSubstr;

SyntheticOptions Many(Arrivals arrivals) {
  SyntheticOptions options = *SyntheticPreset("philly");
  options.jobs = 200'000;
  options.arrivals = arrivals;
  return options;
}

TEST(Draws, AreTheseNumbersOnEveryMachine) {
  Draws draws(1);
  // SplitMix64 of seed 1: the reference program of Vigna, https://prng.di.unimi.it/splitmix64.c.
  EXPECT_EQ(draws.Next(), 0x910A2DEC89025CC1u);
  EXPECT_EQ(draws.Next(), 0xBEEB8DA1658EEC67u);
}

TEST(Draws, ExponentialsHaveMeanAndSpreadOfTheirDistribution) {
  Draws draws(3);
  constexpr int kCount = 200'000;
  constexpr double kMean = 1e6;
  double sum = 0, squares = 0;
  int above = 0;
  for (int i = 0; i < kCount; ++i) {
    const auto value = static_cast<double>(draws.Exponential(static_cast<uint64_t>(kMean)));
    sum += value;
    squares += value * value;
    above += value > 3 * kMean ? 1 : 0;
  }
  EXPECT_NEAR(sum / kCount, kMean, 0.01 * kMean);                          // standard error 0.22 %
  EXPECT_NEAR(squares / kCount, 2 * kMean * kMean, 0.05 * kMean * kMean);  // 1 %
  EXPECT_NEAR(above / double{kCount}, 0.0498, 0.0025);                     // e^-3; 0.05 points
}

TEST(Synthetic, EqualOptionsGiveEqualTraces) {
  SyntheticOptions options = *SyntheticPreset("philly");
  options.owners = 7;
  const Trace trace = *MakeSynthetic(options);
  EXPECT_EQ(trace, *MakeSynthetic(options));
  // Frozen: a trace of this seed is the same in every release.
  EXPECT_EQ(TraceDigest(trace), 11111459755668223667u);
  options.seed = 2;
  EXPECT_NE(trace, *MakeSynthetic(options));
}

TEST(Synthetic, ALongerTraceBeginsWithTheShorter) {
  SyntheticOptions options = *SyntheticPreset("philly");
  Trace first = *MakeSynthetic(options);
  first.jobs.resize(300);
  CanonicaliseTrace(first);
  options.jobs = 300;
  EXPECT_EQ(first, *MakeSynthetic(options));
}

TEST(Synthetic, ArrivalsHaveTheAskedMeanAndSpread) {
  const SyntheticOptions poisson = Many(Arrivals::kPoisson);
  const double mean = MeanGpuTime(poisson) / 64;  // at load 1 on 64 GPUs
  const TraceSummary even = SummariseTrace(*MakeSynthetic(poisson));
  EXPECT_NEAR(even.mean_gap_us / mean, 1, 0.01);  // standard error 0.22 %
  EXPECT_NEAR(even.gap_scv, 1, 0.03);
  const TraceSummary bursts = SummariseTrace(*MakeSynthetic(Many(Arrivals::kBursty)));
  EXPECT_NEAR(bursts.mean_gap_us / mean, 1, 0.05);  // 1.2 %
  EXPECT_NEAR(bursts.gap_scv / (kPhillyGapScvMilli / 1000.0), 1, 0.1);
  EXPECT_EQ(SummariseTrace(*MakeSynthetic(Many(Arrivals::kBacklog))).last_submit_us, 0);
}

TEST(Synthetic, BurstsOfCoefficientOneAreRandomArrivals) {
  SyntheticOptions options = Many(Arrivals::kBursty);
  options.gap_scv_milli = 1000;
  EXPECT_NEAR(SummariseTrace(*MakeSynthetic(options)).gap_scv, 1, 0.03);
}

TEST(Synthetic, OffersTheAskedLoad) {
  SyntheticOptions options = Many(Arrivals::kPoisson);
  options.load_milli = 1500;
  const TraceSummary summary = SummariseTrace(*MakeSynthetic(options));
  const double gpus = static_cast<double>(options.capacity_gpu_milli) / kMilliPerGpu;
  const auto span_us = static_cast<double>(summary.last_submit_us - summary.first_submit_us);
  EXPECT_NEAR(summary.gpu_us / (gpus * span_us), 1.5, 0.05);
}

TEST(Synthetic, SizesDurationsAndProfilesComeInTheirShares) {
  const SyntheticOptions options = Many(Arrivals::kPoisson);
  const Trace trace = *MakeSynthetic(options);
  double weights = 0;
  for (const SyntheticSize& size : options.sizes) weights += size.weight;
  for (const SyntheticSize& size : options.sizes) {
    const auto jobs = std::count_if(trace.jobs.begin(), trace.jobs.end(),
                                    [&](const TraceJob& job) { return GpusOf(job) == size.gpus; });
    EXPECT_NEAR(static_cast<double>(jobs) / 200'000, size.weight / weights, 0.005);
  }
  for (const SyntheticDuration& point : options.durations) {
    const auto jobs = std::count_if(trace.jobs.begin(), trace.jobs.end(),
                                    [&](const TraceJob& job) { return job.duration_us <= point.duration_us; });
    EXPECT_NEAR(static_cast<double>(jobs) / 200, point.share_milli, 5) << point.duration_us;
  }
  for (const TraceProfileRow& row : SummariseTrace(trace).profiles) {
    EXPECT_NEAR(static_cast<double>(row.jobs) / 200'000, 1.0 / 16, 0.003);
  }
}

TEST(Synthetic, Horus2020IsTheWorkloadThatIsPublished) {
  const Trace trace = *MakeSynthetic(*SyntheticPreset("horus2020"));
  EXPECT_EQ(trace.jobs.size(), 2500u);
  EXPECT_EQ(trace.profiles.size(), 13u * 5);
  EXPECT_THAT(trace.profiles, testing::Contains("resnet50 (batch size 64)"));
  EXPECT_EQ(SyntheticPreset("horus2021").status().code(), absl::StatusCode::kNotFound);
}

TEST(Synthetic, RefusesOptionsThatCannotBe) {
  const auto refused = [](const std::function<void(SyntheticOptions&)>& change, const std::string& words) {
    SyntheticOptions options = *SyntheticPreset("philly");
    change(options);
    const absl::Status status = MakeSynthetic(options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  };
  refused([](SyntheticOptions& o) { o.jobs = 0; }, "synthetic: jobs: expected 1 to 4000000, found 0");
  refused([](SyntheticOptions& o) { o.sizes.clear(); }, "sizes: expected weights that sum to");
  refused([](SyntheticOptions& o) { o.sizes[0].gpus = -1; }, "sizes: expected 0 to 65536 GPUs, found -1");
  refused([](SyntheticOptions& o) { o.profiles.clear(); }, "profiles: expected weights that sum to");
  refused([](SyntheticOptions& o) { o.durations.pop_back(); }, "durations: expected points from share 0 to 1000");
  refused([](SyntheticOptions& o) { o.durations[3].share_milli = 1; }, "durations[3]");
  refused([](SyntheticOptions& o) { o.durations[3].duration_us = 1; }, "durations[3]");
  refused([](SyntheticOptions& o) { o.gap_scv_milli = 999; }, "gap_scv_milli: expected 1000 to");
  refused([](SyntheticOptions& o) { o.load_milli = 0; }, "mean_gap_us: expected above 0, or a capacity and a load");
  refused([](SyntheticOptions& o) { o.mean_gap_us = kMaxTraceTimeUs; }, "mean_gap_us: expected 1 to");
  refused([](SyntheticOptions& o) { o.owners = -1; }, "owners: expected 0 to 1000000, found -1");
  refused([](SyntheticOptions& o) { o.profiles[0].name = "a\n"; }, "control characters");
}

}  // namespace
}  // namespace horus
