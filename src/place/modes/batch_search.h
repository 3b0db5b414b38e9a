// SPDX-License-Identifier: Apache-2.0
// The search of a batch: starts and local moves of jobs of one GPU on a planner's ledger.
//
// Enters:  an engine whose ledger holds what does not move; the jobs that do, in planning order.
// Leaves:  the ledger with them booked, and where each is.
// Units:   value = useful work, or kPlaced minus the policy's cost; higher is better.
// Cost:    at most the evaluations it is given.
// Thread class: one thread at a time, with the placer.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/id_map.h"
#include "place/engine.h"
#include "place/modes/batch.h"
#include "place/work.h"

namespace horus {

// ---- Assignment: at most one object a person and one person an object, at the largest sum of values; by auction.
// Cost: O(edges of a person) a bid; at most max_bids of them.

struct AssignmentEdge {
  uint32_t person = 0;
  uint32_t object = 0;
  double value = 0;
};

inline constexpr uint32_t kNoObject = UINT32_MAX;

// The auction of Bertsekas: whoever is without an object bids for the one that pays best after its price, by as much
// as the next best allows and `epsilon` more. The sum is within persons x epsilon of the largest, unless max_bids cut
// it short, which leaves persons out and no object twice. Prices start at 0, so that objects nobody wants cost nothing.
[[nodiscard]] std::vector<uint32_t> Assign(size_t persons, size_t objects, std::span<const AssignmentEdge> edges,
                                           double epsilon, uint64_t max_bids);

struct BatchPlace {
  uint32_t node_row = 0;
  int32_t device = kNoDevice;  // kNoDevice: left out
  friend bool operator==(const BatchPlace&, const BatchPlace&) = default;
};

class BatchSearch {
 public:
  BatchSearch(Engine& engine, WorkMeter& meter, const BatchOptions& options)
      : engine_(engine), meter_(meter), options_(options) {}

  // Jobs of one GPU in planning order; they and their views must outlive it.
  void Add(const JobView& view) { items_.push_back({.view = &view}); }
  [[nodiscard]] size_t size() const { return items_.size(); }
  [[nodiscard]] std::vector<BatchPlace> places() const;

  // All are left out again.
  void Clear();
  // Books them where they are told; each must fit.
  void Book(std::span<const BatchPlace> places);
  // The same with what they add in all, each after those before it; nothing where one does not fit.
  [[nodiscard]] absl::StatusOr<std::optional<double>> Total(std::span<const BatchPlace> places);
  // Those left out, one by one in that order of positions, at the policy's best place.
  [[nodiscard]] absl::Status Insert(std::span<const uint32_t> order);
  // Where jobs might go: to be called once, when all are left out.
  [[nodiscard]] absl::Status FindCandidates();
  // Books the assignment of jobs to candidates, one a device.
  [[nodiscard]] absl::Status BookMatching();
  // Moves, exchanges and replacements until nothing gains or the budget is spent.
  [[nodiscard]] absl::Status Improve();
  [[nodiscard]] bool spent() const { return evaluations_ >= options_.max_evaluations; }

 private:
  struct Item {
    const JobView* view = nullptr;
    BatchPlace place;
    uint32_t group = 0;  // jobs alike, with one list of candidates
    [[nodiscard]] const JobSpec& job() const { return *view->job; }
    [[nodiscard]] bool placed() const { return place.device != kNoDevice; }
  };

  // What the job adds there, as the ledger is; nothing where it does not fit.
  [[nodiscard]] absl::StatusOr<std::optional<double>> Value(const Item& item, const BatchPlace& place);
  // The policy's best place for it, if any, and its value.
  struct Valued {
    BatchPlace place;
    double value = 0;
    [[nodiscard]] bool found() const { return place.device != kNoDevice; }
  };
  [[nodiscard]] absl::StatusOr<Valued> FindPlace(const Item& item);
  void Put(Item& item, const BatchPlace& place);
  void Take(Item& item);
  // Trials: what was put and taken since `mark` is taken back.
  void Back(size_t mark, std::span<const std::pair<uint32_t, BatchPlace>> before);
  [[nodiscard]] absl::Status TryRelocate(uint32_t index, double& gained);
  [[nodiscard]] absl::Status TryCandidates(uint32_t index, double& gained);
  // Whether that gained.
  [[nodiscard]] absl::StatusOr<bool> TryInsteadOf(uint32_t index, uint32_t other, double& gained);
  [[nodiscard]] uint32_t DeviceOf(const BatchPlace& place) const {
    return engine_.ledger().node(place.node_row).first_device + static_cast<uint32_t>(place.device);
  }

  Engine& engine_;
  WorkMeter& meter_;
  const BatchOptions& options_;
  std::vector<Item> items_;
  std::vector<std::vector<BatchPlace>> candidates_;  // by group
  std::vector<std::vector<double>> first_values_;    // of candidates_, when all are left out
  IdMap<uint32_t> item_of_;                          // by JobId
  SearchResult found_;
  uint64_t evaluations_ = 0;
  bool thorough_ = false;
};

}  // namespace horus
