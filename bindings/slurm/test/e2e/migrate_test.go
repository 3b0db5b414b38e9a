// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"libhorus.org/slurm/test/cluster"
)

// losesShares says whether this Slurm forgets that a GPU is shared once one of its jobs ends, as 22.05.8 does.
func losesShares(t *testing.T) bool {
	t.Helper()
	out, err := exec.Command("scontrol", "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(out), " 22.05")
}

func TestMigrateRefusesASlurmThatForgetsWhoSharesAGPU(t *testing.T) {
	c := start(t, cluster.Options{Nodes: 1})
	ends, stays := c.Submit("60", "--gres=shard:a100_0:1"), c.Submit("60", "--gres=shard:a100_0:1")
	running(c, ends, stays)
	_, _ = c.Slurm("scancel", fmt.Sprint(ends))
	c.Wait("it ends", soon, func() bool { return c.Job(ends).State == "CANCELLED" })
	whole := c.Submit("1", "--gres=gpu:a100_0:1")
	state := ""
	c.Wait("Slurm has decided", soon, func() bool {
		out, _ := c.Slurm("squeue", "-h", "-t", "all", "-j", fmt.Sprint(whole), "-o", "%T %r")
		state = strings.TrimSpace(out)
		return state != "PENDING None" && state != "PENDING Priority" && state != ""
	})
	out, err := c.Program("migrate", c.Dir)
	starts, refuses := !strings.HasPrefix(state, "PENDING"), err != nil && strings.Contains(out, "--whole-may-share")
	if starts != refuses {
		t.Errorf("expected that migrate refuses where a job of a whole GPU starts beside one that shares it, found it %s, and %s", state, out)
	}
}

// As configurations are written: quotes, types that are no names, links, flags, nodes named twice, GPUs that are detected.
func TestASlurmStartsOnWhatMigrateWroteOfAnOldConfiguration(t *testing.T) {
	for _, detect := range []bool{false, true} {
		t.Run(fmt.Sprintf("detect=%v", detect), func(t *testing.T) { migratesAndRuns(t, detect) })
	}
}

func migratesAndRuns(t *testing.T, detect bool) {
	const model = "nvidia_a100-sxm4.80"
	c := start(t, cluster.Options{Nodes: 2, GPUs: []string{model, model}, Shards: -1})
	weighs := !detect && cluster.AccountingMissing() == "" // only a slurmctld with slurmdbd takes types of TRES
	if weighs {
		c.StartAccounting()
		c.Write("slurm.conf", strings.Replace(c.Read("slurm.conf"), "TRES=gres/gpu", "TRES=gres/gpu,gres/gpu:"+model, 1)+
			"PartitionName=weighs Nodes=ALL TRESBillingWeights=\"CPU=1.0,GRES/gpu:"+model+"=2.0\"\n")
	}
	old := c.Read("slurm.conf")
	gres := fmt.Sprintf(`NodeName=n[1-2] AutoDetect=off Name=gpu Type=%[1]s File=%[2]s/gpu0 Links=-1,4 Flags=nvidia_gpu_env # first
NodeName=n1,n2 Name=gpu Type="%[1]s" File=%[2]s/gpu1 Links=4,-1
`, model, c.Dir)
	c.Write("gres.conf", gres)
	c.Write("slurm.conf", strings.Replace(old, "Gres=", `Features="rack1,ib" Gres=`, 1))
	args := []string{"migrate", "--shards", "4", "--whole-may-share"}
	if detect {
		found := ""
		for _, name := range []string{"n1", "n2"} {
			out, err := c.Slurm("slurmd", "-N", name, "-G")
			if err != nil {
				t.Fatal(err, out)
			}
			found += strings.ReplaceAll("\n"+strings.TrimSpace(out), "\n", "\n"+name+": ") + "\n" // as pdsh prints it
		}
		c.Write("found", found)
		c.Write("gres.conf", "AutoDetect=nvml\n")
		if out, err := c.Program(append(args, c.Dir)...); err == nil || !strings.Contains(out, "found AutoDetect=nvml") || c.Read("gres.conf") != "AutoDetect=nvml\n" {
			t.Errorf("expected that it asks what is found, found %v, %s", err, out)
		}
		args = append(args, "--found", filepath.Join(c.Dir, "found"))
	}
	out, err := c.Program(append(args, c.Dir)...)
	if err != nil {
		t.Fatal(out)
	}
	said := regexp.MustCompile(`migrated = \{.*\}`).FindString(out)
	c.Write("job_submit.lua", strings.ReplaceAll(script(t, filepath.Join(t.TempDir(), "alive")), "migrated = { a100 = true }", said))
	c.Write("slurm.conf", c.Read("slurm.conf")+"JobSubmitPlugins=lua\n")
	c.Restart()
	told, err := c.Slurm("scontrol", "show", "node", "n2")
	for _, want := range []string{"AvailableFeatures=rack1,ib," + model, "gpu:" + model + "_1:1", "shard:" + model + "_1:4"} {
		if err != nil || !strings.Contains(told, want) {
			t.Errorf("expected %s, found %v\n%s\n%s", want, err, told, c.Read("gres.conf"))
		}
	}
	if tracked, err := c.Slurm("scontrol", "show", "partition", "weighs"); weighs && (err != nil || !strings.Contains(tracked, "GRES/gpu:"+model+"_1=2.0")) {
		t.Errorf("expected the weight of each GPU, found %v, %s", err, tracked)
	}
	running(c, c.Submit("2", "--gres=gpu:"+model+":2"), c.Submit("2", "--gres=shard:"+model+"_1:3"))
}
