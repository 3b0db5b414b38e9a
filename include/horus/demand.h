/* SPDX-License-Identifier: Apache-2.0 */
/* Demand: the GPU catalogue, and what a graph will ask of each GPU type.
 * Since 0.1 where nothing else is said. */
#ifndef HORUS_DEMAND_H_
#define HORUS_DEMAND_H_

#include "horus/base.h"
#include "horus/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The known GPU types. Immutable: share freely. Functions that need the types of something else take NULL for the
 * built-in catalogue; those that ask a catalogue itself (count, get, find) need one: horus_catalogue_default. */
typedef struct horus_catalogue horus_catalogue;

/* One kind of slice into which a GPU in MIG mode can be cut. */
typedef struct horus_mig_profile {
  uint32_t struct_size;
  uint32_t reserved;
  const char* name; /* as nvidia-smi prints it, e.g. "3g.20gb" */
  int64_t compute_slices;
  int64_t memory_slices;
  int64_t mem_mib;       /* visible to a process in one instance */
  int64_t max_instances; /* on one GPU at once */
} horus_mig_profile;
#define HORUS_MIG_PROFILE_INIT HORUS_INIT(horus_mig_profile)

/* One GPU type. Rates are dense peaks at the boost clock with a multiply-add counted as two; 0 = not supported.
 * Text and MIG profiles that the library fills in are borrowed from the catalogue. */
typedef struct horus_gpu {
  uint32_t struct_size;
  uint32_t reserved;
  const char* name;           /* kebab-case, e.g. "a100-40gb" */
  const char* display_name;   /* e.g. "NVIDIA A100 SXM4 40 GB" */
  const char* architecture;   /* e.g. "Ampere" */
  const char* source;         /* where the numbers come from */
  int64_t compute_capability; /* major * 10 + minor, e.g. 80 */
  int64_t sm_count;
  int64_t boost_clock_mhz;
  int64_t fp64_gflops;
  int64_t fp32_gflops; /* >= 1 */
  int64_t tf32_gflops;
  int64_t fp16_gflops; /* tensor cores where the type has them; >= 1 */
  int64_t bf16_gflops;
  int64_t fp8_gflops;
  int64_t int8_gops;
  int64_t mem_mib;
  int64_t mem_bandwidth_mb_s;
  int64_t l2_kib;
  int64_t pcie_mb_s;   /* one direction */
  int64_t nvlink_mb_s; /* both directions together; 0 = none */
  int64_t tdp_w;
  int64_t context_mib;     /* memory that a CUDA context takes in each process; 0 = estimated from the SMs */
  int64_t max_mps_clients; /* 0 = by compute capability */
  size_t mig_count;        /* length of mig_profiles, at most 32 */
  const horus_mig_profile* const* mig_profiles;
  size_t alias_count;         /* length of aliases, at most 32; input only */
  const char* const* aliases; /* other spellings of the name; input only */
} horus_gpu;
#define HORUS_GPU_INIT HORUS_INIT(horus_gpu)

/* The built-in catalogue. Errors: INVALID_ARGUMENT, NO_MEMORY. Any thread. */
HORUS_API horus_status horus_catalogue_default(horus_catalogue** out, horus_error* error);

/* A new catalogue: `base` (NULL = the built-in one; may be freed) and after it `count` further types, so positions
 * in `base` keep their meaning. A name or alias that is taken is refused. Errors: INVALID_ARGUMENT (type, field,
 * expected, found), EXISTS, LIMIT (4,096 types). Any thread. */
HORUS_API horus_status horus_catalogue_extend(const horus_catalogue* base, size_t count, const horus_gpu* const* gpus,
                                              horus_catalogue** out, horus_error* error);

/* Clusters and models made from the catalogue keep what they need of it. Accepts NULL. */
HORUS_API void horus_catalogue_free(horus_catalogue* catalogue);

/* Number of types; 0 for NULL. Any thread. */
HORUS_API size_t horus_catalogue_count(const horus_catalogue* catalogue);

/* The type at `index`; alias_count and aliases come back as 0. Errors: NOT_FOUND, INVALID_STRUCT. Any thread. */
HORUS_API horus_status horus_catalogue_get(const horus_catalogue* catalogue, size_t index, horus_gpu* gpu,
                                           horus_error* error);

/* Position of the type called `name` (name or alias; case, '_', ' ' and brand prefixes are ignored).
 * Errors: NOT_FOUND (near names are suggested). Any thread. */
HORUS_API horus_status horus_catalogue_find(const horus_catalogue* catalogue, const char* name, size_t* index,
                                            horus_error* error);

#define HORUS_DEMAND_GIVEN 1u        /* stated by the caller */
#define HORUS_DEMAND_MEASURED 2u     /* rests on observations of this very profile */
#define HORUS_DEMAND_OUTSIDE 4u      /* the job lies outside what the predictor was trained on */
#define HORUS_DEMAND_UNCALIBRATED 8u /* the upper bounds hold at no stated coverage */
/* PREDICTED: memory or step time are neither stated nor measured. A prediction alone refuses a job for now (DEFER), not
 * for good (REJECT). TOO_LARGE: weights, optimiser state, batch and what backward must keep already exceed the memory
 * of the GPU type; then it may reject. */
#define HORUS_DEMAND_PREDICTED 16u
#define HORUS_DEMAND_TOO_LARGE 32u

/* mem_mib_upper without a known bound, because less than 0.9 of the graph's operators or forward FLOPs are understood,
 * or because nothing was stated. Such a job runs alone (HORUS_REASON_MEMORY_UNKNOWN on a device with tenants) until its
 * memory is stated, by gpu_mem_request_mib, or measured. */
#define HORUS_MEM_MIB_UNBOUNDED 4294967296

#define HORUS_TRAIT_COUNT 8u

/* What a job asks of one GPU of one type. Each pair is an estimate and an upper bound >= it; an upper bound of
 * 0 beside a positive estimate means "the same". Predicted, measured, or stated by the caller. */
typedef struct horus_demand {
  uint32_t struct_size;
  uint32_t flags;      /* HORUS_DEMAND_* */
  uint64_t profile_id; /* fingerprint of graph and run; 0 = none: not cached, not learned */
  float gpu_util_pct;  /* NVML GPU-busy percentage alone on the GPU, mean over the steps, 0-100 */
  float gpu_util_pct_upper;
  float mem_bw_util_pct; /* share of the memory bandwidth, 0-100 */
  float mem_bw_util_pct_upper;
  int64_t mem_mib;       /* peak, context included; 0, its bound too = unknown: in a job without gpu_milli as
                            HORUS_MEM_MIB_UNBOUNDED */
  int64_t mem_mib_upper; /* what placement reserves */
  int64_t step_time_us;  /* one step alone; 0 = unknown */
  int64_t step_time_us_upper;
  int64_t gradient_mib;            /* all-reduced per step by a data-parallel gang */
  float traits[HORUS_TRAIT_COUNT]; /* columns of learned interference models; all zero = unknown, as beside
                                      a gpu_util_pct of your own */
  float power_w;                   /* board power, mean over the steps; 0 = unknown */
  float power_w_upper;
  float distance;    /* ln of "times beyond what the predictor was trained on"; 0 = inside */
  float operator_us; /* mean time of an operator, weighted by that time; 0 = unknown */
  double host_us; /* time in which the host makes the input of a step, with the cores and memory that the job holds: a
                     step is the slower of this and the GPU's; 0 = never the slower. Since 0.2. */
  float duty; /* share of the time in which a service has steps to do, above 0 to 1; 0 = by the job's request rate, else
                 always. Since 0.2. */
  float slowdown_bound; /* largest slowdown at which a service keeps its load and its times here; below 1 = not even
                           alone; 0 = nothing is promised. Since 0.2. */
} horus_demand;
#define HORUS_DEMAND_INIT HORUS_INIT(horus_demand)

/* Predicts demands from graphs. Immutable: share freely. */
typedef struct horus_predictor horus_predictor;

/* The built-in predictor: the roofline refined by the built-in bundle. Errors: UNSUPPORTED, NO_MEMORY.
 * Any thread. */
HORUS_API horus_status horus_predictor_default(horus_predictor** out, horus_error* error);

/* A predictor from a trained bundle of `size` bytes, which are not kept.
 * Errors: INVALID_ARGUMENT, CORRUPT, VERSION (of the format), STATE (made for another feature schema: train again),
 * LIMIT, UNSUPPORTED. Any thread. */
HORUS_API horus_status horus_predictor_from_bytes(const void* bytes, size_t size, horus_predictor** out,
                                                  horus_error* error);

/* Accepts NULL. */
HORUS_API void horus_predictor_free(horus_predictor* predictor);

/* Demand of `graph` run as `run` (NULL = defaults) on each of `count` GPU types, named by `gpu_types`, into
 * the structs that `demands` points to. All or nothing. The graph is analysed once, whatever the count, and
 * not again for the same question.
 * Errors: NOT_FOUND (type), as horus_graph_cost. Any thread. */
HORUS_API horus_status horus_predictor_demand(const horus_predictor* predictor, const horus_catalogue* catalogue,
                                              const horus_graph* graph, const horus_run_spec* run, size_t count,
                                              const char* const* gpu_types, horus_demand* const* demands,
                                              horus_error* error);

/* What to solve for: the largest value of one dimension. */
typedef struct horus_solve_options {
  uint32_t struct_size;
  uint32_t reserved;
  const char* dim;             /* "batch" (NULL), or a named dimension of a graph input, e.g. "seq" */
  int64_t max_value;           /* largest value to try, 1 to 2^31 - 1; 0 = 1,048,576 */
  const int64_t* resident_mib; /* per device, MiB: sum of its residents' upper bounds, 0 to 2^32; NULL = none */
} horus_solve_options;
#define HORUS_SOLVE_OPTIONS_INIT HORUS_INIT(horus_solve_options)

/* Why no larger value is possible. */
#define HORUS_SOLVED_MEMORY 1  /* the bound of `next` exceeds the memory that is left */
#define HORUS_SOLVED_GRAPH 2   /* the graph refuses `next`; `message` says why */
#define HORUS_SOLVED_MAXIMUM 3 /* max_value fits */

/* The largest value on one device: it fits, and `next` does not fit, is refused, or is beyond the maximum. */
typedef struct horus_solution {
  uint32_t struct_size;
  int32_t reason; /* HORUS_SOLVED_* */
  uint32_t flags; /* HORUS_DEMAND_* of the predictions made */
  uint32_t reserved;
  int64_t largest;       /* elements; 0 = not even the least value that the graph takes fits */
  int64_t next;          /* largest + 1; that least value where largest is 0; 0 with MAXIMUM */
  int64_t mem_mib_upper; /* bound at `largest`, context included; 0 where that is 0 */
  int64_t short_mib;     /* MEMORY: what `next` lacks, >= 1; else 0 */
  char message[464];     /* GRAPH: one line, cut to fit, always ended by NUL; else empty */
} horus_solution;
#define HORUS_SOLUTION_INIT HORUS_INIT(horus_solution)

/* The largest value of a dimension of `graph` run as `run` (NULL = defaults) whose upper bound of memory fits, for each
 * of `count` devices, of the types named by `gpu_types` (a type may come several times, with other residents), into the
 * structs that `solutions` points to. All or nothing. `run` must leave the dimension open and bind all others of the
 * inputs. The graph is bound anew for each value tried: log2(max_value) + 1 values for all devices together and usually
 * 2 more a device. A device's answer does not depend on the others. The bound may fall by a few MiB as the value grows
 * (fragments of the caching allocator), so larger values than the answer may fit now and then; the answer itself does.
 * `options` may be NULL; `progress` (NULL = none) is called before each binding.
 * Errors: NOT_FOUND (type), INVALID_ARGUMENT (a dimension unknown, bound by `run`, or left open; ranges; or why the
 * graph takes no value tried), STATE (the graph is understood too little: its memory has no bound), CANCELLED, as
 * horus_graph_cost. Any thread. */
HORUS_API horus_status horus_predictor_solve(const horus_predictor* predictor, const horus_catalogue* catalogue,
                                             const horus_graph* graph, const horus_run_spec* run,
                                             const horus_solve_options* options, size_t count,
                                             const char* const* gpu_types, horus_progress progress, void* user,
                                             horus_solution* const* solutions, horus_error* error);

/* What was measured of a service on a GPU type, means, at its tokens_in and tokens_out. Since 0.2. */
typedef struct horus_service_run {
  uint32_t struct_size;
  uint32_t reserved;
  const char* gpu_type;
  double concurrency;    /* users who ask again as soon as they are answered, 1 to 1e6 */
  double first_token_us; /* 0 = not measured; not both */
  double token_us;       /* of each further token */
} horus_service_run;
#define HORUS_SERVICE_RUN_INIT HORUS_INIT(horus_service_run)

/* What is asked of a language model that an engine serves; without tokens, of another model, that answers in one step
 * and is served in batches. Either requests_per_s or concurrency is above 0. Since 0.2. */
typedef struct horus_service_load {
  uint32_t struct_size;
  float confidence;       /* share of the requests that must keep the times, 0.5 to 0.999; 0 = 0.9 */
  double requests_per_s;  /* of independent users, at most 1e6 */
  double concurrency;     /* users who ask again as soon as they are answered, at most 1e6 */
  double tokens_in;       /* of a prompt, mean, 1 to 2^24; 0 of both: it answers in one step */
  double tokens_out;      /* of an answer, mean, 1 to 2^24 */
  double longest;         /* tokens of the longest request, prompt and answer; 0 = four times the mean, at most
                             what the model was made for; more than that is refused */
  int64_t first_token_us; /* promised time from a request to its first token, or its one answer; 0 = none */
  int64_t token_us;       /* promised time of each further token; 0 = none */
  size_t measured_count;  /* at most 64 */
  const horus_service_run* const* measured; /* correct the times on their GPU type: by the median of measured over
                                               predicted; three and more narrow the bound of the first token */
} horus_service_load;
#define HORUS_SERVICE_LOAD_INIT HORUS_INIT(horus_service_load)

#define HORUS_SERVICE_SERVED 0
#define HORUS_SERVICE_NO_ROOM 1     /* the model with the longest request does not fit the GPU */
#define HORUS_SERVICE_OVERLOADED 2  /* more requests than the GPU serves; the figures are those at its most */
#define HORUS_SERVICE_LATE 3        /* a promised time is not kept, even alone */
#define HORUS_SERVICE_UNSUPPORTED 4 /* the engine does not run so on this GPU type. Since 0.2. */

/* A service on one GPU of those that share its model. Upper bounds hold for the share of the requests that was asked
 * for, with the width that served models showed. Since 0.2. */
typedef struct horus_service {
  uint32_t struct_size;
  int32_t verdict;        /* HORUS_SERVICE_* */
  double weights_mib;     /* memory of an engine that takes no more than the load needs: the sum of four */
  double activations_mib; /* of one step's chunk of prompts */
  double engine_mib;      /* context, CUDA graphs, buffers of collectives */
  double cache_mib;       /* of cache_tokens keys and values */
  double cache_tokens;
  double running;      /* requests that are served at once, mean */
  double most_running; /* that the engine should admit at once */
  double first_token_us;
  double first_token_us_upper;
  double token_us;
  double token_us_upper;
  double requests_per_s;      /* served */
  double tokens_per_s;        /* of answers */
  double most_requests_per_s; /* with all memory of the GPU, times kept; 0 with concurrency */
  double busy;                /* share of all time in which a step runs, 0-1 */
  double largest_slowdown;    /* at which load and times are still kept; below 1 = not even alone */
  char engine_arguments[256]; /* that tell the engine to take no more, of vLLM, SGLang or trtllm-serve, or a server the
                                 largest batch; empty where it is not served */
} horus_service;
#define HORUS_SERVICE_INIT HORUS_INIT(horus_service)

/* How `graph` (horus_graph_from_config), run by an engine as `run` says, serves `load` on each of `count` GPU types,
 * into the structs that `services` and `demands` point to (either may be NULL). A demand is what to place: a GPU's part
 * of the model, mem_mib that the engine is to be told to take, duty and slowdown_bound. `run` leaves batch, seq and
 * past open; of a model that answers in one step batch is the largest that its server makes, 0 = 32. All or nothing.
 * Since 0.2. Errors: NOT_FOUND (type), INVALID_ARGUMENT (a field of the load, a run of no engine, a graph without these
 * dimensions), as horus_graph_cost. Any thread. */
HORUS_API horus_status horus_predictor_service(const horus_predictor* predictor, const horus_catalogue* catalogue,
                                               const horus_graph* graph, const horus_run_spec* run,
                                               const horus_service_load* load, size_t count,
                                               const char* const* gpu_types, horus_service* const* services,
                                               horus_demand* const* demands, horus_error* error);

#ifdef __cplusplus
}
#endif

#endif /* HORUS_DEMAND_H_ */
