# SPDX-License-Identifier: Apache-2.0
"""Simulation: a trace of jobs on a cluster, under a queue and a placer, which believe, while time passes by the truth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from . import _core, _table
from ._args import Progress, instance, integer, progress_of, real, sequence, text
from ._core import Demand, Outage, ProfileDemand, Rebalance, Sensitivity, SimOptions, Slot
from .catalogue import Catalogue, handle_of
from .cluster import Cluster
from .errors import StateError
from .interference import InterferenceModel, model_of
from .place import Placer
from .speeds import Speeds
from .trace import Trace

__all__ = ["Outage", "ProfileDemand", "Rebalance", "SimOptions", "SimResult", "Truth", "simulate"]

Beliefs = Union[Mapping[str, Union[Demand, Mapping[str, Demand]]], Iterable[ProfileDemand]]
"""What jobs of each profile demand: one demand for every type, or one by GPU type; or rows."""

_ENDS = ("waiting", "running", "finished", "rejected")


class Truth:
    """How fast jobs really run, alone and beside others. Immutable: share freely."""

    __slots__ = ("_handle", "_remake")

    _handle: _core.TruthHandle
    _remake: tuple[Any, ...]

    def __init__(self, *_: object, **__: object) -> None:
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
        speeds = Speeds(gpu_types, profiles, alone, pairs, reference)
        made = cls.__new__(cls)
        made._handle = _core.TruthHandle.from_speeds(handle_of(catalogue), *speeds.arguments, text(many, "many"))
        made._remake = (_speeds, ((gpu_types, profiles, alone, pairs), {"reference": reference, "many": many,
                                                                       "catalogue": catalogue}))
        return made

    def with_sensitivities(self, sensitivities: Mapping[str, Sensitivity]) -> Truth:
        """This truth, and speeds that follow the cores and host memory that jobs have, by profile; profiles that are not
        named do not care."""
        rows = {text(name, "sensitivities"): instance(one, Sensitivity, f"sensitivities[{name!r}]")
                for name, one in instance(sensitivities, Mapping, "sensitivities").items()}  # type: ignore[type-abstract]
        made = Truth.__new__(Truth)
        made._handle = self._handle.with_sensitivities(rows)
        made._remake = (_sensitive, (self, rows))
        return made

    @property
    def bytes_held(self) -> int:
        """Memory in bytes, without that of its model."""
        return self._handle.bytes_held()

    def __repr__(self) -> str:
        return f"<horus.Truth: {self.bytes_held:,} bytes>"

    def _repr_html_(self) -> str:
        return _table.pairs_to_html(repr(self), {"bytes held": self.bytes_held})

    def __reduce__(self) -> tuple[Any, ...]:
        return self._remake


def _truth(how: str, arguments: tuple[Any, ...]) -> Truth:
    made: Truth = getattr(Truth, how)(*arguments)
    return made


def _sensitive(truth: Truth, rows: dict[str, Sensitivity]) -> Truth:
    return truth.with_sensitivities(rows)


def _speeds(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Truth:
    return Truth.from_speeds(*arguments, **keywords)


def _rows(beliefs: Beliefs, what: str) -> tuple[ProfileDemand, ...]:
    if not isinstance(beliefs, Mapping):
        return sequence(beliefs, ProfileDemand, what)
    rows = []
    for profile, demands in beliefs.items():
        by_type = demands if isinstance(demands, Mapping) else {"any": demands}
        for gpu_type, demand in by_type.items():
            rows.append(ProfileDemand(text(profile, what), text(gpu_type, what),
                                      instance(demand, Demand, f"{what}[{profile!r}][{gpu_type!r}]")))
    return tuple(rows)


class SimResult:
    """What became of the jobs. Immutable: share freely. A pickled one keeps the jobs and the metrics of all of them."""

    __slots__ = ("_handle", "_kept")

    def __init__(self, handle: _core.SimResultHandle | None, kept: dict[str, Any] | None = None) -> None:
        self._handle = handle
        self._kept: dict[str, Any] = {} if kept is None else kept

    def model(self) -> InterferenceModel:
        """What the placer believed at the end of a simulation that learned (SimOptions.learns), for other placers. Raises
        InvalidArgument where nothing was to be learned."""
        if self._handle is None:
            raise StateError("model: a simulation that was pickled does not keep it")
        return InterferenceModel._made(self._handle.model())

    def _get(self, name: str, read: Callable[[_core.SimResultHandle], Any]) -> Any:
        if name not in self._kept:
            if self._handle is None:
                raise StateError(f"{name}: a simulation that was pickled does not keep it")
            self._kept[name] = read(self._handle)
        return self._kept[name]

    def metrics(self, from_us: int = 0, to_us: int = 0, slowdown_bound: float = 0) -> dict[str, Any]:
        """Of the jobs that are submitted in the window (0 = all). Spreads are dicts of mean, p50, p95 and p99, NaN where no job
        finished; times of -1 never came."""
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
    `truth`. `observer(kind, time_us, job, slots)` is called for each event; False stops the simulation (Cancelled).
    To compare several by yourself state SimOptions.look_ahead: without it policies that choose who goes see more jobs than others."""
    how = SimOptions() if options is None else instance(options, SimOptions, "options")
    if observer is not None and not callable(observer):
        raise TypeError(f"observer: expected a callable or None, found {observer!r:.80}")
    with progress_of(progress, "simulate") as tell:
        return SimResult(_core.simulate(
            instance(trace, Trace, "trace")._handle, _rows(beliefs, "beliefs"), instance(truth, Truth, "truth")._handle,
            instance(cluster, Cluster, "cluster")._handle, instance(placer, Placer, "placer")._handle, how, observer, tell))
