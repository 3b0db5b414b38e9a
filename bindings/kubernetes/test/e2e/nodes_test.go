// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"libhorus.org/kubernetes/internal/objects"
)

// Pods go to nodes that are Horus's by their label, whatever they ask for, and past the taint that keeps others away; who is
// refused is told. With allNodes they go anywhere, and what two schedulers over-commit is counted.
func TestANodeBelongsToOneScheduler(t *testing.T) {
	t.Parallel()
	c := start(t, placing)
	foreign := func(n *v1.Node) { delete(n.Labels, objects.SchedulerLabel) }
	node(t, c, "a-foreign", 1, foreign)
	node(t, c, "b-others", 1, func(n *v1.Node) { n.Labels[objects.SchedulerLabel] = "another" })
	makePod(t, c, podSpec{name: "gpu", whole: 1})
	makePod(t, c, podSpec{name: "plain"})
	said(t, c, "gpu", "HorusRefused", "2 nodes", objects.SchedulerLabel+"=horus")
	said(t, c, "plain", "FailedScheduling", objects.SchedulerLabel+"=horus")
	node(t, c, "c-own", 1, func(n *v1.Node) {
		n.Spec.Taints = []v1.Taint{{Key: objects.SchedulerLabel, Value: "horus", Effect: v1.TaintEffectNoSchedule}}
	})
	makePod(t, c, podSpec{name: "default", whole: 1, scheduler: "default-scheduler", change: func(p *v1.Pod) {
		p.Spec.NodeSelector = map[string]string{objects.SchedulerLabel: "horus"}
	}})
	for _, name := range []string{"gpu", "plain"} {
		if where := bound(t, c, name); where != "c-own" {
			t.Errorf("%s: expected Horus's own node, found %s", name, where)
		}
	}
	makePod(t, c, podSpec{name: "more", whole: 1})
	said(t, c, "more", "HorusRefused")
	said(t, c, "default", "FailedScheduling", "taint")
	kubectl(t, c, "delete", "pod", "default")
	kubectl(t, c, "label", "node", "a-foreign", objects.SchedulerLabel+"=horus")
	if where := bound(t, c, "more"); where != "a-foreign" {
		t.Errorf("expected the node that was given to Horus, found %s", where)
	}
	c.KillScheduler()
	c.StartScheduler(`{mode: place, placing: {allNodes: true}}`)
	makePod(t, c, podSpec{name: "anywhere", whole: 1})
	if where := bound(t, c, "anywhere"); where != "b-others" {
		t.Errorf("expected the last free GPU, whose ever it is, found %s", where)
	}
	makePod(t, c, podSpec{name: "forced", whole: 1, scheduler: "nobody", change: func(p *v1.Pod) { p.Spec.NodeName = "b-others" }})
	until(t, c, "it is counted as over-committed", func() bool {
		return strings.Contains(c.Metrics(), "horus_overcommitted_devices 1")
	})
}
