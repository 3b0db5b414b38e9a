// SPDX-License-Identifier: Apache-2.0

// Package advise tells what people guess when they write a pod: how much GPU memory it needs, on which GPU types of the cluster it
// fits at all, and its largest batch. It reads a JobProfile, the pod and the cluster's GPU types, and asks no cluster: cmd/horus-advise
// calls it at admission, and a recommender of Kubeflow Trainer, or any other program, may call it where it makes the pod.
//
//	profile, err := advise.ProfileOf(jobProfile.Object["spec"], jobProfile.Object["status"])
//	cluster := advise.Cluster{Types: advise.TypesOf(advise.Settings{}, nodes, slices)}
//	advice, err := advise.For(profile, &pod, cluster)
package advise

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"

	"libhorus.org/horus"
	"libhorus.org/kubernetes/internal/objects"
)

// Profile is what a JobProfile says.
type Profile = objects.Profile

// ProfileOf reads the spec of a JobProfile and its status, nil where there is none: any values that encode to their JSON.
func ProfileOf(spec, status any) (Profile, error) { return objects.ProfileOf(spec, status) }

// Cluster is what the pod may run on.
type Cluster struct {
	Settings Settings
	Types    []NodeType
}

// Advice for a pod, or for a resource claim. The zero value of a field: it cannot be told.
type Advice struct {
	// Of the catalogue, those of the cluster on which the job fits and that the pod allows, sorted. The rest is about these.
	GPUTypes      []string `json:"gpuTypes"`
	Evidence      Evidence `json:"evidence,omitempty"`
	MemRequestMiB int64    `json:"memRequestMiB,omitempty"` // of a GPU: the largest bound
	MemLimitMiB   int64    `json:"memLimitMiB,omitempty"`   // the same where all bounds are stated or measured: what enforces it ends jobs
	LargestBatch  int64    `json:"largestBatch,omitempty"`  // of whole GPUs, samples per GPU and step: the least of the types

	// Node labels of GPU types on which the job does not fit. None where the pod itself says which nodes it wants.
	Unfit []Label `json:"-"`
}

// Label of nodes.
type Label struct{ Key, Value string }

// Evidence is what the weakest of the bounds rests on.
type Evidence string

// Evidence, the best first.
const (
	Measured  Evidence = "measured"
	Stated    Evidence = "stated"
	Predicted Evidence = "predicted"
	Outside   Evidence = "outside" // predicted for a job unlike those that the predictor knows
)

var weakest = []Evidence{Measured, Stated, Predicted, Outside}

var catalogue = sync.OnceValues(horus.DefaultCatalogue)

// find the catalogue's entry of a GPU type by its name or an alias.
func find(name string) (horus.GPU, error) {
	known, err := catalogue()
	if err != nil {
		return horus.GPU{}, err
	}
	at, err := known.Find(name)
	if err != nil {
		return horus.GPU{}, err
	}
	return known.At(at)
}

// For advises on a pod; nil stands for a resource claim, of which only the profile is known. Advice without GPU types: the pod asks
// for no GPUs, or the job fits on none of the cluster's types, or these are not known; nothing should be filled in then.
// Errors: a GPU type of the profile that nobody knows.
func For(profile Profile, pod *v1.Pod, cluster Cluster) (Advice, error) {
	demands := map[string]int{} // positions by the catalogue's names
	for i, d := range profile.Demands {
		gpu, err := find(d.GPUType)
		if err != nil {
			return Advice{}, fmt.Errorf("spec.demands[%d].gpuType: %w", i, err)
		}
		demands[gpu.Name] = i
	}
	var advice Advice
	var unfit []Label
	fit := map[Label]bool{} // labels of nodes where it fits
	allowed := allows(pod)
	for _, t := range cluster.Types {
		if !asksFor(pod, cluster.Settings, t.Means) || !allowed(t.Labels) {
			continue
		}
		label, labelled := t.label()
		at, listed := demands[t.GPUType]
		if !listed || !fits(profile.Demands[at].Demand, t) {
			if labelled {
				unfit = append(unfit, label)
			}
			continue
		}
		fit[label] = true
		batch := profile.LargestBatch[at] // it was told for all of the GPU's memory
		if t.Means != Whole || (pod != nil && SharesByKAI(cluster.Settings, pod)) {
			batch = 0
		}
		advice.add(t, bound(profile.Demands[at].Demand), evidence(profile.Memory[at]), batch)
	}
	slices.Sort(advice.GPUTypes)
	advice.GPUTypes = slices.Compact(advice.GPUTypes)
	if len(advice.GPUTypes) > 0 && pod != nil && !choosesNodes(pod) {
		advice.Unfit = slices.DeleteFunc(unfit, func(l Label) bool { return fit[l] })
		slices.SortFunc(advice.Unfit, func(a, b Label) int { return strings.Compare(a.Key+"="+a.Value, b.Key+"="+b.Value) })
		advice.Unfit = slices.Compact(advice.Unfit)
	}
	return advice, nil
}

// bound of a demand's memory; 0 = unknown.
func bound(d horus.Demand) int64 {
	if d.MemMiBUpper >= horus.MemMiBUnbounded {
		return 0
	}
	return objects.BoundOf(d)
}

func fits(d horus.Demand, t NodeType) bool {
	return d.Flags&horus.TooLarge == 0 && max(bound(d), d.MemMiB) <= t.MemMiB
}

func evidence(flags horus.DemandFlags) Evidence {
	switch {
	case flags&(horus.Outside|horus.Uncalibrated) != 0:
		return Outside
	case flags&horus.Predicted != 0:
		return Predicted
	case flags&horus.Measured != 0:
		return Measured
	}
	return Stated
}

// add a type on which the job fits.
func (a *Advice) add(t NodeType, bound int64, by Evidence, batch int64) {
	if len(a.GPUTypes) == 0 {
		a.Evidence, a.MemRequestMiB, a.LargestBatch = by, bound, batch
	} else {
		a.Evidence = weakest[max(slices.Index(weakest, by), slices.Index(weakest, a.Evidence))]
		a.MemRequestMiB = together(a.MemRequestMiB, bound, max(a.MemRequestMiB, bound))
		a.LargestBatch = together(a.LargestBatch, batch, min(a.LargestBatch, batch))
	}
	a.GPUTypes = append(a.GPUTypes, t.GPUType)
	a.MemLimitMiB = 0
	if a.Evidence == Measured || a.Evidence == Stated {
		a.MemLimitMiB = a.MemRequestMiB
	}
}

// together is what holds for both; nothing where one is unknown.
func together(a, b, both int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	return both
}
