// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"libhorus.org/kubernetes/internal/objects"
	"libhorus.org/kubernetes/test/controlplane"
)

// Pods bound a second by the default profile and by ours, in turn, on nodes of eight GPUs. HORUS_K8S_BENCH is a list of
// nodes x pods x rounds, such as "500x1000x3,5000x1000x3"; HORUS_K8S_VALUES the chart's values. HORUS_K8S_GANG=N makes gangs of N, each
// required in one rack of 32 nodes. HORUS_K8S_SHARE=1 makes pods that share GPUs of DRA, three of them a GPU, in two kinds.
func TestThroughput(t *testing.T) {
	sizes := os.Getenv("HORUS_K8S_BENCH")
	if sizes == "" {
		t.Skip("HORUS_K8S_BENCH names no sizes")
	}
	for size := range strings.SplitSeq(sizes, ",") {
		var nodes, pods, rounds int
		if _, err := fmt.Sscanf(size, "%dx%dx%d", &nodes, &pods, &rounds); err != nil {
			t.Fatalf("HORUS_K8S_BENCH: expected nodes x pods x rounds, found %q", size)
		}
		t.Run(size, func(t *testing.T) {
			c := startWithGroups(t, cmp.Or(os.Getenv("HORUS_K8S_VALUES"), placing))
			parallel(nodes, func(i int) {
				name, whole := fmt.Sprintf("n%d", i), 8
				if shares() {
					slice(t, c, name, whole)
					whole = 0
				}
				node(t, c, name, whole, func(n *v1.Node) { n.Labels["topology.kubernetes.io/rack"] = fmt.Sprint(i / 32) })
			})
			profile(t, c, "kind-0", 12, 8_000)
			profile(t, c, "kind-1", 20, 8_000)
			b := watch(t, c)
			for round := range rounds {
				for _, scheduler := range []string{"default-scheduler", "horus"} {
					rate, p99 := b.round(t, c, scheduler, pods, round)
					t.Logf("%d nodes, %d pods, %s: %.0f bound a second, the last 1%% after %.2f s", nodes, pods, scheduler, rate, p99)
				}
			}
			for line := range strings.Lines(c.Metrics()) {
				if strings.HasPrefix(line, "horus_verdicts_seconds") || (strings.HasPrefix(line, "scheduler_scheduling_algorithm_duration_seconds") && !strings.Contains(line, "bucket")) {
					t.Log(strings.TrimSpace(line))
				}
			}
		})
	}
}

func shares() bool { return os.Getenv("HORUS_K8S_SHARE") != "" }

func parallel(n int, do func(int)) {
	var group sync.WaitGroup
	for w := range 16 {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := w; i < n; i += 16 {
				do(i)
			}
		}()
	}
	group.Wait()
}

// board tells when pods were bound.
type board struct {
	mu    sync.Mutex
	bound map[string]time.Time
}

func watch(t *testing.T, c *controlplane.Cluster) *board {
	t.Helper()
	b := &board{bound: map[string]time.Time{}}
	factory := informers.NewSharedInformerFactory(c.Client, 0)
	note := func(o any) {
		if p := o.(*v1.Pod); p.Spec.NodeName != "" {
			b.mu.Lock()
			if b.bound[p.Name].IsZero() {
				b.bound[p.Name] = time.Now()
			}
			b.mu.Unlock()
		}
	}
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, now any) { note(now) }})
	check(t, err)
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	return b
}

func (b *board) round(t *testing.T, c *controlplane.Cluster, scheduler string, pods, round int) (rate, p99 float64) {
	t.Helper()
	c.StopScheduler()
	name := func(i int) string { return fmt.Sprintf("%s-%d-%d", scheduler[:3], round, i) }
	size, _ := strconv.Atoi(os.Getenv("HORUS_K8S_GANG"))
	parallel(pods, func(i int) {
		one := podSpec{name: name(i), whole: 1, scheduler: scheduler}
		if shares() {
			claim(t, c, name(i), "25Gi")
			one.whole, one.claim = 0, name(i)
			one.annotations = map[string]string{objects.ProfileAnnotation: fmt.Sprint("kind-", i%2), objects.ShareAnnotation: "same-tenant"}
		}
		if size > 0 {
			gang := fmt.Sprintf("%s-%d-gang-%d", scheduler[:3], round, i/size)
			if i%size == 0 {
				group(t, c, gang, map[string]any{"minMember": int64(min(size, pods-i))})
			}
			one.change = inOneRack(gang)
		}
		makePod(t, c, one)
	})
	begin := time.Now()
	c.Go()
	var took []float64
	for deadline := begin.Add(10 * time.Minute); len(took) < pods; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d pods are bound", len(took), pods)
		}
		took = took[:0]
		b.mu.Lock()
		for i := range pods {
			if at := b.bound[name(i)]; !at.IsZero() {
				took = append(took, at.Sub(begin).Seconds())
			}
		}
		b.mu.Unlock()
	}
	slices.Sort(took)
	if shares() {
		parallel(pods, func(i int) { end(t, c, name(i)) })
	}
	grace := int64(0)
	check(t, c.Client.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &grace}, metav1.ListOptions{}))
	for left := 1; left > 0; time.Sleep(100 * time.Millisecond) {
		list, err := c.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{Limit: 1})
		check(t, err)
		left = len(list.Items)
	}
	return float64(pods) / took[len(took)-1], took[len(took)*99/100]
}
