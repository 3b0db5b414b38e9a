// SPDX-License-Identifier: Apache-2.0
// Workload: the tasks that a cluster typically sees, and how much of a node's free GPUs such tasks cannot use.
//
// Enters:  classes of tasks with their shares; a node's free CPU and free GPUs.
// Leaves:  the expected fragment: free GPU that a task drawn from the classes cannot use there.
// Units:   thousandths of a GPU and of a core; shares sum to 1.
// Cost:    O(GPUs x distinct requests + classes), about 100 ns for 8 GPUs and 40 classes.
#pragma once

#include "place/job/job.h"

namespace horus {

struct TaskClass {
  int64_t cpu_milli = 0;
  int32_t gpus = 0;              // 0 = no GPU
  int32_t gpu_milli = 0;         // per GPU, 1 to 1000; 0 without GPUs
  std::vector<GpuTypeId> types;  // that it may run on, ascending; empty = any
  double share = 0;              // of all tasks; above 0
};

struct FreeGpu {
  GpuTypeId type;
  int32_t free_milli = 0;
};

// The tasks of jobs that were seen, equal ones as one class; each job counts as often as it has tasks. What shares
// without a request counts the thousandths that its first demand's utilisation comes to. The jobs have one way to run.
[[nodiscard]] std::vector<TaskClass> TasksOf(std::span<const JobSpec> jobs);

class Workload {
 public:
  static constexpr size_t kMaxJobs = 1'000'000;  // that TasksOf may be asked to read through the C ABI; chosen
  static constexpr size_t kMaxClasses = 4096;    // bounds the time of a price; chosen
  static constexpr size_t kMaxTypes = 63;        // named by all classes together: one bit each, and one for the rest

  // INVALID_ARGUMENT "workload: classes[3]: gpus: expected ..., found ...".
  [[nodiscard]] static absl::StatusOr<std::shared_ptr<const Workload>> Create(std::vector<TaskClass> classes);
  // Where nothing is known: every task wants one whole GPU of any type.
  [[nodiscard]] static std::shared_ptr<const Workload> WholeGpus();

  // Sum over the classes of share x free GPU that the class cannot use: all of it where the task does not fit (CPU,
  // type, too few GPUs with enough left), else the GPUs that are too small or of another type. (FGD, ATC 2023.)
  [[nodiscard]] double Fragment(int64_t cpu_free_milli, std::span<const FreeGpu> gpus) const;

  // Sum over the classes of share x free GPU that the class can use, half way between two bounds: all that is free on
  // GPUs that take one of its tasks; and what its tasks would use if they alone came until the GPUs (in whole requests)
  // or the CPU give out. Milli.
  [[nodiscard]] double Usable(int64_t cpu_free_milli, std::span<const FreeGpu> gpus) const;

  [[nodiscard]] std::span<const TaskClass> classes() const { return classes_; }

 private:
  struct Row {  // a class as Fragment reads it
    int64_t cpu_milli = 0;
    uint64_t types = 0;  // bits
    int32_t gpus = 0;
    uint32_t size = 0;  // in sizes_
    double share = 0;
  };
  struct Group {  // classes that differ in CPU alone
    uint64_t types = 0;
    int32_t gpus = 0;
    uint32_t size = 0;
    uint32_t end = 0;  // of its steps, which begin where the group before ends
  };
  struct Step {  // ascending CPU within a group
    int64_t cpu_milli = 0;
    double share = 0;  // of the classes up to here
  };
  void MakeGroups();
  [[nodiscard]] uint64_t BitOf(GpuTypeId type) const;
  [[nodiscard]] double FragmentOfMixed(int64_t cpu_free_milli, std::span<const FreeGpu> gpus) const;
  [[nodiscard]] double UsableOfMixed(int64_t cpu_free_milli, std::span<const FreeGpu> gpus) const;
  // GPUs of a node that take one GPU of a task of some size.
  struct Room {
    int32_t gpus = 0;
    int32_t free_milli = 0;
    int32_t whole_milli = 0;  // in whole requests
  };
  [[nodiscard]] double UsableBy(const Row& row, int64_t cpu_free_milli, const Room& room) const;

  std::vector<TaskClass> classes_;
  std::vector<Row> rows_;
  std::vector<Group> groups_;  // those with GPUs
  std::vector<Step> steps_;
  double all_shares_ = 0;             // 1 but for rounding
  std::vector<int32_t> sizes_;        // distinct gpu_milli, ascending
  std::vector<int32_t> whole_milli_;  // of one idle GPU, in whole requests of that size
  std::vector<GpuTypeId> named_;      // ascending; bit i is named_[i], bit 63 any other
};

}  // namespace horus
