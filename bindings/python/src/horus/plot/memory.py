# SPDX-License-Identifier: Apache-2.0
"""What the memory of one step at its peak consists of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GIB = 1 << 30
MIB = 1 << 20
MOST_JOBS = 40  # bars that a figure holds
# Groups, from the bottom of the list in docs/reference/json.md: the parts are too many to tell apart by hatches.
PARTS = (
    ("weights", ("weights_bytes", "master_weights_bytes")),
    ("gradients", ("gradients_bytes", "buckets_bytes")),
    ("optimiser state", ("optimizer_bytes",)),
    ("activations and inputs", ("activations_bytes", "inputs_bytes")),
    ("transient and workspace", ("transient_bytes", "workspace_bytes")),
    ("libraries, allocator, context", ("loaded_kernels_bytes", "allocator_slack_bytes", "context_bytes")),
)


def step_memory(jobs: Any, *, gpu_memory_gib: float | None = None, ax: Axes | None = None) -> Axes:
    """Parts of a step's memory at its peak, in GiB, a bar a job, with the bound as a line to the right.

    jobs: one answer of `Graph.cost()` or `horus inspect --json` (with or without the surrounding document), or a
    mapping of names to such. gpu_memory_gib: draws the GPU's memory as a line.
    """
    bars = _bars(jobs)
    ax = style.axes(ax, (7.5, 1.6 + 0.45 * len(bars)))
    left = [0.0] * len(bars)
    for index, (label, keys) in enumerate(PARTS):
        widths = [sum(float(style.get(memory, key, "", 0) or 0) for key in keys) / GIB for _, memory in bars]
        if any(widths):
            ax.barh(range(len(bars)), widths, left=left, label=label, height=0.6, **style.fill(index))
        left = [a + b for a, b in zip(left, widths)]
    for row, (name, memory) in enumerate(bars):
        if left[row] <= 0:
            raise ValueError(f"step_memory: {name}: expected parts of a step's memory, found none above 0 bytes")
        upper = style.get(memory, "upper_without_context_bytes", "", None)
        if upper is not None:
            bound = (float(upper) + float(style.get(memory, "context_bytes", "", 0) or 0)) / GIB
            ax.errorbar(left[row], row, xerr=([0.0], [max(bound - left[row], 0.0)]), color=style.INK, capsize=4,
                        label="at most" if row == 0 else None)
    if gpu_memory_gib is not None:
        ax.axvline(gpu_memory_gib, color=style.INK, linestyle="--", label=f"GPU: {gpu_memory_gib:g} GiB")
    ax.set_yticks(range(len(bars)), [name for name, _ in bars])
    ax.invert_yaxis()
    ax.set_xlim(left=0)
    ax.set_xlabel("memory of a step at its peak (GiB)")
    ax.set_ylabel("job")
    style.legend(ax, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3)
    return ax


def _bars(jobs: Any) -> list[tuple[str, Any]]:
    if _is_memory(jobs) or style.has(jobs, "memory"):
        return [(_name(jobs), _parts(jobs))]
    if not isinstance(jobs, Mapping):
        raise ValueError(f"step_memory: jobs: expected 'memory' or names with such, found {type(jobs).__name__}")
    bars = [(str(name), _parts(job)) for name, job in style.some(jobs.items(), "step_memory: jobs")]
    if len(bars) > MOST_JOBS:
        raise ValueError(f"step_memory: jobs: expected at most {MOST_JOBS}, found {len(bars)}")
    return bars


def _is_memory(thing: Any) -> bool:
    return style.has(thing, "weights_bytes")


def _parts(job: Any) -> Any:
    """The memory of a job; its context too where it answers for one GPU."""
    memory = job if _is_memory(job) else style.get(job, "memory", "step_memory: job")
    gpus = style.get(job, "gpus", "", None) if memory is not job else None
    if gpus is None or len(gpus) != 1 or not isinstance(memory, Mapping):
        return memory
    return {**memory, "context_bytes": int(style.get(gpus[0], "context_mib", "", 0) or 0) * MIB}


def _name(job: Any) -> str:
    model = style.get(job, "model", "", None)
    return str(style.get(model, "name", "", "") or "step") if model is not None else "step"
