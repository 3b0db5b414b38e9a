// SPDX-License-Identifier: Apache-2.0
// LinearProgram: built column by column, solved by libhorus_lp.so, which is opened on first use.
//
// Enters:  row bounds, columns with their elements; maximise.
// Leaves:  a vertex, its objective and the price of each row; or why there is none.
// Cost:    the simplex method.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace horus {

class LinearProgram {
 public:
  // The row's index.
  int32_t AddRow(double lower, double upper);
  // A variable between 0 and infinity; `elements` are (row, coefficient). Zeros are left out.
  void AddColumn(double objective, const std::vector<std::pair<int32_t, double>>& elements);
  [[nodiscard]] size_t columns() const { return objective_.size(); }
  [[nodiscard]] size_t elements() const { return elements_.size(); }

  struct Solution {
    std::vector<double> values;
    double objective = 0;
    std::vector<double> prices;  // of the rows: by how much the objective grows with what bounds the row
  };
  // FAILED_PRECONDITION when infeasible, UNAVAILABLE without the library, INTERNAL when the solver gave up.
  [[nodiscard]] absl::StatusOr<Solution> Solve(const std::string& library) const;

 private:
  std::vector<double> row_lower_, row_upper_, objective_, elements_;
  std::vector<int32_t> starts_ = {0};
  std::vector<int32_t> indices_;
};

}  // namespace horus
