# SPDX-License-Identifier: Apache-2.0
"""What a timeline adds up to: tenants of GPUs, idle GPUs, waiting jobs over time, and time side by side.

Every cost is one sort of the spells: 1,000,000 jobs take seconds, and what leaves has as many rows as there are bins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .events import NEVER, Floats, Ints, Timeline

MOST_TENANTS_APART = 3  # 3 stands for three and more


@dataclass
class Levels:
    """Intervals with a constant number of tenants (1 or more) on a GPU, and each spell's time beside others."""

    gpu: Ints
    tenants: Ints
    from_us: Ints
    to_us: Ints
    spell_shared_us: Ints


def tenant_levels(timeline: Timeline) -> Levels:
    """Cuts each GPU's time where a tenant comes or goes."""
    spells = len(timeline.spell_job)
    gpu = np.concatenate([timeline.spell_gpu, timeline.spell_gpu])
    time = np.concatenate([timeline.spell_from_us, timeline.spell_to_us])
    step = np.concatenate([np.ones(spells, np.int64), -np.ones(spells, np.int64)])
    order = _by_place_and_time(gpu, time, step)
    gpu, time, step = gpu[order], time[order], step[order]
    tenants = np.cumsum(step)  # every GPU ends at 0, so that one sum serves all
    length = np.diff(time, append=time[-1:])
    length[tenants == 0] = 0
    shared = np.concatenate([[0], np.cumsum(np.where(tenants >= 2, length, 0))]).astype(np.int64)
    place = np.empty(2 * spells, np.int64)
    place[order] = np.arange(2 * spells)
    spell_shared = shared[place[spells:]] - shared[place[:spells]]
    keep = length > 0
    return Levels(gpu[keep], tenants[keep], time[keep], (time + length)[keep], spell_shared)


def _by_place_and_time(place: Ints, time: Ints, step: Ints) -> Ints:
    """The order by place, time and step (-1 before 1); by one key where it fits, which is several times as fast."""
    span = 2 * (int(time.max(initial=0)) + 1)
    least = int(time.min(initial=0))
    if least < 0 or (int(place.max(initial=0)) + 1) * span > np.iinfo(np.int64).max:
        return np.lexsort((step, time, place))
    return np.argsort(place * span + 2 * time + (step > 0), kind="stable")


def mean_in_bins(from_us: Ints, to_us: Ints, weight: Ints | Floats, edges: Floats) -> Floats:
    """The mean over each bin of the sum of the weights of the intervals that cover a time."""
    return (_integral(from_us, weight, edges) - _integral(to_us, weight, edges)) / np.diff(edges)


def _integral(at: Ints, weight: Ints | Floats, edges: Floats) -> Floats:
    """Of a function that rises by `weight` at `at`, over each bin: from there to the bin's end, then whole bins."""
    bins = len(edges) - 1
    before_end = at < edges[-1]
    at, weight = at[before_end], np.asarray(weight, float)[before_end]
    bin_of = np.maximum(np.searchsorted(edges, at, side="right") - 1, 0)
    part = np.bincount(bin_of, weight * (edges[bin_of + 1] - np.maximum(at, edges[0])), bins)
    rises = np.bincount(bin_of, weight, bins)
    result: Floats = part + (np.cumsum(rises) - rises) * np.diff(edges)
    return result


@dataclass
class Usage:
    """Means over bins of time. GPUs by tenants: 1, 2, 3 and more; idle ones; those idle on nodes that are partly used."""

    edges_us: Floats
    by_tenants: Floats  # [MOST_TENANTS_APART, bins], GPUs
    idle: Floats  # GPUs
    idle_on_used_nodes: Floats  # GPUs
    waiting: Floats  # jobs
    gpus: int

    @property
    def used_pct(self) -> Floats:
        result: Floats = 100 * self.by_tenants.sum(axis=0) / max(self.gpus, 1)
        return result

    @property
    def fragmented_pct(self) -> Floats:
        """Of the idle GPUs, those on nodes where others are in use: no whole node for a gang."""
        with np.errstate(invalid="ignore", divide="ignore"):
            result: Floats = np.where(self.idle > 1e-9, 100 * self.idle_on_used_nodes / self.idle, 0.0)
        return result


def usage_over_time(timeline: Timeline, bins: int = 300, gpus_of_node: Mapping[str, int] | None = None,
                    gpu_type: str | None = None, levels: Levels | None = None, *, every_node: bool = False) -> Usage:
    """gpus_of_node: how many each node has; without it the GPUs up to the highest index that was ever used.
    gpu_type: only GPUs of it (waiting jobs are those of all types). every_node: `gpus_of_node` counts GPUs of this type
    alone, so that its nodes that nobody used belong to them; else they do where the timeline has one type."""
    if timeline.end_us <= 0:
        raise ValueError("usage: expected a timeline that lasts, found one that ends at 0 us")
    levels = levels or tenant_levels(timeline)
    edges = np.linspace(0, timeline.end_us, bins + 1)
    mine = np.array([gpu_type is None or name == gpu_type for name in timeline.gpu_type], bool)
    sizes, node_of = _nodes(timeline, gpus_of_node or {}, mine, every_node)
    of_mine = mine[levels.gpu] if levels.gpu.size else np.zeros(0, bool)
    gpu, tenants = levels.gpu[of_mine], np.minimum(levels.tenants[of_mine], MOST_TENANTS_APART)
    since, until = levels.from_us[of_mine], levels.to_us[of_mine]
    by_tenants = np.zeros((MOST_TENANTS_APART, bins))
    for level in range(1, MOST_TENANTS_APART + 1):
        at = tenants == level
        by_tenants[level - 1] = mean_in_bins(since[at], until[at], np.ones(int(at.sum())), edges)
    total = int(sizes.sum())
    idle = np.maximum(total - by_tenants.sum(axis=0), 0)
    partly = _idle_beside_used(node_of[gpu], since, until, sizes, edges)
    come = timeline.arrive_us[timeline.arrive_us != NEVER]
    left = np.where(timeline.start_us == NEVER, timeline.end_us, timeline.start_us)[timeline.arrive_us != NEVER]
    waiting = mean_in_bins(come, left, np.ones(come.size), edges)
    return Usage(edges, by_tenants, idle, partly, waiting, total)


def _nodes(timeline: Timeline, stated: Mapping[str, int], mine: np.ndarray, every_node: bool) -> tuple[Ints, Ints]:
    """GPUs of each node that has some of mine, and the node of each GPU."""
    names: dict[str, int] = {}
    sizes: list[int] = []
    node_of = np.zeros(len(timeline.gpus), np.int64)
    for at, (name, index) in enumerate(timeline.gpus):
        if not mine[at]:
            continue
        node = names.setdefault(name, len(names))
        if node == len(sizes):
            sizes.append(stated.get(name, 0))
        if not (every_node and name in stated):
            sizes[node] = max(sizes[node], index + 1)
        node_of[at] = node
    if every_node or len(set(timeline.gpu_type)) <= 1:  # nodes that nobody used count, too
        sizes.extend(count for name, count in stated.items() if name not in names)
    return np.asarray(sizes, np.int64), node_of


def _idle_beside_used(node: Ints, since: Ints, until: Ints, sizes: Ints, edges: Floats) -> Floats:
    """Mean idle GPUs on nodes of which at least one GPU is in use."""
    if node.size == 0:
        return np.zeros(len(edges) - 1)
    all_nodes = np.concatenate([node, node])
    time = np.concatenate([since, until])
    step = np.concatenate([np.ones(node.size, np.int64), -np.ones(node.size, np.int64)])
    order = _by_place_and_time(all_nodes, time, step)
    all_nodes, time, used = all_nodes[order], time[order], np.cumsum(step[order])
    after = np.append(time[1:], time[-1])
    keep = (used > 0) & (after > time)
    idle = sizes[all_nodes[keep]] - used[keep]
    return mean_in_bins(time[keep], after[keep], idle, edges)
