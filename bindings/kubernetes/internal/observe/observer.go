// SPDX-License-Identifier: Apache-2.0

// Package observe learns from pods that run: what they do alone, and what they lose beside each other.
package observe

import (
	"context"
	"encoding/json"
	"net"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"

	"libhorus.org/kubernetes/internal/mirror"
	"libhorus.org/kubernetes/internal/model"
	"libhorus.org/kubernetes/internal/objects"
)

// Exporter is where the pods of an exporter are found. Its namespace is the administrator's: whoever may label pods there is
// believed.
type Exporter struct {
	Namespace string
	Labels    labels.Selector
	Port      string
}

// Options of an observer.
type Options struct {
	Every     time.Duration // between two looks
	Commit    time.Duration // between two models
	Shortest  Shortest
	Exporters []Exporter
}

// Observer looks at what runs, and learns.
type Observer struct {
	Options
	Mirror   *mirror.Mirror
	Pods     listers.PodLister
	Dynamic  dynamic.Interface
	Store    model.Store
	Learner  *Learner
	Advisor  *Advisor
	Profiles func(namespace, name string) (*unstructured.Unstructured, error)

	recorder recorder
}

const (
	scrapesAtOnce = 32
	lookGap       = 2.5 // looks: one may be lost
)

// Run looks until the context ends.
func (o *Observer) Run(ctx context.Context) {
	o.recorder = recorder{shortest: o.Shortest, gap: time.Duration(lookGap * float64(o.Every))}
	look, commit := time.NewTicker(o.Every), time.NewTicker(o.Commit)
	defer look.Stop()
	defer commit.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			o.look(ctx)
		case <-commit.C:
			o.commit(ctx)
		}
	}
}

func (o *Observer) look(ctx context.Context) {
	devices := o.Mirror.Occupied()
	seen, steps := o.scrapeAll(ctx, devices)
	for _, window := range o.recorder.look(time.Now(), devices, seen, steps) {
		outcome, slowdowns := o.Learner.Take(window)
		windows.WithLabelValues(string(outcome)).Inc()
		if outcome == Learned {
			o.Advisor.saw(window, slowdowns)
		}
	}
	calibration := o.Learner.Calibration()
	predictionError.Set(calibration.Error)
	covered.Set(calibration.Covered)
}

// scrapeAll asks the exporters of the devices' nodes and the pods on them, some at a time.
func (o *Observer) scrapeAll(ctx context.Context, devices []mirror.Occupied) (usages, map[types.UID]reading) {
	var (
		mu    sync.Mutex
		wait  sync.WaitGroup
		seen  = noUsages()
		steps = map[types.UID]reading{}
		slots = make(chan struct{}, scrapesAtOnce)
	)
	ask := func(kind, url string, take func(families) error) {
		wait.Add(1)
		slots <- struct{}{}
		go func() {
			defer func() { <-slots; wait.Done() }()
			found, err := scrape(ctx, url)
			if err == nil {
				mu.Lock()
				err = take(found)
				mu.Unlock()
			}
			scrapes.WithLabelValues(kind, outcomeOf(err)).Inc()
			if err != nil {
				klog.V(4).InfoS("Not scraped", "url", url, "why", err)
			}
		}()
	}
	nodes, asked := map[string]bool{}, map[types.UID]bool{}
	for _, device := range devices {
		nodes[device.Node] = true
		for _, tenant := range device.Tenants {
			if asked[tenant.Pod.UID] {
				continue
			}
			asked[tenant.Pod.UID] = true
			where, err := stepsOf(tenant.Pod)
			if err != nil {
				o.Advisor.tell(tenant.Pod, v1.EventTypeWarning, "HorusSteps", err.Error())
			}
			if where.url == "" {
				continue
			}
			ask("job", where.url, func(found families) error {
				reading, err := readingOf(found, where.metric)
				if err == nil {
					steps[tenant.Pod.UID] = reading
				}
				return err
			})
		}
	}
	for _, exporter := range o.Exporters {
		pods, err := o.Pods.Pods(exporter.Namespace).List(exporter.Labels)
		if err != nil {
			continue
		}
		for _, pod := range pods {
			if nodes[pod.Spec.NodeName] && pod.Status.PodIP != "" && pod.DeletionTimestamp == nil {
				url := "http://" + net.JoinHostPort(pod.Status.PodIP, exporter.Port) + "/metrics"
				ask("exporter", url, func(found families) error { seen.add(found); return nil })
			}
		}
	}
	wait.Wait()
	return seen, steps
}

func (o *Observer) commit(ctx context.Context) {
	o.tellProfiles(ctx)
	if now, before, err := o.Store.Load(ctx); err != nil {
		klog.ErrorS(err, "Horus: the model is not read, and no other is made")
		return
	} else if other, err := o.Learner.Follow(now, before); err != nil {
		klog.ErrorS(err, "Horus: the model is not taken, and no other is made", "version", now.Version)
		return
	} else if other {
		klog.InfoS("Model of somebody else", "version", now.Version, "windows", now.Windows)
		version.Set(float64(now.Version))
		if err := o.Mirror.Learn(now.Observations); err != nil {
			klog.ErrorS(err, "Horus: the model is not taken", "version", now.Version)
		}
	}
	made, some, err := o.Learner.Commit(time.Now())
	if err != nil {
		klog.ErrorS(err, "Horus: no model is made of what was observed")
		return
	}
	if some {
		commits.WithLabelValues(outcomeName(made.RolledBack > 0)).Inc()
		version.Set(float64(made.Version))
		klog.InfoS("Model", "version", made.Version, "windows", made.Windows, "rolledBack", made.RolledBack)
		if err := o.Store.Save(ctx, made); err != nil {
			klog.ErrorS(err, "Horus: the model is not stored", "version", made.Version)
		}
		if err := o.Mirror.Learn(made.Observations); err != nil {
			klog.ErrorS(err, "Horus: the model is not taken", "version", made.Version)
		}
	}
	o.Advisor.advise(ctx)
}

// tellProfiles writes what is known of jobs alone into the status of their profiles.
func (o *Observer) tellProfiles(ctx context.Context) {
	byProfile := map[types.NamespacedName][]objects.Observed{}
	for kind, known := range o.Learner.KnownAlone() {
		known.GPUType = kind.GPUType
		name := types.NamespacedName{Namespace: kind.Namespace, Name: kind.Profile}
		byProfile[name] = append(byProfile[name], known)
	}
	for name, known := range byProfile {
		object, err := o.Profiles(name.Namespace, name.Name)
		if err != nil {
			continue // it is gone
		}
		for _, old := range objects.ObservedOf(object.Object["status"]) {
			if !slices.ContainsFunc(known, func(one objects.Observed) bool { return one.GPUType == old.GPUType }) {
				known = append(known, old)
			}
		}
		patch, err := json.Marshal(map[string]any{"status": map[string]any{"observed": known}})
		if err == nil {
			_, err = o.Dynamic.Resource(objects.Profiles).Namespace(name.Namespace).Patch(ctx, name.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		}
		if err != nil {
			klog.ErrorS(err, "Horus: the status of a profile is not written", "profile", name)
		}
	}
}
