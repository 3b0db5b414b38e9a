// SPDX-License-Identifier: Apache-2.0

// Package library asks libhorus: one cluster and one placer, in this process or in a child process that
// may crash or hang without it.
package library

import (
	"context"
	"errors"

	"libhorus.org/horus"
	"libhorus.org/learn"
)

// ErrGone says that the child process is not there. It comes back by Start, empty.
var ErrGone = errors.New("libhorus is not there: its process ended, and starts again")

// Library is used by one caller at a time. Where no more is said, a method is horus.Cluster's or horus.Placer's.
type Library interface {
	// Find says whether a GPU type is known, and a MIG profile of it, unless that is "".
	Find(gpuType, profile string) error
	AddNode(node horus.Node) error
	ChangeNode(node horus.Node) error
	RemoveNode(id uint64) error
	// Drain closes a device to new jobs, or opens it.
	Drain(node uint64, device uint32, on bool) error
	Adopt(job horus.Job, slots []horus.Slot) (horus.Reason, error)
	Release(job uint64) error

	Verdicts(job horus.Job, nodes []uint64) (horus.NodeVerdicts, error)
	Plan(jobs []horus.Job, nodes []uint64) ([]Planned, error)
	PlanBatch(jobs []horus.Job, nodes []uint64, options horus.BatchOptions) ([]Planned, error)
	// PlanWithout decides jobs as if others had gone.
	PlanWithout(gone []uint64, jobs []horus.Job) ([]Planned, error)
	Appraise(job horus.Job, slots []horus.Slot) (horus.Appraisal, error)
	Regret(job horus.Job, theirs []horus.Slot, nodes []uint64) (horus.Regret, error)
	Review(options horus.RebalanceOptions) (Reviews, error)

	// Learn reads a model: the built-in one, corrected by observations, a snapshot of them; none = not corrected. It may take
	// seconds, and other calls may go on meanwhile. By `use`, a call like the others, it counts from then on.
	Learn(observations []byte) (use func() error, err error)

	Gone() bool
	Start() error
	Close() error
}

// Planned is the decision on one job, with what it does to those beside it.
type Planned struct {
	horus.Decision
	Effects []horus.Effect
}

// Reviews of the jobs that share, and where they are better moved.
type Reviews struct {
	Tenants []horus.TenantReview
	Moves   []horus.Migration
}

// Options of the placer, as horus.PlacerOptions has them.
type Options struct {
	MemHeadroomMiB int64
	MaxTenants     int32
	SharingQuota   float32
	SlowdownBound  float32
	Learned        []byte // observations that correct its model
}

// Local is libhorus in this process.
func Local(options Options) (Library, error) { return newLocal(options) }

type local struct {
	*horus.Cluster
	options   Options
	catalogue *horus.Catalogue
	placer    *horus.Placer
}

func newLocal(options Options) (*local, error) {
	if err := horus.CheckABI(); err != nil {
		return nil, err
	}
	l := &local{options: options}
	var err error
	if l.catalogue, err = horus.DefaultCatalogue(); err != nil {
		return nil, err
	}
	if l.Cluster, err = horus.NewCluster(l.catalogue); err != nil {
		return nil, err
	}
	return l, l.Relearn(options.Learned)
}

func (l *local) Gone() bool   { return false }
func (l *local) Start() error { return nil }

func (l *local) Find(gpuType, profile string) error {
	_, err := l.catalogue.Find(gpuType)
	if err == nil && profile != "" {
		_, err = l.catalogue.FindProfile(gpuType, profile)
	}
	return err
}

func (l *local) Drain(node uint64, device uint32, on bool) error {
	if on {
		return l.SetState(node, device, horus.Drained)
	}
	return l.SetState(node, device, horus.Up)
}

func (l *local) Verdicts(job horus.Job, nodes []uint64) (out horus.NodeVerdicts, err error) {
	err = l.placer.Verdicts(l.Cluster, job, nodes, &out)
	out.Verdicts = nil // the reasons say as much, and go through a pipe
	return out, err
}

func (l *local) Plan(jobs []horus.Job, nodes []uint64) ([]Planned, error) {
	return planned(l.placer.Plan(context.Background(), l.Cluster, jobs, these(nodes)))
}

func (l *local) PlanBatch(jobs []horus.Job, nodes []uint64, options horus.BatchOptions) ([]Planned, error) {
	return planned(l.placer.PlanBatch(context.Background(), l.Cluster, jobs, these(nodes), options))
}

func (l *local) PlanWithout(gone []uint64, jobs []horus.Job) ([]Planned, error) {
	return planned(l.placer.WhatIfGone(l.Cluster, gone, jobs))
}

func (l *local) Appraise(job horus.Job, slots []horus.Slot) (horus.Appraisal, error) {
	return l.placer.Appraise(l.Cluster, job, slots)
}

func (l *local) Regret(job horus.Job, theirs []horus.Slot, nodes []uint64) (horus.Regret, error) {
	return l.placer.Regret(context.Background(), l.Cluster, job, theirs, these(nodes))
}

func (l *local) Review(options horus.RebalanceOptions) (out Reviews, err error) {
	plan, err := l.placer.Review(l.Cluster, options)
	if err != nil {
		return out, err
	}
	defer plan.Close()
	if out.Tenants, err = plan.Reviews(); err == nil {
		out.Moves, err = plan.Migrations()
	}
	return out, err
}

func (l *local) Learn(observations []byte) (use func() error, err error) {
	o := l.options
	options := horus.PlacerOptions{MemHeadroomMiB: o.MemHeadroomMiB, MaxTenants: o.MaxTenants, SharingQuota: o.SharingQuota, SlowdownBound: o.SlowdownBound}
	if len(observations) > 0 {
		learned, err := learn.Corrected(l.catalogue, observations)
		if err != nil {
			return nil, err
		}
		defer learned.Close()
		options.Interference = learned
	}
	placer, err := horus.NewPlacer(options)
	return func() error {
		if l.placer != nil {
			l.placer.Close()
		}
		l.placer = placer
		return nil
	}, err
}

// Relearn is Learn for a parent, which waits.
func (l *local) Relearn(observations []byte) error {
	use, err := l.Learn(observations)
	if err != nil {
		return err
	}
	return use()
}

// these nodes, none where there are none: to libhorus nil is all.
func these(nodes []uint64) []uint64 { return append([]uint64{}, nodes...) }

func planned(plan *horus.Plan, err error) ([]Planned, error) {
	if err != nil {
		return nil, err
	}
	defer plan.Close()
	out := make([]Planned, plan.Len())
	for i := range out {
		if out[i].Decision, err = plan.Decision(i); err != nil {
			return nil, err
		}
		if out[i].Effects, err = plan.Effects(i); err != nil {
			return nil, err
		}
	}
	return out, nil
}
