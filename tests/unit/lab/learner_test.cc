// SPDX-License-Identifier: Apache-2.0
#include "lab/truth/learner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "interference/registry.h"

namespace horus {
namespace {

// Jobs 1 to 4 on one GPU, where the true excesses of pairs add up.
struct Lesson {
  explicit Lesson(Learns learns = Learns::kPairs)
      : learner(*MakeInterferenceModel("utilisation"), Catalogue::Default(), learns) {
    device.type = *Catalogue::Default()->Find("v100-sxm2-16gb");
    for (uint64_t id = 1; id <= 4; ++id) {
      Demand& demand = demands[id];
      demand.gpu_util_pct = {35 + 10 * static_cast<float>(id), 35 + 10 * static_cast<float>(id)};
      demand.profile_id = id;
    }
  }

  std::vector<const Demand*> Of(const std::vector<uint64_t>& ids) const {
    std::vector<const Demand*> these;
    for (const uint64_t id : ids) these.push_back(&demands.at(id));
    return these;
  }
  static double TrueExcess(uint64_t victim, uint64_t other) {
    return 0.1 * static_cast<double>(victim) + 0.15 * static_cast<double>(other * other % 5);
  }
  void See(const std::vector<uint64_t>& ids) {
    std::vector<double> slowdowns;
    for (const uint64_t victim : ids) {
      slowdowns.push_back(1);
      for (const uint64_t other : ids) slowdowns.back() += other == victim ? 0 : TrueExcess(victim, other);
    }
    ASSERT_TRUE(learner.Observe({0, device, Of(ids), slowdowns}).ok());
  }
  // Of the first of them.
  double Believed(const std::vector<uint64_t>& ids) const {
    std::vector<Slowdown> answers(ids.size());
    EXPECT_TRUE(learner.model()->Predict(device, Of(ids), answers).ok());
    return static_cast<double>(answers[0].estimate);
  }
  double Error() const {  // of all pairs
    double sum = 0;
    for (uint64_t victim = 1; victim <= 4; ++victim) {
      for (uint64_t other = 1; other <= 4; ++other) {
        if (victim != other) sum += std::abs(std::log(Believed({victim, other}) / (1 + TrueExcess(victim, other))));
      }
    }
    return sum / 12;
  }

  DeviceContext device;
  std::map<uint64_t, Demand> demands;
  PairLearner learner;
};

TEST(PairLearner, ThreeThatWereSeenAreBelievedInTheProportionOfBefore) {
  Lesson lesson;
  const double first = lesson.Believed({1, 3}) - 1, second = lesson.Believed({1, 4}) - 1;
  ASSERT_GT(first, 0);
  lesson.See({1, 3, 4});
  EXPECT_NEAR(lesson.Believed({1, 3, 4}), 1 + Lesson::TrueExcess(1, 3) + Lesson::TrueExcess(1, 4), 1e-3);
  EXPECT_NEAR((lesson.Believed({1, 3}) - 1) / (lesson.Believed({1, 4}) - 1), first / second, 1e-3);
}

TEST(PairLearner, SetsOfThreeTellPairsApart) {
  for (const Learns learns : {Learns::kPairs, Learns::kCorrects}) {
    Lesson lesson(learns);
    ASSERT_GT(lesson.Error(), 0.1);
    for (const std::vector<uint64_t>& three : {std::vector<uint64_t>{1, 2, 3}, {1, 2, 4}, {1, 3, 4}, {2, 3, 4}}) {
      lesson.See(three);
    }
    EXPECT_LT(lesson.Error(), 0.01);
  }
}

TEST(PairLearner, TwoAloneLeaveTheRestOfTheSumToTheThird) {
  Lesson lesson;
  lesson.See({1, 2, 3});
  lesson.See({1, 2});
  EXPECT_NEAR(lesson.Believed({1, 2}), 1 + Lesson::TrueExcess(1, 2), 1e-6);
  EXPECT_NEAR(lesson.Believed({1, 3}), 1 + Lesson::TrueExcess(1, 3), 1e-3);
}

// 1 could not run beside 2 and 3; that it could beside 2 puts the blame on 3.
TEST(PairLearner, WhoRanBesideTheNewcomerIsNotToBlame) {
  Lesson lesson;
  EXPECT_TRUE(*lesson.learner.Failed({0, lesson.device, lesson.Of({2, 3, 1}), {}}));
  EXPECT_GT(lesson.Believed({1, 2, 3}), 100);
  lesson.See({1, 2, 4});
  EXPECT_LT(lesson.Believed({1, 2}), 2);
  EXPECT_GT(lesson.Believed({1, 3}), 100);
}

}  // namespace
}  // namespace horus
