// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Replica is one of several processes of horus-scheduler that elect a leader, as the chart installs them.
type Replica struct {
	c          *Cluster
	name, port string
	cmd        *exec.Cmd
}

// StartReplica starts one with the chart's own configuration and lease. The lease's namespace must be there.
func (c *Cluster) StartReplica(name, values string) *Replica {
	c.t.Helper()
	r := &Replica{c: c, name: name, port: freePort(c.t)}
	config, args := c.config(values)
	r.cmd = c.process(name, config, r.port, c.path("kubeconfig"), args)
	return r
}

// Await waits until it is ready: it has mirrored the cluster, whether it leads or not.
func (r *Replica) Await() {
	r.c.t.Helper()
	r.c.await(r.name, "https://127.0.0.1:"+r.port+"/readyz")
}

// Signal sends it a signal.
func (r *Replica) Signal(signal syscall.Signal) {
	r.c.t.Helper()
	must(r.c.t, r.cmd.Process.Signal(signal))
}

// Wait waits for its end and tells its exit code; -1 if a signal ended it.
func (r *Replica) Wait() int { r.c.t.Helper(); return r.c.awaitEnd(r.name, r.cmd) }

// AwaitStop waits until it stands still by SIGSTOP.
func (r *Replica) AwaitStop() {
	r.c.t.Helper()
	stat := fmt.Sprintf("/proc/%d/stat", r.cmd.Process.Pid)
	for deadline := time.Now().Add(readyWithin); ; time.Sleep(20 * time.Millisecond) {
		text, err := os.ReadFile(stat)
		must(r.c.t, err)
		if _, after, _ := strings.Cut(string(text), ") "); strings.HasPrefix(after, "T") {
			return
		}
		if time.Now().After(deadline) {
			r.c.t.Fatalf("%s: expected it to stand still, found it running after %v", r.name, readyWithin)
		}
	}
}

// Leads asks it. One that does not answer does not lead.
func (r *Replica) Leads() bool {
	text, err := get("https://127.0.0.1:"+r.port+"/metrics", r.c.token)
	return err == nil && strings.Contains(text, `leader_election_master_status{name="kube-scheduler"} 1`)
}

// Metrics is its own text; "" of one that does not answer.
func (r *Replica) Metrics() string {
	text, _ := get("https://127.0.0.1:"+r.port+"/metrics", r.c.token)
	return text
}

// AwaitEnd waits until the scheduler that StartScheduler started ends by itself, and tells its exit code.
func (c *Cluster) AwaitEnd() int { c.t.Helper(); return c.awaitEnd("horus-scheduler", c.scheduler) }

func (c *Cluster) awaitEnd(name string, cmd *exec.Cmd) int {
	c.t.Helper()
	late := time.AfterFunc(readyWithin, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	if !late.Stop() {
		c.t.Fatalf("%s: expected its end, found it running after %v", name, readyWithin)
	}
	return cmd.ProcessState.ExitCode()
}

// process starts horus-scheduler.
func (c *Cluster) process(name, config, port, kubeconfig string, args []string) *exec.Cmd {
	c.t.Helper()
	c.write(name+".yaml", config)
	args = append(args, "--config", c.path(name+".yaml"), "--bind-address", "127.0.0.1", // the last of each flag counts
		"--secure-port", port, "--cert-dir", c.path(name+"-certs"),
		"--authentication-kubeconfig", kubeconfig, "--authorization-kubeconfig", kubeconfig) // in a pod it finds them itself
	return c.startAs(name, c.Env, "horus-scheduler", args...)
}
