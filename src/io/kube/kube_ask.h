// SPDX-License-Identifier: Apache-2.0
// What a pod asks of GPUs, and what kind of job that makes it.
//
// Enters:  a pod and the claims that it names.
// Leaves:  how many GPUs of which resource, which devices its claims or annotations tell; the shape of a job.
// Units:   MiB, thousandths of a GPU, per cent.
#pragma once

#include "io/kube/kube_gpus.h"

namespace horus {

// What a placer keeps free on each device (docs/place.md): a request for a whole card fits with so much less.
inline constexpr int64_t kHeadroomMib = 500;

// Of a pod that shares a GPU's time and of which nobody says what it runs the expected part of the time that it might
// be busy; it may be all. GPUs in use were busy for 52 % of the time in a production cluster (Jeon et al., ATC 2019).
inline constexpr double kUnknownBusyShare = 0.52;

struct KubeTold {
  std::string pool, device;  // of a claim
  std::string uuid;          // of HAMi's annotation
};

struct KubeAsk {
  std::string resource;             // "nvidia.com/gpu", "nvidia.com/mig-1g.10gb", ...; empty: by claims, or no GPUs
  int64_t count = 0;                // 0: no GPUs
  int64_t mem_mib = 0;              // of each GPU; 0: as much as it has
  int64_t mem_pct = 0;              // likewise, of a card's
  int64_t cores_pct = 0;            // HAMi; 0: no limit
  bool hami = false;                // HAMi alone can give it what it asks for
  bool by_part = false;             // KAI alone can
  bool by_class = false;            // as KubePod
  bool runs = false;                // on a node
  bool by_expression = false;       // a claim selects by an expression, which nobody reads here
  std::vector<std::string> groups;  // of KAI: pods of one share a GPU
  std::vector<KubeTold> told;       // `count` of them where the pod runs and something tells
};

// `offered`: what nodes offer GPUs as, whatever the name. INVALID_ARGUMENT for what this import cannot say in a job:
// the message is the reason.
[[nodiscard]] absl::StatusOr<KubeAsk> AskOf(const KubePod& pod, const KubeState& state,
                                            const std::set<std::string>& offered);

// Why no GPU of its node is the one that it holds.
[[nodiscard]] std::string WhyUntold(const KubePod& pod, const KubeTold& told, const KubeState& state);

// A job's demand and share, as far as requests tell them.
struct KubeShape {
  int64_t gpus = 1;
  int64_t gpu_milli = 0;  // 0: none
  double util_pct = 100;  // where `load_unknown` at most
  bool load_unknown = false;
  int64_t mem_mib = 0;       // 0: `mem_milli` of whatever card it is on
  int64_t mem_milli = 1000;  // thousandths of the card's memory
  bool anyone = false;       // it asks for a part of a card, as whoever else may
  int64_t holds_mib = 0;     // of each GPU, that its engine has taken, whatever its profile says
  GpuTypeId only;            // that it keeps to; invalid: any
  std::string needs;         // how it gets GPUs, which its node must offer: Offers
  std::string profile;       // in ImportedCluster::profiles; empty: its demand is what it asks for
  // Of a pod with a JobProfile:
  bool exclusive = false;
  double slowdown_bound = 0;  // 0: none, as of the next
  double slowdown_confidence = 0;
  friend auto operator<=>(const KubeShape&, const KubeShape&) = default;
};

// Whether pods that get GPUs in that way get such ones.
[[nodiscard]] bool Offers(const KubeGpu& gpu, std::string_view needs, const Catalogue& catalogue);
inline constexpr std::string_view kByClaim = "claims";  // how ways by claims begin

// `sample`: the first device that it has, or one that it might get.
[[nodiscard]] KubeShape ShapeOf(const KubeAsk& ask, const KubeGpu& sample, const Catalogue& catalogue);

}  // namespace horus
