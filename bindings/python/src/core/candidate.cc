// SPDX-License-Identifier: Apache-2.0
// A policy in Python: the candidate device as columns, and the callback that prices it.
#include <limits>

#include "columns.h"
#include "placer.h"

namespace horus_python {
namespace {

// Copies: they may outlive the callback.
struct Candidate {
  SharedDevice device;
  int64_t mem_mib, mem_used_mib, mem_used_mib_upper;
  double relative_speed;
  int32_t gpu_milli_used;
  DemandArray demands;
  py::array_t<int32_t> kinds, priorities, gpu_milli;
  py::array_t<float> slowdown_bounds, slowdown_before, slowdown_before_upper, slowdown_after, slowdown_after_upper;
};

std::string Repr(const Candidate& candidate) {
  return "<horus.Candidate on " + candidate.device.gpu_type + ": " + std::to_string(candidate.demands.size()) +
         " tenants, " + std::to_string(candidate.mem_used_mib) + " of " + std::to_string(candidate.mem_mib) + " MiB>";
}

py::object Table(const py::object& self) {
  py::dict columns;
  for (const char* name : {"gpu_util_pct", "mem_mib"}) columns[name] = self.attr("demands")[py::str(name)];
  for (const char* name : {"priorities", "gpu_milli", "slowdown_bounds", "slowdown_before", "slowdown_after"}) {
    columns[name] = self.attr(name);
  }
  return py::module_::import("horus._table").attr("to_html")(py::repr(self), columns);
}

}  // namespace

int32_t PricePython(void* user, const horus_policy_candidate* c, double* cost, int32_t* declined) {
  return Callback([&] {
    const Candidate candidate = {FromC(*c->device),
                                 c->mem_mib,
                                 c->mem_used_mib,
                                 c->mem_used_mib_upper,
                                 c->relative_speed,
                                 c->gpu_milli_used,
                                 DemandRows(c->count, c->demands),
                                 Copied(c->count, c->kinds),
                                 Copied(c->count, c->priorities),
                                 Copied(c->count, c->gpu_milli),
                                 Copied(c->count, c->slowdown_bounds),
                                 Copied(c->count, c->slowdown_before),
                                 Copied(c->count, c->slowdown_before_upper),
                                 Copied(c->count, c->slowdown_after),
                                 Copied(c->count, c->slowdown_after_upper)};
    const auto callable = py::reinterpret_borrow<py::object>(static_cast<PyObject*>(user));
    py::object answer = CallPython(callable, candidate);
    if (answer.is_none()) {
      *cost = 0;
      *declined = 1;
    } else {
      *cost = OrWait([&] { return Arg<double>::From(answer, "policy callable: cost"); });
    }
    Forget(answer);
    return 0;
  });
}

void BindCandidate(py::module_& m) {
  Class<Candidate>(m, "Candidate",
                   "A device that can take a job, as if it did. Columns have a row a tenant, the job last.")
      .def("__repr__", &Repr, "__repr__(self) -> str")
      .def("_repr_html_", &Table, "_repr_html_(self) -> str")
      .def_readonly("device", &Candidate::device, "device(self) -> SharedDevice")
      .def_readonly("mem_mib", &Candidate::mem_mib, "mem_mib(self) -> int\n\nOf the device.")
      .def_readonly("mem_used_mib", &Candidate::mem_used_mib, "mem_used_mib(self) -> int\n\nBy those that are there.")
      .def_readonly("mem_used_mib_upper", &Candidate::mem_used_mib_upper,
                    "mem_used_mib_upper(self) -> int\n\nBy their requests.")
      .def_readonly("relative_speed", &Candidate::relative_speed,
                    "relative_speed(self) -> float\n\nOf the job alone here, to the fastest type that it lists.")
      .def_readonly("gpu_milli_used", &Candidate::gpu_milli_used, "gpu_milli_used(self) -> int\n\nHard requests.")
      .def_readonly("demands", &Candidate::demands, "demands(self) -> numpy.typing.NDArray[numpy.void]")
      .def_readonly("kinds", &Candidate::kinds, "kinds(self) -> numpy.typing.NDArray[numpy.int32]")
      .def_readonly("priorities", &Candidate::priorities, "priorities(self) -> numpy.typing.NDArray[numpy.int32]")
      .def_readonly("gpu_milli", &Candidate::gpu_milli, "gpu_milli(self) -> numpy.typing.NDArray[numpy.int32]")
      .def_readonly("slowdown_bounds", &Candidate::slowdown_bounds,
                    "slowdown_bounds(self) -> numpy.typing.NDArray[numpy.float32]")
      .def_readonly("slowdown_before", &Candidate::slowdown_before,
                    "slowdown_before(self) -> numpy.typing.NDArray[numpy.float32]")
      .def_readonly("slowdown_before_upper", &Candidate::slowdown_before_upper,
                    "slowdown_before_upper(self) -> numpy.typing.NDArray[numpy.float32]")
      .def_readonly("slowdown_after", &Candidate::slowdown_after,
                    "slowdown_after(self) -> numpy.typing.NDArray[numpy.float32]")
      .def_readonly("slowdown_after_upper", &Candidate::slowdown_after_upper,
                    "slowdown_after_upper(self) -> numpy.typing.NDArray[numpy.float32]");
}

}  // namespace horus_python
