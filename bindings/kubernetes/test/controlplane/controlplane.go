// SPDX-License-Identifier: Apache-2.0

// Package controlplane starts a real control plane on loopback: etcd, kube-apiserver, kwok for the kubelets, and
// horus-scheduler with the default profile beside ours. Its programs lie in one folder, made by test/run.
package controlplane

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// Cluster is a running control plane.
type Cluster struct {
	Config  *rest.Config
	Client  kubernetes.Interface
	Dynamic dynamic.Interface

	Env []string // beside this process's own, of the schedulers that are started from now on

	t         testing.TB
	bin, dir  string
	api, port string   // of the API server, and of the scheduler
	etcd      string   // its address
	flags     []string // of the API server, beside its own
	token     string
	apiServer *exec.Cmd
	scheduler *exec.Cmd
	observer  *exec.Cmd
}

const readyWithin = 90 * time.Second

// Start starts all but the scheduler, the API server with `flags` beside its own; everything ends with the test.
func Start(t testing.TB, bin string, flags ...string) *Cluster {
	t.Helper()
	c := &Cluster{t: t, bin: bin, flags: flags, dir: t.TempDir(), api: freePort(t), port: freePort(t)}
	secret := make([]byte, 16)
	must(t, second(rand.Read(secret)))
	c.token = hex.EncodeToString(secret)
	c.write("tokens.csv", c.token+",admin,admin,system:masters\n")
	c.keys()
	etcd, peer, kwok := freePort(t), freePort(t), freePort(t)
	etcdURL := "http://127.0.0.1:" + etcd
	c.etcd = etcdURL
	// No fsync: a throw-away store.
	c.start("etcd", "--data-dir", c.path("etcd"), "--unsafe-no-fsync", "--listen-client-urls", etcdURL,
		"--advertise-client-urls", etcdURL, "--listen-peer-urls", "http://127.0.0.1:"+peer,
		"--initial-advertise-peer-urls", "http://127.0.0.1:"+peer, "--initial-cluster", "default=http://127.0.0.1:"+peer)
	c.await("etcd", etcdURL+"/health")
	c.StartAPIServer()
	c.Config = &rest.Config{
		Host: "https://127.0.0.1:" + c.api, BearerToken: c.token, QPS: 5000, Burst: 5000,
		TLSClientConfig: rest.TLSClientConfig{CAFile: c.path("certs/apiserver.crt")},
	}
	var err error
	c.Client, err = kubernetes.NewForConfig(c.Config)
	must(t, err)
	c.Dynamic, err = dynamic.NewForConfig(c.Config)
	must(t, err)
	c.write("kubeconfig", fmt.Sprintf(kubeconfig, c.path("certs/apiserver.crt"), c.api, c.token))
	stages, err := filepath.Glob(filepath.Join(bin, "stages", "*.yaml"))
	must(t, err)
	args := []string{"--kubeconfig", c.path("kubeconfig"), "--server-address", "127.0.0.1:" + kwok,
		"--manage-nodes-with-annotation-selector", "kwok.x-k8s.io/node=fake", "--node-lease-duration-seconds", "40",
		"--cidr", "127.77.0.1/16"} // pods have addresses of loopback, on which a test may answer for them
	for _, stage := range stages {
		args = append(args, "--config", stage)
	}
	c.start("kwok", args...)
	c.await("kwok", "http://127.0.0.1:"+kwok+"/healthz")
	return c
}

// StartAPIServer starts it on the store as it is.
func (c *Cluster) StartAPIServer() {
	c.t.Helper()
	// Without the controller manager no default service account appears, and nobody takes the not-ready taint off.
	c.apiServer = c.start("kube-apiserver", append(c.flags, "--etcd-servers", c.etcd, "--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1",
		"--secure-port", c.api, "--cert-dir", c.path("certs"), "--token-auth-file", c.path("tokens.csv"),
		"--authorization-mode", "RBAC", "--service-account-issuer", "https://kubernetes.default.svc",
		"--service-account-key-file", c.path("sa.pub"), "--service-account-signing-key-file", c.path("sa.key"),
		"--service-cluster-ip-range", "10.96.0.0/16", "--endpoint-reconciler-type", "none",
		"--enable-priority-and-fairness=false", "--profiling=false",
		"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition")...)
	c.await("kube-apiserver", "https://127.0.0.1:"+c.api+"/readyz")
}

// KillAPIServer ends it at once; what it stored stays.
func (c *Cluster) KillAPIServer() {
	c.t.Helper()
	must(c.t, c.apiServer.Process.Kill())
	_ = c.apiServer.Wait()
}

// Version is that of the Kubernetes that the programs are built from, such as v1.37.2.
func Version(bin string) (string, error) {
	out, err := exec.Command(filepath.Join(bin, "horus-scheduler"), "--version").CombinedOutput()
	version, told := strings.CutPrefix(strings.TrimSpace(string(out)), "Kubernetes ")
	if err == nil && !told {
		err = fmt.Errorf("horus-scheduler --version: expected Kubernetes and its version, found %q", out)
	}
	return version, err
}

// Render is what Helm makes of the chart with these values on that Kubernetes, or why it makes nothing. HORUS_K8S_CHART names another
// chart.
func Render(bin, namespace, kubernetes, values string) (string, error) {
	out, err := exec.Command(filepath.Join(bin, "horus-chart"), cmp.Or(os.Getenv("HORUS_K8S_CHART"), "../../charts/horus"), "horus", namespace, kubernetes, values).CombinedOutput()
	return string(out), err
}

// StartScheduler starts horus-scheduler with the chart's own configuration for these values, beside the default profile and
// without leader election. HORUS_K8S_SCORE is percentageOfNodesToScore of both profiles.
func (c *Cluster) StartScheduler(values string) {
	c.t.Helper()
	config, args := c.config(values)
	c.run(strings.Replace(config, "leaderElect: true", "leaderElect: false", 1), c.path("kubeconfig"), args...)
}

// config is the chart's own, with the default profile beside ours, and the chart's feature gates.
func (c *Cluster) config(values string) (config string, args []string) {
	c.t.Helper()
	version, err := Version(c.bin)
	must(c.t, err)
	manifest, err := Render(c.bin, "gpu-system", version, values)
	must(c.t, err)
	var found struct {
		Data map[string]string `json:"data"`
	}
	must(c.t, yaml.Unmarshal([]byte(manifest[strings.Index(manifest, "apiVersion"):strings.Index(manifest, "---\n# Source: horus/templates/deployment")]), &found))
	return strings.NewReplacer(
		"clientConnection: {", "clientConnection: {kubeconfig: "+c.path("kubeconfig")+", ",
		"profiles:\n", "percentageOfNodesToScore: "+cmp.Or(os.Getenv("HORUS_K8S_SCORE"), "0")+"\nprofiles:\n- schedulerName: default-scheduler\n",
	).Replace(found.Data["scheduler.yaml"]), append(featureGates.FindAllString(manifest, -1), "-v=2")
}

var featureGates = regexp.MustCompile(`--feature-gates=[A-Za-z=,]+`)

// StartInstalled starts horus-scheduler with a configuration and arguments of the chart and the token of its service account.
func (c *Cluster) StartInstalled(config, token string, args []string) {
	c.t.Helper()
	c.write("installed.kubeconfig", fmt.Sprintf(kubeconfig, c.path("certs/apiserver.crt"), c.api, token))
	c.run(strings.Replace(config, "clientConnection: {", "clientConnection: {kubeconfig: "+c.path("installed.kubeconfig")+", ", 1),
		c.path("installed.kubeconfig"), args...)
}

func (c *Cluster) run(config, kubeconfig string, args ...string) {
	c.t.Helper()
	c.scheduler = c.process("horus-scheduler", config, c.port, kubeconfig, args)
	c.await("horus-scheduler", "https://127.0.0.1:"+c.port+"/readyz")
}

// StartObserver starts horus-observer with arguments of the chart and the token of its service account, and returns the address
// of its metrics.
func (c *Cluster) StartObserver(config, token string, args []string) (metrics string) {
	c.t.Helper()
	c.write("observer.kubeconfig", fmt.Sprintf(kubeconfig, c.path("certs/apiserver.crt"), c.api, token))
	c.write("observer.yaml", config)
	address := "127.0.0.1:" + freePort(c.t)
	c.observer = c.start("horus-observer", append(args, "-kubeconfig", c.path("observer.kubeconfig"), "-config", c.path("observer.yaml"), "-listen", address)...)
	c.await("horus-observer", "http://"+address+"/healthz")
	return "http://" + address + "/metrics"
}

// KillObserver ends it as a crash would, at once.
func (c *Cluster) KillObserver() {
	c.t.Helper()
	must(c.t, c.observer.Process.Kill())
	_ = c.observer.Wait()
}

// ObserverLog is what the observers wrote so far.
func (c *Cluster) ObserverLog() string {
	text, _ := os.ReadFile(c.path("horus-observer.log"))
	return string(text)
}

// Get reads an address of loopback.
func (c *Cluster) Get(url string) (string, error) { return get(url, "") }

// KillScheduler ends it as a crash would, at once.
func (c *Cluster) KillScheduler() {
	c.t.Helper()
	must(c.t, c.scheduler.Process.Kill())
	_ = c.scheduler.Wait()
}

// StopScheduler lets it stand still; Go lets it go on.
func (c *Cluster) StopScheduler() { must(c.t, c.scheduler.Process.Signal(syscall.SIGSTOP)) }

// Go is the end of StopScheduler.
func (c *Cluster) Go() { must(c.t, c.scheduler.Process.Signal(syscall.SIGCONT)) }

// Metrics is the scheduler's own text.
func (c *Cluster) Metrics() string {
	c.t.Helper()
	text, err := c.Scrape(c.token)
	must(c.t, err)
	return text
}

// Scrape reads them with somebody's token.
func (c *Cluster) Scrape(token string) (string, error) {
	return get("https://127.0.0.1:"+c.port+"/metrics", token)
}

// SchedulerLog is what the scheduler wrote so far; of several, one after the other.
func (c *Cluster) SchedulerLog() string {
	var all []byte
	logs, _ := filepath.Glob(c.path("horus-scheduler*.log"))
	for _, log := range logs {
		text, _ := os.ReadFile(log)
		all = append(all, text...)
	}
	return string(all)
}

// Kubeconfig is the path of a file for kubectl.
func (c *Cluster) Kubeconfig() string { return c.path("kubeconfig") }

func (c *Cluster) path(name string) string { return filepath.Join(c.dir, name) }

func (c *Cluster) write(name, text string) {
	c.t.Helper()
	must(c.t, os.WriteFile(c.path(name), []byte(text), 0o600))
}

func (c *Cluster) keys() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(c.t, err)
	private, err := x509.MarshalECPrivateKey(key)
	must(c.t, err)
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	must(c.t, err)
	for name, block := range map[string]*pem.Block{
		"sa.key": {Type: "EC PRIVATE KEY", Bytes: private}, "sa.pub": {Type: "PUBLIC KEY", Bytes: public},
	} {
		var text bytes.Buffer
		must(c.t, pem.Encode(&text, block))
		c.write(name, text.String())
	}
}

func (c *Cluster) start(program string, args ...string) *exec.Cmd {
	c.t.Helper()
	return c.startAs(program, nil, program, args...)
}

// startAs starts a program whose log has a name of its own.
func (c *Cluster) startAs(name string, env []string, program string, args ...string) *exec.Cmd {
	c.t.Helper()
	log, err := os.OpenFile(c.path(name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(c.t, err)
	cmd := exec.Command(filepath.Join(c.bin, program), args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(c.t, cmd.Start())
	c.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
	})
	return cmd
}

func (c *Cluster) await(program, url string) {
	c.t.Helper()
	deadline := time.Now().Add(readyWithin)
	for {
		_, err := get(url, "")
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(c.path(program + ".log"))
			c.t.Fatalf("%s: not ready: %v\n%s", program, err, log[max(0, len(log)-4000):])
		}
		time.Sleep(50 * time.Millisecond)
	}
}

var loopback = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // self-signed, on loopback, of this very test
}}

func get(url, token string) (string, error) {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := loopback.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, text)
	}
	return string(text), err
}

// freePort is a port that nobody listens on and that this process has not told before: etcd asks for two at a time.
func freePort(t testing.TB) string {
	t.Helper()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		_, port, err := net.SplitHostPort(l.Addr().String())
		l.Close()
		must(t, err)
		if _, told := toldPorts.LoadOrStore(port, true); !told {
			return port
		}
	}
}

var toldPorts sync.Map

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func second[T any](_ T, err error) error { return err }

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {certificate-authority: %s, server: "https://127.0.0.1:%s"}}]
users: [{name: u, user: {token: "%s"}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`
