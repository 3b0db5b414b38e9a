// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const types = "GresTypes=gpu\n"

func TestEachGPUGetsATypeOfItsOwnAndShards(t *testing.T) {
	got, err := Files(`# ours
NodeName=n[1-2] Name=gpu Type=a100 File=/dev/nvidia[0-1] Cores=0-15 # near
NodeName=n[1-2] Name=gpu Type=a100 File=/dev/nvidia2 Cores=16-31
Name=nic File=/dev/x`, types+`NodeName=n[1-2] CPUs=64 Gres=gpu:a100:3,nic:1 \
  Feature=fast State=UNKNOWN # old
PartitionName=p \
  Nodes=ALL`, Options{Shards: 4})
	want := `# ours
NodeName=n[1-2] Name=gpu Type=a100_0 File=/dev/nvidia0 Cores=0-15 # near
NodeName=n[1-2] Name=shard Type=a100_0 File=/dev/nvidia0 Cores=0-15 Count=4
NodeName=n[1-2] Name=gpu Type=a100_1 File=/dev/nvidia1 Cores=0-15
NodeName=n[1-2] Name=shard Type=a100_1 File=/dev/nvidia1 Cores=0-15 Count=4
NodeName=n[1-2] Name=gpu Type=a100_2 File=/dev/nvidia2 Cores=16-31
NodeName=n[1-2] Name=shard Type=a100_2 File=/dev/nvidia2 Cores=16-31 Count=4
Name=nic File=/dev/x`
	if err != nil || got.Gres != want {
		t.Errorf("expected\n%s\nfound %v\n%s", want, err, got.Gres)
	}
	want = `GresTypes=gpu,shard
NodeName=n[1-2] CPUs=64 Gres=gpu:a100_0:1,gpu:a100_1:1,gpu:a100_2:1,shard:a100_0:4,shard:a100_1:4,shard:a100_2:4,nic:1    Feature=fast,a100 State=UNKNOWN # old
PartitionName=p \
  Nodes=ALL`
	if got.Slurm != want || !slices.Equal(got.Models, []string{"a100"}) {
		t.Errorf("expected\n%s\nfound %v\n%s", want, got.Models, got.Slurm)
	}
}

// devices are "NODES TYPE FILE" of each line with GPUs that was written.
func devices(gres string) string {
	var out []string
	for _, line := range strings.Split(gres, "\n") {
		if s := (&statement{text: line}); s.get("Name") == "gpu" {
			out = append(out, strings.Join(strings.Fields(s.get("NodeName")+" "+s.get("Type")+" "+strings.TrimPrefix(s.get("File"), "/dev/nvidia")), " "))
		}
	}
	return strings.Join(out, ", ")
}

func TestGPUsAreCountedForEachNode(t *testing.T) {
	for _, c := range []struct{ gres, nodes, want, slurm string }{
		{"NodeName=a Name=gpu Type=x File=/dev/nvidia0\nNodeName=a,b Name=gpu Type=x File=/dev/nvidia1\nNodeName=b Name=gpu Type=x File=/dev/nvidia2",
			"NodeName=a,b Gres=gpu:x:2", "a x_0 0, a x_1 1, b x_0 1, b x_1 2", "Gres=gpu:x_0:1,gpu:x_1:1,shard:x_0:8,shard:x_1:8 Feature=x"},
		{"NodeName=a[1-2] Name=gpu Type=x File=/dev/nvidia0\nNodeName=a2,a1 Name=gpu Type=x File=/dev/nvidia1", "NodeName=a[1-2] Gres=gpu:x:2",
			"a[1-2] x_0 0, a2,a1 x_1 1", "gpu:x_0:1,gpu:x_1:1,"},
		{"Name=gpu File=/dev/nvidia[0-1]", "NodeName=a Gres=gpu:2\nNodeName=c", "gpu_0 0, gpu_1 1", "Gres=gpu:gpu_0:1,gpu:gpu_1:1,shard:gpu_0:8,shard:gpu_1:8"},
		{"Name=gpu File=/dev/nvidia0", `NodeName=a Gres="gpu" Features="r1,ib"`, "gpu_0 0", `Gres="gpu:gpu_0:1,shard:gpu_0:8" Features="r1,ib"`},
		{"Name=gpu File=/dev/nvidia[0-1]", `NodeName=a Features="r1,ib" Gres=gpu:2080:2`, "2080_0 0, 2080_1 1", `Features="r1,ib,2080" Gres=gpu:2080_0:1`},
		{"Name=gpu Type=l4 File=/dev/nvidia0", "NodeName=a Gres=gpu:1", "l4_0 0", "Gres=gpu:l4_0:1,shard:l4_0:8 Feature=l4"},
		{"Name = gpu Type= \"l4\" File = /dev/nvidia0", "NodeName = a Gres = gpu:l4:1(S:0)", "l4_0 0", "gpu:l4_0:1"},
		{"Name=gpu Type=x-1.y File=/dev/nvidia0", "NodeName=DEFAULT Gres=gpu:x-1.y:1 Feature=q\nNodeName=a\nNodeName=b Gres=nic:2", "x-1.y_0 0",
			"NodeName=DEFAULT Feature=q\nNodeName=a Gres=gpu:x-1.y_0:1,shard:x-1.y_0:8 Feature=q,x-1.y\nNodeName=b Gres=nic:2"},
		{"NodeName=a Name=gpu Type=x File=/dev/nvidia0\nNodeName=b Name=gpu Type=y File=/dev/nvidia0", "NodeName=a Gres=gpu:1\nNodeName=b Gres=gpu:1",
			"a x_0 0, b y_0 0", "NodeName=b Gres=gpu:y_0:1"},
	} {
		got, err := Files(c.gres, types+c.nodes, Options{Shards: 8})
		if err != nil || devices(got.Gres) != c.want || !strings.Contains(got.Slurm, c.slurm) {
			t.Errorf("%s\n%s\nexpected %s and %s\nfound %v, %s\n%s", c.gres, c.nodes, c.want, c.slurm, err, devices(got.Gres), got.Slurm)
		}
	}
}

func TestSettingsThatNameATypeAreWrittenAnewOrNamed(t *testing.T) {
	got, err := Files("Name=gpu Type=a-1 File=/dev/nvidia[0-1]", types+`AccountingStorageTRES=gres/gpu,gres/gpu:a-1
PriorityWeightTRES=CPU=10,GRES/gpu:A-1=3
NodeName=n Gres=gpu:a-1:2
PartitionName=p Nodes=ALL TRESBillingWeights="CPU=1.0,GRES/gpu:a-1=2.0" MaxTRESPerNode=gres/gpu:a-1=1 Default=YES`, Options{Shards: 8})
	for _, want := range []string{"AccountingStorageTRES=gres/gpu,gres/gpu:a-1_0,gres/gpu:a-1_1\n", "CPU=10,GRES/gpu:A-1_0=3,GRES/gpu:A-1_1=3\n",
		`TRESBillingWeights="CPU=1.0,GRES/gpu:a-1_0=2.0,GRES/gpu:a-1_1=2.0" MaxTRESPerNode=gres/gpu:a-1=1 Default=YES`} {
		if err != nil || !strings.Contains(got.Slurm, want) {
			t.Errorf("expected %s, found %v\n%s", want, err, got.Slurm)
		}
	}
	if !slices.Equal(got.ByHand, []string{"slurm.conf:5: MaxTRESPerNode=gres/gpu:a-1=1"}) {
		t.Errorf("expected the limit by name, found %q", got.ByHand)
	}
}

func TestWhatCannotBeMigratedIsNamedByItsLine(t *testing.T) {
	for _, c := range []struct{ gres, nodes, says string }{
		{"Name=gpu Type=a100 Count=2", "NodeName=n Gres=gpu:a100:2", "gres.conf:1: expected File="},
		{"Name=gpu Count=3 File=/dev/nvidia[0-1]", "NodeName=n Gres=gpu:2", "gres.conf:1: expected as many files as Count=3 says, found 2"},
		{"Name=gpu MultipleFiles=/dev/a,/dev/b", "NodeName=n Gres=gpu:1", "gres.conf:1: expected one file for a GPU, found MultipleFiles"},
		{"Name=mps Count=100", "NodeName=n Gres=gpu:1", "gres.conf:1: expected no mps yet"},
		{"# nothing", "NodeName=n Gres=gpu:1", "gres.conf: expected lines with Name=gpu, found none"},
		{"Name=gpu File=/dev/nvidia[0-x]", "NodeName=n Gres=gpu:1", "gres.conf:1: expected File="},
		{"Name=shard Count=2 File=/dev/gpu", "NodeName=n Gres=gpu:1", "gres.conf:1: expected no shard yet"},
		{"\n\ninclude other", "NodeName=n Gres=gpu:1", "gres.conf:3: expected all in this file, found include other"},
		{"Name=gpu File=/dev/nvidia0", "NodeName=n \\\n Gres=gpu:1\nInclude more.conf", "slurm.conf:4: expected all in this file, found Include more.conf"},
		{"Name=gpu File=/dev/nvidia0", "NodeName=n Gres=gpu:1,shard:2", "slurm.conf:2: expected no shard yet"},
		{"Name=gpu File=/dev/nvidia0", "NodeName=n Gres=gpu:a:no_consume:1", "slurm.conf:2: expected gpu:COUNT or"},
		{"Name=gpu File=/dev/nvidia0", "NodeName=n Gres=nic:1", "slurm.conf: expected GresTypes=gpu and nodes"},
		{"Name=gpu File=/dev/nvidia0", "NodeName=n Gres=gpu:1\nNodeName=n Gres=gpu:1", "slurm.conf:3: expected each node once, found n twice"},
		{"NodeName=n,m Name=gpu File=/dev/nvidia0", "NodeName=n Gres=gpu:1\nNodeName=m", "gres.conf:1: expected nodes that have GPUs in slurm.conf, found m"},
		{"NodeName=n Name=gpu File=/dev/nvidia0", "NodeName=n,m Gres=gpu:1", "node m: expected in gres.conf a file for each of the GPUs of slurm.conf:2, 1 without a type, found none"},
		{"NodeName=n Name=gpu Type=x File=/dev/nvidia[0-2]", "NodeName=n Gres=gpu:x:5", "node n: expected in gres.conf a file for each of the GPUs of slurm.conf:2, 5 of x, found 3 of x"},
		{"NodeName=n Name=gpu Type=x File=/dev/nvidia0", "NodeName=n Gres=gpu:y:1", "1 of y, found 1 of x"},
		{"Name=gpu File=/dev/nvidia[0-1]", "NodeName=n Gres=gpu:x:1,gpu:y:1", "1 of x, 1 of y, found 2 without a type"},
		{"Name=gpu File=/dev/nvidia[0-1]\nName=gpu File=/dev/nvidia1", "NodeName=n Gres=gpu:3", "gres.conf:2: expected each file once for a node, found /dev/nvidia1 twice for n"},
		{"NodeName=n Name=gpu Type=x File=/dev/nvidia0\nNodeName=m Name=gpu Type=y File=/dev/nvidia0", "NodeName=n,m Gres=gpu:1",
			"slurm.conf:2: expected nodes that have the same GPUs, found 1 of x on n and 1 of y on m"},
		{"NodeName=n Name=gpu Type=x File=/dev/nvidia0\nNodeName=m Name=gpu File=/dev/nvidia0", "NodeName=n,m Gres=gpu:1",
			"slurm.conf:2: expected nodes that have the same GPUs, found 1 of x on n and 1 without a type on m"},
		{"\nAutoDetect=nvml", "NodeName=n Gres=gpu:1", "gres.conf:2: expected a line with File= for each kind of GPU, found AutoDetect=nvml. Give what it finds by --found FILE"},
		{"AutoDetect=off\nNodeName=m AutoDetect=rsmi", "NodeName=n,m Gres=gpu:1", "gres.conf:2: expected a line with File="},
	} {
		if _, err := Files(c.gres, types+c.nodes, Options{Shards: 8}); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q, %q: expected %q, found %v", c.gres, c.nodes, c.says, err)
		}
	}
}

func TestWhatAutoDetectFoundTakesItsPlace(t *testing.T) {
	found := ""
	for _, name := range []string{"a1", "a2"} {
		for i := range 2 {
			found += fmt.Sprintf("%s: slurmd: Gres Name=gpu Type=l4 Count=1 Index=%d ID=7 File=/dev/nvidia%d Cores=%d-%d CoreCnt=8 Links=%s\n", name, i, 1-i, 4*i, 4*i+3, []string{"-1,2", "(null)"}[i])
		}
	}
	got, err := Files("AutoDetect=nvml # here\nNodeName=a[1-2] Name=gpu Type=l4\nNodeName=b AutoDetect=off Name=gpu File=/dev/nvidia0\n",
		types+"NodeName=a[1-2] Gres=gpu:l4:2\nNodeName=b Gres=gpu:1", Options{Shards: 8, Found: found + "a1: slurmd: other\n"})
	if want := "b gpu_0 0, a1,a2 l4_0 1, a1,a2 l4_1 0"; err != nil || devices(got.Gres) != want {
		t.Errorf("expected %s, found %v\n%s", want, err, got.Gres)
	}
	for _, want := range []string{"AutoDetect=off # here\n", "File=/dev/nvidia1 Cores=0-3 Links=-1,2 Flags=nvidia_gpu_env\n", "Name=shard Type=l4_0 File=/dev/nvidia1 Cores=0-3 Flags=nvidia_gpu_env Count=8\n"} {
		if !strings.Contains(got.Gres, want) {
			t.Errorf("expected %s, found\n%s", want, got.Gres)
		}
	}
	if _, err := Files("AutoDetect=nvml", types+"NodeName=a[1-3] Gres=gpu:l4:2", Options{Shards: 8, Found: found}); err == nil || !strings.Contains(err.Error(), "there is none of a3") {
		t.Errorf("expected the node that is missing, found %v", err)
	}
}
