// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	reviews = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "horus_advise_reviews_total", Help: "Objects that the API server asked about, by what came of it. All are allowed.",
	}, []string{"outcome"})
	reviewSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Name: "horus_advise_review_seconds", Help: "Time of an answer, from the first byte of the request.",
		Buckets: metrics.ExponentialBuckets(0.0001, 2, 12),
	})
	// Expiry is set by who reads the certificate.
	Expiry = metrics.NewGauge(&metrics.GaugeOpts{
		Name: "horus_advise_certificate_expiry_seconds", Help: "When the certificate that is served expires, in seconds since 1970.",
	})
)

// Register makes them known; it may be called again.
var Register = sync.OnceFunc(func() {
	legacyregistry.MustRegister(reviews, reviewSeconds, Expiry)
	for _, outcome := range []string{advised, nothing, fitsNowhere, unknownProfile, invalidProfile, doubt} {
		reviews.WithLabelValues(outcome) // from 0, so that the first one is an increase
	}
})
