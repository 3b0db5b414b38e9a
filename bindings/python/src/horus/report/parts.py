# SPDX-License-Identifier: Apache-2.0
"""Rows of the page's tables, from the results and the answers."""

from __future__ import annotations

import math
from typing import Any

from . import ReportError, answers, figures
from .inputs import Comparison, need

Pairs = dict[str, dict[tuple[str, str], float]]
# Columns of the table of policies, as far as the results have them; every other metric is in the chart.
SHOWN = ("jct_p95_s", "wait_mean_s", "makespan_s", "work_rate", "gap_closed", "slowdown_p95", "above_bound_pct",
         "useful_pct", "fragmentation_pct")
TITLES = {"jct_to_horizon_mean_s": "mean JCT", "jct_mean_s": "mean JCT", "jct_p95_s": "JCT p95", "wait_mean_s": "mean wait",
          "makespan_s": "makespan", "work_rate": "work rate", "gap_closed": "gap closed", "slowdown_p95": "slowdown p95",
          "above_bound_pct": "jobs above bound", "useful_pct": "useful throughput", "fragmentation_pct": "fragmentation"}
MOST_MATRIX = 40  # jobs of a matrix that is shown


def bounds_of(path: str, document: dict[str, Any], pairs: Pairs) -> dict[str, Any]:
    """One answer of horus potential: a case a GPU type, a row a bound, and quantiles of the table where it is given."""
    cases = []
    for case in document["cases"]:
        for key in ("gpu", "gpus", "verdict", "bounds", "pairs_run"):
            need(case, key, path)
        for bound in case["bounds"]:
            for key in ("slowdown_bound", "pairs_admitted", "pairs_admitted_of_mix_pct", "exclusive_rate", "shared_rate",
                        "gain_pct", "makespan_cut_pct", "pays", "pairs"):
                need(bound, key, path)
        cases.append({**case, "name": "all types together" if case["gpu"] is None else str(case["gpu"]),
                      "quantiles": _quantiles(path, document, case, pairs), "headline": _headline(case)})
    whole = cases[-1] if cases else None
    if whole is None:
        raise ReportError(f"{path}: cases: expected at least one, found none")
    return {"path": path, "source": str(document["source"]), "profiles": document["profiles"], "whole": whole,
            "reference": document["reference"], "least_gain_pct": document["least_gain_pct"], "cases": cases,
            "notes": document.get("notes", []), "exact_quantiles": all("quantiles" in case for case in document["cases"])}


def _quantiles(path: str, document: dict[str, Any], case: dict[str, Any], pairs: Pairs) -> list[answers.Quantile]:
    """As the file tells them; of a file from before it did, between the bounds, where the table is given."""
    if "quantiles" in case:
        for row in case["quantiles"]:
            for key in ("pct", "slowdown_bound", "gain_pct", "pairs_admitted", "pairs_admitted_of_mix_pct", "makespan_cut_pct"):
                need(row, key, path)
        return [answers.Quantile(row["pct"], row["slowdown_bound"], row["gain_pct"], row["gain_pct"], row)
                for row in case["quantiles"]]
    known = set(document["profiles"])
    table = pairs.get(str(case["gpu"]), {}) if case["gpu"] is not None else {}
    return answers.quantiles(case, {key: value for key, value in table.items() if known.issuperset(key)})


def _headline(case: dict[str, Any]) -> dict[str, str]:
    """The answer in a line: at the tightest bound that pays, and at the loosest."""
    bounds = sorted(case["bounds"], key=lambda bound: math.inf if bound["slowdown_bound"] is None
                    else bound["slowdown_bound"])
    loosest = bounds[-1]
    best = f"{figures.signed(loosest['gain_pct'])}\u00a0% ({figures.bound(loosest['slowdown_bound'])})"
    paying = next((bound for bound in bounds if bound["pays"]), None)
    if paying is None:
        return {"figure": "Does not pay", "detail": f"the best plan gains {best}"}
    word = "with no bound on slowdowns" if paying["slowdown_bound"] is None \
        else f"with no job slowed more than {figures.bound(paying['slowdown_bound'])}"
    more = "" if paying is loosest else f"; at most {best}"
    return {"figure": f"{figures.signed(paying['gain_pct'])}\u00a0% work", "detail": f"{word}{more}"}


def policies_of(comparison: Comparison) -> dict[str, Any]:
    """A row a workload and policy, and the values of every metric for the chart."""
    path, results = f"{comparison.path}/results.json", comparison.results
    metrics = [str(need(metric, "name", path)) for metric in results["metrics"]]
    first = answers.jct_metric(comparison)
    shown = [first, *(name for name in SHOWN if name in metrics)]
    summary = results["summary"]
    if not summary:
        raise ReportError(f"{path}: summary: expected at least one workload and policy, found none")
    base = {row["workload"]: row["metrics"] for row in summary if row["policy"] == results["baseline"]}
    rows, values = [], []
    for row in summary:
        of_base = base.get(need(row, "workload", path), {})
        every = {name: _values(row, name, of_base, path) for name in metrics}
        values.append([row["workload"], row["policy"], [every[name] for name in metrics]])
        is_base = row["policy"] == results["baseline"]
        cells = [{"mean": figures.of_metric(name, every[name][0]), "change": None if is_base else every[name][1:]}
                 for name in shown]
        rows.append({"workload": row["workload"], "policy": row["policy"], "is_base": is_base, "cells": cells,
                     "jct": every[first]})
    return {"name": comparison.name, "baseline": results["baseline"], "seeds": len(results["seeds"]), "rows": rows,
            "gpus": sum(comparison.gpus.values()), "values": values,
            "titles": [TITLES.get(name, name) for name in shown],
            "shown": shown, "metrics": [[m["name"], m.get("better", "neither")] for m in results["metrics"]]}


def _values(row: dict[str, Any], name: str, base: dict[str, Any], path: str) -> list[float | None]:
    """Mean; change from the baseline in per cent, and both ends of its interval."""
    values = need(need(row, "metrics", path), name, path)
    changed = answers.change(name, values, base.get(name, {}).get("mean"))
    return [values["mean"], *(changed or (None, None, None))]


def sizes_of(comparisons: list[Comparison]) -> dict[str, Any]:
    """GPUs saved, of comparisons at several sizes; or what is needed to tell."""
    sized = sorted((one for one in comparisons if one.gpus), key=lambda one: sum(one.gpus.values()))
    counts = [sum(one.gpus.values()) for one in sized]
    found: dict[str, Any] = {"saved": [], "reasons": [], "lines": [], "counts": counts}
    if len(set(counts)) < 2 or len(set(counts)) < len(counts):
        unknown = [one.path for one in comparisons if not one.gpus]
        text = "Needs results of horus compare of the same jobs on clusters of at least two different sizes, a folder each"
        if unknown and len(comparisons) > 1:
            text += f"; how many GPUs is not told by {', '.join(unknown)}: add --gpus FOLDER=N"
        elif len(set(counts)) < len(counts):
            text += f"; found {', '.join(map(str, counts))} GPUs"
        found["reasons"].append(text + ".")
        return found
    shared = [name for name in dict.fromkeys(row["workload"] for row in sized[-1].results["summary"])
              if all(any(row["workload"] == name for row in one.results["summary"]) for one in sized)]
    for workload in shared:
        reason = answers.not_comparable(sized, workload)
        if reason:
            found["reasons"].append(f"{workload}: {reason}.")
            continue
        _add_workload(sized, counts, workload, found)
    return found


def _add_workload(sized: list[Comparison], counts: list[int], workload: str, found: dict[str, Any]) -> None:
    baseline, metric = sized[-1].results["baseline"], answers.jct_metric(sized[-1])
    policies = dict.fromkeys(row["policy"] for row in sized[-1].results["summary"] if row["workload"] == workload)
    for policy in policies:
        means = []
        for one in sized:
            row = next((row for row in one.results["summary"] if row["workload"] == workload
                        and row["policy"] == policy), None)
            means.append(None if row is None else row["metrics"][metric]["mean"])
        found["lines"].append([workload, policy, counts, means])
        if policy != baseline and None not in means:
            saved = answers.gpus_saved(sized, workload, policy)
            if saved is not None:
                found["saved"].append(saved)


def matrices(pairs: Pairs) -> list[dict[str, Any]]:
    """The tables of pairs as matrices; shade 0 to 4 by slowdown."""
    found = []
    for gpu, table in pairs.items():
        names = sorted({name for key in table for name in key})
        if not names:
            continue
        shown = names[:MOST_MATRIX]
        rows = [[table.get((victim, other)) for other in shown] for victim in shown]
        cells = [[None if value is None else {"text": f"{value:.2f}", "shade": _shade(value)} for value in row]
                 for row in rows]
        found.append({"gpu": gpu or "any GPU", "names": shown, "rows": list(zip(shown, cells)), "all": len(names)})
    return found


def _shade(slowdown: float) -> int:
    return sum(slowdown > limit for limit in (1.1, 1.25, 1.5, 2.0))
