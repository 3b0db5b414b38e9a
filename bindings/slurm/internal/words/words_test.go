// SPDX-License-Identifier: Apache-2.0

package words

import (
	"fmt"
	"strings"
	"testing"

	"libhorus.org/horus"
)

func TestACommentSaysWhatJobsFilesSay(t *testing.T) {
	w, err := Parse("horus:model=net.onnx, batch=64,dims=seq:128+x:2,precision=amp,optimizer=adamw,kind=inference,slowdown_bound=1.3,slowdown_confidence=0.95,gpu_types=a100+v100,share=anyone,wait=300", "/home/u")
	if err != nil {
		t.Fatal(err)
	}
	if w.Model != "/home/u/net.onnx" || w.Run.Batch != 64 || len(w.Run.Dims) != 2 || w.Run.Dims[1] != (horus.Dim{Name: "x", Size: 2}) ||
		w.Run.Precision != horus.AMPFP16 || w.Run.Optimizer != horus.AdamW || w.Run.Mode != horus.Inference || w.SlowdownBound != 1.3 ||
		w.SlowdownConfidence != 0.95 || strings.Join(w.GPUTypes, " ") != "a100 v100" || !w.Anyone || w.WaitS != 300 {
		t.Errorf("expected all that was said, found %+v", w)
	}
}

func TestAServedModelIsDescribedAsInJobsFiles(t *testing.T) {
	load := horus.ServiceLoad{RequestsPerS: 3, TokensIn: 1024, TokensOut: 256, Longest: 4096, FirstTokenUs: 500_000, TokenUs: 37_500}
	for word, model := range map[string]string{"llama-3.1-8b": "llama-3.1-8b", "own/config.json": "/home/u/own/config.json"} {
		w, err := Parse("horus:model="+word+",requests_per_s=3,tokens_in=1024,tokens_out=256,longest=4096,first_token_ms=500,token_ms=37.5,weights=fp8,slowdown_confidence=0.5", "/home/u")
		if err != nil || w.Model != model || fmt.Sprint(w.Load) != fmt.Sprint(load) || w.Config.Weights != "fp8" || w.SlowdownConfidence != 0.5 ||
			w.Kind != horus.InferenceJob || w.Run.Mode != horus.Inference || w.Run.Framework != horus.VLLM || w.Run.Precision != horus.BF16 {
			t.Errorf("%s: expected the model %s as it is served, found %+v, %v", word, model, w, err)
		}
	}
	w, err := Parse("horus:model=llama-3.1-8b,framework=sglang,precision=fp16,users=2,tokens_in=10,tokens_out=10", "/")
	if err != nil || w.Run.Framework != horus.SGLang || w.Run.Precision != horus.FP16 || w.Load.Concurrency != 2 {
		t.Errorf("expected what was said in place of vllm and bf16, found %+v, %v", w, err)
	}
}

func TestAJobSaysWhereItTellsItsSteps(t *testing.T) {
	for word, want := range map[string]Steps{
		"horus":                       {21_234, "", "horus_job_step_seconds"},
		"9401":                        {9401, "", "horus_job_step_seconds"},
		"9401/a/b:seconds_of_a_batch": {9401, "a/b", "seconds_of_a_batch"},
	} {
		w, err := Parse("horus:steps="+word, "/")
		if found := w.Steps.For(991_234); err != nil || found != want {
			t.Errorf("%s: expected %+v for job 991234, found %+v, %v", word, want, found, err)
		}
	}
}

func TestTheBoundsOfNumbersAreAllowed(t *testing.T) {
	for _, word := range []string{"slowdown_bound=1,slowdown_confidence=0.999", "slowdown_bound=1000,slowdown_confidence=0.5", "gpu_util_pct=100,gpu_memory_gib=0.001"} {
		if _, err := Parse("horus:"+word, "/"); err != nil {
			t.Errorf("%s: expected that it is allowed, found %v", word, err)
		}
	}
}

func TestWhatStandsBehindASemicolonIsTheUsers(t *testing.T) {
	w, err := Parse("horus:slowdown_bound=1.3; ticket 7, batch=0", "/")
	if err != nil || w.SlowdownBound != 1.3 || w.Run.Batch != 0 {
		t.Errorf("expected the word before it alone, found %+v, %v", w, err)
	}
}

func TestWrongWordsAreNamedAndTheirWaitCounts(t *testing.T) {
	for comment, says := range map[string]string{
		"horus:batch=0,model=x,wait=9":                   "comment: batch: expected an integer from 1 to",
		"horus:batch=4,wait=9":                           "comment: batch: expected beside model, found without",
		"horus:model=x,model=y,wait=9":                   "comment: model: expected once, found twice",
		"horus:model,wait=9":                             "comment: model: expected a value, found none",
		"horus:precision=half,wait=9":                    "comment: precision: expected one of amp, amp-bf16,",
		"horus:dims=seq,model=x,wait=9":                  "comment: dims: expected NAME:SIZE",
		"horus:slowdown_bound=NaN,wait=9":                "comment: slowdown_bound: expected a number from 1 to",
		"horus:slowdown_confidence=0.9,wait=9":           "comment: slowdown_confidence: expected beside slowdown_bound",
		"horus:model=x,gpu_util_pct=3,wait=9":            "comment: gpu_util_pct: expected without model, found beside it",
		"horus:steps=0,wait=9":                           "comment: steps: expected horus or PORT[/PATH][:METRIC]",
		"horus:steps=9401:,wait=9":                       "comment: steps: expected horus or PORT[/PATH][:METRIC]",
		"horus:gpu_util_pct=3,wait=9":                    "comment: gpu_util_pct: expected beside gpu_memory_gib, found without",
		"horus:gpu_util_pct=3,gpu_memory_gib=0,wait=9":   "comment: gpu_memory_gib: expected a number from 0.001",
		"horus:gpu_util_pct=101,gpu_memory_gib=1,wait=9": "comment: gpu_util_pct: expected a number from 0 to 100",
	} {
		w, err := Parse(comment, "/")
		if err == nil || !strings.Contains(err.Error(), says) || w.WaitS != 9 {
			t.Errorf("%s: expected %q and its wait, found %v, %d", comment, says, err, w.WaitS)
		}
	}
}

func TestWrongWordsOfAServiceAreNamed(t *testing.T) {
	const served = "users=1,tokens_in=9,tokens_out=9"
	for words, says := range map[string]string{
		"model=gpt2,users=0.5":                        "users: expected a number from 1 to 1000000,",
		"model=gpt2,users=3":                          "users: expected beside tokens_out, found without",
		"model=gpt2,tokens_in=3":                      "tokens_in: expected beside requests_per_s or users, found without",
		"model=gpt2,token_ms=3":                       "token_ms: expected beside tokens_in, found without",
		"model=gpt2," + served + ",requests_per_s=1":  "users: expected without requests_per_s, found beside it",
		"model=gpt2," + served + ",batch=2":           "users: expected without batch, found beside it",
		"model=gpt2," + served + ",longest=17":        "longest: expected at least tokens_in and tokens_out, 18, found 17",
		"model=gpt2," + served + ",kind=training":     "kind: expected inference",
		"model=gpt2," + served + ",framework=pytorch": "framework: expected sglang, tensorrt-llm or vllm",
		"model=a.onnx," + served:                      "tokens_in: expected beside a config.json or a name",
		"model=./gpt2,weights=fp8":                    "weights: expected beside a config.json or a name",
		"model=gpt2,cache=int4":                       "cache: expected one of bf16, fp16, fp32, fp8, int8, found",
		"sm_cap_pct=100":                              "sm_cap_pct: expected an integer from 1 to 99,",
	} {
		if _, err := Parse("horus:"+words, "/"); err == nil || !strings.HasPrefix(err.Error(), "comment: "+says) {
			t.Errorf("%s: expected %q, found %v", words, says, err)
		}
	}
}

func TestARecordIsReadBackAsItWasWritten(t *testing.T) {
	r := Record{Verb: Placed, From: 5, At: 6, Asked: "node:gres:gpu:a:1,gres:gpu:b:1", Nodes: "n[1-3,7]", On: "n1/a_0+n2/a_1", Mem: 70, Slow: "1.00..1.20", Grant: Grant{"--a 4 b.c=d", 30, 900}, Text: "Placed; beside job 4"}
	for _, text := range []string{r.String(), `"` + r.String() + `"`} { // scontrol keeps the quotes
		if got, is := RecordOf(text); !is || got != r {
			t.Errorf("%s: expected %+v, found %+v", text, r, got)
		}
	}
	for _, text := range []string{"", "hello", "horus:", "horus:dances at=3; x"} {
		if got, is := RecordOf(text); is {
			t.Errorf("%q: expected none of ours, found %+v", text, got)
		}
	}
	r.Text = strings.Repeat("é", 400)
	if got, _ := RecordOf(r.String()); len(got.Text) > mostText+3 || !strings.HasSuffix(got.Text, "…") {
		t.Errorf("expected a sentence that is cut, found %d bytes", len(got.Text))
	}
}
