# SPDX-License-Identifier: Apache-2.0
"""Measured runs and pairs as frames or dicts of columns, by the names of docs/measure.md."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ._core import RunSpec, SharedDevice
from .errors import InvalidArgument

if TYPE_CHECKING:
    from .graph import Graph

T = TypeVar("T")
MEASURED = ("gpu_util_pct", "gpu_util_max_pct", "mem_bw_util_pct", "mem_mib", "step_time_us", "power_w")
_RUN = ("batch", "dims", "mode", "precision", "optimizer", "framework", "layout", "frozen", "checkpoint_segments",
        "replicas")
_FOR_PEOPLE = ("net", "campaign", "note")
_FIELD_OF = {"replicas": "data_parallel"}  # of RunSpec, where it has another name
_COUNTS = ("batch", "checkpoint_segments", "replicas")


def is_table(data: object) -> bool:
    """Whether it is a frame or a dict of columns, and no sequence of graphs or devices."""
    return isinstance(data, Mapping) or hasattr(data, "columns")


class Runs(NamedTuple):
    """Measured runs, a row each."""

    graphs: list[Graph]
    gpu_types: list[str]
    families: list[str]
    runs: list[RunSpec]
    measured: dict[str, npt.NDArray[np.float64]]


class Table:
    """A frame or a dict of columns, whose names are checked."""

    def __init__(self, data: Any, what: str, required: tuple[str, ...], known: tuple[str, ...]) -> None:
        names = [str(name) for name in (data.keys() if isinstance(data, Mapping) else data.columns)]
        for name in required:
            if name not in names:
                raise InvalidArgument(f"{what}: expected a column {name}, found {', '.join(names) or 'none'}")
        for name in names:
            if name not in required + known:
                raise InvalidArgument(f"{what}: expected one of the columns {', '.join(required + known)}, found {name!r}")
        self._what = what
        self._columns = {name: _listed(data[name]) for name in names}
        self.rows = len(self._columns[required[0]])
        for name, values in self._columns.items():
            if len(values) != self.rows:
                raise InvalidArgument(f"{what}: {name}: expected {self.rows} rows, as {required[0]}, found {len(values)}")

    def has(self, name: str) -> bool:
        """Whether there is such a column."""
        return name in self._columns

    def cell(self, name: str, row: int) -> Any:
        """None where it is blank or the column is missing."""
        value = self._columns[name][row] if name in self._columns else None
        return None if value is None or value != value or (isinstance(value, str) and not value.strip()) else value

    def text(self, name: str, row: int, expected: str, default: str | None = None) -> str:
        """Text that is there, or the default."""
        value = self.cell(name, row)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise self.wrong(name, row, expected, value)
        return value

    def numbers(self, name: str) -> npt.NDArray[np.float64]:
        """NaN where it is blank."""
        out = np.full(self.rows, np.nan)
        for row in range(self.rows):
            value = self.cell(name, row)
            if value is None:
                continue
            if isinstance(value, (bool, str)) or not hasattr(value, "__float__"):
                raise self.wrong(name, row, "a number or blank", value)
            out[row] = float(value)
        return out

    def wrong(self, name: str, row: int, expected: str, found: object) -> InvalidArgument:
        """The error of a cell."""
        return InvalidArgument(f"{self._what}: row {row}: {name}: expected {expected}, found {found!r:.80}")

    def made(self, name: str, row: int, make: Callable[[], T]) -> T:
        """What `make` answers; its errors tell the row."""
        try:
            return make()
        except (TypeError, ValueError, OSError, LookupError) as error:
            raise InvalidArgument(f"{self._what}: row {row}: {name}: {error}") from error


def _listed(values: Any) -> list[Any]:
    listed: list[Any] = values.tolist() if hasattr(values, "tolist") else list(values)
    return listed


class _Jobs:
    """Graphs and runs of a table's rows; those that are alike are made once."""

    def __init__(self, table: Table, folder: str | os.PathLike[str]) -> None:
        self._table, self._folder = table, folder
        self._graphs: dict[str, Graph] = {}

    def graph(self, row: int) -> Graph:
        from .graph import Graph

        given = self._table.cell("graph", row)
        if isinstance(given, Graph):
            return given
        path = os.path.join(self._folder, self._table.text("graph", row, "a Graph or the path of an ONNX file"))
        if path not in self._graphs:
            self._graphs[path] = self._table.made("graph", row, lambda: Graph.from_onnx(path))
        return self._graphs[path]

    def run(self, row: int) -> RunSpec:
        fields: dict[str, Any] = {}
        for name in _RUN:
            value = self._table.cell(name, row)
            if value is None:
                continue
            if name in _COUNTS and isinstance(value, float) and value.is_integer():  # whole numbers beside blank ones
                value = int(value)
            if name == "dims":
                value = self._dims(value, row)
            if name == "frozen" and isinstance(value, str):
                value = [prefix for prefix in value.split(";") if prefix]
            fields[_FIELD_OF.get(name, name)] = value
        return self._table.made("run", row, lambda: RunSpec(**fields))

    def _dims(self, given: Any, row: int) -> Any:
        if not isinstance(given, str):
            return given
        parts = [part.split("=") for part in given.split(";") if part.strip()]
        if any(len(part) != 2 or not part[1].strip().isdigit() for part in parts):
            raise self._table.wrong("dims", row, "NAME=SIZE;NAME=SIZE", given)
        return {name.strip(): int(size) for name, size in parts}


def runs_of(data: Any, folder: str | os.PathLike[str], families: bool) -> Runs:
    """The rows of a dataset; `families`: whether they must be there."""
    required = ("graph", "gpu", "family") if families else ("graph", "gpu")
    table = Table(data, "data", required, ("family", "sharing_mode", *_RUN, *MEASURED, *_FOR_PEOPLE))
    if not any(table.has(name) for name in MEASURED):
        raise InvalidArgument(f"data: expected a column of {', '.join(MEASURED)}, found none")
    jobs = _Jobs(table, folder)
    for row in range(table.rows):
        if table.text("sharing_mode", row, "exclusive", "exclusive") != "exclusive":
            raise table.wrong("sharing_mode", row, "exclusive or blank (a demand is what a job takes of a GPU of its own)",
                              table.cell("sharing_mode", row))
    every = range(table.rows)
    return Runs([jobs.graph(row) for row in every], [table.text("gpu", row, "the name of a GPU type") for row in every],
                [table.text("family", row, "the name of the model family", None if families else "-") for row in every],
                [jobs.run(row) for row in every], {name: table.numbers(name) for name in MEASURED if table.has(name)})


class Pairs(NamedTuple):
    """Measured pairs: devices, jobs as (graph, run, family), and a row a pair."""

    devices: list[SharedDevice]
    graphs: list[Graph]
    runs: list[RunSpec]
    families: list[str]
    columns: dict[str, npt.NDArray[Any]]


def pairs_of(data: Any, jobs: Any, folder: str | os.PathLike[str]) -> Pairs:
    """The rows of a table of pairs, and of the table of the jobs that they name."""
    pairs = Table(data, "data", ("gpu", "job_a", "job_b"), ("sharing_mode", "slowdown_a", "slowdown_b", "campaign", "note"))
    named = Table(jobs, "jobs", ("job", "graph", "family"), (*_RUN, "note"))
    made = _Jobs(named, folder)
    position: dict[str, int] = {}
    for row in range(named.rows):
        if position.setdefault(named.text("job", row, "the name of a job"), row) != row:
            raise named.wrong("job", row, "a name of its own", named.cell("job", row))
    used: dict[str, int] = {}  # jobs that no pair names are not read further
    devices: dict[tuple[str, str], int] = {}
    where, at = np.zeros(pairs.rows, np.uint32), {name: np.zeros(pairs.rows, np.uint32) for name in ("job_a", "job_b")}
    for row in range(pairs.rows):
        key = (pairs.text("gpu", row, "the name of a GPU type"), pairs.text("sharing_mode", row, "mps or time-slice", "time-slice"))
        where[row] = devices.setdefault(key, len(devices))
        for name, column in at.items():
            job = pairs.text(name, row, "the name of a job")
            if job not in position:
                raise pairs.wrong(name, row, "a job of the table jobs", job)
            column[row] = used.setdefault(job, len(used))
    rows = [position[job] for job in used]
    slow = {name: pairs.numbers(name) for name in ("slowdown_a", "slowdown_b")}
    return Pairs([_device(gpu, mode) for gpu, mode in devices], [made.graph(row) for row in rows],
                 [made.run(row) for row in rows], [named.text("family", row, "the name of the model family") for row in rows],
                 {"device": where, **at, **slow})


def _device(gpu_type: str, sharing_mode: Any) -> SharedDevice:
    return SharedDevice(gpu_type, sharing_mode=sharing_mode)
