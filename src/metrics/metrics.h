// SPDX-License-Identifier: Apache-2.0
// Metrics: what the library did, counted for whoever operates it, under the names of a Prometheus exposition.
//
// Enters:  calls with status and time, plans, looks into caches.
// Leaves:  rows of family, labels and value; the text that Prometheus scrapes.
// Units:   counts; seconds.
// Cost:    a few relaxed additions a call; 60 KiB.  Thread class: internally synchronised.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status_names.h"
#include "place/decision.h"

namespace horus {

enum class Call : uint8_t {
  kAddNode,
  kChangeNode,
  kRemoveNode,
  kSetNodeState,
  kSetDeviceState,
  kAdopt,
  kApply,
  kRelease,
  kPlan,
  kPlanBatch,
  kVerdicts,
  kRebalance,
  kWhatIf,
  kPreempt,
  kDemand,
  kSolve,
  kEvacuate,
  kReview,
  kAppraise,
};
inline constexpr size_t kCallCount = 19;
[[nodiscard]] const char* CallName(Call call);  // "apply"

// Answers that need no work: demands of a job that was asked about before, judgements of a device in a state that a
// like job met before.
enum class Cache : uint8_t { kDemands, kJudgements };
inline constexpr size_t kCacheCount = 2;

// The values cross the C boundary: never renumber, append only.
enum class MetricKind : int32_t { kCounter = 0, kGauge = 1, kHistogram = 2 };

struct MetricFamily {
  const char* name;
  MetricKind kind;
  const char* help;
};

struct MetricRow {
  const MetricFamily* family = nullptr;
  const char* name = "";    // the family's; of a histogram with _bucket, _sum or _count
  const char* labels = "";  // call="apply",status="OK"; owned by the Metrics
  double value = 0;
};

class Metrics {
 public:
  // Upper ends of the time buckets: 1 us times powers of two, up to 16.8 s; a last one has no end.
  static constexpr size_t kTimeBuckets = 25;

  Metrics();

  void Called(Call call, int status, std::optional<uint64_t> ns);
  void Decided(const Plan& plan);
  void Looked(Cache cache, uint64_t hits, uint64_t misses);

  // Families in a fixed order. Rows with labels appear once they are above 0.
  [[nodiscard]] std::vector<MetricRow> Rows() const;

 private:
  struct Counter {
    std::string labels;
    std::atomic<uint64_t> value = 0;
  };
  struct Times {
    std::string labels;
    std::array<std::string, kTimeBuckets + 1> bucket_labels;
    std::array<std::atomic<uint64_t>, kTimeBuckets + 1> buckets = {};
    std::atomic<uint64_t> sum_ns = 0;
  };

  std::array<std::array<Counter, kStatusNames.size()>, kCallCount> calls_;
  std::array<Times, kCallCount> times_;
  std::array<Counter, 3> decisions_;  // by verdict
  std::array<Counter, kReasonCount> refusals_;
  std::atomic<uint64_t> conflicts_ = 0;
  std::array<Counter, kCacheCount> hits_;
  std::array<Counter, kCacheCount> misses_;
};

// Of gauges, which whoever holds the handles measures.
extern const MetricFamily kBytesHeld;

// The text exposition format, version 0.0.4: rows of one family must be neighbours.
[[nodiscard]] std::string MetricsText(const std::vector<MetricRow>& rows);

}  // namespace horus
