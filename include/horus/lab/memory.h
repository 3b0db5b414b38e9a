/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that handles hold, in bytes, about; 0 for NULL. Clusters and graphs tell theirs in horus_cluster_info and
 * horus_graph_info. Thread class: that of the handle's other queries.
 * Since 0.1 where nothing else is said. */
#ifndef HORUS_LAB_MEMORY_H_
#define HORUS_LAB_MEMORY_H_

#include "horus/base.h"
#include "horus/cluster.h"
#include "horus/demand.h"
#include "horus/interference.h"
#include "horus/lab/files.h"
#include "horus/learn.h"
#include "horus/place.h"
#include "horus/queue.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Its caches included. */
HORUS_API uint64_t horus_placer_bytes_held(const horus_placer* placer);
/* Without the sentences of its decisions. */
HORUS_API uint64_t horus_plan_bytes_held(const horus_plan* plan);
/* Without that of a fallback or of what it corrects. */
HORUS_API uint64_t horus_interference_bytes_held(const horus_interference* model);
HORUS_API uint64_t horus_predictor_bytes_held(const horus_predictor* predictor);
HORUS_API uint64_t horus_observations_bytes_held(const horus_observations* observations);
HORUS_API uint64_t horus_job_list_bytes_held(const horus_job_list* list);
HORUS_API uint64_t horus_queue_bytes_held(const horus_queue* queue);

#ifdef __cplusplus
}
#endif

#endif /* HORUS_LAB_MEMORY_H_ */
