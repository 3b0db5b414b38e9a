# SPDX-License-Identifier: Apache-2.0
"""Comparisons: policies against each other on the same traces, with paired intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

from . import _table
from ._args import Progress, instance, progress_of, sequence, text
from ._executor import Cell, Part, name_cell, run_cells
from ._ratio import is_base
from .cluster import Cluster
from .errors import Cancelled, InvalidArgument
from .place import Placer
from .sim import Beliefs, SimOptions, SimResult, Truth, _rows
from .trace import Trace

__all__ = ["Comparison", "compare"]

# The columns of `horus compare` (docs/simulate.md) that a simulation tells: name, better, where it is, unit.
_S, _PCT = 1e-6, 100.0
_METRICS: tuple[tuple[str, str, str, float], ...] = (
    ("jobs", "", "jobs", 1), ("finished", "higher", "finished", 1), ("running", "", "running", 1),
    ("waiting", "lower", "waiting", 1), ("rejected", "lower", "rejected", 1), ("failures", "lower", "failures", 1),
    ("makespan_s", "lower", "makespan_us", _S),
    *((f"jct_{at}_s", "lower", f"jct_us.{at}", _S) for at in ("mean", "p50", "p95", "p99")),
    *((f"jct_to_horizon_{at}_s", "lower", f"jct_to_horizon_us.{at}", _S) for at in ("mean", "p95")),
    *((f"wait_{at}_s", "lower", f"wait_us.{at}", _S) for at in ("mean", "p50", "p95", "p99")),
    *((f"slowdown_{at}", "lower", f"slowdown.{at}", 1) for at in ("mean", "p50", "p95", "p99")),
    ("above_bound_pct", "lower", "above_bound", _PCT), ("allocation_pct", "higher", "allocation", _PCT),
    ("useful_pct", "higher", "useful", _PCT), ("work_rate", "higher", "work_rate", 1),
    ("backlog_rate", "higher", "backlog_rate", 1), ("backlog_s", "lower", "backlog_us", _S),
    ("most_done_s", "lower", "most_done_us", _S), ("preemptions", "", "preemptions", 1), ("migrations", "", "migrations", 1),
    ("interruptions", "lower", "interruptions", 1), ("restarts", "", "restarts", 1),
    ("out_of_memory", "lower", "out_of_memory", 1), ("fairness_rho_mean", "lower", "finish_time_fairness.mean", 1),
    ("fairness_rho_p99", "lower", "finish_time_fairness.p99", 1), ("jain", "higher", "jain", 1),
    ("fragmentation_pct", "lower", "fragmentation", _PCT), ("belief_error", "lower", "belief_error", 1))
_SHOWN = ("jct_mean_s", "wait_mean_s", "slowdown_mean", "work_rate")
# Of the jobs that finished: they say nothing of two policies where those are not the same.
_OF_FINISHED = frozenset(name for name, _, where, _ in _METRICS if where.partition(".")[0] in (
    "makespan_us", "jct_us", "wait_us", "slowdown", "above_bound", "finish_time_fairness", "jain"))
_OTHER_JOBS = ("Completion times are of the jobs that finished: those of policies that finish different jobs cannot be "
               "compared.")
_LOOK_AHEAD = 50  # of all whose options state none; as of the grids of `horus compare`
# Student's t that 97.5 % do not exceed, from 1 degree of freedom on; Abramowitz and Stegun, table 26.10.
_T975 = (12.7062, 4.30265, 3.18245, 2.77645, 2.57058, 2.44691, 2.36462, 2.30600, 2.26216, 2.22814)
_Z975 = 1.959963985


class Comparison:
    """The simulations of each policy by its name, one a trace; what they mean beside those of the baseline. `horus.plot.policies`
    draws it."""

    __slots__ = ("_baseline", "_results", "_workload")

    def __init__(self, results: Mapping[str, Sequence[SimResult]], baseline: str, workload: str = "trace") -> None:
        self._results = {name: tuple(found) for name, found in results.items()}
        self._baseline, self._workload = baseline, workload

    def __getitem__(self, policy: str) -> tuple[SimResult, ...]:
        return self._results[policy]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    def __contains__(self, policy: object) -> bool:
        return policy in self._results

    def items(self) -> ItemsView[str, tuple[SimResult, ...]]:
        """Policies and their simulations."""
        return self._results.items()

    @property
    def baseline(self) -> str:
        """The policy that the others are compared with."""
        return self._baseline

    @property
    def seeds(self) -> list[int]:
        """Positions of the traces."""
        return list(range(len(self._results[self._baseline])))

    @property
    def metrics(self) -> list[dict[str, str]]:
        """Name of each metric, and which is better: lower, higher or ''."""
        return [{"name": name, "better": better} for name, better, _, _ in _METRICS]

    @property
    def summary(self) -> list[dict[str, Any]]:
        """A row a policy: `metrics` by name, each with its mean over the traces, its difference from the baseline on the same
        traces, and the ends of the 95 % interval of that difference (Student's t; None with one trace). A mean of NaN is no value.
        What is of the jobs that finished has no difference (None) where the baseline finished another number of them."""
        values = {policy: [_flat(result) for result in found] for policy, found in self._results.items()}
        base = values[self._baseline]
        done = [row["finished"] for row in base]
        return [{"workload": self._workload, "policy": policy, "metrics": {
            name: _paired([row[name] for row in rows], [row[name] for row in base],
                          name not in _OF_FINISHED or [row["finished"] for row in rows] == done) for name, _, _, _ in _METRICS}}
            for policy, rows in values.items()]

    def to_frame(self) -> Any:
        """A row a simulation: policy, trace and every metric (pandas)."""
        rows = [{"policy": policy, "trace": at, **_flat(result)}
                for policy, found in self._results.items() for at, result in enumerate(found)]
        return _table.frame({name: [row[name] for row in rows] for name in rows[0]})

    def __repr__(self) -> str:
        return f"<horus.Comparison of {len(self)} policies on {len(self.seeds)} traces, baseline {self._baseline!r}>"

    def _columns(self) -> dict[str, list[Any]]:
        rows = self.summary
        columns: dict[str, list[Any]] = {"policy": [row["policy"] for row in rows]}
        counts = [[row["metrics"][name]["mean"] for name in ("finished", "jobs")] for row in rows]
        if any(finished != jobs for finished, jobs in counts):
            columns["finished"] = [" of ".join(map(_table.cell, count)) for count in counts]
        for name in _SHOWN:
            columns[name] = [row["metrics"][name]["mean"] for row in rows]
            if name == _SHOWN[0]:
                columns["change"] = [_change(row["metrics"][name]) for row in rows]
        return columns

    def __str__(self) -> str:
        columns = self._columns()
        lines = [[name, *(_table.cell(value) for value in values)] for name, values in columns.items()]
        widths = [max(map(len, column)) for column in lines]
        return "\n".join(["  ".join(column[row].ljust(width) for column, width in zip(lines, widths)).rstrip()
                          for row in range(len(lines[0]))] + ([_OTHER_JOBS] if "finished" in columns else []))

    def _repr_html_(self) -> str:
        columns = self._columns()
        return _table.to_html(repr(self) + (f". {_OTHER_JOBS}" if "finished" in columns else ""), columns)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Comparison, (self._results, self._baseline, self._workload))


def compare(traces: Trace | Sequence[Trace], beliefs: Beliefs, truth: Truth, cluster: Cluster,
            placers: Mapping[str, Placer], options: SimOptions | Mapping[str, SimOptions] | None = None, *,
            baseline: str | None = None, executor: Executor | None = None, progress: Progress = None) -> Comparison:
    """The same traces (of several seeds, say) under each placer, by its name; `options` for all, or by name. The results are
    those of `simulate`, where options that state no look_ahead have 50 under every policy. `baseline`: that the others are compared with; None = the first.

    `executor`: who runs the simulations, a task each: one of concurrent.futures or with its interface (Dask, mpi4py, ...);
    None = one after the other, here. The figures are the same. Tasks carry their trace, about 15 bytes a job; those of a
    ProcessPoolExecutor read it from a temporary file. Results from other processes are as pickled ones (see SimResult), and a
    placer's Metrics do not count. Of several errors the first in the grid's order is raised, and names policy and trace. After an
    error, Ctrl-C or a progress that answers False nothing else begins; simulations in threads and in a ProcessPoolExecutor
    end at once, others when they are through."""
    played = (traces,) if isinstance(traces, Trace) else sequence(traces, Trace, "traces")
    if not played or not instance(placers, Mapping, "placers"):  # type: ignore[type-abstract]
        raise InvalidArgument(f"{'placers' if played else 'traces'}: expected at least one, found none")
    first = next(iter(placers)) if baseline is None else text(baseline, "baseline")
    if first not in placers:
        raise InvalidArgument(f"baseline: expected one of {', '.join(placers)}, found {first!r}")
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(f"executor: expected one of concurrent.futures or None, found {executor!r:.80} "
                        f"({type(executor).__name__})")
    believed = Part((_rows(beliefs, "beliefs"), instance(truth, Truth, "truth")))
    there = Part(instance(cluster, Cluster, "cluster"), packs=True)
    parts = [Part(trace, packs=True) for trace in played]
    cells = []
    for name, placer in placers.items():
        who = Part((instance(placer, Placer, f"placers[{name!r}]"),
                    _looking(options[name] if isinstance(options, Mapping) else options)))
        cells += [Cell(f"policy {name!r}, trace {at}", trace, believed, there, who) for at, trace in enumerate(parts)]
    with progress_of(progress, "compare") as tell:
        results = _one_by_one(cells, tell) if executor is None else run_cells(executor, cells, tell)
    count = len(played)
    return Comparison({name: results[at * count:(at + 1) * count] for at, name in enumerate(placers)}, first)


def _looking(options: SimOptions | None) -> SimOptions:
    how = SimOptions() if options is None else instance(options, SimOptions, "options")
    return how if how.look_ahead else how.replace(look_ahead=_LOOK_AHEAD)


def _one_by_one(cells: Sequence[Cell], tell: Callable[[float], object] | None) -> list[SimResult]:
    results: list[SimResult] = []
    for at, cell in enumerate(cells):
        try:
            results.append(cell.play(None if tell is None else _share(tell, at, len(cells))))
        except Cancelled:
            raise
        except Exception as error:
            name_cell(error, cell.name)
            raise
    return results


def _share(tell: Callable[[float], object], position: int, count: int) -> Callable[[float], object]:
    return lambda done: tell((position + done) / count)


def _flat(result: SimResult) -> dict[str, float]:
    found = result.metrics()
    out = {}
    for name, _, where, unit in _METRICS:
        whole, _, part = where.partition(".")
        value = found[whole][part] if part else found[whole]
        out[name] = math.nan if value < 0 else value * unit if unit != 1 else value  # -1: never
    return out


def _paired(values: Sequence[float], base: Sequence[float], compares: bool = True) -> dict[str, float | None]:
    count = len(values)
    off = [value - other for value, other in zip(values, base)]
    mean = sum(off) / count
    if not compares or mean != mean:
        return {"mean": sum(values) / count, "difference": None, "difference_low": None, "difference_high": None}
    half = None
    if count > 1:
        spread = math.sqrt(sum((one - mean) ** 2 for one in off) / (count - 1) / count)
        half = _t975(count - 1) * spread
    return {"mean": sum(values) / count, "difference": mean, "difference_low": None if half is None else mean - half,
            "difference_high": None if half is None else mean + half}


def _t975(degrees: int) -> float:
    if degrees <= len(_T975):
        return _T975[degrees - 1]
    # Cornish and Fisher's expansion (26.7.5 there), as of lab/grid.cc.
    z, n = _Z975, float(degrees)
    return (z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
            + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3))


def _change(metric: Mapping[str, float | None]) -> str:
    difference, mean = metric["difference"] or 0.0, metric["mean"] or 0.0
    base = mean - difference
    if metric["difference"] is None or not is_base(base, difference):
        return "\u2013"
    high = metric["difference_high"]
    return f"{difference / abs(base):+.1%}" + ("" if high is None else f" ± {(high - difference) / abs(base):.1%}")
