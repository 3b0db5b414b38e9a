// SPDX-License-Identifier: Apache-2.0
// What labels, attributes and instance types call GPUs, and what nodes offer.
#include "io/kube/kube_gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace horus {
namespace {

using ::testing::HasSubstr;

const Catalogue& TheCatalogue() { return *Catalogue::Default(); }

std::string TypeOf(std::string_view name, int64_t mem_mib) {
  const auto type = FindKubeGpu(TheCatalogue(), name, mem_mib);
  return type.ok() ? TheCatalogue().at(*type).name : std::string(type.status().message());
}

// Real values of nvidia.com/gpu.product, gpu.memory beside it, productName of resource slices, HAMi's type, and clouds.
TEST(KubeGpuNames, EverySpellingFindsItsType) {
  const std::vector<std::tuple<const char*, int64_t, const char*>> cases = {
      {"Tesla-K80", 11441, "k80"},
      {"Tesla-M60", 7680, "m60"},
      {"Tesla-P4", 7611, "p4"},
      {"Tesla-P40", 22919, "p40"},
      {"Tesla-P100-PCIE-16GB", 16280, "p100-pcie-16gb"},
      {"Tesla-P100-SXM2-16GB", 16384, "p100-sxm2-16gb"},
      {"NVIDIA-GeForce-GTX-1080-Ti", 11264, "gtx-1080-ti"},
      {"GeForce-GTX-1080-Ti", 11178, "gtx-1080-ti"},
      {"Tesla-V100-PCIE-16GB", 16384, "v100-pcie-16gb"},
      {"Tesla-V100-PCIE-32GB", 32768, "v100-pcie-32gb"},
      {"Tesla-V100-SXM2-16GB", 16160, "v100-sxm2-16gb"},
      {"Tesla-V100-SXM2-32GB", 32510, "v100-sxm2-32gb"},
      {"Tesla-V100S-PCIE-32GB", 32768, "v100s-pcie-32gb"},
      {"Tesla-T4", 15360, "t4"},
      {"Tesla-T4", 15109, "t4"},
      {"NVIDIA-GeForce-RTX-2080-Ti", 11264, "rtx-2080-ti"},
      {"Quadro-RTX-8000", 49152, "rtx-8000"},
      {"NVIDIA-A100-SXM4-40GB", 40960, "a100-40gb"},
      {"A100-SXM4-40GB", 40536, "a100-40gb"},
      {"NVIDIA-A100-SXM4-80GB", 81920, "a100-80gb"},
      {"NVIDIA-A100-PCIE-40GB", 40960, "a100-pcie-40gb"},
      {"NVIDIA-A100-80GB-PCIe", 81920, "a100-pcie-80gb"},
      {"NVIDIA A100 80GB PCIe", 81920, "a100-pcie-80gb"},
      {"NVIDIA-A30", 24576, "a30"},
      {"NVIDIA-A40", 46068, "a40"},
      {"NVIDIA-A10", 23028, "a10"},
      {"NVIDIA-A10G", 23028, "a10g"},
      {"NVIDIA-A16", 15356, "a16"},
      {"NVIDIA-A2", 15356, "a2"},
      {"NVIDIA-RTX-A6000", 49140, "rtx-a6000"},
      {"NVIDIA-GeForce-RTX-3090", 24576, "rtx-3090"},
      {"NVIDIA-GeForce-RTX-4090", 24564, "rtx-4090"},
      {"NVIDIA-L4", 23034, "l4"},
      {"NVIDIA-L40", 46068, "l40"},
      {"NVIDIA-L40S", 46068, "l40s"},
      {"NVIDIA-RTX-6000-Ada-Generation", 49140, "rtx-6000-ada"},
      {"NVIDIA-H100-80GB-HBM3", 81559, "h100-sxm"},
      {"NVIDIA H100 80GB HBM3", 0, "h100-sxm"},
      {"NVIDIA-H100-PCIe", 81559, "h100-pcie"},
      {"NVIDIA-H100-NVL", 95830, "h100-nvl"},
      {"NVIDIA-H200", 143771, "h200"},
      {"NVIDIA-H20", 97871, "h20"},
      {"NVIDIA-B200", 183359, "b200"},
      {"NVIDIA-GB200", 189471, "gb200"},
      {"NVIDIA-B300-SXM6-AC", 275040, "b300"},
      {"NVIDIA-GB300", 284208, "gb300"},
      {"NVIDIA-H20-3e", 143771, "h20-3e"},
      {"NVIDIA-H800", 81559, "h800"},
      {"NVIDIA-H800-PCIe", 81559, "h800-pcie"},
      {"NVIDIA-GH200-144G-HBM3e", 146831, "gh200-144gb"},
      {"NVIDIA-L20", 46068, "l20"},
      {"Tesla-V100-SXM3-32GB", 32768, "v100-sxm2-32gb"},
      {"Tesla-P100-PCIE-12GB", 12198, "p100-pcie-12gb"},
      {"NVIDIA-T4G", 15360, "t4"},
      {"NVIDIA-RTX-A5000", 24564, "rtx-a5000"},
      {"NVIDIA-RTX-A4000", 16376, "rtx-a4000"},
      {"NVIDIA-GeForce-RTX-4090-D", 24564, "rtx-4090-d"},
      {"NVIDIA-GeForce-RTX-3090-Ti", 24564, "rtx-3090-ti"},
      {"Quadro-RTX-6000", 24576, "rtx-6000"},
      {"NVIDIA-TITAN-RTX", 24220, "titan-rtx"},
      {"NVIDIA-RTX-PRO-6000-Blackwell-Max-Q-Workstation-Edition", 97887, "rtx-pro-6000-max-q"},
      {"NVIDIA-GeForce-RTX-5090", 32607, "rtx-5090"},
      {"NVIDIA-RTX-PRO-6000-Blackwell-Workstation-Edition", 97887, "rtx-pro-6000"},
      {"NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 97887, "rtx-pro-6000-server"},
      {"NVIDIA-H200-NVL", 143771, "h200-nvl"},
      {"NVIDIA-GH200-480GB", 97871, "gh200-96gb"},
      {"NVIDIA-A800-SXM4-80GB", 81920, "a800-80gb"},
      {"NVIDIA-A800-80GB-PCIe", 81920, "a800-pcie-80gb"},
      {"NVIDIA-NVIDIA L40S", 0, "l40s"},
      {"NVIDIA-NVIDIA A100-SXM4-80GB", 0, "a100-80gb"},
      {"NVIDIA-NVIDIA GeForce RTX 4090", 0, "rtx-4090"},
      {"NVIDIA-Tesla V100-PCIE-32GB", 0, "v100-pcie-32gb"},
      {"nvidia-tesla-k80", 0, "k80"},
      {"nvidia-tesla-p4", 0, "p4"},
      {"nvidia-tesla-p100", 0, "p100-pcie-16gb"},
      {"nvidia-tesla-v100", 0, "v100-sxm2-16gb"},
      {"nvidia-tesla-t4", 0, "t4"},
      {"nvidia-l4", 0, "l4"},
      {"nvidia-tesla-a100", 0, "a100-40gb"},
      {"nvidia-a100-80gb", 0, "a100-80gb"},
      {"nvidia-h100-80gb", 0, "h100-sxm"},
      {"nvidia-h100-mega-80gb", 0, "h100-sxm"},
      {"nvidia-h200-141gb", 0, "h200"},
      {"nvidia-b200", 0, "b200"},
      {"nvidia-gb200", 0, "gb200"},
      {"a100", 40960, "a100-40gb"},
      {"a100", 81920, "a100-80gb"},
      {"v100", 32768, "v100-sxm2-32gb"},
      {"a10g", 24576, "a10g"},
      {"l40s", 46068, "l40s"},
  };
  for (const auto& [name, mem_mib, type] : cases) EXPECT_EQ(TypeOf(name, mem_mib), type) << name << " " << mem_mib;
}

TEST(KubeGpuNames, MemoryThatNoBoardOfTheNameHasIsRefused) {
  EXPECT_THAT(TypeOf("NVIDIA-L4", 49152), HasSubstr("expected about 23034 MiB of memory, as l4 has"));
  EXPECT_THAT(TypeOf("NVIDIA-Z1", 0), HasSubstr("expected one of the"));
}

TEST(KubeGpuNames, LabelsOfPartsAreTakenApart) {
  const KubeProduct mig = SplitKubeProduct("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb-SHARED");
  EXPECT_EQ(mig.card, "NVIDIA-A100-SXM4-80GB");
  EXPECT_EQ(mig.profile, "1g.10gb");
  EXPECT_TRUE(mig.shared);
  const KubeProduct plain = SplitKubeProduct("Tesla-T4");
  EXPECT_EQ(plain.card, "Tesla-T4");
  EXPECT_EQ(plain.profile, "");
  EXPECT_FALSE(plain.shared);
  EXPECT_EQ(SplitKubeProduct("Tesla-T4-SHARED").card, "Tesla-T4");
  EXPECT_EQ(MigProfileOfResource("nvidia.com/mig-3g.20gb.shared"), "3g.20gb");
  EXPECT_EQ(MigProfileOfResource("nvidia.com/gpu"), "");
}

TEST(KubeGpuNames, ACloudsNameOfAnotherBoardIsTheCloudsBoard) {
  EXPECT_EQ(FindKubeCloudGpu({{"cloud.google.com/gke-accelerator", "nvidia-rtx-pro-6000"}}).name,
            "rtx-pro-6000-server");
  EXPECT_EQ(FindKubeCloudGpu({{"cloud.google.com/gke-accelerator", "nvidia-l4"}}).name, "nvidia-l4");
}

TEST(KubeGpuNames, InstanceTypesOfCloudsTellWholeGpusOnly) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"p3.8xlarge", "v100-sxm2-16gb"},
      {"p3dn.24xlarge", "v100-sxm2-32gb"},
      {"p4d.24xlarge", "a100-40gb"},
      {"p4de.24xlarge", "a100-80gb"},
      {"p5.48xlarge", "h100-sxm"},
      {"p5en.48xlarge", "h200"},
      {"g4dn.xlarge", "t4"},
      {"g5.12xlarge", "a10g"},
      {"g6.2xlarge", "l4"},
      {"g6e.xlarge", "l40s"},
      {"p6-b200.48xlarge", "b200"},
      {"p6-b300.48xlarge", "b300"},
      {"p6e-gb200.36xlarge", "gb200"},
      {"g7e.48xlarge", "rtx-pro-6000-server"},
      {"gr6.4xlarge", "l4"},
      {"gr6f.4xlarge", ""},
      {"g5g.xlarge", "t4"},
      {"g4ad.xlarge", ""},
      {"g6f.large", ""},
      {"m5.large", ""},
      {"p4d", ""},
      {"Standard_NC4as_T4_v3", "t4"},
      {"Standard_NC6s_v3", "v100-pcie-16gb"},
      {"Standard_NC24ads_A100_v4", "a100-pcie-80gb"},
      {"Standard_NC40ads_H100_v5", "h100-nvl"},
      {"Standard_ND96asr_v4", "a100-40gb"},
      {"Standard_ND96amsr_A100_v4", "a100-80gb"},
      {"Standard_ND96isr_H100_v5", "h100-sxm"},
      {"Standard_ND96isr_H200_v5", "h200"},
      {"Standard_ND40rs_v2", "v100-sxm2-32gb"},
      {"Standard_NV6ads_A10_v5", ""},
      {"Standard_D4s_v3", ""},
      {"Standard_ND128isr_NDR_GB200_v6", "gb200"},
      {"Standard_ND128isr_GB300_v6", "gb300"},
      {"Standard_NV36ads_A10_v5", "a10"},
      {"Standard_ND96isr_MI300X_v5", ""},
      {"a2-highgpu-1g", "a100-40gb"},
      {"a3-ultragpu-8g", "h200"},
      {"a4-highgpu-8g", "b200"},
      {"a4x-highgpu-4g", "gb200"},
      {"g2-standard-12", "l4"},
      {"g4-standard-48", "rtx-pro-6000-server"},
      {"g4-standard-6", ""},
      {"BM.GPU.H100.8", "h100-sxm"},
      {"BM.GPU.MI300X.8", ""},
      {"BM.GPU.GB200.4", "gb200"},
      {"ecs.gn7i-c8g1.2xlarge", "a10"},
      {"ecs.vgn7i-vws-m4.xlarge", ""},
      {"gpu-h100x8-640gb", "h100-sxm"},
      {"gx3.16x80.l4", "l4"},
      {"gx3d.160x1792.8h200", "h200"},
  };
  for (const auto& [instance, gpu] : cases) {
    EXPECT_EQ(FindKubeCloudGpu({{"node.kubernetes.io/instance-type", instance}}).name, gpu) << instance;
  }
}

KubeNode WithProduct(const char* product, KubeCounts resources) {
  KubeNode node;
  node.name = "n";
  node.labels["nvidia.com/gpu.product"] = product;
  node.allocatable.resources = std::move(resources);
  return node;
}

TEST(KubeGpus, InstancesArePackedAsCardsAllow) {
  const KubeNodeGpus found = FindKubeGpus(
      TheCatalogue(),
      WithProduct("NVIDIA-A100-SXM4-80GB", {{"nvidia.com/mig-3g.40gb", 3}, {"nvidia.com/mig-1g.10gb", 8}}), {});
  ASSERT_EQ(found.problem, "");
  ASSERT_EQ(found.gpus.size(), 11u);
  std::vector<int> cards;
  for (const KubeGpu& gpu : found.gpus) cards.push_back(gpu.card);
  // Card 0: 3g + 3g (eight memory slices); card 1: 3g and four of 1g; card 2: the other four.
  EXPECT_EQ(cards, (std::vector<int>{0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2}));
}

TEST(KubeGpus, AnInstanceTypeThatNobodyKnowsIsNamed) {
  KubeNode node;
  node.labels["node.kubernetes.io/instance-type"] = "g6f.large";
  node.allocatable.resources["nvidia.com/gpu"] = 1;
  EXPECT_THAT(FindKubeGpus(TheCatalogue(), node, {}).problem, HasSubstr("instance type 'g6f.large' is not known"));
}

TEST(KubeGpus, CountsBeyondANodeAreRefused) {
  for (const int64_t count : {int64_t{1025}, int64_t{1} << 60}) {
    const KubeNodeGpus found = FindKubeGpus(TheCatalogue(), WithProduct("Tesla-T4", {{"nvidia.com/gpu", count}}), {});
    EXPECT_THAT(found.problem, HasSubstr("expected at most 1024 GPUs on a node"));
    EXPECT_TRUE(found.gpus.empty());
  }
}

TEST(KubeGpus, HamiIsReadInBothForms) {
  KubeNode node;
  node.name = "n";
  node.hami_register =
      "GPU-1,10,32768,100,NVIDIA-Tesla V100-PCIE-32GB,0,true:GPU-2,10,32768,100,NVIDIA-Tesla V100-PCIE-32GB,0,false:";
  KubeNodeGpus found = FindKubeGpus(TheCatalogue(), node, {});
  ASSERT_EQ(found.gpus.size(), 1u) << found.problem;
  EXPECT_EQ(found.gpus[0].uuid, "GPU-1");
  EXPECT_EQ(found.gpus[0].replicas, 10);
  // JSON leaves out what is false.
  node.hami_register =
      R"([{"id": "GPU-3", "count": 4, "devmem": 32768, "type": "NVIDIA-Tesla V100-PCIE-32GB"},)"
      R"( {"id": "GPU-4", "count": 4, "devmem": 32768, "type": "NVIDIA-Tesla V100-PCIE-32GB", "health": true}])";
  found = FindKubeGpus(TheCatalogue(), node, {});
  ASSERT_EQ(found.gpus.size(), 1u) << found.problem;
  EXPECT_EQ(found.gpus[0].uuid, "GPU-4");
  for (const char* const wrong :
       {"GPU-1,10", "[{\"health\":true}]", "[{\"id\":5}]", "{}", "[", "GPU-1,x,1,1,Tesla T4,0,true:"}) {
    node.hami_register = wrong;
    EXPECT_NE(FindKubeGpus(TheCatalogue(), node, {}).problem, "") << wrong;
  }
}

}  // namespace
}  // namespace horus
