// SPDX-License-Identifier: Apache-2.0
// Watches: counters, and a log that a Python function hears.
#include <chrono>

#include "cluster.h"
#include "placer.h"

namespace horus_python {
namespace {

using WatchHandle = Handle<horus_watch, horus_watch_free>;

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
    const py::str whose("the log of a horus.Watch");
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

std::unique_ptr<WatchHandle> MakeWatch(const py::object& log, int32_t level, bool times) {
  horus_watch_options options = HORUS_WATCH_OPTIONS_INIT;
  options.log_level = level;
  options.log = log.is_none() ? nullptr : &TellPython;
  options.log_user = log.ptr();
  options.clock = times ? &NowNs : nullptr;
  return Make<WatchHandle, horus_watch>(
      [&](horus_watch** out, horus_error* error) { return horus_watch_create(&options, out, error); }, {log});
}

py::tuple MetricRows(const WatchHandle& watch) {
  std::vector<const char*> names, labels;
  std::vector<int32_t> kinds;
  std::vector<double> values;
  horus_metrics columns = HORUS_METRICS_INIT;
  size_t count = 0;
  Run([&](horus_error* error) {
    for (;;) {  // rows appear while others count
      const horus_status status = horus_watch_metrics(watch.get(), &columns, &count, error);
      if (status != HORUS_BUFFER_TOO_SMALL) return status;
      names.resize(count);
      labels.resize(count);
      kinds.resize(count);
      values.resize(count);
      columns = {sizeof(horus_metrics), 0, count, names.data(), labels.data(), kinds.data(), values.data()};
    }
  });
  py::list rows;
  for (size_t i = 0; i < count; ++i) rows.append(py::make_tuple(names[i], labels[i], kinds[i], values[i]));
  return py::tuple(rows);
}

py::str MetricsText(const WatchHandle& watch) {
  const std::vector<char> text = Collect<char>([&](size_t capacity, char* to, size_t* count, horus_error* error) {
    return horus_watch_text(watch.get(), capacity, to, count, error);
  });
  return py::str(text.data());
}

// The handle keeps the watch as long as it tells it; what it kept before goes once nothing tells that any more.
template <typename H, typename Set>
void TellTo(const WatchHandle* watch, const H& handle, const Set& set) {
  py::object told = watch == nullptr ? py::object() : py::cast(watch);
  Run([&](horus_error* error) {
    return handle.Write(error, [&](horus_error* e) {
      const horus_status status = set(handle.get(), watch == nullptr ? nullptr : watch->get(), e);
      if (status == HORUS_OK) told = py::reinterpret_steal<py::object>(handle.KeepTold(told.release().ptr()));
      return status;
    });
  });
}

void WatchCluster(const WatchHandle* watch, const ClusterHandle& cluster) {
  TellTo(watch, cluster, &horus_cluster_set_watch);
}
void WatchPlacer(const WatchHandle* watch, const PlacerHandle& placer) {
  TellTo(watch, placer, &horus_placer_set_watch);
}
void WatchPredictor(const WatchHandle* watch, const PredictorHandle& predictor) {
  TellTo(watch, predictor, &horus_predictor_set_watch);
}

}  // namespace

void BindWatch(py::module_& m) {
  Class<WatchHandle>(m, "WatchHandle")
      .def(py::init(&MakeWatch), py::arg("log").none(true), py::arg("level"), py::arg("times"),
           "__init__(self, log: collections.abc.Callable[[int, str], object] | None, level: int, times: bool) -> None")
      .def("rows", &MetricRows, "rows(self) -> tuple[tuple[str, str, int, float], ...]")
      .def("text", &MetricsText, "text(self) -> str");
  m.def("watch_cluster", &WatchCluster, py::arg("watch").none(true), py::arg("cluster"),
        "watch_cluster(watch: WatchHandle | None, cluster: ClusterHandle) -> None");
  m.def("watch_placer", &WatchPlacer, py::arg("watch").none(true), py::arg("placer"),
        "watch_placer(watch: WatchHandle | None, placer: PlacerHandle) -> None");
  m.def("watch_predictor", &WatchPredictor, py::arg("watch").none(true), py::arg("predictor"),
        "watch_predictor(watch: WatchHandle | None, predictor: PredictorHandle) -> None");
}

}  // namespace horus_python
