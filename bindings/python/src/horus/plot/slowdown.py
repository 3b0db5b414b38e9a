# SPDX-License-Identifier: Apache-2.0
"""Who slows whom: the slowdown of each job beside each other one, as a matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_JOBS = 400  # beyond, a cell is less than a pixel of a usual figure
MOST_VALUES_WRITTEN = 12
MOST_NAMES = 60
DARK_BELOW = 0.5  # of the colour range: text is white on it


def slowdown_matrix(slowdowns: Any, jobs: Sequence[str] | None = None, *, bound: float | None = None,
                    ax: Axes | None = None) -> Axes:
    """Slowdown (shared time / time alone) of the job of each row beside the job of each column.

    slowdowns: a square array, as `InterferenceModel.matrix` returns it, NaN = unknown, inf = cannot run together; or an
    object or mapping with `slowdowns` and `jobs`; or columns `victim`, `other`, `slowdown` (as `horus evaluate
    --predictions` writes them).

    jobs: names of the rows. bound: cells above it get a cross.
    """
    values, names = _matrix(slowdowns, jobs)
    ax = style.axes(ax, (6.5, 5.5))
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        raise ValueError("slowdown_matrix: slowdowns: expected at least one finite number, found none")
    top = max(float(finite.max()), 1.01)
    image = ax.imshow(np.where(np.isfinite(values), values, np.nan), cmap=f"{style.SEQUENTIAL}_r", vmin=1, vmax=top,
                      aspect="equal", interpolation="nearest")
    ax.figure.colorbar(image, ax=ax, shrink=0.85, label="slowdown of the row's job (shared time / time alone)")
    ax.set_xlabel("beside")
    ax.set_ylabel("job")
    count = len(names)
    if count <= MOST_NAMES:
        ax.set_xticks(range(count), names, rotation=45, ha="right", rotation_mode="anchor", fontsize="small")
        ax.set_yticks(range(count), names, fontsize="small")
    if count <= MOST_VALUES_WRITTEN:
        _write_values(ax, values, top)
    if bound is not None:
        rows, columns = np.nonzero(values > bound)
        ax.scatter(columns + 0.32, rows - 0.32, marker="X", s=34, color=style.INK,
                   edgecolors="white", linewidths=0.7, label=f"above {bound:g}x")
        style.legend(ax, loc="lower left", bbox_to_anchor=(0, 1.0))
    return ax


def _write_values(ax: Axes, values: np.ndarray, top: float) -> None:
    for row, column in np.ndindex(*values.shape):
        value = values[row, column]
        text = "?" if np.isnan(value) else "apart" if np.isinf(value) else f"{value:.2f}"
        dark = np.isfinite(value) and (value - 1) / (top - 1) > DARK_BELOW
        ax.text(column, row, text, ha="center", va="center", fontsize="small",
                color="white" if dark else style.INK)


def _matrix(slowdowns: Any, jobs: Sequence[str] | None) -> tuple[np.ndarray, list[str]]:
    what = "slowdown_matrix: slowdowns"
    if style.has(slowdowns, "victim") and style.has(slowdowns, "other"):
        return _of_rows(slowdowns, jobs)
    if isinstance(slowdowns, Mapping) or style.has(slowdowns, "slowdowns"):
        jobs = jobs if jobs is not None else style.get(slowdowns, "jobs", what)
        slowdowns = style.get(slowdowns, "slowdowns", what)
    try:
        values = np.asarray(slowdowns, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{what}: expected numbers, found {type(slowdowns).__name__}") from None
    if values.ndim != 2 or values.shape[0] != values.shape[1] or values.size == 0:
        raise ValueError(f"{what}: expected a square matrix of at least one job, found shape {values.shape}")
    if values.shape[0] > MOST_JOBS:
        raise ValueError(f"{what}: expected at most {MOST_JOBS} jobs, found {values.shape[0]}: "
                         "draw their profiles, each once")
    names = [str(name) for name in jobs] if jobs is not None else [str(i) for i in range(values.shape[0])]
    if len(names) != values.shape[0]:
        raise ValueError(f"slowdown_matrix: jobs: expected {values.shape[0]} names, found {len(names)}")
    return values, names


def _of_rows(rows: Any, jobs: Sequence[str] | None) -> tuple[np.ndarray, list[str]]:
    """Of columns; where a pair has several rows (GPU types, campaigns), their mean."""
    what = "slowdown_matrix: slowdowns"
    victims = [str(name) for name in style.get(rows, "victim", what)]
    others = [str(name) for name in style.get(rows, "other", what)]
    values = style.column(style.get(rows, "slowdown", what), f"{what}.slowdown", len(victims))
    if len(others) != len(victims):
        raise ValueError(f"{what}.other: expected {len(victims)} names, found {len(others)}")
    names = [str(name) for name in jobs] if jobs is not None else sorted(set(victims) | set(others))
    if not 0 < len(names) <= MOST_JOBS:
        raise ValueError(f"{what}: expected 1 to {MOST_JOBS} jobs, found {len(names)}")
    place = {name: at for at, name in enumerate(names)}
    total, count = np.zeros((len(names), len(names))), np.zeros((len(names), len(names)))
    for victim, other, value in zip(victims, others, values):
        if victim in place and other in place and not np.isnan(value):
            total[place[victim], place[other]] += value
            count[place[victim], place[other]] += 1
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(count > 0, total / count, np.nan), names
