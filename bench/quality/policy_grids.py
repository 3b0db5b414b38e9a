# SPDX-License-Identifier: Apache-2.0
"""Grids of `horus compare` on measured speeds, what comes out of them, and rows of it: what the tables of policies share."""
import json
import subprocess
import sys

import datasets
import interference

CLIP = 99  # percentile of run times
LOOK_AHEAD = 50  # of every policy
# Of policies that read no slowdowns, so that a pair known not to run together (1,000) is refused by them too. horus keeps
# its defaults.
NO_BOUND = 100
REBALANCE_S = 3600
RESTART_S = 30
GPUS_PER_NODE = 8
TENANTS = 2  # a GPU

# horus as it is compared: weighs work by price, or by the length of jobs where run times are known.
PAYING = {"policy": "horus", "rebalance_s": REBALANCE_S}
# The rest of one table, all with one queue: what systems.md publishes of each.
RIVALS = [dict(one, slowdown_bound=NO_BOUND) for one in (
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
)]
JCT = "jct_to_horizon_mean_s"


def rivals(*names):
    return [one for one in RIVALS if one["policy"] in names]


def paying(name, weights, **keys):
    return dict(PAYING, name=name, weights=weights, **keys)


# As users get it, and horus_placer_plan_batch chooses; nothing moves.
CHOOSING = [{"name": "choosing", "policy": "horus"}, {"name": "choosing online", "policy": "horus", "learn": "corrects"},
            {"name": "choosing oracle", "policy": "horus", "interference": "truth"}]

PATIENT = [{"name": "choosing patient", "policy": "horus", "patience_s": 12 * 3600}]


def family(weights):
    """horus, without its parts, and with the truth as its belief."""
    return [paying("horus", weights), paying("horus online", weights, learn="pairs"),
            dict(PAYING, name="horus alike", weights="alike"),
            {"name": "horus one by one", "policy": "horus", "one_by_one": True},
            {"name": "oracle one by one", "policy": "horus", "interference": "truth", "one_by_one": True},
            paying("oracle", weights, interference="truth")]


REFERENCES = ("horus", "horus online", "horus alike", "horus one by one", "oracle one by one", "horus of 5", "horus alone", "oracle", "choosing",
              "choosing online", "choosing oracle", "choosing patient")


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
    """What every table of one set of pairs believes. A folder that holds it is taken as it is."""

    def __init__(self, horus, data, folder, table, jobs):
        self.horus, self.folder, self.pairs, self.jobs = horus, folder, table, jobs
        self.measured = interference.column(jobs, "job")
        self.predictions, known = folder / "predicted.csv", folder / "inputs.json"
        if known.exists():
            self.bundle, self.told = json.loads(known.read_text(encoding="utf-8"))
            return
        nets = interference.column(jobs, "note")
        runs = datasets.convert_all(data, folder / "runs")
        bundle, self.told = interference.train_demands(horus, runs, nets, folder)
        self.bundle = bundle[1] if bundle else None
        self.predict(self.predictions)
        known.write_text(json.dumps([self.bundle, self.told]), encoding="utf-8")

    def predict(self, file, *options):
        """By a model that has seen neither job's family."""
        bundle = ("--bundle", self.bundle) if self.bundle else ()
        subprocess.run([self.horus, "evaluate", "--pairs", self.pairs, "--jobs", self.jobs, "--model", "horus", "--predictions", file,
                        *bundle, *options], check=True, stdout=subprocess.DEVNULL)

    def card_unseen(self):
        """Predictions by a model that has not seen the GPU type either."""
        file = self.folder / "predicted_card.csv"
        if not file.exists():
            self.predict(file, "--leave-gpu")
        return file

    def beliefs(self):
        beliefs = {"jobs": str(self.jobs), "interference": "utilisation", "predictions": str(self.predictions)}
        return dict(beliefs, bundle=self.bundle) if self.bundle else beliefs


class Setting:
    """A cluster with its truth, the jobs that come, and where results are kept. `speeds`: one of speeds_under for each GPU
    type, the first of which run times count on; `numbers`: how many GPUs of each."""

    def __init__(self, horus, inputs, traces, folder, speeds, numbers, jobs, seeds):
        self.horus, self.inputs, self.traces, self.folder = horus, inputs, traces, folder
        self.speeds, self.numbers, self.jobs, self.seeds = speeds, numbers, jobs, seeds
        self.gpus = sum(numbers)
        self.short = interference.short(speeds[0][2]) if len(speeds) == 1 else "mixed"

    def told(self, jobs="single-GPU jobs"):
        types = " + ".join(f"{number} {name}" for number, (_, _, name) in zip(self.numbers, self.speeds))
        return (f"{types}, {self.jobs} {jobs} of {len(self.inputs.measured)} measured types, run times clipped at percentile "
                f"{CLIP}, {self.seeds} seeds, at most {TENANTS} tenants a GPU; {self.inputs.told}, slowdowns by a model that saw "
                "neither family; pairs that failed once are not tried again")

    def workload(self, **keys):
        return {"files": str(self.traces), "single_gpu": True, "known_only": True, "clip_percentile": CLIP, "sample": self.jobs,
                **keys}

    def backlog(self, **keys):
        return self.workload(name="backlog", backlog=True, **keys)

    def opened(self, loads, **keys):
        return self.workload(name="open", load=list(loads), horizon_pct=100, warm_up_pct=20, **keys)

    def truth(self, **keys):
        files = {}
        for path, gpu, name in self.speeds:
            files.setdefault(str(path), {})[gpu] = name
        return {"speeds": [{"file": path, "gpus": gpus} for path, gpus in files.items()], "reference": self.speeds[0][1], **keys}

    def play(self, kind, workload, queue, policies, cluster=None, truth=None, beliefs=None):
        """Results of one grid. `kind` names its folder."""
        numbers = {name: number for number, (_, _, name) in zip(self.numbers, self.speeds)}
        grid = {"version": 1,
                "cluster": {"gpus": numbers, "gpus_per_node": GPUS_PER_NODE, "max_tenants": TENANTS, **(cluster or {})},
                "truth": self.truth(**(truth or {})), "beliefs": {**self.inputs.beliefs(), **(beliefs or {})},
                "workloads": [workload],
                "defaults": {"queue": queue, "look_ahead": LOOK_AHEAD, "learn": "failures", "restart_s": RESTART_S},
                "policies": policies, "lp_bound": True, "seeds": {"first": 1, "count": self.seeds}}
        return Results(compare(self.horus, grid, self.folder / f"{kind}_{self.short}_{self.gpus}"))


def compare(horus, grid, folder):
    """`horus compare` of a grid: its results. Says what it left out."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "grid.yaml").write_text(json.dumps(grid, indent=1), encoding="utf-8")
    done = subprocess.run([horus, "compare", folder / "grid.yaml", "--out", folder], check=False, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True)
    lines = [line for line in done.stderr.splitlines() if line.startswith("horus: ")]
    print("\n".join(f"policies: {folder.name}: {line.removeprefix('horus: ')}" for line in lines), file=sys.stderr)
    if done.returncode != 0:
        raise RuntimeError(f"{folder.name}: {done.stderr.strip()}")
    return json.loads((folder / "results.json").read_text(encoding="utf-8"))


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

    def has(self, workload, metric):
        return metric in next(iter(next(iter(self.values[workload].values())).values()))


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


def ratios(results, workload, metric, base):
    """Of every policy's values over those of the base, seed by seed: mean and half its 95 % interval."""
    below = results.column(workload, base, metric)
    return {policy: interval([m / e for m, e in zip(results.column(workload, policy, metric), below)])
            for policy in results.values[workload]}


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
