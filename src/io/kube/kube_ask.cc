// SPDX-License-Identifier: Apache-2.0
// Requests, claims and annotations of pods.
#include "io/kube/kube_ask.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/text.h"
#include "base/units.h"
#include "place/state/node.h"

namespace horus {
namespace {

constexpr char kGpuMem[] = "nvidia.com/gpumem";
constexpr char kGpuMemPct[] = "nvidia.com/gpumem-percentage";
constexpr char kGpuCores[] = "nvidia.com/gpucores";
constexpr int64_t kWhole = 1000;
constexpr int64_t kWholePct = 100;

int64_t CountOf(const KubeRequests& requests, const char* resource) {
  const auto at = requests.resources.find(resource);
  return at == requests.resources.end() ? 0 : at->second;
}

absl::Status AddResources(const KubePod& pod, const std::set<std::string>& offered, KubeAsk& ask) {
  for (const auto& [resource, count] : pod.requests.resources) {
    if (!IsGpuResource(resource) && !offered.contains(resource)) continue;
    if (ask.count > 0) return InvalidArgument("it asks for GPUs of several kinds (%s, %s)", ask.resource, resource);
    ask.resource = resource;
    ask.count = count;
  }
  ask.mem_mib = CountOf(pod.requests, kGpuMem);
  ask.mem_pct = CountOf(pod.requests, kGpuMemPct);
  ask.cores_pct = CountOf(pod.requests, kGpuCores);
  if (ask.count == 0 && (ask.mem_mib > 0 || ask.mem_pct > 0 || ask.cores_pct > 0)) {
    ask.resource = kGpuResource;  // as HAMi's webhook completes it
    ask.count = 1;
  }
  if (ask.mem_mib > kMostQuantity / kBytesPerMib || ask.mem_pct > kWholePct || ask.cores_pct > kWholePct)
    return InvalidArgument("it asks for more than a GPU has (gpumem, gpumem-percentage or gpucores)");
  return absl::OkStatus();
}

// KAI counts a fraction as that part of a GPU's memory and time, and an amount of memory as no more than that.
absl::Status AddPart(const KubePart& part, KubeAsk& ask) {
  double fraction = 0;
  int64_t mem_bytes = 0, gpus = 1;
  if (!part.fraction.empty() && (!absl::SimpleAtod(part.fraction, &fraction) || !(fraction > 0 && fraction <= 1))) {
    return InvalidArgument("annotation gpu-fraction: expected a number above 0 and up to 1, found %s",
                           Quoted(part.fraction));
  }
  std::vector<std::string> amounts = part.container_memory;
  if (!part.mem_mib.empty()) amounts = {part.mem_mib + "Mi"};
  for (const std::string& amount : amounts) {
    const bool spelled = amount.ends_with("iB");  // "30GiB", as KAI writes it; a quantity of Kubernetes is "30Gi"
    const std::optional<int64_t> bytes =
        ParseKubeQuantity(std::string_view(amount).substr(0, amount.size() - (spelled ? 1 : 0)), 1);
    if (!bytes) return InvalidArgument("annotation gpu-memory: expected an amount of memory, found %s", Quoted(amount));
    mem_bytes = std::min(kMostQuantity, mem_bytes + *bytes);  // Bounded: both at most 2^60
  }
  if (!part.gpus.empty() &&
      (!absl::SimpleAtoi(part.gpus, &gpus) || gpus < 1 || gpus > static_cast<int64_t>(kMaxDevicesPerNode))) {
    return InvalidArgument("annotation gpu-fraction-num-devices: expected 1 to %d GPUs, found %s", kMaxDevicesPerNode,
                           Quoted(part.gpus));
  }
  ask.resource = kGpuResource;
  ask.count = gpus;
  ask.groups = part.groups;
  if (fraction > 0) {
    constexpr double kShareRounding = 1e-6;  // 0.29 is 28.999... %
    ask.cores_pct = ask.mem_pct = std::max<int64_t>(1, static_cast<int64_t>(fraction * kWholePct + kShareRounding));
  } else {
    ask.mem_mib = std::max<int64_t>(1, MibCeil(mem_bytes));
  }
  return absl::OkStatus();
}

absl::Status AddClaim(const KubePod& pod, const KubeClaim& claim, KubeAsk& ask) {
  ask.by_expression |= claim.selects;
  if (claim.allocated.empty()) {
    if (!claim.unknown.empty()) return InvalidArgument("its claim asks for %s, which is not read", claim.unknown);
    if (!pod.node.empty() && claim.gpus > 0) return InvalidArgument("it is bound, and its claim is not allocated");
    ask.count += claim.gpus;  // Bounded: at most 1,024 a request, of a claim that is in memory
    ask.mem_mib = std::max(ask.mem_mib, MibCeil(claim.mem_bytes));
    return absl::OkStatus();
  }
  for (const KubeAllocated& one : claim.allocated) {
    if (one.driver != kKubeGpuDriver) continue;
    ++ask.count;
    ask.mem_mib = std::max(ask.mem_mib, MibCeil(one.mem_bytes));
    ask.told.push_back({.pool = one.pool, .device = one.device});
  }
  return absl::OkStatus();
}

using Fields = std::vector<std::string>;

// "UUID,NVIDIA,3000,30:" a device, ";" behind each container.
absl::Status AddHamiDevices(const KubePod& pod, KubeAsk& ask) {
  for (const std::string& container : Fields(absl::StrSplit(pod.hami_devices, ';'))) {
    for (const std::string& device : Fields(absl::StrSplit(container, ':', absl::SkipEmpty()))) {
      const Fields fields = absl::StrSplit(device, ',');
      int64_t mem_mib = 0, cores = 0;
      constexpr size_t kFields = 4;
      const auto number = [&](size_t i, int64_t most, int64_t& value) {
        value = ParseNumber<int64_t>(fields[i]).value_or(-1);
        return value >= 0 && value <= most;
      };
      if (fields.size() < kFields || !number(2, kMostQuantity / kBytesPerMib, mem_mib) ||
          !number(3, kWholePct, cores)) {
        return InvalidArgument("annotation of its vGPUs: expected UUID,vendor,MiB,cores, found %s", Quoted(device));
      }
      ask.told.push_back({.uuid = fields[0]});
      ask.mem_mib = std::max(ask.mem_mib, mem_mib);
      ask.cores_pct = std::max(ask.cores_pct, cores);
      ask.mem_pct = 0;
    }
  }
  if (!ask.told.empty()) ask.count = static_cast<int64_t>(ask.told.size());
  return absl::OkStatus();
}

// HAMi: a share of memory, cores or both.
void ShapeByMemory(const KubeAsk& ask, const GpuType& card, KubeShape& shape) {
  constexpr int64_t kNearlyAllPct = 90;  // drivers report a few per cent less than a card's nominal memory
  // Bounded: both at most 2^40 MiB.
  const bool all_memory = ask.mem_mib > 0 ? ask.mem_mib * kWholePct >= card.mem_mib * kNearlyAllPct
                                          : ask.mem_pct == 0 || ask.mem_pct == kWholePct;
  const bool all_cores = ask.cores_pct == 0 || ask.cores_pct == kWholePct;
  shape.gpus = ask.count;
  if (all_memory && all_cores) {
    shape.gpu_milli = kWhole;
    return;
  }
  shape.anyone = true;
  shape.load_unknown = ask.by_part && !all_cores;  // KAI parts memory, and time among those who want it
  if (!all_cores && !ask.by_part) shape.util_pct = static_cast<double>(ask.cores_pct);
  if (!all_cores && ask.count == 1) shape.gpu_milli = ask.cores_pct * (kWhole / kWholePct);  // Bounded: at most 100 %
  if (!all_memory && ask.mem_mib > 0) shape.mem_mib = ask.mem_mib;
  if (!all_memory && ask.mem_pct > 0) shape.mem_milli = ask.mem_pct * (kWhole / kWholePct);  // Bounded: at most 100 %
}

// One of several replicas, or instances of MIG and replicas of these.
void ShapeByReplicas(const KubeAsk& ask, const KubeGpu& sample, const GpuType& card, KubeShape& shape) {
  const bool is_mig = sample.mode == SharingMode::kMig;
  int64_t share = kWhole;
  if (sample.replicas > 1) {
    // Nobody promises that replicas lie on different cards: they count as larger parts of as few as may be.
    shape.gpus = (ask.count + sample.replicas - 1) / sample.replicas;
    // Bounded: at most 1,024 GPUs a pod, and 1,024 replicas.
    share = std::max<int64_t>(1, ask.count * kWhole / (sample.replicas * shape.gpus));
    shape.anyone = true;
  } else {
    shape.gpus = ask.count;
  }
  if (shape.gpus == 1 || share == kWhole) shape.gpu_milli = share;  // a job may ask for parts of one GPU only
  shape.load_unknown = share < kWhole;                              // time goes to whoever wants it
  shape.mem_milli = share;
  if (!is_mig) return;
  const MigProfile& profile = card.mig[static_cast<size_t>(sample.mig_profile)];
  int64_t slices = 1;
  for (const MigProfile& one : card.mig) slices = std::max(slices, one.compute_slices);
  shape.util_pct = kWholePct * static_cast<double>(profile.compute_slices) / static_cast<double>(slices);
  // Bounded: MiB of a card.
  shape.mem_mib = std::max<int64_t>(1, (profile.mem_mib - kHeadroomMib) * share / kWhole);
}

constexpr char kByHami[] = "hami";
constexpr char kByPart[] = "gpu-part";  // of KAI
constexpr char kByPartialClaim[] = "claims-part";
constexpr char kReplica[] = "-replica";
constexpr char kNoReplica[] = "-whole";  // a pod that runs on a whole card was not promised a replica

std::string ByClaim(const KubeGpu& gpu, const GpuType& card) {
  const bool whole = gpu.mode != SharingMode::kMig;
  return std::string(kByClaim) + (whole ? "" : "-mig-" + card.mig[static_cast<size_t>(gpu.mig_profile)].name);
}

bool IsReplica(const KubeGpu& gpu) { return gpu.replicas > 1 && !gpu.counts_memory; }

std::string BareResource(const std::string& resource) { return resource.substr(resource.find('/') + 1); }

// How a pod with that share of such a GPU gets it.
std::string WayOf(const KubeAsk& ask, const KubeGpu& gpu, const KubeShape& shape, const GpuType& card) {
  const bool whole = ask.runs && gpu.mode != SharingMode::kMig && !IsReplica(gpu);
  const char* const kind = IsReplica(gpu) ? kReplica : whole ? kNoReplica : "";
  if (ask.by_class && gpu.mode != SharingMode::kMig) return BareResource(kGpuResource) + kind;
  if (ask.resource.empty()) return gpu.mode != SharingMode::kMig && shape.anyone ? kByPartialClaim : ByClaim(gpu, card);
  if (ask.by_part) return kByPart;
  return ask.hami ? kByHami : BareResource(ask.resource) + kind;
}

}  // namespace

bool Offers(const KubeGpu& gpu, std::string_view needs, const Catalogue& catalogue) {
  if (needs == kByHami) return gpu.counts_memory && gpu.resource == kGpuResource;
  if (needs == kByPart) return gpu.resource == kGpuResource && gpu.replicas == 1 && gpu.mode != SharingMode::kMig;
  if (needs.starts_with(kByClaim)) {
    if (needs == kByPartialClaim) return !gpu.name.empty() && gpu.resource.empty() && gpu.mode != SharingMode::kMig;
    return !gpu.name.empty() && needs == ByClaim(gpu, catalogue.at(gpu.type));
  }
  const std::string bare = gpu.resource.empty() ? "" : BareResource(gpu.resource);
  if (IsReplica(gpu)) return needs == bare || needs == bare + kReplica;
  return needs == bare || (gpu.mode != SharingMode::kMig && needs == bare + kNoReplica);
}

absl::StatusOr<KubeAsk> AskOf(const KubePod& pod, const KubeState& state, const std::set<std::string>& offered) {
  KubeAsk ask{.resource = {}, .by_class = pod.by_class, .runs = !pod.node.empty(), .groups = {}, .told = {}};
  HORUS_RETURN_IF_ERROR(AddResources(pod, offered, ask));
  ask.hami = ask.resource == kGpuResource && (pod.of_hami || ask.mem_mib > 0 || ask.mem_pct > 0 || ask.cores_pct > 0);
  ask.by_part = ask.count == 0 && pod.part.asks();
  if (ask.by_part) HORUS_RETURN_IF_ERROR(AddPart(pod.part, ask));
  const int64_t by_resource = ask.count;
  for (const std::string& name : pod.claims) {
    const auto claim = state.claims.find({pod.name_space, name});
    if (claim == state.claims.end())
      return InvalidArgument("its claim %s is not among the objects (resourceclaims)", Quoted(name));
    HORUS_RETURN_IF_ERROR(AddClaim(pod, claim->second, ask));
  }
  if (!pod.pending_claims.empty())
    return InvalidArgument("its claim %s is not made yet", Quoted(pod.pending_claims.front()));
  if (by_resource > 0 && ask.count > by_resource) return InvalidArgument("it asks for GPUs by claim and by resource");
  if (by_resource > 0 && !pod.node.empty()) HORUS_RETURN_IF_ERROR(AddHamiDevices(pod, ask));
  if (ask.count > static_cast<int64_t>(kMaxDevicesPerNode))
    return InvalidArgument("it asks for %d GPUs, more than a node may have here (%d)", ask.count, kMaxDevicesPerNode);
  return ask;
}

std::string WhyUntold(const KubePod& pod, const KubeTold& told, const KubeState& state) {
  if (!told.uuid.empty()) return Formatted("it holds GPU %s, which its node does not tell", Quoted(told.uuid));
  const std::string name = Quoted(told.pool + "/" + told.device);
  const auto slices = state.slices.find(pod.node);
  if (slices == state.slices.end()) {
    return Formatted("its claim holds %s, and no resource slice of its node is among the objects (resourceslices)",
                     name);
  }
  for (const KubeSlice& slice : slices->second) {
    for (const KubeDevice& device : slice.devices) {
      if (slice.pool != told.pool || device.name != told.device) continue;
      return device.possible
                 ? Formatted("its claim holds %s, a partition that the driver makes on demand: those are not read",
                             name)
                 : Formatted("its claim holds %s, of type %s, which is not read or is cut into others", name,
                             Quoted(device.type));
    }
  }
  return Formatted("its claim holds %s, which no resource slice of its node lists", name);
}

KubeShape ShapeOf(const KubeAsk& ask, const KubeGpu& sample, const Catalogue& catalogue) {
  const GpuType& card = catalogue.at(sample.type);
  KubeShape shape;
  const bool by_claim = ask.resource.empty();
  if (sample.mode == SharingMode::kMig || (sample.replicas > 1 && !sample.counts_memory)) {
    ShapeByReplicas(ask, sample, card, shape);
  } else if (by_claim && ask.mem_mib > 0 && (sample.mem_mib == 0 || ask.mem_mib < sample.mem_mib)) {
    shape.gpus = ask.count;
    shape.mem_mib = ask.mem_mib;
    shape.anyone = true;
  } else {
    ShapeByMemory(ask, card, shape);
  }
  shape.needs = WayOf(ask, sample, shape, card);
  return shape;
}

}  // namespace horus
