// SPDX-License-Identifier: Apache-2.0
// Lists of jobs; horus/lab/memory.h, what handles of the library hold.
//
// Enters:  jobs and the catalogue of their types.   Leaves: the jobs as the C ABI shows them.
// Cost:    the jobs, and about 250 bytes a demand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "capi/convert.h"
#include "horus/lab/files.h"

struct horus_job_list {
  horus_job_list(std::shared_ptr<const horus::Catalogue> types, std::vector<horus::JobSpec> given)
      : catalogue(std::move(types)), specs(std::move(given)) {
    for (const horus::JobSpec& spec : specs) {
      const size_t size = horus::capi::JobBytes(*catalogue, spec);
      bytes += size + sizeof spec;
      memory.push_back(std::make_unique<char[]>(size));
      jobs.push_back(horus::capi::PutJob(*catalogue, spec, memory.back().get()));
    }
  }
  const std::shared_ptr<const horus::Catalogue> catalogue;
  const std::vector<horus::JobSpec> specs;
  std::vector<std::unique_ptr<char[]>> memory;
  std::vector<const horus_job*> jobs;  // in it
  uint64_t bytes = sizeof(horus_job_list);
};
