// SPDX-License-Identifier: Apache-2.0
// Training in C++, over train.h. Included by lab.hpp.
#ifndef HORUS_LAB_TRAIN_HPP_
#define HORUS_LAB_TRAIN_HPP_

#include <cstdint>
#include <string>
#include <vector>

#include "horus/horus.hpp"
#include "horus/lab/train.h"

namespace horus {
inline namespace face_v0 {  // see values.hpp

// PairData: measured runs of two jobs side by side, to train on.
struct PairDevice {
  std::string gpu_type = {};
  int32_t sharing_mode = 0;  // HORUS_SHARING_*; 0 = TIME_SLICE
};
struct PairJob {
  std::string family = {};           // the calibration leaves out jobs of one family together
  std::vector<Demand> demands = {};  // one per device, in their order, all of one profile_id
};
struct PairRun {
  uint32_t device = 0;               // position in devices
  uint32_t job_a = 0;                // position in jobs, as job_b
  uint32_t job_b = 0;                // may equal a
  double slowdown_a = kNotMeasured;  // of a beside b, 0.5 to 1,000
  double slowdown_b = kNotMeasured;
  std::string campaign = {};  // groups runs of one site and time
};
struct PairData {
  std::vector<PairDevice> devices = {};
  std::vector<PairJob> jobs = {};
  std::vector<PairRun> runs = {};
};

struct PairOptions {
  std::string model = {};  // "horus", "boosted", "iasp" or "iapp"; empty = "horus"
  double promise = 0;      // coverage of the bounds; 0 = 0.9
  uint32_t seed = 0;
  std::string library_path = {};  // of libhorus_train.so; empty = searched for
};

namespace detail {

// Borrows the PairData.
class CPairData {
 public:
  explicit CPairData(const PairData& data) {
    for (const PairDevice& device : data.devices) {
      types_.push_back(TextOrNull(device.gpu_type));
      modes_.push_back(device.sharing_mode);
    }
    for (const PairJob& job : data.jobs) {
      if (job.demands.size() != data.devices.size()) {
        throw Error(HORUS_ERR_INVALID_ARGUMENT,
                    "demands of job[" + std::to_string(families_.size()) + "]: expected one per device (" +
                        std::to_string(data.devices.size()) + "), found " + std::to_string(job.demands.size()));
      }
      families_.push_back(TextOrNull(job.family));
      for (const Demand& demand : job.demands) demands_.push_back(&demand);
    }
    for (const PairRun& run : data.runs) {
      devices_.push_back(run.device);
      jobs_a_.push_back(run.job_a);
      jobs_b_.push_back(run.job_b);
      campaigns_.push_back(TextOrNull(run.campaign));
      slowdown_a_.push_back(run.slowdown_a);
      slowdown_b_.push_back(run.slowdown_b);
    }
    c_.device_count = data.devices.size();
    c_.gpu_types = Column(types_);
    c_.sharing_modes = Column(modes_);
    c_.job_count = data.jobs.size();
    c_.families = Column(families_);
    c_.demands = Column(demands_);
    c_.count = data.runs.size();
    c_.devices = Column(devices_);
    c_.jobs_a = Column(jobs_a_);
    c_.jobs_b = Column(jobs_b_);
    c_.campaigns = Column(campaigns_);
    c_.slowdown_a = Column(slowdown_a_);
    c_.slowdown_b = Column(slowdown_b_);
  }
  CPairData(const CPairData&) = delete;
  CPairData& operator=(const CPairData&) = delete;
  [[nodiscard]] const horus_pair_data* get() const { return &c_; }

 private:
  std::vector<const char*> types_, families_, campaigns_;
  std::vector<int32_t> modes_;
  std::vector<const horus_demand*> demands_;
  std::vector<uint32_t> devices_, jobs_a_, jobs_b_;
  std::vector<double> slowdown_a_, slowdown_b_;
  horus_pair_data c_ = HORUS_PAIR_DATA_INIT;
};

}  // namespace detail

// Trains a predictor on measured runs.
[[nodiscard]] inline Predictor FitPredictor(const horus_training_data& data,
                                            const horus_training_options* options = nullptr,
                                            const Catalogue* catalogue = nullptr) {
  horus_predictor* out = nullptr;
  detail::Call(horus_predictor_fit, detail::HandleOf(catalogue), &data, options, nullptr, nullptr, &out);
  return Predictor(out);
}

// Trains an interference model on measured pairs.
[[nodiscard]] inline Interference FitInterference(const PairData& data, const PairOptions& options = {},
                                                  const Catalogue* catalogue = nullptr) {
  const horus_pair_options c = {sizeof(horus_pair_options), options.seed, detail::TextOrNull(options.model),
                                options.promise, detail::TextOrNull(options.library_path)};
  horus_interference* out = nullptr;
  detail::Call(horus_interference_fit, detail::HandleOf(catalogue), detail::CPairData(data).get(), &c, nullptr, nullptr,
               &out);
  return Interference(out);
}

}  // namespace face_v0
}  // namespace horus

#endif  // HORUS_LAB_TRAIN_HPP_
