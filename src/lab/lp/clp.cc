// SPDX-License-Identifier: Apache-2.0
// Solves one linear program through Clp's C interface: the only file that includes it.
#include <coin/Clp_C_Interface.h>

#include <algorithm>
#include <iterator>

#include "base/memory_left.h"
#include "lab/lp/contained.h"

namespace horus::lp {
namespace {

constexpr double kMaximise = -1;  // Clp's direction

// Clp's model of one program.
class Model {
 public:
  Model() : model_(Clp_newModel()) {}
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  ~Model() {
    if (model_ != nullptr) Clp_deleteModel(model_);
  }
  [[nodiscard]] Clp_Simplex* get() const { return model_; }

 private:
  Clp_Simplex* model_;
};

// Where memory runs out inside it, Clp loses what it holds and may free a block twice. So this fails before, where
// there is less left than Clp may need: about twice the most that was seen (37 MiB for 10,000 columns of 50 elements).
void CheckMemory(const horus_lp_request& request) {
  constexpr size_t kAtLeast = 3 << 20;
  constexpr size_t kEach = 768;  // row or column
  constexpr size_t kElement = 128;
  const size_t bytes = kAtLeast + kEach * (static_cast<size_t>(request.columns) + static_cast<size_t>(request.rows)) +
                       kElement * static_cast<size_t>(request.starts[request.columns]);
  CheckThatMemoryIsLeft(bytes);
}

int32_t Solve(const horus_lp_request& request, char* text) {
  CheckMemory(request);
  const Model owner;
  Clp_Simplex* const model = owner.get();
  if (model == nullptr) return Say(text, HORUS_LP_FAILED, "Clp makes no model", 0);
  Clp_setLogLevel(model, 0);
  Clp_setMaximumIterations(model, request.max_iterations);
  Clp_loadProblem(model, request.columns, request.rows, request.starts, request.indices, request.elements,
                  request.column_lower, request.column_upper, request.objective, request.row_lower, request.row_upper);
  Clp_setOptimizationDirection(model, kMaximise);
  Clp_initialSolve(model);
  if (Clp_isProvenPrimalInfeasible(model) != 0) return Say(text, HORUS_LP_INFEASIBLE, "infeasible", 0);
  if (Clp_isProvenOptimal(model) == 0) return Say(text, HORUS_LP_FAILED, "Clp ended with status", Clp_status(model));
  std::copy_n(Clp_getColSolution(model), request.columns, request.values);
  std::copy_n(Clp_getRowPrice(model), request.rows, request.prices);
  *request.objective_value = Clp_getObjValue(model);
  return HORUS_LP_OK;
}

bool IsComplete(const horus_lp_request& request) {
  const void* const needed[] = {request.starts,       request.indices,      request.elements,       request.objective,
                                request.column_lower, request.column_upper, request.row_lower,      request.row_upper,
                                request.values,       request.prices,       request.objective_value};
  const auto given = [](const void* pointer) { return pointer != nullptr; };
  return request.columns > 0 && request.rows > 0 && request.max_iterations > 0 &&
         std::all_of(std::begin(needed), std::end(needed), given);
}

}  // namespace
}  // namespace horus::lp

int32_t horus_lp_entry_v1(const horus_lp_request* request, char* text) {
  using horus::lp::Say;
  if (text == nullptr) return HORUS_LP_REFUSED;
  text[0] = '\0';
  if (request == nullptr || request->struct_size != sizeof(horus_lp_request))
    return Say(text, HORUS_LP_REFUSED, "request of another version, expected bytes", sizeof(horus_lp_request));
  if (!horus::lp::IsComplete(*request)) return Say(text, HORUS_LP_REFUSED, "incomplete request", 0);
  return horus::lp::Contained(text, [&] { return horus::lp::Solve(*request, text); });
}
