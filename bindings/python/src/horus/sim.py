# SPDX-License-Identifier: Apache-2.0
"""Simulation: a trace of jobs on a cluster, under a queue and a placer, which believe, while time passes by the truth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from . import _core, _table
from ._args import Progress, column, instance, integer, progress_of, real, sequence, text
from ._core import Demand, Outage, ProfileDemand, SimOptions, Slot
from .catalogue import Catalogue, handle_of
from .cluster import Cluster
from .errors import InvalidArgument, StateError
from .interference import InterferenceModel, model_of
from .place import Placer

__all__ = ["Outage", "ProfileDemand", "SimOptions", "SimResult", "Trace", "Truth", "compare", "queues", "simulate"]

Beliefs = Union[Mapping[str, Union[Demand, Mapping[str, Demand]]], Iterable[ProfileDemand]]
"""What jobs of each profile demand: one demand for every type, or one by GPU type; or rows."""

_NOT_STATED = 2**32 - 1
_KINDS = {"training": 0, "inference": 1, "best-effort": 2}
_ENDS = ("waiting", "running", "finished", "rejected")
_COLUMNS: dict[str, type] = {
    "id": np.uint64, "submit_us": np.int64, "duration_us": np.int64, "steps": np.int64, "deadline_us": np.int64,
    "tasks": np.int32, "gpus_per_task": np.int32, "gpu_milli": np.int32, "cpu_milli": np.int64, "mem_mib": np.int64,
    "priority": np.int32}


def queues() -> list[str]:
    """Names of the queue disciplines."""
    return _core.queue_names()


class Trace:
    """Jobs that came, when, and how much work they brought. Immutable: share freely."""

    __slots__ = ("_columns", "_handle")

    def __init__(self, *, profile: Sequence[str], duration_us: Any = None, steps: Any = None, endless: Any = None,
                 owner: Sequence[str] | None = None, gpu_types: Sequence[str] | None = None,
                 kind: Sequence[str] | None = None, **columns: Any) -> None:
        """Columns with a row a job: `profile` (what it runs), duration_us (alone at speed 1) or steps, and id, submit_us,
        deadline_us, tasks, gpus_per_task, gpu_milli, cpu_milli, mem_mib, priority, kind, owner, gpu_types (names with |
        between them, '' = any), endless."""
        profiles = sequence(profile, str, "profile")
        rows = len(profiles)
        given: dict[str, Any] = {"duration_us": duration_us, "steps": steps, **columns}
        made: dict[str, Any] = {}
        for name, values in given.items():
            if name not in _COLUMNS:
                raise TypeError(f"Trace has no column {name!r}; it has profile, owner, gpu_types, kind, endless, "
                                f"{', '.join(_COLUMNS)}")
            if values is not None:
                made[name] = column(values, _COLUMNS[name], name, rows)
        if endless is not None:
            made["endless"] = column(np.asarray(endless, bool).view(np.uint8), np.uint8, "endless", rows)
        if kind is not None:
            made["kind"] = _kinds(kind, rows)
        for name, names, texts in (("profile", "profile_names", profiles), ("owner", "owner_names", owner),
                                   ("gpu_types", "type_lists", gpu_types)):
            if texts is not None:
                made[names], made[name] = _positions(sequence(texts, str, name), name, rows)
        self._columns = made
        self._handle = _core.TraceHandle(rows, made)

    @classmethod
    def from_frame(cls, frame: Any) -> Trace:
        """A pandas frame with these columns."""
        names = [str(name) for name in frame.columns]
        texts = ("profile", "owner", "gpu_types", "kind")
        return cls(**{name: frame[name].tolist() if name in texts else frame[name].to_numpy() for name in names})

    def summary(self) -> dict[str, Any]:
        """Jobs, gangs, gaps, GPU time; equal digests, equal workloads."""
        return self._handle.summary()

    @property
    def profiles(self) -> list[str]:
        """In the order in which jobs name them first."""
        return self._handle.profiles()

    def __len__(self) -> int:
        return len(self._handle)

    def __repr__(self) -> str:
        return f"<horus.Trace of {len(self)} jobs, {len(self.profiles)} profiles>"

    def _repr_html_(self) -> str:
        return _table.pairs_to_html(repr(self), self.summary())

    def __reduce__(self) -> tuple[Any, ...]:
        return (_trace, (len(self), self._columns))


def _trace(rows: int, columns: dict[str, Any]) -> Trace:
    trace = Trace.__new__(Trace)
    trace._columns, trace._handle = columns, _core.TraceHandle(rows, columns)
    return trace


def _kinds(kinds: Sequence[str], rows: int) -> npt.NDArray[np.int32]:
    found = sequence(kinds, str, "kind")
    for position, kind in enumerate(found):
        if kind not in _KINDS:
            raise InvalidArgument(f"kind[{position}]: expected one of {', '.join(_KINDS)}, found {kind!r}")
    return column(np.array([_KINDS[kind] for kind in found], np.int32), np.int32, "kind", rows)


def _positions(texts: Sequence[str], what: str, rows: int) -> tuple[list[str], npt.NDArray[np.uint32]]:
    if len(texts) != rows:
        raise InvalidArgument(f"{what}: expected {rows} rows, found {len(texts)}")
    known: dict[str, int] = {}
    at = [known.setdefault(one, len(known)) if one else _NOT_STATED for one in texts]
    return list(known), np.array(at, np.uint32)


class Truth:
    """How fast jobs really run, alone and beside others. Immutable: share freely."""

    __slots__ = ("_handle", "_remake")

    _handle: _core.TruthHandle
    _remake: tuple[Any, ...]

    def __init__(self) -> None:
        raise TypeError("a Truth is made by Truth.from_model(...) or Truth.from_speeds(...)")

    @classmethod
    def from_model(cls, demands: Beliefs, model: InterferenceModel | str | Callable[..., Any] | None = None,
                   catalogue: Catalogue | None = None) -> Truth:
        """An interference model and demands, taken for the truth. Speed 1 is the type on which a step is shortest."""
        found, rows = model_of(model), _rows(demands, "demands")
        made = cls.__new__(cls)
        made._handle = _core.TruthHandle.from_model(handle_of(catalogue), None if found is None else found._handle, rows)
        made._remake = (_truth, ("from_model", (rows, found, catalogue)))
        return made

    @classmethod
    def from_speeds(cls, gpu_types: Sequence[str], profiles: Sequence[str], alone: Any,
                    pairs: Mapping[str, Any] | None = None, *, reference: int = 0, many: str = "add",
                    catalogue: Catalogue | None = None) -> Truth:
        """Measured speeds: `alone` is [GPU types x profiles], steps a second; `pairs` are columns gpu, a, b (positions),
        speed_a and speed_b (shares of the speed alone; both 0 = not together)."""
        speeds = np.ascontiguousarray(np.asarray(alone, np.float64).reshape(-1))
        kinds = {"gpu": np.uint32, "a": np.uint32, "b": np.uint32, "speed_a": np.float64, "speed_b": np.float64,
                 "slowdown": np.float64}
        columns = {name: column(values, kinds.get(name, np.float64), f"pairs[{name!r}]")
                   for name, values in (pairs or {}).items()}
        made = cls.__new__(cls)
        made._handle = _core.TruthHandle.from_speeds(
            handle_of(catalogue), sequence(gpu_types, str, "gpu_types"), sequence(profiles, str, "profiles"), speeds,
            columns, integer(reference, "reference", 0, 2**32 - 1), text(many, "many"))
        made._remake = (_speeds, ((gpu_types, profiles, alone, pairs), {"reference": reference, "many": many,
                                                                       "catalogue": catalogue}))
        return made

    def __repr__(self) -> str:
        return f"<horus.Truth: {self._handle.bytes_held():,} bytes>"

    def __reduce__(self) -> tuple[Any, ...]:
        return self._remake


def _truth(how: str, arguments: tuple[Any, ...]) -> Truth:
    made: Truth = getattr(Truth, how)(*arguments)
    return made


def _speeds(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Truth:
    return Truth.from_speeds(*arguments, **keywords)


def _rows(beliefs: Beliefs, what: str) -> Sequence[ProfileDemand]:
    if not isinstance(beliefs, Mapping):
        return sequence(beliefs, ProfileDemand, what)
    rows = []
    for profile, demands in beliefs.items():
        by_type = demands if isinstance(demands, Mapping) else {"any": demands}
        for gpu_type, demand in by_type.items():
            rows.append(ProfileDemand(text(profile, what), text(gpu_type, what),
                                      instance(demand, Demand, f"{what}[{profile!r}][{gpu_type!r}]")))
    return rows


class SimResult:
    """What became of the jobs. Immutable: share freely. A pickled one keeps the jobs and the metrics of all of them."""

    __slots__ = ("_handle", "_kept")

    def __init__(self, handle: _core.SimResultHandle | None, kept: dict[str, Any] | None = None) -> None:
        self._handle = handle
        self._kept: dict[str, Any] = {} if kept is None else kept

    def _get(self, name: str, read: Callable[[_core.SimResultHandle], Any]) -> Any:
        if name not in self._kept:
            if self._handle is None:
                raise StateError(f"{name}: a simulation that was pickled does not keep it")
            self._kept[name] = read(self._handle)
        return self._kept[name]

    def metrics(self, from_us: int = 0, to_us: int = 0, slowdown_bound: float = 0) -> dict[str, Any]:
        """Of the jobs that are submitted in the window (0 = all). Spreads are dicts of mean, p50, p95 and p99."""
        window = (integer(from_us, "from_us", -(2**62), 2**62), integer(to_us, "to_us", -(2**62), 2**62),
                  real(slowdown_bound, "slowdown_bound"))
        found: dict[str, Any] = self._get(f"metrics{window}", lambda handle: handle.metrics(*window))
        return found

    @property
    def jobs(self) -> dict[str, npt.NDArray[Any]]:
        """Columns with a row a job, by (submit_us, id): end, start_us, end_us, ran_us, work_us, ..."""
        found: dict[str, npt.NDArray[Any]] = self._get("jobs", lambda handle: handle.jobs())
        return {**found, "end": np.asarray(_ENDS)[found["end"]]}

    @property
    def backlog_work(self) -> npt.NDArray[np.float64]:
        """By profile of the trace, GPU seconds that were done while jobs waited."""
        found: npt.NDArray[np.float64] = self._get("backlog_work", lambda handle: handle.backlog_work())
        return found

    @property
    def decision_times_us(self) -> npt.NDArray[np.float32]:
        """Of each decision, by this machine's clock."""
        found: npt.NDArray[np.float32] = self._get("decision_times", lambda handle: handle.decision_times())
        return found

    def to_frame(self) -> Any:
        """A row a job (pandas)."""
        return _table.frame(self.jobs)

    def __repr__(self) -> str:
        metrics = self.metrics()
        return (f"<horus.SimResult: {metrics['finished']} of {metrics['jobs']} jobs finished, mean JCT "
                f"{metrics['jct_us']['mean'] / 1e6:,.0f} s>")

    def _repr_html_(self) -> str:
        flat = {name: value["mean"] if isinstance(value, dict) else value for name, value in self.metrics().items()}
        return _table.pairs_to_html(repr(self), flat)

    def __reduce__(self) -> tuple[Any, ...]:
        for name in ("jobs", "backlog_work", "decision_times_us"):
            getattr(self, name)
        self.metrics()
        return (SimResult, (None, self._kept))


def simulate(trace: Trace, beliefs: Beliefs, truth: Truth, cluster: Cluster, placer: Placer,
             options: SimOptions | None = None, *, observer: Callable[[str, int, int, tuple[Slot, ...]], object] | None = None,
             progress: Progress = None) -> SimResult:
    """Plays the trace on a copy of the cluster, which must hold no jobs. The placer plans by `beliefs`, time passes by
    `truth`. `observer(kind, time_us, job, slots)` is called for each event; False stops the simulation (Cancelled)."""
    how = SimOptions() if options is None else instance(options, SimOptions, "options")
    if observer is not None and not callable(observer):
        raise TypeError(f"observer: expected a callable or None, found {observer!r:.80}")
    with progress_of(progress, "simulate") as tell:
        return SimResult(_core.simulate(
            instance(trace, Trace, "trace")._handle, _rows(beliefs, "beliefs"), instance(truth, Truth, "truth")._handle,
            instance(cluster, Cluster, "cluster")._handle, instance(placer, Placer, "placer")._handle, how, observer, tell))


def compare(trace: Trace, beliefs: Beliefs, truth: Truth, cluster: Cluster, placers: Mapping[str, Placer],
            options: SimOptions | Mapping[str, SimOptions] | None = None, progress: Progress = None) -> dict[str, SimResult]:
    """The same trace under each placer, by its name; `options` for all, or by name. One after the other: the results are
    those of `simulate`. A grid of policies, traces and seeds with intervals is `horus compare`."""
    results: dict[str, SimResult] = {}
    with progress_of(progress, "compare") as tell:
        for position, (name, placer) in enumerate(placers.items()):
            how = options[name] if isinstance(options, Mapping) else options
            part = None if tell is None else _share(tell, position, len(placers))
            results[name] = simulate(trace, beliefs, truth, cluster, placer, how, progress=part)
    return results


def _share(tell: Callable[[float], object], position: int, count: int) -> Callable[[float], object]:
    return lambda done: tell((position + done) / count)
