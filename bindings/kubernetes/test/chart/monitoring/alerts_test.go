// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"sigs.k8s.io/yaml"
)

const chart = "../../../charts/horus"

// two replicas, the first of which leads; a kube-scheduler beside them that is none of ours.
const healthy = `
load 1m
  horus_mirrored_nodes{job="h", instance="1"} 5x180
  horus_mirrored_nodes{job="h", instance="2"} 5x180
  leader_election_master_status{job="h", instance="1", name="kube-scheduler"} 1x180
  leader_election_master_status{job="h", instance="2", name="kube-scheduler"} 0x180
  leader_election_master_status{job="k", instance="3", name="kube-scheduler"} 0x180
  horus_unused_nodes{job="h", instance="1"} 0x180
  horus_waiting_pods{job="h", instance="1"} 0x180
  horus_verdicts_seconds_bucket{job="h", instance="1", le="0.0064"} 0+96x180
  horus_verdicts_seconds_bucket{job="h", instance="1", le="0.0512"} 0+100x180
  horus_verdicts_seconds_bucket{job="h", instance="1", le="+Inf"} 0+100x180
  horus_invalid_pods_total{job="h", instance="1"} 7x180
  scheduler_schedule_attempts_total{job="h", instance="1", result="error"} 3x180
  scheduler_schedule_attempts_total{job="h", instance="1", result="scheduled"} 0+50x180
  scheduler_schedule_attempts_total{job="k", instance="3", result="error"} 0+50x180
  horus_shadow_decisions_total{job="h", instance="1", scheduler="default-scheduler", ours="failed"} 0x100 1x80
  horus_shadow_decisions_total{job="h", instance="1", scheduler="default-scheduler", ours="same"} 0+10x180
  horus_observer_scrapes_total{job="o", instance="4", of="exporter", outcome="ok"} 0+4x180
  horus_observer_scrapes_total{job="o", instance="4", of="exporter", outcome="failed"} 0+1x180
  horus_models_refused_total{job="h", instance="1"} 0x180
  horus_overcommitted_devices{job="h", instance="1"} 0x180
  horus_skipped_devices{job="h", instance="1", reason="profile"} 0x180
  horus_contradicting_pods{job="h", instance="1"} 0x180
  horus_oldest_pending_seconds{job="h", instance="1"} 0+60x50 0+60x55 0+60x75
  horus_gang_waits{job="h", instance="1"} 1x50 0 1x50 0 1x78
  kube_pod_container_status_restarts_total{namespace="s", pod="horus-scheduler-1-a", container="scheduler"} 0x140 1x40
  kube_pod_container_status_last_terminated_exitcode{namespace="s", pod="horus-scheduler-1-a", container="scheduler"} 1x180
  kube_pod_container_status_restarts_total{namespace="s", pod="other", container="scheduler"} 0x140 1x40
  kube_pod_container_status_last_terminated_exitcode{namespace="s", pod="other", container="scheduler"} 70x180
  kube_pod_container_status_restarts_total{namespace="s", pod="horus-scheduler-1-b", container="scheduler"} 1x180
  kube_pod_container_status_last_terminated_exitcode{namespace="s", pod="horus-scheduler-1-b", container="scheduler"} 70x180
  horus_advise_certificate_expiry_seconds{job="a", instance="5"} 2592000x180
`

// ill is what changes in the healthy cluster: lines that replace those of the same series.
var ill = map[string][]string{
	"HorusAbsent":             {`horus_mirrored_nodes{job="h", instance="1"} _`, `horus_mirrored_nodes{job="h", instance="2"} _`},
	"HorusNobodyLeads":        {`leader_election_master_status{job="h", instance="1", name="kube-scheduler"} 0x180`, `leader_election_master_status{job="k", instance="3", name="kube-scheduler"} 1x180`},
	"HorusNodesUnused":        {`horus_unused_nodes{job="h", instance="1"} 1x180`},
	"HorusPodsWaitForDevices": {`horus_waiting_pods{job="h", instance="1"} 1x180`},
	"HorusVerdictsSlow":       {`horus_verdicts_seconds_bucket{job="h", instance="1", le="0.0512"} 0+96x180`, `horus_verdicts_seconds_bucket{job="h", instance="1", le="0.2048"} 0+100x180`},
	"HorusInvalidPods":        {`horus_invalid_pods_total{job="h", instance="1"} 0 1x4 2x4 3x4 4x4 5x4 6x4 7x4 8x4 9x4 10x4 11x4 12x4 13x4 14x4 15x4 16x4 17x4 18x4 19x4 20x4 21x4 22x4 23x4 24x4 25x4 26x4 27x4 28x4 29x4`},
	"HorusErrors":             {`scheduler_schedule_attempts_total{job="h", instance="1", result="error"} 0+1x180`},
	"HorusLearnsNothing":      {`horus_observer_scrapes_total{job="o", instance="4", of="exporter", outcome="ok"} 0+4x60 240x120`},
	"HorusModelRefused":       {`horus_models_refused_total{job="h", instance="1"} 0x120 1x60`},
	"HorusOverCommitted":      {`horus_overcommitted_devices{job="h", instance="1"} 0x140 1x40`},
	"HorusDevicesSkipped":     {`horus_skipped_devices{job="h", instance="1", reason="partition"} 7x180`},
	"HorusPodsContradict":     {`horus_contradicting_pods{job="h", instance="1"} 1x180`},
	"HorusPodsPendingLong":    {`horus_oldest_pending_seconds{job="h", instance="1"} 0+60x180`},
	"HorusGangWaits":          {`horus_gang_waits{job="h", instance="1"} 1x40 0 1x139`},
	"HorusHung":               {`kube_pod_container_status_last_terminated_exitcode{namespace="s", pod="horus-scheduler-1-a", container="scheduler"} 1x140 70x40`},
	"HorusCertificateExpires": {`horus_advise_certificate_expiry_seconds{job="a", instance="5"} 1209600x180`},
	"HorusShadowFails":        {`horus_shadow_decisions_total{job="h", instance="1", scheduler="default-scheduler", ours="failed"} 0+1x180`},
}

func alerts(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(chart+"/rules/horus.yaml", false, model.UTF8Validation, parser.NewParser(parser.Options{}), nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return groups.Groups[0].Rules
}

func with(lines []string) string {
	out := healthy
	for _, line := range lines {
		series, _, _ := strings.Cut(line, "} ")
		out = regexp.MustCompile(`(?m)^  `+regexp.QuoteMeta(series)+`.*\n`).ReplaceAllString(out, "") + "  " + line + "\n"
	}
	return out
}

// An alert is on where its expression held at each minute of its `for`.
func TestEachAlertFiresWhereItsFaultIsAndNowhereElse(t *testing.T) {
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	rules := alerts(t)
	faults := map[string][]string{"none": nil}
	for _, rule := range rules {
		if faults[rule.Alert] = ill[rule.Alert]; faults[rule.Alert] == nil {
			t.Errorf("%s: expected a fault that it is for, found none", rule.Alert)
		}
	}
	for fault, lines := range faults {
		t.Run(fault, func(t *testing.T) {
			script := with(lines)
			for _, rule := range rules {
				fires := 0
				if rule.Alert == fault {
					fires = 1
				}
				script += fmt.Sprintf("\neval instant at 150m min_over_time((count(%s) or vector(0))[%s:1m]) > bool 0\n  {} %d\n", rule.Expr, rule.For, fires)
			}
			promqltest.RunTest(t, script, engine)
		})
	}
}

func TestEachAlertSaysWhatToDo(t *testing.T) {
	doc, err := os.ReadFile("../../../../../docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	runbooks := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(string(doc), -1) {
		runbooks[heading[1]] = true
	}
	for _, rule := range alerts(t) {
		if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" || !runbooks[rule.Alert] ||
			rule.Annotations["runbook_url"] != "docs/alerts.md#"+strings.ToLower(rule.Alert) {
			t.Errorf("%s: expected a summary, a description and a heading of docs/alerts.md as runbook, found %q", rule.Alert, rule.Annotations)
		}
		delete(runbooks, rule.Alert)
	}
	if len(runbooks) > 0 {
		t.Errorf("expected runbooks of alerts alone, found %v", runbooks)
	}
}

// The operator's own types say what it reads; a field that they lack is an error.
func TestTheOperatorReadsWhatTheChartMakes(t *testing.T) {
	out, err := exec.Command("go", "run", "..", chart, "horus", "gpu-system", "v1.37.0", "{observer: {enabled: true}, advise: {enabled: true}, monitoring: {serviceMonitor: true, rules: true, runbooks: https://docs.internal/horus/, labels: {release: p}}}").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if found := strings.Count(string(out), "runbook_url: https://docs.internal/horus/alerts.html#horus"); found != len(alerts(t)) {
		t.Errorf("expected the address of each runbook on the site, found %d", found)
	}
	read := map[string]int{}
	for _, document := range strings.Split(string(out), "\n---\n") {
		for kind, into := range map[string]any{"ServiceMonitor": &monitoringv1.ServiceMonitor{}, "PodMonitor": &monitoringv1.PodMonitor{}, "PrometheusRule": &monitoringv1.PrometheusRule{}} {
			if strings.Contains(document, "\nkind: "+kind+"\n") {
				read[kind]++
				if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
					t.Errorf("%s: %v", kind, err)
				}
			}
		}
	}
	if fmt.Sprint(read) != "map[PodMonitor:2 PrometheusRule:1 ServiceMonitor:1]" {
		t.Errorf("expected a ServiceMonitor, two PodMonitors and a PrometheusRule, found %v", read)
	}
}
