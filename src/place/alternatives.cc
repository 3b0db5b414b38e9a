// SPDX-License-Identifier: Apache-2.0
// What a way to run a job is worth where it would be placed.
#include "place/alternatives.h"

#include <algorithm>

#include "base/units.h"

namespace horus {
namespace {

// A hard request counts the share that it takes.
double GpusOf(const JobAlternative& way) {
  const double gpus = static_cast<double>(way.tasks) * way.gpus_per_task;
  return way.gpu_milli > 0 ? gpus * way.gpu_milli / kMilliPerGpu : gpus;
}

}  // namespace

JobSpec WayOf(const JobSpec& job, size_t index) {
  JobSpec way = job;
  const JobAlternative& chosen = job.alternatives[index];
  way.alternatives.clear();
  way.tasks = chosen.tasks;
  way.gpus_per_task = chosen.gpus_per_task;
  way.gpu_milli = chosen.gpu_milli;
  if (chosen.cpu_milli != JobAlternative::kAsTheJob) way.cpu_milli = chosen.cpu_milli;
  if (chosen.mem_mib != JobAlternative::kAsTheJob) way.mem_mib = chosen.mem_mib;
  if (chosen.storage_mb_s != JobAlternative::kAsTheJob) way.storage_mb_s = chosen.storage_mb_s;
  way.demands = chosen.demands;
  return way;
}

double WorthOf(const JobSpec& job, size_t index, const Decision& decision, double gpu_price) {
  double best_per_gpu = 0;
  for (const JobAlternative& way : job.alternatives) best_per_gpu = std::max(best_per_gpu, way.rate / GpusOf(way));
  const JobAlternative& chosen = job.alternatives[index];
  double work = chosen.rate / best_per_gpu * decision.relative_speed / static_cast<double>(decision.own.estimate);
  for (const TenantEffect& effect : decision.effects) {
    if (effect.is_new) continue;
    work += 1.0 / static_cast<double>(effect.after.estimate) - 1.0 / static_cast<double>(effect.before.estimate);
  }
  return work - gpu_price * GpusOf(chosen);
}

}  // namespace horus
