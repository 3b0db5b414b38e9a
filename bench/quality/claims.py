#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The claims of the papers, asked of the preset horus2020: what of them is reached on measured pairs and on two models.

Truths:
  v100, p100, k80   measured pairs under --data (Gavel's layout), at most two tenants a GPU. Three of the preset's 13 models
                    were measured; a measured kind stands for each of the others (horus2020.py). Beliefs saw neither family
  model             the preset's own models, up to three tenants; slowdowns by the built-in model `horus`, which learned from
                    such pairs and predicts here nets that it never saw. Policies believe in the sum of utilisations
  proxy             the same, and time passes by that sum: the papers' own assumption

Workloads: `backlog` is the preset, all jobs at once, run times clipped at percentile 99; `even` the same clipped at 90, so that
the end is not a few long jobs'; `open` comes at a load. `busy` is what the papers count as utilisation, `useful` counts what
jobs lose beside each other.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import horus2020
import interference
import pairs
import policy_grids

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GPUS, SMOKE_GPUS = 64, 16
GPU_OF_MODELS = "v100-sxm2-16gb"
SEEDS, SMOKE_SEEDS, SMOKE_JOBS = 10, 2, 200
LOOK_AHEAD = 5  # published, of the papers' policies
RESERVED_NODES = 1  # of 8 GPUs, for reactive profiling: an eighth of 64
KINDS = {"backlog": 99, "even": 90, "open": 99}  # percentile that run times are clipped at
OPEN_LOAD = "1.5"  # of run times that are not clipped
TENANTS_MEASURED, TENANTS_OF_MODELS = 2, 3  # three are the papers' limit; nobody measured three
PAPER = {"policy": "horus-paper", "look_ahead": LOOK_AHEAD}
POLICIES = [
    {"name": "exclusive", "policy": "exclusive", "look_ahead": 1},
    {"name": "first-fit", "policy": "first-fit", "look_ahead": LOOK_AHEAD},
    dict(PAPER, name="horus-paper", queue="horus"),
    dict(PAPER, name="horus-paper+", queue="horus-plus"),
    dict(PAPER, name="horus-paper fifo"),
    {"name": "reactive", "policy": "reactive", "look_ahead": LOOK_AHEAD, "profiling_nodes": RESERVED_NODES, "profiling_s": 60,
     "profile_each_job": True},
    {"name": "clwp-nlwp iasp", "policy": "clwp-nlwp", "look_ahead": LOOK_AHEAD},
    {"name": "clwp-nlwp iapp", "policy": "clwp-nlwp", "look_ahead": LOOK_AHEAD},
    dict(policy_grids.PAYING, name="horus", weights="prices", look_ahead=policy_grids.LOOK_AHEAD),
]
# What is claimed, of whom, over whom; change in per cent. The papers' baselines are slot-based managers (one job a GPU, in
# order), reactive profiling, and, of the last two, not stated: whoever shares without a model.
CLAIMS = (
    *((f"horus_{name}", "horus-paper", "exclusive", kind, metric, claimed, better)
      for name, kind, metric, claimed, better in (
          ("busy", "backlog", "busy_pct", "at most +61.5", "higher"),
          ("busy_even", "even", "busy_pct", "at most +61.5", "higher"),
          ("busy_queue", "backlog", "busy_queue_pct", "at most +61.5", "higher"),
          ("useful", "backlog", "useful_pct", "at most +61.5", "higher"),
          ("useful_even", "even", "useful_pct", "at most +61.5", "higher"),
          ("makespan", "backlog", "makespan_s", "-23.7 to -33.6", "lower"),
          ("makespan_even", "even", "makespan_s", "-23.7 to -33.6", "lower"),
          ("wait", "backlog", "wait_mean_s", "-68.3", "lower"),
          ("wait_even", "even", "wait_mean_s", "-68.3", "lower"),
          ("wait_open", "open", "wait_mean_s", "-68.3", "lower"))),
    ("thesis_busy", "horus-paper", "reactive", "backlog", "busy_pct", "+47.1", "higher"),
    ("thesis_busy_even", "horus-paper", "reactive", "even", "busy_pct", "+47.1", "higher"),
    ("thesis_useful_even", "horus-paper", "reactive", "even", "useful_pct", "+47.1", "higher"),
    *((f"iasp_{name}", "clwp-nlwp iasp", rival, kind, metric, claimed, better)
      for name, rival, kind, metric, claimed, better in (
          ("busy", "first-fit", "backlog", "busy_pct", "+18", "higher"),
          ("busy_even", "first-fit", "even", "busy_pct", "+18", "higher"),
          ("busy_even_exclusive", "exclusive", "even", "busy_pct", "+18", "higher"),
          ("useful_even", "first-fit", "even", "useful_pct", "+18", "higher"),
          ("jct", "first-fit", "backlog", "jct_mean_s", "about -22", "lower"),
          ("jct_open", "first-fit", "open", "jct_to_horizon_mean_s", "about -22", "lower"),
          ("jct_open_exclusive", "exclusive", "open", "jct_to_horizon_mean_s", "about -22", "lower"))),
)
BOTH = (("wait_mean_s", "s", "lower"), ("slowdown_p95", "ratio", "lower"), ("failures", "starts", "lower"))
AT_ONCE = (("busy_pct", "%", "higher"), ("busy_queue_pct", "%", "higher"), ("useful_pct", "%", "higher"),
           ("allocation_pct", "%", "higher"), ("backlog_rate", "work/GPU", "higher"), ("makespan_s", "s", "lower"),
           ("most_done_s", "s", "lower"), ("jct_mean_s", "s", "lower"), *BOTH)
TABLES = {"backlog": AT_ONCE, "even": AT_ONCE,
          "open": (("busy_pct", "%", "higher"), ("useful_pct", "%", "higher"), ("jct_to_horizon_mean_s", "s", "lower"), *BOTH)}


class Truth:
    """One truth: how time passes, what is believed, and what stands for the preset's profiles."""

    def __init__(self, name, gpu, truth, tenants, beliefs, busy, rename, what):
        self.name, self.gpu, self.truth, self.tenants, self.beliefs = name, gpu, truth, tenants, beliefs
        self.gpus = GPUS
        self.busy, self.rename, self.what = busy, rename, what  # busy: profile -> per cent

    def grid(self, workload, policy, kind, seed):
        beliefs = dict(self.beliefs)
        model = policy["name"].split()[-1] if policy["policy"] == "clwp-nlwp" else None
        if model and "predictions" in beliefs:
            beliefs["predictions"] = beliefs["predictions"].replace("predictions", f"predicted_{model}")
        elif model:
            policy = dict(policy, interference=model)
        timing = {"horizon_pct": 100, "warm_up_pct": 20} if kind == "open" else {}
        work = dict({"name": kind, "files": str(workload.path), "clip_percentile": KINDS[kind]}, **timing)
        return {"version": 1, "cluster": {"gpus": {self.gpu: self.gpus}, "gpus_per_node": 8, "max_tenants": self.tenants},
                "truth": self.truth, "beliefs": beliefs, "workloads": [work], "policies": [policy], "seeds": [seed],
                "defaults": {"slowdown_bound": policy_grids.NO_BOUND, "learn": "failures", "restart_s": policy_grids.RESTART_S},
                "lp_bound": "speeds" in self.truth}


def simulate(horus, truth, workload, policy, kind, seed, folder):
    """Metrics of one run, with the two of horus2020.Busy."""
    name = f"{truth.name}_{kind}_{policy['name'].replace(' ', '_')}_{seed}"
    grid, timeline = folder / f"{name}.yaml", folder / f"{name}.csv"
    grid.write_text(json.dumps(truth.grid(workload, policy, kind, seed)), encoding="utf-8")
    done = subprocess.run([horus, "simulate", grid, "--json", "--timeline", timeline], check=True, capture_output=True, text=True)
    metrics = json.loads(done.stdout)["metrics"]
    metrics["busy_pct"], metrics["busy_queue_pct"] = horus2020.busy_of(timeline, workload, truth.busy, truth.gpus)
    timeline.unlink()
    return metrics


def play(horus, truth, kind, seeds, jobs, folder):
    """workload -> policy -> seed -> metrics, and the workloads."""
    arrivals = ["--arrivals", "poisson", "--gpus", str(truth.gpus), "--load", OPEN_LOAD] if kind == "open" else []
    works = {seed: horus2020.draw(horus, folder / f"{truth.name}_{kind}_{seed}.trace.csv", seed, jobs, truth.rename, arrivals)
             for seed in seeds}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = {(policy["name"], seed): pool.submit(simulate, horus, truth, works[seed], policy, kind, seed, folder)
                for policy in POLICIES for seed in seeds}
        return {key: run.result() for key, run in runs.items()}, works


class Results:
    def __init__(self, seeds):
        self.seeds, self.values = seeds, {}

    def add(self, kind, runs):
        for (policy, seed), metrics in runs.items():
            self.values.setdefault(kind, {}).setdefault(policy, {})[seed] = metrics

    def mean(self, kind, policy, metric):
        values = [self.values[kind][policy][seed][metric] for seed in self.seeds]
        return None if None in values else sum(values) / len(values)

    def change(self, kind, policy, rival, metric):
        """Per cent, paired by seed: mean and half the 95 % interval; None where one has no value."""
        both = [(self.values[kind][policy][seed][metric], self.values[kind][rival][seed][metric]) for seed in self.seeds]
        if any(mine is None or not theirs for mine, theirs in both):
            return None
        return policy_grids.interval([100 * (mine / theirs - 1) for mine, theirs in both])


def add_table(rows, truth, results, kind):
    for metric, unit, better in TABLES[kind]:
        told = ((policy, results.mean(kind, policy, metric)) for policy in results.values[kind] if policy != "horus-paper")
        beside = "; ".join(f"{policy} " + ("n/a" if value is None else f"{value:.4g}") for policy, value in told)
        rows.add(f"claims_{kind}_{metric}_{truth.name}", results.mean(kind, "horus-paper", metric), unit, better, beside, None,
                 f"{kind}, of horus-paper with the queue horus")


def add_claims(rows, truth, results):
    for claim, policy, rival, kind, metric, claimed, better in CLAIMS:
        found = results.change(kind, policy, rival, metric)
        others = []
        for other in results.values[kind]:
            change = results.change(kind, other, rival, metric) if other not in (policy, rival) else None
            others += [f"{other} {change[0]:+.1f}"] if change else []
        beside = f"claimed {claimed} %; " if claimed else ""
        beside += f"+- {found[1]:.1f}; " if found else ""
        rows.add(f"claim_{claim}_pct_{truth.name}", found and found[0], "%", better, beside + "; ".join(others), None,
                 f"{kind}, change of {metric} of {policy} from {rival}, paired, 95 % interval")


def add_limits(rows, truth, results, works):
    """What no policy can pass: as busy as all can be, and the bound of the linear program."""
    demands = [truth.busy[profile] for work in works.values() for profile in work.profile.values()]
    mean = sum(demands) / len(demands)
    rows.add(f"claims_demand_pct_{truth.name}", mean, "%", "higher", f"always busy would be {10000 / mean - 100:+.0f} %", None,
             "how busy a job of the workload keeps a GPU alone, predicted; mean over jobs")
    bound, alone = results.mean("backlog", "horus", "bound_rate"), results.mean("backlog", "exclusive", "backlog_rate")
    if "speeds" in truth.truth and bound and alone:
        rows.add(f"claims_bound_pct_{truth.name}", 100 * (bound / alone - 1), "%", "higher", f"exclusive {alone:.3f}, bound {bound:.3f}",
                 None, "by which sharing pairs can raise the work rate while jobs wait, bound of the linear program")


def measured_truths(horus, data, folder, smoke):
    """A truth for each GPU type with measured pairs under `data`."""
    tables = pairs.convert_all(data, folder / "pairs") if data else []
    if not tables or not policy_grids.speeds_under(data):
        return
    table, jobs = tables[0]
    inputs = policy_grids.Inputs(horus, data, folder, table, jobs)
    bundle = ["--bundle", inputs.bundle] if inputs.bundle else []
    for model in ("iasp", "iapp"):
        path = str(inputs.predictions).replace("predictions", f"predicted_{model}")
        subprocess.run([horus, "evaluate", "--pairs", table, "--jobs", jobs, "--model", model, "--predictions", path, *bundle], check=True,
                       stdout=subprocess.DEVNULL)
    names = interference.column(jobs, "job")
    for path, gpu, kind in policy_grids.speeds_under(data)[:1] if smoke else policy_grids.speeds_under(data):
        busy = horus2020.utilisation(horus, jobs, kind, bundle)
        yield Truth(interference.short(kind), kind, {"speeds": [{"file": str(path), "gpus": {gpu: kind}}], "reference": gpu},
                    TENANTS_MEASURED, inputs.beliefs(), dict.fromkeys(names, horus2020.FULL_PCT) | busy,
                    lambda profile: horus2020.stand_in(profile, names),
                    f"measured pairs; measured kinds stand for 10 of the 13 models; {inputs.told}, slowdowns by a model that saw "
                    "neither family")


def model_truths(horus, folder):
    jobs = horus2020.job_table(folder / "horus2020.csv")
    busy = horus2020.utilisation(horus, jobs, GPU_OF_MODELS, [])
    for name, model in (("model", "horus"), ("proxy", "utilisation")):
        yield Truth(name, GPU_OF_MODELS, {"interference": model}, TENANTS_OF_MODELS,
                    {"jobs": str(jobs), "interference": "utilisation"}, busy, lambda profile: profile if profile in busy else None,
                    f"the interference model {model} as truth, utilisation as belief, demands by the built-in bundle")


def judge(horus, truth, seeds, jobs, folder):
    results, works = Results(seeds), {}
    for kind in KINDS:
        runs, works[kind] = play(horus, truth, kind, seeds, jobs, folder)
        results.add(kind, runs)
    left_out = sum(work.left_out for work in works["backlog"].values()) / len(seeds)
    rows = policy_grids.Rows(f"horus2020: {jobs} jobs of 13 models, {left_out:.0f} left out that fit no such GPU, "
                         f"{truth.gpus} GPUs of {truth.gpu}, at most {truth.tenants} tenants, {len(seeds)} seeds; "
                         f"{truth.what}; pairs that failed once are not tried again")
    add_claims(rows, truth, results)
    add_limits(rows, truth, results, works["backlog"])
    for kind in KINDS:
        add_table(rows, truth, results, kind)
    return rows.rows


def rows_of(arguments, folder):
    """Every truth that is asked for, one after the other."""
    data = pathlib.Path(arguments.data).resolve() if arguments.data else None
    seeds, jobs, gpus = (SMOKE_SEEDS, SMOKE_JOBS, SMOKE_GPUS) if arguments.smoke else (SEEDS, horus2020.JOBS, GPUS)
    truths = (*measured_truths(arguments.horus, data, folder, arguments.smoke), *model_truths(arguments.horus, folder))
    for truth in truths:
        if arguments.truth and truth.name not in arguments.truth:
            continue
        print(f"claims: {truth.name}", file=sys.stderr)
        truth.gpus = gpus
        yield from judge(arguments.horus, truth, range(1, 1 + seeds), jobs, folder)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", required=True, help="file for the rows, one JSON object a line", type=argparse.FileType("w"))
    parser.add_argument("--data", help="folder with throughput files, tables of pairs and tables of runs; without: the models alone")
    parser.add_argument("--smoke", action="store_true", help="one measured GPU type, few jobs, two seeds")
    parser.add_argument("--truth", action="append", help="this truth alone; may be repeated")
    parser.add_argument("--horus", default=str(ROOT / "build" / "release" / "bin" / "horus"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for row in rows_of(arguments, pathlib.Path(folder)):
            print(json.dumps(row), file=arguments.rows)


if __name__ == "__main__":
    main()
