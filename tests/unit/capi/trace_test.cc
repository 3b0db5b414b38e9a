// SPDX-License-Identifier: Apache-2.0
// Traces drawn through the C ABI are those of the sim room.
#include <gtest/gtest.h>

#include "lab/capi/handles.h"
#include "lab/trace/synthetic.h"

namespace horus {
namespace {

Trace Drawn(const horus_synthetic_options& options) {
  horus_trace* trace = nullptr;
  horus_error error = HORUS_ERROR_INIT;
  EXPECT_EQ(horus_trace_create_synthetic(&options, &trace, &error), HORUS_OK) << error.message;
  Trace value = *trace->value;
  horus_trace_free(trace);
  return value;
}

TEST(CapiTrace, DrawsWhatTheRoomDraws) {
  for (const char* preset : {"philly", "horus2020"}) {
    SyntheticOptions options = *SyntheticPreset(preset);
    options.seed = 5;
    horus_synthetic_options c = HORUS_SYNTHETIC_OPTIONS_INIT;
    c.preset = preset;
    c.seed = 5;
    EXPECT_EQ(Drawn(c), *MakeSynthetic(options)) << preset;
    options.jobs = c.jobs = 200;
    options.arrivals = Arrivals::kBursty;
    c.arrivals = HORUS_ARRIVALS_BURSTY;
    options.capacity_gpu_milli = c.capacity_gpu_milli = 8 * kMilliPerGpu;
    options.load_milli = c.load_milli = 700;
    options.gap_scv_milli = kPhillyGapScvMilli;
    options.owners = c.owners = 4;
    EXPECT_EQ(Drawn(c), *MakeSynthetic(options)) << preset;
  }
}

}  // namespace
}  // namespace horus
