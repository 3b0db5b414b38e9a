// SPDX-License-Identifier: Apache-2.0
// horus/lab/files.h in a build without the reader of files: the same symbols, which say what is missing.
#include "capi/boundary.h"
#include "horus/lab/files.h"
#include "horus/lab/trace.h"

static constexpr char kWithoutFiles[] =
    "this libhorus was built without the reader of files: configure with HORUS_WITH_FILES=ON";

HORUS_MISSING(horus_cluster_from_yaml, kWithoutFiles, const horus_catalogue*, const horus_predictor*, const char*,
              const char*, horus_catalogue**, horus_cluster**)
HORUS_MISSING(horus_job_list_from_yaml, kWithoutFiles, const horus_cluster*, const horus_predictor*, const char*,
              const char*, horus_job_list**)
HORUS_MISSING(horus_trace_from_file, kWithoutFiles, const char*, const char*, horus_trace**)
