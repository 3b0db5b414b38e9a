# SPDX-License-Identifier: Apache-2.0
"""How much of the cluster is used over time, and how scattered what is free lies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from . import style
from .measure import MOST_TENANTS_APART, Usage, usage_over_time
from .timeline import as_timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS = 300


def utilisation(events: Any, *, gpus_of_node: Mapping[str, int] | None = None, ax: Axes | None = None) -> Axes:
    """GPUs in use over time, by number of tenants, in per cent of the cluster (means over 300 bins).

    events: as for gpu_timeline, or a Usage. gpus_of_node: how many GPUs each node has; without it the cluster is what
    was ever used, and the axis says so.
    """
    usage = _usage(events, gpus_of_node)
    ax = style.axes(ax)
    edges, unit = _edges(usage)
    bottom = np.zeros(usage.by_tenants.shape[1])
    for level in range(MOST_TENANTS_APART):
        top = bottom + 100 * usage.by_tenants[level] / usage.gpus
        if (top > bottom).any():
            name = f"{level + 1} or more" if level + 1 == MOST_TENANTS_APART else str(level + 1)
            ax.fill_between(edges, np.append(bottom, bottom[-1]), np.append(top, top[-1]), step="post",
                            label=f"{name} tenant{'s' if level else ''}", **style.fill(level))
        bottom = top
    ax.set_ylim(0, 100)
    ax.set_xlim(edges[0], edges[-1])
    ax.set_xlabel(f"time ({unit})")
    whole = f"{usage.gpus:,} of the cluster" if gpus_of_node else f"{usage.gpus:,} ever used"
    ax.set_ylabel(f"GPUs in use (% of the {whole})")
    style.legend(ax, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=MOST_TENANTS_APART)
    return ax


def fragmentation(events: Any, *, gpus_of_node: Mapping[str, int] | None = None, ax: Axes | None = None) -> Axes:
    """Of the idle GPUs, those on nodes where other GPUs are in use, over time, in per cent: no gang gets a whole node
    of them. Times at which no GPU is idle count as 0. (`fragmentation_pct` of a run weighs by tasks: docs/simulate.md.)"""
    usage = _usage(events, gpus_of_node)
    ax = style.axes(ax)
    edges, unit = _edges(usage)
    values = usage.fragmented_pct
    ax.step(edges, np.append(values, values[-1]), where="post", color=style.PALETTE[0])
    ax.set_ylim(0, 100)
    ax.set_xlim(edges[0], edges[-1])
    ax.set_xlabel(f"time ({unit})")
    ax.set_ylabel("idle GPUs on partly used nodes (% of idle)")
    return ax


def _usage(events: Any, gpus_of_node: Mapping[str, int] | None) -> Usage:
    usage = events if isinstance(events, Usage) else usage_over_time(as_timeline(events), BINS, gpus_of_node)
    if usage.gpus <= 0:
        raise ValueError("usage: expected at least one GPU, found none")
    return usage


def _edges(usage: Usage) -> tuple[np.ndarray, str]:
    size, unit = style.span_of_time(float(usage.edges_us[-1]) / 1e6)
    return usage.edges_us / (size * 1e6), unit
