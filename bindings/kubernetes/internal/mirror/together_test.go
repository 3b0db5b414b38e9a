// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"libhorus.org/kubernetes/internal/objects"
)

// Jobs that are alike to the library may each be held to a node of their own.
func TestJobsAlikeThatMayGoToOtherNodesFitTogether(t *testing.T) {
	w := newWorld(t)
	var views []objects.Pod
	for i := range 3 {
		w.node(fmt.Sprintf("n%d", i), 1)
		view, err := w.Read(podOn(fmt.Sprintf("p%d", i), "", 1))
		if err != nil {
			t.Fatal(err)
		}
		views = append(views, view)
	}
	own := func(row int, node *v1.Node) bool { return node.Name == fmt.Sprintf("n%d", row) }
	nodes, miss, err := w.Together(views, nil, own)
	if err != nil || miss != "" || len(nodes) != 3 {
		t.Errorf("expected a place for all, found %v, %q, %v", nodes, miss, err)
	}
	if _, miss, err = w.Together(append(views, views[0]), nil, own); err != nil || miss == "" {
		t.Errorf("three GPUs for four jobs: expected why not, found %q, %v", miss, err)
	}
}

// labelled is a node of one GPU with labels.
func (w world) labelled(name string, labels map[string]string) {
	w.node(name, 1)
	object := w.nodes[name].object.DeepCopy()
	maps.Copy(object.Labels, labels)
	w.SetNode(object)
}

func anywhere(int, *v1.Node) bool { return true }

func TestAGangTakesOneRackWhileOneIsFree(t *testing.T) {
	for _, label := range []string{"nvidia.com/gpu.clique", "topology.kubernetes.io/rack", "network.topology.nvidia.com/leaf", "topology.kubernetes.io/zone"} {
		w := newWorld(t)
		for name, rack := range map[string]string{"n0": "a", "n1": "b", "n2": "a", "n3": "b", "n4": "c", "n5": "b"} {
			w.labelled(name, map[string]string{label: rack})
		}
		w.SetPod(podOn("taken", "n0", 1)) // of rack a one node is left
		view, err := w.Read(podOn("p", "", 1))
		if err != nil {
			t.Fatal(err)
		}
		nodes, miss, err := w.Together([]objects.Pod{view, view, view}, nil, anywhere)
		if slices.Sort(nodes); err != nil || miss != "" || !slices.Equal(nodes, []string{"n1", "n3", "n5"}) {
			t.Errorf("%s: expected the rack that has room for all three, found %v, %q, %v", label, nodes, miss, err)
		}
		nodes, miss, err = w.Together([]objects.Pod{view, view, view, view}, nil, anywhere)
		if err != nil || miss != "" || len(nodes) != 4 {
			t.Errorf("%s: expected a place over several racks where none has room for all, found %v, %q, %v", label, nodes, miss, err)
		}
	}
}

// GPUs of an NVSwitch system tell a fabric that ends at the node.
func TestAFabricOfOneNodeIsNoRack(t *testing.T) {
	w := newWorld(t)
	for name, rack := range map[string]string{"n0": "a", "n1": "b", "n2": "a", "n3": "b"} {
		w.labelled(name, map[string]string{"nvidia.com/gpu.clique": "00000000-0000-0000-0000-000000000000.0", "topology.kubernetes.io/rack": rack})
	}
	w.SetPod(podOn("taken", "n0", 1))
	view, err := w.Read(podOn("p", "", 1))
	if err != nil {
		t.Fatal(err)
	}
	nodes, miss, err := w.Together([]objects.Pod{view, view}, nil, anywhere)
	if slices.Sort(nodes); err != nil || miss != "" || !slices.Equal(nodes, []string{"n1", "n3"}) {
		t.Errorf("expected rack b, found %v, %q, %v", nodes, miss, err)
	}
}

func TestAGangOverRacksTakesOneBlockWhileOneIsFree(t *testing.T) {
	w := newWorld(t)
	for i, block := range []string{"a", "b", "c", "b", "a", "b"} { // each node is a rack
		w.labelled(fmt.Sprintf("n%d", i), map[string]string{"topology.kubernetes.io/rack": fmt.Sprint(i), "topology.kubernetes.io/block": block})
	}
	view, err := w.Read(podOn("p", "", 1))
	if err != nil {
		t.Fatal(err)
	}
	nodes, miss, err := w.Together([]objects.Pod{view, view, view}, nil, anywhere)
	if slices.Sort(nodes); err != nil || miss != "" || !slices.Equal(nodes, []string{"n1", "n3", "n5"}) {
		t.Errorf("expected block b, found %v, %q, %v", nodes, miss, err)
	}
	nodes, miss, err = w.Together([]objects.Pod{view, view, view, view}, nil, anywhere)
	if err != nil || miss != "" || len(nodes) != 4 {
		t.Errorf("expected a place over several blocks where none has room for all, found %v, %q, %v", nodes, miss, err)
	}
}

// The library knows no selectors: what a gang's claims do not allow is closed while it plans.
func TestAGangIsPlannedOnDevicesThatItAllows(t *testing.T) {
	w := newWorld(t)
	w.node("n1", 0)
	w.node("n2", 0)
	w.slice("n1", "gpu-0", "gpu-1")
	w.slice("n2", "gpu-0", "gpu-1")
	view, err := w.Read(w.claimer("p", "", ""))
	if err != nil {
		t.Fatal(err)
	}
	view.Horus.Exclusive = true
	second := Rules{Selectors: "second", Matches: func(d *resourceapi.Device) bool { return d.Name == "gpu-1" }}
	if nodes, miss, err := w.Together([]objects.Pod{view, view}, []Rules{second}, anywhere); err != nil || miss != "" || nodes[0] == nodes[1] {
		t.Errorf("expected the second GPU of either node, found %v, %q, %v", nodes, miss, err)
	}
	if _, miss, err := w.Together([]objects.Pod{view, view, view}, []Rules{second}, anywhere); err != nil || miss == "" {
		t.Errorf("two GPUs for three: expected why not, found %q, %v", miss, err)
	}
	none := Rules{Selectors: "none", Matches: func(*resourceapi.Device) bool { return false }}
	if nodes, miss, err := w.Together([]objects.Pod{view, view}, []Rules{none}, anywhere); err != nil || miss == "" {
		t.Errorf("no GPU that it allows: expected why not, found %v, %q, %v", nodes, miss, err)
	}
	if nodes, miss, err := w.Together([]objects.Pod{view, view, view}, []Rules{second, anyDevice}, anywhere); err != nil || miss != "" {
		t.Errorf("expected all open where one of the gang allows all, found %v, %q, %v", nodes, miss, err)
	}
}
