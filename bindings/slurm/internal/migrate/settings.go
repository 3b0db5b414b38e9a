// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// lists of resources whose entries mean the same once there is one for each GPU. A limit would become one of each by itself.
var lists = []string{"AccountingStorageTRES", "TRESBillingWeights", "PriorityWeightTRES"}

// rewriteSettings that name types of GPUs from before, of which a node had so many at most; it returns those that it cannot.
func rewriteSettings(settings []*statement, most map[string]int) (byHand []string) {
	if len(most) == 0 {
		return nil
	}
	var models []string
	for _, model := range slices.Sorted(maps.Keys(most)) {
		models = append(models, regexp.QuoteMeta(model))
	}
	model := "(" + strings.Join(models, "|") + ")"
	typed := regexp.MustCompile(`(?i)^((?:gres[/:])?gpu:)` + model + `(=.*)?$`)
	anywhere := regexp.MustCompile(`(?i)\bgpu:` + model + `\b`)
	for _, s := range settings {
		if s.get("NodeName") != "" {
			continue
		}
		for _, m := range pair.FindAllStringSubmatch(s.text, -1) {
			key, value := m[1], strings.Trim(m[2], `"`)
			if !anywhere.MatchString(value) {
				continue
			}
			if !slices.ContainsFunc(lists, func(list string) bool { return strings.EqualFold(list, key) }) {
				byHand = append(byHand, fmt.Sprintf("slurm.conf:%d: %s=%s", s.at, key, value))
				continue
			}
			var entries []string
			for _, entry := range strings.Split(value, ",") {
				named := typed.FindStringSubmatch(strings.TrimSpace(entry))
				if named == nil {
					entries = append(entries, entry)
					continue
				}
				for n := range mostOf(most, named[2]) {
					entries = append(entries, named[1]+typeOf(named[2], n)+named[3])
				}
			}
			s.set(key, strings.Join(entries, ","))
		}
	}
	return byHand
}

// mostOf a model, which Slurm writes in any case.
func mostOf(most map[string]int, model string) int {
	for name, count := range most {
		if strings.EqualFold(name, model) {
			return count
		}
	}
	return 0
}
