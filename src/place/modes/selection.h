// SPDX-License-Identifier: Apache-2.0
// Selection: who of those who wait goes next, and where.
//
// Enters:  an engine that follows the cluster; the waiting jobs in planning order; window, patience, prices.
// Leaves:  one job at a time with its place, until nobody fits; then why each of the others waits.
// Cost:    a place for each kind of job in the window; after each job the nodes that it took, for each kind again.
// Thread class: one thread at a time, with the placer.
#pragma once

#include "place/engine.h"
#include "place/modes/batch.h"
#include "place/search/prices.h"

namespace horus {

class Selection {
 public:
  // All must outlive it; `views` in planning order. `largest_first`: of one priority, whatever their work is worth.
  Selection(Engine& engine, std::span<const JobView> views, const BatchOptions& options, bool largest_first)
      : engine_(engine), views_(views), options_(options), largest_first_(largest_first) {}

  // Sorts the jobs into kinds and asks for their prices.
  [[nodiscard]] absl::Status Start(WorkPricer& pricer);
  // Who is placed next; none = nobody of those left is. The caller books the view at the place before it asks again.
  struct Chosen {
    size_t at = 0;                       // position
    std::shared_ptr<const JobSpec> job;  // weighted by its price; as it will run
    JobView view;                        // of `job`
    Decision decision;
    Placement place;
  };
  [[nodiscard]] absl::StatusOr<std::optional<Chosen>> Next();
  // Of a job that is left when Next found nobody: why it waits.
  [[nodiscard]] absl::StatusOr<Decision> Left(size_t at);
  [[nodiscard]] std::span<const size_t> left() const { return left_; }
  // Whether one of these has several GPUs and might have fitted when the plan began.
  [[nodiscard]] bool LeavesGang() const;

 private:
  struct Kind {
    const JobSpec* stated = nullptr;  // its first one
    JobSpec job;                      // the same as it would run, weighted by its price
    JobView view;                     // of `job`
    bool chosen = false;              // `job` is not what was stated (Engine::Choose)
    bool refused = false;             // fits nowhere any more
    bool fitted = false;              // may have fitted somewhere when the plan began
    Placement best;
    PlacedSlots wanted;  // where it would have gone first; empty: it was not looked at before others came, or fits not
    size_t seen = 0;     // bookings that `best` minds
    std::optional<JobId> passed;  // as Passed says, once all are booked
    bool known = false;
  };
  // By kind.
  [[nodiscard]] absl::StatusOr<std::vector<double>> Prices(WorkPricer& pricer) const;
  [[nodiscard]] absl::Status Find(Kind& kind);
  // The same of one that fits nowhere as it is, or is none before a way is chosen.
  [[nodiscard]] absl::Status FindOther(Kind& kind);
  void Found(Kind& kind) const;  // notes kind.best, as things stand
  [[nodiscard]] absl::StatusOr<Chosen> Settle(size_t at, const Kind& kind);
  [[nodiscard]] double CostOf(const Kind& kind) const;
  [[nodiscard]] bool IsPatient(const JobSpec& job) const {
    return options_.patience_us > 0 && options_.now_us - job.submit_us >= options_.patience_us;
  }
  // Whether a job before it that nobody passes any more waits for such GPUs.
  [[nodiscard]] bool IsHeldUp(const JobView& view) const;
  // Who took the place that suited the kind best; 0 = nobody, or it was not looked at before others came.
  [[nodiscard]] JobId Passed(Kind& kind) const;

  Engine& engine_;
  std::span<const JobView> views_;
  const BatchOptions& options_;
  bool largest_first_ = false;
  std::vector<Kind> kinds_;
  std::vector<uint32_t> kind_of_;  // by position
  std::vector<size_t> left_;       // positions, ascending
  struct Booking {
    JobId job = 0;
    PlacedSlots slots;
  };
  std::vector<Booking> taken_;
  std::vector<const JobView*> patient_;  // of views_, that fit nowhere; of this round
  SearchResult found_;
};

}  // namespace horus
