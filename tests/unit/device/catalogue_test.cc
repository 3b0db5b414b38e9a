// SPDX-License-Identifier: Apache-2.0
// Rules of looking up a GPU type.
#include "device/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace horus {
namespace {

using ::testing::HasSubstr;

std::string NameOf(std::string_view text) {
  const std::shared_ptr<const Catalogue> catalogue = Catalogue::Default();
  const absl::StatusOr<GpuTypeId> id = catalogue->Find(text);
  return id.ok() ? catalogue->at(*id).name : std::string(id.status().message());
}

TEST(Catalogue, DefaultIsOneSharedInstance) {
  EXPECT_EQ(Catalogue::Default().get(), Catalogue::Default().get());
  EXPECT_GE(Catalogue::Default()->size(), 28u);
}

TEST(Catalogue, EveryNameFindsItself) {
  const std::shared_ptr<const Catalogue> catalogue = Catalogue::Default();
  for (size_t i = 0; i < catalogue->size(); ++i) {
    const GpuTypeId id(static_cast<uint16_t>(i));
    const absl::StatusOr<GpuTypeId> found = catalogue->Find(catalogue->at(id).name);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, id);
  }
}

TEST(Catalogue, EveryAliasFindsItsType) {
  const std::shared_ptr<const Catalogue> catalogue = Catalogue::Default();
  for (const GpuType& type : catalogue->types()) {
    for (const std::string& alias : type.aliases) EXPECT_EQ(NameOf(alias), type.name) << alias;
  }
}

// What nvidia-smi and Kubernetes' GPU feature discovery print.
TEST(Catalogue, DriverNamesAndLabelsAreFound) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"Tesla K80", "k80"},
      {"Tesla P100-PCIE-16GB", "p100-pcie-16gb"},
      {"Tesla V100-SXM2-16GB", "v100-sxm2-16gb"},
      {"Tesla-V100-PCIE-32GB", "v100-pcie-32gb"},
      {"Tesla T4", "t4"},
      {"NVIDIA A100-SXM4-40GB", "a100-40gb"},
      {"NVIDIA-A100-SXM4-80GB", "a100-80gb"},
      {"NVIDIA A100 80GB PCIe", "a100-pcie-80gb"},
      {"NVIDIA A10G", "a10g"},
      {"NVIDIA H100 80GB HBM3", "h100-sxm"},
      {"NVIDIA-H100-80GB-HBM3", "h100-sxm"},
      {"NVIDIA H100 PCIe", "h100-pcie"},
      {"NVIDIA H100 NVL", "h100-nvl"},
      {"NVIDIA H200", "h200"},
      {"NVIDIA B200", "b200"},
      {"NVIDIA GeForce RTX 3090", "rtx-3090"},
      {"GeForce RTX 2080 Ti", "rtx-2080-ti"},
      {"NVIDIA TITAN Xp", "titan-xp"},
      {"Quadro RTX 8000", "rtx-8000"},
      {"NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"},
      {"nvidia-h100-mega-80gb", "h100-sxm"},
      {"NVIDIA-H200-SXM5-141GB", "h200"},
  };
  for (const auto& [text, name] : cases) EXPECT_EQ(NameOf(text), name) << text;
}

// HAMi writes the vendor before a name that begins with it.
TEST(Catalogue, ABrandGivenTwiceIsTheBrand) {
  EXPECT_EQ(NameOf("NVIDIA-NVIDIA L40S"), "l40s");
  EXPECT_EQ(NameOf("NVIDIA-NVIDIA GeForce RTX 3090"), "rtx-3090");
  EXPECT_EQ(NameOf("NVIDIA-Tesla V100-PCIE-32GB"), "v100-pcie-32gb");
  EXPECT_FALSE(Catalogue::Default()->Find("NVIDIA-NVIDIA").ok());
}

TEST(Catalogue, ACardThatSeveralShareIsTheCard) {
  EXPECT_EQ(NameOf("NVIDIA-A100-SXM4-40GB-SHARED"), "a100-40gb");
  EXPECT_EQ(NameOf("Tesla-T4-SHARED"), "t4");
  EXPECT_FALSE(Catalogue::Default()->Find("-SHARED").ok());
  // A type of that very name is itself.
  GpuType own = Catalogue::Default()->at(*Catalogue::Default()->FindKnown("t4"));
  own.name = "t4-shared";
  own.aliases.clear();
  const auto extended = Catalogue::Extend(*Catalogue::Default(), {own});
  ASSERT_TRUE(extended.ok()) << extended.status();
  EXPECT_EQ(extended->at(*extended->Find("Tesla T4 SHARED")).name, "t4-shared");
}

TEST(Catalogue, AMigInstanceIsNoNameOfItsCard) {
  for (const char* label : {"NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb-SHARED"}) {
    const absl::Status status = Catalogue::Default()->Find(label).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(status.message(), "GPU type: expected a whole GPU, found '" + std::string(label) +
                                    "', a MIG instance: name its card, a100-80gb, and its profile, '1g.10gb', apart");
    EXPECT_EQ(Catalogue::Default()->FindKnown(label), std::nullopt);
  }
  EXPECT_THAT(std::string(Catalogue::Default()->Find("tpu-mig-1g.10gb").status().message()), HasSubstr("none is near"));
}

TEST(Catalogue, TraceNamesAreFound) {
  EXPECT_EQ(NameOf("V100M16"), "v100-sxm2-16gb");
  EXPECT_EQ(NameOf("V100M32"), "v100-sxm2-32gb");
  EXPECT_EQ(NameOf("P100"), "p100-pcie-16gb");
  EXPECT_EQ(NameOf("v100"), "v100-sxm2-16gb");
}

TEST(Catalogue, AnonymisedTypesAreNotInvented) {
  const std::shared_ptr<const Catalogue> catalogue = Catalogue::Default();
  for (const char* name : {"G1", "G2", "G3"}) {
    EXPECT_FALSE(catalogue->Find(name).ok()) << name;
    EXPECT_EQ(catalogue->FindKnown(name), std::nullopt) << name;
  }
}

TEST(Catalogue, AnUnknownNameSuggestsNearOnes) {
  const absl::Status status = Catalogue::Default()->Find("a100-40bg").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'a100-40bg'"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("nearest: a100-40gb"));
}

TEST(Catalogue, ANameNearNothingSaysSo) {
  const absl::Status status = Catalogue::Default()->Find("tpu-v5-litepod-slice").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("none is near"));
}

TEST(Catalogue, HostileNamesAreNotFoundAndTheMessageStaysShort) {
  const std::vector<std::string> names = {
      "", "-", "nvidia-", "nvidia tesla ", std::string("\0\x01\xff", 3), std::string(10'000'000, 'a')};
  for (const std::string& name : names) {
    const absl::Status status = Catalogue::Default()->Find(name).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_LT(status.message().size(), 400u);
  }
}

TEST(Catalogue, AnEmptyCatalogueFindsNothing) {
  const Catalogue empty;
  EXPECT_EQ(empty.Find("t4").status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(empty.Contains(GpuTypeId(0)));
}

TEST(Catalogue, OnlyIssuedIdsAreContained) {
  const std::shared_ptr<const Catalogue> catalogue = Catalogue::Default();
  EXPECT_TRUE(catalogue->Contains(GpuTypeId(0)));
  EXPECT_FALSE(catalogue->Contains(GpuTypeId(static_cast<uint16_t>(catalogue->size()))));
  EXPECT_FALSE(catalogue->Contains(GpuTypeId::Invalid()));
}

}  // namespace
}  // namespace horus
