// SPDX-License-Identifier: Apache-2.0

package horus

/*
#include <horus/horus.h>
*/
import "C"

import "unsafe"

// Graph is what a job computes, read from ONNX without its weights. Immutable.
type Graph struct{ handle[*C.horus_graph] }

func freeGraph(p *C.horus_graph) { C.horus_graph_free(p) }

func newGraph(read func(a *arena, out **C.horus_graph, e *C.horus_error) C.horus_status) (*Graph, error) {
	var out *C.horus_graph
	err := call(func(a *arena, e *C.horus_error) C.horus_status { return read(a, &out, e) })
	if err != nil {
		return nil, err
	}
	g := &Graph{}
	own(&g.handle, out, freeGraph)
	return g, nil
}

// ReadGraph reads an ONNX file. Errors: ErrIO, ErrCorrupt, ErrLimit, ErrInvalidArgument, ErrUnsupported.
func ReadGraph(path string) (*Graph, error) {
	return newGraph(func(a *arena, out **C.horus_graph, e *C.horus_error) C.horus_status {
		name := a.required("path", path)
		if a.err != nil {
			return 0
		}
		return C.horus_graph_from_file(name, nil, out, e)
	})
}

// ParseGraph reads an ONNX file's bytes, which are not kept. Errors: as ReadGraph without ErrIO.
func ParseGraph(onnx []byte) (*Graph, error) {
	return newGraph(func(_ *arena, out **C.horus_graph, e *C.horus_error) C.horus_status {
		return C.horus_graph_from_bytes(unsafe.Pointer(unsafe.SliceData(onnx)), C.size_t(len(onnx)), nil, out, e)
	})
}

// ConfigOptions say which part of a language model a GPU runs, and in which types. The zero value serves on one GPU.
type ConfigOptions struct {
	Training                        bool  // logits of every token and no caches
	TensorParallel                  int64 // GPUs that share every layer; 0 = 1
	PipelineParallel, PipelineStage int64
	ExpertParallel, LoRARank        int64
	LoRATargets                     string // "all-linear", or layers with commas between; "" = those of attention
	Weights, Cache                  string // types; "" = the file's
}

// GraphFromConfig makes the graph of a language model from the text of its config.json, or the name of a known one.
// Errors: ErrCorrupt, ErrLimit, ErrInvalidArgument, ErrNotFound, ErrUnsupported.
func GraphFromConfig(config string, options ConfigOptions) (*Graph, error) {
	return newGraph(func(a *arena, out **C.horus_graph, e *C.horus_error) C.horus_status {
		o := row[C.horus_config_options](a)
		o.struct_size = C.uint32_t(unsafe.Sizeof(*o))
		if options.Training {
			o.training = 1
		}
		o.tensor_parallel = C.int64_t(options.TensorParallel)
		o.pipeline_parallel, o.pipeline_stage = C.int64_t(options.PipelineParallel), C.int64_t(options.PipelineStage)
		o.expert_parallel, o.lora_rank = C.int64_t(options.ExpertParallel), C.int64_t(options.LoRARank)
		o.weights, o.cache = a.text("Weights", options.Weights), a.text("Cache", options.Cache)
		o.lora_targets = a.text("LoRATargets", options.LoRATargets)
		if a.err != nil {
			return 0
		}
		return C.horus_graph_from_config(unsafe.Pointer(unsafe.StringData(config)), C.size_t(len(config)), o, out, e)
	})
}

// Close frees the graph.
func (g *Graph) Close() error { g.close(freeGraph); return nil }

// Fingerprint is of structure, types and attributes; names and weights do not count. 0 of a closed graph.
func (g *Graph) Fingerprint() uint64 {
	var fingerprint uint64
	_ = g.shared(func(p *C.horus_graph) error {
		return call(func(a *arena, e *C.horus_error) C.horus_status {
			info := row[C.horus_graph_info](a)
			info.struct_size = C.uint32_t(unsafe.Sizeof(*info))
			status := C.horus_graph_get_info(p, info, e)
			fingerprint = uint64(info.fingerprint)
			return status
		})
	})
	return fingerprint
}

// Mode says whether a step trains.
type Mode int32

// How a graph is run.
const (
	Training  Mode = C.HORUS_MODE_TRAINING
	Inference Mode = C.HORUS_MODE_INFERENCE
)

// Precision of a run.
type Precision int32

// Precisions; FP32 is what frameworks do: convolutions in TF32 where the GPU has it.
const (
	FP32     Precision = C.HORUS_PRECISION_FP32
	TF32     Precision = C.HORUS_PRECISION_TF32
	AMPFP16  Precision = C.HORUS_PRECISION_AMP_FP16
	AMPBF16  Precision = C.HORUS_PRECISION_AMP_BF16
	FP16     Precision = C.HORUS_PRECISION_FP16
	BF16     Precision = C.HORUS_PRECISION_BF16
	FP32IEEE Precision = C.HORUS_PRECISION_FP32_IEEE
)

// Optimizer of a training run.
type Optimizer int32

// Optimisers.
const (
	SGD       Optimizer = C.HORUS_OPTIMIZER_SGD
	Momentum  Optimizer = C.HORUS_OPTIMIZER_MOMENTUM
	Adam      Optimizer = C.HORUS_OPTIMIZER_ADAM
	AdamW     Optimizer = C.HORUS_OPTIMIZER_ADAMW
	Adafactor Optimizer = C.HORUS_OPTIMIZER_ADAFACTOR
	AdamWBf16 Optimizer = C.HORUS_OPTIMIZER_ADAMW_BF16 // of bf16 weights without float32 masters
	Adam8Bit  Optimizer = C.HORUS_OPTIMIZER_ADAM_8BIT
	RMSprop   Optimizer = C.HORUS_OPTIMIZER_RMSPROP
	Adagrad   Optimizer = C.HORUS_OPTIMIZER_ADAGRAD
)

// Framework that dispatches the kernels.
type Framework int32

// Frameworks; PyTorch is 2.0 and later.
const (
	PyTorch         Framework = C.HORUS_FRAMEWORK_PYTORCH
	PyTorch1        Framework = C.HORUS_FRAMEWORK_PYTORCH_1
	TensorFlow      Framework = C.HORUS_FRAMEWORK_TENSORFLOW
	PyTorchCompiled Framework = C.HORUS_FRAMEWORK_PYTORCH_COMPILED
	VLLM            Framework = C.HORUS_FRAMEWORK_VLLM // inference, as SGLang and TensorRTLLM
	TensorRTLLM     Framework = C.HORUS_FRAMEWORK_TENSORRT_LLM
	SGLang          Framework = C.HORUS_FRAMEWORK_SGLANG
)

// Dim binds a named dimension of a graph's inputs.
type Dim struct {
	Name string
	Size int64
}

// RunSpec says how a graph is run. The zero value trains with the batch of the file in FP32 by SGD.
type RunSpec struct {
	Mode               Mode
	Precision          Precision
	Optimizer          Optimizer
	Framework          Framework
	ChannelsLast       bool  // images lie in memory with their channels last
	Batch              int64 // samples per GPU and step; 0 = as the file says, else 1
	Dims               []Dim
	CheckpointSegments int64 // activation checkpointing; 0 or 1 = none
	DataParallel       int64 // replicas that average their gradients; 0 or 1 = none
	FrozenPrefixes     []string
}

func (r RunSpec) c(a *arena) *C.horus_run_spec {
	out := row[C.horus_run_spec](a)
	out.struct_size = C.uint32_t(unsafe.Sizeof(*out))
	out.mode, out.precision = C.int32_t(r.Mode), C.int32_t(r.Precision)
	out.optimizer, out.framework = C.int32_t(r.Optimizer), C.int32_t(r.Framework)
	if r.ChannelsLast {
		out.layout = C.HORUS_LAYOUT_NHWC
	}
	out.batch = C.int64_t(r.Batch)
	names, sizes := rows[*C.char](a, len(r.Dims)), rows[C.int64_t](a, len(r.Dims))
	for i, dim := range r.Dims {
		names[i], sizes[i] = a.required("Dims.Name", dim.Name), C.int64_t(dim.Size)
	}
	out.dim_count = C.size_t(len(r.Dims))
	out.dim_names, out.dim_sizes = unsafe.SliceData(names), unsafe.SliceData(sizes)
	out.checkpoint_segments, out.data_parallel = C.int64_t(r.CheckpointSegments), C.int64_t(r.DataParallel)
	out.frozen_count = C.size_t(len(r.FrozenPrefixes))
	out.frozen_prefixes = a.texts("FrozenPrefixes", r.FrozenPrefixes)
	return out
}
