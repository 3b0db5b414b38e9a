# SPDX-License-Identifier: Apache-2.0
"""The figures of the first screen: gains at bounds and quantiles, GPUs saved at equal JCT, JCT won at equal GPUs."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._ratio import is_base
from . import ReportError
from .figures import signed
from .inputs import Comparison, load, need

QUANTILES = (10, 25, 50, 75, 90)  # %
# Student's t, two-sided 95 %, by degrees of freedom from 1; beyond, the normal's.
STUDENT_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
              2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042)
NORMAL_95 = 1.960
JCT = ("jct_to_horizon_mean_s", "jct_mean_s")  # the first that the results have
BELOW_ZERO = ("gap_closed",)  # no other metric can be negative, so none falls by more than 100 %


@dataclass
class Quantile:
    """A bound on slowdowns that so many per cent of the table's pairs keep, and what sharing gains within it, %."""

    pct: float
    slowdown: float
    low: float | None
    high: float | None
    row: dict[str, Any] | None = None  # all that horus potential tells of it


def gain_between(bounds: list[dict[str, Any]], slowdown: float) -> tuple[float | None, float | None]:
    """What sharing gains at a bound nobody asked for: a tighter bound admits no more pairs, so that the gain lies
    between those of the next bounds on either side. None: no bound on that side."""
    low = high = None
    for bound in bounds:
        limit = math.inf if bound["slowdown_bound"] is None else float(bound["slowdown_bound"])
        gain = float(bound["gain_pct"])
        if limit <= slowdown:
            low = gain if low is None else max(low, gain)
        if limit >= slowdown:
            high = gain if high is None else min(high, gain)
    return low, high


def quantiles(case: dict[str, Any], pairs: dict[tuple[str, str], float]) -> list[Quantile]:
    """Of the slower side of each pair in the table."""
    worst: dict[tuple[str, str], float] = {}
    for (victim, other), slowdown in pairs.items():
        key = (min(victim, other), max(victim, other))
        worst[key] = max(worst.get(key, 0.0), slowdown)
    values = np.array([value for value in worst.values() if math.isfinite(value)])
    if values.size == 0:
        return []
    found = []
    for pct in QUANTILES:
        slowdown = float(np.percentile(values, pct, method="inverted_cdf"))
        found.append(Quantile(pct, slowdown, *gain_between(case["bounds"], slowdown)))
    return found


def jct_metric(comparison: Comparison) -> str:
    names = {metric["name"] for metric in comparison.results["metrics"]}
    for name in JCT:
        if name in names:
            return name
    raise ReportError(f"{comparison.path}/results.json: metrics: expected {' or '.join(JCT)}, found neither")


def change(name: str, values: dict[str, Any], base: float | None) -> tuple[float, float | None, float | None] | None:
    """Difference from the baseline with its interval, in per cent of the baseline's mean; the interval as far as the
    metric can go."""
    if values["difference"] is None or base is None or not is_base(base, values["difference"]):
        return None
    scale = 100 / abs(base)
    least = -math.inf if name in BELOW_ZERO else -100.0
    low, high = (None if end is None else max(least, end * scale)
                 for end in (values["difference_low"], values["difference_high"]))
    return values["difference"] * scale, low, high


def gain_text(quantile: Quantile) -> str:
    """What sharing gains at it: a figure, or the ends between which it lies."""
    if quantile.low is None or quantile.high is None:
        known = quantile.high if quantile.low is None else quantile.low
        return "\u2013" if known is None else f"{'at most' if quantile.low is None else 'at least'} {signed(known)}\u00a0%"
    if quantile.low == quantile.high:
        return f"{signed(quantile.low)}\u00a0%"
    return f"{signed(quantile.low)} to {signed(quantile.high)}\u00a0%"


@dataclass
class Saved:
    """GPUs that a policy can do without at the JCT that the baseline has on all of them."""

    workload: str
    policy: str
    gpus: float | None = None  # mean over seeds
    low: float | None = None
    high: float | None = None
    at_least: bool = False  # of a seed even the smallest cluster suffices
    short: int = 0  # seeds at which it needs more than the largest
    of: int = 0  # GPUs of the largest
    seeds: int = 0


def not_comparable(sizes: list[Comparison], workload: str) -> str:
    """Why runs of clusters of different sizes are not of the same work; empty: they are."""
    texts = {_work(comparison, workload) for comparison in sizes}
    if any("\nload: " in text for text in texts):
        return ("its arrivals are stretched to a load of each cluster, so that the sizes saw different arrivals: "
                "use a workload without load")
    if len(texts) > 1:
        return "its jobs, or the truth that time passes by, differ between the sizes"
    return ""


def _work(comparison: Comparison, workload: str) -> str:
    """What decides a run's work, as text: the lines of truth, and of the workload."""
    run = next((run for run in comparison.results["runs"] if run["workload"] == workload), None)
    if run is None:
        raise ReportError(f"{comparison.path}/results.json: runs: expected one of workload {workload!r}, found none")
    path = os.path.join(comparison.runs, f"{run['run']}.json")
    text = str(need(load(path, "a finished run, which tells whether sizes are of the same work"), "run", path))
    truth = [line for line in text.split("\n") if line.startswith("truth")]
    return "\n".join(truth) + "\nworkload\n" + text.partition("\nworkload\n")[2].partition("\npolicy\n")[0]


def gpus_saved(sizes: list[Comparison], workload: str, policy: str) -> Saved | None:
    """sizes: ascending by GPUs, of the same work. None: seeds that all sizes share are missing."""
    largest = sizes[-1]
    metric, baseline = jct_metric(largest), largest.results["baseline"]
    counts = [sum(size.gpus.values()) for size in sizes]
    of_policy = [_by_seed(size, workload, policy, metric) for size in sizes]
    of_base = _by_seed(largest, workload, baseline, metric)
    shared = set(of_base).intersection(*of_policy)
    if not shared:
        return None
    needed = [_least_gpus(counts, [values[seed] for values in of_policy], of_base[seed]) for seed in sorted(shared)]
    answer = Saved(workload, policy, of=counts[-1], seeds=len(shared), short=sum(n is None for n in needed))
    if answer.short:
        return answer
    saved = np.array([counts[-1] - n for n in needed if n is not None])
    answer.gpus = float(saved.mean())
    answer.at_least = bool((saved >= counts[-1] - counts[0]).any())
    if saved.size > 1 and not answer.at_least:
        half = student_95(saved.size - 1) * float(saved.std(ddof=1)) / math.sqrt(saved.size)
        answer.low, answer.high = answer.gpus - half, min(answer.gpus + half, float(counts[-1]))
    return answer


def _least_gpus(counts: list[int], jct: list[float], target: float) -> float | None:
    """From the largest cluster down as long as the JCT is kept, then straight to where it meets the target."""
    if jct[-1] > target:
        return None
    at = len(counts) - 1
    while at > 0 and jct[at - 1] <= target:
        at -= 1
    if at == 0:
        return float(counts[0])
    share = (target - jct[at]) / (jct[at - 1] - jct[at])
    return counts[at] - share * (counts[at] - counts[at - 1])


def _by_seed(comparison: Comparison, workload: str, policy: str, metric: str) -> dict[int, float]:
    return {run["seed"]: float(run["metrics"][metric]) for run in comparison.results["runs"]
            if run["workload"] == workload and run["policy"] == policy and run["metrics"].get(metric) is not None}


def student_95(degrees: int) -> float:
    return STUDENT_95[degrees - 1] if degrees <= len(STUDENT_95) else NORMAL_95
