/* SPDX-License-Identifier: Apache-2.0 */
/* People's files: clusters, jobs and traces, read as the horus command reads them (docs/files.md, docs/traces.md). A
 * libhorus that was configured without HORUS_WITH_FILES, as is the default, answers UNSUPPORTED.
 * Since 0.1 where nothing else is said. */
#ifndef HORUS_FILES_H_
#define HORUS_FILES_H_

#include "horus/base.h"
#include "horus/cluster.h"
#include "horus/demand.h"
#include "horus/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

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

/* A trace file. `format`: "plain", "openb", "gavel", "chronus", "muri" or "pai"; NULL = by its header. A wrong row
 * ends the reading. Errors: INVALID_ARGUMENT (file, line, column, expected, found), NOT_FOUND (format), IO, LIMIT,
 * UNSUPPORTED. Any thread. */
HORUS_API horus_status horus_trace_from_file(const char* path, const char* format, horus_trace** out,
                                             horus_error* error);

#ifdef __cplusplus
}
#endif

#endif /* HORUS_FILES_H_ */
