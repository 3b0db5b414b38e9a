// SPDX-License-Identifier: Apache-2.0
// queue: time of each operation of each discipline against the number of jobs, beside a sort for each pop and a
// std::set.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/hash.h"
#include "bench/heap.h"
#include "bench/rows.h"
#include "queue/queue.h"

namespace horus::bench {
namespace {

// The workload: a job a second, run times to 10 h, as many owners as there are teams in a large cluster.
constexpr int64_t kSecond = 1'000'000;
constexpr uint64_t kOwners = 200;
constexpr size_t kMostLooks = 100'000'000;  // at jobs that wait, in all picks
constexpr size_t kWindow = 64;              // what a batch placer takes at once

void Must(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "queue: %s\n", status.ToString().c_str());
  std::exit(1);
}

uint64_t Draw(uint64_t seed, uint64_t range) { return Mix64(seed) % range; }

QueuedJob MakeJob(uint64_t id) {
  QueuedJob job{.id = id};
  job.owner = Draw(id * 11 + 1, kOwners);
  job.submit_us = static_cast<int64_t>(id) * kSecond;
  job.priority = static_cast<int32_t>(Draw(id * 11 + 2, 3));
  job.tasks = 1 << Draw(id * 11 + 3, 4);
  job.gpus = job.tasks;
  job.cpu_milli = job.gpus * 4000;
  job.mem_mib = job.gpus * 32 * 1024;
  const auto util = static_cast<float>(5 + Draw(id * 11 + 4, 90));
  job.gpu_util_pct = {util, std::min(100.0f, util + 5)};
  job.gpu_mem_mib = {1000 + static_cast<int64_t>(Draw(id * 11 + 5, 30'000)), 40'000};
  job.total_us = kSecond * static_cast<int64_t>(60 + Draw(id * 11 + 6, 36'000));
  job.attained_gpu_us = static_cast<int64_t>(Draw(id * 11 + 7, 7200)) * kSecond;
  job.deadline_us = job.submit_us + 2 * job.total_us;
  job.ideal_us = job.total_us * static_cast<int64_t>(1 + Draw(id * 11 + 8, 8));
  return job;
}

double NanosecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

// Processor time: what others do on the machine does not count.
double ProcessorNs() { return static_cast<double>(std::clock()) * (1e9 / CLOCKS_PER_SEC); }

// Mean of `count` calls in a row.
double MeanNs(size_t count, const std::function<void(size_t)>& call) {
  const double start = ProcessorNs();
  for (size_t i = 0; i < count; ++i) call(i);
  return (ProcessorNs() - start) / static_cast<double>(count);
}

struct Times {
  double push_ns, push_worst_us, churn_ns, churn_p50_ns, churn_p99_ns, update_ns, window_ns, allocations, bytes_per_job;
};

// Filled to n, then: a job is served and another comes, one by one, as time goes on; then updates and windows.
Times Measure(std::string_view name, size_t n, size_t operations) {
  QueueOptions options;
  options.capacity = {
      .gpu_milli = 100'000'000, .cpu_milli = int64_t{1'200'000'000}, .mem_mib = int64_t{12'500} * 750'000};
  auto queue = *MakeQueue(name, options);
  Times times = {};
  std::vector<double> each;
  each.reserve(n);
  std::vector<QueuedJob> jobs;
  for (uint64_t id = 0; id < n; ++id) jobs.push_back(MakeJob(id));
  const double before_push = ProcessorNs();
  for (const QueuedJob& job : jobs) {
    const auto start = std::chrono::steady_clock::now();
    Must(queue->Push(job));
    each.push_back(NanosecondsSince(start));
  }
  times.push_ns = (ProcessorNs() - before_push) / static_cast<double>(n);
  times.push_worst_us = *std::max_element(each.begin(), each.end()) / 1000;
  jobs.clear();
  for (uint64_t id = n; id < n + operations; ++id) jobs.push_back(MakeJob(id));
  each.clear();
  each.reserve(operations);
  ResetHeapUse();
  const double before_churn = ProcessorNs();
  for (const QueuedJob& job : jobs) {
    const auto start = std::chrono::steady_clock::now();
    Must(queue->Pop(job.submit_us).status());
    Must(queue->Push(job));
    each.push_back(NanosecondsSince(start));
  }
  times.allocations = static_cast<double>(CurrentHeapUse().allocations) / static_cast<double>(operations);
  times.churn_ns = (ProcessorNs() - before_churn) / static_cast<double>(operations);
  times.churn_p50_ns = Quantile(each, 0.5);
  times.churn_p99_ns = Quantile(each, 0.99);
  const auto now = static_cast<int64_t>(n + operations) * kSecond;
  std::vector<uint64_t> ids = *queue->Window(now, queue->size());
  times.update_ns = MeanNs(operations, [&](size_t i) {
    const int64_t progress = static_cast<int64_t>(Draw(i, 36'000)) * kSecond;
    Must(queue->Update(ids[Draw(i + 5, ids.size())], {.attained_gpu_us = progress, .remaining_us = progress}));
  });
  times.window_ns =
      MeanNs(std::max<size_t>(operations / kWindow, 2),
             [&](size_t i) { Must(queue->Window(now + static_cast<int64_t>(i) * kSecond, kWindow).status()); }) /
      static_cast<double>(kWindow);
  times.bytes_per_job = static_cast<double>(queue->bytes_held()) / static_cast<double>(n);
  return times;
}

using Key = std::tuple<int32_t, int64_t, int64_t, uint64_t>;
Key SrtfKey(const QueuedJob& job) { return {-job.priority, job.total_us, job.submit_us, job.id}; }

// The obvious: jobs in a vector, sorted for each pop. Only srtf: its order is the simplest to keep.
double SortNs(size_t n, size_t operations) {
  std::vector<QueuedJob> jobs;
  for (uint64_t id = 0; id < n; ++id) jobs.push_back(MakeJob(id));
  return MeanNs(operations, [&](size_t i) {
    std::sort(jobs.begin(), jobs.end(), [](const auto& a, const auto& b) { return SrtfKey(b) < SrtfKey(a); });
    jobs.pop_back();
    jobs.push_back(MakeJob(n + i));
  });
}
// One better: keys in a std::set, without the table that finds a job by its id.
double SetNs(size_t n, size_t operations) {
  std::set<Key> keys;
  for (uint64_t id = 0; id < n; ++id) keys.insert(SrtfKey(MakeJob(id)));
  return MeanNs(operations, [&](size_t i) {
    keys.erase(keys.begin());
    keys.insert(SrtfKey(MakeJob(n + i)));
  });
}

std::string SizeText(size_t n) {
  return n >= 1'000'000 ? absl::StrFormat("%dm", n / 1'000'000)
         : n >= 1000    ? absl::StrFormat("%dk", n / 1000)
                        : absl::StrFormat("%d", n);
}

void MeasureAll(const Options& options, std::vector<Row>* rows) {
  const std::vector<size_t> sizes =
      options.smoke ? std::vector<size_t>{200} : std::vector<size_t>{1000, 10'000, 100'000, 1'000'000};
  const size_t operations = options.smoke ? 100 : 100'000;
  for (const size_t n : sizes) {
    const double sort_ns = SortNs(n, std::max<size_t>(3, 2'000'000 / n));
    const double set_ns = SetNs(n, operations);
    const std::string beside =
        absl::StrFormat("srtf by a sort of a vector for each pop %.4g ns, by a std::set %.4g ns", sort_ns, set_ns);
    for (const std::string_view name : QueueNames()) {
      // Each pick of ftf looks at all jobs.
      const size_t times_done = name == "ftf" ? std::min(operations, kMostLooks / n) : operations;
      const Times times = Measure(name, n, times_done);
      const std::string protocol = absl::StrFormat(
          "%s, %d jobs, a job a second, 3 priorities, 200 owners; churn = one popped, one pushed, %d times; means in "
          "processor time, quantiles and the worst push by the clock",
          name, n, times_done);
      const auto add = [&](const char* metric, double value, const char* unit, const std::string& baseline) {
        std::string plain(name);
        std::replace(plain.begin(), plain.end(), '-', '_');
        rows->push_back(
            {absl::StrFormat("queue_%s_%s_%s", plain, metric, SizeText(n)), value, unit, 0, true, baseline, protocol});
      };
      add("churn_ns", times.churn_ns, "ns", beside);
      add("churn_p50_ns", times.churn_p50_ns, "ns", "");
      add("churn_p99_ns", times.churn_p99_ns, "ns", "");
      add("push_ns", times.push_ns, "ns", "");
      add("push_worst_us", times.push_worst_us, "us", "");
      add("update_ns", times.update_ns, "ns", "");
      add("window_ns_per_job", times.window_ns, "ns", "");
      add("allocations_per_churn", times.allocations, "1", "");
      add("bytes_per_job", times.bytes_per_job, "B", "");
    }
  }
}

}  // namespace
}  // namespace horus::bench

int main(int argc, char** argv) { return horus::bench::Main(argc, argv, horus::bench::MeasureAll); }
