// SPDX-License-Identifier: Apache-2.0

// Package cluster starts a real Slurm on this machine, in a folder of its own: munged, slurmctld and a slurmd for each node.
// Its GPUs are null devices.
package cluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"text/template"
	"time"

	"libhorus.org/slurm/internal/slurm"
)

// Options of a cluster. Zero values are defaults.
type Options struct {
	Nodes     int      // 0 = 2; named n1, n2, …
	GPUs      []string // gres types of a node's GPUs; nil = a100_0, a100_1. Equal ones are one line with a count
	Shards    int      // of each GPU; 0 = 4, -1 = none
	CPUs      int      // of a node; 0 = 32
	JobSubmit string   // job_submit.lua; "" = none
	Settings  string   // more lines of slurm.conf
}

// Cluster is a running Slurm.
type Cluster struct {
	t          testing.TB
	Dir        string
	options    Options
	controller *exec.Cmd
	slurmds    []*exec.Cmd
	munged     *exec.Cmd
	tidied     time.Time
}

// Missing says what this machine lacks; "" = nothing.
func Missing() string {
	for _, name := range []string{"slurmctld", "slurmd", "munged", "scontrol", "squeue", "sbatch"} {
		if _, err := exec.LookPath(name); err != nil {
			return name + " is not installed"
		}
	}
	if os.Getuid() != 0 {
		return "only root can run a slurmd and make devices"
	}
	return ""
}

const configuration = `ClusterName=test
SlurmctldHost={{.Host}}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={{.Dir}}/munge.socket
SlurmctldPort={{.Port}}
SlurmctldPidFile={{.Dir}}/slurmctld.pid
SlurmctldLogFile={{.Dir}}/slurmctld.log
SlurmdPidFile={{.Dir}}/slurmd.%n.pid
SlurmdSpoolDir={{.Dir}}/spool/%n
SlurmdLogFile={{.Dir}}/slurmd.%n.log
StateSaveLocation={{.Dir}}/state
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={{.Dir}}/jobcomp
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=5,sched_interval=5,batch_sched_delay=1,default_queue_depth=5000
PriorityType=priority/basic
MaxJobCount=20000
GresTypes={{.Kinds}}
{{.Settings}}
NodeName=n[1-{{.Nodes}}] NodeHostname={{.Host}} NodeAddr=127.0.0.1 Port=[{{.First}}-{{.Last}}] CPUs={{.CPUs}} RealMemory=64000 Gres={{.Gres}} State=UNKNOWN
PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
`

// Start starts a cluster that ends with the test. Commands of this process find it by SLURM_CONF.
func Start(t testing.TB, options Options) *Cluster {
	t.Helper()
	if options.Nodes == 0 {
		options.Nodes = 2
	}
	if options.GPUs == nil {
		options.GPUs = []string{"a100_0", "a100_1"}
	}
	if options.Shards == 0 {
		options.Shards = 4
	}
	if options.CPUs == 0 {
		options.CPUs = 32
	}
	dir, err := os.MkdirTemp("", "hs") // short: the path of a socket has 107 bytes at most
	must(t, err)
	c := &Cluster{t: t, Dir: dir, options: options}
	t.Setenv("SLURM_CONF", filepath.Join(dir, "slurm.conf"))
	t.Cleanup(c.stop) // after Setenv, and so run before it is taken back: stop cancels jobs, and not those of another cluster
	c.configure()
	c.munge()
	c.StartController()
	c.startNodes()
	return c
}

func (c *Cluster) startNodes() {
	c.slurmds = nil
	for i := range c.options.Nodes {
		name := fmt.Sprintf("n%d", i+1)
		must(c.t, os.MkdirAll(filepath.Join(c.Dir, "spool", name), 0o755))
		c.slurmds = append(c.slurmds, c.start("slurmd", "-D", "-N", name))
	}
	c.Wait("every node is idle", time.Minute, func() bool {
		out, err := exec.Command("sinfo", "-h", "-o", "%D %t").Output()
		return err == nil && strings.TrimSpace(string(out)) == fmt.Sprintf("%d idle", c.options.Nodes)
	})
}

// Restart the controller and all nodes in good order, as after another configuration.
func (c *Cluster) Restart() {
	c.t.Helper()
	for _, cmd := range append(c.slurmds, c.controller) {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}
	c.StartController()
	c.startNodes()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ports that are free, one after another. They lie below those on which jobs tell their steps (words.OwnPort).
func ports(t testing.TB, count int) int {
	for range 100 {
		var random [2]byte
		_, _ = rand.Read(random[:])
		first := 10_000 + (int(random[0])<<8|int(random[1]))%10_000
		free := true
		for port := first; free && port < first+count; port++ {
			listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
			if free = err == nil; free {
				listener.Close()
			}
		}
		if free {
			return first
		}
	}
	t.Fatalf("expected %d free ports one after another, found none", count)
	return 0
}

func (c *Cluster) configure() {
	host, err := os.Hostname()
	must(c.t, err)
	host, _, _ = strings.Cut(host, ".")
	port := ports(c.t, c.options.Nodes+1)
	settings := c.options.Settings
	if c.options.JobSubmit != "" {
		settings += "\nJobSubmitPlugins=lua"
		c.Write("job_submit.lua", c.options.JobSubmit)
	}
	counts, order := map[string]int{}, []string(nil)
	for _, gpu := range c.options.GPUs {
		if counts[gpu]++; counts[gpu] == 1 {
			order = append(order, gpu)
		}
	}
	var gres []string
	lines := "AutoDetect=off\n"
	kinds := []string{"gpu", "shard"}
	if c.options.Shards < 0 {
		kinds = kinds[:1]
	}
	for _, kind := range kinds {
		each := map[string]int{"gpu": 1, "shard": c.options.Shards}[kind]
		device := 0
		for _, gpu := range order {
			gres = append(gres, fmt.Sprintf("%s:%s:%d", kind, gpu, each*counts[gpu]))
			for range counts[gpu] {
				path := filepath.Join(c.Dir, "gpu"+strconv.Itoa(device))
				lines += fmt.Sprintf("NodeName=n[1-%d] Name=%s Type=%s", c.options.Nodes, kind, gpu)
				if kind == "shard" {
					lines += fmt.Sprintf(" Count=%d", each)
				} else {
					must(c.t, syscall.Mknod(path, syscall.S_IFCHR|0o666, 1<<8|3)) // as /dev/null
				}
				lines += " File=" + path + "\n"
				device++
			}
		}
	}
	c.Write("gres.conf", lines)
	var text bytes.Buffer
	must(c.t, template.Must(template.New("").Parse(configuration)).Execute(&text, map[string]any{
		"Host": host, "Dir": c.Dir, "Port": port, "First": port + 1, "Last": port + c.options.Nodes, "Nodes": c.options.Nodes,
		"Kinds": strings.Join(kinds, ","), "CPUs": c.options.CPUs, "Gres": strings.Join(gres, ","), "Settings": settings,
	}))
	c.Write("slurm.conf", text.String())
	must(c.t, os.MkdirAll(filepath.Join(c.Dir, "state"), 0o755))
}

// Write a file of the cluster's folder, which is that of slurm.conf.
func (c *Cluster) Write(name, text string) {
	c.t.Helper()
	must(c.t, os.WriteFile(filepath.Join(c.Dir, name), []byte(text), 0o755))
}

// Read a file of the cluster's folder; "" where there is none yet.
func (c *Cluster) Read(name string) string {
	text, _ := os.ReadFile(filepath.Join(c.Dir, name))
	return string(text)
}

func (c *Cluster) munge() {
	key := make([]byte, 128)
	_, _ = rand.Read(key)
	path := filepath.Join(c.Dir, "munge.key")
	must(c.t, os.WriteFile(path, key, 0o400))
	c.munged = c.start("munged", "--foreground", "--force", "--key-file="+path, "--socket="+c.Dir+"/munge.socket",
		"--pid-file="+c.Dir+"/munged.pid", "--log-file="+c.Dir+"/munged.log", "--seed-file="+c.Dir+"/munged.seed")
	c.Wait("munged listens", 10*time.Second, func() bool {
		_, err := os.Stat(c.Dir + "/munge.socket")
		return err == nil
	})
}

// start a program of its own process group, which ends with this process.
func (c *Cluster) start(name string, args ...string) *exec.Cmd {
	c.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	log, err := os.OpenFile(filepath.Join(c.Dir, filepath.Base(name)+".out"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	must(c.t, err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	must(c.t, cmd.Start())
	return cmd
}

// StartController starts slurmctld, which goes on where the last one ended.
func (c *Cluster) StartController() {
	c.t.Helper()
	c.controller = c.start("slurmctld", "-D")
	c.Wait("slurmctld answers", time.Minute, func() bool { return exec.Command("scontrol", "ping").Run() == nil && c.up() })
}

func (c *Cluster) up() bool {
	out, _ := exec.Command("scontrol", "ping").Output()
	return strings.Contains(string(out), "UP")
}

// Saved waits until the controller has written down what it knew at a time. It does so within 5 seconds (SAVE_MAX_WAIT); what
// it was told since is lost with it, submissions too.
func (c *Cluster) Saved(at time.Time) {
	c.t.Helper()
	c.Wait("the controller saves its state", 30*time.Second, func() bool {
		info, err := os.Stat(filepath.Join(c.Dir, "state", "job_state"))
		return err == nil && info.ModTime().After(at)
	})
}

// KillController kills slurmctld without a word.
func (c *Cluster) KillController() {
	_ = c.controller.Process.Kill()
	_ = c.controller.Wait()
}

// Tidy does what an administrator has to do after a controller was killed: it forgot that jobs had started, started them again
// where they ran already ("Duplicate jobid"), so drained those nodes and held those jobs; or forgot that they had ended, which
// only a reconfiguration makes 22.05 ask the nodes about, and which 24.11 has to be told.
func (c *Cluster) Tidy() {
	if out, err := exec.Command("sinfo", "-h", "-N", "-t", "drain", "-o", "%N").Output(); err == nil {
		for _, name := range strings.Fields(string(out)) {
			_, _ = c.Slurm("scontrol", "update", "NodeName="+name, "State=RESUME")
		}
	}
	if time.Since(c.tidied) > 20*time.Second {
		c.tidied = time.Now()
		_, _ = c.Slurm("scontrol", "reconfigure")
	}
	_, ended := c.Runs()
	for _, job := range c.Jobs() {
		if job.State == "RUNNING" && ended[fmt.Sprint(job.ID)] > 0 && time.Now().Unix()-job.Started > forgottenS {
			_, _ = c.Slurm("scontrol", "requeue", fmt.Sprint(job.ID))
		}
		if job.Pending() && job.Priority == 0 {
			_, _ = c.Slurm("scontrol", "release", fmt.Sprint(job.ID))
		}
	}
}

// forgottenS after its start a job of a few seconds that wrote down its end still runs only for the controller.
const forgottenS = 30

func (c *Cluster) stop() {
	if c.t.Failed() {
		if out, err := c.Slurm("squeue", "-a", "-O", "JobID:8,State:12,ReasonList:40,tres-per-node:40,ReqNodes:12,admin_comment:300"); err == nil {
			c.t.Logf("jobs that did not end:\n%s", out)
		}
		for _, name := range []string{"horus-slurm.out", "munged.out", "slurmctld.out", "slurmd.out", "slurmctld.log"} {
			text := c.Read(name)
			c.t.Logf("the end of %s:\n%s", name, text[max(0, len(text)-4000):])
		}
	}
	_ = exec.Command("scancel", "-u", "root").Run()
	// Steps of jobs outlive their slurmd: they end before it does.
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if out, err := exec.Command("squeue", "-h").Output(); err != nil || len(out) == 0 {
			break
		}
	}
	all := append([]*exec.Cmd{c.controller}, c.slurmds...)
	for _, cmd := range append(all, c.munged) {
		if cmd != nil {
			_ = cmd.Process.Signal(syscall.SIGTERM)
		}
	}
	for _, cmd := range append(all, c.munged) {
		if cmd != nil {
			timer := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
			_ = cmd.Wait()
			timer.Stop()
		}
	}
	_ = os.RemoveAll(c.Dir)
}

// Program of ours that is not the daemon's; it returns what it printed.
func (c *Cluster) Program(args ...string) (string, error) {
	out, err := exec.Command(Binary(c.t), args...).CombinedOutput()
	return string(out), err
}

// Binary is horus-slurm, as test/run built it.
func Binary(t testing.TB) string {
	t.Helper()
	bin := os.Getenv("HORUS_SLURM_BIN")
	if bin == "" {
		t.Skip("HORUS_SLURM_BIN is not set: run bindings/slurm/test/run")
	}
	return filepath.Join(bin, "horus-slurm")
}

// Daemon is a running horus-slurm.
type Daemon struct{ cmd *exec.Cmd }

// StartDaemon starts horus-slurm on the cluster's partition; more options may follow.
func (c *Cluster) StartDaemon(options ...string) *Daemon {
	c.t.Helper()
	return c.StartProgram(append([]string{"run", "--whole-may-share", "--partitions", "gpu", "--types", Types, "--period", "200ms"}, options...)...)
}

// StartProgram starts horus-slurm with a command that runs until it is stopped.
func (c *Cluster) StartProgram(args ...string) *Daemon {
	c.t.Helper()
	d := &Daemon{c.start(Binary(c.t), args...)}
	c.t.Cleanup(d.Kill)
	return d
}

// Types that the gres types of tests are.
const Types = "a100=a100-40gb,v100=v100-sxm2-16gb"

// Kill it without a word.
func (d *Daemon) Kill() {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
}

// CPU that it and its children used, after Stop.
func (d *Daemon) CPU() time.Duration {
	state := d.cmd.ProcessState
	return state.UserTime() + state.SystemTime()
}

// Stop it in good order.
func (d *Daemon) Stop() {
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	_ = d.cmd.Wait()
}

// Submit a job that sleeps and writes down when it began and ended. The options are sbatch's.
func (c *Cluster) Submit(sleep string, options ...string) uint64 {
	c.t.Helper()
	id, err := c.TrySubmit(sleep, options...)
	must(c.t, err)
	return id
}

// TrySubmit is Submit, where the controller may refuse or be gone.
func (c *Cluster) TrySubmit(sleep string, options ...string) (uint64, error) {
	script := filepath.Join(c.Dir, "sleeper")
	if _, err := os.Stat(script); err != nil {
		c.Write("sleeper", fmt.Sprintf("#!/bin/sh\necho \"$SLURM_JOB_ID begins $SLURM_RESTART_COUNT\" >>%s/ran\nsleep $1\necho \"$SLURM_JOB_ID ends\" >>%s/ran\n", c.Dir, c.Dir))
	}
	args := append([]string{"--parsable", "--output=/dev/null", "--mem=100"}, options...)
	out, err := exec.Command("sbatch", append(args, script, sleep)...).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("sbatch %v: %w: %s", options, err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strconv.ParseUint(lines[len(lines)-1], 10, 64)
}

// Job as the controller tells it.
func (c *Cluster) Job(id uint64) slurm.Job {
	c.t.Helper()
	for _, job := range c.Jobs() {
		if job.ID == id {
			return job
		}
	}
	c.t.Fatalf("job %d: expected that the controller knows it, found that it does not", id)
	return slurm.Job{}
}

// Jobs that the controller tells.
func (c *Cluster) Jobs() []slurm.Job {
	c.t.Helper()
	jobs, err := slurm.Client{}.Jobs(context.Background())
	must(c.t, err)
	return jobs
}

// Wait until something holds.
func (c *Cluster) Wait(what string, atMost time.Duration, holds func() bool) {
	c.t.Helper()
	if given, err := time.ParseDuration(os.Getenv("HORUS_SLURM_WITHIN")); err == nil {
		atMost = min(atMost, given)
	}
	for end := time.Now().Add(atMost); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("expected that %s; it was not so for %v", what, atMost)
		}
	}
}

// Slurm runs one of Slurm's commands and returns what it said.
func (c *Cluster) Slurm(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	return string(out), err
}
