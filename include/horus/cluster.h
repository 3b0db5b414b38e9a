/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters: nodes, devices and the jobs on them; apply and release, states, snapshots.
 * Since 0.1 where nothing else is said. */
#ifndef HORUS_CLUSTER_H_
#define HORUS_CLUSTER_H_

#include "horus/base.h"
#include "horus/demand.h"
#include "horus/interference.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A cluster and its residents. horus_cluster_apply, horus_cluster_release and all functions that take a
 * const horus_cluster* are internally synchronised; the other writers need the caller's lock. A plan locks the cluster
 * only while it copies what changed since its placer looked last. While a callback of a plan runs, every call
 * from its thread into the plan's cluster answers BUSY; a call that changes another cluster answers BUSY if that one is
 * in use. */
typedef struct horus_cluster horus_cluster;

/* State of a node or a device. Drained: residents stay and nothing new comes. Down: the same, and the
 * call that sets it reports the residents. */
#define HORUS_STATE_UP 0
#define HORUS_STATE_DRAINED 1
#define HORUS_STATE_DOWN 2

/* One node. The columns about devices have device_count elements; a NULL column takes the default for every
 * device. At most 1,024 devices and 1,024 labels; names, keys and values at most 1,024 bytes. */
typedef struct horus_node {
  uint32_t struct_size;
  uint32_t device_count;
  uint64_t id;                     /* chosen by the caller; unique in the cluster */
  const char* name;                /* optional; copied */
  int64_t cpu_milli;               /* thousandths of a core; 0 = it has none: jobs that ask for cores do not go there */
  int64_t mem_mib;                 /* host memory; 0 = none likewise */
  int64_t storage_mb_s;            /* storage bandwidth; 0 = not tracked */
  uint64_t rack;                   /* topology domain; nodes with the same number are near */
  const char* const* gpu_types;    /* names or aliases of the catalogue; required when device_count > 0 */
  const int32_t* sharing_modes;    /* HORUS_SHARING_*; 0 = MIG with a MIG profile, else TIME_SLICE */
  const char* const* mig_profiles; /* "3g.20gb" for a device that is a MIG instance, else NULL */
  const int32_t* physical_gpus;    /* card that the device is on, 0-32767; default -1: a card of its own. The MIG
                                      instances of one card share its number, and only they do */
  const int32_t* nvlink_islands;   /* devices with the same number, 0-32767, share NVLink; default -1: none */
  const int32_t* pcie_switches;    /* default 0 */
  const int32_t* sockets;          /* default 0 */
  const int32_t* max_tenants;      /* 0 = the placer's limit */
  const int64_t* gpu_mem_mib;      /* as the driver reports it; 0 = the catalogue's */
  size_t label_count;              /* length of the two columns below */
  const char* const* label_keys;
  const char* const* label_values;
  int64_t network_mb_s;          /* to other nodes, one direction; 0 = 12,000 (100 Gbit/s) */
  const char* const* device_ids; /* chosen by the caller, e.g. the driver's UUIDs; each once in the node; copied; a
                                    NULL entry or "" = none. Since 0.2. */
} horus_node;
#define HORUS_NODE_INIT HORUS_INIT(horus_node)

/* Kinds of job. */
#define HORUS_JOB_TRAINING 0
#define HORUS_JOB_INFERENCE 1
#define HORUS_JOB_BEST_EFFORT 2

/* With whose jobs a job shares devices. */
#define HORUS_SHARE_SAME_TENANT 1 /* of its own tenant; jobs that state no tenant are one tenant. The default */
#define HORUS_SHARE_ANYONE 2      /* of other tenants too, if they also say ANYONE */

/* gpus_per_task of a job that needs no GPU: its tasks take slots without a device. */
#define HORUS_JOB_NO_GPUS (-1)

/* One way of running a job. The placer picks the way that is worth most (docs/place.md). Demands are as in horus_job.
 */
typedef struct horus_job_alternative {
  uint32_t struct_size;
  int32_t tasks;         /* 0 = 1 */
  int32_t gpus_per_task; /* 0 = 1; at least one GPU */
  int32_t gpu_milli;     /* as that of horus_job */
  size_t demand_count;
  const char* const* gpu_types;
  const horus_demand* const* demands;
  double rate;       /* above 0: progress per second alone on the fastest type listed, in any unit that all ways of
                        the job share */
  int64_t cpu_milli; /* per task, like the next two; 0 = what the job states, -1 = none */
  int64_t mem_mib;
  int64_t storage_mb_s;
} horus_job_alternative;
#define HORUS_JOB_ALTERNATIVE_INIT HORUS_INIT(horus_job_alternative)

/* Speed of a job by cores and host memory per GPU, relative to its speed at one share of them: row-major
 * [cpu_count x mem_count]; 0 or NaN = not measured. Both axes ascend and are above 0; at most 256 points each. Read by
 * the synergy policies. */
typedef struct horus_sensitivity {
  uint32_t struct_size;
  uint32_t reserved;
  size_t cpu_count;
  const int64_t* cpu_milli;
  size_t mem_count;
  const int64_t* mem_mib;
  const float* speeds;
  double host_us; /* above 0: the speeds are those of the job's input pipeline alone, which makes a step's input in this
                     time at speed 1. 0: of the whole job, at whose best speed the GPU is the slower. Since 0.2. */
} horus_sensitivity;
#define HORUS_SENSITIVITY_INIT HORUS_INIT(horus_sensitivity)

/* One job: `tasks` processes placed together (a gang, all or nothing), each on gpus_per_task GPUs of one node.
 * Host resources are per task. At most 65,536 GPUs, 4,096 demands and 256 selectors. */
typedef struct horus_job {
  uint32_t struct_size;
  int32_t kind;             /* HORUS_JOB_* */
  uint64_t id;              /* chosen by the caller; unique among placed jobs */
  const char* name;         /* optional; copied */
  int32_t tasks;            /* 0 = 1 */
  int32_t gpus_per_task;    /* 0 = 1; HORUS_JOB_NO_GPUS = the host alone, without demands */
  int32_t gpu_milli;        /* per GPU: 0 = shares as its demand allows; else a hard request of 1-1000 thousandths,
                               below 1000 only with gpus_per_task 1 */
  int32_t exclusive;        /* 1 = alone on its devices */
  int32_t priority;         /* higher first */
  float slowdown_bound;     /* a promise, kept with slowdown_confidence: the job is placed only where its predicted
                               slowdown is at most this, and no later job may break it; 0 = the placer's default */
  int64_t cpu_milli;        /* thousandths of a core */
  int64_t mem_mib;          /* host memory */
  int64_t storage_mb_s;     /* storage bandwidth */
  int64_t submit_us;        /* the caller's clock */
  int64_t deadline_us;      /* 0 = none; read by the queue "edf", not by placement */
  double request_rate_hz;   /* inference: arrival rate; one step serves one request, so rate x step time is the share of
                               time in which it slows others; 0 = unknown: always busy, and requests never queue */
  int64_t latency_bound_us; /* inference: 99 % of the requests must be served within it. It lowers the slowdown bound
                               to the largest at which that holds (docs/place.md); needs step times; 0 = none */
  size_t demand_count;      /* length of the two columns below, >= 1; 0 without GPUs or with alternatives */
  const char* const* gpu_types;       /* the types it may run on, in any order, each once; NULL column or a NULL
                                         entry = any type, then the only entry */
  const horus_demand* const* demands; /* its demand per GPU on each of them */
  size_t selector_count;              /* node labels that must be present */
  const char* const* selector_keys;
  const char* const* selector_values;
  const char* tenant;       /* optional owner; copied */
  size_t alternative_count; /* ways to run it, at most 64; leave tasks, GPUs and demands above unset then */
  const horus_job_alternative* const* alternatives;
  int64_t gpu_mem_request_mib; /* device memory per GPU that is guaranteed; 0 = the demand's upper bound, at most the
                                  limit */
  int64_t gpu_mem_limit_mib;   /* most device memory per GPU that it may ever hold, at least the request; 0 = the
                                  request */
  int32_t share;               /* HORUS_SHARE_*: with whose jobs it shares devices; both must agree; 0 = SAME_TENANT */
  int32_t spread_tasks;        /* 1 = at most one of its tasks a node */
  size_t group_count;          /* groups that it belongs to, each once; at most 64 */
  const char* const* groups;   /* in any order; copied */
  size_t avoid_count;          /* groups with which it shares no node, in either order; each once; at most 64 */
  const char* const* avoid_groups;
  const horus_sensitivity* sensitivity; /* NULL = not known */
  int64_t stated_cpu_milli; /* per task, at most cpu_milli: what the job asked for, if a synergy policy granted more.
                               It can be cut back to that. 0 = cpu_milli, -1 = nothing */
  int64_t stated_mem_mib;
  float
      weight; /* what a unit of its useful work (horus/modes.h) counts beside that of other jobs, 1e-6 to 1e6; 0 = 1 */
  float slowdown_confidence; /* probability with which slowdown_bound or the latency must hold, 0.5 to 0.999; 0 =
                                that of the model's upper bounds: 0.9, or what a callback model states */
  int32_t sm_cap_pct;   /* most of a GPU's SMs that it may use under MPS (CUDA_MPS_ACTIVE_THREAD_PERCENTAGE), 1 to 99:
                           the job then goes to devices in that mode alone; 0 = no cap, or one that the placer chooses
                           (horus_placer_options.sm_caps). Since 0.2. */
  uint32_t reserved;    /* Since 0.2. */
  int32_t sharing_mode; /* of a job that is adopted on devices of HORUS_SHARING_TIME_SLICE_OR_MPS: the one in which it
                           runs; 0 = MPS with a cap, else TIME_SLICE. Plans choose it anew. Since 0.2. */
  uint32_t reserved0;   /* Since 0.2. */
} horus_job;
#define HORUS_JOB_INIT HORUS_INIT(horus_job)

/* An empty cluster over the types of `catalogue` (which may be freed; NULL = the built-in one).
 * Errors: INVALID_ARGUMENT, NO_MEMORY. */
HORUS_API horus_status horus_cluster_create(const horus_catalogue* catalogue, horus_cluster** out, horus_error* error);
/* Accepts NULL. Nobody may use the cluster meanwhile. */
HORUS_API void horus_cluster_free(horus_cluster* cluster);

/* Errors: EXISTS (id), INVALID_ARGUMENT (field, expected, found), NOT_FOUND (type). Caller's lock. */
HORUS_API horus_status horus_cluster_add_node(horus_cluster* cluster, const horus_node* node, horus_error* error);

/* Replaces the specification of node->id. Errors: NOT_FOUND, STATE (a resident would lose its place, or its device
 * would change its id), and those of horus_cluster_add_node. Caller's lock. */
HORUS_API horus_status horus_cluster_change_node(horus_cluster* cluster, const horus_node* node, horus_error* error);

/* Errors: NOT_FOUND, STATE (jobs run there: release them first). Caller's lock. */
HORUS_API horus_status horus_cluster_remove_node(horus_cluster* cluster, uint64_t node_id, horus_error* error);

#define HORUS_WHOLE_NODE UINT32_MAX /* Since 0.2. */

/* Sets HORUS_STATE_* of a device of a node, or of the node (device = HORUS_WHOLE_NODE). Jobs that run there
 * stay until they are released. Their ids go to job_ids in ascending order (`capacity` elements; NULL = not wanted),
 * their number to *count (may be NULL). With BUFFER_TOO_SMALL only *count changed. Errors: NOT_FOUND, INVALID_ARGUMENT,
 * BUFFER_TOO_SMALL. Caller's lock. Since 0.2. */
HORUS_API horus_status horus_cluster_set_state(horus_cluster* cluster, uint64_t node_id, uint32_t device, int32_t state,
                                               size_t capacity, uint64_t* job_ids, size_t* count, horus_error* error);

/* Where a job runs: one row per device used (without GPUs: one row per task), in the order (task, node, device).
 * Columns have the caller's `capacity`; NULL columns are skipped. */
typedef struct horus_slots {
  uint32_t struct_size;
  uint32_t reserved;
  size_t capacity;
  uint64_t* node_ids;
  uint32_t* devices; /* index within the node; UINT32_MAX for a task without GPUs */
  uint32_t* tasks;   /* task of the gang, from 0 */
} horus_slots;
#define HORUS_SLOTS_INIT HORUS_INIT(horus_slots)

/* Takes in a job that already runs: slot_count rows of nodes, devices and tasks (tasks may be NULL for a one-task job).
 * It is accepted even where the library would not have placed it. Refused are only unknown places, a device named
 * twice, a wrong number of slots, a known id, and fields out of their ranges. *reason (may be NULL)
 * becomes HORUS_REASON_NONE, or the first constraint that the job breaks there; slowdowns, which a cluster does not
 * predict, are no such constraint (horus_placer_appraise and horus_placer_review tell them). Errors: EXISTS, NOT_FOUND,
 * INVALID_ARGUMENT, INVALID_STRUCT, LIMIT (4,096 residents of a device, 4,096 groups on a node, 2^42 milli-cores, MiB
 * or MB/s that a node owes). Caller's lock. */
HORUS_API horus_status horus_cluster_adopt(horus_cluster* cluster, const horus_job* job, size_t slot_count,
                                           const uint64_t* node_ids, const uint32_t* devices, const uint32_t* tasks,
                                           int32_t* reason, horus_error* error);

/* Removes a job. Errors: NOT_FOUND (so a second release is harmless). Internally synchronised. */
HORUS_API horus_status horus_cluster_release(horus_cluster* cluster, uint64_t job_id, horus_error* error);

typedef struct horus_cluster_info {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t nodes;
  uint64_t devices;
  uint64_t devices_used; /* with at least one resident */
  uint64_t jobs;
  uint64_t slots;               /* job x device pairs */
  double gpu_util_pct;          /* predicted: residents summed, capped at 100 a device, mean over all devices */
  int64_t gpu_mem_mib;          /* of all devices */
  int64_t gpu_mem_reserved_mib; /* by the residents' requests */
  int64_t cpu_milli;
  int64_t cpu_used_milli;
  int64_t mem_mib; /* host memory */
  int64_t mem_used_mib;
  uint64_t state_hash; /* equal for equal states, whatever their history */
  uint64_t bytes_held; /* memory of the handle */
} horus_cluster_info;
#define HORUS_CLUSTER_INFO_INIT HORUS_INIT(horus_cluster_info)

/* Errors: INVALID_ARGUMENT, INVALID_STRUCT. */
HORUS_API horus_status horus_cluster_get_info(const horus_cluster* cluster, horus_cluster_info* info,
                                              horus_error* error);

/* Ids of all nodes, or of all resident jobs, ascending. Ask with capacity 0 for the count.
 * Errors: BUFFER_TOO_SMALL. */
HORUS_API horus_status horus_cluster_nodes(const horus_cluster* cluster, size_t capacity, uint64_t* node_ids,
                                           size_t* count, horus_error* error);
HORUS_API horus_status horus_cluster_jobs(const horus_cluster* cluster, size_t capacity, uint64_t* job_ids,
                                          size_t* count, horus_error* error);

typedef struct horus_node_info {
  uint32_t struct_size;
  int32_t state;    /* HORUS_STATE_* */
  uint64_t version; /* changes whenever the node or what runs on it changes */
  uint64_t devices;
  uint64_t jobs;
  int64_t cpu_milli;
  int64_t cpu_free_milli; /* like the next two: negative where adopted jobs over-commit */
  int64_t mem_mib;
  int64_t mem_free_mib;
  int64_t storage_mb_s;
  int64_t storage_free_mb_s;
  uint64_t rack;
  int64_t network_mb_s;
} horus_node_info;
#define HORUS_NODE_INFO_INIT HORUS_INIT(horus_node_info)

/* Node `node_id`; the ids of the jobs on it, ascending, go to job_ids (NULL = not wanted; count may be NULL).
 * Errors: NOT_FOUND, BUFFER_TOO_SMALL, INVALID_STRUCT. */
HORUS_API horus_status horus_cluster_get_node(const horus_cluster* cluster, uint64_t node_id, horus_node_info* info,
                                              size_t capacity, uint64_t* job_ids, size_t* count, horus_error* error);

typedef struct horus_device_info {
  uint32_t struct_size;
  int32_t sharing_mode; /* HORUS_SHARING_*; of TIME_SLICE_OR_MPS, while it has tenants, the one in which they run */
  int32_t node_state;   /* HORUS_STATE_* */
  int32_t device_state;
  uint64_t gpu_type; /* position in the catalogue */
  uint64_t tenants;
  int64_t mem_mib;          /* of the device */
  int64_t mem_reserved_mib; /* by the tenants' requests */
  int64_t mem_used_mib;     /* by the tenants' estimates */
  double gpu_util_pct;      /* sum over the tenants, may exceed 100 */
  int64_t gpu_milli_used;   /* hard requests; a tenant without one counts 1 */
  const char* mig_profile;  /* NULL unless a MIG instance; borrowed from the cluster */
  int64_t mem_limit_mib;    /* sum of the tenants' limits */
  const char* device_id;    /* NULL = none; borrowed from the cluster until the node changes. Since 0.2. */
} horus_device_info;
#define HORUS_DEVICE_INFO_INIT HORUS_INIT(horus_device_info)

/* Device `device` of node `node_id`; its tenants' job ids, ascending, go to job_ids (NULL = not wanted;
 * count may be NULL). Errors: NOT_FOUND, BUFFER_TOO_SMALL, INVALID_STRUCT. */
HORUS_API horus_status horus_cluster_get_device(const horus_cluster* cluster, uint64_t node_id, uint32_t device,
                                                horus_device_info* info, size_t capacity, uint64_t* job_ids,
                                                size_t* count, horus_error* error);

typedef struct horus_job_info {
  uint32_t struct_size;
  int32_t kind; /* HORUS_JOB_* */
  int32_t tasks;
  int32_t gpus_per_task; /* HORUS_JOB_NO_GPUS = none */
  int32_t priority;
  int32_t adopted;        /* 1 = it came by horus_cluster_adopt */
  int32_t over_committed; /* 1 = adopted where a constraint would have refused it */
  int32_t reserved;
  int64_t submit_us;
  int64_t cpu_milli; /* per task: what it holds */
  int64_t mem_mib;
  int64_t stated_cpu_milli; /* per task: what it asked for, -1 = nothing; less than cpu_milli where a synergy
                               policy granted more */
  int64_t stated_mem_mib;
  const horus_job* job; /* all that was stated of it, as it can be planned again; of alternatives the one that runs;
                           its weight times the price of a batch.
                           NULL without bytes. Since 0.2. */
  int32_t sm_cap_pct; /* under which it runs, stated or chosen (horus_placer_options.sm_caps); 0 = none. Whoever adopts
                         the job elsewhere states it. Since 0.2. */
  int32_t probe;      /* 1 = alone as a probe (horus_decision.probe), which `job` does not state. Since 0.2. */
} horus_job_info;
#define HORUS_JOB_INFO_INIT HORUS_INIT(horus_job_info)

/* A resident job. info->job and all that it points to, texts and demands too, are laid out in `bytes` (`capacity` of
 * them, of any alignment) and live as long as these; *count (may be NULL) is how many that takes. With capacity 0 job
 * is NULL. Errors: NOT_FOUND, BUFFER_TOO_SMALL, INVALID_STRUCT. */
HORUS_API horus_status horus_cluster_get_job(const horus_cluster* cluster, uint64_t job_id, horus_job_info* info,
                                             size_t capacity, void* bytes, size_t* count, horus_error* error);

/* Slots of a resident job. Errors: NOT_FOUND, BUFFER_TOO_SMALL. */
HORUS_API horus_status horus_cluster_job_slots(const horus_cluster* cluster, uint64_t job_id, const horus_slots* slots,
                                               size_t* count, horus_error* error);

/* The whole state as versioned, checksummed bytes; equal states give equal bytes. Ask with capacity 0 for the
 * count; it may grow between two calls when others write. Errors: BUFFER_TOO_SMALL, LIMIT (1 GiB). */
HORUS_API horus_status horus_cluster_snapshot(const horus_cluster* cluster, size_t capacity, void* bytes, size_t* count,
                                              horus_error* error);

/* A cluster from a snapshot; later decisions are those of the original. GPU types are matched by name in
 * `catalogue` (NULL = the built-in one). Errors: CORRUPT, VERSION (both versions named), NOT_FOUND (type),
 * INVALID_ARGUMENT, LIMIT. */
HORUS_API horus_status horus_cluster_restore(const horus_catalogue* catalogue, const void* bytes, size_t size,
                                             horus_cluster** out, horus_error* error);

/* Writes a snapshot to a file: beside `path`, synced, renamed. A reader sees the old or the new file whole, even if the
 * process or the machine stops. The mode of the old file is kept; a link is followed. A process killed inside may leave
 * "<path>.new-<16 hexadecimal digits>", which may be removed.
 * Errors: IO (also if `path` is no regular file; the old file is untouched, unless the message says that only syncing
 * the folder failed), LIMIT. */
HORUS_API horus_status horus_cluster_snapshot_file(const horus_cluster* cluster, const char* path, horus_error* error);

/* A cluster from a file of horus_cluster_snapshot_file or of a snapshot's bytes. Errors: IO, LIMIT (1 GiB) and those of
 * horus_cluster_restore. */
HORUS_API horus_status horus_cluster_restore_file(const horus_catalogue* catalogue, const char* path,
                                                  horus_cluster** out, horus_error* error);

#ifdef __cplusplus
}
#endif

#endif /* HORUS_CLUSTER_H_ */
