// SPDX-License-Identifier: Apache-2.0
// Who was refused a place since a job left: those that came since took room and made none, so nobody of them, and
// nobody like them, needs to be asked about again.
#ifndef HORUS_LAB_RUN_REFUSED_JOBS_H_
#define HORUS_LAB_RUN_REFUSED_JOBS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

namespace horus {

// `Kind`: what the placer sees of a job; equal where it cannot tell two apart.
template <typename Kind>
class RefusedJobs {
 public:
  [[nodiscard]] bool HasJob(uint64_t job) const { return std::binary_search(jobs_.begin(), jobs_.end(), job); }
  [[nodiscard]] bool HasKind(const Kind& kind) const {
    return std::find(kinds_.begin(), kinds_.end(), kind) != kinds_.end();
  }
  void AddJob(uint64_t job) {
    const auto at = std::lower_bound(jobs_.begin(), jobs_.end(), job);
    if (at == jobs_.end() || *at != job) jobs_.insert(at, job);
  }
  void AddKind(const Kind& kind) { kinds_.push_back(kind); }
  void Clear() {
    jobs_.clear();
    kinds_.clear();
  }

 private:
  std::vector<uint64_t> jobs_;  // ascending
  std::vector<Kind> kinds_;
};

}  // namespace horus

#endif  // HORUS_LAB_RUN_REFUSED_JOBS_H_
