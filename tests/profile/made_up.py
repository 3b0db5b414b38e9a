# SPDX-License-Identifier: Apache-2.0
"""Runs as the profiler's journal holds them, with made-up figures."""


def alone(job, **more):
    """An isolated run as the journal holds it."""
    return {"kind": "isolated", "outcome": "ok", "gpu": "h200", "job": job, "net": job, "net_name": job, "family": job,
            "batch": 4, "dims": "", "mode": "training", "precision": "fp32", "optimizer": "sgd", "framework": "pytorch",
            "repeat": 0, "steps": 20, "step_mean_us": 1000.0, "step_p95_us": 1100.0, "samples": 40,
            "samples_distinct": 12, "gpu_util_pct": 50.0, "gpu_util_max_pct": 60, "mem_bw_util_pct": 20.0,
            "mem_mib": 2000.0, "power_w": 300.0, **more}


def together(jobs, times, mode="time-slice", **more):
    return {"kind": "shared", "outcome": "ok", "gpu": "h200", "sharing_mode": mode, "jobs": list(jobs), "repeat": 0,
            "members": [{"step_mean_us": time, "steps": 20} for time in times], "gpu_util_pct": 90.0,
            "mem_bw_util_pct": 30.0, "device_used_mib": 5000.0, "power_w": 400.0, **more}
