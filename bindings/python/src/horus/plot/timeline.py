# SPDX-License-Identifier: Apache-2.0
"""Who ran where, beside whom: a lane a GPU, split among its tenants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import style
from .events import Timeline, from_events
from .measure import MOST_TENANTS_APART, mean_in_bins, tenant_levels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_LANES = 64
MOST_SPELLS = 4_000  # beyond, bars are thinner than pixels: tenants are drawn by count
MOST_NAMES = len(style.PALETTE) - 1  # job types with a look of their own; the rest shares the last
BINS = 600


def gpu_timeline(events: Any, *, most_gpus: int = MOST_LANES, ax: Axes | None = None) -> Axes:
    """A lane a GPU over time. Up to 4,000 spells each tenant is a bar in its share of the lane, coloured by job type;
    beyond, a lane is shaded by the mean number of tenants. Of more than `most_gpus` GPUs the first are drawn, which
    the title says.

    events: a Timeline (`read_timeline`), an object or mapping with `events`, or the events themselves, as mappings or as
    `horus.simulate` tells its observer (kind, time_us, job, slots).
    """
    timeline = as_timeline(events)
    if len(timeline.spell_job) == 0:
        raise ValueError("gpu_timeline: expected at least one start on a GPU, found none")
    order = sorted(range(len(timeline.gpus)), key=lambda gpu: timeline.gpus[gpu])
    shown = order[:most_gpus]
    lane = np.full(len(order), -1)
    lane[shown] = range(len(shown))
    ax = style.axes(ax, (9.0, 1.4 + 0.22 * len(shown)))
    size, unit = style.span_of_time(timeline.end_us / 1e6)
    scale = 1 / (size * 1e6)
    mine = np.nonzero(lane[timeline.spell_gpu] >= 0)[0]
    if mine.size <= MOST_SPELLS:
        _draw_spells(ax, timeline, mine, lane, scale)
    else:
        _draw_counts(ax, timeline, lane, len(shown), scale)
    labels = [f"{node} gpu {index}" for node, index in (timeline.gpus[gpu] for gpu in shown)]
    ax.set_yticks(range(len(shown)), labels, fontsize="x-small")
    ax.set_ylim(len(shown) - 0.5, -0.5)
    ax.set_xlim(0, timeline.end_us * scale)
    ax.set_xlabel(f"time ({unit})")
    ax.set_ylabel("GPU")
    if len(shown) < len(order):
        ax.set_title(f"{len(shown)} of {len(order):,} GPUs", fontsize="small", loc="left")
    return ax


def as_timeline(events: Any) -> Timeline:
    if isinstance(events, Timeline):
        return events
    if style.has(events, "events"):
        events = style.get(events, "events", "events")
    return from_events(style.some(events, "events"))


def slots_of(timeline: Timeline, spells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The part of its GPU's lane that each spell has, and into how many parts the lane is cut."""
    slot = np.zeros(spells.size, np.int64)
    parts: dict[int, int] = {}
    busy: dict[int, list[int]] = {}  # of each GPU, until when each part is taken
    for at in np.lexsort((timeline.spell_from_us[spells], timeline.spell_gpu[spells])):
        spell = spells[at]
        gpu, since = int(timeline.spell_gpu[spell]), int(timeline.spell_from_us[spell])
        taken = busy.setdefault(gpu, [])
        free = next((part for part, until in enumerate(taken) if until <= since), len(taken))
        if free == len(taken):
            taken.append(0)
        taken[free] = int(timeline.spell_to_us[spell])
        slot[at] = free
        parts[gpu] = len(taken)
    return slot, np.array([parts[int(gpu)] for gpu in timeline.spell_gpu[spells]], np.int64)


def _draw_spells(ax: Axes, timeline: Timeline, spells: np.ndarray, lane: np.ndarray, scale: float) -> None:
    slot, parts = slots_of(timeline, spells)
    length = timeline.spell_to_us[spells] - timeline.spell_from_us[spells]
    height = 0.84 / parts
    bottom = lane[timeline.spell_gpu[spells]] - 0.42 + slot * height
    profile = timeline.job_profile[timeline.spell_job[spells]]
    hours = np.bincount(profile, weights=length, minlength=len(timeline.profiles))
    ranked = [int(at) for at in np.argsort(-hours, kind="stable")]
    rank = {at: min(place, MOST_NAMES) for place, at in enumerate(ranked)}
    looks = np.array([rank[int(at)] for at in profile])
    for look in sorted(set(looks.tolist())):
        at = looks == look
        name = f"{len(ranked) - MOST_NAMES} other types" if look == MOST_NAMES else timeline.profiles[ranked[look]]
        ax.barh(bottom[at], length[at] * scale, left=timeline.spell_from_us[spells][at] * scale, height=height[at],
                align="edge", label=name, **style.fill(look))
    style.legend(ax, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3)


def _draw_counts(ax: Axes, timeline: Timeline, lane: np.ndarray, lanes: int, scale: float) -> None:
    levels = tenant_levels(timeline)
    edges = np.linspace(0, timeline.end_us, BINS + 1)
    counts = np.zeros((lanes, BINS))
    order = np.argsort(levels.gpu, kind="stable")
    first = np.searchsorted(levels.gpu[order], np.arange(len(lane) + 1))
    for gpu in np.nonzero(lane >= 0)[0]:
        at = order[first[gpu]:first[gpu + 1]]
        counts[lane[gpu]] = mean_in_bins(levels.from_us[at], levels.to_us[at], levels.tenants[at], edges)
    image = ax.imshow(counts, aspect="auto", cmap=f"{style.SEQUENTIAL}_r", vmin=0, interpolation="nearest",
                      vmax=max(float(counts.max()), MOST_TENANTS_APART - 1),
                      extent=(0, timeline.end_us * scale, lanes - 0.5, -0.5))
    ax.figure.colorbar(image, ax=ax, label="tenants (mean of the time)")
