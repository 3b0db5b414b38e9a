// SPDX-License-Identifier: Apache-2.0

package horus

/*
#include <horus/horus.h>
*/
import "C"

import "unsafe"

// Metrics counts what clusters and placers do, together.
type Metrics struct{ handle[*C.horus_metrics] }

func freeMetrics(p *C.horus_metrics) { C.horus_metrics_free(p) }

// NewMetrics makes counters of nothing; Count says of what.
func NewMetrics() (*Metrics, error) {
	var out *C.horus_metrics
	err := call(func(_ *arena, e *C.horus_error) C.horus_status { return C.horus_metrics_create(nil, &out, e) })
	if err != nil {
		return nil, err
	}
	m := &Metrics{}
	own(&m.handle, out, freeMetrics)
	return m, nil
}

// Close frees the counters; what they counted goes on uncounted.
func (m *Metrics) Close() error { m.close(freeMetrics); return nil }

// Count lets m count the calls on a cluster and a placer; nil for either leaves it out.
func (m *Metrics) Count(cluster *Cluster, placer *Placer) error {
	return m.shared(func(metrics *C.horus_metrics) error {
		if cluster != nil {
			err := cluster.write(func(_ *arena, p *C.horus_cluster, e *C.horus_error) C.horus_status {
				return C.horus_cluster_set_metrics(p, metrics, e)
			})
			if err != nil {
				return err
			}
		}
		if placer == nil {
			return nil
		}
		return placer.alone(func(p *C.horus_placer) error {
			return call(func(_ *arena, e *C.horus_error) C.horus_status { return C.horus_placer_set_metrics(p, metrics, e) })
		})
	})
}

// Text is everything counted, as Prometheus scrapes it (exposition format 0.0.4).
func (m *Metrics) Text() (string, error) {
	var out string
	err := m.shared(func(p *C.horus_metrics) error {
		text, err := readBytes(func(capacity C.size_t, bytes unsafe.Pointer, count *C.size_t, e *C.horus_error) C.horus_status {
			return C.horus_metrics_text(p, capacity, (*C.char)(bytes), count, e)
		})
		if n := len(text); n > 0 {
			out = string(text[:n-1]) // the library ends it by a zero byte
		}
		return err
	})
	return out, err
}
