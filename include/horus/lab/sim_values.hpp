// SPDX-License-Identifier: Apache-2.0
// Owning values for sim.h and potential.h, and their conversion to C structs. Included by sim.hpp.
#ifndef HORUS_LAB_SIM_VALUES_HPP_
#define HORUS_LAB_SIM_VALUES_HPP_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "horus/catalogue.hpp"
#include "horus/lab/sim.h"
#include "horus/lab/trace_values.hpp"
#include "horus/values.hpp"

namespace horus {
inline namespace face_v0 {  // see values.hpp

// Demand of a profile's jobs on a GPU type.
struct ProfileDemand {
  std::string profile = {};
  std::string gpu_type = {};  // empty = any
  Demand demand = {};
};

using ProfileSensitivity = std::pair<std::string, Sensitivity>;  // profile, sensitivity of its jobs

struct PairSpeed {
  uint32_t gpu = 0, a = 0, b = 0;   // positions in Speeds::gpu_types and Speeds::profiles
  double speed_a = 0, speed_b = 0;  // as shares of the speeds alone; both 0 = they do not run together
  double slowdown = 0;              // of the slower side, >= 1; 0 = as the speeds say
};

struct Speeds {
  uint32_t reference = 0;
  std::vector<std::string> gpu_types = {}, profiles = {};
  std::vector<double> alone = {};  // [gpu_types x profiles] progress a second; 0 = does not run there
  std::vector<PairSpeed> pairs = {};
};

struct SimOutage {
  uint64_t node = 0;
  int64_t from_us = 0, until_us = 0;
};

struct SimWindow {
  int64_t from_us = 0, to_us = 0;  // 0 = no end
  double slowdown_bound = 0;       // 0 = none
};

struct SimJob {
  uint64_t id = 0;
  int32_t end = HORUS_SIM_END_WAITING;
  int64_t start_us = -1, end_us = -1, ran_us = 0;
  double work_us = 0, undisturbed_us = 0, backlog_us = 0, lost_us = 0;
  int32_t failures = 0, out_of_memory = 0, preemptions = 0, migrations = 0, interruptions = 0, restarts = 0;
};

struct PotentialOptions {
  std::vector<double> slowdown_bounds = {};  // empty = 1.25, 1.5, 2, 2.5 and infinity
  double least_gain = 0;                     // 0 = the default, -1 = any
  std::string library_path = {};             // of libhorus_lp.so; empty = searched for
};

struct PotentialAtBound {
  double slowdown_bound = 0, gain = 0, makespan_cut = 0, rate = 0;
  uint64_t admitted = 0;
  double admitted_of_mix = 0;
  bool pays = false;
};

struct SharingPotential {
  horus_potential all = HORUS_POTENTIAL_INIT;
  std::vector<PotentialAtBound> at = {};  // one row per bound
};

namespace detail {

// Borrows the rows.
class CProfileDemands {
 public:
  explicit CProfileDemands(std::span<const ProfileDemand> rows) {
    for (const ProfileDemand& row : rows) {
      profiles_.push_back(row.profile.c_str());
      types_.push_back(TextOrNull(row.gpu_type));
      demands_.push_back(&row.demand);
    }
    c_.count = rows.size();
    c_.profiles = Column(profiles_);
    c_.gpu_types = Column(types_);
    c_.demands = Column(demands_);
  }
  CProfileDemands(const CProfileDemands&) = delete;
  CProfileDemands& operator=(const CProfileDemands&) = delete;
  [[nodiscard]] const horus_profile_demands* get() const { return &c_; }

 private:
  std::vector<const char*> profiles_, types_;
  std::vector<const horus_demand*> demands_;
  horus_profile_demands c_ = HORUS_PROFILE_DEMANDS_INIT;
};

// Borrows the rows.
class CProfileSensitivities {
 public:
  explicit CProfileSensitivities(std::span<const ProfileSensitivity> rows) {
    for (const auto& [profile, matrix] : rows) {
      profiles_.push_back(profile.c_str());
      matrices_.push_back(ToC(matrix, "sensitivities[" + profile + "]"));
    }
    for (const horus_sensitivity& matrix : matrices_) sensitivities_.push_back(&matrix);
    c_.count = rows.size();
    c_.profiles = Column(profiles_);
    c_.sensitivities = Column(sensitivities_);
  }
  CProfileSensitivities(const CProfileSensitivities&) = delete;
  CProfileSensitivities& operator=(const CProfileSensitivities&) = delete;
  [[nodiscard]] const horus_profile_sensitivities* get() const { return &c_; }

 private:
  std::vector<const char*> profiles_;
  std::vector<horus_sensitivity> matrices_;
  std::vector<const horus_sensitivity*> sensitivities_;
  horus_profile_sensitivities c_ = HORUS_PROFILE_SENSITIVITIES_INIT;
};

// Borrows the Speeds.
class CSpeeds {
 public:
  explicit CSpeeds(const Speeds& speeds) : types_(Texts(speeds.gpu_types)), profiles_(Texts(speeds.profiles)) {
    if (speeds.alone.size() != types_.size() * profiles_.size()) {
      throw Error(HORUS_ERR_INVALID_ARGUMENT, "speeds: alone: expected " +
                                                  std::to_string(types_.size() * profiles_.size()) + " speeds, found " +
                                                  std::to_string(speeds.alone.size()));
    }
    for (const PairSpeed& pair : speeds.pairs) {
      gpus_.push_back(pair.gpu);
      a_.push_back(pair.a);
      b_.push_back(pair.b);
      speeds_a_.push_back(pair.speed_a);
      speeds_b_.push_back(pair.speed_b);
      slowdowns_.push_back(pair.slowdown);
    }
    c_.reference = speeds.reference;
    c_.gpu_count = types_.size();
    c_.gpu_types = Column(types_);
    c_.profile_count = profiles_.size();
    c_.profiles = Column(profiles_);
    c_.alone = Column(speeds.alone);
    c_.pair_count = gpus_.size();
    c_.pair_gpus = Column(gpus_);
    c_.pairs_a = Column(a_);
    c_.pairs_b = Column(b_);
    c_.speeds_a = Column(speeds_a_);
    c_.speeds_b = Column(speeds_b_);
    c_.slowdowns = Column(slowdowns_);
  }
  CSpeeds(const CSpeeds&) = delete;
  CSpeeds& operator=(const CSpeeds&) = delete;
  [[nodiscard]] const horus_speeds* get() const { return &c_; }

 private:
  std::vector<const char*> types_, profiles_;
  std::vector<uint32_t> gpus_, a_, b_;
  std::vector<double> speeds_a_, speeds_b_, slowdowns_;
  horus_speeds c_ = HORUS_SPEEDS_INIT;
};

struct COutages {
  explicit COutages(const std::vector<SimOutage>& outages) {
    for (const SimOutage& outage : outages) {
      nodes.push_back(outage.node);
      from_us.push_back(outage.from_us);
      until_us.push_back(outage.until_us);
    }
  }
  std::vector<uint64_t> nodes;
  std::vector<int64_t> from_us, until_us;
};

inline std::vector<SimJob> ReadSimJobs(const horus_sim_result* result) {
  horus_sim_jobs c = HORUS_SIM_JOBS_INIT;
  c.capacity =
      CountOf([&](size_t* needed, horus_error* error) { return horus_sim_result_jobs(result, &c, needed, error); });
  const size_t rows = c.capacity;
  std::vector<uint64_t> ids(rows);
  std::vector<int32_t> ends(rows), failures(rows), memory(rows), preempted(rows), moved(rows), broken(rows),
      again(rows);
  std::vector<int64_t> start(rows), end(rows), ran(rows);
  std::vector<double> work(rows), undisturbed(rows), backlog(rows), lost(rows);
  c = {sizeof c,
       0,
       rows,
       ids.data(),
       ends.data(),
       start.data(),
       end.data(),
       ran.data(),
       work.data(),
       undisturbed.data(),
       backlog.data(),
       lost.data(),
       failures.data(),
       memory.data(),
       preempted.data(),
       moved.data(),
       broken.data(),
       again.data()};
  size_t count = 0;
  Call(horus_sim_result_jobs, result, static_cast<const horus_sim_jobs*>(&c), &count);
  std::vector<SimJob> jobs;
  for (size_t i = 0; i < count; ++i) {
    jobs.push_back({ids[i], ends[i], start[i], end[i], ran[i], work[i], undisturbed[i], backlog[i], lost[i],
                    failures[i], memory[i], preempted[i], moved[i], broken[i], again[i]});
  }
  return jobs;
}

inline SharingPotential ReadPotential(const CSpeeds& speeds, const std::vector<double>& work,
                                      const std::vector<double>& gpus, const PotentialOptions& options) {
  if (work.size() != speeds.get()->profile_count || gpus.size() != speeds.get()->gpu_count) {
    throw Error(HORUS_ERR_INVALID_ARGUMENT, "work, gpus: expected a number for each profile and GPU type");
  }
  constexpr size_t kDefaultBounds = 5;
  const size_t rows = options.slowdown_bounds.empty() ? kDefaultBounds : options.slowdown_bounds.size();
  const horus_potential_options with = {sizeof(horus_potential_options),
                                        0,
                                        options.slowdown_bounds.size(),
                                        Column(options.slowdown_bounds),
                                        options.least_gain,
                                        TextOrNull(options.library_path)};
  std::vector<double> bounds(rows), gains(rows), cuts(rows), rates(rows), of_mix(rows);
  std::vector<uint64_t> admitted(rows);
  std::vector<int32_t> pays(rows);
  const horus_potential_rows columns = {sizeof(horus_potential_rows),
                                        0,
                                        rows,
                                        bounds.data(),
                                        gains.data(),
                                        cuts.data(),
                                        rates.data(),
                                        admitted.data(),
                                        of_mix.data(),
                                        pays.data()};
  SharingPotential potential;
  size_t count = 0;
  Call(horus_potential_compute, speeds.get(), work.data(), gpus.data(), &with, nullptr, nullptr, &potential.all,
       &columns, &count);
  for (size_t i = 0; i < count; ++i) {
    potential.at.push_back({bounds[i], gains[i], cuts[i], rates[i], admitted[i], of_mix[i], pays[i] == 1});
  }
  return potential;
}

}  // namespace detail

}  // namespace face_v0
}  // namespace horus

#endif  // HORUS_LAB_SIM_VALUES_HPP_
