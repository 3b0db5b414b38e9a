// SPDX-License-Identifier: Apache-2.0
// PairLearner: what a simulation lets a scheduler learn while jobs run: which two jobs could not run together, and what
// those that could cost each other. What is learned reaches the placer through its model, whose epoch tells that it
// changed. Of three tenants and more it sees what the others cost a victim together: their parts are those that the
// model believes, scaled until the sums of all sets that the victim was seen in are right. Two alone say theirs.
//
// Enters:  what the tenants of a device were seen to lose beside each other, or that they could not run together.
// Leaves:  nothing.
// Units:   slowdown = step time shared / step time alone.
// Thread class: one thread at a time.
// Cost: something new: kMostSweeps over the sets of each victim there, a sort of the pairs seen so far, and with
// `corrects` a commit of CorrectedModel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "device/catalogue.h"
#include "interference/model.h"
#include "interference/observed_slowdowns.h"
#include "interference/table_model.h"
#include "predict/demand.h"

namespace horus {

struct SeenSharing {
  int64_t now_us = 0;
  DeviceContext device;
  std::span<const Demand* const> demands;  // of the tenants, as the placer believes them
  std::span<const double> slowdowns;       // of each, as it is
};

enum class Learns : uint8_t {
  kNothing = 0,   // a job that failed beside others runs alone
  kFailures = 1,  // pairs of profiles that failed are not tried again: each is predicted to slow the other 1,000 times
  kPairs = 2,     // and pairs that ran answer for themselves, once a device was observed
  kCorrects = 3,  // and what was seen of them corrects what is predicted of others (CorrectedModel)
};

inline constexpr int64_t kLearnFromUs =
    60'000'000;  // how long tenants who share are observed, as `reactive` profiles a job

class PairLearner {
 public:
  PairLearner(std::shared_ptr<const InterferenceModel> model, std::shared_ptr<const Catalogue> catalogue,
              Learns learns);

  // For the placer. Its answers and its epoch change as it learns.
  [[nodiscard]] std::shared_ptr<const InterferenceModel> model() const;
  // What it answers now; stays as it is.
  [[nodiscard]] std::shared_ptr<const InterferenceModel> known() const;

  // Devices teach whose tenants have profile ids.
  [[nodiscard]] absl::Status Observe(const SeenSharing& seen);
  // They could not run together; `slowdowns` is empty, the newcomer last. Whether that was learned: the newcomer then
  // waits as before, else it runs alone from now on.
  [[nodiscard]] absl::StatusOr<bool> Failed(const SeenSharing& seen);

 private:
  class Believed;  // forwards to what is known now
  struct Victim {
    Demand demand;
    std::map<uint64_t, Demand> others;
    std::map<std::vector<uint64_t>, double> sets;  // excess of the slowdown above 1, by who was there, ascending
    std::vector<TableEntry> pairs;                 // what follows from those
  };
  using Key = std::tuple<GpuTypeId, SharingMode, float, uint64_t>;
  [[nodiscard]] static Key KeyOf(const DeviceContext& device, const Demand& victim) {
    return {device.type, device.mode, device.compute_share, victim.profile_id};
  }

  [[nodiscard]] static bool Teaches(const SeenSharing& seen);
  [[nodiscard]] static std::vector<uint64_t> OthersThan(const SeenSharing& seen, size_t i);
  // What the tenant at `i` lost beside the others.
  [[nodiscard]] bool Knows(const SeenSharing& seen, size_t i, double slowdown) const;
  void Note(const SeenSharing& seen, size_t i, double slowdown);
  [[nodiscard]] absl::Status Correct(const SeenSharing& seen, std::span<const double> slowdowns);
  [[nodiscard]] absl::Status Believe(const SeenSharing& seen);  // what was noted of these tenants
  [[nodiscard]] absl::Status Divide(const DeviceContext& device, Victim& victim) const;

  std::shared_ptr<const InterferenceModel> beneath_;
  std::shared_ptr<const Catalogue> catalogue_;
  Learns learns_;
  std::shared_ptr<Believed> believed_;
  std::map<Key, Victim> victims_;
  ObservedSlowdowns observed_;
};

// ---- IgnorantModel: nobody slows anybody, as far as it knows. What a learner starts from who is told
// nothing.

class IgnorantModel final : public InterferenceModel {
 public:
  [[nodiscard]] std::string_view name() const override { return "nothing"; }
  [[nodiscard]] uint64_t epoch() const override { return 0; }
  [[nodiscard]] absl::Status Predict(const DeviceContext& /*device*/, std::span<const Demand* const> /*tenants*/,
                                     std::span<Slowdown> out) const override {
    std::ranges::fill(out, Slowdown());
    return absl::OkStatus();
  }
  [[nodiscard]] bool adds_pairs() const override { return true; }
  [[nodiscard]] absl::Status PredictPairs(const DeviceContext& /*device*/, std::span<const Demand* const> /*tenants*/,
                                          std::span<PairExcess> out) const override {
    std::ranges::fill(out, PairExcess());
    return absl::OkStatus();
  }
};

}  // namespace horus
