// SPDX-License-Identifier: Apache-2.0
// Demands as rows of numpy; see columns.h.
#include "columns.h"

namespace horus_python {

DemandArray DemandColumn(const py::object& given, const std::string& what) {
  if (!py::isinstance<py::array>(given)) Refuse(what, "a numpy array of horus.demand_dtype", Shown(given));
  if (!DemandArray::check_(given)) {
    const auto array = py::reinterpret_borrow<py::array>(given);
    Refuse(what, "a C-contiguous array of horus.demand_dtype",
           "dtype " + py::cast<std::string>(py::str(array.dtype())) + (array.ndim() == 0 ? ", a scalar" : ""));
  }
  auto rows = py::reinterpret_borrow<DemandArray>(given);
  const horus_demand* data = rows.data();
  for (py::ssize_t i = 0; i < rows.size(); ++i) {
    if (data[i].struct_size != sizeof(horus_demand)) {
      Refuse(what + " row " + std::to_string(i) + ": struct_size",
             std::to_string(sizeof(horus_demand)) + ", as horus.demand_rows() sets it",
             std::to_string(data[i].struct_size));
    }
  }
  return rows;
}

DemandArray DemandRows(size_t count, const horus_demand* const* demands) {
  DemandArray rows(static_cast<py::ssize_t>(count));
  horus_demand* data = rows.mutable_data();
  for (size_t i = 0; i < count; ++i) data[i] = *demands[i];
  return rows;
}

}  // namespace horus_python
