// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestHostListsAreExpanded(t *testing.T) {
	for list, want := range map[string]string{
		"":                   "",
		"a":                  "a",
		"n[1-3,07],b":        "n1 n2 n3 n07 b",
		"r[1-2]n[09-10]-ib":  "r1n09-ib r1n10-ib r2n09-ib r2n10-ib",
		"/dev/nvidia[0-1]":   "/dev/nvidia0 /dev/nvidia1",
		"gpu[001-003],gpu[9": "error",
		"n[3-1]":             "error",
		"n[1-999999999]":     "error",
		"]n[":                "error",
	} {
		got, err := Hosts(list)
		if err != nil {
			got = []string{"error"}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: expected %q, found %q", list, want, got)
		}
	}
}

func TestGresIsReadAsNodesAndJobsTellIt(t *testing.T) {
	for list, want := range map[string][]Gres{
		"gpu:a100_0:1,shard:a100_0:8":                     {{"gpu", "a100_0", 1, ""}, {"shard", "a100_0", 8, ""}},
		"gpu:a100:4(S:0-1),nic:2":                         {{"gpu", "a100", 4, "0-1"}},
		"gpu:2":                                           {{"gpu", "", 2, ""}},
		"gpu:2080:4(S:0-1),gpu:3090":                      {{"gpu", "2080", 4, "0-1"}, {"gpu", "", 3090, ""}},
		"gres:gpu":                                        {{"gpu", "", 1, ""}},
		"gres/shard:v100_1=3":                             {{"shard", "v100_1", 3, ""}},
		"gpu:a100_0:1(IDX:0),gpu:a100_1:0(IDX:)":          {{"gpu", "a100_0", 1, "0"}, {"gpu", "a100_1", 0, ""}},
		"gpu:a100:2(IDX:0,3),shard:a100_0:1(IDX:)":        {{"gpu", "a100", 2, "0,3"}, {"shard", "a100_0", 1, ""}},
		"shard:a100_1:2(0/4,2/4),shard:a100_0:0(0/4,0/4)": {{"shard", "a100_1", 2, "1"}, {"shard", "a100_0", 0, ""}}, // 24.11
		"": nil,
	} {
		if got := GresOf(list); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: expected %+v, found %+v", list, want, got)
		}
	}
}

// What squeue --json prints of one job that runs and one that ends, without what nobody reads: 22.05.8, then 24.11.5.
const (
	jobs2205 = `{"errors":[],"jobs":[{"job_id":7,"job_state":"RUNNING","priority":4294901753,"eligible_time":1795762924,"admin_comment":"x",
		"gres_detail":["gpu:a100_0:1(IDX:0),gpu:a100_1:0(IDX:)"],"node_count":1,"cpus":1,"shared":null,"array_job_id":0,"time_limit":null,
		"tres_req_str":"cpu=1,mem=1.50G,node=1,billing=1","tres_per_node":"gres:gpu:1","nodes":"n1","restart_cnt":2,
		"job_resources":{"nodes":"n1","allocated_cpus":1,"allocated_nodes":[{"nodename":"n1","cpus_used":0,"memory_used":0,
		"memory_allocated":1536,"sockets":{"31":{"cores":{"0":"unassigned"}}}}]}},
		{"job_id":8,"job_state":"COMPLETING","nodes":"n2"}]}`
	jobs2411 = `{"errors":[],"jobs":[{"job_id":7,"job_state":["RUNNING"],"priority":{"set":true,"infinite":false,"number":4294901753},
		"eligible_time":{"set":true,"infinite":false,"number":1795762924},"admin_comment":"x",
		"gres_detail":["gpu:a100_0:1(IDX:0),gpu:a100_1:0(IDX:)"],"node_count":{"set":true,"infinite":false,"number":1},
		"cpus":{"set":true,"infinite":false,"number":1},"shared":[],"array_job_id":{"set":true,"infinite":false,"number":0},
		"time_limit":{"set":false,"infinite":true,"number":0},"tres_req_str":"cpu=1,mem=1.50G,node=1,billing=1",
		"tres_per_node":"gres/gpu:1","nodes":"n1","restart_cnt":2,"job_resources":{"select_type":["CORE"],"nodes":{"count":1,
		"select_type":["ONE_ROW"],"list":"n1","whole":false,"allocation":[{"index":0,"name":"n1","cpus":{"count":1,"used":0},
		"memory":{"used":0,"allocated":1536},"sockets":[{"index":30,"cores":[{"index":0,"status":["UNALLOCATED"]}]},
		{"index":31,"cores":[{"index":0,"status":["ALLOCATED"]}]}]}]},"cpus":1}},
		{"job_id":8,"job_state":["COMPLETED","COMPLETING"],"nodes":"n2"}]}`
)

func TestJSONOfBothVersionsIsReadAlike(t *testing.T) {
	for _, text := range []string{jobs2205, jobs2411} {
		jobs, err := ParseJobs([]byte(text))
		if err != nil || len(jobs) != 2 {
			t.Fatal(jobs, err)
		}
		want := Job{
			ID: 7, State: "RUNNING", Priority: 4294901753, Eligible: 1795762924, AdminComment: "x", Hosts: "n1", NodeCount: 1, CPUs: 1,
			MemMiB: 1536, Tres: Tres{PerNode: "gres:gpu:1"}, Gres: []string{"gpu:a100_0:1(IDX:0),gpu:a100_1:0(IDX:)"}, Tasks: 1, Restarts: 2,
			Held: []Held{{Node: "n1", CPUs: 1, MemMiB: 1536}},
		}
		if !reflect.DeepEqual(jobs[0], want) {
			t.Errorf("expected\n%+v\nof %s, found\n%+v", want, text, jobs[0])
		}
		if !jobs[1].Running() || jobs[1].State != "COMPLETING" {
			t.Errorf("expected a job that is completing and holds what it has, found %+v", jobs[1])
		}
	}
	if _, err := ParseJobs([]byte(`{"jobs":[],"errors":[{"error":"down"}]}`)); err == nil || !strings.Contains(err.Error(), "down") {
		t.Errorf("expected the controller's error, found %v", err)
	}
}

func TestNodesAreReadFromTextAndFromJSONOfBothVersions(t *testing.T) {
	want := []Node{
		{Name: "n1", Address: "10.0.0.1", CPUs: 32, MemMiB: 64000, Gres: "gpu:a100_0:1,shard:a100_0:4", Partitions: []string{"gpu", "other"}, Tiers: map[string]int{"gpu": 7, "other": 1}, Features: []string{"big", "blue"}},
		{Name: "n2", Address: "n2", CPUs: 1024, MemMiB: 64000, Up: true, Partitions: []string{"gpu"}, Tiers: map[string]int{"gpu": 7}},
	}
	got, err := parseNodeList("n1|32|64000|mixed+drain|gpu|big,blue|gpu:a100_0:1,shard:a100_0:4|10.0.0.1|7|\n" +
		"n1|32|64000|mixed+drain|other|big,blue|gpu:a100_0:1,shard:a100_0:4|10.0.0.1|1|\nn2|1K|64000|idle|gpu|(null)|(null)|n2|7|\n")
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("expected %+v, found %+v, %v", want, got, err)
	}
	want[0].Tiers = nil // which only the text tells
	for _, text := range []string{
		`{"nodes":[{"name":"n1","cpus":32,"real_memory":64000,"gres":"gpu:a100_0:1,shard:a100_0:4","state":"mixed","state_flags":["DRAIN"],
			"partitions":["gpu","other"],"address":"10.0.0.1","active_features":"big,blue"}]}`,
		`{"nodes":[{"name":"n1","cpus":32,"real_memory":64000,"gres":"gpu:a100_0:1,shard:a100_0:4","state":["MIXED","DRAIN"],
			"partitions":["gpu","other"],"address":"10.0.0.1","active_features":["big","blue"]}]}`,
	} {
		if got, err := ParseNodes([]byte(text)); err != nil || !reflect.DeepEqual(got, want[:1]) {
			t.Errorf("%s: expected %+v, found %+v, %v", text, want[:1], got, err)
		}
	}
	for text, says := range map[string]string{"n1|32\n": "expected 9 fields", "n1|x|1|idle|gpu|||||\n": "node n1"} {
		if _, err := parseNodeList(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: expected an error that says %q, found %v", text, says, err)
		}
	}
	if _, err := ParseNodes([]byte(`{"sinfo":[]}`)); err == nil || !strings.Contains(err.Error(), "scontrol show nodes --json") {
		t.Errorf("sinfo --json of 24.11: expected a hint, found %v", err)
	}
}

func TestARequestWithoutTypesIsTakenAwayFirst(t *testing.T) {
	for _, c := range []struct {
		now   Tres
		apart bool
		first Setting
	}{
		{Tres{PerNode: "gres:shard:4"}, true, Setting{"TresPerNode", "gres:shard:a100_0:1"}},
		{Tres{PerNode: "gres:shard:a100_0:4"}, false, Setting{"TresPerNode", "gres:shard:a100_0:1"}},
		{Tres{PerJob: "gres:gpu:2"}, false, Setting{"TresPerJob", ""}},
		{Tres{}, false, Setting{"TresPerNode", "gres:shard:a100_0:1"}},
	} {
		apart, set := Retype(c.now, "gres:shard:a100_0:1", false)
		if apart != c.apart || set[0] != c.first {
			t.Errorf("%+v: expected %v and %v first, found %v, %v", c.now, c.apart, c.first, apart, set)
		}
	}
}

func TestFrom2411OnARequestTakesThePlaceOfTheOneBefore(t *testing.T) {
	if apart, set := Retype(Tres{PerNode: "gres:shard:4"}, "gres:shard:a100_0:1", true); apart || len(set) != 1 {
		t.Errorf("expected one step, found %v, %v", apart, set)
	}
	for said, want := range map[string]bool{"slurm-wlm 22.05.8\n": false, "slurm 24.05.4": false, "23.11.4": false, "slurm-wlm 24.11.5\n": true, "slurm 25.05.0": true} {
		if got, err := ReplacesOf(said); err != nil || got != want {
			t.Errorf("%q: expected %v, found %v, %v", said, want, got, err)
		}
	}
	if _, err := ReplacesOf("slurm"); err == nil {
		t.Error("expected an error where no version is told")
	}
}

func TestWhatAStrangerWroteIsOneWordForScontrol(t *testing.T) {
	if got, want := (Setting{"AdminComment", "a \"b'\nJobId=1"}).word(), "AdminComment=\"a `b` JobId=1\""; got != want {
		t.Errorf("expected %s, found %s", want, got)
	}
}

// What a controller forgot that was killed may be just what a change rests on.
func TestAnotherControllerIsToldNothingOfWhatTheLastOneSaid(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// It is started anew while it is told of job 2, or refuses that.
	write("scontrol", `#!/bin/sh
cd `+dir+`
[ "$1" = show ] && { echo "BOOT_TIME               = $(cat boot)"; exit; }
while read -r line; do
  case $line in
  *"JobId=2 "*) cat then >boot; [ -e refuses ] && echo Busy >&2 || sleep 0.3;;
  "~step") echo "invalid keyword: ~step" >&2; continue;;
  esac
  echo "$line" >>told
done
`)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	changes := []Change{{Job: 1, Steps: []Step{{{"A", "1"}}}}, {Job: 2, Steps: []Step{{{"A", "1"}}, {{"A", "2"}}}}, {Job: 3, Steps: []Step{{{"A", "1"}}}}}
	all := "update JobId=1 A=1\nupdate JobId=2 A=1\nupdate JobId=2 A=2\nupdate JobId=3 A=1\n"
	some := "update JobId=1 A=1\nupdate JobId=2 A=1\n"
	for name, c := range map[string]struct {
		boot, then string
		refuses    bool
		told       string
	}{
		"the same":                       {"2026-11-29T11:00:00", "2026-11-29T11:00:00", false, all},
		"another from the beginning":     {"2026-11-29T12:00:00", "2026-11-29T12:00:00", false, ""},
		"another in the midst":           {"2026-11-29T11:00:00", "2026-11-29T12:00:00", false, some},
		"another that refuses":           {"2026-11-29T11:00:00", "2026-11-29T12:00:00", true, some},
		"the same, that refuses to tell": {"2026-11-29T11:00:00", "2026-11-29T11:00:00", true, some + "update JobId=3 A=1\n"},
	} {
		write("boot", c.boot)
		write("then", c.then)
		write("told", "")
		_ = os.Remove(filepath.Join(dir, "refuses"))
		if c.refuses {
			write("refuses", "")
		}
		_, err := Client{}.Tell(context.Background(), changes, time.Minute, "2026-11-29T11:00:00")
		told, _ := os.ReadFile(filepath.Join(dir, "told"))
		if string(told) != c.told || errors.Is(err, ErrAnother) != (c.boot != "2026-11-29T11:00:00" || c.then != "2026-11-29T11:00:00") {
			t.Errorf("%s: expected it told %q, found %q, %v", name, c.told, told, err)
		}
	}
}
