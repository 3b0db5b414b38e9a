// SPDX-License-Identifier: Apache-2.0

// Package words reads what a job says to libhorus in its comment, "horus:model=net.onnx,batch=64,slowdown_bound=1.3", and
// keeps what libhorus says about a job in its admin comment.
package words

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"libhorus.org/horus"
	"libhorus.org/learn"
)

// Prefix of a comment that is for us, and of every admin comment of ours.
const Prefix = "horus:"

// Wish is what a job says of itself.
type Wish struct {
	Model              string // absolute path of an ONNX file or a config.json, or a Named one; "" = none
	Run                horus.RunSpec
	Config             horus.ConfigOptions // of a language model
	Load               horus.ServiceLoad   // of a served one; TokensIn 0 = it is not
	Kind               horus.JobKind
	SlowdownBound      float32
	SlowdownConfidence float32
	SMCapPct           int32    // most of a GPU's SMs that it uses under MPS; 0 = all
	Anyone             bool     // shares with any account's jobs
	GPUTypes           []string // that it may use; none = all
	Given              *horus.Demand
	Profile            string // jobs of an account that say the same do the same; "" = what its model says
	Steps              Steps  // where it tells them; Port 0 = nowhere, OwnPort = a port of the job's own
	WaitS              int64  // its begin time is only a bound that it set itself so many seconds after it may start; 0 = it did not
}

// Steps is where a job tells its steps, as text for Prometheus.
type Steps struct {
	Port         int
	Path, Metric string
}

// OwnPort is the port that horus.steps, a Python module for jobs, takes in a job of Slurm: see Steps.For.
const OwnPort = -1

// For a job: 20000 and the last four digits of its number, where it has a port of its own (bindings/python/src/horus/steps.py).
func (s Steps) For(job uint64) Steps {
	if s.Port == OwnPort {
		s.Port = 20_000 + int(job%10_000)
	}
	return s
}

// Ours says whether a comment is for us.
func Ours(comment string) bool { return strings.HasPrefix(comment, Prefix) }

// Each of the words of a comment that is Ours, "batch=64". What stands behind a semicolon is the user's.
func Each(comment string) []string {
	said, _, _ := strings.Cut(strings.TrimPrefix(comment, Prefix), ";")
	var out []string
	for _, one := range strings.Split(said, ",") {
		if one = strings.TrimSpace(one); one != "" {
			out = append(out, one)
		}
	}
	return out
}

var (
	modes      = map[string]horus.Mode{"training": horus.Training, "inference": horus.Inference}
	kinds      = map[string]horus.JobKind{"training": horus.TrainingJob, "inference": horus.InferenceJob, "best-effort": horus.BestEffortJob}
	precisions = map[string]horus.Precision{
		"fp32": horus.FP32, "tf32": horus.TF32, "amp": horus.AMPFP16, "amp-bf16": horus.AMPBF16, "fp16": horus.FP16,
		"bf16": horus.BF16, "fp32-ieee": horus.FP32IEEE,
	}
	optimizers = map[string]horus.Optimizer{
		"sgd": horus.SGD, "momentum": horus.Momentum, "adam": horus.Adam, "adamw": horus.AdamW, "adafactor": horus.Adafactor,
		"adam-8bit": horus.Adam8Bit, "rmsprop": horus.RMSprop, "adagrad": horus.Adagrad, "adamw-bf16": horus.AdamWBf16,
	}
	frameworks = map[string]horus.Framework{
		"pytorch": horus.PyTorch, "pytorch-1": horus.PyTorch1, "tensorflow": horus.TensorFlow, "pytorch-compiled": horus.PyTorchCompiled,
		"vllm": horus.VLLM, "tensorrt-llm": horus.TensorRTLLM, "sglang": horus.SGLang,
	}
	weights = named("bf16", "fp16", "fp32", "fp8", "int4", "int8", "mxfp4", "nvfp4")
	caches  = named("bf16", "fp16", "fp32", "fp8", "int8")
)

// named are values that stand for themselves.
func named(names ...string) map[string]string {
	out := map[string]string{}
	for _, name := range names {
		out[name] = name
	}
	return out
}

func oneOf[T any](values map[string]T, into *T, value string) error {
	found, known := values[value]
	if !known {
		return fmt.Errorf("expected one of %s, found %q", strings.Join(slices.Sorted(maps.Keys(values)), ", "), value)
	}
	*into = found
	return nil
}

func number[T float32 | float64](value string, least, most float64, into *T) error {
	found, err := strconv.ParseFloat(value, 64)
	if err != nil || !(found >= least && found <= most) {
		plain := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
		return fmt.Errorf("expected a number from %s to %s, found %q", plain(least), plain(most), value)
	}
	*into = T(found)
	return nil
}

func microseconds(ms string, into *int64) error {
	var found float64
	err := number(ms, 0.001, 1e9, &found)
	*into = int64(found * 1000)
	return err
}

func integer[T int32 | int64](value string, least, most int64, into *T) error {
	found, err := strconv.ParseInt(value, 10, 64)
	if err != nil || found < least || found > most {
		return fmt.Errorf("expected an integer from %d to %d, found %q", least, most, value)
	}
	*into = T(found)
	return nil
}

const (
	mostBatch = 1 << 31
	mostWaitS = 7 * 24 * 3600
	mostGiB   = 1 << 20
	mostParts = 4096    // of a model, in GPUs: as docs/files.md
	mostRate  = 1e6     // requests/s, and users
	mostToken = 1 << 24 // of a prompt or an answer
)

// keys are the words, as jobs.yaml has them (docs/files.md).
var keys = map[string]func(w *Wish, value string) error{
	"model":               func(w *Wish, v string) error { w.Model = v; return nil },
	"batch":               func(w *Wish, v string) error { return integer(v, 1, mostBatch, &w.Run.Batch) },
	"checkpoint_segments": func(w *Wish, v string) error { return integer(v, 0, mostBatch, &w.Run.CheckpointSegments) },
	"mode":                func(w *Wish, v string) error { return oneOf(modes, &w.Run.Mode, v) },
	"kind":                func(w *Wish, v string) error { return oneOf(kinds, &w.Kind, v) },
	"precision":           func(w *Wish, v string) error { return oneOf(precisions, &w.Run.Precision, v) },
	"optimizer":           func(w *Wish, v string) error { return oneOf(optimizers, &w.Run.Optimizer, v) },
	"framework":           func(w *Wish, v string) error { return oneOf(frameworks, &w.Run.Framework, v) },
	"layout": func(w *Wish, v string) error {
		return oneOf(map[string]bool{"nchw": false, "nhwc": true}, &w.Run.ChannelsLast, v)
	},
	"dims":                dims,
	"slowdown_bound":      func(w *Wish, v string) error { return number(v, 1, 1000, &w.SlowdownBound) },
	"slowdown_confidence": func(w *Wish, v string) error { return number(v, 0.5, 0.999, &w.SlowdownConfidence) },
	"share": func(w *Wish, v string) error {
		return oneOf(map[string]bool{"account": false, "anyone": true}, &w.Anyone, v)
	},
	"gpu_types":       func(w *Wish, v string) error { w.GPUTypes = strings.Split(v, "+"); return nil },
	"gpu_util_pct":    func(w *Wish, v string) error { return number(v, 0, 100, &w.given().GPUUtilPct) },
	"mem_bw_util_pct": func(w *Wish, v string) error { return number(v, 0, 100, &w.given().MemBWUtilPct) },
	"gpu_memory_gib": func(w *Wish, v string) error {
		var gib float32
		err := number(v, 0.001, mostGiB, &gib)
		w.given().MemMiB = int64(gib * 1024)
		return err
	},
	"step_time_ms":    func(w *Wish, v string) error { return microseconds(v, &w.given().StepTimeUs) },
	"sm_cap_pct":      func(w *Wish, v string) error { return integer(v, 1, 99, &w.SMCapPct) },
	"weights":         func(w *Wish, v string) error { return oneOf(weights, &w.Config.Weights, v) },
	"cache":           func(w *Wish, v string) error { return oneOf(caches, &w.Config.Cache, v) },
	"tensor_parallel": func(w *Wish, v string) error { return integer(v, 1, mostParts, &w.Config.TensorParallel) },
	"requests_per_s":  func(w *Wish, v string) error { return number(v, 0.001, mostRate, &w.Load.RequestsPerS) },
	"users":           func(w *Wish, v string) error { return number(v, 1, mostRate, &w.Load.Concurrency) },
	"tokens_in":       func(w *Wish, v string) error { return number(v, 1, mostToken, &w.Load.TokensIn) },
	"tokens_out":      func(w *Wish, v string) error { return number(v, 1, mostToken, &w.Load.TokensOut) },
	"longest":         func(w *Wish, v string) error { return number(v, 2, 2*mostToken, &w.Load.Longest) },
	"first_token_ms":  func(w *Wish, v string) error { return microseconds(v, &w.Load.FirstTokenUs) },
	"token_ms":        func(w *Wish, v string) error { return microseconds(v, &w.Load.TokenUs) },
	"profile":         func(w *Wish, v string) error { w.Profile = v; return nil },
	"steps":           steps,
	"wait":            func(w *Wish, v string) error { return integer(v, 1, mostWaitS, &w.WaitS) },
}

// Keys are the words that there are.
func Keys() []string { return slices.Sorted(maps.Keys(keys)) }

func (w *Wish) given() *horus.Demand {
	if w.Given == nil {
		w.Given = &horus.Demand{Flags: horus.Given}
	}
	return w.Given
}

// steps are "horus" or "9401/metrics:seconds_of_a_step".
func steps(w *Wish, value string) error {
	w.Steps = Steps{Port: OwnPort, Metric: learn.DefaultSteps}
	if value == "horus" {
		return nil
	}
	where, metric, named := strings.Cut(value, ":")
	if named {
		w.Steps.Metric = metric
	}
	port, path, _ := strings.Cut(where, "/")
	w.Steps.Path = path
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 || w.Steps.Metric == "" {
		return fmt.Errorf("expected horus or PORT[/PATH][:METRIC], found %q", value)
	}
	w.Steps.Port = int(number)
	return nil
}

// dims are "seq:128+width:224".
func dims(w *Wish, value string) error {
	for _, one := range strings.Split(value, "+") {
		name, size, _ := strings.Cut(one, ":")
		dim := horus.Dim{Name: name}
		if err := integer(size, 1, mostBatch, &dim.Size); err != nil || name == "" {
			return fmt.Errorf("expected NAME:SIZE+…, found %q", value)
		}
		w.Run.Dims = append(w.Run.Dims, dim)
	}
	return nil
}

// Parse reads a comment that is Ours. A relative model lies in the folder `dir`.
func Parse(comment, dir string) (Wish, error) {
	var w Wish
	seen := map[string]bool{}
	var wrong error // the first; what comes after it is read all the same, as "wait" counts even so
	for _, one := range Each(comment) {
		key, value, is := strings.Cut(one, "=")
		take := keys[key]
		var err error
		switch {
		case take == nil:
			err = fmt.Errorf("comment: expected one of %s, found %.60q", strings.Join(Keys(), ", "), key)
		case !is || value == "":
			err = fmt.Errorf("comment: %s: expected a value, found none", key)
		case seen[key]:
			err = fmt.Errorf("comment: %s: expected once, found twice", key)
		default:
			if err = take(&w, value); err != nil {
				err = fmt.Errorf("comment: %s: %w", key, err)
			}
		}
		seen[key] = true
		wrong = cmp.Or(wrong, err)
	}
	if wrong != nil {
		return w, wrong
	}
	if err := together(&w, seen); err != nil {
		return w, fmt.Errorf("comment: %w", err)
	}
	if w.Model != "" && !Named(w.Model) && !filepath.IsAbs(w.Model) {
		w.Model = filepath.Join(dir, w.Model)
	}
	return w, nil
}

// rules of words beside each other: each of the first needs one of the second, and none of the third. The plugin has the same.
var rules = [][3]string{
	{"batch dims mode precision optimizer framework layout checkpoint_segments weights cache tensor_parallel requests_per_s users", "model", ""},
	{"gpu_util_pct mem_bw_util_pct step_time_ms", "gpu_memory_gib", "model"},
	{"gpu_memory_gib", "gpu_util_pct", "model"},
	{"requests_per_s users", "tokens_out", "batch dims mode"},
	{"users", "", "requests_per_s"},
	{"tokens_in", "requests_per_s users", ""},
	{"tokens_out longest first_token_ms token_ms", "tokens_in", ""},
	{"slowdown_confidence", "slowdown_bound requests_per_s users", ""},
}

// together says what is wrong with words that are right one by one, and fills in what follows from them.
func together(w *Wish, seen map[string]bool) error {
	said := func(key string) bool { return seen[key] }
	for _, rule := range rules {
		for _, key := range strings.Fields(rule[0]) {
			if !seen[key] {
				continue
			}
			beside, barred := strings.Fields(rule[1]), strings.Fields(rule[2])
			if at := slices.IndexFunc(barred, said); at >= 0 {
				return fmt.Errorf("%s: expected without %s, found beside it", key, barred[at])
			}
			if len(beside) > 0 && !slices.ContainsFunc(beside, said) {
				return fmt.Errorf("%s: expected beside %s, found without", key, strings.Join(beside, " or "))
			}
		}
	}
	language := Named(w.Model) || strings.HasSuffix(w.Model, ".json")
	for _, key := range []string{"weights", "cache", "tensor_parallel", "tokens_in"} {
		if seen[key] && !language {
			return fmt.Errorf("%s: expected beside a config.json or a name that horus models lists, found beside another model", key)
		}
	}
	if w.Load.TokensIn > 0 {
		least := w.Load.TokensIn + w.Load.TokensOut
		switch {
		case seen["kind"] && w.Kind != horus.InferenceJob:
			return errors.New("kind: expected inference beside tokens_in, found another")
		case seen["framework"] && !slices.Contains([]horus.Framework{horus.VLLM, horus.SGLang, horus.TensorRTLLM}, w.Run.Framework):
			return errors.New("framework: expected sglang, tensorrt-llm or vllm beside tokens_in, found another")
		case w.Load.Longest > 0 && w.Load.Longest < least:
			return fmt.Errorf("longest: expected at least tokens_in and tokens_out, %g, found %g", least, w.Load.Longest)
		}
		w.Kind = horus.InferenceJob
	}
	if w.Kind == horus.InferenceJob && !seen["mode"] {
		w.Run.Mode = horus.Inference
	}
	if language && !seen["precision"] {
		w.Run.Precision = horus.BF16 // as such models are published
	}
	if language && w.Run.Mode == horus.Inference && !seen["framework"] {
		w.Run.Framework = horus.VLLM
	}
	return nil
}

// Named says whether a model is given by the name of a known one, and not by a file.
func Named(model string) bool {
	return model != "" && !strings.Contains(model, "/") && !strings.HasSuffix(model, ".onnx") && !strings.HasSuffix(model, ".json")
}
