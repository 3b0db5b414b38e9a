// SPDX-License-Identifier: Apache-2.0
// The words of enforcers, against the grammars that their documentation states.
#include "io/enforcers.h"

#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <string>

namespace horus {
namespace {

// Of whole answers.
const std::map<std::string, std::string, std::less<>> kGrammars = {
    {"mps",
     R"((CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=[1-9]\d?)?( ?CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=\d+=\d+[GM](,\d+=\d+[GM])*)?)"},
    {"mps-3",
     R"(\[servers\.[\w-]+\.namespaces\.[\w-]+\](\n(active_thread_percentage|pinned_memory_limit) = "\d+[GM]?")+)"},
    {"dra",
     R"(\{"apiVersion": "resource\.nvidia\.com/v1beta1", "kind": "GpuConfig", "sharing": \{"strategy": ("TimeSlicing"|"MPS", "mpsConfig": \{("defaultActiveThreadPercentage": \d+)?(, )?("defaultPinnedDeviceMemoryLimit": "\d+Mi")?\})\}\})"},
    {"kai",
     R"((nvidia\.com/container\.[\w-]+\.(gpu-memory\.(request|limit): \d+Mi|gpu-compute\.mode: (time-slicing|sm-sharing))\n?)+)"},
    {"hami", R"(nvidia\.com/gpu: \d+\nnvidia\.com/gpumem: \d+)"},
    {"slurm", R"(--gres=mps:\d+)"},
};

std::string WordsOf(std::string_view name, const GpuGrant& grant) {
  for (const Enforcer& one : Enforcers()) {
    if (one.name == name) return one.words(grant);
  }
  ADD_FAILURE() << name;
  return "";
}

TEST(Enforcers, WordsAreOfTheGrammarAndNameEveryNumberOnce) {
  ASSERT_EQ(Enforcers().size(), kGrammars.size());
  for (const Enforcer& one : Enforcers()) {
    for (const SharingMode mode : kSharingModes) {
      for (const int32_t cap : {0, 30}) {
        for (const int64_t limit : {int64_t{0}, int64_t{4096}, kUnboundedMemMib}) {
          const std::string words =
              one.words({.job = "a b/c", .gpus = 1, .mode = mode, .sm_cap_pct = cap, .memory = {2048, limit}});
          if (words.empty()) continue;
          EXPECT_TRUE(std::regex_match(words, std::regex(kGrammars.at(std::string(one.name)))))
              << one.name << ": " << words;
          EXPECT_TRUE(mode == SharingMode::kMps || mode == SharingMode::kTimeSlice)
              << one.name << ": nothing is shared";
          EXPECT_EQ(words.find("4294967296"), std::string::npos) << one.name << ": no limit is none";
        }
      }
    }
  }
}

// A cap that is dropped would break neighbours' bounds: whoever has a word for it says it.
TEST(Enforcers, ACapIsSaidWhereThereIsAWord) {
  const GpuGrant grant{.job = "night", .gpus = 2, .mode = SharingMode::kMps, .sm_cap_pct = 30, .memory = {2048, 4096}};
  EXPECT_EQ(WordsOf("mps", grant),
            "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=30 CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=4096M,1=4096M");
  EXPECT_EQ(WordsOf("mps-3", grant),
            "[servers.horus.namespaces.night]\nactive_thread_percentage = \"30\"\npinned_memory_limit = \"4096M\"");
  EXPECT_NE(WordsOf("dra", grant).find("\"defaultActiveThreadPercentage\": 30"), std::string::npos);
  EXPECT_EQ(WordsOf("hami", grant).find("gpucores"), std::string::npos) << "they are time, and no SMs";
  GpuGrant dotted = grant, underlined = grant;
  dotted.job = "a.b", underlined.job = "a_b";
  EXPECT_NE(WordsOf("mps-3", dotted), WordsOf("mps-3", underlined)) << "one would have the other's limits";
  EXPECT_NE(WordsOf("kai", grant).find("sm-sharing"), std::string::npos);
  EXPECT_EQ(WordsOf("slurm", grant), "") << "its percentages are of one GPU";
  GpuGrant one = grant;
  one.gpus = 1;
  EXPECT_EQ(WordsOf("slurm", one), "--gres=mps:30");
}

}  // namespace
}  // namespace horus
