// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"k8s.io/client-go/util/cert"
)

// Advise is a process of horus-advise.
type Advise struct {
	c          *Cluster
	name, port string
	cmd        *exec.Cmd
	CA         []byte // of its certificate
}

// NewAdvise gives it a port on loopback.
func (c *Cluster) NewAdvise(name string) *Advise {
	c.t.Helper()
	a := &Advise{c: c, name: name, port: freePort(c.t)}
	a.Certify()
	return a
}

// Certify gives it another certificate for loopback, as a Secret that is mounted changes.
func (a *Advise) Certify() {
	a.c.t.Helper()
	chain, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	must(a.c.t, err)
	must(a.c.t, os.MkdirAll(a.c.path(a.name), 0o700))
	a.c.write(filepath.Join(a.name, "tls.crt"), string(chain))
	a.c.write(filepath.Join(a.name, "tls.key"), string(key))
	a.CA = chain
}

// Address of its server.
func (a *Advise) Address() string { return "127.0.0.1:" + a.port }

// Start starts it with the arguments of the chart and the token of its service account, and waits until it is ready.
func (a *Advise) Start(token string, args []string) {
	a.c.t.Helper()
	a.c.write(a.name+".kubeconfig", fmt.Sprintf(kubeconfig, a.c.path("certs/apiserver.crt"), a.c.api, token))
	a.cmd = a.c.startAs(a.name, nil, "horus-advise", append(args, // the last of each flag counts
		"--kubeconfig", a.c.path(a.name+".kubeconfig"), "--address", a.Address(), "--certificates", a.c.path(a.name))...)
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
