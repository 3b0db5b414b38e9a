// SPDX-License-Identifier: Apache-2.0
// NaiveQueue: every discipline as its page states it, by looking at all jobs for each decision.
#ifndef HORUS_TESTS_UNIT_QUEUE_NAIVE_QUEUE_H_
#define HORUS_TESTS_UNIT_QUEUE_NAIVE_QUEUE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "draw.h"
#include "queue/kmeans.h"
#include "queue/queue.h"

namespace horus::testing_queue {

inline constexpr double kLast = std::numeric_limits<double>::infinity();

// Small numbers, so that ties are common and quotients exact enough for double.
inline QueuedJob RandomJob(uint64_t id, uint64_t seed) {
  auto draw = [&, i = uint64_t{0}](int64_t least, int64_t most) mutable {
    return least + static_cast<int64_t>(Draw(seed * 64 + i++) * static_cast<double>(most - least + 1));
  };
  QueuedJob job{.id = id};
  job.owner = static_cast<uint64_t>(draw(1, 5));
  job.submit_us = draw(-10, 40);
  job.priority = static_cast<int32_t>(draw(-1, 0) + draw(0, 1));
  job.tasks = static_cast<int32_t>(draw(1, 4));
  job.gpus = job.tasks * static_cast<int32_t>(draw(1, 2));
  job.gpu_milli = draw(0, 2) == 0 ? 500 : 1000;
  job.cpu_milli = draw(0, 4) * 1000;
  job.mem_mib = draw(0, 4) * 1024;
  const auto util = static_cast<float>(draw(0, 9) * 10);
  job.gpu_util_pct = {util, util + 10};
  const int64_t mem = draw(1, 8) * 1000;
  job.gpu_mem_mib = {mem, mem + 500};
  job.total_us = draw(0, 5) * 10;
  job.remaining_us = draw(0, 1) == 0 ? -1 : draw(0, 20);
  job.attained_gpu_us = draw(0, 30);
  job.deadline_us = draw(0, 10);
  job.ideal_us = draw(0, 3) * 15;
  return job;
}

class NaiveQueue {
 public:
  NaiveQueue(std::string name, QueueOptions options) : name_(std::move(name)), options_(std::move(options)) {}

  void Push(const QueuedJob& job) {
    jobs_.push_back(job);
    if (name_ == "horus-plus") PushToClusters(job);
  }
  void Remove(uint64_t id) {
    std::erase_if(jobs_, [id](const QueuedJob& job) { return job.id == id; });
    ++changes_;
  }
  void Serve(uint64_t id, int64_t now) {
    const QueuedJob job = *Find(id);
    const QueueResources needs = ResourcesOf(job);
    QueueResources& used = usage_[job.owner];
    used.gpu_milli += needs.gpu_milli;
    used.cpu_milli += needs.cpu_milli;
    used.mem_mib += needs.mem_mib;
    if (name_ == "horus-plus") Pay(cluster_.at(id), now);
    Remove(id);
  }
  void Update(uint64_t id, const JobProgress& progress) {
    QueuedJob& job = *Find(id);
    if (progress.attained_gpu_us >= 0) job.attained_gpu_us = progress.attained_gpu_us;
    if (progress.remaining_us >= 0) job.remaining_us = progress.remaining_us;
  }
  void SetCapacity(const QueueResources& capacity) { options_.capacity = capacity; }
  void SetOwnerUsage(uint64_t owner, const QueueResources& usage) { usage_[owner] = usage; }

  [[nodiscard]] uint64_t First(int64_t now) const {
    int32_t highest = std::numeric_limits<int32_t>::min();
    for (const QueuedJob& job : jobs_) highest = std::max(highest, job.priority);
    std::vector<QueuedJob> equal;
    for (const QueuedJob& job : jobs_) {
      if (job.priority == highest) equal.push_back(job);
    }
    const bool overdue = options_.patience_us > 0 && std::any_of(equal.begin(), equal.end(), [&](const auto& job) {
                           return now - job.submit_us >= options_.patience_us;
                         });
    const size_t chosen = !overdue && name_ == "horus-plus" ? BestCluster(now) : 0;
    const auto score = [&](const QueuedJob& job) {
      if (overdue) return 0.0;
      if (name_ == "horus-plus" && cluster_.at(job.id) != chosen) return kLast;
      return Score(job, now);
    };
    return std::min_element(equal.begin(), equal.end(),
                            [&](const QueuedJob& a, const QueuedJob& b) {
                              return std::tuple(score(a), a.submit_us, a.id) < std::tuple(score(b), b.submit_us, b.id);
                            })
        ->id;
  }
  // By popping from a copy.
  [[nodiscard]] std::vector<uint64_t> Window(int64_t now, size_t count) const {
    NaiveQueue copy = *this;
    std::vector<uint64_t> ids;
    while (ids.size() < count && !copy.jobs_.empty()) {
      ids.push_back(copy.First(now));
      copy.Serve(ids.back(), now);
    }
    return ids;
  }
  [[nodiscard]] const std::vector<QueuedJob>& jobs() const { return jobs_; }
  [[nodiscard]] const std::vector<double>& credit() const { return credit_; }

 private:
  static double Share(int64_t amount, int64_t capacity) {
    return capacity > 0 ? static_cast<double>(amount) / static_cast<double>(capacity) : 0.0;
  }
  [[nodiscard]] double Share(const QueueResources& r, bool sum) const {
    const double g = Share(r.gpu_milli, options_.capacity.gpu_milli),
                 c = Share(r.cpu_milli, options_.capacity.cpu_milli), m = Share(r.mem_mib, options_.capacity.mem_mib);
    return sum ? g + c + m : std::max({g, c, m});
  }
  QueuedJob* Find(uint64_t id) {
    return &*std::find_if(jobs_.begin(), jobs_.end(), [id](const QueuedJob& job) { return job.id == id; });
  }

  // Smaller first.
  [[nodiscard]] double Score(const QueuedJob& job, int64_t now) const {
    const int64_t remaining = job.remaining_us >= 0 ? job.remaining_us : job.total_us > 0 ? job.total_us : -1;
    if (name_ == "fifo") return 0;
    if (name_ == "sjf") return job.total_us > 0 ? static_cast<double>(job.total_us) : kLast;
    if (name_ == "srtf") return remaining >= 0 ? static_cast<double>(remaining) : kLast;
    if (name_ == "edf") return job.deadline_us != 0 ? static_cast<double>(job.deadline_us) : kLast;
    if (name_ == "tetris") {
      return remaining >= 0 ? Share(ResourcesOf(job), true) * static_cast<double>(remaining) : kLast;
    }
    if (name_ == "ftf") {
      const int64_t ideal = job.ideal_us > 0 ? job.ideal_us : job.total_us;
      if (remaining < 0 || ideal == 0) return kLast;
      return -static_cast<double>(now - job.submit_us + remaining) / static_cast<double>(ideal);
    }
    if (name_ == "las") {
      if (options_.las_continuous) return static_cast<double>(job.attained_gpu_us);
      return static_cast<double>(std::count_if(options_.las_thresholds_gpu_us.begin(),
                                               options_.las_thresholds_gpu_us.end(),
                                               [&](int64_t limit) { return limit <= job.attained_gpu_us; }));
    }
    if (name_ == "drf") {
      const auto used = usage_.find(job.owner);
      return used == usage_.end() ? 0.0 : Share(used->second, false);
    }
    int64_t aging = options_.aging_us_per_pct;
    if (aging == 0 && name_ == "horus-plus") aging = kDefaultAgingUsPerPct;
    const double util = static_cast<double>(job.gpu_util_pct.estimate);
    return aging > 0 ? util + static_cast<double>(job.submit_us) / static_cast<double>(aging) : util;
  }

  // horus-plus.
  void PushToClusters(const QueuedJob& job) {
    ++changes_;
    if (static_cast<double>(changes_) < std::max(1.0, std::ceil(options_.recluster_share * clustered_))) {
      cluster_[job.id] = NearestCentre(fit_.centres, fit_.scale.Place(FeaturesOf(job)));
      return;
    }
    std::vector<const QueuedJob*> all;
    for (const QueuedJob& j : jobs_) all.push_back(&j);
    fit_ = ClusterJobs(all, static_cast<size_t>(options_.clusters));
    std::map<uint64_t, size_t> next;
    for (size_t i = 0; i < all.size(); ++i) next[all[i]->id] = fit_.cluster_of[i];
    std::vector<double> credit(5);
    for (size_t c = 0; c < 5; ++c) {
      const QueuedJob* oldest = nullptr;
      for (const QueuedJob* j : all) {
        if (j->id == job.id || cluster_.at(j->id) != c) continue;
        if (oldest == nullptr || std::tie(j->submit_us, j->id) < std::tie(oldest->submit_us, oldest->id)) oldest = j;
      }
      if (oldest != nullptr) {
        credit[next[oldest->id]] += credit_[c];
      } else {
        for (size_t to = 0; to < fit_.centres.size(); ++to) {
          credit[to] += credit_[c] / static_cast<double>(fit_.centres.size());
        }
      }
    }
    credit_ = credit;
    cluster_ = next;
    changes_ = 0;
    clustered_ = static_cast<double>(jobs_.size());
  }
  // Each cluster's score; negative = takes no part.
  [[nodiscard]] std::vector<double> Scores(int64_t now) const {
    int32_t highest = std::numeric_limits<int32_t>::min();
    for (const QueuedJob& job : jobs_) highest = std::max(highest, job.priority);
    std::vector<double> scores(5, -1);
    for (size_t c = 0; c < 5; ++c) {
      std::vector<int64_t> submits;
      bool eligible = false;
      for (const QueuedJob& job : jobs_) {
        if (cluster_.at(job.id) != c) continue;
        submits.push_back(job.submit_us);
        eligible = eligible || job.priority == highest;
      }
      if (!eligible) continue;
      std::sort(submits.begin(), submits.end());
      const size_t n = submits.size();
      const int64_t low = submits[(n - 1) / 2], high = submits[n / 2];
      scores[c] = static_cast<double>(std::max<int64_t>(0, now - (low + (high - low) / 2))) * static_cast<double>(n);
    }
    return scores;
  }
  [[nodiscard]] static std::vector<double> Earnings(const std::vector<double>& scores) {
    double sum = 0;
    for (const double score : scores) sum += std::max(score, 0.0);
    std::vector<double> earnings;
    for (const double score : scores) {
      earnings.push_back(score < 0 ? 0.0 : std::max(0.05, sum > 0 ? score / sum : 0.0));
    }
    return earnings;
  }
  [[nodiscard]] size_t BestCluster(int64_t now) const {
    const std::vector<double> scores = Scores(now), earnings = Earnings(scores);
    const auto rank = [&](size_t c) {
      // Of clusters alike, the one whose first job is first: by priority all are equal.
      std::tuple<double, int64_t, uint64_t> first{kLast, 0, 0};
      int32_t highest = std::numeric_limits<int32_t>::min();
      for (const QueuedJob& job : jobs_) highest = std::max(highest, job.priority);
      for (const QueuedJob& job : jobs_) {
        if (cluster_.at(job.id) == c && job.priority == highest) {
          first = std::min(first, std::tuple(Score(job, now), job.submit_us, job.id));
        }
      }
      return std::tuple(scores[c] < 0 ? kLast : -(credit_[c] + earnings[c]), -scores[c], first);
    };
    size_t best = 0;
    for (size_t c = 1; c < 5; ++c) {
      if (rank(c) < rank(best)) best = c;
    }
    return best;
  }
  void Pay(size_t served, int64_t now) {
    const std::vector<double> earnings = Earnings(Scores(now));
    double sum = 0;
    for (size_t c = 0; c < 5; ++c) {
      credit_[c] += earnings[c];
      sum += earnings[c];
    }
    credit_[served] -= sum;
  }

  std::string name_;
  QueueOptions options_;
  std::vector<QueuedJob> jobs_;
  std::map<uint64_t, QueueResources> usage_;
  std::map<uint64_t, size_t> cluster_;
  JobClustering fit_;
  std::vector<double> credit_ = std::vector<double>(5);
  int64_t changes_ = 0;
  double clustered_ = 0;
};

}  // namespace horus::testing_queue

#endif  // HORUS_TESTS_UNIT_QUEUE_NAIVE_QUEUE_H_
