// SPDX-License-Identifier: Apache-2.0
// Validation of typical tasks, and the fragment of a node.
#include "place/policies/workload.h"

#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "base/units.h"
#include "base/vectors.h"

namespace horus {
namespace {

constexpr uint64_t kAnyType = ~uint64_t{0};
constexpr uint64_t kOtherTypes = uint64_t{1} << 63;
constexpr size_t kUsualSizes = 32;
constexpr double kShareTolerance = 1e-6;  // of the sum: a table's shares are rounded

absl::Status CheckClass(const TaskClass& one, size_t index) {
  const auto bad = [index](const char* field, const char* expected, auto found) {
    return InvalidArgument("workload: classes[%d]: %s: expected %s, found %g", index, field, expected,
                           static_cast<double>(found));
  };
  if (one.cpu_milli < 0 || one.cpu_milli > kMaxHostQuantity)
    return bad("cpu_milli", "0 to 2^40 thousandths of a core", one.cpu_milli);
  if (one.gpus < 0 || one.gpus > kMaxGpusPerJob) return bad("gpus", "0 to 65536", one.gpus);
  const bool milli_fits = one.gpus == 0 ? one.gpu_milli == 0 : one.gpu_milli >= 1 && one.gpu_milli <= kMilliPerGpu;
  if (!milli_fits) return bad("gpu_milli", "1 to 1000, or 0 without GPUs", one.gpu_milli);
  if (!(one.share > 0) || one.share > 1 + kShareTolerance) return bad("share", "more than 0 and at most 1", one.share);
  if (!std::ranges::is_sorted(one.types)) return bad("types", "ascending types", one.types.size());
  return absl::OkStatus();
}

}  // namespace

std::vector<TaskClass> TasksOf(std::span<const JobSpec> jobs) {
  constexpr double kMilliPerPct = kMilliPerGpu / 100.0;
  std::map<std::tuple<int64_t, int32_t, int32_t, std::vector<GpuTypeId>>, int64_t> counts;
  int64_t all = 0;
  for (const JobSpec& job : jobs) {
    int32_t milli = IsCpuOnly(job) ? 0 : job.gpu_milli;
    if (!IsCpuOnly(job) && milli == 0) {
      const auto util = static_cast<double>(job.demands.front().demand.gpu_util_pct.estimate);
      milli = std::clamp(static_cast<int32_t>(std::lround(util * kMilliPerPct)), 1, kMilliPerGpu);
    }
    std::vector<GpuTypeId> types;
    for (const TypeDemand& entry : job.demands) {
      if (entry.type.valid()) types.push_back(entry.type);
    }
    counts[{job.cpu_milli, job.gpus_per_task, milli, std::move(types)}] += job.tasks;
    all += job.tasks;
  }
  std::vector<TaskClass> tasks;
  for (const auto& [key, count] : counts) {
    const auto& [cpu_milli, gpus, milli, types] = key;
    tasks.push_back({cpu_milli, gpus, milli, types, static_cast<double>(count) / static_cast<double>(all)});
  }
  return tasks;
}

absl::StatusOr<std::shared_ptr<const Workload>> Workload::Create(std::vector<TaskClass> classes) {
  if (classes.empty() || classes.size() > kMaxClasses)
    return InvalidArgument("workload: classes: expected 1 to %d, found %d", kMaxClasses, classes.size());
  auto made = std::make_shared<Workload>();
  double sum = 0;
  for (size_t i = 0; i < classes.size(); ++i) {
    HORUS_RETURN_IF_ERROR(CheckClass(classes[i], i));
    sum += classes[i].share;
    if (classes[i].gpus > 0) made->sizes_.push_back(classes[i].gpu_milli);
    made->named_.insert(made->named_.end(), classes[i].types.begin(), classes[i].types.end());
  }
  if (std::abs(sum - 1) > kShareTolerance) return InvalidArgument("workload: shares: expected sum 1, found %g", sum);
  SortUnique(made->sizes_);
  SortUnique(made->named_);
  if (made->named_.size() > kMaxTypes)
    return InvalidArgument("workload: types: expected at most %d in all, found %d", kMaxTypes, made->named_.size());
  for (const TaskClass& one : classes) {
    Row row{
        .cpu_milli = one.cpu_milli, .types = one.types.empty() ? kAnyType : 0, .gpus = one.gpus, .share = one.share};
    for (const GpuTypeId type : one.types) row.types |= made->BitOf(type);
    const auto size = std::lower_bound(made->sizes_.begin(), made->sizes_.end(), one.gpu_milli);
    row.size = one.gpus == 0 ? 0 : static_cast<uint32_t>(size - made->sizes_.begin());
    made->rows_.push_back(row);
  }
  for (const int32_t size : made->sizes_) made->whole_milli_.push_back(kMilliPerGpu / size * size);
  made->MakeGroups();
  made->classes_ = std::move(classes);
  return std::shared_ptr<const Workload>(std::move(made));
}

std::shared_ptr<const Workload> Workload::WholeGpus() {
  return *Create({TaskClass{.gpus = 1, .gpu_milli = kMilliPerGpu, .types = {}, .share = 1}});
}

void Workload::MakeGroups() {
  std::vector<Row> sorted;
  for (const Row& row : rows_) {
    all_shares_ += row.share;
    if (row.gpus > 0) sorted.push_back(row);
  }
  const auto group_of = [](const Row& row) { return std::tie(row.size, row.gpus, row.types); };
  std::ranges::stable_sort(sorted, [&](const Row& a, const Row& b) {
    return group_of(a) != group_of(b) ? group_of(a) < group_of(b) : a.cpu_milli < b.cpu_milli;
  });
  for (size_t i = 0; i < sorted.size(); ++i) {
    const Row& row = sorted[i];
    const bool fresh = i == 0 || group_of(sorted[i - 1]) != group_of(row);
    if (fresh) groups_.push_back({.types = row.types, .gpus = row.gpus, .size = row.size});
    steps_.push_back({row.cpu_milli, row.share + (fresh ? 0 : steps_.back().share)});
    groups_.back().end = static_cast<uint32_t>(steps_.size());
  }
}

uint64_t Workload::BitOf(GpuTypeId type) const {
  const auto at = std::lower_bound(named_.begin(), named_.end(), type);
  return at != named_.end() && *at == type ? uint64_t{1} << (at - named_.begin()) : kOtherTypes;
}

double Workload::Fragment(int64_t cpu_free_milli, std::span<const FreeGpu> gpus) const {
  struct Usable {
    int32_t gpus = 0;   // with at least so much left
    int32_t milli = 0;  // free on them
  };
  absl::InlinedVector<Usable, kUsualSizes> usable(sizes_.size());
  int32_t free = 0;
  Usable whole;
  for (const FreeGpu& gpu : gpus) {
    if (gpu.type != gpus.front().type) return FragmentOfMixed(cpu_free_milli, gpus);
    free += gpu.free_milli;
    if (gpu.free_milli == kMilliPerGpu) {  // counts for every size
      ++whole.gpus;
      whole.milli += kMilliPerGpu;
      continue;
    }
    for (size_t i = 0; i < sizes_.size() && sizes_[i] <= gpu.free_milli; ++i) {
      ++usable[i].gpus;
      usable[i].milli += gpu.free_milli;
    }
  }
  if (free == 0) return 0;
  for (Usable& one : usable) {
    one.gpus += whole.gpus;
    one.milli += whole.milli;
  }
  const uint64_t bit = BitOf(gpus.front().type);
  double used = 0;
  uint32_t begin = 0;
  for (const Group& group : groups_) {
    uint32_t end = group.end;
    if ((group.types & bit) != 0 && usable[group.size].gpus >= group.gpus) {
      while (end > begin && steps_[end - 1].cpu_milli > cpu_free_milli) --end;
      if (end > begin) used += steps_[end - 1].share * usable[group.size].milli;
    }
    begin = group.end;
  }
  return all_shares_ * free - used;
}

// GPUs of several types: a class counts those that it may run on.
double Workload::FragmentOfMixed(int64_t cpu_free_milli, std::span<const FreeGpu> gpus) const {
  double fragment = 0;
  for (const Row& row : rows_) {
    int32_t free = 0, usable = 0;
    int32_t fitting = 0;
    for (const FreeGpu& gpu : gpus) {
      free += gpu.free_milli;
      if (row.gpus == 0 || (row.types & BitOf(gpu.type)) == 0 || gpu.free_milli < sizes_[row.size]) continue;
      usable += gpu.free_milli;
      ++fitting;
    }
    const bool fits = row.gpus > 0 && cpu_free_milli >= row.cpu_milli && fitting >= row.gpus;
    fragment += row.share * (fits ? free - usable : free);
  }
  return fragment;
}

double Workload::UsableBy(const Row& row, int64_t cpu_free_milli, const Room& room) const {
  if (row.gpus == 0 || room.gpus < row.gpus || cpu_free_milli < row.cpu_milli) return 0;
  const int32_t request = row.gpus * sizes_[row.size];
  double alone = row.gpus == 1 ? room.whole_milli : room.gpus / row.gpus * request;
  if (row.cpu_milli > 0) {
    const double carried = static_cast<double>(cpu_free_milli) / static_cast<double>(row.cpu_milli);
    alone = std::min(alone, carried * request);
  }
  return (alone + room.free_milli) / 2;
}

double Workload::Usable(int64_t cpu_free_milli, std::span<const FreeGpu> gpus) const {
  if (gpus.empty()) return 0;
  absl::InlinedVector<Room, kUsualSizes> rooms(sizes_.size());
  int32_t whole = 0;
  for (const FreeGpu& gpu : gpus) {
    if (gpu.type != gpus.front().type) return UsableOfMixed(cpu_free_milli, gpus);
    if (gpu.free_milli == kMilliPerGpu) {
      ++whole;
      continue;
    }
    for (size_t i = 0; i < sizes_.size() && sizes_[i] <= gpu.free_milli; ++i) {
      ++rooms[i].gpus;
      rooms[i].free_milli += gpu.free_milli;
      rooms[i].whole_milli += gpu.free_milli / sizes_[i] * sizes_[i];
    }
  }
  for (size_t i = 0; i < sizes_.size(); ++i) {
    rooms[i].gpus += whole;
    rooms[i].free_milli += whole * kMilliPerGpu;
    rooms[i].whole_milli += whole * whole_milli_[i];
  }
  const uint64_t bit = BitOf(gpus.front().type);
  double usable = 0;
  for (const Row& row : rows_) {
    if (row.gpus == 0 || (row.types & bit) == 0) continue;
    usable += row.share * UsableBy(row, cpu_free_milli, rooms[row.size]);
  }
  return usable;
}

// The GPUs of a task are of one type, so a class of several GPUs counts type by type.
double Workload::UsableOfMixed(int64_t cpu_free_milli, std::span<const FreeGpu> gpus) const {
  double usable = 0;
  for (const Row& row : rows_) {
    if (row.gpus == 0) continue;
    Room room;
    const int32_t size = sizes_[row.size];
    for (size_t first = 0; first < gpus.size(); ++first) {
      const GpuTypeId type = gpus[first].type;
      const bool seen = std::any_of(gpus.begin(), gpus.begin() + static_cast<ptrdiff_t>(first),
                                    [type](const FreeGpu& gpu) { return gpu.type == type; });
      if (seen || (row.types & BitOf(type)) == 0) continue;
      Room of_type;
      for (const FreeGpu& gpu : gpus.subspan(first)) {
        if (gpu.type != type || gpu.free_milli < size) continue;
        ++of_type.gpus;
        of_type.free_milli += gpu.free_milli;
        of_type.whole_milli += gpu.free_milli / size * size;
      }
      if (of_type.gpus < row.gpus) continue;
      room.gpus += of_type.gpus / row.gpus * row.gpus;
      room.free_milli += of_type.free_milli;
      room.whole_milli += of_type.whole_milli;
    }
    usable += row.share * UsableBy(row, cpu_free_milli, room);
  }
  return usable;
}

}  // namespace horus
