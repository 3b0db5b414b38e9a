// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

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
	nodes, miss, err := w.Together(context.Background(), views, own)
	if err != nil || miss != "" || len(nodes) != 3 {
		t.Errorf("expected a place for all, found %v, %q, %v", nodes, miss, err)
	}
	if _, miss, err = w.Together(context.Background(), append(views, views[0]), own); err != nil || miss == "" {
		t.Errorf("three GPUs for four jobs: expected why not, found %q, %v", miss, err)
	}
}
