// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"libhorus.org/kubernetes/internal/objects"
	"libhorus.org/kubernetes/internal/observe"
	"libhorus.org/kubernetes/test/controlplane"
)

// An observer in a hurry: what takes minutes takes seconds here.
const observing = `
mode: place
observer: {enabled: true, every: 200ms, window: 1s, commit: 3s, evict: %v, evictionsPerHour: 3600}
`

// observer starts one with the chart's arguments and the rights of its service account.
func observer(t *testing.T, c *controlplane.Cluster) (metrics func() string) {
	t.Helper()
	deployment, err := c.Client.AppsV1().Deployments(system).Get(ctx, "horus-observer", metav1.GetOptions{})
	check(t, err)
	config, err := c.Client.CoreV1().ConfigMaps(system).Get(ctx, "horus-scheduler", metav1.GetOptions{})
	check(t, err)
	url := c.StartObserver(config.Data["scheduler.yaml"], token(t, c, "horus-observer"), deployment.Spec.Template.Spec.Containers[0].Args)
	return func() string {
		text, err := c.Get(url)
		check(t, err)
		return text
	}
}

// job is a pod that shares, tells its steps, and has a bound.
func job(t *testing.T, c *controlplane.Cluster, name, kind string, bound string) {
	t.Helper()
	claim(t, c, name, "8Gi")
	makePod(t, c, podSpec{name: name, claim: name, change: func(p *v1.Pod) {
		owner := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "jobs", UID: "jobs", Controller: &owner}}
	}, annotations: map[string]string{
		objects.ProfileAnnotation: kind, objects.ShareAnnotation: "same-tenant", objects.BoundAnnotation: bound, observe.StepsAnnotation: jobPort,
	}})
}

// Two kinds of jobs that harm each other far more than their use of the GPU tells.
var (
	kinds = map[string]work{"left": {0.4, 10 * time.Millisecond}, "right": {0.4, 20 * time.Millisecond}}
	harm  = 3.0
)

func harmed(kind string, others []string) float64 {
	if (kind == "left" && slices.Contains(others, "right")) || (kind == "right" && slices.Contains(others, "left")) {
		return harm
	}
	return 1 + 0.05*float64(len(others))
}

func observed(t *testing.T, evict bool) (*controlplane.Cluster, *play, func() string) {
	t.Helper()
	c := start(t, "")
	install(t, c, fmt.Sprintf(observing, evict))
	for kind, work := range kinds {
		profile(t, c, kind, 100*work.util, 8_000)
	}
	p := startPlay(t, c, kinds, harmed)
	node(t, c, "n1", 0, nil)
	slice(t, c, "n1", 2)
	p.exporter("n1")
	return c, p, observer(t, c)
}

// known waits until both kinds were seen alone, on a GPU each.
func known(t *testing.T, c *controlplane.Cluster) {
	t.Helper()
	for kind := range kinds {
		job(t, c, "alone-"+kind, kind, "1.01")
		bound(t, c, "alone-"+kind)
	}
	until(t, c, "both kinds were seen alone", func() bool {
		return strings.Count(kubectl(t, c, "get", "jobprofiles", "-o", "jsonpath={.items[*].status.observed[*].windows}"), " ") >= len(kinds)-1
	})
	for kind := range kinds {
		end(t, c, "alone-"+kind)
	}
}

// together has a left and a right on each of two GPUs.
func together(t *testing.T, c *controlplane.Cluster) {
	t.Helper()
	for _, one := range [][2]string{{"a", "left"}, {"b", "right"}, {"c", "right"}, {"d", "left"}} {
		job(t, c, one[0], one[1], "2.6")
		bound(t, c, one[0])
	}
	if with := device(t, c, "a"); with != device(t, c, "b") && with != device(t, c, "c") {
		t.Fatalf("expected a left beside a right, as long as nobody knows what they lose, found a on %s, b on %s, c on %s", with, device(t, c, "b"), device(t, c, "c"))
	}
}

func TestWhatPodsLoseBesideEachOtherDecidesWhereTheNextGo(t *testing.T) {
	c, _, metrics := observed(t, false)
	known(t, c)
	together(t, c)
	until(t, c, "the scheduler has a model", func() bool { return metric(c, "horus_model_version") >= 1 })
	said(t, c, "a", "HorusMove", "beyond its bound of 2.60")
	for _, name := range []string{"a", "b", "c", "d"} {
		end(t, c, name)
	}
	for _, kind := range []string{"left", "right"} {
		job(t, c, "e-"+kind, kind, "2.6")
		bound(t, c, "e-"+kind)
	}
	for _, name := range []string{"f", "g"} { // one GPU takes no three of them, and the other has a left
		job(t, c, name, "right", "2.6")
		until(t, c, name+" is decided", func() bool { return get(t, c, name).Spec.NodeName != "" || len(get(t, c, name).Status.Conditions) > 0 })
		if on := device(t, c, name); on == device(t, c, "e-left") || device(t, c, "e-left") == device(t, c, "e-right") {
			t.Errorf("expected no right beside a left, found %s on %s, left on %s and right on %s", name, on, device(t, c, "e-left"), device(t, c, "e-right"))
		}
	}
	if log := c.ObserverLog(); strings.Contains(log, "forbidden") {
		t.Errorf("the chart's roles lack a right: %s", log)
	}
	if text := metrics(); metricOf(text, `horus_observer_windows_total{outcome="learned"}`) == 0 {
		t.Errorf("expected windows that were learned from, found %s", text)
	}
}

func TestAPodThatIsBetterMovedIsEvictedWithinItsBudget(t *testing.T) {
	c, _, metrics := observed(t, true)
	known(t, c)
	_, err := c.Client.PolicyV1().PodDisruptionBudgets(namespace).Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "all"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}, MinAvailable: &intstr.IntOrString{IntVal: 9}},
	}, metav1.CreateOptions{})
	check(t, err)
	together(t, c)
	node(t, c, "n2", 0, nil)
	slice(t, c, "n2", 2)
	until(t, c, "an eviction was refused", func() bool { return metricOf(metrics(), `horus_observer_advice_total{done="refused"}`) > 0 })
	for _, name := range []string{"a", "b", "c", "d"} {
		get(t, c, name)
	}
	check(t, c.Client.PolicyV1().PodDisruptionBudgets(namespace).Delete(ctx, "all", metav1.DeleteOptions{}))
	until(t, c, "a pod was evicted", func() bool { return metricOf(metrics(), `horus_observer_advice_total{done="evicted"}`) > 0 })
	if log := c.ObserverLog(); strings.Contains(log, "forbidden") {
		t.Errorf("the chart's roles lack a right: %s", log)
	}
}

func TestWhatCannotBeBelievedIsNotLearned(t *testing.T) {
	c, p, metrics := observed(t, false)
	known(t, c)
	p.with(func() { p.lies["a"], p.lies["d"] = 30, 30 })
	together(t, c)
	outcome := func(name string) float64 {
		return metricOf(metrics(), fmt.Sprintf("horus_observer_windows_total{outcome=%q}", name))
	}
	until(t, c, "the exporter contradicts a liar", func() bool { return outcome("contradiction") >= 3 })
	p.with(func() { p.silent = true })
	until(t, c, "exporters are missed", func() bool {
		return metricOf(metrics(), `horus_observer_scrapes_total{of="exporter",outcome="failed"}`) >= 3
	})
	before := outcome("contradiction")
	time.Sleep(3 * time.Second) // three windows
	if after := outcome("contradiction"); after != before || outcome("learned") > 0 {
		t.Errorf("no exporter: expected no window, found %v contradictions after %v, %v learned", after, before, outcome("learned"))
	}
	p.with(func() { p.silent = false; clear(p.lies) })
	until(t, c, "the truth is learned", func() bool { return metricOf(metrics(), "horus_observer_model_version") >= 1 })
	version := metric(c, "horus_model_version")
	c.KillObserver()
	metrics = observer(t, c)
	until(t, c, "another goes on from its model", func() bool { return metricOf(metrics(), "horus_observer_model_version") > version })
}
