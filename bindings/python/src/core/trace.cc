// SPDX-License-Identifier: Apache-2.0
// Traces from columns, and truths: how fast jobs really run.
#include "columns.h"
#include "sim.h"

namespace horus_python {
namespace {

// A column of a dict, or null: the default for every row.
template <typename T>
const T* Given(const py::dict& columns, const char* name, py::ssize_t rows, std::vector<py::object>& held) {
  if (!columns.contains(name)) return nullptr;
  const auto column = Column<T>(py::object(columns[name]), name, rows);
  held.push_back(column);
  return column.data();
}

// Names in the order of their positions, and the positions.
struct Names {
  std::vector<std::string> texts;
  std::vector<const char*> pointers;
  Names(const py::dict& columns, const char* name) {
    if (columns.contains(name)) texts = Arg<std::vector<std::string>>::From(py::object(columns[name]), name);
    pointers = Texts(texts);
  }
};

std::unique_ptr<TraceHandle> CreateTrace(size_t rows, const py::dict& columns) {
  std::vector<py::object> held;
  const auto n = static_cast<py::ssize_t>(rows);
  const Names profiles(columns, "profile_names"), owners(columns, "owner_names"), types(columns, "type_lists");
  horus_trace_columns c = HORUS_TRACE_COLUMNS_INIT;
  c.count = rows;
  c.ids = Given<uint64_t>(columns, "id", n, held);
  c.submit_us = Given<int64_t>(columns, "submit_us", n, held);
  c.duration_us = Given<int64_t>(columns, "duration_us", n, held);
  c.steps = Given<int64_t>(columns, "steps", n, held);
  c.endless = Given<uint8_t>(columns, "endless", n, held);
  c.deadline_us = Given<int64_t>(columns, "deadline_us", n, held);
  c.tasks = Given<int32_t>(columns, "tasks", n, held);
  c.gpus_per_task = Given<int32_t>(columns, "gpus_per_task", n, held);
  c.gpu_milli = Given<int32_t>(columns, "gpu_milli", n, held);
  c.cpu_milli = Given<int64_t>(columns, "cpu_milli", n, held);
  c.mem_mib = Given<int64_t>(columns, "mem_mib", n, held);
  c.kinds = Given<int32_t>(columns, "kind", n, held);
  c.priorities = Given<int32_t>(columns, "priority", n, held);
  c.profiles = Given<uint32_t>(columns, "profile", n, held);
  c.owners = Given<uint32_t>(columns, "owner", n, held);
  c.gpu_types = Given<uint32_t>(columns, "gpu_types", n, held);
  c.profile_count = profiles.texts.size();
  c.profile_names = profiles.pointers.data();
  c.owner_count = owners.texts.size();
  c.owner_names = owners.pointers.data();
  c.type_list_count = types.texts.size();
  c.type_lists = types.pointers.data();
  return Make<TraceHandle, horus_trace>(
      [&](horus_trace** out, horus_error* error) { return horus_trace_create(&c, out, error); });
}

py::dict Summary(const TraceHandle& trace) {
  horus_trace_summary s = HORUS_TRACE_SUMMARY_INIT;
  Run([&](horus_error* error) { return horus_trace_get_summary(trace.get(), &s, error); });
  py::dict out;
  out["jobs"] = s.jobs;
  out["endless"] = s.endless;
  out["by_steps"] = s.by_steps;
  out["best_effort"] = s.best_effort;
  out["deadlines"] = s.deadlines;
  out["gpus"] = s.gpus;
  out["gangs"] = s.gangs;
  out["shares"] = s.shares;
  out["owners"] = s.owners;
  out["profiles"] = s.profiles;
  out["first_submit_us"] = s.first_submit_us;
  out["last_submit_us"] = s.last_submit_us;
  out["mean_gap_us"] = s.mean_gap_us;
  out["gap_scv"] = s.gap_scv;
  out["gpu_us"] = s.gpu_us;
  out["digest"] = s.digest;
  return out;
}

std::vector<std::string> Profiles(const TraceHandle& trace) {
  std::vector<std::string> names;
  for (size_t i = 0; i < horus_trace_profile_count(trace.get()); ++i)
    names.emplace_back(horus_trace_profile_name(trace.get(), i));
  return names;
}

std::unique_ptr<TruthHandle> FromModel(const CatalogueHandle* catalogue, const InterferenceHandle* model,
                                       const py::sequence& demands) {
  const CProfileDemands rows(demands, "demands");
  const horus_interference* c = model == nullptr ? nullptr : model->get();
  return Make<TruthHandle, horus_truth>(
      [&](horus_truth** out, horus_error* error) {
        return horus_truth_from_model(Of(catalogue), c, rows.get(), out, error);
      },
      model == nullptr ? std::vector<py::object>() : model->keeps());
}

const Word kMany[] = {{HORUS_TENANTS_ADD, "add"}, {HORUS_TENANTS_MULTIPLY, "multiply"}, {0, nullptr}};

std::unique_ptr<TruthHandle> FromSpeeds(const CatalogueHandle* catalogue, const std::vector<std::string>& gpu_types,
                                        const std::vector<std::string>& profiles, const py::object& alone,
                                        const py::dict& pairs, uint32_t reference, const py::object& many) {
  const auto speeds = Column<double>(alone, "alone", static_cast<py::ssize_t>(gpu_types.size() * profiles.size()));
  const std::vector<const char*> types = Texts(gpu_types), names = Texts(profiles);
  const py::ssize_t rows = pairs.contains("gpu") ? py::len(py::object(pairs["gpu"])) : 0;
  std::vector<py::object> held;
  horus_speeds c = HORUS_SPEEDS_INIT;
  c.reference = reference;
  c.gpu_count = types.size();
  c.gpu_types = types.data();
  c.profile_count = names.size();
  c.profiles = names.data();
  c.alone = speeds.data();
  c.pair_count = static_cast<size_t>(rows);
  c.pair_gpus = Given<uint32_t>(pairs, "gpu", rows, held);
  c.pairs_a = Given<uint32_t>(pairs, "a", rows, held);
  c.pairs_b = Given<uint32_t>(pairs, "b", rows, held);
  c.speeds_a = Given<double>(pairs, "speed_a", rows, held);
  c.speeds_b = Given<double>(pairs, "speed_b", rows, held);
  c.slowdowns = Given<double>(pairs, "slowdown", rows, held);
  const int32_t how = NumberOf(kMany, many, "many");
  return Make<TruthHandle, horus_truth>([&](horus_truth** out, horus_error* error) {
    return horus_truth_from_speeds(Of(catalogue), &c, how, out, error);
  });
}

}  // namespace

CProfileDemands::CProfileDemands(const py::sequence& rows, const char* what) {
  for (const ProfileDemand* row : PointersOf<ProfileDemand>(rows, what)) {
    profiles_.push_back(row->profile.c_str());
    types_.push_back(row->gpu_type == "any" ? nullptr : row->gpu_type.c_str());
    demands_.push_back(&row->demand);
  }
  c_.count = profiles_.size();
  c_.profiles = profiles_.data();
  c_.gpu_types = types_.data();
  c_.demands = demands_.data();
}

void BindTrace(py::module_& m) {
  Record<ProfileDemand>(m, "What jobs of a profile demand of a GPU type.", 3)
      .Field("profile", &ProfileDemand::profile, "as the trace names it")
      .Field("gpu_type", &ProfileDemand::gpu_type, "any = every type")
      .Field("demand", &ProfileDemand::demand, "per GPU");
  py::class_<TraceHandle>(m, "TraceHandle")
      .def(py::init(&CreateTrace), py::arg("rows"), py::arg("columns"),
           "__init__(self, rows: int, columns: dict[str, typing.Any]) -> None")
      .def(
          "__len__", [](const TraceHandle& t) { return horus_trace_count(t.get()); }, "__len__(self) -> int")
      .def("summary", &Summary, "summary(self) -> dict[str, typing.Any]")
      .def("profiles", &Profiles, "profiles(self) -> list[str]")
      .def(
          "bytes_held", [](const TraceHandle& t) { return horus_trace_bytes_held(t.get()); },
          "bytes_held(self) -> int");
  py::class_<TruthHandle>(m, "TruthHandle")
      .def_static("from_model", &FromModel, py::arg("catalogue").none(true), py::arg("model").none(true),
                  py::arg("demands"),
                  "from_model(catalogue: CatalogueHandle | None, model: InterferenceHandle | None, demands: "
                  "collections.abc.Sequence[ProfileDemand]) -> TruthHandle")
      .def_static("from_speeds", &FromSpeeds, py::arg("catalogue").none(true), py::arg("gpu_types"),
                  py::arg("profiles"), py::arg("alone"), py::arg("pairs"), py::arg("reference"), py::arg("many"),
                  "from_speeds(catalogue: CatalogueHandle | None, gpu_types: collections.abc.Sequence[str], profiles: "
                  "collections.abc.Sequence[str], alone: numpy.typing.NDArray[numpy.float64], pairs: dict[str, "
                  "typing.Any], reference: int, many: str) -> TruthHandle")
      .def(
          "bytes_held", [](const TruthHandle& t) { return horus_truth_bytes_held(t.get()); },
          "bytes_held(self) -> int");
}

}  // namespace horus_python
