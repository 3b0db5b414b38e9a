// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"libhorus.org/slurm/internal/words"
	"libhorus.org/slurm/test/cluster"
)

// stack is a plugstack.conf with the plugin, as a setting of slurm.conf.
func stack(t *testing.T) string {
	t.Helper()
	plugin := os.Getenv("HORUS_SLURM_SPANK")
	if plugin == "" {
		t.Skip("HORUS_SLURM_SPANK is not set: run bindings/slurm/test/run")
	}
	file := filepath.Join(t.TempDir(), "plugstack.conf")
	if err := os.WriteFile(file, []byte("optional "+plugin+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return "PlugStackConfig=" + file
}

// spank starts a cluster whose commands load the plugin, and a daemon.
func spank(t *testing.T, options cluster.Options) *cluster.Cluster {
	t.Helper()
	alive := filepath.Join(t.TempDir(), "alive")
	options.Settings, options.JobSubmit = stack(t), script(t, alive)
	c := start(t, options)
	c.StartDaemon("--alive-file", alive)
	c.Wait("the daemon lives", soon, func() bool { _, err := os.Stat(alive); return err == nil })
	return c
}

// says runs a command of Slurm's in a folder, and returns what it said.
func says(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestOptionsReachTheDaemonAsIfTheyStoodInTheComment(t *testing.T) {
	c := spank(t, cluster.Options{Nodes: 1, GPUs: []string{"a100_0"}})
	models, err := filepath.Abs("../../../../examples/models/graphs")
	if err != nil {
		t.Fatal(err)
	}
	model := "horus:model=" + models + "/resnet50.onnx,batch=64"
	for _, one := range []struct {
		options []string
		comment string
	}{
		{[]string{"--horus-model=resnet50.onnx", "--horus-batch", "64", "--chdir=/"}, model},
		{[]string{"--horus-model=" + models + "/resnet50.onnx", "--horus-batch", "64", "--comment=ticket 7, for Ann"}, model + "; ticket 7, for Ann"},
		{[]string{"--horus-model=resnet50.onnx", "--comment=horus:batch=64; mine"}, model + "; mine"},
		{[]string{"--horus", "--comment=mine"}, "horus:; mine"},
		{[]string{"--horus-model=llama-3.2-3b", "--horus-requests-per-s=1", "--horus-tokens-in=512", "--horus-tokens-out=128"}, "horus:model=llama-3.2-3b,requests_per_s=1,tokens_in=512,tokens_out=128"},
		{[]string{"--horus-gpu-util-pct=30", "--horus-gpu-memory-gib=8", "--horus-slowdown-bound=1.3"}, "horus:gpu_util_pct=30,gpu_memory_gib=8,slowdown_bound=1.3"},
	} {
		out, err := says(models, "sbatch", append(one.options, "--parsable", "--output=/dev/null", "--gres=shard:4", "--wrap", "sleep 60")...)
		id, parsed := strconv.ParseUint(strings.TrimSpace(out), 10, 64)
		if err != nil || parsed != nil {
			t.Fatal(out, err)
		}
		job := running(c, id)[0]
		if r := record(job); job.Comment != one.comment || r.Verb != words.Placed {
			t.Errorf("%v: expected it placed with the comment %q, found %q, %q", one.options, one.comment, job.Comment, job.AdminComment)
		}
		if out, err := c.Slurm("scancel", strconv.FormatUint(id, 10)); err != nil {
			t.Fatal(out, err)
		}
	}
}

func TestOptionsOfTheScriptCountAndThoseOfTheCommandMore(t *testing.T) {
	c := spank(t, cluster.Options{})
	c.Write("job", "#!/bin/sh\n#SBATCH --horus-gpu-util-pct 30 --horus-gpu-memory-gib 8\nsleep 60\n")
	out, err := c.Slurm("sbatch", "--parsable", "--output=/dev/null", "--gres=shard:4", "--horus-gpu-memory-gib", "9", c.Dir+"/job")
	id, parsed := strconv.ParseUint(strings.TrimSpace(out), 10, 64)
	if err != nil || parsed != nil {
		t.Fatal(out, err)
	}
	if job := running(c, id)[0]; job.Comment != "horus:gpu_util_pct=30,gpu_memory_gib=9" {
		t.Errorf("expected the script's words but the command's memory, found %q", job.Comment)
	}
}

func TestWrongOptionsAreRefusedBeforeAnythingIsSubmitted(t *testing.T) {
	c := spank(t, cluster.Options{Nodes: 1})
	c.Write("net.onnx", "")
	for said, expected := range map[string]string{
		"--horus-model=none.onnx":            "--horus-model: expected a file that can be read, found " + c.Dir + "/none.onnx: No such file or directory",
		"--horus-model=/dev/zero":            "--horus-model: /dev/zero: expected a regular file",
		"--horus-model=a,b":                  "--horus-model: expected neither comma, semicolon nor line feed",
		"--horus-model=":                     "--horus-model: expected a value, found none",
		"--horus-model=llama-3.1-8":          "--horus-model: expected a file (….onnx, ….json, …/…) or a name that horus models lists, found \"llama-3.1-8\"",
		"--horus-model=gpt2 --horus-users=2": "--horus-users: expected beside --horus-tokens-out, found without",
		"--horus-model=net.onnx --horus-users=2 --horus-tokens-in=2 --horus-tokens-out=2":               "--horus-model: expected a config.json or a name that horus models lists",
		"--horus-model=gpt2 --horus-users=2 --horus-tokens-in=2 --horus-tokens-out=2 --horus-longest=3": "--horus-longest: expected at least --horus-tokens-in and --horus-tokens-out",
		"--horus-batch=4":                               "--horus-batch: expected beside --horus-model, found without",
		"--horus-checkpoint-segments=4":                 "--horus-checkpoint-segments: expected beside --horus-model",
		"--horus-slowdown-confidence=0.9":               "--horus-slowdown-confidence: expected beside --horus-slowdown-bound or --horus-requests-per-s or --horus-users, found without",
		"--horus-gpu-util-pct=3":                        "--horus-gpu-util-pct: expected beside --horus-gpu-memory-gib, found without",
		"--horus-model=net.onnx --horus-step-time-ms=3": "--horus-step-time-ms: expected without --horus-model, found beside it",
	} {
		out, err := says(c.Dir, "sbatch", append(strings.Fields(said), "--gres=shard:4", "--wrap", "sleep 60")...)
		if err == nil || !strings.Contains(out, "sbatch: error: "+expected) {
			t.Errorf("%s: expected a refusal with %q, found %v, %s", said, expected, err, out)
		}
	}
	if jobs := c.Jobs(); len(jobs) > 0 {
		t.Errorf("expected that nothing was submitted, found %d jobs", len(jobs))
	}
}

// The plugin and the daemon are two programs of one rule: what either takes or refuses, the other does, in the same words.
func TestOptionsAreReadAsTheDaemonReadsWords(t *testing.T) {
	c := spank(t, cluster.Options{Nodes: 1})
	c.Write("net.onnx", "")
	values := map[string][]string{}
	for _, key := range words.Keys() {
		values[key] = []string{"hello", "-1", "0"}
	}
	for _, key := range []string{"model", "profile", "gpu_types"} { // any text
		values[key] = nil
	}
	for key, more := range map[string][]string{
		"model": {c.Dir + "/net.onnx"}, "profile": {"a b"}, "gpu_types": {"a100+v100"},
		"batch":               {"1", "+7", "2147483648", "2147483649", "1e3", " 1", "99999999999999999999", "1.0", "0x10"},
		"checkpoint_segments": {"3", "2147483649"},
		"dims":                {"seq:128", "seq:128+x:2", "seq", "seq:", ":3", "seq:0", "seq:1+", "+seq:1", "a:b:3", "seq:1+x"},
		"mode":                {"training", "inference", "train", "training, inference", ""},
		"kind":                {"training", "inference", "best-effort", "best"},
		"precision":           {"fp32", "tf32", "amp", "amp-bf16", "fp16", "bf16", "fp32-ieee", "FP32"},
		"optimizer":           {"sgd", "momentum", "adam", "adamw", "adafactor", "adam-8bit", "rmsprop", "adagrad", "adamw-bf16"},
		"framework":           {"pytorch", "pytorch-1", "tensorflow", "pytorch-compiled", "vllm", "tensorrt-llm", "sglang"},
		"layout":              {"nchw", "nhwc"}, "share": {"account", "anyone"},
		"slowdown_bound":      {"1", "1.3", "1000", "1000.1", "0.99", "nan", "inf", "1.3x"},
		"slowdown_confidence": {"0.5", "0.999", "0.9991", "0.49"},
		"gpu_util_pct":        {"0", "100", "100.5", "1e1", "nan"}, "mem_bw_util_pct": {"50", "101"},
		"gpu_memory_gib": {"0.001", "1048576", "0.0009", "1048577"}, "step_time_ms": {"0.001", "1e9", "1e10"},
		"weights": {"fp8", "mxfp4", "bf8"}, "cache": {"int8", "int4"}, "tensor_parallel": {"1", "4096", "4097"}, "sm_cap_pct": {"1", "99", "100"},
		"requests_per_s": {"0.001", "1000000", "1000001"}, "users": {"1", "0.5", "1e6"}, "tokens_in": {"1", "0.9", "16777217"}, "tokens_out": {"8", "1e9"},
		"longest": {"2048", "33554432", "1"}, "first_token_ms": {"0.5", "1e10"}, "token_ms": {"50", "x"},
		"steps": {"horus", "9401", "9401/a/b:seconds", "9401:seconds", "9401:", "0", "65536", "horus:x", "9401x", "/a"},
	} {
		values[key] = append(values[key], more...)
	}
	model, load := "model="+c.Dir+"/net.onnx", "model=gpt2,requests_per_s=1,tokens_in=1,tokens_out=1"
	beside := map[string]string{"slowdown_confidence": "slowdown_bound=2", "gpu_util_pct": "gpu_memory_gib=8", "gpu_memory_gib": "gpu_util_pct=1",
		"mem_bw_util_pct": "gpu_memory_gib=8,gpu_util_pct=1", "step_time_ms": "gpu_memory_gib=8,gpu_util_pct=1",
		"weights": "model=gpt2", "cache": "model=gpt2", "tensor_parallel": "model=gpt2", "longest": load, "first_token_ms": load, "token_ms": load,
		"requests_per_s": "model=gpt2,tokens_in=1,tokens_out=1", "users": "model=gpt2,tokens_in=1,tokens_out=1",
		"tokens_in": "model=gpt2,users=1,tokens_out=1", "tokens_out": "model=gpt2,users=1,tokens_in=1"}
	for _, key := range []string{"batch", "dims", "mode", "precision", "optimizer", "framework", "layout", "checkpoint_segments"} {
		beside[key] = model
	}
	option := func(word string) string {
		key, value, _ := strings.Cut(word, "=")
		return "--horus-" + strings.ReplaceAll(key, "_", "-") + "=" + value
	}
	for key, all := range values {
		if key == "wait" { // job_submit.lua lets jobs wait
			continue
		}
		for _, value := range all {
			word := key + "=" + value
			_, wrong := words.Parse("horus:"+word+","+beside[key], "/")
			args := []string{option(word), "--test-only", "--wrap", "true"}
			for _, one := range strings.Split(beside[key], ",") {
				if one != "" {
					args = append(args, option(one))
				}
			}
			out, err := says(c.Dir, "sbatch", args...)
			switch {
			case strings.Contains(value, ","): // refused by us for its comma, and two words for the daemon
				if err == nil {
					t.Errorf("%s: expected a refusal, found %s", word, out)
				}
			case wrong == nil && err != nil:
				t.Errorf("%s: expected that it is taken, found %v, %s", word, err, out)
			case wrong != nil:
				said := strings.TrimPrefix(wrong.Error(), "comment: "+key)
				if err == nil || !strings.Contains(out, strings.SplitN(option(word), "=", 2)[0]+said) {
					t.Errorf("%s: expected a refusal with %q, as the daemon's, found %v, %s", word, said, err, out)
				}
			}
		}
	}
}

// Every two words beside what the first needs: right one by one, they may not be so together.
func TestWordsThatDoNotGoTogetherAreTheDaemons(t *testing.T) {
	c := spank(t, cluster.Options{Nodes: 1})
	c.Write("net.onnx", "")
	option := func(key, value string) string { return "--horus-" + strings.ReplaceAll(key, "_", "-") + "=" + value }
	values := map[string]string{"dims": "x:1", "mode": "inference", "kind": "inference", "precision": "bf16", "optimizer": "sgd", "framework": "vllm", "layout": "nchw",
		"weights": "fp8", "cache": "fp8", "gpu_util_pct": "9", "gpu_memory_gib": "9", "slowdown_confidence": "0.9", "gpu_types": "a100", "share": "anyone", "profile": "a", "steps": "horus", "longest": "2"}
	for _, base := range []string{"", "model=net.onnx", "model=gpt2", "gpu_util_pct=9,gpu_memory_gib=9", "model=gpt2,users=1,tokens_in=1,tokens_out=1", "model=gpt2,requests_per_s=1,tokens_in=9,tokens_out=1"} {
		for _, key := range words.Keys() {
			if key == "wait" || key == "model" {
				continue
			}
			all := append(strings.FieldsFunc(base, func(r rune) bool { return r == ',' }), key+"="+cmp.Or(values[key], "1"))
			args := []string{"--test-only", "--wrap", "true"}
			for _, one := range all {
				word, value, _ := strings.Cut(one, "=")
				args = append(args, option(word, value))
			}
			_, wrong := words.Parse("horus:"+strings.Join(all, ","), c.Dir)
			if out, err := says(c.Dir, "sbatch", args...); (err == nil) != (wrong == nil || strings.Contains(wrong.Error(), "found twice")) {
				t.Errorf("%v: expected what the daemon says, %v, found %v, %s", all, wrong, err, out)
			}
		}
	}
}

func TestSrunAndSallocSayItToo(t *testing.T) {
	c := spank(t, cluster.Options{Nodes: 1, GPUs: []string{"a100_0"}})
	show := []string{"sh", "-c", "scontrol show job $SLURM_JOB_ID; echo devices $CUDA_VISIBLE_DEVICES"}
	options := []string{"--mem=100", "--horus-gpu-util-pct=30", "--horus-gpu-memory-gib=8"}
	for command, verb := range map[string]words.Verb{
		"srun":                         words.Placed,
		"srun --gpus=1":                words.Left, // whole GPUs are Slurm's
		"srun --immediate=30":          "",         // by Slurm
		"salloc --gres=shard:4 | srun": words.Placed,
		"srun --gres=shard:4":          words.Left, // its step asks for 4 again, and would be refused
	} {
		allocate, step, _ := strings.Cut(command, " | ")
		args := append(strings.Fields(allocate), options...)
		args = append(append([]string{"60"}, args...), append(strings.Fields(step), show...)...)
		out, err := exec.Command("timeout", args...).CombinedOutput()
		if text := string(out); err != nil || !strings.Contains(text, "Comment=horus:gpu_util_pct=30,gpu_memory_gib=8") ||
			!strings.Contains(text, words.Prefix+string(verb)) || !strings.Contains(text, "devices 0") {
			t.Errorf("%s: expected a job that is %s, on GPU 0, found %v, %s", command, verb, err, out)
		}
		if told := strings.Contains(string(out), "leaves this to Slurm"); told != (command == "srun --gres=shard:4") {
			t.Errorf("%s: expected a sentence where it shares and is left to Slurm, found %s", command, out)
		}
	}
	if log := c.Read("slurmd.n1.log"); strings.Contains(log, "SPANK") {
		t.Errorf("expected that nodes know the options, found\n%s", log)
	}
}

func TestAJobWithinAJobSaysNothingOfItself(t *testing.T) {
	c := spank(t, cluster.Options{Nodes: 1})
	c.Write("job", "#!/bin/sh\nsrun true || exit 1\nsbatch --parsable --output=/dev/null --mem=100 --wrap 'sleep 60'\nsleep 60\n")
	out, err := c.Slurm("sbatch", "--parsable", "--output="+c.Dir+"/out", "--mem=100", "--gres=shard:4", "--horus-gpu-util-pct=30", "--horus-gpu-memory-gib=8", c.Dir+"/job")
	if err != nil {
		t.Fatal(out, err)
	}
	var inner uint64
	c.Wait("the job submits another", soon, func() bool {
		lines := strings.Split(strings.TrimSpace(c.Read("out")), "\n")
		inner, err = strconv.ParseUint(lines[len(lines)-1], 10, 64)
		return err == nil
	})
	if job := c.Job(inner); job.Comment != "" || job.Tres.PerNode != "" || job.Eligible > time.Now().Unix()+5 {
		t.Errorf("expected a job that asks for nothing, found %q, %q", job.Comment, job.Tres.PerNode)
	}
}

func TestOptionsThatNobodyWouldHearAreRefused(t *testing.T) {
	c := start(t, cluster.Options{Nodes: 1, Settings: stack(t)})
	out, err := c.Slurm("sbatch", "--horus", "--wrap", "true")
	if err == nil || !strings.Contains(out, "expected JobSubmitPlugins=lua") {
		t.Errorf("without job_submit.lua: expected a refusal, found %v, %s", err, out)
	}
	if out, err := c.Slurm("sbatch", "--output=/dev/null", "--wrap", "true"); err != nil {
		t.Errorf("without options of ours: expected a job of Slurm's own, found %v, %s", err, out)
	}
}
