// SPDX-License-Identifier: Apache-2.0

package plugin

import fwk "k8s.io/kube-scheduler/framework"

// The scheduler asks a plugin what it is: a point that it does not have is passed over in silence.
var (
	_ fwk.PreEnqueuePlugin  = &Horus{}
	_ fwk.PreFilterPlugin   = &Horus{}
	_ fwk.FilterPlugin      = &Horus{}
	_ fwk.PostFilterPlugin  = &Horus{}
	_ fwk.ScorePlugin       = &Horus{}
	_ fwk.ReservePlugin     = &Horus{}
	_ fwk.PermitPlugin      = &Horus{}
	_ fwk.BindPlugin        = &Horus{}
	_ fwk.EnqueueExtensions = &Horus{}
	_ fwk.SignPlugin        = &Horus{}
	_ fwk.PreFilterPlugin   = draPlugin{}
	_ fwk.PreBindPlugin     = draPlugin{}
	_ fwk.FilterPlugin      = taintsPlugin{}
)
