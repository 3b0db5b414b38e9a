# SPDX-License-Identifier: Apache-2.0
"""A graph's operators under the roof of a GPU: what bounds each, and how far below the roof it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BOUNDS = ("compute", "bandwidth", "launch")
PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "fp64")
LARGEST_POINT, SMALLEST_POINT = 220.0, 14.0  # points², by share of the step's time
MOST_NAMED = 5
GIGA, MB = 1e9, 1e6


def roofline(operators: Any, gpu: Any, *, precision: str = "fp32", ax: Axes | None = None) -> Axes:
    """FLOP/s of each operator over its FLOPs per byte, under the GPU's roof. The area of a point is its share of time.

    operators: rows with `forward_flops`, `backward_flops`, `bytes` and `time_us` (`gpus[].operators` or
    `gpus[].operator_types` of `horus inspect --json`), or an object that has them as `operators`.

    gpu: a `horus.Gpu`, or what has `fp32_gflops` (or of another precision) and `mem_bandwidth_mb_s`, as
    `horus gpus NAME --json` prints.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"roofline: precision: expected one of {', '.join(PRECISIONS)}, found {precision!r}")
    for what, given, takes in (("operators", operators, "rows with bytes and time_us (gpus[].operators of `horus inspect --json`)"),
                               ("gpu", gpu, "a horus.Gpu, such as horus.gpus()['a100-80gb']")):
        if isinstance(given, str) or hasattr(given, "fingerprint"):
            raise ValueError(f"roofline: {what}: expected {takes}, found {given!r:.80}")
    peak = float(style.get(gpu, f"{precision}_gflops", "roofline: gpu")) * GIGA
    bandwidth = float(style.get(gpu, "mem_bandwidth_mb_s", "roofline: gpu")) * MB
    if peak <= 0 or bandwidth <= 0:
        raise ValueError(f"roofline: gpu: expected {precision} and bandwidth above 0, found {peak:g} FLOP/s and "
                         f"{bandwidth:g} B/s")
    rows = _rows(operators)
    ax = style.axes(ax, (7.5, 5.0))
    flops, size, seconds = (np.array([row[key] for row in rows]) for key in ("flops", "bytes", "seconds"))
    intensity, rate = flops / size, flops / seconds
    area = np.clip(LARGEST_POINT * seconds / seconds.max(), SMALLEST_POINT, None)
    for index, bound in enumerate((*BOUNDS, None)):
        at = [i for i, row in enumerate(rows) if row["bound_by"] == bound]
        if at:
            ax.scatter(intensity[at], rate[at] / GIGA, s=area[at], marker=style.MARKERS[index],
                       color=style.PALETTE[index], alpha=0.8, edgecolors=style.INK, linewidths=0.5,
                       label=f"bound by {bound}" if bound else "operator")
    low = min(float(intensity.min()) / 3, peak / bandwidth / 10)
    high = max(float(intensity.max()) * 3, peak / bandwidth * 10)
    x = np.array([low, peak / bandwidth, high])
    ax.plot(x, np.minimum(peak, x * bandwidth) / GIGA, color=style.INK, linewidth=1.5,
            label=f"{style.get(gpu, 'name', '', 'GPU')}: {peak / GIGA:,.0f} GFLOP/s {precision}, "
                  f"{bandwidth / GIGA:,.0f} GB/s")
    _name_largest(ax, rows, intensity, rate / GIGA, seconds, area)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("arithmetic intensity (FLOP per byte of device memory)")
    ax.set_ylabel("rate (GFLOP/s)")
    style.legend(ax, loc="lower right")
    return ax


def _name_largest(ax: Axes, rows: list[dict[str, Any]], x: np.ndarray, y: np.ndarray, seconds: np.ndarray,
                  area: np.ndarray) -> None:
    named: set[str] = set()
    for at in np.argsort(-seconds, kind="stable"):
        name = rows[at]["name"]
        if len(named) == MOST_NAMED:
            break
        if name not in named:
            named.add(name)
            ax.annotate(name, (x[at], y[at]), xytext=(0, float(np.sqrt(area[at])) / 2 + 2), textcoords="offset points",
                        ha="center", fontsize="x-small", parse_math=False)


def _rows(operators: Any) -> list[dict[str, Any]]:
    if style.has(operators, "operators"):
        operators = style.get(operators, "operators", "roofline")
    rows = []
    for at, operator in enumerate(style.some(operators, "roofline: operators")):
        what = f"roofline: operators[{at}]"
        time_us = style.get(operator, "time_us", what)
        if time_us is None:
            raise ValueError(f"{what}: time_us: expected microseconds, found None: take the operators of a GPU "
                             "(gpus[].operators)")
        flops = sum(float(style.get(operator, key, what, 0) or 0) for key in ("forward_flops", "backward_flops"))
        size = float(style.get(operator, "bytes", what))
        if flops <= 0 or size <= 0 or float(time_us) <= 0:
            continue  # moves data only, or does nothing: it has no place on logarithmic axes
        rows.append({"flops": flops, "bytes": size, "seconds": float(time_us) / 1e6,
                     "name": str(style.get(operator, "op_type", "", "") or style.get(operator, "name", "", "")),
                     "bound_by": style.get(operator, "bound_by", "", None)})
    if not rows:
        raise ValueError("roofline: operators: expected at least one with FLOPs, bytes and time above 0, found none")
    return rows
