/* SPDX-License-Identifier: Apache-2.0 */
/* Files: clusters and jobs, read as the horus command reads them (docs/files.md). A build without HORUS_WITH_FILES, the
 * default, answers UNSUPPORTED.
 * Since 0.1 where nothing else is said. */
#ifndef HORUS_LAB_FILES_H_
#define HORUS_LAB_FILES_H_

#include "horus/base.h"
#include "horus/cluster.h"
#include "horus/demand.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Jobs with their demands, of a file (horus_job_list_from_yaml). Immutable: share freely. */
typedef struct horus_job_list horus_job_list;

/* Accepts NULL. */
HORUS_API void horus_job_list_free(horus_job_list* list);
/* Number of jobs; 0 for NULL. Any thread. */
HORUS_API size_t horus_job_list_count(const horus_job_list* list);
/* The job at `index`, in the order of the list; what it points to is borrowed from the list. Errors: NOT_FOUND,
 * INVALID_STRUCT. Any thread. */
HORUS_API horus_status horus_job_list_get(const horus_job_list* list, size_t index, horus_job* job, horus_error* error);

/* The cluster of a file: nodes, their states, jobs that run already; those that name a model get demands from
 * `predictor` (NULL = the default one). `catalogue` (NULL = the built-in one) is where GPU types are looked up, beside
 * those of the gpu_types_files; *extended, if wanted, becomes that catalogue with theirs, to be freed. `text` (NULL =
 * the file is opened) is its content, and `path` then only what messages and paths in it refer to.
 * Errors: INVALID_ARGUMENT ("file:line: key: expected ..., found ..."), NOT_FOUND, EXISTS, CORRUPT and UNSUPPORTED
 * (models), IO, LIMIT, UNSUPPORTED. Any thread. */
HORUS_API horus_status horus_cluster_from_yaml(const horus_catalogue* catalogue, const horus_predictor* predictor,
                                               const char* path, const char* text, horus_catalogue** extended,
                                               horus_cluster** out, horus_error* error);

/* The jobs of a file for `cluster`: those without gpu_types may use the types of its nodes, whatever their state, and
 * no id may be that of a resident. `predictor`, `path` and `text`: as of horus_cluster_from_yaml, likewise the errors.
 * Thread class: a reader of the cluster. */
HORUS_API horus_status horus_job_list_from_yaml(const horus_cluster* cluster, const horus_predictor* predictor,
                                                const char* path, const char* text, horus_job_list** out,
                                                horus_error* error);

#ifdef __cplusplus
}
#endif

#endif /* HORUS_LAB_FILES_H_ */
