// SPDX-License-Identifier: Apache-2.0
// clwp-nlwp: the node by the interference expected on it, the GPUs inside by predicted performance and communication.
#include <algorithm>
#include <tuple>

#include "device/catalogue.h"
#include "place/policies/builtin.h"

namespace horus {
namespace {

// Links between GPUs where the catalogue knows none: PCIe 3.0 x16, one direction (PCI Express Base 3.0).
constexpr double kPcieMbPerS = 15'754;
constexpr double kAcrossSockets = 0.5;  // of PCIe, for the socket interconnect is shared; chosen
constexpr double kMbPerMib = 1.048576;

enum class Reach : uint8_t { kIsland, kSocket, kNode };

double LinkMbPerS(GpuTypeId type, Reach reach) {
  double pcie = kPcieMbPerS;
  double nvlink = 0;
  // Types that a caller added come after the built-in ones.
  if (const Catalogue& catalogue = *Catalogue::Default(); catalogue.Contains(type)) {
    const GpuType& known = catalogue.at(type);
    if (known.pcie_mb_s > 0) pcie = static_cast<double>(known.pcie_mb_s);
    nvlink = static_cast<double>(known.nvlink_mb_s) / 2;  // one direction
  }
  if (reach == Reach::kIsland && nvlink > 0) return nvlink;
  return reach == Reach::kNode ? pcie * kAcrossSockets : pcie;
}

// Time of a step's all-reduce (ring) as a share of the step; 0 where gradients or step are not known.
double Communication(const Demand& demand, GpuTypeId type, size_t gpus, Reach reach) {
  const auto step = static_cast<double>(demand.step_time_us.estimate);
  if (gpus < 2 || step <= 0) return 0;
  const auto count = static_cast<double>(gpus);
  const double megabytes = 2 * (count - 1) / count * static_cast<double>(demand.gradient_mib) * kMbPerMib;
  return megabytes / LinkMbPerS(type, reach) * 1e6 / step;
}

// What predicted performance is lost by everyone there, the job included.
double Interference(const DeviceCandidate& candidate) {
  double loss = static_cast<double>(candidate.after.back().estimate) - 1;
  for (size_t i = 0; i < candidate.residents(); ++i)
    loss += static_cast<double>(candidate.after[i].estimate) - static_cast<double>(candidate.before[i].estimate);
  return loss;
}

// NLWP: the cheapest devices of an island, of a socket, or of the whole node, whichever costs least with what they
// have to send each other.
class Choice {
 public:
  explicit Choice(const NodeCandidate& candidate)
      : candidate_(candidate), wanted_(static_cast<size_t>(candidate.job->gpus_per_task)) {}

  std::vector<int32_t> Best() {
    for (size_t i = 0; i < candidate_.devices.size(); ++i)
      if (candidate_.devices[i].fits) order_.push_back(static_cast<int32_t>(i));
    Consider(Reach::kNode);
    if (wanted_ > 1 && candidate_.spec != nullptr) {
      Consider(Reach::kSocket);
      Consider(Reach::kIsland);
    }
    std::sort(best_.begin(), best_.end());
    return best_;
  }

 private:
  [[nodiscard]] const NodeDevice& At(int32_t device) const { return candidate_.devices[static_cast<size_t>(device)]; }
  [[nodiscard]] int32_t PartOf(int32_t device, Reach reach) const {
    if (reach == Reach::kNode) return 0;
    const DeviceSpec& spec = candidate_.spec->devices[static_cast<size_t>(device)];
    return reach == Reach::kSocket ? spec.socket : spec.island;
  }

  void Consider(Reach reach) {
    const auto key = [&](int32_t device) { return std::tuple(At(device).group, PartOf(device, reach)); };
    std::sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) {
      return std::tuple(key(a), At(a).cost, a) < std::tuple(key(b), At(b).cost, b);
    });
    for (size_t begin = 0, end = 0; begin < order_.size(); begin = end) {
      while (end < order_.size() && key(order_[end]) == key(order_[begin])) ++end;
      const bool no_island = reach == Reach::kIsland && PartOf(order_[begin], reach) < 0;
      if (end - begin < wanted_ || no_island) continue;
      const GpuTypeId type = At(order_[begin]).type;
      const Demand* demand = FindDemand(*candidate_.job, type);
      double cost = demand == nullptr ? 0 : Communication(*demand, type, wanted_, reach);
      for (size_t i = begin; i < begin + wanted_; ++i) cost += At(order_[i]).cost;
      if (!best_.empty() && cost >= cost_) continue;
      cost_ = cost;
      best_.assign(order_.begin() + static_cast<ptrdiff_t>(begin),
                   order_.begin() + static_cast<ptrdiff_t>(begin + wanted_));
    }
  }

  const NodeCandidate& candidate_;
  size_t wanted_;
  std::vector<int32_t> order_;  // fitting devices
  std::vector<int32_t> best_;
  double cost_ = 0;
};

class ClwpNlwpPolicy final : public Policy {
 public:
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
    score.devices = Choice(candidate).Best();
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Policy> MakeClwpNlwpPolicy(const PolicyOptions& /*options*/) {
  return std::make_unique<ClwpNlwpPolicy>();
}

}  // namespace horus
