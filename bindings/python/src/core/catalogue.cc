// SPDX-License-Identifier: Apache-2.0
// The GPU types.
#include "graph.h"
#include "record.h"

namespace horus_python {
namespace {

struct MigProfile {
  std::string name = {};
  int64_t compute_slices = 0, memory_slices = 0, mem_mib = 0, max_instances = 0;
};

struct Gpu {
  std::string name, display_name, architecture, source;
  int64_t compute_capability = 0, sm_count = 0, boost_clock_mhz = 0, fp64_gflops = 0, fp32_gflops = 0, tf32_gflops = 0,
          fp16_gflops = 0, bf16_gflops = 0, fp8_gflops = 0, int8_gops = 0, mem_mib = 0, mem_bandwidth_mb_s = 0,
          l2_kib = 0, pcie_mb_s = 0, nvlink_mb_s = 0, tdp_w = 0, context_mib = 0, max_mps_clients = 0;
  std::vector<MigProfile> mig_profiles = {};
  std::vector<std::string> aliases = {};
};

// Every number that both structs name alike.
template <typename From, typename To>
void CopyNumbers(const From& from, To& to) {
  to.compute_capability = from.compute_capability;
  to.sm_count = from.sm_count;
  to.boost_clock_mhz = from.boost_clock_mhz;
  to.fp64_gflops = from.fp64_gflops;
  to.fp32_gflops = from.fp32_gflops;
  to.tf32_gflops = from.tf32_gflops;
  to.fp16_gflops = from.fp16_gflops;
  to.bf16_gflops = from.bf16_gflops;
  to.fp8_gflops = from.fp8_gflops;
  to.int8_gops = from.int8_gops;
  to.mem_mib = from.mem_mib;
  to.mem_bandwidth_mb_s = from.mem_bandwidth_mb_s;
  to.l2_kib = from.l2_kib;
  to.pcie_mb_s = from.pcie_mb_s;
  to.nvlink_mb_s = from.nvlink_mb_s;
  to.tdp_w = from.tdp_w;
  to.context_mib = from.context_mib;
  to.max_mps_clients = from.max_mps_clients;
}

std::unique_ptr<CatalogueHandle> Default() { return Make<CatalogueHandle, horus_catalogue>(&horus_catalogue_default); }

std::vector<MigProfile> MigOf(const horus_gpu& gpu) {
  std::vector<MigProfile> profiles;
  for (size_t i = 0; i < gpu.mig_count; ++i) {
    const horus_mig_profile& c = *gpu.mig_profiles[i];
    profiles.push_back({c.name, c.compute_slices, c.memory_slices, c.mem_mib, c.max_instances});
  }
  return profiles;
}

std::vector<Gpu> All(const CatalogueHandle& catalogue) {
  std::vector<Gpu> gpus;
  for (size_t i = 0; i < horus_catalogue_count(catalogue.get()); ++i) {
    horus_gpu c = HORUS_GPU_INIT;
    Run([&](horus_error* error) { return horus_catalogue_get(catalogue.get(), i, &c, error); });
    Gpu gpu = {c.name, c.display_name, c.architecture, c.source};
    CopyNumbers(c, gpu);
    gpu.mig_profiles = MigOf(c);
    gpus.push_back(gpu);
  }
  return gpus;
}

size_t Find(const CatalogueHandle& catalogue, const std::string& name) {
  size_t index = 0;
  Run([&](horus_error* error) { return horus_catalogue_find(catalogue.get(), name.c_str(), &index, error); });
  return index;
}

struct MigColumns {
  std::vector<horus_mig_profile> rows;
  std::vector<const horus_mig_profile*> pointers;
};

std::unique_ptr<CatalogueHandle> Extend(const CatalogueHandle& base, const py::tuple& added) {
  const auto values = PointersOf<Gpu>(added, "gpus");
  std::vector<horus_gpu> gpus;
  std::vector<MigColumns> migs(values.size());
  std::vector<std::vector<const char*>> aliases(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const Gpu* gpu = values[i];
    horus_gpu c = HORUS_GPU_INIT;
    for (const MigProfile& mig : gpu->mig_profiles) {
      migs[i].rows.push_back({sizeof(horus_mig_profile), 0, mig.name.c_str(), mig.compute_slices, mig.memory_slices,
                              mig.mem_mib, mig.max_instances});
    }
    for (const horus_mig_profile& row : migs[i].rows) migs[i].pointers.push_back(&row);
    aliases[i] = Texts(gpu->aliases);
    c.mig_count = migs[i].rows.size();
    c.mig_profiles = migs[i].pointers.data();
    c.alias_count = aliases[i].size();
    c.aliases = aliases[i].data();
    c.name = gpu->name.c_str();
    c.display_name = gpu->display_name.empty() ? c.name : gpu->display_name.c_str();
    c.architecture = gpu->architecture.c_str();
    c.source = gpu->source.c_str();
    CopyNumbers(*gpu, c);
    gpus.push_back(c);
  }
  std::vector<const horus_gpu*> pointers;
  for (const horus_gpu& gpu : gpus) pointers.push_back(&gpu);
  return Make<CatalogueHandle, horus_catalogue>([&](horus_catalogue** out, horus_error* error) {
    return horus_catalogue_extend(base.get(), pointers.size(), pointers.data(), out, error);
  });
}

}  // namespace

void BindCatalogue(py::module_& m) {
  Record<MigProfile>(m, "MigProfile", "A part of a GPU: a MIG instance of this profile.")
      .Field("name", &MigProfile::name, "as nvidia-smi prints it, e.g. 3g.20gb")
      .Field("compute_slices", &MigProfile::compute_slices, "of the GPU's seven or four")
      .Field("memory_slices", &MigProfile::memory_slices, "of the GPU's eight or four")
      .Field("mem_mib", &MigProfile::mem_mib, "that a process in one instance sees")
      .Field("max_instances", &MigProfile::max_instances, "that fit on one GPU at once");
  Record<Gpu>(
      m, "Gpu",
      "One GPU type. Rates are dense peaks at the boost clock, a multiply-add counted as two; 0 = not supported.")
      .Field("name", &Gpu::name, "kebab-case, e.g. a100-40gb")
      .Field("display_name", &Gpu::display_name, "as the vendor writes it")
      .Field("architecture", &Gpu::architecture, "e.g. Ampere")
      .Field("source", &Gpu::source, "where the numbers come from")
      .Field("compute_capability", &Gpu::compute_capability, "major * 10 + minor")
      .Field("sm_count", &Gpu::sm_count, "streaming multiprocessors")
      .Field("boost_clock_mhz", &Gpu::boost_clock_mhz, "in MHz")
      .Field("fp64_gflops", &Gpu::fp64_gflops, "in 10^9 a second")
      .Field("fp32_gflops", &Gpu::fp32_gflops, "in 10^9 a second")
      .Field("tf32_gflops", &Gpu::tf32_gflops, "in 10^9 a second")
      .Field("fp16_gflops", &Gpu::fp16_gflops, "in 10^9 a second")
      .Field("bf16_gflops", &Gpu::bf16_gflops, "in 10^9 a second")
      .Field("fp8_gflops", &Gpu::fp8_gflops, "in 10^9 a second")
      .Field("int8_gops", &Gpu::int8_gops, "in 10^9 a second")
      .Field("mem_mib", &Gpu::mem_mib, "device memory in MiB")
      .Field("mem_bandwidth_mb_s", &Gpu::mem_bandwidth_mb_s, "in 10^6 bytes a second")
      .Field("l2_kib", &Gpu::l2_kib, "second-level cache in KiB")
      .Field("pcie_mb_s", &Gpu::pcie_mb_s, "one direction")
      .Field("nvlink_mb_s", &Gpu::nvlink_mb_s, "both directions together; 0 = none")
      .Field("tdp_w", &Gpu::tdp_w, "in watts")
      .Field("context_mib", &Gpu::context_mib, "of a CUDA context; 0 = estimated")
      .Field("max_mps_clients", &Gpu::max_mps_clients, "0 = by compute capability")
      .Field("mig_profiles", &Gpu::mig_profiles, "into which it can be parted")
      .Field("aliases", &Gpu::aliases, "other spellings of the name, of types that are added");
  Class<CatalogueHandle>(m, "CatalogueHandle")
      .def(py::init(&Default), "__init__(self) -> None")
      .def(
          "all", [](const CatalogueHandle& c) { return Arg<std::vector<Gpu>>::To(All(c)); },
          "all(self) -> tuple[Gpu, ...]")
      .def("find", &Find, py::arg("name"), "find(self, name: str) -> int")
      .def("extend", &Extend, py::arg("gpus"), "extend(self, gpus: tuple[Gpu, ...]) -> CatalogueHandle");
}

}  // namespace horus_python
