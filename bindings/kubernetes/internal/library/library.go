// SPDX-License-Identifier: Apache-2.0

// Package library asks libhorus: one cluster and one placer, in this process or in a child process that
// may crash or hang without it.
package library

import (
	"bufio"
	"cmp"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"syscall"
	"time"

	"k8s.io/klog/v2"

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
	// Start brings it back, empty, after it was gone.
	Start() error
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
	placer, err := learn.Placer(l.catalogue, horus.PlacerOptions{
		MemHeadroomMiB: o.MemHeadroomMiB, MaxTenants: o.MaxTenants, SharingQuota: o.SharingQuota, SlowdownBound: o.SlowdownBound,
	}, observations)
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

// Argument makes a program a child: it is its only argument, and Serve what it does.
const Argument = "libhorus"

// Child is libhorus in a child process of this program. A call that takes longer than `limit` ends the child, as its own crash
// does; from then on the answer is ErrGone, until Start.
func Child(options Options, limit time.Duration) (Library, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{program: program, options: options, limit: limit}
	return c, c.Start()
}

type child struct {
	program string
	options Options
	limit   time.Duration

	cmd *exec.Cmd // nil = gone
	out *bufio.Writer
	enc *gob.Encoder
	dec *gob.Decoder
}

func (c *child) Gone() bool { return c.cmd == nil }

func (c *child) Start() error {
	c.end()
	cmd := exec.Command(c.program, Argument)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // and it ends by itself when its input does
	to, failed := cmd.StdinPipe()
	from, err := cmd.StdoutPipe()
	if err = cmp.Or(failed, err); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	c.cmd, c.out = cmd, bufio.NewWriter(to)
	c.enc, c.dec = gob.NewEncoder(c.out), gob.NewDecoder(bufio.NewReader(from))
	if err = c.exchange(nil, c.options); err != nil {
		c.end()
	}
	return err
}

// end kills the child, if it lives, and tells how it ended.
func (c *child) end() *os.ProcessState {
	if c.cmd == nil {
		return nil
	}
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
	state := c.cmd.ProcessState
	c.cmd = nil
	return state
}

// What a child is asked, it is asked by the method's name.

func (c *child) Find(gpuType, profile string) error { return c.tell("Find", gpuType, profile) }
func (c *child) AddNode(node horus.Node) error      { return c.tell("AddNode", node) }
func (c *child) ChangeNode(node horus.Node) error   { return c.tell("ChangeNode", node) }
func (c *child) RemoveNode(id uint64) error         { return c.tell("RemoveNode", id) }
func (c *child) Release(job uint64) error           { return c.tell("Release", job) }
func (c *child) Drain(node uint64, device uint32, on bool) error {
	return c.tell("Drain", node, device, on)
}
func (c *child) Adopt(job horus.Job, slots []horus.Slot) (horus.Reason, error) {
	return ask[horus.Reason](c, "Adopt", job, slots)
}
func (c *child) Verdicts(job horus.Job, nodes []uint64) (horus.NodeVerdicts, error) {
	return ask[horus.NodeVerdicts](c, "Verdicts", job, nodes)
}
func (c *child) Plan(jobs []horus.Job, nodes []uint64) ([]Planned, error) {
	return ask[[]Planned](c, "Plan", jobs, nodes)
}
func (c *child) PlanBatch(jobs []horus.Job, nodes []uint64, options horus.BatchOptions) ([]Planned, error) {
	return ask[[]Planned](c, "PlanBatch", jobs, nodes, options)
}
func (c *child) PlanWithout(gone []uint64, jobs []horus.Job) ([]Planned, error) {
	return ask[[]Planned](c, "PlanWithout", gone, jobs)
}
func (c *child) Appraise(job horus.Job, slots []horus.Slot) (horus.Appraisal, error) {
	return ask[horus.Appraisal](c, "Appraise", job, slots)
}
func (c *child) Regret(job horus.Job, theirs []horus.Slot, nodes []uint64) (horus.Regret, error) {
	return ask[horus.Regret](c, "Regret", job, theirs, nodes)
}
func (c *child) Review(options horus.RebalanceOptions) (Reviews, error) {
	return ask[Reviews](c, "Review", options)
}

// Learn leaves the work to the child, which nothing else is asked of meanwhile.
func (c *child) Learn(observations []byte) (use func() error, err error) {
	return func() error {
		err := c.tell("Relearn", observations)
		if err == nil {
			c.options.Learned = observations // when it starts again, too
		}
		return err
	}, nil
}

// tell and ask have a method called in the child.
func (c *child) tell(method string, in ...any) error {
	return c.exchange(nil, append([]any{method}, in...)...)
}

func ask[T any](c *child, method string, in ...any) (out T, err error) {
	err = c.exchange(&out, append([]any{method}, in...)...)
	return out, err
}

// outcome of a call; what it returned follows where it went well.
type outcome struct {
	Status  horus.Status // 0 = it went well
	Message string
}

func (c *child) exchange(out any, in ...any) error {
	if c.cmd == nil {
		return ErrGone
	}
	process := c.cmd.Process
	late := time.AfterFunc(c.limit, func() { _ = process.Kill() })
	defer late.Stop()
	var told outcome
	err := send(c.enc, c.out, in)
	if err == nil {
		err = c.dec.Decode(&told)
	}
	if err == nil && told.Status == 0 && out != nil {
		err = c.dec.Decode(out)
	}
	if err != nil {
		state := c.end()
		klog.ErrorS(err, "Horus: the child process with libhorus is gone", "ended", fmt.Sprint(state), "callTimeout", c.limit)
		return ErrGone
	}
	if told.Status != 0 {
		return &horus.Error{Status: told.Status, Message: told.Message}
	}
	return nil
}

func send(enc *gob.Encoder, out *bufio.Writer, values []any) error {
	for _, value := range values {
		if err := enc.Encode(value); err != nil {
			return err
		}
	}
	return out.Flush()
}

// Serve answers what a parent asks, until its input ends.
func Serve(in io.Reader, out io.Writer) error {
	dec, buffered := gob.NewDecoder(bufio.NewReader(in)), bufio.NewWriter(out)
	enc := gob.NewEncoder(buffered)
	var options Options
	if err := dec.Decode(&options); err != nil {
		return err
	}
	l, failed := newLocal(options)
	if err := send(enc, buffered, answer(failed)); err != nil || failed != nil {
		return err
	}
	for {
		var name string
		if err := dec.Decode(&name); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		method := reflect.ValueOf(l).MethodByName(name)
		given := make([]reflect.Value, method.Type().NumIn())
		for i := range given {
			into := reflect.New(method.Type().In(i))
			if err := dec.DecodeValue(into); err != nil {
				return err
			}
			given[i] = into.Elem()
		}
		results := method.Call(given)
		failed, _ := results[len(results)-1].Interface().(error)
		if err := send(enc, buffered, answer(failed, results[:len(results)-1]...)); err != nil {
			return err
		}
	}
}

func answer(failed error, results ...reflect.Value) []any {
	var told *horus.Error
	if errors.As(failed, &told) {
		return []any{outcome{told.Status, told.Message}}
	} else if failed != nil {
		return []any{outcome{horus.ErrInternal, failed.Error()}}
	}
	out := []any{outcome{}}
	for _, result := range results {
		out = append(out, result.Interface())
	}
	return out
}
