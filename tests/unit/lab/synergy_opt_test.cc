// SPDX-License-Identifier: Apache-2.0
// The optimum by linear programs; built where the solver's library is.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <filesystem>
#include <functional>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "lab/lp/contained.h"
#include "lab/lp/entry.h"
#include "lab/lp/linear_program.h"
#include "lab/synergy/round.h"

namespace horus {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr HostShare kFair = {3000, 100};
SynergyServer Server() {
  return {
      .gpus = 4, .gpus_free = 4, .cpu_milli = 12'000, .mem_mib = 400, .cpu_free_milli = 12'000, .mem_free_mib = 400};
}
const Sensitivity kHungry = *Sensitivity::Create({3000, 6000}, {100}, std::vector<float>{1, 1.5f});
const Sensitivity kStarved = *Sensitivity::Create({3000, 6000}, {100}, std::vector<float>{1, 3});
const Sensitivity kModest = *Sensitivity::Create({1500, 3000}, {100}, std::vector<float>{1, 1});

TEST(LinearProgram, FindsTheVertexOfATextbookProgram) {
  // Maximise 3x + 5y with x <= 4, 2y <= 12, 3x + 2y <= 18: x = 2, y = 6.
  LinearProgram program;
  const int32_t a = program.AddRow(-kInfinity, 4);
  const int32_t b = program.AddRow(-kInfinity, 12);
  const int32_t c = program.AddRow(-kInfinity, 18);
  program.AddColumn(3, {{a, 1}, {c, 3}});
  program.AddColumn(5, {{b, 2}, {c, 2}});
  const auto solution = program.Solve("");
  ASSERT_TRUE(solution.ok()) << solution.status();
  EXPECT_THAT(solution->objective, DoubleNear(36, 1e-9));
  EXPECT_THAT(solution->values, ElementsAre(DoubleNear(2, 1e-9), DoubleNear(6, 1e-9)));
  EXPECT_THAT(solution->prices, ElementsAre(DoubleNear(0, 1e-9), DoubleNear(1.5, 1e-9), DoubleNear(1, 1e-9)));
}

TEST(LinearProgram, SaysWhatHasNoSolutionAndPrintsNothing) {
  LinearProgram infeasible;
  infeasible.AddColumn(1, {{infeasible.AddRow(2, kInfinity), 1.0}, {infeasible.AddRow(-kInfinity, 1), 1.0}});
  LinearProgram unbounded;
  unbounded.AddColumn(1, {{unbounded.AddRow(0, kInfinity), 1.0}});
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  EXPECT_EQ(infeasible.Solve("").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(unbounded.Solve("").status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// The door of the library as others would call it: maximise x with x <= 1.
class Entry : public testing::Test {
 protected:
  void SetUp() override {
    const auto library = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libhorus_lp.so";
    void* const opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    ASSERT_NE(opened, nullptr) << dlerror();
    solve_ = reinterpret_cast<horus_lp_entry_fn>(dlsym(opened, "horus_lp_entry_v1"));
    ASSERT_NE(solve_, nullptr);
    request_ = {.struct_size = sizeof(horus_lp_request),
                .columns = 1,
                .rows = 1,
                .max_iterations = 100,
                .starts = starts_.data(),
                .indices = &zero_,
                .elements = &one_,
                .objective = &one_,
                .column_lower = &none_,
                .column_upper = &infinite_,
                .row_lower = &none_,
                .row_upper = &one_,
                .values = &value_,
                .prices = &price_,
                .objective_value = &objective_};
  }

  std::array<int32_t, 2> starts_ = {0, 1};
  int32_t zero_ = 0;
  double none_ = 0, one_ = 1, infinite_ = kInfinity;
  double value_ = -1, price_ = -1, objective_ = -1;
  std::array<char, HORUS_LP_TEXT_BYTES> text_ = {};
  horus_lp_request request_ = {};
  horus_lp_entry_fn solve_ = nullptr;
};

TEST_F(Entry, SolvesACompleteRequest) {
  ASSERT_EQ(solve_(&request_, text_.data()), HORUS_LP_OK);
  EXPECT_THAT(value_, DoubleNear(1, 1e-9));
  EXPECT_THAT(price_, DoubleNear(1, 1e-9));
  EXPECT_THAT(objective_, DoubleNear(1, 1e-9));
}

TEST_F(Entry, RefusesAnotherVersionAndWhatIsIncompleteAndWritesNothing) {
  using R = horus_lp_request;
  const std::vector<std::function<void(R&)>> changes = {[](R& r) { r.columns = 0; },
                                                        [](R& r) { r.rows = 0; },
                                                        [](R& r) { r.max_iterations = 0; },
                                                        [](R& r) { r.starts = nullptr; },
                                                        [](R& r) { r.indices = nullptr; },
                                                        [](R& r) { r.elements = nullptr; },
                                                        [](R& r) { r.objective = nullptr; },
                                                        [](R& r) { r.column_lower = nullptr; },
                                                        [](R& r) { r.column_upper = nullptr; },
                                                        [](R& r) { r.row_lower = nullptr; },
                                                        [](R& r) { r.row_upper = nullptr; },
                                                        [](R& r) { r.values = nullptr; },
                                                        [](R& r) { r.prices = nullptr; },
                                                        [](R& r) { r.objective_value = nullptr; }};
  for (const auto& change : changes) {
    R request = request_;
    change(request);
    EXPECT_EQ(solve_(&request, text_.data()), HORUS_LP_REFUSED);
    EXPECT_THAT(text_.data(), testing::HasSubstr("incomplete request"));
  }
  R other = request_;
  other.struct_size -= 8;
  EXPECT_EQ(solve_(&other, text_.data()), HORUS_LP_REFUSED);
  EXPECT_THAT(text_.data(), testing::HasSubstr("request of another version"));
  EXPECT_EQ(solve_(nullptr, text_.data()), HORUS_LP_REFUSED);
  EXPECT_EQ(solve_(&request_, nullptr), HORUS_LP_REFUSED);
  EXPECT_EQ(value_, -1);
  EXPECT_EQ(price_, -1);
  EXPECT_EQ(objective_, -1);
}

char mark;
void* const out_of_it = &mark;

TEST(Contained, AnswersWhateverIsThrown) {
  std::array<char, HORUS_LP_TEXT_BYTES> text = {};
  EXPECT_EQ(lp::Contained(text.data(), [] { return 77; }), 77);
  EXPECT_STREQ(text.data(), "");
  EXPECT_EQ(lp::Contained(text.data(), []() -> int32_t { throw std::bad_alloc(); }), HORUS_LP_NO_MEMORY);
  EXPECT_THAT(text.data(), testing::HasSubstr("an allocation failed"));
  EXPECT_EQ(lp::Contained(text.data(), []() -> int32_t { throw std::runtime_error(std::string(1000, 'x')); }),
            HORUS_LP_FAILED);
  EXPECT_EQ(std::string(text.data()), std::string(HORUS_LP_TEXT_BYTES - 1, 'x'));
  EXPECT_EQ(lp::Contained(text.data(), []() -> int32_t { throw 3; }), HORUS_LP_FAILED);
  EXPECT_THAT(text.data(), testing::HasSubstr("Clp threw"));
}

TEST(Contained, LetsACancelledThreadGo) {
  std::array<char, HORUS_LP_TEXT_BYTES> text = {};
  pthread_t thread = {};
  const auto cancelled = [](void* out) -> void* {
    lp::Contained(static_cast<char*>(out), []() -> int32_t { pthread_exit(out_of_it); });
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, nullptr, cancelled, text.data()), 0);
  void* ended = nullptr;
  ASSERT_EQ(pthread_join(thread, &ended), 0);
  EXPECT_EQ(ended, out_of_it);
  EXPECT_STREQ(text.data(), "");
}

TEST(SynergyOpt, GivesTheCoresToWhomTheyHelpMost) {
  const std::vector<SynergyServer> servers = {Server()};
  const std::vector<SynergyJob> jobs = {
      {.sensitivity = &kHungry}, {.sensitivity = &kStarved}, {.sensitivity = &kModest}, {.sensitivity = &kModest}};
  const auto round = AllocateRound(SynergyRule::kOpt, {servers, {}, jobs});
  ASSERT_TRUE(round.ok()) << round.status();
  EXPECT_EQ(round->grants[0].share, kFair);
  EXPECT_EQ(round->grants[1].share, (HostShare{6000, 100}));
  EXPECT_EQ(round->grants[3].share, (HostShare{1500, 100}));
  EXPECT_THAT(round->bound, DoubleNear(6, 1e-6));
}

TEST(SynergyOpt, IsNotBoundToPolicyOrder) {
  std::vector<SynergyServer> servers = {Server()};
  servers[0].gpus_free = 2;
  servers[0].cpu_free_milli = 9000;
  const std::vector<SynergyJob> jobs = {{.sensitivity = &kHungry}, {.sensitivity = &kStarved}};
  const auto speed = [&](SynergyRule rule) {
    const auto round = AllocateRound(rule, {servers, {}, jobs});
    EXPECT_TRUE(round.ok()) << round.status();
    return round->grants[0].speed + round->grants[1].speed;
  };
  EXPECT_EQ(speed(SynergyRule::kTune), 1.5 + 1) << "the first takes the cores";
  EXPECT_EQ(speed(SynergyRule::kOpt), 1 + 3);
}

TEST(SynergyOpt, ResizesResidentsWhereTheyAre) {
  std::vector<SynergyServer> servers = {Server()};
  servers[0].gpus_free = 1;
  servers[0].cpu_free_milli = 0;
  servers[0].mem_free_mib = 100;
  const std::vector<SynergyResident> residents = {
      {.slices = {{0, 1}}, .held = {6000, 100}, .floor = kFair, .sensitivity = &kHungry},
      {.slices = {{0, 2}}, .held = kFair, .floor = {1500, 100}, .sensitivity = &kModest}};
  const std::vector<SynergyJob> jobs = {{.sensitivity = &kStarved}};
  const auto round = AllocateRound(SynergyRule::kOpt, {servers, residents, jobs});
  ASSERT_TRUE(round.ok()) << round.status();
  EXPECT_THAT(round->resizes, ElementsAre(SynergyResize{0, kFair}, SynergyResize{1, {1500, 100}}));
  EXPECT_EQ(round->grants[0].share, (HostShare{6000, 100}));
}

TEST(SynergyOpt, LeavesOutWhatTheGpusDoNotHold) {
  const std::vector<SynergyServer> servers = {Server()};
  const std::vector<SynergyJob> jobs = {{.gpus = 3}, {.gpus = 2}, {.gpus = 1}};
  const auto round = AllocateRound(SynergyRule::kOpt, {servers, {}, jobs});
  ASSERT_TRUE(round.ok()) << round.status();
  EXPECT_THAT(round->grants[1].slices, IsEmpty());
  EXPECT_THAT(round->bound, DoubleNear(2, 1e-6));
}

TEST(SynergyOpt, RefusesMorePairsThanAProgramMayHave) {
  const std::vector<SynergyServer> servers(2000, Server());
  const std::vector<SynergyJob> jobs(kMaxLpColumns / servers.size() + 1, SynergyJob{.sensitivity = &kModest});
  const absl::Status status = AllocateRound(SynergyRule::kOpt, {servers, {}, jobs}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("at most 4000000 pairs of a job and a server"));
}

}  // namespace
}  // namespace horus
