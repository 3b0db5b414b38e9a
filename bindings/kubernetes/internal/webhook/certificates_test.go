// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

var ctx = context.Background()

// kept are two replicas with the same Secret and configuration, as the chart makes them.
type kept struct {
	t      *testing.T
	client *fake.Clientset
	a, b   *Certificates
}

func keep(t *testing.T) *kept {
	k := &kept{t: t, client: fake.NewClientset(
		&v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}},
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "w"}, Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: "one"}, {Name: "two"}}},
	)}
	replica := func() *Certificates {
		return &Certificates{Client: k.client, Namespace: "ns", Secret: "s", Webhook: "w", Names: []string{"advise.ns.svc", "advise.ns", "127.0.0.1"}, Lifetime: 90 * 24 * time.Hour}
	}
	k.a, k.b = replica(), replica()
	return k
}

func (k *kept) bundle() []byte {
	k.t.Helper()
	found, err := k.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, "w", metav1.GetOptions{})
	check(k.t, err)
	if !bytes.Equal(found.Webhooks[0].ClientConfig.CABundle, found.Webhooks[1].ClientConfig.CABundle) {
		k.t.Error("expected all webhooks of the configuration to have the bundle")
	}
	return found.Webhooks[0].ClientConfig.CABundle
}

// serial of what a replica serves, which the API server must trust at that time.
func (k *kept) serial(c *Certificates, now time.Time) string {
	k.t.Helper()
	served, err := c.Get(nil)
	check(k.t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(k.bundle())
	for _, name := range c.Names {
		if _, err := served.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: now}); err != nil {
			k.t.Fatalf("%v: %v", now, err)
		}
	}
	return served.Leaf.SerialNumber.String()
}

func TestReplicasServeOneCertificateThatTheAPIServerIsTold(t *testing.T) {
	k := keep(t)
	now := time.Now()
	if k.a.Ready() {
		t.Error("expected no certificate before the first step")
	}
	check(t, k.a.Step(ctx, now))
	check(t, k.b.Step(ctx, now))
	if k.serial(k.a, now) != k.serial(k.b, now) {
		t.Error("expected the certificate of the Secret from both")
	}
	configuration, err := k.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, "w", metav1.GetOptions{})
	check(t, err)
	configuration.Webhooks[0].ClientConfig.CABundle = nil // as an upgrade may
	_, err = k.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Update(ctx, configuration, metav1.UpdateOptions{})
	check(t, err)
	check(t, k.b.Step(ctx, now))
	k.serial(k.a, now)
}

// At any time each replica serves what the API server trusts, though the replicas look one after the other.
func TestACertificateIsChangedLongBeforeItExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keep(t)
		serials, told := map[string]bool{}, map[string]time.Time{} // by CA, when the API server was told
		for begin := time.Now(); time.Since(begin) < 3*k.a.Lifetime; time.Sleep(24 * time.Hour) {
			for _, replica := range []*Certificates{k.a, k.b, k.a} {
				check(t, replica.Step(ctx, time.Now()))
				for block, rest := pem.Decode(k.bundle()); block != nil; block, rest = pem.Decode(rest) {
					if told[string(block.Bytes)].IsZero() {
						told[string(block.Bytes)] = time.Now()
					}
				}
				for _, one := range []*Certificates{k.a, k.b} {
					if one.Ready() {
						ca := one.serving.Load().Certificate[1]
						if since := time.Since(told[string(ca)]); len(serials) > 0 && !serials[k.serial(one, time.Now())] && since < one.Lifetime/10 {
							t.Fatalf("expected the API servers to have been told for a tenth of the lifetime, found %v", since)
						}
						serials[k.serial(one, time.Now())] = true
						if left := time.Until(one.serving.Load().Leaf.NotAfter); left < one.Lifetime/5 {
							t.Fatalf("expected a fifth of the lifetime to be left, found %v", left)
						}
					}
				}
			}
		}
		if len(serials) != 5 { // made on day 0, 60, 120, 180 and 240 of 270
			t.Errorf("expected a new certificate after two thirds of each lifetime, found %d in three lifetimes", len(serials))
		}
	})
}

func TestWhatStandsInTheSecretIsMended(t *testing.T) {
	for name, spoil := range map[string]func(map[string][]byte){
		"text":          func(d map[string][]byte) { d[servedCert] = []byte("none") },
		"another's key": func(d map[string][]byte) { d[servedKey] = nil },
		"no CA":         func(d map[string][]byte) { delete(d, trusted) },
		"everything":    func(d map[string][]byte) { clear(d) },
	} {
		k := keep(t)
		now := time.Now()
		check(t, k.a.Step(ctx, now))
		secret, err := k.client.CoreV1().Secrets("ns").Get(ctx, "s", metav1.GetOptions{})
		check(t, err)
		spoil(secret.Data)
		_, err = k.client.CoreV1().Secrets("ns").Update(ctx, secret, metav1.UpdateOptions{})
		check(t, err)
		check(t, k.b.Step(ctx, now))
		check(t, k.a.Step(ctx, now))
		if k.serial(k.a, now) != k.serial(k.b, now) {
			t.Errorf("%s: expected one certificate for both", name)
		}
	}
}

func TestWhoCannotWriteTheSecretServesNothingElse(t *testing.T) {
	k := keep(t)
	k.client.PrependReactor("update", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, context.DeadlineExceeded
	})
	if err := k.a.Step(ctx, time.Now()); err == nil || k.a.Ready() || strings.Contains(string(k.bundle()), "CERTIFICATE") {
		t.Errorf("expected no certificate that others do not have, found %v, %v", k.a.Ready(), err)
	}
}
