// SPDX-License-Identifier: Apache-2.0
// The options of a placer, each told once: HORUS_OPTION(type, name, default, OptionFacts...). placer.h makes
// PlacerOptions and kPlacerOptions of them, and from these the placer checks limits, the C ABI reads its fields, the
// command has its flags and grid.yaml its keys. What the other faces lack tests/layers/check_options.py says.
//
// Enters:  HORUS_OPTION, which is undefined again at the end. Included once for each use: no #pragma once.
// Leaves:  what that makes of each option, in the order in which --help has them.

// For jobs without their own; infinity = none. The command and grid.yaml read the word "none" beside numbers.
HORUS_OPTION(double, slowdown_bound, 0, .least = 1, .zero_is = "the policy's")

// Per device that states none. Horus, TPDS 2022: at most 3.
HORUS_OPTION(int32_t, max_tenants, 3, .least = 1, .most = kMaxTenantsPerDevice, .told = kToldAll, .value = "N",
             .text = "Jobs on a GPU that states no limit itself")

// Device memory that stays free. Horus, TPDS 2022: more than 500 MiB.
HORUS_OPTION(int64_t, mem_headroom_mib, 500, .least = 0, .most = kMaxHostQuantity, .most_is = " MiB",
             .told = kToldFitting | kToldPlacing, .value = "MIB",
             .text = "Memory to keep free on each GPU; 0 where requests hold exactly, as with claims of Kubernetes")

// Tenants' memory limits may sum to this many times a device; 1 = none is lent twice.
HORUS_OPTION(double, mem_overcommit, 1, .least = 1, .most = kMaxMemOvercommit, .least_is = " (none)",
             .most_is = " times the memory", .told = kToldAll, .value = "FACTOR",
             .text = "How many times a GPU's memory the limits of its jobs may sum to; requests never exceed it")

HORUS_OPTION(double, sharing_quota, 1, .least = 0, .most = 1, .most_is = " (a share of the devices)",
             .told = kToldPlacing | kToldGrid, .value = "SHARE",
             .text = "Share of the cluster's GPUs that may have several jobs; 0 turns sharing off")

// A demand outside what the predictor knows, and not measured, runs alone first.
HORUS_OPTION(bool, probe_outside, false, .told = kToldPlacing | kToldGrid,
             .text = "Place jobs that the predictor does not know alone, until they were observed")

// The cap is JobSpec::sm_cap_pct.
HORUS_OPTION(
    bool, sm_caps, false, .told = kToldPlacing,
    .text = "Under MPS, cap the SMs of a job that its neighbours' bounds refuse otherwise; it must be started so")

// 0 = GPUs are free (docs/place.md).
HORUS_OPTION(double, gpu_price, 0.5, .least = 0, .most = 1, .told = kToldPlacing, .value = "SHARE",
             .text = "Of jobs with alternatives: what each GPU must bring, as a share of what one brings at best")

HORUS_OPTION(HostGrants, host_grants, HostGrants::kResize, .words = kHostGrantWords, .told = kToldPlacing | kToldGrid,
             .value = "WORD",
             .text =
                 "Cores and host memory of jobs with a sensitivity: what they do most work with, running jobs "
                 "too (resize), new jobs alone (placement), or what they state")

// Drawn by seed and job, among all nodes; all GPUs only where none of them fits.
HORUS_OPTION(uint32_t, max_candidates, 0, .told = kToldPlacing | kToldGrid, .value = "N",
             .text = "Price at most so many GPUs for a job of one, for speed where all jobs differ (0: all)")

HORUS_OPTION(uint64_t, seed, 0, .least = 0, .told = kToldPlacing, .value = "N",
             .text = "Of policies and searches that draw")

// How much less links between racks carry than nodes send; 1 = none.
HORUS_OPTION(double, rack_oversubscription, 1, .least = 1, .most = std::numeric_limits<double>::max())

// Of one plan.
HORUS_OPTION(uint64_t, max_jobs, 1u << 20)

// Jobs that wait are not told why (Reason::kNone): saves a look at each device that changed, which is most of the time
// of a refusal. Rejections tell always.
HORUS_OPTION(bool, terse, false)

// Of what was scored before, all together; what would exceed its share is emptied.
HORUS_OPTION(uint64_t, cache_bytes, 256u << 20)

#undef HORUS_OPTION
