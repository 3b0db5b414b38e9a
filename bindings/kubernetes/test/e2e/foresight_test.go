// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/model"
	"libhorus.org/kubernetes/internal/objects"
	"libhorus.org/kubernetes/test/controlplane"
	"libhorus.org/learn"
)

// foresight compares what the scheduler's model says of pods that share with what is played, as it is at that time: each pod on a
// shared GPU counts once a minute of the play.
type foresight struct {
	c     *controlplane.Cluster
	p     *play
	next  time.Duration
	model *horus.Interference
	of    string // version of the model's ConfigMap
	seen  []expectation
}

type expectation struct {
	at                      time.Duration // of the play
	expected, upper, played float64       // slowdowns
}

func (f *foresight) look(t *testing.T, at time.Duration) {
	t.Helper()
	if at < f.next {
		return
	}
	f.next = at + time.Minute
	f.follow(t)
	demands := map[string]horus.Demand{}
	profiles, err := f.c.Dynamic.Resource(objects.Profiles).Namespace(namespace).List(ctx, metav1.ListOptions{})
	check(t, err)
	for _, object := range profiles.Items {
		read, err := objects.ProfileOf(object.Object["spec"], object.Object["status"])
		check(t, err)
		demands[object.GetName()] = read.Demands[0].Demand
	}
	f.p.with(func() {
		for name, one := range f.p.pods {
			others := f.p.beside(name)
			if len(others) == 0 {
				continue
			}
			tenants := []horus.Demand{demands[one.kind]}
			for _, other := range others {
				tenants = append(tenants, demands[other])
			}
			slowdowns, err := f.model.Slowdowns(nil, horus.SharedDevice{GPUType: "h100-sxm"}, tenants)
			check(t, err)
			f.seen = append(f.seen, expectation{at, float64(slowdowns[0].Expected), float64(slowdowns[0].Upper), f.p.slowdown(one.kind, others)})
		}
	})
}

// follow the model that the scheduler places by.
func (f *foresight) follow(t *testing.T) {
	t.Helper()
	object, err := f.c.Client.CoreV1().ConfigMaps(system).Get(ctx, "horus-model", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		object, err = &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "none"}}, nil
	}
	check(t, err)
	if object.ResourceVersion == f.of {
		return
	}
	f.of = object.ResourceVersion
	if object.Name == "" {
		f.model, err = horus.NewInterference("")
		check(t, err)
		return
	}
	read, err := model.Of(object)
	check(t, err)
	f.model, err = learn.Corrected(nil, read.Observations)
	check(t, err)
}

// tell how right the model was, by ten minutes of the play and by deciles of what it expected.
func (f *foresight) tell(t *testing.T) {
	t.Helper()
	row := func(what string, of []expectation) {
		var expected, played, off, covered float64
		for _, one := range of {
			expected, played = expected+one.expected, played+one.played
			off += math.Abs(math.Log(one.expected / one.played))
			if one.played <= one.upper {
				covered++
			}
		}
		n := float64(len(of))
		t.Logf("%-12s expected %.3f, played %.3f, off by %.3f, %.2f within their bound (%d)", what, expected/n, played/n, off/n, covered/n, len(of))
	}
	for from := time.Duration(0); from < f.next; from += 10 * time.Minute {
		in := slices.DeleteFunc(slices.Clone(f.seen), func(one expectation) bool { return one.at < from || one.at >= from+10*time.Minute })
		if len(in) > 0 {
			row(from.String(), in)
		}
	}
	slices.SortFunc(f.seen, func(a, b expectation) int { return cmp.Compare(a.expected, b.expected) })
	for i := range 10 {
		if from, to := i*len(f.seen)/10, (i+1)*len(f.seen)/10; from < to {
			row("decile "+string(rune('0'+i)), f.seen[from:to])
		}
	}
}
