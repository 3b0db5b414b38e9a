// SPDX-License-Identifier: Apache-2.0
// Counting: one atomic a row; the labels are written once, when nobody waits.
#include "metrics/metrics.h"

#include <algorithm>
#include <bit>

#include "base/format.h"

namespace horus {
namespace {

constexpr std::array<const char*, kCallCount> kCallNames = {
    "add_node", "change_node", "remove_node", "set_node_state", "set_device_state", "adopt",   "apply",
    "release",  "plan",        "plan_batch",  "verdicts",       "rebalance",        "what_if", "preempt",
    "demand",   "solve",       "evacuate",    "review",         "appraise"};
constexpr std::array<const char*, kCacheCount> kCacheNames = {"demands", "judgements"};
constexpr uint64_t kNsPerUs = 1000;
constexpr double kSecondsPerNs = 1e-9;

constexpr MetricFamily kCalls = {"horus_calls_total", MetricKind::kCounter, "Calls of the library, by status."};
constexpr MetricFamily kCallSeconds = {"horus_call_duration_seconds", MetricKind::kHistogram,
                                       "How long calls took, whatever their status."};
constexpr MetricFamily kDecisions = {"horus_decisions_total", MetricKind::kCounter, "Jobs decided, by verdict."};
constexpr MetricFamily kRefusals = {"horus_refusals_total", MetricKind::kCounter,
                                    "Jobs deferred or rejected, by the reason that came nearest."};
constexpr MetricFamily kConflicts = {"horus_conflicts_total", MetricKind::kCounter,
                                     "Plans refused because a node had moved since they were made."};
constexpr MetricFamily kHits = {"horus_cache_hits_total", MetricKind::kCounter, "Answers that a cache knew."};
constexpr MetricFamily kMisses = {"horus_cache_misses_total", MetricKind::kCounter, "Answers that were worked out."};

uint64_t Get(const std::atomic<uint64_t>& value) { return value.load(std::memory_order_relaxed); }
void Add(std::atomic<uint64_t>& value, uint64_t more) { value.fetch_add(more, std::memory_order_relaxed); }

// The smallest bucket whose upper end is not below it.
size_t BucketOf(uint64_t ns) {
  const uint64_t us = ns / kNsPerUs + (ns % kNsPerUs != 0 ? 1 : 0);
  const size_t bucket = us <= 1 ? 0 : static_cast<size_t>(std::bit_width(us - 1));
  return std::min(bucket, Metrics::kTimeBuckets);
}

template <typename Counters>
void AddRows(const MetricFamily& family, const Counters& counters, std::vector<MetricRow>& rows) {
  for (const auto& counter : counters) {
    if (const uint64_t value = Get(counter.value); value > 0)
      rows.push_back({&family, family.name, counter.labels.c_str(), static_cast<double>(value)});
  }
}

constexpr std::array<const char*, 3> kKindNames = {"counter", "gauge", "histogram"};

}  // namespace

const MetricFamily kBytesHeld = {"horus_bytes_held", MetricKind::kGauge, "Memory of the handles that are metered."};

const char* CallName(Call call) { return kCallNames[static_cast<size_t>(call)]; }

Metrics::Metrics() {
  for (size_t call = 0; call < kCallCount; ++call) {
    for (size_t status = 0; status < kStatusNames.size(); ++status)
      calls_[call][status].labels = Formatted("call=\"%s\",status=\"%s\"", kCallNames[call], kStatusNames[status]);
    Times& times = times_[call];
    times.labels = Formatted("call=\"%s\"", kCallNames[call]);
    for (size_t bucket = 0; bucket < kTimeBuckets; ++bucket) {
      const double end = static_cast<double>(kNsPerUs << bucket) * kSecondsPerNs;
      times.bucket_labels[bucket] = Formatted("call=\"%s\",le=\"%.9g\"", kCallNames[call], end);
    }
    times.bucket_labels[kTimeBuckets] = Formatted("call=\"%s\",le=\"+Inf\"", kCallNames[call]);
  }
  for (size_t verdict = 0; verdict < decisions_.size(); ++verdict)
    decisions_[verdict].labels = Formatted("verdict=\"%s\"", VerdictName(static_cast<Verdict>(verdict)));
  for (size_t reason = 0; reason < kReasonCount; ++reason)
    refusals_[reason].labels = Formatted("reason=\"%s\"", ReasonName(static_cast<Reason>(reason)));
  for (size_t cache = 0; cache < kCacheCount; ++cache)
    hits_[cache].labels = misses_[cache].labels = Formatted("cache=\"%s\"", kCacheNames[cache]);
}

void Metrics::Called(Call call, int status, std::optional<uint64_t> ns) {
  const auto row = static_cast<size_t>(call);
  Add(calls_[row][static_cast<size_t>(status)].value, 1);
  if (call == Call::kApply && status == kStatusConflict) Add(conflicts_, 1);
  if (!ns.has_value()) return;
  Add(times_[row].buckets[BucketOf(*ns)], 1);
  Add(times_[row].sum_ns, *ns);
}

void Metrics::Decided(const Plan& plan) {
  for (const Decision& decision : plan.decisions) {
    Add(decisions_[static_cast<size_t>(decision.verdict)].value, 1);
    if (decision.verdict != Verdict::kPlace) Add(refusals_[static_cast<size_t>(decision.reason)].value, 1);
  }
}

void Metrics::Looked(Cache cache, uint64_t hits, uint64_t misses) {
  Add(hits_[static_cast<size_t>(cache)].value, hits);
  Add(misses_[static_cast<size_t>(cache)].value, misses);
}

std::vector<MetricRow> Metrics::Rows() const {
  std::vector<MetricRow> rows;
  for (const auto& call : calls_) AddRows(kCalls, call, rows);
  for (const Times& times : times_) {
    uint64_t count = 0;
    const size_t before = rows.size();
    for (size_t bucket = 0; bucket <= kTimeBuckets; ++bucket) {
      count += Get(times.buckets[bucket]);
      rows.push_back({&kCallSeconds, "horus_call_duration_seconds_bucket", times.bucket_labels[bucket].c_str(),
                      static_cast<double>(count)});
    }
    if (count == 0) {
      rows.resize(before);
      continue;
    }
    rows.push_back({&kCallSeconds, "horus_call_duration_seconds_sum", times.labels.c_str(),
                    static_cast<double>(Get(times.sum_ns)) * kSecondsPerNs});
    rows.push_back(
        {&kCallSeconds, "horus_call_duration_seconds_count", times.labels.c_str(), static_cast<double>(count)});
  }
  AddRows(kDecisions, decisions_, rows);
  AddRows(kRefusals, refusals_, rows);
  rows.push_back({&kConflicts, kConflicts.name, "", static_cast<double>(Get(conflicts_))});
  AddRows(kHits, hits_, rows);
  AddRows(kMisses, misses_, rows);
  return rows;
}

std::string MetricsText(const std::vector<MetricRow>& rows) {
  std::string text;
  const MetricFamily* family = nullptr;
  for (const MetricRow& row : rows) {
    if (row.family != family) {
      family = row.family;
      AppendFormatted(&text, "# HELP %s %s\n# TYPE %s %s\n", family->name, family->help, family->name,
                      kKindNames[static_cast<size_t>(family->kind)]);
    }
    text += row.name;
    if (*row.labels != '\0') AppendFormatted(&text, "{%s}", row.labels);
    // 17 digits carry every double; counts stay whole up to 2^53.
    AppendFormatted(&text, " %.17g\n", row.value);
  }
  return text;
}

}  // namespace horus
