// SPDX-License-Identifier: Apache-2.0
// FGD as a plain loop: what the experiment costs without a library, and a second opinion on every placement.
#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <tuple>

#include "bench/quality/allocation_curve.h"
#include "bench/quality/allocation_run.h"

namespace horus::bench {
namespace {

constexpr int32_t kWhole = 1000;

struct Typical {
  int64_t cpu;
  int32_t milli;
  int32_t gpus;
  double share;
  const std::vector<std::string>* models;
};

struct State {
  int64_t cpu;
  int64_t mem;
  const std::string* model;
  std::vector<int32_t> gpus;  // milli left
};

struct Scored {
  double points = -1;  // below 0: does not fit
  int32_t gpu = -1;
};

struct Class {  // pods that ask for the same
  std::vector<Scored> nodes;
  size_t seen = 0;  // changes that are in
};

bool Allows(const std::vector<std::string>& models, const std::string& model) {
  return models.empty() || std::find(models.begin(), models.end(), model) != models.end();
}

double Fragment(const std::vector<Typical>& typical, const State& node) {
  int32_t all = 0;
  for (const int32_t left : node.gpus) all += left;
  double fragment = 0;
  for (const Typical& one : typical) {
    int32_t lost = all;
    if (one.gpus > 0 && node.cpu >= one.cpu && Allows(*one.models, *node.model)) {
      int32_t fitting = 0;
      int32_t small = 0;
      for (const int32_t left : node.gpus) {
        if (left >= one.milli) {
          ++fitting;
        } else {
          small += left;
        }
      }
      if (fitting >= one.gpus) lost = small;
    }
    fragment += one.share * lost;
  }
  return fragment;
}

bool IsShare(const OpenbPod& pod) { return pod.gpus == 1 && pod.gpu_milli < kWhole; }

void Take(State& node, const OpenbPod& pod, int32_t gpu) {
  node.cpu -= pod.cpu_milli;
  node.mem -= pod.mem_mib;
  if (gpu >= 0) {
    node.gpus[static_cast<size_t>(gpu)] -= pod.gpu_milli;
    return;
  }
  int32_t wanted = pod.gpus;
  for (int32_t& left : node.gpus) {
    if (wanted > 0 && left == kWhole) {
      left = 0;
      --wanted;
    }
  }
}

Scored Score(const std::vector<Typical>& typical, const State& node, double before, const OpenbPod& pod) {
  if (node.cpu < pod.cpu_milli || node.mem < pod.mem_mib) return {};
  if (pod.gpus > 0 && !Allows(pod.models, *node.model)) return {};
  const auto points = [&](int32_t gpu) {
    State after = node;
    Take(after, pod, gpu);
    return std::floor(100 / (1 + std::exp((Fragment(typical, after) - before) / kWhole)));
  };
  if (!IsShare(pod)) {
    if (std::count(node.gpus.begin(), node.gpus.end(), kWhole) < pod.gpus) return {};
    return {points(-1), -1};
  }
  Scored best;
  for (size_t i = 0; i < node.gpus.size(); ++i) {
    if (node.gpus[i] < pod.gpu_milli) continue;
    const double here = points(static_cast<int32_t>(i));
    if (here > best.points) best = {here, static_cast<int32_t>(i)};
  }
  return best;
}

// The classes of the workload with the models behind their type ids.
std::vector<Typical> TypicalOf(const Experiment& experiment, std::vector<std::vector<std::string>>& models) {
  std::map<GpuTypeId, std::string> name_of;
  for (const OpenbNode& node : experiment.nodes) {
    if (node.gpus > 0) name_of[*experiment.catalogue->Find(node.model)] = node.model;
  }
  const std::span<const TaskClass> classes = experiment.workload->classes();
  models.resize(classes.size());
  std::vector<Typical> typical;
  for (size_t i = 0; i < classes.size(); ++i) {
    for (const GpuTypeId type : classes[i].types) models[i].push_back(name_of[type]);
    typical.push_back({classes[i].cpu_milli, classes[i].gpu_milli, classes[i].gpus, classes[i].share, &models[i]});
  }
  return typical;
}

}  // namespace

Outcome RunPlainFgd(const Experiment& experiment, std::optional<uint64_t> seed) {
  const std::vector<uint32_t> order = OpenbNodeOrder(experiment.nodes.size(), seed);
  const std::vector<uint32_t> arrivals = OpenbArrivals(experiment.pods, experiment.capacity, seed);
  std::vector<std::vector<std::string>> models;
  const std::vector<Typical> typical = TypicalOf(experiment, models);
  std::vector<State> nodes;
  for (const uint32_t row : order) {
    const OpenbNode& node = experiment.nodes[row];
    nodes.push_back({node.cpu_milli, node.mem_mib, &node.model, {}});
    nodes.back().gpus.assign(static_cast<size_t>(node.gpus), kWhole);
  }
  std::map<std::tuple<int64_t, int64_t, int32_t, int32_t, std::string>, size_t> class_of;
  std::vector<size_t> pod_class;
  for (const OpenbPod& pod : experiment.pods) {
    const auto key = std::tuple(pod.cpu_milli, pod.mem_mib, pod.gpus, pod.gpu_milli, pod.spec);
    pod_class.push_back(class_of.emplace(key, class_of.size()).first->second);
  }
  const std::clock_t start = std::clock();
  std::vector<double> fragments;
  for (const State& node : nodes) fragments.push_back(Fragment(typical, node));
  std::vector<Class> classes(class_of.size());
  std::vector<size_t> changed;
  std::vector<std::optional<uint32_t>> places;
  for (const uint32_t arrival : arrivals) {
    const OpenbPod& pod = experiment.pods[arrival];
    Class& known = classes[pod_class[arrival]];
    if (known.nodes.empty() || changed.size() - known.seen > nodes.size()) {
      known.nodes.resize(nodes.size());
      for (size_t i = 0; i < nodes.size(); ++i) known.nodes[i] = Score(typical, nodes[i], fragments[i], pod);
    } else {
      for (size_t i = known.seen; i < changed.size(); ++i) {
        known.nodes[changed[i]] = Score(typical, nodes[changed[i]], fragments[changed[i]], pod);
      }
    }
    known.seen = changed.size();
    size_t best = nodes.size();
    double points = -1;
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (known.nodes[i].points > points) {
        points = known.nodes[i].points;
        best = i;
      }
    }
    places.emplace_back();
    if (best == nodes.size()) continue;
    places.back() = order[best];
    Take(nodes[best], pod, known.nodes[best].gpu);
    fragments[best] = Fragment(typical, nodes[best]);
    changed.push_back(best);
  }
  const std::clock_t end = std::clock();
  Curve curve(experiment.capacity);
  for (size_t i = 0; i < arrivals.size(); ++i) curve.Offer(experiment.pods[arrivals[i]], places[i]);
  Outcome outcome = curve.Finish();
  outcome.cpu_s = static_cast<double>(end - start) / CLOCKS_PER_SEC;
  return outcome;
}

}  // namespace horus::bench
