// SPDX-License-Identifier: Apache-2.0

package shadow

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"libhorus.org/slurm/internal/slurm"
	"libhorus.org/slurm/internal/words"
)

// Options of a conversion.
type Options struct {
	Types map[string]string // gres type to a name of libhorus's catalogue
	Words []Words           // of jobs by name, the first that fits
	Out   string            // folder
}

// Words that jobs of some name would have said.
type Words struct{ Name, Comment string }

// Report of a conversion.
type Report struct {
	Jobs, Known int      // jobs of the files, and those of which words tell what they use
	Left        int      // on nodes that are not there any more
	Bad         []string // lines that could not be read
}

// ReadWords reads lines "NAME-PATTERN model=net.onnx,batch=64".
func ReadWords(in io.Reader) ([]Words, error) {
	text, err := io.ReadAll(io.LimitReader(in, 16<<20))
	if err != nil {
		return nil, err
	}
	var out []Words
	for at, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, comment, _ := strings.Cut(line, " ")
		if _, err := path.Match(name, ""); err != nil {
			return nil, fmt.Errorf("words:%d: expected a pattern such as train-*, found %q", at+1, name)
		}
		comment = words.Prefix + strings.TrimSpace(comment)
		if _, err := words.Parse(comment, "/"); err != nil {
			return nil, fmt.Errorf("words:%d: %w", at+1, err)
		}
		out = append(out, Words{name, comment})
	}
	return out, nil
}

// conversion of a log, job after job.
type conversion struct {
	options   Options
	nodes     map[string]*machine
	yaml, csv strings.Builder
	labels    map[*ran]string // of jobs that were placed
	seen      map[string]int  // how often a job ran
	report    Report
}

// Convert writes cluster.yaml, jobs.yaml and decisions.csv.
func Convert(options Options, nodes []slurm.Node, log io.Reader, name string) (Report, error) {
	byName, all, err := machines(nodes, options.Types)
	if err != nil {
		return Report{}, err
	}
	jobs, bad, err := read(log, name)
	if err != nil {
		return Report{}, err
	}
	c := &conversion{options: options, nodes: byName, labels: map[*ran]string{}, seen: map[string]int{}, report: Report{Bad: bad}}
	type event struct {
		at    int64
		place bool
		job   *ran
	}
	var events []event
	for i := range jobs {
		job := &jobs[i]
		if slices.ContainsFunc(job.hosts, func(host string) bool { return byName[host] == nil }) {
			c.report.Left++
			continue
		}
		events = append(events, event{job.start, true, job})
		if job.end > 0 {
			events = append(events, event{job.end, false, job})
		}
	}
	slices.SortStableFunc(events, func(a, b event) int {
		if c := cmp.Compare(a.at, b.at); c != 0 {
			return c
		}
		return cmp.Compare(strconv.FormatBool(a.place), strconv.FormatBool(b.place)) // who ends makes room first
	})
	c.yaml.WriteString("version: 1\njobs:\n")
	c.csv.WriteString("time_s,event,job,node,devices\n")
	for _, e := range events {
		if !e.place {
			c.finish(e.job)
		} else if err := c.place(e.job); err != nil {
			c.report.Bad = append(c.report.Bad, fmt.Sprintf("%s: job %s: %v", name, e.job.id, err))
		}
	}
	if c.report.Jobs == 0 {
		return c.report, fmt.Errorf("%s: expected jobs with GPUs (AccountingStorageTRES=gres/gpu,gres/shard makes Slurm write them down), found none", name)
	}
	if err := os.MkdirAll(options.Out, 0o755); err != nil {
		return c.report, err
	}
	for file, text := range map[string]string{"cluster.yaml": clusterFile(all), "jobs.yaml": c.yaml.String(), "decisions.csv": c.csv.String()} {
		if err := os.WriteFile(filepath.Join(options.Out, file), []byte(text), 0o644); err != nil {
			return c.report, err
		}
	}
	return c.report, nil
}

func (c *conversion) finish(job *ran) {
	label, placed := c.labels[job]
	if !placed {
		return
	}
	for _, host := range job.hosts {
		for _, d := range c.nodes[host].devices {
			delete(d.uses, label)
		}
	}
	fmt.Fprintf(&c.csv, "%d,finish,%s,,\n", job.end, label)
}

func (c *conversion) place(job *ran) error {
	on := make([]*machine, len(job.hosts))
	for h, host := range job.hosts {
		on[h] = c.nodes[host]
	}
	which, known := told(job, on)
	if !known {
		var err error
		if which, err = take(job, on); err != nil {
			return err
		}
	}
	label := "slurm-" + job.id
	if c.seen[job.id]++; c.seen[job.id] > 1 { // it was run again
		label += fmt.Sprintf("-%d", c.seen[job.id])
	}
	c.labels[job] = label
	var hosts, lists []string
	var devices []*device
	for h, of := range which {
		var list []string
		for _, position := range of {
			d := on[h].devices[position]
			d.uses[label] = cmp.Or(job.shards/len(on), -1)
			devices, list = append(devices, d), append(list, strconv.Itoa(position))
		}
		if known {
			list = []string{job.devices[h]}
		}
		if len(of) > 0 {
			hosts, lists = append(hosts, job.hosts[h]), append(lists, strings.Join(list, ";"))
		}
	}
	fmt.Fprintf(&c.csv, "%d,place,%s,%s,%s\n", job.start, label, strings.Join(hosts, "|"), strings.Join(lists, "|"))
	c.report.Jobs++
	if writeJob(&c.yaml, c.options.Words, job, label, on, which, devices) {
		c.report.Known++
	}
	return nil
}

func clusterFile(all []*machine) string {
	var b strings.Builder
	b.WriteString("version: 1\nnodes:\n")
	for _, m := range all {
		var gpus []string
		for _, d := range m.devices {
			gpus = append(gpus, fmt.Sprintf("{type: %s, sharing: time-slice}", d.model))
		}
		fmt.Fprintf(&b, "  - {name: %q, cpu_cores: %d, memory_gib: %s, gpus: [%s]}\n", m.Name, m.CPUs, gib(m.MemMiB), strings.Join(gpus, ", "))
	}
	return b.String()
}

// gib is written to the last MiB: rounded up, a job that fills a GPU or a node would fit no longer.
func gib(mib int64) string { return strconv.FormatFloat(float64(mib)/1024, 'f', -1, 64) }

// tasks of a job: one on each node where all have as many GPUs, else one for each GPU. What they take of a node is what the log
// says of all, and no more than the node has.
func tasks(job *ran, on []*machine, which [][]int) (count, gpus int, cpus float64, memMiB int64) {
	even := !slices.ContainsFunc(which, func(of []int) bool { return len(of) != len(which[0]) })
	count, gpus = len(on), len(which[0])
	if !even {
		count, gpus = len(slices.Concat(which...)), 1
	}
	cpus, memMiB = float64(job.cpus)/float64(count), job.memMiB/int64(count)
	for h, m := range on {
		here := 1
		if !even {
			here = max(1, len(which[h]))
		}
		cpus, memMiB = min(cpus, float64(m.CPUs)/float64(here)), min(memMiB, m.MemMiB/int64(here))
	}
	return count, gpus, cpus, memMiB
}

// writeJob tells whether words say what it uses. Of other jobs nobody knows: they are taken to use all that they asked for.
func writeJob(b *strings.Builder, all []Words, job *ran, label string, on []*machine, which [][]int, devices []*device) bool {
	comment := job.comment
	if !words.Ours(comment) {
		comment = ""
		for _, one := range all {
			if fits, _ := path.Match(one.Name, job.name); fits {
				comment = one.Comment
				break
			}
		}
	}
	count, gpus, cpus, memMiB := tasks(job, on, which)
	fmt.Fprintf(b, "  - {name: %q, tenant: %q, tasks: %d, gpus: %d, cpu_cores: %.3f, memory_gib: %s, submit_s: %d", label,
		cmp.Or(job.account, "none"), count, gpus, math.Floor(cpus*1000)/1000, gib(memMiB), job.start)
	said := ""
	if comment != "" {
		said = fieldsOf(comment, int64(count*gpus))
	}
	if said == "" {
		milli, least := ", gpu_milli: 1000", int64(0)
		for _, d := range devices {
			of := d.memMiB
			if job.shards > 0 && d.shards > 0 {
				of, milli = min(of, of*int64(job.shards/len(on))/int64(d.shards)), ""
			}
			if least == 0 || of < least {
				least = of
			}
		}
		fmt.Fprintf(b, "%s, demand: {any: {gpu_util_pct: 100, gpu_memory_gib: %s}}}\n", milli, gib(least))
		return false
	}
	b.WriteString(said + "}\n")
	return true
}

// fieldsOf words as jobs.yaml has them; "" where they do not say what the job uses.
func fieldsOf(comment string, gpus int64) string {
	wish, err := words.Parse(comment, "/")
	served := wish.Load.TokensIn > 0
	if err != nil || gpus%max(1, wish.Config.TensorParallel) != 0 || served && gpus != max(1, wish.Config.TensorParallel) {
		return ""
	}
	var out, demand, service []string
	uses := false
	for _, one := range words.Each(comment) {
		key, value, _ := strings.Cut(one, "=")
		switch key {
		case "wait", "profile", "steps", "sm_cap_pct": // the daemon's alone: there is no MPS in the cluster.yaml of a shadow
		case "requests_per_s", "users", "tokens_in", "tokens_out", "longest", "first_token_ms", "token_ms":
			service = append(service, key+": "+value)
		case "gpu_util_pct", "mem_bw_util_pct", "gpu_memory_gib", "step_time_ms":
			demand = append(demand, key+": "+value)
			uses = true
		case "kind":
			if !served {
				out = append(out, "kind: "+value)
			}
		case "dims":
			out = append(out, "dims: {"+strings.ReplaceAll(strings.ReplaceAll(value, ":", ": "), "+", ", ")+"}")
		case "gpu_types":
			out = append(out, "gpu_types: ["+strings.ReplaceAll(value, "+", ", ")+"]")
		case "share":
			if value == "anyone" {
				out = append(out, "share: anyone")
			}
		case "model":
			out = append(out, fmt.Sprintf("model: %q", value))
			uses = true
		default:
			out = append(out, key+": "+value)
		}
	}
	if !uses {
		return ""
	}
	if served {
		out = append(out, "kind: inference, service: {"+strings.Join(service, ", ")+"}")
	}
	if len(demand) > 0 {
		out = append(out, "demand: {any: {"+strings.Join(demand, ", ")+"}}")
	}
	return ", " + strings.Join(out, ", ")
}
