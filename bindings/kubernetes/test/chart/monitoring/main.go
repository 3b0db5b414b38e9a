// SPDX-License-Identifier: Apache-2.0

// Command horus-monitoring holds the chart's boards and rules against what the scheduler exports:
// horus-monitoring CHART METRICS... Each file METRICS is the text of a /metrics; they count as one.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "horus-monitoring:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("expected CHART METRICS..., found %d arguments", len(args))
	}
	asked, err := readRules(args[0])
	if err != nil {
		return err
	}
	for _, name := range []string{"horus.json", "horus-clusters.json"} {
		board, err := readBoard(filepath.Join(args[0], "dashboards", name))
		if err != nil {
			return err
		}
		asked = append(asked, board...)
	}
	exported := series{}
	for _, name := range ofKubeStateMetrics {
		exported[name] = map[string]map[string]bool{"__name__": nil, "namespace": nil, "pod": nil, "uid": nil, "container": nil}
	}
	for _, path := range args[1:] {
		if err := exported.read(path); err != nil {
			return err
		}
	}
	for _, q := range asked {
		err = errors.Join(err, exported.has(q))
	}
	return err
}

// ofKubeStateMetrics are what an alert asks of it; it does not run here.
var ofKubeStateMetrics = []string{"kube_pod_container_status_restarts_total", "kube_pod_container_status_last_terminated_exitcode"}

// query is an expression, where it stands, and what a legend or template says of the labels of its result.
type query struct{ where, expr, legend string }

// A board's variables, which are durations in every query.
var variables = strings.NewReplacer("$__rate_interval", "5m", "$__range", "5m")

func readBoard(path string) ([]query, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var board struct {
		Panels []struct {
			Type, Title, Description string
			Targets                  []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var found []query
	for _, panel := range board.Panels {
		if panel.Type != "row" && (panel.Description == "" || len(panel.Targets) == 0) {
			return nil, fmt.Errorf("%s: panel %q: expected a description and queries", path, panel.Title)
		}
		for _, target := range panel.Targets {
			found = append(found, query{path + ": panel " + panel.Title, variables.Replace(target.Expr), target.LegendFormat})
		}
	}
	return found, nil
}

func readRules(chart string) ([]query, error) {
	path := filepath.Join(chart, "rules", "horus.yaml")
	groups, errs := rulefmt.ParseFile(path, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	var found []query
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			found = append(found, query{path + ": " + rule.Alert, rule.Expr, ""})
		}
	}
	return found, nil
}

// series are the values of each label of each name, as a scrape stores them.
type series map[string]map[string]map[string]bool

func (s series) read(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	reader := expfmt.NewTextParser(model.UTF8Validation)
	families, err := reader.TextToMetricFamilies(file)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	samples, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{}, slices.Collect(maps.Values(families))...)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, sample := range samples {
		name := string(sample.Metric[model.MetricNameLabel])
		if s[name] == nil {
			s[name] = map[string]map[string]bool{"job": nil, "instance": nil, "cluster": nil} // those that Prometheus gives a target, or a federation
		}
		for label, value := range sample.Metric {
			if s[name][string(label)] == nil {
				s[name][string(label)] = map[string]bool{}
			}
			s[name][string(label)][string(value)] = true
		}
	}
	return nil
}

var inLegend = regexp.MustCompile(`{{\s*(\w+)\s*}}`)

// has tells what a query names that is not exported. Values are compared of our own metrics, which are exported from the start.
func (s series) has(q query) error {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(q.expr)
	if err != nil {
		return fmt.Errorf("%s: %w", q.where, err)
	}
	var wrong []error
	complain := func(format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("%s: %s", q.where, fmt.Sprintf(format, args...)))
	}
	labelled := func(what, label string, node parser.Node) {
		if !slices.ContainsFunc(selectors(node), func(v *parser.VectorSelector) bool { _, ok := s[v.Name][label]; return ok }) {
			complain("%s: expected a label of its metrics, found %q", what, label)
		}
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			if s[n.Name] == nil {
				complain("expected a metric that the scheduler exports, found %q", n.Name)
				break
			}
			for _, m := range n.LabelMatchers {
				labelled(n.String(), m.Name, n)
				if m.Type == labels.MatchEqual && strings.HasPrefix(n.Name, "horus_") && !s[n.Name][m.Name][m.Value] {
					complain("%s: expected one of %q, found %q", n, slices.Sorted(maps.Keys(s[n.Name][m.Name])), m.Value)
				}
			}
		case *parser.AggregateExpr:
			for _, label := range n.Grouping {
				labelled(n.String(), label, n)
			}
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				for _, label := range slices.Concat(n.VectorMatching.MatchingLabels, n.VectorMatching.Include) {
					labelled(n.String(), label, n.LHS)
					labelled(n.String(), label, n.RHS)
				}
			}
		}
		return nil
	})
	for _, label := range inLegend.FindAllStringSubmatch(q.legend, -1) {
		labelled("legend "+q.legend, label[1], expr)
	}
	return errors.Join(wrong...)
}

func selectors(node parser.Node) (found []*parser.VectorSelector) {
	parser.Inspect(node, func(node parser.Node, _ []parser.Node) error {
		if v, ok := node.(*parser.VectorSelector); ok {
			found = append(found, v)
		}
		return nil
	})
	return found
}
