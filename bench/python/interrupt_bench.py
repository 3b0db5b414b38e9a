# SPDX-License-Identifier: Apache-2.0
"""How long Ctrl-C waits in each long call: from the signal to the exception in the caller. Aim: 100 ms.

A timer's signal, whose handler raises KeyboardInterrupt as Ctrl-C's does, comes at several moments of each call. Run by
`scripts/python --bench`. Prints, and writes to OUT/python_interrupt.json if HORUS_BENCH_OUT names a folder, the longest wait.
"""

import json
import os
import pathlib
import signal
import time

import numpy as np
import pytest
from calls_bench import cluster_of, jobs_of, rows_of

import horus

SMOKE = "HORUS_BENCH_SMOKE" in os.environ
MOMENTS_S = (0.002,) if SMOKE else (0.02, 0.05, 0.1, 0.2, 0.3, 0.4)  # after the call began
JOBS = 200 if SMOKE else 20_000
ROWS = []


def full_cluster(nodes, jobs_a_device=1):
    cluster, devices = cluster_of(nodes), nodes * 8
    for i, job in enumerate(jobs_of(rows_of(devices * jobs_a_device))):
        at = i % devices
        cluster.adopt(job, [horus.Slot(at // 8 + 1, at % 8, 0)])
    return cluster


def simulation():
    count = JOBS * 5
    trace = horus.Trace(profile=["a"] * count, duration_us=[10_000_000] * count)
    beliefs = {"a": horus.Demand(gpu_util_pct=60, mem_mib=9_000, step_time_us=100_000)}
    truth, cluster = horus.Truth.from_model(beliefs), cluster_of(60)
    return lambda: horus.simulate(trace, beliefs, truth, cluster, horus.Placer())


def calls():
    jobs, rows = jobs_of(rows_of(JOBS)), rows_of(JOBS * 100).reshape(-1, 2)
    empty, busy, crowded = cluster_of(250), full_cluster(20 if SMOKE else 400), full_cluster(20 if SMOKE else 800, 2)
    late = [job.replace(id=job.id + 10**6) for job in jobs]
    urgent = jobs[0].replace(id=10**7, priority=9, tasks=160 if SMOKE else 3_000, exclusive=True)
    model = horus.InterferenceModel()
    return {
        "place": lambda: horus.Placer().place(empty, jobs),
        "place, full cluster": lambda: horus.Placer("fgd").place(busy, late),
        "place, a round": lambda: horus.Placer("synergy-tune").place(empty, jobs),
        "place_batch": lambda: horus.Placer().place_batch(empty, jobs),
        "rebalance": lambda: horus.Placer().rebalance(crowded, max_migrations=10**6, max_searches=10**6, horizon_s=1e9),
        "preempt": lambda: horus.Placer().preempt(busy, urgent),
        "what_if": lambda: horus.Placer().what_if(busy, [], late),
        "slowdown": lambda: model.slowdown("v100-pcie-16gb", rows),
        "simulate": simulation(),
    }


def raise_it(*_):
    raise KeyboardInterrupt


def wait_of(call, moment):
    """Seconds from the signal to the exception; None where the call was over before."""
    before = signal.signal(signal.SIGALRM, raise_it)
    begun = time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, moment)
    try:
        call()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        return time.perf_counter() - begun - moment
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return None


CALLS = calls()


@pytest.mark.parametrize("name", CALLS)
def test_interrupt(name):
    waits = [wait for wait in (wait_of(CALLS[name], moment) for moment in MOMENTS_S) if wait is not None]
    if not waits:
        pytest.skip(f"{name} takes less than {MOMENTS_S[0]} s")
    ROWS.append({"metric": "python.interrupt", "name": name, "value": max(waits) * 1e3, "unit": "ms", "aim": 100,
                 "better": "lower", "baseline": "none", "protocol": f"longest of {len(waits)} moments"})
    print(f"\n{name}: {np.round(np.array(waits) * 1e3, 1)} ms, longest {max(waits) * 1e3:.0f} ms (aim 100)")
    if out := os.environ.get("HORUS_BENCH_OUT"):
        pathlib.Path(out, "python_interrupt.json").write_text(
            json.dumps({"command": "scripts/python --bench", "rows": ROWS}, indent=1))
