// SPDX-License-Identifier: Apache-2.0

// Package place decides, from what a Slurm controller tells and nothing else, which waiting jobs may start where. Nothing
// is kept between two passes but what was predicted: whoever starts anew decides the same.
package place

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"libhorus.org/horus"
	"libhorus.org/learn"
	"libhorus.org/slurm/internal/slurm"
	"libhorus.org/slurm/internal/words"
)

// Options of a Planner. Zero values are defaults.
type Options struct {
	Partitions    []string
	Types         map[string]string // gres type, with or without its number, to a name of libhorus's catalogue
	WaitS         int64             // how long a job waits for us at most once we are silent; 0 = 300
	GraceS        int64             // how long Slurm may take to start what was placed, before it is placed anew; 0 = 60
	Depth         int               // jobs of the queue that a pass looks at; 0 = 1,000
	MaxTenants    int32             // on a GPU; 0 = 3
	Sharing       horus.SharingMode // of all GPUs; 0 = time slicing
	SharingQuota  float32           // as horus.PlacerOptions
	SlowdownBound float32           // as horus.PlacerOptions
	Replaces      bool              // Slurm puts a new request in the place of the old one: slurm.Retype
	Watch         bool              // tell what runs where
}

// Planner holds the library's handles.
type Planner struct {
	options     Options
	catalogue   *horus.Catalogue
	placer      *horus.Placer
	predictor   *horus.Predictor
	models      map[string]horus.GPU
	predictions map[string]predicted
	alone       map[learn.Kind]learn.Observed
	refusals    map[uint64]refusal
}

// refusal is what Slurm answered to changes of a job, and how often.
type refusal struct {
	times int
	last  string
}

// patience is how often Slurm may refuse to have a job changed; what it refuses so often it is to place itself.
const patience = 3

// Refused tells that Slurm refused a change.
func (p *Planner) Refused(job uint64, why string) {
	if len(p.refusals) >= mostPredictions {
		clear(p.refusals)
	}
	p.refusals[job] = refusal{p.refusals[job].times + 1, why}
}

// New makes a planner.
func New(options Options) (*Planner, error) {
	if err := horus.CheckABI(); err != nil {
		return nil, err
	}
	options.WaitS, options.GraceS = cmp.Or(options.WaitS, 300), cmp.Or(options.GraceS, 60)
	options.Depth, options.MaxTenants = cmp.Or(options.Depth, 1000), cmp.Or(options.MaxTenants, 3)
	p := &Planner{options: options, models: map[string]horus.GPU{}, predictions: map[string]predicted{}, refusals: map[uint64]refusal{}}
	var err error
	if p.catalogue, err = horus.DefaultCatalogue(); err != nil {
		return nil, err
	}
	if p.predictor, err = horus.NewPredictor(); err != nil {
		return nil, err
	}
	return p, p.Use(nil, nil)
}

// Use what was learned: observations that correct the library's model of interference, and what kinds of jobs do alone. None of
// both is as it comes.
func (p *Planner) Use(observations []byte, alone map[learn.Kind]learn.Observed) error {
	options := horus.PlacerOptions{
		MaxTenants: p.options.MaxTenants, SharingQuota: p.options.SharingQuota, SlowdownBound: p.options.SlowdownBound,
		MemHeadroomMiB: -1, // shards leave it: see headroomMiB
	}
	if len(observations) > 0 {
		model, err := learn.Corrected(p.catalogue, observations)
		if err != nil {
			return err
		}
		defer model.Close()
		options.Interference = model
	}
	placer, err := horus.NewPlacer(options)
	if err != nil {
		return err
	}
	if p.placer != nil {
		p.placer.Close()
	}
	p.placer, p.alone = placer, alone
	return nil
}

func (p *Planner) ours(partition string) bool {
	return slices.Contains(p.options.Partitions, partition)
}

// Result of a pass.
type Result struct {
	Changes  []slurm.Change
	Placed   int
	Waiting  int
	Left     int // jobs that this pass leaves to Slurm
	Watched  []Watched
	Problems []string // what was found wrong in nodes and running jobs, for the log
}

// pass is one look at everything.
type pass struct {
	planner *Planner
	cluster *horus.Cluster
	nodes   map[string]*node
	byID    []*node
	models  []string         // catalogue names of the cluster's GPUs
	units   map[string]int64 // MiB of a shard, the largest of each
	now     int64
	told    []told
	watched map[string]*Watched // by device
	result  Result
}

func (s *pass) problem(format string, a ...any) {
	s.result.Problems = append(s.result.Problems, fmt.Sprintf(format, a...))
}

// candidate is a job that waits for a place.
type candidate struct {
	job    slurm.Job
	record words.Record // Verb "" = it has none of ours
	asked  ask
	wish   words.Wish
	horus  horus.Job
	kind   string   // candidates of one kind are answered alike
	only   []uint64 // nodes that it may use; nil = all
	held   bool     // by us, who were about to move it
}

// owner is whose jobs share with each other.
func owner(job slurm.Job) string { return cmp.Or(job.Account, job.User) }

// Pass decides. `now` is in s since 1970.
func (p *Planner) Pass(ctx context.Context, nodes []slurm.Node, jobs []slurm.Job, now int64) (Result, error) {
	s, err := p.layout(nodes)
	if err != nil {
		return Result{}, err
	}
	defer s.cluster.Close()
	s.now = now
	var queue []*candidate
	for _, job := range jobs {
		if job.Running() {
			s.resident(job)
			continue
		}
		if job.Pending() && words.Ours(job.Comment) && slices.ContainsFunc(strings.Split(job.Partition, ","), p.ours) {
			if one := s.consider(job); one != nil {
				queue = append(queue, one)
			}
		}
	}
	slices.SortFunc(queue, func(a, b *candidate) int {
		return cmp.Or(-cmp.Compare(a.job.Priority, b.job.Priority), cmp.Compare(a.job.Submitted, b.job.Submitted), cmp.Compare(a.job.ID, b.job.ID))
	})
	if err := s.plan(ctx, queue); err != nil {
		return Result{}, err
	}
	// Who tells may not come to the end: those whose time runs out first, then those that may start, then news.
	slices.SortStableFunc(s.told, func(a, b told) int { return cmp.Compare(a.rank, b.rank) })
	for _, one := range s.told {
		s.result.Changes = append(s.result.Changes, one.change)
	}
	s.tellWatched()
	return s.result, nil
}

// told is a change and when its turn comes: the lowest rank first.
type told struct {
	change slurm.Change
	rank   int64
}

const (
	starting = 0        // of a job that starts
	leaving  = 1        // of one that is left to Slurm
	renewal  = 2        // of one that waits on; its begin is added
	urgent   = -1 << 40 // of one whose begin is near; its begin is added
)

// consider says whether a pending job of ours is to be placed now. What was placed already is taken in as if it ran.
func (s *pass) consider(job slurm.Job) *candidate {
	c := &candidate{job: job}
	c.record, _ = words.RecordOf(job.AdminComment)
	if job.Priority == 0 { // held by its user or an administrator, unless we were about to move it
		if c.record.Verb != words.Moving || job.Reason != "JobHeldAdmin" {
			return nil
		}
		if slurm.Typed(job.Tres.PerNode) { // it was cut short before the last step
			s.awaited(job, c.record)
			s.tell(c, urgent, slurm.Step{Release: true}, placed(c.record))
			return nil
		}
		c.held = true
	}
	switch c.record.Verb {
	case words.Left:
		return nil
	case words.Placed, words.Moving:
		if !c.held && s.now-c.record.At <= s.planner.options.GraceS {
			s.awaited(job, c.record)
			return nil
		}
	}
	var err error
	if c.wish, err = words.Parse(job.Comment, job.WorkDir); err != nil {
		s.leave(c, err.Error())
		return nil
	}
	if c.asked, err = askOf(job, c.record.Asked); err != nil {
		s.leave(c, err.Error())
		return nil
	}
	if why := s.slurms(c); why != "" {
		s.leave(c, why)
		return nil
	}
	if refused := s.planner.refusals[job.ID]; refused.times >= patience {
		s.leave(c, "Slurm would not have it placed: "+refused.last)
		return nil
	}
	from := s.from(c)
	if from > s.now || job.Dependency != "" {
		s.wait(c, "not before its time, or before what it depends on has ended")
		return nil
	}
	if err := s.describe(c); err != nil {
		s.leave(c, err.Error())
		return nil
	}
	return c
}

// from is when a job may start, in s since 1970.
func (s *pass) from(c *candidate) int64 {
	switch {
	case c.record.Verb != "":
		return c.record.From
	case c.wish.WaitS > 0:
		return c.job.Eligible - c.wish.WaitS
	}
	return c.job.Eligible
}

// ordinary reasons why Slurm has not started a job that was placed: those that another place may mend.
var ordinary = []string{"None", "Resources", "Priority", "BeginTime", "ReqNodeNotAvail", "NodeDown", "BadConstraints", "PartitionNodeLimit", "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"}

// slurms are the jobs that only Slurm can place, and why.
func (s *pass) slurms(c *candidate) string {
	switch {
	case c.job.Array:
		return "it is an array"
	case c.job.Het:
		return "it is heterogeneous"
	case c.job.WholeNodes:
		return "it asks for whole nodes"
	case c.job.Reservation != "":
		return "it asks for a reservation"
	case c.job.Licenses != "":
		return "it asks for licences"
	case strings.ContainsAny(c.job.Features, "|[]*()"):
		return "it asks for features by more than &"
	case c.hasPlace() && !slices.Contains(ordinary, c.job.Reason):
		return "it was placed, and Slurm holds it back: " + c.job.Reason
	}
	return ""
}

// describe makes the library's job.
func (s *pass) describe(c *candidate) error {
	demands, err := s.demands(c.wish, c.asked, owner(c.job))
	if err != nil {
		return err
	}
	job := c.job
	shares := c.asked.name == "shard"
	c.horus = horus.Job{
		ID: job.ID, Kind: c.wish.Kind, Name: fmt.Sprint(job.ID), Tenant: owner(job), Exclusive: !shares,
		Tasks: int32(job.NodeCount), GPUsPerTask: int32(c.asked.perNode), SpreadTasks: job.NodeCount > 1,
		SlowdownBound: c.wish.SlowdownBound, SlowdownConfidence: c.wish.SlowdownConfidence, Demands: demands,
		CPUMilli: int64(up(job.CPUs, job.NodeCount)) * 1000, MemMiB: (job.MemMiB + int64(job.NodeCount) - 1) / int64(job.NodeCount),
	}
	if c.wish.Anyone {
		c.horus.Share = horus.ShareAnyone
	}
	if shares {
		c.horus.GPUsPerTask = 1
		c.horus.Selectors = append(c.horus.Selectors, horus.Label{Key: shards, Value: "1"})
	} else {
		c.horus.SlowdownBound, c.horus.SlowdownConfidence = 0, 0
	}
	// One of several partitions will do, but then it has to be one: the first of ours.
	for _, name := range strings.Split(job.Partition, ",") {
		if s.planner.ours(name) {
			c.horus.Selectors = append(c.horus.Selectors, horus.Label{Key: "partition/" + name, Value: "1"})
			break
		}
	}
	for _, name := range strings.FieldsFunc(job.Features, func(r rune) bool { return r == '&' || r == ',' }) {
		c.horus.Selectors = append(c.horus.Selectors, horus.Label{Key: "feature/" + name, Value: "1"})
	}
	if err := s.confine(c); err != nil {
		return err
	}
	alike := c.horus
	alike.ID, alike.Name = 0, ""
	c.kind = fmt.Sprintf("%+v|%s|%s", alike, c.required(), job.Excluded)
	return nil
}

func up(n, by int) int { return (n + by - 1) / by }

// required are the nodes that its user listed. Where it was placed before, its list is ours.
func (c *candidate) required() string {
	if c.record.Verb == words.Placed || c.record.Verb == words.Moving {
		return c.record.Nodes
	}
	return c.job.Required
}

// confine a job to the nodes that it lists and does not exclude.
func (s *pass) confine(c *candidate) error {
	required := c.required()
	if required == "" && c.job.Excluded == "" {
		return nil
	}
	wanted, err := slurm.Hosts(required)
	if err != nil {
		return err
	}
	refused, err := slurm.Hosts(c.job.Excluded)
	if err != nil {
		return err
	}
	c.only = []uint64{}
	for _, n := range s.byID {
		if (required == "" || slices.Contains(wanted, n.name)) && !slices.Contains(refused, n.name) {
			c.only = append(c.only, n.id)
		}
	}
	return nil
}

// chunk of the queue that is planned in one call: those of a kind that finds no place are passed over afterwards.
const chunk = 32

// plan places the queue in its order. Slurm's priorities order it and no more: a job's work counts as much as another's.
func (s *pass) plan(ctx context.Context, queue []*candidate) error {
	full := map[string]string{} // kinds that found no place, and why
	looked := 0
	for len(queue) > 0 {
		var now []*candidate
		for len(queue) > 0 && len(now) < chunk {
			c := queue[0]
			if why, is := full[c.kind]; is {
				s.wait(c, why)
			} else if looked >= s.planner.options.Depth {
				s.wait(c, fmt.Sprintf("behind %d others", looked))
			} else if c.alone() && len(now) > 0 {
				break
			} else {
				looked++
				c.horus.SubmitUs = int64(looked)
				now = append(now, c)
			}
			queue = queue[1:]
			if c.alone() {
				break
			}
		}
		if len(now) == 0 {
			continue
		}
		lift, err := s.restrict(now[0])
		if err == nil {
			err = s.planSome(ctx, now, full)
		}
		if err = cmp.Or(err, lift()); err != nil {
			return err
		}
	}
	return nil
}

// alone says whether a job has to be planned by itself: not every node or device is open to it.
func (c *candidate) alone() bool { return c.only != nil || slurm.Typed(c.job.Tres.PerNode) }

// restrict leaves to a job whose request has types already the devices of these types: see slurm.Retype. lift ends it.
func (s *pass) restrict(c *candidate) (lift func() error, err error) {
	none := func() error { return nil }
	if !slurm.Typed(c.job.Tres.PerNode) {
		return none, nil
	}
	types := slurm.GresOf(c.job.Tres.PerNode)
	set := func(state horus.State) error {
		for _, n := range s.byID {
			for i, d := range n.devices {
				if slices.ContainsFunc(types, func(g slurm.Gres) bool { return g.Type == d.gres }) {
					continue
				}
				if err := s.cluster.SetState(n.id, uint32(i), state); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return func() error { return set(horus.Up) }, set(horus.Drained)
}

func (s *pass) planSome(ctx context.Context, some []*candidate, full map[string]string) error {
	jobs := make([]horus.Job, len(some))
	byID := map[uint64]*candidate{}
	for i, c := range some {
		jobs[i], byID[c.horus.ID] = c.horus, c
	}
	plan, err := s.planner.placer.Plan(ctx, s.cluster, jobs, some[0].only)
	if err != nil {
		if len(some) > 1 { // one of them is wrong: each by itself
			for _, c := range some {
				if err := s.planSome(ctx, []*candidate{c}, full); err != nil {
					return err
				}
			}
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		s.leave(some[0], err.Error())
		return nil
	}
	defer plan.Close()
	if err := s.cluster.Apply(plan); err != nil {
		return err
	}
	for i := range plan.Len() {
		decision, err := plan.Decision(i)
		if err != nil {
			return err
		}
		c := byID[decision.JobID]
		switch decision.Verdict {
		case horus.Place:
			s.place(c, decision)
		case horus.Reject:
			s.reject(c, decision.Text)
		default:
			full[c.kind] = decision.Text
			s.wait(c, decision.Text)
		}
	}
	return nil
}

// never is how the sentence of a job begins that fits no node, as the nodes are told.
const never = "never fits: "

// reject leaves a job to Slurm that still fits no node a while later: a controller that has just started does not know what its
// nodes have.
func (s *pass) reject(c *candidate, why string) {
	if c.record.Verb == words.Waits && strings.HasPrefix(c.record.Text, never) && s.now-c.record.At >= newsS {
		s.leave(c, never+why)
		return
	}
	s.wait(c, never+why)
}

// place lets a job start where the library put it.
func (s *pass) place(c *candidate, decision horus.Decision) {
	request, hosts, on, mem, why := s.request(c, decision.Slots)
	if why != "" {
		s.leave(c, why)
		return
	}
	record := words.Record{
		Verb: words.Placed, From: s.from(c), At: s.now, Asked: c.asked.remember(), Nodes: c.required(), On: on, Mem: mem,
		Slow: fmt.Sprintf("%.2f..%.2f", decision.Slowdown, decision.SlowdownUpper), Text: decision.Text,
	}
	if math.IsInf(float64(decision.SlowdownUpper), 0) {
		record.Slow = fmt.Sprintf("%.2f..", decision.Slowdown)
	}
	apart, set := slurm.Retype(c.job.Tres, request, s.planner.options.Replaces)
	set = append(set, slurm.Setting{Field: "ReqNodeList", Value: hosts}, slurm.Setting{Field: "StartTime", Value: "now"})
	s.result.Placed++
	if !apart && !c.held {
		s.tell(c, starting, slurm.Step{Set: append(set, comment(record))})
		return
	}
	// scontrol reads what it is told byte by byte, each for three calls of the kernel: the sentence is said once, at the end.
	moving := record
	moving.Verb, moving.Text = words.Moving, ""
	var steps []slurm.Step
	if apart {
		steps = append(steps, slurm.Step{Set: []slurm.Setting{
			{Field: "TresPerNode"}, {Field: "Priority", Value: "0"}, // and even where somebody ends our hold:
			{Field: "StartTime", Value: fmt.Sprintf("now+%d", s.planner.options.WaitS)}, comment(moving),
		}})
	} else {
		set = append(set, comment(moving))
	}
	s.tell(c, starting, append(steps, slurm.Step{Set: set}, slurm.Step{Release: true}, placed(record))...)
}

func comment(record words.Record) slurm.Setting {
	return slurm.Setting{Field: "AdminComment", Value: record.String()}
}

// placed is the last step of a job that was moving.
func placed(record words.Record) slurm.Step {
	record.Verb = words.Placed
	return slurm.Step{Set: []slurm.Setting{comment(record)}}
}

// hasPlace says whether a job waits on nodes that we named.
func (c *candidate) hasPlace() bool {
	return c.record.Verb == words.Placed || c.record.Verb == words.Moving && !c.held
}

// request is what a job has to ask of Slurm to get these devices; `why` says that it cannot be asked for.
func (s *pass) request(c *candidate, slots []horus.Slot) (request, hosts, on string, mem int64, why string) {
	var names, places []string
	types := map[uint64][]string{}
	slices.SortFunc(slots, func(a, b horus.Slot) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Device, b.Device)) })
	for _, slot := range slots {
		n := s.byID[slot.Node-1]
		if !slices.Contains(names, n.name) {
			names = append(names, n.name)
		}
		d := n.devices[slot.Device]
		places = append(places, n.name+"/"+d.gres)
		types[slot.Node] = append(types[slot.Node], "gres:gpu:"+d.gres+":1")
		for _, demand := range c.horus.Demands {
			if demand.GPUType == d.model {
				mem = max(demand.Demand.MemMiB, demand.Demand.MemMiBUpper)
			}
		}
	}
	hosts, on = strings.Join(names, ","), strings.Join(places, "+")
	n := s.byID[slots[0].Node-1]
	if c.asked.name == "shard" {
		d := n.devices[slots[0].Device]
		shards := min(int64(d.shards), (mem+d.unit-1)/d.unit)
		return fmt.Sprintf("gres:shard:%s:%d", d.gres, max(1, shards)), hosts, on, min(mem, int64(d.shards)*d.unit), ""
	}
	request = strings.Join(types[slots[0].Node], ",")
	for id, one := range types {
		if strings.Join(one, ",") == request {
			continue
		}
		// Slurm asks the same of every node. Without types it takes any GPUs of each, which are alike.
		if s.byID[id-1].model == "" || s.byID[id-1].model != n.model {
			return "", "", "", 0, "it would get GPUs of other positions on each node, and those are of several types"
		}
		request = fmt.Sprintf("gres:gpu:%d", len(one))
	}
	if slurm.Typed(c.job.Tres.PerNode) && !slurm.Typed(request) {
		return "", "", "", 0, "it was placed before, and only Slurm can give it GPUs of other positions on each node now"
	}
	return request, hosts, on, mem, ""
}

// leave a job to Slurm, as it was submitted.
func (s *pass) leave(c *candidate, why string) {
	record := words.Record{Verb: words.Left, At: s.now, Asked: c.record.Asked, Text: why}
	begin := "now"
	if from := s.from(c); from > s.now {
		begin = stamp(from)
	}
	s.change(c, leaving, c.restore(), begin, record)
	s.result.Left++
}

// restore takes a place back, and makes a job ask again for what it was submitted with.
func (c *candidate) restore() []slurm.Setting {
	asked, _ := askOf(c.job, c.record.Asked) // what is wrong with it is not ours to mend
	if c.record.Asked == "" || asked.request == "" {
		return nil
	}
	set := asked.restore(c.job.Tres)
	if c.hasPlace() {
		set = append(set, slurm.Setting{Field: "ReqNodeList", Value: c.required()})
	}
	return set
}

// wait on: the job's begin is moved, so that Slurm starts it as it was submitted once nobody moves it any more.
func (s *pass) wait(c *candidate, why string) {
	s.result.Waiting++
	wait := s.planner.options.WaitS
	record := words.Record{Verb: words.Waits, From: s.from(c), At: s.now, Asked: c.asked.remember(), Text: why}
	if record.From > s.now {
		if c.record.Verb == "" && c.job.Eligible == record.From {
			return // its own begin, which is not ours to move
		}
		wait += record.From - s.now
	}
	set := c.restore()
	if len(set) == 0 && c.record.Verb == words.Waits && c.job.Eligible-s.now > wait/2 &&
		(c.record.Text == record.Text || s.now-c.record.At < newsS) {
		return
	}
	if strings.HasPrefix(why, never) && strings.HasPrefix(c.record.Text, never) {
		record.At = c.record.At
	}
	rank := renewal + c.job.Eligible
	if c.held || c.job.Eligible-s.now < s.planner.options.WaitS/4 {
		rank = urgent + c.job.Eligible
	}
	s.change(c, rank, set, fmt.Sprintf("now+%d", wait), record)
}

// newsS is how old the sentence of a waiting job is before another takes its place: each costs the controller a call.
const newsS = 60

// change what a job that is not placed asks for, and when it may start.
func (s *pass) change(c *candidate, rank int64, set []slurm.Setting, begin string, record words.Record) {
	steps := []slurm.Step{{Set: append(set, slurm.Setting{Field: "StartTime", Value: begin}, comment(record))}}
	if c.held {
		steps = append(steps, slurm.Step{Release: true})
	}
	s.tell(c, rank, steps...)
}

func (s *pass) tell(c *candidate, rank int64, steps ...slurm.Step) {
	s.told = append(s.told, told{slurm.Change{Job: c.job.ID, Steps: steps}, rank})
}
