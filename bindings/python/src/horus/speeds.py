# SPDX-License-Identifier: Apache-2.0
"""Potential: what sharing could give a cluster before any policy is chosen, from speeds alone and in pairs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core, _table
from ._args import Progress, column, integer, progress_of, real, sequence, text
from .errors import InvalidArgument

__all__ = ["Potential", "potential"]

_PAIRS: dict[str, type] = {"gpu": np.uint32, "a": np.uint32, "b": np.uint32, "speed_a": np.float64, "speed_b": np.float64,
                           "slowdown": np.float64}


class Speeds:
    """How fast profiles run on GPU types: the arguments of Truth.from_speeds and potential, checked."""

    __slots__ = ("arguments", "gpu_types", "profiles")

    def __init__(self, gpu_types: Sequence[str], profiles: Sequence[str], alone: Any, pairs: Mapping[str, Any] | None,
                 reference: int) -> None:
        self.gpu_types = list(sequence(gpu_types, str, "gpu_types"))
        self.profiles = list(sequence(profiles, str, "profiles"))
        shape = (len(self.gpu_types), len(self.profiles))
        speeds = np.asarray(alone, np.float64)
        if speeds.shape not in (shape, (shape[0] * shape[1],)):
            raise InvalidArgument(f"alone: expected [{shape[0]} GPU types x {shape[1]} profiles], found {speeds.shape}")
        for name in pairs or {}:
            if name not in _PAIRS:
                raise InvalidArgument(f"pairs: expected the columns {', '.join(_PAIRS)}, found {name!r}")
        self.arguments = (self.gpu_types, self.profiles, np.ascontiguousarray(speeds.reshape(-1)),
                          {name: column(values, _PAIRS[name], f"pairs[{name!r}]") for name, values in (pairs or {}).items()},
                          integer(reference, "reference", 0, 2**32 - 1))


class Potential:
    """The bounds on what sharing gives: no policy passes them. Rates count GPUs of the reference type that work alone."""

    __slots__ = ("_all", "rows")

    def __init__(self, everything: dict[str, Any], rows: dict[str, npt.NDArray[Any]]) -> None:
        self._all = everything
        self.rows = {**rows, "pays": rows["pays"].astype(bool)}
        """A row a slowdown bound: slowdown_bound, gain (best rate with sharing / without - 1), makespan_cut, rate, admitted
        (pairs), admitted_of_mix (chance that two jobs drawn by their work may share) and pays."""

    @property
    def pairs(self) -> int:
        """Of profiles with work, two copies of one included, on each type with GPUs."""
        return int(self._all["pairs"])

    @property
    def run(self) -> int:
        """Pairs that are known to run together."""
        return int(self._all["run"])

    @property
    def apart(self) -> int:
        """Pairs that are known not to; of the rest nothing is known, and they count so."""
        return int(self._all["apart"])

    @property
    def exclusive(self) -> float:
        """The best rate without sharing."""
        return float(self._all["exclusive"])

    @property
    def left_out(self) -> float:
        """Share of the work: of profiles that no GPU here runs. It counts nowhere else."""
        return float(self._all["left_out"])

    @property
    def pays(self) -> bool:
        """Whether sharing pays at any of the bounds."""
        return bool(self.rows["pays"].any())

    def to_frame(self) -> Any:
        """A row a bound (pandas)."""
        return _table.frame(self.rows)

    def __repr__(self) -> str:
        best = float(self.rows["gain"].max())
        return f"<horus.Potential: sharing {'pays' if self.pays else 'does not pay'}, at most {best:+.1%} throughput>"

    def _repr_html_(self) -> str:
        return _table.to_html(repr(self), self.rows)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Potential, (self._all, self.rows))


def potential(gpu_types: Sequence[str], profiles: Sequence[str], alone: Any, pairs: Mapping[str, Any] | None = None, *,
              work: Mapping[str, float] | Any, gpus: Mapping[str, float] | Any, slowdown_bounds: Any = (),
              least_gain: float = 0, reference: int = 0, library: str | os.PathLike[str] = "",
              progress: Progress = None) -> Potential:
    """What sharing could give this mix on these GPUs (docs/shadow.md), from speeds as Truth.from_speeds takes them.

    Pairs that may not share, as those of owners who do not agree, are for the caller to leave out of `pairs`.
    `work`: seconds alone on the reference type by profile, in any common unit; `gpus`: how many by GPU type; both by name or
    as columns. `slowdown_bounds`: that nobody may exceed (infinity = none); empty = 1.25, 1.5, 2, 2.5 and none.
    `least_gain`: from which on sharing pays; 0 = 0.05, -1 = from any. `library`: libhorus_lp.so, which the wheel does not
    carry. Raises FileError without it."""
    speeds = Speeds(gpu_types, profiles, alone, pairs, reference)
    with progress_of(progress, "potential") as tell:
        return Potential(*_core.potential(
            *speeds.arguments, _by_name(work, speeds.profiles, "work"), _by_name(gpus, speeds.gpu_types, "gpus"),
            column(slowdown_bounds, np.float64, "slowdown_bounds"), real(least_gain, "least_gain"), os.fspath(library), tell))


def _by_name(values: Any, names: Sequence[str], what: str) -> npt.NDArray[np.float64]:
    if not isinstance(values, Mapping):
        return column(values, np.float64, what, len(names))
    for name in values:
        if name not in names:
            raise InvalidArgument(f"{what}: expected names of {', '.join(names)}, found {text(name, what)!r}")
    return np.array([real(values.get(name, 0), f"{what}[{name!r}]") for name in names], np.float64)
