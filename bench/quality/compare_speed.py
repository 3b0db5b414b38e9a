#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long comparisons of policies take: a whole trace on a large cluster, and a grid of 20 policies. Wall time.

  compare_trace_s   every job of the longest traces under --data, gangs too, on 512 GPUs: one simulation on one thread.
                    Not all types were measured, so demands and speeds are made up (demands spread over the job types, the
                    median job of each an hour), and truth is the model `utilisation`
  compare_grid_min  20 policies x 3 loads x 10 seeds of 1,000 jobs on 64 GPUs, as `policies --table open` has them in order
                    of arrival, on 2 threads
"""
import argparse
import csv
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import pairs
import policy_tables
from policy_grids import LOOK_AHEAD, RIVALS, Inputs, Rows, Setting, compare, family, speeds_under, traces_under

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GPU = "v100-sxm2-16gb"
TRACE_GPUS, TRACE_LOAD, TRACE_AIM_S = 512, 0.95, 5
TYPICAL_S = 3600
FEW = 5  # of the window; the published one
GRID_GPUS, GRID_JOBS, GRID_SEEDS, GRID_AIM_MIN = 64, 1000, 10, 10
SMOKE_GPUS, SMOKE_JOBS, SMOKE_SEEDS = 16, 80, 1
LEAST_UTIL_PCT, LEAST_MEMORY_GIB, MOST_MEMORY_GIB = 20, 1, 15  # of the made-up demands; 15 GiB fit the GPU


def seconds_of(folder):
    """(policy, seconds, decisions) of every run."""
    with open(folder / "timings.csv", encoding="utf-8", newline="") as file:
        return [(row["policy"], float(row["seconds"]), int(row["decisions"])) for row in csv.DictReader(file)]


def made_up_jobs(names):
    jobs = []
    for i, name in enumerate(names):
        part = i / max(1, len(names) - 1)
        demand = {"gpu_util_pct": LEAST_UTIL_PCT + (100 - LEAST_UTIL_PCT) * part,
                  "gpu_memory_gib": MOST_MEMORY_GIB - (MOST_MEMORY_GIB - LEAST_MEMORY_GIB) * part}
        jobs.append({"name": name, "demand": {"any": demand}})
    return {"version": 1, "jobs": jobs}


def state_durations(path):
    """Rewrites a trace of steps: the median job of each type runs TYPICAL_S. Its profiles, one a job."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    steps = {}
    for row in rows:
        steps.setdefault(row["profile"], []).append(int(row["steps"]))
    median = {profile: statistics.median(values) for profile, values in steps.items()}
    with open(path, "w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(("id", "submit_us", "duration_s", "tasks", "profile"))
        for row in rows:
            seconds = TYPICAL_S * int(row["steps"]) / median[row["profile"]]
            out.writerow((row["id"], row["submit_us"], f"{seconds:.6f}", row["tasks"], row["profile"]))
    return [row["profile"] for row in rows]


def whole_trace(horus, traces, folder, gpus, sample):
    folder.mkdir(parents=True)
    subprocess.run([horus, "traces", "convert", traces, "--to", folder / "trace.csv"], check=True, stdout=subprocess.DEVNULL)
    profiles = state_durations(folder / "trace.csv")
    (folder / "jobs.yaml").write_text(json.dumps(made_up_jobs(sorted(set(profiles)))), encoding="utf-8")
    grid = {"version": 1, "cluster": {"gpus": {GPU: gpus}}, "truth": {"interference": "utilisation"},
            "beliefs": {"jobs": "jobs.yaml"},
            "workloads": [{"name": "whole", "files": "trace.csv", "load": TRACE_LOAD, **({"sample": sample} if sample else {})}],
            "policies": [{"name": f"{policy}_{look_ahead}", "policy": policy, "look_ahead": look_ahead}
                         for look_ahead in (FEW, LOOK_AHEAD) for policy in ("horus", "exclusive")]}
    compare(horus, grid, folder)
    jobs = sample or len(profiles)
    rows = Rows(f"{jobs} jobs of {len(set(profiles))} types, gangs too, arrivals stretched to load {TRACE_LOAD} of {gpus} GPUs, "
                f"fifo, look-ahead as named, built-in model as belief; one run, wall time of one thread")
    for policy, seconds, decisions in seconds_of(folder):
        rows.add(f"compare_trace_s_{policy}", seconds, "s", "lower", f"{decisions / jobs:.3g} decisions a job",
                 TRACE_AIM_S if policy == f"horus_{FEW}" and not sample else None)
    return rows.rows


def grid(horus, inputs, traces, folder, speeds, size):
    gpus, jobs, seeds = size
    setting = Setting(horus, inputs, traces, folder, [speeds], [gpus], jobs, seeds)
    policies = family("prices")[:2] + RIVALS
    start = time.monotonic()
    setting.play("speed", setting.opened(policy_tables.LOADS), "fifo", policies)
    minutes = (time.monotonic() - start) / 60
    runs = seconds_of(folder / f"speed_{setting.short}_{gpus}")
    slowest = max(runs, key=lambda run: run[1])
    rows = Rows(setting.told())
    rows.add("compare_grid_min", minutes, "min", "lower",
             f"{len(runs)} runs, {sum(run[1] for run in runs) / 60:.2f} thread minutes; the longest {slowest[1]:.2f} s of {slowest[0]}",
             GRID_AIM_MIN if seeds == GRID_SEEDS else None,
             f"{len(policies)} policies x loads {policy_tables.LOADS}, fifo, {os.cpu_count()} threads, wall time of the command")
    return rows.rows


def measure(horus, data, folder, smoke):
    traces, tables, speeds = traces_under(data), pairs.convert_all(data, folder / "pairs"), speeds_under(data)
    if traces is None:
        return
    yield from whole_trace(horus, traces, folder / "whole", SMOKE_GPUS if smoke else TRACE_GPUS, SMOKE_JOBS if smoke else None)
    if not tables or not speeds:
        return
    chosen = next((one for one in speeds if one[2] == GPU), speeds[0])
    size = (SMOKE_GPUS, SMOKE_JOBS, SMOKE_SEEDS) if smoke else (GRID_GPUS, GRID_JOBS, GRID_SEEDS)
    yield from grid(horus, Inputs(horus, data, folder, *tables[0]), traces, folder, chosen, size)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", required=True, help="file for the rows, one JSON object a line")
    parser.add_argument("--data", help="folder with throughput files, tables of pairs and traces")
    parser.add_argument("--smoke", action="store_true", help="small clusters and one seed")
    parser.add_argument("--horus", default=str(ROOT / "build" / "release" / "bin" / "horus"))
    arguments = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as name:
        if arguments.data:
            data = pathlib.Path(arguments.data).resolve()
            found = list(measure(arguments.horus, data, pathlib.Path(name), arguments.smoke))
    if not found:
        print("compare_speed: SKIPPED: no traces under --data", file=sys.stderr)
    pathlib.Path(arguments.rows).write_text("".join(json.dumps(row) + "\n" for row in found), encoding="utf-8")


if __name__ == "__main__":
    main()
