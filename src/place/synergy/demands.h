// SPDX-License-Identifier: Apache-2.0
// What a job asks for on each kind of server: its fair share, its floor and its best cell; of this folder only.
//
// Enters:  the servers' sizes; one job.
// Leaves:  three shares per class of servers alike.
// Units:   per GPU, as sensitivity.h.
// Cost:    O(cells) a class, made on first use.           Thread class: one thread at a time.
#ifndef HORUS_PLACE_SYNERGY_DEMANDS_H_
#define HORUS_PLACE_SYNERGY_DEMANDS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "place/synergy/round.h"

namespace horus {

// Servers of one kind and size.
struct ServerClass {
  uint32_t kind = 0;
  int32_t gpus = 0;
  int64_t cpu_milli = 0;
  int64_t mem_mib = 0;
  friend auto operator<=>(const ServerClass&, const ServerClass&) = default;
};

struct ServerClasses {
  std::vector<ServerClass> classes;            // ascending
  std::vector<uint32_t> of;                    // server -> class
  std::vector<std::vector<uint32_t>> members;  // class -> servers with GPUs, ascending
};
[[nodiscard]] ServerClasses ClassesOf(std::span<const SynergyServer> servers);

struct HostLevels {
  HostShare fair;
  HostShare floor;
  HostShare best;
};

// The most that a GPU of a job of `gpus` GPUs can have on servers of the class.
[[nodiscard]] HostShare MostPerGpu(const ServerClass& servers, int32_t gpus);

class JobDemands {
 public:
  JobDemands(const SynergyJob& job, const ServerClasses& classes, double tolerance);

  // From now on stands for the best cell.
  void Choose(const HostShare& share);

  [[nodiscard]] const SynergyJob& job() const { return *job_; }
  [[nodiscard]] const HostLevels& On(uint32_t server);
  [[nodiscard]] bool Allows(uint32_t server) const;

 private:
  const SynergyJob* job_;
  const ServerClasses* classes_;
  double tolerance_;
  std::optional<HostShare> chosen_;
  std::map<uint32_t, HostLevels> levels_;  // by class, of those asked for
};

}  // namespace horus

#endif  // HORUS_PLACE_SYNERGY_DEMANDS_H_
