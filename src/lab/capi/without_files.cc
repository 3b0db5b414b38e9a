// SPDX-License-Identifier: Apache-2.0
// horus/lab/files.h in a build without the reader of files: the same symbols, which say what is missing.
#include "capi/error.h"
#include "horus/lab/files.h"
#include "horus/lab/trace.h"

namespace {

horus_status Missing(horus_error* error) {
  return horus::capi::Fail(error, HORUS_ERR_UNSUPPORTED,
                           "this libhorus was built without the reader of files: configure with HORUS_WITH_FILES=ON");
}

}  // namespace

horus_status horus_cluster_from_yaml(const horus_catalogue*, const horus_predictor*, const char*, const char*,
                                     horus_catalogue**, horus_cluster**, horus_error* error) {
  return Missing(error);
}
horus_status horus_job_list_from_yaml(const horus_cluster*, const horus_predictor*, const char*, const char*,
                                      horus_job_list**, horus_error* error) {
  return Missing(error);
}
horus_status horus_trace_from_file(const char*, const char*, horus_trace**, horus_error* error) {
  return Missing(error);
}
