// SPDX-License-Identifier: Apache-2.0
// fgd: fragmentation gradient descent (ATC 2023): the node whose free GPUs stay most useful for typical tasks.
#include <cmath>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "base/units.h"
#include "lab/policies/rivals.h"
#include "place/policies/node_choice.h"
#include "place/policies/workload.h"

namespace horus {
namespace {

constexpr size_t kUsualDevices = 16;
constexpr double kScoreSteps = 100;  // of the publication: scores are whole numbers from 0 to 100

class FgdPolicy final : public Policy {
 public:
  explicit FgdPolicy(std::shared_ptr<const Workload> workload) : workload_(std::move(workload)) {}
  std::string_view name() const override { return "fgd"; }
  bool PricesNode(const JobSpec& /*job*/) const override { return true; }

  absl::Status ScoreDevice(const DeviceCandidate& /*candidate*/, DeviceScore& score) const override {
    score = DeviceScore();
    return absl::OkStatus();
  }

  absl::Status ScoreNode(const NodeCandidate& candidate, NodeScore& score) const override {
    absl::InlinedVector<FreeGpu, kUsualDevices> gpus;
    for (const NodeDevice& device : candidate.devices) gpus.push_back({device.type, device.free_milli});
    const double before = workload_->Fragment(candidate.cpu_free_milli, gpus);
    const auto points = [&] {
      const double after = workload_->Fragment(candidate.cpu_free_milli - candidate.job->cpu_milli, gpus);
      return std::floor(kScoreSteps / (1 + std::exp((after - before) / kMilliPerGpu)));
    };
    if (!IsShare(candidate)) {
      ChooseDevices(candidate, score.devices);
      for (const int32_t device : score.devices) gpus[static_cast<size_t>(device)].free_milli -= candidate.gpu_milli;
      score.cost = -points();
      return absl::OkStatus();
    }
    score.cost = 1;  // above any
    for (size_t i = 0; i < gpus.size(); ++i) {
      if (!candidate.devices[i].fits || SeenBefore(candidate.devices, i)) continue;
      gpus[i].free_milli -= candidate.gpu_milli;
      if (const double cost = -points(); cost < score.cost) {
        score.cost = cost;
        score.devices.assign(1, static_cast<int32_t>(i));
      }
      gpus[i].free_milli += candidate.gpu_milli;
    }
    return absl::OkStatus();
  }

 private:
  // An equal device came before: it scores the same, and the first of equals is taken.
  static bool SeenBefore(std::span<const NodeDevice> devices, size_t index) {
    for (size_t i = 0; i < index; ++i) {
      if (devices[i].fits && devices[i].free_milli == devices[index].free_milli &&
          devices[i].type == devices[index].type) {
        return true;
      }
    }
    return false;
  }

  std::shared_ptr<const Workload> workload_;
};

}  // namespace

std::unique_ptr<Policy> MakeFgdPolicy(const PolicyOptions& options) {
  return std::make_unique<FgdPolicy>(options.workload != nullptr ? options.workload : Workload::WholeGpus());
}

}  // namespace horus
