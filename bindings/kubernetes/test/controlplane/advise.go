// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// Advise is a process of horus-advise.
type Advise struct {
	c          *Cluster
	name, port string
	cmd        *exec.Cmd
}

// NewAdvise gives it a port on loopback.
func (c *Cluster) NewAdvise(name string) *Advise {
	c.t.Helper()
	return &Advise{c: c, name: name, port: freePort(c.t)}
}

// Address of its server.
func (a *Advise) Address() string { return "127.0.0.1:" + a.port }

// Start starts it with the arguments of the chart and the token of its service account, and waits until it is ready.
func (a *Advise) Start(token string, args []string) {
	a.c.t.Helper()
	a.c.write(a.name+".kubeconfig", fmt.Sprintf(kubeconfig, a.c.path("certs/apiserver.crt"), a.c.api, token))
	a.cmd = a.c.startAs(a.name, nil, "horus-advise", append(args, // the last of each flag counts
		"--kubeconfig", a.c.path(a.name+".kubeconfig"), "--address", a.Address(), "--names", "127.0.0.1,localhost")...)
	a.c.await(a.name, "https://"+a.Address()+"/readyz")
}

// Signal sends it a signal.
func (a *Advise) Signal(signal syscall.Signal) {
	a.c.t.Helper()
	must(a.c.t, a.cmd.Process.Signal(signal))
}

// Wait for its end.
func (a *Advise) Wait() { _ = a.cmd.Wait() }

// Metrics is its own text.
func (a *Advise) Metrics() string {
	a.c.t.Helper()
	text, err := get("https://"+a.Address()+"/metrics", "")
	must(a.c.t, err)
	return text
}

// Log is what it wrote so far.
func (a *Advise) Log() string {
	text, _ := os.ReadFile(a.c.path(a.name + ".log"))
	return strings.TrimSpace(string(text))
}
