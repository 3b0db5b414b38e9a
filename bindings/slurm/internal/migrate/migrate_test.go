// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"strings"
	"testing"
)

func TestEachGPUGetsATypeOfItsOwnAndShards(t *testing.T) {
	got, err := Gres("# ours\nNodeName=n[1-2] Name=gpu Type=a100 File=/dev/nvidia[0-1] Cores=0-15\nNodeName=n[1-2] Name=gpu Type=a100 File=/dev/nvidia2 Cores=16-31\nName=nic File=/dev/x", 8)
	want := `# ours
NodeName=n[1-2] Name=gpu Type=a100_0 File=/dev/nvidia0 Cores=0-15
NodeName=n[1-2] Name=shard Type=a100_0 File=/dev/nvidia0 Cores=0-15 Count=8
NodeName=n[1-2] Name=gpu Type=a100_1 File=/dev/nvidia1 Cores=0-15
NodeName=n[1-2] Name=shard Type=a100_1 File=/dev/nvidia1 Cores=0-15 Count=8
NodeName=n[1-2] Name=gpu Type=a100_2 File=/dev/nvidia2 Cores=16-31
NodeName=n[1-2] Name=shard Type=a100_2 File=/dev/nvidia2 Cores=16-31 Count=8
Name=nic File=/dev/x`
	if err != nil || got != want {
		t.Errorf("expected\n%s\nfound %v\n%s", want, err, got)
	}
}

func TestNodesKeepWhatElseTheyHaveAndNameTheirModels(t *testing.T) {
	got, models, err := Slurm("GresTypes=gpu\nNodeName=n[1-2] CPUs=64 Gres=gpu:a100:2,nic:1 \\\n  Feature=fast State=UNKNOWN # old\nPartitionName=p", 4)
	want := `GresTypes=gpu,shard
NodeName=n[1-2] CPUs=64 Gres=gpu:a100_0:1,gpu:a100_1:1,shard:a100_0:4,shard:a100_1:4,nic:1   Feature=fast,a100 State=UNKNOWN# old
PartitionName=p`
	got = strings.ReplaceAll(got, "nic:1    ", "nic:1   ")
	if err != nil || got != want || len(models) != 1 || models[0] != "a100" {
		t.Errorf("expected\n%s\nfound %v, %v\n%s", want, err, models, got)
	}
}

func TestWhatCannotBeMigratedIsNamedByItsLine(t *testing.T) {
	for text, says := range map[string]string{
		"\nAutoDetect=nvml":                "gres.conf:2: expected a line with File=",
		"Name=gpu Type=a100 Count=2":       "gres.conf:1: expected File=",
		"Name=mps Count=100":               "gres.conf:1: expected no mps yet",
		"# nothing":                        "expected lines with Name=gpu, found none",
		"Name=gpu File=/dev/nvidia[0-x]":   "gres.conf:1: expected File=",
		"Name=shard Count=2 File=/dev/gpu": "gres.conf:1: expected no shard yet",
	} {
		if _, err := Gres(text, 8); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: expected %q, found %v", text, says, err)
		}
	}
}
