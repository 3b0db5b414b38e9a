// SPDX-License-Identifier: Apache-2.0
// Metrics: counters, and a log that a Python function hears.
#include <chrono>

#include "cluster.h"
#include "placer.h"

namespace horus_python {
namespace {

using MetricsHandle = Handle<horus_metrics, horus_metrics_free>;

uint64_t NowNs(void* /*user*/) {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

// The call that it tells about is over: errors of the function have nobody to go to. What is no Exception (Ctrl-C,
// exit) is meant for the caller.
void TellPython(void* user, int32_t level, const char* text) {
  (void)Callback([&] {
    const auto log = py::reinterpret_borrow<py::object>(static_cast<PyObject*>(user));
    const auto line = py::reinterpret_steal<py::str>(
        PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::strlen(text)), "replace"));
    const py::str whose("the log of a horus.Metrics");
    py::object answer;
    try {
      answer = CallPython(log, level, line);
    } catch (py::error_already_set& raised) {
      if (!raised.matches(PyExc_Exception)) throw;
      raised.restore();
    }
    if (PyErr_Occurred() != nullptr) OrWait([&] { PyErr_WriteUnraisable(whose.ptr()); });  // not within the catch block
    Forget(answer);
    return 0;
  });
}

std::unique_ptr<MetricsHandle> MakeMetrics(const py::object& log, int32_t level, bool times) {
  horus_metrics_options options = HORUS_METRICS_OPTIONS_INIT;
  options.log_level = level;
  options.log = log.is_none() ? nullptr : &TellPython;
  options.log_user = log.ptr();
  options.clock = times ? &NowNs : nullptr;
  return Make<MetricsHandle, horus_metrics>(
      [&](horus_metrics** out, horus_error* error) { return horus_metrics_create(&options, out, error); }, {log});
}

py::tuple MetricRows(const MetricsHandle& metrics) {
  std::vector<const char*> names, labels;
  std::vector<int32_t> kinds;
  std::vector<double> values;
  horus_metric_columns columns = HORUS_METRIC_COLUMNS_INIT;
  size_t count = 0;
  Run([&](horus_error* error) {
    for (;;) {  // rows appear while others count
      const horus_status status = horus_metrics_get(metrics.get(), &columns, &count, error);
      if (status != HORUS_OK && status != HORUS_ERR_BUFFER_TOO_SMALL) return status;
      if (status == HORUS_OK && count <= names.size()) return status;
      names.resize(count);
      labels.resize(count);
      kinds.resize(count);
      values.resize(count);
      columns = {sizeof(horus_metric_columns), 0, count, names.data(), labels.data(), kinds.data(), values.data()};
    }
  });
  py::list rows;
  for (size_t i = 0; i < count; ++i) rows.append(py::make_tuple(names[i], labels[i], kinds[i], values[i]));
  return py::tuple(rows);
}

py::str MetricsText(const MetricsHandle& metrics) {
  const std::vector<char> text = Collect<char>([&](size_t capacity, char* to, size_t* count, horus_error* error) {
    return horus_metrics_text(metrics.get(), capacity, to, count, error);
  });
  return py::str(text.data());
}

// The handle keeps the metrics as long as it tells it; what it kept before goes once nothing tells that any more.
template <typename H, typename Set>
void TellTo(const MetricsHandle* metrics, const H& handle, const Set& set) {
  py::object told = metrics == nullptr ? py::object() : py::cast(metrics);
  Run([&](horus_error* error) {
    return handle.Write(error, [&](horus_error* e) {
      const horus_status status = set(handle.get(), metrics == nullptr ? nullptr : metrics->get(), e);
      if (status == HORUS_OK) told = py::reinterpret_steal<py::object>(handle.KeepTold(told.release().ptr()));
      return status;
    });
  });
}

void MeterCluster(const MetricsHandle* metrics, const ClusterHandle& cluster) {
  TellTo(metrics, cluster, &horus_cluster_set_metrics);
}
void MeterPlacer(const MetricsHandle* metrics, const PlacerHandle& placer) {
  TellTo(metrics, placer, &horus_placer_set_metrics);
}
void MeterPredictor(const MetricsHandle* metrics, const PredictorHandle& predictor) {
  TellTo(metrics, predictor, &horus_predictor_set_metrics);
}

}  // namespace

void BindMetrics(py::module_& m) {
  Class<MetricsHandle>(m, "MetricsHandle")
      .def(py::init(&MakeMetrics), py::arg("log").none(true), py::arg("level"), py::arg("times"),
           "__init__(self, log: collections.abc.Callable[[int, str], object] | None, level: int, times: bool) -> None")
      .def("rows", &MetricRows, "rows(self) -> tuple[tuple[str, str, int, float], ...]")
      .def("text", &MetricsText, "text(self) -> str");
  m.def("meter_cluster", &MeterCluster, py::arg("metrics").none(true), py::arg("cluster"),
        "meter_cluster(metrics: MetricsHandle | None, cluster: ClusterHandle) -> None");
  m.def("meter_placer", &MeterPlacer, py::arg("metrics").none(true), py::arg("placer"),
        "meter_placer(metrics: MetricsHandle | None, placer: PlacerHandle) -> None");
  m.def("meter_predictor", &MeterPredictor, py::arg("metrics").none(true), py::arg("predictor"),
        "meter_predictor(metrics: MetricsHandle | None, predictor: PredictorHandle) -> None");
}

}  // namespace horus_python
