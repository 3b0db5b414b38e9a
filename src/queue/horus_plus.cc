// SPDX-License-Identifier: Apache-2.0
// horus-plus: jobs alike in clusters; the cluster by median wait x length, by credit in the long run; inside it the
// smallest utilisation first, aged.
#include <cmath>
#include <utility>

#include "queue/discipline.h"
#include "queue/kmeans.h"

namespace horus {
namespace {

// ---- WaitMedian: the median submission time of a changing set of jobs.
// Cost: O(log n) a change; only Reserve allocates.

class WaitMedian {
 public:
  [[nodiscard]] size_t size() const { return early_.size() + late_.size(); }
  // Requires a job.
  [[nodiscard]] int64_t submit_us() const {
    const int64_t middle = early_.top().key.key.submit_us;
    if (early_.size() > late_.size()) return middle;
    return middle + (late_.top().key.submit_us - middle) / 2;
  }

  // Room for `size` jobs in all. May fail, and then changes nothing.
  void Reserve(size_t size) {
    early_.Reserve(size / 2 + 2);  // one more than its half while it is balanced
    late_.Reserve(size / 2 + 2);
  }
  // Both require a position for the slot, Push room too.
  void Push(const QueuedJob& job, uint32_t slot, HeapPositions& positions) noexcept {
    const Late key{job.submit_us, job.id};
    if (early_.empty() || key < early_.top().key.key) {
      early_.Push({key}, slot, positions);
    } else {
      late_.Push(key, slot, positions);
    }
    Balance(positions);
  }
  void Erase(const QueuedJob& job, uint32_t slot, HeapPositions& positions) noexcept {
    if (early_.top().key.key < Late{job.submit_us, job.id}) {
      late_.Erase(slot, positions);
    } else {
      early_.Erase(slot, positions);
    }
    Balance(positions);
  }
  // Many at once, in linear time: Append to an empty one with the earlier half, rounded up, marked; then Heapify.
  void Append(const QueuedJob& job, uint32_t slot, bool early) noexcept {
    const Late key{job.submit_us, job.id};
    if (early) {
      early_.Append({key}, slot);
    } else {
      late_.Append(key, slot);
    }
  }
  void Heapify(HeapPositions& positions) noexcept {
    early_.Heapify(positions);
    late_.Heapify(positions);
  }
  void Clear() noexcept {
    early_.Clear();
    late_.Clear();
  }
  [[nodiscard]] size_t bytes_held() const { return early_.bytes_held() + late_.bytes_held(); }

 private:
  struct Late {
    int64_t submit_us;
    uint64_t id;
    friend auto operator<=>(const Late&, const Late&) = default;
  };
  // The latest first.
  struct Early {
    Late key;
    friend bool operator<(const Early& a, const Early& b) { return b.key < a.key; }
  };

  // The early half is as large as the late one, or one larger.
  void Balance(HeapPositions& positions) noexcept {
    if (early_.size() > late_.size() + 1) {
      const auto moved = early_.top();
      early_.Erase(moved.slot, positions);
      late_.Push(moved.key.key, moved.slot, positions);
    } else if (early_.size() < late_.size()) {
      const auto moved = late_.top();
      late_.Erase(moved.slot, positions);
      early_.Push({moved.key}, moved.slot, positions);
    }
  }

  IndexedHeap<Early> early_;
  IndexedHeap<Late> late_;
};

constexpr uint32_t kNobody = ~uint32_t{0};
constexpr size_t kMostClusters = 5;
// What a cluster earns of each service at the least, however short its queue: chosen, one service in twenty.
constexpr double kLeastEarning = 0.05;

struct JobCluster {
  IndexedHeap<ServiceKey> jobs;
  WaitMedian waits;
  double credit = 0;
};

// A clustering that the next insertion carries out: of each slot its cluster.
struct NextClustering {
  std::vector<uint32_t> slots;
  JobClustering clusters;
  std::vector<uint8_t> early;  // whether the job is of the half of its cluster that came first
};

class HorusPlus final : public Discipline {
 public:
  HorusPlus(const QueueOptions& options, const JobTable& jobs)
      : jobs_(jobs),
        most_clusters_(static_cast<size_t>(options.clusters)),
        recluster_share_(options.recluster_share),
        aging_us_per_pct_(options.aging_us_per_pct == 0 ? kDefaultAgingUsPerPct : options.aging_us_per_pct) {}

  void Reserve(uint32_t slot, const QueuedJob& job) override {
    ReservePosition(job_positions_, slot);
    ReservePosition(wait_positions_, slot);
    if (cluster_of_.size() <= slot) cluster_of_.resize(job_positions_.size());
    next_.reset();
    if (!Due()) {
      JobCluster& cluster = clusters_[ClusterFor(job)];
      ReserveCluster(cluster, cluster.jobs.size() + 1);
      return;
    }
    auto next = std::make_unique<NextClustering>(Fit(slot, job));
    std::array<size_t, kMostClusters> sizes = {};
    for (const uint8_t cluster : next->clusters.cluster_of) ++sizes[cluster];
    for (size_t c = 0; c < kMostClusters; ++c) ReserveCluster(clusters_[c], sizes[c]);
    next_ = std::move(next);
  }

  void Insert(uint32_t slot) noexcept override {
    if (preview_) return Add(slot, cluster_of_[slot]);
    ++size_;
    ++changes_;
    if (next_ != nullptr) {
      Recluster();
    } else {
      Add(slot, static_cast<uint8_t>(ClusterFor(jobs_[slot])));
    }
  }

  void Erase(uint32_t slot) noexcept override {
    JobCluster& cluster = clusters_[cluster_of_[slot]];
    cluster.jobs.Erase(slot, job_positions_);
    cluster.waits.Erase(jobs_[slot], slot, wait_positions_);
    if (preview_) return;
    ++changes_;
    --size_;
  }

  uint32_t First(int64_t now_us) noexcept override {
    const Turn turn = TurnAt(now_us);
    size_t best = kMostClusters;
    const auto before = [&](size_t a, size_t b) {
      const double credit_a = clusters_[a].credit + turn.earning[a], credit_b = clusters_[b].credit + turn.earning[b];
      if (credit_a != credit_b) return credit_a > credit_b;
      if (turn.score[a] != turn.score[b]) return turn.score[a] > turn.score[b];
      return clusters_[a].jobs.top().key < clusters_[b].jobs.top().key;
    };
    for (size_t c = 0; c < kMostClusters; ++c) {
      if (turn.eligible[c] && (best == kMostClusters || before(c, best))) best = c;
    }
    return clusters_[best].jobs.top().slot;
  }

  void Charge(uint32_t slot, int64_t now_us) noexcept override {
    const Turn turn = TurnAt(now_us);
    double sum = 0;
    for (size_t c = 0; c < kMostClusters; ++c) {
      clusters_[c].credit += turn.earning[c];
      sum += turn.earning[c];
    }
    clusters_[cluster_of_[slot]].credit -= sum;
  }

  void BeginPreview(size_t /*jobs*/) override {
    preview_ = true;
    for (size_t c = 0; c < kMostClusters; ++c) credit_before_[c] = clusters_[c].credit;
  }
  void EndPreview() noexcept override {
    preview_ = false;
    for (size_t c = 0; c < kMostClusters; ++c) clusters_[c].credit = credit_before_[c];
  }

  [[nodiscard]] size_t bytes_held() const override {
    size_t bytes = sizeof *this + BytesIn(centres_, cluster_of_, job_positions_, wait_positions_);
    for (const JobCluster& cluster : clusters_) bytes += BytesIn(cluster.jobs, cluster.waits);
    return bytes;
  }

 private:
  // What each cluster is worth at a time. Only those whose first job has the highest priority take part.
  struct Turn {
    std::array<bool, kMostClusters> eligible = {};
    std::array<double, kMostClusters> score = {};    // median wait x length
    std::array<double, kMostClusters> earning = {};  // share of the scores, at least kLeastEarning
  };
  [[nodiscard]] Turn TurnAt(int64_t now_us) const {
    Turn turn;
    int32_t highest = std::numeric_limits<int32_t>::max();
    for (const JobCluster& cluster : clusters_) {
      if (!cluster.jobs.empty()) highest = std::min(highest, cluster.jobs.top().key.not_priority);
    }
    double sum = 0;
    for (size_t c = 0; c < kMostClusters; ++c) {
      const JobCluster& cluster = clusters_[c];
      turn.eligible[c] = !cluster.jobs.empty() && cluster.jobs.top().key.not_priority == highest;
      if (!turn.eligible[c]) continue;
      const int64_t wait_us = std::max<int64_t>(0, now_us - cluster.waits.submit_us());
      turn.score[c] = static_cast<double>(wait_us) * static_cast<double>(cluster.jobs.size());
      sum += turn.score[c];
    }
    for (size_t c = 0; c < kMostClusters; ++c) {
      if (turn.eligible[c]) turn.earning[c] = std::max(kLeastEarning, sum > 0 ? turn.score[c] / sum : 0.0);
    }
    return turn;
  }

  [[nodiscard]] bool Due() const {
    const double needed = recluster_share_ * static_cast<double>(size_at_clustering_);
    return static_cast<double>(changes_ + 1) >= std::max(1.0, std::ceil(needed));
  }
  [[nodiscard]] size_t ClusterFor(const QueuedJob& job) const {
    return NearestCentre(centres_, scale_.Place(FeaturesOf(job)));
  }
  static void ReserveCluster(JobCluster& cluster, size_t size) {
    cluster.jobs.Reserve(size);
    cluster.waits.Reserve(size);
  }

  [[nodiscard]] NextClustering Fit(uint32_t slot, const QueuedJob& job) const {
    NextClustering next;
    std::vector<const QueuedJob*> jobs;
    next.slots.reserve(size_ + 1);
    jobs.reserve(size_ + 1);
    for (const JobCluster& cluster : clusters_) {
      for (const auto& entry : cluster.jobs.entries()) next.slots.push_back(entry.slot);
    }
    for (const uint32_t s : next.slots) jobs.push_back(&jobs_[s]);
    next.slots.push_back(slot);
    jobs.push_back(&job);
    next.clusters = ClusterJobs(jobs, most_clusters_);
    next.early = EarlyHalves(jobs, next.clusters.cluster_of);
    return next;
  }

  [[nodiscard]] static std::vector<uint8_t> EarlyHalves(const std::vector<const QueuedJob*>& jobs,
                                                        const std::vector<uint8_t>& cluster_of) {
    std::array<std::vector<size_t>, kMostClusters> members;
    for (size_t i = 0; i < jobs.size(); ++i) members[cluster_of[i]].push_back(i);
    std::vector<uint8_t> early(jobs.size());
    for (std::vector<size_t>& rows : members) {
      const auto middle = rows.begin() + static_cast<ptrdiff_t>((rows.size() + 1) / 2);
      std::nth_element(rows.begin(), middle, rows.end(), [&jobs](size_t a, size_t b) {
        return std::pair(jobs[a]->submit_us, jobs[a]->id) < std::pair(jobs[b]->submit_us, jobs[b]->id);
      });
      std::for_each(rows.begin(), middle, [&early](size_t i) { early[i] = 1; });
    }
    return early;
  }

  // Carries out next_, for which there is room.
  void Recluster() noexcept {
    std::array<uint32_t, kMostClusters> oldest = {};
    for (size_t c = 0; c < kMostClusters; ++c) oldest[c] = OldestOf(clusters_[c]);
    for (JobCluster& cluster : clusters_) {
      cluster.jobs.Clear();
      cluster.waits.Clear();
    }
    const std::vector<uint32_t>& slots = next_->slots;
    for (size_t i = 0; i < slots.size(); ++i) {
      const uint8_t cluster = next_->clusters.cluster_of[i];
      cluster_of_[slots[i]] = cluster;
      clusters_[cluster].jobs.Append(Key(slots[i]), slots[i]);
      clusters_[cluster].waits.Append(jobs_[slots[i]], slots[i], next_->early[i] != 0);
    }
    for (JobCluster& cluster : clusters_) {
      cluster.jobs.Heapify(job_positions_);
      cluster.waits.Heapify(wait_positions_);
    }
    centres_.swap(next_->clusters.centres);
    scale_ = next_->clusters.scale;
    MoveCredit(oldest);
    next_.reset();
    changes_ = 0;
    size_at_clustering_ = size_;
  }

  [[nodiscard]] uint32_t OldestOf(const JobCluster& cluster) const {
    uint32_t oldest = kNobody;
    for (const auto& entry : cluster.jobs.entries()) {
      if (oldest == kNobody ||
          std::pair(entry.key.submit_us, entry.key.id) < std::pair(jobs_[oldest].submit_us, jobs_[oldest].id)) {
        oldest = entry.slot;
      }
    }
    return oldest;
  }
  // Credit follows a cluster's oldest job, so that whoever waits longest keeps what it earned; that of an empty cluster
  // is shared out, so that the sum stays 0.
  void MoveCredit(const std::array<uint32_t, kMostClusters>& oldest) noexcept {
    std::array<double, kMostClusters> moved = {};
    for (size_t c = 0; c < kMostClusters; ++c) {
      if (oldest[c] != kNobody) {
        moved[cluster_of_[oldest[c]]] += clusters_[c].credit;
        continue;
      }
      for (size_t to = 0; to < centres_.size(); ++to)
        moved[to] += clusters_[c].credit / static_cast<double>(centres_.size());
    }
    for (size_t c = 0; c < kMostClusters; ++c) clusters_[c].credit = moved[c];
  }

  void Add(uint32_t slot, uint8_t cluster) noexcept {
    cluster_of_[slot] = cluster;
    clusters_[cluster].jobs.Push(Key(slot), slot, job_positions_);
    clusters_[cluster].waits.Push(jobs_[slot], slot, wait_positions_);
  }
  [[nodiscard]] ServiceKey Key(uint32_t slot) const {
    return KeyOf(jobs_[slot], RankOf(AgedUtilisation(jobs_[slot], aging_us_per_pct_)));
  }

  const JobTable& jobs_;
  const size_t most_clusters_;
  const double recluster_share_;
  const int64_t aging_us_per_pct_;
  std::array<JobCluster, kMostClusters> clusters_;
  std::array<double, kMostClusters> credit_before_ = {};  // the preview
  FeatureScale scale_;
  std::vector<GridPoint> centres_;
  std::unique_ptr<NextClustering> next_;
  std::vector<uint8_t> cluster_of_;  // by slot
  HeapPositions job_positions_, wait_positions_;
  size_t size_ = 0, changes_ = 0, size_at_clustering_ = 0;
  bool preview_ = false;
};

}  // namespace

std::unique_ptr<Discipline> MakeHorusPlus(const QueueOptions& options, const JobTable& jobs) {
  return std::make_unique<HorusPlus>(options, jobs);
}

}  // namespace horus
