# SPDX-License-Identifier: Apache-2.0
"""Traces: jobs that came, when, and how much work they brought; measured, read from files, or made."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core, _table
from ._args import column, sequence, text
from ._core import SyntheticOptions
from .errors import InvalidArgument

__all__ = ["SyntheticOptions", "Trace"]

_NOT_STATED = 2**32 - 1
_KINDS = {"training": 0, "inference": 1, "best-effort": 2}
_TEXTS = {"profile": "profile_names", "owner": "owner_names", "gpu_types": "type_lists"}
_SECONDS = ("submit_s", "duration_s", "deadline_s")
_COLUMNS: dict[str, type] = {
    "id": np.uint64, "submit_us": np.int64, "duration_us": np.int64, "steps": np.int64, "deadline_us": np.int64,
    "tasks": np.int32, "gpus_per_task": np.int32, "gpu_milli": np.int32, "cpu_milli": np.int64, "mem_mib": np.int64,
    "priority": np.int32, "step_us": np.int64, "host_us": np.int64, "gpu_us": np.int64, "network_us": np.int64}


class Trace:
    """Jobs that came, when, and how much work they brought. Immutable: share freely."""

    __slots__ = ("_handle",)

    def __init__(self, *, profile: Sequence[str], duration_us: Any = None, steps: Any = None, endless: Any = None,
                 owner: Sequence[str] | None = None, gpu_types: Sequence[str] | None = None,
                 kind: Sequence[str] | None = None, **columns: Any) -> None:
        """Columns with a row a job: `profile` (what it runs; '' = not stated), duration_us (alone at speed 1) or steps, and
        id, submit_us, deadline_us, tasks, gpus_per_task, gpu_milli, cpu_milli, mem_mib, priority, kind, owner, gpu_types
        (names with | between them, '' = any), endless, and what a step takes: step_us, host_us, gpu_us, network_us."""
        rows = len(_texts(profile, "profile"))
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
        for name, texts in (("profile", profile), ("owner", owner), ("gpu_types", gpu_types)):
            if texts is not None:
                made[_TEXTS[name]], made[name] = _positions(_texts(texts, name), name, rows)
        self._handle = _core.TraceHandle(rows, made)

    @classmethod
    def _made(cls, handle: _core.TraceHandle) -> Trace:
        trace = cls.__new__(cls)
        trace._handle = handle
        return trace

    @classmethod
    def from_frame(cls, frame: Any) -> Trace:
        """A pandas frame with these columns; submit_s, duration_s and deadline_s are in seconds, as in files."""
        columns: dict[str, Any] = {}
        for name in frame.columns:
            known, values = str(name), frame[name].to_numpy()
            if known in _SECONDS:
                known, values = f"{known[:-1]}us", _microseconds(values, known)
            if known in columns:
                raise InvalidArgument(f"{known}: expected it once, found {name} beside it")
            columns[known] = values
        return cls(**columns)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], format: str | None = None) -> Trace:
        """A trace as it was published (docs/simulate.md): plain, openb, gavel, chronus, muri or pai; None = by its header.
        Raises FileError, InvalidArgument (file, line, column)."""
        return cls._made(_core.read_trace(text(os.fspath(path), "path"), None if format is None else text(format, "format")))

    @classmethod
    def synthetic(cls, preset: str = "philly", **options: Any) -> Trace:
        """A made trace: a preset, and what is changed of it: the fields of horus.SyntheticOptions. The same for equal
        options on every machine."""
        return cls._made(_core.TraceHandle.synthetic(SyntheticOptions(preset=preset, **options)))

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """The columns that make the trace, with a row a job by (submit_us, id); names are text, '' = not stated."""
        found = self._handle.columns()
        out: dict[str, npt.NDArray[Any]] = {name: found[name] for name in found if name not in _TEXTS.values()}
        for name, names in _TEXTS.items():
            table = np.array([*found[names], ""])
            out[name] = table[np.minimum(out[name], len(table) - 1)]
        out["kind"] = np.array(list(_KINDS))[out["kind"]]
        out["endless"] = out["endless"].astype(bool)
        return out

    def replace(self, **columns: Any) -> Trace:
        """The same with other values in some columns, as rows of `columns()`."""
        return Trace(**{**self.columns(), **columns})

    def take(self, rows: Any) -> Trace:
        """The jobs at these rows of `columns()`: a mask, positions or a slice."""
        return Trace(**{name: values[rows] for name, values in self.columns().items()})

    def to_frame(self) -> Any:
        """A row a job (pandas)."""
        return _table.frame(self.columns())

    def summary(self) -> dict[str, Any]:
        """Jobs, gangs, gaps, GPU time; equal digests, equal workloads."""
        return self._handle.summary()

    @property
    def profiles(self) -> list[str]:
        """In the order in which jobs name them first."""
        return self._handle.profiles()

    @property
    def bytes_held(self) -> int:
        """Memory in bytes."""
        return self._handle.bytes_held()

    def __len__(self) -> int:
        return len(self._handle)

    def __repr__(self) -> str:
        return f"<horus.Trace of {len(self)} jobs, {len(self.profiles)} profiles>"

    def _repr_html_(self) -> str:
        return _table.pairs_to_html(repr(self), self.summary())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trace) and self.summary() == other.summary()

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return (_trace, (len(self), self._handle.columns()))


def _microseconds(seconds: Any, what: str) -> npt.NDArray[np.int64]:
    found = column(seconds, np.float64, what)
    for row in np.flatnonzero(~(np.abs(found) < 2**62 / 1e6))[:1]:  # NaN too
        raise InvalidArgument(f"{what}[{row}]: expected seconds, found {found[row]:g}")
    return np.rint(found * 1e6).astype(np.int64)


def _trace(rows: int, columns: dict[str, Any]) -> Trace:
    return Trace._made(_core.TraceHandle(rows, columns))


def _texts(values: Any, what: str) -> Sequence[str]:
    return sequence(values.tolist() if isinstance(values, np.ndarray) else values, str, what)


def _kinds(kinds: Any, rows: int) -> npt.NDArray[np.int32]:
    found = _texts(kinds, "kind")
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
