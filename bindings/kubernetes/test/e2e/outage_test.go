// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"libhorus.org/kubernetes/test/controlplane"
)

// mirrored waits until the scheduler's own counts are what the API server says.
func (f *crowd) mirrored() {
	f.t.Helper()
	until(f.t, f.c, "the mirror is as the API server says", func() bool {
		slices, err := f.c.Client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
		check(f.t, err)
		pods, err := f.c.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		check(f.t, err)
		devices, bound := 0, 0
		for _, slice := range slices.Items {
			devices += len(slice.Spec.Devices)
		}
		for _, pod := range pods.Items {
			if pod.Spec.NodeName != "" {
				bound++
			}
		}
		text := f.metrics()
		for name, want := range map[string]int{
			"nodes": len(slices.Items), "devices": devices, "pods": bound,
		} {
			if metricOf(text, "horus_mirrored_"+name+" ") != float64(want) {
				return false
			}
		}
		return metricOf(text, "horus_waiting_pods ") == 0 && metricOf(text, "horus_unused_nodes ") == 0
	})
}

// outlast lets a test wait for a reconnection too: after an outage client-go's watches wait up to a minute before they try again.
func outlast(t *testing.T) {
	before := within
	within += time.Minute // reflector.go: defaultBackoffMax of 30 s, and as much by jitter
	t.Cleanup(func() { within = before })
}

// The API server dies while pods are placed. When it is back, pods leave and come and a node appears before the scheduler
// watches again.
func TestTheAPIServerGoesAwayAndComesBack(t *testing.T) {
	t.Parallel()
	outlast(t)
	c := start(t, placing)
	f := fleet(t, c, 6, 4)
	f.come(40)
	f.settle()
	for _, away := range []time.Duration{0, 15 * time.Second} {
		t.Run(away.String(), func(t *testing.T) {
			f.t = t
			f.leave(10)
			f.come(20)
			c.KillAPIServer()
			time.Sleep(away)
			c.StartAPIServer()
			f.leave(10)
			f.come(5)
			node(t, c, "late-"+away.String(), 0, nil)
			slice(t, c, "late-"+away.String(), 2)
			f.settle()
			f.mirrored()
		})
	}
}

// With the chart's lease a leader that cannot renew it ends; the other takes over when the API server is back.
func TestAnOutageLongerThanTheLeaseLeavesAReplica(t *testing.T) {
	t.Parallel()
	outlast(t)
	c := start(t, "")
	r := startReplicas(t, c)
	f := fleet(t, c, 6, 4)
	f.metrics = r.metrics
	f.come(30)
	f.settle()
	r.both()
	old := r.leader("")
	f.come(10)
	c.KillAPIServer()
	if code := r.of[old].Wait(); code != 1 {
		t.Errorf("expected the leader to end with 1, as upstream does without its lease, found %d", code)
	}
	c.StartAPIServer()
	begin := time.Now()
	f.leave(10)
	f.settle()
	f.mirrored()
	t.Logf("every pod was bound %.1f s after the API server was back", time.Since(begin).Seconds())
	r.start(old)
	r.of[old].Await()
}

// startUnanswered starts a scheduler that hears no answer to the writes that end in `lost`, though they are done, and sees what
// it watches of `late` two seconds late.
func startUnanswered(t *testing.T, c *controlplane.Cluster, lost, late string) {
	t.Helper()
	server, err := url.Parse(c.Config.Host)
	check(t, err)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(server)
			r.Out.Header.Set("Authorization", "Bearer "+c.Config.BearerToken) // which client-go sends by TLS alone
		},
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, // of this very test
		FlushInterval: -1,
		ModifyResponse: func(r *http.Response) error {
			if r.Request.URL.Query().Get("watch") != "" && strings.HasSuffix(r.Request.URL.Path, late) {
				r.Body = lateBody{r.Body}
			}
			return nil
		},
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && strings.HasSuffix(r.URL.Path, lost) {
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.CloseClientConnections)
	text, err := os.ReadFile(c.Kubeconfig())
	check(t, err)
	check(t, os.WriteFile(c.Kubeconfig(), []byte(strings.ReplaceAll(string(text), c.Config.Host, front.URL)), 0o600))
	c.StartScheduler(placing)
}

type lateBody struct{ io.ReadCloser }

func (b lateBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	time.Sleep(2 * time.Second)
	return n, err
}

func TestClaimsWhoseAnswerIsLostOverCommitNothing(t *testing.T) {
	t.Parallel()
	c := start(t, "")
	startUnanswered(t, c, "/status", "/resourceclaims")
	f := fleet(t, c, 1, 1)
	f.come(4) // three have room
	until(t, c, "three are bound", func() bool { return f.audit(false) == 1 })
	for range 100 { // the fourth is tried again and again
		time.Sleep(50 * time.Millisecond)
		if waiting := f.audit(false); waiting != 1 {
			t.Fatalf("expected one pod to wait, found %d", waiting)
		}
	}
}

func TestABindingWhoseAnswerIsLostOverCommitsNothing(t *testing.T) {
	t.Parallel()
	c := start(t, "")
	startUnanswered(t, c, "/binding", "/pods")
	node(t, c, "n0", 1, nil)
	makePod(t, c, podSpec{name: "a", whole: 1})
	makePod(t, c, podSpec{name: "b", whole: 1})
	bound := func() (bound int) {
		for _, name := range []string{"a", "b"} {
			if get(t, c, name).Spec.NodeName != "" {
				bound++
			}
		}
		return bound
	}
	until(t, c, "one is bound", func() bool { return bound() > 0 })
	for range 100 {
		time.Sleep(50 * time.Millisecond)
		if got := bound(); got != 1 {
			t.Fatalf("expected one pod on the node's only GPU, found %d", got)
		}
	}
}
