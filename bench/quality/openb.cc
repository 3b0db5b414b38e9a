// SPDX-License-Identifier: Apache-2.0
// From rows of the trace to clusters, jobs and arrivals.
#include "bench/quality/openb.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "base/text.h"
#include "base/units.h"
#include "io/csv.h"
#include "place/state/node.h"

namespace horus {
namespace {

// ---- Reads lists.

absl::Status CheckHeader(const CsvColumns& columns, const std::string& file,
                         std::initializer_list<std::string_view> wanted) {
  for (const std::string_view name : wanted) {
    if (columns.contains(name)) continue;
    return InvalidArgument("%s: header: expected a column %s, found none", file, std::string(name));
  }
  return absl::OkStatus();
}

absl::StatusOr<OpenbNode> ReadNode(const CsvRow& row) {
  OpenbNode node;
  HORUS_ASSIGN_OR_RETURN(node.name, OpenbText(row, "sn"));
  HORUS_ASSIGN_OR_RETURN(node.cpu_milli, WholeCell(row, "cpu_milli", 0, kMaxHostQuantity));
  HORUS_ASSIGN_OR_RETURN(node.mem_mib, WholeCell(row, "memory_mib", 0, kMaxHostQuantity));
  HORUS_ASSIGN_OR_RETURN(const int64_t gpus, WholeCell(row, "gpu", 0, kMaxDevicesPerNode));
  node.gpus = static_cast<int32_t>(gpus);
  HORUS_ASSIGN_OR_RETURN(node.model, OpenbText(row, "model"));
  if (gpus > 0 && node.model.empty()) return row.Wrong("model", "the model of its GPUs", "");
  return node;
}

template <typename One>
absl::StatusOr<std::vector<One>> ReadAll(std::string_view bytes, const std::string& file,
                                         std::initializer_list<std::string_view> wanted,
                                         absl::StatusOr<One> (*read)(const CsvRow&)) {
  HORUS_ASSIGN_OR_RETURN(const CsvTable table, ParseCsv(bytes, file));
  const CsvColumns columns = ColumnsOf(table);
  HORUS_RETURN_IF_ERROR(CheckHeader(columns, file, wanted));
  std::vector<One> all;
  all.reserve(table.rows.size());
  for (size_t i = 0; i < table.rows.size(); ++i) {
    HORUS_ASSIGN_OR_RETURN(One one, read(CsvRow(table, columns, i, file)));
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace

absl::StatusOr<std::vector<OpenbNode>> ParseOpenbNodes(std::string_view bytes, const std::string& file) {
  return ReadAll<OpenbNode>(bytes, file, {"sn", "cpu_milli", "memory_mib", "gpu", "model"}, ReadNode);
}

absl::StatusOr<std::vector<OpenbPod>> ParseOpenbPods(std::string_view bytes, const std::string& file) {
  return ReadAll<OpenbPod>(bytes, file, {"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"}, ReadOpenbPod);
}

namespace {

constexpr double kTypicalShare = 0.95;  // of all pods; FGD (ATC 2023)
constexpr int64_t kLoadPct = 130;       // of the GPUs, at the end of the stream; the same

// Numbers that a seed decides, equal on every machine.
class Draws {
 public:
  enum Purpose : uint64_t { kPods = 1, kNodes = 2 };
  Draws(uint64_t seed, Purpose purpose) : state_(CombineHash(Mix64(seed), purpose)) {}
  // Uniform from 0 to below `limit` but for 2^-50 at the sizes of traces.
  uint64_t Below(uint64_t limit) { return (state_ = Mix64(state_ + kStep)) % limit; }

 private:
  static constexpr uint64_t kStep = 0x9E3779B97F4A7C15;  // odd, so that no state comes back early
  uint64_t state_;
};

void Shuffle(std::vector<uint32_t>& values, Draws& draws) {
  for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[draws.Below(i)]);
}

std::string TypeName(const std::string& model) {
  std::string name = model;
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return name;
}

int64_t RequestMilli(const OpenbPod& pod) { return int64_t{pod.gpus} * pod.gpu_milli; }

absl::StatusOr<std::vector<GpuTypeId>> TypesOf(const OpenbPod& pod, const Catalogue& catalogue) {
  std::vector<GpuTypeId> types;
  for (const std::string& model : pod.models) {
    HORUS_ASSIGN_OR_RETURN(const GpuTypeId type, catalogue.Find(model));
    types.push_back(type);
  }
  std::ranges::sort(types);
  types.erase(std::unique(types.begin(), types.end()), types.end());
  return types;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Catalogue>> OpenbCatalogue(std::span<const OpenbNode> nodes,
                                                                std::span<const OpenbPod> pods) {
  std::set<std::string> names;
  for (const OpenbNode& node : nodes) {
    if (node.gpus > 0) names.insert(TypeName(node.model));
  }
  for (const OpenbPod& pod : pods) {
    for (const std::string& model : pod.models) names.insert(TypeName(model));
  }
  const std::shared_ptr<const Catalogue> known = Catalogue::Default();
  HORUS_ASSIGN_OR_RETURN(const GpuTypeId figures, known->Find("t4"));
  std::vector<GpuType> types;
  for (const std::string& name : names) {
    GpuType type = known->at(figures);
    type.name = name;
    type.display_name = name;
    type.aliases.clear();
    types.push_back(std::move(type));
  }
  HORUS_ASSIGN_OR_RETURN(Catalogue catalogue, Catalogue::Extend(Catalogue(), std::move(types)));
  return std::make_shared<const Catalogue>(std::move(catalogue));
}

absl::StatusOr<Cluster> OpenbCluster(std::span<const OpenbNode> nodes, std::span<const uint32_t> order,
                                     std::shared_ptr<const Catalogue> catalogue) {
  Cluster cluster(std::move(catalogue));
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const OpenbNode& from = nodes[order[rank]];
    NodeSpec node;
    node.id = rank;
    node.name = from.name;
    node.cpu_milli = from.cpu_milli;
    node.mem_mib = from.mem_mib;
    if (from.gpus > 0) {
      HORUS_ASSIGN_OR_RETURN(const GpuTypeId type, cluster.catalogue().Find(from.model));
      node.devices.assign(static_cast<size_t>(from.gpus),
                          DeviceSpec{.type = type, .max_tenants = kMaxTenantsPerDevice});
    }
    HORUS_RETURN_IF_ERROR(cluster.AddNode(std::move(node)));
  }
  return cluster;
}

absl::StatusOr<JobSpec> OpenbJob(const OpenbPod& pod, const Catalogue& catalogue) {
  JobSpec job;
  job.gpus_per_task = pod.gpus;
  job.gpu_milli = pod.gpu_milli;
  job.cpu_milli = pod.cpu_milli;
  job.mem_mib = pod.mem_mib;
  if (pod.gpus == 0) return job;
  HORUS_ASSIGN_OR_RETURN(const std::vector<GpuTypeId> types, TypesOf(pod, catalogue));
  if (types.empty()) job.demands = {{GpuTypeId::Invalid(), Demand()}};
  for (const GpuTypeId type : types) job.demands.push_back({type, Demand()});
  return job;
}

absl::StatusOr<std::vector<TaskClass>> OpenbTypicalTasks(std::span<const OpenbPod> pods, const Catalogue& catalogue) {
  struct Kind {
    size_t count = 0;
    const OpenbPod* first = nullptr;
  };
  using Key = std::tuple<int64_t, int32_t, int32_t, std::string>;
  std::map<Key, Kind> kinds;
  for (const OpenbPod& pod : pods) {
    Kind& kind = kinds[{pod.cpu_milli, pod.gpu_milli, pod.gpus, pod.spec}];
    ++kind.count;
    if (kind.first == nullptr) kind.first = &pod;
  }
  std::vector<std::tuple<size_t, Key, const OpenbPod*>> order;
  for (const auto& [key, kind] : kinds) order.emplace_back(kind.count, key, kind.first);
  std::sort(order.rbegin(), order.rend());
  size_t kept = 0;
  size_t most = 0;
  while (most < order.size() && static_cast<double>(kept) < kTypicalShare * static_cast<double>(pods.size())) {
    kept += std::get<0>(order[most++]);
  }
  std::vector<TaskClass> classes;
  for (size_t i = 0; i < most; ++i) {
    const OpenbPod& pod = *std::get<2>(order[i]);
    HORUS_ASSIGN_OR_RETURN(std::vector<GpuTypeId> types, TypesOf(pod, catalogue));
    classes.push_back({.cpu_milli = pod.cpu_milli,
                       .gpus = pod.gpus,
                       .gpu_milli = pod.gpu_milli,
                       .types = std::move(types),
                       .share = static_cast<double>(std::get<0>(order[i])) / static_cast<double>(kept)});
  }
  return classes;
}

int64_t OpenbCapacity(std::span<const OpenbNode> nodes) {
  int64_t gpus = 0;
  for (const OpenbNode& node : nodes) gpus += node.gpus;
  // Bounded: rows of at most kMaxOpenbBytes, each of at most kMaxDevicesPerNode GPUs.
  return gpus * kMilliPerGpu;
}

std::vector<uint32_t> OpenbArrivals(std::span<const OpenbPod> pods, int64_t capacity, std::optional<uint64_t> seed) {
  std::vector<uint32_t> by_name(pods.size());
  for (uint32_t i = 0; i < by_name.size(); ++i) by_name[i] = i;
  std::ranges::stable_sort(by_name, [&](uint32_t a, uint32_t b) { return pods[a].name < pods[b].name; });
  std::vector<uint32_t> arrivals = by_name;
  int64_t sum = 0;
  for (const OpenbPod& pod : pods) sum += RequestMilli(pod);
  if (sum == 0) return arrivals;  // no draw would ever reach the target
  // Bounded: rows of at most kMaxOpenbBytes, each of at most kMaxDevicesPerNode GPUs.
  const int64_t target = capacity * kLoadPct / 100;
  Draws draws(seed.value_or(0), Draws::kPods);
  if (seed.has_value()) Shuffle(arrivals, draws);
  while (sum > target) {
    const size_t at = draws.Below(arrivals.size());
    sum -= RequestMilli(pods[arrivals[at]]);
    arrivals.erase(arrivals.begin() + static_cast<ptrdiff_t>(at));
  }
  if (arrivals.size() < pods.size()) return arrivals;
  for (size_t next = 0;; ++next) {
    const uint32_t pod = by_name[seed.has_value() ? draws.Below(by_name.size()) : next % by_name.size()];
    // Of one GPU, as the experiment has it.
    // Bounded: rows of at most kMaxOpenbBytes, each of at most kMaxDevicesPerNode GPUs.
    if (sum + pods[pod].gpu_milli > target || arrivals.size() == kMaxOpenbArrivals) return arrivals;
    sum += RequestMilli(pods[pod]);
    arrivals.push_back(pod);
  }
}

std::vector<uint32_t> OpenbNodeOrder(size_t count, std::optional<uint64_t> seed) {
  std::vector<uint32_t> order(count);
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  if (!seed.has_value()) return order;
  Draws draws(*seed, Draws::kNodes);
  Shuffle(order, draws);
  return order;
}

}  // namespace horus
