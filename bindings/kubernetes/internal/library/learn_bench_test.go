// SPDX-License-Identifier: Apache-2.0

package library

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"testing"

	"libhorus.org/horus"
)

// A model of so many sets of jobs is read.
func BenchmarkLearn(b *testing.B) {
	for _, jobs := range []int{10, 50, 180} { // of which each was seen beside each
		b.Run(fmt.Sprintf("sets=%d", jobs*(jobs+1)/2), func(b *testing.B) {
			seen, err := horus.NewObservations(0)
			if err != nil {
				b.Fatal(err)
			}
			demand := func(i int) horus.Demand {
				return horus.Demand{ProfileID: uint64(i + 1), GPUUtilPct: float32(10 + i%80), MemMiB: 2_000, StepTimeUs: int64(10_000 + 100*i)}
			}
			for i := range jobs {
				for j := range i + 1 {
					if err := seen.AddSlowdown(nil, horus.SlowdownObservation{
						Device: horus.SharedDevice{GPUType: "h100-sxm"}, Job: demand(i), CoTenants: []horus.Demand{demand(j)}, Slowdown: 1 + float64((i*7+j*3)%20)/20,
					}); err != nil {
						b.Fatal(err)
					}
				}
			}
			snapshot, err := seen.Snapshot()
			if err != nil {
				b.Fatal(err)
			}
			var packed bytes.Buffer
			writer := gzip.NewWriter(&packed)
			if _, err := writer.Write(snapshot); err != nil {
				b.Fatal(err)
			}
			writer.Close()
			l, err := Local(Options{})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := l.Learn(snapshot); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(snapshot)), "bytes")
			b.ReportMetric(float64(packed.Len()), "packed_bytes")
		})
	}
}
