#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Your own policy, interference model or trace beside the built-in policies: completion times, waits, slowdowns and work rate.

Jobs progress by the speeds of --speeds, policies decide by the demands of --jobs. Without them both are made up
(examples/compare): that shows that your code runs, not that it is good. Needs the Python package (docs/python.md).
"""
import argparse
import ast
import importlib.util
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
METRICS = {"jct_mean_s": ("s", "lower"), "wait_mean_s": ("s", "lower"), "slowdown_mean": ("x", "lower"), "work_rate": ("x", "higher")}
BASELINE, GPUS_PER_NODE = "exclusive", 4
CLIP = 95  # percentile of run times: the longest jobs would decide every mean


def function(named):
    """FILE.py:FUNCTION, as it is there."""
    path, _, name = named.rpartition(":")
    if not path.endswith(".py") or not pathlib.Path(path).is_file():
        raise SystemExit(f"own: expected FILE.py:FUNCTION of a file that is there, found {named!r}")
    spec = importlib.util.spec_from_file_location("own_code", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not callable(getattr(module, name, None)):
        raise SystemExit(f"own: {path}: expected a function {name!r}, found {', '.join(n for n in vars(module) if n[0] != '_')}")
    return name, getattr(module, name)


def measured(horus, asked, beliefs):
    """Truth of a GPU of a file in Gavel's layout, of the profiles that have a belief; and steps a second alone by profile."""
    tables = json.loads(pathlib.Path(asked.speeds).read_text(encoding="utf-8"))
    gpu = asked.gpu or next(iter(tables))
    if gpu not in tables:
        raise SystemExit(f"own: --gpu: expected one of {', '.join(tables)}, found {gpu!r}")
    rows = {name: row for name, row in ((ast.literal_eval(key), row) for key, row in tables[gpu].items())
            if name[0] in beliefs and name[1] == 1 and row["null"] > 0}
    if not rows:
        raise SystemExit(f"own: {asked.jobs_file}: expected jobs named as the profiles of {asked.speeds}, found none")
    names = [name for name, _ in rows]
    alone = {name[0]: row["null"] for name, row in rows.items()}
    pairs = {column: [] for column in ("gpu", "a", "b", "speed_a", "speed_b")}
    for a, one in enumerate(names):
        for b, other in enumerate(names[a:], a):
            speeds = rows[one, 1].get(str((other, 1)))
            for column, value in zip(pairs, (0, a, b, speeds[0] / alone[one], speeds[1] / alone[other]) if speeds else ()):
                pairs[column].append(value)
    return horus.Truth.from_speeds([asked.gpu_type], names, [list(alone.values())], pairs), alone


def draw(horus, asked, alone, seed):
    """Jobs on one GPU that ask for --load times the GPU time that there is; what a trace does not tell of them is drawn."""
    import numpy as np

    pick = np.random.default_rng(seed)
    trace = horus.Trace.from_file(asked.trace) if asked.trace else horus.Trace.synthetic("philly", seed=seed, jobs=3 * asked.jobs, arrivals="poisson")
    kept = np.flatnonzero((trace.columns()["gpus_per_task"] * trace.columns()["tasks"] == 1) & ~trace.columns()["endless"])
    trace = trace.take(np.sort(pick.choice(kept, min(asked.jobs, len(kept)), replace=False)))
    columns = trace.columns()
    known = all(name in alone for name in columns["profile"])
    profile = list(columns["profile"]) if known else pick.choice(list(alone), len(trace)).tolist()
    took = np.where(columns["steps"] > 0, columns["steps"] / np.array([alone[name] for name in profile]) * 1e6, columns["duration_us"])
    took = np.minimum(took, np.percentile(took, CLIP)).astype(np.int64)
    at = columns["submit_us"] - columns["submit_us"].min()
    span = took.sum() / (asked.gpus * asked.load)
    return trace.replace(profile=profile, gpu_types=None, duration_us=took, steps=None, submit_us=(at / max(at.max(), 1) * span).astype(np.int64))


def short(value):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def rows(horus, asked):
    if asked.gpus % GPUS_PER_NODE or asked.gpus < GPUS_PER_NODE:
        raise SystemExit(f"--gpus: expected a multiple of {GPUS_PER_NODE}, the GPUs of a node, found {asked.gpus}")
    nodes = [horus.Node(id=i, cpu_milli=64_000, mem_mib=524_288, devices=[horus.Device(asked.gpu_type, max_tenants=2)] * GPUS_PER_NODE)
             for i in range(1, asked.gpus // GPUS_PER_NODE + 1)]
    cluster = horus.Cluster(nodes)
    beliefs = {job.name: job.demands for job in horus.read_jobs(asked.jobs_file, cluster)}
    truth, alone = measured(horus, asked, beliefs)
    placers = {name: horus.Placer(name) for name in (BASELINE, "first-fit", "horus")}
    for named in asked.policy:
        name, policy = function(named)
        placers[name] = horus.Placer(policy)
    for named in asked.model:
        name, model = function(named)
        placers[f"horus with {name}"] = horus.Placer("horus", interference=horus.InterferenceModel.from_callable(model))
    traces = [draw(horus, asked, alone, seed) for seed in range(1, asked.seeds + 1)]
    told = (f"{len(traces[0])} single-GPU jobs of {pathlib.Path(asked.trace).name if asked.trace else 'the preset philly'} that run {len(alone)} profiles of "
            f"{pathlib.Path(asked.speeds).name}, run times clipped at percentile {CLIP}, {asked.gpus} {asked.gpu_type} at load {asked.load:g}, {asked.seeds} seeds")
    summary = horus.compare(traces, beliefs, truth, cluster, placers).summary
    base = next(row["metrics"] for row in summary if row["policy"] == BASELINE)
    for row in summary:
        for metric, (unit, better) in METRICS.items():
            one = row["metrics"][metric]
            half = None if one["difference_high"] is None else one["difference_high"] - one["difference"]
            beside = "" if row["policy"] == BASELINE else f"{BASELINE} {short(base[metric]['mean'])}" + ("" if half is None else f", paired 95 % ± {short(half)} {unit}")
            yield {"metric": f"{row['policy']} {metric}", "value": one["mean"], "unit": unit, "aim": None, "better": better,
                   "baseline": beside, "protocol": told}


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench own", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--horus", "--data", help=argparse.SUPPRESS)
    parser.add_argument("--smoke", action="store_true", help="a small cluster and two seeds")
    parser.add_argument("--policy", action="append", default=[], metavar="FILE.py:FUNCTION", help="a policy (docs/python.md); may be repeated")
    parser.add_argument("--model", action="append", default=[], metavar="FILE.py:FUNCTION", help="an interference model for horus; may be repeated")
    parser.add_argument("--trace", help="a trace (docs/simulate.md); the preset philly otherwise")
    parser.add_argument("--speeds", default=str(ROOT / "examples/compare/speeds.json"), help="speeds alone and in pairs, Gavel's layout")
    parser.add_argument("--gpu", help="GPU of --speeds as that names it; the first otherwise")
    parser.add_argument("--jobs-file", default=str(ROOT / "examples/compare/jobs.yaml"), help="what policies believe: a jobs.yaml with a job named as each profile")
    parser.add_argument("--gpu-type", default="v100-sxm2-16gb")
    parser.add_argument("--gpus", type=int, default=16)
    parser.add_argument("--jobs", type=int, default=400)
    parser.add_argument("--load", type=float, default=1.2)
    parser.add_argument("--seeds", type=int, default=5)
    asked = parser.parse_args()
    if asked.smoke:
        asked.gpus, asked.jobs, asked.seeds = GPUS_PER_NODE, 40, 2
    try:
        import horus
    except ImportError as error:
        print(f"own: SKIPPED: {error}: the Python package is missing (docs/python.md)", file=sys.stderr)
        horus = None
    with open(asked.rows, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in (rows(horus, asked) if horus else ()))


if __name__ == "__main__":
    main()
