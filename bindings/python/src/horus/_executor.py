# SPDX-License-Identifier: Apache-2.0
"""Simulations by an executor (the interface of concurrent.futures), whose results do not tell who ran them, or in which order."""

from __future__ import annotations

import contextlib
import copy
import os
import pickle
import queue
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from typing import Any

from . import _core
from .errors import Cancelled, Error, StateError
from .sim import SimResult, simulate

_TICK_S = 0.1  # how often one asks whether to go on


class Part:
    """What many cells need. In one process it is the value itself; elsewhere what the file holds; without one the value as
    the executor pickles it, or where `packs`, its own pickle, which is made once and compressed."""

    __slots__ = ("_file", "_packed", "_packs", "_value")

    def __init__(self, value: Any, packs: bool = False, file: str = "") -> None:
        self._value = value
        self._packs = packs
        self._packed = b""
        self._file = file

    def write(self, folder: str) -> None:
        """Into a file of the folder, once."""
        if not self._file:
            file = os.path.join(folder, str(id(self)))
            with open(file, "xb") as out:
                pickle.dump(self._value, out)
            self._file = file

    def get(self) -> Any:
        """Raises Cancelled where the file is gone, for then nobody waits any more."""
        if self._value is not None:
            return self._value
        try:
            with open(self._file, "rb") as source:
                return pickle.load(source)
        except FileNotFoundError as gone:
            raise Cancelled("compare: ended before this simulation began") from gone

    def __reduce__(self) -> tuple[Any, ...]:
        if self._file:
            return (Part, (None, False, self._file))
        if not self._packs:
            return (Part, (self._value,))
        if not self._packed:
            self._packed = zlib.compress(pickle.dumps(self._value), 1)  # a trace: to an eighth, at 160 MB a second
        return (_unpack, (self._packed,))


def _unpack(packed: bytes) -> Part:
    return Part(pickle.loads(zlib.decompress(packed)))


class Cell:
    """One simulation of a grid: trace; beliefs and truth; cluster; placer and options."""

    __slots__ = ("name", "parts", "version")

    def __init__(self, name: str, *parts: Part) -> None:
        self.name = name
        self.parts = parts
        self.version = _core.version()

    def play(self, go_on: Callable[[float], object] | None, copies: bool = False) -> SimResult:
        trace, (beliefs, truth), cluster, (placer, options) = (part.get() for part in self.parts)
        return simulate(trace, beliefs, truth, cluster, copy.copy(placer) if copies else placer, options, progress=go_on)


class Going:
    """What simulations ask whether to go on: those of other processes while the folder is there, if there is to be one."""

    __slots__ = ("_folder", "_is_copy", "_next_s", "_stopped")

    def __init__(self, folder: str, is_copy: bool = False) -> None:
        self._folder, self._is_copy = folder, is_copy
        self._next_s = 0.0
        self._stopped = threading.Event()

    def stop(self) -> None:
        self._stopped.set()

    def __call__(self, done: float) -> bool:
        if self._is_copy and self._folder and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + _TICK_S
            return os.path.exists(self._folder)
        return not self._stopped.is_set()

    def __reduce__(self) -> tuple[Any, ...]:
        return (Going, (self._folder, True))


def _play(cell: Cell, going: Going) -> SimResult:
    """What workers run. Threads get the caller's own placer, and a placer serves one thread: it is copied."""
    if cell.version != _core.version():
        raise StateError(f"worker: expected libhorus {cell.version}, as where the grid is, found {_core.version()}")
    return cell.play(going, copies=True)


def name_cell(error: BaseException, name: str) -> None:
    """Says in the error which cell it was: in the message of our own, in a note of others (Ray's pose as ours)."""
    if isinstance(error, Error) and type(error).__str__ is Error.__str__:
        error.message = f"{name}: {error.message}"
    elif hasattr(error, "add_note"):  # Python 3.11
        error.add_note(f"horus.compare: {name}")


def run_cells(executor: Executor, cells: Sequence[Cell], tell: Callable[[float], object] | None) -> list[SimResult]:
    """Results in the order of the cells. Of those that fail the first in this order raises, whichever ended first. What has
    not begun by then is cancelled.

    Processes of this machine get files: CPython 3.11.7 and older hang (gh-94777) where a worker dies while tasks of more than a
    pipe holds, 64 KiB, are on their way. That the files go also tells them to end."""
    ended: queue.SimpleQueue[int] = queue.SimpleQueue()
    with contextlib.ExitStack() as stack:
        folder = ""
        if isinstance(executor, ProcessPoolExecutor):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="horus-grid-"))
        going, futures = Going(folder), []
        try:
            for position, cell in enumerate(cells):
                futures.append(_submit(executor, cell, going, folder))
                futures[-1].add_done_callback(lambda _, at=position: ended.put(at))
            return _wait(cells, futures, ended, tell)
        except BaseException:
            going.stop()
            for future in futures:
                future.cancel()
            raise


def _submit(executor: Executor, cell: Cell, going: Going, folder: str) -> Any:
    try:
        for part in cell.parts:
            if folder:
                part.write(folder)
        return executor.submit(_play, cell, going)
    except Exception as error:
        name_cell(error, cell.name)
        raise


def _wait(cells: Sequence[Cell], futures: Sequence[Any], ended: queue.SimpleQueue[int],
          tell: Callable[[float], object] | None) -> list[SimResult]:
    results: dict[int, SimResult] = {}
    waiting, failed = set(range(len(cells))), len(cells)
    while waiting:
        try:
            at = ended.get(timeout=_TICK_S)
        except queue.Empty:
            at = -1
        if at in waiting:
            waiting.remove(at)
            try:
                results[at] = futures[at].result()
            except Exception:
                failed = at
                waiting = {other for other in waiting if other < at}
                for later in futures[at + 1:]:
                    later.cancel()
        if tell is not None and tell(len(results) / len(cells)) is False:
            raise Cancelled("compare: cancelled by its progress callback")
    if failed < len(cells):
        try:
            futures[failed].result()
        except Exception as error:
            name_cell(error, cells[failed].name)
            raise
    return [results[at] for at in range(len(cells))]
