# SPDX-License-Identifier: Apache-2.0
"""Interference: how much each tenant of a device slows down."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _core, _table
from ._args import Progress, column, instance, integer, progress_of, real, sequence, text
from ._core import Demand, Latency, SharedDevice
from ._frames import Pairs, is_table, pairs_of
from ._train import training_library
from .catalogue import Catalogue, gpus, handle_of
from .errors import InvalidArgument, NotFound
from .predict import Observations, Predictor, _bytes_of, demand_dtype, shared_device

__all__ = ["InterferenceModel", "Latency", "Quantile", "SharedDevice", "Slowdown", "largest_slowdown", "request_latency"]


def _predicted(pairs: Pairs, predictor: Predictor | None,
               catalogue: Catalogue | None) -> tuple[list[SharedDevice], npt.NDArray[np.void], list[str], dict[str, Any]]:
    """Measured pairs with the demands of their jobs on every device."""
    kinds, jobs = pairs.devices, len(pairs.graphs)
    rows = (predictor or Predictor()).predict_rows(
        [graph for graph in pairs.graphs for _ in kinds], [one.gpu_type for one in kinds] * jobs,
        [run for run in pairs.runs for _ in kinds], catalogue)
    return kinds, rows.reshape(jobs, len(kinds)), pairs.families, pairs.columns


_epochs = itertools.count(1)
_EPOCH_OF_CALLABLES = 1 << 63  # models of the library count from below


class Slowdown(NamedTuple):
    """Step time shared / step time alone, of each tenant."""

    estimate: npt.NDArray[np.float32]
    upper: npt.NDArray[np.float32]


class Quantile(NamedTuple):
    """The slowdown that each tenant does not exceed with some probability."""

    slowdown: npt.NDArray[np.float32]
    calibrated: npt.NDArray[np.bool_]  # False = extrapolated


class InterferenceModel:
    """Tells what sharing costs. Immutable: share freely between threads.

    `InterferenceModel("horus")` is built in, beside "boosted", "iasp", "iapp" and "utilisation".
    """

    __slots__ = ("_bundle", "_callable", "_handle")

    _callable: Any
    _bundle: bytes | None

    def __init__(self, name: str = "horus") -> None:
        self._handle = _core.InterferenceHandle(text(name, "name"))
        self._callable = None
        self._bundle = None

    @classmethod
    def _made(cls, handle: _core.InterferenceHandle, call: Any = None, bundle: bytes | None = None) -> InterferenceModel:
        model = cls.__new__(cls)
        model._handle, model._callable, model._bundle = handle, call, bundle
        return model

    @classmethod
    def load(cls, bundle: str | os.PathLike[str] | bytes | bytearray | memoryview, name: str = "horus",
             catalogue: Catalogue | None = None) -> InterferenceModel:
        """The model of that name in a trained bundle: a path, or its bytes."""
        source = bytes(_bytes_of(bundle))
        return cls._made(_core.InterferenceHandle.from_bytes(handle_of(catalogue), source, text(name, "name")), None, source)

    @classmethod
    def from_callable(cls, function: Callable[[SharedDevice, npt.NDArray[np.void]], Any],
                      catalogue: Catalogue | None = None, upper_probability: float = 0.9) -> InterferenceModel:
        """Your own model: `function(device, tenants)` gets the tenants' demands as rows of `demand_dtype` and answers
        their slowdowns, or a tuple of slowdowns and upper bounds, each at least 1; a slowdown stays within its bound
        with `upper_probability`, 0.5 to 0.999. It must be a pure function that does not depend on the order of the
        tenants. What it raises comes back as itself."""
        if not callable(function):
            raise TypeError(f"function: expected a callable, found {function!r:.80} ({type(function).__name__})")
        epoch = _EPOCH_OF_CALLABLES + next(_epochs)
        return cls._made(_core.InterferenceHandle.from_callable(
            handle_of(catalogue), function, epoch, real(upper_probability, "upper_probability")), function)

    @classmethod
    def from_table(cls, gpu_types: Sequence[str], profiles_a: Any, profiles_b: Any, slowdown_a: Any, slowdown_b: Any, *,
                   sharing_modes: Sequence[str] | None = None, noise: float = 0,
                   fallback: InterferenceModel | None = None, catalogue: Catalogue | None = None) -> InterferenceModel:
        """Measured pairs as columns: profile ids, and the slowdown of each beside the other (NaN = not measured).
        `fallback` (None = the built-in one) answers where nothing was measured."""
        types = sequence(gpu_types, str, "gpu_types")
        rows = len(types)
        modes = ["default"] * rows if sharing_modes is None else sequence(sharing_modes, str, "sharing_modes")
        other = None if fallback is None else instance(fallback, InterferenceModel, "fallback")._handle
        return cls._made(_core.InterferenceHandle.from_table(
            handle_of(catalogue), types, modes, column(profiles_a, np.uint64, "profiles_a", rows),
            column(profiles_b, np.uint64, "profiles_b", rows), column(slowdown_a, np.float64, "slowdown_a", rows),
            column(slowdown_b, np.float64, "slowdown_b", rows), real(noise, "noise"), other))

    @classmethod
    def fit(cls, devices: Sequence[SharedDevice | str] | Any, demands: npt.NDArray[np.void] | None = None,
            families: Sequence[str] | None = None, *, jobs: Any = None, predictor: Predictor | None = None,
            folder: str | os.PathLike[str] = "", device: Any = None, job_a: Any = None, job_b: Any = None,
            slowdown_a: Any = None, slowdown_b: Any = None, model: str = "horus", promise: float = 0, seed: int = 0,
            library: str | os.PathLike[str] = "", catalogue: Catalogue | None = None,
            progress: Progress = None) -> InterferenceModel:
        """Trained on measured pairs: a pandas frame or dict of columns, a row a pair, and `jobs` the table of the jobs that it
        names, both by the names of docs/measure.md; demands are predicted then (`predictor`: None = the built-in one) from
        graphs, which are Graphs or paths as seen from `folder`.

        Or `devices`, and `demands` as rows of `demand_dtype`, [jobs x devices], one profile_id a job; `families` of the jobs
        are left out together by the calibration. Then a row a run, as columns: positions of device and jobs, and the slowdown
        of each beside the other (NaN = not measured).

        `model`: horus, boosted (needs `library`, or PyPI's xgboost, as Predictor.fit does), iasp or iapp. `promise`: coverage of
        the bounds; 0 = 0.9.
        """
        kinds: Sequence[SharedDevice | str] = devices
        columns: Mapping[str, Any] = {"device": device, "job_a": job_a, "job_b": job_b, "slowdown_a": slowdown_a,
                                      "slowdown_b": slowdown_b}
        if is_table(devices):
            kinds, demands, families, columns = _predicted(pairs_of(devices, jobs, folder), predictor, catalogue)
        found = [shared_device(one) for one in kinds]
        rows = len(np.atleast_1d(columns["device"]))
        where, first, second = (column(columns[name], np.uint32, name, rows) for name in ("device", "job_a", "job_b"))
        of_first, of_second = (column(columns[name], np.float64, name, rows) for name in ("slowdown_a", "slowdown_b"))
        with progress_of(progress, "fit") as tell:
            made = cls._made(_core.fit_interference(
                handle_of(catalogue), [one.gpu_type for one in found], [one.sharing_mode for one in found],
                sequence(families or (), str, "families"), instance(demands, np.ndarray, "demands"), where, first, second,
                of_first, of_second, text(model, "model"), real(promise, "promise"), integer(seed, "seed", 0, 2**32 - 1),
                training_library(library), tell))
        made._bundle = made.to_bytes()
        return made

    def slowdown(self, device: SharedDevice | str, tenants: Sequence[Demand] | npt.NDArray[np.void],
                 catalogue: Catalogue | None = None, progress: Progress = None) -> Slowdown:
        """Slowdown of each tenant of a device.

        `tenants`: the demands of one device's tenants; or rows of `demand_dtype`, without a copy: one dimension for one
        device, two for many of the same kind, a row each. The arrays of the answer have the same shape.
        """
        where = shared_device(device)
        if isinstance(tenants, np.ndarray):
            rows = tenants[np.newaxis] if tenants.ndim == 1 else tenants
            _check_sharing(where, rows.shape[-1], catalogue)
            with progress_of(progress, "slowdown") as tell:
                found = self._handle.slowdown_rows(handle_of(catalogue), where, rows, tell)
            return Slowdown(*(part.reshape(tenants.shape) for part in found))
        alone = sequence(tenants, Demand, "tenants")
        _check_sharing(where, len(alone), catalogue)
        return Slowdown(*self._handle.slowdown(handle_of(catalogue), where, alone))

    def quantile(self, probability: float, device: SharedDevice | str, tenants: Sequence[Demand],
                 catalogue: Catalogue | None = None) -> Quantile:
        """The slowdown that each tenant does not exceed with that probability, 0.5 to 0.999; and whether jobs that were
        left out showed that so high a one is kept, or it is extrapolated. Raises Unsupported (a model of your own knows
        its `upper_probability` alone)."""
        where, these = shared_device(device), sequence(tenants, Demand, "tenants")
        _check_sharing(where, len(these), catalogue)
        return Quantile(*self._handle.quantile(handle_of(catalogue), where, these, real(probability, "probability")))

    def matrix(self, device: SharedDevice | str, jobs: Sequence[Demand]) -> npt.NDArray[np.float32]:
        """[i, j]: slowdown of job i beside job j on this device; of mode "mig" in one instance, which both share in time."""
        from .predict import demand_rows

        rows = demand_rows(sequence(jobs, Demand, "jobs"))
        count = len(rows)
        pairs = np.empty((count * count, 2), demand_dtype)
        pairs[:, 0], pairs[:, 1] = np.repeat(rows, count), np.tile(rows, count)
        return self.slowdown(device, pairs).estimate[:, 0].reshape(count, count)

    def measured(self, device: SharedDevice | str, tenants: Sequence[Demand],
                 catalogue: Catalogue | None = None) -> npt.NDArray[np.bool_]:
        """[i, j]: whether the slowdown of tenant i beside tenant j was measured (`from_table`), or is predicted."""
        return self._handle.measured(handle_of(catalogue), shared_device(device), sequence(tenants, Demand, "tenants"))

    def observe(self, observations: Observations, catalogue: Catalogue | None = None,
                progress: Progress = None) -> InterferenceModel:
        """A model of a new epoch that answers more like what was observed (`Observations.add_slowdown`); this one
        stays. `changes()` of the new one says whose answers moved."""
        seen = instance(observations, Observations, "observations")._handle
        with progress_of(progress, "observe") as tell:
            return self._made(self._handle.commit(handle_of(catalogue), seen, tell), self._callable)

    def changes(self) -> list[tuple[str, str, int]]:
        """(GPU type, sharing mode, profile id) of what the last `observe` may have changed."""
        return self._handle.changes()

    def to_bytes(self) -> bytes:
        """The bundle, for `load`. Raises Unsupported for models that were neither trained nor loaded: of one that `observe`
        made keep `Observations.to_bytes` and the model before, and observe again."""
        return self._handle.to_bytes()

    @property
    def name(self) -> str:
        """Such as horus, table or callback."""
        return self._handle.name()

    @property
    def epoch(self) -> int:
        """Differs between models that answer differently."""
        return self._handle.epoch()

    @property
    def bytes_held(self) -> int:
        """Memory in bytes."""
        return self._handle.bytes_held()

    def __repr__(self) -> str:
        return f"<horus.InterferenceModel {self.name!r}, epoch {self.epoch:016x}>"

    def _repr_html_(self) -> str:
        return _table.pairs_to_html(repr(self), {"name": self.name, "epoch": f"{self.epoch:016x}",
                                                 "bytes held": self.bytes_held})

    def __reduce__(self) -> tuple[Any, ...]:
        return (_unpickled, (self.name, *self._state()))

    def _state(self) -> tuple[Any, bytes | None]:
        if self._callable is not None:
            return self._callable, None
        if self._bundle is not None:
            return None, self._bundle
        with contextlib.suppress(NotFound):  # no built-in model is called so
            if InterferenceModel(self.name).epoch == self.epoch:
                return None, None
        raise TypeError(f"an InterferenceModel {self.name!r} made by from_table or observe cannot be pickled: pickle what "
                        "it was made of")


def _unpickled(name: str, call: Any, bundle: bytes | None) -> InterferenceModel:
    if call is not None:
        return InterferenceModel.from_callable(call)
    return InterferenceModel(name) if bundle is None else InterferenceModel.load(bundle, name)


def _check_sharing(device: SharedDevice, tenants: int, catalogue: Catalogue | None) -> None:
    if device.sharing_mode == "exclusive" and tenants > 1:
        raise InvalidArgument(f"tenants: expected one on an exclusive device, found {tenants}")
    if device.sharing_mode == "mig" and not (catalogue or gpus())[device.gpu_type].mig_profiles:
        raise InvalidArgument(f"device: sharing_mode: expected one that {device.gpu_type} has, found mig")


def model_of(model: InterferenceModel | str | Callable[..., Any] | None) -> InterferenceModel | None:
    """That of an argument: a model, the name of a built-in one, or a callable."""
    if model is None or isinstance(model, InterferenceModel):
        return model
    if isinstance(model, str):
        return InterferenceModel(model)
    return InterferenceModel.from_callable(model)


def request_latency(requests_per_s: float, service_us: float, slowdown: float = 1, service_cv: float = 0) -> Latency:
    """What requests to an inference job take: they arrive at random and are served one at a time, in `service_us` alone on
    the device on average. `slowdown`: where the job runs. `service_cv`: standard deviation / mean of the time, 0 to 1."""
    return _core.request_latency(real(requests_per_s, "requests_per_s"), real(service_us, "service_us"),
                                 real(slowdown, "slowdown"), real(service_cv, "service_cv"))


def largest_slowdown(requests_per_s: float, service_us: float, p99_bound_us: float, service_cv: float = 0) -> float:
    """The largest slowdown at which 99 % of the requests take at most `p99_bound_us`: a slowdown_bound for such a job. 0
    where not even 1 is within the bound."""
    return _core.largest_slowdown(real(requests_per_s, "requests_per_s"), real(service_us, "service_us"),
                                  real(p99_bound_us, "p99_bound_us"), real(service_cv, "service_cv"))
