// SPDX-License-Identifier: Apache-2.0
// Traces: from columns, drawn, and as columns again.
#include "sim.h"
#include "speeds.h"

namespace horus_python {
namespace {

const Word kArrivals[] = {{HORUS_ARRIVALS_PRESET, "preset"},
                          {HORUS_ARRIVALS_BACKLOG, "backlog"},
                          {HORUS_ARRIVALS_POISSON, "poisson"},
                          {HORUS_ARRIVALS_BURSTY, "bursty"},
                          {0, nullptr}};

struct SyntheticOptions : horus_synthetic_options {
  SyntheticOptions() : horus_synthetic_options(HORUS_SYNTHETIC_OPTIONS_INIT) { seed = 1; }
  std::string preset_name = "philly";
  std::vector<int32_t> gpus = {}, shares_milli = {};
  std::vector<uint32_t> weights = {}, of_profiles = {};
  std::vector<int64_t> durations = {}, profile_cpu = {}, profile_mem = {};
  std::vector<std::string> profiles = {};
};

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
  c.step_us = Given<int64_t>(columns, "step_us", n, held);
  c.host_us = Given<int64_t>(columns, "host_us", n, held);
  c.gpu_us = Given<int64_t>(columns, "gpu_us", n, held);
  c.network_us = Given<int64_t>(columns, "network_us", n, held);
  c.profile_count = profiles.texts.size();
  c.profile_names = profiles.pointers.data();
  c.owner_count = owners.texts.size();
  c.owner_names = owners.pointers.data();
  c.type_list_count = types.texts.size();
  c.type_lists = types.pointers.data();
  return Make<TraceHandle, horus_trace>(
      [&](horus_trace** out, horus_error* error) { return horus_trace_create(&c, out, error); });
}

// Lists that must be as long as another; empty = all alike.
void CheckLength(const char* name, size_t found, const char* other, size_t expected) {
  if (found != 0 && found != expected) {
    Refuse(name, std::to_string(expected) + " values, as " + other, std::to_string(found));
  }
}

std::unique_ptr<TraceHandle> Synthetic(const SyntheticOptions& options) {
  using horus::detail::Column;
  CheckLength("size_weights", options.weights.size(), "size_gpus", options.gpus.size());
  CheckLength("profile_weights", options.of_profiles.size(), "profile_names", options.profiles.size());
  CheckLength("profile_cpu_milli", options.profile_cpu.size(), "profile_names", options.profiles.size());
  CheckLength("profile_mem_mib", options.profile_mem.size(), "profile_names", options.profiles.size());
  if (options.durations.size() != options.shares_milli.size()) {
    Refuse("duration_shares_milli", std::to_string(options.durations.size()) + " values, as duration_us",
           std::to_string(options.shares_milli.size()));
  }
  const std::vector<const char*> names = Texts(options.profiles);
  horus_synthetic_options c = options;
  c.preset = options.preset_name.c_str();
  c.size_count = options.gpus.size();
  c.size_gpus = Column(options.gpus);
  c.size_weights = Column(options.weights);
  c.duration_count = options.durations.size();
  c.duration_shares_milli = Column(options.shares_milli);
  c.duration_us = Column(options.durations);
  c.profile_count = names.size();
  c.profile_names = Column(names);
  c.profile_weights = Column(options.of_profiles);
  c.profile_cpu_milli = Column(options.profile_cpu);
  c.profile_mem_mib = Column(options.profile_mem);
  return Make<TraceHandle, horus_trace>(
      [&](horus_trace** out, horus_error* error) { return horus_trace_create_synthetic(&c, out, error); });
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

// Names until `name(i)` answers null.
template <typename Name>
std::vector<std::string> NamesOf(const Name& name) {
  std::vector<std::string> names;
  for (size_t i = 0; name(i) != nullptr; ++i) names.emplace_back(name(i));
  return names;
}

std::vector<std::string> Profiles(const TraceHandle& trace) {
  std::vector<std::string> names;
  names.reserve(horus_trace_profile_count(trace.get()));
  for (size_t i = 0; i < names.capacity(); ++i) names.emplace_back(horus_trace_profile_name(trace.get(), i));
  return names;
}

std::vector<std::string> TypeLists(const TraceHandle& trace) {
  std::vector<std::string> lists;
  for (size_t list = 0; horus_trace_type_name(trace.get(), list, 0) != nullptr; ++list) {
    std::string text;
    for (const std::string& name : NamesOf([&](size_t i) { return horus_trace_type_name(trace.get(), list, i); })) {
      text += (text.empty() ? "" : "|") + name;
    }
    lists.push_back(text);
  }
  return lists;
}

// As CreateTrace takes them.
py::dict Columns(const TraceHandle& trace) {
  const size_t rows = horus_trace_count(trace.get());
  py::dict out;
  horus_trace_jobs c = HORUS_TRACE_JOBS_INIT;
  c.capacity = rows;
  const auto column = [&](const char* name, auto** data) {
    using T = std::remove_pointer_t<std::remove_pointer_t<decltype(data)>>;
    py::array_t<T> values(static_cast<py::ssize_t>(rows));
    *data = values.mutable_data();
    out[name] = values;
  };
  column("id", &c.ids);
  column("submit_us", &c.submit_us);
  column("duration_us", &c.duration_us);
  column("steps", &c.steps);
  column("endless", &c.endless);
  column("deadline_us", &c.deadline_us);
  column("tasks", &c.tasks);
  column("gpus_per_task", &c.gpus_per_task);
  column("gpu_milli", &c.gpu_milli);
  column("cpu_milli", &c.cpu_milli);
  column("mem_mib", &c.mem_mib);
  column("kind", &c.kinds);
  column("priority", &c.priorities);
  column("profile", &c.profiles);
  column("owner", &c.owners);
  column("gpu_types", &c.gpu_types);
  column("step_us", &c.step_us);
  column("host_us", &c.host_us);
  column("gpu_us", &c.gpu_us);
  column("network_us", &c.network_us);
  size_t count = 0;
  Run([&](horus_error* error) { return horus_trace_get_jobs(trace.get(), &c, &count, error); });
  out["profile_names"] = Profiles(trace);
  out["owner_names"] = NamesOf([&](size_t i) { return horus_trace_owner_name(trace.get(), i); });
  out["type_lists"] = TypeLists(trace);
  return out;
}

void BindSynthetic(py::module_& m) {
  Record<SyntheticOptions>(m, "SyntheticOptions",
                           "A made trace: a preset and what is changed of it. What is left 0 or empty stays as the "
                           "preset has it (docs/simulate.md).")
      .Field("preset", &SyntheticOptions::preset_name, "philly or horus2020")
      .Field("seed", &SyntheticOptions::seed, "of what is drawn")
      .Field("jobs", &SyntheticOptions::jobs, "a longer trace begins with the shorter one")
      .OneOf("arrivals", &SyntheticOptions::arrivals, kArrivals, "all at 0, at random, or in bursts")
      .Field("mean_gap_us", &SyntheticOptions::mean_gap_us, "between arrivals; 0 = by load and capacity")
      .Field("capacity_gpu_milli", &SyntheticOptions::capacity_gpu_milli, "of the cluster, thousandths of a GPU")
      .Field("load_milli", &SyntheticOptions::load_milli, "of it that jobs ask for, in thousandths")
      .Field("gap_scv_milli", &SyntheticOptions::gap_scv_milli,
             "of bursty gaps: squared coefficient of variation, in thousandths")
      .Field("size_gpus", &SyntheticOptions::gpus, "tasks of one GPU each")
      .Field("size_weights", &SyntheticOptions::weights, "of the sizes")
      .Field("duration_us", &SyntheticOptions::durations, "points of the cumulative distribution, ascending")
      .Field("duration_shares_milli", &SyntheticOptions::shares_milli, "of jobs that take at most that, 0 to 1,000")
      .Field("profile_names", &SyntheticOptions::profiles, "what jobs run")
      .Field("profile_weights", &SyntheticOptions::of_profiles, "of the profiles")
      .Field("profile_cpu_milli", &SyntheticOptions::profile_cpu, "per task")
      .Field("profile_mem_mib", &SyntheticOptions::profile_mem, "host memory per task")
      .Field("owners", &SyntheticOptions::owners, "so many, equally likely");
}

}  // namespace

void BindTrace(py::module_& m) {
  BindSynthetic(m);
  Record<ProfileDemand>(m, "ProfileDemand", "What jobs of a profile demand of a GPU type.", 3, {.gpu_type = "any"})
      .Field("profile", &ProfileDemand::profile, "as the trace names it")
      .Field("gpu_type", &ProfileDemand::gpu_type, "any = every type")
      .Field("demand", &ProfileDemand::demand, "per GPU");
  Class<TraceHandle>(m, "TraceHandle")
      .def(py::init(&CreateTrace), py::arg("rows"), py::arg("columns"),
           "__init__(self, rows: int, columns: dict[str, typing.Any]) -> None")
      .def_static("synthetic", &Synthetic, py::arg("options"), "synthetic(options: SyntheticOptions) -> TraceHandle")
      .def(
          "__len__", [](const TraceHandle& t) { return horus_trace_count(t.get()); }, "__len__(self) -> int")
      .def("summary", &Summary, "summary(self) -> dict[str, typing.Any]")
      .def("profiles", &Profiles, "profiles(self) -> list[str]")
      .def("columns", &Columns, "columns(self) -> dict[str, typing.Any]")
      .def(
          "bytes_held", [](const TraceHandle& t) { return horus_trace_bytes_held(t.get()); },
          "bytes_held(self) -> int");
}

}  // namespace horus_python
