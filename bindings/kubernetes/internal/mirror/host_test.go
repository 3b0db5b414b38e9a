// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"math/rand/v2"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cores of pods without GPUs count, from when they are bound until they end.
func TestANodeHasRoomForTheCoresThatAreLeft(t *testing.T) {
	w := newWorld(t)
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: v1.NodeStatus{Allocatable: v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("8"), v1.ResourceMemory: resource.MustParse("32Gi"), "nvidia.com/gpu": resource.MustParse("4"),
	}}}
	with := func(name, cores, memory string) *v1.Pod {
		p := podOn(name, "n1", 0)
		p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse(cores), v1.ResourceMemory: resource.MustParse(memory)}
		return p
	}
	fits := func(cores, memory string) bool {
		return View{m: w.Mirror, Pod: with("new", cores, memory)}.Room()(node)
	}
	w.SetNode(node)
	web := with("web", "6", "8Gi")
	w.SetPod(web)
	w.SetPod(web) // as events repeat it
	if !fits("2", "24Gi") || fits("2100m", "1Gi") || fits("1", "25Gi") {
		t.Errorf("2 cores and 24 GiB are left: found %v, %v and %v", fits("2", "24Gi"), fits("2100m", "1Gi"), fits("1", "25Gi"))
	}
	ended := web.DeepCopy()
	ended.Status.Phase = v1.PodSucceeded
	w.SetPod(ended)
	if !fits("8", "32Gi") {
		t.Error("expected all of the node after the pod ended")
	}
	w.SetPod(web)
	w.DeletePod(web.UID)
	if !fits("8", "32Gi") {
		t.Error("expected all of the node after the pod was deleted")
	}
}

// Replicas, and a scheduler that starts again, hear of nodes in another order and have to choose alike.
func TestIdsAreInTheOrderOfNamesHoweverNodesCome(t *testing.T) {
	const nodes = 5000
	name := func(i int) string { return fmt.Sprintf("node-%04d", i) }
	for _, order := range [][]int{rand.New(rand.NewPCG(1, 1)).Perm(nodes), ascending(nodes), descending(nodes)} {
		var r ranked
		ids := map[string]uint64{}
		for _, i := range order {
			ids[name(i)] = r.add(name(i))
		}
		for i := 1; i < nodes; i++ {
			if ids[name(i-1)] >= ids[name(i)] {
				t.Fatalf("%s: expected an id above %d of the node before, found %d", name(i), ids[name(i-1)], ids[name(i)])
			}
		}
		r.drop(name(7))
		if again := r.add(name(7)); again <= ids[name(6)] || again >= ids[name(8)] {
			t.Errorf("a node that comes again: expected between %d and %d, found %d", ids[name(6)], ids[name(8)], again)
		}
	}
}

func ascending(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func descending(n int) []int {
	out := ascending(n)
	for i := range out {
		out[i] = n - 1 - i
	}
	return out
}
