# SPDX-License-Identifier: Apache-2.0
"""Timelines as sums small enough for a browser: however many jobs there are, what leaves has a few thousand numbers.

A cell holds the finished jobs of one type on one GPU type: sums, and a histogram of completion times from which the page
reads quantiles of whatever the filters leave.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..plot.events import NEVER, NOT_STATED, Timeline, read_timeline
from ..plot.measure import Levels, tenant_levels, usage_over_time
from ..plot.timeline import slots_of
from . import ReportError
from .inputs import Inputs, nodes_stated

BINS_A_DECADE = 40  # of completion times: a quantile is at most 3 % off
DECADES = 9  # from 1 s
US = 1_000_000
HOUR_US = 3_600 * US
TIME_BINS = 240  # of what changes over time
MOST_TYPES = 60  # job types with cells of their own: those with most GPU time; the rest is one
MOST_LANES, MOST_SPELLS = 24, 480  # GPUs and bars of the timeline that is drawn: a bar costs the browser most


def read_runs(inputs: Inputs) -> list[dict[str, Any]]:
    """What the page needs of each timeline."""
    runs = []
    for path, told in inputs.timelines:
        nodes = nodes_stated(told, path)
        type_of = {name: next(iter(gpus)) for name, gpus in nodes.items() if len(gpus) == 1}
        timeline = _read(path, inputs.profile_of, {**type_of, **inputs.type_of})
        runs.append(_run(timeline, told, inputs.gpus_of, nodes))
    return runs


def _read(path: str, profile_of: dict[str, str], type_of: dict[str, str]) -> Timeline:
    try:
        return read_timeline(path, profile_of, type_of)
    except ValueError as error:
        raise ReportError(str(error)) from None


def _run(timeline: Timeline, told: dict[str, Any], gpus_of: dict[str, int],
         nodes: dict[str, dict[str, int]]) -> dict[str, Any]:
    """gpus_of: GPUs by node, by hand; nodes: GPUs by node and type, as the run tells them."""
    levels = tenant_levels(timeline)
    names, merged = _job_types(timeline)
    types = sorted(set(timeline.gpu_type)) or [NOT_STATED]
    return {
        "workload": str(told["workload"]), "policy": str(told["policy"]), "seed": told["seed"],
        "jobs": len(timeline.job_ids), "profiles": names, "gpu_types": types, "gpus": len(timeline.gpus),
        "cells": _cells(timeline, levels, merged, types),
        "usage": _usage(timeline, levels, types, gpus_of, nodes) if timeline.end_us > 0 and timeline.gpus else None,
        "lanes": _lanes(timeline, merged),
    }


def _job_types(timeline: Timeline) -> tuple[list[str], np.ndarray]:
    """Names, and the number of each job's among them."""
    length = (timeline.spell_to_us - timeline.spell_from_us).astype(float)
    work = np.bincount(timeline.job_profile[timeline.spell_job], weights=length, minlength=len(timeline.profiles))
    ranked = np.argsort(-work, kind="stable")
    place = np.empty(len(timeline.profiles), np.int64)
    place[ranked] = np.arange(len(ranked))
    names = [timeline.profiles[at] for at in ranked]
    if len(names) > MOST_TYPES:
        names = [*names[:MOST_TYPES], f"{len(names) - MOST_TYPES} other types"]
        place = np.minimum(place, MOST_TYPES)
    return names, place[timeline.job_profile]


def _cells(timeline: Timeline, levels: Levels, profile: np.ndarray, types: list[str]) -> list[list[Any]]:
    """[job type, GPU type, finished, not finished, sum of JCT s, sum of wait s, GPU s, of these beside others, first bin,
    counts of the bins from there]. A job's GPU type is that of its last place; -1: it never had one."""
    jobs = len(timeline.job_ids)
    number = {name: at for at, name in enumerate(types)}
    of_gpu = np.array([number[name] for name in timeline.gpu_type] + [NEVER], np.int64)  # the last for NEVER
    gpu_type = of_gpu[timeline.job_gpu]
    key = profile * (len(types) + 1) + gpu_type + 1
    held = np.bincount(timeline.spell_job, weights=timeline.spell_to_us - timeline.spell_from_us, minlength=jobs)
    beside = np.bincount(timeline.spell_job, weights=levels.spell_shared_us, minlength=jobs)
    done = timeline.finish_us != NEVER
    come = np.where(timeline.arrive_us == NEVER, timeline.start_us, timeline.arrive_us)
    jct = np.where(done, timeline.finish_us - come, 0) / US
    wait = np.where(done, timeline.start_us - come, 0) / US
    bins = BINS_A_DECADE * DECADES
    at = np.clip(np.floor(np.log10(np.maximum(jct, 1)) * BINS_A_DECADE), 0, bins - 1).astype(np.int64)
    values, cell = np.unique(key, return_inverse=True)
    cell, count = cell.reshape(-1), len(values)
    finished, left = np.bincount(cell[done], minlength=count), np.bincount(cell[~done], minlength=count)
    counts = np.bincount(cell[done] * bins + at[done], minlength=count * bins).reshape(count, bins)
    sums = [np.bincount(cell, weights, count) for weights in (jct, wait, held / US, beside / US)]
    cells = []
    for i, value in enumerate(values.tolist()):
        used = np.nonzero(counts[i])[0]
        first, last = (int(used[0]), int(used[-1]) + 1) if used.size else (0, 0)
        cells.append([value // (len(types) + 1), value % (len(types) + 1) - 1, int(finished[i]), int(left[i]),
                      *(round(float(column[i]), 3) for column in sums), first, counts[i, first:last].tolist()])
    return cells


def _usage(timeline: Timeline, levels: Levels, types: list[str], gpus_of: dict[str, int],
           nodes: dict[str, dict[str, int]]) -> dict[str, Any]:
    """Means over time, of all GPUs ("") and of each type."""
    found: dict[str, Any] = {}
    for name in ["", *types]:
        sizes = {node: sum(gpus.values()) if not name else gpus.get(name, 0) for node, gpus in nodes.items()}
        sizes = {node: count for node, count in sizes.items() if count > 0}
        usage = usage_over_time(timeline, TIME_BINS, sizes or gpus_of, name or None, levels, every_node=bool(sizes))
        found[name] = {"gpus": usage.gpus, "tenants": [_short(row) for row in usage.by_tenants],
                       "scattered_pct": _short(usage.fragmented_pct)}
        if not name:
            found[name]["waiting"] = _short(usage.waiting)
            found[name]["edges_h"] = [round(float(x), 4) for x in usage.edges_us / HOUR_US]
    return found


def _lanes(timeline: Timeline, profile: np.ndarray) -> dict[str, Any] | None:
    """Bars [lane, from h, hours, job type, part of the lane, parts] of the first GPUs, from the start for as long as
    the bars are not too many."""
    if not timeline.gpus:
        return None
    order = sorted(range(len(timeline.gpus)), key=lambda gpu: timeline.gpus[gpu])[:MOST_LANES]
    lane = np.full(len(timeline.gpus), -1)
    lane[order] = np.arange(len(order))
    mine = np.nonzero(lane[timeline.spell_gpu] >= 0)[0]
    mine = mine[np.argsort(timeline.spell_from_us[mine], kind="stable")]
    until = timeline.end_us if mine.size <= MOST_SPELLS else int(timeline.spell_from_us[mine[MOST_SPELLS]])
    mine = mine[:MOST_SPELLS]
    slot, parts = slots_of(timeline, mine)
    to_us = np.minimum(timeline.spell_to_us[mine], until)
    bars = [[int(lane[timeline.spell_gpu[spell]]), round(float(timeline.spell_from_us[spell]) / HOUR_US, 4),
             round(float(to_us[at] - timeline.spell_from_us[spell]) / HOUR_US, 4),
             int(profile[timeline.spell_job[spell]]), int(slot[at]), int(parts[at]), timeline.job_ids[
                 int(timeline.spell_job[spell])]] for at, spell in enumerate(mine)]
    names = [f"{node} gpu {index}" for node, index in (timeline.gpus[gpu] for gpu in order)]
    return {"gpus": names, "gpu_types": [timeline.gpu_type[gpu] for gpu in order], "bars": bars,
            "until_h": round(until / HOUR_US, 4), "all_gpus": len(timeline.gpus),
            "all_h": round(timeline.end_us / HOUR_US, 4)}


def _short(values: np.ndarray) -> list[float]:
    return [round(float(value), 3) for value in values]
