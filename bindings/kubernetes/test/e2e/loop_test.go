// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/csv"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"libhorus.org/kubernetes/internal/objects"
	"libhorus.org/kubernetes/internal/observe"
	"libhorus.org/kubernetes/test/controlplane"
)

// Useful work of a cluster with a backlog of jobs, whose slowdowns in pairs were measured on a V100 and are played on a card of
// which the library knows no pair: each job alone, whatever fits first, placed by what the library knows, and by what it learns.
// HORUS_K8S_LOOP=STEM names STEM_jobs.csv and STEM_pairs.csv, made by bench/quality/pairs.py. An hour takes a minute. The library's
// simulator does the same jobs with the speeds of HORUS_K8S_SPEEDS, Gavel's file of a V100, if it is named.
func TestUsefulWorkOfTheLoop(t *testing.T) {
	stem := os.Getenv("HORUS_K8S_LOOP")
	if stem == "" {
		t.Skip("HORUS_K8S_LOOP names no measured pairs")
	}
	const speedUp, nodes, gpus, hours = 60, 4, 4, 3
	lost, jobs := measuredPairs(t, stem+"_pairs.csv", "v100")
	kinds := slices.Sorted(maps.Keys(jobs))
	profiles := predicted(t, stem+"_jobs.csv", kinds)
	var trace strings.Builder
	for _, way := range []struct {
		name, scheduler, memory, share, values string
		observed                               bool
	}{
		{"alone", "horus", "40Gi", "", "mode: place", false},
		{"first-fit", v1.DefaultSchedulerName, "40Gi", "same-tenant", "mode: place", false},
		{"ours", "horus", "40Gi", "same-tenant", "mode: place\nplacing: {maxTenants: 2}", false},
		{"ours-learning", "horus", "40Gi", "same-tenant", "mode: place\nplacing: {maxTenants: 2}\nobserver: {enabled: true, every: 250ms, window: 1s, commit: 10s}", true},
	} {
		t.Run(way.name, func(t *testing.T) {
			var c *controlplane.Cluster
			if way.scheduler == v1.DefaultSchedulerName {
				c = start(t, way.values) // with the default profile beside ours
			} else {
				c = start(t, "")
				install(t, c, way.values)
			}
			alone, random := map[string]work{}, rand.New(rand.NewPCG(3, 4))
			for _, profile := range profiles {
				create(t, c, profile)
				alone[profile.GetName()] = off(workOf(t, profile), random)
			}
			p := startPlay(t, c, alone, func(kind string, others []string) float64 {
				slowed := 1.0
				for _, other := range others {
					slowed *= lost[[2]string{kind, other}]
				}
				return slowed
			})
			p.with(func() { p.speed = speedUp })
			for i := range nodes {
				name := fmt.Sprintf("n%d", i)
				node(t, c, name, 0, nil)
				slice(t, c, name, gpus)
				p.exporter(name)
			}
			metrics := func() string { return "" }
			if way.observed {
				metrics = observer(t, c)
			}
			foreseen := &foresight{c: c, p: p}
			trace.Reset()
			trace.WriteString("submit_s,duration_s,profile\n")
			random = rand.New(rand.NewPCG(1, 2))
			made, ended, reports, sum := 0, map[string]bool{}, 0, 0.0
			lengths := map[string]float64{}
			for begin, reported := time.Now(), time.Now(); time.Since(begin) < hours*time.Minute; time.Sleep(100 * time.Millisecond) {
				for made-len(ended) < 2*nodes*gpus+12 {
					name, kind := fmt.Sprintf("j%d", made), kinds[random.IntN(len(kinds))]
					lengths[name] = -600 * math.Log(1-random.Float64()) // seconds alone
					fmt.Fprintf(&trace, "0,%.6f,%s\n", max(lengths[name], 1e-3), jobs[kind])
					claim(t, c, name, way.memory)
					makePod(t, c, podSpec{name: name, claim: name, scheduler: way.scheduler, annotations: map[string]string{
						objects.ProfileAnnotation: kind, objects.ShareAnnotation: way.share, observe.StepsAnnotation: jobPort,
					}, change: func(p *v1.Pod) {
						if way.share == "" {
							delete(p.Annotations, objects.ShareAnnotation)
						}
					}})
					made++
				}
				for _, name := range p.done(lengths) {
					end(t, c, name)
					ended[name] = true
				}
				foreseen.look(t, time.Since(begin)*speedUp)
				if time.Since(reported) > 30*time.Second {
					reported = time.Now()
					useful, busy := p.useful(nodes * gpus)
					if reports++; reports > 1 {
						sum += useful
					}
					t.Logf("%s: after %.1f h useful work of %.3f per GPU, %.2f tenants; %d jobs ended; model %v, error %.3f, %v learned, %v contradictions", way.name,
						time.Since(begin).Minutes(), useful, busy, len(ended), metricOf(metrics(), "horus_observer_model_version"), metricOf(metrics(), "horus_observer_prediction_error"),
						metricOf(metrics(), `horus_observer_windows_total{outcome="learned"}`), metricOf(metrics(), `horus_observer_windows_total{outcome="contradiction"}`))
				}
			}
			t.Logf("%s: useful work of %.3f per GPU after the first half-hour", way.name, sum/float64(reports-1))
			foreseen.tell(t)
		})
	}
	simulate(t, stem, trace.String(), nodes*gpus, hours)
}

// simulate the same jobs, all waiting in their order, by the policies of the library; the trace has more of them than the hours take.
func simulate(t *testing.T, stem, trace string, gpus, hours int) {
	speeds := os.Getenv("HORUS_K8S_SPEEDS")
	if speeds == "" {
		t.Log("HORUS_K8S_SPEEDS names no speeds: not simulated")
		return
	}
	dir := t.TempDir()
	grid := fmt.Sprintf(`version: 1
cluster: {gpus: {h100-sxm: %d}, gpus_per_node: 4, max_tenants: 2}
truth: {speeds: [{file: %q, gpus: {v100: h100-sxm}}]}
beliefs: {jobs: %q}
workloads: [{name: loop, files: jobs.csv, horizon_h: %d}]
defaults: {look_ahead: 12}
policies:
- {name: alone, policy: exclusive}
- {name: first-fit, policy: first-fit}
- {name: ours, policy: horus}
- {name: ours-learning, policy: horus, learn: corrects}
`, gpus, speeds, stem+"_jobs.csv", hours)
	check(t, os.WriteFile(filepath.Join(dir, "jobs.csv"), []byte(trace), 0o600))
	check(t, os.WriteFile(filepath.Join(dir, "grid.yaml"), []byte(grid), 0o600))
	told, err := exec.Command(os.Getenv("HORUS_COMMAND"), "compare", filepath.Join(dir, "grid.yaml"), "--out", filepath.Join(dir, "out"), "--metrics", "work_rate,backlog_rate,belief_error").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, told)
	}
	t.Logf("simulated:\n%s", told)
}

// measuredPairs tells what each kind of job loses beside another, by the names that profiles have, and the table's name of each
// kind. Pairs that were not measured take turns.
func measuredPairs(t *testing.T, path, gpu string) (map[[2]string]float64, map[string]string) {
	t.Helper()
	rows, at := table(t, path)
	lost, kinds := map[[2]string]float64{}, map[string]string{}
	for _, row := range rows {
		if row[at["gpu"]] != gpu && !strings.HasPrefix(row[at["gpu"]], gpu) {
			continue
		}
		a, b := kindName(row[at["job_a"]]), kindName(row[at["job_b"]])
		kinds[a], kinds[b] = row[at["job_a"]], row[at["job_b"]]
		for pair, column := range map[[2]string]string{{a, b}: "slowdown_a", {b, a}: "slowdown_b"} {
			if value, err := strconv.ParseFloat(row[at[column]], 64); err == nil {
				lost[pair] = value
			}
		}
	}
	for a := range kinds {
		for b := range kinds {
			if lost[[2]string{a, b}] == 0 {
				lost[[2]string{a, b}] = 2
			}
		}
	}
	return lost, kinds
}

// table of a CSV file: its rows, and the place of each column.
func table(t *testing.T, path string) (rows [][]string, at map[string]int) {
	t.Helper()
	file, err := os.Open(path)
	check(t, err)
	defer file.Close()
	all, err := csv.NewReader(file).ReadAll()
	check(t, err)
	at = map[string]int{}
	for i, name := range all[0] {
		at[name] = i
	}
	return all[1:], at
}

var letters = regexp.MustCompile(`[^a-z0-9]+`)

func kindName(job string) string {
	return strings.Trim(letters.ReplaceAllString(strings.ToLower(job), "-"), "-")
}

// predicted profiles of jobs, as kubectl horus profile makes them.
func predicted(t *testing.T, path string, kinds []string) []*unstructured.Unstructured {
	t.Helper()
	rows, at := table(t, path)
	var out []*unstructured.Unstructured
	for _, row := range rows {
		name := kindName(row[at["job"]])
		if !slices.Contains(kinds, name) {
			continue
		}
		args := []string{"profile", filepath.Join(filepath.Dir(path), row[at["graph"]]), "--name", name, "--gpus", "h100-sxm",
			"--batch", row[at["batch"]], "--precision", row[at["precision"]]}
		if optimizer := row[at["optimizer"]]; optimizer != "" {
			args = append(args, "--optimizer", optimizer)
		}
		if dims := row[at["dims"]]; dims != "" {
			args = append(args, "--dim", strings.NewReplacer(";", ",", " ", ",").Replace(dims))
		}
		tool := exec.Command(filepath.Join(programs(t), "kubectl-horus"), args...)
		text, err := tool.Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		profile := &unstructured.Unstructured{}
		check(t, yaml.Unmarshal(text, &profile.Object))
		out = append(out, profile)
	}
	if len(out) != len(kinds) {
		t.Fatalf("expected a profile of each of %d kinds, found %d", len(kinds), len(out))
	}
	return out
}

func create(t *testing.T, c *controlplane.Cluster, profile *unstructured.Unstructured) {
	t.Helper()
	_, err := c.Dynamic.Resource(objects.Profiles).Namespace(namespace).Create(ctx, profile.DeepCopy(), metav1.CreateOptions{})
	check(t, err)
}

// off is what a job really does alone, where a profile predicts its work: by about as much as predictions err.
func off(predicted work, random *rand.Rand) work {
	const step, util = 0.2, 0.15 // standard deviations of ln
	return work{
		min(predicted.util*math.Exp(util*random.NormFloat64()), 1),
		time.Duration(float64(predicted.step) * math.Exp(step*random.NormFloat64())),
	}
}

func workOf(t *testing.T, profile *unstructured.Unstructured) work {
	t.Helper()
	read, err := objects.ProfileOf(profile.Object["spec"], nil)
	check(t, err)
	demand := read.Demands[0].Demand
	return work{float64(demand.GPUUtilPct) / 100, time.Duration(demand.StepTimeUs) * time.Microsecond}
}
