# SPDX-License-Identifier: Apache-2.0
"""Packs that taking turns would beat, and the slow end of the jobs, of policies that share."""
import csv
import subprocess

from policy_grids import Rows, family, others, rivals
from policy_noise import true_slowdowns
from policy_tables import ALL_AT_ONCE

STOPS = {"finish", "fail", "preempt", "migrate", "interrupt", "out-of-memory", "profiled"}  # of a job where it is
POLICIES = [one for one in family("prices") if one.get("name") != "horus alike"] + rivals("first-fit", "gandiva")


def shares(timeline, slowdowns):
    """Of the GPU time with a tenant: the share that two had, and that two had whose summed throughput is below 1."""
    on, where, began = {}, {}, {}
    spent = {"alone": 0, "pays": 0, "loses": 0}

    def close(gpu, now):
        jobs = on.get(gpu, {})
        if jobs:
            kinds = list(jobs.values())
            work = sum(1 / slowdowns.get((a, b), float("inf")) for a, b in (kinds, kinds[::-1])) if len(kinds) > 1 else None
            spent["alone" if work is None else "pays" if work >= 1 else "loses"] += now - began[gpu]
        began[gpu] = now

    with timeline.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            now, job = int(row["time_us"]), row["job"]
            if row["event"] in STOPS and job in where:
                gpu = where.pop(job)
                close(gpu, now)
                del on[gpu][job]
            if row["event"] in ("start", "migrate"):
                gpu = where[job] = row["node"], row["gpus"]
                close(gpu, now)
                on.setdefault(gpu, {})[job] = row["profile"]
    whole = sum(spent.values())
    return 100 * (spent["pays"] + spent["loses"]) / whole, 100 * spent["loses"] / whole


def packs(setting, suffix):
    """GPU time in packs of two whose summed throughput is below 1, where taking turns does more, and slowdowns at percentile 99."""
    rows, results = Rows(setting.told()), setting.play("packs", setting.backlog(), "fifo", POLICIES)
    path, key, _ = setting.speeds[0]
    folder, slowdowns = setting.folder / f"packs_{setting.short}_{setting.gpus}", true_slowdowns(path, key)
    timeline, told = folder / "timeline.csv", []
    for policy in results.values["backlog"]:
        of = []
        for seed in results.seeds:
            subprocess.run([setting.horus, "simulate", folder / "grid.yaml", "--policy", policy, "--seed", str(seed), "--timeline",
                            timeline], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            of.append(shares(timeline, slowdowns))
        told.append((policy, *(sum(one) / len(of) for one in zip(*of))))
    timeline.unlink()
    losing = {policy: loses for policy, _, loses in told}
    rows.add(f"losing_packs_{setting.short}{suffix}", losing["horus"], "%", "lower",
             "; ".join(f"{policy} {loses:.2f} of {shared:.0f} shared" for policy, shared, loses in told), losing["first-fit"] / 2,
             f"share of the GPU time with a tenant in which two did less work than one alone; {ALL_AT_ONCE}")
    rows.add(f"slowdown_p99_{setting.short}{suffix}", results.mean("backlog", "horus", "slowdown_p99"), "ratio", "lower",
             others(results, "backlog", "slowdown_p99"), results.mean("backlog", "first-fit", "slowdown_p99"),
             f"of jobs that state no bound, over their whole run; {ALL_AT_ONCE}")
    return rows.rows


TABLES = {"packs": packs}
