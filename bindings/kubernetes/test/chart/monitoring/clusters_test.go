// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/promqltest"
)

// Two clusters of two replicas each; those of a cluster see the same, and only the one that leads binds.
const clusters = `
load 1m
  horus_mirrored_nodes{cluster="a", job="h", instance="1"} 5x180
  horus_mirrored_nodes{cluster="a", job="h", instance="2"} 5x180
  horus_mirrored_nodes{cluster="b", job="h", instance="1"} 2x180
  horus_mirrored_devices{cluster="a", job="h", instance="1"} 40x180
  horus_mirrored_devices{cluster="a", job="h", instance="2"} 40x180
  horus_mirrored_devices{cluster="b", job="h", instance="1"} 16x180
  horus_mirrored_pods{cluster="a", job="h", instance="1"} 30x180
  horus_mirrored_pods{cluster="b", job="h", instance="1"} 12x180
  horus_placements_total{cluster="a", job="h", instance="1", shares="true"} 0+6x180
  horus_placements_total{cluster="a", job="h", instance="2", shares="true"} 0x180
  horus_placements_total{cluster="a", job="h", instance="1", shares="false"} 0+2x180
  horus_placements_total{cluster="b", job="h", instance="1", shares="false"} 0+4x180
  horus_placements_total{cluster="b", job="h", instance="1", shares="true"} 0x180
  horus_shadow_regret_gpus{cluster="a", job="h", instance="1", scheduler="default-scheduler"} 0+3x180
  horus_shadow_regret_gpus{cluster="a", job="h", instance="2", scheduler="default-scheduler"} 0+3x180
  horus_shadow_lost_gpus{cluster="a", job="h", instance="1", scheduler="default-scheduler"} 0+1x180
  horus_shadow_lost_gpus{cluster="a", job="h", instance="2", scheduler="default-scheduler"} 0+1x180
  scheduler_pending_pods{cluster="a", job="h", instance="1", queue="active"} 3x180
  scheduler_pending_pods{cluster="a", job="h", instance="1", queue="unschedulable"} 4x180
  leader_election_master_status{cluster="a", job="h", instance="1", name="kube-scheduler"} 1x180
  horus_observer_prediction_error{cluster="a", job="o", instance="3"} 0.05x180
  horus_model_version{cluster="a", job="h", instance="1"} 7x180
`

// What the board says after three hours, of the 5 minutes before.
var want = map[string][]string{
	"All clusters":                   {"{} 2", "{} 56", "{} 42"},
	"All clusters, what it does":     {"{} 60", "{} 30", "{} 10"},
	"GPUs":                           {`{cluster="a"} 40, {cluster="b"} 16`},
	"Placements a minute":            {`{cluster="a"} 8, {cluster="b"} 4`},
	"Share of placements that share": {`{cluster="a"} 0.75, {cluster="b"} 0`},
	"Pending pods":                   {`{cluster="a"} 7`},
	"How far predictions are off":    {`{cluster="a"} 0.05`},
	"Model":                          {`{cluster="a"} 7`},
}

func TestTheBoardOfAllClustersSumsThemAndNoReplicaTwice(t *testing.T) {
	board, err := readBoard(filepath.Join(chart, "dashboards", "horus-clusters.json"))
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]int{}
	var script strings.Builder
	for _, q := range board {
		_, panel, _ := strings.Cut(q.where, ": panel ")
		if asked[panel] >= len(want[panel]) {
			t.Fatalf("%s: expected an answer that is known, found another query", q.where)
		}
		fmt.Fprintf(&script, "eval instant at 180m %s\n", q.expr)
		for _, line := range strings.Split(want[panel][asked[panel]], ", ") {
			fmt.Fprintf(&script, "  %s\n", line)
		}
		script.WriteString("\n")
		asked[panel]++
	}
	promqltest.RunTest(t, clusters+"\n"+script.String(), promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery))
}
