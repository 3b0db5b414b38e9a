# SPDX-License-Identifier: Apache-2.0
"""What Python adds to the C call: place of one job, place_batch of 10,000, slowdown on columns of 10^6.

Each is measured in Python by pytest-benchmark and, in the same run, in C (calls.c over the same inputs). Run by
`scripts/python --bench`; needs a C compiler and a build of the repository (preset release, dev or default; or HORUS_LIBRARY).
Prints, and writes to OUT/python.json if HORUS_BENCH_OUT names a folder, the difference or ratio of the medians.
"""

import json
import os
import pathlib
import statistics
import subprocess
import timeit

import numpy as np
import pytest

import horus

ROOT = pathlib.Path(__file__).resolve().parents[2]
SMOKE = "HORUS_BENCH_SMOKE" in os.environ
PLACE_CALLS = 2_000
BATCH_JOBS = 200 if SMOKE else 10_000
COLUMN_ROWS = 10_000 if SMOKE else 1_000_000
ROWS = []


def library():
    named = os.environ.get("HORUS_LIBRARY")
    builds = (ROOT / "build" / preset / "lib" / "libhorus.so" for preset in ("release", "dev", "default"))  # no sanitisers
    found = pathlib.Path(named) if named else next((path for path in builds if path.exists()), None)
    if found is None:
        pytest.skip("no build of libhorus.so beside which to measure (HORUS_LIBRARY names one)")
    return found


@pytest.fixture(scope="module")
def in_c(tmp_path_factory):
    """Runs calls.c: median nanoseconds of a mode over a cluster and rows."""
    folder, lib = tmp_path_factory.mktemp("calls"), library()
    subprocess.run(["cc", "-std=c99", "-O2", "-D_POSIX_C_SOURCE=199309L", f"-I{ROOT}/include",
                    ROOT / "bench/python/calls.c", lib, f"-Wl,-rpath,{lib.parent}", "-o", folder / "calls"], check=True)

    def run(mode, cluster, rows, times):
        (folder / "snapshot").write_bytes(cluster.snapshot())
        (folder / "rows").write_bytes(rows.tobytes())
        done = subprocess.run([folder / "calls", mode, folder / "snapshot", folder / "rows", str(times)], check=True,
                              capture_output=True, text=True)
        return statistics.median(map(float, done.stdout.split()))

    return run


def cluster_of(nodes):
    device = horus.Device("v100-pcie-16gb")
    return horus.Cluster([horus.Node(id=i + 1, cpu_milli=64_000, mem_mib=262_144, devices=[device] * 8) for i in range(nodes)])


def rows_of(count):
    draw = np.random.default_rng(0)
    util = draw.uniform(5, 95, count).astype(np.float32)
    return horus.demand_rows(count, gpu_util_pct=util, mem_bw_util_pct=util / 2, mem_mib=draw.integers(500, 12_000, count),
                             step_time_us=np.full(count, 100_000), profile_id=np.arange(1, count + 1, dtype=np.uint64))


def jobs_of(rows):
    from horus.predict import demands_of

    return [horus.Job(id=i + 1, cpu_milli=1_000, mem_mib=1_024, submit_us=i, demands={"any": demand})
            for i, demand in enumerate(demands_of(rows))]


def told(metric, value, unit, aim):
    ROWS.append({"metric": metric, "value": value, "unit": unit, "aim": aim, "better": "lower", "baseline": "the C call",
                 "protocol": "medians, same inputs, same run"})
    print(f"\n{metric}: {value:.3g} {unit} (aim {aim})")
    if out := os.environ.get("HORUS_BENCH_OUT"):
        pathlib.Path(out, "python.json").write_text(json.dumps({"command": "scripts/python --bench", "rows": ROWS}, indent=1))


def test_place(benchmark, in_c):
    cluster, rows = cluster_of(125), rows_of(1)
    job, placer = jobs_of(rows)[0], horus.Placer()
    placer.place(cluster, job)
    benchmark.pedantic(placer.place, (cluster, job), rounds=PLACE_CALLS, iterations=1, warmup_rounds=50)
    timed = [timeit.timeit(lambda: placer.place(cluster, job), number=20) / 20 for _ in range(PLACE_CALLS // 20)]
    told("python.place_overhead", (statistics.median(timed) * 1e9 - in_c("place", cluster, rows, PLACE_CALLS)) / 1e3, "us", 3)


def test_place_batch(benchmark, in_c):
    cluster, rows = cluster_of(125), rows_of(BATCH_JOBS)
    jobs, placer = jobs_of(rows), horus.Placer()
    benchmark.pedantic(placer.place_batch, (cluster, jobs), rounds=3, iterations=1, warmup_rounds=1)
    told("python.place_batch_ratio", benchmark.stats.stats.median * 1e9 / in_c("batch", cluster, rows, 4), "x", 1.1)


def test_slowdown_columns(benchmark, in_c):
    model, rows = horus.InterferenceModel(), rows_of(COLUMN_ROWS)
    pairs = rows.reshape(-1, 2)
    benchmark.pedantic(model.slowdown, ("v100-pcie-16gb", pairs), rounds=5, iterations=1, warmup_rounds=1)
    told("python.slowdown_columns_ratio", benchmark.stats.stats.median * 1e9 / in_c("slowdown", cluster_of(1), rows, 6), "x",
         1.05)
