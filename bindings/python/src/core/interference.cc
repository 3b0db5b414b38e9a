// SPDX-License-Identifier: Apache-2.0
// What sharing costs: models by name, from a bundle, a table, training or a callable; asked for a device or for
// columns.
#include "interference.h"

#include <algorithm>

#include "columns.h"
#include "record.h"

namespace horus_python {
namespace {

using Model = std::unique_ptr<InterferenceHandle>;

Model Create(const std::string& name) {
  return Make<InterferenceHandle, horus_interference>([&](horus_interference** out, horus_error* error) {
    return horus_interference_create(name.c_str(), out, error);
  });
}

Model FromBytes(const CatalogueHandle* catalogue, const py::buffer& source, const std::string& name) {
  const Bytes bytes(source, "bundle");
  return Make<InterferenceHandle, horus_interference>([&](horus_interference** out, horus_error* error) {
    return horus_interference_from_bytes(Of(catalogue), bytes.data(), bytes.size(), name.c_str(), out, error);
  });
}

Model FromCallable(const CatalogueHandle* catalogue, const py::object& callable, uint64_t epoch,
                   double upper_probability) {
  return Make<InterferenceHandle, horus_interference>(
      [&](horus_interference** out, horus_error* error) {
        return horus_interference_from_callback(Of(catalogue), &AskPython, callable.ptr(), epoch, upper_probability,
                                                out, error);
      },
      {callable});
}

Model FromTable(const CatalogueHandle* catalogue, const std::vector<std::string>& gpu_types,
                const std::vector<std::string>& sharing_modes, const py::object& profiles_a,
                const py::object& profiles_b, const py::object& slowdown_a, const py::object& slowdown_b, double noise,
                const InterferenceHandle* fallback) {
  const auto rows = static_cast<py::ssize_t>(gpu_types.size());
  if (sharing_modes.size() != gpu_types.size()) {
    Refuse("sharing_modes", std::to_string(rows) + " rows, as gpu_types", std::to_string(sharing_modes.size()));
  }
  const auto a = Column<uint64_t>(profiles_a, "profiles_a", rows);
  const auto b = Column<uint64_t>(profiles_b, "profiles_b", rows);
  const auto slow_a = Column<double>(slowdown_a, "slowdown_a", rows);
  const auto slow_b = Column<double>(slowdown_b, "slowdown_b", rows);
  const std::vector<const char*> types = Texts(gpu_types);
  std::vector<int32_t> modes;
  for (size_t i = 0; i < sharing_modes.size(); ++i) {
    modes.push_back(NumberOf(kSharingModes, py::str(sharing_modes[i]), "sharing_modes[" + std::to_string(i) + "]"));
  }
  const horus_pair_table table = {sizeof(horus_pair_table),
                                  0,
                                  types.size(),
                                  types.data(),
                                  modes.data(),
                                  a.data(),
                                  b.data(),
                                  slow_a.data(),
                                  slow_b.data(),
                                  noise};
  const horus_interference* other = fallback == nullptr ? nullptr : fallback->get();
  return Make<InterferenceHandle, horus_interference>(
      [&](horus_interference** out, horus_error* error) {
        return horus_interference_from_table(Of(catalogue), &table, other, out, error);
      },
      fallback == nullptr ? std::vector<py::object>() : fallback->keeps());
}

py::bytes ToBundle(const InterferenceHandle& model) {
  return ToBytes(Collect<char>([&](size_t capacity, char* data, size_t* count, horus_error* error) {
    return horus_interference_to_bytes(model.get(), capacity, data, count, error);
  }));
}

Model Commit(const InterferenceHandle& model, const CatalogueHandle* catalogue, const ObservationsHandle& observations,
             const py::object& progress) {
  Progress tell(progress);
  return Make<InterferenceHandle, horus_interference>(
      [&](horus_interference** out, horus_error* error) {
        return observations.Read(error, [&](horus_error* e) {
          return horus_interference_commit(model.get(), Of(catalogue), observations.get(), &Progress::Tell, &tell, out,
                                           e);
        });
      },
      model.keeps());
}

horus_interference_info InfoOf(const InterferenceHandle& model) {
  horus_interference_info info = HORUS_INTERFERENCE_INFO_INIT;
  Run([&](horus_error* error) { return horus_interference_get_info(model.get(), &info, error); });
  return info;
}

// Of the tenants of one device.
py::tuple Slowdown(const InterferenceHandle& model, const CatalogueHandle* catalogue, const SharedDevice& device,
                   const py::tuple& tenants) {
  const std::vector<const horus_demand*> demands = PointersOf<Demand, horus_demand>(tenants, "tenants");
  const auto count = static_cast<py::ssize_t>(demands.size());
  py::array_t<float> estimate(count), upper(count);
  horus_slowdowns columns = HORUS_SLOWDOWNS_INIT;
  columns.slowdown = estimate.mutable_data();
  columns.slowdown_upper = upper.mutable_data();
  const horus_device c = horus::detail::ToC(device);
  Run([&](horus_error* error) {
    return horus_interference_slowdown(model.get(), Of(catalogue), &c, demands.size(), demands.data(), 0, &columns,
                                       error);
  });
  return py::make_tuple(estimate, upper);
}

py::tuple Quantile(const InterferenceHandle& model, const CatalogueHandle* catalogue, const SharedDevice& device,
                   const py::tuple& tenants, double probability) {
  const std::vector<const horus_demand*> demands = PointersOf<Demand, horus_demand>(tenants, "tenants");
  const auto count = static_cast<py::ssize_t>(demands.size());
  py::array_t<float> slowdown(count);
  py::array_t<bool> calibrated(count);
  std::vector<uint8_t> flags(demands.size());
  horus_slowdowns columns = HORUS_SLOWDOWNS_INIT;
  columns.slowdown_upper = slowdown.mutable_data();
  columns.calibrated = flags.data();
  const horus_device c = horus::detail::ToC(device);
  Run([&](horus_error* error) {
    return horus_interference_slowdown(model.get(), Of(catalogue), &c, demands.size(), demands.data(), probability,
                                       &columns, error);
  });
  std::copy(flags.begin(), flags.end(), calibrated.mutable_data());
  return py::make_tuple(slowdown, calibrated);
}

// [tenants x tenants]
py::array_t<bool> Measured(const InterferenceHandle& model, const CatalogueHandle* catalogue,
                           const SharedDevice& device, const py::tuple& tenants) {
  const std::vector<const horus_demand*> demands = PointersOf<Demand, horus_demand>(tenants, "tenants");
  const auto count = static_cast<py::ssize_t>(demands.size());
  py::array_t<bool> measured({count, count});
  std::vector<uint8_t> flags(demands.size() * demands.size());
  horus_slowdowns columns = HORUS_SLOWDOWNS_INIT;
  columns.measured = flags.data();
  const horus_device c = horus::detail::ToC(device);
  Run([&](horus_error* error) {
    return horus_interference_slowdown(model.get(), Of(catalogue), &c, demands.size(), demands.data(), 0, &columns,
                                       error);
  });
  std::copy(flags.begin(), flags.end(), measured.mutable_data());
  return measured;
}

constexpr py::ssize_t kRowsBetweenChecks = 1024;

// A device a row: `tenants` is [rows x tenants of each]. The lock is released for all of it.
py::tuple SlowdownRows(const InterferenceHandle& model, const CatalogueHandle* catalogue, const SharedDevice& device,
                       const py::object& tenants, const py::object& progress) {
  const DemandArray rows = DemandColumn(tenants, "tenants");
  if (rows.ndim() != 2) Refuse("tenants", "2 dimensions [devices x tenants]", std::to_string(rows.ndim()));
  const py::ssize_t count = rows.shape(0);
  const auto wide = static_cast<size_t>(rows.shape(1));
  py::array_t<float> estimate({rows.shape(0), rows.shape(1)}), upper({rows.shape(0), rows.shape(1)});
  const horus_demand* data = rows.data();
  float* first = estimate.mutable_data();
  float* second = upper.mutable_data();
  const horus_device c = horus::detail::ToC(device);
  horus_slowdowns columns = HORUS_SLOWDOWNS_INIT;
  Progress tell(progress);
  std::vector<horus_demand> row(wide);  // a copy: the model, or another thread, may write where the rows lie
  std::vector<const horus_demand*> demands;
  for (const horus_demand& demand : row) demands.push_back(&demand);
  for (py::ssize_t begin = 0; begin < count; begin += kRowsBetweenChecks) {
    const py::ssize_t end = std::min(begin + kRowsBetweenChecks, count);
    Run([&](horus_error* error) {
      for (py::ssize_t i = begin; i < end; ++i) {
        const size_t at = static_cast<size_t>(i) * wide;
        std::copy_n(data + at, wide, row.begin());
        for (horus_demand& demand : row) demand.struct_size = sizeof(horus_demand);
        columns.slowdown = first + at;
        columns.slowdown_upper = second + at;
        const horus_status status =
            horus_interference_slowdown(model.get(), Of(catalogue), &c, wide, demands.data(), 0, &columns, error);
        if (status != HORUS_OK) return status;
      }
      return horus_status{HORUS_OK};
    });
    tell.Check(static_cast<double>(end) / static_cast<double>(count));
  }
  return py::make_tuple(estimate, upper);
}

py::list Changes(const InterferenceHandle& model) {
  size_t count = horus::detail::CountOf([&](size_t* needed, horus_error* error) {
    return horus_interference_get_changes(model.get(), 0, nullptr, nullptr, nullptr, needed, error);
  });
  std::vector<const char*> types(count);
  std::vector<int32_t> modes(count);
  std::vector<uint64_t> profiles(count);
  Run([&](horus_error* error) {
    return horus_interference_get_changes(model.get(), count, types.data(), modes.data(), profiles.data(), &count,
                                          error);
  });
  py::list out;
  for (size_t i = 0; i < count; ++i) out.append(py::make_tuple(types[i], WordOf(kSharingModes, modes[i]), profiles[i]));
  return out;
}

// A column of `count` floats from what a callable answered.
void TakeColumn(const py::object& answer, const char* what, size_t count, float* out) {
  using Floats = py::array_t<float, py::array::c_style | py::array::forcecast>;
  const Floats column = OrWait([&] { return Floats::ensure(answer); });
  if (!column || answer.is_none()) {
    PyErr_Clear();
    WrongType(std::string("interference callable: ") + what, "numbers", answer);
  }
  if (column.ndim() != 1 || static_cast<size_t>(column.size()) != count) {
    Refuse(std::string("interference callable: ") + what, std::to_string(count) + " numbers, one a tenant",
           std::to_string(column.size()) + " in " + std::to_string(column.ndim()) + " dimensions");
  }
  std::copy_n(column.data(), count, out);
}

}  // namespace

SharedDevice FromC(const horus_device& device) {
  return {device.gpu_type == nullptr ? "" : device.gpu_type, device.sharing_mode, device.compute_share};
}

int32_t AskPython(void* user, const horus_device* device, size_t count, const horus_demand* const* demands,
                  float* slowdown, float* slowdown_upper) {
  return Callback([&] {
    const auto callable = py::reinterpret_borrow<py::object>(static_cast<PyObject*>(user));
    py::object answer = CallPython(callable, FromC(*device), DemandRows(count, demands));
    if (py::isinstance<py::tuple>(answer) && py::len(answer) == 2) {
      const auto both = py::reinterpret_borrow<py::tuple>(answer);
      TakeColumn(both[0], "slowdown", count, slowdown);
      TakeColumn(both[1], "slowdown_upper", count, slowdown_upper);
    } else {
      TakeColumn(answer, "slowdown", count, slowdown);
    }
    Forget(answer);
    return 0;
  });
}

void BindInterference(py::module_& m) {
  Record<SharedDevice>(
      m, "SharedDevice",
      "A device as an interference model sees it. One of mode mig is one instance: its tenants share it in time.", 1)
      .Field("gpu_type", &SharedDevice::gpu_type, "name or alias of the catalogue")
      .OneOf("sharing_mode", &SharedDevice::sharing_mode, kSharingModes, "how jobs share it; default = time-slice")
      .Field("compute_share", &SharedDevice::compute_share,
             "of the GPU's compute that a MIG instance has, 3 / 7 of a 3g; 0 = all of it");
  Class<InterferenceHandle>(m, "InterferenceHandle")
      .def(py::init(&Create), py::arg("name"), "__init__(self, name: str) -> None")
      .def_static("from_bytes", &FromBytes, py::arg("catalogue").none(true), py::arg("bundle"), py::arg("name"),
                  "from_bytes(catalogue: CatalogueHandle | None, bundle: collections.abc.Buffer, name: str) -> "
                  "InterferenceHandle")
      .def_static("from_callable", &FromCallable, py::arg("catalogue").none(true), py::arg("callable"),
                  py::arg("epoch"), py::arg("upper_probability"),
                  "from_callable(catalogue: CatalogueHandle | None, callable: collections.abc.Callable[..., object], "
                  "epoch: int, upper_probability: float) -> InterferenceHandle")
      .def_static(
          "from_table", &FromTable, py::arg("catalogue").none(true), py::arg("gpu_types"), py::arg("sharing_modes"),
          py::arg("profiles_a"), py::arg("profiles_b"), py::arg("slowdown_a"), py::arg("slowdown_b"), py::arg("noise"),
          py::arg("fallback").none(true),
          "from_table(catalogue: CatalogueHandle | None, gpu_types: collections.abc.Sequence[str], sharing_modes: "
          "collections.abc.Sequence[str], profiles_a: numpy.typing.NDArray[numpy.uint64], profiles_b: "
          "numpy.typing.NDArray[numpy.uint64], slowdown_a: numpy.typing.NDArray[numpy.float64], slowdown_b: "
          "numpy.typing.NDArray[numpy.float64], noise: float, fallback: InterferenceHandle | None) -> "
          "InterferenceHandle")
      .def("to_bytes", &ToBundle, "to_bytes(self) -> bytes")
      .def("commit", &Commit, py::arg("catalogue").none(true), py::arg("observations"), py::arg("progress"),
           "commit(self, catalogue: CatalogueHandle | None, observations: ObservationsHandle, progress: "
           "collections.abc.Callable[[float], object] | None) -> InterferenceHandle")
      .def("slowdown", &Slowdown, py::arg("catalogue").none(true), py::arg("device"), py::arg("tenants"),
           "slowdown(self, catalogue: CatalogueHandle | None, device: SharedDevice, tenants: "
           "tuple[Demand, ...]) -> tuple[numpy.typing.NDArray[numpy.float32], "
           "numpy.typing.NDArray[numpy.float32]]")
      .def("slowdown_rows", &SlowdownRows, py::arg("catalogue").none(true), py::arg("device"), py::arg("tenants"),
           py::arg("progress"),
           "slowdown_rows(self, catalogue: CatalogueHandle | None, device: SharedDevice, tenants: "
           "numpy.typing.NDArray[numpy.void], progress: collections.abc.Callable[[float], object] | None) -> "
           "tuple[numpy.typing.NDArray[numpy.float32], numpy.typing.NDArray[numpy.float32]]")
      .def("quantile", &Quantile, py::arg("catalogue").none(true), py::arg("device"), py::arg("tenants"),
           py::arg("probability"),
           "quantile(self, catalogue: CatalogueHandle | None, device: SharedDevice, tenants: "
           "tuple[Demand, ...], probability: float) -> tuple[numpy.typing.NDArray[numpy.float32], "
           "numpy.typing.NDArray[numpy.bool_]]")
      .def("measured", &Measured, py::arg("catalogue").none(true), py::arg("device"), py::arg("tenants"),
           "measured(self, catalogue: CatalogueHandle | None, device: SharedDevice, tenants: "
           "tuple[Demand, ...]) -> numpy.typing.NDArray[numpy.bool_]")
      .def("changes", &Changes, "changes(self) -> list[tuple[str, str, int]]")
      .def(
          "name", [](const InterferenceHandle& i) { return InfoOf(i).name; }, "name(self) -> str")
      .def(
          "epoch", [](const InterferenceHandle& i) { return InfoOf(i).epoch; }, "epoch(self) -> int")
      .def(
          "bytes_held", [](const InterferenceHandle& i) { return horus_interference_bytes_held(i.get()); },
          "bytes_held(self) -> int");
}

}  // namespace horus_python
