// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"libhorus.org/kubernetes/internal/objects"
	"libhorus.org/kubernetes/test/controlplane"
)

// A day of the default scheduler, told twice: by shadow mode as it happens, and by `horus shadow` from the log that `kubectl
// horus import` makes of the API objects afterwards.
func TestShadowModeTellsWhatTheImportedLogTells(t *testing.T) {
	command := horusCommand(t)
	random := rand.New(rand.NewPCG(1, 2))
	var nodes []traceNode
	for i := range 24 {
		model := []string{"T4", "P100", "V100M16", "V100M32", "A10"}[random.IntN(5)]
		nodes = append(nodes, traceNode{fmt.Sprintf("n%02d", i), 24_000, 96 << 10, 1 + random.IntN(4), model})
	}
	var pods []tracePod
	for i := range 100 {
		pod := tracePod{fmt.Sprintf("p%03d", i), 1_000 * (1 + random.Int64N(10)), 4 << 10 * (1 + random.Int64N(4)), 1, 50 * (1 + random.Int64N(19))}
		if random.IntN(4) == 0 {
			pod.gpus, pod.gpuMilli = 1+random.IntN(2), 1000
		}
		pods = append(pods, pod)
	}
	twice(t, command, nodes, pods)
}

// The same of the openb trace (Alibaba, 2023; hkust-adsl/kubernetes-scheduler-simulator, data/csv), which lies in
// HORUS_SHARED_DATA/traces/openb. HORUS_K8S_TRACE is how much of it, as nodes x pods: nodes evenly over the list, the first pods with
// GPUs.
func TestShadowModeOfTheOpenbTrace(t *testing.T) {
	folder, size := os.Getenv("HORUS_SHARED_DATA"), os.Getenv("HORUS_K8S_TRACE")
	if folder == "" || size == "" {
		t.Skip("HORUS_SHARED_DATA names no folder with traces/openb, or HORUS_K8S_TRACE no size such as 1213x7064: the openb trace is not played")
	}
	var most, pods int
	if _, err := fmt.Sscanf(size, "%dx%d", &most, &pods); err != nil || most < 1 || pods < 1 {
		t.Fatalf("HORUS_K8S_TRACE: expected nodes x pods, found %q", size)
	}
	command := horusCommand(t)
	all := readTable(t, filepath.Join(folder, "traces/openb/openb_node_list_gpu_node.csv"))
	var nodes []traceNode
	for i := range min(most, len(all)) {
		row := all[i*len(all)/min(most, len(all))]
		nodes = append(nodes, traceNode{row["sn"], row.number(t, "cpu_milli"), row.number(t, "memory_mib"), int(row.number(t, "gpu")), row["model"]})
	}
	var chosen []tracePod
	for _, row := range readTable(t, filepath.Join(folder, "traces/openb/openb_pod_list_default.csv")) {
		if gpus := int(row.number(t, "num_gpu")); gpus > 0 && len(chosen) < pods {
			chosen = append(chosen, tracePod{row["name"], row.number(t, "cpu_milli"), row.number(t, "memory_mib"), gpus, row.number(t, "gpu_milli")})
		}
	}
	twice(t, command, nodes, chosen)
}

type traceNode struct {
	name             string
	cpuMilli, memMiB int64
	gpus             int
	model            string
}

type tracePod struct {
	name             string
	cpuMilli, memMiB int64
	gpus             int
	gpuMilli         int64 // of each GPU
}

// The trace's GPUs by name. G2 and G3 are not published: as the library's own reader of the trace does, they count as T4.
var models = map[string]struct{ product, memory string }{
	"T4": {"Tesla T4", "15Gi"}, "G2": {"Tesla T4", "15Gi"}, "G3": {"Tesla T4", "15Gi"}, "P100": {"Tesla P100-PCIE-16GB", "16Gi"},
	"V100M16": {"Tesla V100-SXM2-16GB", "16Gi"}, "V100M32": {"Tesla V100-SXM2-32GB", "32Gi"}, "A10": {"NVIDIA A10", "23028Mi"},
}

// gpu_milli of a pod is a share of the least of these memories.
const leastMiB = 15 << 10

type traceKind struct {
	name, kind string
	most       int64 // gpu_milli
	util       float64
	memMiB     int64
}

// Nothing tells what the trace's pods run: four kinds by the share that they ask for, faster by the cards' FP32 TFLOP/s.
var traceKinds = []traceKind{
	{"small", "inference", 250, 25, 800}, {"medium", "inference", 500, 45, 4_000}, {"large", "training", 999, 70, 8_000}, {"whole", "training", 1000, 90, 14_000},
}

var speeds = map[string]float64{"t4": 8.1, "p100-pcie-16gb": 9.3, "v100-sxm2-16gb": 15.7, "v100-sxm2-32gb": 15.7, "a10": 31.2}

func (p tracePod) profile() string {
	return traceKinds[slices.IndexFunc(traceKinds, func(kind traceKind) bool { return p.gpuMilli <= kind.most })].name
}

// choice is one decision as either side tells it.
type choice struct {
	pod, theirs, ours, verdict, rule string
	regret                           float64
}

func twice(t *testing.T, command string, nodes []traceNode, pods []tracePod) {
	c := start(t, "")
	for i := range traceKinds {
		traceProfile(t, c, i)
	}
	parallel(len(nodes), func(i int) { traceNodeOf(t, c, nodes[i]) })
	c.StartScheduler(`mode: shadow`)
	until(t, c, "the nodes are mirrored", func() bool { return metric(c, "horus_mirrored_nodes") == float64(len(nodes)) })
	parallel(len(pods), func(i int) { traceClaim(t, c, pods[i]) })
	settled, begin := settling(t, c), time.Now()
	for _, one := range pods { // as they come in the trace
		tracePodOf(t, c, one)
	}
	t.Logf("%d nodes, %d pods made in %.0f s", len(nodes), len(pods), time.Since(begin).Seconds())
	placed := settled(len(pods))
	took := time.Since(begin)
	until(t, c, "every choice is judged", func() bool { return decisions(c) == float64(placed) })

	seen := choicesOfLog(t, c.SchedulerLog())
	t.Logf("%d pods bound by the default scheduler in %.0f s", placed, took.Seconds())
	out := t.TempDir()
	if code, said := importing(t, c, command, "nodes,pods,resourceslices,resourceclaims,jobprofiles", out); code != 0 {
		t.Fatalf("horus import: exit code %d: %s", code, said)
	}
	fromLog, _ := replay(t, command, out, "decisions.csv")
	// The API server tells seconds: who was bound first within one it does not say, and the scheduler's log does.
	inOrder(t, out, seen)
	total, told := replay(t, command, out, "in-order.csv")

	regret := metric(c, "horus_shadow_regret_gpus") - metric(c, "horus_shadow_lost_gpus")
	same := metric(c, `horus_shadow_decisions_total{ours="same"`)
	waits := metric(c, `horus_shadow_decisions_total{ours="waits"`)
	t.Logf("shadow mode: regret %.4f GPUs, %.0f same, %.0f elsewhere, %.0f waits, %.0f beyond bounds", regret, same,
		metric(c, `horus_shadow_decisions_total{ours="elsewhere"`), waits, metric(c, "horus_shadow_beyond_bound_total"))
	t.Logf("horus shadow, the scheduler's order: regret %.4f GPUs, %d same, %d waits, %d beyond bounds", total.Regret, total.Same, total.Refused, total.Theirs.BeyondBound)
	t.Logf("horus shadow, the order that import tells: regret %.4f GPUs, %d same, %d waits", fromLog.Regret, fromLog.Same, fromLog.Refused)
	if math.Abs(regret-total.Regret) > 1e-6*float64(placed) || same != float64(total.Same) || waits != float64(total.Refused) ||
		metric(c, "horus_shadow_beyond_bound_total") != float64(total.Theirs.BeyondBound) {
		t.Errorf("expected shadow mode and horus shadow to tell the same totals")
	}
	wrong := 0
	for i, theirs := range seen {
		if i >= len(told) || theirs.verdict != told[i].verdict || theirs.rule != told[i].rule || theirs.ours != told[i].ours ||
			theirs.pod != told[i].pod || theirs.theirs != told[i].theirs || math.Abs(theirs.regret-told[i].regret) > 1e-6 {
			if wrong++; wrong <= 10 && i < len(told) {
				t.Errorf("choice %d: shadow mode says\n%+v, horus shadow\n%+v", i, theirs, told[i])
			}
		}
	}
	if wrong > 0 || len(seen) != len(told) {
		t.Errorf("%d of %d choices differ, %d are told", wrong, len(seen), len(told))
	}
}

func decisions(c *controlplane.Cluster) (sum float64) {
	for _, ours := range []string{"same", "elsewhere", "waits", "failed"} {
		sum += metric(c, `horus_shadow_decisions_total{ours="`+ours+`",scheduler="default-scheduler"}`)
	}
	return sum
}

func traceProfile(t *testing.T, c *controlplane.Cluster, i int) {
	t.Helper()
	var demands []any
	for _, gpu := range slices.Sorted(maps.Keys(speeds)) {
		demands = append(demands, map[string]any{
			"gpuType": gpu, "gpuUtilPct": traceKinds[i].util, "gpuUtilPctUpper": traceKinds[i].util + 5, "memBwUtilPct": traceKinds[i].util / 2,
			"memMiB": traceKinds[i].memMiB, "stepTimeUs": int64(1e6 / speeds[gpu]),
			"operatorUs": 25.0, "prediction": map[string]any{"traits": []any{12.0, 10.0, 2.7}}, // the third: log10 of the kernels of a step
		})
	}
	_, err := c.Dynamic.Resource(objects.Profiles).Namespace(namespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": objects.Group + "/" + objects.Version, "kind": "JobProfile", "metadata": map[string]any{"name": traceKinds[i].name},
		"spec": map[string]any{"kind": traceKinds[i].kind, "demands": demands},
	}}, metav1.CreateOptions{})
	check(t, err)
}

func traceNodeOf(t *testing.T, c *controlplane.Cluster, one traceNode) {
	t.Helper()
	node(t, c, one.name, 0, func(n *v1.Node) {
		has := v1.ResourceList{
			v1.ResourceCPU:    *resource.NewMilliQuantity(one.cpuMilli, resource.DecimalSI),
			v1.ResourceMemory: *resource.NewQuantity(one.memMiB<<20, resource.BinarySI), v1.ResourcePods: resource.MustParse("200"),
		}
		n.Status.Capacity, n.Status.Allocatable = has, has
	})
	model, known := models[one.model]
	if !known {
		t.Fatalf("%s: expected a model of the trace, found %q", one.name, one.model)
	}
	slice(t, c, one.name, one.gpus, func(d *resourceapi.Device) {
		memory, least := resource.MustParse(model.memory), resource.MustParse("1Mi")
		d.Attributes["productName"] = resourceapi.DeviceAttribute{StringValue: &model.product}
		d.Capacity["memory"] = resourceapi.DeviceCapacity{Value: memory, RequestPolicy: &resourceapi.CapacityRequestPolicy{
			Default: &memory, ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: &least, Step: &least},
		}}
	})
}

func (p tracePod) whole() bool { return p.gpuMilli == 1000 }

func traceClaim(t *testing.T, c *controlplane.Cluster, one tracePod) {
	t.Helper()
	memory := ""
	if !one.whole() {
		memory = fmt.Sprintf("%dMi", leastMiB*one.gpuMilli/1000)
	}
	claim(t, c, one.name, memory, func(request *resourceapi.ExactDeviceRequest) { request.Count = int64(one.gpus) })
}

// tracePodOf makes a pod. Who asks for whole GPUs shares with nobody; the small state a bound.
func tracePodOf(t *testing.T, c *controlplane.Cluster, one tracePod) {
	t.Helper()
	says := map[string]string{objects.ProfileAnnotation: one.profile()}
	if !one.whole() {
		says[objects.ShareAnnotation] = "same-tenant"
	}
	if one.profile() == "small" {
		says[objects.BoundAnnotation] = "1.3"
	}
	makePod(t, c, podSpec{name: one.name, scheduler: v1.DefaultSchedulerName, claim: one.name, annotations: says, change: func(p *v1.Pod) {
		p.Spec.Containers[0].Resources.Requests = v1.ResourceList{
			v1.ResourceCPU:    *resource.NewMilliQuantity(one.cpuMilli, resource.DecimalSI),
			v1.ResourceMemory: *resource.NewQuantity(one.memMiB<<20, resource.BinarySI),
		}
	}})
}

// settling watches pods. What it returns waits until each of so many is bound or was refused, and counts the bound.
func settling(t *testing.T, c *controlplane.Cluster) func(pods int) int {
	t.Helper()
	var mu sync.Mutex
	bound := map[string]bool{} // false: refused
	note := func(o any) {
		p := o.(*v1.Pod)
		for _, condition := range p.Status.Conditions {
			if condition.Type == v1.PodScheduled {
				mu.Lock()
				bound[p.Name] = p.Spec.NodeName != ""
				mu.Unlock()
			}
		}
	}
	factory := informers.NewSharedInformerFactory(c.Client, 0)
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, now any) { note(now) }})
	check(t, err)
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	return func(pods int) (placed int) {
		for last, seen := time.Now(), 0; ; time.Sleep(100 * time.Millisecond) {
			mu.Lock()
			now := len(bound)
			placed = 0
			for _, is := range bound {
				if is {
					placed++
				}
			}
			mu.Unlock()
			if now == pods {
				return placed
			}
			if now > seen {
				last, seen = time.Now(), now
			}
			if time.Since(last) > within {
				t.Fatalf("%d of %d pods are bound or refused, and no more within %v", now, pods, within)
			}
		}
	}
}

var logged = regexp.MustCompile(`"Shadow" pod="default/([^"]*)" scheduler="[^"]*" theirs="([^"]*)" ours="([^"]*)" verdict="([^"]*)" regretGPUs=(\S+) theirRule="([^"]*)"`)

func choicesOfLog(t *testing.T, log string) (all []choice) {
	t.Helper()
	for _, found := range logged.FindAllStringSubmatch(log, -1) {
		regret, err := strconv.ParseFloat(found[5], 64)
		check(t, err)
		all = append(all, choice{found[1], found[2], found[3], found[4], found[6], regret})
	}
	return all
}

// inOrder writes the imported log again, in the order of the choices.
func inOrder(t *testing.T, folder string, seen []choice) {
	t.Helper()
	rows := map[string]row{}
	for _, one := range readTable(t, filepath.Join(folder, "decisions.csv")) {
		rows[one["job"]] = one
	}
	text := "time_s,event,job,node,devices\n"
	for i, one := range seen {
		found := rows["default/"+one.pod]
		text += fmt.Sprintf("%d,place,%s,%s,%s\n", i, found["job"], found["node"], found["devices"])
	}
	check(t, os.WriteFile(filepath.Join(folder, "in-order.csv"), []byte(text), 0o600))
}

type totals struct {
	Regret        float64
	Same, Refused int
	Theirs        struct {
		BeyondBound int `json:"beyond_bound"`
	}
}

// replay runs horus shadow with the scheduler's settings: claims hold exactly, so no memory is kept free.
func replay(t *testing.T, command, folder, log string) (all totals, choices []choice) {
	t.Helper()
	rows := filepath.Join(folder, log+".jsonl")
	cmd := exec.Command(command, "shadow", "--cluster", filepath.Join(folder, "cluster.yaml"), "--jobs", filepath.Join(folder, "jobs.yaml"),
		"--log", filepath.Join(folder, log), "--mem-headroom-mib", "0", "--json", "--out", rows)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	said, err := cmd.Output()
	if err != nil {
		t.Fatalf("horus shadow: %v: %s", err, problems.String())
	}
	check(t, json.Unmarshal(said, &all))
	text, err := os.ReadFile(rows)
	check(t, err)
	for line := range strings.Lines(string(text)) {
		var one struct {
			Job, Theirs, Ours string
			Verdict           string `json:"our_verdict"`
			Rule              string `json:"their_broken_rule"`
			Same              bool
			Regret            float64
		}
		check(t, json.Unmarshal([]byte(line), &one))
		node := func(place string) string { name, _, _ := strings.Cut(place, ":"); return name }
		made := choice{strings.TrimPrefix(one.Job, "default/"), node(one.Theirs), node(one.Ours), "waits", "none", one.Regret}
		if one.Rule != "" {
			made.rule = one.Rule
		}
		if one.Same {
			made.verdict = "same"
		} else if one.Verdict == "place" {
			made.verdict = "elsewhere"
		}
		choices = append(choices, made)
	}
	return all, choices
}

type row map[string]string

func (r row) number(t *testing.T, column string) int64 {
	t.Helper()
	value, err := strconv.ParseFloat(r[column], 64) // the lists write some whole numbers as 1.0
	if err != nil {
		t.Fatalf("column %s: expected a number, found %q", column, r[column])
	}
	return int64(value)
}

func readTable(t *testing.T, path string) (rows []row) {
	t.Helper()
	file, err := os.Open(path)
	check(t, err)
	defer file.Close()
	records, err := csv.NewReader(file).ReadAll()
	check(t, err)
	for _, record := range records[1:] {
		one := row{}
		for i, name := range records[0] {
			one[name] = record[i]
		}
		rows = append(rows, one)
	}
	return rows
}

func horusCommand(t *testing.T) string {
	t.Helper()
	command := os.Getenv("HORUS_COMMAND")
	if command == "" {
		t.Skip("HORUS_COMMAND names no horus command, and what it tells is not compared: build it, then test/run finds it")
	}
	return command
}
