// SPDX-License-Identifier: Apache-2.0
// Policies that pack requests: fgd, dotprod, gpu-packing, gpu-clustering.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "base/units.h"
#include "lab/policies/rivals.h"
#include "place/policies/builtin.h"
#include "place/policies/workload.h"

namespace horus {

// fgd: fragmentation gradient descent (ATC 2023): the node whose free GPUs stay most useful for typical tasks.
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

// dotprod: the node whose free CPU and GPU point least in the direction of the request, as the FGD simulator has it.
namespace {

class DotProdPolicy final : public PointsPolicy {
 public:
  std::string_view name() const override { return "dotprod"; }

 private:
  // CPU and GPUs of the node, all GPUs merged, times those of the request; in whole points from 0 to 100.
  double Points(const NodeCandidate& candidate) const override {
    const double cpu = static_cast<double>(candidate.cpu_free_milli) / kMaxNodeCpuMilli *
                       (static_cast<double>(candidate.job->cpu_milli) / kMaxNodeCpuMilli);
    const double gpu = static_cast<double>(FreeMilli(candidate)) / kMaxNodeGpuMilli *
                       (static_cast<double>(RequestMilli(candidate)) / kMaxNodeGpuMilli);
    return std::floor(100 * (1 - (cpu + gpu) / 2));
  }
};

}  // namespace

std::unique_ptr<Policy> MakeDotProdPolicy(const PolicyOptions& /*options*/) {
  return std::make_unique<DotProdPolicy>();
}

// gpu-packing: used GPUs before idle ones, used nodes before idle ones, as the FGD simulator has it.
namespace {

class GpuPackingPolicy final : public PointsPolicy {
 public:
  std::string_view name() const override { return "gpu-packing"; }

 private:
  double Points(const NodeCandidate& candidate) const override {
    if (IsCpuOnly(*candidate.job)) return 0;
    const auto count = static_cast<int32_t>(candidate.devices.size());
    const bool idle = std::all_of(candidate.devices.begin(), candidate.devices.end(),
                                  [](const NodeDevice& device) { return device.free_milli == kMilliPerGpu; });
    if (idle) return kIdleNode - count;
    if (!IsShare(candidate)) return kIdleGpu - candidate.job->gpus_per_task;
    const int32_t left = candidate.devices[static_cast<size_t>(TightestDevice(candidate))].free_milli;
    return left == kMilliPerGpu ? kIdleGpu - 1 : kUsedGpu - left / kMilliPerPoint;
  }

  // Three bands of points: used GPUs, idle GPUs of used nodes, idle nodes; inside, the smaller the better.
  static constexpr int32_t kUsedGpu = 100;
  static constexpr int32_t kIdleGpu = 50;
  static constexpr int32_t kIdleNode = 33;
  static constexpr int32_t kMilliPerPoint = 100;
};

}  // namespace

std::unique_ptr<Policy> MakeGpuPackingPolicy(const PolicyOptions& /*options*/) {
  return std::make_unique<GpuPackingPolicy>();
}

// gpu-clustering: jobs beside their own kind (share, 1 GPU, 2 GPUs, ...), as the FGD simulator has it.
namespace {

class GpuClusteringPolicy final : public PointsPolicy {
 public:
  std::string_view name() const override { return "gpu-clustering"; }

 private:
  double Points(const NodeCandidate& candidate) const override {
    if (IsCpuOnly(*candidate.job)) return 0;
    uint64_t kinds = 0;
    for (const NodeDevice& device : candidate.devices) kinds |= device.kinds;
    return kFullness * (kMaxNodeGpuMilli - FreeMilli(candidate)) / kMaxNodeGpuMilli + Company(kinds, candidate.kind);
  }

  static int32_t Company(uint64_t kinds, uint64_t own) {
    if (kinds == own) return 75;
    if ((kinds & own) != 0) return 50;
    return kinds == 0 ? 25 : 0;
  }

  static constexpr int32_t kFullness = 25;  // points of a node without free GPUs; whole numbers, rounded down
};

}  // namespace

std::unique_ptr<Policy> MakeGpuClusteringPolicy(const PolicyOptions& /*options*/) {
  return std::make_unique<GpuClusteringPolicy>();
}

}  // namespace horus
