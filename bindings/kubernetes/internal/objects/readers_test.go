// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"libhorus.org/horus"
)

// Two programs read Kubernetes' objects: the scheduler here, `horus import` in src/io/kube. These tests hold them against each other.

// Names that only one of the two reads, by what makes the difference.
var readByOne = map[string][]string{
	"whole nodes: import tells their types and states apart, Kubernetes' own scheduler keeps pods off them": {
		"beta.kubernetes.io/", "beta.kubernetes.io/instance-type", "feature.node.kubernetes.io/", "node.kubernetes.io/instance-type",
		"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "node.kubernetes.io/unschedulable", "nvidia.com/gpu.count",
		"nvidia.com/gpu.memory", "nvidia.com/gpu.sharing-strategy", "nvidia.com/mig-", "nvidia.com/pgpu", "nvidia.com/",
		"cloud.google.com/gke-accelerator-count", "cloud.google.com/gke-gpu-sharing-strategy", "karpenter.k8s.aws/instance-gpu-count",
		"karpenter.k8s.aws/instance-gpu-memory",
	},
	"labels of import's own, for what a node offers and admits": {"libhorus.org/admits-", "libhorus.org/offers-"},
	"other schedulers' pods, which import alone reads": {
		"scheduling.x-k8s.io/pod-group", "volcano.sh/node-vgpu-register", "volcano.sh/vgpu-cores",
		"volcano.sh/vgpu-ids-new", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-memory-percentage", "volcano.sh/vgpu-number",
	},
	"groups of racks, which cluster.yaml does not have": {
		"cloud.google.com/gce-topology-block", "cloud.provider.com/topology-block", "network.topology.nvidia.com/spine",
		"topology.k8s.aws/network-node-layer-2", "topology.kubernetes.io/block",
	},
	"what the scheduler writes, and whom it lets in": {
		"hami.io/bind-phase", "hami.io/bind-time", "hami.io/vgpu-devices-to-allocate", "hami.io/vgpu-node", "hami.io/vgpu-time",
		"libhorus.org/decision", "libhorus.org/hami-devices", "libhorus.org/scheduler", "kubernetes.io/hostname",
	},
	"wishes of HAMi's pods for single cards; and NUMA, which cluster.yaml does not have": {
		"hami.io/gpu-scheduler-policy", "hami.io/node-scheduler-policy", "nvidia.com/nouse-gputype", "nvidia.com/nouse-gpuuuid",
		"nvidia.com/numa-bind", "nvidia.com/priority", "nvidia.com/use-gputype", "nvidia.com/use-gpuuuid", "nvidia.com/vgpu-mode",
		"resource.kubernetes.io/numaNode",
	},
}

// namesIn the string literals of sources: DOMAIN/NAME.
func namesIn(t *testing.T, patterns ...string) map[string]bool {
	t.Helper()
	literal := regexp.MustCompile(`"((?:[a-z0-9-]+\.)+[a-z]+/[A-Za-z0-9._-]*)"`)
	out := map[string]bool{}
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: expected sources, found %v %v", pattern, files, err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(source)) {
				code, _, _ := strings.Cut(line, "//")
				if strings.HasSuffix(file, "_test.go") || strings.Contains(code, "libhorus.org/horus\"") || strings.Contains(code, "libhorus.org/learn\"") {
					continue
				}
				for _, found := range literal.FindAllStringSubmatch(code, -1) {
					out[found[1]] = true
				}
			}
		}
	}
	return out
}

func TestImportAndSchedulerReadTheSameNames(t *testing.T) {
	here, there := namesIn(t, "*.go"), namesIn(t, "../../../../src/io/kube/*.cc", "../../../../src/io/kube/*.h")
	excused := map[string]bool{}
	for _, names := range readByOne {
		for _, name := range names {
			excused[name] = true
			if here[name] == there[name] {
				t.Errorf("%s: expected one reader, as readByOne says, found it in both or in none", name)
			}
		}
	}
	for name := range maps.Keys(here) {
		if !there[name] && !excused[name] {
			t.Errorf("%s: the scheduler reads it and horus import does not; is that right?", name)
		}
	}
	for name := range maps.Keys(there) {
		if !here[name] && !excused[name] {
			t.Errorf("%s: horus import reads it and the scheduler does not; is that right?", name)
		}
	}
}

// What both readers say of a node's GPUs and of a pod.
type gpusRead struct {
	types          map[string]int // by name of the catalogue
	cpu, memoryGiB float64
	rack           int  // by first appearance; 0 = none
	parts          bool // some are replicas or MIG instances of a device plugin, which the scheduler leaves alone
}
type podRead struct {
	owner, share, kind                string
	gpus, priority, bound, confidence float64
}

func importedBy(t *testing.T, command string, objects []runtime.Object) (map[string]gpusRead, map[string]podRead) {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"kind": "List", "apiVersion": "v1", "items": objects})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "objects.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	importing := exec.Command(command, "import", file, "--out", dir)
	if said, err := importing.CombinedOutput(); err != nil && importing.ProcessState.ExitCode() != 3 { // something is left out
		t.Fatalf("horus import: %v: %s", err, said)
	}
	var cluster struct {
		Nodes []struct {
			Name      string
			CPUCores  float64 `json:"cpu_cores"`
			MemoryGiB float64 `json:"memory_gib"`
			Rack      string
			GPUs      []struct {
				Type  string
				MIG   any
				Count int
				Max   int `json:"max_tenants"`
			}
		}
	}
	var jobs struct {
		Jobs []struct {
			Name, Tenant, Share, Kind string
			GPUs                      *float64
			Priority                  float64
			SlowdownBound             float64 `json:"slowdown_bound"`
			Confidence                float64 `json:"slowdown_confidence"`
		}
	}
	for name, into := range map[string]any{"cluster.yaml": &cluster, "jobs.yaml": &jobs} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = yaml.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	nodes, pods, racks := map[string]gpusRead{}, map[string]podRead{}, map[string]int{"": 0}
	for _, one := range cluster.Nodes {
		if _, known := racks[one.Rack]; !known {
			racks[one.Rack] = len(racks)
		}
		read := gpusRead{types: map[string]int{}, cpu: one.CPUCores, memoryGiB: one.MemoryGiB, rack: racks[one.Rack]}
		for _, gpu := range one.GPUs {
			read.types[gpu.Type] += max(gpu.Count, 1)
			read.parts = read.parts || gpu.Max > 1 || gpu.MIG != nil
		}
		nodes[one.Name] = read
	}
	for _, one := range jobs.Jobs {
		read := podRead{owner: one.Tenant, share: one.Share, kind: one.Kind, gpus: 1, priority: one.Priority, bound: one.SlowdownBound, confidence: one.Confidence}
		if one.GPUs != nil {
			read.gpus = *one.GPUs
		}
		pods[one.Name] = read
	}
	return nodes, pods
}

func nodeNamed(name string, gpus int64, labels map[string]string) *v1.Node {
	node := nodeWith(gpus, labels)
	node.TypeMeta, node.Name = metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, name
	node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
	return node
}

// A node for each way in which labels tell a type, share a GPU or name a rack.
func nodesToRead() (nodes []*v1.Node, sliced map[string][]*resourceapi.ResourceSlice) {
	product := map[string]string{
		productLabel: "NVIDIA-A100-SXM4-80GB", "cloud.google.com/gke-accelerator": "nvidia-l4", "karpenter.k8s.aws/instance-gpu-name": "a10g",
		"k8s.amazonaws.com/accelerator": "nvidia-tesla-v100",
	}
	for i, label := range TypeLabels {
		nodes = append(nodes, nodeNamed(fmt.Sprintf("type-%d", i), 4, map[string]string{label: product[label]}))
	}
	for i, label := range rackLabels {
		for j, rack := range []string{"r1", "r1", "r2"} {
			nodes = append(nodes, nodeNamed(fmt.Sprintf("rack-%d-%d", i, j), 1, map[string]string{productLabel: "Tesla-T4", label: fmt.Sprintf("%s-%d", rack, i)}))
		}
	}
	gke := func(more map[string]string) map[string]string {
		more["cloud.google.com/gke-accelerator"] = "nvidia-tesla-a100"
		return more
	}
	nodes = append(nodes,
		nodeNamed("no-fabric", 1, map[string]string{productLabel: "Tesla-T4", "nvidia.com/gpu.clique": noFabric + ".0"}),
		nodeNamed("replicas", 8, map[string]string{productLabel: "Tesla-T4-SHARED", replicasLabel: "4"}),
		nodeNamed("mig", 7, map[string]string{productLabel: "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"}),
		nodeNamed("gke-shared", 8, gke(map[string]string{
			"cloud.google.com/gke-gpu-sharing-strategy": "time-sharing", "cloud.google.com/gke-max-shared-clients-per-gpu": "8"})),
		nodeNamed("gke-mig", 7, gke(map[string]string{"cloud.google.com/gke-gpu-partition-size": "1g.5gb"})),
		nodeNamed("gke-server", 2, map[string]string{"cloud.google.com/gke-accelerator": "nvidia-rtx-pro-6000"}),
		nodeNamed("none", 0, nil))
	sliced = map[string][]*resourceapi.ResourceSlice{}
	name, kind := "dra", "gpu"
	nodes = append(nodes, nodeNamed(name, 0, nil))
	slice := sliceOf(name, 1, deviceOf("gpu-0", "NVIDIA H100 80GB HBM3", true), deviceOf("gpu-1", "NVIDIA H100 80GB HBM3", true))
	slice.TypeMeta = metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceSlice"}
	slice.Spec.NodeName, slice.Spec.Pool.Name, slice.Spec.Pool.ResourceSliceCount = &name, name, 1
	for _, device := range slice.Spec.Devices {
		device.Attributes["type"] = resourceapi.DeviceAttribute{StringValue: &kind}
	}
	sliced[name] = append(sliced[name], slice)
	return nodes, sliced
}

func TestImportAndSchedulerReadNodesAlike(t *testing.T) {
	command := os.Getenv("HORUS_COMMAND")
	if command == "" {
		t.Skip("HORUS_COMMAND names no horus command: build it, then test/run finds it")
	}
	catalogue, err := horus.DefaultCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	defer catalogue.Close()
	nodes, sliced := nodesToRead()
	var objects []runtime.Object
	for _, node := range nodes {
		objects = append(objects, node)
		for _, slice := range sliced[node.Name] {
			objects = append(objects, slice)
		}
	}
	imported, _ := importedBy(t, command, objects)
	racks := map[uint64]int{0: 0}
	for _, node := range nodes {
		here, there := NodeOf(settings.OrDefault(), node, sliced[node.Name], known(t)), imported[node.Name]
		if here.Backend == NoGPUs {
			if len(there.types) > 0 && !there.parts {
				t.Errorf("%s: horus import reads %v, and the scheduler says: %s", node.Name, there.types, here.Problem)
			}
			continue
		}
		if there.parts && len(sliced[node.Name]) == 0 {
			t.Errorf("%s: horus import reads parts of GPUs, and the scheduler takes each for a whole one", node.Name)
		}
		types := map[string]int{}
		for _, device := range here.Horus.Devices {
			index, err := catalogue.Find(device.GPUType)
			if err != nil {
				t.Fatal(err)
			}
			gpu, err := catalogue.At(index)
			if err != nil {
				t.Fatal(err)
			}
			types[gpu.Name]++
		}
		if _, seen := racks[here.Horus.Rack]; !seen {
			racks[here.Horus.Rack] = len(racks)
		}
		read := gpusRead{types, float64(here.Horus.CPUMilli) / 1000, float64(here.Horus.MemMiB) / 1024, racks[here.Horus.Rack], there.parts}
		if !maps.Equal(read.types, there.types) || read.cpu != there.cpu || read.memoryGiB != there.memoryGiB || read.rack != there.rack {
			t.Errorf("%s: the scheduler reads %+v, horus import %+v", node.Name, read, there)
		}
	}
}

func TestImportAndSchedulerReadPodsAlike(t *testing.T) {
	command := os.Getenv("HORUS_COMMAND")
	if command == "" {
		t.Skip("HORUS_COMMAND names no horus command: build it, then test/run finds it")
	}
	gpus := func(n int64) v1.Container {
		return v1.Container{Name: fmt.Sprintf("c%d", n), Resources: v1.ResourceRequirements{Limits: v1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(n, resource.DecimalSI)}}}
	}
	always := v1.ContainerRestartPolicyAlways
	sidecar := gpus(1)
	sidecar.RestartPolicy = &always
	claim := func(name string, count int64) *resourceapi.ResourceClaim {
		return &resourceapi.ResourceClaim{
			TypeMeta: metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceClaim"}, ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name},
			Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
				Name: "gpu", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count},
			}}}},
		}
	}
	claims := map[string]*resourceapi.ResourceClaim{"one": claim("one", 1), "other": claim("other", 1), "two": claim("two", 2)}
	const named = "served" // a profile
	spec := map[string]any{"kind": "inference", "demands": []any{
		map[string]any{"gpuType": "t4", "gpuUtilPct": 40, "memMiB": 3000, "stepTimeUs": 9000},
		map[string]any{"gpuType": "h100-sxm", "gpuUtilPct": 20, "memMiB": 3000, "stepTimeUs": 2000},
	}}
	shared := func(whom string) map[string]string {
		return map[string]string{ProfileAnnotation: named, ShareAnnotation: whom, BoundAnnotation: "1.5", ConfidenceAnnotation: "0.75"}
	}
	var pods []*v1.Pod
	pod := func(name string, annotations map[string]string, claimed string, containers ...v1.Container) *v1.Pod {
		p := &v1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Annotations: annotations}}
		if p.Spec.Containers, p.Status.Phase = containers, v1.PodPending; claimed != "" {
			p.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claimed}}
		}
		pods = append(pods, p)
		return p
	}
	pod("whole", nil, "", gpus(1))
	pod("several", nil, "", gpus(2), gpus(1))
	pod("first-init", nil, "", gpus(1)).Spec.InitContainers = []v1.Container{gpus(2)}
	pod("sidecar", nil, "", gpus(1)).Spec.InitContainers = []v1.Container{sidecar}
	pod("urgent", map[string]string{ProfileAnnotation: named}, "", gpus(1)).Spec.Priority = new(int32)
	*pods[len(pods)-1].Spec.Priority = 900
	pod("with-anyone", shared("anyone"), "one", v1.Container{Name: "c"})
	pod("with-its-own", shared("same-tenant"), "other", v1.Container{Name: "c"})
	pod("two-of-a-claim", nil, "two", v1.Container{Name: "c"})
	pod("no-gpu", nil, "", v1.Container{Name: "c"})

	nodes, sliced := nodesToRead()
	objects := []runtime.Object{claims["one"], claims["other"], claims["two"], &profileObject{
		TypeMeta: metav1.TypeMeta{APIVersion: Group + "/" + Version, Kind: "JobProfile"}, ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: named}, Spec: spec}}
	for _, node := range nodes {
		objects = append(objects, node)
		for _, slice := range sliced[node.Name] {
			objects = append(objects, slice)
		}
	}
	for _, p := range pods {
		objects = append(objects, p)
	}
	_, imported := importedBy(t, command, objects)
	lookups := Lookups{
		Claim:   func(_, name string) (*resourceapi.ResourceClaim, error) { return claims[name], nil },
		Profile: func(string, string) (Profile, error) { return ProfileOf(spec, nil) },
	}
	kindNames := map[horus.JobKind]string{horus.InferenceJob: "inference", horus.TrainingJob: ""}
	shareNames := map[horus.Share]string{horus.ShareAnyone: "anyone", horus.ShareSameTenant: ""}
	for _, p := range pods {
		here, err := JobOf(settings.OrDefault(), p, lookups)
		there, known := imported[here.Horus.Name]
		if err != nil || known != (here.Backend != NoGPUs) {
			t.Errorf("%s: the scheduler reads backend %d (%v), horus import lists it: %t", p.Name, here.Backend, err, known)
			continue
		}
		job := here.Horus
		read := podRead{job.Tenant, "", kindNames[job.Kind], float64(job.GPUsPerTask), float64(job.Priority), float64(job.SlowdownBound), float64(job.SlowdownConfidence)}
		if !job.Exclusive {
			read.share = shareNames[job.Share]
		}
		if known && read != there {
			t.Errorf("%s: the scheduler reads %+v, horus import %+v", p.Name, read, there)
		}
	}
}

// profileObject is a JobProfile as kubectl lists it.
type profileObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              any `json:"spec"`
}

func (p *profileObject) DeepCopyObject() runtime.Object { return p }
