// SPDX-License-Identifier: Apache-2.0
// Training: predictors on measured runs, interference models on measured pairs.
#include "columns.h"
#include "interference.h"
#include "record.h"

namespace horus_python {
namespace {

void SameRows(const char* what, size_t found, size_t rows) {
  if (found != rows) Refuse(what, std::to_string(rows) + " rows, as graphs", std::to_string(found));
}

// `measured`: columns of float64 by name; NaN in a row = not measured there.
std::unique_ptr<PredictorHandle> FitPredictor(const CatalogueHandle* catalogue, const py::tuple& graphs,
                                              const py::tuple& runs, const std::vector<std::string>& gpu_types,
                                              const std::vector<std::string>& families, const py::dict& measured,
                                              int32_t rounds, double promise, uint32_t seed, const std::string& library,
                                              const PredictorHandle* base, const py::object& progress) {
  std::vector<const horus_graph*> handles;
  for (size_t i = 0; i < graphs.size(); ++i)
    handles.push_back(py::cast<const GraphHandle&>(py::object(graphs[i])).get());
  const size_t rows = handles.size();
  SameRows("runs", runs.size(), rows);
  SameRows("gpu_types", gpu_types.size(), rows);
  SameRows("families", families.size(), rows);
  std::vector<std::unique_ptr<horus::detail::CRunSpec>> owned;
  std::vector<const horus_run_spec*> specs;
  for (const RunSpec* run : PointersOf<RunSpec>(runs, "runs")) {
    owned.push_back(std::make_unique<horus::detail::CRunSpec>(*run));
    specs.push_back(owned.back()->get());
  }
  std::vector<py::object> held;
  std::vector<const double*> columns;
  for (const char* name : kQuantities) {
    const py::object given = measured.contains(name) ? py::object(measured[name]) : py::none();
    columns.push_back(MaybeColumn<double>(given, name, static_cast<py::ssize_t>(rows)).data());
    held.push_back(given);
  }
  const std::vector<const char*> types = Texts(gpu_types), family_texts = Texts(families);
  const horus_training_data data = {sizeof(horus_training_data),
                                    0,
                                    rows,
                                    handles.data(),
                                    specs.data(),
                                    types.data(),
                                    family_texts.data(),
                                    nullptr,
                                    columns[0],
                                    columns[1],
                                    columns[2],
                                    columns[3],
                                    columns[4],
                                    columns[5]};
  horus_training_options options = HORUS_TRAINING_OPTIONS_INIT;
  options.rounds = rounds;
  options.promise = promise;
  options.seed = seed;
  options.library_path = horus::detail::TextOrNull(library);
  options.base = base == nullptr ? nullptr : base->get();
  Progress tell(progress);
  return Make<PredictorHandle, horus_predictor>([&](horus_predictor** out, horus_error* error) {
    return horus_predictor_fit(Of(catalogue), &data, &options, &Progress::Tell, &tell, out, error);
  });
}

// Devices, jobs and runs as docs of horus_pair_data say; `demands` is [jobs x devices].
std::unique_ptr<InterferenceHandle> FitInterference(
    const CatalogueHandle* catalogue, const std::vector<std::string>& gpu_types, const std::vector<std::string>& modes,
    const std::vector<std::string>& families, const py::object& demands, const py::object& devices,
    const py::object& jobs_a, const py::object& jobs_b, const py::object& slowdown_a, const py::object& slowdown_b,
    const std::string& model, double promise, uint32_t seed, const std::string& library, const py::object& progress) {
  const DemandArray all = DemandColumn(demands, "demands");
  const size_t kinds = gpu_types.size();
  if (all.ndim() != 2 || static_cast<size_t>(all.shape(0)) != families.size() ||
      static_cast<size_t>(all.shape(1)) != kinds) {
    Refuse("demands", "[" + std::to_string(families.size()) + " jobs x " + std::to_string(kinds) + " devices]",
           py::cast<std::string>(py::str(demands.attr("shape"))));
  }
  if (modes.size() != kinds) Refuse("sharing_modes", std::to_string(kinds) + " rows", std::to_string(modes.size()));
  const auto where = Column<uint32_t>(devices, "device");
  const py::ssize_t rows = where.size();
  const auto a = Column<uint32_t>(jobs_a, "job_a", rows), b = Column<uint32_t>(jobs_b, "job_b", rows);
  const auto slow_a = Column<double>(slowdown_a, "slowdown_a", rows),
             slow_b = Column<double>(slowdown_b, "slowdown_b", rows);
  std::vector<const horus_demand*> pointers;
  for (py::ssize_t i = 0; i < all.size(); ++i) pointers.push_back(all.data() + i);
  std::vector<int32_t> numbers;
  for (const std::string& mode : modes) numbers.push_back(NumberOf(kSharingModes, py::str(mode), "sharing_modes"));
  const std::vector<const char*> types = Texts(gpu_types), family_texts = Texts(families);
  horus_pair_data data = HORUS_PAIR_DATA_INIT;
  data.device_count = kinds;
  data.gpu_types = types.data();
  data.sharing_modes = numbers.data();
  data.job_count = families.size();
  data.families = family_texts.data();
  data.demands = pointers.data();
  data.count = static_cast<size_t>(rows);
  data.devices = where.data();
  data.jobs_a = a.data();
  data.jobs_b = b.data();
  data.slowdown_a = slow_a.data();
  data.slowdown_b = slow_b.data();
  const horus_pair_options options = {sizeof(horus_pair_options), seed, model.c_str(), promise,
                                      horus::detail::TextOrNull(library)};
  Progress tell(progress);
  return Make<InterferenceHandle, horus_interference>([&](horus_interference** out, horus_error* error) {
    return horus_interference_fit(Of(catalogue), &data, &options, &Progress::Tell, &tell, out, error);
  });
}

}  // namespace

void BindLearn(py::module_& m) {
  m.def(
      "fit_predictor", &FitPredictor, py::arg("catalogue").none(true), py::arg("graphs"), py::arg("runs"),
      py::arg("gpu_types"), py::arg("families"), py::arg("measured"), py::arg("rounds"), py::arg("promise"),
      py::arg("seed"), py::arg("library"), py::arg("base").none(true), py::arg("progress"),
      "fit_predictor(catalogue: CatalogueHandle | None, graphs: tuple[GraphHandle, ...], runs: "
      "tuple[RunSpec, ...], gpu_types: collections.abc.Sequence[str], families: "
      "collections.abc.Sequence[str], measured: dict[str, numpy.typing.NDArray[numpy.float64]], rounds: int, promise: "
      "float, seed: int, library: str, base: PredictorHandle | None, progress: "
      "collections.abc.Callable[[float], object] | None) -> PredictorHandle");
  m.def("fit_interference", &FitInterference, py::arg("catalogue").none(true), py::arg("gpu_types"),
        py::arg("sharing_modes"), py::arg("families"), py::arg("demands"), py::arg("devices"), py::arg("jobs_a"),
        py::arg("jobs_b"), py::arg("slowdown_a"), py::arg("slowdown_b"), py::arg("model"), py::arg("promise"),
        py::arg("seed"), py::arg("library"), py::arg("progress"),
        "fit_interference(catalogue: CatalogueHandle | None, gpu_types: collections.abc.Sequence[str], sharing_modes: "
        "collections.abc.Sequence[str], families: collections.abc.Sequence[str], demands: "
        "numpy.typing.NDArray[numpy.void], devices: numpy.typing.NDArray[numpy.uint32], jobs_a: "
        "numpy.typing.NDArray[numpy.uint32], jobs_b: numpy.typing.NDArray[numpy.uint32], slowdown_a: "
        "numpy.typing.NDArray[numpy.float64], slowdown_b: numpy.typing.NDArray[numpy.float64], model: str, promise: "
        "float, seed: int, library: str, progress: collections.abc.Callable[[float], object] | None) -> "
        "InterferenceHandle");
}

}  // namespace horus_python
