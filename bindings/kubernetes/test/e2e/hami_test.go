// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"libhorus.org/kubernetes/test/controlplane"
)

const (
	placingHAMi  = `{mode: place, gpus: {hami: {enabled: true}}}`
	hamiMemory   = 80_000 // MiB of each GPU
	hamiLock     = "hami.io/mutex.lock"
	hamiPhase    = "hami.io/bind-phase"
	hamiToGive   = "hami.io/vgpu-devices-to-allocate"
	hamiGiven    = "hami.io/vgpu-devices-allocated"
	hamiRegister = "hami.io/node-nvidia-register"
)

// hamiNode is a node of `gpus` GPUs that `tenants` pods each may share, as HAMi's device plugin registers it.
func hamiNode(t *testing.T, c *controlplane.Cluster, name string, gpus, tenants int) {
	t.Helper()
	type device struct {
		ID      string `json:"id"`
		Index   int    `json:"index,omitempty"`
		Count   int    `json:"count"`
		DevMem  int    `json:"devmem"`
		DevCore int    `json:"devcore"`
		Type    string `json:"type"`
		Mode    string `json:"mode"`
		Health  bool   `json:"health"`
	}
	var devices []device
	for i := range gpus {
		devices = append(devices, device{fmt.Sprintf("GPU-%s-%d", name, i), i, tenants, hamiMemory, 100, "NVIDIA-NVIDIA H100 80GB HBM3", "hami-core", true})
	}
	text, err := json.Marshal(devices)
	check(t, err)
	node(t, c, name, gpus*tenants, func(n *v1.Node) {
		n.Annotations[hamiRegister] = string(text)
		delete(n.Labels, "nvidia.com/gpu.product")
	})
}

// hamiPod asks for resources such as "gpu=1 gpumem=3000".
func hamiPod(t *testing.T, c *controlplane.Cluster, name, asks string, annotations map[string]string) {
	t.Helper()
	makePod(t, c, podSpec{name: name, annotations: annotations, change: func(p *v1.Pod) {
		limits := v1.ResourceList{}
		for _, one := range strings.Fields(asks) {
			key, value, _ := strings.Cut(one, "=")
			limits[v1.ResourceName("nvidia.com/"+key)] = resource.MustParse(value)
		}
		p.Spec.Containers[0].Resources.Limits = limits
	}})
}

// hamiPlugin stands for HAMi's device plugins: it serves the pod that a node's lock names, as Allocate does, and frees the lock.
type hamiPlugin struct {
	t    *testing.T
	c    *controlplane.Cluster
	stop func()

	mu     sync.Mutex
	served map[string]string // pod -> what it was given
	wrong  []string
}

func servesHAMi(t *testing.T, c *controlplane.Cluster) *hamiPlugin {
	p := &hamiPlugin{t: t, c: c, served: map[string]string{}}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			case <-time.After(50 * time.Millisecond):
				p.look()
			}
		}
	}()
	p.stop = sync.OnceFunc(func() { close(end); <-ended })
	t.Cleanup(p.stop)
	return p
}

func (p *hamiPlugin) look() {
	nodes, err := p.c.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return // the control plane ends
	}
	for i := range nodes.Items {
		if lock, locked := nodes.Items[i].Annotations[hamiLock]; locked {
			p.serve(nodes.Items[i].Name, lock)
		}
	}
}

func (p *hamiPlugin) serve(node, lock string) {
	fields := strings.Split(lock, ",")
	since, err := time.Parse(time.RFC3339, fields[0])
	if err != nil || len(fields) != 3 || time.Since(since) > 5*time.Minute {
		return
	}
	pods := p.c.Client.CoreV1().Pods(fields[1])
	pod, err := pods.Get(ctx, fields[2], metav1.GetOptions{})
	if err != nil || pod.Spec.NodeName != node || pod.Annotations[hamiPhase] != "allocating" {
		return // not bound yet
	}
	says := func(format string, args ...any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.wrong = append(p.wrong, fmt.Sprintf("%s on %s: ", pod.Name, node)+fmt.Sprintf(format, args...))
	}
	for _, name := range []string{"hami.io/bind-time", "hami.io/vgpu-time"} {
		if _, err := strconv.ParseInt(pod.Annotations[name], 10, 64); err != nil {
			says("annotation %s: expected seconds, found %q", name, pod.Annotations[name])
		}
	}
	if found := pod.Annotations["hami.io/vgpu-node"]; found != node {
		says("hami.io/vgpu-node: expected the node, found %q", found)
	}
	list := pod.Annotations[hamiToGive]
	containers := strings.Split(strings.TrimSuffix(list, ";"), ";")
	if len(containers) != len(pod.Spec.Containers) || list != pod.Annotations[hamiGiven] {
		says("expected an entry for each container, found %q and %q", list, pod.Annotations[hamiGiven])
		return
	}
	for i, container := range containers {
		asked := pod.Spec.Containers[i].Resources.Limits["nvidia.com/gpu"]
		devices := strings.Split(strings.TrimSuffix(container, ":"), ":")
		if int64(len(devices)) != asked.Value() {
			says("container %d: expected %d devices, found %q", i, asked.Value(), container) // Allocate: device number not matched
		}
		asksMiB := pod.Spec.Containers[i].Resources.Limits["nvidia.com/gpumem"]
		for _, device := range devices {
			parts := strings.Split(device, ",")
			if len(parts) != 4 || parts[1] != "NVIDIA" || !strings.HasPrefix(parts[0], "GPU-"+node+"-") {
				says("expected UUID,NVIDIA,MiB,cores, found %q", device)
				return
			}
			if mib, err := strconv.ParseInt(parts[2], 10, 32); err != nil || mib < 1 || (!asksMiB.IsZero() && mib > asksMiB.Value()) {
				says("expected the memory that it asks for, found %q", device) // Allocate refuses more
			}
		}
	}
	p.mu.Lock()
	p.served[pod.Name] = list
	p.mu.Unlock()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q,%q:"success"}}}`, hamiToGive, strings.Repeat(";", len(containers)), hamiPhase)
	if _, err := pods.Patch(ctx, pod.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err == nil {
		p.lock(node, "")
	}
}

// lock writes a node's lock, or takes it off.
func (p *hamiPlugin) lock(node, value string) {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, hamiLock, value)
	if value == "" {
		patch = fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, hamiLock)
	}
	_, err := p.c.Client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		p.t.Error(err)
	}
}

// fine waits until these pods are served, and looks at what each GPU carries.
func (p *hamiPlugin) fine(tenants int, names ...string) map[string][]string {
	p.t.Helper()
	for _, name := range names {
		bound(p.t, p.c, name)
		until(p.t, p.c, name+" is served", func() bool { return get(p.t, p.c, name).Annotations[hamiPhase] == "success" })
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, wrong := range p.wrong {
		p.t.Error(wrong)
	}
	on, memory, cores := map[string][]string{}, map[string]int{}, map[string]int{}
	for _, name := range names {
		for _, device := range strings.FieldsFunc(p.served[name], func(r rune) bool { return r == ':' || r == ';' }) {
			parts := strings.Split(device, ",")
			mib, _ := strconv.Atoi(parts[2])
			percent, _ := strconv.Atoi(parts[3])
			on[parts[0]], memory[parts[0]], cores[parts[0]] = append(on[parts[0]], name), memory[parts[0]]+mib, cores[parts[0]]+percent
		}
	}
	for uuid := range on {
		if len(on[uuid]) > tenants || memory[uuid] > hamiMemory || cores[uuid] > 100 {
			p.t.Errorf("%s: expected at most %d pods, %d MiB and 100 %% of cores, found %v, %d MiB and %d %%", uuid, tenants, hamiMemory, on[uuid], memory[uuid], cores[uuid])
		}
	}
	return on
}

// With the chart's own rights.
func TestPodsShareGPUsThroughHAMi(t *testing.T) {
	t.Parallel()
	c := start(t, "")
	install(t, c, placingHAMi)
	hamiNode(t, c, "n1", 3, 2)
	plugin := servesHAMi(t, c)
	hamiPod(t, c, "whole", "gpu=1", nil)
	names := []string{"whole", "a", "b", "c", "d"}
	for _, name := range names[1:] {
		hamiPod(t, c, name, "gpu=1 gpumem=20000 gpucores=30", nil)
	}
	on := plugin.fine(2, names...)
	if len(on) != 3 {
		t.Errorf("expected three GPUs in use, one of them alone, found %v", on)
	}
	for uuid, pods := range on {
		if pods[0] == "whole" && len(pods) > 1 {
			t.Errorf("%s: expected a whole GPU to be alone, found %v", uuid, pods)
		}
	}
	hamiPod(t, c, "more", "gpu=1 gpumem=1000 gpucores=10", nil) // there is memory, and no GPU may have a third pod
	said(t, c, "more", "HorusRefused", "tenants")
	hamiPod(t, c, "numa", "gpu=1 gpumem=1000", map[string]string{"nvidia.com/numa-bind": "true"})
	said(t, c, "numa", "HorusInvalid", "nvidia.com/numa-bind")
	grace := int64(0)
	check(t, c.Client.CoreV1().Pods(namespace).Delete(ctx, "a", metav1.DeleteOptions{GracePeriodSeconds: &grace}))
	names = []string{"whole", "b", "c", "d", "more"}
	plugin.fine(2, names...)
	hamiNode(t, c, "n2", 2, 4)
	patient := map[string]string{"nvidia.com/use-gpuuuid": "GPU-n2-1", "libhorus.org/slowdown-bound": "100"}
	hamiPod(t, c, "there", "gpu=1 gpumem-percentage=50 gpucores=50", patient)
	plugin.fine(4, append(names, "there")...)
	hamiPod(t, c, "nowhere", "gpu=1 gpumem=1000", map[string]string{"nvidia.com/use-gputype": "A100"})
	said(t, c, "nowhere", "HorusRefused", "annotations allow too few GPUs")
	hamiPod(t, c, "both", "gpu=2 gpumem-percentage=25", map[string]string{"nvidia.com/nouse-gpuuuid": "GPU-n1-0", "libhorus.org/slowdown-bound": "100"})
	plugin.fine(4, append(names, "there", "both")...)
	if there, both := plugin.served["there"], plugin.served["both"]; there != "GPU-n2-1,NVIDIA,40000,50:;" || both != "GPU-n2-0,NVIDIA,20000,0:GPU-n2-1,NVIDIA,20000,0:;" {
		t.Errorf("expected half of GPU-n2-1 and a quarter of both, found %s and %s", there, both)
	}
	forbidden(t, c)
}

// One pod of a node at a time is between its binding and HAMi's device plugin.
func TestHAMisLockIsWaitedForAndTakenOverWhereItIsVoid(t *testing.T) {
	t.Parallel()
	c := start(t, placingHAMi)
	hamiNode(t, c, "n1", 1, 10)
	plugin := servesHAMi(t, c)
	makePod(t, c, podSpec{name: "other", scheduler: "nobody"})
	lockOf := func(name string, age time.Duration) string {
		return time.Now().Add(-age).Format(time.RFC3339) + "," + namespace + "," + name
	}
	plugin.lock("n1", lockOf("other", 0))
	names := []string{"waits-a", "waits-b"}
	for _, name := range names {
		hamiPod(t, c, name, "gpu=1 gpumem=1000 gpucores=10", nil)
	}
	time.Sleep(2 * time.Second)
	for _, name := range names {
		if at := get(t, c, name).Spec.NodeName; at != "" {
			t.Errorf("%s: expected it to wait for the lock, found it on %s", name, at)
		}
	}
	plugin.lock("n1", "")
	plugin.fine(10, names...)
	for name, lock := range map[string]string{
		"expired":  lockOf("other", 6*time.Minute),
		"dangling": lockOf("gone", 0),
		"cut-off":  lockOf("cut-off", 0), // by an attempt of our own, before it was bound
	} {
		plugin.lock("n1", lock)
		names = append(names, name)
		hamiPod(t, c, name, "gpu=1 gpumem=1000 gpucores=10", nil)
		plugin.fine(10, names...)
	}
	until(t, c, "the lock is freed", func() bool {
		n, err := c.Client.CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{})
		check(t, err)
		return n.Annotations[hamiLock] == ""
	})
}

// What runs, whoever placed it, is known again from HAMi's annotations alone.
func TestARestartAdoptsWhatHAMiGave(t *testing.T) {
	t.Parallel()
	c := start(t, placingHAMi)
	hamiNode(t, c, "n1", 2, 10)
	plugin := servesHAMi(t, c)
	for _, name := range []string{"a", "b"} {
		hamiPod(t, c, name, "gpu=1 gpumem=30000 gpucores=20", map[string]string{"nvidia.com/use-gpuuuid": "GPU-n1-0"})
	}
	plugin.fine(10, "a", "b")
	makePod(t, c, podSpec{name: "hamis", scheduler: "hami-scheduler", whole: 1, annotations: map[string]string{
		hamiGiven: "GPU-n1-1,NVIDIA,70000,50:;", hamiToGive: ";", hamiPhase: "success",
	}, change: func(p *v1.Pod) { p.Spec.NodeName = "n1" }})
	c.KillScheduler()
	c.StartScheduler(placingHAMi)
	until(t, c, "the mirror has every pod", func() bool { return metric(c, "horus_mirrored_pods") == 3 })
	hamiPod(t, c, "large", "gpu=1 gpumem=21000 gpucores=10", nil)
	said(t, c, "large", "HorusRefused", "MiB")
	hamiPod(t, c, "small", "gpu=1 gpumem=20000 gpucores=10", nil)
	if on := plugin.fine(10, "a", "b", "small"); len(on["GPU-n1-0"]) != 3 {
		t.Errorf("expected small where 20000 MiB are left, found %v", on)
	}
}

// An owner may write the annotations of his pods. What he has is what the scheduler gave him, after a restart too.
func TestWhatAnOwnerWritesOverWhatHAMiGaveChangesNothing(t *testing.T) {
	t.Parallel()
	c := start(t, "")
	install(t, c, placingHAMi)
	hamiNode(t, c, "n1", 1, 10)
	plugin := servesHAMi(t, c)
	hamiPod(t, c, "owner", "gpu=1 gpumem=60000 gpucores=20", nil)
	plugin.fine(10, "owner")
	for i, list := range []string{"GPU-n1-0,NVIDIA,1,1:;", "GPU-n1-0,NVIDIA,80000,100:;", "GPU-n1-7,NVIDIA,60000,20:;", ""} {
		kubectl(t, c, "annotate", "pod", "owner", "--overwrite", hamiGiven+"="+list)
		if i == 0 {
			said(t, c, "owner", "HorusContradiction", hamiGiven, "60000", "NVIDIA,1,1")
			until(t, c, "it is counted", func() bool { return metric(c, "horus_contradicting_pods ") == 1 })
		}
		c.KillScheduler()
		reinstall(t, c)
		until(t, c, "the mirror has the owner", func() bool { return metric(c, "horus_mirrored_pods") == 1 })
		large, small := fmt.Sprint("large-", i), fmt.Sprint("small-", i)
		hamiPod(t, c, large, "gpu=1 gpumem=20001 gpucores=10", nil)
		said(t, c, large, "HorusRefused", "MiB")
		hamiPod(t, c, small, "gpu=1 gpumem=20000 gpucores=10", nil)
		plugin.fine(10, "owner", small)
		for _, name := range []string{large, small} {
			grace := int64(0)
			check(t, c.Client.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &grace}))
		}
	}
	forbidden(t, c)
}
