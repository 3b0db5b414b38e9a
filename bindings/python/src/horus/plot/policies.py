# SPDX-License-Identifier: Apache-2.0
"""Policies against each other: how each changes a metric, with the paired 95 % interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._ratio import is_base
from . import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

UNITS = (("_pct", "%"), ("_s", "s"), ("_rate", "work per GPU and time, 1 = alone on the reference GPU"))


def policies(comparison: Any, metric: str = "jct_mean_s", *, workload: str | None = None,
             ax: Axes | None = None) -> Axes:
    """Change of the metric's mean over seeds from the baseline's, in per cent of it, with the 95 % interval of the
    difference on the same seeds; in the metric's own unit where the baseline's mean is 0.

    comparison: what `horus.compare` returns, or `results.json` of `horus compare`: `baseline`, `metrics`, `summary`.

    workload: by name (default: the first).
    """
    what = "policies: comparison"
    baseline = style.get(comparison, "baseline", what)
    summary = style.some(style.get(comparison, "summary", what), f"{what}.summary")
    workloads = list(dict.fromkeys(style.get(row, "workload", f"{what}.summary") for row in summary))
    workload = workloads[0] if workload is None else workload
    if workload not in workloads:
        raise ValueError(f"policies: workload: expected one of {', '.join(workloads)[:200]}, found {workload!r}")
    rows = [(style.get(row, "policy", what), _metric(row, metric)) for row in summary
            if style.get(row, "workload", what) == workload]
    base = next((values["mean"] for policy, values in rows if policy == baseline), None)
    relative = is_base(base, max((abs(values["difference"] or 0) for _, values in rows), default=0))
    scale = 100 / abs(base) if relative and base is not None else 1.0
    ax = style.axes(ax, (7.0, 1.4 + 0.36 * len(rows)))
    _draw(ax, rows, baseline, scale)
    ax.set_yticks(range(len(rows)), [policy for policy, _ in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.axvline(0, color=style.FAINT, linewidth=1)
    unit = "%" if relative else unit_of(metric)
    better = {style.get(m, "name", what): style.get(m, "better", what) for m in style.get(comparison, "metrics", what, [])}
    way = {"lower": ", lower is better", "higher": ", higher is better"}.get(better.get(metric, ""), "")
    ax.set_xlabel(f"{metric}: change from {baseline} ({unit}){way}")
    ax.set_ylabel("policy")
    seeds = style.get(comparison, "seeds", what, [])
    ax.set_title(f"{workload}, {len(seeds)} seeds, 95 % intervals" if seeds else str(workload), fontsize="small",
                 loc="left")
    return ax


def _draw(ax: Axes, rows: list[tuple[str, Any]], baseline: str, scale: float) -> None:
    for at, (policy, values) in enumerate(rows):
        change = values["difference"]
        if change is None:
            ax.annotate("no value", (0, at), xytext=(4, -3), textcoords="offset points", fontsize="x-small")
            continue
        low, high = values["difference_low"], values["difference_high"]
        error = None
        if low is not None and high is not None:
            error = [[(change - low) * scale], [(high - change) * scale]]
        sure = low is not None and high is not None and (low > 0 or high < 0)
        ax.errorbar(change * scale, at, xerr=error, fmt="D" if policy == baseline else "o", capsize=3,
                    color=style.PALETTE[0], markerfacecolor=style.PALETTE[0] if sure else "white")


def _metric(row: Any, metric: str) -> dict[str, float | None]:
    what = f"policies: {style.get(row, 'policy', 'policies')}"
    metrics = style.get(row, "metrics", what)
    found = metrics.get(metric) if hasattr(metrics, "get") else getattr(metrics, metric, None)
    if found is None:
        names = ", ".join(map(str, metrics)) if hasattr(metrics, "keys") else type(metrics).__name__
        raise ValueError(f"policies: metric: expected one of {names[:300]}, found {metric!r}")
    return {key: style.get(found, key, what, None)
            for key in ("mean", "difference", "difference_low", "difference_high")}


def unit_of(metric: str) -> str:
    """The unit of a column of results.csv; empty for counts and ratios."""
    return next((unit for ending, unit in UNITS if metric.endswith(ending)), "")
