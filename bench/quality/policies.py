#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Policies on measured speeds: work rate, makespan and completion times of every policy beside the bound of a linear program.

Truth is a throughput file under --data (Gavel's layout), one GPU type at a time, with its own isolated speeds; jobs come
from the traces under --data. What policies believe is foretold: demands from graphs by a bundle that has seen no net of the
pairs, slowdowns by a model that has seen neither job's family on any GPU or in any campaign (`horus evaluate --foretell`).
Each table is one grid of `horus compare` with the same jobs for every policy:

  backlog   all jobs at once, first come first served: what the bound limits, and the makespan
  open      arrivals of the trace stretched to a load, up to a horizon, the first fifth not counted; the same queue for all
  bounds    horus with bounds on slowdowns
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import datasets
import interference
import pairs

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SEEDS = 10
LOADS = (0.8, 1.0, 1.5)
SIZES = {"": (64, 1000), "_512": (512, 8000)}  # suffix of the metric: GPUs, jobs
CLIP = 99  # percentile of run times
LOOK_AHEAD = 50  # of every policy
# "None" for policies without a bound of their own, so that a pair known not to run together (1,000) is refused by all.
NO_BOUND = 100
AIMS = {"gap_closed_lp": {"v100": 0.85, "p100": 0.75, "k80": 0.6},
        "makespan_vs_exclusive": {"v100": 0.95, "p100": 1.0, "k80": 1.0}}
REBALANCE_S = 3600
RESTART_S = 30

PAYING = {"policy": "horus", "best_of_window": True, "rebalance_s": REBALANCE_S, "slowdown_bound": NO_BOUND}
# Policies of one table, all with one queue. `horus` weighs work by its price, or by the length of jobs where run times
# are known; the rest is what systems.md publishes of each.
RIVALS = [
    {"policy": "exclusive"},
    {"policy": "first-fit"},
    {"policy": "best-fit"},
    {"policy": "random"},
    {"policy": "least-utilised"},
    {"policy": "gandiva", "observe_s": 60},
    {"policy": "gavel-threshold"},
    {"policy": "gavel-maxmin"},
    {"policy": "lucid"},
    {"policy": "muri"},
    {"policy": "fgd"},
    {"policy": "dotprod"},
    {"policy": "gpu-packing"},
    {"policy": "gpu-clustering"},
    {"policy": "clwp-nlwp"},
    {"policy": "reactive", "profiling_nodes": 1, "profiling_s": 60},
    {"policy": "horus-as-coded", "look_ahead": 5},
    {"policy": "horus-paper", "look_ahead": 5},
]


def family(weights):
    """horus, without its parts, and with the truth as its belief."""
    return [dict(PAYING, name="horus", weights=weights),
            dict(PAYING, name="horus online", weights=weights, learn="pairs"),
            dict(PAYING, name="horus alike", weights="alike"),
            {"name": "horus one by one", "policy": "horus", "slowdown_bound": NO_BOUND},
            dict(PAYING, name="oracle", weights=weights, interference="truth")]


BOUNDS = [{"policy": "exclusive"}] + [dict(PAYING, name=f"horus {bound}", weights="prices", slowdown_bound=bound)
                                      for bound in (1.25, 1.5, 2.0, 2.5)] + [dict(PAYING, name="horus none", weights="prices")]


def speeds_under(data):
    """(file, GPU as the file names it, type) of every throughput file, each GPU once: the first file that has it."""
    found = {}
    for path in sorted(data.rglob("*.json")):
        try:
            table = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            continue
        for gpu in table if isinstance(table, dict) else ():
            name = datasets.gpu_in(gpu)
            if not name.startswith("opaque:") and isinstance(table[gpu], dict):
                found.setdefault(name, (path, gpu))
    return [(path, gpu, name) for name, (path, gpu) in found.items()]


def traces_under(data):
    """The folder with the longest traces."""
    sizes = {}
    for path in data.rglob("*.trace"):
        sizes[path.parent] = sizes.get(path.parent, 0) + path.stat().st_size
    return max(sizes, key=sizes.get) if sizes else None


class Inputs:
    """What every table of one set of pairs believes."""

    def __init__(self, horus, data, folder, table, jobs):
        self.jobs = jobs
        nets = interference.column(jobs, "note")
        runs = datasets.convert_all(data, folder / "runs")
        bundle, self.told = interference.train_demands(horus, runs, nets, folder)
        self.bundle = bundle[1] if bundle else None
        self.foretold = folder / "foretold.csv"
        subprocess.run([horus, "evaluate", "--pairs", table, "--jobs", jobs, "--model", "horus", "--foretell", self.foretold,
                        *bundle], check=True, stdout=subprocess.DEVNULL)

    def beliefs(self):
        beliefs = {"jobs": str(self.jobs), "interference": "utilisation", "foretold": str(self.foretold)}
        return dict(beliefs, bundle=self.bundle) if self.bundle else beliefs


def grid_of(inputs, speeds, gpus, workloads, queue, policies, seeds):
    path, gpu, name = speeds
    defaults = {"queue": queue, "look_ahead": LOOK_AHEAD, "slowdown_bound": NO_BOUND, "learn": "failures",
                "restart_s": RESTART_S}
    return {"version": 1, "cluster": {"gpus": {name: gpus}, "gpus_per_node": 8, "max_tenants": 2},
            "truth": {"speeds": [{"file": str(path), "gpus": {gpu: name}}], "reference": gpu},
            "beliefs": inputs.beliefs(), "workloads": workloads, "defaults": defaults, "policies": policies,
            "lp_bound": True, "seeds": {"first": 1, "count": seeds}}


def compare(horus, grid, folder):
    """`horus compare` of a grid: its results."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "grid.yaml").write_text(json.dumps(grid, indent=1), encoding="utf-8")
    subprocess.run([horus, "compare", folder / "grid.yaml", "--out", folder], check=True, stdout=subprocess.DEVNULL)
    return json.loads((folder / "results.json").read_text(encoding="utf-8"))


def jobs_of(folder, extra):
    return dict({"files": str(folder), "single_gpu": True, "known_only": True, "clip_percentile": CLIP}, **extra)


class Results:
    """Of one grid: values by workload, policy and seed."""

    def __init__(self, document):
        self.values, self.seeds = {}, document["seeds"]
        for run in document["runs"]:
            of = self.values.setdefault(run["workload"], {}).setdefault(run["policy"], {})
            of[run["seed"]] = run["metrics"]

    def column(self, workload, policy, metric):
        return [self.values[workload][policy][seed][metric] for seed in self.seeds]

    def mean(self, workload, policy, metric):
        values = [v for v in self.column(workload, policy, metric) if v is not None]
        return sum(values) / len(values) if values else None


# 97.5 % quantile of Student's t by degrees of freedom (Abramowitz and Stegun, table 26.10).
T975 = {1: 12.706, 2: 4.303, 4: 2.776, 9: 2.262}


def interval(values):
    """Mean and half its 95 % interval."""
    n = len(values)
    mean = sum(values) / n
    if n < 2:
        return mean, float("nan")
    spread = (sum((v - mean) ** 2 for v in values) / (n - 1)) ** 0.5
    return mean, T975[max(k for k in T975 if k <= n - 1)] * spread / n ** 0.5


def gains_pct(results, workload, policy, rival, metric):
    """By how much lower the policy's values are, seed by seed."""
    pairs_of = zip(results.column(workload, policy, metric), results.column(workload, rival, metric))
    return interval([100 * (1 - mine / theirs) for mine, theirs in pairs_of])


class Rows:
    def __init__(self, protocol):
        self.protocol, self.rows = protocol, []

    def add(self, metric, value, unit, better, baseline="", aim=None, protocol=""):
        if value is None:
            baseline, value = baseline + ("; " if baseline else "") + "n/a", float("nan")
        self.rows.append({"metric": metric, "value": value, "unit": unit, "aim": aim, "better": better, "baseline": baseline,
                          "protocol": f"{protocol}; {self.protocol}" if protocol else self.protocol})


def others(results, workload, metric, form="{:.3g}", but=("horus",)):
    """What every other policy reached, in one line."""
    found = ((policy, results.mean(workload, policy, metric)) for policy in results.values[workload] if policy not in but)
    return "; ".join(f"{policy} " + ("n/a" if value is None else form.format(value)) for policy, value in found)


def add_backlog(rows, gpu, results, suffix):
    """`suffix` of the metrics: size of the cluster."""
    short = interference.short(gpu)
    what = "all jobs at once, first come first served, look-ahead 50"
    for policy in ("horus", "horus online", "oracle"):
        own = "" if policy == "horus" else "_" + policy.split()[-1]
        rows.add(f"gap_closed_lp_{short}{suffix}{own}", results.mean("backlog", policy, "gap_closed"), "ratio", "higher",
                 others(results, "backlog", "gap_closed") if not own else "",
                 AIMS["gap_closed_lp"].get(short) if not own and not suffix else None,
                 f"share of the gap in work rate from exclusive use to the bound of the linear program for the work that was "
                 f"done while jobs waited, closed by {policy}; {what}")
    rows.add(f"backlog_rate_{short}{suffix}", results.mean("backlog", "horus", "backlog_rate"), "work/GPU", "higher",
             f"bound {results.mean('backlog', 'horus', 'bound_rate'):.3f}; " + others(results, "backlog", "backlog_rate"), None,
             f"work rate while jobs waited, 1 = alone; {what}")
    exclusive = results.column("backlog", "exclusive", "makespan_s")
    ratio = {p: interval([m / e for m, e in zip(results.column("backlog", p, "makespan_s"), exclusive)])
             for p in results.values["backlog"]}
    rows.add(f"makespan_vs_exclusive_{short}{suffix}", ratio["horus"][0], "ratio", "lower",
             f"+- {ratio['horus'][1]:.3f}; " + "; ".join(f"{p} {v[0]:.3f}" for p, v in ratio.items() if p != "horus"),
             AIMS["makespan_vs_exclusive"].get(short) if not suffix else None, f"makespan over that of exclusive, paired; {what}")
    for metric, unit in (("most_done_s", "s"), ("wait_mean_s", "s"), ("useful_pct", "%"), ("allocation_pct", "%"),
                         ("slowdown_p95", "ratio"), ("failures", "starts"), ("migrations", "moves"), ("belief_error", "ln")):
        if metric not in next(iter(results.values["backlog"]["horus"].values())):
            continue
        rows.add(f"backlog_{metric}_{short}{suffix}", results.mean("backlog", "horus", metric), unit,
                 "higher" if metric in ("useful_pct", "allocation_pct") else "lower",
                 others(results, "backlog", metric), None, what)


REFERENCES = ("horus", "horus online", "horus alike", "horus one by one", "oracle")
JCT = "jct_to_horizon_mean_s"


def add_open(rows, gpu, results, suffix, queue):
    short = interference.short(gpu)
    for workload in results.values:
        load = workload.rsplit(" ", 1)[-1]
        name = f"{queue}_{load.replace('.', '_')}_{short}{suffix}"
        what = f"arrivals at load {load}, queue {queue} for all, unfinished jobs counted to the horizon"
        rivals = [p for p in results.values[workload] if p not in REFERENCES]
        best = min(rivals, key=lambda p: results.mean(workload, p, JCT))
        rows.add(f"jct_{name}", results.mean(workload, "horus", JCT), "s", "lower", others(results, workload, JCT, "{:.4g}"), None,
                 f"mean JCT; {what}")
        rows.add(f"wait_{name}", results.mean(workload, "horus", "wait_mean_s"), "s", "lower",
                 others(results, workload, "wait_mean_s", "{:.4g}"), None, f"mean wait of finished jobs; {what}")
        for metric, rival in (("jct_gain_vs_paper_pct", "horus-paper"), ("jct_gain_vs_best_rival_pct", best)):
            mean, half = gains_pct(results, workload, "horus", rival, JCT)
            online = gains_pct(results, workload, "horus online", rival, JCT)
            rows.add(f"{metric}_{name}", mean - half, "%", "higher",
                     f"lower end of {mean:.2f} +- {half:.2f} over {rival}; online {online[0]:.2f} +- {online[1]:.2f}",
                     0 if float(load) >= 1 else None, f"mean JCT saved, paired, lower end of the 95 % interval; {what}")


def add_bounds(rows, gpu, results, suffix):
    short = interference.short(gpu)
    for policy in results.values["backlog"]:
        if not policy.startswith("horus"):
            continue
        bound = policy.split()[1].replace(".", "_")
        rows.add(f"bound_{bound}_gap_closed_{short}{suffix}", results.mean("backlog", policy, "gap_closed"), "ratio", "higher",
                 f"backlog rate {results.mean('backlog', policy, 'backlog_rate'):.3f}; slowdown p95 "
                 f"{results.mean('backlog', policy, 'slowdown_p95'):.2f}; above the bound "
                 f"{results.mean('backlog', policy, 'above_bound_pct'):.1f} % of the jobs", None,
                 "of the gap without a bound; the bound holds for what is foretold, with its margin")


def share_measured(speeds, folder, measured):
    """Per cent of the traces' GPU time that single-GPU jobs of measured types bring, and of the jobs without a speed."""
    path, gpu, _ = speeds
    table = json.loads(path.read_text(encoding="utf-8"))[gpu]
    alone = {key: row["null"] for key, row in table.items() if row.get("null")}
    under, whole, unknown, jobs = 0.0, 0.0, 0, 0
    for trace in sorted(folder.glob("*.trace")):
        for line in trace.read_text(encoding="utf-8").splitlines():
            fields = line.split("\t")
            kind, steps, gpus = fields[0], *((fields[4], fields[6]) if len(fields) == 7 else (fields[5], fields[6]))
            jobs += 1
            speed = alone.get(f"('{kind}', {int(gpus)})")
            if not speed:
                unknown += 1
                continue
            hours = int(steps) / speed * int(gpus)
            whole += hours
            under += hours if int(gpus) == 1 and kind in measured else 0
    return 100 * under / whole, 100 * unknown / jobs


def measure(horus, data, folder, smoke, sizes):
    tables, traces = pairs.convert_all(data, folder / "pairs"), traces_under(data)
    if not tables or traces is None or not speeds_under(data):
        return []
    inputs = Inputs(horus, data, folder, *tables[0])
    measured, rows = interference.column(inputs.jobs, "job"), []
    seeds = 2 if smoke else SEEDS
    for speeds in speeds_under(data)[:1] if smoke else speeds_under(data):
        name, short = speeds[2], interference.short(speeds[2])
        for suffix, (gpus, jobs) in sizes:
            def table(kind, workload, queue, policies, gpus=gpus, suffix=suffix, speeds=speeds, short=short):
                grid = grid_of(inputs, speeds, gpus, [workload], queue, policies, seeds)
                return Results(compare(horus, grid, folder / f"{kind}_{short}{suffix}"))
            told = Rows(f"{gpus} GPUs of {name}, {jobs} single-GPU jobs of {len(measured)} measured types, run times clipped at "
                        f"percentile {CLIP}, {seeds} seeds, at most 2 tenants a GPU; {inputs.told}, slowdowns by a model that "
                        "saw neither family; pairs that failed once are not tried again")
            backlog = jobs_of(traces, {"name": "backlog", "sample": jobs, "backlog": True})
            add_backlog(told, name, table("backlog", backlog, "fifo", family("prices") + RIVALS), suffix)
            add_bounds(told, name, table("bounds", backlog, "fifo", BOUNDS), suffix)
            opened = jobs_of(traces, {"name": "open", "sample": jobs, "load": list(LOADS), "horizon_pct": 100,
                                      "warm_up_pct": 20})
            for queue, weights in (("srtf", "shortest"), ("fifo", "prices")):
                add_open(told, name, table(queue, opened, queue, family(weights) + RIVALS), suffix, queue)
            if not suffix:
                under, unknown = share_measured(speeds, traces, measured)
                told.add(f"trace_measured_{short}", under, "%", "higher", f"{unknown:.1f} % of the jobs have no speed alone", None,
                         "GPU time of the traces that single-GPU jobs of measured types bring")
            rows += told.rows
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", required=True, help="file for the rows, one JSON object a line")
    parser.add_argument("--data", help="folder with throughput files, tables of pairs, tables of runs and traces")
    parser.add_argument("--smoke", action="store_true", help="one GPU type, the small cluster, two seeds")
    parser.add_argument("--gpus", type=int, choices=[gpus for gpus, _ in SIZES.values()], help="clusters of this size alone")
    parser.add_argument("--horus", default=str(ROOT / "build" / "release" / "bin" / "horus"))
    arguments = parser.parse_args()
    only = min(gpus for gpus, _ in SIZES.values()) if arguments.smoke else arguments.gpus
    sizes = [size for size in SIZES.items() if only in (None, size[1][0])]
    rows = []
    if arguments.data:
        with tempfile.TemporaryDirectory() as name:
            rows = measure(arguments.horus, pathlib.Path(arguments.data).resolve(), pathlib.Path(name), arguments.smoke, sizes)
    if not rows:
        print("policies: SKIPPED: no throughput files, pairs and traces under --data", file=sys.stderr)
    pathlib.Path(arguments.rows).write_text("".join(json.dumps(r) + os.linesep for r in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
