// SPDX-License-Identifier: Apache-2.0
// horus._core: the C ABI of libhorus for the package horus, which gives it its face. Rooms in corridor order.
#include "core.h"
#include "horus/lab/lab.hpp"

namespace py = pybind11;

namespace {

// Values are tables in notebooks: a row a field.
void GiveTables(const py::module_& m) {
  for (const auto& [name, value] : py::dict(m.attr("__dict__"))) {
    if (!py::hasattr(value, "__fields__")) continue;
    const auto table = [](const py::object& self) {
      const py::object title = py::type::of(self).attr("__name__");
      return py::module_::import("horus._table").attr("pairs_to_html")(title, self.attr("to_dict")());
    };
    value.attr("_repr_html_") =
        py::cpp_function(table, py::name("_repr_html_"), py::is_method(value), "_repr_html_(self) -> str");
  }
}

}  // namespace

PYBIND11_MODULE(_core, m) {
  using namespace horus_python;
  py::options options;
  options.disable_function_signatures();  // docstrings state them, for the stubs
  options.disable_enum_members_docstring();
  m.doc() = "The C ABI of libhorus; use the package horus.";
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const horus::Error& error) {
      const std::string text = error.what();  // "STATUS: message"
      const std::string prefix = std::string(horus_status_name(error.status())) + ": ";
      try {
        Raise(error.status(), text.rfind(prefix, 0) == 0 ? text.substr(prefix.size()) : text);
      } catch (py::error_already_set& raised) {
        raised.restore();
      }
    }
  });
  horus::CheckAbi();
  horus_library_info library = HORUS_LIBRARY_INFO_INIT;
  Run([&](horus_error* error) { return horus_library_get_info(&library, error); });
  m.def("version", [library] { return library.version; }, "version() -> str");
  m.def("abi_number", [library] { return library.abi_number; }, "abi_number() -> int");
  m.def("status_name", &horus_status_name, py::arg("status"), "status_name(status: int) -> str");
  BindValues(m);
  BindJob(m);
  BindCatalogue(m);
  BindGraph(m);
  BindPredictor(m);
  BindObservations(m);
  BindInterference(m);
  BindLatency(m);
  BindPotential(m);
  BindLearn(m);
  BindCluster(m);
  BindPlan(m);
  BindPlacer(m);
  BindQueue(m);
  BindTrace(m);
  BindTruth(m);
  BindSim(m);
  BindFiles(m);
  BindMetrics(m);
  GiveTables(m);
}
