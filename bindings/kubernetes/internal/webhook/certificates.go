// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
)

// Keys of the Secret. All replicas serve what stands there, and whoever writes first wins.
const (
	servedCert, servedKey = v1.TLSCertKey, v1.TLSPrivateKeyKey
	nextCert, nextKey     = "next.crt", "next.key" // the API servers are told of its CA before it is served
	trusted               = "ca.crt"               // caBundle: the CA of what is served, beside that of its successor or predecessor
)

const (
	backdated = time.Hour // by client-go, against clocks that differ
	// In parts of the lifetime.
	renewLeft   = 3  // the next certificate is made when a third is left
	overlapPart = 10 // and served a tenth later: 9 days of 90
	stepPart    = 240
	longestStep = 10 * time.Second
)

// Certificates are made here, each with a CA of its own whose key is thrown away, and changed so that at any time the API
// servers trust what any replica serves.
type Certificates struct {
	Client    kubernetes.Interface
	Namespace string
	Secret    string        // in Namespace; the chart makes it, empty
	Webhook   string        // MutatingWebhookConfiguration whose caBundle is kept
	Names     []string      // DNS names and addresses by which the API server calls
	Lifetime  time.Duration // of a certificate

	serving atomic.Pointer[tls.Certificate]
}

// Get is for tls.Config.
func (c *Certificates) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if now := c.serving.Load(); now != nil {
		return now, nil
	}
	return nil, errors.New("no certificate yet")
}

// Ready says whether there is one.
func (c *Certificates) Ready() bool { return c.serving.Load() != nil }

// Run keeps them until ctx ends.
func (c *Certificates) Run(ctx context.Context) {
	lifetime.Set(c.Lifetime.Seconds())
	tick := time.NewTicker(min(longestStep, c.Lifetime/stepPart))
	defer tick.Stop()
	for {
		if err := c.Step(ctx, time.Now()); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) { // conflict: another replica was first
			klog.ErrorS(err, "Certificate: tried again")
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Step looks at Secret and configuration and does what is due.
func (c *Certificates) Step(ctx context.Context, now time.Time) error {
	secret, err := c.Client.CoreV1().Secrets(c.Namespace).Get(ctx, c.Secret, metav1.GetOptions{})
	if err != nil {
		return err
	}
	configuration, err := c.Client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, c.Webhook, metav1.GetOptions{})
	if err != nil {
		return err
	}
	told := true
	for i := range configuration.Webhooks {
		told = told && bytes.Equal(configuration.Webhooks[i].ClientConfig.CABundle, secret.Data[trusted])
	}
	what, err := c.due(secret, now, told)
	if err != nil {
		return err
	}
	if what != "" {
		klog.InfoS("Certificate: "+what, "secret", klog.KObj(secret))
		if secret, err = c.Client.CoreV1().Secrets(c.Namespace).Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
			return err
		}
		told = false
	}
	served, err := c.usable(secret, servedCert, servedKey, now)
	if err != nil {
		return fmt.Errorf("Secret %s: %w", c.Secret, err)
	}
	c.serving.Store(served)
	expiry.Set(float64(served.Leaf.NotAfter.Unix()))
	if !told {
		for i := range configuration.Webhooks {
			configuration.Webhooks[i].ClientConfig.CABundle = secret.Data[trusted]
		}
		if _, err := c.Client.AdmissionregistrationV1().MutatingWebhookConfigurations().Update(ctx, configuration, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// due changes the Secret to what it should be now, and says what it did. `told`: the API server knows the CAs that stand there.
func (c *Certificates) due(secret *v1.Secret, now time.Time, told bool) (string, error) {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	served, err := c.usable(secret, servedCert, servedKey, now)
	next, nextErr := c.usable(secret, nextCert, nextKey, now)
	switch {
	case err != nil && nextErr != nil:
		why := err
		if err := c.make(secret, servedCert, servedKey); err != nil {
			return "", err
		}
		secret.Data[trusted] = authority(secret.Data[servedCert])
		return "made, for that of the Secret cannot be served: " + why.Error(), nil
	case err != nil || (nextErr == nil && told && now.After(next.Leaf.NotBefore.Add(backdated+c.Lifetime/overlapPart))):
		secret.Data[servedCert], secret.Data[servedKey] = secret.Data[nextCert], secret.Data[nextKey]
		delete(secret.Data, nextCert)
		delete(secret.Data, nextKey)
		return "the next one is served from now on", nil
	case nextErr != nil && now.After(served.Leaf.NotAfter.Add(-c.Lifetime/renewLeft)):
		if err := c.make(secret, nextCert, nextKey); err != nil {
			return "", err
		}
		secret.Data[trusted] = append(authority(secret.Data[servedCert]), authority(secret.Data[nextCert])...)
		return "the next one is made", nil
	}
	return "", nil
}

func (c *Certificates) make(secret *v1.Secret, certAt, keyAt string) error {
	options := cert.SelfSignedCertKeyOptions{Host: c.Names[0], MaxAge: backdated + c.Lifetime}
	for _, name := range c.Names[1:] {
		if ip := net.ParseIP(name); ip != nil {
			options.AlternateIPs = append(options.AlternateIPs, ip)
		} else {
			options.AlternateDNS = append(options.AlternateDNS, name)
		}
	}
	chain, key, err := cert.GenerateSelfSignedCertKeyWithOptions(options)
	secret.Data[certAt], secret.Data[keyAt] = chain, key
	return err
}

// authority is the CA at the end of a chain.
func authority(chain []byte) (ca []byte) {
	for block, rest := pem.Decode(chain); block != nil; block, rest = pem.Decode(rest) {
		ca = pem.EncodeToMemory(block)
	}
	return ca
}

// usable is a certificate of the Secret that the API server would take now.
func (c *Certificates) usable(secret *v1.Secret, certAt, keyAt string, now time.Time) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(secret.Data[certAt], secret.Data[keyAt])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", certAt, err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(secret.Data[trusted])
	for _, name := range c.Names {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: now}); err != nil {
			return nil, fmt.Errorf("%s: %w", certAt, err)
		}
	}
	return &pair, nil
}
