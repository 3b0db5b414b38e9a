// SPDX-License-Identifier: Apache-2.0
// ShadowReplay: follows what another scheduler did and asks, before each of its decisions, what ours would have been.
//
// Enters:  entries of its log in the order of time; jobs by name.
// Leaves:  a record for each decision and observation, and totals.
// Units:   seconds; work as in docs/place.md; slowdown = shared / alone.
// Cost:    three plans and a few model calls an entry; memory for three clusters and the jobs on them.
// Thread class: one thread at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/text.h"
#include "io/decision_log.h"
#include "place/appraise.h"
#include "place/placer.h"
#include "place/search/policy.h"

namespace horus::cli {

// Counts of slowdowns up to each bound, the rest in the last.
struct SlowdownHistogram {
  static constexpr std::array<double, 8> kBounds = {1, 1.05, 1.1, 1.25, 1.5, 2, 3, 5};  // chosen
  std::array<uint64_t, kBounds.size() + 1> counts = {};
  uint64_t count = 0;
  double sum = 0;
  void Add(double slowdown);
  [[nodiscard]] double Mean() const { return count == 0 ? 0 : sum / static_cast<double>(count); }
};

// A scheduler's choices in turn, each in the state that its earlier ones led to; a job that waits gains nothing.
struct ShadowSide {
  uint64_t placed = 0;
  SlowdownHistogram slowdown;  // predicted for the job
  double work = 0;             // gained, GPUs
  double gpu_hours = 0;        // the same for as long as the jobs were there
  uint64_t beyond_bound = 0;   // tenants pushed beyond their bounds
  void Add(const Appraisal& does);
};

// What a scheduler did with one job, or would have done.
struct ShadowChoice {
  Verdict verdict = Verdict::kPlace;
  Reason refused = Reason::kNone;  // why it would let the job wait
  Slots slots;
  Appraisal does;                      // the place's effect, where it is placed
  std::shared_ptr<const JobSpec> job;  // as it would run there: capped, or alone as a probe
};

// One decision of theirs, or one observation.
struct ShadowRecord {
  uint64_t line = 0;  // 0 = the job was still running at the end of the log
  double time_s = 0;
  JobId job = 0;
  bool is_decision = true;
  ShadowChoice theirs, ours;  // ours in the same state
  std::vector<JobId> beside;  // who was on the devices of theirs
  bool same = false;
  double hours = 0;      // that the job was there, once it left or the log ended; of a decision
  double predicted = 0;  // mean over the job's life there; of an observation
  double observed = 0;

  // Useful work of ours less theirs, of a decision that both took.
  [[nodiscard]] double regret() const { return ours.does.work - theirs.does.work; }
  // Less is noise of predictions, and not worth a move.
  [[nodiscard]] double tolerance() const { return kLeastGainPerGpu * static_cast<double>(theirs.slots.size()); }
  [[nodiscard]] bool IsWorse() const { return ours.verdict == Verdict::kPlace && !same && regret() > tolerance(); }
};

inline constexpr size_t kMostCostly = 10;  // chosen

struct ShadowTotals {
  uint64_t entries = 0;
  uint64_t bad_lines = 0;
  uint64_t decisions = 0;
  uint64_t of_requests_alone = 0;  // of decisions: nobody knows what the job runs
  uint64_t releases = 0;
  // Theirs beside ours, of decisions that both took: the same places; others within the tolerance; the rest.
  uint64_t same = 0;
  uint64_t equally_good = 0;
  uint64_t worse = 0;
  uint64_t better = 0;
  std::array<uint64_t, kReasonCount> broken = {};  // their places by the first rule of ours that they break
  uint64_t compared = 0;                           // decisions that both took
  double regret = 0;                               // of these, each by itself: ours exclude each other
  ShadowSide theirs, ours, exclusive;              // in turn
  std::vector<ShadowRecord> most_costly;           // up to kMostCostly that are worse, by descending regret
  uint64_t observed = 0;
  SlowdownHistogram observations;
  double error_sum = 0;  // |predicted - observed| / observed
  double bias_sum = 0;   // (predicted - observed) / observed
  uint64_t observed_beyond_bound = 0;
  double hours = 0;             // from the first entry to the last
  double regret_gpu_hours = 0;  // each regret for as long as its job was there

  [[nodiscard]] uint64_t refused() const { return decisions - compared; }
};

// DidYouMean among the keys of a map; empty where there are too many to look at.
[[nodiscard]] std::string NearestKey(const std::string& name, const auto& map) {
  constexpr size_t kMostKeys = 10000;
  std::vector<std::string_view> keys;
  for (const auto& [key, value] : map) keys.push_back(key);
  std::ranges::sort(keys);
  return keys.size() > kMostKeys ? "" : DidYouMean(name, keys);
}

// The spec of a job of the log; what is wrong with the name where there is none.
using JobFinder = std::function<absl::StatusOr<const JobSpec*>(const std::string& name)>;

class ShadowReplay {
 public:
  using Sink = std::function<absl::Status(const ShadowRecord&)>;

  // `ours`: a placer like `placer`, `exclusive`: one of that policy, with the same model; both for choices in turn.
  ShadowReplay(Cluster cluster, std::unique_ptr<Placer> placer, std::unique_ptr<Placer> ours,
               std::unique_ptr<Placer> exclusive, JobFinder jobs, Sink sink);

  // INVALID_ARGUMENT naming file, line and field where the entry cannot be; nothing changed then.
  [[nodiscard]] absl::Status Take(const DecisionLog& log, const LogEntry& entry);
  // Compares what was observed of jobs that run on.
  [[nodiscard]] absl::Status Finish();
  void CountBadLine() { ++totals_.bad_lines; }

  [[nodiscard]] const ShadowTotals& totals() const { return totals_; }
  [[nodiscard]] const Cluster& cluster() const { return cluster_; }

 private:
  struct Running {  // a job that runs
    double since = 0;
    double last = 0;
    double integral = 0;                            // of the predicted slowdown over time
    std::vector<std::pair<Slot, double>> slowdown;  // now, by device
    double communication = 0;
    double alone_ms = 0;  // a step, the all-reduce included; 0 = not known
    double bound = 0;
    double observed = 0;  // 0 = nothing yet
    ShadowRecord decision;
    double our_work = 0, exclusive_work = 0;  // gained in turn
    [[nodiscard]] double Now() const;
    void Pass(double time);
  };
  [[nodiscard]] absl::StatusOr<Slots> SlotsOf(const DecisionLog& log, const LogEntry& entry, const JobSpec& job) const;
  [[nodiscard]] absl::Status Place(const DecisionLog& log, const LogEntry& entry, const JobSpec& job);
  [[nodiscard]] absl::Status Release(const DecisionLog& log, const LogEntry& entry, const JobSpec& job);
  // A scheduler whose own choices are its state.
  struct Turn {
    Cluster cluster;
    std::unique_ptr<Placer> placer;
  };
  [[nodiscard]] absl::StatusOr<ShadowChoice> ChoiceOf(Placer& placer, const Cluster& cluster, const JobSpec& job) const;
  // The useful work gained.
  [[nodiscard]] absl::StatusOr<double> TakeTurn(Turn& turn, const JobSpec& job, ShadowSide& side) const;
  [[nodiscard]] std::vector<JobId> TenantsOn(std::span<const Slot> slots) const;
  void Count(const ShadowRecord& record);
  void CountHours(Running& running);
  [[nodiscard]] absl::Status Observe(const DecisionLog& log, const LogEntry& entry, Running& running) const;
  [[nodiscard]] absl::Status Compare(uint64_t line, JobId job, const Running& running);
  [[nodiscard]] absl::Status Refresh(std::span<const Slot> slots);
  [[nodiscard]] Running Follow(const JobSpec& job, std::span<const Slot> slots, const LogEntry& entry,
                               double communication) const;

  Cluster cluster_;
  std::unique_ptr<Placer> placer_;
  Turn ours_, exclusive_;
  Appraiser appraiser_;
  JobFinder jobs_;
  Sink sink_;
  absl::flat_hash_map<std::string, NodeId> nodes_;  // by name
  absl::flat_hash_map<JobId, Running> running_;     // never iterated
  double time_s_ = 0;
  double began_s_ = 0;
  ShadowTotals totals_;
};

}  // namespace horus::cli
