// SPDX-License-Identifier: Apache-2.0
// Hands a linear program to the solver's side library.
#include "lab/lp/linear_program.h"

#include <array>
#include <limits>
#include <new>

#include "base/side_library.h"
#include "base/status.h"
#include "lab/lp/entry.h"

namespace horus {
namespace {

// A vertex takes about as many steps as there are rows and columns; far more means that the solver is stuck.
constexpr int32_t kMaxIterations = 10'000'000;

constexpr SideLibrary kLibrary = {
    .soname = HORUS_LP_SONAME,
    .entry = "horus_lp_entry_v1",
    .install_dir = HORUS_INSTALL_LIBDIR,
    .purpose = "a linear program (synergy-opt, horus potential)",
    .remedy = "It is built with HORUS_WITH_LP=ON and needs COIN-OR Clp (Debian: coinor-libclp-dev)"};

}  // namespace

int32_t LinearProgram::AddRow(double lower, double upper) {
  row_lower_.push_back(lower);
  row_upper_.push_back(upper);
  return static_cast<int32_t>(row_lower_.size() - 1);
}

void LinearProgram::AddColumn(double objective, const std::vector<std::pair<int32_t, double>>& elements) {
  objective_.push_back(objective);
  for (const auto& [row, coefficient] : elements) {
    if (coefficient == 0) continue;
    indices_.push_back(row);
    elements_.push_back(coefficient);
  }
  starts_.push_back(static_cast<int32_t>(indices_.size()));
}

absl::StatusOr<LinearProgram::Solution> LinearProgram::Solve(const std::string& library) const {
  HORUS_ASSIGN_OR_RETURN(void* const entry, LoadSideLibrary(kLibrary, library));
  const std::vector<double> lower(columns(), 0);
  const std::vector<double> upper(columns(), std::numeric_limits<double>::infinity());
  Solution solution;
  solution.values.resize(columns());
  solution.prices.resize(row_lower_.size());
  const horus_lp_request request = {.struct_size = sizeof(horus_lp_request),
                                    .columns = static_cast<int32_t>(columns()),
                                    .rows = static_cast<int32_t>(row_lower_.size()),
                                    .max_iterations = kMaxIterations,
                                    .starts = starts_.data(),
                                    .indices = indices_.data(),
                                    .elements = elements_.data(),
                                    .objective = objective_.data(),
                                    .column_lower = lower.data(),
                                    .column_upper = upper.data(),
                                    .row_lower = row_lower_.data(),
                                    .row_upper = row_upper_.data(),
                                    .values = solution.values.data(),
                                    .prices = solution.prices.data(),
                                    .objective_value = &solution.objective};
  std::array<char, HORUS_LP_TEXT_BYTES> text = {};
  const int32_t status = reinterpret_cast<horus_lp_entry_fn>(entry)(&request, text.data());
  if (status == HORUS_LP_OK) return solution;
  if (status == HORUS_LP_NO_MEMORY) throw std::bad_alloc();
  const auto code = status == HORUS_LP_INFEASIBLE ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kInternal;
  return MakeError(code, "linear program of %d columns and %d rows: %s", request.columns, request.rows, text.data());
}

}  // namespace horus
