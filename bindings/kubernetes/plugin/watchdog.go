// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"os"
	"runtime/pprof"
	"time"

	"k8s.io/klog/v2"
)

// ExitHung is the exit code of a process in which a call of the library did not return: EX_SOFTWARE of sysexits.h.
const ExitHung = 70

const (
	defaultCallTimeout = 30 * time.Second
	leastCallTimeout   = time.Second
)

// watchCalls ends the process where a call of the library does not return. The lease would be renewed for ever and /livez
// would answer, and so neither the other replica nor the kubelet would do anything.
func (pl *Horus) watchCalls(ctx context.Context) {
	limit := pl.args.CallTimeout.Duration
	pl.mirror.Watch(ctx, limit, func() {
		klog.ErrorS(nil, "Horus: a call of libhorus does not return. The process ends, so that it starts again and another replica takes the lease",
			"callTimeout", limit, "exitCode", ExitHung)
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1) // which call it is
		klog.FlushAndExit(klog.ExitFlushTimeout, ExitHung)
	})
}
