// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// lines of a list: the values of a job's fields, in their order, as 22.05.8 and 24.11.5 print them.
func lines(end string, jobs ...[]string) string {
	var b strings.Builder
	for _, values := range jobs {
		for _, value := range values {
			b.WriteString(value + end)
		}
		b.WriteString("\n")
	}
	return b.String()
}

var (
	waits = []string{
		"12", "9_[1-3]", "N/A", "x\n13|#13_1|", "root", "(null)", "gpu", "PENDING", "BeginTime", "horus:a|#b", "", "4294901759", "1795763062",
		"1795763122", "N/A", "(null)", "big", "n1", "", "n[3-4]", "1-00:00:01", "2-4", "1K", "cpu=2,mem=200M,node=2,billing=2", "(null)", "(null)", "NO",
		"N/A", "gres/shard:4", "N/A", "gres/gpu=1", "2", "0", "/home/x", "localhost",
	}
	runs = []string{
		"7", "7", "N/A", "s\n   UserId=x", "root", "z Account=q QOS=r", "gpu", "RUNNING", "None", "(null)", "", "4294901753", "1795763074",
		"1795763074", "1795763076", "(null)", "", "", "n[1-2]", "(null)", "UNLIMITED", "2", "3", "cpu=3,mem=200M,node=2,billing=3", "(null)", "(null)", "OK",
		"gres:gpu:2", "N/A", "N/A", "N/A", "2", "0", "/home/x", "login",
	}
)

// What scontrol --details show job prints of the second, by 22.05.8 with a name and an account that copy it.
const told = `scontrol: show job 7
JobId=7 JobName=s
   UserId=x
   UserId=root(0) GroupId=root(0) MCS_label=N/A
   Priority=4294901753 Nice=0 Account=z Account=q QOS=r QOS=(null)
   JobState=RUNNING Reason=None Dependency=(null)
   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0
   SubmitTime=1795763074 EligibleTime=1795763074
   StartTime=1795763076 EndTime=Unknown Deadline=N/A
   Partition=gpu AllocNode:Sid=login:16842
   ReqNodeList=(null) ExcNodeList=(null)
   NodeList=n[1-2]
   BatchHost=n1
   TRES=cpu=3,mem=200M,node=2,billing=3
   JOB_GRES=gpu:a100_0:1,gpu:a100_1:1
     Nodes=n1 CPU_IDs=0,31 Mem=100 GRES=gpu:a100_0:1(IDX:0),gpu:a100_1:0(IDX:)
     Nodes=n2 CPU_IDs=31 Mem=100 GRES=gpu:a100_0:0(IDX:),gpu:a100_1:1(IDX:1)
   MinCPUsNode=1 MinMemoryNode=100M MinTmpDiskNode=0
   Comment=x
     Nodes=n1 CPU_IDs=0-9 Mem=5 GRES=gpu:a100_1:1(IDX:1)
   MinCPUsNode=1
`

func TestAListIsReadWhateverItsUsersWrote(t *testing.T) {
	got, err := parseList(lines("|#13f", waits, runs), "|#13f")
	if err != nil || len(got) != 2 {
		t.Fatal(got, err)
	}
	want := Job{
		ID: 12, Array: true, Name: "x\n13|#13_1|", User: "root", Partition: "gpu", State: "PENDING", Reason: "BeginTime", Comment: "horus:a|#b",
		Priority: 4294901759, Submitted: 1795763062, Eligible: 1795763122, Features: "big", Required: "n1", Promised: "n[3-4]", TimeLimitMin: 1441, NodeCount: 2, CPUs: 1024,
		MemMiB: 200, WholeNodes: true, Tres: Tres{PerNode: "gres:shard:4", PerTask: "gres:gpu:1"}, Tasks: 2, WorkDir: "/home/x",
	}
	if !reflect.DeepEqual(got[0].Job, want) {
		t.Errorf("expected\n%+v\nfound\n%+v", want, got[0].Job)
	}
	for name, text := range map[string]string{
		"a line too short": lines("|#", waits[1:]),
		"a line too long":  lines("|#", append(waits[:len(waits):len(waits)], "x")),
		"no number":        lines("|#", append([]string{"x"}, waits[1:]...)),
		"an error":         "slurm_load_jobs error: Unable to contact slurm controller\n",
	} {
		if got, err := parseList(text, "|#"); err == nil {
			t.Errorf("%s: expected an error, found %+v", name, got)
		}
	}
}

func TestWhatAJobHoldsIsReadWhateverItsUserWrote(t *testing.T) {
	list, err := parseList(lines("|#", runs), "|#")
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseRun(list[0], told)
	want := []Held{{Node: "n1", CPUs: 2, MemMiB: 100}, {Node: "n2", CPUs: 1, MemMiB: 100}}
	if err != nil || !reflect.DeepEqual(got.held, want) || len(got.gres) != 2 || got.gres[1] != "gpu:a100_0:0(IDX:),gpu:a100_1:1(IDX:1)" {
		t.Errorf("expected %+v and the devices of both nodes, found %+v, %v", want, got, err)
	}
	for name, text := range map[string]string{
		"it is gone":        "scontrol: show job 7\n",
		"it started again":  strings.Replace(told, "StartTime=1795763076", "StartTime=1795763099", 1),
		"it runs elsewhere": strings.Replace(told, "NodeList=n[1-2]", "NodeList=n[1-3]", 1),
		"it was run again":  strings.Replace(told, "Restarts=0", "Restarts=1", 1),
	} {
		if _, err := parseRun(list[0], text); !errors.Is(err, errMoved) {
			t.Errorf("%s: expected that it is read again, found %v", name, err)
		}
	}
	for name, text := range map[string]string{
		"another account": strings.Replace(told, "Account=z ", "Account=y ", 1),
		"no lines":        strings.ReplaceAll(told, "     Nodes=", "     Node="),
		"another end":     strings.ReplaceAll(told, "MinCPUsNode", "MinCPUs"),
		"another number":  strings.Replace(told, "Mem=100", "Mem=1G", 1),
	} {
		if _, err := parseRun(list[0], text); err == nil || errors.Is(err, errMoved) {
			t.Errorf("%s: expected an error, found %v", name, err)
		}
	}
}
