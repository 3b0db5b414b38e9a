// SPDX-License-Identifier: Apache-2.0
// Queues alone. Calls are short and keep the interpreter's lock, so that threads may share a queue.
#include <algorithm>

#include "columns.h"
#include "record.h"

namespace horus_python {
namespace {

using horus::QueuedJob, horus::QueueOptions;
using QueueHandle = Handle<horus_queue, horus_queue_free>;

template <typename Function>
void RunHeld(const Function& function) {
  horus_error error = HORUS_ERROR_INIT;
  const horus_status status = function(&error);
  if (status != HORUS_OK) Raise(status, error.message);
}

std::unique_ptr<QueueHandle> Create(const std::string& discipline, const QueueOptions& options) {
  const horus_queue_options c = horus::detail::ToC(options);
  return Make<QueueHandle, horus_queue>(
      [&](horus_queue** out, horus_error* error) { return horus_queue_create(discipline.c_str(), &c, out, error); });
}

void Push(const QueueHandle& queue, const QueuedJob& job) {
  RunHeld([&](horus_error* error) { return horus_queue_push(queue.get(), &job, error); });
}

void Remove(const QueueHandle& queue, uint64_t id) {
  RunHeld([&](horus_error* error) { return horus_queue_remove(queue.get(), id, error); });
}

void Serve(const QueueHandle& queue, uint64_t id, int64_t now_us) {
  RunHeld([&](horus_error* error) { return horus_queue_serve(queue.get(), id, now_us, error); });
}

void Update(const QueueHandle& queue, uint64_t id, int64_t attained_gpu_us, int64_t remaining_us) {
  RunHeld(
      [&](horus_error* error) { return horus_queue_update(queue.get(), id, attained_gpu_us, remaining_us, error); });
}

QueuedJob Get(const QueueHandle& queue, uint64_t id) {
  QueuedJob job;
  RunHeld([&](horus_error* error) { return horus_queue_get_job(queue.get(), id, &job, error); });
  return job;
}

horus_queue_info InfoOf(const QueueHandle& queue) {
  horus_queue_info info = HORUS_QUEUE_INFO_INIT;
  RunHeld([&](horus_error* error) { return horus_queue_get_info(queue.get(), &info, error); });
  return info;
}

py::array_t<uint64_t> Window(const QueueHandle& queue, int64_t now_us, size_t capacity) {
  std::vector<uint64_t> ids(std::min<size_t>(capacity, InfoOf(queue).jobs));
  size_t count = 0;
  RunHeld([&](horus_error* error) {
    return horus_queue_window(queue.get(), now_us, ids.size(), ids.data(), &count, error);
  });
  ids.resize(count);
  return ToArray(ids);
}

std::optional<uint64_t> Pop(const QueueHandle& queue, int64_t now_us) {
  uint64_t id = 0;
  size_t count = 0;
  RunHeld([&](horus_error* error) { return horus_queue_pop(queue.get(), now_us, &id, &count, error); });
  return count == 0 ? std::nullopt : std::optional<uint64_t>(id);
}

void SetCapacity(const QueueHandle& queue, int64_t gpu_milli, int64_t cpu_milli, int64_t mem_mib) {
  RunHeld(
      [&](horus_error* error) { return horus_queue_set_capacity(queue.get(), gpu_milli, cpu_milli, mem_mib, error); });
}

void SetOwnerUsage(const QueueHandle& queue, uint64_t owner, int64_t gpu_milli, int64_t cpu_milli, int64_t mem_mib) {
  RunHeld([&](horus_error* error) {
    return horus_queue_set_owner_usage(queue.get(), owner, gpu_milli, cpu_milli, mem_mib, error);
  });
}

void BindRecords(py::module_& m) {
  Record<QueueOptions>(m, "QueueOptions",
                       "Options of a queue discipline; what a discipline does not read it only checks.")
      .Field("clusters", &QueueOptions::clusters, "horus-plus: 3 to 5; 0 = 4")
      .Field(
          "gpu_milli", [](auto& options) -> auto& { return options.capacity.gpu_milli; },
          "drf, tetris: the cluster, in thousandths of a GPU")
      .Field(
          "cpu_milli", [](auto& options) -> auto& { return options.capacity.cpu_milli; },
          "likewise, in thousandths of a core")
      .Field(
          "mem_mib", [](auto& options) -> auto& { return options.capacity.mem_mib; }, "likewise, host memory")
      .Field("las_thresholds_gpu_us", &QueueOptions::las_thresholds_gpu_us,
             "las: attained service that ends each queue, ascending; empty = one of 3,250 s")
      .Field("las_continuous", &QueueOptions::las_continuous, "las: by attained service itself")
      .Field("aging_us_per_pct", &QueueOptions::aging_us_per_pct,
             "horus, horus-plus: waiting that outweighs one per cent of utilisation; 0 = the default, -1 = none")
      .Field("recluster_share", &QueueOptions::recluster_share,
             "horus-plus: changes, as a share of the queue, that make it cluster anew; 0 = 0.25")
      .Field("patience_us", &QueueOptions::patience_us, "who has waited so long goes first; 0 = never");
  Record<QueuedJob>(m, "QueuedJob", "A job that waits. Run times are predictions for the job alone on its GPUs.")
      .Field("id", &QueuedJob::id, "the caller's; unique in the queue")
      .Field("priority", &QueuedJob::priority, "higher first, before every discipline")
      .Field("owner", &QueuedJob::owner, "the caller's number; read by drf")
      .Field("submit_us", &QueuedJob::submit_us, "waits since then")
      .Field("tasks", &QueuedJob::tasks, "0 = 1")
      .Field("gpus", &QueuedJob::gpus, "of all tasks together; 0 = one a task, -1 = a job for the host alone")
      .Field("gpu_milli", &QueuedJob::gpu_milli, "of each of them; 0 = 1000")
      .Field("cpu_milli", &QueuedJob::cpu_milli, "of all tasks together")
      .Field("mem_mib", &QueuedJob::mem_mib, "host memory of all tasks together")
      .Field("gpu_util_pct", &QueuedJob::gpu_util_pct, "predicted mean per GPU; read by horus, horus-plus")
      .Field("gpu_util_pct_upper", &QueuedJob::gpu_util_pct_upper, "its bound; 0 = the mean")
      .Field("gpu_mem_mib", &QueuedJob::gpu_mem_mib, "predicted mean per GPU; read by horus-plus")
      .Field("gpu_mem_mib_upper", &QueuedJob::gpu_mem_mib_upper, "its bound; 0 = the mean")
      .Field("total_us", &QueuedJob::total_us, "from start to end; 0 = unknown")
      .Field("remaining_us", &QueuedJob::remaining_us, "of it; 0 and -1 = total_us; as answer 0 = nothing is left")
      .Field("attained_gpu_us", &QueuedJob::attained_gpu_us, "service so far: GPUs x time; read by las")
      .Field("deadline_us", &QueuedJob::deadline_us, "0 = none; read by edf")
      .Field("ideal_us", &QueuedJob::ideal_us, "submission to end with a fair share; 0 = total_us; read by ftf");
}

}  // namespace

void BindQueue(py::module_& m) {
  BindRecords(m);
  Class<QueueHandle>(m, "QueueHandle")
      .def(py::init(&Create), py::arg("discipline"), py::arg("options"),
           "__init__(self, discipline: str, options: QueueOptions) -> None")
      .def("push", &Push, py::arg("job"), "push(self, job: QueuedJob) -> None")
      .def("remove", &Remove, py::arg("id"), "remove(self, id: int) -> None")
      .def("serve", &Serve, py::arg("id"), py::arg("now_us"), "serve(self, id: int, now_us: int) -> None")
      .def("update", &Update, py::arg("id"), py::arg("attained_gpu_us"), py::arg("remaining_us"),
           "update(self, id: int, attained_gpu_us: int, remaining_us: int) -> None")
      .def("get", &Get, py::arg("id"), "get(self, id: int) -> QueuedJob")
      .def("window", &Window, py::arg("now_us"), py::arg("capacity"),
           "window(self, now_us: int, capacity: int) -> numpy.typing.NDArray[numpy.uint64]")
      .def("pop", &Pop, py::arg("now_us"), "pop(self, now_us: int) -> int | None")
      .def("set_capacity", &SetCapacity, py::arg("gpu_milli"), py::arg("cpu_milli"), py::arg("mem_mib"),
           "set_capacity(self, gpu_milli: int, cpu_milli: int, mem_mib: int) -> None")
      .def("set_owner_usage", &SetOwnerUsage, py::arg("owner"), py::arg("gpu_milli"), py::arg("cpu_milli"),
           py::arg("mem_mib"),
           "set_owner_usage(self, owner: int, gpu_milli: int, cpu_milli: int, mem_mib: int) -> None")
      .def(
          "look_ahead", [](const QueueHandle& q) { return InfoOf(q).look_ahead; }, "look_ahead(self) -> int")
      .def(
          "__len__", [](const QueueHandle& q) { return InfoOf(q).jobs; }, "__len__(self) -> int")
      .def(
          "bytes_held", [](const QueueHandle& q) { return horus_queue_bytes_held(q.get()); },
          "bytes_held(self) -> int");
  m.def(
      "queue_names", [] { return horus::detail::List(horus::GetLibraryInfo().disciplines); },
      "queue_names() -> list[str]");
}

}  // namespace horus_python
