// SPDX-License-Identifier: Apache-2.0
// Measured pairs as a model: what is found, what the fallback answers, what is refused.
#include "interference/table_model.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "draw.h"
#include "interference/corrected_model.h"
#include "interference/registry.h"

namespace horus {
namespace {

constexpr GpuTypeId kGpu(3);
constexpr DeviceContext kDevice{kGpu, SharingMode::kTimeSlice, 1};
constexpr uint64_t kA = 11, kB = 12, kC = 13, kD = 14;

Demand Job(uint64_t profile, float util, float util_upper) {
  Demand demand;
  demand.profile_id = profile;
  demand.gpu_util_pct = {util, util_upper};
  return demand;
}

TableEntry Entry(uint64_t victim, uint64_t other, double slowdown) {
  return {kGpu, SharingMode::kTimeSlice, victim, other, slowdown};
}

std::shared_ptr<const TableModel> Table(const std::vector<TableEntry>& entries, double noise = kDefaultTableNoise) {
  auto table = TableModel::Create(entries, std::make_shared<const UtilisationModel>(), noise);
  EXPECT_TRUE(table.ok()) << table.status();
  return *std::move(table);
}

std::vector<Slowdown> Predict(const InterferenceModel& model, const std::vector<Demand>& jobs,
                              const DeviceContext& device = kDevice) {
  std::vector<const Demand*> tenants;
  for (const Demand& job : jobs) tenants.push_back(&job);
  std::vector<Slowdown> out(jobs.size(), Slowdown{-1, -1});
  const absl::Status status = model.Predict(device, tenants, out);
  EXPECT_TRUE(status.ok()) << status;
  return out;
}

TEST(TableModel, AnswersWithWhatWasMeasured) {
  const auto table = Table({Entry(kA, kB, 1.5), Entry(kB, kA, 3)}, 0.25);
  EXPECT_EQ(Predict(*table, {Job(kA, 90, 90), Job(kB, 90, 90)}), (std::vector<Slowdown>{{1.5f, 1.875f}, {3, 3.75f}}));
  EXPECT_EQ(Predict(*table, {Job(kA, 90, 90)}), (std::vector<Slowdown>{{1, 1}}));
}

TEST(TableModel, TwoCopiesOfAJobAreAPairToo) {
  const auto table = Table({Entry(kA, kA, 2)}, 0);
  EXPECT_EQ(Predict(*table, {Job(kA, 10, 10), Job(kA, 10, 10)}), (std::vector<Slowdown>{{2, 2}, {2, 2}}));
}

TEST(TableModel, ExcessesOfThreeAddUp) {
  const auto table = Table({Entry(kA, kB, 1.5), Entry(kA, kC, 1.25)}, 0);
  EXPECT_EQ(Predict(*table, {Job(kA, 0, 0), Job(kB, 0, 0), Job(kC, 0, 0)})[0], (Slowdown{1.75f, 1.75f}));
}

TEST(TableModel, WhatWasNotMeasuredComesFromTheFallback) {
  const auto table = Table({Entry(kA, kB, 1.5)}, 0.5);
  const std::vector<Demand> jobs = {Job(kA, 60, 70), Job(kB, 80, 90), Job(kC, 70, 90), Job(kD, 70, 90)};
  // a beside b as measured, beside c and d as their summed utilisation says: 200 %, at most 250 %.
  EXPECT_EQ(Predict(*table, jobs)[0], (Slowdown{2.5f, 3.75f}));
  EXPECT_EQ(Predict(*table, jobs)[1], (Slowdown{2.8f, 3.4f}));  // nothing measured: the fallback's own answer
  const std::vector<const Demand*> tenants = {&jobs[0], &jobs[1], &jobs[2]};
  EXPECT_EQ(table->Measured(kDevice, tenants), (std::vector<uint8_t>{1, 1, 0, 0, 1, 0, 0, 0, 1}));
}

TEST(TableModel, WhatWasMeasuredIsBoundedAtTheUsualProbabilityAndTheRestAsTheFallback) {
  const auto table = Table({Entry(kA, kB, 1.5), Entry(kB, kA, 2)});
  const std::vector<Demand> jobs = {Job(kA, 60, 70), Job(kB, 80, 90), Job(kC, 70, 90)};
  const std::vector<const Demand*> three = {&jobs[0], &jobs[1], &jobs[2]}, two = {&jobs[0], &jobs[1]};
  const auto usual = static_cast<float>(kUpperProbability);
  const auto up_to = [&](const std::vector<const Demand*>& tenants) {
    std::vector<float> found(tenants.size());
    table->CalibratedUpTo(kDevice, tenants, found);
    return found;
  };
  EXPECT_EQ(up_to(two), (std::vector<float>{usual, usual}));
  EXPECT_EQ(up_to(three), (std::vector<float>{0, 0, 0}));  // the fallback calibrates nothing
}

TEST(TableModel, OverAnotherItIsOneOfBothAndItsOwnEntriesComeFirst) {
  const auto beneath = Table({Entry(kA, kB, 1.5), Entry(kB, kA, 3), Entry(kA, kC, 2)}, 0);
  const auto above = *TableModel::Create(std::vector<TableEntry>{Entry(kB, kA, 4)}, beneath, 0.25);
  EXPECT_EQ(above->size(), 3u);
  EXPECT_EQ(&above->fallback(), &beneath->fallback());
  EXPECT_EQ(Predict(*above, {Job(kA, 90, 90), Job(kB, 90, 90)}), (std::vector<Slowdown>{{1.5f, 1.5f}, {4, 5}}));
  const std::vector<Demand> three = {Job(kA, 50, 50), Job(kB, 40, 40), Job(kD, 30, 30)};
  EXPECT_NEAR(Predict(*above, three)[0].estimate, 0.5 + Predict(*beneath, {three[0], three[2]})[0].estimate, 1e-6);
}

// Each commit hides the table beneath it from the next one.
TEST(TableModel, RestsOnFewTablesSoThatAPredictionEnds) {
  const ObservedSlowdowns nothing;
  std::shared_ptr<const InterferenceModel> model = Table({Entry(kA, kB, 1.5)});
  for (size_t i = 0; i < kMostTablesBeneath; ++i) {
    model = *CorrectedModel::Commit(model, nothing, *Catalogue::Default(), nullptr);
    const auto table = TableModel::Create(std::vector<TableEntry>{Entry(kA, kB, 1.5)}, model);
    ASSERT_TRUE(table.ok()) << table.status();
    model = *table;
  }
  model = *CorrectedModel::Commit(model, nothing, *Catalogue::Default(), nullptr);
  EXPECT_EQ(TableModel::Create(std::vector<TableEntry>{Entry(kA, kB, 1.5)}, model).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(TableModel, ADeviceOfAnotherTypeModeOrShareIsNotWhatWasMeasured) {
  const auto table = Table({Entry(kA, kB, 1.5), Entry(kB, kA, 1.5)});
  const std::vector<Demand> jobs = {Job(kA, 10, 10), Job(kB, 10, 10)};
  for (const DeviceContext& device :
       {DeviceContext{GpuTypeId(4), SharingMode::kTimeSlice, 1}, DeviceContext{kGpu, SharingMode::kMps, 1},
        DeviceContext{kGpu, SharingMode::kTimeSlice, 0.5f}}) {
    EXPECT_EQ(Predict(*table, jobs, device), (std::vector<Slowdown>{{1, 1}, {1, 1}}));
  }
}

PairSet TwoCampaigns() {
  PairSet set{.devices = {{.gpu = Catalogue::Default()->at(kGpu).name}, {.gpu = "no such card"}},
              .jobs = {{.name = "a", .profile_id = kA}, {.name = "b", .profile_id = kB}, {.name = "nameless"}},
              .runs = {}};
  const auto add = [&set](uint32_t device, uint32_t job_b, const char* campaign, double a, double b) {
    set.runs.push_back({.device = device,
                        .job_b = job_b,
                        .campaign = campaign,
                        .slowdown_a = a,
                        .slowdown_b = b,
                        .where = "row " + std::to_string(set.runs.size() + 1)});
  };
  add(0, 1, "one", 2, 3);
  add(0, 1, "two", 4, std::nan(""));
  add(1, 1, "one", 2, 3);
  add(0, 2, "one", 2, 3);
  return set;
}

TEST(TableModel, OfCampaignsTheMeanCounts) {
  const auto entries = TableEntriesOf(TwoCampaigns(), *Catalogue::Default());
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 2u);  // neither the unknown card nor the nameless job
  EXPECT_EQ((*entries)[0].slowdown, 3);
  EXPECT_EQ((*entries)[1].slowdown, 3);
  const auto model = Table(*entries);
  const std::vector<Slowdown> found = Predict(*model, {Job(kA, 10, 10), Job(kB, 10, 10)});
  EXPECT_EQ(found[0], (Slowdown{3, 4}));  // no bound below what was measured
  EXPECT_FLOAT_EQ(found[1].upper, static_cast<float>(3 * (1 + kDefaultTableNoise)));
}

TEST(TableModel, RefusesACampaignThatContradictsItself) {
  PairSet set = TwoCampaigns();
  set.runs[1].campaign = "one";
  const auto entries = TableEntriesOf(set, *Catalogue::Default());
  EXPECT_EQ(entries.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(entries.status().message(),
            "row 2: slowdown of 'a' beside 'b': expected 2 as measured before in campaign 'one', found 4");
}

TEST(TableModel, AJobWithoutProfileIsNeverFound) {
  const auto table = Table({Entry(kA, kB, 1.5), Entry(kB, kA, 1.5)});
  EXPECT_EQ(Predict(*table, {Job(0, 10, 10), Job(kB, 10, 10)}), (std::vector<Slowdown>{{1, 1}, {1, 1}}));
}

TEST(TableModel, FasterThanAloneCountsAsUndisturbed) {
  const auto table = Table({Entry(kA, kB, 0.9)}, 0.5);
  EXPECT_EQ(Predict(*table, {Job(kA, 0, 0), Job(kB, 0, 0)})[0], (Slowdown{1, 1.5f}));
}

TEST(TableModel, RefusesEntriesThatCannotBeMeant) {
  const auto refused = [](const std::vector<TableEntry>& entries, std::string_view word, double noise = 0.05) {
    const auto table = TableModel::Create(entries, std::make_shared<const UtilisationModel>(), noise);
    EXPECT_EQ(table.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(std::string(table.status().message()).find(word), std::string::npos) << table.status();
  };
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const double slowdown : {0.0, -1.0, 0.49, 1001.0, 1e9, kNan}) refused({Entry(kA, kB, slowdown)}, "from 0.5 to");
  refused({Entry(kA, kB, 1.5), Entry(kA, kB, 1.6)}, "found 1.5 and 1.6");
  refused({Entry(0, kB, 1.5)}, "profile ids");
  refused({{GpuTypeId(), SharingMode::kTimeSlice, kA, kB, 1.5}}, "GPU type");
  refused({{kGpu, static_cast<SharingMode>(9), kA, kB, 1.5}}, "sharing mode 9");
  for (const double noise : {-0.1, 11.0, kNan}) refused({Entry(kA, kB, 1.5)}, "noise", noise);
  EXPECT_FALSE(TableModel::Create({}, nullptr).ok());
  EXPECT_EQ(Table({Entry(kA, kB, 1.5), Entry(kA, kB, 1.5)})->size(), 1u);  // said twice, not contradicted
}

TEST(TableModel, RefusesWhatNoDeviceIs) {
  const auto table = Table({});
  const Demand job = Job(kA, 10, 10);
  const std::vector<const Demand*> tenants = {&job, nullptr};
  std::vector<Slowdown> out(2, Slowdown{-1, -1});
  EXPECT_FALSE(table->Predict(kDevice, tenants, out).ok());
  EXPECT_FALSE(
      table->Predict({kGpu, SharingMode::kTimeSlice, 0}, std::span(tenants).first(1), std::span(out).first(1)).ok());
  EXPECT_FALSE(table->Predict(kDevice, std::span(tenants).first(1), out).ok());
  EXPECT_EQ(out, (std::vector<Slowdown>{{-1, -1}, {-1, -1}}));
}

TEST(TableModel, TheEpochFollowsEntriesAndNoise) {
  const uint64_t epoch = Table({Entry(kA, kB, 1.5), Entry(kB, kA, 2)})->epoch();
  EXPECT_EQ(Table({Entry(kB, kA, 2), Entry(kA, kB, 1.5)})->epoch(), epoch);
  EXPECT_NE(Table({Entry(kB, kA, 2.5), Entry(kA, kB, 1.5)})->epoch(), epoch);
  EXPECT_NE(Table({Entry(kA, kB, 1.5), Entry(kB, kA, 2)}, 0.1)->epoch(), epoch);
}

// A table of some of the pairs of ten jobs, and tenants drawn from them.
TEST(TableModel, NeitherOrderNorAFurtherTenantLowersAnything) {
  std::vector<TableEntry> entries;
  for (uint64_t v = 1; v <= 10; ++v) {
    for (uint64_t o = 1; o <= 10; ++o) {
      if (Draw(v * 100 + o) < 0.5) entries.push_back(Entry(v, o, 0.9 + 2 * Draw(v * 1000 + o)));
    }
  }
  const auto table = Table(entries);
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::vector<Demand> jobs;
    std::vector<Slowdown> before;
    for (uint64_t i = 0; i < 6; ++i) {
      const auto profile = static_cast<uint64_t>(11 * Draw(seed * 10 + i));  // 0 to 10
      const auto util = static_cast<float>(100 * Draw(profile));
      jobs.push_back(Job(profile, util, std::min(100.0f, 1.2f * util)));
      const std::vector<Slowdown> after = Predict(*table, jobs);
      for (size_t k = 0; k < before.size(); ++k) {
        EXPECT_GE(after[k].estimate, before[k].estimate);
        EXPECT_GE(after[k].upper, before[k].upper);
      }
      before = after;
    }
    std::vector<Demand> turned(jobs.rbegin(), jobs.rend());
    std::vector<Slowdown> found = Predict(*table, turned);
    std::reverse(found.begin(), found.end());
    EXPECT_EQ(found, before);
  }
}

}  // namespace
}  // namespace horus
