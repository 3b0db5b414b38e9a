# SPDX-License-Identifier: Apache-2.0
"""Predictors: what a graph will ask of each GPU type; observations: what running jobs were seen to take and lose."""

from __future__ import annotations

import dataclasses
import enum
import math
import os
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from . import _core, _table
from ._args import Progress, column, instance, integer, progress_of, real, sequence, text
from ._core import Demand, RunSpec, Service, SharedDevice, Slot, Solution
from ._frames import MEASURED, Runs, is_table, runs_of
from ._train import training_library
from .catalogue import Catalogue, gpus, handle_of
from .errors import InvalidArgument
from .graph import Graph, _run
from .metrics import Metrics
from .metrics import handle_of as metrics_handle_of

if TYPE_CHECKING:
    from .cluster import Cluster

__all__ = ["Demand", "DemandFlag", "Observations", "Predictor", "Service", "ServiceRun", "Solution",
           "demand_dtype", "demand_rows", "demands_of"]


class DemandFlag(enum.IntFlag):
    """Where a demand comes from, and how far it can be trusted."""

    GIVEN = 1
    """Stated by the caller."""
    MEASURED = 2
    """Rests on observations of this very profile."""
    OUTSIDE = 4
    """The job lies outside what the predictor was trained on."""
    UNCALIBRATED = 8
    """The bounds hold at no stated coverage."""
    PREDICTED = 16
    """Memory or step time are neither stated nor measured."""
    TOO_LARGE = 32
    """What any framework keeps at once exceeds the GPU type's memory."""

    def __repr__(self) -> str:
        names = [f"DemandFlag.{flag.name}" for flag in DemandFlag if flag in self]
        known = sum(flag.value for flag in DemandFlag)
        return " | ".join(names) if names and self & ~known == 0 else f"DemandFlag({int(self)})"


@dataclasses.dataclass(frozen=True)
class ServiceRun:
    """What was measured of a service on a GPU type: means, with `users` who ask again once they are answered and all
    memory of the GPU. A time of 0 was not measured."""

    gpu_type: str
    users: float
    token_ms: float = 0
    first_token_ms: float = 0


demand_dtype: np.dtype[np.void] = _core.demand_dtype
"""A demand as a row of numpy: the struct of the C ABI, so that columns of demands cross without a copy."""


def demand_rows(rows: int | Iterable[Demand] = 0, **columns: Any) -> npt.NDArray[np.void]:
    """Rows of `demand_dtype`: so many empty ones, or those of demands; then the columns given are filled in."""
    if isinstance(rows, (int, np.integer)):
        lengths = {len(np.atleast_1d(values)) for values in columns.values()}
        out = np.zeros(max({integer(rows, "rows", 0, 2**40)} | lengths), demand_dtype)
    else:
        demands = sequence(rows, Demand, "rows")
        out = np.zeros(len(demands), demand_dtype)
        for position, demand in enumerate(demands):
            for name, value in demand.to_dict().items():
                out[name][position] = value
    out["struct_size"] = demand_dtype.itemsize
    for name, values in columns.items():
        if name not in (demand_dtype.names or ()) or name == "struct_size":
            raise InvalidArgument(f"{name}: expected a column of horus.demand_dtype, found no such column")
        if name == "traits":
            out[name] = values
        else:
            out[name] = column(values, demand_dtype[name], name, len(out))
    return out


def demands_of(rows: npt.NDArray[np.void]) -> list[Demand]:
    """Rows of `demand_dtype` as demands."""
    names = [name for name in (demand_dtype.names or ()) if name != "struct_size"]
    return [Demand(**{name: row[name] for name in names}) for row in rows]


def _measured_runs(data: Any, gpu_types: Sequence[str] | None, families: Sequence[str] | None,
                   runs: Sequence[RunSpec] | None, folder: str | os.PathLike[str], measured: dict[str, Any],
                   train: bool) -> Runs:
    """The arguments of fit and evaluate as rows; families are for training."""
    if is_table(data):
        if gpu_types is not None or runs is not None or measured:
            raise TypeError("data: expected a frame alone, found other columns beside it")
        return runs_of(data, folder, train)
    graphs = list(sequence(data, Graph, "graphs"))
    rows = len(graphs)
    for name in measured:
        if name not in MEASURED:
            raise TypeError(f"there is no column {name!r}; there are {', '.join(MEASURED)}")
    if gpu_types is None or (train and families is None):
        raise TypeError(f"{'gpu_types' if gpu_types is None else 'families'}: expected a name a row, found None")
    return Runs(graphs, list(sequence(gpu_types, str, "gpu_types")), list(sequence(families or (), str, "families")),
                [RunSpec()] * rows if runs is None else list(sequence(runs, RunSpec, "runs")),
                {name: column(values, np.float64, name, rows) for name, values in measured.items()})


def _quality(told: npt.NDArray[np.float64], upper: npt.NDArray[np.float64],
             seen: npt.NDArray[np.float64]) -> dict[str, float]:
    ratio = told[seen > 0] / seen[seen > 0]
    return {"mean_abs_error": float(np.abs(told - seen).mean()),
            "rmsle": float(np.sqrt(np.mean((np.log1p(told) - np.log1p(seen)) ** 2))),
            "median_ratio": float(np.median(ratio)) if len(ratio) else float("nan"),
            "covered": float((seen <= upper).mean())}


class Predictor:
    """Predicts demands from graphs. Immutable: share freely between threads."""

    __slots__ = ("_handle",)

    def __init__(self) -> None:
        """The built-in predictor: the roofline, refined by the bundle that the library brings."""
        self._handle = _core.PredictorHandle()

    @classmethod
    def default(cls) -> Predictor:
        """The built-in predictor."""
        return cls()

    @classmethod
    def load(cls, bundle: str | bytes | bytearray | memoryview | Any) -> Predictor:
        """From a trained bundle: a path, or its bytes. Raises CorruptError, StateError (another schema: train again)."""
        return cls._made(_core.PredictorHandle.from_bytes(_bytes_of(bundle)))

    @classmethod
    def _made(cls, handle: _core.PredictorHandle) -> Predictor:
        predictor = cls.__new__(cls)
        predictor._handle = handle
        return predictor

    @classmethod
    def fit(cls, graphs: Sequence[Graph] | Any, gpu_types: Sequence[str] | None = None, families: Sequence[str] | None = None,
            runs: Sequence[RunSpec] | None = None, *, folder: str | os.PathLike[str] = "", rounds: int = 0, promise: float = 0,
            seed: int = 0, library: str | os.PathLike[str] = "", base: Predictor | None = None,
            catalogue: Catalogue | None = None, progress: Progress = None, **measured: Any) -> Predictor:
        """Trained on measured runs, a row each: a pandas frame or dict of columns by the names of docs/measure.md, whose
        `graph` is a Graph or a path as seen from `folder`; or graphs, GPU types, families and runs, and as columns what was
        measured: gpu_util_pct, gpu_util_max_pct, mem_bw_util_pct, mem_mib, step_time_us, power_w (NaN = not in this row).
        Rows of a family are never split between training and calibration. What fewer than 8 rows measure is kept of `base`
        (None = the built-in predictor). `rounds`: trees a quantity; 0 = 100, -1 = none.
        `promise`: coverage of the bounds; 0 = 0.9. Trees are grown with PyPI's xgboost (the extra `train`), or with
        the `library` named: a libxgboost.so or libhorus_train.so. Raises FileError without one, InvalidArgument (column, row,
        expected, found)."""
        given = _measured_runs(graphs, gpu_types, families, runs, folder, measured, True)
        with progress_of(progress, "fit") as tell:
            return cls._made(_core.fit_predictor(
                handle_of(catalogue), tuple(graph._handle for graph in given.graphs), tuple(given.runs), given.gpu_types,
                given.families,
                given.measured, integer(rounds, "rounds", -1, 2**31 - 1), real(promise, "promise"),
                integer(seed, "seed", 0, 2**32 - 1), training_library(library),
                None if base is None else instance(base, Predictor, "base")._handle, tell))

    def evaluate(self, graphs: Sequence[Graph] | Any, gpu_types: Sequence[str] | None = None,
                 runs: Sequence[RunSpec] | None = None, *, folder: str | os.PathLike[str] = "",
                 catalogue: Catalogue | None = None, progress: Progress = None, **measured: Any) -> dict[str, dict[str, float]]:
        """How right it is on measured runs (as in `fit`; families are not read), by quantity: rows, mean_abs_error, rmsle
        (root mean square of ln((1 + predicted) / (1 + measured))), median_ratio (predicted / measured) and covered (share of
        rows at or below the upper bound)."""
        given = _measured_runs(graphs, gpu_types, None, runs, folder, measured, False)
        rows = self.predict_rows(given.graphs, given.gpu_types, given.runs, catalogue, progress)
        out = {}
        for name, seen in given.measured.items():
            if name not in (demand_dtype.names or ()):
                if is_table(graphs):
                    continue  # a maximum, which demands do not state
                raise TypeError(f"Predictor.evaluate has no column {name!r}; it has "
                                f"{', '.join(n for n in MEASURED if n in (demand_dtype.names or ()))}")
            known = ~np.isnan(seen)
            told, upper, seen = (part[known].astype(np.float64) for part in (rows[name], rows[name + "_upper"], seen))
            out[name] = {"rows": float(known.sum()), **(_quality(told, upper, seen) if known.any() else {})}
        return out

    def to_bytes(self) -> bytes:
        """The bundle, for `load`. Measured demands are not part of it: keep `Observations.to_bytes` too, and observe again."""
        return self._handle.to_bytes()

    @overload
    def predict(self, graph: Graph, gpu_types: str, run: RunSpec | None = None,  # type: ignore[overload-overlap]
                catalogue: Catalogue | None = None) -> Demand: ...
    @overload
    def predict(self, graph: Graph, gpu_types: Iterable[str], run: RunSpec | None = None,
                catalogue: Catalogue | None = None) -> dict[str, Demand]: ...

    def predict(self, graph: Graph, gpu_types: str | Iterable[str], run: RunSpec | None = None,
                catalogue: Catalogue | None = None) -> Demand | dict[str, Demand]:
        """The demand on one GPU type, or on each of several by its name. The graph is analysed once. Warns of types whose
        memory is less than the estimate."""
        handle = instance(graph, Graph, "graph")._handle
        names = (text(gpu_types, "gpu_types"),) if isinstance(gpu_types, str) else sequence(gpu_types, str, "gpu_types")
        found = dict(zip(names, self._handle.predict(handle_of(catalogue), handle, _run(run), names)))
        there = {name: (catalogue or gpus())[name].mem_mib for name in found}
        if too_large := [f"{name} ({demand.mem_mib:,} of {there[name]:,} MiB)" for name, demand in found.items()
                         if demand.too_large or demand.mem_mib > there[name]]:
            warnings.warn(f"the step needs more memory than the GPU has: {', '.join(too_large)}", RuntimeWarning, stacklevel=2)
        return found[gpu_types] if isinstance(gpu_types, str) else found

    def predict_rows(self, graphs: Sequence[Graph], gpu_types: Sequence[str], runs: Sequence[RunSpec] | None = None,
                     catalogue: Catalogue | None = None, progress: Progress = None) -> npt.NDArray[np.void]:
        """A row of `demand_dtype` for each row of graphs, GPU types and runs."""
        handles = [graph._handle for graph in sequence(graphs, Graph, "graphs")]
        how = [RunSpec()] * len(handles) if runs is None else sequence(runs, RunSpec, "runs")
        with progress_of(progress, "predict") as tell:
            return self._handle.predict_rows(handle_of(catalogue), handles, how, sequence(gpu_types, str, "gpu_types"), tell)

    @overload
    def solve(self, graph: Graph, gpu_types: str, run: RunSpec | None = None, dim: str = "batch", *,  # type: ignore[overload-overlap]
              max_value: int = 0, resident_mib: Sequence[int] | None = None, catalogue: Catalogue | None = None,
              progress: Progress = None) -> Solution: ...
    @overload
    def solve(self, graph: Graph, gpu_types: Sequence[str], run: RunSpec | None = None, dim: str = "batch", *,
              max_value: int = 0, resident_mib: Sequence[int] | None = None, catalogue: Catalogue | None = None,
              progress: Progress = None) -> list[Solution]: ...

    def solve(self, graph: Graph, gpu_types: str | Sequence[str], run: RunSpec | None = None, dim: str = "batch", *,
              max_value: int = 0, resident_mib: Sequence[int] | None = None, catalogue: Catalogue | None = None,
              progress: Progress = None) -> Solution | list[Solution]:
        """The largest value of a dimension whose memory bound fits, on one GPU type, or for each of several devices.
        `resident_mib`: memory that is taken there already."""
        names = (text(gpu_types, "gpu_types"),) if isinstance(gpu_types, str) else sequence(gpu_types, str, "gpu_types")
        with progress_of(progress, "solve") as tell:
            found = list(self._handle.solve(
                handle_of(catalogue), instance(graph, Graph, "graph")._handle, _run(run), text(dim, "dim"),
                integer(max_value, "max_value", 0, 2**31 - 1), resident_mib, names, tell))
        return found[0] if isinstance(gpu_types, str) else found

    @overload
    def serve(self, graph: Graph, gpu_types: str, *, requests_per_s: float = 0, users: float = 0,  # type: ignore[overload-overlap]
              tokens_in: float = 0, tokens_out: float = 0, longest: float = 0, first_token_ms: float = 0, token_ms: float = 0,
              confidence: float = 0.9, measured: Iterable[ServiceRun] = (), run: RunSpec | None = None,
              catalogue: Catalogue | None = None) -> Service: ...
    @overload
    def serve(self, graph: Graph, gpu_types: Iterable[str], *, requests_per_s: float = 0, users: float = 0,
              tokens_in: float = 0, tokens_out: float = 0, longest: float = 0, first_token_ms: float = 0, token_ms: float = 0,
              confidence: float = 0.9, measured: Iterable[ServiceRun] = (), run: RunSpec | None = None,
              catalogue: Catalogue | None = None) -> dict[str, Service]: ...

    def serve(self, graph: Graph, gpu_types: str | Iterable[str], *, requests_per_s: float = 0, users: float = 0,
              tokens_in: float = 0, tokens_out: float = 0, longest: float = 0, first_token_ms: float = 0, token_ms: float = 0,
              confidence: float = 0.9, measured: Iterable[ServiceRun] = (), run: RunSpec | None = None,
              catalogue: Catalogue | None = None) -> Service | dict[str, Service]:
        """How an engine serves a language model (`Graph.from_config`) under a load, on one GPU type, or on each of several by
        its name: of independent users `requests_per_s`, or `users` who ask again once they are answered; mean tokens of a
        prompt and of an answer; `longest`: of both together (0 = four times the mean). The times are promises that the share
        `confidence` of the requests must keep; 0 = none. `measured` corrects the times on the GPU types that were measured.
        `run`: None = vLLM in bf16. Another graph answers in one step: no tokens, `first_token_ms` is the time to the answer,
        `run` has its mode "inference", dims and as `batch` the largest that its server makes (0 = 32)."""
        handle = instance(graph, Graph, "graph")._handle
        names = (text(gpu_types, "gpu_types"),) if isinstance(gpu_types, str) else sequence(gpu_types, str, "gpu_types")
        how = RunSpec(mode="inference", framework="vllm", precision="bf16") if run is None else _run(run)
        found = dict(zip(names, self._handle.serve(
            handle_of(catalogue), handle, how, real(requests_per_s, "requests_per_s"), real(users, "users"),
            real(tokens_in, "tokens_in"), real(tokens_out, "tokens_out"), real(longest, "longest"),
            round(real(first_token_ms, "first_token_ms") * 1e3), round(real(token_ms, "token_ms") * 1e3),
            real(confidence, "confidence"), names,
            tuple((text(one.gpu_type, "gpu_type"), real(one.users, "users"), real(one.first_token_ms, "first_token_ms") * 1e3,
                   real(one.token_ms, "token_ms") * 1e3) for one in sequence(measured, ServiceRun, "measured")))))
        return found[gpu_types] if isinstance(gpu_types, str) else found

    def solve_service(self, graph: Graph, gpu_type: str, unknown: str = "load", **load: Any) -> float:
        """The most that a GPU serves, all else as in `serve`: of `unknown` "load" requests a second in steps of 0.01, or users
        where users are given and a time is promised; of "context" tokens of the longest request. 0 = none. Asks `serve` some
        30 times."""
        if unknown not in ("load", "context"):
            raise InvalidArgument(f"unknown: expected 'load' or 'context', found {unknown!r}")
        if unknown == "load" and load.get("users", 0) > 0 and not (load.get("token_ms", 0) or load.get("first_token_ms", 0)):
            raise InvalidArgument("load: expected a promised time beside users: without one any number may wait")
        tokens = math.ceil(load.get("tokens_in", 0) + load.get("tokens_out", 0))

        def value(step: int) -> dict[str, float]:
            if unknown == "context":
                return {"longest": tokens + step - 1}
            return {"users": step} if load.get("users", 0) > 0 else {"requests_per_s": step / 100}

        def served(step: int) -> bool:
            try:
                return bool(self.serve(graph, gpu_type, **{**load, **value(step)}).verdict == "served")
            except InvalidArgument:
                if step == 1:
                    raise
                return False  # beyond what the model was made for, or what can be asked

        if not served(1):
            return 0.0
        low, high = 1, 2
        while served(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if served(middle) else (low, middle)
        return float(next(iter(value(low).values())))

    def observe(self, observations: Observations) -> Predictor:
        """A predictor of a new epoch that answers with what was measured; this one stays."""
        return self._made(self._handle.commit(instance(observations, Observations, "observations")._handle))

    def quality(self) -> dict[str, dict[str, float]]:
        """What stands behind the predictions, by quantity: coverage promised and observed, rows, families, trees. What is
        not listed the roofline alone predicts."""
        return self._handle.quality()

    def set_metrics(self, metrics: Metrics | None) -> None:
        """Lets `metrics` count and log the calls on this predictor; None = none. Waits for calls that run."""
        _core.meter_predictor(metrics_handle_of(metrics), self._handle)

    @property
    def epoch(self) -> int:
        """Observations that it has taken in."""
        return self._handle.epoch()

    @property
    def bytes_held(self) -> int:
        """Memory in bytes."""
        return self._handle.bytes_held()

    def __repr__(self) -> str:
        return f"<horus.Predictor: {len(self.quality())} quantities learned, epoch {self.epoch}>"

    def _repr_html_(self) -> str:
        quality = self.quality()
        return _table.to_html(repr(self), {
            "quantity": list(quality),
            **{name: [row[name] for row in quality.values()]
               for name in ("promised", "observed", "rows", "families", "gpu_types", "trees")}})

    def __reduce__(self) -> tuple[Any, ...]:
        if self.epoch:
            raise TypeError("a Predictor that took in observations cannot be pickled: pickle the predictor before "
                            "observe() and the Observations")
        return (Predictor.load, (self.to_bytes(),))


class Observations:
    """What running jobs were seen to take and to lose. One thread at a time."""

    __slots__ = ("_handle",)

    def __init__(self, capacity: int = 0) -> None:
        """Room for `capacity` pairs of profile and GPU type (0 = 65,536); the longest unseen is forgotten."""
        self._handle = _core.ObservationsHandle(integer(capacity, "capacity"))

    def add_demand(self, profile_id: int, gpu_type: str, *, gpu_util_pct: float | None = None,
                   mem_bw_util_pct: float | None = None, mem_mib: float | None = None, step_time_us: float | None = None,
                   catalogue: Catalogue | None = None) -> None:
        """What a job took, alone on its GPU; None = not measured. Visible by `Predictor.observe`."""
        values = {"gpu_util_pct": gpu_util_pct, "mem_bw_util_pct": mem_bw_util_pct, "mem_mib": mem_mib,
                  "step_time_us": step_time_us}
        seen = {name: None if value is None else real(value, name) for name, value in values.items()}
        self._handle.add_demand(handle_of(catalogue), integer(profile_id, "profile_id"), text(gpu_type, "gpu_type"), **seen)

    def add_slowdown(self, device: SharedDevice | str, job: Demand, co_tenants: Sequence[Demand], slowdown: float, *,
                     predicted: float = 0, predicted_upper: float = 0, device_id: int = 0,
                     catalogue: Catalogue | None = None) -> None:
        """What a job lost beside others (step time shared / alone). Visible by `InterferenceModel.observe`."""
        self._handle.add_slowdown(
            handle_of(catalogue), shared_device(device), instance(job, Demand, "job"),
            sequence(co_tenants, Demand, "co_tenants"), real(slowdown, "slowdown"), real(predicted, "predicted"),
            real(predicted_upper, "predicted_upper"), integer(device_id, "device_id"))

    def add_resident(self, cluster: Cluster, job: int, slot: Slot | None = None, *, slowdown: float | None = None,
                     predicted: float = 0, predicted_upper: float = 0, device_id: int = 0,
                     gpu_util_pct: float | None = None, mem_bw_util_pct: float | None = None, mem_mib: float | None = None,
                     step_time_us: float | None = None) -> None:
        """What a resident was seen to lose beside all others on its device (`slowdown`, as in `add_slowdown`), or to take
        (the rest, as in `add_demand`). Demands, GPU type and neighbours are the cluster's. `slot`: None = its only one."""
        from .cluster import Cluster

        where = instance(cluster, Cluster, "cluster")
        if slot is None:
            slots = where.slots(job)
            if len(slots) != 1:
                raise InvalidArgument(f"slot: expected one of the {len(slots)} slots of job {job}, found None")
            slot = slots[0]
        values = {"gpu_util_pct": gpu_util_pct, "mem_bw_util_pct": mem_bw_util_pct, "mem_mib": mem_mib,
                  "step_time_us": step_time_us}
        seen = {name: None if value is None else real(value, name) for name, value in values.items()}
        self._handle.add_resident(
            where._handle, integer(job, "job"), instance(slot, Slot, "slot"),
            None if slowdown is None else real(slowdown, "slowdown"), real(predicted, "predicted"),
            real(predicted_upper, "predicted_upper"), integer(device_id, "device_id"), **seen)

    def calibration(self) -> dict[str, float]:
        """How right predictions were, over the slowdowns that came with one."""
        return self._handle.calibration()

    def devices(self) -> dict[str, npt.NDArray[Any]]:
        """Predicted and observed side by side, as columns; a row a tenant and device that were named."""
        return self._handle.devices()

    def to_bytes(self) -> bytes:
        """All that was collected, for `restore`."""
        return self._handle.snapshot()

    @classmethod
    def restore(cls, snapshot: bytes | bytearray | memoryview) -> Observations:
        """From `to_bytes`."""
        made = cls.__new__(cls)
        made._handle = _core.ObservationsHandle.restore(_bytes_of(snapshot))
        return made

    @property
    def bytes_held(self) -> int:
        """Memory in bytes."""
        return self._handle.bytes_held()

    def __repr__(self) -> str:
        return f"<horus.Observations: {self.bytes_held:,} bytes>"

    def _repr_html_(self) -> str:
        return _table.pairs_to_html(repr(self), self.calibration())

    def __reduce__(self) -> tuple[Any, ...]:
        return (Observations.restore, (self.to_bytes(),))


def shared_device(device: SharedDevice | str) -> SharedDevice:
    """A device of an argument; a GPU type alone is shared by time slices."""
    if isinstance(device, str):
        return SharedDevice(device)
    return instance(device, SharedDevice, "device")


def _bytes_of(source: Any) -> bytes | bytearray | memoryview:
    if isinstance(source, (bytes, bytearray, memoryview)):
        return source
    if isinstance(source, str) or hasattr(source, "__fspath__"):
        with open(source, "rb") as file:
            return file.read()
    raise TypeError(f"expected a path or bytes, found {source!r:.80} ({type(source).__name__})")
