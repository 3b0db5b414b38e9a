// SPDX-License-Identifier: Apache-2.0

package shadow

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"libhorus.org/horus"
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

type device struct {
	model  string
	shards int
	uses   map[string]int // shards of each job; -1 = the whole GPU
}

func (d *device) used() int {
	sum := 0
	for _, n := range d.uses {
		if n < 0 {
			return 1 << 20
		}
		sum += n
	}
	return sum
}

type machine struct {
	slurm.Node
	devices []*device
}

var numbered = regexp.MustCompile(`_[0-9]+$`)

// machines with GPUs, migrated or not.
func machines(nodes []slurm.Node, types map[string]string) (map[string]*machine, []*machine, error) {
	catalogue, err := horus.DefaultCatalogue()
	if err != nil {
		return nil, nil, err
	}
	defer catalogue.Close()
	byName, all := map[string]*machine{}, []*machine(nil)
	for _, node := range slices.SortedFunc(slices.Values(nodes), func(a, b slurm.Node) int { return cmp.Compare(a.Name, b.Name) }) {
		m := &machine{Node: node}
		for _, g := range slurm.GresOf(node.Gres) {
			bare := numbered.ReplaceAllString(g.Type, "")
			name := cmp.Or(types[g.Type], types[bare], bare)
			at, err := catalogue.Find(name)
			if err != nil {
				return nil, nil, fmt.Errorf("node %s: gres type %q: %w (say --types %s=NAME)", node.Name, g.Type, err, cmp.Or(bare, "gpu"))
			}
			gpu, err := catalogue.At(at)
			if err != nil {
				return nil, nil, err
			}
			if g.Name == "gpu" {
				for range g.Count {
					m.devices = append(m.devices, &device{model: gpu.Name, uses: map[string]int{}})
				}
			}
		}
		total := 0
		for _, g := range slurm.GresOf(node.Gres) {
			if g.Name == "shard" {
				total += g.Count
			}
		}
		for _, d := range m.devices {
			d.shards = total / len(m.devices)
		}
		if len(m.devices) > 0 {
			byName[node.Name], all = m, append(all, m)
		}
	}
	if len(all) == 0 {
		return nil, nil, fmt.Errorf("expected nodes with GPUs, found none")
	}
	return byName, all, nil
}

// take devices of a node for a job: Slurm does not write down which. Whole GPUs are the first that are free, shards go onto the
// first GPU with room for them, as its own choice does.
func (m *machine) take(id string, gpus, shards int) []int {
	var out []int
	order := make([]int, len(m.devices))
	for i := range order {
		order[i] = i
	}
	if shards > 0 {
		for i, d := range m.devices {
			if d.used()+shards <= d.shards {
				d.uses[id] = shards
				return []int{i}
			}
		}
		gpus = 1 // nobody has room by the second: the least used
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(m.devices[a].used(), m.devices[b].used()) })
	for _, i := range order[:min(gpus, len(order))] {
		m.devices[i].uses[id] = cmp.Or(shards, -1)
		out = append(out, i)
	}
	slices.Sort(out)
	return out
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
	report := Report{Bad: bad}
	type event struct {
		at    int64
		place bool
		job   *ran
	}
	var events []event
	for i := range jobs {
		job := &jobs[i]
		if slices.ContainsFunc(job.hosts, func(host string) bool { return byName[host] == nil }) {
			report.Left++
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
	yaml, csv := &strings.Builder{}, &strings.Builder{}
	yaml.WriteString("version: 1\njobs:\n")
	csv.WriteString("time_s,event,job,node,devices\n")
	seen := map[string]int{}
	label := map[*ran]string{}
	for _, e := range events {
		job := e.job
		if !e.place {
			for _, host := range job.hosts {
				for _, d := range byName[host].devices {
					delete(d.uses, label[job])
				}
			}
			fmt.Fprintf(csv, "%d,finish,%s,,\n", e.at, label[job])
			continue
		}
		seen[job.id]++
		label[job] = "slurm-" + job.id
		if seen[job.id] > 1 { // it was run again
			label[job] += fmt.Sprintf("-%d", seen[job.id])
		}
		var at, which []string
		per := job.gpus / len(job.hosts)
		model := byName[job.hosts[0]].devices[0].model
		for h, host := range job.hosts {
			if job.devices != nil {
				at, which = append(at, host), append(which, job.devices[h])
				if first := slurmIndex(job.devices[h]); first < len(byName[host].devices) {
					model = byName[host].devices[first].model
				}
				continue
			}
			var list []string
			for _, i := range byName[host].take(label[job], max(per, 1), job.shards) {
				list = append(list, strconv.Itoa(i))
				model = byName[host].devices[i].model
			}
			at, which = append(at, host), append(which, strings.Join(list, ";"))
		}
		fmt.Fprintf(csv, "%d,place,%s,%s,%s\n", e.at, label[job], strings.Join(at, "|"), strings.Join(which, "|"))
		report.Jobs++
		if writeJob(yaml, options.Words, job, label[job], model, max(per, 1), byName[job.hosts[0]].devices[0].shards) {
			report.Known++
		}
	}
	if report.Jobs == 0 {
		return report, fmt.Errorf("%s: expected jobs with GPUs (AccountingStorageTRES=gres/gpu,gres/shard makes Slurm write them down), found none", name)
	}
	if err := os.MkdirAll(options.Out, 0o755); err != nil {
		return report, err
	}
	for file, text := range map[string]string{"cluster.yaml": clusterFile(all), "jobs.yaml": yaml.String(), "decisions.csv": csv.String()} {
		if err := os.WriteFile(filepath.Join(options.Out, file), []byte(text), 0o644); err != nil {
			return report, err
		}
	}
	return report, nil
}

// slurmIndex is the first of positions such as "2-3;5".
func slurmIndex(list string) int {
	first, _, _ := strings.Cut(strings.ReplaceAll(list, "-", ";"), ";")
	n, _ := strconv.Atoi(first)
	return n
}

func clusterFile(all []*machine) string {
	var b strings.Builder
	b.WriteString("version: 1\nnodes:\n")
	for _, m := range all {
		var gpus []string
		for _, d := range m.devices {
			gpus = append(gpus, fmt.Sprintf("{type: %s, sharing: time-slice}", d.model))
		}
		fmt.Fprintf(&b, "  - {name: %q, cpu_cores: %d, memory_gib: %.3f, gpus: [%s]}\n", m.Name, m.CPUs, float64(m.MemMiB)/1024, strings.Join(gpus, ", "))
	}
	return b.String()
}

// writeJob tells whether words say what it uses. Of other jobs nobody knows: they are taken to use all that they asked for.
func writeJob(b *strings.Builder, all []Words, job *ran, label, model string, gpus, shards int) bool {
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
	fmt.Fprintf(b, "  - {name: %q, tenant: %q, tasks: %d, gpus: %d, cpu_cores: %.3f, memory_gib: %.3f, submit_s: %d", label,
		cmp.Or(job.account, "none"), len(job.hosts), gpus, float64(job.cpus)/float64(len(job.hosts)), float64(job.memMiB)/1024/float64(len(job.hosts)), job.start)
	said := ""
	if comment != "" {
		said = fieldsOf(comment)
	}
	if said == "" {
		part, milli := 1.0, ", gpu_milli: 1000"
		if job.shards > 0 && shards > 0 {
			part, milli = min(1, float64(job.shards)/float64(shards)), ""
		}
		fmt.Fprintf(b, "%s, demand: {any: {gpu_util_pct: 100, gpu_memory_gib: %.3f}}}\n", milli, part*memoryGiB(model))
		return false
	}
	b.WriteString(said + "}\n")
	return true
}

// memoryGiB of a card, less what placers keep free.
func memoryGiB(model string) float64 {
	catalogue, err := horus.DefaultCatalogue()
	if err != nil {
		return 1
	}
	defer catalogue.Close()
	at, err := catalogue.Find(model)
	if err != nil {
		return 1
	}
	gpu, err := catalogue.At(at)
	if err != nil {
		return 1
	}
	return float64(gpu.MemMiB-500) / 1024
}

// fieldsOf words as jobs.yaml has them; "" where they do not say what the job uses.
func fieldsOf(comment string) string {
	if _, err := words.Parse(comment, "/"); err != nil {
		return ""
	}
	var out, demand []string
	uses := false
	for _, one := range words.Each(comment) {
		key, value, _ := strings.Cut(one, "=")
		switch key {
		case "wait", "profile", "steps": // the daemon's alone
		case "gpu_util_pct", "mem_bw_util_pct", "gpu_memory_gib", "step_time_ms":
			demand = append(demand, key+": "+value)
			uses = true
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
	if len(demand) > 0 {
		out = append(out, "demand: {any: {"+strings.Join(demand, ", ")+"}}")
	}
	return ", " + strings.Join(out, ", ")
}
