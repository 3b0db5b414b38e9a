/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: what a job computes, read from ONNX without its weights, and what one step of it costs.
 * Since 0.1 where nothing else is said. */
#ifndef HORUS_GRAPH_H_
#define HORUS_GRAPH_H_

#include "horus/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A computation graph. Immutable: share freely between threads. */
typedef struct horus_graph horus_graph;

/* Limits on what a file may ask of the reader. Zero fields take the default. */
typedef struct horus_graph_limits {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t max_nodes;            /* nodes of all subgraphs together; default 1,000,000 */
  uint64_t max_nesting;          /* subgraphs inside each other; default and at most 32 */
  uint64_t max_held_bytes;       /* memory of the graph once read; default 1 GiB */
  uint64_t max_literal_elements; /* larger constants keep their shape only; default 4,096 */
  uint64_t max_name_bytes;       /* of one name, operator type or text; default 16 KiB */
  uint64_t max_rank;             /* dimensions of one tensor; default 64 */
} horus_graph_limits;
#define HORUS_GRAPH_LIMITS_INIT HORUS_INIT(horus_graph_limits)

/* Reads an ONNX file: IR 3 to 11, opset 7 and later. Weights and external data are skipped, never loaded.
 * `limits` may be NULL. *out is to be freed by horus_graph_free.
 * Errors: IO, CORRUPT, LIMIT, INVALID_ARGUMENT, UNSUPPORTED, NO_MEMORY. Any thread. */
HORUS_API horus_status horus_graph_from_file(const char* path, const horus_graph_limits* limits, horus_graph** out,
                                             horus_error* error);

/* The same from `size` bytes in memory, which are not kept. Errors: as from_file without IO. Any thread. */
HORUS_API horus_status horus_graph_from_bytes(const void* bytes, size_t size, const horus_graph_limits* limits,
                                              horus_graph** out, horus_error* error);

/* Which part of a language model a GPU runs, and in which types. Zero fields take the default. Since 0.2. */
typedef struct horus_config_options {
  uint32_t struct_size;
  int32_t training;          /* 1: logits of every token and no caches; 0: caches, and logits of the last token; it is
                                then refused by runs that train (INVALID_ARGUMENT) */
  int64_t tensor_parallel;   /* GPUs that share every layer; default 1 */
  int64_t pipeline_parallel; /* stages; default 1 */
  int64_t pipeline_stage;    /* from 0 */
  int64_t expert_parallel;   /* groups of the tensor-parallel GPUs that share out whole experts; default 1 */
  int64_t lora_rank;         /* adapters of this rank on the layers of lora_targets; default none */
  const char* weights; /* type of linear layers in place of the file's: "bf16", "fp16", "fp32", "fp8", "int8", "int4",
                          "nvfp4" or "mxfp4"; NULL = the file's */
  const char* cache;   /* type of keys and values: "bf16", "fp16", "fp32", "fp8" or "int8"; NULL = the file's */
  const char* lora_targets; /* "all-linear", or some of q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj and down_proj
                               with commas between; NULL = those of attention. Since 0.2. */
} horus_config_options;
#define HORUS_CONFIG_OPTIONS_INIT HORUS_INIT(horus_config_options)

/* The graph of a language model, of `size` bytes of a Hugging Face config.json, or the name of a known model
 * (horus_library_info). Its named dimensions are batch, seq (new tokens of a sequence) and, of inference, past (tokens
 * in the cache; unbound: 0). `options` may be NULL: inference on one GPU. *out is to be freed by horus_graph_free.
 * Since 0.2.
 * Errors: CORRUPT (no JSON), LIMIT, INVALID_ARGUMENT (a field or an option: named), NOT_FOUND (a name),
 * UNSUPPORTED (a model_type, or a field that is not understood: named), INVALID_STRUCT, NO_MEMORY. Any thread. */
HORUS_API horus_status horus_graph_from_config(const void* text, size_t size, const horus_config_options* options,
                                               horus_graph** out, horus_error* error);

/* Accepts NULL. */
HORUS_API void horus_graph_free(horus_graph* graph);

typedef struct horus_graph_info {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t ir_version;
  int64_t opset;        /* of the default domain */
  uint64_t nodes;       /* of all subgraphs together */
  uint64_t dims;        /* named dimensions, see horus_graph_dim_name */
  uint64_t fingerprint; /* of structure, types and attributes; names and weights do not count */
  uint64_t bytes_held;  /* memory of the handle */
} horus_graph_info;
#define HORUS_GRAPH_INFO_INIT HORUS_INIT(horus_graph_info)

/* Errors: INVALID_ARGUMENT, INVALID_STRUCT. Any thread. */
HORUS_API horus_status horus_graph_get_info(const horus_graph* graph, horus_graph_info* info, horus_error* error);

/* Name of the named dimension `index`, borrowed from the graph; NULL past the end. Any thread. */
HORUS_API const char* horus_graph_dim_name(const horus_graph* graph, size_t index);

/* How the graph is run. */
#define HORUS_MODE_TRAINING 0
#define HORUS_MODE_INFERENCE 1

/* Under FP32, TF32 and FP32_IEEE 16-bit weights of a config are stored in float32, unless horus_config_options.weights
 * states a type. */
#define HORUS_PRECISION_FP32 0 /* as frameworks do: convolutions in TF32 where the GPU has it, all else in float32 */
#define HORUS_PRECISION_TF32 1 /* matrix products too */
#define HORUS_PRECISION_AMP_FP16 2 /* autocast: float32 weights, half-precision matrix work */
#define HORUS_PRECISION_AMP_BF16 3
#define HORUS_PRECISION_FP16 4
#define HORUS_PRECISION_BF16 5
#define HORUS_PRECISION_FP32_IEEE 6 /* no TF32 at all. Since 0.2. */

#define HORUS_OPTIMIZER_SGD 0
#define HORUS_OPTIMIZER_MOMENTUM 1
#define HORUS_OPTIMIZER_ADAM 2
#define HORUS_OPTIMIZER_ADAMW 3
#define HORUS_OPTIMIZER_ADAFACTOR 4
#define HORUS_OPTIMIZER_ADAM_8BIT 5
#define HORUS_OPTIMIZER_RMSPROP 6    /* Since 0.2. */
#define HORUS_OPTIMIZER_ADAGRAD 7    /* Since 0.2. */
#define HORUS_OPTIMIZER_ADAMW_BF16 8 /* of bf16 weights without float32 masters. Since 0.2. */

/* Who dispatches the kernels: decides how many there are. */
#define HORUS_FRAMEWORK_PYTORCH 0   /* 2.0 and later */
#define HORUS_FRAMEWORK_PYTORCH_1 1 /* before 2.0 */
#define HORUS_FRAMEWORK_TENSORFLOW 2
#define HORUS_FRAMEWORK_PYTORCH_COMPILED 3 /* torch.compile: pointwise chains are one kernel. Since 0.2. */
/* Inference engines, for HORUS_MODE_INFERENCE: kernels of their own, launched by CUDA graphs. Since 0.2. */
#define HORUS_FRAMEWORK_VLLM 4
#define HORUS_FRAMEWORK_TENSORRT_LLM 5
#define HORUS_FRAMEWORK_SGLANG 6

/* How images lie in memory. Since 0.2. */
#define HORUS_LAYOUT_NCHW 0
#define HORUS_LAYOUT_NHWC 1 /* channels_last of PyTorch */

typedef struct horus_run_spec {
  uint32_t struct_size;
  int32_t mode;                 /* HORUS_MODE_* */
  int32_t precision;            /* HORUS_PRECISION_* */
  int32_t optimizer;            /* HORUS_OPTIMIZER_*; ignored for inference */
  int64_t batch;                /* samples per GPU and step; 0 = as the file says, else 1 */
  size_t dim_count;             /* length of the two columns below, at most 4,096 */
  const char* const* dim_names; /* named dimensions to bind, e.g. "seq" */
  const int64_t* dim_sizes;     /* elements, >= 1 */
  int64_t checkpoint_segments;  /* activation checkpointing in this many segments; 0 or 1 = none; training only */
  int64_t data_parallel;        /* replicas that average their gradients, a GPU each; 0 or 1 = none; training only */
  size_t frozen_count;          /* length of frozen_prefixes, at most 4,096 */
  const char* const* frozen_prefixes; /* parameters whose names begin so are not trained; training only; none = what
                                         lora_rank leaves as it is, of a graph that has it */
  int32_t framework;                  /* HORUS_FRAMEWORK_* */
  int32_t layout;                     /* HORUS_LAYOUT_*. Since 0.2. */
} horus_run_spec;
#define HORUS_RUN_SPEC_INIT HORUS_INIT(horus_run_spec)

#ifdef __cplusplus
}
#endif

#endif /* HORUS_GRAPH_H_ */
