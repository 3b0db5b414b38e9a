// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"libhorus.org/slurm/internal/words"
	"libhorus.org/slurm/test/cluster"
)

func TestWithoutADaemonAJobStartsWhenItsTimeHasCome(t *testing.T) {
	alive := filepath.Join(t.TempDir(), "alive")
	if err := os.WriteFile(alive, []byte("99999999999\n"), 0o644); err != nil { // its last sign of life
		t.Fatal(err)
	}
	c := start(t, cluster.Options{JobSubmit: strings.Replace(script(t, alive), "local wait_s = 300 ", "local wait_s = 5 ", 1)})
	share := c.Submit("60", "--gres=shard:4", "--comment", fills(30, 8, ""))
	if job := c.Job(share); record(job).Verb != words.Waits {
		t.Errorf("expected a job that waits for us, found %q", job.AdminComment)
	}
	running(c, share)
}

func TestAJobWaitsForADeadDaemonNoLongerThanItSaid(t *testing.T) {
	c := start(t, cluster.Options{Nodes: 1, GPUs: []string{"a100_0"}})
	d := c.StartDaemon("--wait", "10s")
	first := c.Submit("600", whole(1)...)
	running(c, first)
	second := c.Submit("60", shared(fills(90, 30, ""))...)
	c.Wait("the second job's time is moved", soon, func() bool {
		job := c.Job(second)
		return record(job).Verb == words.Waits && job.Eligible-time.Now().Unix() <= 10
	})
	d.Kill()
	if out, err := c.Slurm("scancel", fmt.Sprint(first)); err != nil {
		t.Fatal(out, err)
	}
	running(c, second)
}

func TestAJobWaitsOnAsLongAsTheDaemonLives(t *testing.T) {
	c := start(t, cluster.Options{Nodes: 1, GPUs: []string{"a100_0"}})
	c.StartDaemon("--wait", "10s")
	running(c, c.Submit("600", shared(fills(90, 30, ""))...))
	id := c.Submit("60", shared(fills(90, 30, ""))...)
	c.Wait("the job's time is moved", soon, func() bool { return record(c.Job(id)).Verb == words.Waits })
	first := c.Job(id).Eligible
	c.Wait("it is moved again", soon, func() bool { return c.Job(id).Eligible > first })
	if job := c.Job(id); job.Tres.PerNode != "gres:shard:4" {
		t.Errorf("expected the request that it was submitted with, found %+v", job.Tres)
	}
}

func TestWhatRunsIsAdoptedAtTheStart(t *testing.T) {
	c := start(t, cluster.Options{Nodes: 1})
	d := c.StartDaemon()
	one := running(c, c.Submit("60", shared(fills(95, 36, ""))...))[0]
	plain := running(c, c.Submit("60", "--gpus=1"))[0]
	d.Kill()
	c.StartDaemon()
	id := c.Submit("60", shared(fills(95, 36, ""))...)
	c.Wait("a job for which there is no room waits", soon, func() bool { return record(c.Job(id)).Verb == words.Waits })
	for _, gone := range []uint64{plain.ID, one.ID} {
		if out, err := c.Slurm("scancel", fmt.Sprint(gone)); err != nil {
			t.Fatal(out, err)
		}
		job := running(c, id)[0]
		if got := on(t, job); got[0] != on(t, plain)[0] {
			t.Errorf("expected the GPU that came free, %v, found %v", on(t, plain), got)
		}
		break
	}
}

func TestAMoveThatWasCutShortIsEnded(t *testing.T) {
	c := start(t, cluster.Options{Nodes: 1, GPUs: []string{"a100_0", "a100_1"}})
	left := words.Record{Verb: words.Waits, From: 1, At: 1, Asked: "node:gres:shard:4"}
	id := c.Submit("60", shared(fills(30, 8, ""))...) // what a daemon leaves that is killed after the first of two steps
	out, err := c.Slurm("scontrol", "update", fmt.Sprintf("JobId=%d", id), "TresPerNode=", "StartTime=now+365days", "AdminComment="+left.String())
	if err != nil {
		t.Fatal(out, err)
	}
	c.StartDaemon()
	job := running(c, id)[0]
	if got := on(t, job); len(got) != 1 || got[0] != record(job).On {
		t.Errorf("expected the one device of its comment, found %v beside %q", got, job.AdminComment)
	}
}

func TestAHoldOfAnAdministratorIsLeftAlone(t *testing.T) {
	c := start(t, cluster.Options{})
	id := c.Submit("60", shared(fills(30, 8, ""))...)
	if out, err := c.Slurm("scontrol", "hold", fmt.Sprint(id)); err != nil {
		t.Fatal(out, err)
	}
	c.StartDaemon()
	running(c, c.Submit("60", shared(fills(30, 8, ""))...))
	if job := c.Job(id); !job.Pending() || job.AdminComment != "" {
		t.Errorf("expected the held job as it was, found it %s with %q", job.State, job.AdminComment)
	}
}

func TestWhoIsHeldGivesItsPlaceBackAndStaysHeld(t *testing.T) {
	c := start(t, cluster.Options{Nodes: 1, GPUs: []string{"a100_0"}})
	running(c, c.Submit("600", "--gpus=1"))
	c.StartDaemon("--grace", "1s")
	id := c.Submit("60", shared(fills(30, 8, ""))...)
	c.Wait("a GPU is kept for it", soon, func() bool {
		r := record(c.Job(id))
		return r.Verb == words.Waits && r.On != ""
	})
	if out, err := c.Slurm("scontrol", "hold", fmt.Sprint(id)); err != nil {
		t.Fatal(out, err)
	}
	c.Wait("its place is taken back", soon, func() bool { return record(c.Job(id)).On == "" })
	if job := c.Job(id); job.Priority != 0 || job.Required != "" || job.Eligible <= time.Now().Unix() {
		t.Errorf("expected it held, on no node, and to wait once released, found %+v", job)
	}
	if out, err := c.Slurm("scontrol", "release", fmt.Sprint(id)); err != nil {
		t.Fatal(out, err)
	}
	c.Wait("it has a place again", soon, func() bool { return record(c.Job(id)).On == "n1/a100_0" })
}

func TestARequeuedJobIsPlacedAnew(t *testing.T) {
	c := start(t, cluster.Options{})
	var others []uint64
	for _, name := range []string{"n1", "n2"} {
		others = append(others, c.Submit("600", "--gres=gpu:a100_1:1", "-w", name))
	}
	running(c, others...)
	c.StartDaemon("--grace", "2s")
	id := c.Submit("60", shared(fills(30, 8, ""))...)
	first := on(t, running(c, id)[0])[0]
	if out, err := c.Slurm("scancel", fmt.Sprint(others[0]), fmt.Sprint(others[1])); err != nil {
		t.Fatal(out, err)
	}
	node, _, _ := strings.Cut(first, "/")
	if out, err := c.Slurm("scontrol", "update", "NodeName="+node, "State=DRAIN", "Reason=test"); err != nil {
		t.Fatal(out, err)
	}
	if out, err := c.Slurm("scontrol", "requeue", fmt.Sprint(id)); err != nil {
		t.Fatal(out, err)
	}
	c.Wait("the job runs on the other node", 2*soon, func() bool {
		job := c.Job(id)
		return job.State == "RUNNING" && on(t, job)[0] != first
	})
	if got := on(t, c.Job(id)); len(got) != 1 {
		t.Errorf("expected one device, found %v", got)
	}
}

func TestAsideLeavesTheQueueToSlurmAsItWasSubmitted(t *testing.T) {
	c := start(t, cluster.Options{Nodes: 1, GPUs: []string{"a100_0"}})
	d := c.StartDaemon("--wait", "600s")
	first := c.Submit("600", whole(1)...)
	running(c, first)
	ids := []uint64{c.Submit("1", shared(fills(30, 8, ""))...), c.Submit("1", shared(fills(90, 30, ""))...)}
	for _, id := range ids {
		c.Wait("the job waits", soon, func() bool { return record(c.Job(id)).Verb == words.Waits })
	}
	d.Stop()
	if out, err := c.Program("aside"); err != nil || out != "2 jobs left to Slurm\n" {
		t.Fatalf("expected 2 jobs left to Slurm, found %q, %v", out, err)
	}
	if out, err := c.Slurm("scancel", fmt.Sprint(first)); err != nil {
		t.Fatal(out, err)
	}
	for _, id := range ids {
		c.Wait("the job ends", soon, func() bool { return c.Job(id).State == "COMPLETED" })
	}
}

// Slurm before 24.11 itself gives shards again over a restart. So it must not see who waits for a GPU that others share.
func TestNobodyIsStartedBesideThoseWhoseSharesSlurmForgot(t *testing.T) {
	c := start(t, cluster.Options{Nodes: 1, GPUs: []string{"a100_0"}})
	d := c.StartDaemon()
	running(c, c.Submit("600", shared(fills(90, 25, ""))...))
	d.Kill()
	waits, plain := c.Submit("600", shared(fills(90, 30, ""))...), c.Submit("600", "--gres=shard:a100_0:2")
	time.Sleep(2 * time.Second) // its first sentence says it then
	c.StartDaemon("--grace", "1s")
	c.Wait("a GPU is kept for it", soon, func() bool { return strings.Contains(record(c.Job(waits)).Text, "is kept for it") })
	time.Sleep(6 * time.Second) // Slurm has saved that
	c.KillController()
	c.StartController()
	time.Sleep(15 * time.Second) // in which Slurm starts what it can
	if state := c.Job(waits).State; state != "PENDING" {
		t.Errorf("expected that it waits for the GPU, found it %s", state)
	}
	if state := c.Job(plain).State; (state == "RUNNING") != losesShares(t) {
		t.Errorf("three of four shards are taken: expected that only Slurm before 24.11 starts a job of two more, found it %s", state)
	}
}

// A controller that has just started knows of no shards until its nodes register. So it says nothing about who fits no node.
func TestNobodyIsLeftToASlurmThatHasJustStarted(t *testing.T) {
	c := start(t, cluster.Options{Nodes: 1, GPUs: []string{"a100_0"}})
	d := c.StartDaemon()
	running(c, c.Submit("600", shared(fills(90, 25, ""))...))
	waits := c.Submit("600", shared(fills(90, 30, ""))...)
	c.Wait("it waits", soon, func() bool { return record(c.Job(waits)).Verb == words.Waits })
	d.Kill()
	before := record(c.Job(waits)) // as after a restart a minute ago
	before.At, before.Text = time.Now().Unix()-61, "never fits: x"
	if out, err := c.Slurm("scontrol", "update", fmt.Sprintf("JobId=%d", waits), "StartTime=now+600", "AdminComment="+before.String()); err != nil {
		t.Fatal(out, err)
	}
	c.Saved(time.Now())
	c.KillController()
	d = c.StartDaemon()
	c.StartController()
	time.Sleep(15 * time.Second)
	if job := c.Job(waits); job.State != "PENDING" || record(job).Verb != words.Waits {
		t.Errorf("expected that it waits, found it %s with %q", job.State, job.AdminComment)
	}
}

// kills is how often the daemon and the controller are killed.
func kills(t *testing.T) int {
	text := os.Getenv("HORUS_SLURM_KILLS")
	if text == "" {
		return 3
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("HORUS_SLURM_KILLS: expected a number from 1, found %q", text)
	}
	return n
}

func TestKilledAgainAndAgainNoJobIsLostOrPlacedTwice(t *testing.T) {
	c := start(t, cluster.Options{Nodes: 4, GPUs: []string{"a100_0", "a100_1", "v100_0", "v100_1"}})
	audit := c.Audit(map[string]int64{"a100": 40_960, "v100": 16_384})
	random := rand.New(rand.NewPCG(1, 1))
	loses := losesShares(t) // where jobs of whole GPUs need nodes of their own: TestMigrateRefusesASlurmThatForgetsWhoSharesAGPU
	var ids []uint64
	submit := func() {
		options, apart := shared(fills(10+random.IntN(80), 1+11*random.Float64(), "")), []string{"-x", "n4"}
		if random.IntN(4) == 0 {
			options, apart = whole(1+random.IntN(2)), []string{"-x", "n[1-3]"}
		}
		if loses {
			options = append(options, apart...)
		}
		// Nobody's time runs out. Slurm 22.05.8 forgets over a restart which shards are taken, and gives them again to jobs
		// that it places itself; what we place is another GPU's, as we count what runs.
		for i := range options {
			options[i] = strings.NewReplacer("wait=60", "wait=900", "--begin=now+60", "--begin=now+900").Replace(options[i])
		}
		options = append(options, "--requeue")
		for { // while the controller is away, sbatch fails
			id, err := c.TrySubmit(fmt.Sprintf("%.1f", 0.5+2*random.Float64()), options...)
			if err == nil {
				ids = append(ids, id)
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	d := c.StartDaemon("--wait", "900s", "--grace", "5s")
	for i := range kills(t) {
		for range 6 {
			submit()
		}
		if i%3 == 2 {
			// What Slurm forgets of the jobs themselves is not ours to keep; what we told it lately may be lost.
			d.Kill()
			c.Saved(time.Now())
			d = c.StartDaemon("--wait", "900s", "--grace", "5s")
		}
		time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
		if i%3 == 2 {
			c.KillController()
			time.Sleep(time.Duration(random.IntN(500)) * time.Millisecond)
			c.StartController()
			c.Tidy()
		} else {
			d.Kill()
			time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
			d = c.StartDaemon("--wait", "900s", "--grace", "5s")
		}
	}
	// Slurm starts a job that it queues anew no earlier than two minutes later.
	c.Wait("every job ends", 240*time.Second+time.Duration(kills(t))*10*time.Second, func() bool {
		c.Tidy()
		for _, job := range c.Jobs() {
			if job.Pending() || job.Running() {
				return false
			}
		}
		return true
	})
	states := c.Ends()
	wrong, looks, most := audit.End()
	for _, text := range wrong {
		t.Error(text)
	}
	begun, ended := c.Runs()
	log, killed := c.Read("slurmctld.log"), 0
	for _, id := range ids {
		if strings.Contains(log, fmt.Sprintf("Killing non-startable batch JobId=%d:", id)) {
			killed++ // Slurm forgot that it had started it, and ended it when it started it again
			continue
		}
		if states[fmt.Sprint(id)] != "COMPLETED" || ended[fmt.Sprint(id)] < 1 {
			t.Errorf("job %d: expected COMPLETED, found %q, begun %d and ended %d times", id, states[fmt.Sprint(id)], begun[fmt.Sprint(id)], ended[fmt.Sprint(id)])
		}
	}
	if most < 2 && kills(t) >= 50 { // else chance decides
		t.Errorf("expected that jobs share a GPU at some time, found at most %d on one", most)
	}
	again := 0
	for _, id := range ids {
		if begun[fmt.Sprint(id)] > 1 {
			again++
		}
	}
	t.Logf("%d kills, %d jobs, of which Slurm ran %d again and ended %d; %d looks of the auditor, at most %d jobs on a GPU", kills(t), len(ids), again, killed, looks, most)
}
