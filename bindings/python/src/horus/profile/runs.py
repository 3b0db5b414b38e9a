# SPDX-License-Identifier: Apache-2.0
"""One run of a user's input pipeline on so many cores: in a process of its own, which ends with everything that it started."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import pickle
import re
import signal
import sys
import sysconfig
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Union

from ..errors import Error, InvalidArgument

__all__ = ["FromFile", "InputRun", "Pipeline", "PipelineError", "Timing", "measure", "usable_cores"]

Pipeline = Callable[[int], Iterable[Any]]
"""Makes the iterable of batches for a number of worker processes or threads."""

_BLOCK_S = 0.1  # of the first blocks of batches; the clock is read every batch
_BLOCKS = (8, 64)  # the fewest for a standard error; at the most two become one
_LATE_BLOCKS = 3  # the fewest when time is up
_WARMUP_SHARE = 0.25  # of a run's time at most
_GRACE_S = 5.0  # for a pipeline to close by itself
_SETTLE_S = 0.2  # for the signal of a worker that died to come
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_FRAME = re.compile(r'^ *File "(.+)", line (\d+)', re.MULTILINE)  # of a traceback in words


class PipelineError(Error):
    """The user's pipeline raised, died, hung or gave no batch; the message names it, the cores, what was expected and found."""

    status, status_name = 8, "CALLBACK"


@dataclass(frozen=True)
class FromFile:
    """A function of a Python file, imported in the process that measures: its imports cost the caller nothing."""

    file: str
    function: str

    @classmethod
    def parse(cls, text: str) -> FromFile:
        """FILE.py:FUNCTION. Raises InvalidArgument."""
        file, _, function = text.rpartition(":")
        if not file.endswith(".py") or not function.isidentifier():
            raise InvalidArgument(f"expected FILE.py:FUNCTION, found {text!r}")
        if not pathlib.Path(file).is_file():
            raise InvalidArgument(f"{text}: expected a Python file, found no file {file!r}")
        return cls(str(pathlib.Path(file).resolve()), function)

    def __call__(self, workers: int) -> Iterable[Any]:
        # Under its own name, so that what the pipeline pickles for its workers can be imported there.
        path = pathlib.Path(self.file)
        if str(path.parent) not in sys.path:
            sys.path.insert(0, str(path.parent))
        module = sys.modules.get(path.stem)
        if module is None or getattr(module, "__file__", None) != self.file:
            spec = importlib.util.spec_from_file_location(path.stem, self.file)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[path.stem] = module
            spec.loader.exec_module(module)
        made = getattr(module, self.function, None)
        if not callable(made):
            raise _Wrong(f"expected a function {self.function!r} in {path.name}, found {type(made).__name__}")
        return made(workers)  # type: ignore[no-any-return]

    def __str__(self) -> str:
        return f"{pathlib.Path(self.file).name}:{self.function}"


@dataclass(frozen=True)
class Timing:
    """How a run is timed. Times in seconds."""

    seconds: float  # from the start of the process until the last batch
    error: float  # relative standard error of the rate that ends it sooner
    timeout_s: float  # without any batch
    warmup: int | None = None  # batches left out; None = four a worker and four, a quarter of the time at most
    least_s: float = 1.0  # of timed batches, whatever `seconds` says


@dataclass(frozen=True)
class InputRun:
    """What a run found: batches per second, the relative standard error of that, batches that were timed, how often the pipeline
    ended and was started again, seconds of the whole run, the share of the timed part that went by between an end and the next batch."""

    cores: int
    workers: int
    rate: float
    error: float
    batches: int
    restarts: int
    seconds: float
    restarting: float = 0.0


Found = tuple[float, float, int, int, float]
Sent = Union[tuple[()], tuple[str], Found]  # a batch came; what went wrong; what was found


class _Wrong(Exception):
    """The pipeline is not as expected; the text says how."""


def usable_cores() -> int:
    """Cores that this process may use: its CPU affinity, and the quota of its control groups, rounded down; at least 1."""
    quotas = [float(len(os.sched_getaffinity(0)))]
    for line in pathlib.Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, names, path = line.split(":", 2)
        if names and "cpu" not in names.split(","):
            continue
        for root in (f"/sys/fs/cgroup/{names}", "/sys/fs/cgroup"):
            folder = pathlib.Path(root + path)
            for one in [folder, *folder.parents][:-3]:
                with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
                    quotas.append(_quota(one))
    return max(1, int(min(quotas)))


def _quota(folder: pathlib.Path) -> float:
    both = folder / "cpu.max"
    if both.exists():
        quota, period = both.read_text(encoding="utf-8").split()
    else:
        quota = (folder / "cpu.cfs_quota_us").read_text(encoding="utf-8")
        period = (folder / "cpu.cfs_period_us").read_text(encoding="utf-8")
    found = float(quota) / float(period)
    if found <= 0:
        raise ValueError("no quota")
    return found


def measure(make: Pipeline, name: str, cpus: list[int], workers: int, timing: Timing, *, start: str = "spawn",
            groups: tuple[str, ...] = ()) -> InputRun:
    """Runs the pipeline on these CPUs. `groups`: folders of control groups that its process joins. Raises PipelineError."""
    begin = time.monotonic()
    at = f"{name}: at {len(cpus)} core{'s'[:len(cpus) > 1]}, {workers} worker{'s'[:workers > 1]}"
    context = multiprocessing.get_context(start)
    receiver, sender = context.Pipe(duplex=False)
    asked = (sender, make, cpus, workers, timing, begin, groups, multiprocessing.get_start_method(allow_none=True))
    process = context.Process(target=_child, args=asked)  # type: ignore[attr-defined]
    try:
        try:
            process.start()
        except (pickle.PicklingError, AttributeError, TypeError) as wrong:
            raise InvalidArgument(f"{name}: expected a function of a module, which another process can import, or start='fork'; "
                                  f"found {wrong}") from wrong
        sender.close()
        with _end_of(process) as ended:
            found = _told(process, ended, receiver, timing.timeout_s, at)
    finally:
        _end(process)
        receiver.close()
    rate, error, batches, restarts, restarting = found
    return InputRun(len(cpus), workers, rate, error, batches, restarts, time.monotonic() - begin, restarting)


@contextlib.contextmanager
def _end_of(process: Any) -> Iterator[Any]:
    """What can be waited for until the process ends; not its sentinel, which every worker that it forks holds open."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # before Linux 5.3
        yield process.sentinel
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _told(process: Any, ended: Any, receiver: Any, timeout_s: float, at: str) -> Found:
    while True:
        if not multiprocessing.connection.wait([receiver, ended], timeout_s):
            raise PipelineError(f"{at}: expected a batch, found none within {timeout_s:g} s")
        sent: Sent | None = None
        with contextlib.suppress(EOFError):
            sent = receiver.recv() if receiver.poll() else None
        if sent is not None and len(sent) == 0:
            continue
        multiprocessing.connection.wait([ended], _GRACE_S)
        if sent is None:
            raise PipelineError(f"{at}: expected batches, found that its process {_ending(process.exitcode)}")
        if len(sent) == 1:
            raise PipelineError(f"{at}: {sent[0]}")
        return sent


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    hint = "; a script that starts it needs if __name__ == '__main__'" if code == 1 else ""
    return f"ended with exit status {code}{hint}"


def _end(process: Any) -> None:
    """Kills what is left of the process and of everything in its group, which the dead leader's id still names until it is joined."""
    if process.pid is None:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()


# ---- In the process that measures.


def _child(sender: Any, make: Pipeline, cpus: list[int], workers: int, timing: Timing, begin: float, groups: tuple[str, ...],
           method: str | None) -> None:
    os.setsid()  # a group to be killed by; an interrupt of the terminal is the caller's
    _die_with_parent()
    os.dup2(2, 1)  # what the pipeline prints is no result
    for folder in groups:
        pathlib.Path(folder, "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
    os.sched_setaffinity(0, cpus)
    # Workers start as in the user's own program: a process that was spawned would spawn its own too, with all their imports every epoch.
    multiprocessing.set_start_method(method, force=True)
    try:
        sender.send(_timed(make, workers, timing, begin, lambda: sender.send(())))
    except _Wrong as wrong:
        sender.send((str(wrong),))
    except BaseException as error:  # SystemExit too: whatever the pipeline does is told
        last = _settled(error)
        traceback.print_exception(type(last), last, last.__traceback__)
        sender.send((f"expected batches, found {_raised(last)}",))


def _settled(error: BaseException) -> BaseException:
    """The error, or a later one that says why: PyTorch's handler of SIGCHLD raises when a worker has died, wherever the process then is.
    Afterwards it no longer does, so that the error can be told."""
    try:
        time.sleep(_SETTLE_S)
    except Exception as later:
        error = later
    for _ in range(2):  # one that is due is raised here, in place of setting the handler
        with contextlib.suppress(Exception):
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    return error


def _raised(error: BaseException) -> str:
    """Its kind, the last place that is the user's, and its words, in a line. Loaders raise errors of workers anew, the worker's traceback
    among the words; pools have it as the cause."""
    kind, words = type(error).__name__, str(error)
    inner = _FRAME.findall(words)
    if inner:  # the last lines that are not indented
        kind, _, words = re.sub(r"(?s).*\n[ \t][^\n]*\n", "", words).partition(": ")
    elif type(error.__cause__).__name__.endswith("RemoteTraceback"):
        inner = _FRAME.findall(str(error.__cause__))
    elif isinstance(error, SyntaxError):
        inner = [(error.filename or "?", str(error.lineno))]
    frames = [*((frame.filename, str(frame.lineno)) for frame in traceback.extract_tb(error.__traceback__)), *inner] or [("?", "?")]
    file, line = [*frames[-1:], *(frame for frame in frames if _is_users(frame[0]))][-1]
    return f"{kind} at {pathlib.Path(file).name}:{line}: {' '.join(words.split())}"


def _is_users(file: str) -> bool:
    """Whether a file of code is neither of a package nor of Python's library."""
    path = pathlib.PurePath(file)
    return path.is_absolute() and not {"site-packages", "dist-packages"} & {*path.parts} and not any(
        path.is_relative_to(folder) for folder in (sysconfig.get_path("stdlib"), pathlib.Path(__file__).parent))


def _die_with_parent() -> None:
    # Of a signal of its own: the handler passes to workers that are forked, and pools end theirs with SIGTERM.
    signal.signal(signal.SIGUSR2, lambda *_: os.killpg(0, signal.SIGKILL))
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, int(signal.SIGUSR2))


def _timed(make: Pipeline, workers: int, timing: Timing, begin: float, tell: Callable[[], None]) -> Found:
    feed = _Feed(make, workers)
    feed.batch()
    tell()
    _warm_up(feed, workers, timing, tell)
    blocks = _Blocks()
    feed.restarts, feed.restarting_s = 0, 0.0
    last = start = time.monotonic()
    while True:
        feed.batch()
        now = time.monotonic()
        if not blocks.add(now - last):
            last = now
            continue
        last = now
        tell()
        if len(blocks.closed) < (_BLOCKS[0] if now - begin < timing.seconds else _LATE_BLOCKS):
            continue
        rate, error = blocks.rate()
        if now - start >= timing.least_s and (error <= timing.error or now - begin >= timing.seconds):
            feed.close()
            return rate, error, blocks.batches, feed.restarts, feed.restarting_s / (now - start)


def _warm_up(feed: _Feed, workers: int, timing: Timing, tell: Callable[[], None]) -> None:
    told = start = time.monotonic()
    for _ in range(1, 4 * workers + 4 if timing.warmup is None else timing.warmup):
        feed.batch()
        now = time.monotonic()
        if timing.warmup is None and now - start >= _WARMUP_SHARE * timing.seconds:
            return
        if now - told >= _BLOCK_S:
            tell()
            told = now


class _Blocks:
    """Batches in blocks of equal time, whose scatter gives the standard error: batches of several workers come in bursts."""

    def __init__(self) -> None:
        self.closed: list[tuple[int, float]] = []
        self.batches = 0
        self._block_s = _BLOCK_S
        self._open = (0, 0.0)

    def add(self, seconds: float) -> bool:
        """Whether this batch closed a block."""
        count, length = self._open[0] + 1, self._open[1] + seconds
        self._open = (count, length)
        if length < self._block_s:
            return False
        self.closed.append(self._open)
        self.batches += count
        self._open = (0, 0.0)
        if len(self.closed) == _BLOCKS[1]:
            pairs = zip(self.closed[::2], self.closed[1::2])
            self.closed = [(a[0] + b[0], a[1] + b[1]) for a, b in pairs]
            self._block_s *= 2
        return True

    def rate(self) -> tuple[float, float]:
        """Batches per second of closed blocks, and its relative standard error (of a ratio of sums)."""
        blocks, length = len(self.closed), sum(seconds for _, seconds in self.closed)
        rate = sum(count for count, _ in self.closed) / length
        if blocks < 2:
            return rate, 1.0
        scatter = sum((count - rate * seconds) ** 2 for count, seconds in self.closed)
        return rate, (scatter * blocks / (blocks - 1)) ** 0.5 / length / rate


class _Feed:
    """The batches of a pipeline, epoch after epoch."""

    def __init__(self, make: Pipeline, workers: int) -> None:
        self._make, self._workers = make, workers
        self.restarts, self.restarting_s = 0, 0.0
        self._open()

    def _open(self) -> None:
        self._made = self._make(self._workers)
        try:
            self._batches: Iterator[Any] = iter(self._made)
        except TypeError:
            raise _Wrong(f"expected an iterable of batches, found {type(self._made).__name__}") from None

    def batch(self) -> None:
        """Takes one. An iterable that ends is iterated anew; an iterator is made anew."""
        begin = time.monotonic()
        try:
            next(self._batches)
            return
        except StopIteration:
            self.restarts += 1
        if not self._again():
            self._open()
            try:
                next(self._batches)
            except StopIteration:
                raise _Wrong("expected batches, found none: the iterable ended at once") from None
        self.restarting_s += time.monotonic() - begin

    def _again(self) -> bool:
        fresh = iter(self._made)
        if fresh is self._made:
            return False
        self._batches = fresh  # the very one before, where workers persist: it begins anew
        try:
            next(self._batches)
        except StopIteration:
            return False
        return True

    def close(self) -> None:
        """Lets generators and workers end by themselves."""
        close = getattr(self._batches, "close", None)
        if callable(close):
            close()
        del self._batches, self._made
