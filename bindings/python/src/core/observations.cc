// SPDX-License-Identifier: Apache-2.0
// What running jobs were seen to take and to lose.
#include <array>

#include "cluster.h"
#include "columns.h"
#include "interference.h"

namespace horus_python {
namespace {

using Observations = std::unique_ptr<ObservationsHandle>;

Observations Create(size_t capacity) {
  return Make<ObservationsHandle, horus_observations>(
      [&](horus_observations** out, horus_error* error) { return horus_observations_create(capacity, out, error); });
}

Observations Restore(const py::buffer& source) {
  const Bytes bytes(source, "snapshot");
  return Make<ObservationsHandle, horus_observations>([&](horus_observations** out, horus_error* error) {
    return horus_observations_restore(bytes.data(), bytes.size(), out, error);
  });
}

py::bytes Snapshot(const ObservationsHandle& observations) {
  return ToBytes(Collect<char>([&](size_t capacity, char* data, size_t* count, horus_error* error) {
    return observations.Read(error, [&](horus_error* e) {
      return horus_observations_snapshot(observations.get(), capacity, data, count, e);
    });
  }));
}

// None = not measured.
horus_demand_observation TakenOf(std::optional<double> gpu_util_pct, std::optional<double> mem_bw_util_pct,
                                 std::optional<double> mem_mib, std::optional<double> step_time_us) {
  horus_demand_observation seen = HORUS_DEMAND_OBSERVATION_INIT;
  seen.gpu_util_pct = gpu_util_pct.value_or(0);
  seen.mem_bw_util_pct = mem_bw_util_pct.value_or(0);
  seen.mem_mib = mem_mib.value_or(0);
  seen.step_time_us = step_time_us.value_or(0);
  seen.measured = (gpu_util_pct ? HORUS_OBSERVED_GPU_UTIL : 0) | (mem_bw_util_pct ? HORUS_OBSERVED_MEM_BW_UTIL : 0) |
                  (mem_mib ? HORUS_OBSERVED_MEMORY : 0) | (step_time_us ? HORUS_OBSERVED_STEP_TIME : 0);
  return seen;
}

void AddDemand(const ObservationsHandle& observations, const CatalogueHandle* catalogue, uint64_t profile_id,
               const std::string& gpu_type, std::optional<double> gpu_util_pct, std::optional<double> mem_bw_util_pct,
               std::optional<double> mem_mib, std::optional<double> step_time_us) {
  horus_demand_observation seen = TakenOf(gpu_util_pct, mem_bw_util_pct, mem_mib, step_time_us);
  seen.profile_id = profile_id;
  seen.gpu_type = gpu_type.c_str();
  Run([&](horus_error* error) {
    return observations.Write(error, [&](horus_error* e) {
      return horus_observations_add_demand(observations.get(), Of(catalogue), &seen, e);
    });
  });
}

void AddSlowdown(const ObservationsHandle& observations, const CatalogueHandle* catalogue, const SharedDevice& device,
                 const Demand& job, const py::tuple& co_tenants, double slowdown, double predicted,
                 double predicted_upper, uint64_t device_id) {
  const std::vector<const horus_demand*> others = PointersOf<Demand, horus_demand>(co_tenants, "co_tenants");
  horus_slowdown_observation seen = HORUS_SLOWDOWN_OBSERVATION_INIT;
  seen.sharing_mode = device.sharing_mode;
  seen.gpu_type = device.gpu_type.c_str();
  seen.compute_share = device.compute_share;
  seen.job = &job;
  seen.co_tenant_count = others.size();
  seen.co_tenants = others.data();
  seen.slowdown = slowdown;
  seen.predicted = predicted;
  seen.predicted_upper = predicted_upper;
  seen.device_id = device_id;
  Run([&](horus_error* error) {
    return observations.Write(error, [&](horus_error* e) {
      return horus_observations_add_slowdown(observations.get(), Of(catalogue), &seen, e);
    });
  });
}

// What was seen of a resident where it is; None = not measured.
void AddResident(const ObservationsHandle& observations, const ClusterHandle& cluster, uint64_t job, const Slot& slot,
                 std::optional<double> slowdown, double predicted, double predicted_upper, uint64_t device_id,
                 std::optional<double> gpu_util_pct, std::optional<double> mem_bw_util_pct,
                 std::optional<double> mem_mib, std::optional<double> step_time_us) {
  horus_demand_observation taken = TakenOf(gpu_util_pct, mem_bw_util_pct, mem_mib, step_time_us);
  taken.cluster = cluster.get();
  taken.job_id = job;
  taken.node_id = slot.node;
  taken.device = slot.device;
  horus_slowdown_observation lost = HORUS_SLOWDOWN_OBSERVATION_INIT;
  lost.cluster = cluster.get();
  lost.job_id = job;
  lost.node_id = slot.node;
  lost.device = slot.device;
  lost.slowdown = slowdown.value_or(0);
  lost.predicted = predicted;
  lost.predicted_upper = predicted_upper;
  lost.device_id = device_id;
  const auto add = [&](horus_error* e) {
    if (slowdown) {
      const horus_status status = horus_observations_add_slowdown(observations.get(), nullptr, &lost, e);
      if (status != HORUS_OK || taken.measured == 0) return status;
    }
    return horus_observations_add_demand(observations.get(), nullptr, &taken, e);
  };
  Run([&](horus_error* error) {
    return observations.Write(error, [&](horus_error* e) { return cluster.Read(e, add); });
  });
}

py::dict Calibration(const ObservationsHandle& observations) {
  horus_calibration c = HORUS_CALIBRATION_INIT;
  Run([&](horus_error* error) {
    return observations.Read(
        error, [&](horus_error* e) { return horus_observations_get_calibration(observations.get(), &c, e); });
  });
  py::dict out;
  out["predictions"] = c.predictions;
  out["error"] = c.error;
  out["bias"] = c.bias;
  out["bounds"] = c.bounds;
  out["covered"] = c.covered;
  return out;
}

py::dict Devices(const ObservationsHandle& observations) {
  std::vector<uint64_t> devices, profiles, times;
  std::vector<double> observed, predicted, upper;
  const auto read = [&](horus_error* error) {
    size_t count = 0;
    const horus_status status = horus_observations_get_devices(observations.get(), 0, nullptr, nullptr, nullptr,
                                                               nullptr, nullptr, nullptr, &count, error);
    if (status != HORUS_OK && status != HORUS_ERR_BUFFER_TOO_SMALL) return status;
    for (auto* column : {&devices, &profiles, &times}) column->resize(count);
    for (auto* column : {&observed, &predicted, &upper}) column->resize(count);
    return horus_observations_get_devices(observations.get(), count, devices.data(), profiles.data(), observed.data(),
                                          predicted.data(), upper.data(), times.data(), &count, error);
  };
  Run([&](horus_error* error) { return observations.Read(error, read); });  // both calls: nobody may come between
  py::dict out;
  out["device_id"] = ToArray(devices);
  out["profile_id"] = ToArray(profiles);
  out["observed"] = ToArray(observed);
  out["predicted"] = ToArray(predicted);
  out["predicted_upper"] = ToArray(upper);
  out["times"] = ToArray(times);
  return out;
}

uint64_t BytesHeld(const ObservationsHandle& observations) {
  uint64_t bytes = 0;
  Run([&](horus_error* error) {
    return observations.Read(error, [&](horus_error* /*e*/) {
      bytes = horus_observations_bytes_held(observations.get());
      return horus_status{HORUS_OK};
    });
  });
  return bytes;
}

}  // namespace

void BindObservations(py::module_& m) {
  Class<ObservationsHandle>(m, "ObservationsHandle")
      .def(py::init(&Create), py::arg("capacity"), "__init__(self, capacity: int) -> None")
      .def_static("restore", &Restore, py::arg("snapshot"),
                  "restore(snapshot: collections.abc.Buffer) -> ObservationsHandle")
      .def("snapshot", &Snapshot, "snapshot(self) -> bytes")
      .def("add_demand", &AddDemand, py::arg("catalogue").none(true), py::arg("profile_id"), py::arg("gpu_type"),
           py::arg("gpu_util_pct"), py::arg("mem_bw_util_pct"), py::arg("mem_mib"), py::arg("step_time_us"),
           "add_demand(self, catalogue: CatalogueHandle | None, profile_id: int, gpu_type: str, gpu_util_pct: float | "
           "None, mem_bw_util_pct: float | None, mem_mib: float | None, step_time_us: float | None) -> None")
      .def("add_slowdown", &AddSlowdown, py::arg("catalogue").none(true), py::arg("device"), py::arg("job"),
           py::arg("co_tenants"), py::arg("slowdown"), py::arg("predicted"), py::arg("predicted_upper"),
           py::arg("device_id"),
           "add_slowdown(self, catalogue: CatalogueHandle | None, device: SharedDevice, job: Demand, co_tenants: "
           "tuple[Demand, ...], slowdown: float, predicted: float, predicted_upper: float, device_id: "
           "int) -> None")
      .def(
          "add_resident", &AddResident, py::arg("cluster"), py::arg("job"), py::arg("slot"), py::arg("slowdown"),
          py::arg("predicted"), py::arg("predicted_upper"), py::arg("device_id"), py::arg("gpu_util_pct"),
          py::arg("mem_bw_util_pct"), py::arg("mem_mib"), py::arg("step_time_us"),
          "add_resident(self, cluster: ClusterHandle, job: int, slot: Slot, slowdown: float | None, predicted: float, "
          "predicted_upper: float, device_id: int, gpu_util_pct: float | None, mem_bw_util_pct: float | None, mem_mib: "
          "float | None, step_time_us: float | None) -> None")
      .def("calibration", &Calibration, "calibration(self) -> dict[str, float]")
      .def("devices", &Devices, "devices(self) -> dict[str, numpy.typing.NDArray[typing.Any]]")
      .def("bytes_held", &BytesHeld, "bytes_held(self) -> int");
}

}  // namespace horus_python
