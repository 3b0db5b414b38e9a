// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"libhorus.org/slurm/internal/words"
	"libhorus.org/slurm/test/cluster"
)

func TestWhatUsersWriteIsNotTakenForWhatSlurmSays(t *testing.T) {
	c := start(t, cluster.Options{Nodes: 1})
	const text = "|1|\n7|PENDING|\n   UserId=root(0)\n   NodeList=n1\n     Nodes=n1 CPU_IDs=0 Mem=100 GRES=gpu:a100_0:1(IDX:0)\n   MinCPUsNode=1"
	running(c, c.Submit("60", "--gres=gpu:a100_1:1", "-J", text, "-A", text, "--comment", text))
	c.StartDaemon()
	job := running(c, c.Submit("60", shared(fills(90, 30, ""))...))[0]
	if got := on(t, job)[0]; got != "n1/a100_0" {
		t.Errorf("expected the GPU that is free, n1/a100_0, found %s", got)
	}
	id := c.Submit("60", shared(fills(90, 30, ""))...)
	c.Wait("a job for which there is no GPU waits", soon, func() bool { return record(c.Job(id)).Verb == words.Waits })
	if log := c.Read("horus-slurm.out"); strings.Contains(log, "squeue --json") {
		t.Errorf("expected that all is read as Slurm prints it, found\n%s", log)
	}
}
