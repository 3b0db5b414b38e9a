// SPDX-License-Identifier: Apache-2.0

// Package place decides, from what a Slurm controller tells and nothing else, which waiting jobs that share GPUs may start where.
// When they start, and everything about other jobs, is Slurm's. Nothing is kept between two passes but what was predicted, and of
// which jobs Slurm has refused changes, or no pass found a node for: whoever starts anew decides the same, or a little later.
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
	Depth         int               // jobs of each user that a pass looks at; 0 = 100
	PatienceS     int64             // nobody of one priority passes who waits so long; 0 = 3600, -1 = nobody passes anybody
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
	basic       bool
	catalogue   *horus.Catalogue
	placer      *horus.Placer
	predictor   *horus.Predictor
	models      map[string]horus.GPU
	predictions map[string]predicted
	alone       map[learn.Kind]learn.Observed
	refusals    map[uint64]refusal
	fits        map[uint64]int64 // jobs of Slurm's own that it could start, and since when, in s since 1970
	never       map[uint64]int64 // jobs that fit no node, and since when every pass has found so, in s since 1970
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

// Basic says whether PriorityType=priority/basic: priorities are unique there, in the order of arrival.
func (p *Planner) Basic(is bool) { p.basic = is }

// New makes a planner.
func New(options Options) (*Planner, error) {
	if err := horus.CheckABI(); err != nil {
		return nil, err
	}
	options.WaitS, options.GraceS = cmp.Or(options.WaitS, 300), cmp.Or(options.GraceS, 60)
	options.Depth, options.MaxTenants = cmp.Or(options.Depth, 100), cmp.Or(options.MaxTenants, 3)
	options.PatienceS = cmp.Or(options.PatienceS, 3600)
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
	placer, err := learn.Placer(p.catalogue, horus.PlacerOptions{
		MaxTenants: p.options.MaxTenants, SharingQuota: p.options.SharingQuota, SlowdownBound: p.options.SlowdownBound,
		MemHeadroomMiB: -1, // shards leave it: see headroomMiB
	}, observations)
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
	Pinned   int // jobs that wait for Slurm to start them where they were placed
	Kept     int // GPUs that are kept for jobs that wait
	Waiting  int
	Oldest   int64 // s that the oldest of those that wait has waited
	Reasons  map[string]int
	Next     int64 // when the first of those that may not start yet may, in s since 1970; 0 = there is none
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
	fits    map[uint64]int64    // likewise
	never   map[uint64]int64    // see Planner
	watched map[string]*Watched // by device
	result  Result

	tiers     map[string]int    // of partitions
	ahead     int               // jobs that a GPU is kept for
	closed    int               // devices that were closed to some
	taken     map[uint64]bool   // nodes that are promised
	blocked   map[string]bool   // kinds of jobs of Slurm's own for which there are no free GPUs
	wanted    int               // GPUs of a node that the least of Slurm's own jobs which wait asks for; 0 = none waits
	lowest    int               // tier of those that hold something
	contested map[string]bool   // places that a job which may just be starting there is to lose
	heldBack  map[string]uint64 // by user, account and partition: a job that Slurm holds back for a limit
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
	theirs bool     // Slurm's own: it is not ours to place
	limit  bool     // Slurm holds it back for a limit of its user's or account's
	gres   string   // the type of device that it is bound to: see slurm.Retype
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
		} else if job.Pending() {
			if one := s.consider(job); one != nil {
				queue = append(queue, one)
			}
		}
	}
	slices.SortFunc(queue, s.order)
	if err := s.plan(ctx, queue); err != nil {
		return Result{}, err
	}
	// Who tells may not come to the end: those whose time runs out first, then those that may start, then news.
	slices.SortStableFunc(s.told, func(a, b told) int { return cmp.Compare(a.rank, b.rank) })
	for _, one := range s.told {
		if !s.contested[one.onto] || one.from == one.onto {
			s.result.Changes = append(s.result.Changes, one.change)
		}
	}
	s.tellWatched()
	p.never, p.fits = s.never, s.fits
	return s.result, nil
}

// told is a change and when its turn comes: the lowest rank first.
type told struct {
	change     slurm.Change
	rank       int64
	from, onto string // places that it leaves and takes; "" = none
}

const (
	starting = 0        // of a job that starts
	leaving  = 1        // of one that is left to Slurm
	renewal  = 2        // of one that waits on; its begin is added
	urgent   = -1 << 40 // of one whose begin is near; its begin is added
)

// settling is how long Slurm may be at starting a job that was placed, in s: what we read may be as old. It is not moved meanwhile.
const settling = 3

// consider says whether a pending job belongs to the queue of this pass. One that Slurm may just be starting is taken in as if it ran.
func (s *pass) consider(job slurm.Job) *candidate {
	c := &candidate{job: job}
	c.record, _ = words.RecordOf(job.AdminComment)
	if !words.Ours(job.Comment) || !slices.ContainsFunc(strings.Split(job.Partition, ","), s.planner.ours) || c.record.Verb == words.Left {
		c.theirs = true
		return c
	}
	if job.Priority == 0 { // held
		s.unpin(c)
		return nil
	}
	if c.record.Verb == words.Placed && s.now-c.record.At <= settling {
		s.result.Pinned++
		s.awaited(job, c.record)
		return nil
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
	c.limit = c.hasPlace() && (strings.HasPrefix(job.Reason, "QOS") || strings.HasPrefix(job.Reason, "Assoc"))
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
		if from > s.now && (s.result.Next == 0 || from < s.result.Next) {
			s.result.Next = from
		}
		s.wait(c, "not before its time, or before what it depends on has ended", "time")
		return nil
	}
	if err := s.describe(c); err != nil {
		s.leave(c, err.Error())
		return nil
	}
	if c.limit {
		s.heldBack[c.limited()] = job.ID
	}
	return c
}

// unpin a job that is held: its place is given to others, and once released it would start there all the same. Its begin is moved
// no further, so it waits for us no longer than any other.
func (s *pass) unpin(c *candidate) {
	var err error
	if c.asked, err = askOf(c.job, c.record.Asked); err == nil && c.record.On != "" {
		s.contested[c.record.On] = true
		s.wait(c, "it is held", "held")
	}
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

// isOrdinary: also with what follows, as in "ReqNodeNotAvail, UnavailableNodes:n2".
func isOrdinary(reason string) bool {
	return slices.ContainsFunc(ordinary, func(one string) bool { return one == reason || strings.HasPrefix(reason, one+",") })
}

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
	case moreThanAll(c.job):
		return "it asks for features by more than &"
	case c.hasPlace() && !c.limit && !isOrdinary(c.job.Reason):
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
	c.horus = horus.Job{
		ID: job.ID, Kind: c.wish.Kind, Name: fmt.Sprint(job.ID), Tenant: owner(job), GPUsPerTask: 1,
		SlowdownBound: c.wish.SlowdownBound, SlowdownConfidence: c.wish.SlowdownConfidence, SMCapPct: c.wish.SMCapPct, Demands: demands,
		CPUMilli: int64(job.CPUs) * 1000, MemMiB: job.MemMiB, Selectors: []horus.Label{{Key: shards, Value: "1"}},
	}
	if c.wish.Anyone {
		c.horus.Share = horus.ShareAnyone
	}
	// One of several partitions will do, but then it has to be one: the first of ours.
	for _, name := range strings.Split(job.Partition, ",") {
		if s.planner.ours(name) {
			c.horus.Selectors = append(c.horus.Selectors, horus.Label{Key: "partition/" + name, Value: "1"})
			break
		}
	}
	for _, name := range featuresOf(job) {
		c.horus.Selectors = append(c.horus.Selectors, horus.Label{Key: "feature/" + name, Value: "1"})
	}
	if err := s.confine(c); err != nil {
		return err
	}
	if slurm.Typed(job.Tres.PerNode) && !s.planner.options.Replaces {
		c.gres = slurm.GresOf(job.Tres.PerNode)[0].Type
	}
	c.kind = fmt.Sprint(owner(job), "|", job.Partition, "|", job.Features, "|", words.Each(job.Comment), c.wish.Model, c.asked.shards, job.CPUs, job.MemMiB, "|", c.required(), "|", job.Excluded)
	return nil
}

// featuresOf names the features of which a job wants all, unless it asks for moreThanAll.
func featuresOf(job slurm.Job) []string {
	return strings.FieldsFunc(job.Features, func(r rune) bool { return r == '&' || r == ',' })
}

func moreThanAll(job slurm.Job) bool { return strings.ContainsAny(job.Features, "|[]*()") }

func up(n, by int) int { return (n + by - 1) / by }

// required are the nodes that its user listed. Where it has a place, its list is ours.
func (c *candidate) required() string {
	if c.record.On != "" {
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

// never is how the sentence of a job begins that fits no node, as the nodes are told.
const never = "never fits: "

// reject leaves a job to Slurm that no pass has found a node for in a while: a controller that has just started does not know what
// its nodes have, and Slurm before 24.11 then gives a GPU's shards again. What a comment says of a minute ago is not enough for that.
func (s *pass) reject(c *candidate, refused horus.Decision) {
	since, is := s.planner.never[c.job.ID]
	if !is {
		since = s.now
	}
	s.never[c.job.ID] = since
	if s.now-since >= newsS {
		s.leave(c, never+refused.Text)
		return
	}
	s.wait(c, never+refused.Text, refused.Reason.String())
}

// place lets a job start where the library put it.
func (s *pass) place(c *candidate, decision horus.Decision) {
	n, at := s.byID[decision.Slots[0].Node-1], decision.Slots[0].Device
	d := &n.devices[at]
	record := words.Record{
		Verb: words.Placed, At: s.now, Slow: fmt.Sprintf("%.2f..%.2f", decision.Slowdown, decision.SlowdownUpper),
		Text: decision.Text,
	}
	if math.IsInf(float64(decision.SlowdownUpper), 0) {
		record.Slow = fmt.Sprintf("%.2f..", decision.Slowdown)
	}
	var count int
	count, record.Mem = c.shards(d)
	d.tenants, d.sharing, d.ends, d.tier = d.tenants+1, d.sharing+1, math.MaxInt64, max(d.tier, s.tierOf(c.job))
	s.pin(c, n, at, count, record)
}

// shards of a device that a job gets, and the MiB that are counted for it.
func (c *candidate) shards(d *device) (count int, mem int64) {
	mem = min(c.memory(d.model), int64(d.shards)*d.unit)
	return max(1, int((mem+d.unit-1)/d.unit)), mem
}

// memory that is counted for a job on a type of GPU, in MiB.
func (c *candidate) memory(model string) int64 {
	for _, demand := range c.horus.Demands {
		if demand.GPUType == model {
			return max(demand.Demand.MemMiB, demand.Demand.MemMiBUpper)
		}
	}
	return math.MaxInt64
}

// pin a job to so many shards of a device: it is Slurm's to start it there from now on.
func (s *pass) pin(c *candidate, n *node, at uint32, count int, record words.Record) {
	gres := n.devices[at].gres
	if c.wish.Load.TokensIn > 0 {
		if known := s.planner.predict(c.wish, []string{n.devices[at].model}); known.err == nil { // its file may be gone by now
			record.Engine = known.engine[0]
		}
	}
	if s.planner.options.Sharing == horus.MPS {
		record.SMCapPct = int64(c.wish.SMCapPct)
		if c.wish.Given != nil { // what is predicted may err: no reason to end a job
			record.LimitMiB = record.Mem
		}
	}
	record.From, record.Asked, record.Nodes, record.On = s.from(c), c.asked.remember(), c.required(), n.name+"/"+gres
	apart, set := slurm.Retype(c.job.Tres, fmt.Sprintf("gres:shard:%s:%d", gres, count), s.planner.options.Replaces)
	set = append(set, slurm.Setting{Field: "ReqNodeList", Value: n.name}, slurm.Setting{Field: "StartTime", Value: "now"})
	steps := []slurm.Step{append(set, comment(record))}
	if apart { // scontrol reads what it is told byte by byte, each for three calls of the kernel: the sentence is said once
		moving := words.Record{Verb: words.Waits, From: record.From, Asked: record.Asked}
		steps = slices.Insert(steps, 0, slurm.Step{{Field: "TresPerNode"}, {Field: "StartTime", Value: "now+365days"}, comment(moving)})
	}
	s.tell(c, starting, steps...)
	s.told[len(s.told)-1].onto = record.On
}

func comment(record words.Record) slurm.Setting {
	return slurm.Setting{Field: "AdminComment", Value: record.String()}
}

// hasPlace says whether a job waits where we pinned it.
func (c *candidate) hasPlace() bool { return c.record.On != "" }

// leave a job to Slurm, as it was submitted.
func (s *pass) leave(c *candidate, why string) {
	record := words.Record{Verb: words.Left, At: s.now, Asked: c.record.Asked, Text: why}
	begin := "now"
	if from := s.from(c); from > s.now {
		begin = stamp(from)
	}
	s.change(c, leaving, s.restore(c), begin, record)
}

// restore takes a place back, and makes a job ask again for what it was submitted with.
func (s *pass) restore(c *candidate) []slurm.Setting {
	asked, err := askOf(c.job, c.record.Asked)
	if c.record.Asked == "" || err != nil { // what is wrong with it is not ours to mend
		return nil
	}
	set := asked.restore(c.job.Tres, s.planner.options.Replaces)
	if c.hasPlace() {
		set = append(set, slurm.Setting{Field: "ReqNodeList", Value: c.required()})
	}
	return set
}

// wait on: the job's begin is moved, so that Slurm starts it as it was submitted once nobody moves it any more.
func (s *pass) wait(c *candidate, why, reason string) {
	s.waits(c, reason)
	wait := s.planner.options.WaitS
	record := words.Record{Verb: words.Waits, From: s.from(c), At: s.now, Asked: c.asked.remember(), Text: why}
	if record.From > s.now {
		if c.record.Verb == "" && c.job.Eligible == record.From {
			return // its own begin, which is not ours to move
		}
		wait += record.From - s.now
	}
	set := s.restore(c)
	if len(set) == 0 && c.record.Verb == words.Waits && c.job.Eligible-s.now > wait/2 &&
		(c.record.Text == record.Text || s.now-c.record.At < newsS) {
		return
	}
	rank := renewal + c.job.Eligible
	if c.job.Eligible-s.now < s.planner.options.WaitS/4 {
		rank = urgent + c.job.Eligible
	}
	s.change(c, rank, set, fmt.Sprintf("now+%d", wait), record)
}

// newsS is how old the sentence of a waiting job is before another takes its place: each costs the controller a call.
const newsS = 60

// change what a job that is not placed asks for, and when it may start.
func (s *pass) change(c *candidate, rank int64, set []slurm.Setting, begin string, record words.Record) {
	s.tell(c, rank, append(set, slurm.Setting{Field: "StartTime", Value: begin}, comment(record)))
}

func (s *pass) tell(c *candidate, rank int64, steps ...slurm.Step) {
	one := told{change: slurm.Change{Job: c.job.ID, Steps: steps}, rank: rank}
	if c.hasPlace() {
		one.from = c.record.On
		// Till it is told it asks for all shards there, which a Slurm that forgets who holds some would give it.
		s.contested[one.from] = s.contested[one.from] || c.record.Verb == words.Waits && !s.planner.options.Replaces
	}
	s.told = append(s.told, one)
}
