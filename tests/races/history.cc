// SPDX-License-Identifier: Apache-2.0
// The search for an order: depth first over what may come next (Wing and Gong, JPDC 1993), each state once (Lowe,
// 2017).
#include "history.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <set>
#include <sstream>
#include <utility>

namespace horus_races {
namespace {

template <typename Body>
horus_status StatusOf(const Body& body) {
  try {
    body();
    return HORUS_OK;
  } catch (const horus::Error& error) {
    return error.status();
  }
}

class Search {
 public:
  explicit Search(const std::vector<Operation>& history) : history_(history), placer_({.policy = kPolicy}) {}

  bool From(uint64_t done, const std::vector<std::byte>& state) {
    if (done == All()) return true;
    if (!seen_.emplace(done, state).second) return false;
    uint64_t first_end = std::numeric_limits<uint64_t>::max();
    for (size_t i = 0; i < history_.size(); ++i) {
      if ((done >> i & 1) == 0) first_end = std::min(first_end, history_[i].ended);
    }
    for (size_t i = 0; i < history_.size(); ++i) {
      // What began after another had ended comes after it.
      if ((done >> i & 1) != 0 || history_[i].began > first_end) continue;
      horus::Cluster cluster = horus::Cluster::Restore(state);
      if (Do(history_[i], cluster, placer_, nullptr) != history_[i].answer) continue;
      if (From(done | uint64_t{1} << i, cluster.Snapshot())) return true;
    }
    return false;
  }

 private:
  [[nodiscard]] uint64_t All() const {
    return history_.size() == 64 ? ~uint64_t{0} : (uint64_t{1} << history_.size()) - 1;
  }
  const std::vector<Operation>& history_;
  horus::Placer placer_;
  std::set<std::pair<uint64_t, std::vector<std::byte>>> seen_;
};

}  // namespace

horus::Job JobOf(uint64_t id) {
  horus::Demand demand;
  demand.gpu_util_pct = static_cast<float>(20 + 10 * (id % 3));
  demand.mem_mib = 4'000;
  return {.id = id, .cpu_milli = 1'000, .demands = {{"", demand}}};
}

Answer Do(const Operation& operation, horus::Cluster& cluster, horus::Placer& placer,
          std::shared_ptr<const horus::Plan>* plan) {
  Answer answer;
  answer.status = StatusOf([&] {
    switch (operation.kind) {
      case Kind::kPlan: {
        auto made = std::make_shared<const horus::Plan>(placer.MakePlan(cluster, JobOf(operation.job)));
        const horus::Decision decision = made->at(0);
        answer.placed = decision.placed();
        answer.slots = decision.slots;
        if (plan != nullptr) *plan = std::move(made);
        break;
      }
      case Kind::kApply:
        cluster.Apply(*operation.plan);
        break;
      case Kind::kRelease:
        cluster.Release(operation.job);
        break;
      case Kind::kLook: {
        const horus_cluster_info info = cluster.info();
        answer.state_hash = info.state_hash;
        answer.jobs = info.jobs;
        break;
      }
    }
  });
  return answer;
}

bool IsLinearisable(const horus::Cluster& before, const std::vector<Operation>& history) {
  return Search(history).From(0, before.Snapshot());
}

std::string Describe(const std::vector<Operation>& history) {
  static constexpr const char* kNames[] = {"plan", "apply", "release", "look"};
  std::ostringstream text;
  for (const Operation& one : history) {
    text << one.began << "-" << one.ended << " " << kNames[static_cast<size_t>(one.kind)] << " job " << one.job << ": "
         << horus_status_name(one.answer.status);
    for (const horus::Slot& slot : one.answer.slots) text << " " << slot.node << "/" << slot.device;
    if (one.kind == Kind::kLook) text << " " << one.answer.jobs << " jobs, " << one.answer.state_hash;
    text << "\n";
  }
  return text.str();
}

}  // namespace horus_races
