// SPDX-License-Identifier: Apache-2.0
// Numpy columns: the demand as a structured dtype, and checks that say which argument, expected and found.
#ifndef HORUS_PYTHON_COLUMNS_H_
#define HORUS_PYTHON_COLUMNS_H_

#include <pybind11/numpy.h>

#include <string>
#include <vector>

#include "core.h"

namespace horus_python {

using DemandArray = py::array_t<horus_demand, py::array::c_style>;

// An argument as a C-contiguous column of T without a copy. Refuses other dtypes, ranks and, with `rows` >= 0, lengths.
template <typename T>
py::array_t<T, py::array::c_style> Column(const py::object& given, const std::string& what, py::ssize_t rows = -1) {
  using Array = py::array_t<T, py::array::c_style>;
  if (!py::isinstance<py::array>(given)) Refuse(what, "a numpy array", Shown(given));
  const auto array = py::reinterpret_borrow<py::array>(given);
  const std::string wanted = py::cast<std::string>(py::str(py::dtype::of<T>()));
  if (!Array::check_(given)) {
    Refuse(what, "a C-contiguous array of dtype " + wanted, "dtype " + py::cast<std::string>(py::str(array.dtype())));
  }
  if (array.ndim() != 1) Refuse(what, "1 dimension", std::to_string(array.ndim()));
  if (rows >= 0 && array.shape(0) != rows) {
    Refuse(what, std::to_string(rows) + " rows", std::to_string(array.shape(0)));
  }
  return py::reinterpret_borrow<Array>(given);
}

// The data of an optional column: null for none.
template <typename T>
class MaybeColumn {
 public:
  MaybeColumn(const py::object& given, const std::string& what, py::ssize_t rows) {
    if (given.is_none()) return;
    array_ = Column<T>(given, what, rows);
    data_ = array_.data();
  }
  [[nodiscard]] const T* data() const { return data_; }

 private:
  py::array_t<T, py::array::c_style> array_;
  const T* data_ = nullptr;
};

// Ids of an argument: none = all, which an empty column is not.
class IdColumn {
 public:
  explicit IdColumn(const py::object& given) {
    if (given.is_none()) return;
    ids_ = Column<uint64_t>(given, "ids");
    size = static_cast<size_t>(ids_.size());
    data = size == 0 ? &kNone : ids_.data();
  }
  const uint64_t* data = nullptr;
  size_t size = 0;

 private:
  static constexpr uint64_t kNone = 0;
  py::array_t<uint64_t, py::array::c_style> ids_;
};

// Rows of demands, each with its struct_size; any rank. Without a copy.
DemandArray DemandColumn(const py::object& given, const std::string& what);

// Copies of what a callback is shown.
DemandArray DemandRows(size_t count, const horus_demand* const* demands);
template <typename T>
py::array_t<T> Copied(size_t count, const T* values) {
  return py::array_t<T>(static_cast<py::ssize_t>(count), values);
}
// A column made of a vector.
template <typename T>
py::array_t<T> ToArray(const std::vector<T>& values) {
  return py::array_t<T>(static_cast<py::ssize_t>(values.size()), values.data());
}

}  // namespace horus_python

#endif  // HORUS_PYTHON_COLUMNS_H_
