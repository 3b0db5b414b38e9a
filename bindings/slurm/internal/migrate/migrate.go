// SPDX-License-Identifier: Apache-2.0

// Package migrate gives each GPU of a Slurm configuration a gres type of its own, and shards: only so can a job be put onto one.
package migrate

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"libhorus.org/slurm/internal/slurm"
)

// Untyped GPUs are of this model, "gpu_0" and so on.
const untyped = "gpu"

var field = regexp.MustCompile(`(?i)(^|\s)(Name|NodeName|Type|File|Count|AutoDetect|Gres|GresTypes|Feature|Features)=(\S+)`)

func fields(line string) map[string]string {
	out := map[string]string{}
	for _, m := range field.FindAllStringSubmatch(line, -1) {
		out[strings.ToLower(m[2])] = m[3]
	}
	return out
}

// setField of a line; one that it lacks is put at its end.
func setField(line, name, value string) string {
	form := regexp.MustCompile(`(?i)((?:^|\s)` + name + `=)\S+`)
	if form.MatchString(line) {
		return form.ReplaceAllString(line, "${1}"+strings.ReplaceAll(value, "$", "$$"))
	}
	return line + " " + name + "=" + value
}

// statements are the lines of a file with those that a backslash continues; comments are kept.
func statements(text string) []string {
	return strings.Split(strings.ReplaceAll(text, "\\\n", " "), "\n")
}

// Gres is gres.conf with a type and shards for each GPU, and the models that it has.
func Gres(text string, shards int) (string, error) {
	var out []string
	numbers := map[string]int{} // next number of a model on some nodes
	for at, line := range statements(text) {
		bare, _, _ := strings.Cut(line, "#")
		f := fields(bare)
		if detect := strings.ToLower(f["autodetect"]); detect != "" && detect != "off" {
			return "", fmt.Errorf("gres.conf:%d: expected a line with File= for each kind of GPU, found AutoDetect=%s: slurmd -G tells the files and cores of a node", at+1, f["autodetect"])
		}
		switch strings.ToLower(f["name"]) {
		case "gpu":
		case "shard", "mps":
			return "", fmt.Errorf("gres.conf:%d: expected no %s yet, found some: take the lines away, they are written anew for each GPU", at+1, f["name"])
		default:
			out = append(out, line)
			continue
		}
		files, err := slurm.Hosts(f["file"]) // /dev/nvidia[0-3] is written as host lists are
		if err != nil || len(files) == 0 {
			return "", fmt.Errorf("gres.conf:%d: expected File=/dev/nvidia…, found %q", at+1, f["file"])
		}
		model := f["type"]
		if model == "" {
			model = untyped
		}
		key := f["nodename"] + "|" + model
		for _, file := range files {
			one := setField(setField(strings.TrimSpace(bare), "Type", model+"_"+strconv.Itoa(numbers[key])), "File", file)
			one = regexp.MustCompile(`(?i)\s+Count=\S+`).ReplaceAllString(one, "")
			out = append(out, one, setField(setField(one, "Name", "shard"), "Count", strconv.Itoa(shards)))
			numbers[key]++
		}
	}
	if len(numbers) == 0 {
		return "", fmt.Errorf("gres.conf: expected lines with Name=gpu, found none")
	}
	return strings.Join(out, "\n"), nil
}

// Slurm is slurm.conf for that gres.conf, and the models that are features of its nodes now.
func Slurm(text string, shards int) (string, []string, error) {
	var models []string
	lines := statements(text)
	typed := false
	for at, line := range lines {
		bare, comment, commented := strings.Cut(line, "#")
		f := fields(bare)
		if f["grestypes"] != "" && f["nodename"] == "" {
			if !slices.Contains(strings.Split(f["grestypes"], ","), "shard") {
				bare = setField(bare, "GresTypes", f["grestypes"]+",shard")
			}
			typed = true
		}
		if f["nodename"] != "" && f["gres"] != "" {
			changed, of, err := node(bare, f, shards)
			if err != nil {
				return "", nil, fmt.Errorf("slurm.conf:%d: %w", at+1, err)
			}
			bare = changed
			for _, model := range of {
				if !slices.Contains(models, model) {
					models = append(models, model)
				}
			}
		}
		lines[at] = bare
		if commented {
			lines[at] += "#" + comment
		}
	}
	if len(models) == 0 || !typed {
		return "", nil, fmt.Errorf("slurm.conf: expected GresTypes=gpu and nodes with Gres=gpu:…, found none (an Include is not followed: give that file)")
	}
	return strings.Join(lines, "\n"), models, nil
}

// node is the line of some nodes: each GPU by itself, and their models as features.
func node(line string, f map[string]string, shards int) (string, []string, error) {
	var gpus, shares, others, models []string
	for _, one := range strings.Split(f["gres"], ",") {
		g := slurm.GresOf(one)
		switch {
		case len(g) == 0:
			others = append(others, one)
		case g[0].Name == "shard":
			return "", nil, fmt.Errorf("expected no shards yet, found Gres=%s", f["gres"])
		default:
			model := g[0].Type
			if model == "" {
				model = untyped
			} else {
				models = append(models, model)
			}
			for n := range g[0].Count {
				gpus = append(gpus, fmt.Sprintf("gpu:%s_%d:1", model, n))
				shares = append(shares, fmt.Sprintf("shard:%s_%d:%d", model, n, shards))
			}
		}
	}
	line = setField(strings.TrimRight(line, " \t"), "Gres", strings.Join(slices.Concat(gpus, shares, others), ","))
	features := f["feature"] + f["features"]
	for _, model := range models {
		if !slices.Contains(strings.Split(features, ","), model) {
			features = strings.TrimPrefix(features+","+model, ",")
		}
	}
	if f["features"] != "" {
		return setField(line, "Features", features), models, nil
	}
	if features != "" {
		line = setField(line, "Feature", features)
	}
	return line, models, nil
}
