// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"libhorus.org/slurm/test/cluster"
)

func TestWhatSlurmDecidedIsReadByHorusShadowAndPotential(t *testing.T) {
	horus := os.Getenv("HORUS_COMMAND")
	if horus == "" {
		t.Skip("HORUS_COMMAND is not set")
	}
	c := start(t, cluster.Options{GPUs: []string{"a100", "a100"}, Shards: -1})
	recorder := c.StartProgram("record", "--period", "300ms", c.Dir+"/record")
	var ids []uint64
	for range 6 {
		ids = append(ids, c.Submit("2", "--gres=gpu:a100:1", "-J", "train-x", "-A", "red"))
	}
	ids = append(ids, c.Submit("2", "-N2", "-n2", "--gpus-per-node=2", "-J", "big one"))
	c.Wait("all have ended", 2*soon, func() bool {
		for _, id := range ids {
			if c.Job(id).State != "COMPLETED" {
				return false
			}
		}
		return true
	})
	c.Wait("all are written down", soon, func() bool { return strings.Count(c.Read("record"), "\n") == len(ids)+1 })
	recorder.Stop()
	c.Write("words", "# ours\ntrain-* gpu_util_pct=30,gpu_memory_gib=4\n")
	out := filepath.Join(c.Dir, "shadow")
	text, err := c.Program("shadow", "--types", cluster.Types, "--words", c.Dir+"/words", "--out", out, c.Dir+"/record")
	if err != nil || !strings.Contains(text, "7 runs of jobs with GPUs, 6 of which words say") {
		t.Fatalf("expected 7 runs, 6 of them known, found %v\n%s\n%s", err, text, c.Read("record"))
	}
	files := []string{"--cluster", out + "/cluster.yaml", "--jobs", out + "/jobs.yaml"}
	if csv := c.Read("shadow/decisions.csv"); !strings.Contains(csv, ",n1|n2,0-1|0-1") {
		t.Errorf("expected the devices that Slurm gave the gang, found\n%s", csv)
	}
	told, err := exec.Command(horus, append([]string{"shadow", "--json", "--log", out + "/decisions.csv"}, files...)...).CombinedOutput()
	var totals struct{ Decisions int }
	if err != nil || json.Unmarshal(told, &totals) != nil || totals.Decisions != 7 {
		t.Errorf("expected horus shadow to read 7 decisions, found %v\n%s", err, told)
	}
	told, err = exec.Command(horus, append([]string{"potential", "--interference", "horus"}, files...)...).CombinedOutput()
	if err != nil || !strings.Contains(string(told), "GAIN") {
		t.Errorf("expected horus potential to tell a gain, found %v\n%s", err, told)
	}
}
