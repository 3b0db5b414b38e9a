// SPDX-License-Identifier: Apache-2.0
// What sharing could give, before any policy.
#include "speeds.h"

namespace horus_python {
namespace {

// A column of the answer, which the library fills.
template <typename T>
T* Filled(py::dict& rows, const char* name, size_t count) {
  py::array_t<T> values(static_cast<py::ssize_t>(count));
  rows[name] = values;
  return values.mutable_data();
}

// The answer and its rows, one a bound.
py::tuple Compute(const std::vector<std::string>& gpu_types, const std::vector<std::string>& profiles,
                  const py::object& alone, const py::dict& pairs, uint32_t reference, const py::object& work,
                  const py::object& gpus, const py::object& bounds, double least_gain, const std::string& library,
                  const py::object& progress) {
  const CSpeeds speeds(gpu_types, profiles, alone, pairs, reference);
  const auto seconds = Column<double>(work, "work", static_cast<py::ssize_t>(profiles.size()));
  const auto counts = Column<double>(gpus, "gpus", static_cast<py::ssize_t>(gpu_types.size()));
  const auto limits = Column<double>(bounds, "slowdown_bounds");
  const horus_potential_options options = {
      sizeof(horus_potential_options),   0, static_cast<size_t>(limits.size()), limits.data(), least_gain,
      horus::detail::TextOrNull(library)};
  constexpr size_t kDefaultBounds = 5;
  const size_t rows = limits.size() == 0 ? kDefaultBounds : static_cast<size_t>(limits.size());
  py::dict columns;
  horus_potential_rows c = HORUS_POTENTIAL_ROWS_INIT;
  c.capacity = rows;
  c.slowdown_bounds = Filled<double>(columns, "slowdown_bound", rows);
  c.gains = Filled<double>(columns, "gain", rows);
  c.makespan_cuts = Filled<double>(columns, "makespan_cut", rows);
  c.rates = Filled<double>(columns, "rate", rows);
  c.admitted = Filled<uint64_t>(columns, "admitted", rows);
  c.admitted_of_mix = Filled<double>(columns, "admitted_of_mix", rows);
  c.pays = Filled<int32_t>(columns, "pays", rows);
  horus_potential all = HORUS_POTENTIAL_INIT;
  size_t count = 0;
  Progress tell(progress);
  const double* seconds_data = seconds.data();
  const double* counts_data = counts.data();
  Run([&](horus_error* error) {
    return horus_potential_compute(speeds.get(), seconds_data, counts_data, &options, &Progress::Tell, &tell, &all, &c,
                                   &count, error);
  });
  py::dict out;
  out["pairs"] = all.pairs;
  out["run"] = all.run;
  out["apart"] = all.apart;
  out["exclusive"] = all.exclusive;
  out["left_out"] = all.left_out;
  return py::make_tuple(out, columns);
}

}  // namespace

void BindPotential(py::module_& m) {
  m.def("potential", &Compute, py::arg("gpu_types"), py::arg("profiles"), py::arg("alone"), py::arg("pairs"),
        py::arg("reference"), py::arg("work"), py::arg("gpus"), py::arg("slowdown_bounds"), py::arg("least_gain"),
        py::arg("library"), py::arg("progress"),
        "potential(gpu_types: collections.abc.Sequence[str], profiles: collections.abc.Sequence[str], alone: "
        "numpy.typing.NDArray[numpy.float64], pairs: dict[str, typing.Any], reference: int, work: "
        "numpy.typing.NDArray[numpy.float64], gpus: numpy.typing.NDArray[numpy.float64], slowdown_bounds: "
        "numpy.typing.NDArray[numpy.float64], least_gain: float, library: str, progress: "
        "collections.abc.Callable[[float], object] | None) -> tuple[dict[str, typing.Any], dict[str, "
        "numpy.typing.NDArray[typing.Any]]]");
}

}  // namespace horus_python
