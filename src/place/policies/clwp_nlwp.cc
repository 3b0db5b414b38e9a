// SPDX-License-Identifier: Apache-2.0
// clwp-nlwp: the node by the interference expected on it, the GPUs inside by predicted performance and communication.
#include <algorithm>
#include <tuple>

#include "place/communication.h"
#include "place/policies/builtin.h"

namespace horus {
namespace {

// What predicted performance is lost by everyone there, the job included.
double Interference(const DeviceCandidate& candidate) {
  double loss = static_cast<double>(candidate.after.back().estimate) - 1;
  for (size_t i = 0; i < candidate.residents(); ++i)
    loss += static_cast<double>(candidate.after[i].estimate) - static_cast<double>(candidate.before[i].estimate);
  return loss;
}

// NLWP: the cheapest devices of an island, a switch, a socket, or of the whole node, whichever costs least with the
// time of a step's all-reduce as a share of the step.
class Choice {
 public:
  Choice(const NodeCandidate& candidate, bool links)
      : candidate_(candidate), wanted_(static_cast<size_t>(candidate.job->gpus_per_task)), links_(links) {}

  std::vector<int32_t> Best() {
    for (size_t i = 0; i < candidate_.devices.size(); ++i)
      if (candidate_.devices[i].fits) order_.push_back(static_cast<int32_t>(i));
    Consider(Reach::kNode);
    if (links_ && wanted_ > 1 && candidate_.spec != nullptr) {
      for (const Reach reach : {Reach::kSocket, Reach::kSwitch, Reach::kIsland}) Consider(reach);
    }
    std::sort(best_.begin(), best_.end());
    return best_;
  }

 private:
  [[nodiscard]] const NodeDevice& At(int32_t device) const { return candidate_.devices[static_cast<size_t>(device)]; }
  [[nodiscard]] int32_t Part(int32_t device, Reach reach) const {
    return reach == Reach::kNode ? 0 : PartOf(candidate_.spec->devices[static_cast<size_t>(device)], reach);
  }
  [[nodiscard]] double Communication(int32_t device, Reach reach) const {
    const Demand* demand = FindDemand(*candidate_.job, At(device).type);
    if (!links_ || demand == nullptr || candidate_.spec == nullptr) return 0;
    const double link = LinkMbPerS(candidate_.spec->devices[static_cast<size_t>(device)], reach);
    return CommunicationShare(*demand, RingUs(static_cast<double>(demand->gradient_mib), wanted_, link));
  }

  void Consider(Reach reach) {
    const auto key = [&](int32_t device) { return std::tuple(At(device).group, Part(device, reach)); };
    std::sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) {
      return std::tuple(key(a), At(a).cost, a) < std::tuple(key(b), At(b).cost, b);
    });
    for (size_t begin = 0, end = 0; begin < order_.size(); begin = end) {
      while (end < order_.size() && key(order_[end]) == key(order_[begin])) ++end;
      const bool no_island = reach == Reach::kIsland && Part(order_[begin], reach) < 0;
      if (end - begin < wanted_ || no_island) continue;
      double cost = Communication(order_[begin], reach);
      for (size_t i = begin; i < begin + wanted_; ++i) cost += At(order_[i]).cost;
      if (!best_.empty() && cost >= cost_) continue;
      cost_ = cost;
      best_.assign(order_.begin() + static_cast<ptrdiff_t>(begin),
                   order_.begin() + static_cast<ptrdiff_t>(begin + wanted_));
    }
  }

  const NodeCandidate& candidate_;
  size_t wanted_;
  bool links_;
  std::vector<int32_t> order_;  // fitting devices
  std::vector<int32_t> best_;
  double cost_ = 0;
};

class ClwpNlwpPolicy final : public Policy {
 public:
  explicit ClwpNlwpPolicy(bool links) : links_(links) {}
  std::string_view name() const override { return "clwp-nlwp"; }
  bool PricesNode(const JobSpec& job) const override { return job.gpus_per_task > 0; }
  bool node_uses_devices() const override { return true; }

  absl::Status ScoreDevice(const DeviceCandidate& candidate, DeviceScore& score) const override {
    score = {.cost = Interference(candidate)};
    return absl::OkStatus();
  }

  // CLWP: the mean over the devices that fit, as the job's GPUs are not chosen yet; per GPU of the task.
  absl::Status ScoreNode(const NodeCandidate& candidate, NodeScore& score) const override {
    double sum = 0;
    double fitting = 0;
    for (const NodeDevice& device : candidate.devices) {
      if (!device.fits) continue;
      sum += device.cost;
      ++fitting;
    }
    score.cost = fitting > 0 ? sum / fitting * static_cast<double>(candidate.job->gpus_per_task) : 0;
    score.devices = Choice(candidate, links_).Best();
    return absl::OkStatus();
  }

 private:
  bool links_;
};

}  // namespace

std::unique_ptr<Policy> MakeClwpNlwpPolicy(const PolicyOptions& options) {
  return std::make_unique<ClwpNlwpPolicy>(options.links);
}

}  // namespace horus
