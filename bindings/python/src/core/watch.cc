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
  const Held held;
  const InCallback inside;
  try {
    const auto log = py::reinterpret_borrow<py::object>(static_cast<PyObject*>(user));
    (void)CallPython(log, level,
                     py::reinterpret_steal<py::str>(
                         PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::strlen(text)), "replace")));
  } catch (py::error_already_set& raised) {
    if (!raised.matches(PyExc_Exception)) {
      Pending::Keep();
    } else {
      raised.discard_as_unraisable("the log of a horus.Watch");
    }
  }
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

const horus_watch* HandleOfWatch(const WatchHandle* watch) { return watch == nullptr ? nullptr : watch->get(); }

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

void WatchCluster(const WatchHandle* watch, const ClusterHandle& cluster) {
  Run([&](horus_error* error) {
    return cluster.Write(
        error, [&](horus_error* e) { return horus_cluster_set_watch(cluster.get(), HandleOfWatch(watch), e); });
  });
}
void WatchPlacer(const WatchHandle* watch, const PlacerHandle& placer) {
  Run([&](horus_error* error) {
    return placer.Write(error,
                        [&](horus_error* e) { return horus_placer_set_watch(placer.get(), HandleOfWatch(watch), e); });
  });
}
void WatchPredictor(const WatchHandle* watch, const PredictorHandle& predictor) {
  Run([&](horus_error* error) {
    return predictor.Write(
        error, [&](horus_error* e) { return horus_predictor_set_watch(predictor.get(), HandleOfWatch(watch), e); });
  });
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
