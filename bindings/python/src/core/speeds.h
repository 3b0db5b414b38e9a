// SPDX-License-Identifier: Apache-2.0
// Measured speeds as the C ABI takes them: of truths and of the potential.
#ifndef HORUS_PYTHON_SPEEDS_H_
#define HORUS_PYTHON_SPEEDS_H_

#include <string>
#include <vector>

#include "columns.h"

namespace horus_python {

// A column of a dict, or null: the default for every row.
template <typename T>
const T* Given(const py::dict& columns, const char* name, py::ssize_t rows, std::vector<py::object>& held) {
  if (!columns.contains(name)) return nullptr;
  const auto column = Column<T>(py::object(columns[name]), name, rows);
  held.push_back(column);
  return column.data();
}

// Borrows the names, and holds the columns.
class CSpeeds {
 public:
  CSpeeds(const std::vector<std::string>& gpu_types, const std::vector<std::string>& profiles, const py::object& alone,
          const py::dict& pairs, uint32_t reference)
      : alone_(Column<double>(alone, "alone", static_cast<py::ssize_t>(gpu_types.size() * profiles.size()))),
        types_(Texts(gpu_types)),
        names_(Texts(profiles)) {
    const py::ssize_t rows = pairs.contains("gpu") ? py::len(py::object(pairs["gpu"])) : 0;
    c_.reference = reference;
    c_.gpu_count = types_.size();
    c_.gpu_types = types_.data();
    c_.profile_count = names_.size();
    c_.profiles = names_.data();
    c_.alone = alone_.data();
    c_.pair_count = static_cast<size_t>(rows);
    c_.pair_gpus = Given<uint32_t>(pairs, "gpu", rows, held_);
    c_.pairs_a = Given<uint32_t>(pairs, "a", rows, held_);
    c_.pairs_b = Given<uint32_t>(pairs, "b", rows, held_);
    c_.speeds_a = Given<double>(pairs, "speed_a", rows, held_);
    c_.speeds_b = Given<double>(pairs, "speed_b", rows, held_);
    c_.slowdowns = Given<double>(pairs, "slowdown", rows, held_);
  }
  CSpeeds(const CSpeeds&) = delete;
  CSpeeds& operator=(const CSpeeds&) = delete;
  [[nodiscard]] const horus_speeds* get() const { return &c_; }

 private:
  py::array_t<double, py::array::c_style> alone_;
  std::vector<const char*> types_, names_;
  std::vector<py::object> held_;
  horus_speeds c_ = HORUS_SPEEDS_INIT;
};

}  // namespace horus_python

#endif  // HORUS_PYTHON_SPEEDS_H_
