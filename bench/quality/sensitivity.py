#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How wrong sensitivities are that `horus profile --sensitivity` computes from a few measured core counts (horus.profile).

  profiles  the tables of sensitivity under --data (Synergy's profiles, OSDI 2022): at most five core counts are taken as measured, the
            others are predicted. Rates of a model on one, two and four GPUs and with several fair shares are one curve
            if they are equal. The law has no parameter; which of three laws is used was decided by nothing in the tables: the rows
            `law_chosen_*` say how the law that is best on all other models does on the one left out
  loaders   seven input pipelines of this machine (sensitivity_loaders.py) under quotas of a quarter to all of its cores: profiled with
            at most five runs, then measured anew at every quota. Needs the right to make a control group for the processor
  decided   jobs with Synergy's sensitivities and V100's measured pairs in a simulated cluster: what policies reach that share
            GPUs, that divide cores, and that do both, of what a linear program says of both (synergy_policies, table sharing)
  memory    epochs of a file that a memory control group holds in part, beside the memory model. Likewise
"""
import argparse
import contextlib
import csv
import json
import math
import os
import pathlib
import random
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bindings/python/src"))  # the law and the runs need nothing but Python

import sensitivity_loaders  # noqa: E402
import synergy_policies  # noqa: E402
from horus.profile import InputStorage  # noqa: E402
from horus.profile.law import InputRate, Law, Measured, explore  # noqa: E402
from horus.profile.runs import Timing, measure  # noqa: E402
from policy_grids import interval  # noqa: E402

COLUMNS = {"model", "gpus", "cpu_cores", "dram_gb", "norm_tput"}
MAX_RUNS, TOLERANCE = 5, 0.03
AIM_PROFILES_PCT, AIM_LOADERS_PCT, AIM_GAP_PCT = 5, 8, 90
QUARTERS_A_CORE = 4
PERIOD_US = 20_000  # of a quota: short, so that a run sees many
MIB = 1 << 20
LEAST_SHARE = 0.1  # of a dataset as memory, where all comes from the disk
GROUPS = pathlib.Path("/sys/fs/cgroup")


class Straight(Law):
    """Rates linear in cores between measured counts."""

    def at(self, cores):
        one = super().at(cores)
        return one if one.measured else InputRate(cores, self._bounded(cores)[0], one.low, one.high, False)

    def _bounded(self, cores):
        right = next(i for i, count in enumerate(self._cores) if count >= cores)
        a, b = self._points[right - 1], self._points[right]
        straight = a.rate + (b.rate - a.rate) * (cores - a.cores) / (b.cores - a.cores)
        return straight, self._bounds(right, cores, straight)[1]


class Middle(Straight):
    """Half-way between that and the upper bound."""

    def at(self, cores):
        one = Law.at(self, cores)
        return one if one.measured else InputRate(cores, sum(self._bounded(cores)) / 2, one.low, one.high, False)


LAWS = {"amdahl": Law, "straight": Straight, "middle": Middle}


class Rows:
    def __init__(self):
        self.rows = []

    def add(self, metric, value, unit, aim, better, baseline, protocol):
        self.rows.append({"metric": metric, "value": value, "unit": unit, "aim": aim, "better": better, "baseline": baseline,
                          "protocol": protocol})

    def add_errors(self, name, errors, aim, baseline, protocol):
        """`errors`: relative."""
        self.add(f"{name}_mean", 100 * statistics.fmean(errors), "%", aim, "lower", baseline, protocol)
        self.add(f"{name}_p90", 100 * percentile(errors, 0.9), "%", None, "lower", "", protocol)
        self.add(f"{name}_worst", 100 * max(errors), "%", None, "lower", "", protocol)


def percentile(values, share):
    return sorted(values)[math.ceil(share * len(values)) - 1]


# ---- Profiles.

def curves_under(data):
    """model -> curves without duplicates: cores -> speed at the most memory."""
    found = {}
    for path in sorted(data.rglob("*.csv")):
        with open(path, encoding="utf-8", newline="") as file:
            table = csv.DictReader(file)
            if not COLUMNS <= set(table.fieldnames or ()):
                continue
            curves = {}
            for row in table:
                key = (row["model"], row["gpus"], row.get("fair_cpu_per_gpu"), row.get("profile_dir"))
                cells = curves.setdefault(key, {})
                cores, speed = int(float(row["cpu_cores"])), float(row["norm_tput"])
                if speed > 0:
                    cells[cores] = max(speed, cells.get(cores, 0))
            for (model, *_), cells in curves.items():
                curve = tuple(sorted(cells.items()))
                if curve not in found.setdefault(model, []):
                    found[model].append(curve)
    return found


def held_out(curve, law, max_runs=MAX_RUNS):
    """(error, stated error) of every count that was not measured, and the runs that it took."""
    speeds = dict(curve)
    measured = explore(lambda count, _: Measured(count, speeds[count]), sorted(speeds), max_runs, TOLERANCE, law)
    rates = [law(measured).at(count) for count in sorted(speeds)]
    return [(abs(one.rate / speeds[one.cores] - 1), one.error) for one in rates if not one.measured], len(measured)


def errors_of(curves, law, max_runs=MAX_RUNS):
    return [error for curve in curves for error, _ in held_out(curve, law, max_runs)[0]]


def measure_profiles(rows, data):
    models = curves_under(data)
    if not models:
        print("sensitivity: SKIPPED: profiles: no table of sensitivity under --data", file=sys.stderr)
        return
    sensitive = {model: curves for model, curves in models.items() if any(len({speed for _, speed in curve}) > 1 for curve in curves)}
    protocol = (f"core counts that were not taken as measured, of at most {MAX_RUNS} that were; speed at the most memory; fewer where the "
                f"law states {100 * TOLERANCE:.0f} % or less; {len(models)} models, {sum(map(len, models.values()))} different curves of up to 9 "
                "counts, rounded by their source")
    for name, part in (("profiling_error", models), ("profiling_error_sensitive", sensitive)):
        everything = [curve for curves in part.values() for curve in curves]
        others = ", ".join(f"{other} {100 * statistics.fmean(errors_of(everything, law)):.3g}" for other, law in LAWS.items() if law is not Law)
        rows.add_errors(name, errors_of(everything, Law), AIM_PROFILES_PCT, others, f"{protocol}; {len(part)} of the models")
    everything = [curve for curves in models.values() for curve in curves]
    found = [held_out(curve, Law) for curve in everything]
    cells = [cell for cells, _ in found for cell in cells]
    rows.add("profiling_runs_mean", statistics.fmean(runs for _, runs in found), "runs", None, "lower", "", protocol)
    rows.add("profiling_within_stated", 100 * statistics.fmean(error <= stated + 0.005 for error, stated in cells), "%", None, "higher", "",
             f"share of held-out counts whose error is within the stated one and the half of 0.01 that speeds are rounded to; {protocol}")
    for runs in (3, 4):
        rows.add(f"profiling_error_{runs}_runs_mean", 100 * statistics.fmean(errors_of(everything, Law, runs)), "%", None, "lower", "",
                 f"the same from at most {runs} counts")
    chosen, names = [], {}
    for model, curves in sensitive.items():
        rest = [curve for other, others in sensitive.items() if other != model for curve in others]
        best = min(LAWS, key=lambda name: statistics.fmean(errors_of(rest, LAWS[name])))
        names[best] = names.get(best, 0) + 1
        chosen += errors_of(curves, LAWS[best])
        mine = errors_of(curves, Law)
        rows.add(f"profiling_error_{model}", 100 * statistics.fmean(mine), "%", None, "lower", f"worst {100 * max(mine):.3g}", protocol)
    rows.add_errors("law_chosen_elsewhere", chosen, AIM_PROFILES_PCT, ", ".join(f"{name} {count}" for name, count in names.items()),
                    f"the law (of {', '.join(LAWS)}) with the least mean error on all other models that cores speed up; {protocol}")


# ---- Control groups, version 1 or 2.

@contextlib.contextmanager
def group(controller, **settings):
    """A control group with these settings (by file of version 1 or 2), before all others; None where none can be made."""
    made = None
    for parent in (GROUPS / controller, GROUPS):
        folder = parent / f"horus_bench_{os.getpid()}"
        with contextlib.suppress(OSError):
            folder.mkdir()
            made = folder
            for name, value in {"cpu__shares": 262_144, "cpu__weight": 10_000, **settings}.items():
                file = folder / name.replace("__", ".")
                if file.exists():
                    file.write_text(str(value), encoding="ascii")
            break
    try:
        yield made
    finally:
        for _ in range(100):  # it empties a moment after its processes ended
            with contextlib.suppress(OSError):
                if made is not None:
                    made.rmdir()
                break
            time.sleep(0.1)


def set_quota(folder, quarters):
    quota = round(PERIOD_US * quarters / QUARTERS_A_CORE)
    if (folder / "cpu.max").exists():
        (folder / "cpu.max").write_text(f"{quota} {PERIOD_US}", encoding="ascii")
    else:
        (folder / "cpu.cfs_quota_us").write_text("-1", encoding="ascii")
        (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US), encoding="ascii")
        (folder / "cpu.cfs_quota_us").write_text(str(quota), encoding="ascii")


def has_quota(folder):
    return folder is not None and any((folder / name).exists() for name in ("cpu.max", "cpu.cfs_quota_us"))


# ---- Loaders.

def run_at(folder, name, quarters, seconds):
    set_quota(folder, quarters)
    workers = math.ceil(quarters / QUARTERS_A_CORE)
    timing = Timing(seconds, 0.002, 120, None, least_s=seconds)
    return measure(sensitivity_loaders.LOADERS[name], name, sorted(os.sched_getaffinity(0)), workers, timing, groups=(str(folder),))


def measure_loader(name, folder, settings):
    """(quarters, predicted rate, the rates measured later) of every quota, and the runs that predicting took."""
    quotas = [*range(1, QUARTERS_A_CORE * len(os.sched_getaffinity(0)) + 1)]

    def profile(quarters, _):
        run = run_at(folder, name, quarters, settings.seconds)
        return Measured(quarters, run.rate, run.error)

    law = Law(explore(profile, quotas, MAX_RUNS, TOLERANCE))
    later = {quarters: [] for quarters in quotas}
    for turn in range(settings.repeats):
        for quarters in random.Random(turn).sample(quotas, len(quotas)):
            later[quarters].append(run_at(folder, name, quarters, settings.seconds).rate)
            print(f"sensitivity: {name}: {quarters / QUARTERS_A_CORE:g} cores: {later[quarters][-1]:.4g} batches/s", file=sys.stderr)
    return [(law.at(quarters), later[quarters]) for quarters in quotas]


def measure_loaders(rows, settings):
    with group("cpu") as folder:
        if not has_quota(folder):
            print("sensitivity: SKIPPED: loaders: no control group for the processor can be made", file=sys.stderr)
            return
        cores = len(os.sched_getaffinity(0))
        protocol = (f"median of {settings.repeats} later runs of {settings.seconds:g} s at each quota of 1/{QUARTERS_A_CORE} to {cores} cores, a worker "
                    f"for each core begun, beside the profile of at most {MAX_RUNS} runs as long; load of others on the machine not excluded")
        computed, everything, noise, stated, alone = [], [], [], [], []
        for name in settings.loaders:
            cells = measure_loader(name, folder, settings)
            errors = [(one, abs(one.rate / statistics.median(rates) - 1)) for one, rates in cells]
            mine = [error for one, error in errors if not one.measured]
            repeat = [abs(rate / statistics.median(rates) - 1) for _, rates in cells for rate in rates if len(rates) > 1]
            if mine:
                rows.add(f"loader_error_{name}", 100 * statistics.fmean(mine), "%", AIM_LOADERS_PCT, "lower",
                         f"worst {100 * max(mine):.3g}; counts that were measured {100 * statistics.fmean(e for o, e in errors if o.measured):.3g}",
                         f"mean over computed quotas; {protocol}")
            medians = {one.cores: statistics.median(rates) for one, rates in cells}
            again = Law(Measured(one.cores, medians[one.cores]) for one, _ in cells if one.measured)
            alone += [abs(again.at(one.cores).rate / medians[one.cores] - 1) for one, _ in cells if not one.measured]
            computed += mine
            everything += [error for _, error in errors]
            noise += repeat
            stated += [error <= one.error for one, error in errors]
        again = f"one run beside the median of its quota: {100 * statistics.fmean(noise):.3g}" if noise else ""
        rows.add_errors("loader_error", computed, AIM_LOADERS_PCT, again, f"{len(settings.loaders)} loaders, computed quotas; {protocol}")
        rows.add_errors("loader_law_error", alone, AIM_LOADERS_PCT, "", "the law through the later medians of the counts that the profile measured, beside "
                        f"those of the others: what the law adds to the drift of the machine; {protocol}")
        rows.add("loader_error_all_mean", 100 * statistics.fmean(everything), "%", AIM_LOADERS_PCT, "lower", again, f"measured quotas too; {protocol}")
        rows.add("loader_within_stated", 100 * statistics.fmean(stated), "%", None, "higher", "", f"share of quotas within the stated error; {protocol}")


# ---- Memory.

def from_disk():
    """Bytes that this process has read from disks."""
    text = pathlib.Path("/proc/self/io").read_text(encoding="utf-8")
    return int(next(line for line in text.splitlines() if line.startswith("read_bytes")).split()[1])


def epochs(file, order, count, files):
    """(seconds, share that came from the disk) of each of `count` epochs over a file in MiB."""
    draw, places, buffer, took = random.Random(1), list(range(files)), bytearray(MIB), []
    for _ in range(count):
        if order == "shuffled":
            draw.shuffle(places)
        before, begin = from_disk(), time.perf_counter()
        for place in places:
            os.preadv(file, [buffer], place * MIB)
        took.append((time.perf_counter() - begin, (from_disk() - before) / files / MIB))
    return took


def limited(file, share, order, count, files):
    """Medians of the same in a process that may use `share` of the file as memory, from nothing cached, without the first epoch; None
    where no control group can be made."""
    room = round(share * files * MIB)
    with group("memory", memory__limit_in_bytes=room, memory__max=room) as folder:
        if folder is None or not any((folder / name).exists() for name in ("memory.max", "memory.limit_in_bytes")):
            return None
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        out, into = os.pipe()
        child = os.fork()
        if child == 0:
            (folder / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
            os.write(into, json.dumps(epochs(file, order, count, files)).encode())
            os._exit(0)
        os.close(into)
        with open(out, encoding="utf-8") as told:
            found = json.loads(told.read())
        os.waitpid(child, 0)
    return [statistics.median(column) for column in zip(*found[1:])]


def measure_memory(rows, settings):
    files, shares = settings.dataset_mib, (0.25, 0.5, 0.75)
    with open(settings.folder / "dataset", "wb+", buffering=0) as made:
        block = os.urandom(MIB)
        for _ in range(files):
            made.write(block)
        os.fsync(made.fileno())
        os.posix_fadvise(made.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # reads are of whole samples
        for order, cache in (("in order", "lru-sequential"), ("shuffled", "lru-shuffled")):
            found = {share: limited(made.fileno(), share, order, settings.epochs, files) for share in (LEAST_SHARE, *shares, 2)}
            if found[2] is None:
                print("sensitivity: SKIPPED: memory: no control group for memory can be made", file=sys.stderr)
                return
            name = order.replace(" ", "_")
            protocol = (f"{files} MiB read {order} in samples of 1 MiB under 25, 50 and 75 % of it as memory of a control group (the process's own "
                        f"included), median of {settings.epochs - 1} epochs after the first; listed: each")
            for kind in (cache, "fixed"):
                models = {share: InputStorage(files, 1, (1,), files / (found[LEAST_SHARE][0] / found[LEAST_SHARE][1]), files / found[2][0], cache=kind)
                          for share in shares}
                missed = [1 - models[share].hits(share * files) - found[share][1] for share in shares]
                late = [models[share].fetch_s(share * files) / found[share][0] - 1 for share in shares]
                short = kind.replace("-", "_")
                rows.add(f"memory_misses_{name}_{short}", 100 * statistics.fmean(map(abs, missed)), "%", None, "lower",
                         f"signed {shown(missed)}; measured {shown(found[share][1] for share in shares)}",
                         f"share of an epoch that the model {kind} reads from the disk less the measured one, points; {protocol}")
                rows.add(f"memory_epoch_{name}_{short}", 100 * statistics.fmean(map(abs, late)), "%", None, "lower", f"signed {shown(late)}",
                         f"modelled time of an epoch beside the measured one; the disk's speed from {100 * LEAST_SHARE:.0f} % memory, that of "
                         f"memory from room for all; {protocol}")


def measure_decisions(rows, data, settings):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        asked = argparse.Namespace(horus=settings.horus, tables=["sharing"], gpus=settings.gpus, jobs=settings.jobs, seeds=settings.seeds)
        if not synergy_policies.measure(asked, data, folder):
            print("sensitivity: SKIPPED: decided: no sensitivities, throughput files and traces under --data", file=sys.stderr)
            return
        results = json.loads((folder / "sharing" / "pairs_and_cores" / "results.json").read_text(encoding="utf-8"))
    runs = {(run["policy"], run["seed"]): run["metrics"] for run in results["runs"]}
    gap = synergy_policies.joint_bound(settings.horus, data, synergy_policies.FAIR_CORES, synergy_policies.FAIR_GIB)["both"] - 1

    def ratio(metric, policy, other):
        return interval([runs[policy, seed][metric] / runs[other, seed][metric] for seed in range(1, settings.seeds + 1)])

    protocol = (f"Gavel's jobs of one GPU at once, {settings.gpus} V100s with 3 cores each, {settings.jobs} jobs, {settings.seeds} seeds, 95 %; "
                "truth: a step is the slower of input and share of the GPU, which nobody measured")
    for policy in ("horus alike", "horus without cores", "synergy-tune", "synergy-tune leases"):
        rate, name = ratio("backlog_rate", policy, "exclusive"), policy.replace(" ", "_").replace("-", "_")
        rows.add(f"decided_gap_closed_{name}", 100 * (rate[0] - 1) / gap, "%", AIM_GAP_PCT if policy == "horus alike" else None, "higher",
                 f"rate {rate[0]:.3f} +- {rate[1]:.2g}; bound {1 + gap:.3f}",
                 f"work rate while jobs wait, of the way from exclusive use to the joint bound; {protocol}")
        if policy != "horus alike":
            late = ratio("jct_mean_s", "horus alike", policy)
            rows.add(f"decided_jct_over_{name}", late[0], "ratio", 1, "lower", f"+- {late[1]:.2g}",
                     f"mean completion time of horus with cores over that of {policy}, by seed; {protocol}")


def shown(errors):
    return ", ".join(f"{100 * error:+.0f}" for error in errors)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", required=True, help="file for the rows, one JSON object a line")
    parser.add_argument("--data", help="folder with tables of sensitivity")
    parser.add_argument("--smoke", action="store_true", help="two loaders, runs of 0.3 s, 32 MiB")
    parser.add_argument("--loaders", default=",".join(sensitivity_loaders.LOADERS), help="which, apart by commas")
    parser.add_argument("--seconds", type=float, default=2, help="of a run")
    parser.add_argument("--repeats", type=int, default=3, help="later runs at each quota")
    parser.add_argument("--dataset-mib", type=int, default=400)
    parser.add_argument("--epochs", type=int, default=9)
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "out", help="on the disk that is measured")
    parser.add_argument("--gpus", type=int, default=128, help="of the simulated cluster")
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--horus", default=str(ROOT / "build" / "release" / "bin" / "horus"))
    settings = parser.parse_args()
    settings.loaders = settings.loaders.split(",")
    if settings.smoke:
        settings.loaders, settings.seconds, settings.repeats = settings.loaders[:2], 0.3, 1
        settings.dataset_mib, settings.epochs = 32, 3
        settings.gpus, settings.jobs, settings.seeds = 16, 40, 2
    settings.folder.mkdir(parents=True, exist_ok=True)
    rows = Rows()
    if settings.data:
        measure_profiles(rows, pathlib.Path(settings.data).resolve())
        measure_decisions(rows, pathlib.Path(settings.data).resolve(), settings)
    else:
        print("sensitivity: SKIPPED: profiles: no --data", file=sys.stderr)
    measure_loaders(rows, settings)
    try:
        measure_memory(rows, settings)
    finally:
        (settings.folder / "dataset").unlink(missing_ok=True)
    pathlib.Path(settings.rows).write_text("".join(json.dumps(row) + "\n" for row in rows.rows), encoding="utf-8")


if __name__ == "__main__":
    main()
