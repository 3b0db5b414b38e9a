// SPDX-License-Identifier: Apache-2.0
// One function a source; the first that tells of GPUs is believed. And tables of the names that clouds use.
#include "io/kube/kube_gpus.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <tuple>

#include "absl/strings/str_split.h"
#include "base/text.h"
#include "base/units.h"
#include "device/fold_name.h"
#include "place/state/node.h"

namespace horus {
namespace {

// ---- The names that clouds use.

constexpr std::string_view kSharedSuffix = "-shared";
constexpr std::string_view kMigInfix = "-mig-";
// Most that a driver's figure is below (ECC, what the firmware keeps) or above the data sheet's: T4 6 %, M60 7 %.
constexpr double kMemoryTolerance = 0.1;

constexpr std::array<const char*, 3> kNameLabels = {
    "cloud.google.com/gke-accelerator",     // nvidia-h100-mega-80gb
    "karpenter.k8s.aws/instance-gpu-name",  // a10g
    "k8s.amazonaws.com/accelerator",        // nvidia-tesla-v100
};
constexpr char kKarpenterMemory[] = "karpenter.k8s.aws/instance-gpu-memory";
constexpr char kInstanceLabel[] = "node.kubernetes.io/instance-type";

// A label as an integer above 0; 0 for anything else.
int64_t KubeLabelCount(const KubeTexts& labels, const std::string& key) {
  return std::max<int64_t>(0, ParseNumber<int64_t>(KubeLabel(labels, key)).value_or(0));
}

// What the node's cloud calls its kind of machine; "" where nothing says so.
std::string KubeInstanceType(const KubeTexts& labels) {
  const std::string type = KubeLabel(labels, kInstanceLabel);
  return type.empty() ? KubeLabel(labels, "beta.kubernetes.io/instance-type") : type;
}

// As bindings/kubernetes/internal/objects has them: what joins nodes closest comes first.
constexpr std::array<const char*, 9> kRackLabels = {"nvidia.com/gpu.clique",
                                                    "topology.kubernetes.io/rack",
                                                    "cloud.provider.com/topology-rack",
                                                    "network.topology.nvidia.com/accelerator",
                                                    "network.topology.nvidia.com/leaf",
                                                    "topology.k8s.aws/network-node-layer-3",
                                                    "cloud.google.com/gce-topology-subblock",
                                                    "rack",
                                                    "topology.kubernetes.io/zone"};
constexpr std::string_view kNoFabric = "00000000-0000-0000-0000-000000000000";  // clique where NVLink ends at the node

// Instance types with whole GPUs, by how they begin and, behind "*", end (pages of accelerated instance types of Amazon
// EC2, Azure, Google Cloud, IBM, Oracle, Alibaba, CoreWeave and DigitalOcean, 2026); folded. Types with parts of a GPU
// (EC2's g6f, Google's smaller g4, Azure's smaller NV A10) are not here.
struct Instances {
  const char* gpu;
  const char* types;
};
constexpr Instances kInstances[] = {
    {"a10", "bm.gpu.a10. vm.gpu.a10. ecs.gn7i- standard-nv36ad*s-a10-v5 standard-nv72ad*s-a10-v5"},
    {"a100-40gb", "p4d. a2-highgpu- a2-megagpu- bm.gpu4. bm.gpu.b4. ecs.gn7- standard-nd*asr-v4"},
    {"a100-80gb", "p4de. a2-ultragpu- bm.gpu.a100-v2. ecs.gn7e- standard-nd*-a100-v4"},
    {"a100-pcie-80gb", "standard-nc*-a100-v4"},
    {"a10g", "g5."},
    {"b200", "p6-b200. a4-highgpu- bm.gpu.b200. b200-8x"},
    {"b300", "p6-b300. bm.gpu.b300."},
    {"gb200", "p6e-gb200. a4x-highgpu- bm.gpu.gb200. gb200-4x standard-nd*-gb200-v6"},
    {"gb300", "p6e-gb300. a4x-maxgpu- bm.gpu.gb300. gb300-4x standard-nd*-gb300-v6"},
    {"h100-nvl", "standard-nc*-h100-v5"},
    {"h100-sxm",
     "p5. a3-highgpu- a3-megagpu- a3-edgegpu- bm.gpu.h100. gpu-h100x gd-8xh100 gx3d*h100 standard-nd*-h100-v5"},
    {"h200", "p5e. p5en. a3-ultragpu- bm.gpu.h200. gpu-h200x gd-8xh200 gx3d*h200 standard-nd*-h200-v5"},
    {"k80", "p2."},
    {"l4", "g6. gr6. g2-standard- gx3*l4"},
    {"l40s", "g6e. bm.gpu.l40s gpu-l40sx gd-8xl40s gx3*l40s"},
    {"m60", "g3."},
    {"p100-pcie-16gb", "ecs.gn5- standard-nc*s-v2"},
    {"p4", "ecs.gn5i-"},
    {"rtx-6000-ada", "gpu-6000adax"},
    {"rtx-pro-6000-server", "g7e. g4-standard-48 g4-standard-96 g4-standard-192 g4-standard-384"},
    {"t4", "g4dn. g5g. ecs.gn6i- standard-nc*-t4-v3"},
    {"v100-pcie-16gb", "standard-nc*s-v3"},
    {"v100-sxm2-16gb", "p3. bm.gpu3. vm.gpu3. ecs.gn6v-"},
    {"v100-sxm2-32gb", "p3dn. ecs.gn6e- standard-nd*rs-v2"},
};

// Where a cloud's name is another board's elsewhere: GKE's G4 machines have the server edition.
struct Renamed {
  std::string_view value, gpu;
};
constexpr std::array<Renamed, 1> kRenamed = {{{"nvidia-rtx-pro-6000", "rtx-pro-6000-server"}}};

std::string Folded(std::string_view text) {
  std::string folded(text);
  for (char& c : folded) c = FoldChar(c);
  return folded;
}

// "" for an instance type that is not known to have whole GPUs.
std::string GpuOfInstance(std::string_view type) {
  const std::string folded = Folded(type);
  for (const Instances& known : kInstances) {
    for (const absl::string_view one : absl::StrSplit(known.types, ' ')) {
      const std::pair<std::string, std::string> ends = absl::StrSplit(one, absl::MaxSplits('*', 1));
      if (folded.starts_with(ends.first) && folded.ends_with(ends.second)) return known.gpu;
    }
  }
  return "";
}

bool HasMemory(const GpuType& type, int64_t mem_mib) {
  const double stated = static_cast<double>(mem_mib), nominal = static_cast<double>(type.mem_mib);
  return std::abs(stated - nominal) <= kMemoryTolerance * nominal;
}

// ---- The sources.

constexpr char kProduct[] = "nvidia.com/gpu.product";
constexpr std::string_view kMigPrefix = "nvidia.com/mig-";
constexpr std::string_view kShared = ".shared";
constexpr char kHamiSource[] = "hami.io/node-nvidia-register";
constexpr char kVolcanoSource[] = "volcano.sh/node-vgpu-register";
constexpr int64_t kMostReplicas = kMaxTenantsPerDevice;

using Gpus = std::vector<KubeGpu>;

// What a node offers of one resource: `cards` devices, each as `replicas`.
struct Offer {
  std::string resource;
  std::string labelled;  // the resource that labels speak of
  int64_t count = 0;
  int64_t cards = 0;
  int64_t replicas = 1;
};

std::string_view WithoutShared(std::string_view resource) {
  return resource.ends_with(kShared) ? resource.substr(0, resource.size() - kShared.size()) : resource;
}

// GKE's own plugin shares by labels of its own.
int64_t ReplicasOf(const KubeTexts& labels, const std::string& resource) {
  int64_t replicas = KubeLabelCount(labels, resource + ".replicas");
  if (replicas == 0 && resource == kGpuResource)
    replicas = KubeLabelCount(labels, "cloud.google.com/gke-max-shared-clients-per-gpu");
  return std::max<int64_t>(1, replicas);
}

// The device plugin may offer "nvidia.com/gpu" under a name of the cluster's own; discovery's labels keep that one, and
// tell how much of it there is.
bool IsRenamedGpu(const KubeNode& node, const std::string& resource) {
  const auto at = node.capacity.find(resource);
  const int64_t stated = KubeLabelCount(node.labels, "nvidia.com/gpu.count");
  return at != node.capacity.end() && resource.find("gpu") != std::string::npos &&
         !node.allocatable.resources.contains(kGpuResource) && stated > 0 &&
         at->second / ReplicasOf(node.labels, kGpuResource) == stated;
}

std::vector<Offer> OffersOf(const KubeNode& node) {
  std::vector<Offer> offers;
  for (const auto& [resource, count] : node.allocatable.resources) {
    const std::string_view bare = WithoutShared(resource);
    if (resource == kVolcanoGpu || (!IsGpuResource(resource) && !IsRenamedGpu(node, resource))) continue;
    const std::string labelled(bare.starts_with(kMigPrefix) ? bare : kGpuResource);
    const int64_t replicas = ReplicasOf(node.labels, labelled);
    offers.push_back({resource, labelled, count, count / replicas, replicas});
  }
  return offers;
}

// Of discovery or a cloud; 0: not told.
int64_t StatedCards(const KubeTexts& labels, const std::string& resource) {
  int64_t stated = KubeLabelCount(labels, resource + ".count");
  for (const char* const label : {"karpenter.k8s.aws/instance-gpu-count", "cloud.google.com/gke-accelerator-count"}) {
    if (stated == 0 && resource == kGpuResource) stated = KubeLabelCount(labels, label);
  }
  return stated;
}

// If the plugin shares and labels do not say so, or the other way round, nobody can tell how many cards there are.
// `each`: what one of the GPUs that labels count may be offered as. Less may be allocatable than there is: devices that
// are not healthy, or that another resource holds (not `alone`).
absl::Status CheckLabels(const KubeNode& node, const Offer& offer, int64_t cards, int64_t each, bool alone) {
  const int64_t stated = StatedCards(node.labels, offer.labelled);
  const auto at = node.capacity.find(offer.resource);
  const int64_t capacity = at == node.capacity.end() ? offer.count : at->second;
  const bool in_replicas = offer.count % offer.replicas == 0 && capacity % offer.replicas == 0;
  const bool too_many = (cards + each - 1) / each > stated;
  const bool too_few = offer.replicas > 1 && alone && each == 1 && capacity / offer.replicas < stated;
  if (in_replicas && (stated == 0 || (!too_many && !too_few))) return absl::OkStatus();
  return InvalidArgument(
      "expected %s to count %s x %d replicas, as labels say, found %d allocatable of %d: the device plugin shares GPUs "
      "in another way (label %s.replicas)",
      offer.resource, stated == 0 ? "GPUs" : Formatted("%d GPUs", stated), offer.replicas, offer.count, capacity,
      offer.labelled);
}

SharingMode ModeOf(const KubeTexts& labels) {
  const bool mps = KubeLabel(labels, "nvidia.com/gpu.sharing-strategy") == "mps" ||
                   KubeLabel(labels, "cloud.google.com/gke-gpu-sharing-strategy") == "mps";
  return mps ? SharingMode::kMps : SharingMode::kTimeSlice;
}

absl::StatusOr<int16_t> ProfileOf(const GpuType& type, std::string_view profile) {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < type.mig.size(); ++i) {
    if (type.mig[i].name == profile) return static_cast<int16_t>(i);
    names.push_back(type.mig[i].name);
  }
  return InvalidArgument("expected a MIG profile of %s (%s), found %s", type.name,
                         names.empty() ? "it has none" : Listed(names), Quoted(profile));
}

// Instances of which nobody tells the card: each goes to the first card that has room.
class MigPacker {
 public:
  MigPacker(const GpuType& type, int32_t first_card) : type_(type), first_card_(first_card) {
    for (const MigProfile& profile : type.mig) {
      compute_ = std::max(compute_, profile.compute_slices);
      memory_ = std::max(memory_, profile.memory_slices);
    }
  }

  int32_t CardFor(int16_t index) {
    const MigProfile& profile = type_.mig[static_cast<size_t>(index)];
    const auto has_room = [&](Card& card) {
      return card.compute + profile.compute_slices <= compute_ &&  // Bounded: slices of one card
             card.memory + profile.memory_slices <= memory_ &&     // Bounded: slices of one card
             card.instances[index] < profile.max_instances;
    };
    auto at = std::ranges::find_if(cards_, has_room);
    if (at == cards_.end()) at = cards_.insert(cards_.end(), Card());
    at->compute += profile.compute_slices;
    at->memory += profile.memory_slices;
    ++at->instances[index];
    return first_card_ + static_cast<int32_t>(at - cards_.begin());
  }

 private:
  struct Card {
    int64_t compute = 0;
    int64_t memory = 0;
    std::map<int16_t, int64_t> instances;
  };
  const GpuType& type_;
  int32_t first_card_;
  int64_t compute_ = 0;
  int64_t memory_ = 0;
  std::vector<Card> cards_;
};

// Whole cards first, then cards in order: as cluster.yaml numbers the devices of its entries.
void SortByCard(Gpus& gpus) {
  std::ranges::stable_sort(gpus, [](const KubeGpu& a, const KubeGpu& b) { return a.card < b.card; });
}

absl::Status CheckCount(int64_t cards, int64_t replicas) {
  if (cards > static_cast<int64_t>(kMaxDevicesPerNode))
    return InvalidArgument("expected at most %d GPUs on a node, found %d", kMaxDevicesPerNode, cards);
  if (replicas > kMostReplicas)
    return InvalidArgument("expected at most %d replicas of a GPU, found %d", kMostReplicas, replicas);
  return absl::OkStatus();
}

// The devices behind the offers of a node whose cards are all of `type`. `profile`: of the offer "nvidia.com/gpu",
// where it counts MIG instances.
absl::StatusOr<Gpus> GpusOfOffers(const KubeNode& node, const Catalogue& catalogue, GpuTypeId type,
                                  const std::string& profile) {
  const GpuType& card = catalogue.at(type);
  struct Instance {
    int16_t profile;
    const Offer* offer;
  };
  Gpus gpus;
  std::vector<Instance> instances;
  const std::vector<Offer> offers = OffersOf(node);
  std::map<std::string, int64_t> cards;
  for (const Offer& offer : offers) {
    HORUS_RETURN_IF_ERROR(CheckCount(offer.cards, offer.replicas));
    const bool named = offer.resource.starts_with(kMigPrefix);  // after its profile, and counted by labels of its own
    const std::string of = named ? MigProfileOfResource(offer.resource) : profile;
    int16_t index = -1;
    if (!of.empty()) HORUS_SET_OR_RETURN(index, ProfileOf(card, of));
    const int64_t each = of.empty() || named ? 1 : card.mig[static_cast<size_t>(index)].max_instances;
    const int64_t sum = cards[offer.labelled] += offer.cards;  // Bounded: at most 1,024 of a few resources
    HORUS_RETURN_IF_ERROR(CheckLabels(node, offer, sum, each, offers.size() == 1));
    if (of.empty()) {
      for (int64_t i = 0; i < offer.cards; ++i) {
        gpus.push_back({.type = type,
                        .mode = ModeOf(node.labels),
                        .card = static_cast<int32_t>(gpus.size()),
                        .replicas = offer.replicas,
                        .resource = offer.resource});
      }
      continue;
    }
    instances.insert(instances.end(), static_cast<size_t>(offer.cards), Instance{index, &offer});
  }
  HORUS_RETURN_IF_ERROR(CheckCount(static_cast<int64_t>(gpus.size() + instances.size()), 1));
  std::ranges::stable_sort(instances, [&](const Instance& a, const Instance& b) {
    return card.mig[static_cast<size_t>(a.profile)].memory_slices >
           card.mig[static_cast<size_t>(b.profile)].memory_slices;
  });
  MigPacker packer(card, static_cast<int32_t>(gpus.size()));
  for (const Instance& instance : instances) {
    gpus.push_back({.type = type,
                    .mode = SharingMode::kMig,
                    .mig_profile = instance.profile,
                    .card = packer.CardFor(instance.profile),
                    .replicas = instance.offer->replicas,
                    .resource = instance.offer->resource});
  }
  SortByCard(gpus);
  return gpus;
}

// ---- Resource slices of NVIDIA's driver: the newest generation of each pool, if it is whole.

// "gpu-2" before "gpu-10".
std::tuple<std::string, uint64_t, std::string> NaturalKey(const std::string& name) {
  const size_t digits = name.find_last_not_of("0123456789") + 1;  // 0 where all are digits
  uint64_t number = 0;
  std::from_chars(name.data() + digits, name.data() + name.size(), number);
  return {name.substr(0, digits), number, name};
}

struct Pool {
  int64_t generation = -1;
  int64_t stated = 0;  // slices
  int64_t found = 0;
  std::vector<const KubeDevice*> devices;
};

std::map<std::string, Pool> NewestPools(std::span<const KubeSlice> slices) {
  std::map<std::string, Pool> pools;
  for (const KubeSlice& slice : slices) {
    Pool& pool = pools[slice.pool];
    if (slice.generation < pool.generation) continue;
    if (slice.generation > pool.generation) pool = {.generation = slice.generation, .stated = slice.slices};
    ++pool.found;
    for (const KubeDevice& device : slice.devices) pool.devices.push_back(&device);
  }
  return pools;
}

absl::StatusOr<KubeGpu> GpuOfDevice(const Catalogue& catalogue, const std::string& pool, const KubeDevice& device,
                                    std::map<std::string, int32_t>& cards) {
  const bool is_mig = device.type == "mig";
  const auto wrong = [&](const absl::Status& status) {
    return InvalidArgument("device %s, productName %s: %s", Quoted(device.name), Quoted(device.product),
                           std::string(status.message()));
  };
  const auto type = FindKubeGpu(catalogue, device.product, is_mig ? 0 : device.mem_bytes / kBytesPerMib);
  if (!type.ok()) return wrong(type.status());
  KubeGpu gpu{.type = *type,
              .uuid = device.uuid,
              .pool = pool,
              .name = device.name,
              .mem_mib = device.mem_bytes / kBytesPerMib};
  std::string card = "device " + device.name;
  // Where both are installed, or the class stands for the resource, pods get whole devices by the resource, too.
  if (!is_mig && !device.shared) gpu.resource = kGpuResource;
  if (is_mig) {
    const auto profile = ProfileOf(catalogue.at(*type), device.profile);
    if (!profile.ok()) return wrong(profile.status());
    gpu.mode = SharingMode::kMig;
    gpu.mig_profile = *profile;
    if (!device.parent_uuid.empty()) card = "card " + device.parent_uuid;
  }
  gpu.card = cards.try_emplace(card, static_cast<int32_t>(cards.size())).first->second;
  return gpu;
}

// Cards that are cut: a driver may list them beside their instances, in whatever pool.
std::set<std::string> ParentsOf(const std::map<std::string, Pool>& pools) {
  std::set<std::string> parents;
  for (const auto& [name, pool] : pools) {
    for (const KubeDevice* const device : pool.devices) {
      if (!device->possible && !device->parent_uuid.empty()) parents.insert(device->parent_uuid);
    }
  }
  return parents;
}

KubeNodeGpus FromSlices(const Catalogue& catalogue, std::span<const KubeSlice> slices) {
  KubeNodeGpus found;
  std::map<std::string, int32_t> cards;
  std::map<std::string, Pool> pools = NewestPools(slices);
  const std::set<std::string> parents = ParentsOf(pools);
  for (auto& [name, pool] : pools) {
    if (pool.found != pool.stated) {
      found.note = Formatted("pool %s: expected %d resource slices of generation %d, found %d", Quoted(name),
                             pool.stated, pool.generation, pool.found);
      return found;
    }
    std::ranges::sort(pool.devices, {}, [](const KubeDevice* device) { return NaturalKey(device->name); });
    for (const KubeDevice* device : pool.devices) {
      const bool whole = device->type == "gpu" && !parents.contains(device->uuid);
      if (!whole && (device->possible || device->type != "mig")) continue;
      absl::StatusOr<KubeGpu> gpu = GpuOfDevice(catalogue, name, *device, cards);
      found.source = "ResourceSlice";
      if (!gpu.ok()) return {.source = found.source, .problem = std::string(gpu.status().message())};
      found.gpus.push_back(*std::move(gpu));
    }
  }
  SortByCard(found.gpus);
  return found;
}

// ---- HAMi's annotation: a JSON list, or up to version 2.4 "UUID,count,MiB,cores,type,numa,health:" for each.
// Volcano's: "UUID,count,MiB,type,health,mode:".

struct HamiCard {
  std::string uuid, type, mode;
  int64_t count = 0;
  int64_t mem_mib = 0;
  bool healthy = false;
};

absl::StatusOr<std::vector<HamiCard>> ReadHamiJson(const std::string& text) {
  const KubeJson json = KubeJson::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_array()) return InvalidArgument("expected a JSON list of devices, found %s", Quoted(text));
  std::vector<HamiCard> cards;
  HORUS_ASSIGN_OR_RETURN(const auto items, KubeView(&json, kHamiSource).List());
  for (const KubeView& item : items) {
    HamiCard card;
    HORUS_RETURN_IF_ERROR(item.ReadTexts({{"id", card.uuid}, {"type", card.type}, {"mode", card.mode}}));
    HORUS_ASSIGN_OR_RETURN(card.count, item["count"].Integer(1));
    HORUS_ASSIGN_OR_RETURN(card.mem_mib, item["devmem"].Integer(0));
    if (item["health"].present()) {  // HAMi leaves out what is false
      HORUS_ASSIGN_OR_RETURN(card.healthy, item["health"].Bool());
    }
    cards.push_back(std::move(card));
  }
  return cards;
}

absl::StatusOr<std::vector<HamiCard>> ReadHami(const std::string& text, bool volcano) {
  if (text.starts_with('[')) return ReadHamiJson(text);
  std::vector<HamiCard> cards;
  const std::vector<std::string> parts = absl::StrSplit(text, ':', absl::SkipEmpty());
  for (const std::string& part : parts) {
    const std::vector<std::string> fields = absl::StrSplit(part, ',');
    const size_t type = volcano ? 3 : 4, health = volcano ? 4 : 6, mode = health + 1;
    if (fields.size() < mode) {
      return InvalidArgument("expected %s of each device, found %s",
                             volcano ? "UUID,count,MiB,type,health" : "UUID,count,MiB,cores,type,numa,health",
                             Quoted(part));
    }
    cards.push_back({.uuid = fields[0],
                     .type = fields[type],
                     .mode = fields.size() > mode ? fields[mode] : "",
                     .count = ParseNumber<int64_t>(fields[1]).value_or(-1),
                     .mem_mib = ParseNumber<int64_t>(fields[2]).value_or(-1),
                     .healthy = fields[health] == "true"});
  }
  return cards;
}

KubeNodeGpus FromHami(const Catalogue& catalogue, const KubeNode& node) {
  KubeNodeGpus found{.source = node.volcano ? kVolcanoSource : kHamiSource};
  const auto cards = ReadHami(node.hami_register, node.volcano);
  if (!cards.ok()) return {.source = found.source, .problem = std::string(cards.status().message())};
  for (const HamiCard& card : *cards) {
    if (!card.healthy) continue;
    // The memory may be scaled, so that it tells no type.
    const auto type = FindKubeGpu(catalogue, card.type, 0);
    const absl::Status count = CheckCount(static_cast<int64_t>(found.gpus.size()) + 1, card.count);
    if (!type.ok() || !count.ok() || card.count < 1 || card.mode == "mig") {
      return {.source = found.source,
              .problem = !type.ok()           ? std::string(type.status().message())
                         : !count.ok()        ? std::string(count.message())
                         : card.mode == "mig" ? "expected cards that HAMi shares by itself, found mode mig"
                                              : "expected a count of at least 1"};
    }
    found.gpus.push_back({.type = *type,
                          .card = static_cast<int32_t>(found.gpus.size()),
                          .replicas = card.count,
                          .counts_memory = true,
                          .resource = node.volcano ? kVolcanoGpu : kGpuResource,
                          .uuid = card.uuid});
  }
  return found;
}

// ---- Labels of GPU feature discovery, then those of clouds.

KubeNodeGpus FromName(const Catalogue& catalogue, const KubeNode& node, const std::string& source,
                      const std::string& value, const KubeProduct& product, int64_t mem_mib) {
  KubeNodeGpus found{.source = source};
  const auto type = FindKubeGpu(catalogue, product.card, product.profile.empty() ? mem_mib : 0);
  absl::StatusOr<Gpus> gpus = Gpus();
  if (type.ok()) gpus = GpusOfOffers(node, catalogue, *type, product.profile);
  const absl::Status status = type.ok() ? gpus.status() : type.status();
  if (!status.ok()) {
    found.problem = Formatted("label %s=%s: %s", source, value, std::string(status.message()));
  } else if (product.shared && KubeLabelCount(node.labels, "nvidia.com/gpu.replicas") == 0 &&
             StatedCards(node.labels, kGpuResource) == 0) {
    found.problem = Formatted("label %s=%s: expected nvidia.com/gpu.replicas beside it, found none", source, value);
  } else if (gpus->empty()) {
    found.problem = Formatted("label %s=%s: expected allocatable %s, found none", source, value, kGpuResource);
  } else {
    found.gpus = *std::move(gpus);
  }
  return found;
}

KubeNodeGpus FromLabels(const Catalogue& catalogue, const KubeNode& node) {
  const std::string product = KubeLabel(node.labels, kProduct);
  if (!node.hami_register.empty()) {
    // HAMi offers each card many times over; its own list counts them. A product label names their type better.
    KubeNodeGpus found = FromHami(catalogue, node);
    const auto type = FindKubeGpu(catalogue, SplitKubeProduct(product).card, 0);
    if (product.empty() || !type.ok() || !found.problem.empty()) return found;
    for (KubeGpu& gpu : found.gpus) gpu.type = *type;
    return found;
  }
  if (!product.empty()) {
    return FromName(catalogue, node, kProduct, product, SplitKubeProduct(product),
                    KubeLabelCount(node.labels, "nvidia.com/gpu.memory"));
  }
  const KubeCloudGpu cloud = FindKubeCloudGpu(node.labels);
  if (!cloud.label.empty()) {
    const std::string profile = KubeLabel(node.labels, "cloud.google.com/gke-gpu-partition-size");
    return FromName(catalogue, node, cloud.label, cloud.value, {.card = cloud.name, .profile = profile}, cloud.mem_mib);
  }
  KubeNodeGpus found;
  const std::vector<Offer> offers = OffersOf(node);
  if (!offers.empty() || node.allocatable.resources.contains(kVolcanoGpu)) {
    const std::string instance = KubeInstanceType(node.labels);
    found.problem = Formatted("it offers %s, and no label, annotation or resource slice tells the type%s",
                              offers.empty() ? kVolcanoGpu : offers.front().resource,
                              instance.empty() ? "" : "; instance type " + Quoted(instance) + " is not known");
  }
  return found;
}

}  // namespace

KubeProduct SplitKubeProduct(std::string_view label) {
  KubeProduct product;
  std::string folded = Folded(label);
  if (folded.ends_with(kSharedSuffix)) {
    product.shared = true;
    folded.resize(folded.size() - kSharedSuffix.size());
  }
  const size_t infix = folded.find(kMigInfix);
  product.card = std::string(label.substr(0, std::min(infix, folded.size())));
  if (infix != std::string::npos) product.profile = folded.substr(infix + kMigInfix.size());
  return product;
}

absl::StatusOr<GpuTypeId> FindKubeGpu(const Catalogue& catalogue, std::string_view name, int64_t mem_mib) {
  HORUS_ASSIGN_OR_RETURN(const GpuTypeId type, catalogue.Find(name));
  if (mem_mib <= 0 || HasMemory(catalogue.at(type), mem_mib)) return type;
  constexpr int64_t kMibPerGib = 1024;
  const std::string sized =
      Formatted("%s-%dgb", std::string(name), mem_mib / kMibPerGib + (mem_mib % kMibPerGib >= kMibPerGib / 2 ? 1 : 0));
  const std::optional<GpuTypeId> other = catalogue.FindKnown(sized);
  if (other && HasMemory(catalogue.at(*other), mem_mib)) return *other;
  return InvalidArgument("expected about %d MiB of memory, as %s has (for %s), found %d MiB",
                         catalogue.at(type).mem_mib, catalogue.at(type).name, Quoted(name), mem_mib);
}

std::string KubeLabel(const KubeTexts& labels, const std::string& key) {
  const auto at = labels.find(key);
  return at == labels.end() ? "" : at->second;
}

std::string KubeRack(const KubeTexts& labels) {
  for (const char* const label : kRackLabels) {
    std::string rack = KubeLabel(labels, label);
    if (!rack.empty() && !rack.starts_with(kNoFabric)) return rack;
  }
  return "";
}

KubeCloudGpu FindKubeCloudGpu(const KubeTexts& labels) {
  for (const char* const label : kNameLabels) {
    const std::string value = KubeLabel(labels, label);
    if (value.empty()) continue;
    std::string name = value;
    for (const Renamed& other : kRenamed) {
      if (other.value == value) name = other.gpu;
    }
    return {label, value, std::move(name), KubeLabelCount(labels, kKarpenterMemory)};
  }
  const std::string type = KubeInstanceType(labels);
  std::string gpu = GpuOfInstance(type);
  if (gpu.empty()) return {};
  return {kInstanceLabel, type, std::move(gpu), 0};
}

bool IsGpuResource(std::string_view resource) {
  const std::string_view bare = WithoutShared(resource);
  return bare == kGpuResource || bare == "nvidia.com/pgpu" || bare == kVolcanoGpu || bare.starts_with(kMigPrefix);
}

std::string MigProfileOfResource(std::string_view resource) {
  const std::string_view bare = WithoutShared(resource);
  if (!bare.starts_with(kMigPrefix)) return "";
  // "1g.10gb.me" of the label is "1g.10gb+me" to nvidia-smi; profiles with media engines are not in the catalogue.
  return std::string(bare.substr(kMigPrefix.size()));
}

KubeNodeGpus FindKubeGpus(const Catalogue& catalogue, const KubeNode& node, std::span<const KubeSlice> slices) {
  KubeNodeGpus found = FromSlices(catalogue, slices);
  if (!found.source.empty()) return found;
  const std::string note = std::move(found.note);
  found = FromLabels(catalogue, node);
  found.note = note;
  if (!note.empty() && found.gpus.empty() && found.problem.empty()) found.problem = note;
  return found;
}

}  // namespace horus
