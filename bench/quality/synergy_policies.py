#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Synergy's rules in a simulated cluster: completion times under queues, and sharing beside sensitivity.

Jobs draw their sensitivity to cores and host memory from the tables under --data (Synergy's profiles), by its splits
of image, language and speech models. Servers are Synergy's: 8 V100s, 24 cores, 500 GB (a GB counts as a GiB on both
sides). Truth and belief are the same matrices. Jobs come at random (Poisson) and take 10^x minutes, x uniform in
1.5 to 3 for four in five and in 3 to 4 for the others (Gavel, OSDI 2020, whose generator Synergy's simulator uses).
Every round of 300 s all jobs are decided again; who moves or was stopped loses 30 s.

  queues    mean and p99 completion time and makespan of each rule under fifo, srtf, las and ftf, by split and load
  gangs     the same where 70 % of the jobs have one GPU, 15 % two and 15 % four
  sharing   jobs of Gavel's trace with measured speeds of pairs AND the sensitivity of their namesakes in Synergy's
            tables: the slower of input and share of the GPU, a rule that nobody measured (Truth::SharesOfHosts)
  bound     the best rate of work that these jobs could reach by other cores, by sharing, and by both (horus potential)
"""
import argparse
import csv
import json
import pathlib
import random
import subprocess
import sys
import tempfile

from policy_grids import interval, speeds_under, traces_under

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
COLUMNS = {"fair_cpu_per_gpu", "model", "gpus", "cpu_cores", "dram_gb", "norm_tput"}
FAIR_CORES, FAIR_GIB, GPUS_PER_SERVER = 3, 62.5, 8
GPU = "v100-sxm2-16gb"
TASKS = {"image": ("alexnet", "mobilenet", "res18", "res50", "shufflenet"),
         "language": ("bert", "gnmt", "lstm", "transformer"), "speech": ("deepspeech", "m5")}
SPLITS = {"20-70-10": (20, 70, 10), "33-33-33": (1, 1, 1), "50-0-50": (50, 0, 50), "100-0-0": (1, 0, 0)}
LOADS = (0.8, 1.0, 1.2)  # GPU time asked for / GPU time there, at the GPU-proportional share
SIZES = ((1, 70), (2, 15), (4, 15))
RULES = ("synergy-fair", "synergy-greedy", "synergy-tune", "synergy-opt")
QUEUES = ("fifo", "srtf", "las", "ftf")
BOUND_CORES = (2, 3, 6)  # a GPU
ROUND_S, RESTART_S = 300, 30
SEEDS = 10
# Jobs of Gavel's trace -> models of Synergy's tables; the others do not care for cores.
NAMESAKES = {"ResNet-18": "res18", "ResNet-50": "res50", "Transformer": "transformer", "LM": "lstm"}


def profiles_under(data):
    """model -> GPUs of the job -> rows (cores, GiB, speed), of servers with FAIR_CORES a GPU."""
    found = {}
    for path in sorted(data.rglob("*.csv")):
        with open(path, encoding="utf-8", newline="") as file:
            table = csv.DictReader(file)
            if not COLUMNS <= set(table.fieldnames or ()):
                continue
            for row in table:
                if float(row["fair_cpu_per_gpu"]) == FAIR_CORES:
                    cells = found.setdefault(row["model"], {}).setdefault(int(row["gpus"]), [])
                    cells.append((float(row["cpu_cores"]), float(row["dram_gb"]), float(row["norm_tput"])))
    return {model: sizes for model, sizes in found.items() if 1 in sizes}


def name_of(model, gpus):
    return model if gpus == 1 else f"{model} x{gpus}"


def write_sensitivity(path, named):
    """`named`: profile -> rows; a speed of 0 was not measured."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(("profile", "cpu_cores", "memory_gib", "speed"))
        for profile, cells in named.items():
            for cores, gib, speed in cells:
                out.writerow((profile, cores, gib, speed if speed > 0 else ""))


def write_jobs(path, names):
    """Demands that say nothing: every job fits every GPU alone. Of steps only what the host takes beside them counts."""
    jobs = [{"name": name, "demand": {"any": {"gpu_util_pct": 50, "gpu_memory_gib": 1, "step_time_ms": 100}}} for name in names]
    path.write_text(json.dumps({"version": 1, "jobs": jobs}), encoding="utf-8")


def minutes(draw):
    return 10 ** (draw.uniform(1.5, 3) if draw.random() < 0.8 else draw.uniform(3, 4))


def write_trace(path, profiles, split, load, seed, gpus, jobs, gangs):
    draw = random.Random(f"{split} {seed} {gangs}")  # the same jobs at every load
    tasks = [task for task, weight in zip(TASKS, SPLITS[split]) for _ in range(weight)]
    rows = []
    for _ in range(jobs):
        size = draw.choices([s for s, _ in SIZES], [w for _, w in SIZES])[0] if gangs else 1
        model = draw.choice([m for m in TASKS[draw.choice(tasks)] if m in profiles])
        rows.append((name_of(model, size if size in profiles[model] else 1), size, 60 * minutes(draw), draw.expovariate(1)))
    work = sum(size * seconds for _, size, seconds, _ in rows) / jobs
    gap, at = work / (load * gpus), 0.0
    with open(path, "w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(("submit_us", "duration_us", "gpus_per_task", "profile"))
        for profile, size, seconds, wait in rows:
            at += wait * gap
            out.writerow((round(1e6 * at), max(1, round(1e6 * seconds)), size, profile))


def cluster(gpus):
    return {"gpus": {GPU: gpus}, "gpus_per_node": GPUS_PER_SERVER, "max_tenants": 2, "cpu_cores_per_gpu": FAIR_CORES,
            "memory_gib_per_gpu": FAIR_GIB}


def compare(horus, grid, folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "grid.yaml").write_text(json.dumps(grid, indent=1), encoding="utf-8")
    subprocess.run([horus, "compare", folder / "grid.yaml", "--out", folder], check=True, stdout=subprocess.DEVNULL)
    runs = json.loads((folder / "results.json").read_text(encoding="utf-8"))["runs"]
    return {(run["workload"], run["policy"], run["seed"]): run["metrics"] for run in runs}


class Rows:
    def __init__(self):
        self.rows = []

    def add(self, metric, value, unit, better, baseline, protocol):
        self.rows.append({"metric": metric, "value": value, "unit": unit, "aim": None, "better": better, "baseline": baseline,
                          "protocol": protocol})


def policy(rule, queue, **more):
    return dict({"name": f"{rule} {queue}", "policy": rule, "queue": queue, "preempt": True, "round_s": ROUND_S, "look_ahead": 0,
                 "restart_s": RESTART_S}, **more)


def play_queues(horus, profiles, folder, split, loads, settings, gangs):
    """Of each load, rule, queue and seed the metrics of all jobs."""
    folder.mkdir(parents=True, exist_ok=True)
    named = {name_of(model, gpus): cells for model, sizes in profiles.items() for gpus, cells in sizes.items()}
    write_sensitivity(folder / "sensitivity.csv", named)
    write_jobs(folder / "jobs.yaml", named)
    workloads = []
    for load in loads:
        for seed in range(1, settings.seeds + 1):
            file = folder / f"{load}_{seed}.csv"
            write_trace(file, profiles, split, load, seed, settings.gpus, settings.jobs, gangs)
            workloads.append({"name": f"{load} {seed}", "files": str(file), "format": "plain"})
    grid = {"version": 1, "cluster": cluster(settings.gpus),
            "truth": {"interference": "utilisation", "sensitivity": "sensitivity.csv"},
            "beliefs": {"jobs": "jobs.yaml", "interference": "utilisation", "sensitivity": "sensitivity.csv"},
            "workloads": workloads,
            "policies": [policy(rule, queue) for queue in settings.queues for rule in settings.rules]}
    found = compare(horus, grid, folder)
    return {(load, rule, queue): [found[(f"{load} {seed}", f"{rule} {queue}", 1)] for seed in range(1, settings.seeds + 1)]
            for load in loads for rule in settings.rules for queue in settings.queues}


def add_queues(rows, results, what, split, settings):
    for (load, rule, queue), mine in results.items():
        fair = results[(load, "synergy-fair", queue)]
        protocol = (f"{what}; split {split} (image, language, speech), load {load}, queue {queue}, rounds of {ROUND_S} s with "
                    f"leases, restart {RESTART_S} s, {settings.gpus} GPUs, {settings.jobs} jobs, {settings.seeds} seeds")
        name = f"{rule.removeprefix('synergy-')}_{queue}_{split.replace('-', '_')}_{str(load).replace('.', '_')}"
        name += "_gangs" if what == "gangs" else ""
        if rule == "synergy-fair":
            mean = interval([run["jct_mean_s"] for run in mine])
            rows.add(f"jct_{name}", mean[0], "s", "lower", f"+- {mean[1]:.3g}", f"mean completion time; {protocol}")
            continue
        ratios = {metric: interval([b[metric] / a[metric] for a, b in zip(mine, fair)])
                  for metric in ("jct_mean_s", "jct_p99_s", "makespan_s")}
        rows.add(f"jct_gain_{name}", ratios["jct_mean_s"][0], "ratio", "higher",
                 f"+- {ratios['jct_mean_s'][1]:.3g}; p99 {ratios['jct_p99_s'][0]:.3f} +- {ratios['jct_p99_s'][1]:.2g}; makespan "
                 f"{ratios['makespan_s'][0]:.3f}; preemptions {sum(run['preemptions'] for run in mine) / len(mine):.0f}, "
                 f"migrations {sum(run['migrations'] for run in mine) / len(mine):.0f}",
                 f"mean completion time of synergy-fair over that of {rule}, by seed; {protocol}")


def at_half_cores(cells):
    """Cores alone, everything cached: with linear steps of half a core up to twice the fair share, where two tenants meet."""
    speeds = {}
    for cores, _, speed in cells:
        speeds[cores] = max(speed, speeds.get(cores, 0))
    points = {cores: speed for cores, speed in speeds.items() if speed > 0}
    for half in range(3, 4 * FAIR_CORES, 2):
        low, high = points.get((half - 1) / 2), points.get((half + 1) / 2)
        if low and high:
            points[half / 2] = (low + high) / 2
    least = min(points)
    points[least / 2] = points[least] / 2
    return [(cores, 1, speed) for cores, speed in sorted(points.items())]


def sensitive_jobs(data, profiles):
    """(throughput file, GPU as it names it, its jobs, sensitivity of those with a namesake); None without such a file."""
    for path, gpu, name in speeds_under(data):
        if name == GPU:
            jobs = sorted({key.split("'")[1] for key in json.loads(path.read_text(encoding="utf-8"))[gpu]})
            return path, gpu, jobs, {job: at_half_cores(profiles[NAMESAKES[kind]][1]) for job in jobs
                                     for kind in [job.split(" (")[0]] if NAMESAKES.get(kind) in profiles}
    return None


def joint_bound(horus, data, cores_per_gpu, gib_per_gpu, gpus=128):
    """Best rates of work of Gavel's mix by horus potential, over exclusive use at the fair share: of "resizing",
    "sharing" (pairs within the fair share of their GPU) and "both"; "exclusive" itself in GPUs that work alone with the
    cores that the speeds were measured with. Jobs of one GPU, clipped at percentile 99. None where data lacks files."""
    data = pathlib.Path(data)
    profiles, traces = profiles_under(data), traces_under(data)
    found = sensitive_jobs(data, profiles)
    if not found or not found[3] or not traces:
        return None
    path, gpu, _, named = found
    with tempfile.TemporaryDirectory() as name:
        table = pathlib.Path(name) / "sensitivity.csv"
        write_sensitivity(table, named)
        out = subprocess.run([horus, "potential", "--speeds", path, "--mix", *sorted(traces.glob("*.trace")), "--gpus",
                              f"{gpu}={gpus}", "--clip", "99", "--bound", "none", "--sensitivities", table, "--cores-per-gpu",
                              str(cores_per_gpu), "--memory-gib-per-gpu", str(gib_per_gpu), "--json"],
                             check=True, stdout=subprocess.PIPE).stdout
    case = next(case for case in json.loads(out)["cases"] if case["gpu"] == gpu)
    row = case["bounds"][0]
    alone = row["exclusive_rate"]
    return {"gpus": gpus, "exclusive": alone / gpus, "resizing": row["resized_rate"] / alone,
            "sharing": row["shared_rate"] / alone, "both": row["both_rate"] / alone}


def measure_bound(rows, horus, data, settings):
    for cores in BOUND_CORES:
        found = joint_bound(horus, data, cores, FAIR_GIB, settings.gpus)
        if found is None:
            return
        for figure in ("resizing", "sharing", "both"):
            rows.add(f"bound_{figure}_{cores}_cores", found[figure], "ratio", "higher",
                     f"exclusive: {found['exclusive']:.4g} of a GPU with the {FAIR_CORES} cores that speeds were measured with",
                     f"best rate of work over that of exclusive use at the fair share, by linear programming; {cores} cores "
                     f"a GPU; measured pairs of V100, Gavel's mix, Synergy's sensitivities. A model: that a job beside another "
                     "runs at the slower of its input and its part of the GPU, nobody measured")


def measure_sharing(rows, horus, profiles, data, folder, settings):
    traces = sorted(data.rglob("*.trace"))
    found = sensitive_jobs(data, profiles)
    if not found or not traces:
        return
    path, gpu, jobs, named = found
    folder.mkdir(parents=True, exist_ok=True)
    write_sensitivity(folder / "sensitivity.csv", named)
    write_jobs(folder / "jobs.yaml", jobs)
    knows = {"interference": "truth", "slowdown_bound": 100, "look_ahead": 50, "restart_s": RESTART_S}
    horus_policy = dict(knows, policy="horus", rebalance_s=3600)
    policies = [dict(knows, name="exclusive", policy="exclusive"),
                dict(knows, name="synergy-fair", policy="synergy-fair"), dict(knows, name="synergy-tune", policy="synergy-tune"),
                policy("synergy-tune", "fifo", name="synergy-tune leases", look_ahead=50),
                dict(horus_policy, name="horus", weights="prices"), dict(horus_policy, name="horus alike"),
                dict(horus_policy, name="horus without cores", weights="prices", host_grants="stated"),
                dict(knows, name="first-fit", policy="first-fit")]
    sample = {"files": str(max(traces, key=lambda t: sum(p.stat().st_size for p in t.parent.glob("*.trace"))).parent),
              "single_gpu": True, "known_only": True, "clip_percentile": 99, "sample": settings.jobs}
    for kind, aware in (("pairs alone", False), ("pairs and cores", True)):
        truth = {"speeds": [{"file": str(path), "gpus": {gpu: GPU}}], "reference": gpu}
        beliefs = {"jobs": "jobs.yaml", "interference": "utilisation"}
        if aware:
            truth["sensitivity"] = beliefs["sensitivity"] = "sensitivity.csv"
        grid = {"version": 1, "cluster": cluster(settings.gpus), "truth": truth, "beliefs": beliefs,
                "workloads": [dict(sample, name="backlog", backlog=True)], "policies": policies,
                "seeds": {"first": 1, "count": settings.seeds}}
        (folder / kind.replace(" ", "_")).mkdir(exist_ok=True)
        for file in ("jobs.yaml", "sensitivity.csv"):
            (folder / kind.replace(" ", "_") / file).write_bytes((folder / file).read_bytes())
        found = compare(horus, grid, folder / kind.replace(" ", "_"))
        seeds = range(1, settings.seeds + 1)
        for entry in policies:
            name = entry["name"]
            of = {metric: interval([found[("backlog", name, s)][metric] / found[("backlog", "exclusive", s)][metric]
                                    for s in seeds]) for metric in ("backlog_rate", "makespan_s", "jct_mean_s")}
            rows.add(f"sharing_{name.replace(' ', '_').replace('-', '_')}_{'cores' if aware else 'pairs'}", of["backlog_rate"][0],
                     "ratio", "higher", f"+- {of['backlog_rate'][1]:.3g}; makespan {of['makespan_s'][0]:.3f}; mean completion "
                     f"time {of['jct_mean_s'][0]:.3f}",
                     f"work rate while jobs waited over that of exclusive; truth {kind}, both known to the policies that ask "
                     f"for them; {len(named)} of {len(jobs)} job types are sensitive; {settings.gpus} GPUs, {settings.jobs} jobs "
                     f"at once, {settings.seeds} seeds. A model: that a step is the slower of input and share of the GPU, and that tenants that state nothing part "
                     "their GPU's cores evenly, nobody measured")


def measure(settings, data, folder):
    profiles = profiles_under(data)
    rows = Rows()
    if not profiles:
        return []
    for table in settings.tables:
        if table == "bound":
            measure_bound(rows, settings.horus, data, settings)
            continue
        if table == "sharing":
            measure_sharing(rows, settings.horus, profiles, data, folder / "sharing", settings)
            continue
        gangs = table == "gangs"
        for split in settings.splits:
            results = play_queues(settings.horus, profiles, folder / f"{table}_{split}", split, settings.loads, settings, gangs)
            add_queues(rows, results, table, split, settings)
    return rows.rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", required=True, help="file for the rows, one JSON object a line")
    parser.add_argument("--data", help="folder with tables of sensitivity, throughput files and traces")
    parser.add_argument("--smoke", action="store_true", help="16 GPUs, 40 jobs, two seeds, one split and load")
    parser.add_argument("--table", default="queues,gangs,sharing,bound", help="which, apart by commas")
    parser.add_argument("--queues", default=",".join(QUEUES))
    parser.add_argument("--rules", default=",".join(RULES))
    parser.add_argument("--splits", default=",".join(SPLITS))
    parser.add_argument("--loads", default=",".join(map(str, LOADS)))
    parser.add_argument("--gpus", type=int, default=128)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--keep", help="folder for grids and results, so that what is done is not done again")
    parser.add_argument("--horus", default=str(ROOT / "build" / "release" / "bin" / "horus"))
    settings = parser.parse_args()
    if settings.smoke:
        settings.gpus, settings.jobs, settings.seeds, settings.splits, settings.loads = 16, 40, 2, "20-70-10", "1.0"
    for name in ("queues", "rules", "splits"):
        setattr(settings, name, getattr(settings, name).split(","))
    settings.loads = [float(load) for load in settings.loads.split(",")]
    settings.tables = settings.table.split(",")
    rows = []
    if settings.data:
        with tempfile.TemporaryDirectory() as name:
            rows = measure(settings, pathlib.Path(settings.data).resolve(), pathlib.Path(settings.keep or name).resolve())
    if not rows:
        print("synergy_policies: SKIPPED: no tables of sensitivity under --data", file=sys.stderr)
    pathlib.Path(settings.rows).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
