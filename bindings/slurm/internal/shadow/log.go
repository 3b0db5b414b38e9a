// SPDX-License-Identifier: Apache-2.0

// Package shadow turns what Slurm wrote down about jobs into the files that horus shadow and horus potential read.
package shadow

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"libhorus.org/slurm/internal/slurm"
)

// ran is a job that ran.
type ran struct {
	id, name, account, comment string
	partition                  string
	start, end                 int64 // s since 1970; end 0 = it still runs
	hosts                      []string
	devices                    []string       // of each host, "0;2-3"; nil = nobody wrote them down
	gpus, shards               int            // of all its nodes
	types                      map[string]int // how many of those are told to be of a gres type
	cpus                       int
	memMiB                     int64
}

const mostLine = 1 << 20 // bytes of a line

// heading is the first line of what sacct --parsable2 prints, and what it put between fields: --delimiter.
var heading = regexp.MustCompile(`^(?i)JobID([^A-Za-z0-9]+)`)

// read a log of jobcomp/filetxt, or what sacct --parsable2 prints; the first line tells which.
func read(in io.Reader, name string) (jobs []ran, bad []string, err error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, mostLine)
	var header []string
	between := ""
	for at := 1; lines.Scan(); at++ {
		line := strings.TrimSuffix(lines.Text(), "\r")
		if strings.TrimSpace(line) == "" {
			continue
		}
		fields := map[string]string{}
		switch {
		case strings.HasPrefix(line, "JobId="):
			fields = keyed(line)
		case header == nil && heading.MatchString(line):
			between = heading.FindStringSubmatch(line)[1]
			header = strings.Split(strings.ToLower(line), strings.ToLower(between))
			continue
		case header != nil:
			values := strings.Split(line, between)
			if len(values) != len(header) {
				text := fmt.Sprintf("%s:%d: expected %d fields, found %d", name, at, len(header), len(values))
				if len(values) > len(header) {
					text += fmt.Sprintf(" (a name with %q? sacct has --delimiter)", between)
				}
				bad = append(bad, text)
				continue
			}
			for i, value := range values {
				fields[header[i]] = value
			}
		default:
			return nil, nil, fmt.Errorf("%s:%d: expected a line of jobcomp/filetxt (JobId=…) or of sacct --parsable2 with its header, found %.40q", name, at, line)
		}
		one, is, err := jobOf(fields)
		if err != nil {
			bad = append(bad, fmt.Sprintf("%s:%d: %v", name, at, err))
		} else if is {
			jobs = append(jobs, one)
		}
	}
	return jobs, bad, lines.Err()
}

// keyed reads "JobId=1 Name=a b State=…": a value ends where the next key of jobcomp begins.
func keyed(line string) map[string]string {
	fields := map[string]string{}
	key := ""
	for _, word := range strings.Split(line, " ") {
		if name, value, is := strings.Cut(word, "="); is && jobcompKeys[name] {
			key = strings.ToLower(name)
			fields[key] = value
		} else if key != "" {
			fields[key] += " " + word
		}
	}
	fields["jobname"], fields["state"], fields["start"], fields["end"] = fields["name"], fields["jobstate"], fields["starttime"], fields["endtime"]
	fields["alloctres"] = fields["tres"]
	return fields
}

var jobcompKeys = map[string]bool{
	"JobId": true, "UserId": true, "GroupId": true, "Name": true, "JobState": true, "Partition": true, "TimeLimit": true,
	"StartTime": true, "EndTime": true, "NodeList": true, "NodeCnt": true, "ProcCnt": true, "WorkDir": true,
	"ReservationName": true, "Tres": true, "Account": true, "QOS": true, "WcKey": true, "Cluster": true, "SubmitTime": true,
	"EligibleTime": true, "ArrayJobId": true, "ArrayTaskId": true, "HetJobId": true, "HetJobOffset": true,
	"DerivedExitCode": true, "ExitCode": true,
}

// jobOf a line; false where it is a step, never ran or had no GPU.
func jobOf(f map[string]string) (ran, bool, error) {
	one := ran{id: f["jobid"], name: f["jobname"], account: strings.TrimSpace(f["account"]), comment: f["comment"], partition: f["partition"]}
	if one.id == "" {
		return one, false, fmt.Errorf("expected a JobID, found none")
	}
	if strings.Contains(one.id, ".") || f["start"] == "" || f["start"] == "Unknown" || f["start"] == "None" {
		return one, false, nil
	}
	var err error
	if one.start, err = moment(f["start"]); err != nil {
		return one, false, err
	}
	if end := f["end"]; end != "" && end != "Unknown" {
		if one.end, err = moment(end); err != nil {
			return one, false, err
		}
		if one.end <= one.start { // it never held anything for a second
			return one, false, nil
		}
	}
	one.amounts(f["alloctres"])
	if one.gpus == 0 && one.shards == 0 {
		return one, false, nil
	}
	if one.hosts, err = slurm.Hosts(f["nodelist"]); err == nil && len(one.hosts) == 0 {
		err = fmt.Errorf("expected a NodeList, found none")
	}
	if known := strings.Split(f["devices"], "+"); f["devices"] != "" && len(known) == len(one.hosts) {
		one.devices = known
	}
	return one, err == nil, err
}

// amounts of what a job had: "cpu=4,mem=62.50G,gres/gpu=3,gres/gpu:a100=2". Slurm tells a type, the sum, or both.
func (r *ran) amounts(tres string) {
	r.types = map[string]int{}
	typed := map[string]int{}
	for _, amount := range strings.Split(tres, ",") {
		key, value, _ := strings.Cut(amount, "=")
		n, _ := strconv.Atoi(value)
		n = min(max(n, 0), 1<<30)
		kind, model, _ := strings.Cut(key, ":")
		switch {
		case key == "cpu":
			r.cpus = n
		case model != "" && n > 0 && (kind == "gres/gpu" || kind == "gres/shard"):
			r.types[model] += n
			typed[kind] += n
		case key == "gres/gpu":
			r.gpus = n
		case key == "gres/shard":
			r.shards = n
		case key == "mem" && strings.Contains(value, "."): // it was rounded to 1/100 of its unit, perhaps up
			r.memMiB = slurm.TresMiB(tres) - slurm.TresMiB("mem=0.01"+value[len(value)-1:])
		case key == "mem":
			r.memMiB = slurm.TresMiB(tres)
		}
	}
	r.memMiB = max(r.memMiB, 0)
	r.gpus, r.shards = max(r.gpus, typed["gres/gpu"]), max(r.shards, typed["gres/shard"])
}

func moment(text string) (int64, error) {
	at, err := time.ParseInLocation("2006-01-02T15:04:05", text, time.Local)
	if err != nil {
		return 0, fmt.Errorf("expected a time such as 2026-01-02T03:04:05, found %q", text)
	}
	return at.Unix(), nil
}
