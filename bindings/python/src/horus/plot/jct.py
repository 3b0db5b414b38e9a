# SPDX-License-Identifier: Apache-2.0
"""How long jobs take from submission to finish: distributions, a line a policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import style
from .events import NEVER, Timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS = 512  # of a line, however many jobs there are
US = 1_000_000


def jct_distribution(runs: Any, *, trace: Any = None, ax: Axes | None = None) -> Axes:
    """Share of the finished jobs that took at most so long (job completion time, hours, logarithmic).

    runs: what `horus.compare` returns, or a mapping of names (policies) to runs, or one run. A run is a `SimResult`,
    several of them, an array of seconds, a Timeline, or an object or mapping with `jct_s`, or with `arrive_us` (or
    `submit_us`) and `finish_us` (-1 = did not finish).

    trace: the `Trace` that was played, or one for each result: a `SimResult` alone does not tell when its jobs came.
    """
    named = _named(runs)
    ax = style.axes(ax)
    for index, (name, run) in enumerate(named):
        seconds = jct_seconds(run, f"jct_distribution: {name}", trace)
        if seconds.size == 0:
            raise ValueError(f"jct_distribution: {name}: expected jobs that finished, found none")
        share = np.linspace(0, 100, min(POINTS, max(seconds.size, 2)))
        hours = np.maximum(np.percentile(seconds, share), 1.0) / 3600  # a second at least: the axis is logarithmic
        label = f"{name} ({seconds.size:,} jobs, median {_short(float(np.median(seconds)))})"
        ax.plot(hours, share, markevery=0.1, markersize=4, label=label, **style.look(index))
    ax.set_xscale("log")
    ax.set_ylim(0, 100)
    ax.set_xlabel("job completion time, submission to finish (h)")
    ax.set_ylabel("finished jobs that took at most so long (%)")
    style.legend(ax)
    return ax


def jct_seconds(run: Any, what: str, trace: Any = None) -> np.ndarray:
    """Seconds of each job that finished."""
    results = run if isinstance(run, (list, tuple)) else [run]
    if results and all(style.has(one, "jobs") and style.has(one, "metrics") for one in results):
        return _of_results(results, what, trace)
    if isinstance(run, Timeline) or style.has(run, "finish_us"):
        finish = style.column(style.get(run, "finish_us", what), f"{what}.finish_us")
        name = "arrive_us" if style.has(run, "arrive_us") else "submit_us"
        come = style.column(style.get(run, name, what), f"{what}.{name}", finish.size)
        done = finish != NEVER
        return np.asarray((finish[done] - come[done]) / US)
    values = style.get(run, "jct_s", what) if isinstance(run, Mapping) or style.has(run, "jct_s") else run
    seconds: np.ndarray = style.column(values, what)
    seconds = seconds[~np.isnan(seconds)]
    if (seconds < 0).any():
        raise ValueError(f"{what}: expected seconds of 0 and more, found {seconds.min():g}")
    return seconds


def _of_results(results: Sequence[Any], what: str, trace: Any) -> np.ndarray:
    """Of simulations, one a trace; rows of both are by (submit_us, id)."""
    traces = list(trace) if isinstance(trace, (list, tuple)) else [trace] * len(results)
    if len(traces) != len(results) or None in traces:
        raise ValueError(f"{what}: expected the trace that was played as trace=, or one for each of {len(results)} "
                         f"simulations, found {'none' if trace is None else len(traces)}: it has the submissions")
    found = []
    for result, played in zip(results, traces):
        jobs, columns = result.jobs, played.columns()
        if not np.array_equal(jobs["job"], columns["id"]):
            raise ValueError(f"{what}: expected the trace that was played as trace=, found one of other jobs")
        done = jobs["end"] == "finished"
        found.append((jobs["end_us"][done] - columns["submit_us"][done]) / US)
    return np.concatenate(found)


def _named(runs: Any) -> list[tuple[str, Any]]:
    one = not hasattr(runs, "items") or style.has(runs, "finish_us") or style.has(runs, "jct_s")
    items = [("jobs", runs)] if one else [(str(name), run) for name, run in runs.items()]
    return style.some(items, "jct_distribution: runs")


def _short(seconds: float) -> str:
    size, unit = style.span_of_time(seconds)
    return f"{seconds / size:.3g} {unit}"
