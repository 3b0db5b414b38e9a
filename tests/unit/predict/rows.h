// SPDX-License-Identifier: Apache-2.0
// Training rows with a known law, for the tests of this room.
#ifndef HORUS_TESTS_UNIT_PREDICT_ROWS_H_
#define HORUS_TESTS_UNIT_PREDICT_ROWS_H_

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "draw.h"
#include "features/feature_row.h"
#include "predict/prior.h"
#include "predict/training_set.h"

namespace horus {

inline void Set(std::vector<float>& row, std::string_view column, double value) {
  row[*FindFeature(column)] = static_cast<float>(value);
}

// A row whose step is `device_us` of kernels, `host_us` of dispatch and a peak of `peak_mib`.
inline std::vector<float> Features(double device_us, double host_us, double batch, double peak_mib = 4000) {
  std::vector<float> row(FeatureCount(), 0.0f);
  Set(row, "training", 1);
  Set(row, "batch", batch);
  Set(row, "roofline_device_time_us", device_us);
  Set(row, "roofline_host_time_us", host_us);
  Set(row, "roofline_copy_us", 10);
  Set(row, "time_matmul_us", 0.7 * device_us);
  Set(row, "time_elementwise_us", 0.3 * device_us);
  Set(row, "roofline_step_time_us", std::max(device_us, host_us) + 10);
  Set(row, "roofline_gpu_util_pct", 100 * device_us / (std::max(device_us, host_us) + 10));
  Set(row, "step_flops", 1e6 * device_us);
  Set(row, "step_bytes", 1e5 * device_us);
  Set(row, "step_kernels", host_us / 6);
  Set(row, "step_intensity", 10);
  Set(row, "horus_parameters", 1e6);
  Set(row, "mem_peak", peak_mib * 1048576);
  Set(row, "gpu_context_mib", 300);
  Set(row, "gpu_fp32_gflops", 10000);
  Set(row, "gpu_mem_bandwidth_mb_s", 900000);
  Set(row, "gpu_sm_count", 80);
  return row;
}

// Positions of some constants of step time.
inline constexpr size_t kMatmulFactor = static_cast<size_t>(KernelKind::kMatmul),
                        kElementwiseFactor = static_cast<size_t>(KernelKind::kElementwise), kHostFactor = kTimeParts,
                        kFixedFactor = kTimeParts + 2;

// Logarithms of the constants of a quantity, 0 but for those given.
inline std::vector<double> Factors(Quantity quantity, std::initializer_list<std::pair<size_t, double>> given = {}) {
  std::vector<double> factors(FactorsOf(quantity).size(), 0);
  for (const auto& [at, log] : given) factors[at] = log;
  return factors;
}

// `families` x 2 nets x 4 batches, measured as the prior says with `factors`, times e^(noise) of the row.
inline TrainingSet Lawful(Quantity quantity, const std::vector<double>& factors, size_t families, double noise = 0,
                          double gpu_factor = 0) {
  TrainingSet set;
  for (size_t f = 0; f < families; ++f) {
    for (size_t net = 0; net < 2; ++net) {
      for (const double batch : {8.0, 16.0, 32.0, 64.0}) {
        const uint64_t id = f * 100 + net;
        TrainingRow row;
        row.features = Features(batch * 1000 * (0.2 + 4 * Draw(id)), 2000 + 20000 * Draw(id + 50), batch,
                                1000 + batch * 100 * (0.2 + Draw(id)));
        row.gpu = "v100";
        row.family = "family" + std::to_string(f);
        row.model = row.family + "-" + std::to_string(net);
        row.where = "row " + std::to_string(set.rows.size() + 1);
        const double prior = PriorOf(quantity, TermsOf(row.features), factors, gpu_factor);
        const double error = noise * (2 * Draw(1000 + set.rows.size()) - 1);
        row.measured[static_cast<size_t>(quantity)] =
            ApplyLink(InfoOf(quantity).link, MarginOf(InfoOf(quantity).link, prior) + error);
        set.rows.push_back(std::move(row));
      }
    }
  }
  return set;
}

}  // namespace horus

#endif  // HORUS_TESTS_UNIT_PREDICT_ROWS_H_
