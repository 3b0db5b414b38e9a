// SPDX-License-Identifier: Apache-2.0
// Work prices: what a unit of each kind of work is worth beside that of others, while all of them wait.
//
// Enters:  kinds of waiting jobs with the GPUs that they ask for, kinds of GPUs, an interference model.
// Leaves:  a price a kind. Kinds that are good partners and scarce are dear.
// Units:   prices are relative: the mean over the GPUs that are asked for is 1.
// Cost:    a pair of kinds that is new: one question to the model for each kind of GPU; then kSteps passes over the
//          pairs.
// Thread class: one thread at a time (keeps pairs).
#pragma once

#include "place/search/scorer.h"

namespace horus {

// ---- The prices of the best plan for a mix: GPUs that run kinds alone or in pairs, each kind in proportion to what
// waits of it. At these prices no GPU can do more than what it does in that plan. Found by raising the price of what is
// served less than its share and lowering the others, while GPUs choose among ways of almost equal worth ever more
// sharply: so many steps, no solver.

// What a GPU can do: work a unit of time of `a`, and of `b` beside it; alone where b == a and rate_b == 0.
struct WorkWay {
  uint32_t gpu = 0, a = 0, b = 0;  // positions
  double rate_a = 0, rate_b = 0;
};

// `gpus`: how many, by position; `mix`: how much waits of each kind, each above 0. Kinds without a way are worth 1.
[[nodiscard]] std::vector<double> PriceMix(std::span<const double> gpus, std::span<const double> mix,
                                           std::span<const WorkWay> ways);

class WorkPricer {
 public:
  // Kinds beyond these, by the GPUs that they ask for, get the price of the kind among them that is nearest by demand.
  static constexpr size_t kMostKinds = 100;
  // Work that is worth less is done all the same. A chosen value.
  static constexpr double kLeastPrice = 0.01;

  struct Kind {
    const JobView* view = nullptr;
    double gpus = 0;  // of its waiting jobs, above 0
  };
  struct Gpus {
    DeviceRow device;  // without tenants
    double count = 0;
  };

  // By kind, rounded to eighths of an octave: so prices stay while the mix changes little. Errors: those of the model.
  [[nodiscard]] absl::StatusOr<std::vector<double>> Of(const InterferenceModel& model, const FitLimits& limits,
                                                       std::span<const Kind> kinds, std::span<const Gpus> gpus);

  [[nodiscard]] uint64_t bytes_held() const { return pairs_.bytes_held(); }

 private:
  struct Pair {
    float speed_a = 0, speed_b = 0;  // shared / alone; 0 = they may not share
  };
  static constexpr size_t kMostPairs = 1u
                                       << 18;  // 12 MiB with the room that the map keeps free; then all are forgotten
  [[nodiscard]] absl::Status AddPairs(const InterferenceModel& model, const FitLimits& limits,
                                      std::span<const JobView::OnType* const> on, std::span<const double> alone,
                                      const Gpus& gpus, uint32_t gpu, std::vector<WorkWay>& ways);

  IdMap<Pair> pairs_;  // by both classes and the device
  uint64_t epoch_ = 0;
};

}  // namespace horus
