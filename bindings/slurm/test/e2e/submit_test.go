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

// script is job_submit.lua as it is edited for a cluster of tests.
func script(t *testing.T, alive string) string {
	t.Helper()
	text, err := os.ReadFile(cmp.Or(os.Getenv("HORUS_SLURM_SUBMIT"), "../../job_submit/job_submit.lua"))
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.NewReplacer("/run/horus-slurm/alive", alive, "local shards = 8", "local shards = 4", "local migrated = {}", "local migrated = { a100 = true }").Replace(string(text))
	return edited
}

func TestTheSubmitScriptLetsJobsWaitForALivingDaemonAlone(t *testing.T) {
	alive := filepath.Join(t.TempDir(), "alive")
	c := start(t, cluster.Options{JobSubmit: script(t, alive), Nodes: 1})
	running(c, c.Submit("600", "--gpus=2"))
	comment := "horus:gpu_util_pct=30,gpu_memory_gib=8"
	if job := c.Job(c.Submit("60", "--gres=shard:1", "--comment", comment)); job.AdminComment != "" || job.Eligible > time.Now().Unix() {
		t.Errorf("without a daemon: expected a job of Slurm's own, found %q, begin %d", job.AdminComment, job.Eligible)
	}
	c.StartDaemon("--alive-file", alive)
	c.Wait("the daemon lives", soon, func() bool { _, err := os.Stat(alive); return err == nil })
	job := c.Job(c.Submit("60", "--comment", comment))
	if r := record(job); r.Verb != words.Waits || job.Tres.PerNode != "gres:shard:4" || job.Eligible < time.Now().Unix()+100 {
		t.Errorf("expected a job that waits with a GPU's shards, found %q, %q, begin %d", job.AdminComment, job.Tres.PerNode, job.Eligible)
	}
	if job := c.Job(c.Submit("60", "--gpus=1")); job.AdminComment != "" {
		t.Errorf("without a comment of ours: expected a job of Slurm's own, found %q", job.AdminComment)
	}
	if out, err := c.Slurm("scancel", "--state=RUNNING", "-u", "root"); err != nil {
		t.Fatal(out, err)
	}
	running(c, job.ID)
}

func TestJobsThatStateNoHostMemoryShareAGPUAllTheSame(t *testing.T) {
	alive := filepath.Join(t.TempDir(), "alive")
	text := strings.Replace(script(t, alive), "local memory_mib = 0 ", "local memory_mib = 1000 ", 1)
	c := start(t, cluster.Options{JobSubmit: text, Nodes: 1, GPUs: []string{"a100_0"}})
	c.StartDaemon("--alive-file", alive)
	c.Wait("the daemon lives", soon, func() bool { _, err := os.Stat(alive); return err == nil })
	var ids []uint64
	for _, options := range [][]string{{"--gres=shard:4"}, {}, {"--gres=shard:1", "--mem=300"}, {"--gres=shard:1", "--mem-per-cpu=400"}} {
		args := append([]string{"--parsable", "--output=/dev/null", "--comment", "horus:gpu_util_pct=10,gpu_memory_gib=4"}, options...)
		out, err := exec.Command("sbatch", append(args, "--wrap", "sleep 60")...).Output()
		id, parsed := strconv.ParseUint(strings.TrimSpace(string(out)), 10, 64)
		if err != nil || parsed != nil {
			t.Fatal(string(out), err)
		}
		ids = append(ids, id)
		if len(ids) == 3 { // three share a GPU at most
			for i, job := range running(c, ids...) {
				if want := []int64{1000, 1000, 300}[i]; job.MemMiB != want {
					t.Errorf("job %d: expected %d MiB of host memory, found %d", job.ID, want, job.MemMiB)
				}
			}
		}
	}
	if job := c.Job(ids[3]); job.MemMiB != 400 {
		t.Errorf("job %d: expected the 400 MiB that it states, found %d", job.ID, job.MemMiB)
	}
}

func TestAJobStartsNoEarlierThanItsUserSaid(t *testing.T) {
	alive := filepath.Join(t.TempDir(), "alive")
	c := start(t, cluster.Options{JobSubmit: script(t, alive)})
	c.StartDaemon("--alive-file", alive)
	c.Wait("the daemon lives", soon, func() bool { _, err := os.Stat(alive); return err == nil })
	begin := time.Now().Unix() + 6
	id := c.Submit("60", "--begin=now+6", "--comment", "horus:gpu_util_pct=30,gpu_memory_gib=8")
	if job := running(c, id)[0]; job.Started < begin || record(job).Verb != words.Placed {
		t.Errorf("expected it placed from %d on, found %d, %q", begin, job.Started, job.AdminComment)
	}
}

func TestRequestsFromBeforeTheMigrationRunAndItIsUndone(t *testing.T) {
	alive := filepath.Join(t.TempDir(), "alive")
	c := start(t, cluster.Options{Nodes: 1, GPUs: []string{"a100", "a100"}, Shards: -1})
	old := running(c, c.Submit("1", "--gres=gpu:a100:2"))[0]
	c.Wait("it ends", soon, func() bool { return c.Job(old.ID).State == "COMPLETED" })
	gres, conf := c.Read("gres.conf"), c.Read("slurm.conf")
	if out, err := c.Program("migrate", "--shards", "4", c.Dir); losesShares(t) == (err == nil) || c.Read("gres.conf") == gres != losesShares(t) {
		t.Fatalf("expected a refusal by Slurm before 24.11 alone, found %v, %s", err, out)
	}
	if losesShares(t) {
		if out, err := c.Program("migrate", "--whole-may-share", "--shards", "4", c.Dir); err != nil {
			t.Fatal(out, err)
		}
	}
	c.Write("job_submit.lua", script(t, alive))
	c.Write("slurm.conf", c.Read("slurm.conf")+"\nJobSubmitPlugins=lua\n")
	c.Restart()
	running(c, c.Submit("2", "--gres=gpu:a100:2"))
	running(c, c.Submit("2", "--gpus=a100:1"))
	d := c.StartDaemon()
	running(c, c.Submit("2", shared(fills(30, 8, ""))...))
	d.Stop()
	for _, refused := range [][]string{{"--gres=gpu:a100:1", "--constraint=[a100|v100]"}} {
		if id, err := c.TrySubmit("1", refused...); err == nil || !strings.Contains(err.Error(), "ask for gpu:N and --constraint=a100") {
			t.Errorf("%v: expected a refusal with a hint, found job %d, %v", refused, id, err)
		}
	}
	c.Wait("all have ended", soon, func() bool {
		for _, job := range c.Jobs() {
			if job.Running() || job.Pending() {
				return false
			}
		}
		return true
	})
	if out, err := c.Program("migrate", "--undo", c.Dir); err != nil {
		t.Fatal(out, err)
	}
	if c.Read("gres.conf") != gres || c.Read("slurm.conf") != conf+"\nJobSubmitPlugins=lua\n" {
		t.Errorf("expected the files from before with what was edited since, found\n%s\n%s", c.Read("gres.conf"), c.Read("slurm.conf"))
	}
	c.Write("slurm.conf", conf)
	c.Restart()
	running(c, c.Submit("1", "--gres=gpu:a100:2"))
}

func TestTheWrapperSaysItInTheComment(t *testing.T) {
	c := start(t, cluster.Options{})
	c.Write("script", "#!/bin/sh\nsleep 60\n")
	c.Write("net.onnx", "")
	wrapper, err := filepath.Abs(cmp.Or(os.Getenv("HORUS_SLURM_WRAPPER"), "../../bin/horus-sbatch"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := says(c.Dir, wrapper, "--horus-model", "net.onnx", "--horus-slowdown-bound=1.3", "--horus-wait", "60", "--gres=shard:4",
		"--comment=ticket 7, for Ann", "--parsable", "--output=/dev/null", c.Dir+"/script", "--horus-not", "ours")
	id, parsed := strconv.ParseUint(strings.TrimSpace(out), 10, 64)
	if err != nil || parsed != nil {
		t.Fatal(out, err)
	}
	want := "horus:model=" + c.Dir + "/net.onnx,slowdown_bound=1.3,wait=60; ticket 7, for Ann"
	if job := c.Job(id); job.Comment != want || job.Eligible < time.Now().Unix()+30 {
		t.Errorf("expected the words in its comment, %q, and its begin in a minute, found %q, %d", want, job.Comment, job.Eligible)
	}
	if out, err := says(c.Dir, wrapper, "--horus", "--parsable", "--output=/dev/null", c.Dir+"/script"); err != nil || c.Job(id+1).Comment != "horus:" {
		t.Errorf("--horus: expected a job without words, found %v, %s", err, out)
	}
	for said, expected := range map[string]string{"a,b.onnx": "expected neither comma nor semicolon", "none.onnx": "expected a file that can be read"} {
		if out, err := says(c.Dir, wrapper, "--horus-model", said, "x"); err == nil || !strings.Contains(out, expected) {
			t.Errorf("%s: expected a refusal with %q, found %q", said, expected, out)
		}
	}
}
